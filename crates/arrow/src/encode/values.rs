//! The values of a column as slices of the types that features have.

use super::levels::Located;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::collected;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::DataType;
use std::hint::black_box;
use std::ops::Range;
use tfseek::example::FeatureSlice;

/// The values of all rows of a column.
pub(super) enum LeafValues<'a> {
    /// Values of the type Null, of which there are none.
    None,
    Bytes(Vec<&'a [u8]>),
    Float(&'a [f32]),
    Int64(&'a [i64]),
}

/// Memory of the values that are cast, which is reused.
#[derive(Clone, Debug, Default)]
pub(super) struct CastBuffer {
    floats: Vec<f32>,
    ints: Vec<i64>,
}

impl<'a> LeafValues<'a> {
    /// Returns the values of a column.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] and [`ErrorKind::Inexact`] for a number of a row that is changed by its cast.
    /// With `round` a Float64 may be rounded.
    pub(super) fn new(
        located: &'a Located,
        buffer: &'a mut CastBuffer,
        round: bool,
    ) -> Result<LeafValues<'a>> {
        let leaves = &*located.leaves;
        let CastBuffer { floats, ints } = buffer;
        let data_type = match leaves.data_type() {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        if *leaves.data_type() == DataType::Int64 {
            return Ok(LeafValues::Int64(leaves.as_primitive::<Int64Type>().values()));
        }
        if *leaves.data_type() == DataType::Float32 {
            return Ok(LeafValues::Float(leaves.as_primitive::<Float32Type>().values()));
        }
        if data_type.is_integer() || *data_type == DataType::Boolean {
            ints.clear();
            put_values(leaves, ints, put_ints)?;
            check(located, round)?;
            return Ok(LeafValues::Int64(ints));
        }
        if data_type.is_floating() {
            floats.clear();
            put_values(leaves, floats, put_floats)?;
            check(located, round)?;
            return Ok(LeafValues::Float(floats));
        }
        if *data_type == DataType::Null {
            return Ok(LeafValues::None);
        }
        Ok(LeafValues::Bytes(strings(leaves)?))
    }

    /// Returns the feature with these values.
    pub(super) fn feature(&self, range: Range<usize>) -> Result<FeatureSlice<'_>> {
        let feature = match self {
            LeafValues::None => Some(FeatureSlice::None),
            LeafValues::Bytes(values) => values.get(range).map(FeatureSlice::Bytes),
            LeafValues::Float(values) => values.get(range).map(FeatureSlice::Float),
            LeafValues::Int64(values) => values.get(range).map(FeatureSlice::Int64),
        };
        feature.ok_or_else(|| Error::batch("expected a value for each item of a list, found fewer"))
    }
}

/// Checks that the numbers of all rows are kept by their casts. Values of no row are not checked.
fn check(located: &Located, round: bool) -> Result<()> {
    let leaves = &*located.leaves;
    let values = leaves.as_any_dictionary_opt().map_or(leaves, |dictionary| &**dictionary.values());
    let may_change = matches!(values.data_type(), DataType::UInt64 | DataType::Float64);
    if !may_change || (0..values.len()).all(|value| change(values, value, round).is_none()) {
        return Ok(());
    }
    let keys = keys(leaves)?;
    let change_of = |leaf| match &keys {
        Some(keys) => change(values, keys.get(leaf).copied()?, round),
        None => change(values, leaf, round),
    };
    located.each(&mut |row, mut range| match range.find_map(change_of) {
        Some(kind) => Err(Error::from(kind).in_row(row)),
        None => Ok(()),
    })
}

/// Returns the error of a number that is changed by its cast.
fn change(values: &dyn Array, k: usize, round: bool) -> Option<ErrorKind> {
    if *values.data_type() == DataType::UInt64 {
        let value = values.as_primitive::<UInt64Type>().values().get(k)?;
        let kept = i64::try_from(*value).is_ok();
        let reason = || format!("expected an integer up to 9223372036854775807, found {value}");
        return (!kept).then(|| ErrorKind::Value(reason().into()));
    }
    let value = *values.as_primitive::<Float64Type>().values().get(k)?;
    let stored = value as f32;
    if stored.is_infinite() && value.is_finite() {
        let reason = format!("expected a number from -3.4028235e38 to 3.4028235e38, found {value:e}");
        return Some(ErrorKind::Value(reason.into()));
    }
    let kept = round || value.is_nan() || f64::from(stored) == value;
    let reason = || format!("expected a number that Float32 has exactly, found {value}");
    (!kept).then(|| ErrorKind::Inexact(reason().into()))
}

/// Returns the position of each value of a dictionary array in the dictionary. `None` for another array, and
/// for an empty dictionary.
fn keys(leaves: &dyn Array) -> Result<Option<Vec<usize>>> {
    let Some(dictionary) = leaves.as_any_dictionary_opt().filter(|d| !d.values().is_empty()) else {
        return Ok(None);
    };
    // Arrow's function cannot fail, so its memory is requested before.
    black_box(collected::<usize>(leaves.len(), std::iter::empty())?);
    Ok(Some(dictionary.normalized_keys()))
}

/// Appends what `put` returns for the array. Values of a dictionary are looked up.
fn put_values<T: Clone + Default>(
    leaves: &dyn Array,
    out: &mut Vec<T>,
    put: impl Fn(&dyn Array, &mut Vec<T>),
) -> Result<()> {
    out.try_reserve(leaves.len())?;
    let Some(dictionary) = leaves.as_any_dictionary_opt() else {
        put(leaves, out);
        return Ok(());
    };
    // Without values all keys are null.
    let Some(keys) = keys(leaves)? else {
        out.resize(leaves.len(), T::default());
        return Ok(());
    };
    let mut values = collected(dictionary.values().len(), std::iter::empty())?;
    put(dictionary.values(), &mut values);
    out.extend(keys.into_iter().map(|key| values.get(key).cloned().unwrap_or_default()));
    Ok(())
}

/// Appends integers and booleans. Numbers that do not fit are changed.
fn put_ints(leaves: &dyn Array, out: &mut Vec<i64>) {
    match leaves.data_type() {
        DataType::Int8 => put_cast::<Int8Type, _>(leaves, out, i64::from),
        DataType::Int16 => put_cast::<Int16Type, _>(leaves, out, i64::from),
        DataType::Int32 => put_cast::<Int32Type, _>(leaves, out, i64::from),
        DataType::Int64 => put_cast::<Int64Type, _>(leaves, out, |value| value),
        DataType::UInt8 => put_cast::<UInt8Type, _>(leaves, out, i64::from),
        DataType::UInt16 => put_cast::<UInt16Type, _>(leaves, out, i64::from),
        DataType::UInt32 => put_cast::<UInt32Type, _>(leaves, out, i64::from),
        DataType::UInt64 => put_cast::<UInt64Type, _>(leaves, out, |value| value as i64),
        _ => out.extend(leaves.as_boolean().values().iter().map(i64::from)),
    }
}

/// Appends floats. Numbers that Float32 does not have are changed.
fn put_floats(leaves: &dyn Array, out: &mut Vec<f32>) {
    match leaves.data_type() {
        DataType::Float16 => put_cast::<Float16Type, _>(leaves, out, |value| value.to_f32()),
        DataType::Float32 => put_cast::<Float32Type, _>(leaves, out, |value| value),
        _ => put_cast::<Float64Type, _>(leaves, out, |value| value as f32),
    }
}

fn put_cast<T: ArrowPrimitiveType, O>(leaves: &dyn Array, out: &mut Vec<O>, cast: impl Fn(T::Native) -> O) {
    out.extend(leaves.as_primitive::<T>().values().iter().map(|&value| cast(value)));
}

/// Returns byte strings and text. Nulls are any strings.
pub(super) fn strings(leaves: &dyn Array) -> Result<Vec<&[u8]>> {
    let len = leaves.len();
    if let Some(dictionary) = leaves.as_any_dictionary_opt() {
        let values = strings(dictionary.values())?;
        let keys = keys(leaves)?.into_iter().flatten();
        return Ok(collected(len, keys.map(|key| values.get(key).copied().unwrap_or_default()))?);
    }
    let all = 0..len;
    Ok(match leaves.data_type() {
        DataType::Binary => collected(len, all.map(|k| leaves.as_binary::<i32>().value(k))),
        DataType::LargeBinary => collected(len, all.map(|k| leaves.as_binary::<i64>().value(k))),
        DataType::BinaryView => collected(len, all.map(|k| leaves.as_binary_view().value(k))),
        DataType::FixedSizeBinary(_) => collected(len, all.map(|k| leaves.as_fixed_size_binary().value(k))),
        DataType::Utf8 => collected(len, all.map(|k| leaves.as_string::<i32>().value(k).as_bytes())),
        DataType::LargeUtf8 => collected(len, all.map(|k| leaves.as_string::<i64>().value(k).as_bytes())),
        _ => collected(len, all.map(|k| leaves.as_string_view().value(k).as_bytes())),
    }?)
}
