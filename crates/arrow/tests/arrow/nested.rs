//! Values of data sets in one nested form, of records one by one and of record batches.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, BinaryArray, BinaryViewArray, RecordBatch, StructArray};
use arrow_schema::DataType;
use std::collections::BTreeMap;
use tfseek::TensorDType;
use tfseek::batch::{ArrayBits, Values};
use tfseek_tfds::{Array, RecordValue};

/// A value. Numbers are their bytes, lowest first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Nested {
    None,
    Value(Vec<u8>),
    List(Vec<Nested>),
    Dict(BTreeMap<String, Nested>),
}

impl Nested {
    /// Returns the number of values.
    pub(crate) fn count(&self) -> usize {
        match self {
            Nested::None | Nested::Value(_) => 1,
            Nested::List(items) => items.iter().map(Nested::count).sum(),
            Nested::Dict(values) => values.values().map(Nested::count).sum(),
        }
    }

    /// Returns the path of the first difference. Lists without values, from steps, are equal to a dict of
    /// such lists.
    pub(crate) fn difference(&self, other: &Nested) -> Option<String> {
        match (self, other) {
            (Nested::Dict(one), Nested::Dict(other)) => {
                if !one.keys().eq(other.keys()) {
                    return Some(format!(": {:?}, not {:?}", one.keys(), other.keys()));
                }
                let mut pairs = one.iter().zip(other.values());
                pairs.find_map(|((name, a), b)| Some(format!("/{name}{}", a.difference(b)?)))
            }
            (Nested::List(one), Nested::List(other)) if one.len() == other.len() => {
                let mut pairs = one.iter().zip(other).enumerate();
                pairs.find_map(|(k, (a, b))| Some(format!("[{k}]{}", a.difference(b)?)))
            }
            (Nested::List(_), Nested::Dict(values)) if self.count() == 0 => {
                values.values().find_map(|value| self.difference(value))
            }
            (a, b) => (a != b).then(|| format!(": {a:?}, not {b:?}")),
        }
    }

    /// Returns true for a dict without values.
    fn is_nothing(&self) -> bool {
        matches!(self, Nested::Dict(values) if values.is_empty())
    }

    fn dict(values: impl Iterator<Item = (String, Nested)>) -> Nested {
        Nested::Dict(values.filter(|(_, value)| !value.is_nothing()).collect())
    }

    /// Returns dicts as a dict of lists. Steps without steps in them are lists.
    fn transposed(items: Vec<Nested>) -> Nested {
        let Some(Nested::Dict(any)) = items.iter().find(|item| matches!(item, Nested::Dict(_))) else {
            return Nested::List(items);
        };
        let of = |name: &String| {
            let values = items.iter().map(|item| match item {
                Nested::Dict(values) => values[name].clone(),
                other => other.clone(),
            });
            Nested::transposed(values.collect())
        };
        Nested::dict(any.keys().map(|name| (name.clone(), of(name))))
    }

    /// Returns the value of a record, or the error of one of its steps.
    pub(crate) fn of_record(value: &RecordValue) -> tfseek::Result<Nested> {
        let all =
            |values: &[RecordValue]| values.iter().map(Nested::of_record).collect::<tfseek::Result<Vec<_>>>();
        Ok(match value {
            RecordValue::None => Nested::None,
            RecordValue::Dict(values) => {
                let values =
                    values.iter().map(|(name, value)| Ok((name.to_string(), Nested::of_record(value)?)));
                Nested::dict(values.collect::<tfseek::Result<Vec<_>>>()?.into_iter())
            }
            RecordValue::List(values) => Nested::List(all(values)?),
            RecordValue::Steps(steps) => {
                let steps =
                    (0..steps.len()).map(|k| steps.get(k).unwrap()).collect::<tfseek::Result<Vec<_>>>()?;
                Nested::transposed(all(&steps)?)
            }
            RecordValue::Array(array) => nested(array.shape(), &mut leaves(array).into_iter()),
            RecordValue::Ragged { values, row_splits } => {
                let (count, item) = (values.shape()[0], &values.shape()[1..]);
                let mut all = leaves(values).into_iter();
                let mut rows: Vec<Nested> = (0..count).map(|_| nested(item, &mut all)).collect();
                for splits in row_splits.iter().rev() {
                    rows = splits
                        .windows(2)
                        .map(|ends| Nested::List(rows[ends[0] as usize..ends[1] as usize].to_vec()))
                        .collect();
                }
                Nested::List(rows)
            }
            _ => panic!("expected a value of this form"),
        })
    }

    /// Returns a row of a record batch.
    pub(crate) fn of_row(batch: &RecordBatch, row: usize) -> Nested {
        Nested::of_struct(&batch.clone().into(), row)
    }

    fn of_struct(array: &StructArray, row: usize) -> Nested {
        let values = array.fields().iter().zip(array.columns()).map(|(field, column)| {
            let value = Nested::of_array(column, row);
            let value = match (field.metadata().get("ARROW:extension:metadata"), value) {
                // A tensor is one list.
                (Some(parameters), Nested::List(items)) => {
                    let parameters: serde_json::Value = serde_json::from_str(parameters).unwrap();
                    let shape: Vec<usize> = serde_json::from_value(parameters["shape"].clone()).unwrap();
                    nested(&shape, &mut items.into_iter())
                }
                (_, value) => value,
            };
            (field.name().clone(), value)
        });
        Nested::dict(values)
    }

    fn of_array(array: &ArrayRef, row: usize) -> Nested {
        let items =
            |list: ArrayRef| Nested::List((0..list.len()).map(|k| Nested::of_array(&list, k)).collect());
        match array.data_type() {
            // -1 is no label.
            DataType::Dictionary(..) => {
                let keys = array.as_dictionary::<Int64Type>().keys();
                let key = if keys.is_null(row) { -1 } else { keys.value(row) };
                Nested::Value(key.to_le_bytes().to_vec())
            }
            _ if array.is_null(row) => Nested::None,
            DataType::Struct(_) => Nested::of_struct(array.as_struct(), row),
            DataType::LargeList(_) => items(array.as_list::<i64>().value(row)),
            DataType::FixedSizeList(..) => items(array.as_fixed_size_list().value(row)),
            DataType::Boolean => Nested::Value(vec![array.as_boolean().value(row).into()]),
            DataType::Utf8 => Nested::Value(array.as_string::<i32>().value(row).into()),
            DataType::Utf8View => Nested::Value(array.as_string_view().value(row).into()),
            DataType::Binary => {
                Nested::Value(array.as_any().downcast_ref::<BinaryArray>().unwrap().value(row).into())
            }
            DataType::BinaryView => {
                Nested::Value(array.as_any().downcast_ref::<BinaryViewArray>().unwrap().value(row).into())
            }
            other => {
                let width = other.primitive_width().unwrap();
                let data = array.to_data();
                let at = (data.offset() + row) * width;
                Nested::Value(data.buffers()[0].as_slice()[at..at + width].to_vec())
            }
        }
    }
}

/// Returns values of a shape.
fn nested(shape: &[usize], all: &mut impl Iterator<Item = Nested>) -> Nested {
    match shape.split_first() {
        None => all.next().unwrap(),
        Some((&len, item)) => Nested::List((0..len).map(|_| nested(item, all)).collect()),
    }
}

/// Returns the values of an array, row-major.
fn leaves(array: &Array) -> Vec<Nested> {
    let (values, start) = array.values();
    let range = start..start + array.len();
    let all: Vec<Vec<u8>> = match values {
        Values::Int64(values) => values[range].iter().map(|value| value.to_le_bytes().to_vec()).collect(),
        Values::Float32(values) => values[range].iter().map(|value| value.to_le_bytes().to_vec()).collect(),
        Values::Bytes(values) => range.map(|k| values.get(k).unwrap().to_vec()).collect(),
        Values::Array(values) => match values.bits() {
            ArrayBits::Bits8(values) => values[range].iter().map(|value| vec![*value]).collect(),
            ArrayBits::Bits16(values) => values[range].iter().map(|v| v.to_le_bytes().to_vec()).collect(),
            ArrayBits::Bits32(values) => values[range].iter().map(|v| v.to_le_bytes().to_vec()).collect(),
            ArrayBits::Bits64(values) => values[range].iter().map(|v| v.to_le_bytes().to_vec()).collect(),
        },
    };
    assert_ne!(array.dtype(), TensorDType::Complex64);
    all.into_iter().map(Nested::Value).collect()
}
