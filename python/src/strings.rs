//! Columns of byte strings as arrays.

use crate::error::BindingError;
use crate::headroom::{self, Headroom};
use crate::memory::ArrayData;
use crate::repeated::{self, StringCache};
use crate::{hooks, numpy};
use pyo3::exceptions::PyMemoryError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::str::Utf8Error;
use tfseek::batch::BytesColumn;

/// Bytes of an array over the memory of a record.
const VIEW: usize = 256;

/// Representation of byte strings in Python.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BytesAs {
    /// An array of `bytes` objects.
    Objects,
    /// An array of `str` objects, from UTF-8.
    Str,
    /// `Bytes(data, offsets, shape)`.
    Offsets,
    /// An array of uint8 arrays, without a copy.
    Views,
    /// NumPy's strings of fixed width.
    FixedWidth,
}

impl BytesAs {
    /// Returns true if a parser should copy the strings together, and not leave them in their records.
    pub(crate) fn is_contiguous(self) -> bool {
        matches!(self, BytesAs::Offsets | BytesAs::FixedWidth)
    }
}

/// The reason that a column could not be converted.
pub(crate) enum NotConverted {
    Python(PyErr),
    /// A string, by its ordinal in the column, is not UTF-8.
    Utf8 {
        string: usize,
        error: Utf8Error,
    },
    /// A string of `len` bytes ends with a NUL, which NumPy would drop.
    Nul {
        string: usize,
        len: usize,
    },
}

impl From<PyErr> for NotConverted {
    fn from(e: PyErr) -> NotConverted {
        NotConverted::Python(e)
    }
}

impl NotConverted {
    /// Returns the exception: a `DataError` with column and row, if a string is the reason.
    pub(crate) fn in_column(self, name: &str, row_of: impl FnOnce(usize) -> Option<u64>) -> PyErr {
        let (string, reason) = match self {
            NotConverted::Python(e) => return e,
            NotConverted::Utf8 { string, error } => {
                let at = error.valid_up_to();
                (string, format!("expected UTF-8 for bytes_as=\"str\", found other bytes at {at} of a value"))
            }
            NotConverted::Nul { string, len } => (
                string,
                format!(
                    "expected no NUL at the end of a value for bytes_as=\"S\", found a value of {len} bytes with one"
                ),
            ),
        };
        let row = row_of(string);
        let place = row.map_or(String::new(), |row| format!("row {row}: "));
        let message = format!("{place}feature {name:?}: {reason} (bytes_as=\"objects\" keeps bytes)");
        BindingError::Value(message, row, Some(name.into())).into()
    }
}

/// Returns the strings of a column in the form `bytes_as`. A missing one is `None` in an array of objects,
/// otherwise empty.
pub(crate) fn array<'py>(
    py: Python<'py>,
    strings: &BytesColumn,
    present: Option<&[u8]>,
    shape: &[usize],
    bytes_as: BytesAs,
    cache: &mut StringCache,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    let mut headroom = Headroom::default();
    match bytes_as {
        BytesAs::Objects if cache.skips(strings.len()) => {
            objects(py, strings.iter(), present, shape, |_, value| {
                headroom.take(value.len())?;
                Ok(repeated::new_bytes(py, value)?)
            })
        }
        BytesAs::Objects => objects(py, strings.iter(), present, shape, |_, value| {
            headroom.take(value.len())?;
            Ok(cache.bytes(py, value)?)
        }),
        BytesAs::Str => objects(py, strings.iter(), present, shape, |string, value| text(py, string, value)),
        BytesAs::Views => objects(py, strings.regions(), present, shape, |_, region| {
            headroom.take(VIEW)?;
            Ok(ArrayData::Region(region).flat(py)?.unbind())
        }),
        BytesAs::Offsets => {
            let (data, offsets) = strings.to_contiguous().map_err(BindingError::from).map_err(PyErr::from)?;
            let data = ArrayData::Bytes(data).flat(py)?;
            let offsets = ArrayData::Int64(offsets).flat(py)?;
            Ok(match shape {
                // The default of the constructor.
                [_] => hooks::bytes(py)?.call1((data, offsets))?,
                shape => hooks::bytes(py)?.call1((data, offsets, PyTuple::new(py, shape)?))?,
            })
        }
        BytesAs::FixedWidth => fixed_width(py, strings, shape),
    }
}

/// Returns the only string of a column as `bytes`, or as `str`.
pub(crate) fn single<'py>(
    py: Python<'py>,
    strings: &BytesColumn,
    bytes_as: BytesAs,
    cache: &mut StringCache,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    let value = strings.get(0).unwrap_or_default();
    let object = if bytes_as == BytesAs::Str { text(py, 0, value) } else { Ok(cache.bytes(py, value)?) };
    Ok(object?.into_bound(py))
}

fn text(py: Python<'_>, string: usize, value: &[u8]) -> Result<Py<PyAny>, NotConverted> {
    let text = str::from_utf8(value).map_err(|error| NotConverted::Utf8 { string, error })?;
    Ok(PyString::from_bytes(py, text.as_bytes())?.into_any().unbind())
}

/// Returns an array of the objects that `object` makes of the ordinals and values of strings, with `None` for
/// missing ones.
fn objects<'py, T>(
    py: Python<'py>,
    values: impl ExactSizeIterator<Item = T>,
    present: Option<&[u8]>,
    shape: &[usize],
    mut object: impl FnMut(usize, T) -> Result<Py<PyAny>, NotConverted>,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    let mut objects = headroom::room(values.len())?;
    match present {
        None => {
            for (k, value) in values.enumerate() {
                objects.push(object(k, value)?);
            }
        }
        Some(present) => {
            for ((k, value), &present) in values.enumerate().zip(present) {
                objects.push(if present == 0 { py.None() } else { object(k, value)? });
            }
        }
    }
    Ok(numpy::objects(py, objects, shape)?)
}

/// Returns an array of strings as long as the longest one. NumPy pads with NULs, so it cannot tell a NUL at
/// the end of a value from padding.
fn fixed_width<'py>(
    py: Python<'py>,
    strings: &BytesColumn,
    shape: &[usize],
) -> Result<Bound<'py, PyAny>, NotConverted> {
    let mut width = 1;
    for (string, value) in strings.iter().enumerate() {
        if value.last() == Some(&0) {
            return Err(NotConverted::Nul { string, len: value.len() });
        }
        width = width.max(value.len());
    }
    // One long value makes all of them long.
    let too_large = || {
        PyMemoryError::new_err(format!(
            "cannot allocate {} strings of {width} bytes for bytes_as=\"S\"",
            strings.len()
        ))
    };
    let size = strings.len().checked_mul(width).ok_or_else(too_large)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| too_large())?;
    for value in strings.iter() {
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len() + (width - value.len()), 0);
    }
    let array = ArrayData::Bytes(bytes.into()).flat(py)?;
    let array = array.call_method1(intern!(py, "view"), (format!("S{width}"),))?;
    Ok(array.call_method1(intern!(py, "reshape"), (PyTuple::new(py, shape)?,))?)
}
