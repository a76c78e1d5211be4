//! NumPy functions: object arrays and copies.

use ::numpy::PyArrayDyn;
use ::numpy::ndarray::ArrayD;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns the function `numpy.array`.
pub(crate) fn array<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static FOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FOUND.import(py, "numpy", "array")
}

/// Returns a scalar, faster than through an array without dimensions.
pub(crate) fn int64<'py>(py: Python<'py>, value: i64) -> PyResult<Bound<'py, PyAny>> {
    static FOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FOUND.import(py, "numpy", "int64")?.call1((value,))
}

/// Returns a read-only array of Python objects.
pub(crate) fn objects<'py>(
    py: Python<'py>,
    objects: Vec<Py<PyAny>>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let objects = ArrayD::from_shape_vec(shape, objects)
        .map_err(|e| PyRuntimeError::new_err(format!("objects of shape {shape:?}: {e}")))?;
    let array = PyArrayDyn::from_owned_object_array(py, objects).into_any();
    // The first argument is `write`.
    array.call_method1(intern!(py, "setflags"), (false,))?;
    Ok(array)
}

/// Returns a writable copy.
pub(crate) fn copied<'py>(array_like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    array(array_like.py())?.call1((array_like,))
}
