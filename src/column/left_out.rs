//! Records that are left out of columns and selections, because they cannot be read or do not decode.

use super::selection::Selection;
use crate::dataset::LeftOut;
use crate::error::{Error, Result};

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

    /// Adds the records of a shard, whose first record is `start`.
    pub(super) fn append(
        found: &mut Option<Undecoded>,
        len: u64,
        shard: Undecoded,
        start: u64,
    ) -> Result<()> {
        let found = Undecoded::of(found, len)?;
        shard.records.into_subset().iter().for_each(|i| found.records.insert(start + i));
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
