//! Byte strings that repeat: equal values of a column become the same `bytes` object.
//!
//! A [`StringCache`] keeps at most 1,024 objects of at most 64 bytes. It first samples the hashes of a
//! column, without keeping objects, and is used only while nearly all values are found in it, as the values
//! of up to 200 classes are. A new object takes recently freed memory, which is in the processor's cache, so
//! it costs less than a reference to one of thousands of objects. Columns of names and ids cost a few
//! samples. With 1,000 classes in each of 20 columns an epoch took 1.4 times as long.

use crate::headroom;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Number of pairs of objects of a cache. A value's hash determines its pair.
const PAIRS: usize = 1 << PAIR_BITS;
const PAIR_BITS: u32 = 9;
/// Maximum length of a value in a cache.
const MAX_LEN: usize = 64;
/// Number of values between two decisions about the use of a cache.
const BLOCK: u32 = 256;
/// A block that begins the use of a cache has at least this number of values that occurred before.
const MANY: u32 = BLOCK / 32 * 31;
/// A block that ends its use has fewer. So does one that ends a sample early.
const FEW: u32 = BLOCK / 16 * 15;
const HARDLY_ANY: u32 = BLOCK / 4;
/// Maximum number of blocks of a sample. Classes need a few blocks until most of them have occurred.
const SAMPLE_BLOCKS: u32 = 8;
/// Number of values that are not sampled after a sample without many repeated values. It doubles with each
/// one.
const FIRST_REST: u32 = 1 << 15;
const LONGEST_REST: u32 = 1 << 18;

/// The objects of one column.
pub(crate) struct StringCache {
    mode: Mode,
    /// Number of values until the next decision.
    left: u32,
    /// Number of values of this block that occurred before.
    repeated: u32,
    /// Number of blocks since the mode began.
    blocks: u32,
    /// Length of the next rest.
    rest: u32,
}

enum Mode {
    /// Hashes of the last two values of each pair.
    Sampling(Vec<[u32; 2]>),
    Caching(Vec<[CachedString; 2]>),
    Resting,
}

#[derive(Default)]
struct CachedString {
    hash: u32,
    object: Option<Py<PyBytes>>,
}

impl CachedString {
    #[inline]
    fn get(&self, py: Python<'_>, hash: u32, value: &[u8]) -> Option<Py<PyAny>> {
        let object = self.object.as_ref().filter(|_| self.hash == hash)?;
        (object.as_bytes(py) == value).then(|| object.clone_ref(py).into_any())
    }
}

impl Default for StringCache {
    fn default() -> StringCache {
        StringCache {
            mode: Mode::Sampling(Vec::new()),
            left: BLOCK,
            repeated: 0,
            blocks: 0,
            rest: FIRST_REST,
        }
    }
}

impl StringCache {
    /// Returns an object with these bytes: a new one, or one that was returned before.
    ///
    /// # Errors
    /// `MemoryError`.
    #[inline]
    pub(crate) fn bytes(&mut self, py: Python<'_>, value: &[u8]) -> PyResult<Py<PyAny>> {
        if value.len() > MAX_LEN {
            return new_bytes(py, value);
        }
        if self.left == 0 {
            self.decide();
        }
        self.left -= 1;
        match &mut self.mode {
            Mode::Resting => new_bytes(py, value),
            Mode::Sampling(hashes) => {
                if hashes.is_empty() {
                    hashes.resize(PAIRS, [0; 2]);
                }
                let (pair, hash) = pair_and_hash(value);
                if let Some([last, other]) = hashes.get_mut(pair)
                    && *last != hash
                {
                    std::mem::swap(last, other);
                    self.repeated += u32::from(*last == hash);
                    *last = hash;
                } else {
                    self.repeated += 1;
                }
                new_bytes(py, value)
            }
            Mode::Caching(objects) => {
                let (pair, hash) = pair_and_hash(value);
                let Some([last, other]) = objects.get_mut(pair) else { return new_bytes(py, value) };
                if let Some(found) = last.get(py, hash, value).or_else(|| other.get(py, hash, value)) {
                    self.repeated += 1;
                    return Ok(found);
                }
                let object = PyBytes::new(py, value).unbind();
                std::mem::swap(last, other);
                let new = CachedString { hash, object: Some(object.clone_ref(py)) };
                if let Some(old) = std::mem::replace(last, new).object {
                    old.drop_ref(py);
                }
                Ok(object.into_any())
            }
        }
    }

    /// Returns true if the cache is not used for the next `n` values, which are all made without it.
    pub(crate) fn skips(&mut self, n: usize) -> bool {
        let left = u32::try_from(n).ok().and_then(|n| self.left.checked_sub(n));
        match (&self.mode, left) {
            (Mode::Resting, Some(left)) => {
                self.left = left;
                true
            }
            _ => false,
        }
    }

    /// Decides after a block of values whether to use the cache.
    #[cold]
    fn decide(&mut self) {
        let repeated = std::mem::take(&mut self.repeated);
        self.left = BLOCK;
        self.blocks = self.blocks.saturating_add(1);
        match &self.mode {
            Mode::Sampling(_) if repeated >= MANY => {
                self.begin(Mode::Caching(std::iter::repeat_with(Default::default).take(PAIRS).collect()));
                self.rest = FIRST_REST;
            }
            Mode::Sampling(_) => {
                let is_unique = self.blocks > 1 && repeated < HARDLY_ANY;
                if is_unique || self.blocks >= SAMPLE_BLOCKS {
                    self.begin_rest();
                }
            }
            // The first blocks fill the cache.
            Mode::Caching(_) if self.blocks >= SAMPLE_BLOCKS && repeated < FEW => self.begin_rest(),
            Mode::Caching(_) => {}
            Mode::Resting => self.begin(Mode::Sampling(Vec::new())),
        }
    }

    fn begin(&mut self, mode: Mode) {
        (self.mode, self.blocks) = (mode, 0);
    }

    fn begin_rest(&mut self) {
        self.begin(Mode::Resting);
        self.left = self.rest;
        self.rest = (self.rest * 2).min(LONGEST_REST);
    }
}

/// Returns a new object.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn new_bytes(py: Python<'_>, value: &[u8]) -> PyResult<Py<PyAny>> {
    Ok(headroom::bytes(py, value)?.into_any().unbind())
}

/// Returns the pair of a value and a part of its hash that does not determine the pair. The hash is never 0.
#[inline]
fn pair_and_hash(value: &[u8]) -> (usize, u32) {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    };
    let mut hash = (value.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = value.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    if let Some(last) = value.last_chunk::<8>() {
        hash = mix(hash, u64::from_le_bytes(*last));
    } else if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        let first = u32::from_le_bytes(*first);
        let last = u32::from_le_bytes(*last);
        hash = mix(hash, u64::from(first) | u64::from(last) << 32);
    } else {
        hash = rest.iter().fold(hash, |hash, byte| mix(hash, (*byte).into()));
    }
    let hash = hash.wrapping_mul(FACTOR);
    ((hash >> (64 - PAIR_BITS)) as usize, (hash >> 16) as u32 | 1)
}
