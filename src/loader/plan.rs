//! Plans: which records make up the next batch, and where they lie.

use super::queue::Cost;
use crate::dataset::{Dataset, RecordLocation};
use crate::error::{Error, OrderError, Result};
use crate::io::Announced;
use crate::order::{LastBatch, Order, RankShare, Run};

/// A place in a run: so many positions of that epoch were delivered, over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) epoch: u64,
    pub(super) position: u64,
}

/// The epoch that comes `ahead` epochs behind this one: 2^64 - 1 is the last.
pub(super) fn epochs_behind(epoch: u64, ahead: u64) -> Result<u64> {
    epoch.checked_add(ahead).ok_or_else(|| {
        let reason = format!("there is no epoch {ahead} behind {epoch}: the last one is 2^64 - 1");
        OrderError::Refused { reason: reason.into() }.into()
    })
}

/// One batch of one rank, before anything was read.
pub(super) struct Plan {
    /// Its positions.
    pub(super) runs: Vec<(u64, Run)>,
    pub(super) ids: Vec<u64>,
    /// Where each record lies, as far as the index says.
    pub(super) located: Vec<Option<RecordLocation>>,
    /// Why it does not say so of the others, in order.
    pub(super) faults: Vec<Error>,
    /// Where the run stands when the batch was delivered.
    pub(super) after: Cursor,
    pub(super) cost: Cost,
    /// The records whose bytes were asked for early.
    pub(super) announced: Announced,
}

/// How an epoch is shared, and between how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    pub(super) global_batch: u64,
    pub(super) rank: u64,
    pub(super) ranks: u64,
    pub(super) last: LastBatch,
    /// Which of a rank's steps: those of one worker, of so many.
    pub(super) worker: u64,
    pub(super) workers: u64,
}

impl Sharing {
    /// The steps of the epoch that are left at `cursor`.
    pub(super) fn share(&self, order: &Order, cursor: Cursor) -> Result<RankShare> {
        let share = RankShare::new(order.len(), self.global_batch, self.rank, self.ranks, self.last)?;
        share.starting_at(cursor.position)
    }

    /// How many of these steps are this worker's.
    pub(super) fn steps(&self, share: &RankShare) -> u64 {
        share.steps().saturating_sub(self.worker).div_ceil(self.workers)
    }
}

/// The plans of an epoch, from a cursor on.
pub(super) struct Source {
    dataset: Dataset,
    order: Order,
    sharing: Sharing,
    share: RankShare,
    epoch: u64,
    step: u64,
    /// Whether one epoch follows the other.
    endless: bool,
    /// Whether there was an error, which is the last that comes.
    failed: bool,
}

impl Source {
    pub(super) fn new(
        dataset: Dataset,
        order: &Order,
        sharing: Sharing,
        cursor: Cursor,
        endless: bool,
    ) -> Result<Source> {
        let order = order.at_epoch(cursor.epoch)?;
        let share = sharing.share(&order, cursor)?;
        let step = sharing.worker;
        Ok(Source { dataset, order, sharing, share, epoch: cursor.epoch, step, endless, failed: false })
    }

    /// Where the epoch behind this one begins: at position 0, unless batches go on across the end.
    pub(super) fn next_epoch(share: &RankShare, epoch: u64, last: LastBatch) -> Result<Cursor> {
        let end = share.steps().checked_sub(1).and_then(|step| share.after(step));
        let (epochs, position) = end.filter(|_| last == LastBatch::Continuous).unwrap_or((1, 0));
        Ok(Cursor { epoch: epochs_behind(epoch, epochs)?, position })
    }

    /// The next batch; `None` at the end of the epoch, and behind an error.
    pub(super) fn next(&mut self) -> Option<Result<Plan>> {
        let next = if self.failed { None } else { self.next_plan().transpose() };
        self.failed |= matches!(next, Some(Err(_)));
        next
    }

    fn next_plan(&mut self) -> Result<Option<Plan>> {
        if self.step >= self.share.steps() {
            if !self.endless || self.order.is_empty() {
                return Ok(None);
            }
            self.turn_over()?;
            if self.step >= self.share.steps() {
                return Ok(None);
            }
        }
        let step = self.step;
        self.step = step.saturating_add(self.sharing.workers);
        self.plan(step)
    }

    fn turn_over(&mut self) -> Result<()> {
        let cursor = Source::next_epoch(&self.share, self.epoch, self.sharing.last)?;
        self.order = self.order.at_epoch(cursor.epoch)?;
        self.share = self.sharing.share(&self.order, cursor)?;
        (self.epoch, self.step) = (cursor.epoch, self.sharing.worker);
        Ok(())
    }

    /// The last step of the round, one of each worker, that `step` is in: it may be the last of the epoch.
    fn end_of_round(&self, step: u64) -> u64 {
        match self.sharing.workers - 1 - self.sharing.worker {
            0 => step,
            others => step.saturating_add(others).min(self.share.steps() - 1),
        }
    }

    fn plan(&self, step: u64) -> Result<Option<Plan>> {
        let Some(runs) = self.share.step(step) else { return Ok(None) };
        let Some((epochs, position)) = self.share.after(self.end_of_round(step)) else { return Ok(None) };
        let mut ids = Vec::new();
        let mut placed = Vec::new();
        for run in runs {
            let from = ids.len();
            ids.resize(from + run.len as usize, 0);
            let epoch = epochs_behind(self.epoch, run.epoch)?;
            match run.epoch {
                0 => self.order.fill(run.start, &mut ids[from..])?,
                _ => self.order.at_epoch(epoch)?.fill(run.start, &mut ids[from..])?,
            }
            placed.push((epoch, run));
        }
        let mut faults = Vec::new();
        let mut located: Vec<Option<RecordLocation>> = Vec::with_capacity(ids.len());
        self.dataset.set().locate_all(&ids, |found| located.push(found.map_err(|e| faults.push(e)).ok()));
        let bytes = located.iter().flatten().fold(0u64, |sum, at| sum.saturating_add(at.payload_len()));
        let cost = Cost { records: ids.len() as u64, bytes };
        let after = match self.sharing.last {
            LastBatch::Continuous => Cursor { epoch: epochs_behind(self.epoch, epochs)?, position },
            // Other workers may have steps to deliver still: the epoch is over when there is nothing behind its end.
            _ if self.sharing.workers > 1 || step + 1 < self.share.steps() => {
                Cursor { epoch: self.epoch, position }
            }
            // An epoch that was delivered whole is over; behind the last one there is none.
            _ => match epochs_behind(self.epoch, 1).and_then(|epoch| self.order.at_epoch(epoch)) {
                Ok(next) => Cursor { epoch: next.epoch(), position: 0 },
                Err(_) => Cursor { epoch: self.epoch, position: self.order.len() },
            },
        };
        Ok(Some(Plan { runs: placed, ids, located, faults, after, cost, announced: Announced::Nothing }))
    }
}

/// An error that stands for a whole batch.
pub(super) type Planned = std::result::Result<Plan, Error>;
