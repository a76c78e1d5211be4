//! Runs of several ways in turn: what the machine does meanwhile happens to all of them.

use std::time::Duration;

/// Best and median.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) best: Duration,
    pub(crate) median: Duration,
}

/// Times of each way. A way is given by its number, and tells how long it took.
pub(crate) fn take(ways: usize, rounds: usize, mut run: impl FnMut(usize) -> Duration) -> Vec<Times> {
    let mut times = vec![Vec::with_capacity(rounds); ways];
    for _ in 0..rounds.max(1) {
        times.iter_mut().enumerate().for_each(|(way, times)| times.push(run(way)));
    }
    let summary = |times: &mut Vec<Duration>| {
        times.sort();
        Times { best: times[0], median: times[times.len() / 2] }
    };
    times.iter_mut().map(summary).collect()
}
