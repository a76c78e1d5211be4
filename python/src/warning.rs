//! Conversion of warnings to `tfseek.Warning`, and raising them.

use crate::error::Result;
use pyo3::intern;
use pyo3::prelude::*;
use std::ffi::OsString;
use tfseek::Warning;

/// A warning that becomes a `tfseek.Warning`.
pub(crate) struct PyWarning(Warning);

impl PyWarning {
    pub(crate) fn of(warning: &Warning) -> PyWarning {
        PyWarning(warning.clone())
    }
}

/// The fields of a warning as JSON, and its path.
type Fields = (String, Option<OsString>);

impl PyWarning {
    fn fields(&self) -> Fields {
        let path = self.0.path().map(|path| path.as_os_str().to_owned());
        (tfseek_cli::warning_json(&self.0), path)
    }
}

impl<'py> IntoPyObject<'py> for PyWarning {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        warning_of(py, &self.fields())
    }
}

fn warning_of<'py>(py: Python<'py>, fields: &Fields) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "tfseek._rust"))?.getattr(intern!(py, "warning_of"))?.call1((&fields.0, &fields.1))
}

/// Raises warnings through `warnings.warn`, at the innermost line of Python code outside of this package.
///
/// # Errors
/// The exception of a filter that makes errors of warnings.
pub(crate) fn raise(py: Python<'_>, warnings: &[Warning]) -> Result<()> {
    let fields: Vec<_> = warnings.iter().map(|warning| PyWarning::of(warning).fields()).collect();
    raise_fields(py, &fields)
}

/// Does the same with the fields of warnings.
pub(crate) fn raise_fields(py: Python<'_>, warnings: &[Fields]) -> Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let warn = py.import(intern!(py, "warnings"))?.getattr(intern!(py, "warn"))?;
    // A thread without Python code has no frame.
    let level = level_outside(py).unwrap_or(1);
    for warning in warnings {
        warn.call1((warning_of(py, warning)?, py.None(), level))?;
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
        (frame, level) = (back, level + 1);
    }
}
