//! Conversion of Rust errors to the exceptions of `tfseek/_errors.py`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{CastError, intern};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use tfseek::error::{Category, IndexError, PathsError, Remedy};
use tfseek::{At, Error, ErrorKind};
use tfseek_tfds::{TfdsError, TfdsErrorKind};
use tfseek_tools::damage::is_damage;
use tfseek_tools::{FetchReason, OutputConflict, ToolsError, hints};

/// An error of a crate, or a Python exception. An error becomes an exception where it is raised, because no
/// thread of ours makes a Python object.
pub(crate) enum BindingError {
    Tfseek(Error),
    Arrow(Box<tfseek_arrow::Error>),
    Tfds(Box<TfdsError>),
    Tools(Box<ToolsError>),
    /// A `tfseek.Error` with this message.
    Text(String),
    /// A `DataError` about a value, with this message, the row and the name of the feature.
    Value(String, Option<u64>, Option<Box<str>>),
    Python(PyErr),
}

pub(crate) type Result<T, E = BindingError> = std::result::Result<T, E>;

impl From<Error> for BindingError {
    fn from(e: Error) -> BindingError {
        BindingError::Tfseek(e)
    }
}

impl From<ErrorKind> for BindingError {
    fn from(kind: ErrorKind) -> BindingError {
        BindingError::Tfseek(kind.into())
    }
}

impl From<tfseek_arrow::Error> for BindingError {
    fn from(e: tfseek_arrow::Error) -> BindingError {
        match e.into_record_error() {
            Ok(e) => e.into(),
            Err(e) => BindingError::Arrow(Box::new(e)),
        }
    }
}

impl From<TfdsError> for BindingError {
    fn from(e: TfdsError) -> BindingError {
        BindingError::Tfds(Box::new(e))
    }
}

impl From<ToolsError> for BindingError {
    fn from(e: ToolsError) -> BindingError {
        match e {
            ToolsError::Error(e) => e.into(),
            ToolsError::Tfds(e) => e.into(),
            e => BindingError::Tools(Box::new(e)),
        }
    }
}

impl From<PyErr> for BindingError {
    fn from(e: PyErr) -> BindingError {
        BindingError::Python(e)
    }
}

impl From<CastError<'_, '_>> for BindingError {
    fn from(e: CastError<'_, '_>) -> BindingError {
        BindingError::Python(e.into())
    }
}

impl BindingError {
    pub(crate) fn type_error(message: impl Into<String>) -> BindingError {
        BindingError::Python(PyTypeError::new_err(message.into()))
    }

    pub(crate) fn value_error(message: impl Into<String>) -> BindingError {
        BindingError::Python(PyValueError::new_err(message.into()))
    }
}

impl From<BindingError> for PyErr {
    fn from(failure: BindingError) -> PyErr {
        match failure {
            BindingError::Python(e) => e,
            BindingError::Tfseek(e) => Python::attach(|py| raised(py, &e)),
            BindingError::Arrow(e) => Python::attach(|py| arrow_exception(py, &e)),
            BindingError::Tfds(e) => Python::attach(|py| tfds_exception(py, &e, e.path(), &e.to_string())),
            BindingError::Tools(e) => Python::attach(|py| tools_exception(py, &e)),
            BindingError::Text(message) => Python::attach(|py| of_class(py, "Error", &message, |_| Ok(()))),
            BindingError::Value(message, row, feature) => Python::attach(|py| {
                of_class(py, "DataError", &message, |raised| {
                    raised.setattr(intern!(py, "row"), row)?;
                    raised.setattr(intern!(py, "feature"), feature.as_deref())
                })
            }),
        }
    }
}

/// Returns an exception of a class in `tfseek/_errors.py`. `set` sets its attributes.
pub(crate) fn of_class<'py>(
    py: Python<'py>,
    class: &str,
    message: &str,
    set: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<()>,
) -> PyErr {
    let raised = || {
        let raised = py.import(intern!(py, "tfseek._rust"))?.getattr(class)?.call1((message,))?;
        set(&raised)?;
        Ok(PyErr::from_value(raised))
    };
    raised().unwrap_or_else(|e| e)
}

/// Returns the exception for an error, with the attributes that `tfseek.Error` documents.
pub(crate) fn raised(py: Python<'_>, e: &Error) -> PyErr {
    let class = class_of(e);
    of_class(py, class, &message(e), |raised| {
        let location = e.location();
        let path = location.path.as_deref().map(Path::as_os_str);
        raised.setattr(intern!(py, "path"), path)?;
        raised.setattr(intern!(py, "record"), location.record)?;
        raised.setattr(intern!(py, "offset"), location.offset)?;
        raised.setattr(intern!(py, "feature"), location.feature.as_deref())?;
        raised.setattr(intern!(py, "row"), location.row)?;
        raised.setattr(intern!(py, "step"), location.step)?;
        raised.setattr(intern!(py, "category"), e.category().map(name_of))?;
        if !matches!(class, "IoError" | "NotFoundError") {
            return Ok(());
        }
        let number = match e.kind() {
            ErrorKind::Io(io) => io.raw_os_error(),
            _ => None,
        };
        // A missing file has the number of Python's own FileNotFoundError, even if no system call reported
        // it.
        let number = number.or((class == "NotFoundError").then_some(ENOENT));
        let text = match number {
            Some(number) => {
                py.import(intern!(py, "os"))?.getattr(intern!(py, "strerror"))?.call1((number,))?
            }
            None => PyString::new(py, &e.kind().to_string()).into_any(),
        };
        let filename = match e.kind() {
            ErrorKind::Paths(PathsError::NoMatch { pattern } | PathsError::OtherSets { pattern, .. }) => {
                Some(OsStr::new(&**pattern))
            }
            ErrorKind::Paths(PathsError::Interrupted { set, .. }) => Some(set.as_os_str()),
            _ => path,
        };
        raised.setattr(intern!(py, "errno"), number)?;
        raised.setattr(intern!(py, "strerror"), text)?;
        raised.setattr(intern!(py, "filename"), filename)
    })
}

/// The error number of "no such file or directory", which is the same on all platforms.
const ENOENT: i32 = 2;

/// Returns true for a URL of the stores. `None` in a build without them.
#[cfg(feature = "remote")]
const IS_OBJECT: Option<fn(&str) -> bool> = Some(tfseek_remote::RemoteStore::has);
#[cfg(not(feature = "remote"))]
const IS_OBJECT: Option<fn(&str) -> bool> = None;

/// Returns the message of an error, with its remedy for Python callers.
pub(crate) fn message(e: &Error) -> String {
    let hint = match e.kind().remedy() {
        Some(Remedy::AllowMissing) => "allow_missing=True continues without them".into(),
        Some(Remedy::BuildIndex) => format!("tfseek.build_index({}) builds one", path_of(e)),
        Some(Remedy::Build(build)) if !build.features.is_empty() => {
            format!("the command `{}` builds it", hints::index_command(build))
        }
        Some(Remedy::Build(build)) => match build.paths.as_slice() {
            [path] if build.more == 0 => format!("tfseek.build_index({path:?}) scans them"),
            paths if build.more == 0 => format!("tfseek.build_index({paths:?}) scans them"),
            _ => "tfseek.build_index(paths) scans them".into(),
        },
        Some(Remedy::Rebuild) => format!("tfseek.build_index({}, rebuild=True) builds it again", path_of(e)),
        Some(Remedy::ReadWithoutMaps) => "io=\"pread\" reads without maps".into(),
        Some(Remedy::MaxRecord(len)) => format!("tfseek.open(.., max_record={len}) reads it"),
        Some(Remedy::Unverified) => "verify=\"none\" reads it without checksums".into(),
        Some(Remedy::LeaveOut) => "damage=\"skip\" leaves them out".into(),
        Some(Remedy::Unpack) => {
            format!("tfseek.unpack({}, out) makes an uncompressed file of it", path_of(e))
        }
        Some(Remedy::WritePack(pack)) => {
            let name = pack.file_stem().unwrap_or_default().display().to_string();
            format!("tfseek.build_index(shards, pack={name:?}) writes it again")
        }
        Some(Remedy::FewerRecords) => {
            "if keys are data, no schema describes the records; infer from fewer records, or write the spec by hand"
                .into()
        }
        Some(Remedy::SequenceExamples) => "kind=\"sequence_example\" reads it".into(),
        Some(Remedy::Convert) => "convert it, or read it with a library for that format".into(),
        Some(remedy) => match hints::common_hint(&remedy) {
            Some(hint) => hint,
            None => return e.to_string(),
        },
        None if matches!(e.kind(), ErrorKind::Truncated { .. } | ErrorKind::Index(IndexError::TornTail)) => {
            "tfseek.open(.., tail=\"tolerate\") reads the records before it".into()
        }
        None if is_damage(e) => {
            "damage=\"skip\" leaves it out, the command `tfseek salvage` copies the sound records".into()
        }
        None => match hints::address_hint(e, "tfseek.open reads", IS_OBJECT).or_else(|| version_hint(e)) {
            Some(hint) => hint,
            None => return format!("{e}{}", hints::excerpt(e)),
        },
    };
    format!("{e} ({hint})")
}

fn version_hint(e: &Error) -> Option<String> {
    let folder = hints::folder_of_versions(e)?.to_str()?;
    Some(format!(
        "a data set was prepared in the folder: tfseek.tfds.open({folder:?}) opens its newest version"
    ))
}

fn path_of(e: &Error) -> String {
    e.location()
        .path
        .as_ref()
        .map_or_else(|| "path".into(), |path| format!("{:?}", path.display().to_string()))
}

fn class_of(e: &Error) -> &'static str {
    match e.kind() {
        ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Io(_) => "IoError",
        ErrorKind::Paths(
            PathsError::NoMatch { .. }
            | PathsError::OtherSets { .. }
            | PathsError::MissingShards { .. }
            | PathsError::Interrupted { .. },
        ) => "NotFoundError",
        ErrorKind::OutOfRange { .. } => "OutOfRangeError",
        ErrorKind::Spec(_)
        | ErrorKind::Filter(_)
        | ErrorKind::UnknownFeature { .. }
        | ErrorKind::OtherKind { .. } => "SpecError",
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
        Category::ChecksumMismatch => "checksum_mismatch",
        Category::Truncated => "truncated",
        _ => "other",
    }
}

/// Returns the exception for an error of record batches.
fn arrow_exception(py: Python<'_>, e: &tfseek_arrow::Error) -> PyErr {
    let message = e.to_string();
    match e.kind {
        tfseek_arrow::ErrorKind::Schema(_) => of_class(py, "SpecError", &message, |raised| {
            raised.setattr(intern!(py, "feature"), e.column.as_deref())
        }),
        _ => of_class(py, "Error", &message, |_| Ok(())),
    }
}

/// Returns the exception for an error about this file of a data set, with this message.
pub(crate) fn tfds_exception(py: Python<'_>, e: &TfdsError, path: Option<&Path>, message: &str) -> PyErr {
    let (class, feature) = match e.kind() {
        TfdsErrorKind::Error(e) => return raised(py, e),
        TfdsErrorKind::Io(io) => {
            let copy = match io.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(io.kind(), io.to_string()),
            };
            let mut at = At::NOWHERE;
            at.path = e.path();
            return raised(py, &Error::from(copy).at(at));
        }
        TfdsErrorKind::Split { .. } | TfdsErrorKind::Options { .. } => ("SpecError", None),
        TfdsErrorKind::Info { .. } => ("DataError", None),
        TfdsErrorKind::Features { feature, .. } => {
            ("DataError", Some(feature).filter(|path| !path.is_empty()))
        }
        _ => ("Error", None),
    };
    of_class(py, class, message, |raised| {
        raised.setattr(intern!(py, "path"), path.map(Path::as_os_str))?;
        raised.setattr(intern!(py, "feature"), feature)
    })
}

/// Returns the exception for a file that has no schema.
pub(crate) fn of_schema_file(py: Python<'_>, path: Option<&Path>, reason: &str) -> PyErr {
    let place = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
    of_class(py, "SpecError", &format!("{place}{reason}"), |raised| {
        raised.setattr(intern!(py, "path"), path.map(Path::as_os_str))
    })
}

/// Returns the exception for an error of a verb's work.
fn tools_exception(py: Python<'_>, e: &ToolsError) -> PyErr {
    let message = match e {
        ToolsError::Fetch(FetchReason::Name { .. } | FetchReason::NumbersInCondition)
        | ToolsError::Options(_)
        | ToolsError::Path { .. }
        | ToolsError::Split(_)
        | ToolsError::Task(_)
        | ToolsError::Records { .. }
        | ToolsError::OpenFiles { .. }
        | ToolsError::NoFeature { .. }
        | ToolsError::Conflict(OutputConflict::OtherSet { .. }) => {
            return PyValueError::new_err(e.to_string());
        }
        ToolsError::Conflict(OutputConflict::Exists { .. }) => format!("{e} (force=True replaces it)"),
        ToolsError::NoValue { .. } => format!("{e} (missing=SPLIT puts such records into a split)"),
        e => e.to_string(),
    };
    of_class(py, "Error", &message, |_| Ok(()))
}
