//! NumPy's arrays: over memory of ours, of objects, and copies.

use crate::memory::{Held, Memory};
use ::numpy::ndarray::ArrayD;
use ::numpy::npyffi::{NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, NpyTypes, get_type_object, npy_intp};
use ::numpy::{PY_ARRAY_API, PyArrayDescrMethods, PyArrayDyn};
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::ffi::c_int;

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

/// Looks up all that arrays need of NumPy, when the module is imported: later the crate `numpy` would do that at the first array,
/// and panic if the handler of a signal raises meanwhile.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    py.import("numpy")?;
    let lookups = [array, sparse, ragged, bytes, feature_column];
    lookups.iter().try_for_each(|lookup| lookup(py).map(|_| ()))?;
    // Handlers run in the main thread only.
    let made = py.detach(|| {
        let thread = std::thread::Builder::new().spawn(|| {
            Python::attach(|py| -> PyResult<()> {
                Held::Int64(vec![0].into()).flat(py)?;
                objects(py, vec![py.None()], &[1])?;
                Ok(())
            })
        })?;
        Ok::<_, PyErr>(thread.join())
    });
    made?.map_err(|_| PyImportError::new_err("the interface of NumPy cannot be used"))?
}

/// A read-only array over memory that `owner` holds, and that lives as long as the array, which refers to it.
///
/// `numpy.asarray(owner)` is the same, by the attribute `__array_interface__`: slower, without unsafe code, and what the tests
/// compare this with.
pub(crate) fn lent<'py>(owner: Bound<'py, Memory>) -> PyResult<Bound<'py, PyAny>> {
    made(owner, NPY_ARRAY_CARRAY_RO)
}

/// The same as an array that may be written to.
///
/// # Errors
/// Unless `owner` is the only holder of its memory.
pub(crate) fn lent_to_write<'py>(owner: Bound<'py, Memory>) -> PyResult<Bound<'py, PyAny>> {
    match owner.get().is_unique() {
        true => made(owner, NPY_ARRAY_CARRAY),
        false => Err(PyRuntimeError::new_err("memory that others hold is not lent to write")),
    }
}

#[allow(unsafe_code)]
fn made<'py>(owner: Bound<'py, Memory>, flags: c_int) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let memory = owner.get();
    let mut shape: Vec<npy_intp> =
        memory.shape().iter().map(|&size| npy_intp::try_from(size)).collect::<Result<_, _>>()?;
    let (address, dtype) = (memory.address(), memory.dtype(py));
    let (dims, data) = (shape.len().try_into()?, std::ptr::with_exposed_provenance_mut(address));
    // SAFETY: `shape` has `dims` entries, and NumPy copies them. At `address` lie as many values of `dtype` as the shape says, and
    // they are aligned: `Held::shaped`, the only maker of a `Memory`, has compared the two, and all but bytes lie in a `Vec` or a
    // slice of their type. They live as long as `owner` does, which holds the map or the buffer and never lets go of it; `owner` is
    // the array's base, so NumPy drops it last.
    //
    // With `NPY_ARRAY_CARRAY_RO` nobody writes by this array: it is not writeable, and cannot be made so, because its base has no
    // writeable buffer. With `NPY_ARRAY_CARRAY`, which `lent_to_write` alone asks for, Python may write, at any time until `owner`
    // dies: `owner` holds the only `Buf` of the memory (`Buf::is_unique`, which stays true, as `owner` never clones it), makes no
    // slice of it (its address and length need none), and the pool looks at the memory only when that `Buf` is gone. So no
    // reference to the values is alive while Python may write. `address` is that of `Buf::exposed_addr`, which comes from
    // `Vec::as_mut_ptr`, so `data` may write. All bit patterns are values of the types; a bool is a `u8` in the `Buf`.
    //
    // NumPy takes over the reference to `dtype`, and the one to `owner` also where it fails. The array is a new reference, or null
    // with an exception set.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            dtype.into_dtype_ptr(),
            dims,
            shape.as_mut_ptr(),
            std::ptr::null_mut(),
            data,
            flags,
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
