//! Selections: the records that meet a filter.

use crate::error::Result;
use crate::memory::zeroed;
use crate::order::Subset;
use crate::warning::Warning;

/// A set of records of a dataset, stored as one bit per record.
#[derive(Clone)]
pub(super) struct Selection {
    len: u64,
    words: Vec<u64>,
    warnings: Vec<Warning>,
}

impl Selection {
    pub(super) fn none(len: u64) -> Result<Selection> {
        Ok(Selection { len, words: zeroed(len.div_ceil(64))?, warnings: Vec::new() })
    }

    /// Returns the number of selected records.
    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the selected records, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.words.iter().zip(0u64..).flat_map(|(&word, k)| {
            let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
            let ones = std::iter::successors(Some(word).filter(|word| *word != 0), next);
            ones.map(move |left| k * 64 + u64::from(left.trailing_zeros()))
        })
    }

    /// Returns true if record `i` is selected.
    pub(super) fn contains(&self, i: u64) -> bool {
        self.words.get((i / 64) as usize).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// Returns the records and the warnings.
    pub(super) fn into_parts(self) -> (Subset, Vec<Warning>) {
        (Subset::from_bits(self.words), self.warnings)
    }

    /// Adds warnings that are not yet listed.
    pub(super) fn add_warnings<'w>(&mut self, warnings: impl Iterator<Item = &'w Warning>) {
        for warning in warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
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
