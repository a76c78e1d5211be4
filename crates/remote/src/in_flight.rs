//! The number of requests at a time, by the rate of their answers. It knows no clock: callers pass the time.

use std::time::Duration;

/// Requests at a time of a new store: at least, at most, and the bytes that they have together between these
/// numbers. The first batch often has 32 records, each in another block.
const FIRST: usize = 8;
const FIRST_SMALL: usize = 32;
const FIRST_BYTES: u64 = 16 << 20;
/// Rounds without growth after a growth that was of no use.
const REST: u32 = 8;
/// The longest time in which the requests of a growth begin, and the mean size of answers from which on they
/// do not begin at once.
const SPREAD: Duration = Duration::from_secs(1);
const LARGE: u64 = 2 << 20;

/// How many requests may be under way. The number doubles while this makes the rate grow by a tenth. Later it
/// is doubled from time to time, and taken back if this is of no use. A server that refuses requests halves
/// it; from then on it grows by one in each round. The rate decides and not a setting, because what a link
/// needs differs tenfold.
///
/// A round has as many answers as there may be requests. Only rounds count in which more requests could have
/// been made.
///
/// Large requests that begin together share the link and end together. If all of a doubling began at once,
/// the next answers would take twice as long, and then all come at once. So the new ones begin one after the
/// other, in the time of the round before. The round in which they begin does not count.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit: usize,
    most: usize,
    /// Number and bytes of the requests before the first answer.
    first: Option<(u64, u64)>,
    round: Round,
    /// The limit and the rate before it was doubled.
    before: Option<(usize, Rate)>,
    /// Set once a growth was of no use.
    settled: bool,
    /// Rounds until it is doubled again.
    rest: u32,
    /// In the round in which the requests of a growth begin.
    spread: Option<Spread>,
    refused: bool,
    /// Answers until a refusal counts again: the answers to requests that were under way.
    deaf: usize,
}

#[derive(Debug, Default)]
struct Round {
    start: Option<Duration>,
    answers: usize,
    bytes: u64,
    /// True if a request had to wait for another.
    full: bool,
}

/// The requests of a growth: those beyond the limit before.
#[derive(Debug)]
struct Spread {
    before: usize,
    start: Duration,
    /// The time from the begin of one to the begin of the next.
    step: Duration,
}

/// Bytes in a time.
#[derive(Clone, Copy, Debug)]
struct Rate {
    bytes: u64,
    time: Duration,
}

impl Rate {
    /// Returns true if this rate is larger by a tenth.
    fn exceeds(self, other: Rate) -> bool {
        let product =
            |bytes: u64, time: Duration, factor: u128| u128::from(bytes) * time.as_micros() * factor;
        product(self.bytes, other.time, 10) >= product(other.bytes, self.time, 11)
    }
}

impl InFlight {
    /// Returns the state of a new store, which may have at most `most` requests at a time.
    pub(crate) fn new(most: usize) -> InFlight {
        let (round, before) = Default::default();
        InFlight {
            limit: FIRST.min(most).max(1),
            most: most.max(1),
            first: Some((0, 0)),
            round,
            before,
            settled: false,
            rest: 0,
            spread: None,
            refused: false,
            deaf: 0,
        }
    }

    /// Returns the number of requests that may be under way.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the time before a request is made that no thread waits for, while `running` others are under
    /// way.
    pub(crate) fn delay(&self, now: Duration, running: usize) -> Duration {
        let Some(spread) = &self.spread else { return Duration::ZERO };
        let number = (running + 1).saturating_sub(spread.before);
        let at = spread.step * u32::try_from(number).unwrap_or(u32::MAX);
        (spread.start + at.min(SPREAD)).saturating_sub(now)
    }

    /// Notes that a request for this number of bytes is made.
    pub(crate) fn asked(&mut self, now: Duration, bytes: u64) {
        self.round.start.get_or_insert(now);
        if let Some((requests, sum)) = &mut self.first {
            *requests += 1;
            *sum += bytes;
            let fit = FIRST_BYTES * *requests / (*sum).max(1);
            let fit = usize::try_from(fit).unwrap_or(FIRST_SMALL);
            self.limit = fit.clamp(FIRST, FIRST_SMALL).min(self.most);
        }
    }

    /// Notes that a request has to wait for another.
    pub(crate) fn full(&mut self) {
        self.round.full = true;
    }

    /// Notes an answer. `refused` is true if the server refused the request before, for a while.
    pub(crate) fn answered(&mut self, now: Duration, bytes: u64, running: usize, refused: bool) {
        self.first = None;
        if refused && self.deaf == 0 {
            self.limit = (self.limit / 2).max(1);
            (self.round, self.before, self.refused, self.deaf) =
                (Round::default(), None, true, running.max(1));
            self.spread = None;
            return;
        }
        self.deaf = self.deaf.saturating_sub(1);
        self.round.answers += 1;
        self.round.bytes += bytes;
        if self.round.answers < self.limit {
            return;
        }
        let Round { start, bytes, full, .. } = std::mem::take(&mut self.round);
        let Some(start) = start else { return };
        self.round.start = (running > 0).then_some(now);
        if !full {
            (self.before, self.spread) = (None, None);
            return;
        }
        if self.spread.take().is_some() {
            return;
        }
        self.end_round(Rate { bytes, time: now.saturating_sub(start) }, now);
    }

    fn end_round(&mut self, rate: Rate, now: Duration) {
        if self.refused {
            self.limit = (self.limit + 1).min(self.most);
            return;
        }
        if let Some((limit, before)) = self.before.take()
            && !rate.exceeds(before)
        {
            // The first one stays: some more than needed keep a link full while answers wait for one another.
            if self.settled {
                self.limit = limit;
            }
            (self.settled, self.rest) = (true, REST);
            return;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        if self.limit < self.most {
            let before = self.limit;
            self.before = Some((before, rate));
            self.limit = (before * 2).min(self.most);
            if rate.bytes / (before as u64).max(1) >= LARGE {
                let more = u32::try_from(self.limit - before).unwrap_or(u32::MAX);
                let step = rate.time.min(SPREAD) / more.max(1);
                self.spread = Some(Spread { before, start: now, step });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of `rate` bytes per second, with a latency and a rate of each connection. Returns the limit
    /// after each round.
    fn rounds(
        state: &mut InFlight,
        size: u64,
        latency: f64,
        connection: f64,
        rate: f64,
        rounds: usize,
    ) -> Vec<usize> {
        let mut now = 0.0;
        let mut found = Vec::new();
        for _ in 0..rounds {
            state.asked(Duration::from_secs_f64(now), size);
            let limit = state.limit();
            let bytes = size as f64 * limit as f64;
            state.full();
            now += (latency + size as f64 / connection).max(bytes / rate);
            for k in 1..=limit {
                state.answered(Duration::from_secs_f64(now), size, limit - k + 1, false);
            }
            found.push(state.limit());
        }
        found
    }

    #[test]
    fn small_requests_reach_the_bound_in_few_rounds() {
        let mut state = InFlight::new(256);
        assert_eq!(rounds(&mut state, 1000, 0.05, 25e6, 200e6, 4), [64, 128, 256, 256]);
        // Bounds below the first number, and none at all.
        assert_eq!(rounds(&mut InFlight::new(3), 1000, 0.05, 25e6, 200e6, 3), [3, 3, 3]);
        assert_eq!(rounds(&mut InFlight::new(0), 1000, 0.05, 25e6, 200e6, 2), [1, 1]);
        assert_eq!(rounds(&mut InFlight::new(100), 1000, 0.05, 25e6, 200e6, 5), [64, 100, 100, 100, 100]);
    }

    #[test]
    fn the_first_requests_have_sixteen_mebibytes_together() {
        let limits = |sizes: &[u64]| -> Vec<usize> {
            let mut state = InFlight::new(256);
            let asked = |size: &u64| {
                state.asked(Duration::ZERO, *size);
                state.limit()
            };
            sizes.iter().map(asked).collect()
        };
        assert_eq!(InFlight::new(256).limit(), 8);
        assert_eq!(limits(&[0, 1000, 512 << 10]), [32, 32, 32]);
        assert_eq!(limits(&[1 << 20, 1 << 20]), [16, 16]);
        assert_eq!(limits(&[2 << 20, 4 << 20]), [8, 8]);
        // Small ones before large ones, and the reverse.
        assert_eq!(limits(&[12, 4 << 20]), [32, 8]);
        assert_eq!(limits(&[2 << 20, 12, 12, 12]), [8, 15, 23, 31]);
        // After an answer their number depends on the rate.
        let mut state = InFlight::new(256);
        state.asked(Duration::ZERO, 2 << 20);
        state.answered(Duration::from_millis(9), 2 << 20, 0, false);
        state.asked(Duration::from_millis(9), 100);
        assert_eq!(state.limit(), 8);
    }

    #[test]
    fn a_full_link_ends_growth() {
        let mut state = InFlight::new(128);
        // 8 of 4 MiB take 0.268 s, 16 take 0.34 s, and 32 twice as long.
        let found = rounds(&mut state, 4 << 20, 0.1, 25e6, 200e6, 30);
        assert_eq!(found[..4], [16, 16, 32, 32]);
        assert!(found[3..13].iter().all(|limit| *limit == 32), "{found:?}");
        assert!(found[3..].iter().all(|limit| (32..=64).contains(limit)), "{found:?}");
        assert!(found[13..].iter().filter(|limit| **limit == 64).count() <= 4, "{found:?}");
        // Then requests become small: it is tried again.
        let found = rounds(&mut state, 1000, 0.05, 25e6, 200e6, 20);
        assert_eq!(found.last(), Some(&128), "{found:?}");
    }

    #[test]
    fn large_requests_of_a_growth_begin_one_after_the_other() {
        let ms = Duration::from_millis;
        let delays = |state: &InFlight, now| -> Vec<u128> {
            (0..16).map(|running| state.delay(now, running).as_millis()).collect()
        };
        let after = |size: u64, time: Duration| {
            let mut state = InFlight::new(128);
            state.asked(ms(0), size);
            state.full();
            (0..8).for_each(|k| state.answered(time, size, 8 - k, false));
            assert_eq!(state.limit(), 16);
            state
        };
        let state = after(LARGE, ms(80));
        assert_eq!(delays(&state, ms(80)), [0, 0, 0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80]);
        assert_eq!(delays(&state, ms(135))[8..], [0, 0, 0, 0, 0, 5, 15, 25]);
        assert_eq!(delays(&state, ms(160)), [0; 16]);
        // A slow round does not make a reader wait as long. Small requests begin at once, and so do requests
        // of a new store.
        assert_eq!(delays(&after(LARGE, ms(100_000)), ms(100_000))[14..], [875, 1000]);
        assert_eq!(delays(&after(LARGE - 1, ms(80)), ms(80)), [0; 16]);
        assert_eq!(delays(&InFlight::new(128), ms(0)), [0; 16]);
        // The round in which they begin does not count, and later ones have no delay.
        let mut state = after(LARGE, ms(80));
        state.full();
        (0..16).for_each(|k| state.answered(ms(500), LARGE, 16 - k, false));
        assert_eq!((state.limit(), delays(&state, ms(500))), (16, vec![0; 16]));
        state.full();
        (0..16).for_each(|k| state.answered(ms(580), LARGE, 16 - k, false));
        assert_eq!(state.limit(), 32);
    }

    #[test]
    fn refusals_halve_once_a_round_and_growth_is_slow_after_them() {
        let mut state = InFlight::new(128);
        rounds(&mut state, 1000, 0.05, 25e6, 200e6, 4);
        assert_eq!(state.limit(), 128);
        let now = Duration::from_secs(1);
        // All that are under way were refused: one halving.
        for k in 0..128 {
            state.answered(now, 1000, 128 - k, true);
        }
        assert_eq!(state.limit(), 64);
        for k in 0..10 * 128 {
            state.answered(now, 1000, 64, true);
            assert!(state.limit() >= 1, "{k}");
        }
        assert_eq!(state.limit(), 1);
        let found = rounds(&mut state, 1000, 0.05, 25e6, 200e6, 5);
        assert_eq!(found, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn rounds_without_waiting_requests_tell_nothing() {
        let mut state = InFlight::new(128);
        for k in 0..1000 {
            state.asked(Duration::from_millis(k), 2 << 20);
            state.answered(Duration::from_millis(k), 1000, 0, false);
        }
        assert_eq!(state.limit(), 8);
        // No time, no bytes, no requests.
        state.full();
        (0..1000).for_each(|_| state.answered(Duration::ZERO, 0, 0, false));
        assert!(state.limit() <= 128);
    }
}
