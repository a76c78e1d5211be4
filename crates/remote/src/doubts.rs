//! Bytes that failed a checksum, and are fetched once more.

use std::ops::Range;

/// The bytes of an object whose checksum was wrong. A bit may have changed on its way, and then they are
/// right when they come again. If they are wrong in the store too, asking again and again is of no use.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Those that are to be fetched from the store, whatever is on disk.
    wanted: Ranges,
    /// Those that came from the store again, and are the last that came.
    settled: Ranges,
}

impl Doubts {
    /// Notes that bytes failed a checksum. Returns false if they came again already: they are wrong in the
    /// store. Calls `drop` with them unless another thread has noted them, and they are on their way again.
    pub(crate) fn add(&mut self, range: &Range<u64>, drop: impl FnOnce()) -> bool {
        if self.settled.has(range) {
            return false;
        }
        if !self.wanted.has(range) {
            self.wanted.add(range.clone());
            drop();
        }
        true
    }

    /// Returns true if bytes of a range are to be fetched from the store.
    pub(crate) fn wants(&self, range: &Range<u64>) -> bool {
        self.wanted.touches(range)
    }

    /// Notes bytes that came from the store, because they were doubted or for the first time.
    pub(crate) fn came(&mut self, range: &Range<u64>, again: bool) {
        if again {
            self.wanted.remove(range);
            self.settled.add(range.clone());
        } else {
            self.settled.remove(range);
        }
    }
}

/// Ranges in order, which neither overlap nor touch.
#[derive(Debug, Default)]
struct Ranges(Vec<Range<u64>>);

impl Ranges {
    fn add(&mut self, mut new: Range<u64>) {
        self.0.retain(|old| {
            let joins = old.start <= new.end && new.start <= old.end;
            if joins {
                new = new.start.min(old.start)..new.end.max(old.end);
            }
            !joins
        });
        let at = self.0.partition_point(|old| old.start < new.start);
        self.0.insert(at, new);
    }

    fn remove(&mut self, range: &Range<u64>) {
        let parts =
            |old: &Range<u64>| [old.start..old.end.min(range.start), old.start.max(range.end)..old.end];
        self.0 = self.0.iter().flat_map(parts).filter(|part| part.start < part.end).collect();
    }

    fn has(&self, range: &Range<u64>) -> bool {
        self.0.iter().any(|old| old.start <= range.start && range.end <= old.end)
    }

    fn touches(&self, range: &Range<u64>) -> bool {
        self.0.iter().any(|old| old.start < range.end && range.start < old.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_again_once() {
        let mut doubts = Doubts::default();
        let mut dropped = 0;
        assert!(doubts.add(&(10..20), || dropped += 1) && doubts.add(&(10..20), || dropped += 1));
        assert!(dropped == 1 && doubts.wants(&(0..11)));
        assert!(!doubts.wants(&(0..10)) && !doubts.wants(&(20..30)));
        doubts.came(&(0..100), true);
        // The whole piece came again.
        assert!(
            !doubts.add(&(10..20), || ()) && !doubts.add(&(90..100), || ()) && doubts.add(&(90..101), || ())
        );
        doubts.came(&(100..200), true);
        assert!(!doubts.add(&(90..101), || ()));
        // New bytes of the store may be wrong for another reason.
        doubts.came(&(0..50), false);
        assert!(
            doubts.add(&(10..20), || ()) && doubts.add(&(40..60), || ()) && !doubts.add(&(50..60), || ())
        );
    }

    #[test]
    fn ranges_are_sets_of_numbers() {
        let mut ranges = Ranges::default();
        let mut set = std::collections::BTreeSet::new();
        for k in 0..2000u64 {
            let start = k * 7 % 50;
            let range = start..start + k * 3 % 11 + 1;
            if k % 3 == 0 {
                ranges.remove(&range);
                range.clone().for_each(|at| _ = set.remove(&at));
            } else {
                set.extend(range.clone());
                ranges.add(range.clone());
            }
            let other = k % 60..k % 60 + 4;
            assert_eq!(ranges.has(&other), other.clone().all(|at| set.contains(&at)));
            assert_eq!(ranges.touches(&other), other.clone().any(|at| set.contains(&at)));
            assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
