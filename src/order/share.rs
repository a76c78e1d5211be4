//! The positions of each step and rank, and the last batch of an epoch.
//!
//! ```text
//! position   p0          p0+B         p0+2B        ..     n
//! step       | 0          | 1          | 2          ..
//! rank       | 0 | 1 | 2  | 0 | 1 | 2  |                   B/R positions of the step each, in order
//! worker     | 0          | 1          | 0          ..     whole steps of a rank, round-robin
//! ```

use super::buckets::BucketSteps;
use super::last_batch::LastBatch;
use crate::error::{Error, OrderError, Result};

/// The share of one rank in an epoch: its positions in each step.
///
/// A global batch consists of `batch` consecutive positions. Each rank takes one part of it, and the parts in
/// the order of the ranks are the whole batch. The samples of a step therefore do not depend on the number of
/// ranks, and a run can resume with another number.
///
/// ```
/// use tfseek::order::{LastBatch, RankShare, Run};
/// // Ten positions in global batches of four, for the second of two ranks.
/// let share = RankShare::new(10, 4, 1, 2, LastBatch::Pad)?;
/// assert_eq!(share.steps(), 3);
/// assert_eq!(share.step(0).unwrap().collect::<Vec<_>>(), [Run { epoch: 0, start: 2, len: 2, padding: false }]);
/// // The last batch has two positions left, so this rank repeats the first two.
/// assert_eq!(share.step(2).unwrap().collect::<Vec<_>>(), [Run { epoch: 0, start: 0, len: 2, padding: true }]);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankShare {
    /// Number of positions per epoch, at which a run can start.
    pub(super) len: u64,
    /// Number of samples per batch over all ranks.
    pub(super) batch: u64,
    rank: u64,
    ranks: u64,
    last: LastBatch,
    start: u64,
    worker: u64,
    /// Number of workers that share the steps.
    pub(super) workers: u64,
    /// The batches of an order of buckets. The positions above are then steps, in batches of one.
    buckets: Option<BucketSteps>,
}

/// Consecutive positions of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Epochs after the share's own; above 0 only with [`LastBatch::Continuous`].
    pub epoch: u64,
    /// The first position.
    pub start: u64,
    /// Number of positions, at least one.
    pub len: u64,
    /// True if the positions only pad the last batch. Metrics must exclude them.
    pub padding: bool,
}

/// The step, rank and batch row of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// The step of the rank, counted over all its workers.
    pub step: u64,
    /// The rank.
    pub rank: u64,
    /// The row in the rank's batch.
    pub row: u64,
}

impl RankShare {
    /// Creates the share of `rank` of `ranks` in an epoch of `len` positions, in global batches of `batch`
    /// samples.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if `rank` is not below `ranks`, or if `batch` is 0 or
    /// not a multiple of `ranks`.
    pub fn new(len: u64, batch: u64, rank: u64, ranks: u64, last: LastBatch) -> Result<RankShare> {
        if rank >= ranks {
            return Err(OrderError::Rank { rank, ranks }.into());
        }
        if batch == 0 || !batch.is_multiple_of(ranks) {
            return Err(OrderError::Batch { batch, ranks }.into());
        }
        Ok(RankShare { len, batch, rank, ranks, last, start: 0, worker: 0, workers: 1, buckets: None })
    }

    /// Creates the share of an epoch of buckets, for an order's method of the same name.
    pub(super) fn of_buckets(steps: BucketSteps, rank: u64, ranks: u64) -> Result<RankShare> {
        let share = RankShare::new(0, ranks, rank, ranks, LastBatch::Drop)?;
        Ok(RankShare { batch: 1, ..share }.with_buckets(steps))
    }

    /// Returns the same share of the batches of another epoch, or with other sizes.
    pub(super) fn with_buckets(self, steps: BucketSteps) -> RankShare {
        let len = steps.count();
        let start = self.start.min(steps.count());
        RankShare { len, start, buckets: Some(steps), ..self }
    }

    /// Returns the number of ranks.
    pub(crate) fn ranks(&self) -> u64 {
        self.ranks
    }

    /// Returns true if the share is of an order of buckets.
    pub(super) fn has_buckets(&self) -> bool {
        self.buckets.is_some()
    }

    /// Returns the same share with its step 0 at position `start`, for a run that resumes there.
    ///
    /// # Errors
    /// [`OrderError::Position`] if `start` is beyond the end of the epoch. The end itself is valid, and
    /// leaves no steps.
    pub fn starting_at(mut self, start: u64) -> Result<RankShare> {
        if start > self.len {
            return Err(OrderError::Position { position: start, len: self.len }.into());
        }
        self.start = start;
        Ok(self)
    }

    /// Restricts the share to the steps `worker`, `worker + workers`, .. of this rank: its step k is step
    /// `worker + k * workers` of the rank. It is for processes whose batches are consumed round-robin.
    /// Default: worker 0 of 1. To share samples instead would change every batch, and pad the end of each
    /// worker.
    ///
    /// # Errors
    /// [`OrderError::Refused`] if `worker` is not below `workers`, or for several workers with
    /// [`LastBatch::Continuous`].
    pub(crate) fn worker(mut self, worker: u64, workers: u64) -> Result<RankShare> {
        let reason = if worker >= workers {
            format!("no worker {worker}: there are {workers}")
        } else if workers > 1 && self.last == LastBatch::Continuous {
            format!("expected one worker for continuous batches, found {workers}")
        } else {
            (self.worker, self.workers) = (worker, workers);
            return Ok(self);
        };
        Err(Error::order(reason))
    }

    /// Returns the number of steps until the epoch ends. It is the same on all ranks. With
    /// [`LastBatch::Continuous`] it counts the steps that begin in this epoch.
    pub fn steps(&self) -> u64 {
        self.rank_steps().saturating_sub(self.worker).div_ceil(self.workers)
    }

    /// Returns the number of steps of all workers of this rank.
    fn rank_steps(&self) -> u64 {
        let left = self.len - self.start;
        match self.last {
            LastBatch::Drop => left / self.batch,
            LastBatch::Pad | LastBatch::Short | LastBatch::Continuous => left.div_ceil(self.batch),
        }
    }

    /// Returns the number of samples in the [`steps`](RankShare::steps) of this share, including padding.
    pub fn samples(&self) -> u64 {
        if self.buckets.is_some() {
            let of_step = |k| self.step(k).map_or(0, |runs| runs.map(|run| run.len).sum());
            return (0..self.steps()).map(of_step).sum();
        }
        let steps = self.steps();
        let each = self.batch / self.ranks;
        match self.rank_steps().checked_sub(1) {
            Some(last) if self.last == LastBatch::Short && last % self.workers == self.worker => {
                let (begin, end) = self.part(self.size(last), self.rank);
                (steps - 1) * each + (end - begin)
            }
            _ => steps.saturating_mul(each),
        }
    }

    /// Returns this rank's positions in step `k` as [`Run`]s: one run, unless the positions cross the end of
    /// an epoch. It returns `None` if the step does not exist. Continuous steps have no end, unless the epoch
    /// is empty or the numbers exceed u64.
    pub fn step(&self, k: u64) -> Option<impl Iterator<Item = Run> + Clone + use<>> {
        self.runs(k, Some(self.rank))
    }

    /// Returns the positions of all ranks in step `k`.
    pub(crate) fn step_of_all(&self, k: u64) -> Option<impl Iterator<Item = Run> + Clone + use<>> {
        self.runs(k, None)
    }

    /// Returns the positions of a rank, or of all ranks, in step `k`.
    fn runs(&self, k: u64, rank: Option<u64>) -> Option<RunIter> {
        let k = k.checked_mul(self.workers)?.checked_add(self.worker)?;
        let begin = self.begin(k)?;
        let part = |size| rank.map_or((0, size), |rank| self.part(size, rank));
        if let Some(buckets) = &self.buckets {
            let batch = buckets.batch(u64::try_from(begin).ok()?);
            let (from, to) = part(batch.size);
            let (at, end) =
                (u128::from(batch.begin) + u128::from(from), u128::from(batch.begin) + u128::from(to));
            return Some(RunIter { first: batch.first, at, end, len: batch.rows, padding: buckets.pads() });
        }
        let (from, to) = part(self.size(k));
        let at = begin + u128::from(from);
        let end = begin + u128::from(to);
        // The number of the last epoch reached must be a u64.
        u64::try_from(end / u128::from(self.len)).ok()?;
        Some(RunIter { first: 0, at, end, len: self.len, padding: self.last == LastBatch::Pad })
    }

    /// Returns the positions of the step that begins at the start of this share of one rank, as [`Run`]s, and
    /// the position after it as of [`after`](RankShare::after). Positions that are left out are passed over,
    /// and those that follow take their places. They are given in ascending order from the start on, each
    /// with the number of epochs after this one. `None` if the rest of the epoch has no step.
    pub(crate) fn filled(
        &self,
        left_out: impl Iterator<Item = (u64, u64)>,
    ) -> Option<(Vec<Run>, (u64, u64))> {
        let len = u128::from(self.len);
        let batch = u128::from(self.batch);
        let end = if self.is_continuous() { u128::MAX } else { len };
        let part = |at, end, padding| RunIter { first: 0, at, end, len: self.len, padding };
        let mut runs = Vec::new();
        let mut rows = 0;
        let mut at = u128::from(self.start);
        let left_out = left_out.map(|(epochs, position)| u128::from(epochs) * len + u128::from(position));
        for gap in left_out.take_while(|gap| *gap < end).chain([end]) {
            let here = (gap - at).min(batch - rows);
            runs.extend(part(at, at + here, false));
            rows += here;
            at += here;
            if rows == batch || at >= end {
                break;
            }
            at = gap + 1;
        }
        match self.last {
            _ if rows == 0 => return None,
            LastBatch::Drop if rows < batch => return None,
            LastBatch::Pad => runs.extend(part(len, len + batch - rows, true)),
            _ => {}
        }
        let epochs = u64::try_from(at / len).ok()?;
        Some((runs, if self.is_continuous() { (epochs, (at % len) as u64) } else { (0, at as u64) }))
    }

    /// Returns the share of all workers of this rank whose step 0 is `ahead` steps after step `k` of this
    /// one, in the same epoch.
    pub(crate) fn beside(&self, k: u64, ahead: i64) -> Option<RankShare> {
        let begin = self.begin(k.checked_mul(self.workers)?.checked_add(self.worker)?)?;
        let start = i128::try_from(begin).ok()? + i128::from(ahead) * i128::from(self.batch);
        let start = u64::try_from(start).ok().filter(|start| *start < self.len)?;
        let share = RankShare { start, worker: 0, workers: 1, ..self.clone() };
        (share.steps() > 0).then_some(share)
    }

    /// Returns the position of a run after step `k` was delivered, as (epochs after this one, position in
    /// that epoch). States contain this position, and [`starting_at`](RankShare::starting_at) accepts it.
    /// With several workers it is the end of the round, which consists of one step per worker.
    pub fn after(&self, k: u64) -> Option<(u64, u64)> {
        let round = k.checked_mul(self.workers)?;
        self.begin(round.checked_add(self.worker)?)?;
        let last = match self.workers {
            1 => round,
            // The last round may have fewer steps.
            workers => round.saturating_add(workers - 1).min(self.rank_steps() - 1),
        };
        let end = self.begin(last)? + u128::from(self.batch);
        let len = u128::from(self.len);
        match self.last {
            LastBatch::Continuous => Some((u64::try_from(end / len).ok()?, (end % len) as u64)),
            _ => Some((0, end.min(len) as u64)),
        }
    }

    /// Returns the number of the share's step `k` in its epoch, counted from the start of the epoch and over
    /// all workers.
    pub(crate) fn number(&self, k: u64) -> u64 {
        self.start / self.batch + k * self.workers + self.worker
    }

    /// Returns the step, rank and row of a position of this epoch. It returns `None` for a position before
    /// the start of the share, and for one in a dropped last batch. Padding rows, which repeat positions, are
    /// ignored.
    pub(super) fn locate(&self, position: u64) -> Option<StepRow> {
        if let Some(buckets) = &self.buckets {
            let (step, inside, size) = buckets.locate(position)?;
            return Some(self.row(step.checked_sub(self.start)?, inside, size));
        }
        let ahead = position.checked_sub(self.start)?;
        let step = ahead / self.batch;
        let inside = ahead % self.batch;
        if position >= self.len || step >= self.rank_steps() {
            return None;
        }
        Some(self.row(step, inside, self.size(step)))
    }

    /// Returns the row of a place in a batch of `size` positions.
    fn row(&self, step: u64, inside: u64, size: u64) -> StepRow {
        // The last rank whose part begins at or before `inside`.
        let rank = ((u128::from(inside) + 1) * u128::from(self.ranks) - 1) / u128::from(size);
        let rank = rank as u64;
        StepRow { step, rank, row: inside - self.part(size, rank).0 }
    }

    /// Returns the same share of epochs with another number of positions, from position 0 on.
    pub(super) fn of_len(self, len: u64) -> RankShare {
        RankShare { len, start: 0, ..self }
    }

    /// Returns true if a batch may continue with the next epoch.
    pub(crate) fn is_continuous(&self) -> bool {
        self.last == LastBatch::Continuous
    }

    /// Returns the position at which the rank's step `k` begins, counted over epochs, or `None` if the step
    /// does not exist.
    fn begin(&self, k: u64) -> Option<u128> {
        let endless = self.last == LastBatch::Continuous && self.len > 0;
        (endless || k < self.rank_steps())
            .then(|| u128::from(self.start) + u128::from(k) * u128::from(self.batch))
    }

    /// Returns the number of positions of the rank's step `k` over all ranks.
    fn size(&self, k: u64) -> u64 {
        match self.last {
            // The step exists, so it begins below len and nothing underflows.
            LastBatch::Short => (self.len - self.start - k * self.batch).min(self.batch),
            _ => self.batch,
        }
    }

    /// Returns the begin and end of a rank's part in a batch of `size` positions.
    fn part(&self, size: u64, rank: u64) -> (u64, u64) {
        let cut = |rank: u64| (u128::from(size) * u128::from(rank) / u128::from(self.ranks)) as u64;
        (cut(rank), if rank + 1 < self.ranks { cut(rank + 1) } else { size })
    }
}

/// An iterator over the positions of a step as [`Run`]s.
#[derive(Clone, Debug)]
struct RunIter {
    /// Position of the order at which the counted positions begin.
    first: u64,
    at: u128,
    end: u128,
    len: u64,
    padding: bool,
}

impl Iterator for RunIter {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.at >= self.end {
            return None;
        }
        let len = u128::from(self.len);
        let epoch = self.at / len;
        let start = self.at % len;
        let here = (len - start).min(self.end - self.at);
        self.at += here;
        Some(Run {
            // Padding repeats positions of the same epoch.
            epoch: if self.padding { 0 } else { epoch as u64 },
            start: self.first + start as u64,
            len: here as u64,
            padding: self.padding && epoch > 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of the workers, taken round-robin, are the steps of their rank, and each round ends at the end
    /// of its last step.
    #[test]
    fn workers_divide_the_steps_of_a_rank() {
        for last in [LastBatch::Drop, LastBatch::Pad, LastBatch::Short] {
            for (n, start, workers) in
                [(0, 0, 2), (5, 0, 3), (100, 0, 1), (100, 7, 3), (101, 0, 4), (101, 3, 9)]
            {
                let rank = RankShare::new(n, 12, 1, 3, last).unwrap().starting_at(start).unwrap();
                let mut samples = 0;
                let mut steps = 0;
                for worker in 0..workers {
                    let share = rank.clone().worker(worker, workers).unwrap();
                    (samples, steps) = (samples + share.samples(), steps + share.steps());
                    for k in 0..share.steps() {
                        let own = worker + k * workers;
                        assert!(share.step(k).unwrap().eq(rank.step(own).unwrap()));
                        let end = (k * workers + workers - 1).min(rank.steps() - 1);
                        assert_eq!(share.after(k), rank.after(end));
                    }
                    assert!(share.step(share.steps()).is_none() && share.after(share.steps()).is_none());
                }
                assert_eq!(
                    (samples, steps),
                    (rank.samples(), rank.steps()),
                    "{last:?} {n} {start} {workers}"
                );
            }
        }
        let share = |last| RankShare::new(10, 2, 0, 1, last).unwrap();
        assert!(share(LastBatch::Pad).worker(3, 3).is_err() && share(LastBatch::Pad).worker(0, 0).is_err());
        assert!(share(LastBatch::Continuous).worker(0, 2).is_err());
        assert!(share(LastBatch::Continuous).worker(0, 1).is_ok());
    }
}
