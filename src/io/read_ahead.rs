//! The decision whether to announce records, i.e. to send the system a prefetch hint before they are
//! accessed.
//!
//! An announcement costs more than an access to a warm record, one that is in memory. It makes an access to a
//! cold record, which has to be read from the disk, at least five times faster. So records are announced only
//! while they are cold. A batch that was slow to touch starts the announcements, and a number of warm probes
//! ends them. To touch a record is to read one of its bytes in a map, or all of them with a positional read.
//! Announcements are hints to the page cache, so no pool of threads and no io_uring is needed. To ask for
//! each record whether it is cached (`RWF_NOWAIT`) made scans of cached records twice as slow.
//!
//! Touching a cold record that was not announced is expensive on systems with a large readahead, because the
//! page fault waits for all of it, megabytes on some machines. Therefore one slow touch is enough to test
//! further records, and a probe in a map requests its own page before it is touched.
//!
//! A [`ReadAhead`] has no clock and does not access records. Its callers pass the time that each touch took.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Number of records that are touched and timed together.
pub(crate) const WINDOW: usize = 32;
/// Maximum time to touch a warm record. Memory takes 0.2 us, the cache of the slowest disk 20 us.
const WARM: Duration = Duration::from_micros(10);
/// Number of records that are touched one by one after a slow touch, because the thread may only have been
/// preempted.
const RETRIES: usize = 4;
/// Number of slow touches among these that make records cold. A positional read of a long record takes long
/// enough to be preempted now and then.
const SLOW_RETRIES: usize = 2;
/// Number of announced records per probe. A probe is a record that is not announced.
const PROBE_EVERY: u32 = 256;
/// Number of consecutive warm probes that end the announcements.
const WARM_PROBES: u32 = 8;

/// Decides whether the records of a reader's batches are announced. A reader may have several threads.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    state: AtomicU8,
    /// Number of records announced since the last probe.
    unprobed: AtomicU32,
    /// Number of warm probes since the last cold one.
    warm_probes: AtomicU32,
}

/// The initial state. The first record of a batch is touched alone.
const UNKNOWN: u8 = 0;
/// The last batch was warm.
const LAST_WARM: u8 = 1;
/// The last batch was slow, but it had no more records to test.
const SUSPECT: u8 = 2;
/// Records are announced.
const COLD: u8 = 3;

/// The part of a batch that is announced before it is accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Requested {
    #[default]
    Nothing,
    All,
    /// All records except the first, which is the probe.
    AllButFirst,
}

/// The way to touch records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// All records in one loop, so that the processor overlaps their cache misses.
    Together,
    /// One record, without readahead: only the page of its header is read.
    Alone,
}

impl ReadAhead {
    /// Returns true while records are announced.
    pub(crate) fn announces(&self) -> bool {
        self.state.load(Relaxed) == COLD
    }

    /// Decides which records of a later batch of `len` records are announced.
    pub(crate) fn plan(&self, len: usize) -> Requested {
        if len == 0 || !self.announces() {
            return Requested::Nothing;
        }
        let len = u32::try_from(len).unwrap_or(PROBE_EVERY).min(PROBE_EVERY);
        if self.unprobed.fetch_add(len, Relaxed) + len < PROBE_EVERY {
            return Requested::All;
        }
        self.unprobed.store(0, Relaxed);
        Requested::AllButFirst
    }

    /// Returns true if the current batch of `len` records has to be fetched. A warm batch is touched by this
    /// call.
    ///
    /// `touch` touches records of the batch and returns the time that it took. It is called for all records
    /// of a warm batch, in order. For a cold one it is called for a number of the first records, or for none.
    pub(crate) fn is_cold(
        &self,
        requested: Requested,
        len: usize,
        mut touch: impl FnMut(Touch, Range<usize>) -> Duration,
    ) -> bool {
        match requested {
            Requested::AllButFirst => {
                if touch(Touch::Alone, 0..len.min(1)) > WARM {
                    self.warm_probes.store(0, Relaxed);
                } else if self.warm_probes.fetch_add(1, Relaxed) + 1 >= WARM_PROBES {
                    self.state.store(UNKNOWN, Relaxed);
                }
                true
            }
            Requested::All => true,
            Requested::Nothing => {
                let state = self.state.load(Relaxed);
                let found = if state == COLD { COLD } else { touched(state, len, touch) };
                if found == COLD && state != COLD {
                    self.warm_probes.store(0, Relaxed);
                    self.unprobed.store(0, Relaxed);
                }
                if found != state {
                    self.state.store(found, Relaxed);
                }
                found == COLD
            }
        }
    }
}

/// Touches the records of a batch and returns the next state. Stops early if they are cold.
fn touched(state: u8, len: usize, mut touch: impl FnMut(Touch, Range<usize>) -> Duration) -> u8 {
    let mut next = 0;
    let mut slow = |most: usize| {
        let range = next..len.min(next + most);
        next = range.end;
        let warm = WARM * range.len() as u32;
        !range.is_empty() && touch(Touch::Together, range) > warm
    };
    // After a warm batch all records are touched together: touching one alone takes as long as touching
    // several.
    let first = usize::from(state != LAST_WARM);
    let was_slow = (first > 0 && slow(first)) || slow(WINDOW - first);
    if was_slow {
        let retries = next..len.min(next + RETRIES);
        if retries.is_empty() {
            return if state == SUSPECT { COLD } else { SUSPECT };
        }
        let mut left = SLOW_RETRIES.min(retries.len());
        for k in retries {
            next = k + 1;
            if touch(Touch::Alone, k..next) > WARM {
                left -= 1;
                if left == 0 {
                    return COLD;
                }
            }
        }
    }
    if next < len {
        touch(Touch::Together, next..len);
    }
    LAST_WARM
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_nanos(100);
    const SLOW: Duration = Duration::from_micros(100);

    /// Runs a batch. Returns the announced part, true if it was cold, and the touches of its records.
    fn run(
        ahead: &ReadAhead,
        len: usize,
        took: impl Fn(usize) -> Duration,
    ) -> (Requested, bool, Vec<(Touch, Range<usize>)>) {
        let requested = ahead.plan(len);
        let mut touches = Vec::new();
        let cold = ahead.is_cold(requested, len, |how, range| {
            touches.push((how, range.clone()));
            range.map(&took).sum()
        });
        (requested, cold, touches)
    }

    #[test]
    fn warm_records_are_touched_once_and_never_announced() {
        for len in [0, 1, 2, 16, 31, 32, 33, 36, 100, 1000] {
            let ahead = ReadAhead::default();
            for _ in 0..50 {
                let (requested, cold, touches) = run(&ahead, len, |_| FAST);
                assert_eq!((requested, cold), (Requested::Nothing, false));
                assert!(touches.iter().all(|(how, _)| *how == Touch::Together));
                assert_eq!(
                    touches.into_iter().flat_map(|(_, range)| range).collect::<Vec<_>>(),
                    Vec::from_iter(0..len)
                );
            }
        }
        // The first record is touched alone, later batches a window at a time.
        let ahead = ReadAhead::default();
        assert_eq!(run(&ahead, 32, |_| FAST).2, [(Touch::Together, 0..1), (Touch::Together, 1..32)]);
        assert_eq!(run(&ahead, 32, |_| FAST).2, [(Touch::Together, 0..32)]);
    }

    #[test]
    fn cold_records_are_announced_from_the_next_batch_on() {
        for len in [1usize, 2, 5, 32, 64, 256, 1000] {
            let ahead = ReadAhead::default();
            let mut batches = 0;
            let mut waited = 0;
            loop {
                let (requested, cold, touches) = run(&ahead, len, |_| SLOW);
                if requested != Requested::Nothing {
                    assert!(cold);
                    break;
                }
                waited += touches.into_iter().map(|(_, range)| range.len()).sum::<usize>();
                batches += 1;
                assert!(
                    batches <= 2 && waited <= 1 + SLOW_RETRIES,
                    "a batch of one record cannot distinguish a cold disk from a preemption"
                );
            }
        }
    }

    #[test]
    fn a_preempted_thread_does_not_count_as_a_cold_disk() {
        for len in [5usize, 31, 32, 64, 256] {
            for lost in 0..len {
                // The thread is preempted twice per batch, at any records.
                let ahead = ReadAhead::default();
                run(&ahead, len, |_| FAST);
                let stopped = |k| if k == lost || k == (lost + 1) % len { 100 * SLOW } else { FAST };
                let (_, cold, _) = run(&ahead, len, stopped);
                assert!(!cold, "{len} {lost}");
                assert!(!run(&ahead, len, |_| FAST).1);
                assert_eq!(run(&ahead, len, |_| FAST).0, Requested::Nothing);
            }
        }
    }

    #[test]
    fn a_disk_that_becomes_cold_is_detected() {
        for len in [8usize, 32, 64, 256] {
            let ahead = ReadAhead::default();
            run(&ahead, len, |_| FAST);
            let found = (0..3).position(|_| run(&ahead, len, |_| SLOW).1);
            assert!(found.is_some_and(|k| k <= 1), "{len} {found:?}");
        }
    }

    #[test]
    fn announcing_ends_after_eight_warm_probes_in_a_row() {
        for len in [1usize, 32, 64, 256, 1000] {
            let ahead = ReadAhead::default();
            while !run(&ahead, len, |_| SLOW).1 {}
            let probe = |took: Duration| {
                for _ in 0..1000 {
                    let (requested, cold, touches) = run(&ahead, len, |_| took);
                    if requested != Requested::All {
                        return (requested, cold, touches);
                    }
                    assert!(cold && touches.is_empty());
                }
                panic!("no probe");
            };
            // Seven are not enough, and a cold one resets the count.
            for _ in 0..WARM_PROBES - 1 {
                assert_eq!(probe(FAST), (Requested::AllButFirst, true, vec![(Touch::Alone, 0..1)]));
            }
            assert_eq!(probe(SLOW).0, Requested::AllButFirst);
            for _ in 0..WARM_PROBES {
                assert_eq!(probe(FAST).0, Requested::AllButFirst);
            }
            let (requested, cold, _) = run(&ahead, len, |_| FAST);
            assert_eq!((requested, cold), (Requested::Nothing, false));
            // Cold again: announced again.
            assert!((0..2).any(|_| run(&ahead, len, |_| SLOW).1));
            assert_ne!(ahead.plan(len), Requested::Nothing);
        }
    }

    #[test]
    fn one_of_256_announced_records_is_a_probe() {
        let ahead = ReadAhead::default();
        assert!(run(&ahead, 64, |_| SLOW).1);
        let probes = (0..400).filter(|_| run(&ahead, 64, |_| SLOW).0 == Requested::AllButFirst).count();
        assert_eq!(probes, 100);
    }
}
