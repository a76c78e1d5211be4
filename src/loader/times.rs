//! How long the threads of a loader have worked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time that all threads of a loader have spent on its batches, added up over the threads.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoaderTimes {
    /// Reading: waiting for records that are not in memory. With positional reads also copying and verifying
    /// them.
    pub read: Duration,
    /// Parsing, and verifying records that are mapped.
    pub parse: Duration,
    /// Decoding pictures, and columns that a [decoder](crate::batch::ColumnDecoder) makes.
    pub decode: Duration,
}

/// The clock of all threads of a loader.
#[derive(Default)]
pub(super) struct WorkerClock {
    pub(super) read: WorkTime,
    pub(super) parse: WorkTime,
    pub(super) decode: WorkTime,
}

/// The time of one kind of work, in nanoseconds.
#[derive(Default)]
pub(super) struct WorkTime(AtomicU64);

impl WorkTime {
    /// Calls `f` and adds its time.
    pub(super) fn add<T>(&self, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = f();
        // A sum of 2^64 nanoseconds takes 584 years.
        self.0.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        value
    }
}

impl WorkerClock {
    /// Returns all times.
    pub(super) fn times(&self) -> LoaderTimes {
        let [read, parse, decode] = [&self.read, &self.parse, &self.decode]
            .map(|time| Duration::from_nanos(time.0.load(Ordering::Relaxed)));
        // Pictures and columns are decoded while records are parsed.
        LoaderTimes { read, parse: parse.saturating_sub(decode), decode }
    }
}
