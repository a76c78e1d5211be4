//! Conversion of warnings to `tfseek.Warning`, and raising them.

use crate::error::Result;
use pyo3::intern;
use pyo3::prelude::*;
use tfseek::Warning;

/// A warning that becomes a `tfseek.Warning`.
pub(crate) struct PyWarning(Warning);

impl PyWarning {
    pub(crate) fn of(warning: &Warning) -> PyWarning {
        PyWarning(warning.clone())
    }
}

impl<'py> IntoPyObject<'py> for PyWarning {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let PyWarning(warning) = self;
        let path = warning.path().map(|path| path.as_os_str().to_owned());
        let fields = tfseek_cli::warning_json(&warning);
        py.import(intern!(py, "tfseek._rust"))?.getattr(intern!(py, "warning_of"))?.call1((fields, path))
    }
}

/// Raises warnings through `warnings.warn`, at the line of Python code that is running.
///
/// # Errors
/// The exception of a filter that makes errors of warnings.
pub(crate) fn raise(py: Python<'_>, warnings: &[Warning]) -> Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let warn = py.import(intern!(py, "warnings"))?.getattr(intern!(py, "warn"))?;
    for warning in warnings {
        warn.call1((PyWarning::of(warning),))?;
    }
    Ok(())
}
