//! The records of each split.

use tfseek::order::Subset;

/// The split of a record that is not written.
pub(super) const NONE: u8 = u8::MAX;

/// The split of each record.
pub(super) struct Members<'a> {
    /// The records to write. `None`: all.
    pub(super) records: Option<&'a Subset>,
    splits: RecordSplits,
}

enum RecordSplits {
    /// All records are in split 0.
    One,
    /// The split of each record of the dataset.
    Each(Vec<u8>),
    /// The end of each split, whose records follow the records of the split before it.
    Ranges(Vec<u64>),
}

impl<'a> Members<'a> {
    /// Creates the members from the split of each record of the dataset, which is [`NONE`] for those that are
    /// not written. Without splits all records to write are in split 0.
    pub(super) fn new(records: Option<&'a Subset>, splits: Vec<u8>) -> Members<'a> {
        let splits = if splits.is_empty() { RecordSplits::One } else { RecordSplits::Each(splits) };
        Members { records, splits }
    }

    /// Creates the members of splits that are ranges of records, from the end of each.
    pub(super) fn ranges(records: Option<&'a Subset>, ends: Vec<u64>) -> Members<'a> {
        Members { records, splits: RecordSplits::Ranges(ends) }
    }

    /// Returns true if all records are in one split.
    pub(super) fn is_whole(&self) -> bool {
        self.records.is_none() && matches!(self.splits, RecordSplits::One)
    }

    /// Returns the split of a record, or `None` for one that is not written.
    pub(super) fn split_of(&self, i: u64) -> Option<usize> {
        let is_written = || self.records.is_none_or(|records| records.rank(i).is_some());
        match &self.splits {
            RecordSplits::One => is_written().then_some(0),
            RecordSplits::Each(splits) => {
                let split = usize::try_from(i).ok().and_then(|i| splits.get(i)).copied();
                split.filter(|&split| split != NONE).map(usize::from)
            }
            RecordSplits::Ranges(ends) => is_written().then(|| ends.partition_point(|&end| end <= i)),
        }
    }
}
