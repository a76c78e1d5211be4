//! `tf.io.serialize_tensor` and `tf.io.parse_tensor`. Numbers are passed as bytes, and Python converts them
//! to arrays.

use crate::error::{BindingError, Result};
use crate::headroom;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use tfseek::TensorDType;

fn dtype(name: &str) -> Result<TensorDType> {
    name.parse().map_err(|_| BindingError::type_error(format!("unsupported dtype of a tensor: {name}")))
}

/// Parses a tensor. Returns `(shape, bytes)`, or `(shape, list of bytes)` for strings.
#[pyfunction]
pub(crate) fn parse_tensor<'py>(
    py: Python<'py>,
    serialized: &Bound<'py, PyAny>,
    name: &str,
) -> Result<(Vec<u64>, Bound<'py, PyAny>)> {
    let payload: PyBackedBytes = serialized.extract()?;
    let dtype = dtype(name)?;
    let tensor = py.detach(|| tfseek::parse_tensor(&payload, dtype))?;
    let values = match tensor.as_bytes() {
        Some(bytes) => headroom::bytes(py, bytes)?.into_any(),
        None => {
            let strings = tensor.strings()?;
            let values = headroom::all_bytes(py, strings.len(), strings)?;
            headroom::list(py, values)?.into_any()
        }
    };
    Ok((tensor.shape().to_vec(), values))
}

/// Serializes numbers, given as little-endian bytes in row-major order.
#[pyfunction]
pub(crate) fn serialize_numbers<'py>(
    py: Python<'py>,
    name: &str,
    shape: Vec<u64>,
    bytes: PyBackedBytes,
) -> Result<Bound<'py, PyBytes>> {
    let dtype = dtype(name)?;
    let message = py.detach(|| tfseek::serialize_tensor(dtype, &shape, &bytes))?;
    Ok(headroom::bytes(py, &message)?)
}

/// Serializes byte strings, given in row-major order.
#[pyfunction]
pub(crate) fn serialize_strings<'py>(
    py: Python<'py>,
    shape: Vec<u64>,
    values: Vec<PyBackedBytes>,
) -> Result<Bound<'py, PyBytes>> {
    let message = py.detach(|| tfseek::tensor::serialize_strings(&shape, &values))?;
    Ok(headroom::bytes(py, &message)?)
}
