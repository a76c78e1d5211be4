//! `tfseek.Warning`: an observation that is not an error.

use crate::error::Result;
use pyo3::intern;
use pyo3::prelude::*;
use std::ffi::OsString;

/// An observation that is not an error. ``str()`` returns the message.
#[pyclass(frozen, eq, module = "tfseek", name = "Warning")]
#[derive(PartialEq)]
pub(crate) struct PyWarning {
    kind: &'static str,
    path: Option<OsString>,
    message: String,
}

impl PyWarning {
    pub(crate) fn of(warning: &tfseek::Warning) -> PyWarning {
        PyWarning {
            kind: warning.kind(),
            path: warning.path().map(|path| path.as_os_str().to_owned()),
            message: warning.to_string(),
        }
    }
}

#[pymethods]
impl PyWarning {
    /// Kind: ``"file_refused"``, ``"not_saved"``, ``"shard_changed"``, ``"other_names"``, ``"damage_skipped"``,
    /// ``"scattered_reads"`` or ``"scattered_inflation"``. Later versions may add others.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// Path of the file that caused the warning, or ``None``.
    #[getter]
    fn path(&self) -> Option<OsString> {
        self.path.clone()
    }

    /// Message, which begins with the path.
    #[getter]
    fn message(&self) -> &str {
        &self.message
    }

    fn __str__(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!("tfseek.Warning(kind={:?}, message={:?})", self.kind, self.message)
    }
}

/// Raises warnings through `warnings.warn`, at the line of Python code that is running.
///
/// # Errors
/// The exception of a filter that makes errors of warnings.
pub(crate) fn raise(py: Python<'_>, warnings: &[tfseek::Warning]) -> Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let warn = py.import(intern!(py, "warnings"))?.getattr(intern!(py, "warn"))?;
    for warning in warnings {
        warn.call1((warning.to_string(),))?;
    }
    Ok(())
}
