//! The record stream of a compressed shard, decompressed from checkpoints on demand.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::spans::{SpanCache, SpanKey};
use crate::error::{CompressionError, Error, IndexError, Result};
use crate::frame;
use crate::index::Index;
use crate::io::{
    CompressedFormat, Fetched, InflateFrom, PausableInflate, PositionalFile, Region, Source, Stamp,
};
use crate::memory::{grow, zeroed};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The bytes of a compressed shard.
#[derive(Debug)]
pub(super) enum StoredBytes {
    File(PositionalFile),
    Object(Arc<dyn Source>),
}

impl StoredBytes {
    fn source(&self) -> &dyn Source {
        match self {
            StoredBytes::File(file) => file,
            StoredBytes::Object(source) => &**source,
        }
    }

    /// Calls `f` with the open file, or with the object.
    fn with<T>(&self, f: impl FnOnce(&dyn Source) -> Result<T>) -> Result<T> {
        match self {
            StoredBytes::File(file) => file.with(|file| f(file)),
            StoredBytes::Object(source) => f(&**source),
        }
    }
}

/// A compressed shard. Its bytes are those of the record stream.
///
/// A *span* is the part of the stream between two checkpoints. Spans are kept in a cache that all shards of the process share. A single access
/// decompresses a span only as far as it needs, and keeps nothing; a second access to the span, or one of many records, decompresses all of it.
/// The blocks of a block order are kept instead of spans, so each block is decompressed once, and from the checkpoint before it to its end.
///
/// A span of more than [`SpanCache::LARGEST`] bytes is kept in pieces. Decompression of a piece begins at the last paused decoder before it.
/// Decoders are paused at regular distances in the span when it is decompressed for the first time, and behind the last piece.
pub(crate) struct InflatedFile {
    file: StoredBytes,
    format: CompressedFormat,
    index: Index,
    cache: Arc<SpanCache>,
    /// Number of this shard in the cache.
    shard: u64,
}

impl InflatedFile {
    /// Bytes of a piece of a long span.
    const PIECE: u64 = 1 << 20;
    /// Maximum number of paused decoders at regular distances in a span.
    const PAUSES: u64 = 128;

    pub(super) fn new(
        file: StoredBytes,
        format: CompressedFormat,
        index: Index,
        cache: &Arc<SpanCache>,
    ) -> InflatedFile {
        if let Ok(table) = index.checkpoints() {
            table.will_need_entries();
        }
        InflatedFile { file, format, index, shard: cache.next_shard(), cache: Arc::clone(cache) }
    }

    /// Fetches a range that is inside the block `block` of a block order. `buf` does not change if there is an error.
    pub(super) fn fetch_in(
        &self,
        block: Range<u64>,
        range: Range<u64>,
        buf: &mut Vec<u8>,
    ) -> Result<Fetched> {
        let inside = block.start <= range.start && range.start <= range.end && range.end <= block.end;
        let len = block.end.saturating_sub(block.start);
        let kept = len <= SpanCache::LARGEST && !self.has_long_span(&block)?;
        if !inside || block.end > self.index.stream_end() || !kept {
            return self.fetch(range, buf);
        }
        let inflate = || {
            let mut bytes = zeroed(block.end.saturating_sub(block.start))?;
            self.fill_from(block.start, &mut bytes)?;
            Ok(Region::from(bytes))
        };
        let bytes = self.cache.get(self.key(&block), || false, inflate)?;
        let part = length(block.start, range.start)..length(block.start, range.end);
        Ok(Fetched::Shared(bytes.slice(part).ok_or_else(no_record)?))
    }

    /// Returns true if a part of this range is in a long span.
    fn has_long_span(&self, range: &Range<u64>) -> Result<bool> {
        let table = self.index.checkpoints()?;
        let first = table.find(range.start).unwrap_or(0);
        let spans = (first..table.len()).map_while(|k| table.span(k, self.index.stream_end()));
        Ok(spans.take_while(|span| span.start < range.end).any(|span| is_long(&span)))
    }

    /// Decompresses the bytes of the stream from `at` on, until `to` is full.
    fn fill_from(&self, mut at: u64, mut to: &mut [u8]) -> Result<()> {
        let table = self.index.checkpoints()?;
        let mut k = table.find(at).ok_or_else(no_record)?;
        while !to.is_empty() {
            let span = table.span(k, self.index.stream_end()).ok_or_else(no_record)?;
            if !span.contains(&at) {
                return Err(self.astray(k));
            }
            let len = length(at, span.end).min(to.len());
            let (part, rest) = to.split_at_mut(len);
            self.fill(k, &span, at, part)?;
            (at, to, k) = (span.end, rest, k.saturating_add(1));
        }
        Ok(())
    }

    /// Returns the error of entries that were not verified and lead to span `k`, which does not contain the bytes.
    #[cold]
    fn astray(&self, k: usize) -> Error {
        self.corrupt_entry(k..k.saturating_add(2)).unwrap_or_else(|| no_record().into())
    }

    /// Returns the error of the first of these checkpoints that is corrupt.
    #[cold]
    fn corrupt_entry(&self, ks: Range<usize>) -> Option<Error> {
        let table = self.index.checkpoints().ok()?;
        let bad = ks.take_while(|&k| k < table.len()).find_map(|k| table.get(k, &mut Vec::new()).err());
        bad.map(|e| self.index.checkpoint_error(e))
    }

    /// Fetches a range that is inside the stream. `buf` does not change if there is an error.
    fn checked(&self, range: Range<u64>, alone: bool, buf: &mut Vec<u8>) -> Result<Fetched> {
        let end = self.index.stream_end();
        if range.end > end || range.start > range.end {
            let have = end.saturating_sub(range.start);
            return Err(frame::truncated(range.end.saturating_sub(range.start), have));
        }
        let before = buf.len();
        self.collect(&range, alone, buf).inspect_err(|_| buf.truncate(before))
    }

    /// Calls `take` with a reader of the stream from the start of `part` on, which is inside span `k`. `take` does not read beyond it.
    ///
    /// The start of the span is verified. Its end is not: if that is wrong, the bytes are still those of the stream, or there are fewer.
    fn inflate(
        &self,
        k: usize,
        span: &Range<u64>,
        part: Range<u64>,
        take: impl FnOnce(&mut InflateFrom<'_, dyn Source + '_>) -> Result<()>,
    ) -> Result<()> {
        #[cfg(test)]
        self.cache.before_inflate.call(k);
        let table = self.index.checkpoints()?;
        let format = self.format;
        let done = self.file.with(|file| {
            let likely = table.likely_part(k, part.end);
            // The disk works on both while the window is verified.
            table.will_need(k);
            file.want(likely.as_slice());
            let mut window = Vec::new();
            let from = table.get(k, &mut window).map_err(|e| self.index.checkpoint_error(e))?;
            if from.out != span.start {
                return Err(no_record().into());
            }
            let mut bytes = match self.index.has_gaps() {
                // The bytes before damage are those that this decoder found when the shard was indexed.
                true => InflateFrom::as_scanned(file, format, from),
                false => InflateFrom::new(file, format, from, likely.map_or(u64::MAX, |part| part.end))?,
            };
            bytes.skip(part.start.saturating_sub(from.out))?;
            take(&mut bytes)
        });
        let next = k.saturating_add(1);
        done.map_err(|e| self.corrupt_entry(next..next.saturating_add(1)).unwrap_or(e))
    }

    /// Decompresses bytes of span `k`, from `offset` on, until `to` is full.
    fn fill(&self, k: usize, span: &Range<u64>, offset: u64, to: &mut [u8]) -> Result<()> {
        let part = offset..offset.saturating_add(to.len() as u64);
        #[cfg(test)]
        self.cache.count(length(span.start, part.end));
        self.inflate(k, span, part, |bytes| if bytes.fill(to)? { Ok(()) } else { Err(self.cut()) })
    }

    /// Decompresses `part` of span `k`, which is not long, and appends it to `to`.
    fn append(&self, k: usize, span: &Range<u64>, part: Range<u64>, to: &mut Vec<u8>) -> Result<()> {
        let before = to.len();
        grow(to, before.saturating_add(length(part.start, part.end)))?;
        self.fill(k, span, part.start, to.get_mut(before..).unwrap_or_default())
    }

    /// Returns the piece with byte `at` of span `k`, which is long, from the cache, or decompresses it.
    fn piece(&self, k: usize, span: &Range<u64>, at: u64) -> Result<(Range<u64>, Region)> {
        let piece = piece_of(span, at);
        let bytes = self.cache.get(self.key(&piece), || false, || self.inflate_piece(k, span, &piece))?;
        Ok((piece, bytes))
    }

    /// Decompresses a piece of span `k`. Pieces that are passed on the way are kept too, if they are near.
    fn inflate_piece(&self, k: usize, span: &Range<u64>, piece: &Range<u64>) -> Result<Region> {
        if let Some(last) = piece.start.checked_sub(1).filter(|last| span.contains(last)) {
            // A thread that decompresses the piece before this one leaves its decoder here.
            self.cache.wait_for(&self.key(&piece_of(span, last)));
        }
        let table = self.index.checkpoints()?;
        let format = self.format;
        let len = span.end.saturating_sub(span.start);
        let distance = (len / InflatedFile::PAUSES).next_multiple_of(InflatedFile::PIECE);
        let paused = self.cache.paused(self.shard, span.start..piece.start);
        let is_regular = |at: u64| at.saturating_sub(span.start).is_multiple_of(distance);
        let done = self.file.with(|file| {
            let mut window = Vec::new();
            let mut bytes = match &paused {
                Some(paused) => PausableInflate::resume(file, format, paused),
                None => {
                    let from = table.get(k, &mut window).map_err(|e| self.index.checkpoint_error(e))?;
                    if from.out != span.start {
                        return Err(no_record().into());
                    }
                    PausableInflate::new(file, format, from)
                }
            };
            loop {
                let passed = piece_of(span, bytes.out());
                let mut to = zeroed(passed.end.saturating_sub(passed.start))?;
                if passed.is_empty() || !bytes.fill(&mut to)? {
                    return Err(self.cut());
                }
                #[cfg(test)]
                self.cache.count(to.len());
                let (is_last, at) = (passed.start >= piece.start, passed.end);
                if at < span.end && (is_last || is_regular(at)) && !self.cache.is_paused(self.shard, at) {
                    self.cache.keep_paused(self.shard, bytes.pause());
                }
                if is_last {
                    return Ok(Region::from(to));
                }
                if piece.start.saturating_sub(at) < SpanCache::LARGEST
                    && let Some(pending) = self.cache.begin(self.key(&passed))
                {
                    pending.finish(Region::from(to));
                }
            }
        });
        // The decoder behind the piece replaces the one before it.
        if let Some(paused) = paused.filter(|paused| !is_regular(paused.out())) {
            self.cache.remove_paused(self.shard, paused.out());
        }
        let next = k.saturating_add(1);
        done.map_err(|e| self.corrupt_entry(next..next.saturating_add(1)).unwrap_or(e))
    }

    /// Returns the error of a file that has fewer bytes than its index.
    #[cold]
    fn cut(&self) -> Error {
        CompressionError::Cut { format: self.format.name() }.into()
    }

    /// Returns a span from the cache, or decompresses it.
    fn cached(&self, k: usize, span: &Range<u64>, alone: bool) -> Result<Region> {
        let help = || !alone && self.read_ahead(k).unwrap_or(false);
        self.cache.get(self.key(span), help, || self.inflate_all(k, span))
    }

    fn key(&self, span: &Range<u64>) -> SpanKey {
        (self.shard, span.start, span.end)
    }

    /// Decompresses a span.
    fn inflate_all(&self, k: usize, span: &Range<u64>) -> Result<Region> {
        let mut bytes = zeroed(span.end.saturating_sub(span.start))?;
        self.fill(k, span, span.start, &mut bytes)?;
        Ok(Region::from(bytes))
    }

    /// Decompresses one of the spans behind span `k` into the cache, if the file is being read in order. Called by a thread that would
    /// otherwise wait for span `k`. Returns true if it found one; `None` if there is none.
    ///
    /// A batch may be a small part of a span, so the threads of a loader would all wait for the one that decompresses.
    fn read_ahead(&self, k: usize) -> Option<bool> {
        let table = self.index.checkpoints().ok()?;
        let span = |k| table.span(k, self.index.stream_end());
        let before = k.checked_sub(1).map(span);
        if before.is_some_and(|before| before.is_none_or(|before| !self.cache.contains(&self.key(&before)))) {
            return None;
        }
        let mut total = 0u64;
        for k in k.saturating_add(1)..table.len() {
            let span = span(k)?;
            total = total.saturating_add(span.end.saturating_sub(span.start));
            if total > SpanCache::AHEAD {
                return None;
            }
            if let Some(pending) = self.cache.begin(self.key(&span)) {
                // A reader of the span meets the error again.
                let bytes = self.inflate_all(k, &span).ok()?;
                pending.finish(bytes);
                return Some(true);
            }
        }
        None
    }

    /// Appends the bytes of `range`, or returns them if they are all in one span. If `alone`, its neighbours may never be needed.
    fn collect(&self, range: &Range<u64>, alone: bool, buf: &mut Vec<u8>) -> Result<Fetched> {
        let table = self.index.checkpoints()?;
        let mut k = table.find(range.start).ok_or_else(no_record)?;
        let mut at = range.start;
        while at < range.end {
            let span = table.span(k, self.index.stream_end()).ok_or_else(no_record)?;
            if !span.contains(&at) {
                return Err(self.astray(k));
            }
            let (mut end, mut next) = (range.end.min(span.end), k.saturating_add(1));
            if !is_long(&span) && alone && !self.cache.used_before(self.key(&span)) {
                self.append(k, &span, at..end, buf)?;
            } else {
                let (kept, bytes) = if is_long(&span) {
                    let (piece, bytes) = self.piece(k, &span, at)?;
                    if piece.end < end {
                        (end, next) = (piece.end, k);
                    }
                    (piece, bytes)
                } else {
                    (span.clone(), self.cached(k, &span, alone)?)
                };
                let part = length(kept.start, at)..length(kept.start, end);
                let part = bytes.slice(part).ok_or_else(no_record)?;
                if (at, end) == (range.start, range.end) {
                    return Ok(Fetched::Shared(part));
                }
                buf.try_reserve(part.as_ref().len())?;
                buf.extend_from_slice(&part);
            }
            (at, k) = (end, next);
        }
        Ok(Fetched::Appended)
    }
}

/// Returns true if a span is kept in pieces.
fn is_long(span: &Range<u64>) -> bool {
    span.end.saturating_sub(span.start) > SpanCache::LARGEST
}

/// Returns the piece of a span that contains byte `at`.
fn piece_of(span: &Range<u64>, at: u64) -> Range<u64> {
    let inside = at.saturating_sub(span.start);
    let start = span.start.saturating_add(inside.saturating_sub(inside % InflatedFile::PIECE));
    start..start.saturating_add(InflatedFile::PIECE).min(span.end)
}

/// Returns the number of bytes between two offsets.
fn length(start: u64, end: u64) -> usize {
    usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX)
}

/// Returns the error of checkpoints that do not lead to a record of the index.
#[cold]
fn no_record() -> IndexError {
    IndexError::Stale { reason: "the checkpoints do not contain a record".into() }
}

impl Source for InflatedFile {
    fn name(&self) -> &str {
        self.file.source().name()
    }

    fn len(&self) -> u64 {
        self.index.stream_end()
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp { size: self.len(), ..self.file.source().stamp()? })
    }

    /// Does nothing. The reading threads decompress in parallel.
    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.checked(range, false, buf)
    }

    fn fetch_alone(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.checked(range, true, buf)
    }
}

impl Drop for InflatedFile {
    fn drop(&mut self) {
        self.cache.remove_shard(self.shard);
    }
}

impl fmt::Debug for InflatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InflatedFile").field("file", &self.file).field("index", &self.index).finish()
    }
}
