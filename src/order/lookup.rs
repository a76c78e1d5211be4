//! Queries of an epoch: the samples of a step, and the steps that contain a record.

use super::cursor::following_epoch;
use super::epoch::Order;
use super::share::{RankShare, Run, StepRow};
use crate::error::Result;

/// Number of positions looked up per call of [`Order::fill`].
const CHUNK: u64 = 64;

/// A row of a batch: a record, and its position in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The epoch.
    pub epoch: u64,
    /// The position in the epoch. Both are inputs of [`augmentation_seed`](super::augmentation_seed).
    pub position: u64,
    /// The record number.
    pub record: u64,
    /// True if the row only pads the last batch.
    pub padding: bool,
}

impl Order {
    /// Returns the samples of a step of a rank, or of any other positions, without a training run.
    ///
    /// ```
    /// use tfseek::order::{LastBatch, Order, Spec, RankShare};
    /// let order = Order::new(&Spec::Global, 1_000_000_000, 42, 3)?;
    /// let share = RankShare::new(order.len(), 256, 3, 8, LastBatch::Pad)?;
    /// // The samples of rank 3 of 8 in step 18234, and the way back from one of the records.
    /// let samples = order.samples(share.step(18_234).into_iter().flatten())?;
    /// assert_eq!(samples.len(), 32);
    /// let rows = order.rows_of(samples[5].record, &share)?;
    /// assert_eq!((rows[0].step, rows[0].rank, rows[0].row), (18_234, 3, 5));
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// Training loops should call [`fill`](Order::fill) with a reused buffer instead.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for positions that do not exist, and for epochs beyond
    /// u64.
    #[expect(clippy::indexing_slicing, reason = "`here` is at most the length of the chunk")]
    pub fn samples(&self, runs: impl IntoIterator<Item = Run>) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        let mut records = [0; CHUNK as usize];
        for run in runs {
            let epoch = following_epoch(self.epoch(), run.epoch)?;
            let later;
            let order = if run.epoch == 0 {
                self
            } else {
                later = self.at_epoch(epoch)?;
                &later
            };
            let mut done = 0;
            while done < run.len {
                let here = (run.len - done).min(CHUNK);
                let start = run.start + done;
                let records = &mut records[..here as usize];
                order.fill(start, records)?;
                // The open range is second, so that it does not step beyond the last position.
                let sample = |(&record, position)| Sample { epoch, position, record, padding: run.padding };
                samples.extend(records.iter().zip(start..).map(sample));
                done += here;
            }
        }
        Ok(samples)
    }

    /// Returns the steps, ranks and rows that contain a record in this epoch, in ascending order, without
    /// padding rows. `share` defines the run: its start, batch size, number of ranks and last batch.
    ///
    /// Each result costs as much as [`get`](Order::get). Weighted draws have no inverse, so they cost a scan
    /// of the whole epoch.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) for a record that is not below
    /// [`records`](Order::records).
    pub fn rows_of(&self, record: u64, share: &RankShare) -> Result<Vec<StepRow>> {
        let own;
        let share = if share.has_buckets() {
            own = self.share_of(share.clone())?;
            &own
        } else {
            share
        };
        Ok(self.positions_of(record)?.into_iter().filter_map(|position| share.locate(position)).collect())
    }
}
