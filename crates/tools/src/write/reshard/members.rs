//! The records of each split.

use tfseek::order::Subset;

/// The split of a record that is not written.
const NONE: u8 = u8::MAX;

/// The split of each record.
pub(super) struct Members<'a> {
    /// The records to write. `None`: all.
    pub(super) records: Option<&'a Subset>,
    /// The split of each record of the dataset. Empty without splits: the records to write are split 0.
    splits: Vec<u8>,
}

impl<'a> Members<'a> {
    /// Creates the members from the splits of the records to write, in order.
    pub(super) fn new(records: Option<&'a Subset>, splits: Vec<u8>, n: u64) -> Members<'a> {
        let splits = match records {
            Some(records) if !splits.is_empty() => {
                let mut all = vec![NONE; usize::try_from(n).unwrap_or(0)];
                for (i, split) in records.iter().zip(splits) {
                    if let Some(to) = usize::try_from(i).ok().and_then(|i| all.get_mut(i)) {
                        *to = split;
                    }
                }
                all
            }
            _ => splits,
        };
        Members { records, splits }
    }

    /// Returns true if all records are in one split.
    pub(super) fn is_whole(&self) -> bool {
        self.records.is_none() && self.splits.is_empty()
    }

    /// Returns the split of a record, or `None` for one that is not written.
    pub(super) fn split_of(&self, i: u64) -> Option<usize> {
        if self.splits.is_empty() {
            return self.records.is_none_or(|records| records.rank(i).is_some()).then_some(0);
        }
        let split = usize::try_from(i).ok().and_then(|i| self.splits.get(i)).copied();
        split.filter(|&split| split != NONE).map(usize::from)
    }
}
