//! Memory that Rust owns, as arrays of NumPy that copy nothing.
//!
//! An array over a [`Memory`] refers to it, and it holds on to the map or the pooled buffer: so arrays outlive the dataset, the
//! loader and the batch, and pooled memory goes back when the last array over it dies.

use crate::numpy;
use ::numpy::npyffi::{NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, NpyTypes, get_type_object, npy_intp};
use ::numpy::{PY_ARRAY_API, PyArrayDescr, PyArrayDescrMethods, dtype};
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_int;
use tfseek::batch::Buf;
use tfseek::io::Region;

/// The owner of the memory, and the type as which NumPy reads it.
pub(crate) enum Held {
    Int64(Buf<i64>),
    Int32(Buf<i32>),
    Float32(Buf<f32>),
    Bytes(Buf<u8>),
    Bool(Buf<u8>),
    /// A payload, or a part of one.
    Region(Region),
    /// Floats that are aligned in their payload, on a machine whose floats are those of the file.
    Floats(Region),
}

/// Memory with a shape: `numpy.asarray` makes a read-only array of it that copies nothing.
///
/// [`Memory::new`], its only constructor, guarantees that at `address` lie as many values of the type as the shape says, and that
/// they are aligned for it. Once it is made, the memory is kept and not read again: [`Memory::writable`] relies on that.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct Memory {
    held: Held,
    /// Address of the first value, whose provenance is exposed.
    address: usize,
    shape: Vec<usize>,
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item(intern!(py, "shape"), PyTuple::new(py, &self.shape)?)?;
        interface.set_item(intern!(py, "typestr"), self.held.typestr())?;
        interface.set_item(intern!(py, "data"), (self.address, true))?;
        interface.set_item(intern!(py, "version"), 3)?;
        Ok(interface)
    }

    /// An array over the same memory that may be written to, for torch, which has no other tensors. `None` where the memory is part
    /// of a payload, which a map may lend, and where something else holds it: a column that shares values, or a batch.
    #[getter]
    fn writable(slf: Bound<'_, Memory>) -> PyResult<Option<Bound<'_, PyAny>>> {
        match slf.get().held.is_unique() {
            true => lent_to_write(slf).map(Some),
            false => Ok(None),
        }
    }
}

impl Memory {
    /// Makes a memory of this shape.
    ///
    /// # Errors
    /// For a shape of another number of values than are held, and for values that are not aligned: an array must not reach beyond
    /// its memory, nor read it unaligned, whichever code is wrong.
    fn new(held: Held, shape: &[usize]) -> PyResult<Memory> {
        let elements = shape.iter().try_fold(1usize, |n, &dimension| n.checked_mul(dimension));
        if elements != Some(held.len()) {
            let message = format!("{} values do not have the shape {shape:?}", held.len());
            return Err(PyRuntimeError::new_err(message));
        }
        let address = held.address();
        if !address.is_multiple_of(held.align()) {
            let message = format!("values at address {address:#x} are not aligned to {} bytes", held.align());
            return Err(PyRuntimeError::new_err(message));
        }
        Ok(Memory { address, held, shape: shape.to_vec() })
    }

    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        match self.held {
            Held::Int64(_) => dtype::<i64>(py),
            Held::Int32(_) => dtype::<i32>(py),
            Held::Float32(_) | Held::Floats(_) => dtype::<f32>(py),
            Held::Bytes(_) | Held::Region(_) => dtype::<u8>(py),
            Held::Bool(_) => dtype::<bool>(py),
        }
    }
}

impl Held {
    /// Address of the first value. No slice is made of a buffer, for arrays may write to it.
    fn address(&self) -> usize {
        match self {
            Held::Int64(values) => values.as_mut_ptr().expose_provenance(),
            Held::Int32(values) => values.as_mut_ptr().expose_provenance(),
            Held::Float32(values) => values.as_mut_ptr().expose_provenance(),
            Held::Bytes(values) | Held::Bool(values) => values.as_mut_ptr().expose_provenance(),
            Held::Region(bytes) | Held::Floats(bytes) => bytes.as_ptr().expose_provenance(),
        }
    }

    fn is_unique(&self) -> bool {
        match self {
            Held::Int64(values) => values.is_unique(),
            Held::Int32(values) => values.is_unique(),
            Held::Float32(values) => values.is_unique(),
            Held::Bytes(values) | Held::Bool(values) => values.is_unique(),
            Held::Region(_) | Held::Floats(_) => false,
        }
    }

    fn typestr(&self) -> &'static str {
        const BIG: bool = cfg!(target_endian = "big");
        match self {
            Held::Int64(_) => {
                if BIG {
                    ">i8"
                } else {
                    "<i8"
                }
            }
            Held::Int32(_) => {
                if BIG {
                    ">i4"
                } else {
                    "<i4"
                }
            }
            Held::Float32(_) => {
                if BIG {
                    ">f4"
                } else {
                    "<f4"
                }
            }
            Held::Bytes(_) | Held::Region(_) => "|u1",
            Held::Bool(_) => "|b1",
            Held::Floats(_) => "<f4",
        }
    }

    /// Alignment of the type as which NumPy reads the memory.
    fn align(&self) -> usize {
        match self {
            Held::Int64(_) => align_of::<i64>(),
            Held::Int32(_) => align_of::<i32>(),
            Held::Float32(_) | Held::Floats(_) => align_of::<f32>(),
            Held::Bytes(_) | Held::Bool(_) | Held::Region(_) => 1,
        }
    }

    fn len(&self) -> usize {
        match self {
            Held::Int64(values) => values.len(),
            Held::Int32(values) => values.len(),
            Held::Float32(values) => values.len(),
            Held::Bytes(values) | Held::Bool(values) => values.len(),
            Held::Region(bytes) => bytes.len(),
            Held::Floats(bytes) => bytes.len() / size_of::<f32>(),
        }
    }

    /// Returns a read-only array of this shape.
    ///
    /// # Errors
    /// Those of [`Memory::new`].
    pub(crate) fn shaped<'py>(self, py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
        lent(Bound::new(py, Memory::new(self, shape)?)?)
    }

    /// Returns a read-only array of one dimension.
    pub(crate) fn flat<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.len();
        self.shaped(py, &[len])
    }
}

/// Returns a read-only array over memory that `owner` holds, and that lives as long as the array, which refers to it.
///
/// `numpy.asarray(owner)` is the same, by the attribute `__array_interface__`: slower, without unsafe code, and what the tests
/// compare this with.
fn lent<'py>(owner: Bound<'py, Memory>) -> PyResult<Bound<'py, PyAny>> {
    made(owner, NPY_ARRAY_CARRAY_RO)
}

/// As [`lent`], an array that may be written to.
///
/// # Errors
/// Unless `owner` is the only holder of its memory.
fn lent_to_write<'py>(owner: Bound<'py, Memory>) -> PyResult<Bound<'py, PyAny>> {
    match owner.get().held.is_unique() {
        true => made(owner, NPY_ARRAY_CARRAY),
        false => Err(PyRuntimeError::new_err("memory that others hold is not lent to write")),
    }
}

#[allow(unsafe_code)]
fn made<'py>(owner: Bound<'py, Memory>, flags: c_int) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let memory = owner.get();
    let mut shape: Vec<npy_intp> =
        memory.shape.iter().map(|&size| npy_intp::try_from(size)).collect::<Result<_, _>>()?;
    let (address, dtype) = (memory.address, memory.dtype(py));
    let (dims, data) = (shape.len().try_into()?, std::ptr::with_exposed_provenance_mut(address));
    // SAFETY: `shape` has `dims` entries, and NumPy copies them. At `address` lie as many values of `dtype` as the shape says, and
    // they are aligned for it: `Memory::new`, the only constructor, has checked both. They live as long as `owner` does, which holds the map or the buffer and never lets go of it; `owner` is
    // the array's base, so NumPy drops it last.
    //
    // With `NPY_ARRAY_CARRAY_RO` nobody writes by this array: it is not writeable, and cannot be made so, because its base has no
    // writeable buffer. With `NPY_ARRAY_CARRAY`, which `lent_to_write` alone asks for, Python may write, at any time until `owner`
    // dies: `owner` holds the only `Buf` of the memory (`Buf::is_unique`, which stays true, as `owner` never clones it), makes no
    // slice of it (its address and length need none), and the pool looks at the memory only when that `Buf` is gone. So no
    // reference to the values is alive while Python may write. `address` is that of `Buf::as_mut_ptr`, which comes from
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

/// Looks up NumPy's functions when the module is imported. Later the crate `numpy` would do that at the first array, and panic if
/// the handler of a signal raises meanwhile.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    numpy::import(py)?;
    // Handlers run in the main thread only.
    let made = py.detach(|| {
        let thread = std::thread::Builder::new().spawn(|| {
            Python::attach(|py| -> PyResult<()> {
                Held::Int64(vec![0].into()).flat(py)?;
                numpy::objects(py, vec![py.None()], &[1])?;
                Ok(())
            })
        })?;
        Ok::<_, PyErr>(thread.join())
    });
    made?.map_err(|_| PyImportError::new_err("the interface of NumPy cannot be used"))?
}
