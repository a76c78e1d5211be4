//! All values of all columns in four numbers: no column is fast because nobody reads it.

use tfseek::batch::{Batch, BytesColumn, Values};

/// Sums that do not depend on the order of values: wrapping, of integers, of the bits of floats, of the lengths of byte strings
/// and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub ints: u64,
    pub floats: u64,
    pub lens: u64,
    pub bytes: u64,
}

impl Sum {
    pub fn ints(&mut self, values: &[i64]) {
        self.ints = values.iter().fold(self.ints, |sum, &v| sum.wrapping_add(v as u64));
    }

    pub fn floats(&mut self, values: &[f32]) {
        self.floats = values.iter().fold(self.floats, |sum, v| sum.wrapping_add(u64::from(v.to_bits())));
    }

    /// One byte string.
    pub fn string(&mut self, value: &[u8]) {
        self.lens = self.lens.wrapping_add(value.len() as u64);
        self.bytes = self.bytes.wrapping_add(byte_sum(value));
    }

    fn strings(&mut self, values: &BytesColumn) {
        values.iter().for_each(|value| self.string(value));
    }

    pub fn batch(&mut self, batch: &Batch) {
        for (_, column) in batch.columns() {
            match column.values() {
                Values::Int64(values) => self.ints(values),
                Values::Float32(values) => self.floats(values),
                Values::Bytes(values) => self.strings(values),
            }
        }
    }
}

/// Each lane of a word holds the sum of its own bytes: the fold is short enough for none to run over.
#[inline]
fn byte_sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    // What the words leave is the end of the last eight bytes, if there are so many.
    let tail = match (bytes.last_chunk::<8>(), rest.len()) {
        (_, 0) => 0,
        (Some(last), n) => u64::from_le_bytes(*last) >> (8 * (8 - n)),
        (None, _) => rest.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)),
    };
    let mut total = across(pairs(tail));
    // A 16-bit lane takes 2 * 255 a word: 128 words are the most.
    for block in words.chunks(128) {
        total += across(block.iter().fold(0, |sum, w| sum + pairs(u64::from_le_bytes(*w))));
    }
    total
}

/// The sums of neighbouring bytes, in lanes of 16 bits.
#[inline]
fn pairs(word: u64) -> u64 {
    const LOW: u64 = 0x00ff_00ff_00ff_00ff;
    (word & LOW) + (word >> 8 & LOW)
}

/// The sum of four lanes.
#[inline]
fn across(lanes: u64) -> u64 {
    (0..4).map(|k| lanes >> (16 * k) & 0xffff).sum()
}
