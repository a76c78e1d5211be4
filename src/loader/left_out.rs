//! Records that were left out of the batches of one rank, until the batch that passes over them is returned.
//!
//! A batch that lacks rows is not returned. It is planned anew, with the positions that follow in place of
//! those that were left out, and so are the batches after it. What their workers have found by then is known
//! to the new plans, so a damaged stretch is read twice at most.

use crate::error::{Error, ErrorKind};
use crate::order::Position;
use std::sync::Arc;

/// Most records that are left out before a batch is an error, if the positions of 16 batches are fewer: their
/// errors take memory.
const MOST: u64 = 1 << 17;

/// A record that was left out, and why.
pub(super) struct LeftRecord {
    pub(super) at: Position,
    pub(super) record: u64,
    pub(super) error: Error,
}

/// Records that were left out at positions ahead of the run, in order.
#[derive(Default)]
pub(super) struct LeftOut(Vec<LeftRecord>);

impl LeftOut {
    /// Adds records. No position is known yet.
    pub(super) fn add(&mut self, mut found: Vec<LeftRecord>) {
        self.0.append(&mut found);
        self.0.sort_by_key(|record| record.at);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn positions(&self) -> Arc<[Position]> {
        self.0.iter().map(|record| record.at).collect()
    }

    /// Removes the records before a position and returns them, each with its error.
    pub(super) fn take_before(&mut self, end: Position) -> Vec<(u64, Error)> {
        let count = self.0.partition_point(|record| record.at < end);
        self.0.drain(..count).map(|record| (record.record, record.error)).collect()
    }

    pub(super) fn take_all(&mut self) -> Vec<(u64, Error)> {
        self.0.drain(..).map(|record| (record.record, record.error)).collect()
    }

    /// Returns true if there is no batch to expect: all of an epoch's positions from `start` on were left
    /// out, or very many in a row of `batch` samples each.
    pub(super) fn is_hopeless(&self, start: Position, len: u64, batch: u64) -> bool {
        let ahead = |at: Position| {
            u128::from(at.epoch - start.epoch) * u128::from(len) + u128::from(at.position)
                - u128::from(start.position)
        };
        let whole = usize::try_from(len).ok().and_then(|len| self.0.get(len.checked_sub(1)?));
        whole.is_some_and(|last| ahead(last.at) < u128::from(len))
            || self.0.len() as u64 > MOST.max(batch.saturating_mul(16))
    }

    /// Removes all records. Returns the position after the last one, and an error with the first one's.
    pub(super) fn take_error(&mut self) -> Option<(Position, Error)> {
        let last = self.0.last()?.at;
        let count = self.0.len();
        let first = self.0.drain(..).next()?;
        let reason = format!(
            "{count} records from position {} on were left out, and the first of them is {}: {}",
            first.at.position, first.record, first.error
        );
        let after = Position { position: last.position + 1, ..last };
        Some((after, ErrorKind::NoSoundRow { reason: reason.into() }.into()))
    }
}
