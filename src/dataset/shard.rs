//! One shard of a dataset: its index and its bytes, opened on first access and kept open.

use super::derived::{DerivedRecords, without_files};
use super::inflated::{InflatedFile, StoredBytes};
use super::segments::SegmentCache;
use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::frame::{self, HEADER_LEN};
use crate::index::{self, Index, IndexHeader, Pack, Span};
use crate::io::{
    Budget, CompressedFormat, Compression, Fetched, FileId, Map, PositionalFile, Promise, Region, Source,
    Stamp, Storage, Traffic, is_corrupt, open_regular,
};
use crate::policy::Verify;
use crate::record::{MAX_RECORD, Record, RecordFile};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The access method for the bytes of a shard.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Bytes in memory.
    Memory(Region),
    /// A map of the file.
    Map(Promise),
    /// Positional reads, on a descriptor that stays open if the budget allows.
    Read(Arc<Budget>),
    /// Decompression of a compressed file, which is read with positional reads.
    Inflate(CompressedFormat, Arc<Budget>, Arc<SegmentCache>),
    /// Ranges of an object of a store, and their decompression if it is compressed.
    Object(Storage, Option<(CompressedFormat, Arc<SegmentCache>)>),
    /// An object whose bytes are all in memory or mapped.
    Whole(Arc<dyn Source>, Region),
    /// Records that are made when they are read.
    Derived(Arc<dyn DerivedRecords>),
}

/// The source of the index of a shard.
#[derive(Clone, Debug)]
pub(crate) enum IndexSource {
    Index(Index),
    /// Entry `slot` of a pack. It is compared with the shard on first access.
    Pack {
        pack: Arc<Pack>,
        slot: usize,
        compression: Compression,
        /// Number of bytes of the record stream of a compressed shard.
        stream_end: u64,
    },
    /// Records that are made when they are read have no index.
    Nothing,
}

/// One shard of a dataset.
#[derive(Debug)]
pub(crate) struct ShardFile {
    file: RecordFile,
    /// Number of records of the file.
    total: u64,
    /// The records that belong to the dataset: all of the file, or some of them.
    records: Range<u64>,
    /// Maximum payload bytes of a record. Access to a longer record is an error.
    max_record: u64,
    /// Records are returned without verification, whatever a caller asks for: the shard was opened with
    /// [`Verify::None`].
    pub(super) unverified: bool,
    index: IndexSource,
    access: Access,
    opened: OnceLock<Opened>,
}

/// A shard after the first access.
#[derive(Debug)]
struct Opened {
    index: Index,
    bytes: ShardBytes,
    /// Size and time of the file when it was opened. `None` for bytes in memory.
    stamp: Option<Stamp>,
}

#[derive(Debug)]
enum ShardBytes {
    Memory(Region),
    Map(Arc<Map>),
    File(PositionalFile),
    Inflated(InflatedFile),
    Object(Arc<dyn Source>),
}

impl ShardBytes {
    /// Returns the bytes of a shard that is mapped or in memory, otherwise an empty slice.
    #[inline(always)]
    fn slice(&self) -> &[u8] {
        match self {
            ShardBytes::Map(map) => map,
            ShardBytes::Memory(region) => region.bytes(),
            ShardBytes::File(_) | ShardBytes::Inflated(_) | ShardBytes::Object(_) => &[],
        }
    }
}

impl ShardFile {
    /// Returns a shard of `len` records, whose payloads are limited to `max_record` bytes. Opens no file.
    pub(crate) fn new(
        path: PathBuf,
        len: u64,
        index: IndexSource,
        access: Access,
        max_record: u64,
    ) -> ShardFile {
        let file = RecordFile { path, region: OnceLock::new() };
        let opened = OnceLock::new();
        ShardFile { file, total: len, records: 0..len, max_record, unverified: false, index, access, opened }
    }

    /// Sets whether records are returned without verification.
    pub(super) fn unverified(self, unverified: bool) -> ShardFile {
        ShardFile { unverified, ..self }
    }

    /// Returns a shard of records that are made when they are read.
    pub(super) fn derived(records: Arc<dyn DerivedRecords>) -> ShardFile {
        let len = records.count();
        ShardFile::new(PathBuf::new(), len, IndexSource::Nothing, Access::Derived(records), MAX_RECORD)
    }

    /// Returns the records that are made when they are read. `None` for a file or an object.
    #[inline]
    pub(super) fn as_derived(&self) -> Option<&dyn DerivedRecords> {
        match &self.access {
            Access::Derived(records) => Some(&**records),
            _ => None,
        }
    }

    /// Returns the same shard for another dataset, which opens it again at its first access.
    pub(crate) fn again(&self) -> ShardFile {
        ShardFile { records: self.records.clone(), ..self.whole() }
    }

    /// Returns the same shard with all records of the file.
    pub(crate) fn whole(&self) -> ShardFile {
        let path = self.file.path.clone();
        let index = self.index.clone();
        let file = ShardFile::new(path, self.total, index, self.access.clone(), self.max_record);
        file.unverified(self.unverified)
    }

    /// Returns the same shard with these of its records. They are counted among those that belong to this
    /// dataset.
    pub(crate) fn cut(&self, records: Range<u64>) -> ShardFile {
        let ordinal = |i: u64| (self.records.start + i).min(self.records.end);
        ShardFile { records: ordinal(records.start)..ordinal(records.end), ..self.whole() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the number of records that belong to the dataset. It is known before the first access.
    pub(crate) fn len(&self) -> u64 {
        self.records.end - self.records.start
    }

    /// Returns the ordinals of the records that belong to the dataset.
    pub(crate) fn records(&self) -> Range<u64> {
        self.records.clone()
    }

    /// Returns the ordinal of the first record that belongs to the dataset.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.records.start
    }

    /// Returns true if all records of the file belong to the dataset.
    pub(crate) fn is_whole(&self) -> bool {
        self.len() == self.total
    }

    /// Returns the share of a number of bytes of the file that the records of the dataset have, if all
    /// records are of one size.
    pub(crate) fn share_of(&self, bytes: u64) -> u64 {
        if self.is_whole() {
            return bytes;
        }
        // The file has more records, so it has some.
        (u128::from(bytes) * u128::from(self.len()) / u128::from(self.total)) as u64
    }

    /// Returns true if records can borrow from the shard: it is mapped or in memory.
    pub(crate) fn can_borrow(&self) -> bool {
        matches!(self.access, Access::Memory(_) | Access::Map(_) | Access::Whole(..))
    }

    pub(crate) fn compression(&self) -> Compression {
        match &self.index {
            IndexSource::Index(index) => index.compression(),
            IndexSource::Pack { compression, .. } => *compression,
            IndexSource::Nothing => Compression::None,
        }
    }

    /// Returns the cache of the decompressed segments of a compressed shard.
    pub(crate) fn segment_cache(&self) -> Option<&Arc<SegmentCache>> {
        match &self.access {
            Access::Inflate(_, _, cache) | Access::Object(_, Some((_, cache))) => Some(cache),
            _ => None,
        }
    }

    /// Returns true for an object of a store whose bytes have to be waited for.
    pub(crate) fn is_object(&self) -> bool {
        match &self.access {
            Access::Object(..) => true,
            Access::Derived(records) => records.has_objects(),
            _ => false,
        }
    }

    /// Returns what the store of an object has read so far.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        match &self.access {
            Access::Object(storage, _) => storage.traffic(),
            Access::Derived(records) => records.traffic(),
            _ => None,
        }
    }

    /// Returns true for an object of a store that is not compressed, and for records that are made of
    /// objects: blocks of them are requested whole.
    pub(crate) fn has_object_blocks(&self) -> bool {
        match &self.access {
            Access::Object(_, None) => true,
            Access::Derived(records) => records.has_objects(),
            _ => false,
        }
    }

    /// Returns the byte range of all these records.
    ///
    /// # Errors
    /// The shard cannot be opened, or the index has no valid entry for one of them.
    pub(crate) fn range_of(&self, records: Range<u64>) -> Result<Range<u64>> {
        let Some(last) = records.end.checked_sub(1).filter(|last| *last >= records.start) else {
            return Ok(0..0);
        };
        Ok(self.locate(records.start)?.offset..stored_range(self.locate(last)?).end)
    }

    /// Returns true for a file or an object, false for bytes in memory.
    pub(crate) fn is_file(&self) -> bool {
        !matches!(self.access, Access::Memory(_) | Access::Derived(_))
    }

    pub(crate) fn index(&self) -> Result<&Index> {
        Ok(&self.opened()?.index)
    }

    /// Returns the index, and opens the shard only if it is needed for that.
    pub(crate) fn known_index(&self) -> Result<&Index> {
        match &self.index {
            IndexSource::Index(index) => Ok(index),
            IndexSource::Pack { .. } | IndexSource::Nothing => self.index(),
        }
    }

    /// Returns the size of the shard in bytes, of some records their share.
    pub(crate) fn stored_bytes(&self) -> Result<u64> {
        match self.as_derived() {
            Some(_) => Ok(self.known_bytes().unwrap_or_default()),
            None => Ok(self.share_of(self.index()?.stored_bytes())),
        }
    }

    /// Returns the size of the shard in bytes from its index, if it is known without opening the shard. Of
    /// some records it is their share.
    pub(crate) fn known_bytes(&self) -> Option<u64> {
        let bytes = match (&self.index, self.opened.get()) {
            (IndexSource::Index(index), _) | (_, Some(Opened { index, .. })) => Some(index.stored_bytes()),
            // A pack has no size of a plain shard.
            (IndexSource::Pack { compression, stream_end, .. }, None) => {
                compression.format().map(|_| *stream_end)
            }
            (IndexSource::Nothing, None) => {
                self.as_derived().map(|records| records.count().saturating_mul(records.mean_bytes()))
            }
        };
        bytes.map(|bytes| self.share_of(bytes))
    }

    /// Returns the mean distance of two checkpoints in decompressed bytes, or from a pack the longest. Opens
    /// no shard. `None` for a shard that is not compressed.
    pub(crate) fn checkpoint_distance(&self) -> Option<u64> {
        match (&self.index, self.opened.get()) {
            (IndexSource::Index(index), _) | (_, Some(Opened { index, .. })) => index.mean_segment(),
            (IndexSource::Pack { pack, slot, .. }, None) => pack.longest_segment(*slot),
            (IndexSource::Nothing, None) => None,
        }
    }

    /// Returns the state of the file, if its content has not changed since the shard was opened. The path
    /// then still refers to the bytes that are read, as far as size and times tell, or the fingerprints where
    /// only the time of the last change differs. A file that does not exist any more has changed. An object
    /// that was replaced cannot be read.
    pub(crate) fn stamp(&self) -> Result<Option<Stamp>> {
        let opened = self.opened()?;
        let Some(then) = &opened.stamp else { return Ok(None) };
        if matches!(self.access, Access::Object(..) | Access::Whole(..)) {
            return Ok(Some(then.clone()));
        }
        match std::fs::metadata(self.path()).and_then(|meta| Stamp::of(&meta)) {
            Ok(now) if !now.is_like(then) => Ok(None),
            Ok(now) if now.changed_ns == then.changed_ns => Ok(Some(now)),
            Ok(now) => {
                let same = open_regular(self.path()).map_err(Error::from);
                let same = same.and_then(|file| index::check_start(opened.index.header(), &file));
                Ok(same.is_ok().then_some(now))
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(Error::from(e).in_file(self.path())),
        }
    }

    #[inline]
    fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open().map_err(|e| e.in_file(&self.file.path)),
        }
    }

    /// Opens the shard and compares its index with it.
    #[cold]
    fn open(&self) -> Result<&Opened> {
        // The index is compared with the same descriptor that is read later, so the file cannot be replaced
        // in between.
        let open_file = || -> Result<(File, Index, Option<Stamp>)> {
            let file = open_regular(&self.file.path)?;
            let (index, stamp) = self.checked_index(&file)?;
            Ok((file, index, stamp))
        };
        let (index, bytes, stamp) = match &self.access {
            Access::Memory(region) => {
                let IndexSource::Index(index) = &self.index else { return Err(IndexError::Missing.into()) };
                (index.clone(), ShardBytes::Memory(region.clone()), None)
            }
            Access::Map(promise) => {
                let (file, index, stamp) = open_file()?;
                (index, ShardBytes::Map(Arc::new(Map::open(&file, *promise)?)), stamp)
            }
            Access::Read(budget) => {
                let (file, index, stamp) = open_file()?;
                (index.clone(), ShardBytes::File(self.positional(file, index, budget)?), stamp)
            }
            Access::Inflate(format, budget, cache) => {
                let (file, index, stamp) = open_file()?;
                let file = StoredBytes::File(self.positional(file, index.clone(), budget)?);
                let inflated = InflatedFile::new(file, *format, index.clone(), cache);
                (index, ShardBytes::Inflated(inflated), stamp)
            }
            Access::Whole(source, region) => {
                let (index, stamp) = self.checked_index(&**source)?;
                (index, ShardBytes::Memory(region.clone()), stamp)
            }
            Access::Object(storage, inflate) => {
                let source = storage.open_object(&self.file.path)?;
                let source = source.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                let (index, stamp) = self.checked_index(&*source)?;
                let bytes = match inflate {
                    None => ShardBytes::Object(source),
                    Some((format, cache)) => {
                        let bytes = StoredBytes::Object(source);
                        ShardBytes::Inflated(InflatedFile::new(bytes, *format, index.clone(), cache))
                    }
                };
                (index, bytes, stamp)
            }
            Access::Derived(_) => return without_files(self.as_derived()),
        };
        // Two threads may open the shard at the same time. The map of the first one is kept.
        let opened = self.opened.get_or_init(|| Opened { index, bytes, stamp });
        match &opened.bytes {
            ShardBytes::Map(map) => _ = self.file.region.get_or_init(|| Arc::clone(map).into()),
            ShardBytes::Memory(region) => _ = self.file.region.get_or_init(|| region.clone()),
            ShardBytes::File(_) | ShardBytes::Inflated(_) | ShardBytes::Object(_) => {}
        }
        Ok(opened)
    }

    /// Returns the index after comparing it with the opened shard, and the shard's state.
    fn checked_index(&self, source: &dyn Source) -> Result<(Index, Option<Stamp>)> {
        Ok(match &self.index {
            // If the shard has grown, only the indexed records are accessible.
            IndexSource::Index(index) => (index.clone(), Some(index.check_file(source, true)?)),
            // `Pack::index` compares the index with the shard.
            IndexSource::Pack { pack, slot, compression, .. } => {
                (pack.index(*slot, *compression, source)?, Some(source.stamp()?))
            }
            IndexSource::Nothing => return without_files(self.as_derived()),
        })
    }

    /// Returns a reader of the file. If it is reopened, the file must still begin with the indexed bytes.
    fn positional(&self, file: File, index: Index, budget: &Budget) -> Result<PositionalFile> {
        let same = move |file: &File| index::check_start(index.header(), file);
        Ok(PositionalFile::new(&self.file.path, file, budget, same)?)
    }

    /// Returns the header of the index. Opens no shard.
    pub(crate) fn index_header(&self) -> Result<IndexHeader> {
        match &self.index {
            IndexSource::Index(index) => Ok(*index.header()),
            IndexSource::Pack { pack, slot, .. } => pack.header(*slot),
            IndexSource::Nothing => without_files(self.as_derived()),
        }
    }

    /// Returns the identifier of the file when its index was found, if it is known.
    pub(crate) fn file_id(&self) -> Option<FileId> {
        match &self.index {
            IndexSource::Index(index) => index.shard_id(),
            IndexSource::Pack { .. } | IndexSource::Nothing => None,
        }
    }

    /// Returns the first byte of the index entry of record `i` for prefetching, if it is in memory.
    #[inline]
    pub(crate) fn entry(&self, i: u64) -> Option<&u8> {
        self.opened.get()?.index.entry(i)
    }

    /// Returns the span of record `i` from the index.
    #[inline]
    pub(crate) fn locate(&self, i: u64) -> Result<Span> {
        if let Some(records) = self.as_derived() {
            return Ok(Span { offset: 0, payload_len: records.mean_bytes() });
        }
        let opened = self.opened()?;
        opened
            .index
            .locate(i)
            .map_err(|e| e.at(At { path: Some(&self.file.path), record: Some(i), offset: None }))
    }

    /// Returns record `i`. Only for a shard with [`can_borrow`](ShardFile::can_borrow).
    ///
    /// Nearly all calls take the fast path, `get_fast`. It is short, so that a processor that waits for the
    /// bytes of one record can already execute loads of the next one. `get_slow` handles the other cases and
    /// errors.
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
        self.borrow_fast(opened, i, opened.index.locate_fast(i)?, verify)
    }

    #[cold]
    fn get_slow(&self, i: u64, verify: Verify) -> Result<Record<'_>> {
        self.borrow_slow(i, self.locate(i)?, verify)
    }

    /// Returns record `i`, which is located at `span`. Only for a shard with
    /// [`can_borrow`](ShardFile::can_borrow). Has a fast path like [`get`](ShardFile::get).
    #[inline(always)]
    pub(crate) fn borrow(&self, i: u64, span: Span, verify: Verify) -> Result<Record<'_>> {
        match self.opened.get().and_then(|opened| self.borrow_fast(opened, i, span, verify)) {
            Some(record) => Ok(record),
            None => self.borrow_slow(i, span, verify),
        }
    }

    /// Returns record `i` of a shard that is open. `None` means only that `borrow_slow` must return the
    /// record or its error.
    #[inline(always)]
    fn borrow_fast<'s>(
        &'s self,
        opened: &'s Opened,
        i: u64,
        span: Span,
        verify: Verify,
    ) -> Option<Record<'s>> {
        if span.payload_len > self.max_record {
            return None;
        }
        let offset = span.offset;
        let check = verify == Verify::Payload;
        let payload = frame::payload_at(opened.bytes.slice(), offset, span.payload_len, check)?;
        Some(Record::of_file(payload, &self.file, i, span.offset))
    }

    #[cold]
    fn borrow_slow(&self, i: u64, span: Span, verify: Verify) -> Result<Record<'_>> {
        self.extract(i, span, 0, self.bytes()?, verify)
    }

    /// Returns record `i` at `span` without verification. [`borrow`](ShardFile::borrow) must have returned
    /// this record before.
    pub(crate) fn borrow_again(&self, i: u64, span: Span) -> Record<'_> {
        let payload = || {
            let start = usize::try_from(span.offset).ok()?.checked_add(HEADER_LEN)?;
            let end = start.checked_add(usize::try_from(span.payload_len).ok()?)?;
            self.bytes().ok()?.get(start..end)
        };
        // The range is inside the bytes, as it was for `borrow`. The length of a map never changes, and the
        // length of a region only if its owner breaks the contract; the payload is then empty.
        Record::of_file(payload().unwrap_or_default(), &self.file, i, span.offset)
    }

    /// Returns the bytes of a shard with [`can_borrow`](ShardFile::can_borrow). Empty for positional reads.
    #[inline]
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        Ok(self.opened()?.bytes.slice())
    }

    /// Returns the source of the shard, which prefetches and reads byte ranges.
    pub(crate) fn source(&self) -> Result<&dyn Source> {
        self.opened().map(|opened| self.source_of(opened))
    }

    /// Returns the source of a shard that is open. Of another one, nothing has been requested.
    pub(crate) fn opened_source(&self) -> Option<&dyn Source> {
        self.opened.get().map(|opened| self.source_of(opened))
    }

    fn source_of<'a>(&'a self, opened: &'a Opened) -> &'a dyn Source {
        match &opened.bytes {
            ShardBytes::File(file) => file,
            ShardBytes::Inflated(file) => file,
            ShardBytes::Object(source) => &**source,
            ShardBytes::Memory(region) => region,
            ShardBytes::Map(map) => self.file.region.get_or_init(|| Arc::clone(map).into()),
        }
    }

    /// Returns the byte range of a record, with header and footer. `None` if the record is longer than the
    /// limit. In a shard that [`can_borrow`](ShardFile::can_borrow), the range is cut at the end of the
    /// shard.
    pub(crate) fn range(&self, span: Span) -> Option<Range<u64>> {
        if span.payload_len > self.max_record {
            return None;
        }
        let Range { start, mut end } = stored_range(span);
        if self.can_borrow() {
            end = end.min(self.bytes().ok()?.len() as u64);
        }
        Some(start.min(end)..end)
    }

    /// Checks the length of a record against the limit. Called before anything is read or allocated for the
    /// record.
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

    /// Fetches bytes and appends them to `buf`. `buf` does not change if there is an error.
    pub(crate) fn append(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<()> {
        let before = buf.len();
        self.appended(self.source()?.fetch(range.clone(), buf), range, before, buf)
    }

    /// Like [`append`](ShardFile::append), for a range whose neighbours may never be needed.
    pub(crate) fn append_alone(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<()> {
        let before = buf.len();
        self.appended(self.source()?.fetch_alone(range.clone(), buf), range, before, buf)
    }

    /// Like [`append`](ShardFile::append), for a range inside the records `block`, which will all be needed
    /// soon.
    pub(crate) fn append_in(&self, block: Range<u64>, range: Range<u64>, buf: &mut Vec<u8>) -> Result<()> {
        let ShardBytes::Inflated(file) = &self.opened()?.bytes else { return self.append(range, buf) };
        let block = self.range_of(block)?;
        let before = buf.len();
        self.appended(file.fetch_in(block, range.clone(), buf), range, before, buf)
    }

    /// Returns true if these bytes of an object failed a checksum, and will be asked for once more.
    #[cold]
    pub(crate) fn distrusts(&self, e: &Error, range: &Range<u64>) -> bool {
        is_corrupt(e) && self.is_object() && self.source().is_ok_and(|source| source.distrust(range))
    }

    /// Completes a buffer that had `before` bytes.
    fn appended(
        &self,
        fetched: Result<Fetched>,
        range: Range<u64>,
        before: usize,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let completed = fetched.and_then(|fetched| fetched.complete(&range, before, buf));
        completed.map_err(|e| e.in_file(&self.file.path))
    }

    /// Returns record `i` from `bytes`, the bytes of the shard that begin at offset `start`.
    #[inline]
    pub(crate) fn extract<'b>(
        &'b self,
        i: u64,
        span: Span,
        start: u64,
        bytes: &'b [u8],
        verify: Verify,
    ) -> Result<Record<'b>> {
        self.check_len(i, span)?;
        let here = span.offset.wrapping_sub(start);
        let len = span.payload_len;
        match frame::payload_at(bytes, here, len, verify == Verify::Payload) {
            Some(payload) => Ok(Record::of_file(payload, &self.file, i, span.offset)),
            None => {
                let at = At::new(&self.file.path, i, span.offset);
                if !self.unverified && verify != Verify::None {
                    return Err(frame::payload_fault(bytes, here, len).at(at));
                }
                let payload = frame::unverified_payload(bytes, here, len).map_err(|e| e.at(at))?;
                Ok(Record::of_file(payload, &self.file, i, span.offset))
            }
        }
    }
}

/// Returns the byte range of a record, with header and footer.
pub(crate) fn stored_range(span: Span) -> Range<u64> {
    span.offset..span.end()
}
