//! Numbers of occurrences of byte strings, as those of numbers in `frequent`. Strings of more than 256 bytes are counted by their length
//! and hash only.

use super::distinct::HyperLogLog;
use super::frequent::{EXACT, IntMap, MERGED, excess};
use xxhash_rust::xxh3::xxh3_64;

/// The longest byte string whose bytes are kept.
pub(crate) const KEPT: usize = 256;

/// A distinct byte string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextCounter {
    pub(crate) hash: u64,
    pub(crate) len: u64,
    /// Start of its bytes, if it is short.
    start: usize,
    pub(crate) count: u64,
}

/// Counters of byte strings.
#[derive(Clone)]
pub(crate) struct TextFrequencies {
    /// From hashes to counters. If two strings have one hash, the second one has the next key.
    pub(super) places: IntMap<u32>,
    pub(super) counters: Vec<TextCounter>,
    /// The bytes of the short strings.
    pub(super) bytes: Vec<u8>,
    pub(crate) keep: usize,
    pub(crate) missed: u64,
    pub(crate) distinct: Option<HyperLogLog>,
}

impl Default for TextFrequencies {
    fn default() -> TextFrequencies {
        TextFrequencies {
            places: IntMap::default(),
            counters: Vec::new(),
            bytes: Vec::new(),
            keep: EXACT,
            missed: 0,
            distinct: None,
        }
    }
}

impl TextFrequencies {
    /// Adds a byte string.
    #[inline]
    pub(crate) fn add(&mut self, text: &[u8]) {
        let hash = xxh3_64(text);
        if self.count(hash, text.len() as u64, text, 1) {
            match &mut self.distinct {
                Some(distinct) => distinct.add(hash),
                None if self.counters.len() > EXACT => self.approximate(EXACT),
                None => {}
            }
            if self.counters.len() > self.keep + self.keep / 4 {
                self.shrink();
            }
        }
    }

    /// Adds `n` to the counter of a string, whose bytes matter if it is short. Returns true for a new counter.
    pub(crate) fn count(&mut self, hash: u64, len: u64, text: &[u8], n: u64) -> bool {
        let mut key = hash;
        while let Some(place) = self.places.get(&key) {
            let counter = self.counters.get_mut(*place as usize);
            if let Some(counter) = counter.filter(|counter| counter.hash == hash && counter.len == len)
                && (len > KEPT as u64
                    || self.bytes.get(counter.start..counter.start + text.len()) == Some(text))
            {
                counter.count = counter.count.saturating_add(n);
                return false;
            }
            key = key.wrapping_add(1);
        }
        // There are far fewer counters than 2^32, because there are at most twice `keep`.
        self.places.insert(key, self.counters.len() as u32);
        self.counters.push(TextCounter { hash, len, start: self.bytes.len(), count: n });
        if len <= KEPT as u64 {
            self.bytes.extend_from_slice(text);
        }
        true
    }

    /// Returns the counters with the bytes of short strings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TextCounter, Option<&[u8]>)> {
        self.counters.iter().map(|counter| {
            let short = usize::try_from(counter.len).ok().filter(|len| *len <= KEPT);
            (*counter, short.and_then(|len| self.bytes.get(counter.start..counter.start + len)))
        })
    }

    /// Stops exact counting. At most about `keep` counters remain.
    pub(crate) fn approximate(&mut self, keep: usize) {
        let counters = &self.counters;
        self.distinct.get_or_insert_with(|| {
            let mut distinct = HyperLogLog::default();
            counters.iter().for_each(|counter| distinct.add(counter.hash));
            distinct
        });
        self.keep = self.keep.min(keep);
        if self.keep < EXACT {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        let excess = excess(self.counters.iter().map(|counter| counter.count), self.keep);
        if excess == 0 {
            return;
        }
        let mut kept = TextFrequencies { keep: self.keep, ..TextFrequencies::default() };
        for (counter, text) in self.iter().filter(|(counter, _)| counter.count > excess) {
            kept.count(counter.hash, counter.len, text.unwrap_or_default(), counter.count - excess);
        }
        kept.missed = self.missed.saturating_add(excess);
        kept.distinct = self.distinct.take();
        *self = kept;
    }

    /// Adds the counters of `other`.
    pub(crate) fn merge(&mut self, other: &TextFrequencies) {
        if let Some(theirs) = &other.distinct {
            self.approximate(other.keep);
            self.distinct.get_or_insert_default().merge(theirs);
        }
        let mut less = 0;
        if let Some(distinct) = &mut self.distinct {
            other.counters.iter().for_each(|counter| distinct.add(counter.hash));
            less = excess(other.counters.iter().map(|counter| counter.count), MERGED.min(self.keep));
        }
        self.missed = self.missed.saturating_add(other.missed).saturating_add(less);
        for (counter, text) in other.iter().filter(|(counter, _)| counter.count > less) {
            self.count(counter.hash, counter.len, text.unwrap_or_default(), counter.count - less);
        }
        if self.distinct.is_none() && self.counters.len() > EXACT {
            self.approximate(EXACT);
        }
        if self.counters.len() > self.keep + self.keep / 4 {
            self.shrink();
        }
    }

    /// Returns the number of counters.
    pub(crate) fn len(&self) -> usize {
        self.counters.len()
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        let counters = self.counters.capacity() * size_of::<TextCounter>() + self.bytes.capacity();
        (self.places.capacity() * 17 + counters) as u64 + self.distinct.as_ref().map_or(0, |_| 1 << 14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tfseek_testkit::rng::Rng;

    fn counted(texts: &[Vec<u8>]) -> TextFrequencies {
        let mut found = TextFrequencies::default();
        texts.iter().for_each(|text| found.add(text));
        found
    }

    #[test]
    fn counters_are_within_the_bound() {
        for seed in 0..1000 {
            let mut rng = Rng::new(seed);
            let (n, distinct) = if seed % 500 == 0 { (110_000, 1 << 40) } else { (200, 1 << (seed % 16)) };
            let text = |rng: &mut Rng| {
                let k = if rng.chance(90) { rng.below_u64(3) } else { rng.below_u64(distinct) };
                format!("{k}{}", "x".repeat((k % 300) as usize)).into_bytes()
            };
            let texts: Vec<_> = (0..n).map(|_| text(&mut rng)).collect();
            let mut exact = BTreeMap::new();
            texts.iter().for_each(|text| *exact.entry(text.clone()).or_insert(0u64) += 1);
            let by_hash: BTreeMap<u64, u64> = exact.iter().map(|(text, n)| (xxh3_64(text), *n)).collect();
            let mut merged = TextFrequencies::default();
            texts.chunks(1 + n / 4).for_each(|unit| merged.merge(&counted(unit)));
            for found in [counted(&texts), merged] {
                assert_eq!(found.distinct.is_none(), exact.len() <= EXACT);
                assert!(found.missed <= n as u64 / 4096 + 1);
                for (counter, text) in found.iter() {
                    let count = text.map_or_else(|| by_hash[&counter.hash], |text| exact[text]);
                    assert!(counter.count <= count && count - counter.count <= found.missed);
                }
                if found.distinct.is_none() {
                    assert_eq!(found.len(), exact.len());
                }
            }
        }
    }

    /// Strings with one hash keep counters of their own.
    #[test]
    fn equal_hashes_are_separate() {
        let mut found = TextFrequencies::default();
        for text in ["a", "b", "a"] {
            found.count(7, 1, text.as_bytes(), 1);
        }
        let counters: Vec<_> = found.iter().map(|(counter, text)| (counter.count, text.unwrap())).collect();
        assert_eq!(counters, [(2, &b"a"[..]), (1, b"b")]);
    }
}
