//! Numbers of wanted bytes, which threads change together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of wanted bytes that were not read yet. It is saturating.
#[derive(Debug, Default)]
pub(crate) struct WantedBytes(AtomicU64);

impl WantedBytes {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.update(|wanted| wanted.saturating_add(bytes));
    }

    /// Returns the number that is left.
    pub(crate) fn take(&self, bytes: u64) -> u64 {
        self.update(|wanted| wanted.saturating_sub(bytes))
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.0.store(bytes, Relaxed);
    }

    fn update(&self, f: impl Fn(u64) -> u64) -> u64 {
        // It cannot fail, because `f` always returns a value.
        f(self.0.fetch_update(Relaxed, Relaxed, |wanted| Some(f(wanted))).unwrap_or_default())
    }
}
