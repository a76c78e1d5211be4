//! Records that are left out of columns and selections, because they cannot be read or do not decode.

use super::selection::Selection;
use crate::error::{Error, Result};
use crate::warning::Warning;

/// The number of records that are left out, and the error of the first.
#[derive(Default)]
pub(super) struct LeftOut {
    count: u64,
    first: Option<Error>,
}

impl LeftOut {
    pub(super) fn add(&mut self, e: Error) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert(e);
    }

    /// Adds those of a shard after the others.
    pub(super) fn append(&mut self, next: LeftOut) {
        self.count = self.count.saturating_add(next.count);
        self.first = self.first.take().or(next.first);
    }

    /// Returns the warning about these records. `None` if there are none.
    pub(super) fn warning(&self) -> Option<Warning> {
        self.first.as_ref().map(|first| Warning::payloads_skipped(first, self.count))
    }
}

/// The records of a shard, or of a dataset, that have no values because they do not decode.
pub(super) struct Undecoded {
    pub(super) records: Selection,
    pub(super) left_out: LeftOut,
}

impl Undecoded {
    /// Adds record `i` of `len` to those that were found so far, and its error.
    pub(super) fn add(found: &mut Option<Undecoded>, i: u64, len: u64, e: Error) -> Result<()> {
        let found = Undecoded::of(found, len)?;
        found.records.insert(i);
        found.left_out.add(e);
        Ok(())
    }

    /// Adds those of a shard, whose first record is `start`.
    pub(super) fn append(
        found: &mut Option<Undecoded>,
        len: u64,
        shard: Undecoded,
        start: u64,
    ) -> Result<()> {
        let found = Undecoded::of(found, len)?;
        shard.records.iter().for_each(|i| found.records.insert(start.saturating_add(i)));
        found.left_out.append(shard.left_out);
        Ok(())
    }

    fn of(found: &mut Option<Undecoded>, len: u64) -> Result<&mut Undecoded> {
        let new = match found.take() {
            Some(found) => found,
            None => Undecoded { records: Selection::none(len)?, left_out: LeftOut::default() },
        };
        Ok(found.insert(new))
    }
}
