//! Memory of ours that NumPy looks at without a copy.
//!
//! An array over a [`Memory`] refers to it, and it holds on to the map or the pooled buffer: so arrays outlive the dataset, the
//! loader and the batch, and pooled memory goes back when the last array over it dies.

use crate::numpy;
use ::numpy::{PyArrayDescr, dtype};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tfseek::batch::Buf;
use tfseek::io::Region;

/// What is held, and as what NumPy reads it.
pub(crate) enum Held {
    Int64(Buf<i64>),
    Int32(Buf<i32>),
    Float32(Buf<f32>),
    Bytes(Buf<u8>),
    Bool(Buf<u8>),
    /// A payload, or a part of one.
    Region(Region),
    /// Floats that happen to be aligned in their payload, on a machine whose floats are those of the file.
    Floats(Region),
}

/// Read-only memory with a shape: `numpy.asarray` makes an array of it that copies nothing.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct Memory {
    held: Held,
    shape: Vec<usize>,
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.interface(py, true)
    }

    /// The same memory for one who may write to it; `None` where it is part of a payload, which a map may lend.
    #[getter]
    fn writable(slf: Bound<'_, Memory>) -> Option<Writable> {
        match slf.get().held {
            Held::Region(_) | Held::Floats(_) => None,
            _ => Some(Writable(slf.unbind())),
        }
    }
}

impl Memory {
    fn interface<'py>(&self, py: Python<'py>, read_only: bool) -> PyResult<Bound<'py, PyDict>> {
        let (address, typestr) = self.held.parts();
        let interface = PyDict::new(py);
        interface.set_item(intern!(py, "shape"), PyTuple::new(py, &self.shape)?)?;
        interface.set_item(intern!(py, "typestr"), typestr)?;
        interface.set_item(intern!(py, "data"), (address, read_only))?;
        interface.set_item(intern!(py, "version"), 3)?;
        Ok(interface)
    }
}

impl Memory {
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Where the first value lies.
    pub(crate) fn address(&self) -> usize {
        self.held.parts().0
    }

    pub(crate) fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        match self.held {
            Held::Int64(_) => dtype::<i64>(py),
            Held::Int32(_) => dtype::<i32>(py),
            Held::Float32(_) | Held::Floats(_) => dtype::<f32>(py),
            Held::Bytes(_) | Held::Region(_) => dtype::<u8>(py),
            Held::Bool(_) => dtype::<bool>(py),
        }
    }
}

/// The memory of a batch, for torch: its tensors can always be written to. Nothing of ours looks at values that were lent, and
/// memory that comes back is filled before it is lent again.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct Writable(Py<Memory>);

#[pymethods]
impl Writable {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.0.get().interface(py, false)
    }
}

impl Held {
    fn parts(&self) -> (usize, &'static str) {
        const BIG: bool = cfg!(target_endian = "big");
        fn at<T>(values: &[T]) -> usize {
            values.as_ptr().expose_provenance()
        }
        match self {
            Held::Int64(values) => (at(values), if BIG { ">i8" } else { "<i8" }),
            Held::Int32(values) => (at(values), if BIG { ">i4" } else { "<i4" }),
            Held::Float32(values) => (at(values), if BIG { ">f4" } else { "<f4" }),
            Held::Bytes(values) => (at(values), "|u1"),
            Held::Bool(values) => (at(values), "|b1"),
            Held::Region(bytes) => (at(bytes), "|u1"),
            Held::Floats(bytes) => (at(bytes), "<f4"),
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

    /// A read-only array of this shape.
    ///
    /// # Errors
    /// For a shape of more values than there are: an array must not reach beyond its memory, whoever is wrong.
    pub(crate) fn shaped<'py>(self, py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
        let elements = shape.iter().try_fold(1usize, |n, &dimension| n.checked_mul(dimension));
        if elements != Some(self.len()) {
            let message = format!("{} values do not have the shape {shape:?}", self.len());
            return Err(pyo3::exceptions::PyRuntimeError::new_err(message));
        }
        let memory = Memory { held: self, shape: shape.to_vec() };
        numpy::lent(Bound::new(py, memory)?)
    }

    /// A read-only array of one dimension.
    pub(crate) fn flat<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.len();
        self.shaped(py, &[len])
    }
}
