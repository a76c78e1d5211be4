//! Batches as dicts of arrays.

use crate::memory::ArrayData;
use crate::{hooks, numpy};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use std::str::Utf8Error;
use tfseek::Column;
use tfseek::batch::{Batch, RowSplits, Values};

/// Representation of byte strings in Python.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BytesAs {
    /// An array of `bytes` objects.
    Objects,
    /// An array of `str` objects, from UTF-8.
    Str,
    /// `Bytes(data, offsets, shape)`.
    Offsets,
}

/// Converts a batch: a dict for Examples, `(context, sequence, lengths)` for SequenceExamples. A single record has no `lengths`.
pub(crate) fn batch<'py>(
    py: Python<'py>,
    batch: &Batch,
    sequence: bool,
    single: bool,
    bytes_as: BytesAs,
) -> PyResult<Bound<'py, PyAny>> {
    let features = dict(py, batch.columns(), single, bytes_as)?;
    if !sequence {
        return Ok(features.into_any());
    }
    let lists = dict(py, batch.feature_lists(), single, bytes_as)?;
    if single {
        return Ok((features, lists).into_pyobject(py)?.into_any());
    }
    let lengths = PyDict::new(py);
    for (name, _) in batch.feature_lists() {
        if let Some(steps) = batch.lengths(name) {
            lengths.set_item(name, ArrayData::Int64(steps.clone()).flat(py)?)?;
        }
    }
    Ok((features, lists, lengths).into_pyobject(py)?.into_any())
}

fn dict<'py, 'a>(
    py: Python<'py>,
    columns: impl Iterator<Item = (&'a str, &'a Column)>,
    single: bool,
    bytes_as: BytesAs,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, found) in columns {
        let converted = column(py, found, bytes_as).map_err(|e| match e {
            NotConverted::Python(e) => e,
            NotConverted::Utf8 { string, error } => {
                not_utf8(py, name, if single { None } else { found.row_of(string) }, error)
            }
        });
        dict.set_item(name, converted?)?;
    }
    Ok(dict)
}

/// The reason that a column could not be converted.
enum NotConverted {
    Python(PyErr),
    /// A string, by its ordinal in the column, is not UTF-8.
    Utf8 {
        string: usize,
        error: Utf8Error,
    },
}

impl From<PyErr> for NotConverted {
    fn from(e: PyErr) -> NotConverted {
        NotConverted::Python(e)
    }
}

/// Returns the `DataError` of a string that is not UTF-8.
fn not_utf8(py: Python<'_>, name: &str, row: Option<u64>, error: Utf8Error) -> PyErr {
    let raised = || {
        let place = row.map_or(String::new(), |row| format!("row {row}: "));
        let message = format!(
            "{place}feature {name:?}: expected UTF-8 for bytes_as=\"str\", found other bytes at {} of a value \
             (bytes_as=\"objects\" keeps bytes)",
            error.valid_up_to()
        );
        let raised = hooks::data_error(py)?.call1((message,))?;
        raised.setattr(intern!(py, "feature"), name)?;
        raised.setattr(intern!(py, "row"), row)?;
        Ok(PyErr::from_value(raised))
    };
    raised().unwrap_or_else(|e| e)
}

fn column<'py>(
    py: Python<'py>,
    column: &Column,
    bytes_as: BytesAs,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    match column {
        Column::Dense(dense) => values(py, &dense.values, &dense.shape, bytes_as),
        Column::Optional(optional) => {
            let (shape, present) = (&*optional.shape, &optional.present);
            let found = match &optional.values {
                Values::Bytes(found) if bytes_as != BytesAs::Offsets => {
                    let found = found.iter().zip(present.iter());
                    strings(
                        py,
                        found.map(|(value, &present)| (present != 0).then_some(value)),
                        shape,
                        bytes_as,
                    )?
                }
                found => values(py, found, shape, bytes_as)?,
            };
            let present = ArrayData::Bool(present.clone()).shaped(py, shape)?;
            Ok(hooks::feature_column(py)?.call1((found, present))?)
        }
        Column::Sparse(sparse) => {
            let rank = sparse.dense_shape.len();
            let n = sparse.values.len();
            let indices = ArrayData::Int64(sparse.indices.clone()).shaped(py, &[n, rank])?;
            let found = values(py, &sparse.values, &[n], bytes_as)?;
            let shape = sparse.dense_shape.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX));
            let shape = ArrayData::Int64(shape.collect::<Vec<_>>().into()).flat(py)?;
            Ok(hooks::sparse(py)?.call1((indices, found, shape))?)
        }
        Column::Ragged(ragged) => {
            let found = values(py, &ragged.values, &ragged.shape, bytes_as)?;
            let splits = ragged.row_splits.iter().map(|splits| match splits {
                RowSplits::Int32(splits) => ArrayData::Int32(splits.clone()).flat(py),
                RowSplits::Int64(splits) => ArrayData::Int64(splits.clone()).flat(py),
            });
            let splits = PyTuple::new(py, splits.collect::<PyResult<Vec<_>>>()?)?;
            Ok(hooks::ragged(py)?.call1((found, splits))?)
        }
    }
}

fn values<'py>(
    py: Python<'py>,
    values: &Values,
    shape: &[usize],
    bytes_as: BytesAs,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    Ok(match values {
        Values::Int64(values) => ArrayData::Int64(values.clone()).shaped(py, shape)?,
        Values::Float32(values) => ArrayData::Float32(values.clone()).shaped(py, shape)?,
        Values::Bytes(values) => match bytes_as {
            BytesAs::Objects | BytesAs::Str => strings(py, values.iter().map(Some), shape, bytes_as)?,
            BytesAs::Offsets => {
                let (data, offsets) = values.to_contiguous();
                let (data, offsets) = (ArrayData::Bytes(data).flat(py)?, ArrayData::Int64(offsets).flat(py)?);
                match shape {
                    // The default of the constructor.
                    [_] => hooks::bytes(py)?.call1((data, offsets))?,
                    shape => hooks::bytes(py)?.call1((data, offsets, PyTuple::new(py, shape)?))?,
                }
            }
        },
    })
}

/// Returns an array of `bytes` or `str` objects, with `None` for missing values.
fn strings<'py, 'a>(
    py: Python<'py>,
    values: impl Iterator<Item = Option<&'a [u8]>>,
    shape: &[usize],
    bytes_as: BytesAs,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    let objects = values.enumerate().map(|(string, value)| match value {
        None => Ok(py.None()),
        Some(value) if bytes_as == BytesAs::Str => match str::from_utf8(value) {
            Ok(value) => Ok(PyString::new(py, value).into_any().unbind()),
            Err(error) => Err(NotConverted::Utf8 { string, error }),
        },
        Some(value) => Ok(PyBytes::new(py, value).into_any().unbind()),
    });
    Ok(numpy::objects(py, objects.collect::<Result<_, _>>()?, shape)?)
}
