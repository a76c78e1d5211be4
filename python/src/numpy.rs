//! NumPy's arrays: over memory of ours, of objects, and copies.

use crate::memory::Memory;
use ::numpy::ndarray::ArrayD;
use ::numpy::npyffi::{NPY_ARRAY_CARRAY_RO, NpyTypes, get_type_object, npy_intp};
use ::numpy::{PY_ARRAY_API, PyArrayDescrMethods, PyArrayDyn};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

macro_rules! lookup {
    ($($name:ident = $module:literal $attribute:literal;)*) => {$(
        pub(crate) fn $name<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
            static FOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            FOUND.import(py, $module, $attribute)
        }
    )*};
}

lookup! {
    array = "numpy" "array";
    sparse = "tfseek._arrays" "Sparse";
    ragged = "tfseek._arrays" "Ragged";
    bytes = "tfseek._arrays" "Bytes";
    feature_column = "tfseek._arrays" "Column";
}

/// A read-only array over memory that `owner` holds, and that lives as long as the array, which refers to it.
///
/// `numpy.asarray(owner)` is the same, by the attribute `__array_interface__`: slower, without unsafe code, and what the tests
/// compare this with.
#[allow(unsafe_code)]
pub(crate) fn lent<'py>(owner: Bound<'py, Memory>) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let memory = owner.get();
    let mut shape: Vec<npy_intp> =
        memory.shape().iter().map(|&size| npy_intp::try_from(size)).collect::<Result<_, _>>()?;
    let (address, dtype) = (memory.address(), memory.dtype(py));
    let (dims, data) = (shape.len().try_into()?, std::ptr::with_exposed_provenance_mut(address));
    // SAFETY: `shape` has `dims` entries, and NumPy copies them. At `address` lie as many values of `dtype` as the shape says, and
    // they are aligned: `Held::shaped`, the only maker of a `Memory`, has compared the two, and all but bytes lie in a `Vec` or a
    // slice of their type. They live as long as `owner` does, which holds the map or the buffer and never lets go of it; `owner` is
    // the array's base, so NumPy drops it last. Nobody writes by this array: it is not writeable, and cannot be made so, because its
    // base has no writeable buffer. NumPy takes over the reference to `dtype`, and the one to `owner` also where it fails. The
    // array is a new reference, or null with an exception set.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            dtype.into_dtype_ptr(),
            dims,
            shape.as_mut_ptr(),
            std::ptr::null_mut(),
            data,
            NPY_ARRAY_CARRAY_RO,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        match PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) {
            0 => Ok(array),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// A read-only array of Python objects.
pub(crate) fn objects<'py>(
    py: Python<'py>,
    objects: Vec<Py<PyAny>>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let objects = ArrayD::from_shape_vec(shape, objects)
        .map_err(|e| PyRuntimeError::new_err(format!("objects of shape {shape:?}: {e}")))?;
    let array = PyArrayDyn::from_owned_object_array(py, objects).into_any();
    let flags = PyDict::new(py);
    flags.set_item(intern!(py, "write"), false)?;
    array.call_method(intern!(py, "setflags"), (), Some(&flags))?;
    Ok(array)
}

/// A copy that its owner may write to.
pub(crate) fn copied<'py>(array_like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    array(array_like.py())?.call1((array_like,))
}
