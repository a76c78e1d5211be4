//! Questions about an epoch: which samples a step had, and which steps had a record.

use super::epoch::Order;
use super::share::{RankShare, Run, StepRow};
use crate::error::{OrderError, Result};

/// Positions that are looked up together.
const CHUNK: u64 = 64;

/// A row of a batch: a record, and the position that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The epoch.
    pub epoch: u64,
    /// The position in it. With the epoch, the input of [`augmentation_seed`](super::augmentation_seed).
    pub position: u64,
    /// The record.
    pub record: u64,
    /// True if it only fills up the last batch.
    pub padding: bool,
}

impl Order {
    /// The samples of a step, or of any other positions: those that rank r saw in step k, without a run.
    ///
    /// ```
    /// use tfseek::order::{LastBatch, Order, Spec, RankShare};
    /// let order = Order::new(&Spec::Global, 1_000_000_000, 42, 3)?;
    /// let share = RankShare::new(order.len(), 256, 3, 8, LastBatch::Pad)?;
    /// // What rank 3 of 8 saw in step 18234; and back, from one of the records.
    /// let samples = order.samples(share.step(18_234).into_iter().flatten())?;
    /// assert_eq!(samples.len(), 32);
    /// let rows = order.rows_of(samples[5].record, &share)?;
    /// assert_eq!((rows[0].step, rows[0].rank, rows[0].row), (18_234, 3, 5));
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// To train, [`fill`](Order::fill) a buffer that is kept instead.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for positions that the order does not have, and for epochs beyond u64.
    pub fn samples(&self, runs: impl IntoIterator<Item = Run>) -> Result<Vec<Sample>> {
        let (mut samples, mut records) = (Vec::new(), [0; CHUNK as usize]);
        for run in runs {
            let epoch = self.epoch().checked_add(run.epoch).ok_or_else(|| OrderError::Refused {
                reason: format!("{} epochs behind epoch {} is beyond 2^64", run.epoch, self.epoch()).into(),
            })?;
            let ahead;
            let order = if run.epoch == 0 {
                self
            } else {
                ahead = self.at_epoch(epoch)?;
                &ahead
            };
            let mut done = 0;
            while done < run.len {
                let here = (run.len - done).min(CHUNK);
                let (start, records) = (run.start + done, &mut records[..here as usize]);
                order.fill(start, records)?;
                let sample = |(position, record)| Sample { epoch, position, record, padding: run.padding };
                samples.extend((start..).zip(records.iter().copied()).map(sample));
                done += here;
            }
        }
        Ok(samples)
    }

    /// The steps, ranks and rows in which the run of a share sees a record in this epoch, in ascending order; without padding.
    ///
    /// It takes as long as [`get`](Order::get) for each of them; for weighted draws, which have no inverse, as long as for the
    /// whole epoch.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) for a record that is not below [`records`](Order::records).
    pub fn rows_of(&self, record: u64, share: &RankShare) -> Result<Vec<StepRow>> {
        Ok(self.positions_of(record)?.into_iter().filter_map(|position| share.locate(position)).collect())
    }
}
