//! Which positions of a step belong to which rank, and what happens at the end of an epoch.
//!
//! ```text
//! position   p0          p0+B         p0+2B        ..     n
//! step       | 0          | 1          | 2          ..
//! rank       | 0 | 1 | 2  | 0 | 1 | 2  |                   each B/R of it, in order
//! ```

use crate::error::{OrderError, Result};

/// What is done with the last batch of an epoch, where n is no multiple of the batch.
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
    /// The one that is taken where nobody says: nothing is lost, and ranks stay together.
    pub fn default_for(ranks: u64) -> LastBatch {
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
}

/// Positions in a row, in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Epochs behind the one that the share is of; above 0 only with [`LastBatch::Continuous`].
    pub epoch: u64,
    /// The first position.
    pub start: u64,
    /// How many there are, at least one.
    pub len: u64,
    /// Whether they only fill up the last batch: metrics must leave them out.
    pub padding: bool,
}

/// Where a position is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The step.
    pub step: u64,
    /// The rank.
    pub rank: u64,
    /// The place in the rank's batch.
    pub place: u64,
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
        Ok(RankShare { len, batch, rank, ranks, last, start: 0 })
    }

    /// The same with its step 0 at position `start`: how a run goes on that was stopped there.
    ///
    /// # Errors
    /// [`OrderError::Position`] beyond the end of the epoch. Its end itself is fine, and leaves no steps.
    pub fn starting_at(mut self, start: u64) -> Result<RankShare> {
        if start > self.len {
            return Err(OrderError::Position { position: start, len: self.len }.into());
        }
        self.start = start;
        Ok(self)
    }

    /// Steps until the epoch ends: the same number on all ranks. With [`LastBatch::Continuous`] those that begin in it.
    pub fn steps(&self) -> u64 {
        let left = self.len - self.start;
        match self.last {
            LastBatch::Drop => left / self.batch,
            LastBatch::Pad | LastBatch::Short | LastBatch::Continuous => left.div_ceil(self.batch),
        }
    }

    /// How many samples this rank gets in [`steps`](RankShare::steps) steps, padding counted.
    pub fn samples(&self) -> u64 {
        let steps = self.steps();
        match (self.last, steps.checked_sub(1)) {
            (LastBatch::Short, Some(last)) => {
                let (begin, end) = self.part(self.size(last), self.rank);
                last * (self.batch / self.ranks) + (end - begin)
            }
            _ => steps.saturating_mul(self.batch / self.ranks),
        }
    }

    /// This rank's positions in step `k`, in runs; `None` where there is no such step. Continuous steps never end, as long
    /// as there are records and numbers to count them.
    pub fn step(&self, k: u64) -> Option<Runs> {
        self.part_of_step(k, self.rank, self.rank + 1)
    }

    /// All ranks' positions in step `k`: the global batch.
    pub fn global_step(&self, k: u64) -> Option<Runs> {
        self.part_of_step(k, 0, self.ranks)
    }

    /// Where a run stands when step `k` is delivered, as (epochs behind this one, position): what is saved, and what
    /// [`starting_at`](RankShare::starting_at) takes.
    pub fn after(&self, k: u64) -> Option<(u64, u64)> {
        let begin = self.begin(k)?;
        let end = begin + u128::from(self.batch);
        let len = u128::from(self.len);
        match self.last {
            LastBatch::Continuous => Some((u64::try_from(end / len).ok()?, (end % len) as u64)),
            _ => Some((0, end.min(len) as u64)),
        }
    }

    /// The step, rank and place that a position of this epoch comes to; `None` where it is left out: before the start, or in
    /// a last batch that is dropped. Padding repeats positions, and is not looked at.
    pub fn locate(&self, position: u64) -> Option<Spot> {
        let ahead = position.checked_sub(self.start)?;
        let (step, inside) = (ahead / self.batch, ahead % self.batch);
        if position >= self.len || step >= self.steps() {
            return None;
        }
        let size = self.size(step);
        // The last rank whose part begins at or before `inside`.
        let rank = ((u128::from(inside) + 1) * u128::from(self.ranks) - 1) / u128::from(size);
        let rank = rank as u64;
        Some(Spot { step, rank, place: inside - self.part(size, rank).0 })
    }

    fn part_of_step(&self, k: u64, rank: u64, until: u64) -> Option<Runs> {
        let begin = self.begin(k)?;
        let size = self.size(k);
        let (from, to) = (self.part(size, rank).0, self.part(size, until).0);
        let (at, end) = (begin + u128::from(from), begin + u128::from(to));
        // The last epoch that is touched has a number.
        u64::try_from(end / u128::from(self.len)).ok()?;
        Some(Runs { at, end, len: self.len, padding: self.last == LastBatch::Pad })
    }

    /// The stream position at which step `k` begins, if there is such a step.
    fn begin(&self, k: u64) -> Option<u128> {
        let endless = self.last == LastBatch::Continuous && self.len > 0;
        (endless || k < self.steps()).then(|| u128::from(self.start) + u128::from(k) * u128::from(self.batch))
    }

    /// Positions of step `k` on all ranks.
    fn size(&self, k: u64) -> u64 {
        match self.last {
            // The step exists: what is before it is below len.
            LastBatch::Short => (self.len - self.start - k * self.batch).min(self.batch),
            _ => self.batch,
        }
    }

    /// Begin and end of a rank's part in a batch of `size`.
    fn part(&self, size: u64, rank: u64) -> (u64, u64) {
        let cut = |rank: u64| (u128::from(size) * u128::from(rank) / u128::from(self.ranks)) as u64;
        (cut(rank), if rank < self.ranks { cut(rank + 1) } else { size })
    }
}

/// The positions of a step as [`Run`]s: one, unless the end of an epoch lies in between.
#[derive(Clone, Debug)]
pub struct Runs {
    at: u128,
    end: u128,
    len: u64,
    padding: bool,
}

impl Runs {
    /// Positions that are left.
    pub fn samples(&self) -> u64 {
        // Both lie in one batch.
        (self.end - self.at) as u64
    }
}

impl Iterator for Runs {
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
