//! Conversion of the values of statistics and warnings.

use crate::headroom;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tfseek_tools::ReportValue;

/// Returns a value as a Python object. `make` is called with each dict of fields.
pub(crate) fn object<'py>(make: &Bound<'py, PyAny>, value: ReportValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    let py = make.py();
    match value {
        ReportValue::Null => Ok(py.None().into_bound(py)),
        ReportValue::Bool(value) => value.into_bound_py_any(py),
        ReportValue::Count(value) => value.into_bound_py_any(py),
        ReportValue::Int(value) => value.into_bound_py_any(py),
        ReportValue::Float(value) => value.into_bound_py_any(py),
        // The number of its text: 0.1, and not the nearest 32-bit float.
        ReportValue::Float32(value) => {
            value.to_string().parse::<f64>().unwrap_or(f64::from(value)).into_bound_py_any(py)
        }
        ReportValue::Text(value) => value.into_bound_py_any(py),
        ReportValue::Bytes(value) => Ok(headroom::bytes(py, value)?.into_any()),
        ReportValue::List(values) => {
            let values = values.into_iter().map(|value| object(make, value)).collect::<PyResult<Vec<_>>>()?;
            Ok(headroom::list(py, values)?.into_any())
        }
        ReportValue::Fields(values) => {
            let fields = PyDict::new(py);
            for (name, value) in values {
                fields.set_item(PyString::intern(py, name), object(make, value)?)?;
            }
            make.call1((fields,))
        }
    }
}
