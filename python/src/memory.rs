//! NumPy arrays over memory that Rust owns, without a copy. Those of one value without dimensions own a copy.
//!
//! An array refers to its [`ArrayMemory`], which owns a reference to the map or the pooled buffer. So arrays
//! outlive the dataset, the loader and the batch. Pooled memory returns to its pool when the last array over
//! it is dropped.

use crate::hooks;
use crate::numpy;
use ::numpy::npyffi::{
    NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, NPY_ARRAY_WRITEABLE, NpyTypes, PyArrayObject, get_type_object,
    npy_intp,
};
use ::numpy::{
    Complex32, Complex64, PY_ARRAY_API, PyArray1, PyArrayDescr, PyArrayDescrMethods, PyArrayMethods, dtype,
};
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_int;
use std::ops::Range;
use tfseek::TensorDType;
use tfseek::batch::{ArrayBits, ArrayValues, Buf};
use tfseek::io::Region;

/// A buffer or a region, with the element type of its array.
pub(crate) enum ArrayData {
    Int64(Buf<i64>),
    Int32(Buf<i32>),
    Float32(Buf<f32>),
    Bytes(Buf<u8>),
    Bool(Buf<u8>),
    /// Values of arrays in byte strings.
    Array(ArrayValues),
    /// A payload, or a part of one.
    Region(Region),
    /// Aligned little-endian floats of a payload, on a little-endian machine.
    Floats(Region),
}

/// Memory with a shape. `numpy.asarray` converts it to a read-only array without a copy.
///
/// [`ArrayMemory::new`], its only constructor, guarantees that `address` points to the number of values that
/// the shape requires, and that they are aligned for their type. Afterwards the memory is kept alive and not
/// read by Rust, on which [`ArrayMemory::writable`] relies.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct ArrayMemory {
    data: ArrayData,
    /// Address of the first value. Its provenance is exposed.
    address: usize,
    shape: Shape,
}

/// The sizes of the dimensions of an array, in NumPy's type. Few need no allocation.
enum Shape {
    Few { sizes: [npy_intp; Shape::FEW], rank: usize },
    Many(Box<[npy_intp]>),
}

impl Shape {
    const FEW: usize = 4;

    /// # Errors
    /// If NumPy's type cannot hold a size.
    fn new(shape: &[usize]) -> PyResult<Shape> {
        let found = shape.iter().map(|&size| npy_intp::try_from(size));
        let mut sizes = [0; Shape::FEW];
        let rank = shape.len();
        match sizes.get_mut(..rank) {
            None => Ok(Shape::Many(found.collect::<Result<_, _>>()?)),
            Some(few) => {
                for (to, size) in few.iter_mut().zip(found) {
                    *to = size?;
                }
                Ok(Shape::Few { sizes, rank })
            }
        }
    }

    fn sizes(&self) -> &[npy_intp] {
        match self {
            Shape::Few { sizes, rank } => sizes.split_at(*rank).0,
            Shape::Many(sizes) => sizes,
        }
    }
}

#[pymethods]
impl ArrayMemory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item(intern!(py, "shape"), PyTuple::new(py, self.shape.sizes())?)?;
        interface.set_item(intern!(py, "typestr"), self.dtype(py)?.as_any().getattr(intern!(py, "str"))?)?;
        interface.set_item(intern!(py, "data"), (self.address, true))?;
        interface.set_item(intern!(py, "version"), 3)?;
        Ok(interface)
    }

    /// A writable array over the same memory, for torch, which has no read-only tensors. `None` if the memory
    /// is part of a payload, which may be in a map, or if another column or a batch also holds it.
    #[getter]
    fn writable(slf: Bound<'_, ArrayMemory>) -> PyResult<Option<Bound<'_, PyAny>>> {
        if slf.get().data.is_unique() { writable_array(slf).map(Some) } else { Ok(None) }
    }
}

impl ArrayMemory {
    /// Creates a memory of these values and this shape.
    ///
    /// # Errors
    /// If the shape does not match the number of values, if there are fewer, or if they are not aligned. No
    /// bug elsewhere can create an array that reads beyond its memory or unaligned.
    fn new(data: ArrayData, values: Range<usize>, shape: &[usize]) -> PyResult<ArrayMemory> {
        let elements = shape.iter().try_fold(1usize, |n, &dimension| n.checked_mul(dimension));
        if elements != Some(values.len()) || values.start > values.end || values.end > data.len() {
            return Err(wrong_shape(shape, values.len(), data.len()));
        }
        // The offset points to a value in memory, or to its end.
        let address = data.address() + values.start * data.size();
        if !address.is_multiple_of(data.align()) {
            return Err(unaligned(data.align(), address));
        }
        Ok(ArrayMemory { address, data, shape: Shape::new(shape)? })
    }

    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        Ok(match &self.data {
            ArrayData::Int64(_) => dtype::<i64>(py),
            ArrayData::Int32(_) => dtype::<i32>(py),
            ArrayData::Float32(_) | ArrayData::Floats(_) => dtype::<f32>(py),
            ArrayData::Bytes(_) | ArrayData::Region(_) => dtype::<u8>(py),
            ArrayData::Bool(_) => dtype::<bool>(py),
            ArrayData::Array(values) => match values.dtype() {
                TensorDType::Bool => dtype::<bool>(py),
                TensorDType::Int8 => dtype::<i8>(py),
                TensorDType::Int16 => dtype::<i16>(py),
                TensorDType::Int32 => dtype::<i32>(py),
                TensorDType::Int64 => dtype::<i64>(py),
                TensorDType::UInt8 => dtype::<u8>(py),
                TensorDType::UInt16 => dtype::<u16>(py),
                TensorDType::UInt32 => dtype::<u32>(py),
                TensorDType::UInt64 => dtype::<u64>(py),
                TensorDType::Float32 => dtype::<f32>(py),
                TensorDType::Float64 => dtype::<f64>(py),
                TensorDType::Complex64 => dtype::<Complex32>(py),
                TensorDType::Complex128 => dtype::<Complex64>(py),
                TensorDType::BFloat16 => two_bytes(hooks::bfloat16(py)?.call0()?.cast_into()?)?,
                _ => two_bytes(PyArrayDescr::new(py, "float16")?)?,
            },
        })
    }
}

impl ArrayData {
    /// Returns the address of the first value. It creates no slice of a buffer, because arrays may write to
    /// it.
    fn address(&self) -> usize {
        match self {
            ArrayData::Int64(values) => values.as_mut_ptr().expose_provenance(),
            ArrayData::Int32(values) => values.as_mut_ptr().expose_provenance(),
            ArrayData::Float32(values) => values.as_mut_ptr().expose_provenance(),
            ArrayData::Bytes(values) | ArrayData::Bool(values) => values.as_mut_ptr().expose_provenance(),
            ArrayData::Array(values) => match values.bits() {
                ArrayBits::Bits8(bits) => bits.as_mut_ptr().expose_provenance(),
                ArrayBits::Bits16(bits) => bits.as_mut_ptr().expose_provenance(),
                ArrayBits::Bits32(bits) => bits.as_mut_ptr().expose_provenance(),
                ArrayBits::Bits64(bits) => bits.as_mut_ptr().expose_provenance(),
            },
            ArrayData::Region(bytes) | ArrayData::Floats(bytes) => bytes.as_ptr().expose_provenance(),
        }
    }

    fn is_unique(&self) -> bool {
        match self {
            ArrayData::Int64(values) => values.is_unique(),
            ArrayData::Int32(values) => values.is_unique(),
            ArrayData::Float32(values) => values.is_unique(),
            ArrayData::Bytes(values) | ArrayData::Bool(values) => values.is_unique(),
            ArrayData::Array(values) => match values.bits() {
                ArrayBits::Bits8(bits) => bits.is_unique(),
                ArrayBits::Bits16(bits) => bits.is_unique(),
                ArrayBits::Bits32(bits) => bits.is_unique(),
                ArrayBits::Bits64(bits) => bits.is_unique(),
            },
            ArrayData::Region(_) | ArrayData::Floats(_) => false,
        }
    }

    /// Returns the alignment of the element type.
    fn align(&self) -> usize {
        match self {
            ArrayData::Int64(_) => align_of::<i64>(),
            ArrayData::Int32(_) => align_of::<i32>(),
            ArrayData::Float32(_) | ArrayData::Floats(_) => align_of::<f32>(),
            ArrayData::Array(values) => match values.bits() {
                ArrayBits::Bits8(_) => 1,
                ArrayBits::Bits16(_) => align_of::<u16>(),
                ArrayBits::Bits32(_) => align_of::<u32>(),
                ArrayBits::Bits64(_) => align_of::<u64>(),
            },
            ArrayData::Bytes(_) | ArrayData::Bool(_) | ArrayData::Region(_) => 1,
        }
    }

    /// Returns the size of an element in bytes.
    fn size(&self) -> usize {
        match self {
            ArrayData::Array(values) => values.dtype().size().unwrap_or(1),
            // These types are as large as they are aligned.
            ArrayData::Int64(_) | ArrayData::Int32(_) | ArrayData::Float32(_) | ArrayData::Floats(_) => {
                self.align()
            }
            ArrayData::Bytes(_) | ArrayData::Bool(_) | ArrayData::Region(_) => 1,
        }
    }

    fn len(&self) -> usize {
        match self {
            ArrayData::Int64(values) => values.len(),
            ArrayData::Int32(values) => values.len(),
            ArrayData::Float32(values) => values.len(),
            ArrayData::Bytes(values) | ArrayData::Bool(values) => values.len(),
            ArrayData::Array(values) => values.len(),
            ArrayData::Region(bytes) => bytes.len(),
            ArrayData::Floats(bytes) => bytes.len() / size_of::<f32>(),
        }
    }

    /// Returns a read-only array of this shape.
    ///
    /// # Errors
    /// Errors of [`ArrayMemory::new`].
    pub(crate) fn shaped<'py>(self, py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
        let len = self.len();
        self.part(py, 0..len, shape)
    }

    /// Returns a read-only array of some of the values.
    ///
    /// # Errors
    /// Errors of [`ArrayMemory::new`].
    pub(crate) fn part<'py>(
        self,
        py: Python<'py>,
        values: Range<usize>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let memory = ArrayMemory::new(self, values, shape)?;
        if shape.is_empty() {
            return copied_value(py, &memory);
        }
        let owner = Bound::new(py, memory)?;
        hide_from_collector(&owner);
        read_only_array(owner)
    }

    /// Returns a read-only array of one dimension.
    pub(crate) fn flat<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.len();
        self.shaped(py, &[len])
    }
}

#[cold]
fn wrong_shape(shape: &[usize], values: usize, all: usize) -> PyErr {
    PyRuntimeError::new_err(format!("expected the values of shape {shape:?}, found {values} of {all} values"))
}

#[cold]
fn unaligned(align: usize, address: usize) -> PyErr {
    PyRuntimeError::new_err(format!("expected values aligned to {align} bytes, found address {address:#x}"))
}

/// Returns a type of another package.
///
/// # Errors
/// If it is not a type of plain bytes, two per element and aligned to two.
fn two_bytes(found: Bound<'_, PyArrayDescr>) -> PyResult<Bound<'_, PyArrayDescr>> {
    if (found.itemsize(), found.has_object()) != (2, false) || !matches!(found.alignment(), 1 | 2) {
        return Err(PyRuntimeError::new_err(format!("expected a dtype of two bytes, found {found}")));
    }
    Ok(found)
}

/// Removes an object from the list of those that the garbage collector visits. Batches may have thousands.
#[allow(unsafe_code)]
fn hide_from_collector(memory: &Bound<'_, ArrayMemory>) {
    // SAFETY: `memory` is a live object of a class that takes part in garbage collection, as PyO3 makes all
    // classes. The function accepts objects that are not in the list. The object refers to nothing but its
    // class, so no cycle of references goes through it, and the collector never has to find it. Its last
    // reference frees it, with or without the list.
    unsafe { pyo3::ffi::PyObject_GC_UnTrack(memory.as_ptr().cast()) }
}

/// Returns a read-only array over the memory of `owner`. The array refers to `owner` and keeps it alive.
///
/// `numpy.asarray(owner)` returns an equal array through the attribute `__array_interface__`, in six times
/// the time and without unsafe code. That matters for batches with hundreds of arrays. Tests compare the two.
fn read_only_array<'py>(owner: Bound<'py, ArrayMemory>) -> PyResult<Bound<'py, PyAny>> {
    new_array(owner, NPY_ARRAY_CARRAY_RO)
}

/// Returns a writable array over the memory of `owner`.
///
/// # Errors
/// If `owner` is not the only owner of its memory.
fn writable_array<'py>(owner: Bound<'py, ArrayMemory>) -> PyResult<Bound<'py, PyAny>> {
    if owner.get().data.is_unique() {
        new_array(owner, NPY_ARRAY_CARRAY)
    } else {
        Err(PyRuntimeError::new_err("expected memory with one owner for a writable array, found several"))
    }
}

#[allow(unsafe_code)]
fn new_array<'py>(owner: Bound<'py, ArrayMemory>, flags: c_int) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let memory = owner.get();
    let shape = memory.shape.sizes();
    let address = memory.address;
    let dtype = memory.dtype(py)?;
    let dims = shape.len().try_into()?;
    let data = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: `shape` has `dims` entries, and NumPy copies them: its parameter is a pointer to constants,
    // which the crate `numpy` declares as mutable. The entries are those that `ArrayMemory::new` has checked,
    // because the class is frozen. `address` points to the number of values of `dtype` that the shape
    // requires, and they are aligned for it: `ArrayMemory::new`, the only constructor, has checked both. The
    // values live as long as `owner`, which owns a reference to the map or the buffer and never releases it.
    // `owner` is the array's base, so NumPy drops it last.
    //
    // With `NPY_ARRAY_CARRAY_RO` the array cannot write: it is not writeable, and cannot be made writeable,
    // because its base has no writeable buffer. With `NPY_ARRAY_CARRAY`, which only `writable_array` passes,
    // Python may write at any time until `owner` is dropped. `owner` has the only `Buf` of the memory
    // (`Buf::is_unique`, which stays true, because `owner` never clones it). It creates no slice of the
    // `Buf`: the address and the length need none. The pool accesses the memory only after that `Buf` is
    // dropped. So no reference to the values exists while Python may write. `address` comes from
    // `Buf::as_mut_ptr`, which is derived from `Vec::as_mut_ptr`, so writes through `data` are allowed. All
    // bit patterns are valid values of the types; a bool is a `u8` in the `Buf`. A type that is not one of
    // Rust's, of another package, is one of two bytes without references (`two_bytes`).
    //
    // NumPy takes ownership of the reference to `dtype`, and of the reference to `owner` even on failure. The
    // returned array is a new reference, or null with an exception set.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            dtype.into_dtype_ptr(),
            dims,
            shape.as_ptr().cast_mut(),
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

/// Returns a read-only array without dimensions that owns its value. The memory of another object would cost more
/// than the value.
#[allow(unsafe_code)]
fn copied_value<'py>(py: Python<'py>, memory: &ArrayMemory) -> PyResult<Bound<'py, PyAny>> {
    let dtype = memory.dtype(py)?;
    let value = std::ptr::with_exposed_provenance::<u8>(memory.address);
    // SAFETY: without dimensions NumPy reads no sizes, and without data it allocates one value of `dtype`. It
    // takes ownership of the reference to `dtype`, and returns a new array, or null with an exception set.
    //
    // No other code knows the array yet, so its fields may be read and written. Its data has the size of the
    // type, which is `data.size()`. `ArrayMemory::new` has checked that as many bytes are at `address`, and
    // `memory` keeps them alive; nothing writes to them, because no array over them was made.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            dtype.into_dtype_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let object = array.as_ptr().cast::<PyArrayObject>();
        value.copy_to_nonoverlapping((*object).fields.data.cast(), memory.data.size());
        (*object).fields.flags &= !NPY_ARRAY_WRITEABLE;
        Ok(array)
    }
}

/// Looks up NumPy's functions when the module is imported. Otherwise the crate `numpy` looks them up for the
/// first array, and panics if a signal handler raises an exception during the lookup.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    numpy::array(py)?;
    // Signal handlers run in the main thread only, so another thread does the lookup.
    let outcome = py.detach(|| {
        let thread = std::thread::Builder::new().spawn(|| {
            Python::attach(|py| -> PyResult<()> {
                let array = ArrayData::Int64(vec![0].into()).flat(py)?;
                // Looks up the functions that guard borrowed arrays.
                drop(array.cast::<PyArray1<i64>>()?.try_readonly());
                numpy::objects(py, vec![py.None()], &[1])?;
                Ok(())
            })
        })?;
        Ok::<_, PyErr>(thread.join())
    });
    outcome?.map_err(|_| PyImportError::new_err("NumPy's C interface is not usable"))?
}
