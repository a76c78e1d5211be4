//! Conversion between features and Python: arrays of features, features of Python values.

use crate::error::{BindingError, Result};
use crate::memory::ArrayData;
use crate::{hooks, numpy, payload};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tfseek::io::Region;
use tfseek::{ExampleBuf, Feature, FeatureBuf};

/// Returns the values of a feature of the payload `region` as a read-only array of one dimension, or `None` for a feature without a kind.
pub(crate) fn array<'py>(
    py: Python<'py>,
    feature: Feature<'_>,
    region: &Region,
) -> PyResult<Bound<'py, PyAny>> {
    match feature {
        Feature::None => Ok(py.None().into_bound(py)),
        Feature::Int64(list) => {
            let mut values = zeros(list.len())?;
            list.decode_into(&mut values).map_err(BindingError::from)?;
            ArrayData::Int64(values.into()).flat(py)
        }
        Feature::Float(list) => {
            let aligned = list.as_slice().filter(|values| !values.is_empty());
            let part = aligned.and_then(|values| part(region, values.as_ptr().addr(), size_of_val(values)));
            match part {
                Some(region) => ArrayData::Floats(region).flat(py),
                None => {
                    let mut values = zeros(list.len())?;
                    list.copy_to(&mut values).map_err(BindingError::from)?;
                    ArrayData::Float32(values.into()).flat(py)
                }
            }
        }
        Feature::Bytes(list) => {
            let values: PyResult<Vec<_>> =
                list.iter().map(|value| Ok(payload::bytes(py, value)?.into_any().unbind())).collect();
            let values = values?;
            let n = values.len();
            numpy::objects(py, values, &[n])
        }
    }
}

/// Returns `len` zeros: a short payload may have many values.
///
/// # Errors
/// `MemoryError`.
fn zeros<T: Clone + Default>(len: usize) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    let missing = |_| PyMemoryError::new_err(format!("not enough memory for {len} values"));
    values.try_reserve_exact(len).map_err(missing)?;
    values.resize(len, T::default());
    Ok(values)
}

/// Returns the `len` bytes at `address` if they are inside this region.
pub(crate) fn part(region: &Region, address: usize, len: usize) -> Option<Region> {
    let start = address.checked_sub(region.as_ptr().addr())?;
    region.slice(start..start.checked_add(len)?)
}

/// Returns the name of a feature's kind, for `ex.kind(key)`.
pub(crate) fn kind(feature: Option<Feature<'_>>) -> Option<String> {
    feature.and_then(Feature::kind).map(|kind| kind.to_string())
}

/// Returns the features of a dict by name. `tfseek._encode.features` converts each to `(name, (kind, values))`, numbers as
/// little-endian bytes.
pub(crate) fn entries(py: Python<'_>, dict: &Bound<'_, PyAny>) -> Result<Vec<(String, FeatureBuf)>> {
    let parts = hooks::features(py)?.call1((dict,))?;
    parts.try_iter()?.map(|part| entry(&part?)).collect()
}

/// Returns the bytes of an Example with the features of a dict.
pub(crate) fn encoded(py: Python<'_>, dict: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    let features = entries(py, dict)?.into_iter().collect();
    let example = ExampleBuf { features, ..ExampleBuf::default() };
    Ok(example.encode(tfseek::KeyOrder::Python)?)
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
            FeatureBuf::Int64(values.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
        }
        Some("float") => {
            let bytes: PyBackedBytes = values.extract()?;
            let (values, _) = bytes.as_chunks::<4>();
            FeatureBuf::Float(values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        Some("bytes") => {
            let values: Vec<PyBackedBytes> = values.extract()?;
            FeatureBuf::Bytes(values.iter().map(|value| value.to_vec()).collect())
        }
        Some(other) => {
            return Err(BindingError::type_error(format!(
                "expected int64, float or bytes as the kind of a feature, found {other}"
            )));
        }
    })
}
