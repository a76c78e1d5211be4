//! Iteration over records in order.

use super::shard::ShardFile;
use super::shards::ShardSet;
use crate::error::{ErrorKind, Result};
use crate::record::Record;
use std::iter::FusedIterator;
use std::ops::Range;

/// An iterator over records of a [`Mapped`](super::Mapped), in order. It continues after an error, because
/// the records after a corrupt one are still readable.
#[derive(Clone, Debug)]
pub(super) struct MappedIter<'a> {
    set: &'a ShardSet,
    next: u64,
    end: u64,
    /// The current shard. Its records in the dataset end at number `to`.
    file: Option<&'a ShardFile>,
    to: u64,
    /// The ordinal of a record in the shard minus its number in the dataset, modulo 2^64.
    shift: u64,
}

impl<'a> MappedIter<'a> {
    pub(super) fn new(set: &'a ShardSet, range: Range<u64>) -> Result<MappedIter<'a>> {
        let len = set.len();
        if range.start > range.end || range.end > len {
            return Err(
                ErrorKind::OutOfRange { what: "record", i: range.end.max(range.start).into(), len }.into()
            );
        }
        Ok(MappedIter { next: range.start, end: range.end, ..MappedIter::all(set) })
    }

    pub(super) fn all(set: &'a ShardSet) -> MappedIter<'a> {
        MappedIter { set, next: 0, end: set.len(), file: None, to: 0, shift: 0 }
    }
}

impl<'a> Iterator for MappedIter<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Result<Record<'a>>> {
        if self.next >= self.end {
            return None;
        }
        let i = self.next;
        self.next += 1;
        // Numbers only increase, so `i` is not before the current shard.
        if i >= self.to {
            let shard = match self.set.shard_of(i) {
                Ok((shard, _)) => shard,
                Err(e) => return Some(Err(e)),
            };
            #[expect(clippy::indexing_slicing, reason = "the shard was found")]
            let file = &self.set.files()[shard];
            #[expect(clippy::indexing_slicing, reason = "as many shards as files")]
            let from = self.set.starts()[shard];
            (self.file, self.to) = (Some(file), from + file.len());
            self.shift = file.first().wrapping_sub(from);
        }
        Some(match self.file {
            Some(file) => file.get(i.wrapping_add(self.shift), self.set.verify()),
            None => self.set.get_slow(i),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.end - self.next);
        (left.unwrap_or(usize::MAX), left.ok())
    }

    fn nth(&mut self, n: usize) -> Option<Result<Record<'a>>> {
        self.next += (n as u64).min(self.end - self.next);
        self.next()
    }
}

impl FusedIterator for MappedIter<'_> {}
