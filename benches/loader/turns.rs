//! Runs of several ways in turn, so that disturbances affect all of them alike.

use std::time::Duration;

/// Best and median time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) best: Duration,
    pub(crate) median: Duration,
}

/// Returns the times of each way. `run` gets the number of the way and returns the time it took.
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
