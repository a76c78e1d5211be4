//! One record: its payload and where it came from.

use crate::error::At;
use crate::example::{Example, SequenceExample};
use std::fmt;
use std::path::Path;

/// A record that borrows its bytes. `Copy`; the payload is never looked at unless asked.
///
/// What is made from it lives as long as the bytes do, not as long as the `Record`.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    payload: &'a [u8],
    path: Option<&'a Path>,
    /// Ordinal and offset, `UNKNOWN` if nobody knows: six words in all, for a record is made for each access.
    record: u64,
    offset: u64,
}

/// No file has so many records or bytes.
const UNKNOWN: u64 = u64::MAX;

impl<'a> Record<'a> {
    /// A record of these bytes, at this place.
    #[inline]
    pub fn new(payload: &'a [u8], at: At<'a>) -> Record<'a> {
        let At { path, record, offset } = at;
        Record { payload, path, record: record.unwrap_or(UNKNOWN), offset: offset.unwrap_or(UNKNOWN) }
    }

    /// As [`new`](Record::new), where all of the place is known.
    #[inline(always)]
    pub(crate) fn of_shard(payload: &'a [u8], path: &'a Path, record: u64, offset: u64) -> Record<'a> {
        Record { payload, path: Some(path), record, offset }
    }

    /// The payload.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// The record's shard, ordinal in the shard, and offset.
    #[inline]
    pub fn at(self) -> At<'a> {
        let known = |n: u64| (n != UNKNOWN).then_some(n);
        At { path: self.path, record: known(self.record), offset: known(self.offset) }
    }

    /// The payload as a `tf.train.Example`. Cannot fail: bytes are checked when a feature is looked up.
    #[inline]
    pub fn example(self) -> Example<'a> {
        Example::new(self.payload).at(self.at())
    }

    /// The payload as a `tf.train.SequenceExample`. Cannot fail, as [`example`](Record::example).
    #[inline]
    pub fn sequence_example(self) -> SequenceExample<'a> {
        SequenceExample::new(self.payload).at(self.at())
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("payload_len", &self.payload.len()).field("at", &self.at()).finish()
    }
}
