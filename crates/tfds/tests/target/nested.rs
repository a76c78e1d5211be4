//! Values in one form, to compare those of a record with those of a row of a batch.

use tfseek::TensorDType;
use tfseek::batch::{ArrayBits, Column, RowSplits, Values};
use tfseek_tfds::{Array, RecordValue};

/// Nested lists of the bytes of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nested {
    Missing,
    Item(Vec<u8>),
    List(Vec<Nested>),
}

/// Returns value `k` as bytes, lowest first.
pub(crate) fn item(values: &Values, dtype: TensorDType, k: usize) -> Vec<u8> {
    fn part<T: Copy, const N: usize>(values: &[T], k: usize, n: usize, of: fn(T) -> [u8; N]) -> Vec<u8> {
        values[k * n..(k + 1) * n].iter().flat_map(|value| of(*value)).collect()
    }
    match values {
        Values::Int64(values) => values[k].to_le_bytes().to_vec(),
        Values::Float32(values) => values[k].to_bits().to_le_bytes().to_vec(),
        Values::Bytes(values) => values.get(k).unwrap().to_vec(),
        Values::Array(values) => {
            let n = if matches!(dtype, TensorDType::Complex64 | TensorDType::Complex128) { 2 } else { 1 };
            match values.bits() {
                ArrayBits::Bits8(values) => part(values, k, n, u8::to_le_bytes),
                ArrayBits::Bits16(values) => part(values, k, n, u16::to_le_bytes),
                ArrayBits::Bits32(values) => part(values, k, n, u32::to_le_bytes),
                ArrayBits::Bits64(values) => part(values, k, n, u64::to_le_bytes),
            }
        }
    }
}

/// Returns the values of this shape that start at value `start`.
fn shaped(values: &Values, dtype: TensorDType, shape: &[usize], start: usize) -> Nested {
    let Some((size, inner)) = shape.split_first() else { return Nested::Item(item(values, dtype, start)) };
    let step: usize = inner.iter().product();
    Nested::List((0..*size).map(|k| shaped(values, dtype, inner, start + k * step)).collect())
}

fn of_array(array: &Array) -> Nested {
    let (values, start) = array.values();
    shaped(values, array.dtype(), array.shape(), start)
}

/// Returns a value of a record. Dicts and steps have no form.
pub(crate) fn of_record(value: &RecordValue) -> Option<Nested> {
    Some(match value {
        RecordValue::None => Nested::Missing,
        RecordValue::Array(array) => of_array(array),
        RecordValue::List(values) => Nested::List(values.iter().map(of_record).collect::<Option<_>>()?),
        RecordValue::Ragged { values, row_splits } => {
            let Nested::List(mut items) = of_array(values) else { return None };
            for splits in row_splits.iter().rev() {
                let mut all = items.into_iter();
                let row =
                    |ends: &[i64]| Nested::List(all.by_ref().take((ends[1] - ends[0]) as usize).collect());
                items = splits.windows(2).map(row).collect();
            }
            Nested::List(items)
        }
        _ => return None,
    })
}

/// Returns the values of a row of a column.
pub(crate) fn of_row(column: &Column, dtype: TensorDType, row: usize) -> Nested {
    match column {
        Column::Dense(dense) => {
            let shape = &dense.shape[1..];
            shaped(&dense.values, dtype, shape, row * shape.iter().product::<usize>())
        }
        Column::Optional(optional) => {
            let shape = &optional.shape[1..];
            let len: usize = shape.iter().product();
            match optional.present.get(row * len) {
                Some(0) => Nested::Missing,
                _ => shaped(&optional.values, dtype, shape, row * len),
            }
        }
        Column::Ragged(ragged) => {
            let splits: Vec<&[i64]> = ragged
                .row_splits
                .iter()
                .map(|splits| match splits {
                    RowSplits::Int64(splits) => &**splits,
                    RowSplits::Int32(_) => panic!("32-bit row splits"),
                })
                .collect();
            let shape = &ragged.shape[1..];
            let len: usize = shape.iter().product();
            let end = splits.last().map_or(0, |splits| *splits.last().unwrap() as usize);
            if len > 0 {
                assert_eq!(end * len, ragged.values.len(), "row splits end with the values");
            }
            nested(&splits, row, &|k| shaped(&ragged.values, dtype, shape, k * len))
        }
        Column::Sparse(_) => panic!("a sparse column"),
    }
}

fn nested(splits: &[&[i64]], element: usize, items: &impl Fn(usize) -> Nested) -> Nested {
    let Some((first, rest)) = splits.split_first() else { return items(element) };
    let range = first[element] as usize..first[element + 1] as usize;
    Nested::List(range.map(|k| nested(rest, k, items)).collect())
}
