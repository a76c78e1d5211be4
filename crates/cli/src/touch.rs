//! The sum of all values: what a training loop at least does, it looks at each of them.
//!
//! Values are added as numbers of 64 bits, floats by their bits, byte strings by their words. A sum does not depend on the order
//! of what is added.

use std::hint::black_box;
use tfseek::batch::{Batch, BytesColumn, Column, RowSplits, Values};

/// The sum over all columns. Indices and splits, which say how rows came together, are looked at and not added.
pub(crate) fn batch(batch: &Batch) -> u64 {
    let columns = batch.columns().chain(batch.feature_lists());
    columns.fold(0, |sum: u64, (_, column)| sum.wrapping_add(self::column(column)))
}

fn column(column: &Column) -> u64 {
    match column {
        Column::Dense(_) => {}
        Column::Sparse(sparse) => drop(black_box(integers(&sparse.indices))),
        Column::Ragged(ragged) => ragged.row_splits.iter().for_each(|splits| {
            black_box(match splits {
                RowSplits::Int32(splits) => splits.iter().fold(0, |sum: i32, &x| sum.wrapping_add(x)) as u64,
                RowSplits::Int64(splits) => integers(splits),
            });
        }),
    }
    values(column.values())
}

fn values(values: &Values) -> u64 {
    match values {
        Values::Int64(values) => integers(values),
        Values::Float32(values) => values.iter().fold(0, |sum: u64, x| sum.wrapping_add(x.to_bits().into())),
        Values::Bytes(values) => strings(values),
    }
}

fn integers(values: &[i64]) -> u64 {
    values.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x as u64))
}

fn strings(values: &BytesColumn) -> u64 {
    values.iter().fold(0, |sum: u64, value| sum.wrapping_add(bytes(value)))
}

/// The sum of the words of a byte string, the last of which is filled up with zeros.
pub(crate) fn bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    let last = rest.iter().rev().fold(0, |word: u64, &byte| word << 8 | u64::from(byte));
    sum.wrapping_add(last)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn words_and_what_is_left() {
        assert_eq!(bytes(b""), 0);
        assert_eq!(bytes(&[1, 2]), 0x0201);
        assert_eq!(bytes(&[1, 0, 0, 0, 0, 0, 0, 0x80, 3]), 0x8000_0000_0000_0004);
        // Each byte counts, and none twice.
        for len in 0..40 {
            let ones = vec![1; len];
            let want = (0..len).fold(0u64, |sum, k| sum.wrapping_add(1 << (8 * (k % 8))));
            assert_eq!(bytes(&ones), want);
        }
    }
}
