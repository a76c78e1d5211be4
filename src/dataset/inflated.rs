//! The record stream of a compressed shard, decompressed from checkpoints on demand.

use super::ready_segments::SegmentKey;
use super::segments::SegmentCache;
use crate::error::{CompressionError, Error, IndexError, Result};
use crate::index::Index;
use crate::io::{
    CompressedFormat, Fetched, InflateFrom, PausableInflate, PositionalFile, Region, Source, Stamp,
    truncated_range,
};
use crate::memory::{grow, zeroed};
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

/// A compressed shard. Its bytes are the bytes of the record stream.
///
/// A *segment* is the part of the stream between two checkpoints. Segments are kept in a cache that all
/// shards of the process share. A single access decompresses a segment only as far as it needs, and keeps
/// nothing; a second access to the segment, or one of many records, decompresses all of it. The blocks of a
/// block order are kept instead of segments, so each block is decompressed once, and from the checkpoint
/// before it to its end. A block of B bytes takes the decompression of B + S/2 bytes on average, at a spacing
/// of S; whole segments would take about B + S.
///
/// A segment of more than [`SegmentCache::LARGEST`] bytes is kept in pieces. Decompression of a piece begins
/// at the last paused decoder before it. Decoders are paused at regular distances in the segment when it is
/// decompressed for the first time, and after the last piece. A later access then decompresses 1/128 of the
/// segment or 1 MiB. Paused decoders are in no index, so a new process decompresses the segment once more.
#[derive(Debug)]
pub(crate) struct InflatedFile {
    file: StoredBytes,
    format: CompressedFormat,
    index: Index,
    cache: Arc<SegmentCache>,
    /// Number of this shard in the cache.
    shard: u64,
}

impl InflatedFile {
    /// Bytes of a piece of a long segment.
    const PIECE: u64 = 1 << 20;
    /// Maximum number of paused decoders at regular distances in a segment.
    const PAUSES: u64 = 128;

    pub(super) fn new(
        file: StoredBytes,
        format: CompressedFormat,
        index: Index,
        cache: &Arc<SegmentCache>,
    ) -> InflatedFile {
        if let Ok(table) = index.checkpoints() {
            table.will_need_entries();
        }
        InflatedFile { file, format, index, shard: cache.next_shard(), cache: Arc::clone(cache) }
    }

    /// Fetches a range that is inside the block `block` of a block order. `buf` does not change if there is
    /// an error.
    pub(super) fn fetch_in(
        &self,
        block: Range<u64>,
        range: Range<u64>,
        buf: &mut Vec<u8>,
    ) -> Result<Fetched> {
        let inside = block.start <= range.start && range.start <= range.end && range.end <= block.end;
        let inside = inside && block.end <= self.index.stream_end();
        if !inside || is_long(&block) || self.has_long_segment(&block)? {
            return self.fetch(range, buf);
        }
        let inflate = || {
            let mut bytes = zeroed(block.end - block.start)?;
            self.fill_from(block.start, &mut bytes)?;
            Ok(Region::from(bytes))
        };
        let bytes = self.cache.get(self.key(&block), || false, inflate)?;
        let part = length(block.start, range.start)..length(block.start, range.end);
        Ok(Fetched::Shared(bytes.slice(part).ok_or_else(no_record)?))
    }

    /// Returns true if a part of this range is in a long segment.
    fn has_long_segment(&self, range: &Range<u64>) -> Result<bool> {
        let table = self.index.checkpoints()?;
        let first = table.find(range.start).unwrap_or(0);
        let segments = (first..table.len()).map_while(|k| table.segment(k, self.index.stream_end()));
        Ok(segments.take_while(|segment| segment.start < range.end).any(|segment| is_long(&segment)))
    }

    /// Decompresses the bytes of the stream from `at` on, until `to` is full.
    fn fill_from(&self, mut at: u64, mut to: &mut [u8]) -> Result<()> {
        let table = self.index.checkpoints()?;
        let mut k = table.find(at).ok_or_else(no_record)?;
        while !to.is_empty() {
            let segment = self.segment_of(k, at)?;
            let len = length(at, segment.end).min(to.len());
            let (part, rest) = to.split_at_mut(len);
            self.fill(k, &segment, at, part)?;
            (at, to, k) = (segment.end, rest, k + 1);
        }
        Ok(())
    }

    /// Returns segment `k`, to which entries that were not verified lead for byte `at`.
    ///
    /// # Errors
    /// It does not contain the byte.
    fn segment_of(&self, k: usize, at: u64) -> Result<Range<u64>> {
        let segment = self.index.checkpoints()?.segment(k, self.index.stream_end());
        let astray = || self.corrupt_entry(k..k + 2).unwrap_or_else(|| no_record().into());
        segment.filter(|segment| segment.contains(&at)).ok_or_else(astray)
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
            return Err(truncated_range(&range, end));
        }
        let before = buf.len();
        self.collect(&range, alone, buf).inspect_err(|_| buf.truncate(before))
    }

    /// Calls `take` with a reader of the stream from the start of `part` on, which is inside segment `k`.
    /// `take` does not read beyond it.
    ///
    /// The start of the segment is verified. Its end is not: if that is wrong, the bytes are still the
    /// stream's, or there are fewer.
    fn inflate(
        &self,
        k: usize,
        segment: &Range<u64>,
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
            if from.out != segment.start {
                return Err(no_record().into());
            }
            let mut bytes = if self.index.has_gaps() {
                // The bytes before damage are those that this decoder found when the shard was indexed.
                InflateFrom::as_scanned(file, format, from)
            } else {
                InflateFrom::new(file, format, from, likely.map_or(u64::MAX, |part| part.end))?
            };
            bytes.skip(part.start - from.out)?;
            take(&mut bytes)
        });
        done.map_err(|e| self.corrupt_entry(k + 1..k + 2).unwrap_or(e))
    }

    /// Decompresses bytes of segment `k`, from `offset` on, until `to` is full.
    fn fill(&self, k: usize, segment: &Range<u64>, offset: u64, to: &mut [u8]) -> Result<()> {
        let part = offset..offset + to.len() as u64;
        #[cfg(test)]
        self.cache.count(length(segment.start, part.end));
        self.inflate(k, segment, part, |bytes| if bytes.fill(to)? { Ok(()) } else { Err(self.cut()) })
    }

    /// Returns the piece with byte `at` of segment `k`, which is long, from the cache, or decompresses it.
    fn piece(&self, k: usize, segment: &Range<u64>, at: u64) -> Result<(Range<u64>, Region)> {
        let piece = piece_of(segment, at);
        let bytes = self.cache.get(self.key(&piece), || false, || self.inflate_piece(k, segment, &piece))?;
        Ok((piece, bytes))
    }

    /// Decompresses a piece of segment `k`. Pieces that are passed on the way are kept too, if they are near.
    fn inflate_piece(&self, k: usize, segment: &Range<u64>, piece: &Range<u64>) -> Result<Region> {
        if let Some(last) = piece.start.checked_sub(1).filter(|last| segment.contains(last)) {
            // A thread that decompresses the piece before this one leaves its decoder here.
            self.cache.wait_for(&self.key(&piece_of(segment, last)));
        }
        let table = self.index.checkpoints()?;
        let format = self.format;
        let len = segment.end - segment.start;
        let distance = (len / InflatedFile::PAUSES).next_multiple_of(InflatedFile::PIECE);
        let paused = self.cache.paused(self.shard, segment.start..piece.start);
        let is_regular = |at: u64| (at - segment.start).is_multiple_of(distance);
        let done = self.file.with(|file| {
            let mut window = Vec::new();
            let mut bytes = match &paused {
                Some(paused) => PausableInflate::resume(file, format, paused),
                None => {
                    let from = table.get(k, &mut window).map_err(|e| self.index.checkpoint_error(e))?;
                    if from.out != segment.start {
                        return Err(no_record().into());
                    }
                    PausableInflate::new(file, format, from)
                }
            };
            loop {
                let passed = piece_of(segment, bytes.out());
                let mut to = zeroed(passed.end - passed.start)?;
                if passed.is_empty() || !bytes.fill(&mut to)? {
                    return Err(self.cut());
                }
                #[cfg(test)]
                self.cache.count(to.len());
                let is_last = passed.start >= piece.start;
                let at = passed.end;
                if at < segment.end && (is_last || is_regular(at)) && !self.cache.is_paused(self.shard, at) {
                    self.cache.keep_paused(self.shard, bytes.pause());
                }
                if is_last {
                    return Ok(Region::from(to));
                }
                if piece.start - at < SegmentCache::LARGEST
                    && let Some(pending) = self.cache.begin(self.key(&passed))
                {
                    pending.finish(Region::from(to));
                }
            }
        });
        // The decoder after the piece replaces the one before it.
        if let Some(paused) = paused.filter(|paused| !is_regular(paused.out())) {
            self.cache.remove_paused(self.shard, paused.out());
        }
        done.map_err(|e| self.corrupt_entry(k + 1..k + 2).unwrap_or(e))
    }

    /// Returns the error of a file that has fewer bytes than its index.
    #[cold]
    fn cut(&self) -> Error {
        CompressionError::Cut { format: self.format.name() }.into()
    }

    fn key(&self, segment: &Range<u64>) -> SegmentKey {
        (self.shard, segment.start, segment.end)
    }

    /// Decompresses a segment.
    fn inflate_all(&self, k: usize, segment: &Range<u64>) -> Result<Region> {
        let mut bytes = zeroed(segment.end - segment.start)?;
        self.fill(k, segment, segment.start, &mut bytes)?;
        Ok(Region::from(bytes))
    }

    /// Decompresses one of the segments after segment `k` into the cache, if the file is being read in order.
    /// Called by a thread that would otherwise wait for segment `k`. Returns true if it found one; `None` if
    /// there is none.
    ///
    /// A batch may be a small part of a segment, so the threads of a loader would all wait for the one that
    /// decompresses.
    fn read_ahead(&self, k: usize) -> Option<bool> {
        let table = self.index.checkpoints().ok()?;
        let segment = |k| table.segment(k, self.index.stream_end());
        let before = k.checked_sub(1).map(segment);
        if before.is_some_and(|before| before.is_none_or(|before| !self.cache.contains(&self.key(&before)))) {
            return None;
        }
        let mut left = SegmentCache::AHEAD;
        for k in k + 1..table.len() {
            let segment = segment(k)?;
            left = left.checked_sub(segment.end - segment.start)?;
            if let Some(pending) = self.cache.begin(self.key(&segment)) {
                // A reader of the segment meets the error again.
                let bytes = self.inflate_all(k, &segment).ok()?;
                pending.finish(bytes);
                return Some(true);
            }
        }
        None
    }

    /// Appends the bytes of `range`, or returns them if they are all in one segment. If `alone`, its
    /// neighbours may never be needed.
    fn collect(&self, range: &Range<u64>, alone: bool, buf: &mut Vec<u8>) -> Result<Fetched> {
        let table = self.index.checkpoints()?;
        let mut k = table.find(range.start).ok_or_else(no_record)?;
        let mut at = range.start;
        while at < range.end {
            let segment = self.segment_of(k, at)?;
            let mut end = range.end.min(segment.end);
            let mut next = k + 1;
            if !is_long(&segment) && alone && !self.cache.used_before(self.key(&segment)) {
                let before = buf.len();
                grow(buf, before + length(at, end))?;
                self.fill(k, &segment, at, buf.get_mut(before..).unwrap_or_default())?;
            } else {
                let (kept, bytes) = if is_long(&segment) {
                    let (piece, bytes) = self.piece(k, &segment, at)?;
                    if piece.end < end {
                        (end, next) = (piece.end, k);
                    }
                    (piece, bytes)
                } else {
                    let help = || !alone && self.read_ahead(k).unwrap_or(false);
                    let inflate = || self.inflate_all(k, &segment);
                    (segment.clone(), self.cache.get(self.key(&segment), help, inflate)?)
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

/// Returns true if a segment is kept in pieces.
fn is_long(segment: &Range<u64>) -> bool {
    segment.end - segment.start > SegmentCache::LARGEST
}

/// Returns the piece of a segment that contains byte `at`.
fn piece_of(segment: &Range<u64>, at: u64) -> Range<u64> {
    let start = at - (at - segment.start) % InflatedFile::PIECE;
    start..start + InflatedFile::PIECE.min(segment.end - start)
}

/// Returns the number of bytes between two offsets.
fn length(start: u64, end: u64) -> usize {
    usize::try_from(end - start).unwrap_or(usize::MAX)
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

    /// The bytes of the file are those between the checkpoints around the range.
    fn distrust(&self, range: &Range<u64>) -> bool {
        let source = self.file.source();
        let Ok(table) = self.index.checkpoints() else { return false };
        let part = |at: u64| {
            let k = table.find(at)?;
            table.likely_part(k, table.segment(k, self.index.stream_end())?.end)
        };
        let start = part(range.start).map_or(0, |part| part.start);
        let end = part(range.end.saturating_sub(1)).map_or(source.len(), |part| part.end);
        let is_new = source.distrust(&(start..end.max(start)));
        if is_new {
            self.cache.remove_shard(self.shard);
        }
        is_new
    }
}

impl Drop for InflatedFile {
    fn drop(&mut self) {
        self.cache.remove_shard(self.shard);
    }
}
