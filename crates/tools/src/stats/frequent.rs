//! Numbers of occurrences of numbers: exact up to 65,536 distinct ones, then those of the algorithm of J. Misra and D. Gries (1982), with
//! the batches and the merging of P. Agarwal et al., "Mergeable summaries" (2013).
//!
//! A counter is then too low by at most `missed`, which is at most n / 4,096 for n values. Values without a counter occurred at most that
//! often. From then on the number of distinct values is estimated.

use super::distinct::HyperLogLog;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// The number of distinct values up to which counters are exact.
pub(crate) const EXACT: usize = 65_536;
/// The number of counters that a merged unit may add to counters that are no longer exact.
pub(crate) const MERGED: usize = 4_096;
/// The number of counters of a feature that is not counted exactly, to save memory.
pub(crate) const FEW: usize = 4_096;

/// A hasher of single integers, by a multiplication with 128 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntHasher(u64);

impl Hasher for IntHasher {
    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(xxh3_64(bytes));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map of integers.
pub(crate) type IntMap<V> = HashMap<u64, V, BuildHasherDefault<IntHasher>>;

/// Returns the number to subtract from each of these counters, so that at most `keep` are above 0.
pub(crate) fn excess(counts: impl Iterator<Item = u64>, keep: usize) -> u64 {
    let mut counts: Vec<u64> = counts.collect();
    if counts.len() <= keep {
        return 0;
    }
    let (_, excess, _) = counts.select_nth_unstable_by(keep, |a, b| b.cmp(a));
    *excess
}

/// Counters of numbers, by their bits.
#[derive(Clone)]
pub(crate) struct NumberFrequencies {
    pub(crate) counts: IntMap<u64>,
    /// Number of counters that are kept when there are too many.
    pub(crate) keep: usize,
    /// A counter is too low by at most this number.
    pub(crate) missed: u64,
    /// The distinct values, if counters are not exact.
    pub(crate) distinct: Option<HyperLogLog>,
}

impl Default for NumberFrequencies {
    fn default() -> NumberFrequencies {
        NumberFrequencies { counts: IntMap::default(), keep: EXACT, missed: 0, distinct: None }
    }
}

impl NumberFrequencies {
    /// Adds a number `n` times.
    #[inline]
    pub(crate) fn add(&mut self, bits: u64, n: u64) {
        let counter = self.counts.entry(bits).or_insert(0);
        let is_new = *counter == 0;
        *counter = counter.saturating_add(n);
        if is_new {
            self.added(bits);
        }
    }

    fn added(&mut self, bits: u64) {
        match &mut self.distinct {
            Some(distinct) => distinct.add(xxh3_64(&bits.to_le_bytes())),
            None if self.counts.len() > EXACT => self.approximate(EXACT),
            None => {}
        }
        if self.counts.len() > self.keep + self.keep / 4 {
            self.shrink();
        }
    }

    /// Stops exact counting. At most about `keep` counters remain.
    pub(crate) fn approximate(&mut self, keep: usize) {
        let keys = &self.counts;
        self.distinct.get_or_insert_with(|| {
            let mut distinct = HyperLogLog::default();
            keys.keys().for_each(|bits| distinct.add(xxh3_64(&bits.to_le_bytes())));
            distinct
        });
        self.keep = self.keep.min(keep);
        if self.keep < EXACT {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        let excess = excess(self.counts.values().copied(), self.keep);
        if excess > 0 {
            self.missed = self.missed.saturating_add(excess);
            self.counts.retain(|_, count| {
                *count = count.saturating_sub(excess);
                *count > 0
            });
            self.counts.shrink_to(self.keep + self.keep / 4);
        }
    }

    /// Adds the counters of `other`.
    pub(crate) fn merge(&mut self, other: &NumberFrequencies) {
        if let Some(theirs) = &other.distinct {
            self.approximate(other.keep);
            self.distinct.get_or_insert_default().merge(theirs);
        }
        let mut less = 0;
        if let Some(distinct) = &mut self.distinct {
            other.counts.keys().for_each(|bits| distinct.add(xxh3_64(&bits.to_le_bytes())));
            less = excess(other.counts.values().copied(), MERGED.min(self.keep));
        }
        self.missed = self.missed.saturating_add(other.missed).saturating_add(less);
        for (bits, count) in other.counts.iter().filter(|(_, count)| **count > less) {
            let counter = self.counts.entry(*bits).or_insert(0);
            *counter = counter.saturating_add(count - less);
        }
        if self.distinct.is_none() && self.counts.len() > EXACT {
            self.approximate(EXACT);
        }
        if self.counts.len() > self.keep + self.keep / 4 {
            self.shrink();
        }
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        (self.counts.capacity() * 17) as u64 + self.distinct.as_ref().map_or(0, |_| 1 << 14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tfseek_testkit::rng::Rng;

    fn check(found: &NumberFrequencies, values: &[u64]) {
        let mut exact = BTreeMap::new();
        values.iter().for_each(|value| *exact.entry(*value).or_insert(0u64) += 1);
        assert!(found.missed <= values.len() as u64 / 4096 + 1, "{}", found.missed);
        assert_eq!(found.distinct.is_none(), exact.len() <= EXACT);
        for (value, count) in &exact {
            let counter = found.counts.get(value).copied().unwrap_or(0);
            assert!(counter <= *count && count - counter <= found.missed, "{value} {counter} {count}");
        }
        assert!(found.counts.keys().all(|value| exact.contains_key(value)));
        let distinct = found.distinct.as_ref().map_or(found.counts.len() as u64, HyperLogLog::estimate);
        let error = (distinct as f64 - exact.len() as f64).abs() / exact.len() as f64;
        assert!(error < if found.distinct.is_some() { 0.04 } else { 1e-9 }, "{distinct} {}", exact.len());
    }

    /// Draws values, of which a few are frequent.
    fn draw(rng: &mut Rng, n: usize, distinct: u64) -> Vec<u64> {
        let value = |rng: &mut Rng| if rng.chance(100) { rng.below_u64(5) } else { rng.below_u64(distinct) };
        (0..n).map(|_| value(rng)).collect()
    }

    fn counted(values: &[u64]) -> NumberFrequencies {
        let mut found = NumberFrequencies::default();
        values.iter().for_each(|value| found.add(*value, 1));
        found
    }

    #[test]
    fn counters_are_within_the_bound() {
        for seed in 0..1000 {
            let mut rng = Rng::new(seed);
            let (n, distinct) = if seed % 500 == 0 { (150_000, 1 << 40) } else { (300, 1 << (seed % 20)) };
            let values = draw(&mut rng, n, distinct);
            check(&counted(&values), &values);
            let mut merged = NumberFrequencies::default();
            let units: Vec<_> = values.chunks(1 + n / 5).map(counted).collect();
            units.iter().for_each(|unit| merged.merge(unit));
            check(&merged, &values);
        }
    }

    #[test]
    fn few_counters_remain_without_exact_counting() {
        let values = draw(&mut Rng::new(3), 150_000, 1 << 40);
        let mut found = counted(&values[..50_000]);
        found.approximate(FEW);
        values[50_000..].iter().for_each(|value| found.add(*value, 1));
        assert!(found.counts.len() <= FEW + FEW / 4);
        check(&found, &values);
    }
}
