//! Conversion of warnings to `tfseek.Warning`, and raising them.

use crate::error::Result;
use crate::value;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;
use tfseek::Warning;
use tfseek_tools::warnings::{fields, kindless};
use tfseek_tools::{Inference, ReportValue};

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
        object(py, &self.0)
    }
}

fn object<'py>(py: Python<'py>, warning: &Warning) -> PyResult<Bound<'py, PyAny>> {
    warning_of(py, (warning.kind(), &warning.to_string(), warning.path()), fields(warning))
}

/// Returns a `tfseek.Warning` with a kind, a message, a path and the fields of its kind.
fn warning_of<'py>(
    py: Python<'py>,
    (kind, message, path): (&str, &str, Option<&Path>),
    fields: Vec<(&'static str, ReportValue<'_>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let all = PyDict::new(py);
    all.set_item("kind", kind)?;
    all.set_item("message", message)?;
    all.set_item("path", path.map(Path::as_os_str))?;
    let dict = py.get_type::<PyDict>().into_any();
    for (name, field) in fields {
        all.set_item(name, value::object(&dict, field)?)?;
    }
    py.import(intern!(py, "tfseek._rust"))?.getattr(intern!(py, "warning_of"))?.call1((all,))
}

/// Raises warnings through `warnings.warn`, at the innermost line of Python code outside of this package.
///
/// # Errors
/// The exception of a filter that makes errors of warnings.
pub(crate) fn raise(py: Python<'_>, warnings: &[Warning]) -> Result<()> {
    warnings.iter().try_for_each(|warning| raise_object(py, object(py, warning)?))
}

/// Raises a warning about the features that a schema leaves out, if there are any.
pub(crate) fn raise_kindless(py: Python<'_>, seen: &Inference) -> Result<()> {
    let Some((message, names)) = kindless(seen) else { return Ok(()) };
    let found = vec![("found", names.into_iter().collect())];
    raise_object(py, warning_of(py, ("features_left_out", &message, None), found)?)
}

/// Raises a warning about a feature that no record has, with the nearest name that a record has.
pub(crate) fn raise_absent(py: Python<'_>, name: &str, near: Option<&str>) -> Result<()> {
    let mut message = format!("no record has the feature {}", ReportValue::from(name));
    if let Some(near) = near {
        message += &format!("; the nearest name is {}", ReportValue::from(near));
    }
    let fields = vec![("feature", name.into()), ("nearest", near.into())];
    raise_object(py, warning_of(py, ("unknown_feature", &message, None), fields)?)
}

fn raise_object(py: Python<'_>, warning: Bound<'_, PyAny>) -> Result<()> {
    let warn = py.import(intern!(py, "warnings"))?.getattr(intern!(py, "warn"))?;
    // A thread without Python code has no frame.
    let level = level_outside(py).unwrap_or(1);
    warn.call1((warning, py.None(), level))?;
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
