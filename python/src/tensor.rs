//! The bytes of `tf.io.serialize_tensor`. Numbers cross as bytes, and are arrays on the Python side.

use crate::failure::{Failure, Result};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};
use tfseek::TensorDType;

fn dtype(name: &str) -> Result<TensorDType> {
    TensorDType::from_name(name)
        .ok_or_else(|| Failure::type_error(format!("no dtype of tensors that can be read: {name}")))
}

/// `(shape, bytes)`, or `(shape, list of bytes)` for strings.
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
        Some(bytes) => PyBytes::new(py, bytes).into_any(),
        None => {
            let strings = tensor.strings()?.map(|value| PyBytes::new(py, value));
            PyList::new(py, strings)?.into_any()
        }
    };
    Ok((tensor.shape().to_vec(), values))
}

/// Numbers as little-endian bytes, row-major.
#[pyfunction]
pub(crate) fn serialize_numbers<'py>(
    py: Python<'py>,
    name: &str,
    shape: Vec<u64>,
    bytes: PyBackedBytes,
) -> Result<Bound<'py, PyBytes>> {
    let dtype = dtype(name)?;
    let message = py.detach(|| tfseek::serialize_tensor(dtype, &shape, &bytes))?;
    Ok(PyBytes::new(py, &message))
}

/// Byte strings, row-major.
#[pyfunction]
pub(crate) fn serialize_strings<'py>(
    py: Python<'py>,
    shape: Vec<u64>,
    values: Vec<PyBackedBytes>,
) -> Result<Bound<'py, PyBytes>> {
    let message = py.detach(|| tfseek::tensor::serialize_strings(&shape, &values))?;
    Ok(PyBytes::new(py, &message))
}
