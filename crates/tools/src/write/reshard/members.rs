//! The records of each part.

use tfseek::order::Subset;

/// The part of a record that is not written.
const NONE: u8 = u8::MAX;

/// The part of each record.
pub(super) struct Members<'a> {
    /// The records to write. `None`: all.
    pub(super) records: Option<&'a Subset>,
    /// The part of each record of the dataset. Empty if there is no split: the records to write are part 0.
    parts: Vec<u8>,
}

impl<'a> Members<'a> {
    /// Creates the members from the parts of the records to write, in order.
    pub(super) fn new(records: Option<&'a Subset>, parts: Vec<u8>, n: u64) -> Members<'a> {
        let parts = match records {
            Some(records) if !parts.is_empty() => {
                let mut all = vec![NONE; usize::try_from(n).unwrap_or(0)];
                for (i, part) in records.iter().zip(parts) {
                    if let Some(to) = usize::try_from(i).ok().and_then(|i| all.get_mut(i)) {
                        *to = part;
                    }
                }
                all
            }
            _ => parts,
        };
        Members { records, parts }
    }

    /// Returns true if all records are in one part.
    pub(super) fn is_whole(&self) -> bool {
        self.records.is_none() && self.parts.is_empty()
    }

    /// Returns the part of a record, or `None` for one that is not written.
    pub(super) fn part_of(&self, i: u64) -> Option<usize> {
        if self.parts.is_empty() {
            return self.records.is_none_or(|records| records.rank(i).is_some()).then_some(0);
        }
        let part = usize::try_from(i).ok().and_then(|i| self.parts.get(i)).copied();
        part.filter(|&part| part != NONE).map(usize::from)
    }
}
