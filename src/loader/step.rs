//! What a loader hands out.

use crate::batch::{Batch, Row};
use crate::dataset::{Dataset, RecordLocation};
use crate::error::{At, Error};
use crate::io::Region;
use crate::order::{Run, Sample};
use crate::record::Record;
use std::fmt;
use std::ops::Range;

/// One rank's batch of one step: `'static`, and independent of loader and dataset.
pub struct Step {
    pub(super) content: Content,
    pub(super) runs: Vec<(u64, Run)>,
    pub(super) ids: Vec<u64>,
    /// Place of each record among the positions of the runs, if some were skipped.
    pub(super) kept: Option<Vec<u32>>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) payload_bytes: u64,
}

pub(super) enum Content {
    Columns(Batch),
    Records(Records),
}

/// A record that was left out because it is damaged or does not go with the schema.
#[derive(Debug)]
pub struct Skipped {
    /// Its number in the dataset.
    pub record: u64,
    /// What is wrong with it.
    pub error: Error,
}

impl Step {
    /// The columns, if the loader has a schema.
    pub fn batch(&self) -> Option<&Batch> {
        match &self.content {
            Content::Columns(batch) => Some(batch),
            Content::Records(_) => None,
        }
    }

    /// The columns, if the loader has a schema, to be kept without the step.
    pub fn into_batch(self) -> Option<Batch> {
        match self.content {
            Content::Columns(batch) => Some(batch),
            Content::Records(_) => None,
        }
    }

    /// The records, if the loader has no schema.
    pub fn records(&self) -> Option<&Records> {
        match &self.content {
            Content::Columns(_) => None,
            Content::Records(records) => Some(records),
        }
    }

    /// Numbers of the records, row by row.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no sample: a rank's share of a short last batch, or all were skipped.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Payload bytes of the samples.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Each row's record, epoch and position, and whether it is padding, which metrics must leave out.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let mut positions = self
            .runs
            .iter()
            .flat_map(|&(epoch, run)| (0..run.len).map(move |k| (epoch, run.start + k, run.padding)));
        let mut next = 0;
        self.ids.iter().enumerate().filter_map(move |(k, &record)| {
            let place = self.kept.as_ref().map_or(k, |kept| kept[k] as usize);
            let (epoch, position, padding) = positions.nth(place - next)?;
            next = place + 1;
            Some(Sample { record, epoch, position, padding })
        })
    }

    /// The records that were left out, with [`ErrorPolicy::Skip`](super::ErrorPolicy::Skip).
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Step");
        f.field("ids", &self.ids);
        match &self.content {
            Content::Columns(batch) => f.field("batch", batch),
            Content::Records(records) => f.field("records", records),
        };
        f.finish_non_exhaustive()
    }
}

/// Records of a step, of a loader without a schema. They are lent by the dataset's maps, which this keeps alive, or lie in a
/// buffer of the step.
pub struct Records {
    dataset: Dataset,
    located: Vec<RecordLocation>,
    /// The records one after the other, and where each is, if they were read.
    read: Option<(Region, Vec<Range<usize>>)>,
}

impl Records {
    pub(super) fn new(
        dataset: Dataset,
        located: Vec<RecordLocation>,
        read: Option<(Region, Vec<Range<usize>>)>,
    ) -> Records {
        Records { dataset, located, read }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.located.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.located.is_empty()
    }

    /// Record `k` of the step.
    pub fn get(&self, k: usize) -> Option<Record<'_>> {
        self.located.get(k).map(|at| self.record(k, at))
    }

    /// The records, in order: [`len`](Records::len) of them.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        self.located.iter().enumerate().map(|(k, at)| self.record(k, at))
    }

    /// Checks nothing again: what was asked to be checked was checked when the step was made.
    fn record(&self, k: usize, at: &RecordLocation) -> Record<'_> {
        match &self.read {
            None => self.dataset.set().lend_again(at),
            Some((buffer, ranges)) => {
                // There is a range in the buffer for each record.
                let payload = ranges.get(k).and_then(|range| buffer.get(range.clone())).unwrap_or_default();
                Record::new(payload, self.dataset.set().place(at))
            }
        }
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A record that was read into a buffer that a batch can hold on to.
pub(super) struct ReadRow<'a> {
    pub(super) payload: &'a [u8],
    pub(super) at: At<'a>,
    /// The buffer that the payload lies in, and where it starts there.
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
