//! Batches as dicts of arrays.

use crate::memory::ArrayData;
use crate::{hooks, numpy};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use tfseek::Column;
use tfseek::batch::{Batch, BytesColumn, RowSplits, Values};

/// Representation of byte strings in Python.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BytesAs {
    /// An array of `bytes` objects.
    Objects,
    /// `Bytes(data, offsets)`.
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
    let features = dict(py, batch.columns(), bytes_as)?;
    if !sequence {
        return Ok(features.into_any());
    }
    let lists = dict(py, batch.feature_lists(), bytes_as)?;
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
    bytes_as: BytesAs,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, found) in columns {
        dict.set_item(name, column(py, found, bytes_as)?)?;
    }
    Ok(dict)
}

fn column<'py>(py: Python<'py>, column: &Column, bytes_as: BytesAs) -> PyResult<Bound<'py, PyAny>> {
    match column {
        Column::Dense(dense) => values(py, &dense.values, &dense.shape, bytes_as),
        Column::Optional(optional) => {
            let (shape, present) = (&*optional.shape, &optional.present);
            let found = match &optional.values {
                Values::Bytes(found) if bytes_as == BytesAs::Objects => {
                    let objects = found.iter().zip(present.iter()).map(|(value, present)| match present {
                        0 => py.None(),
                        _ => PyBytes::new(py, value).into_any().unbind(),
                    });
                    numpy::objects(py, objects.collect(), shape)?
                }
                found => values(py, found, shape, bytes_as)?,
            };
            hooks::feature_column(py)?.call1((found, ArrayData::Bool(present.clone()).shaped(py, shape)?))
        }
        Column::Sparse(sparse) => {
            let rank = sparse.dense_shape.len();
            let n = sparse.values.len();
            let indices = ArrayData::Int64(sparse.indices.clone()).shaped(py, &[n, rank])?;
            let found = values(py, &sparse.values, &[n], bytes_as)?;
            let shape = sparse.dense_shape.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX));
            let shape = ArrayData::Int64(shape.collect::<Vec<_>>().into()).flat(py)?;
            hooks::sparse(py)?.call1((indices, found, shape))
        }
        Column::Ragged(ragged) => {
            let found = values(py, &ragged.values, &ragged.shape, bytes_as)?;
            let splits = ragged.row_splits.iter().map(|splits| match splits {
                RowSplits::Int32(splits) => ArrayData::Int32(splits.clone()).flat(py),
                RowSplits::Int64(splits) => ArrayData::Int64(splits.clone()).flat(py),
            });
            let splits = PyTuple::new(py, splits.collect::<PyResult<Vec<_>>>()?)?;
            hooks::ragged(py)?.call1((found, splits))
        }
    }
}

fn values<'py>(
    py: Python<'py>,
    values: &Values,
    shape: &[usize],
    bytes_as: BytesAs,
) -> PyResult<Bound<'py, PyAny>> {
    match values {
        Values::Int64(values) => ArrayData::Int64(values.clone()).shaped(py, shape),
        Values::Float32(values) => ArrayData::Float32(values.clone()).shaped(py, shape),
        Values::Bytes(values) if bytes_as == BytesAs::Offsets => offsets(py, values),
        Values::Bytes(values) => {
            let values = values.iter().map(|value| PyBytes::new(py, value).into_any().unbind());
            numpy::objects(py, values.collect(), shape)
        }
    }
}

fn offsets<'py>(py: Python<'py>, values: &BytesColumn) -> PyResult<Bound<'py, PyAny>> {
    let (data, offsets) = values.to_contiguous();
    hooks::bytes(py)?.call1((ArrayData::Bytes(data).flat(py)?, ArrayData::Int64(offsets).flat(py)?))
}
