//! Distributions of sizes: lengths, numbers of values, widths.

use super::counters::{Cell, KeyCounters, cells, int_cell, int_key};

/// The distribution of a size.
#[derive(Clone, Debug)]
pub(crate) struct SizeCounters {
    pub(crate) counters: KeyCounters,
    pub(crate) n: u64,
    pub(crate) sum: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The last size, and the number of times that it was added and not counted yet. Sizes often repeat.
    pub(super) run: (usize, u64),
}

impl Default for SizeCounters {
    fn default() -> SizeCounters {
        SizeCounters { counters: KeyCounters::default(), n: 0, sum: 0, min: u64::MAX, max: 0, run: (0, 0) }
    }
}

impl SizeCounters {
    /// Adds a size.
    #[inline]
    pub(crate) fn add(&mut self, size: usize) {
        if self.run.0 != size {
            self.flush();
            self.run.0 = size;
        }
        self.run.1 += 1;
    }

    /// Counts what was added. It precedes reading and merging.
    pub(crate) fn flush(&mut self) {
        let (size, n) = std::mem::take(&mut self.run);
        if n > 0 {
            self.add_many(size, n);
        }
    }

    /// Adds a size `n` times, at once.
    #[inline]
    pub(crate) fn add_many(&mut self, size: usize, n: u64) {
        let size = size as u64;
        self.counters.add(int_key(i64::try_from(size).unwrap_or(i64::MAX)), n);
        self.n += n;
        self.sum += u128::from(size) * u128::from(n);
        (self.min, self.max) = (self.min.min(size), self.max.max(size));
    }

    pub(crate) fn merge(&mut self, other: &SizeCounters) {
        self.counters.merge(&other.counters);
        self.n += other.n;
        self.sum += other.sum;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// Returns the cells of the sizes in order.
    pub(crate) fn cells(&self) -> Vec<Cell<i64>> {
        cells(&self.counters, int_cell)
    }
}

#[cfg(test)]
mod tests {
    use super::super::counters::at_rank;
    use super::*;

    #[test]
    fn runs_are_counted() {
        let mut sizes = SizeCounters::default();
        let mut other = SizeCounters::default();
        [3, 3, 0, 0, 0, 5].into_iter().for_each(|size| sizes.add(size));
        other.add(0);
        sizes.flush();
        other.flush();
        sizes.merge(&other);
        assert_eq!((sizes.n, sizes.sum, sizes.min, sizes.max), (7, 11, 0, 5));
        let cells = sizes.cells();
        let ranks: Vec<_> = (1..=7).map(|rank| at_rank(&cells, rank).unwrap().low).collect();
        assert_eq!(ranks, [0, 0, 0, 0, 3, 3, 5]);
    }
}
