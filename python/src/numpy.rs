//! The few functions of NumPy that are called, each looked up once.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

macro_rules! lookup {
    ($($name:ident = $module:literal $attribute:literal;)*) => {$(
        pub(crate) fn $name<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
            static FOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            FOUND.import(py, $module, $attribute)
        }
    )*};
}

lookup! {
    asarray = "numpy" "asarray";
    array = "numpy" "array";
    empty = "numpy" "empty";
    object_dtype = "builtins" "object";
    sparse = "tfseek._arrays" "Sparse";
    ragged = "tfseek._arrays" "Ragged";
    bytes = "tfseek._arrays" "Bytes";
    feature_column = "tfseek._arrays" "Column";
}

/// A read-only array of Python objects.
pub(crate) fn objects<'py>(
    list: &Bound<'py, PyList>,
    shape: Option<&[usize]>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = list.py();
    let array = empty(py)?.call1((list.len(), object_dtype(py)?))?;
    array.set_item(py.Ellipsis(), list)?;
    let array = match shape {
        Some(shape) if shape != [list.len()] => {
            array.call_method1(intern!(py, "reshape"), (shape.to_vec(),))?
        }
        _ => array,
    };
    let flags = PyDict::new(py);
    flags.set_item(intern!(py, "write"), false)?;
    array.call_method(intern!(py, "setflags"), (), Some(&flags))?;
    Ok(array)
}

/// A copy that its owner may write to.
pub(crate) fn copied<'py>(array_like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    array(array_like.py())?.call1((array_like,))
}
