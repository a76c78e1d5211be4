//! A subset of the records: a sorted list of record numbers, or a bitmap with ranks, whichever is smaller.
//!
//! ```text
//! words     bitmap of 64 records per word, bit 0 first
//! ranks     number of survivors before each group of 8 words (a cache line)
//! samples   group of every 4096th survivor, from which a search starts
//! ```

#![expect(clippy::indexing_slicing, reason = "there are words and ranks for all records up to `end`")]

use super::digest::digest;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Words per group: one cache line.
const GROUP: usize = 8;
/// Number of survivors per entry of `samples`.
const SAMPLE: u64 = 4096;

/// A subset of the records, in ascending order of their numbers.
///
/// An order over a subset permutes the records in it (the *survivors*), and yields no others. Clones share
/// their memory: eight bytes per survivor, or 1.13 bits per record of the dataset if that is less. Finding
/// the k-th survivor takes one access to the list, or about three cache misses in the bitmap.
///
/// ```
/// use tfseek::order::Subset;
/// let odd = Subset::from_fn(10, |i| i % 2 == 1);
/// assert_eq!((odd.iter().count(), odd.iter().nth(3), odd.rank(7), odd.rank(8)), (5, Some(7), Some(3), None));
/// assert_eq!(odd, Subset::from_ids([1, 3, 5, 7, 9])?);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone)]
pub struct Subset(Arc<SubsetTable>);

struct SubsetTable {
    form: SubsetForm,
    len: u64,
    /// One more than the last survivor.
    end: u64,
    digest: OnceLock<u128>,
}

enum SubsetForm {
    Ids(Vec<u64>),
    Bits { words: Vec<u64>, ranks: Vec<u64>, samples: Vec<u64> },
}

impl Subset {
    /// Creates a subset from record numbers in ascending order.
    ///
    /// # Errors
    /// [`OrderError::Refused`](crate::error::OrderError::Refused), with the index, for a number that is not
    /// above the previous one, and for the number 2^64 - 1.
    pub fn from_ids(ids: impl Into<Vec<u64>>) -> Result<Subset> {
        let ids = ids.into();
        if let Some(at) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            let reason =
                format!("expected ascending ids, found ids[{}] = {} after {}", at + 1, ids[at + 1], ids[at]);
            return Err(Error::order(reason));
        }
        if ids.last() == Some(&u64::MAX) {
            return Err(Error::order("expected record numbers below 2^64 - 1, found 2^64 - 1"));
        }
        Ok(Subset::from_ascending(ids))
    }

    /// Creates a subset from record numbers that are ascending and below 2^64 - 1.
    pub(crate) fn from_ascending(ids: Vec<u64>) -> Subset {
        debug_assert!(ids.is_sorted_by(|a, b| a < b));
        let end = ids.last().map_or(0, |last| last + 1);
        let len = ids.len() as u64;
        // A bitmap takes 1.125 bits per record, so it is smaller if at least one in 57 records survives.
        if end / 57 < len && end >= 1024 {
            let mut bits = vec![0; end.div_ceil(64) as usize];
            for id in ids {
                bits[(id / 64) as usize] |= 1 << (id % 64);
            }
            return Subset::from_bits(bits);
        }
        Subset::make(SubsetForm::Ids(ids), len, end)
    }

    /// Creates a subset of the first `n` records: all for which `keep` returns true.
    pub fn from_fn(n: u64, mut keep: impl FnMut(u64) -> bool) -> Subset {
        let words = (0..n.div_ceil(64)).map(|word| {
            let begin = word * 64;
            (begin..n.min(begin + 64)).fold(0, |bits, i| bits | u64::from(keep(i)) << (i - begin))
        });
        Subset::from_bits(words.collect())
    }

    /// Creates a subset from a bitmap: bit k of word w is record 64 w + k.
    pub(crate) fn from_bits(words: Vec<u64>) -> Subset {
        let mut len = 0;
        let mut end = 0;
        let mut ranks = Vec::with_capacity(words.len() / GROUP + 1);
        let mut samples = Vec::new();
        for (group, words) in words.chunks(GROUP).enumerate() {
            ranks.push(len);
            for (w, word) in words.iter().enumerate() {
                len += u64::from(word.count_ones());
                if *word != 0 {
                    end = ((group * GROUP + w) * 64) as u64 + u64::from(64 - word.leading_zeros());
                }
            }
            while samples.len() as u64 * SAMPLE < len {
                samples.push(group as u64);
            }
        }
        Subset::make(SubsetForm::Bits { words, ranks, samples }, len, end)
    }

    fn make(form: SubsetForm, len: u64, end: u64) -> Subset {
        Subset(Arc::new(SubsetTable { form, len, end, digest: OnceLock::new() }))
    }

    /// Returns true if no record survives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of survivors.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Returns one more than the number of the last survivor, or 0 if there are no survivors.
    pub(super) fn end(&self) -> u64 {
        self.0.end
    }

    /// Returns the record number of the survivor at index `k`.
    pub fn select(&self, k: u64) -> Option<u64> {
        if k >= self.0.len {
            return None;
        }
        Some(match &self.0.form {
            SubsetForm::Ids(ids) => ids[k as usize],
            SubsetForm::Bits { words, ranks, samples } => {
                // The last group with at most k survivors before it.
                let sample = (k / SAMPLE) as usize;
                let low = samples[sample] as usize;
                let high = samples.get(sample + 1).map_or(ranks.len(), |group| *group as usize + 1);
                let group = low + ranks[low..high].partition_point(|rank| *rank <= k) - 1;
                let mut left = k - ranks[group];
                let mut at = group * GROUP;
                while left >= u64::from(words[at].count_ones()) {
                    left -= u64::from(words[at].count_ones());
                    at += 1;
                }
                at as u64 * 64 + u64::from(nth_bit(words[at], left))
            }
        })
    }

    /// Returns the index of a record among the survivors, or `None` if it is not in the subset.
    pub fn rank(&self, record: u64) -> Option<u64> {
        if record >= self.0.end {
            return None;
        }
        match &self.0.form {
            SubsetForm::Ids(ids) => ids.binary_search(&record).ok().map(|k| k as u64),
            SubsetForm::Bits { words, ranks, .. } => {
                let at = (record / 64) as usize;
                let bit = record % 64;
                let group = at / GROUP;
                let before: u32 = words[group * GROUP..at].iter().map(|word| word.count_ones()).sum();
                let inside = (words[at] & ((1 << bit) - 1)).count_ones();
                (words[at] >> bit & 1 == 1).then(|| ranks[group] + u64::from(before + inside))
            }
        }
    }

    /// Returns an iterator over all survivors.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (ids, words) = match &self.0.form {
            SubsetForm::Ids(ids) => (ids.as_slice(), [].as_slice()),
            SubsetForm::Bits { words, .. } => ([].as_slice(), words.as_slice()),
        };
        let of_words = words.iter().zip(0u64..).flat_map(|(&word, k)| {
            let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
            let ones = std::iter::successors(Some(word).filter(|word| *word != 0), next);
            ones.map(move |left| k * 64 + u64::from(left.trailing_zeros()))
        });
        ids.iter().copied().chain(of_words)
    }

    /// Returns the XXH3-128 of the survivors' numbers, which represents them in a state. It is computed once.
    pub(super) fn digest(&self) -> u128 {
        *self.0.digest.get_or_init(|| digest(self.iter()))
    }
}

/// Returns the position of the k-th set bit, counted from 0. The word must have more than k set bits.
fn nth_bit(mut word: u64, k: u64) -> u32 {
    for _ in 0..k {
        word &= word - 1;
    }
    word.trailing_zeros()
}

/// Subsets are equal if they have the same survivors, even if one is a list and the other a bitmap.
impl PartialEq for Subset {
    fn eq(&self, other: &Subset) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.len() == other.len() && self.end() == other.end() && self.iter().eq(other.iter()))
    }
}

impl Eq for Subset {}

impl fmt::Debug for Subset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subset").field("len", &self.len()).field("end", &self.end()).finish_non_exhaustive()
    }
}
