//! Scans of the records of one shard, for columns and tables of steps, and the records that they leave out.

use super::dataset::Dataset;
use crate::error::{Error, Result};
use crate::frame::OVERHEAD;
use crate::index::{REPORT, Work};
use crate::policy::Verify;
use crate::record::Record;
use crate::warning::Warning;

/// Calls `f` with each of the records `ids` of shard `s`, in that order, or with the error of reading it.
/// Verifies payloads, regardless of the dataset's options.
#[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
pub(crate) fn for_each_record(
    dataset: &Dataset,
    s: usize,
    ids: impl Iterator<Item = u64> + Clone,
    work: &Work,
    mut f: impl FnMut(u64, Result<Record<'_>>) -> Result<()>,
) -> Result<()> {
    let start = dataset.set().starts()[s];
    let shard = &dataset.files()[s];
    let mut numbers = ids.clone();
    let mut seen = 0;
    let mut each = |record: Result<Record<'_>>| {
        seen += record.as_ref().map_or(0, |record| record.payload().len() + OVERHEAD) as u64;
        if seen >= REPORT as u64 {
            work.report(std::mem::take(&mut seen))?;
        }
        numbers.next().map_or(Ok(()), |i| f(i, record))
    };
    if shard.can_borrow() {
        for k in ids.map(|i| shard.first() + (i - start)) {
            each(shard.locate(k).and_then(|span| shard.borrow(k, span, Verify::Payload)))?;
        }
    } else {
        dataset.set().read_runs(ids, Verify::Payload, &mut each)?;
    }
    work.report(seen)
}

/// The number of records that are left out, because they cannot be read or do not decode, and the error of
/// the first.
#[derive(Default)]
pub(crate) struct LeftOut {
    count: u64,
    first: Option<Error>,
}

impl LeftOut {
    pub(crate) fn add(&mut self, e: Error) {
        self.count += 1;
        self.first.get_or_insert(e);
    }

    /// Adds the records of a shard after the others.
    pub(crate) fn append(&mut self, next: LeftOut) {
        self.count += next.count;
        self.first = self.first.take().or(next.first);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the warning about these records. `None` if there are none.
    pub(crate) fn warning(&self) -> Option<Warning> {
        self.first.as_ref().map(|first| Warning::payloads_skipped(first, self.count))
    }
}
