//! `tfseek.open`: the doors to the bytes.

use crate::dataset::{Dataset, Shared};
use crate::failure::Result;
use crate::words::{Door, KindChoice, Word, asked};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use tfseek::error::PathsError;
use tfseek::index::Tail;
use tfseek::{ErrorKind, IndexMode, Options, Verify};

/// The arguments of `open`, kept for `pickle` and `repr`.
pub(crate) struct How {
    paths: Vec<PathBuf>,
    kept: Py<PyDict>,
    pub(crate) kind: KindChoice,
}

impl How {
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.kept.bind(py).copy()
    }

    /// The paths as they were given.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> =
            self.paths.iter().map(|path| format!("{:?}", path.display().to_string())).collect();
        match names.as_slice() {
            [name] => name.clone(),
            names => format!("[{}]", names.join(", ")),
        }
    }
}

/// What `tfseek.open` calls, which has the documentation: with the dict of its arguments, all of them there.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, arguments: Bound<'_, PyDict>) -> Result<Dataset> {
    let paths: Vec<OsString> = asked(&arguments, "paths")?;
    let Word::<IndexMode>(index) = asked(&arguments, "index")?;
    let index_dir: Option<PathBuf> = asked(&arguments, "index_dir")?;
    let Word::<Verify>(verify) = asked(&arguments, "verify")?;
    let Word::<Door>(io) = asked(&arguments, "io")?;
    let Word::<KindChoice>(kind) = asked(&arguments, "kind")?;
    let Word::<Tail>(tail) = asked(&arguments, "tail")?;
    let allow_missing = asked(&arguments, "allow_missing")?;
    let jobs = asked(&arguments, "jobs")?;
    let features: Vec<String> = asked(&arguments, "columns")?;
    let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
    let mut options =
        Options::new().index(index).verify(verify).tail(tail).allow_missing(allow_missing).jobs(jobs);
    if let Some(dir) = index_dir {
        options = options.index_dir(dir);
    }
    let (dataset, columns) = py.detach(|| -> tfseek::Result<_> {
        let dataset = through(&options, io, &paths)?;
        let features: Vec<&str> = features.iter().map(String::as_str).collect();
        let columns = if features.is_empty() { Vec::new() } else { dataset.columns(&features)? };
        Ok((dataset, columns))
    })?;
    Ok(Dataset::all(Shared::new(dataset, columns, How { paths, kept: arguments.unbind(), kind })))
}

#[allow(unsafe_code)]
fn through(options: &Options, door: Door, paths: &[PathBuf]) -> tfseek::Result<tfseek::Dataset> {
    if door == Door::Pread {
        return options.open(paths);
    }
    // SAFETY: whoever calls `tfseek.open` promises that nobody writes to or truncates the files while the dataset or an array
    // made from it lives; its docstring says so, and `io="pread"` is the way without the promise.
    match unsafe { options.open_mapped(paths) } {
        Ok(mapped) => Ok((*mapped).clone()),
        Err(e) if door == Door::Auto && too_many(&e) => options.open(paths),
        Err(e) => Err(e),
    }
}

/// Whether the process may not have so many maps.
fn too_many(e: &tfseek::Error) -> bool {
    matches!(e.kind(), ErrorKind::Paths(PathsError::TooManyMaps { .. }))
}
