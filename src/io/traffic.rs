//! The requests of a store.

use std::time::Duration;

/// The requests of a store in this process, and what its readers waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Number of answered requests for bytes of objects, and the bytes of their answers. Listings and small
    /// objects are not counted.
    pub requests: u64,
    /// Bytes of the answers.
    pub bytes: u64,
    /// Number of those requests that repeated a slow one.
    pub repeated: u64,
    /// Number of pieces that were in the cache on disk, instead of a request.
    pub cached: u64,
    /// Bytes of these.
    pub cached_bytes: u64,
    /// Number of reads that waited for bytes.
    pub waits: u64,
    /// Time of all waits, added up over the threads.
    pub waited: Duration,
    /// Largest number of bytes in memory that were announced and not read, with the bytes of requests under
    /// way.
    pub held: u64,
    /// Times that half, 90 % and 99 % of the last thousand requests did not exceed. Zero before the first
    /// one.
    pub latency: [Duration; 3],
}

impl Traffic {
    /// Returns what was read after `before`. The latencies and the bytes held are the current ones.
    #[must_use]
    pub fn since(&self, before: &Traffic) -> Traffic {
        Traffic {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
            repeated: self.repeated.saturating_sub(before.repeated),
            cached: self.cached.saturating_sub(before.cached),
            cached_bytes: self.cached_bytes.saturating_sub(before.cached_bytes),
            waits: self.waits.saturating_sub(before.waits),
            waited: self.waited.saturating_sub(before.waited),
            held: self.held,
            latency: self.latency,
        }
    }
}
