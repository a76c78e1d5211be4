//! `tfseek.Warning`: a fact that a user should know and that is no error.

use pyo3::prelude::*;
use std::ffi::OsString;

/// A fact that a user should know and that is no error. ``str()`` of it is the message.
#[pyclass(frozen, eq, module = "tfseek")]
#[derive(PartialEq)]
pub(crate) struct Warning {
    kind: &'static str,
    path: Option<OsString>,
    message: String,
}

impl Warning {
    pub(crate) fn of(warning: &tfseek::Warning) -> Warning {
        Warning {
            kind: warning.kind(),
            path: warning.path().map(|path| path.as_os_str().to_owned()),
            message: warning.to_string(),
        }
    }
}

#[pymethods]
impl Warning {
    /// ``"file_refused"``, ``"not_saved"``, ``"shard_changed"`` or ``"scattered_reads"``; later versions may have more.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// The file that the warning is about, or None.
    #[getter]
    fn path(&self) -> Option<OsString> {
        self.path.clone()
    }

    /// The message, which begins with the path.
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
