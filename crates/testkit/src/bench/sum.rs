//! Sums of the values of all columns. Every value must be read, so no column is fast only because it is not
//! read.

use tfseek::batch::{ArrayBits, Batch, BytesColumn, Values};

/// Wrapping sums of integers, of the bits of floats, of the lengths of byte strings, and of their bytes. They
/// do not depend on the order of values.
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

    /// Adds the numbers of arrays, of which floats are added as bits.
    fn bits<T: Copy + Into<u64>>(&mut self, values: &[T]) {
        self.floats = values.iter().fold(self.floats, |sum, &v| sum.wrapping_add(v.into()));
    }

    /// Adds one byte string.
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
                Values::Array(values) => match values.bits() {
                    ArrayBits::Bits8(bits) => self.string(bits),
                    ArrayBits::Bits16(bits) => self.bits(bits),
                    ArrayBits::Bits32(bits) => self.bits(bits),
                    ArrayBits::Bits64(bits) => self.bits(bits),
                },
            }
        }
    }
}

/// Returns the sum of the bytes. Bytes are added in lanes of 16 bits, in blocks that are too short for a lane
/// to overflow.
#[inline]
fn byte_sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    // The bytes after the last word are the end of the last eight bytes, if there are at least eight.
    let tail = match (bytes.last_chunk::<8>(), rest.len()) {
        (_, 0) => 0,
        (Some(last), n) => u64::from_le_bytes(*last) >> (8 * (8 - n)),
        (None, _) => rest.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)),
    };
    let mut total = across(pairs(tail));
    // Each word adds at most 2 * 255 to a 16-bit lane, so a block may have at most 128 words.
    for block in words.chunks(128) {
        total += across(block.iter().fold(0, |sum, w| sum + pairs(u64::from_le_bytes(*w))));
    }
    total
}

/// Returns the sums of neighbouring bytes, in lanes of 16 bits.
#[inline]
fn pairs(word: u64) -> u64 {
    const LOW: u64 = 0x00ff_00ff_00ff_00ff;
    (word & LOW) + (word >> 8 & LOW)
}

/// Returns the sum of four lanes.
#[inline]
fn across(lanes: u64) -> u64 {
    (0..4).map(|k| lanes >> (16 * k) & 0xffff).sum()
}
