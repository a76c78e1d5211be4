//! A record: a payload and its location.

use crate::error::At;
use crate::example::{Example, SequenceExample};
use crate::frame::HEADER_LEN;
use crate::io::Region;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tfseek_wire::MAX_LEN;

/// Default of the maximum payload length in bytes: the longest protobuf message. A corrupt length must not
/// cause a large allocation.
pub(crate) const MAX_RECORD: u64 = MAX_LEN;

/// A record that borrows its bytes. `Copy`. The payload is not parsed until a feature is looked up.
///
/// Views made from it live as long as the bytes, not only as long as the `Record`.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    payload: &'a [u8],
    origin: RecordOrigin<'a>,
    /// Ordinal and offset, or `UNKNOWN`. An `Option` would make the record larger than six words, and each
    /// access creates one.
    record: u64,
    offset: u64,
}

/// The value of an unknown ordinal or offset. No file has this number of records or bytes.
const UNKNOWN: u64 = u64::MAX;

/// The file of a record. Two words, the same size as a path.
#[derive(Clone, Copy)]
enum RecordOrigin<'a> {
    /// A path, empty if it is unknown.
    Path(&'a Path),
    File(&'a RecordFile),
}

const _: () = assert!(size_of::<Record<'static>>() == 6 * size_of::<u64>() || size_of::<usize>() < 8);

/// A file whose records are borrowed from its map or read into buffers. A region in each [`Record`] would add
/// six words to each access.
#[derive(Debug)]
pub(crate) struct RecordFile {
    pub(crate) path: PathBuf,
    /// Bytes of the file, if they are mapped or in memory.
    pub(crate) region: OnceLock<Region>,
}

impl<'a> Record<'a> {
    /// Creates a record of this payload at this location.
    #[inline]
    pub fn new(payload: &'a [u8], at: At<'a>) -> Record<'a> {
        let At { path, record, offset } = at;
        let origin = RecordOrigin::Path(path.unwrap_or(Path::new("")));
        Record { payload, origin, record: record.unwrap_or(UNKNOWN), offset: offset.unwrap_or(UNKNOWN) }
    }

    /// Creates a record of `file`.
    #[inline(always)]
    pub(crate) fn of_file(payload: &'a [u8], file: &'a RecordFile, record: u64, offset: u64) -> Record<'a> {
        Record { payload, origin: RecordOrigin::File(file), record, offset }
    }

    /// Returns the payload.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// Returns the record's location: shard, ordinal in the shard, and offset.
    #[inline]
    pub fn at(self) -> At<'a> {
        let known = |n: u64| (n != UNKNOWN).then_some(n);
        let path = match self.origin {
            RecordOrigin::Path(path) => Some(path).filter(|path| !path.as_os_str().is_empty()),
            RecordOrigin::File(file) => Some(&*file.path),
        };
        At { path, record: known(self.record), offset: known(self.offset) }
    }

    /// Returns the region that contains the payload, and the payload's offset in it. `None` if the payload is
    /// not borrowed from a map or a region. A clone of the region may outlive the record and the dataset.
    pub fn region(self) -> Option<(&'a Region, usize)> {
        match self.origin {
            RecordOrigin::Path(_) => None,
            RecordOrigin::File(file) => {
                Some((file.region.get()?, (self.offset as usize).wrapping_add(HEADER_LEN)))
            }
        }
    }

    /// Returns the payload as a `tf.train.Example`. Never fails: the bytes are validated when a feature is
    /// looked up.
    #[inline]
    pub fn example(self) -> Example<'a> {
        Example::new(self.payload).at(self.at())
    }

    /// Returns the payload as a `tf.train.SequenceExample`. Never fails, like [`example`](Record::example).
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
