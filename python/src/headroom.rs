//! Memory whose size comes from files: without it there is a `MemoryError`. Constructors of Python objects
//! panic without memory, or fill large objects twice.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tfseek_tools::memory;

/// Length in bytes above which a `bytes` object is filled twice, so that a lack of memory is an exception.
const LARGE: usize = 16 << 10;
/// Bytes of small objects that are made between two requests, and the bytes that are requested: Python takes
/// its memory in arenas of 1 MiB.
const STEP: usize = 512 << 10;
const ARENAS: usize = 2 << 20;
/// Bytes of a small object, without its content.
const OBJECT: usize = 64;

/// Returns an empty vector with room for `len` values.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn room<T>(len: usize) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| missing(len, "values"))?;
    Ok(values)
}

/// Returns `len` zeros: a short payload may have many values.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn zeros<T: Clone + Default>(len: usize) -> PyResult<Vec<T>> {
    let mut values = room(len)?;
    values.resize(len, T::default());
    Ok(values)
}

/// Returns Python's bytes.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if bytes.len() <= LARGE {
        return Ok(PyBytes::new(py, bytes));
    }
    PyBytes::new_with(py, bytes.len(), |to| {
        to.copy_from_slice(bytes);
        Ok(())
    })
}

/// Returns a list of the objects.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    items: Vec<T>,
) -> PyResult<Bound<'py, PyList>> {
    let len = items.len();
    memory::ensure(len * size_of::<usize>()).map_err(|_| missing(len, "objects"))?;
    PyList::new(py, items)
}

/// Returns Python's bytes of `len` strings.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn all_bytes<'a>(
    py: Python<'_>,
    len: usize,
    strings: impl Iterator<Item = &'a [u8]>,
) -> PyResult<Vec<Py<PyAny>>> {
    let mut objects = room(len)?;
    let mut headroom = Headroom::default();
    for string in strings {
        headroom.take(string.len())?;
        objects.push(bytes(py, string)?.into_any().unbind());
    }
    Ok(objects)
}

/// Memory for many small objects. It is requested before they are made, in steps.
#[derive(Default)]
pub(crate) struct Headroom(usize);

impl Headroom {
    /// Takes the memory of an object with `len` bytes of content.
    ///
    /// # Errors
    /// `MemoryError`.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> PyResult<()> {
        match self.0.checked_sub(len + OBJECT) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => self.request(len),
        }
    }

    #[cold]
    fn request(&mut self, len: usize) -> PyResult<()> {
        memory::ensure(len + ARENAS).map_err(|_| missing(len, "bytes"))?;
        self.0 = STEP;
        Ok(())
    }
}

#[cold]
fn missing(len: usize, of: &str) -> PyErr {
    PyMemoryError::new_err(format!("not enough memory for {len} {of}"))
}
