//! The sum of all values of a batch. Like a training loop, it reads every value.
//!
//! Values are added as 64-bit numbers, floats by their bits, byte strings by their words. A sum does not
//! depend on the order of its terms.

use std::hint::black_box;
use tfseek::batch::{ArrayBits, Batch, Column, RowSplits, Values};

/// Returns the sum over all columns. Presence, indices and row splits are read but not added, because they
/// depend on the batch.
pub(crate) fn batch(batch: &Batch) -> u64 {
    let columns = batch.columns().chain(batch.feature_lists());
    columns.fold(0, |sum: u64, (_, column)| sum.wrapping_add(self::column(column)))
}

fn column(column: &Column) -> u64 {
    match column {
        Column::Dense(_) => {}
        Column::Optional(optional) => {
            black_box(optional.present.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x.into())));
        }
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
        Values::Bytes(values) => values.iter().fold(0, |sum: u64, value| sum.wrapping_add(bytes(value))),
        Values::Array(values) => match values.bits() {
            ArrayBits::Bits8(bits) => bytes(bits),
            ArrayBits::Bits16(bits) => bits.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x.into())),
            ArrayBits::Bits32(bits) => bits.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x.into())),
            ArrayBits::Bits64(bits) => bits.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x)),
        },
    }
}

fn integers(values: &[i64]) -> u64 {
    values.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x as u64))
}

/// Returns the sum of the 8-byte words of a byte string. The last word is padded with zeros.
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
    fn words_and_the_remainder() {
        assert_eq!(bytes(b""), 0);
        assert_eq!(bytes(&[1, 2]), 0x0201);
        assert_eq!(bytes(&[1, 0, 0, 0, 0, 0, 0, 0x80, 3]), 0x8000_0000_0000_0004);
        // Each byte is added exactly once.
        for len in 0..40 {
            let ones = vec![1; len];
            let want = (0..len).fold(0u64, |sum, k| sum.wrapping_add(1 << (8 * (k % 8))));
            assert_eq!(bytes(&ones), want);
        }
    }
}
