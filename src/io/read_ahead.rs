//! When to announce records before their turn.
//!
//! To announce a record costs more than a warm one takes, and makes a cold one at least five times faster. So records are
//! announced only while they turn out to be cold: a batch that was slow to touch starts it, and probes that are warm end it.
//!
//! To touch a record that was not announced is expensive where the system reads ahead: it waits for all of that, megabytes on some
//! machines. Hence one slow touch is reason enough for a closer look, and a probe asks for its own page before it touches it.
//!
//! A [`ReadAhead`] knows no clock and no records: it is told how long a touch took.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Records whose touches are timed together.
pub(crate) const WINDOW: usize = 32;
/// The longest time that a warm record takes to touch: memory needs 0.2 us, the cache of the slowest disk 20.
const WARM: Duration = Duration::from_micros(10);
/// Records that are touched one by one after a slow touch: a thread may have lost its processor during that.
const RETRIES: usize = 4;
/// One of so many announced records is left out, as a probe.
const PROBE_EVERY: u32 = 256;
/// Probes in a row that must be warm before announcing ends.
const WARM_PROBES: u32 = 8;

/// Decides for the batches of one reader, which may have several threads, if records are announced.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    state: AtomicU8,
    /// Records that were announced since the last probe.
    unprobed: AtomicU32,
    /// Warm probes since the last cold one.
    warm_probes: AtomicU32,
}

/// Nothing is known: the first record of a batch is touched alone.
const UNKNOWN: u8 = 0;
/// The last batch was warm.
const LAST_WARM: u8 = 1;
/// The last batch was slow, but all of it had been touched by then.
const SUSPECT: u8 = 2;
/// Records are announced.
const COLD: u8 = 3;

/// The part of a batch that is announced before its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Announced {
    #[default]
    Nothing,
    All,
    /// The last record is the probe.
    AllButLast,
}

/// The way in which records are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// All at once, so that the processor overlaps their cache misses.
    Together,
    /// One record. No bytes but those of its header's page are asked for.
    Alone,
}

impl ReadAhead {
    /// Decides what is to be announced of a batch of `len` records whose turn comes later.
    pub(crate) fn announce(&self, len: usize) -> Announced {
        if len == 0 || self.state.load(Relaxed) != COLD {
            return Announced::Nothing;
        }
        let len = u32::try_from(len).unwrap_or(PROBE_EVERY).min(PROBE_EVERY);
        if self.unprobed.fetch_add(len, Relaxed).saturating_add(len) < PROBE_EVERY {
            return Announced::All;
        }
        self.unprobed.store(0, Relaxed);
        Announced::AllButLast
    }

    /// Decides if a batch of `len` records, whose turn it is, has to be fetched. A batch that is warm has then been touched.
    ///
    /// `touch` touches records of the batch and returns how long that took.
    pub(crate) fn is_cold(
        &self,
        announced: Announced,
        len: usize,
        mut touch: impl FnMut(Touch, Range<usize>) -> Duration,
    ) -> bool {
        match announced {
            Announced::AllButLast => {
                if touch(Touch::Alone, len.saturating_sub(1)..len) > WARM {
                    self.warm_probes.store(0, Relaxed);
                } else if self.warm_probes.fetch_add(1, Relaxed) + 1 >= WARM_PROBES {
                    self.state.store(UNKNOWN, Relaxed);
                }
                true
            }
            Announced::All => true,
            Announced::Nothing => {
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

/// Touches the records of a batch, and returns the state that follows. Stops early if they are cold.
fn touched(state: u8, len: usize, mut touch: impl FnMut(Touch, Range<usize>) -> Duration) -> u8 {
    let mut next = 0;
    let mut slow = |most: usize| {
        let range = next..len.min(next + most);
        next = range.end;
        let warm = WARM * range.len() as u32;
        !range.is_empty() && touch(Touch::Together, range) > warm
    };
    // A batch that follows a warm one is touched in one go: a touch alone takes as long as several together.
    let first = usize::from(state != LAST_WARM);
    let was_slow = (first > 0 && slow(first)) || slow(WINDOW - first);
    if was_slow {
        let retries = next..len.min(next + RETRIES);
        if retries.is_empty() {
            return if state == SUSPECT { COLD } else { SUSPECT };
        }
        for k in retries {
            if touch(Touch::Alone, k..k + 1) > WARM {
                return COLD;
            }
            next = k + 1;
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

    /// Runs a batch. Returns what was announced of it, if it was cold, and how its records were touched.
    fn run(
        ahead: &ReadAhead,
        len: usize,
        took: impl Fn(usize) -> Duration,
    ) -> (Announced, bool, Vec<(Touch, Range<usize>)>) {
        let (announced, mut touches) = (ahead.announce(len), Vec::new());
        let cold = ahead.is_cold(announced, len, |how, range| {
            touches.push((how, range.clone()));
            range.map(&took).sum()
        });
        (announced, cold, touches)
    }

    #[test]
    fn warm_records_are_touched_once_and_never_announced() {
        for len in [0, 1, 2, 16, 31, 32, 33, 36, 100, 1000] {
            let ahead = ReadAhead::default();
            for _ in 0..50 {
                let (announced, cold, touches) = run(&ahead, len, |_| FAST);
                assert_eq!((announced, cold), (Announced::Nothing, false));
                assert!(touches.iter().all(|(how, _)| *how == Touch::Together));
                assert_eq!(
                    touches.into_iter().flat_map(|(_, range)| range).collect::<Vec<_>>(),
                    Vec::from_iter(0..len)
                );
            }
        }
        // The first record alone, later a window in one go.
        let ahead = ReadAhead::default();
        assert_eq!(run(&ahead, 32, |_| FAST).2, [(Touch::Together, 0..1), (Touch::Together, 1..32)]);
        assert_eq!(run(&ahead, 32, |_| FAST).2, [(Touch::Together, 0..32)]);
    }

    #[test]
    fn cold_records_are_announced_from_the_next_batch_on() {
        for len in [1usize, 2, 5, 32, 64, 256, 1000] {
            let ahead = ReadAhead::default();
            let (mut batches, mut waited) = (0, 0);
            loop {
                let (announced, cold, touches) = run(&ahead, len, |_| SLOW);
                if announced != Announced::Nothing {
                    assert!(cold);
                    break;
                }
                waited += touches.into_iter().map(|(_, range)| range.len()).sum::<usize>();
                batches += 1;
                assert!(
                    batches <= 2 && waited <= 2,
                    "a batch of one record cannot tell a disk from a lost processor"
                );
            }
        }
    }

    #[test]
    fn a_lost_processor_is_not_taken_for_a_cold_disk() {
        for len in [5usize, 31, 32, 64, 256] {
            for lost in 0..len {
                // The thread does not run for a while, once in each batch, at any record but the last four.
                let ahead = ReadAhead::default();
                run(&ahead, len, |_| FAST);
                let stopped = |k| if k == lost { 100 * SLOW } else { FAST };
                let (_, cold, _) = run(&ahead, len, stopped);
                assert!(!cold, "{len} {lost}");
                assert!(!run(&ahead, len, |_| FAST).1);
                assert_eq!(run(&ahead, len, |_| FAST).0, Announced::Nothing);
            }
        }
    }

    #[test]
    fn a_disk_that_becomes_cold_is_found() {
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
                    let (announced, cold, touches) = run(&ahead, len, |_| took);
                    if announced != Announced::All {
                        return (announced, cold, touches);
                    }
                    assert!(cold && touches.is_empty());
                }
                panic!("no probe");
            };
            // Seven are not enough, and a cold one starts the count again.
            for _ in 0..WARM_PROBES - 1 {
                assert_eq!(probe(FAST), (Announced::AllButLast, true, vec![(Touch::Alone, len - 1..len)]));
            }
            assert_eq!(probe(SLOW).0, Announced::AllButLast);
            for _ in 0..WARM_PROBES {
                assert_eq!(probe(FAST).0, Announced::AllButLast);
            }
            let (announced, cold, _) = run(&ahead, len, |_| FAST);
            assert_eq!((announced, cold), (Announced::Nothing, false));
            // Cold again: announced again.
            assert!((0..2).any(|_| run(&ahead, len, |_| SLOW).1));
            assert_ne!(ahead.announce(len), Announced::Nothing);
        }
    }

    #[test]
    fn one_of_256_announced_records_is_a_probe() {
        let ahead = ReadAhead::default();
        assert!(run(&ahead, 64, |_| SLOW).1);
        let probes = (0..400).filter(|_| run(&ahead, 64, |_| SLOW).0 == Announced::AllButLast).count();
        assert_eq!(probes, 100);
    }
}
