//! The positions of each step and rank, and the end of an epoch.
//!
//! ```text
//! position   p0          p0+B         p0+2B        ..     n
//! step       | 0          | 1          | 2          ..
//! rank       | 0 | 1 | 2  | 0 | 1 | 2  |                   each B/R of it, in order
//! worker     | 0          | 1          | 0          ..     whole steps of a rank, in turn
//! ```

use crate::error::{OrderError, Result};

/// How the last batch of an epoch is made where the number of positions is no multiple of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastBatch {
    /// It is left out.
    Drop,
    /// It is filled up with the epoch's first positions, which are marked as padding.
    Pad,
    /// It is smaller. Ranks may get shares of different sizes, even empty ones.
    Short,
    /// It goes on with the next epoch; no batch is ever short, and steps need not begin with an epoch.
    Continuous,
}

impl LastBatch {
    /// The default: nothing is lost, and ranks stay together.
    pub(crate) fn default_for(ranks: u64) -> LastBatch {
        if ranks <= 1 { LastBatch::Short } else { LastBatch::Pad }
    }
}

/// One rank's share of an epoch, step by step.
///
/// A global batch is `batch` positions in a row. Each rank takes one part of it, and the parts in the order of the ranks are
/// the batch again: so what is trained on does not depend on how many ranks there are, and a run may go on with more or fewer.
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
    len: u64,
    batch: u64,
    rank: u64,
    ranks: u64,
    last: LastBatch,
    start: u64,
    worker: u64,
    workers: u64,
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
    /// True if they only fill up the last batch: metrics must leave them out.
    pub padding: bool,
}

/// The step, rank and row that a position comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// The step of the rank, whichever of its workers makes it.
    pub step: u64,
    /// The rank.
    pub rank: u64,
    /// The row in the rank's batch.
    pub row: u64,
}

impl RankShare {
    /// The share of `rank` in an epoch of `len` positions, in global batches of `batch`.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order): no ranks, no such rank, or a batch that is 0 or no multiple of
    /// the ranks.
    pub fn new(len: u64, batch: u64, rank: u64, ranks: u64, last: LastBatch) -> Result<RankShare> {
        if rank >= ranks {
            return Err(OrderError::Rank { rank, ranks }.into());
        }
        if batch == 0 || !batch.is_multiple_of(ranks) {
            return Err(OrderError::Batch { batch, ranks }.into());
        }
        Ok(RankShare { len, batch, rank, ranks, last, start: 0, worker: 0, workers: 1 })
    }

    /// The same share with its step 0 at position `start`: a run that was stopped there goes on with it.
    ///
    /// # Errors
    /// [`OrderError::Position`] beyond the end of the epoch. Its end itself is valid, and leaves no steps.
    pub fn starting_at(mut self, start: u64) -> Result<RankShare> {
        if start > self.len {
            return Err(OrderError::Position { position: start, len: self.len }.into());
        }
        self.start = start;
        Ok(self)
    }

    /// Only the steps `worker`, `worker + workers`, .. of this rank: its step k is step `worker + k * workers` of the rank. For
    /// processes that hand out their batches in turn. 0 of 1 by default.
    ///
    /// # Errors
    /// [`OrderError::Refused`]: no such worker, or several workers with [`LastBatch::Continuous`].
    pub(crate) fn worker(mut self, worker: u64, workers: u64) -> Result<RankShare> {
        let reason = if worker >= workers {
            format!("worker {worker} of {workers}")
        } else if workers > 1 && self.last == LastBatch::Continuous {
            format!("batches that go on across epochs, for {workers} workers")
        } else {
            (self.worker, self.workers) = (worker, workers);
            return Ok(self);
        };
        Err(OrderError::Refused { reason: reason.into() }.into())
    }

    /// Steps until the epoch ends: the same number on all ranks. With [`LastBatch::Continuous`] those that begin in it.
    pub fn steps(&self) -> u64 {
        self.rank_steps().saturating_sub(self.worker).div_ceil(self.workers)
    }

    /// Steps of all workers.
    fn rank_steps(&self) -> u64 {
        let left = self.len - self.start;
        match self.last {
            LastBatch::Drop => left / self.batch,
            LastBatch::Pad | LastBatch::Short | LastBatch::Continuous => left.div_ceil(self.batch),
        }
    }

    /// Number of samples in the [`steps`](RankShare::steps) of this share, padding included.
    pub fn samples(&self) -> u64 {
        let (steps, each) = (self.steps(), self.batch / self.ranks);
        match self.rank_steps().checked_sub(1) {
            Some(last) if self.last == LastBatch::Short && last % self.workers == self.worker => {
                let (begin, end) = self.part(self.size(last), self.rank);
                (steps - 1) * each + (end - begin)
            }
            _ => steps.saturating_mul(each),
        }
    }

    /// This rank's positions in step `k`, as [`Run`]s: one, unless the end of an epoch lies in between. `None` if there is no
    /// such step. Continuous steps never end, as long as there are records and numbers to count them.
    pub fn step(&self, k: u64) -> Option<impl Iterator<Item = Run> + Clone + use<>> {
        let k = k.checked_mul(self.workers)?.checked_add(self.worker)?;
        let begin = self.begin(k)?;
        let (from, to) = self.part(self.size(k), self.rank);
        let (at, end) = (begin + u128::from(from), begin + u128::from(to));
        // The last epoch that is touched has a number.
        u64::try_from(end / u128::from(self.len)).ok()?;
        Some(RunIter { at, end, len: self.len, padding: self.last == LastBatch::Pad })
    }

    /// Returns where a run stands when step `k` has been delivered, as (epochs after this one, position): what is saved, and
    /// what [`starting_at`](RankShare::starting_at) takes. Of several workers it is the end of the round, one step of each.
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

    /// The step, rank and row that a position of this epoch comes to; `None` if it is left out: before the start, or in
    /// a last batch that is dropped. Padding repeats positions, and is not counted.
    pub(super) fn locate(&self, position: u64) -> Option<StepRow> {
        let ahead = position.checked_sub(self.start)?;
        let (step, inside) = (ahead / self.batch, ahead % self.batch);
        if position >= self.len || step >= self.rank_steps() {
            return None;
        }
        let size = self.size(step);
        // The last rank whose part begins at or before `inside`.
        let rank = ((u128::from(inside) + 1) * u128::from(self.ranks) - 1) / u128::from(size);
        let rank = rank as u64;
        Some(StepRow { step, rank, row: inside - self.part(size, rank).0 })
    }

    /// Positions of an epoch.
    pub(super) fn positions(&self) -> u64 {
        self.len
    }

    /// Samples of a batch over all ranks.
    pub(super) fn global_batch(&self) -> u64 {
        self.batch
    }

    /// Returns true if a batch may go on with the next epoch.
    pub(crate) fn is_continuous(&self) -> bool {
        self.last == LastBatch::Continuous
    }

    /// Returns true if several workers share the steps.
    pub(super) fn has_workers(&self) -> bool {
        self.workers > 1
    }

    /// The stream position at which the rank's step `k` begins, if there is such a step.
    fn begin(&self, k: u64) -> Option<u128> {
        let endless = self.last == LastBatch::Continuous && self.len > 0;
        (endless || k < self.rank_steps())
            .then(|| u128::from(self.start) + u128::from(k) * u128::from(self.batch))
    }

    /// Positions of the rank's step `k` on all ranks.
    fn size(&self, k: u64) -> u64 {
        match self.last {
            // The step exists: the positions before it are below len.
            LastBatch::Short => (self.len - self.start - k * self.batch).min(self.batch),
            _ => self.batch,
        }
    }

    /// Begin and end of a rank's part in a batch of `size`.
    fn part(&self, size: u64, rank: u64) -> (u64, u64) {
        let cut = |rank: u64| (u128::from(size) * u128::from(rank) / u128::from(self.ranks)) as u64;
        (cut(rank), if rank + 1 < self.ranks { cut(rank + 1) } else { size })
    }
}

/// The positions of a step as [`Run`]s.
#[derive(Clone, Debug)]
struct RunIter {
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
        let (epoch, start) = (self.at / len, self.at % len);
        let here = (len - start).min(self.end - self.at);
        self.at += here;
        Some(Run {
            // Padding stays in its epoch.
            epoch: if self.padding { 0 } else { epoch as u64 },
            start: start as u64,
            len: here as u64,
            padding: self.padding && epoch > 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_by_default() {
        assert_eq!(
            (LastBatch::default_for(1), LastBatch::default_for(8)),
            (LastBatch::Short, LastBatch::Pad)
        );
    }

    /// Workers taken in turn give the steps of their rank, and each round ends where its last step does.
    #[test]
    fn workers_share_the_steps_of_a_rank() {
        for last in [LastBatch::Drop, LastBatch::Pad, LastBatch::Short] {
            for (n, start, workers) in
                [(0, 0, 2), (5, 0, 3), (100, 0, 1), (100, 7, 3), (101, 0, 4), (101, 3, 9)]
            {
                let rank = RankShare::new(n, 12, 1, 3, last).unwrap().starting_at(start).unwrap();
                let (mut samples, mut steps) = (0, 0);
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
