//! A range of records as an array of its own.

use super::Mapped;
use crate::error::{ErrorKind, Result};
use crate::record::Record;
use std::iter::FusedIterator;
use std::ops::Range;

/// Records `start..end` of a [`Mapped`]. `Copy`; numbers count from the slice's start.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    ds: &'a Mapped,
    start: u64,
    end: u64,
}

pub(super) fn check(range: &Range<u64>, len: u64) -> Result<()> {
    if range.start > range.end || range.end > len {
        return Err(
            ErrorKind::OutOfRange { what: "record", i: range.end.max(range.start).into(), len }.into()
        );
    }
    Ok(())
}

impl<'a> Slice<'a> {
    pub(super) fn new(ds: &'a Mapped, range: Range<u64>) -> Result<Slice<'a>> {
        check(&range, ds.len())?;
        Ok(Slice { ds, start: range.start, end: range.end })
    }

    pub(super) fn all(ds: &'a Mapped) -> Slice<'a> {
        Slice { ds, start: 0, end: ds.len() }
    }

    /// Number of records.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether there is no record.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Record `i` of the slice.
    ///
    /// # Errors
    /// Those of [`Mapped::get`].
    pub fn get(self, i: u64) -> Result<Record<'a>> {
        if i >= self.len() {
            return Err(ErrorKind::OutOfRange { what: "record", i: i.into(), len: self.len() }.into());
        }
        self.ds.get(self.start + i)
    }

    /// A slice of the slice.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    pub fn slice(self, range: Range<u64>) -> Result<Slice<'a>> {
        check(&range, self.len())?;
        Ok(Slice { start: self.start + range.start, end: self.start + range.end, ..self })
    }

    /// The records, in order.
    pub fn iter(self) -> SliceIter<'a> {
        SliceIter { ds: self.ds, next: self.start, end: self.end, shard: 0, from: 0, to: 0 }
    }
}

impl<'a> IntoIterator for Slice<'a> {
    type Item = Result<Record<'a>>;
    type IntoIter = SliceIter<'a>;

    fn into_iter(self) -> SliceIter<'a> {
        self.iter()
    }
}

/// Records in order. An error does not end it: the records behind a damaged one are still there.
#[derive(Clone, Debug)]
pub struct SliceIter<'a> {
    ds: &'a Mapped,
    next: u64,
    end: u64,
    /// The shard that holds the records `from..to` of the dataset: looked up once a shard.
    shard: usize,
    from: u64,
    to: u64,
}

impl<'a> Iterator for SliceIter<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Result<Record<'a>>> {
        if self.next >= self.end {
            return None;
        }
        let i = self.next;
        self.next += 1;
        let inner = &*self.ds.0.0;
        if i < self.from || i >= self.to {
            let (shard, k) = match self.ds.shard_of(i) {
                Ok(found) => found,
                Err(e) => return Some(Err(e)),
            };
            (self.shard, self.from) = (shard, i - k);
            self.to = self.from + inner.shards[shard].len();
        }
        let shard = &inner.shards[self.shard];
        Some(shard.get(i - self.from, inner.verify))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.end - self.next);
        (left.unwrap_or(usize::MAX), left.ok())
    }

    fn nth(&mut self, n: usize) -> Option<Result<Record<'a>>> {
        self.next = self.next.saturating_add(n as u64).min(self.end);
        self.next()
    }
}

impl FusedIterator for SliceIter<'_> {}
