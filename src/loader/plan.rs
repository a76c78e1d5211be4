//! From positions to plans: the records of the next batch and their locations.

use super::left_out::LeftOut;
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
    ticket: Ticket,
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
    /// Positions ahead whose records are left out, in order. Batches have the positions that follow instead.
    left_out: Arc<[Position]>,
    /// The number of those that were passed.
    passed: usize,
    /// A batch went on into the next epoch instead of some that are left out.
    crossed: bool,
    /// The next batch is the first of an iteration.
    begins: bool,
}

/// The runs of positions of a batch, and the epochs and the position after it.
type FilledRuns = (Arc<[Run]>, (u64, u64));

/// A batch that is not planned yet.
#[derive(Clone)]
pub(super) struct Ticket {
    epoch: Arc<EpochShare>,
    step: u64,
    begins: bool,
    /// The positions of a batch that passes over some, and the position after it. `None`: the positions of
    /// the step.
    filled: Option<FilledRuns>,
}

/// The order of an epoch, and a rank's share of it.
struct EpochShare {
    order: Order,
    share: RankShare,
    epoch: u64,
}

impl BatchTickets {
    /// Returns the tickets of the batches from a cursor on, without the positions that are left out.
    /// `begins`: the iteration begins there.
    pub(super) fn new(cursor: &Cursor, left_out: &LeftOut, begins: bool) -> Result<BatchTickets> {
        let epoch = cursor.next_position().epoch;
        let order = cursor.order().at_epoch(epoch)?;
        let share = cursor.share()?;
        Ok(BatchTickets {
            epoch: Arc::new(EpochShare { order, share, epoch }),
            step: 0,
            repeats: cursor.repeats(),
            ended: false,
            left_out: left_out.positions(),
            passed: 0,
            crossed: false,
            begins,
        })
    }

    fn next_ticket(&mut self) -> Result<Option<Ticket>> {
        loop {
            if self.crossed && !self.repeats {
                return Ok(None);
            }
            if self.step >= self.epoch.share.steps() {
                if !self.repeats || self.epoch.order.is_empty() {
                    return Ok(None);
                }
                self.epoch = Arc::new(self.epoch.following()?);
                self.step = 0;
                self.begins = true;
                if self.epoch.share.steps() == 0 {
                    return Ok(None);
                }
            } else if self.passed == self.left_out.len() {
                let step = self.step;
                self.step = step + 1;
                let begins = std::mem::take(&mut self.begins);
                return Ok(Some(Ticket { epoch: Arc::clone(&self.epoch), step, begins, filled: None }));
            } else if let Some(ticket) = self.next_filled()? {
                return Ok(Some(ticket));
            }
        }
    }

    /// Returns the next ticket while positions ahead are left out. `None`: the rest of the epoch has no
    /// batch.
    fn next_filled(&mut self) -> Result<Option<Ticket>> {
        let EpochShare { order, share, epoch } = &*self.epoch;
        let ahead = self.left_out.iter().skip(self.passed).map(|at| (at.epoch - *epoch, at.position));
        let filled = share.filled(ahead);
        let (epochs, position) = filled.as_ref().map_or((0, order.len()), |(_, after)| *after);
        let after = Position { epoch: following_epoch(*epoch, epochs)?, position };
        self.passed = self.left_out.partition_point(|at| *at < after);
        self.crossed = epochs > 0;
        let order = order.at_epoch(after.epoch)?;
        let share = share.clone().starting_at(position)?;
        let next = Arc::new(EpochShare { order, share, epoch: after.epoch });
        let epoch = std::mem::replace(&mut self.epoch, next);
        Ok(filled.map(|(runs, after)| {
            let begins = std::mem::take(&mut self.begins);
            Ticket { epoch, step: 0, begins, filled: Some((runs.into(), after)) }
        }))
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
    /// Returns the positions of the batch as runs. `None` if there is none.
    fn runs(&self) -> Option<impl Iterator<Item = Run>> {
        let (nominal, filled) = match &self.filled {
            Some((runs, _)) => (None, Some(runs.iter().copied())),
            None => (Some(self.epoch.share.step(self.step)?), None),
        };
        Some(nominal.into_iter().flatten().chain(filled.into_iter().flatten()))
    }

    /// Appends the records of the batch to `ids`.
    pub(super) fn add_ids(&self, ids: &mut Vec<u64>) -> Result<()> {
        self.epoch.add_ids(self.runs(), ids, |_, _| ())
    }

    /// Returns the plan of the batch. `None` if there is none.
    pub(super) fn plan(&self, dataset: &Dataset) -> Result<Option<StepPlan>> {
        let Some(found) = self.runs() else { return Ok(None) };
        let EpochShare { order, share, epoch } = &*self.epoch;
        let after = self.filled.as_ref().map_or_else(|| share.after(self.step), |(_, after)| Some(*after));
        let Some((epochs, position)) = after else { return Ok(None) };
        let mut ids = Vec::new();
        let mut runs = Vec::new();
        self.epoch.add_ids(Some(found), &mut ids, |epoch, run| runs.push((epoch, run)))?;
        let mut faults = Vec::new();
        let mut located: Vec<Option<RecordLocation>> = Vec::with_capacity(ids.len());
        dataset.set().locate_all(&ids, |found| located.push(found.map_err(|e| faults.push(e)).ok()));
        let bytes = located.iter().flatten().fold(0u64, |sum, at| sum.saturating_add(at.payload_len()));
        let cost = BatchCost { records: ids.len() as u64, bytes };
        Ok(Some(StepPlan {
            seed: order.seed(),
            at: (*epoch, share.number(self.step)),
            lengths: self.epoch.lengths(self.step, ids.len() as u64),
            runs,
            ids,
            located,
            faults,
            after: Position { epoch: following_epoch(*epoch, epochs)?, position },
            cost,
            requested: Requested::Nothing,
            begins: self.begins,
            ticket: self.clone(),
        }))
    }
}

impl StepPlan {
    /// Returns the number of rows that are no padding. They come first.
    pub(super) fn real_rows(&self) -> u64 {
        self.runs.iter().filter(|(_, run)| !run.padding).map(|(_, run)| run.len).sum()
    }

    /// Returns the epoch and the position of each row, in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        let of_run = |&(epoch, run): &(u64, Run)| {
            (0..run.len).map(move |k| Position { epoch, position: run.start + k })
        };
        self.runs.iter().flat_map(of_run)
    }

    /// Returns the plan of another step of this rank in the same epoch, `ahead` of this one. `None` if there
    /// is none whose rows could stand in this one, because they are longer than the bucket's.
    pub(super) fn neighbour(&self, ahead: i64, dataset: &Dataset) -> Result<Option<StepPlan>> {
        let EpochShare { order, share, epoch } = &*self.ticket.epoch;
        let Some(share) = share.beside(self.ticket.step, ahead) else { return Ok(None) };
        let beside = EpochShare { order: order.clone(), share, epoch: *epoch };
        let longest = |lengths: Option<RowLengths>| lengths.map(|lengths| lengths.longest);
        if longest(beside.lengths(0, 0)) > longest(self.lengths) {
            return Ok(None);
        }
        Ticket { epoch: Arc::new(beside), step: 0, begins: false, filled: None }.plan(dataset)
    }

    /// Returns this plan with `row` of another plan in all of its rows, each as padding.
    pub(super) fn repeating(&self, other: &StepPlan, row: usize) -> Option<StepPlan> {
        let at = other.positions().nth(row)?;
        let id = *other.ids.get(row)?;
        let located = *other.located.get(row)?;
        let rows = self.ids.len();
        let run = Run { epoch: 0, start: at.position, len: 1, padding: true };
        Some(StepPlan {
            runs: vec![(at.epoch, run); rows],
            ids: vec![id; rows],
            located: vec![located; rows],
            faults: Vec::new(),
            cost: BatchCost { records: rows as u64, bytes: other.cost.bytes },
            requested: Requested::Nothing,
            ticket: self.ticket.clone(),
            ..*self
        })
    }
}

impl EpochShare {
    /// Returns the next epoch from position 0, or from a later position if the last batch continued into that
    /// epoch.
    fn following(&self) -> Result<EpochShare> {
        let end = self.share.steps().checked_sub(1).and_then(|step| self.share.after(step));
        let (epochs, position) = end.filter(|_| self.share.is_continuous()).unwrap_or((1, 0));
        let epoch = following_epoch(self.epoch, epochs)?;
        let order = self.order.at_epoch(epoch)?;
        let share = order.share_of(self.share.clone())?.starting_at(position)?;
        Ok(EpochShare { order, share, epoch })
    }

    /// Appends the records at these positions to `ids`, and calls `each` with the epoch of each run of
    /// positions, and the run.
    #[expect(clippy::indexing_slicing, reason = "`filled` was the length")]
    fn add_ids(
        &self,
        runs: Option<impl Iterator<Item = Run>>,
        ids: &mut Vec<u64>,
        mut each: impl FnMut(u64, Run),
    ) -> Result<()> {
        for run in runs.into_iter().flatten() {
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

    /// Returns the lengths of the rows of a step, with buckets. Every rank computes the longest row of all
    /// ranks.
    fn lengths(&self, step: u64, rows: u64) -> Option<RowLengths> {
        let (longest, all) = self.order.lengths(self.share.step_of_all(step)?)?;
        let (_, sum) = match self.share.ranks() {
            1 => (longest, all),
            _ => self.order.lengths(self.share.step(step)?)?,
        };
        Some(RowLengths { longest, rows, sum })
    }
}
