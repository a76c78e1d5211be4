//! Conversion between features and Python: arrays of features, features of Python values.

use crate::error::{BindingError, Result};
use crate::headroom;
use crate::memory::ArrayData;
use crate::{hooks, numpy};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;
use tfseek::io::Region;
use tfseek::{ExampleBuf, Feature, FeatureBuf};

/// Returns the values of a feature of the payload `region` as an array of one dimension, read-only or a
/// writable copy, or `None` for a feature without a kind.
pub(crate) fn array<'py>(
    py: Python<'py>,
    feature: Feature<'_>,
    region: &Region,
    copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let array = match feature {
        Feature::None => return Ok(py.None().into_bound(py)),
        Feature::Int64(list) => {
            let mut values = headroom::zeros(list.len())?;
            list.decode_into(&mut values).map_err(BindingError::from)?;
            ArrayData::Int64(values.into()).flat(py)?
        }
        Feature::Float(list) => {
            let aligned = list.as_slice().filter(|values| !values.is_empty());
            let part = aligned.and_then(|values| part(region, values.as_ptr().addr(), size_of_val(values)));
            match part {
                Some(region) => ArrayData::Floats(region).flat(py)?,
                None => {
                    let mut values = headroom::zeros(list.len())?;
                    list.copy_to(&mut values).map_err(BindingError::from)?;
                    ArrayData::Float32(values.into()).flat(py)?
                }
            }
        }
        Feature::Bytes(list) => {
            let values = headroom::all_bytes(py, list.len(), list.iter())?;
            numpy::objects(py, values, &[list.len()])?
        }
    };
    if copy { numpy::copied(&array) } else { Ok(array) }
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
    let entries = parts.try_iter()?.map(|part| {
        let (name, values): (String, Bound<'_, PyAny>) = part?.extract()?;
        Ok((name, from_parts(&values)?))
    });
    entries.collect()
}

/// Returns the bytes of an Example with the features of a dict.
pub(crate) fn encoded(py: Python<'_>, dict: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    let features = entries(py, dict)?.into_iter().collect();
    let example = ExampleBuf { features, ..ExampleBuf::default() };
    Ok(example.encode()?)
}

/// Converts a pair `(kind, values)`.
pub(crate) fn from_parts(pair: &Bound<'_, PyAny>) -> Result<FeatureBuf> {
    let (kind, values): (Option<String>, Bound<'_, PyAny>) = pair.extract()?;
    Ok(match kind.as_deref() {
        None => FeatureBuf::None,
        Some("int64") => FeatureBuf::Int64(numbers(&values, i64::from_le_bytes)?),
        Some("float") => FeatureBuf::Float(numbers(&values, f32::from_le_bytes)?),
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

/// Returns numbers that Python passes as bytes.
fn numbers<T, const N: usize>(bytes: &Bound<'_, PyAny>, number: impl Fn([u8; N]) -> T) -> Result<Vec<T>> {
    let bytes: PyBackedBytes = bytes.extract()?;
    let (each, _) = bytes.as_chunks::<N>();
    let mut numbers = headroom::room(each.len())?;
    numbers.extend(each.iter().map(|bytes| number(*bytes)));
    Ok(numbers)
}
