//! One record: its payload and where it came from.

use crate::error::At;
use crate::example::{Example, SequenceExample};
use crate::frame::HEADER_LEN;
use crate::io::Region;
use crate::wire::MAX_LEN;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Payload bytes of a record, at most, by default: no message is longer, and a length that is a lie must not become memory.
pub(crate) const MAX_RECORD: u64 = MAX_LEN;

/// A record that borrows its bytes. `Copy`; the payload is never looked at unless asked.
///
/// What is made from it lives as long as the bytes do, not as long as the `Record`.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    payload: &'a [u8],
    origin: Origin<'a>,
    /// Ordinal and offset, `UNKNOWN` if nobody knows: six words in all, for a record is made for each access.
    record: u64,
    offset: u64,
}

/// No file has so many records or bytes.
const UNKNOWN: u64 = u64::MAX;

/// Where a record came from. Two words, as a path is.
#[derive(Clone, Copy)]
enum Origin<'a> {
    /// A path, empty if nobody knows.
    Path(&'a Path),
    Home(&'a Home),
}

const _: () = assert!(size_of::<Record<'static>>() == 6 * size_of::<u64>() || size_of::<usize>() < 8);

/// A file that lends records: its path, and its bytes once they are there to be held on to.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    pub(crate) region: OnceLock<Region>,
}

impl<'a> Record<'a> {
    /// A record of these bytes, at this place.
    #[inline]
    pub fn new(payload: &'a [u8], at: At<'a>) -> Record<'a> {
        let At { path, record, offset } = at;
        let origin = Origin::Path(path.unwrap_or(Path::new("")));
        Record { payload, origin, record: record.unwrap_or(UNKNOWN), offset: offset.unwrap_or(UNKNOWN) }
    }

    /// As [`new`](Record::new), where all of the place is known.
    #[inline(always)]
    pub(crate) fn of_shard(payload: &'a [u8], home: &'a Home, record: u64, offset: u64) -> Record<'a> {
        Record { payload, origin: Origin::Home(home), record, offset }
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
        let path = match self.origin {
            Origin::Path(path) => Some(path).filter(|path| !path.as_os_str().is_empty()),
            Origin::Home(home) => Some(&*home.path),
        };
        At { path, record: known(self.record), offset: known(self.offset) }
    }

    /// The memory that the payload is part of, if it was lent by a map or a region, and the offset at which the payload starts
    /// in it. A clone of the region outlives the record, and the dataset.
    pub fn region(self) -> Option<(&'a Region, usize)> {
        match self.origin {
            Origin::Path(_) => None,
            Origin::Home(home) => Some((home.region.get()?, (self.offset as usize).wrapping_add(HEADER_LEN))),
        }
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
