//! One file of a dataset: its index and its bytes, opened at first touch and lent for the dataset's life.

use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::frame::{self, OVERHEAD};
use crate::index::{Index, Pack, Span, Stamp};
use crate::io::{Budget, FileId, KeptFile, Map, Promise, ReadAt, Region, grow, open_regular};
use crate::policy::Verify;
use crate::record::{Home, Record};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// How the bytes of a shard are to be reached.
#[derive(Debug)]
pub(crate) enum Door {
    /// They are there.
    Region(Region),
    /// Through a map.
    Map(Promise),
    /// Through positional reads, on a descriptor that is kept while the budget lasts.
    Pread(Arc<Budget>),
}

/// Where the index of a shard comes from.
#[derive(Debug)]
pub(crate) enum Table {
    Index(Index),
    /// Compared with the shard at first touch.
    Pack {
        pack: Arc<Pack>,
        slot: usize,
    },
}

/// Bytes that the system reads on one call of advice.
const ADVICE: usize = 128 << 10;

#[derive(Debug)]
pub(crate) struct Shard {
    home: Home,
    len: u64,
    /// Payload bytes of a record, at most; a longer one is an error.
    max_record: u64,
    table: Table,
    door: Door,
    opened: OnceLock<Opened>,
}

/// A shard that has been touched.
#[derive(Debug)]
struct Opened {
    index: Index,
    bytes: Bytes,
    /// Size and time of the file then; none for bytes that are no file.
    stamp: Option<Stamp>,
}

/// What tells a file from another that has taken its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    stamp: Stamp,
    id: Option<FileId>,
}

impl State {
    fn of(file: &File) -> std::io::Result<State> {
        let meta = file.metadata()?;
        Ok(State { stamp: Stamp::of(&meta)?, id: FileId::known(&meta) })
    }
}

#[derive(Debug)]
enum Bytes {
    Region(Region),
    Map(Arc<Map>),
    Kept(KeptFile),
    /// The descriptors ran out: the file is opened for each read, and must be what it was at first touch.
    Reopened(State),
}

impl Bytes {
    #[inline(always)]
    fn lent(&self) -> &[u8] {
        match self {
            Bytes::Map(map) => map,
            Bytes::Region(region) => region,
            Bytes::Kept(_) | Bytes::Reopened(_) => &[],
        }
    }
}

impl Shard {
    /// A shard of `len` records, none of which may have a payload of more than `max_record` bytes. Opens nothing.
    pub(crate) fn new(path: PathBuf, len: u64, table: Table, door: Door, max_record: u64) -> Shard {
        let home = Home { path, region: OnceLock::new() };
        Shard { home, len, max_record, table, door, opened: OnceLock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.home.path
    }

    /// Number of records. O(1), and known before the first touch.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether records can be lent.
    pub(crate) fn is_bytes(&self) -> bool {
        !matches!(self.door, Door::Pread { .. })
    }

    /// Whether it is a file, and not bytes that somebody has.
    pub(crate) fn is_file(&self) -> bool {
        !matches!(self.door, Door::Region(_))
    }

    pub(crate) fn index(&self) -> Result<&Index> {
        Ok(&self.opened()?.index)
    }

    /// Bytes of the shard by its index, if that is at hand without a touch.
    pub(crate) fn known_bytes(&self) -> Option<u64> {
        match (&self.table, self.opened.get()) {
            (Table::Index(index), _) | (_, Some(Opened { index, .. })) => Some(index.data_size()),
            _ => None,
        }
    }

    /// The file's size and time, if they are what they were when the shard was opened: then its path is still the name of the
    /// bytes that are read.
    pub(crate) fn stamp(&self) -> Result<Option<Stamp>> {
        let then = self.opened()?.stamp;
        let now = std::fs::metadata(self.path()).and_then(|meta| Stamp::of(&meta)).ok();
        Ok(then.filter(|then| now == Some(*then)))
    }

    #[inline]
    fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.first_touch().map_err(|e| e.in_file(&self.home.path)),
        }
    }

    #[cold]
    fn first_touch(&self) -> Result<&Opened> {
        // The index is compared with the descriptor that is read from afterwards, so that no replacement slips in between.
        let open = || -> Result<(File, Index, Stamp)> {
            let file = open_regular(&self.home.path)?;
            let (index, stamp) = match &self.table {
                Table::Index(index) => (index.clone(), index.check_beginning(&file)?),
                // A pack has compared its index by itself.
                Table::Pack { pack, slot } => (pack.index(*slot, &file)?, Stamp::of(&file.metadata()?)?),
            };
            Ok((file, index, stamp))
        };
        let opened = match &self.door {
            Door::Region(region) => {
                let Table::Index(index) = &self.table else { return Err(IndexError::Missing.into()) };
                Opened { index: index.clone(), bytes: Bytes::Region(region.clone()), stamp: None }
            }
            Door::Map(promise) => {
                let (file, index, stamp) = open()?;
                let bytes = Bytes::Map(Arc::new(Map::open(&file, *promise)?));
                Opened { index, bytes, stamp: Some(stamp) }
            }
            Door::Pread(budget) => {
                let (file, index, stamp) = open()?;
                let bytes = match budget.keep_shard(file) {
                    Ok(kept) => Bytes::Kept(kept),
                    Err(file) => Bytes::Reopened(State::of(&file)?),
                };
                Opened { index, bytes, stamp: Some(stamp) }
            }
        };
        // Two threads may come here at once: what is held on to is the map of the one that was first.
        let opened = self.opened.get_or_init(|| opened);
        match &opened.bytes {
            Bytes::Map(map) => _ = self.home.region.get_or_init(|| Arc::clone(map).into()),
            Bytes::Region(region) => _ = self.home.region.get_or_init(|| region.clone()),
            Bytes::Kept(_) | Bytes::Reopened(_) => {}
        }
        Ok(opened)
    }

    /// The byte with which record `i`'s entry in the index begins, if that is at hand: to be loaded early.
    #[inline]
    pub(crate) fn entry(&self, i: u64) -> Option<&u8> {
        self.opened.get()?.index.entry(i)
    }

    /// Where record `i` of this shard lies, by the index.
    #[inline]
    pub(crate) fn locate(&self, i: u64) -> Result<Span> {
        let opened = self.opened()?;
        opened
            .index
            .locate(i)
            .map_err(|e| e.at(At { path: Some(&self.home.path), record: Some(i), offset: None }))
    }

    /// Record `i`. Only for a shard that [`is_bytes`](Shard::is_bytes).
    ///
    /// Short, so that a processor that waits for one record's bytes has room to find the next: nearly all calls end in
    /// `near`, which says yes or nothing, and `far` finds out why.
    #[inline(always)]
    pub(crate) fn get(&self, i: u64, verify: Verify) -> Result<Record<'_>> {
        match self.near(i, verify) {
            Some(record) => Ok(record),
            None => self.far(i, verify),
        }
    }

    #[inline(always)]
    fn near(&self, i: u64, verify: Verify) -> Option<Record<'_>> {
        let opened = self.opened.get()?;
        let span = opened.index.near(i)?;
        if span.payload_len > self.max_record {
            return None;
        }
        let (offset, check) = (span.offset, verify == Verify::Payload);
        let payload = frame::known(opened.bytes.lent(), offset, span.payload_len, check)?;
        Some(Record::of_shard(payload, &self.home, i, span.offset))
    }

    #[cold]
    fn far(&self, i: u64, verify: Verify) -> Result<Record<'_>> {
        self.lend(i, self.locate(i)?, verify)
    }

    /// Record `i`, which was found at `span`. Only for a shard that [`is_bytes`](Shard::is_bytes).
    #[inline]
    pub(crate) fn lend(&self, i: u64, span: Span, verify: Verify) -> Result<Record<'_>> {
        self.carve(i, span, 0, self.bytes()?, verify)
    }

    /// Record `i` at `span`, which was lent before, unchecked.
    pub(crate) fn lent_before(&self, i: u64, span: Span) -> Record<'_> {
        let payload = || {
            let start = usize::try_from(span.offset).ok()?.checked_add(frame::HEADER_LEN)?;
            let end = start.checked_add(usize::try_from(span.payload_len).ok()?)?;
            self.bytes().ok()?.get(start..end)
        };
        // Never empty for want of bytes: a map is as long as it was, and a region too, unless its owner broke its promise.
        Record::of_shard(payload().unwrap_or_default(), &self.home, i, span.offset)
    }

    /// The bytes that are there; none for a shard that is read.
    #[inline]
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        Ok(self.opened()?.bytes.lent())
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
        Error::from(kind).at(At::new(&self.home.path, i, span.offset))
    }

    /// Reads the bytes `from..to` into `buf`, which is left with just them.
    pub(crate) fn read(&self, from: u64, to: u64, buf: &mut Vec<u8>) -> Result<()> {
        buf.clear();
        self.append(from, to, buf)
    }

    /// Reads the bytes `from..to` behind what `buf` holds; of a read that fails nothing stays.
    pub(crate) fn append(&self, from: u64, to: u64, buf: &mut Vec<u8>) -> Result<()> {
        let reopened;
        let bytes = &self.opened()?.bytes;
        let file = match bytes {
            Bytes::Kept(file) => file,
            Bytes::Reopened(state) => {
                reopened = self.reopen(*state).map_err(|e| e.in_file(&self.home.path))?;
                &reopened
            }
            // Bytes in memory are lent to whoever asks for records; here they are copied.
            Bytes::Region(_) | Bytes::Map(_) => {
                return copy(bytes.lent(), from, to, buf).map_err(|e| e.in_file(&self.home.path));
            }
        };
        let held = buf.len();
        let mut read = || {
            let size = file.size()?;
            // What the index says is compared with the file before it sizes anything.
            if to > size {
                return Err(frame::truncated(to.saturating_sub(from), size.saturating_sub(from)));
            }
            let len = usize::try_from(to - from)
                .map_err(|_| ErrorKind::TooLarge { len: (to - from).into(), limit: usize::MAX as u64 })?;
            let end = held
                .checked_add(len)
                .ok_or(ErrorKind::TooLarge { len: held as u128 + len as u128, limit: usize::MAX as u64 })?;
            grow(buf, end)?;
            Ok(file.read_exact_at(&mut buf[held..], from)?)
        };
        read().map_err(|e: Error| {
            buf.truncate(held);
            e.in_file(&self.home.path)
        })
    }

    #[cold]
    fn reopen(&self, state: State) -> Result<File> {
        let file = open_regular(&self.home.path)?;
        if State::of(&file)? != state {
            let reason = "the file was changed or replaced after the dataset was opened".into();
            return Err(IndexError::Stale { reason }.into());
        }
        Ok(file)
    }

    /// Record `i` out of `bytes`, which are those of the shard from `start` on.
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
        match frame::known(bytes, here, len, verify == Verify::Payload) {
            Some(payload) => Ok(Record::of_shard(payload, &self.home, i, span.offset)),
            None => Err(frame::known_fault(bytes, here, len).at(At::new(&self.home.path, i, span.offset))),
        }
    }

    /// Asks for the bytes of a record that will be read soon.
    pub(crate) fn will_need(&self, span: Span) {
        if let Some((map, range)) = self.mapped(span) {
            // One call is good for no more than the device takes at once.
            for start in range.clone().step_by(ADVICE) {
                map.will_need(start..range.end.min(start + ADVICE));
            }
        }
    }

    /// Reads a record in before it returns.
    pub(crate) fn populate(&self, span: Span) -> std::io::Result<()> {
        self.mapped(span).map_or(Ok(()), |(map, range)| map.populate(range))
    }

    /// The map that a record lies in, and where. The end may be behind the map's. None for a record that is too long to be
    /// handed out.
    fn mapped(&self, span: Span) -> Option<(&Map, Range<usize>)> {
        if span.payload_len > self.max_record {
            return None;
        }
        let Some(Opened { bytes: Bytes::Map(map), .. }) = self.opened.get() else { return None };
        let start = usize::try_from(span.offset).ok()?;
        let len = usize::try_from(span.payload_len.saturating_add(OVERHEAD as u64)).unwrap_or(usize::MAX);
        Some((map, start..start.saturating_add(len).min(map.len())))
    }
}

/// Copies the bytes `from..to` behind what `buf` holds.
#[cold]
fn copy(bytes: &[u8], from: u64, to: u64, buf: &mut Vec<u8>) -> Result<()> {
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let Some(part) = range.and_then(|(from, to)| bytes.get(from..to)) else {
        return Err(frame::truncated(to.saturating_sub(from), (bytes.len() as u64).saturating_sub(from)));
    };
    let start = buf.len();
    grow(buf, start + part.len())?;
    buf[start..].copy_from_slice(part);
    Ok(())
}
