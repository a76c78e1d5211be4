//! A naive encoder, row by row with builders, and random record batches for both.

use super::arrays::{Odds, feature_lists, features};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use std::sync::Arc;
use tfseek::example::FeatureBuf;
use tfseek::{ExampleBuilder, SequenceExampleBuilder};
use tfseek_arrow::{Encoder, EncoderOptions, ErrorKind};
use tfseek_testkit::rng::Rng;

/// A row that cannot be encoded.
#[derive(Debug, PartialEq)]
struct Refused;

/// Returns the only value of an array, as a feature.
fn value(array: &dyn Array, k: usize) -> Result<FeatureBuf, Refused> {
    macro_rules! int {
        ($type:ty) => {
            FeatureBuf::Int64(vec![
                i64::try_from(array.as_primitive::<$type>().value(k)).map_err(|_| Refused)?,
            ])
        };
    }
    let bytes = |value: &[u8]| FeatureBuf::Bytes(vec![value.to_vec()]);
    Ok(match array.data_type() {
        DataType::Int8 => int!(Int8Type),
        DataType::Int16 => int!(Int16Type),
        DataType::Int32 => int!(Int32Type),
        DataType::Int64 => int!(Int64Type),
        DataType::UInt8 => int!(UInt8Type),
        DataType::UInt16 => int!(UInt16Type),
        DataType::UInt32 => int!(UInt32Type),
        DataType::UInt64 => int!(UInt64Type),
        DataType::Boolean => FeatureBuf::Int64(vec![array.as_boolean().value(k).into()]),
        DataType::Float16 => FeatureBuf::Float(vec![array.as_primitive::<Float16Type>().value(k).to_f32()]),
        DataType::Float32 => FeatureBuf::Float(vec![array.as_primitive::<Float32Type>().value(k)]),
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(k);
            if !value.is_nan() && f64::from(value as f32) != value {
                return Err(Refused);
            }
            FeatureBuf::Float(vec![value as f32])
        }
        DataType::Binary => bytes(array.as_binary::<i32>().value(k)),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().value(k)),
        DataType::BinaryView => bytes(array.as_binary_view().value(k)),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(k)),
        DataType::Utf8 => bytes(array.as_string::<i32>().value(k).as_bytes()),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>().value(k).as_bytes()),
        DataType::Utf8View => bytes(array.as_string_view().value(k).as_bytes()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            value(dictionary.values(), dictionary.normalized_keys()[k])?
        }
        other => panic!("{other}"),
    })
}

fn items(array: &dyn Array, k: usize) -> Option<ArrayRef> {
    Some(match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value(k),
        DataType::LargeList(_) => array.as_list::<i64>().value(k),
        DataType::ListView(_) => array.as_list_view::<i32>().value(k),
        DataType::LargeListView(_) => array.as_list_view::<i64>().value(k),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().value(k),
        _ => return None,
    })
}

/// Returns the feature without values of a type.
fn empty(data_type: &DataType) -> FeatureBuf {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => empty(item.data_type()),
        DataType::Dictionary(_, values) => empty(values),
        DataType::Null => FeatureBuf::None,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => FeatureBuf::Float(vec![]),
        other if other.is_integer() || *other == DataType::Boolean => FeatureBuf::Int64(vec![]),
        _ => FeatureBuf::Bytes(vec![]),
    }
}

fn is_null(array: &dyn Array, k: usize) -> bool {
    array.logical_nulls().is_some_and(|nulls| nulls.is_null(k))
}

/// Returns a feature. `None` if it is absent.
fn feature(array: &dyn Array, k: usize) -> Result<Option<FeatureBuf>, Refused> {
    if is_null(array, k) {
        return Ok(None);
    }
    let Some(items) = items(array, k) else { return value(array, k).map(Some) };
    let mut all = empty(array.data_type());
    for k in 0..items.len() {
        match (&mut all, feature(&items, k)?.ok_or(Refused)?) {
            (FeatureBuf::Int64(all), FeatureBuf::Int64(some)) => all.extend(some),
            (FeatureBuf::Float(all), FeatureBuf::Float(some)) => all.extend(some),
            (FeatureBuf::Bytes(all), FeatureBuf::Bytes(some)) => all.extend(some),
            (FeatureBuf::None, FeatureBuf::None) => {}
            other => panic!("{other:?}"),
        }
    }
    Ok(Some(all))
}

/// Returns the payload of a row.
fn payload(batch: &RecordBatch, row: usize, lists: &[String]) -> Result<Vec<u8>, Refused> {
    let mut example = ExampleBuilder::new();
    let mut sequence = SequenceExampleBuilder::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let name = field.name();
        if lists.contains(name) {
            if is_null(array, row) {
                continue;
            }
            let steps = items(array, row).unwrap();
            let steps = (0..steps.len()).map(|k| Ok(feature(&steps, k)?.unwrap_or_default()));
            sequence = sequence.feature_list(name, steps.collect::<Result<Vec<_>, _>>()?);
        } else if let Some(feature) = feature(array, row)? {
            example = example.feature(name, feature.clone());
            sequence = sequence.feature(name, feature);
        }
    }
    Ok(if lists.is_empty() { example.encode() } else { sequence.encode() }.unwrap())
}

/// Returns a batch of a few columns, and the names of its feature lists.
fn batch(rng: &mut Rng, len: usize, odds: Odds, sequence: bool) -> (RecordBatch, Vec<String>) {
    let (mut fields, mut arrays, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for k in 0..rng.below(5) + usize::from(sequence) {
        let name = format!("{}{k}", rng.pick(&["a", "b", "", "é", "a/b"]));
        let is_list = sequence && (k == 0 || rng.chance(100));
        let array = if is_list { feature_lists(rng, len, odds) } else { features(rng, len, odds) };
        if is_list {
            lists.push(name.clone());
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    let schema = Arc::new(ArrowSchema::new(fields));
    (RecordBatch::try_new_with_options(schema, arrays, &options).unwrap(), lists)
}

fn options(lists: &[String]) -> EncoderOptions {
    lists.iter().fold(EncoderOptions::new(), |options, name| options.feature_list(name))
}

fn agree(sequence: bool, seeds: u64) {
    let (mut good, mut refused) = (0, 0);
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let odds = Odds { nulls: rng.pick(&[0, 100, 255]), bad: rng.pick(&[0, 0, 20]) };
        let rows = rng.pick(&[0, 1, 2, 9, 30]);
        let (whole, lists) = batch(&mut rng, rows, odds, sequence);
        let mut encoder = Encoder::new(&whole.schema(), &options(&lists)).unwrap();
        // The whole batch, and slices of it.
        for k in 0..4 {
            let start = if k == 0 { 0 } else { rng.below(rows + 1) };
            let len = if k == 0 { rows } else { rng.below(rows - start + 1) };
            let slice = whole.slice(start, len);
            let want: Vec<_> = (0..len).map(|row| payload(&slice, row, &lists)).collect();
            let mut found = Vec::new();
            let encoded = encoder.encode(&slice, |payload| {
                found.push(Ok(payload.to_vec()));
                Ok(())
            });
            match encoded {
                Ok(()) => {
                    assert_eq!(found, want, "seed {seed}, {start}..+{len}: {:?}", slice.schema());
                    good += 1;
                }
                Err(error) => {
                    let row = error.row.unwrap();
                    assert_eq!(want[row], Err(Refused), "seed {seed}: {error}");
                    assert!(
                        matches!(error.kind, ErrorKind::Value(_) | ErrorKind::Inexact(_))
                            && error.column.is_some(),
                        "{error}"
                    );
                    // No record of a bad batch is given to the caller.
                    assert!(found.is_empty());
                    refused += 1;
                }
            }
        }
    }
    println!("{good} batches, {refused} refused");
    assert!(good > refused && refused > 20, "{good} {refused}");
}

#[test]
fn random_batches() {
    agree(false, 1500);
}

#[test]
fn random_batches_with_feature_lists() {
    agree(true, 1500);
}
