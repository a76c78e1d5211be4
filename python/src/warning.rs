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

/// Raises warnings through `warnings.warn`, at the innermost line of Python code outside of this package.
///
/// # Errors
/// The exception of a filter that makes errors of warnings.
pub(crate) fn raise(py: Python<'_>, warnings: &[Warning]) -> Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let warn = py.import(intern!(py, "warnings"))?.getattr(intern!(py, "warn"))?;
    // A thread without Python code has no frame.
    let level = level_outside(py).unwrap_or(1);
    for warning in warnings {
        warn.call1((PyWarning::of(warning), py.None(), level))?;
    }
    Ok(())
}

/// Returns the number of the innermost frame outside of this package, counted from 1.
fn level_outside(py: Python<'_>) -> PyResult<usize> {
    let mut frame = py.import(intern!(py, "sys"))?.call_method0(intern!(py, "_getframe"))?;
    let mut level = 1usize;
    loop {
        let name = frame.getattr(intern!(py, "f_globals"))?.get_item(intern!(py, "__name__"));
        let name = name.and_then(|name| name.extract::<String>()).unwrap_or_default();
        let back = frame.getattr(intern!(py, "f_back"))?;
        if back.is_none() || (name != "tfseek" && !name.starts_with("tfseek.")) {
            return Ok(level);
        }
        (frame, level) = (back, level.saturating_add(1));
    }
}
