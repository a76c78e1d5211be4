//! Statistics of the numbers of a feature.

use super::bounds::{Bounds, joined, widened};
use super::counters::{Cell, KeyCounters, cells, float_cell, float_key, int_cell, int_key};
use super::frequent::{BLOCK, FEW, NumberFrequencies};
use super::moments::Moments;
use std::borrow::Cow;
use tfseek::List;

/// Number of values whose mean is computed in two passes.
const MEANS: usize = 256;
/// Number of values of a list from which they are added to the table one by one.
const MANY: usize = 64;
/// The longest list that is decoded at once.
const DECODED: usize = 1 << 16;

/// The bits of values that are not added to the sketches yet. It comes first in its statistics, in one cache
/// line.
#[derive(Clone)]
struct NumberBlock<T> {
    bits: Vec<T>,
    /// Number of values from which they are added.
    full: usize,
}

impl<T> Default for NumberBlock<T> {
    fn default() -> NumberBlock<T> {
        NumberBlock { bits: Vec::new(), full: BLOCK }
    }
}

impl<T: Copy + Ord + Into<u64>> NumberBlock<T> {
    /// Adds the values to their moments and frequencies, and empties the block. `each` is called with the
    /// bits of each value, and returns the value.
    fn drain(
        &mut self,
        moments: &mut Moments,
        frequencies: &mut NumberFrequencies,
        mut each: impl FnMut(T) -> f64,
    ) {
        for values in self.bits.chunks(MEANS) {
            let mut floats = [0.0; MEANS];
            for (float, &bits) in floats.iter_mut().zip(values) {
                *float = each(bits);
            }
            if let Some(floats) = floats.get(..values.len()) {
                moments.merge(&Moments::of(floats));
            }
        }
        self.bits.sort_unstable();
        frequencies.add_sorted(self.bits.drain(..).map(Into::into));
        self.full = frequencies.block();
    }
}

/// Statistics of integers.
///
/// Numbers below 65,536 have a counter each, in a table, which gives their moments and ranks exactly. The
/// other numbers are in the sketches.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct IntStats {
    block: NumberBlock<u64>,
    /// Counters of the numbers below 65,536, by number. Empty if exact counting has ended: the numbers are
    /// then in `counters`.
    pub(crate) table: KeyCounters,
    pub(crate) is_exact: bool,
    pub(crate) counters: KeyCounters,
    pub(crate) frequencies: NumberFrequencies,
    /// Moments and bounds of the numbers in `counters`.
    pub(crate) moments: Moments,
    pub(crate) bounds: Bounds<i64>,
}

impl IntStats {
    pub(crate) fn new() -> IntStats {
        IntStats { is_exact: true, ..IntStats::default() }
    }

    /// Adds the values of a list. `scratch` keeps its memory.
    #[inline]
    pub(crate) fn add_list(&mut self, list: List<'_, i64>, scratch: &mut Vec<i64>) {
        if list.len() == 1 {
            list.first().into_iter().for_each(|value| self.add(value));
        } else if list.len() <= DECODED {
            scratch.resize(list.len(), 0);
            // The lengths are equal, so this cannot fail.
            if list.decode_into(scratch).is_ok() {
                match list.len() {
                    ..MANY => scratch.iter().for_each(|value| self.add(*value)),
                    _ => scratch.iter().for_each(|value| self.add_of_many(*value)),
                }
            }
        } else {
            list.iter().for_each(|value| self.add_of_many(value));
        }
    }

    /// Adds a value of a long list. The other values of the list load the table into the caches.
    #[inline]
    fn add_of_many(&mut self, value: i64) {
        match u16::try_from(value) {
            Ok(key) if self.is_exact => self.table.add(key, 1),
            _ => self.add(value),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: i64) {
        self.block.bits.push(value as u64);
        if self.block.bits.len() >= self.block.full {
            self.flush();
        }
    }

    /// Adds what was collected to the table and the sketches. It precedes reading and merging.
    pub(crate) fn flush(&mut self) {
        if self.is_exact {
            self.block.bits.retain(|&bits| match u16::try_from(bits) {
                Ok(key) => {
                    self.table.add(key, 1);
                    false
                }
                Err(_) => true,
            });
        }
        self.block.drain(&mut self.moments, &mut self.frequencies, |bits| {
            let value = bits as i64;
            self.bounds = widened(self.bounds, value);
            self.counters.add(int_key(value), 1);
            value as f64
        });
    }

    /// Ends exact counting, to save memory.
    pub(crate) fn approximate(&mut self) {
        self.flush();
        if self.is_exact {
            self.is_exact = false;
            let table = std::mem::take(&mut self.table);
            self.moments.merge(&table_moments(&table));
            for (value, n) in table.iter() {
                let value = i64::from(value);
                self.bounds = widened(self.bounds, value);
                self.counters.add(int_key(value), n);
            }
            self.frequencies.add_counts(table.iter().map(|(value, n)| (value.into(), n)).collect());
        }
        self.frequencies.approximate(FEW);
        self.block.full = self.frequencies.block();
    }

    pub(crate) fn merge(&mut self, other: &IntStats) {
        if !other.is_exact {
            self.approximate();
        }
        let mut other = Cow::Borrowed(other);
        if self.is_exact != other.is_exact {
            other.to_mut().approximate();
        }
        self.table.merge(&other.table);
        self.counters.merge(&other.counters);
        self.frequencies.merge(&other.frequencies);
        self.moments.merge(&other.moments);
        self.bounds = joined(self.bounds, other.bounds);
    }

    /// Returns the moments of all values.
    pub(crate) fn all_moments(&self) -> Moments {
        let mut moments = table_moments(&self.table);
        moments.merge(&self.moments);
        moments
    }

    /// Returns the smallest and the largest value.
    pub(crate) fn all_bounds(&self) -> Bounds<i64> {
        let first = self.table.iter().next();
        let last = self.table.iter().next_back();
        let table = first.zip(last).map(|((low, _), (high, _))| (i64::from(low), i64::from(high)));
        joined(table, self.bounds)
    }

    /// Returns the cells of all values in order. While all values are counted exactly, each has a cell of its
    /// own.
    pub(crate) fn cells(&self) -> Vec<Cell<i64>> {
        let table = self.table.iter().map(|(value, n)| Cell::of(i64::from(value), n));
        let mut all: Vec<_> = table.collect();
        match self.frequencies.distinct {
            None => all.extend(self.frequencies.counts.iter().map(|(bits, n)| Cell::of(*bits as i64, *n))),
            Some(_) => all.extend(cells(&self.counters, int_cell)),
        }
        all.sort_by_key(|cell| cell.low);
        all
    }

    /// Returns the same cells for any values, in order: the cells of their leading bits.
    pub(crate) fn key_cells(&self) -> Vec<Cell<i64>> {
        let mut counters = self.counters.clone();
        self.table.iter().for_each(|(value, n)| counters.add(int_key(value.into()), n));
        cells(&counters, int_cell)
    }

    /// Returns the number of zeros.
    pub(crate) fn zeros(&self) -> u64 {
        if self.is_exact { self.table.get(0) } else { self.counters.get(0) }
    }

    /// Returns the number of distinct values, and true if it is exact. An estimate is at most the number of
    /// values.
    pub(crate) fn distinct(&self) -> (u64, bool) {
        let table = self.table.iter().count() as u64;
        match &self.frequencies.distinct {
            Some(distinct) => (table + distinct.estimate().min(self.moments.n), false),
            None => (table + self.frequencies.counts.len() as u64, true),
        }
    }

    /// Returns the most frequent values with their numbers, the most frequent first.
    pub(crate) fn top(&self, n: usize) -> Vec<(i64, u64)> {
        let table = self.table.iter().map(|(value, n)| (i64::from(value), n));
        let others = self.frequencies.counts.iter().map(|(bits, n)| (*bits as i64, *n));
        most_frequent(table.chain(others), n, |value| value)
    }

    pub(crate) fn exact_bytes(&self) -> u64 {
        if self.frequencies.keep == FEW { 0 } else { self.table.bytes() + self.frequencies.bytes() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.table.bytes()
            + self.counters.bytes()
            + self.frequencies.bytes()
            + (self.block.bits.capacity() * 8) as u64
    }
}

fn table_moments(table: &KeyCounters) -> Moments {
    let values: Vec<_> = table.iter().map(|(value, n)| (f64::from(value), n)).collect();
    Moments::weighted(values.iter().copied())
}

/// Returns the `n` most frequent values. Equally frequent ones are in the order of `key`.
pub(crate) fn most_frequent<T: Copy, K: Ord>(
    values: impl Iterator<Item = (T, u64)>,
    n: usize,
    key: impl Fn(T) -> K,
) -> Vec<(T, u64)> {
    let mut all: Vec<_> = values.collect();
    let order = |a: &(T, u64), b: &(T, u64)| b.1.cmp(&a.1).then_with(|| key(a.0).cmp(&key(b.0)));
    if all.len() > n && n > 0 {
        all.select_nth_unstable_by(n, order);
    }
    all.truncate(n);
    all.sort_by(order);
    all
}

/// Statistics of floats. NaN and infinities are counted apart.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct FloatStats {
    block: NumberBlock<u32>,
    pub(crate) zeros: u64,
    pub(crate) nan: u64,
    pub(crate) infinite: u64,
    pub(crate) negative_infinite: u64,
    pub(crate) counters: KeyCounters,
    pub(crate) frequencies: NumberFrequencies,
    pub(crate) moments: Moments,
    pub(crate) bounds: Bounds<f32>,
}

impl FloatStats {
    #[inline]
    pub(crate) fn add_list(&mut self, list: List<'_, f32>) {
        match list.as_unaligned() {
            Some(values) => {
                for values in values.chunks(DECODED) {
                    self.block.bits.extend(values.iter().map(|bytes| u32::from_le_bytes(*bytes)));
                    self.flush_full();
                }
            }
            None => list.iter().for_each(|value| self.add(value)),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: f32) {
        self.block.bits.push(value.to_bits());
        self.flush_full();
    }

    #[inline]
    fn flush_full(&mut self) {
        if self.block.bits.len() >= self.block.full {
            self.flush();
        }
    }

    /// Adds what was collected to the sketches. It precedes reading and merging.
    pub(crate) fn flush(&mut self) {
        self.block.bits.retain_mut(|bits| {
            let value = f32::from_bits(*bits);
            if !value.is_finite() {
                self.nan += u64::from(value.is_nan());
                self.infinite += u64::from(value == f32::INFINITY);
                self.negative_infinite += u64::from(value == f32::NEG_INFINITY);
            } else if value == 0.0 {
                // Both zeros are one value.
                *bits = 0;
                self.zeros += 1;
            }
            value.is_finite()
        });
        self.block.drain(&mut self.moments, &mut self.frequencies, |bits| {
            let value = f32::from_bits(bits);
            self.bounds = widened(self.bounds, value);
            self.counters.add(float_key(value), 1);
            f64::from(value)
        });
    }

    /// Ends exact counting, to save memory.
    pub(crate) fn approximate(&mut self) {
        self.flush();
        self.frequencies.approximate(FEW);
        self.block.full = self.frequencies.block();
    }

    pub(crate) fn merge(&mut self, other: &FloatStats) {
        self.zeros += other.zeros;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.negative_infinite += other.negative_infinite;
        self.counters.merge(&other.counters);
        self.frequencies.merge(&other.frequencies);
        self.moments.merge(&other.moments);
        self.bounds = joined(self.bounds, other.bounds);
    }

    /// Returns the number of all values.
    pub(crate) fn n(&self) -> u64 {
        self.moments.n + self.nan + self.infinite + self.negative_infinite
    }

    /// Returns the cells of the finite values in order. Zero always has a cell of its own, and each value
    /// while all are counted exactly.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        if self.frequencies.distinct.is_none() {
            let counts = self.frequencies.counts.iter();
            let cells = counts.map(|(bits, n)| Cell::of(f64::from(f32::from_bits(*bits as u32)), *n));
            let mut cells: Vec<_> = cells.filter(|cell| cell.low.is_finite()).collect();
            cells.sort_unstable_by(|a, b| a.low.total_cmp(&b.low));
            return cells;
        }
        self.key_cells()
    }

    /// Returns the same cells for any values, in order: zero, and the cells of their leading bits.
    pub(crate) fn key_cells(&self) -> Vec<Cell> {
        let mut all = cells(&self.counters, float_cell);
        // The cell of zero also has the smallest positive numbers.
        if let Some(place) = all.iter().position(|cell| cell.low == 0.0)
            && let Some(cell) = all.get_mut(place)
        {
            let zeros = self.zeros.min(cell.count);
            cell.count -= zeros;
            all.insert(place, Cell::of(0.0, zeros));
        }
        all
    }

    /// Returns the number of distinct finite values, and true if it is exact. An estimate is at most the
    /// number of values.
    pub(crate) fn distinct(&self) -> (u64, bool) {
        match &self.frequencies.distinct {
            Some(distinct) => (distinct.estimate().min(self.moments.n), false),
            None => (self.frequencies.counts.len() as u64, true),
        }
    }

    /// Returns the most frequent finite values with their numbers, the most frequent first.
    pub(crate) fn top(&self, n: usize) -> Vec<(f32, u64)> {
        let values = self.frequencies.counts.iter().map(|(bits, n)| (f32::from_bits(*bits as u32), *n));
        // The order of the bits, with negative numbers' bits reversed, is the order of the numbers.
        let order =
            |value: f32| value.to_bits() as i32 ^ (((value.to_bits() as i32 >> 31) as u32) >> 1) as i32;
        most_frequent(values, n, order)
    }

    pub(crate) fn exact_bytes(&self) -> u64 {
        if self.frequencies.keep == FEW { 0 } else { self.frequencies.bytes() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.counters.bytes() + self.frequencies.bytes() + (self.block.bits.capacity() * 4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::{IntQuantile, int_quantile, quantile};
    use super::*;

    fn floats(values: &[f32]) -> FloatStats {
        let mut stats = FloatStats::default();
        values.iter().for_each(|value| stats.add(*value));
        stats.flush();
        stats
    }

    /// The median of values that are counted exactly is one of them, and a median of zero is always zero.
    #[test]
    fn medians_are_values() {
        let stats = floats(&[0.0, 0.1, 7.0, 7.0, 9.0]);
        assert_eq!(quantile(&stats.cells(), (0.0, 9.0), 0.5), Some(7.0));
        let mut ints = IntStats::new();
        let values = [-70_001, 3, 17_031_010_706, 17_031_010_707, 17_031_010_708];
        values.into_iter().for_each(|value| ints.add(value));
        ints.flush();
        let at = |part| int_quantile(&ints.cells(), (-70_001, 20_000_000_000), part);
        assert_eq!([0.5, 0.4].map(at), [17_031_010_706, 3].map(|value| Some(IntQuantile::Value(value))));

        // 0x3f is below the least normal number, and in the counter of zero.
        let mut stats = floats(&[-1.0, -0.0, 0.0, 0.0, f32::from_bits(0x3f), 1.0]);
        stats.approximate();
        let cells = stats.cells();
        assert_eq!(quantile(&cells, (-1.0, 1.0), 0.5), Some(0.0));
        assert!(quantile(&cells, (-1.0, 1.0), 0.8).is_some_and(|value| value > 0.0 && value < 1e-38));
        assert_eq!(cells.iter().map(|cell| cell.count).sum::<u64>(), 6);
    }
    /// An estimate of the distinct values is never larger than the number of values.
    #[test]
    fn estimates_are_at_most_the_number_of_values() {
        let mut above = 0;
        for seed in 0..20 {
            let mut some = IntStats::new();
            let mut reals = FloatStats::default();
            let first = seed * 1_000_003;
            (0..70_000).for_each(|k| some.add(100_000 + first + k));
            (0..70_000).for_each(|k| reals.add(f32::from_bits(0x3f80_0000 + (first + k) as u32)));
            some.flush();
            reals.flush();
            let estimate = |found: &NumberFrequencies| found.distinct.as_ref().map_or(0, |d| d.estimate());
            above += u64::from(estimate(&some.frequencies) > 70_000 && estimate(&reals.frequencies) > 0);
            assert!(some.distinct().0 <= 70_000 && reals.distinct().0 <= 70_000);
            assert!(!some.distinct().1 && some.distinct().0 > 65_000);
        }
        assert!(above > 0, "no estimate was above the number of values");
    }
}
