//! Padding of ragged and sparse arrays. `tfseek/_columns.py` calls these functions.

use crate::error::Result;
use crate::rows::type_name;
use ::numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tfseek::batch::{self, RowSplits};

/// Contiguous values of one of two types.
#[derive(FromPyObject)]
pub(crate) enum Numbers<'py> {
    Int64(PyReadonlyArray1<'py, i64>),
    Float32(PyReadonlyArray1<'py, f32>),
}

/// The contiguous row splits of one dimension.
#[derive(FromPyObject)]
pub(crate) enum SplitsArray<'py> {
    Int64(PyReadonlyArray1<'py, i64>),
    Int32(PyReadonlyArray1<'py, i32>),
}

/// Returns new arrays of padded values and their mask. `inner` is the number of values per item.
#[pyfunction]
pub(crate) fn pad_rows<'py>(
    py: Python<'py>,
    values: Numbers<'py>,
    inner: usize,
    row_splits: Vec<SplitsArray<'py>>,
    lengths: Vec<Option<usize>>,
    padding: &Bound<'py, PyAny>,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let splits = row_splits.iter().map(|splits| {
        Ok(match splits {
            SplitsArray::Int64(splits) => RowSplits::Int64(splits.as_slice()?),
            SplitsArray::Int32(splits) => RowSplits::Int32(splits.as_slice()?),
        })
    });
    let splits = splits.collect::<PyResult<Vec<_>>>()?;
    match values {
        Numbers::Int64(values) => padded(py, values, inner, &splits, &lengths, int64(padding)?),
        Numbers::Float32(values) => padded(py, values, inner, &splits, &lengths, float(padding)?),
    }
}

fn padded<'py, T: Element + Clone>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, T>,
    inner: usize,
    splits: &[RowSplits<&[i32], &[i64]>],
    lengths: &[Option<usize>],
    padding: T,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let values = values.as_slice().map_err(PyErr::from)?;
    let (padded, present, shape) = batch::pad_rows(values, inner, splits, lengths, padding)?;
    let mask: Vec<bool> = present.into_iter().map(|set| set != 0).collect();
    Ok((array(py, padded, &shape, Some(inner))?, array(py, mask, &shape, None)?))
}

/// Returns a new array of `shape`, with values at `indices`, which are flat.
#[pyfunction]
pub(crate) fn dense_from_sparse<'py>(
    py: Python<'py>,
    indices: PyReadonlyArray1<'py, i64>,
    values: Numbers<'py>,
    shape: Vec<usize>,
    default: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let indices = indices.as_slice().map_err(PyErr::from)?;
    Ok(match &values {
        Numbers::Int64(values) => {
            let values = values.as_slice().map_err(PyErr::from)?;
            array(py, batch::dense_from_sparse(indices, values, &shape, int64(default)?)?, &shape, None)?
        }
        Numbers::Float32(values) => {
            let values = values.as_slice().map_err(PyErr::from)?;
            array(py, batch::dense_from_sparse(indices, values, &shape, float(default)?)?, &shape, None)?
        }
    })
}

fn int64(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|_| mismatch("an int64", value))
}

fn float(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    // Values beyond the range of float32 become infinity, as in NumPy.
    value.extract::<f64>().map(|value| value as f32).map_err(|_| mismatch("a number", value))
}

fn mismatch(expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("expected {expected} for missing values, found {}", type_name(value)))
}

/// Returns a writable array of `shape`, followed by a dimension of `inner` values.
fn array<'py, T: Element>(
    py: Python<'py>,
    values: Vec<T>,
    shape: &[usize],
    inner: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<_> = shape.iter().copied().chain(inner).collect();
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}
