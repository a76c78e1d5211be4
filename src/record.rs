//! One record: its payload and where it came from.

use crate::error::At;
use crate::example::{Example, SequenceExample};
use crate::frame::HEADER_LEN;
use crate::io::Region;
use crate::wire::MAX_LEN;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The default limit on the payload bytes of a record: no message is longer, and a wrong length must not become memory.
pub(crate) const MAX_RECORD: u64 = MAX_LEN;

/// A record that borrows its bytes. `Copy`. The payload is not read before one of its features is asked for.
///
/// What is made from it lives as long as the bytes do, not as long as the `Record`.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    payload: &'a [u8],
    origin: RecordOrigin<'a>,
    /// Ordinal and offset, `UNKNOWN` where they are not known: six words in all, for a record is made for each access.
    record: u64,
    offset: u64,
}

/// No file has so many records or bytes.
const UNKNOWN: u64 = u64::MAX;

/// The file that a record came from. Two words, as a path is.
#[derive(Clone, Copy)]
enum RecordOrigin<'a> {
    /// A path, empty if it is not known.
    Path(&'a Path),
    File(&'a RecordFile),
}

const _: () = assert!(size_of::<Record<'static>>() == 6 * size_of::<u64>() || size_of::<usize>() < 8);

/// A file that lends records.
#[derive(Debug)]
pub(crate) struct RecordFile {
    pub(crate) path: PathBuf,
    /// Its bytes, once they are mapped.
    pub(crate) region: OnceLock<Region>,
}

impl<'a> Record<'a> {
    /// Makes a record of these bytes, at this place.
    #[inline]
    pub fn new(payload: &'a [u8], at: At<'a>) -> Record<'a> {
        let At { path, record, offset } = at;
        let origin = RecordOrigin::Path(path.unwrap_or(Path::new("")));
        Record { payload, origin, record: record.unwrap_or(UNKNOWN), offset: offset.unwrap_or(UNKNOWN) }
    }

    /// Makes a record of a file that may lend it.
    #[inline(always)]
    pub(crate) fn of_file(payload: &'a [u8], file: &'a RecordFile, record: u64, offset: u64) -> Record<'a> {
        Record { payload, origin: RecordOrigin::File(file), record, offset }
    }

    /// Returns the payload.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// Returns the record's shard, ordinal in the shard, and offset.
    #[inline]
    pub fn at(self) -> At<'a> {
        let known = |n: u64| (n != UNKNOWN).then_some(n);
        let path = match self.origin {
            RecordOrigin::Path(path) => Some(path).filter(|path| !path.as_os_str().is_empty()),
            RecordOrigin::File(file) => Some(&*file.path),
        };
        At { path, record: known(self.record), offset: known(self.offset) }
    }

    /// Returns the memory that the payload is part of, if a map or a region lent it, and the offset at which the payload starts
    /// in it. A clone of the region outlives the record, and the dataset.
    pub fn region(self) -> Option<(&'a Region, usize)> {
        match self.origin {
            RecordOrigin::Path(_) => None,
            RecordOrigin::File(file) => {
                Some((file.region.get()?, (self.offset as usize).wrapping_add(HEADER_LEN)))
            }
        }
    }

    /// Returns the payload as a `tf.train.Example`. Cannot fail: bytes are checked when a feature is looked up.
    #[inline]
    pub fn example(self) -> Example<'a> {
        Example::new(self.payload).at(self.at())
    }

    /// Returns the payload as a `tf.train.SequenceExample`. Cannot fail, as [`example`](Record::example).
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
