//! One file of a dataset: its index and its bytes, opened at first touch and lent for the dataset's life.

use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::frame::{self, HEADER_LEN, OVERHEAD};
use crate::index::{Index, Pack, Span};
use crate::io::{
    Budget, Fetched, FileState, Map, PositionalFile, Promise, Region, Source, Stamp, open_regular,
};
use crate::policy::Verify;
use crate::record::{Record, RecordFile};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The way in which the bytes of a shard are reached.
#[derive(Debug)]
pub(crate) enum Access {
    /// They are in memory.
    Memory(Region),
    /// Through a map.
    Map(Promise),
    /// Through positional reads, on a descriptor that is kept while the budget lasts.
    Read(Arc<Budget>),
}

/// The place that the index of a shard comes from.
#[derive(Debug)]
pub(crate) enum IndexSource {
    Index(Index),
    /// Compared with the shard at first touch.
    Pack {
        pack: Arc<Pack>,
        slot: usize,
    },
}

/// One file of a dataset.
#[derive(Debug)]
pub(crate) struct ShardFile {
    file: RecordFile,
    len: u64,
    /// Payload bytes of a record, at most; a longer one is an error.
    max_record: u64,
    index: IndexSource,
    access: Access,
    opened: OnceLock<Opened>,
}

/// A shard that has been touched.
#[derive(Debug)]
struct Opened {
    index: Index,
    bytes: ShardBytes,
    /// Size and time of the file then; `None` for bytes that are no file.
    stamp: Option<Stamp>,
}

#[derive(Debug)]
enum ShardBytes {
    Memory(Region),
    Map(Arc<Map>),
    File(PositionalFile),
}

impl ShardBytes {
    #[inline(always)]
    fn lent(&self) -> &[u8] {
        match self {
            ShardBytes::Map(map) => map,
            ShardBytes::Memory(region) => region,
            ShardBytes::File(_) => &[],
        }
    }
}

impl ShardFile {
    /// A shard of `len` records, none of which may have a payload of more than `max_record` bytes. Opens nothing.
    pub(crate) fn new(
        path: PathBuf,
        len: u64,
        index: IndexSource,
        access: Access,
        max_record: u64,
    ) -> ShardFile {
        let file = RecordFile { path, region: OnceLock::new() };
        ShardFile { file, len, max_record, index, access, opened: OnceLock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the number of records. O(1), and known before the first touch.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if records can be lent.
    pub(crate) fn lends(&self) -> bool {
        !matches!(self.access, Access::Read(_))
    }

    /// Returns true for a file, and false for bytes in memory.
    pub(crate) fn is_file(&self) -> bool {
        !matches!(self.access, Access::Memory(_))
    }

    pub(crate) fn index(&self) -> Result<&Index> {
        Ok(&self.opened()?.index)
    }

    /// Returns the bytes of the shard by its index, if that is known without a touch.
    pub(crate) fn known_bytes(&self) -> Option<u64> {
        match (&self.index, self.opened.get()) {
            (IndexSource::Index(index), _) | (_, Some(Opened { index, .. })) => Some(index.data_size()),
            _ => None,
        }
    }

    /// Returns the file's size and time, if they are what they were when the shard was opened: then its path still names the bytes
    /// that are read.
    pub(crate) fn stamp(&self) -> Result<Option<Stamp>> {
        let then = self.opened()?.stamp;
        let now = std::fs::metadata(self.path()).and_then(|meta| Stamp::of(&meta)).ok();
        Ok(then.filter(|then| now == Some(*then)))
    }

    #[inline]
    fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.first_touch().map_err(|e| e.in_file(&self.file.path)),
        }
    }

    #[cold]
    fn first_touch(&self) -> Result<&Opened> {
        // The index is compared with the descriptor that is read from afterwards, so that no replacement slips in between.
        let open = || -> Result<(File, Index, Option<Stamp>)> {
            let file = open_regular(&self.file.path)?;
            let (index, stamp) = match &self.index {
                // A shard that has grown is read as far as its index knows it.
                IndexSource::Index(index) => (index.clone(), index.check_file(&file, true)?),
                // A pack has compared its index by itself.
                IndexSource::Pack { pack, slot } => (pack.index(*slot, &file)?, FileState::of(&file)?.stamp),
            };
            Ok((file, index, Some(stamp)))
        };
        let (index, bytes, stamp) = match &self.access {
            Access::Memory(region) => {
                let IndexSource::Index(index) = &self.index else { return Err(IndexError::Missing.into()) };
                (index.clone(), ShardBytes::Memory(region.clone()), None)
            }
            Access::Map(promise) => {
                let (file, index, stamp) = open()?;
                (index, ShardBytes::Map(Arc::new(Map::open(&file, *promise)?)), stamp)
            }
            Access::Read(budget) => {
                let (file, index, stamp) = open()?;
                (index, ShardBytes::File(PositionalFile::new(&self.file.path, file, budget)?), stamp)
            }
        };
        // Two threads may come here at once: the map of the first is kept.
        let opened = self.opened.get_or_init(|| Opened { index, bytes, stamp });
        match &opened.bytes {
            ShardBytes::Map(map) => _ = self.file.region.get_or_init(|| Arc::clone(map).into()),
            ShardBytes::Memory(region) => _ = self.file.region.get_or_init(|| region.clone()),
            ShardBytes::File(_) => {}
        }
        Ok(opened)
    }

    /// Returns the first byte of record `i`'s entry in the index, if that is in memory: to be loaded early.
    #[inline]
    pub(crate) fn entry(&self, i: u64) -> Option<&u8> {
        self.opened.get()?.index.entry(i)
    }

    /// Returns the place of record `i` of this shard, by the index.
    #[inline]
    pub(crate) fn locate(&self, i: u64) -> Result<Span> {
        let opened = self.opened()?;
        opened
            .index
            .locate(i)
            .map_err(|e| e.at(At { path: Some(&self.file.path), record: Some(i), offset: None }))
    }

    /// Returns record `i`. Only for a shard that [`lends`](ShardFile::lends).
    ///
    /// Short, so that a processor that waits for one record's bytes has room to find the next: nearly all calls end in
    /// `get_fast`, and `get_slow` finds out why one did not.
    #[inline(always)]
    pub(crate) fn get(&self, i: u64, verify: Verify) -> Result<Record<'_>> {
        match self.get_fast(i, verify) {
            Some(record) => Ok(record),
            None => self.get_slow(i, verify),
        }
    }

    #[inline(always)]
    fn get_fast(&self, i: u64, verify: Verify) -> Option<Record<'_>> {
        let opened = self.opened.get()?;
        let span = opened.index.locate_fast(i)?;
        if span.payload_len > self.max_record {
            return None;
        }
        let (offset, check) = (span.offset, verify == Verify::Payload);
        let payload = frame::payload_at(opened.bytes.lent(), offset, span.payload_len, check)?;
        Some(Record::of_file(payload, &self.file, i, span.offset))
    }

    #[cold]
    fn get_slow(&self, i: u64, verify: Verify) -> Result<Record<'_>> {
        self.lend(i, self.locate(i)?, verify)
    }

    /// Returns record `i`, which was found at `span`. Only for a shard that [`lends`](ShardFile::lends).
    #[inline]
    pub(crate) fn lend(&self, i: u64, span: Span, verify: Verify) -> Result<Record<'_>> {
        self.carve(i, span, 0, self.bytes()?, verify)
    }

    /// Returns record `i` at `span`, which was lent before, unchecked.
    pub(crate) fn lend_again(&self, i: u64, span: Span) -> Record<'_> {
        let payload = || {
            let start = usize::try_from(span.offset).ok()?.checked_add(HEADER_LEN)?;
            let end = start.checked_add(usize::try_from(span.payload_len).ok()?)?;
            self.bytes().ok()?.get(start..end)
        };
        // Never empty for want of bytes: a map is as long as it was, and a region too, unless its owner broke its promise.
        Record::of_file(payload().unwrap_or_default(), &self.file, i, span.offset)
    }

    /// Returns the bytes of a shard that [`lends`](ShardFile::lends), and none of one that is read.
    #[inline]
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        Ok(self.opened()?.bytes.lent())
    }

    /// Returns the bytes of the shard, to be announced and fetched.
    pub(crate) fn source(&self) -> Result<&dyn Source> {
        Ok(match &self.opened()?.bytes {
            ShardBytes::File(file) => file,
            ShardBytes::Memory(region) => region,
            ShardBytes::Map(map) => self.file.region.get_or_init(|| Arc::clone(map).into()),
        })
    }

    /// Returns the bytes of a record, header and footer included; `None` if it is too long to be handed out. Of a shard that
    /// lends they end where the shard ends.
    pub(crate) fn range(&self, span: Span) -> Option<Range<u64>> {
        if span.payload_len > self.max_record {
            return None;
        }
        let Range { start, mut end } = stored(span);
        if self.lends() {
            end = end.min(self.bytes().ok()?.len() as u64);
        }
        Some(start.min(end)..end)
    }

    /// Refuses a record that is longer than the limit, before anything is read or allocated for it.
    #[inline]
    pub(crate) fn check_len(&self, i: u64, span: Span) -> Result<()> {
        if span.payload_len > self.max_record {
            return Err(self.too_large(i, span));
        }
        Ok(())
    }

    #[cold]
    fn too_large(&self, i: u64, span: Span) -> Error {
        let kind = ErrorKind::RecordTooLarge { len: span.payload_len, max_record: self.max_record };
        Error::from(kind).at(At::new(&self.file.path, i, span.offset))
    }

    /// Fetches bytes and appends them to `buf`, which an error leaves as it was.
    pub(crate) fn append(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<()> {
        match self.source()?.fetch(range, buf).map_err(|e| e.in_file(&self.file.path))? {
            Fetched::Appended => {}
            Fetched::Shared(bytes) => buf.extend_from_slice(&bytes),
        }
        Ok(())
    }

    /// Returns record `i` out of `bytes`, which are those of the shard from `start` on.
    #[inline]
    pub(crate) fn carve<'b>(
        &'b self,
        i: u64,
        span: Span,
        start: u64,
        bytes: &'b [u8],
        verify: Verify,
    ) -> Result<Record<'b>> {
        self.check_len(i, span)?;
        let (here, len) = (span.offset.wrapping_sub(start), span.payload_len);
        match frame::payload_at(bytes, here, len, verify == Verify::Payload) {
            Some(payload) => Ok(Record::of_file(payload, &self.file, i, span.offset)),
            None => Err(frame::payload_fault(bytes, here, len).at(At::new(&self.file.path, i, span.offset))),
        }
    }
}

/// Returns the bytes of a record, header and footer included, by the index. What overflows ends at `u64::MAX`, where no file ends.
pub(crate) fn stored(span: Span) -> Range<u64> {
    span.offset..span.offset.saturating_add(span.payload_len).saturating_add(OVERHEAD as u64)
}
