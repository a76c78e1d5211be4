//! Numbers of wanted bytes, which threads change together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of wanted bytes that were not read yet. It is 0 if more are read than were wanted.
#[derive(Debug, Default)]
pub(crate) struct WantedBytes(AtomicU64);

impl WantedBytes {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }

    /// Returns the number that is left.
    pub(crate) fn take(&self, bytes: u64) -> u64 {
        let left = |wanted: u64| wanted.saturating_sub(bytes);
        let (Ok(before) | Err(before)) = self.0.fetch_update(Relaxed, Relaxed, |wanted| Some(left(wanted)));
        left(before)
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.0.store(bytes, Relaxed);
    }
}
