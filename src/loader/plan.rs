//! From positions to plans: the records of the next batch and their locations.

use super::queue::BatchCost;
use super::step::RowLengths;
use crate::dataset::{Dataset, RecordLocation};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Requested;
use crate::order::{Cursor, Order, Position, RankShare, Run, following_epoch};
use std::sync::Arc;

/// The plan of one rank's batch, made before its records are read.
pub(super) struct StepPlan {
    /// The seed of the order.
    pub(super) seed: u64,
    /// The epoch in which the batch begins, and the number of its step there.
    pub(super) at: (u64, u64),
    /// Runs of positions, each with its epoch.
    pub(super) runs: Vec<(u64, Run)>,
    pub(super) ids: Vec<u64>,
    /// The location of each record. `None` if the index has no valid one.
    pub(super) located: Vec<Option<RecordLocation>>,
    /// The errors of the records without a location, in order.
    pub(super) faults: Vec<Error>,
    /// The lengths of the rows, with buckets.
    pub(super) lengths: Option<RowLengths>,
    /// The run's position after this batch.
    pub(super) after: Position,
    pub(super) cost: BatchCost,
    /// The records that were requested for prefetch.
    pub(super) requested: Requested,
    /// The first batch of an iteration or an epoch.
    pub(super) begins: bool,
}

/// The tickets of the batches of an epoch, starting at a cursor. Whoever draws a ticket plans its batch.
#[derive(Clone)]
pub(super) struct BatchTickets {
    epoch: Arc<EpochShare>,
    step: u64,
    /// The next epoch follows without an end of the iteration.
    repeats: bool,
    /// There was an error, or the end.
    ended: bool,
}

/// A batch that is not planned yet.
pub(super) struct Ticket {
    epoch: Arc<EpochShare>,
    step: u64,
}

/// The order of an epoch, and a rank's share of it.
struct EpochShare {
    order: Order,
    share: RankShare,
    epoch: u64,
}

impl BatchTickets {
    pub(super) fn new(cursor: &Cursor) -> Result<BatchTickets> {
        let epoch = cursor.next_position().epoch;
        let (order, share) = (cursor.order().at_epoch(epoch)?, cursor.share()?);
        let epoch = Arc::new(EpochShare { order, share, epoch });
        Ok(BatchTickets { epoch, step: 0, repeats: cursor.repeats(), ended: false })
    }

    fn next_ticket(&mut self) -> Result<Option<Ticket>> {
        if self.step >= self.epoch.share.steps() {
            if !self.repeats || self.epoch.order.is_empty() {
                return Ok(None);
            }
            self.epoch = Arc::new(self.epoch.following()?);
            self.step = 0;
            if self.epoch.share.steps() == 0 {
                return Ok(None);
            }
        }
        let step = self.step;
        self.step = step.saturating_add(1);
        Ok(Some(Ticket { epoch: Arc::clone(&self.epoch), step }))
    }

    /// Ends the tickets, after a batch that was the last one.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }
}

/// The last ticket may be an error.
impl Iterator for BatchTickets {
    type Item = Result<Ticket>;

    fn next(&mut self) -> Option<Result<Ticket>> {
        if self.ended {
            return None;
        }
        let next = catch_panic(|| self.next_ticket()).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Calls `f` and turns a panic into an error. Otherwise the consumer would wait forever for the batch.
pub(super) fn catch_panic<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    crate::error::catch_panic(f).unwrap_or_else(|message| Err(ErrorKind::Panicked { message }.into()))
}

impl Ticket {
    /// Appends the records of the batch to `ids`.
    pub(super) fn add_ids(&self, ids: &mut Vec<u64>) -> Result<()> {
        self.epoch.add_ids(self.step, ids, |_, _| ())
    }

    /// Returns the plan of the batch. `None` if there is none.
    pub(super) fn plan(&self, dataset: &Dataset) -> Result<Option<StepPlan>> {
        self.epoch.plan(self.step, dataset)
    }
}

impl EpochShare {
    /// Returns the next epoch from position 0, or from a later position if the last batch continued into that epoch.
    fn following(&self) -> Result<EpochShare> {
        let end = self.share.steps().checked_sub(1).and_then(|step| self.share.after(step));
        let (epochs, position) = end.filter(|_| self.share.is_continuous()).unwrap_or((1, 0));
        let epoch = following_epoch(self.epoch, epochs)?;
        let order = self.order.at_epoch(epoch)?;
        let share = order.share_of(self.share.clone())?.starting_at(position)?;
        Ok(EpochShare { order, share, epoch })
    }

    /// Appends the records of a step to `ids`, and calls `each` with the epoch of each run of positions, and the run.
    #[expect(clippy::indexing_slicing, reason = "`filled` was the length")]
    fn add_ids(&self, step: u64, ids: &mut Vec<u64>, mut each: impl FnMut(u64, Run)) -> Result<()> {
        for run in self.share.step(step).into_iter().flatten() {
            let filled = ids.len();
            ids.resize(filled + run.len as usize, 0);
            let epoch = following_epoch(self.epoch, run.epoch)?;
            match run.epoch {
                0 => self.order.fill(run.start, &mut ids[filled..])?,
                _ => self.order.at_epoch(epoch)?.fill(run.start, &mut ids[filled..])?,
            }
            each(epoch, run);
        }
        Ok(())
    }

    fn plan(&self, step: u64, dataset: &Dataset) -> Result<Option<StepPlan>> {
        if self.share.step(step).is_none() {
            return Ok(None);
        }
        let Some((epochs, position)) = self.share.after(step) else { return Ok(None) };
        let (mut ids, mut runs) = (Vec::new(), Vec::new());
        self.add_ids(step, &mut ids, |epoch, run| runs.push((epoch, run)))?;
        let mut faults = Vec::new();
        let mut located: Vec<Option<RecordLocation>> = Vec::with_capacity(ids.len());
        dataset.set().locate_all(&ids, |found| located.push(found.map_err(|e| faults.push(e)).ok()));
        let bytes = located.iter().flatten().fold(0u64, |sum, at| sum.saturating_add(at.payload_len()));
        let cost = BatchCost { records: ids.len() as u64, bytes };
        let lengths = self.lengths(step, ids.len() as u64);
        let after = Position { epoch: following_epoch(self.epoch, epochs)?, position };
        let (seed, at) = (self.order.seed(), (self.epoch, self.share.number(step)));
        Ok(Some(StepPlan {
            seed,
            at,
            runs,
            ids,
            located,
            faults,
            lengths,
            after,
            cost,
            requested: Requested::Nothing,
            begins: step == 0,
        }))
    }

    /// Returns the lengths of the rows of a step, with buckets. Every rank computes the longest row of all ranks.
    fn lengths(&self, step: u64, rows: u64) -> Option<RowLengths> {
        let (longest, all) = self.order.lengths(self.share.step_of_all(step)?)?;
        let (_, sum) = match self.share.ranks() {
            1 => (longest, all),
            _ => self.order.lengths(self.share.step(step)?)?,
        };
        Some(RowLengths { longest, rows, sum })
    }
}
