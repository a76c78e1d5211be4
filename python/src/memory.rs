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

/// Memory with a shape: `numpy.asarray` makes a read-only array of it that copies nothing.
///
/// Once it is made, what it holds is kept and not looked at again: [`Memory::writable`] relies on that.
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
            true => numpy::lent_to_write(slf).map(Some),
            false => Ok(None),
        }
    }
}

impl Memory {
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Where the first value lies.
    pub(crate) fn address(&self) -> usize {
        self.address
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

    /// Returns true for the only holder of pooled memory: nothing but arrays over it can read it from now on.
    pub(crate) fn is_unique(&self) -> bool {
        self.held.is_unique()
    }
}

impl Held {
    /// Address of the first value. No slice is made of a buffer, for arrays may write to it.
    fn address(&self) -> usize {
        match self {
            Held::Int64(values) => values.exposed_addr(),
            Held::Int32(values) => values.exposed_addr(),
            Held::Float32(values) => values.exposed_addr(),
            Held::Bytes(values) | Held::Bool(values) => values.exposed_addr(),
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
        let memory = Memory { address: self.address(), held: self, shape: shape.to_vec() };
        numpy::lent(Bound::new(py, memory)?)
    }

    /// A read-only array of one dimension.
    pub(crate) fn flat<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.len();
        self.shaped(py, &[len])
    }
}
