//! The pace of answers, because bytes that come one by one keep no request alive, and the pauses between attempts.

use crate::settings::{PATIENCE, PAUSES, Settings};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Bytes that have to arrive within the time of a [`Pace`].
pub(crate) const STEP: u64 = 64 << 10;

/// The deadline of an answer: its head, and then each [`STEP`] of its bytes, has this time. A read timeout
/// alone begins anew with each byte.
#[derive(Debug)]
pub(crate) struct Pace {
    time: Duration,
    end: Instant,
    bytes: u64,
}

/// The repetitions of a request that are left, and the pauses before them.
#[derive(Debug)]
pub(crate) struct Repeats {
    left: usize,
    pause: Duration,
    since: Instant,
}

impl Repeats {
    pub(crate) fn new(settings: &Settings) -> Repeats {
        Repeats { left: settings.retries, pause: PAUSES[0], since: Instant::now() }
    }

    /// Returns true while the request has time for another attempt.
    pub(crate) fn has_time(&self) -> bool {
        self.since.elapsed() < PATIENCE
    }

    /// Waits before the next attempt: for `wait`, or for twice the last pause. Returns false at once if there
    /// were too many attempts, or if they take too long.
    pub(crate) async fn again(&mut self, wait: Option<Duration>) -> bool {
        let pause = wait.unwrap_or(self.pause);
        if self.left == 0 || self.since.elapsed() + pause >= PATIENCE {
            return false;
        }
        self.left -= 1;
        self.pause = (self.pause * 2).min(PAUSES[1]);
        tokio::time::sleep(pause).await;
        true
    }
}

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooSlow;

impl Pace {
    /// Begins with a request that sends this number of bytes.
    pub(crate) fn new(settings: &Settings, sent: u64) -> Pace {
        let time = settings.step_time();
        Pace::at(Instant::now(), time, sent)
    }

    fn at(now: Instant, time: Duration, sent: u64) -> Pace {
        let steps = u32::try_from(sent / STEP + 1).unwrap_or(u32::MAX);
        // A time beyond the clock is none.
        let end = time.checked_mul(steps).and_then(|time| now.checked_add(time)).unwrap_or(now + time);
        Pace { time, end, bytes: 0 }
    }

    /// Waits for the next part of an answer.
    ///
    /// # Errors
    /// The deadline has passed.
    pub(crate) async fn wait<T>(&self, next: impl Future<Output = T>) -> Result<T, TooSlow> {
        timeout_at(self.end, next).await.map_err(|_| TooSlow)
    }

    /// Notes bytes that have arrived.
    pub(crate) fn arrived(&mut self, bytes: u64) {
        self.arrived_at(Instant::now(), bytes);
    }

    /// Begins the time of the body, after the head.
    pub(crate) fn head(&mut self) {
        self.end = Instant::now() + self.time;
    }

    fn arrived_at(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= STEP {
            self.bytes %= STEP;
            self.end = now + self.time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_answer_has_time_and_a_drip_has_none() {
        let start = Instant::now();
        let time = Duration::from_secs(30);
        let after = |seconds| start + Duration::from_secs(seconds);
        // Returns the second in which the deadline passed, of answers with these bytes in each second.
        let ends = |rate: u64| {
            let mut pace = Pace::at(start, time, 0);
            (1..3600).find(|second| {
                let late = after(*second) > pace.end;
                pace.arrived_at(after(*second), rate);
                late
            })
        };
        assert_eq!([0, 2, 2000].map(ends), [Some(31); 3]);
        assert_eq!([2200, 10_000, 1 << 30].map(ends), [None; 3]);
        // A fast beginning is no credit.
        let mut pace = Pace::at(start, time, 0);
        pace.arrived_at(after(1), 1 << 30);
        pace.arrived_at(after(2), 1);
        assert_eq!(pace.end, after(31));
        // Bytes that are sent have time, too.
        assert_eq!(Pace::at(start, time, 2 * STEP).end, after(90));
        assert!(Pace::at(start, time, u64::MAX).end >= after(30));
    }
}
