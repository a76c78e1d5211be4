//! The number of distinct payloads: exact up to 65,536, then estimated.

use super::distinct::HyperLogLog;
use super::frequent::{EXACT, IntMap};

/// Distinct hashes.
#[derive(Clone, Default)]
pub(crate) struct DistinctHashes {
    pub(crate) hashes: IntMap<()>,
    pub(crate) estimate: Option<HyperLogLog>,
}

impl DistinctHashes {
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        match &mut self.estimate {
            Some(estimate) => estimate.add(hash),
            None => {
                self.hashes.insert(hash, ());
                if self.hashes.len() > EXACT {
                    self.approximate();
                }
            }
        }
    }

    /// Stops exact counting.
    pub(crate) fn approximate(&mut self) {
        let estimate = self.estimate.get_or_insert_default();
        std::mem::take(&mut self.hashes).keys().for_each(|hash| estimate.add(*hash));
    }

    pub(crate) fn merge(&mut self, other: &DistinctHashes) {
        if let Some(theirs) = &other.estimate {
            self.approximate();
            self.estimate.get_or_insert_default().merge(theirs);
        }
        other.hashes.keys().for_each(|hash| self.add(*hash));
    }

    /// Returns the number of distinct hashes, and true if it is exact.
    pub(crate) fn count(&self) -> (u64, bool) {
        match &self.estimate {
            Some(estimate) => (estimate.estimate(), false),
            None => (self.hashes.len() as u64, true),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.hashes.capacity() * 9) as u64 + self.estimate.as_ref().map_or(0, |_| 1 << 14)
    }
}
