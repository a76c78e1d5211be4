//! From positions to plans: the records of the next batch and their locations.

use super::queue::BatchCost;
use super::step::RowLengths;
use crate::dataset::{Dataset, RecordLocation};
use crate::error::{Error, Result};
use crate::io::Requested;
use crate::order::{Cursor, Order, Position, RankShare, Run, following_epoch};

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
}

/// Plans the batches of an epoch, starting at a cursor.
pub(super) struct BatchPlanner {
    dataset: Dataset,
    order: Order,
    share: RankShare,
    epoch: u64,
    step: u64,
    /// The next epoch follows without an end of the iteration.
    repeats: bool,
    /// An error was returned. It is the last result.
    failed: bool,
}

impl BatchPlanner {
    pub(super) fn new(dataset: Dataset, cursor: &Cursor) -> Result<BatchPlanner> {
        let epoch = cursor.next_position().epoch;
        let (order, share) = (cursor.order().at_epoch(epoch)?, cursor.share()?);
        Ok(BatchPlanner { dataset, order, share, epoch, step: 0, repeats: cursor.repeats(), failed: false })
    }

    /// Returns the plan of the next batch. `None` at the end of the epoch and after an error.
    pub(super) fn next(&mut self) -> Option<Result<StepPlan>> {
        let next = if self.failed { None } else { self.next_plan().transpose() };
        self.failed |= matches!(next, Some(Err(_)));
        next
    }

    fn next_plan(&mut self) -> Result<Option<StepPlan>> {
        if self.step >= self.share.steps() {
            if !self.repeats || self.order.is_empty() {
                return Ok(None);
            }
            self.start_next_epoch()?;
            if self.step >= self.share.steps() {
                return Ok(None);
            }
        }
        let step = self.step;
        self.step = step.saturating_add(1);
        self.plan(step)
    }

    /// Moves to position 0 of the next epoch, or to a later position if the last batch continued into that epoch.
    fn start_next_epoch(&mut self) -> Result<()> {
        let end = self.share.steps().checked_sub(1).and_then(|step| self.share.after(step));
        let (epochs, position) = end.filter(|_| self.share.is_continuous()).unwrap_or((1, 0));
        self.epoch = following_epoch(self.epoch, epochs)?;
        self.order = self.order.at_epoch(self.epoch)?;
        self.share = self.order.share_of(self.share.clone())?.starting_at(position)?;
        self.step = 0;
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "`filled` was the length")]
    fn plan(&self, step: u64) -> Result<Option<StepPlan>> {
        let Some(runs_of_step) = self.share.step(step) else { return Ok(None) };
        let Some((epochs, position)) = self.share.after(step) else { return Ok(None) };
        let mut ids = Vec::new();
        let mut runs = Vec::new();
        for run in runs_of_step {
            let filled = ids.len();
            ids.resize(filled + run.len as usize, 0);
            let epoch = following_epoch(self.epoch, run.epoch)?;
            match run.epoch {
                0 => self.order.fill(run.start, &mut ids[filled..])?,
                _ => self.order.at_epoch(epoch)?.fill(run.start, &mut ids[filled..])?,
            }
            runs.push((epoch, run));
        }
        let mut faults = Vec::new();
        let mut located: Vec<Option<RecordLocation>> = Vec::with_capacity(ids.len());
        self.dataset.set().locate_all(&ids, |found| located.push(found.map_err(|e| faults.push(e)).ok()));
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
