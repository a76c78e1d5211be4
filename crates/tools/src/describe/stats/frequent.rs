//! Numbers of occurrences of numbers: exact up to 65,536 distinct ones, then by the algorithm of J. Misra and
//! D. Gries (1982), with the batches and the merging of P. Agarwal et al., "Mergeable summaries" (2013).
//!
//! A counter is then too low by at most `missed`, which is at most n / 4,096 for n values. Values without a
//! counter occurred at most that often. From then on the number of distinct values is estimated.
//!
//! Values are collected in blocks, which are sorted and merged with the counters in ascending order. That
//! takes a third of the time of hash tables, and less memory: tables of 200 features do not fit into caches.

use super::distinct::HyperLogLog;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// The number of distinct values up to which counters are exact.
pub(crate) const EXACT: usize = 65_536;
/// The number of counters that a merged unit may add to counters that are no longer exact. Columns of ids
/// have a new value in each record, and to merge all would cost more than reading. The bound of the error
/// grows from 1/65,536 to 1/4,096.
pub(crate) const MERGED: usize = 4_096;
/// The number of counters of a feature that is not counted exactly, to save memory.
pub(crate) const FEW: usize = 4_096;
/// The number of values that are collected, sorted and added together. With more counters than that, it is
/// their number, so that a value takes part in about two merges.
pub(super) const BLOCK: usize = 16_384;

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

/// Merges two lists in ascending order, without equal items in either. `sum` adds the counters of equal
/// items, and `new` is called with the items of `b` that are not in `a`.
pub(super) fn merged<T: Copy>(
    a: &[T],
    b: &[T],
    order: impl Fn(&T, &T) -> Ordering,
    sum: impl Fn(T, T) -> T,
    mut new: impl FnMut(T) -> T,
) -> Vec<T> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let mut rest = a.iter().copied().peekable();
    for &item in b {
        while let Some(before) = rest.next_if(|other| order(other, &item).is_lt()) {
            all.push(before);
        }
        all.push(match rest.next_if(|other| order(other, &item).is_eq()) {
            Some(equal) => sum(equal, item),
            None => new(item),
        });
    }
    all.extend(rest);
    if all.len() < all.capacity() / 2 {
        all.shrink_to_fit();
    }
    all
}

/// Counters of numbers, by their bits.
#[derive(Clone)]
pub(crate) struct NumberFrequencies {
    /// Bits and their counters, in ascending order.
    pub(crate) counts: Vec<(u64, u64)>,
    /// Number of counters that are kept when there are too many.
    pub(crate) keep: usize,
    /// Bound of the error of a counter.
    pub(crate) missed: u64,
    /// The distinct values, if counters are not exact.
    pub(crate) distinct: Option<HyperLogLog>,
}

impl Default for NumberFrequencies {
    fn default() -> NumberFrequencies {
        NumberFrequencies { counts: Vec::new(), keep: EXACT, missed: 0, distinct: None }
    }
}

impl NumberFrequencies {
    /// Adds numbers with their counters, in any order.
    pub(crate) fn add_counts(&mut self, mut counts: Vec<(u64, u64)>) {
        counts.sort_unstable();
        counts.dedup_by(|next, first| {
            let equal = next.0 == first.0;
            if equal {
                first.1 += next.1;
            }
            equal
        });
        self.add_runs(&counts);
    }

    /// Adds numbers in ascending order.
    pub(crate) fn add_sorted(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for bits in numbers {
            match runs.last_mut() {
                Some((last, n)) if *last == bits => *n += 1,
                _ => runs.push((bits, 1)),
            }
        }
        if self.counts.is_empty() && self.distinct.is_none() && runs.len() <= self.keep {
            self.counts = runs;
        } else {
            self.add_runs(&runs);
        }
    }

    /// Adds distinct numbers with their counters, in ascending order.
    fn add_runs(&mut self, runs: &[(u64, u64)]) {
        if let Some(distinct) = &mut self.distinct {
            runs.iter().for_each(|(bits, _)| distinct.add(xxh3_64(&bits.to_le_bytes())));
        }
        self.count(runs);
    }

    fn count(&mut self, runs: &[(u64, u64)]) {
        let order = |a: &(u64, u64), b: &(u64, u64)| a.0.cmp(&b.0);
        self.counts = merged(&self.counts, runs, order, |a, b| (a.0, a.1 + b.1), |new| new);
        if self.distinct.is_none() && self.counts.len() > EXACT {
            self.approximate(EXACT);
        }
        if self.counts.len() > self.keep + self.keep / 4 {
            self.shrink();
        }
    }

    /// Stops exact counting. At most about `keep` counters remain.
    pub(crate) fn approximate(&mut self, keep: usize) {
        if self.distinct.is_none() {
            let distinct = self.distinct.insert(HyperLogLog::default());
            self.counts.iter().for_each(|(bits, _)| distinct.add(xxh3_64(&bits.to_le_bytes())));
        }
        self.keep = self.keep.min(keep);
        if self.keep < EXACT {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        let excess = excess(self.counts.iter().map(|(_, n)| *n), self.keep);
        if excess > 0 {
            self.missed += excess;
            self.counts.retain(|(_, n)| *n > excess);
            self.counts.iter_mut().for_each(|(_, n)| *n -= excess);
            self.counts.shrink_to(self.keep + self.keep / 4);
        }
    }

    /// Returns the number of values that are collected before they are added together.
    #[inline]
    pub(super) fn block(&self) -> usize {
        BLOCK.min(self.keep).max(self.counts.len())
    }

    /// Adds the counters of `other`.
    pub(crate) fn merge(&mut self, other: &NumberFrequencies) {
        if let Some(theirs) = &other.distinct {
            self.approximate(other.keep);
            self.distinct.get_or_insert_default().merge(theirs);
        }
        let mut less = 0;
        if let Some(distinct) = &mut self.distinct {
            other.counts.iter().for_each(|(bits, _)| distinct.add(xxh3_64(&bits.to_le_bytes())));
            less = excess(other.counts.iter().map(|(_, n)| *n), MERGED.min(self.keep));
        }
        self.missed += other.missed + less;
        if less == 0 {
            self.count(&other.counts);
        } else {
            let more = other.counts.iter().filter(|(_, n)| *n > less);
            let runs: Vec<_> = more.map(|(bits, n)| (*bits, n - less)).collect();
            self.count(&runs);
        }
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        (self.counts.capacity() * 16) as u64 + self.distinct.as_ref().map_or(0, |_| 1 << 14)
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
            let place = found.counts.binary_search_by_key(value, |(bits, _)| *bits);
            let counter = place.map_or(0, |place| found.counts[place].1);
            assert!(counter <= *count && count - counter <= found.missed, "{value} {counter} {count}");
        }
        assert!(found.counts.iter().all(|(value, _)| exact.contains_key(value)));
        assert!(found.counts.is_sorted_by(|a, b| a.0 < b.0));
        let distinct = found.distinct.as_ref().map_or(found.counts.len() as u64, HyperLogLog::estimate);
        let error = (distinct as f64 - exact.len() as f64).abs() / exact.len() as f64;
        assert!(error < if found.distinct.is_some() { 0.04 } else { 1e-9 }, "{distinct} {}", exact.len());
    }

    /// Draws values, of which a few are frequent.
    fn draw(rng: &mut Rng, n: usize, distinct: u64) -> Vec<u64> {
        let value = |rng: &mut Rng| if rng.chance(100) { rng.below_u64(5) } else { rng.below_u64(distinct) };
        (0..n).map(|_| value(rng)).collect()
    }

    fn add(found: &mut NumberFrequencies, mut values: &[u64]) {
        while let Some((block, rest)) = values.split_at_checked(found.block().min(values.len()))
            && !block.is_empty()
        {
            let mut block = block.to_vec();
            block.sort_unstable();
            found.add_sorted(block.into_iter());
            values = rest;
        }
    }

    fn counted(values: &[u64]) -> NumberFrequencies {
        let mut found = NumberFrequencies::default();
        add(&mut found, values);
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
        add(&mut found, &values[50_000..]);
        assert!(found.counts.len() <= FEW + FEW / 4);
        check(&found, &values);
    }
}
