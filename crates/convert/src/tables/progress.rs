//! Progress of conversions that may read records twice.

use std::cell::Cell;

/// The progress of a pass over all records, of which it is a share.
pub(super) struct PassProgress<'a> {
    progress: &'a dyn Fn(u64),
    /// Number of records, and the number that the pass counts as.
    records: u64,
    share: u64,
    done: Cell<u64>,
}

impl<'a> PassProgress<'a> {
    /// The share of a first pass in percent, which only reads: it takes about half of the time of the other.
    pub(super) const FIRST: u64 = 33;

    /// Returns the progress of two passes over this number of records. The first is this share of them, in
    /// percent.
    pub(super) fn two(progress: &'a dyn Fn(u64), records: u64, first: u64) -> [PassProgress<'a>; 2] {
        let share = u64::try_from(u128::from(records) * u128::from(first) / 100).unwrap_or(records);
        [share, records - share].map(|share| PassProgress { progress, records, share, done: Cell::new(0) })
    }

    /// Adds records.
    pub(super) fn add(&self, records: u64) {
        let before = self.done.get();
        let done = before + records.min(self.records - before);
        let counted = |done: u64| u128::from(done) * u128::from(self.share) / u128::from(self.records.max(1));
        self.done.set(done);
        (self.progress)((counted(done) - counted(before)) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_passes_together_count_each_record_once() {
        for (records, step) in [(1, 1), (10, 3), (1000, 7), (u64::MAX, u64::MAX / 5)] {
            let sum = Cell::new(0u64);
            let progress = |n: u64| sum.set(sum.get() + n);
            let third = (u128::from(records) * 33 / 100) as u64;
            let [first, second] = PassProgress::two(&progress, records, PassProgress::FIRST);
            for (pass, end) in [(first, third), (second, records)] {
                (0..records.div_ceil(step)).for_each(|_| pass.add(step));
                assert_eq!(sum.get(), end);
            }
        }
    }
}
