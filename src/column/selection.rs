//! Selections: the records that meet a filter.

use crate::error::Result;
use crate::memory::zeroed;
use crate::order::Subset;

/// A set of records of a dataset, stored as one bit per record.
#[derive(Clone)]
pub(super) struct Selection {
    len: u64,
    words: Vec<u64>,
}

impl Selection {
    pub(super) fn none(len: u64) -> Result<Selection> {
        Ok(Selection { len, words: zeroed(len.div_ceil(64))? })
    }

    /// Returns the number of selected records.
    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns true if record `i` is selected.
    pub(super) fn contains(&self, i: u64) -> bool {
        self.words.get((i / 64) as usize).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// Returns the selected records.
    pub(super) fn into_subset(self) -> Subset {
        Subset::from_bits(self.words)
    }

    pub(super) fn insert(&mut self, i: u64) {
        if let Some(word) = self.words.get_mut((i / 64) as usize) {
            *word |= 1 << (i % 64);
        }
    }

    pub(super) fn zip(mut self, other: &Selection, f: impl Fn(u64, u64) -> u64) -> Selection {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a = f(*a, *b));
        self
    }

    pub(super) fn invert(mut self) -> Selection {
        self.words.iter_mut().for_each(|word| *word = !*word);
        if let Some(last) = self.words.last_mut().filter(|_| !self.len.is_multiple_of(64)) {
            *last &= (1 << (self.len % 64)) - 1;
        }
        self
    }
}
