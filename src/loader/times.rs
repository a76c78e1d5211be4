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
    read: AtomicU64,
    parse: AtomicU64,
    decode: AtomicU64,
}

impl WorkerClock {
    /// Calls `f` and adds its time to the time of reading.
    pub(super) fn reading<T>(&self, f: impl FnOnce() -> T) -> T {
        timed(&self.read, f)
    }

    /// Calls `f` and adds its time to the time of parsing.
    pub(super) fn parsing<T>(&self, f: impl FnOnce() -> T) -> T {
        timed(&self.parse, f)
    }

    /// Calls `f` and adds its time to the time of decoding.
    pub(super) fn decoding<T>(&self, f: impl FnOnce() -> T) -> T {
        timed(&self.decode, f)
    }

    /// Returns all times. `decoders` is the time of the decoders of columns, in nanoseconds.
    pub(super) fn times(&self, decoders: u64) -> LoaderTimes {
        let [read, parse, decode] = [&self.read, &self.parse, &self.decode]
            .map(|nanos| Duration::from_nanos(nanos.load(Ordering::Relaxed)));
        // Pictures and columns are decoded while records are parsed.
        let decode = decode + Duration::from_nanos(decoders);
        LoaderTimes { read, parse: parse.saturating_sub(decode), decode }
    }
}

fn timed<T>(nanos: &AtomicU64, f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = f();
    // A sum of 2^64 nanoseconds takes 584 years.
    nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    value
}
