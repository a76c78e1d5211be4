//! The number of threads that make batches, if the caller did not set one.
//!
//! A [`Pace`] is a state machine without threads or a clock. It adds threads while the consumer waits for
//! batches, and keeps them only if they bring more batches. On few processors a thread too many takes them
//! from the consumer.

use std::time::Duration;

/// Minimum of a window: the time and the batches after which the number of threads may change.
pub(super) const WINDOW: Duration = Duration::from_millis(50);
const BATCHES: u64 = 16;
/// Share of a window that the consumer waits, above which threads are added: the first while the consumer and
/// the threads leave processors idle, and the second if a further thread would take the last one. Above the
/// third their number is doubled.
///
/// On 16 processors, 3 threads that leave the consumer waiting for less than a quarter of the time make 0.73
/// of the token batches that 8 threads make, and 10 make 0.56 of the wide ones that 15 make (Xeon with AMX).
const WAITS_IDLE: f64 = 0.05;
const WAITS: f64 = 0.25;
const STARVES: f64 = 0.75;
/// Number of windows in a row in which no thread can be added or needs to be, before one is parked on trial.
const CALM_WINDOWS: u32 = 8;
/// Ratio of the batches per second with more threads to those with fewer, above which the threads are kept:
/// where they leave processors idle, and otherwise.
const GAIN_IDLE: f64 = 1.01;
const GAIN: f64 = 1.04;
/// Minimum and maximum number of windows between an attempt that brought nothing and the next one.
const REST: u32 = 8;
const MAX_REST: u32 = 1024;

/// Chooses the number of threads.
#[derive(Debug)]
pub(super) struct Pace {
    most: usize,
    threads: usize,
    window: PaceWindow,
    /// The number of threads before the last change, and their batches per second.
    trial: Option<(usize, f64)>,
    /// Windows in a row in which no thread could be added or needed to be.
    calm: u32,
    /// Windows until the next change, and their number after the next attempt that brings nothing.
    rest: u32,
    next_rest: u32,
}

#[derive(Debug, Default)]
struct PaceWindow {
    time: Duration,
    waited: Duration,
    batches: u64,
    /// The longest time that the consumer took for a batch.
    longest: Duration,
}

impl Pace {
    /// Begins with one thread, of at most this number.
    pub(super) fn new(most: usize) -> Pace {
        Pace {
            most: most.max(1),
            threads: 1,
            window: PaceWindow::default(),
            trial: None,
            calm: 0,
            rest: 0,
            next_rest: REST,
        }
    }

    /// Returns the chosen number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Limits the number of threads, because no more can be started.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most.max(1);
        self.threads = self.threads.min(self.most);
    }

    /// Counts a batch, or a part of the wait for it. `worked` is the time before that the consumer took for
    /// the batch before.
    pub(super) fn count(&mut self, worked: Duration, waited: Duration, batches: u64) {
        let window = &mut self.window;
        window.time += worked + waited;
        window.waited += waited;
        window.batches += batches;
        window.longest = window.longest.max(worked);
        if window.time < WINDOW {
            return;
        }
        let seconds = window.time.as_secs_f64();
        let waits = window.waited.as_secs_f64() / seconds;
        let rate = window.batches as f64 / seconds;
        let is_full = window.batches >= BATCHES;
        // A pause of the consumer says nothing about its batches.
        let is_paused = window.longest > window.time / 2 && window.longest > WINDOW;
        if is_paused || is_full || waits > STARVES {
            self.window = PaceWindow::default();
        }
        if is_full && !is_paused {
            self.decide(waits, rate);
        } else if waits > STARVES && self.threads < self.most {
            // Batches take so long that waiting for more of them would leave processors idle.
            self.trial = None;
            self.threads = (self.threads * 2).min(self.most);
        }
    }

    /// Changes the number of threads after a window.
    fn decide(&mut self, waits: f64, rate: f64) {
        if let Some((before, rate_before)) = self.trial.take() {
            let gain = if self.threads <= before {
                1.0 / GAIN
            } else if self.threads + 1 < self.most {
                GAIN_IDLE
            } else {
                GAIN
            };
            if rate < rate_before * gain {
                self.threads = before.min(self.most);
                self.rest = self.next_rest;
                self.next_rest = (self.next_rest * 2).min(MAX_REST);
                return;
            }
            self.next_rest = REST;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        let limit = match self.most - self.threads {
            0 => STARVES,
            1 => WAITS,
            _ => WAITS_IDLE,
        };
        let more = waits > limit;
        self.calm = if more { 0 } else { self.calm + 1 };
        let threads = if self.calm >= CALM_WINDOWS {
            self.calm = 0;
            (self.threads - 1).max(1)
        } else if waits > STARVES {
            self.threads * 2
        } else if more {
            self.threads + (self.threads / 4).max(1)
        } else {
            return;
        };
        let threads = threads.min(self.most);
        if threads != self.threads {
            self.trial = Some((self.threads, rate));
            self.threads = threads;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    /// Runs a consumer that takes `work` for a batch, which one thread makes in `make`, on this number of
    /// processors. Returns the numbers of threads after each batch.
    fn run(pace: &mut Pace, processors: u32, work: Duration, make: Duration, batches: usize) -> Vec<usize> {
        let of_batch = |pace: &mut Pace| {
            let threads = pace.threads() as u32;
            // Threads that share a processor with the consumer are slower by a tenth.
            let crowded = threads >= processors;
            let all = make / threads + if crowded { work / processors + make / 10 } else { Duration::ZERO };
            pace.count(work, all.saturating_sub(work), 1);
            pace.threads()
        };
        (0..batches).map(|_| of_batch(pace)).collect()
    }

    #[test]
    fn a_consumer_that_does_not_wait_keeps_one_thread() {
        let mut pace = Pace::new(8);
        let threads = run(&mut pace, 8, micros(1000), micros(900), 10_000);
        assert!(threads.iter().all(|&n| n == 1));
    }

    #[test]
    fn slow_batches_have_all_threads_after_a_few_windows() {
        let mut pace = Pace::new(64);
        // One batch takes half a second. Its consumer waits in parts of one window.
        let changes: Vec<usize> = (0..7)
            .map(|_| {
                pace.count(Duration::ZERO, WINDOW, 0);
                pace.threads()
            })
            .collect();
        assert_eq!(changes, [2, 4, 8, 16, 32, 64, 64]);
        let mut pace = Pace::new(64);
        run(&mut pace, 65, micros(10), micros(20_000), 1000);
        assert_eq!(pace.threads(), 64);
    }

    #[test]
    fn threads_are_added_until_the_consumer_hardly_waits() {
        let mut pace = Pace::new(32);
        run(&mut pace, 32, micros(100), micros(1000), 100_000);
        // Ten threads keep up.
        assert!((9..=14).contains(&pace.threads()), "{}", pace.threads());
    }

    /// A thread that would take the last processor is added only if the consumer waits long.
    #[test]
    fn the_last_processor_is_kept_for_a_consumer_that_waits_little() {
        for (most, threads) in [(2, 1), (3, 2)] {
            let mut pace = Pace::new(most);
            for _ in 0..10_000 {
                pace.count(micros(80), micros(20), 1);
                assert!(pace.threads() <= threads);
            }
            assert_eq!(pace.threads(), 1, "a thread that brought nothing is parked");
        }
    }

    #[test]
    fn a_thread_that_brings_nothing_is_parked_and_tried_again_less_and_less_often() {
        let mut pace = Pace::new(2);
        let mut added = Vec::new();
        let mut before = 1;
        for k in 0..400_000 {
            // The second thread takes the consumer's processor.
            let waited = if pace.threads() == 1 { micros(400) } else { micros(500) };
            pace.count(micros(600), waited, 1);
            if pace.threads() > before {
                added.push(k);
            }
            before = pace.threads();
        }
        let gaps: Vec<i32> = added.windows(2).map(|two| two[1] - two[0]).collect();
        assert!((6..=14).contains(&added.len()), "{added:?}");
        assert!(gaps.windows(2).all(|two| two[1] + 100 >= two[0]), "{gaps:?}");
        assert!(gaps.last() > gaps.first());
    }

    #[test]
    fn a_thread_too_many_is_parked_once_the_consumer_does_not_wait() {
        let mut pace = Pace::new(4);
        run(&mut pace, 4, micros(100), micros(350), 50_000);
        let many = pace.threads();
        assert!(many > 1, "{many}");
        run(&mut pace, 4, micros(1000), micros(350), 50_000);
        assert_eq!(pace.threads(), 1);
    }

    /// The first batches take long, so threads are added without a comparison.
    #[test]
    fn a_thread_too_many_of_the_start_is_parked() {
        let mut pace = Pace::new(2);
        pace.count(Duration::ZERO, WINDOW, 1);
        assert_eq!(pace.threads(), 2);
        for _ in 0..20_000 {
            // The consumer waits more with two threads, which take its processor.
            let waited = if pace.threads() == 1 { micros(100) } else { micros(400) };
            pace.count(micros(700), waited, 1);
        }
        assert_eq!(pace.threads(), 1);
    }

    #[test]
    fn a_pause_changes_nothing() {
        let mut pace = Pace::new(4);
        run(&mut pace, 4, micros(100), micros(350), 50_000);
        let many = pace.threads();
        for _ in 0..100 {
            pace.count(Duration::from_secs(10), Duration::ZERO, 1);
            (0..100).for_each(|_| pace.count(micros(100), micros(20), 1));
        }
        assert_eq!(pace.threads(), many);
        pace.limit(1);
        assert_eq!(pace.threads(), 1);
    }
}
