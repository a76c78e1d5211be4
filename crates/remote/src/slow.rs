//! Slow requests, compared with the last hundred.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of requests that a request is compared with.
const KNOWN: usize = 100;
/// One of this number of requests may be repeated.
const SHARE: u64 = 20;
/// The least time of a slow request: a second one takes as long.
const LEAST: Duration = Duration::from_millis(100);

/// Number of requests whose times are shown.
const SHOWN: usize = 1000;

/// The lengths and times of the last requests.
#[derive(Debug, Default)]
pub(crate) struct Slow {
    last: VecDeque<(u64, Duration)>,
    /// The times of more of them.
    shown: VecDeque<Duration>,
    /// Number of requests that were repeated.
    repeated: u64,
}

impl Slow {
    pub(crate) fn answered(&mut self, len: u64, time: Duration) {
        if self.last.len() >= KNOWN {
            self.last.pop_front();
        }
        self.last.push_back((len, time));
        if self.shown.len() >= SHOWN {
            self.shown.pop_front();
        }
        self.shown.push_back(time);
    }

    /// Returns the times that half, 90 % and 99 % of the last requests did not exceed.
    pub(crate) fn latency(&self) -> [Duration; 3] {
        let mut times: Vec<Duration> = self.shown.iter().copied().collect();
        times.sort_unstable();
        [50, 90, 99].map(|share| {
            let count = (times.len() * share).div_ceil(100);
            times.get(..count).and_then(<[Duration]>::last).copied().unwrap_or(Duration::ZERO)
        })
    }

    /// Returns the time after which a request for `len` bytes is slow, at least [`LEAST`]. It is twice the
    /// time that one of the last hundred exceeded: on a full link, requests take up to twice as long when
    /// more are under way. Shorter requests count with the time that they would have taken for `len` bytes.
    /// `None` if too few are known.
    pub(crate) fn limit(&self, len: u64) -> Option<Duration> {
        if self.last.len() < KNOWN {
            return None;
        }
        let scaled = |(known, time): &(u64, Duration)| {
            let factor = u32::try_from(len.div_ceil((*known).max(1)).max(1)).unwrap_or(u32::MAX);
            time.saturating_mul(factor)
        };
        let mut times: Vec<Duration> = self.last.iter().map(scaled).collect();
        times.sort_unstable();
        times.iter().nth_back(1).map(|time| LEAST.max(time.saturating_mul(2)))
    }

    /// Returns true if one more request may be repeated, after this number of requests, and counts it.
    pub(crate) fn may_repeat(&mut self, requests: u64) -> bool {
        let may = (self.repeated + 1) * SHARE <= requests;
        self.repeated += u64::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_slowest_of_a_hundred_is_the_limit() {
        let mut slow = Slow::default();
        for k in 0..100 {
            assert_eq!(slow.limit(10), None);
            slow.answered(10, Duration::from_millis(1000 - k));
        }
        assert_eq!(slow.limit(10), Some(Duration::from_millis(2 * 999)));
        // Short requests do not make long ones slow.
        assert_eq!(slow.limit(25), Some(Duration::from_millis(6 * 999)));
        assert_eq!(slow.limit(1), Some(Duration::from_millis(2 * 999)));
        assert!(slow.limit(u64::MAX).is_some());
        // Later ones replace them.
        (0..99).for_each(|_| slow.answered(0, Duration::ZERO));
        assert_eq!(slow.limit(10), Some(LEAST));
    }

    #[test]
    fn times_are_those_of_the_last_thousand() {
        let mut slow = Slow::default();
        assert_eq!(slow.latency(), [Duration::ZERO; 3]);
        slow.answered(1, Duration::from_secs(9));
        assert_eq!(slow.latency(), [Duration::from_secs(9); 3]);
        (1..=1000).rev().for_each(|k| slow.answered(1, Duration::from_millis(k)));
        assert_eq!(slow.latency(), [500, 900, 990].map(Duration::from_millis));
    }

    #[test]
    fn one_in_twenty_is_repeated() {
        let mut slow = Slow::default();
        let repeated = (0..1000).filter(|requests| slow.may_repeat(*requests)).count();
        assert_eq!(repeated, 49);
    }
}
