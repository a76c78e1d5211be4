//! What goes wrong in Rust, as the exceptions of `tfseek/_errors.py`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::{CastError, intern};
use tfseek::error::{Category, IndexError, PathsError};
use tfseek::{Error, ErrorKind};

/// An error of the crate, or one of Python's own.
pub(crate) enum Failure {
    Tfseek(Error),
    Python(PyErr),
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Tfseek(e)
    }
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Failure {
        Failure::Tfseek(kind.into())
    }
}

impl From<PyErr> for Failure {
    fn from(e: PyErr) -> Failure {
        Failure::Python(e)
    }
}

impl From<CastError<'_, '_>> for Failure {
    fn from(e: CastError<'_, '_>) -> Failure {
        Failure::Python(e.into())
    }
}

impl Failure {
    pub(crate) fn type_error(message: impl Into<String>) -> Failure {
        Failure::Python(PyTypeError::new_err(message.into()))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Python(e) => e,
            Failure::Tfseek(e) => Python::attach(|py| raised(py, &e).unwrap_or_else(|other| other)),
        }
    }
}

/// An exception with the fields that `tfseek.Error` documents.
fn raised(py: Python<'_>, e: &Error) -> PyResult<PyErr> {
    let class = py.import(intern!(py, "tfseek._errors"))?.getattr(class_of(e))?;
    let raised = class.call1((e.to_string(),))?;
    let place = e.place();
    raised.setattr(intern!(py, "path"), place.path.as_deref().map(|path| path.as_os_str()))?;
    raised.setattr(intern!(py, "record"), place.record)?;
    raised.setattr(intern!(py, "offset"), place.offset)?;
    raised.setattr(intern!(py, "feature"), place.feature.as_deref())?;
    raised.setattr(intern!(py, "row"), place.row)?;
    raised.setattr(intern!(py, "step"), place.step)?;
    raised.setattr(intern!(py, "category"), e.category().map(name_of))?;
    if let ErrorKind::Io(io) = e.kind() {
        raised.setattr(intern!(py, "errno"), io.raw_os_error())?;
        raised.setattr(intern!(py, "filename"), raised.getattr(intern!(py, "path"))?)?;
    }
    Ok(PyErr::from_value(raised))
}

fn class_of(e: &Error) -> &'static str {
    match e.kind() {
        ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Io(_) => "IoError",
        ErrorKind::Paths(PathsError::NoMatch { .. } | PathsError::MissingShards { .. }) => "NotFoundError",
        ErrorKind::OutOfRange { .. } => "OutOfRangeError",
        ErrorKind::Spec(_) | ErrorKind::Filter(_) => "SpecError",
        ErrorKind::Order(_) => "OrderError",
        _ if e.is_data() => "DataError",
        ErrorKind::Index(IndexError::NameClash { .. }) => "Error",
        ErrorKind::Index(_) => "SidecarError",
        _ => "Error",
    }
}

fn name_of(category: Category) -> &'static str {
    match category {
        Category::MalformedProto => "malformed_proto",
        Category::KindMismatch => "kind_mismatch",
        Category::CountMismatch => "count_mismatch",
        Category::MissingFeature => "missing_feature",
        Category::BadPartition => "bad_partition",
        Category::BadSparseIndex => "bad_sparse_index",
        Category::BadSpec => "bad_spec",
        Category::TooLarge => "too_large",
        _ => "other",
    }
}
