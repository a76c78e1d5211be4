//! Batches as dicts of arrays.

use crate::forms::{DictForms, SharedForms};
use crate::hooks;
use crate::memory::ArrayData;
use crate::repeated::StringCache;
use crate::strings::{self, BytesAs, NotConverted};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tfseek::Column;
use tfseek::batch::{Batch, RowSplits, Values};

/// Converts a batch: a dict for Examples, `(context, sequence, lengths)` for SequenceExamples. A single
/// record has no `lengths`.
///
/// `forms` belong to the batch's parser or loader, if it may have more batches.
pub(crate) fn batch<'py>(
    py: Python<'py>,
    batch: &Batch,
    sequence: bool,
    single: bool,
    bytes_as: BytesAs,
    forms: Option<&SharedForms>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut forms = forms.and_then(SharedForms::take);
    let known = forms.as_deref_mut().map(|forms| &mut forms.features);
    let features = dict(py, || batch.columns(), known, single, bytes_as)?;
    if !sequence {
        return Ok(features.into_any());
    }
    let known = forms.as_deref_mut().map(|forms| &mut forms.lists);
    let lists = dict(py, || batch.feature_lists(), known, single, bytes_as)?;
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

/// Makes a list of arrays of each column of pictures without a common size.
pub(crate) fn list_pictures<'a>(
    batch: &Bound<'_, PyAny>,
    is_sequence: bool,
    names: impl IntoIterator<Item = &'a String>,
) -> PyResult<()> {
    for name in names {
        let features = if is_sequence { batch.get_item(0)? } else { batch.clone() };
        // Batches of a mix may have different columns.
        if features.contains(name)? {
            let pictures = hooks::pictures(batch.py())?.call1((features.get_item(name)?,))?;
            features.set_item(name, pictures)?;
        }
    }
    Ok(())
}

fn dict<'py, 'a, C: ExactSizeIterator<Item = (&'a str, &'a Column)>>(
    py: Python<'py>,
    columns: impl Fn() -> C,
    forms: Option<&mut DictForms>,
    single: bool,
    bytes_as: BytesAs,
) -> PyResult<Bound<'py, PyDict>> {
    let converted = |name, found: &Column, cache: &mut StringCache| {
        let row_of = |string| if single { None } else { found.row_of(string) };
        column(py, found, bytes_as, cache).map_err(|e| e.in_column(name, row_of))
    };
    let Some(forms) = forms else {
        let dict = PyDict::new(py);
        for (name, found) in columns() {
            dict.set_item(name, converted(name, found, &mut StringCache::default())?)?;
        }
        return Ok(dict);
    };
    let form = forms.of(py, || columns().map(|(name, _)| name))?;
    let dict = form.dict(py)?;
    for ((name, found), (key, cache)) in columns().zip(&mut form.columns) {
        dict.set_item(key.bind(py), converted(name, found, cache)?)?;
    }
    Ok(dict)
}

fn column<'py>(
    py: Python<'py>,
    column: &Column,
    bytes_as: BytesAs,
    cache: &mut StringCache,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    match column {
        Column::Dense(dense) => match (&dense.values, &*dense.shape) {
            // The string of a single record is itself, as the buffer of an array with one object is a pointer.
            (Values::Bytes(strings), []) if matches!(bytes_as, BytesAs::Objects | BytesAs::Str) => {
                strings::single(py, strings, bytes_as, cache)
            }
            (found, shape) => values(py, found, None, shape, bytes_as, cache),
        },
        Column::Optional(optional) => {
            let shape = &*optional.shape;
            let present = &optional.present;
            let found = values(py, &optional.values, Some(present), shape, bytes_as, cache)?;
            let present = match shape {
                // All values of a row are present, or none.
                [rows, inner @ ..] if !inner.is_empty() => {
                    let per_row = inner.iter().product::<usize>();
                    let first = |row: usize| present.get(row * per_row).copied();
                    let rows = (0..*rows).map(|row| first(row).unwrap_or(1)).collect::<Vec<_>>();
                    ArrayData::Bool(rows.into()).flat(py)?
                }
                shape => ArrayData::Bool(present.clone()).shaped(py, shape)?,
            };
            Ok(hooks::feature_column(py)?.call1((found, present))?)
        }
        Column::Sparse(sparse) => {
            let rank = sparse.dense_shape.len();
            let n = sparse.values.len();
            let indices = ArrayData::Int64(sparse.indices.clone()).shaped(py, &[n, rank])?;
            let found = values(py, &sparse.values, None, &[n], bytes_as, cache)?;
            let shape = sparse.dense_shape.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX));
            let shape = ArrayData::Int64(shape.collect::<Vec<_>>().into()).flat(py)?;
            Ok(hooks::sparse(py)?.call1((indices, found, shape))?)
        }
        Column::Ragged(ragged) => {
            let found = values(py, &ragged.values, None, &ragged.shape, bytes_as, cache)?;
            let splits = |splits: &RowSplits| match splits {
                RowSplits::Int32(splits) => ArrayData::Int32(splits.clone()).flat(py),
                RowSplits::Int64(splits) => ArrayData::Int64(splits.clone()).flat(py),
            };
            let splits = match &*ragged.row_splits {
                [only] => PyTuple::new(py, [splits(only)?])?,
                several => PyTuple::new(py, several.iter().map(splits).collect::<PyResult<Vec<_>>>()?)?,
            };
            Ok(hooks::ragged(py)?.call1((found, splits))?)
        }
    }
}

/// Returns the values as an array. `present` says which of them are not missing; a missing string is `None`
/// in an array of objects.
fn values<'py>(
    py: Python<'py>,
    values: &Values,
    present: Option<&[u8]>,
    shape: &[usize],
    bytes_as: BytesAs,
    cache: &mut StringCache,
) -> Result<Bound<'py, PyAny>, NotConverted> {
    Ok(match values {
        Values::Int64(values) => ArrayData::Int64(values.clone()).shaped(py, shape)?,
        Values::Float32(values) => ArrayData::Float32(values.clone()).shaped(py, shape)?,
        Values::Array(values) => ArrayData::Array(values.clone()).shaped(py, shape)?,
        Values::Bytes(values) => strings::array(py, values, present, shape, bytes_as, cache)?,
    })
}
