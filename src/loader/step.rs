//! A step of a loader: one batch, or its unparsed records.

use crate::batch::{Batch, Row};
use crate::cache;
use crate::dataset::{Dataset, RecordLocation, ShardSet, prefetch};
use crate::error::{At, Error, ErrorKind, Result};
use crate::io::Region;
use crate::order::{Run, Sample, augmentation_seed};
use crate::policy::Verify;
use crate::record::Record;
use crate::warning::Warning;
use std::fmt;
use std::ops::Range;

/// One rank's batch of one step. It is `'static` and may outlive the loader and the dataset.
#[non_exhaustive]
pub struct Step {
    pub(super) content: StepContent,
    /// The epoch in which the batch begins.
    pub epoch: u64,
    /// The number of the step in that epoch, the same on all ranks.
    pub step: u64,
    /// The seed of the order.
    pub(super) seed: u64,
    pub(super) runs: Vec<(u64, Run)>,
    /// The record numbers, one for each row.
    pub ids: Vec<u64>,
    /// Index of each row's record among the positions of the runs. A row with the index of another repeats
    /// it, in place of a record that was skipped. `None` if no row does.
    pub(super) kept: Option<Vec<u32>>,
    /// The records that [`Damage::Skip`](crate::Damage::Skip) left out, because they are damaged or do not
    /// match the schema: their numbers in the dataset, and the reasons. On one rank the batch has the records
    /// that follow instead, otherwise padding.
    pub skipped: Vec<(u64, Error)>,
    /// Warnings about the names of the first batch, which the loader takes.
    pub(super) warnings: Vec<Warning>,
    /// The payload bytes of the batch.
    pub payload_bytes: u64,
    /// The lengths of the rows, with [`buckets`](super::LoaderOptions::buckets).
    pub lengths: Option<RowLengths>,
}

/// The lengths of a batch's rows, as buckets have them. Rows that were skipped because of damage count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLengths {
    /// The length of the longest row of the global batch, padding rows included. It is the same on all ranks,
    /// so they can pad to it.
    pub longest: u64,
    /// The number of rows of this rank.
    pub rows: u64,
    /// The sum of their lengths.
    pub sum: u64,
}

pub(super) enum StepContent {
    Columns(Batch),
    Records(StepRecords),
    Released,
}

impl Step {
    /// Returns the columns if the loader has a schema.
    pub fn batch(&self) -> Option<&Batch> {
        match &self.content {
            StepContent::Columns(batch) => Some(batch),
            StepContent::Records(_) | StepContent::Released => None,
        }
    }

    /// Converts the step into its columns if the loader has a schema.
    pub fn into_batch(self) -> Option<Batch> {
        match self.content {
            StepContent::Columns(batch) => Some(batch),
            StepContent::Records(_) | StepContent::Released => None,
        }
    }

    /// Releases the memory of the columns or the records. All else remains.
    pub fn release(&mut self) {
        self.content = StepContent::Released;
    }

    /// Returns the records in order, one for each of [`ids`](Step#structfield.ids), if the loader has no
    /// schema. Checksums are not verified again. An item is [`ErrorKind::Truncated`] if borrowed memory has
    /// become shorter.
    pub fn records(&self) -> Option<impl ExactSizeIterator<Item = Result<Record<'_>>>> {
        match &self.content {
            StepContent::Columns(_) | StepContent::Released => None,
            StepContent::Records(records) => Some(records.iter()),
        }
    }

    /// Returns the record, epoch and position of each row, and a flag for padding. Metrics must leave padding
    /// out.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let mut positions = self
            .runs
            .iter()
            .flat_map(|&(epoch, run)| (0..run.len).map(move |k| (epoch, run.start + k, run.padding)));
        // The number of positions that were taken, and the last of them.
        let mut taken = 0;
        let mut last = None;
        self.ids.iter().enumerate().filter_map(move |(row, &record)| {
            let index = self.kept.as_ref().map_or(Some(row), |kept| kept.get(row).map(|&k| k as usize))?;
            if index >= taken {
                last = positions.nth(index - taken);
                taken = index + 1;
            }
            let (epoch, position, padding) = last?;
            Some(Sample { record, epoch, position, padding: padding || index != row })
        })
    }

    /// Returns the seed for augmenting each row ([`augmentation_seed`]). A row that is padding has the seed
    /// of the row it repeats.
    pub fn augmentation_seeds(&self) -> impl Iterator<Item = u64> + '_ {
        self.samples().map(|sample| augmentation_seed(self.seed, sample.epoch, sample.position))
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Step");
        f.field("ids", &self.ids);
        match &self.content {
            StepContent::Columns(batch) => f.field("batch", batch),
            StepContent::Records(records) => f.field("records", records),
            StepContent::Released => &mut f,
        };
        f.finish_non_exhaustive()
    }
}

/// The records of a step of a loader without a schema. They are borrowed from the dataset's maps, which the
/// step keeps alive, or are in a buffer of the step.
pub(super) struct StepRecords {
    pub(super) dataset: Dataset,
    pub(super) located: Vec<RecordLocation>,
    /// The payloads in one buffer, and the range of each. `None` if the records are borrowed from maps.
    pub(super) read: Option<(Region, Vec<Range<usize>>)>,
}

impl StepRecords {
    /// Returns record `k` of the step. Verifies nothing: the checksums were verified when the step was made.
    fn get(&self, k: usize, at: &RecordLocation) -> Result<Record<'_>> {
        let location = self.dataset.set().location(at);
        let Some((buffer, ranges)) = &self.read else {
            let record = self.dataset.set().borrow_again(at);
            let expected = at.payload_len();
            let found = record.payload().len() as u64;
            if expected != found {
                // The borrowed memory has become shorter.
                let e = Error::from(ErrorKind::Truncated { need: expected, have: found });
                return Err(e.at(location));
            }
            return Ok(record);
        };
        let payload = ranges.get(k).and_then(|range| buffer.get(range.clone()));
        Ok(Record::new(payload.unwrap_or_default(), location))
    }

    /// Returns the records in order.
    fn iter(&self) -> impl ExactSizeIterator<Item = Result<Record<'_>>> {
        self.located.iter().enumerate().map(|(k, at)| self.get(k, at))
    }
}

impl fmt::Debug for StepRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A record that is borrowed from a map or a region.
pub(super) struct BorrowedRow<'a> {
    record: Record<'a>,
    /// The location of a record whose payload is not verified yet.
    unverified: Option<(&'a ShardSet, &'a RecordLocation)>,
    /// Records that the parser reads soon after this one: a short one, and a longer one.
    later: [&'a [u8]; 2],
}

impl<'a> BorrowedRow<'a> {
    /// Borrows the record at a location. If `parsed` is set, a payload that is not short is verified by
    /// [`Row::verify`].
    pub(super) fn new(
        set: &'a ShardSet,
        at: &'a RecordLocation,
        verify: Verify,
        parsed: bool,
    ) -> Result<BorrowedRow<'a>> {
        let deferred = parsed && verify == Verify::Payload && !prefetch::is_short(at.payload_len());
        let record = set.borrow(at, if deferred { Verify::Header } else { verify })?;
        Ok(BorrowedRow { record, unverified: deferred.then_some((set, at)), later: [&[]; 2] })
    }

    /// Adds to each row the records that are prefetched while it is verified.
    pub(super) fn link(rows: &mut [BorrowedRow<'a>]) {
        for k in 0..rows.len() {
            let Some(payload) = rows.get(k).map(|row| row.record.payload()) else { continue };
            if prefetch::is_short(payload.len() as u64) {
                continue;
            }
            let (distance, kind) =
                (cache::distance(payload.len()), usize::from(cache::is_far(payload.len())));
            if let Some(row) = k.checked_sub(distance).and_then(|k| rows.get_mut(k))
                && let Some(later) = row.later.get_mut(kind)
            {
                *later = payload;
            }
        }
    }
}

impl Row for BorrowedRow<'_> {
    fn payload(&self) -> &[u8] {
        self.record.payload()
    }

    fn at(&self) -> At<'_> {
        self.record.at()
    }

    fn region(&self) -> Option<(&Region, usize)> {
        self.record.region()
    }

    fn verify(&self) -> Result<()> {
        self.later.iter().for_each(|later| cache::prefetch_record(later));
        self.unverified.map_or(Ok(()), |(set, at)| set.borrow(at, Verify::Payload).map(drop))
    }
}

/// A record in a buffer that a batch can keep alive.
pub(super) struct ReadRow<'a> {
    pub(super) payload: &'a [u8],
    pub(super) at: At<'a>,
    /// The buffer that contains the payload, and the payload's offset in it.
    pub(super) buffer: (&'a Region, usize),
}

impl Row for ReadRow<'_> {
    fn payload(&self) -> &[u8] {
        self.payload
    }

    fn at(&self) -> At<'_> {
        self.at
    }

    fn region(&self) -> Option<(&Region, usize)> {
        Some(self.buffer)
    }
}
