//! Conversion between features and Python: arrays of features, features of Python values.

use crate::error::{BindingError, Result};
use crate::headroom::{self, Headroom};
use crate::memory::ArrayData;
use crate::{hooks, numpy};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;
use tfseek::io::Region;
use tfseek::{ExampleBuf, Feature, FeatureBuf};

/// Returns the values of a feature of the payload `region` as a read-only array of one dimension, or `None`
/// for a feature without a kind.
pub(crate) fn array<'py>(
    py: Python<'py>,
    feature: Feature<'_>,
    region: &Region,
) -> PyResult<Bound<'py, PyAny>> {
    match feature {
        Feature::None => Ok(py.None().into_bound(py)),
        Feature::Int64(list) => {
            let mut values = headroom::zeros(list.len())?;
            list.decode_into(&mut values).map_err(BindingError::from)?;
            ArrayData::Int64(values.into()).flat(py)
        }
        Feature::Float(list) => {
            let aligned = list.as_slice().filter(|values| !values.is_empty());
            let part = aligned.and_then(|values| part(region, values.as_ptr().addr(), size_of_val(values)));
            match part {
                Some(region) => ArrayData::Floats(region).flat(py),
                None => {
                    let mut values = headroom::zeros(list.len())?;
                    list.copy_to(&mut values).map_err(BindingError::from)?;
                    ArrayData::Float32(values.into()).flat(py)
                }
            }
        }
        Feature::Bytes(list) => {
            let mut values = headroom::room(list.len())?;
            let mut headroom = Headroom::default();
            for value in list.iter() {
                headroom.take(value.len())?;
                values.push(headroom::bytes(py, value)?.into_any().unbind());
            }
            let n = values.len();
            numpy::objects(py, values, &[n])
        }
    }
}

/// Returns the `len` bytes at `address` if they are inside this region.
pub(crate) fn part(region: &Region, address: usize, len: usize) -> Option<Region> {
    let start = address.checked_sub(region.as_ptr().addr())?;
    region.slice(start..start.checked_add(len)?)
}

/// Returns the name of a feature's kind, for `ex.kind(key)`.
pub(crate) fn kind(feature: Option<Feature<'_>>) -> Option<String> {
    feature.and_then(Feature::kind).map(|kind| kind.list_name().to_owned())
}

/// Returns the features of a dict by name. `tfseek._encode.features` converts each to
/// `(name, (kind, values))`, numbers as little-endian bytes.
pub(crate) fn entries(py: Python<'_>, dict: &Bound<'_, PyAny>) -> Result<Vec<(String, FeatureBuf)>> {
    let parts = hooks::features(py)?.call1((dict,))?;
    parts.try_iter()?.map(|part| entry(&part?)).collect()
}

/// Returns the bytes of an Example with the features of a dict.
pub(crate) fn encoded(py: Python<'_>, dict: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    let features = entries(py, dict)?.into_iter().collect();
    let example = ExampleBuf { features, ..ExampleBuf::default() };
    Ok(example.encode()?)
}

fn entry(part: &Bound<'_, PyAny>) -> Result<(String, FeatureBuf)> {
    let (name, values): (String, Bound<'_, PyAny>) = part.extract()?;
    Ok((name, from_parts(&values)?))
}

/// Converts a pair `(kind, values)`.
pub(crate) fn from_parts(pair: &Bound<'_, PyAny>) -> Result<FeatureBuf> {
    let (kind, values): (Option<String>, Bound<'_, PyAny>) = pair.extract()?;
    Ok(match kind.as_deref() {
        None => FeatureBuf::None,
        Some("int64") => {
            let bytes: PyBackedBytes = values.extract()?;
            let (values, _) = bytes.as_chunks::<8>();
            let mut numbers = headroom::room(values.len())?;
            numbers.extend(values.iter().map(|bytes| i64::from_le_bytes(*bytes)));
            FeatureBuf::Int64(numbers)
        }
        Some("float") => {
            let bytes: PyBackedBytes = values.extract()?;
            let (values, _) = bytes.as_chunks::<4>();
            let mut numbers = headroom::room(values.len())?;
            numbers.extend(values.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            FeatureBuf::Float(numbers)
        }
        Some("bytes") => {
            let values = values.cast::<PyList>().map_err(PyErr::from)?;
            let mut strings = headroom::room(values.len())?;
            for value in values {
                let value: PyBackedBytes = value.extract()?;
                let mut copy = headroom::room(value.len())?;
                copy.extend_from_slice(&value);
                strings.push(copy);
            }
            FeatureBuf::Bytes(strings)
        }
        Some(other) => {
            return Err(BindingError::type_error(format!(
                "expected int64, float or bytes as the kind of a feature, found {other}"
            )));
        }
    })
}
