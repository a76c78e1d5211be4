//! The record stream of a compressed shard, decompressed from checkpoints on demand.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

use crate::error::{CompressionError, Error, IndexError, Result};
use crate::frame;
use crate::index::Index;
use crate::io::{Fetched, InflateFrom, PositionalFile, Process, ReadAt, Region, Source};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// A compressed shard. Its bytes are those of the record stream.
///
/// A *span* is the part of the stream between two checkpoints. Spans are kept in a cache that all shards of a dataset share. A single access
/// decompresses a span only as far as it needs, and keeps nothing; a second access to the span, or one of many records, decompresses all of it.
/// The blocks of a block order are kept instead of spans, so each block is decompressed once, and from the checkpoint before it to its end.
pub(crate) struct InflatedFile {
    file: PositionalFile,
    index: Index,
    cache: Arc<SpanCache>,
    /// Number of this shard in the cache.
    shard: u64,
}

impl InflatedFile {
    pub(super) fn new(file: PositionalFile, index: Index, cache: &Arc<SpanCache>) -> InflatedFile {
        if let Ok(table) = index.checkpoints() {
            table.will_need_entries();
        }
        InflatedFile { file, index, shard: cache.next_shard(), cache: Arc::clone(cache) }
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
        if !inside || block.end > self.index.stream_end() || len > SpanCache::LARGEST {
            return self.fetch(range, buf);
        }
        let inflate = || {
            let mut bytes = vec![0; length(block.start, block.end)];
            self.fill_from(block.start, &mut bytes)?;
            Ok(Region::from(bytes))
        };
        let bytes = self.cache.get(self.key(&block), || false, inflate)?;
        let part = length(block.start, range.start)..length(block.start, range.end);
        Ok(Fetched::Shared(bytes.slice(part).ok_or_else(no_record)?))
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
        let bad = ks.take_while(|&k| k < table.len()).find_map(|k| table.get(k).err());
        bad.map(|bad| self.index.corrupt_checkpoint(bad))
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
        take: impl FnOnce(&mut InflateFrom<'_, File>) -> Result<()>,
    ) -> Result<()> {
        #[cfg(test)]
        self.cache.before_inflate.call(k);
        let table = self.index.checkpoints()?;
        let compression = self.index.compression();
        let done = self.file.with(|file| {
            let likely = table.likely_part(k, part.end);
            // The disk works on both while the window is verified.
            table.will_need(k);
            likely.iter().for_each(|part| file.will_need(part.clone()));
            let from = table.get(k).map_err(|bad| self.index.corrupt_checkpoint(bad))?;
            if from.out != span.start {
                return Err(no_record().into());
            }
            let mut bytes = match self.index.has_gaps() {
                // The bytes before damage are those that this decoder found when the shard was indexed.
                true => InflateFrom::as_scanned(file, compression, from),
                false => InflateFrom::new(file, compression, from, likely.map_or(u64::MAX, |part| part.end))?,
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
        self.inflate(k, span, part, |bytes| if bytes.fill(to)? { Ok(()) } else { Err(self.cut()) })
    }

    /// Decompresses `part` of span `k`, which may be long, and appends it to `to`. The memory grows with the bytes.
    fn append(&self, k: usize, span: &Range<u64>, part: Range<u64>, to: &mut Vec<u8>) -> Result<()> {
        let mut left = part.end.saturating_sub(part.start);
        self.inflate(k, span, part, |bytes| {
            while left > 0 {
                let piece = left.min(SpanCache::LARGEST);
                let before = to.len();
                to.resize(before.saturating_add(usize::try_from(piece).unwrap_or(usize::MAX)), 0);
                if !bytes.fill(to.get_mut(before..).unwrap_or_default())? {
                    return Err(self.cut());
                }
                left = left.saturating_sub(piece);
            }
            Ok(())
        })
    }

    /// Returns the error of a file that has fewer bytes than its index.
    #[cold]
    fn cut(&self) -> Error {
        CompressionError::Cut { format: self.index.compression().name() }.into()
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
        let mut bytes = vec![0; length(span.start, span.end)];
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
            let end = range.end.min(span.end);
            let too_long = span.end.saturating_sub(span.start) > SpanCache::LARGEST;
            if too_long || (alone && !self.cache.used_before(self.key(&span))) {
                self.append(k, &span, at..end, buf)?;
            } else {
                let bytes = self.cached(k, &span, alone)?;
                let part = length(span.start, at)..length(span.start, end);
                let part = bytes.slice(part).ok_or_else(no_record)?;
                if (at, end) == (range.start, range.end) {
                    return Ok(Fetched::Shared(part));
                }
                buf.extend_from_slice(&part);
            }
            at = end;
            k = k.saturating_add(1);
        }
        Ok(Fetched::Appended)
    }
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
    /// Does nothing. The reading threads decompress in parallel.
    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.checked(range, false, buf)
    }

    fn fetch_alone(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.checked(range, true, buf)
    }
}

impl fmt::Debug for InflatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InflatedFile").field("file", &self.file).field("index", &self.index).finish()
    }
}

/// Maximum number of decompressed bytes that a dataset keeps, except for a block order with larger windows.
pub(crate) const INFLATED_BYTES: u64 = 128 << 20;

/// Decompressed spans of all compressed shards of a dataset, or blocks of a block order, the most recently used ones.
///
/// If several threads need a span, one decompresses it, and the others wait.
#[derive(Debug, Default)]
pub(crate) struct SpanCache {
    first: ProcessSpans,
    shards: AtomicU64,
    /// Number of bytes above [`INFLATED_BYTES`] that are kept.
    more: AtomicU64,
    #[cfg(test)]
    pub(crate) before_inflate: BeforeInflate,
}

/// The spans of one process. A forked child starts with none: a thread of its parent may have held the lock, and threads that decompress
/// do not exist in the child.
#[derive(Debug)]
struct ProcessSpans {
    process: Process,
    spans: Mutex<CachedSpans>,
    done: Condvar,
    /// The spans of a forked child. The parent never accesses it.
    child: OnceLock<Box<ProcessSpans>>,
}

impl Default for ProcessSpans {
    fn default() -> ProcessSpans {
        let (spans, done) = Default::default();
        ProcessSpans { process: Process::this(), spans, done, child: OnceLock::new() }
    }
}

impl ProcessSpans {
    fn lock(&self) -> MutexGuard<'_, CachedSpans> {
        self.spans.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A function that a test calls before each decompression, with the number of the span.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct BeforeInflate(pub(crate) OnceLock<Box<dyn Fn(usize) + Send + Sync>>);

#[cfg(test)]
impl BeforeInflate {
    fn call(&self, k: usize) {
        self.0.get().into_iter().for_each(|f| f(k));
    }
}

#[cfg(test)]
impl fmt::Debug for BeforeInflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeforeInflate")
    }
}

/// A shard, by its number in the cache, and the start and end of a span or block in its stream.
type SpanKey = (u64, u64, u64);

#[derive(Debug, Default)]
struct CachedSpans {
    spans: HashMap<SpanKey, CachedSpan>,
    /// Bytes of all spans.
    bytes: u64,
    /// Number of uses so far.
    uses: u64,
    /// Spans of the last single accesses that the cache does not contain, the latest last.
    single: VecDeque<SpanKey>,
}

#[derive(Debug)]
enum CachedSpan {
    /// A thread decompresses the span.
    Pending,
    Ready {
        bytes: Region,
        /// Number of the last use.
        used: u64,
    },
}

impl SpanCache {
    /// Maximum number of bytes of a span in the cache. A longer span is decompressed at each use. Deflate blocks can be of any length.
    const LARGEST: u64 = INFLATED_BYTES / 8;
    /// Maximum number of bytes that are decompressed ahead.
    const AHEAD: u64 = INFLATED_BYTES / 8;
    /// Number of single accesses that are remembered.
    const SINGLE: usize = 256;

    /// Raises the limit of the cache to this number of bytes, for the window of a block order.
    pub(super) fn keep(&self, bytes: u64) {
        self.more.fetch_max(bytes.saturating_sub(INFLATED_BYTES), Ordering::Relaxed);
    }

    /// Returns the maximum number of bytes of all spans.
    fn limit(&self) -> u64 {
        INFLATED_BYTES.saturating_add(self.more.load(Ordering::Relaxed))
    }

    fn next_shard(&self) -> u64 {
        self.shards.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the spans of this process.
    fn own(&self) -> &ProcessSpans {
        let (this, mut own) = (Process::this(), &self.first);
        while own.process != this {
            own = own.child.get_or_init(Box::default);
        }
        own
    }

    /// Returns true if a span is in the cache, or is being decompressed.
    fn contains(&self, key: &SpanKey) -> bool {
        self.own().lock().spans.contains_key(key)
    }

    /// Returns true if a span is in the cache, is being decompressed, or was used by one of the last single accesses. Otherwise it counts as
    /// used from now on.
    fn used_before(&self, key: SpanKey) -> bool {
        let mut spans = self.own().lock();
        if spans.spans.contains_key(&key) || spans.single.contains(&key) {
            return true;
        }
        if spans.single.len() >= SpanCache::SINGLE {
            spans.single.pop_front();
        }
        spans.single.push_back(key);
        false
    }

    /// Begins the decompression of a span, unless the cache contains it.
    fn begin(&self, key: SpanKey) -> Option<PendingSpan<'_>> {
        match self.own().lock().spans.entry(key) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(CachedSpan::Pending);
                Some(PendingSpan { cache: self, key })
            }
        }
    }

    /// Returns a span. `inflate` makes it if the cache does not contain it.
    ///
    /// While another thread makes it, `help` is called. It returns true if it found other work.
    fn get(
        &self,
        key: SpanKey,
        mut help: impl FnMut() -> bool,
        inflate: impl FnOnce() -> Result<Region>,
    ) -> Result<Region> {
        let own = self.own();
        let mut spans = own.lock();
        loop {
            spans.uses = spans.uses.saturating_add(1);
            let now = spans.uses;
            match spans.spans.get_mut(&key) {
                Some(CachedSpan::Ready { bytes, used }) => {
                    *used = now;
                    return Ok(bytes.clone());
                }
                Some(CachedSpan::Pending) => {
                    drop(spans);
                    let helped = help();
                    spans = own.lock();
                    if helped || !matches!(spans.spans.get(&key), Some(CachedSpan::Pending)) {
                        continue;
                    }
                    let waited = own.done.wait_timeout(spans, Duration::from_millis(100));
                    spans = waited.map_or_else(|e| e.into_inner().0, |(spans, _)| spans);
                }
                None => break,
            }
        }
        spans.spans.insert(key, CachedSpan::Pending);
        drop(spans);
        let pending = PendingSpan { cache: self, key };
        let bytes = inflate()?;
        pending.finish(bytes.clone());
        Ok(bytes)
    }
}

impl CachedSpans {
    /// Adds a span, and removes those that were not used for the longest time.
    fn insert(&mut self, key: SpanKey, bytes: Region, limit: u64) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let used = self.uses;
        self.spans.insert(key, CachedSpan::Ready { bytes, used });
        while self.bytes > limit {
            let ready = self.spans.iter().filter_map(|(&other, span)| match span {
                CachedSpan::Ready { bytes, used } if other != key => Some((*used, other, bytes.len() as u64)),
                _ => None,
            });
            let Some((_, oldest, len)) = ready.min() else { return };
            self.spans.remove(&oldest);
            self.bytes = self.bytes.saturating_sub(len);
        }
    }
}

/// Removes a pending span when its decompression has failed or panicked, so that another thread tries.
struct PendingSpan<'a> {
    cache: &'a SpanCache,
    key: SpanKey,
}

impl PendingSpan<'_> {
    fn finish(self, bytes: Region) {
        let PendingSpan { cache, key } = self;
        std::mem::forget(self);
        let own = cache.own();
        own.lock().insert(key, bytes, cache.limit());
        own.done.notify_all();
    }
}

impl Drop for PendingSpan<'_> {
    fn drop(&mut self) {
        let own = self.cache.own();
        own.lock().spans.remove(&self.key);
        own.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::index::IndexOptions;
    use crate::writer::WriterOptions;
    use crate::{Compression, Dataset, DatasetOptions, IndexMode, Verify};
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;

    fn region(len: usize) -> Region {
        Region::from(vec![7; len])
    }

    fn payload(i: usize) -> Vec<u8> {
        (0..900 + i % 7).map(|k| (i * i * 31 + k * k) as u8).collect()
    }

    /// Returns a dataset of one gzip shard of 500 records, with checkpoints every 16 KiB.
    fn made(dir: &Path) -> Dataset {
        let path = dir.join("a.gz");
        let mut writer = WriterOptions::new().compression(Compression::Gzip).create(&path).unwrap();
        (0..500).for_each(|i| writer.write(&payload(i)).unwrap());
        writer.close().unwrap();
        let index = IndexOptions::new().mode(IndexMode::Memory).checkpoint_every(16 << 10);
        DatasetOptions::new().index(index).open(&path).unwrap()
    }

    #[test]
    fn the_second_use_of_a_span_is_known() {
        let cache = SpanCache::default();
        let key = |k| (0, k, 9);
        assert!(!cache.used_before(key(0)));
        assert!(cache.used_before(key(0)));
        // Only the last ones are remembered.
        for k in 1..=SpanCache::SINGLE as u64 {
            assert!(!cache.used_before(key(k)));
        }
        assert!(!cache.used_before(key(0)));
        cache.get(key(700), || false, || Ok(region(5))).unwrap();
        assert!(cache.used_before(key(700)));
    }

    /// The first single access to a span keeps nothing, the second one keeps the span.
    #[test]
    fn single_accesses() {
        let dir = tempfile::tempdir().unwrap();
        let ds = made(dir.path());
        let cache = ds.set().files()[0].span_cache().unwrap();
        let read = |i: u64| {
            let mut buf = Vec::new();
            assert_eq!(ds.read(i, &mut buf).unwrap().payload(), payload(i as usize));
            cache.own().lock().bytes
        };
        assert_eq!((read(7), read(400)), (0, 0));
        let one = read(7);
        assert!(one >= 16 << 10);
        assert_eq!((read(8), read(7)), (one, one));
    }

    #[test]
    fn an_error_is_not_kept() {
        let cache = SpanCache::default();
        let failed = cache.get((0, 0, 9), || false, || Err(ErrorKind::Cancelled.into()));
        assert!(failed.is_err() && cache.own().lock().spans.is_empty());
        assert_eq!(cache.get((0, 0, 9), || false, || Ok(region(5))).unwrap().len(), 5);
    }

    #[test]
    fn the_oldest_spans_are_removed() {
        let cache = SpanCache::default();
        let len = usize::try_from(SpanCache::LARGEST).unwrap();
        let inflated = AtomicUsize::new(0);
        let get = |k: usize| {
            cache.get(
                (1, k as u64, 99),
                || false,
                || {
                    inflated.fetch_add(1, Ordering::Relaxed);
                    Ok(region(len))
                },
            )
        };
        let fits = usize::try_from(INFLATED_BYTES / SpanCache::LARGEST).unwrap();
        (0..fits).for_each(|k| drop(get(k).unwrap()));
        // Span 0 becomes the newest, so span 1 is removed.
        for k in [0, fits, 0] {
            get(k).unwrap();
        }
        assert_eq!(inflated.load(Ordering::Relaxed), fits + 1);
        get(1).unwrap();
        assert_eq!(inflated.load(Ordering::Relaxed), fits + 2);
        assert!(cache.own().lock().bytes <= INFLATED_BYTES);
    }

    #[test]
    fn a_larger_window_is_kept() {
        let cache = SpanCache::default();
        cache.keep(INFLATED_BYTES + SpanCache::LARGEST);
        cache.keep(1);
        let len = usize::try_from(SpanCache::LARGEST).unwrap();
        let fits = usize::try_from(INFLATED_BYTES / SpanCache::LARGEST).unwrap() + 1;
        (0..fits + 2).for_each(|k| drop(cache.get((1, k as u64, 99), || false, || Ok(region(len))).unwrap()));
        assert_eq!(cache.own().lock().spans.len(), fits);
    }

    #[test]
    fn a_block_is_decompressed_once() {
        let dir = tempfile::tempdir().unwrap();
        let ds = made(dir.path());
        let set = ds.set();
        // Every record, in an order that jumps between blocks.
        for i in (0..500).map(|k| k * 77 % 500) {
            let (at, mut buf) = (set.locate(i as u64).unwrap(), Vec::new());
            let range = set.append(&at, Some(33), Verify::Payload, &mut buf).unwrap();
            assert!(buf[range] == payload(i));
        }
        let cache = set.files()[0].span_cache().unwrap();
        let mut kept: Vec<_> = cache.own().lock().spans.keys().copied().collect();
        kept.sort_unstable();
        let offset = |i: u64| set.locate(i).unwrap().span.offset;
        let blocks: Vec<_> = (0..500).step_by(33).map(|i| (kept[0].0, offset(i))).collect();
        assert_eq!(kept.iter().map(|&(shard, start, _)| (shard, start)).collect::<Vec<_>>(), blocks);
    }

    #[test]
    fn threads_wait_for_one_that_decompresses() {
        let (cache, inflated) = (SpanCache::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let bytes = cache.get(
                        (0, 0, 9),
                        || false,
                        || {
                            std::thread::sleep(Duration::from_millis(20));
                            inflated.fetch_add(1, Ordering::Relaxed);
                            Ok(region(9))
                        },
                    );
                    assert_eq!(bytes.unwrap().len(), 9);
                });
            }
        });
        assert_eq!(inflated.load(Ordering::Relaxed), 1);
    }

    /// A forked child finds the lock as a thread of its parent held it, and spans of threads that it does not have.
    #[test]
    fn a_forked_child_has_spans_of_its_own() {
        let first = ProcessSpans { process: Process::other(), ..ProcessSpans::default() };
        let cache = SpanCache { first, ..SpanCache::default() };
        let mut held = cache.first.lock();
        held.spans.insert((0, 0, 9), CachedSpan::Pending);
        for made in [Some(4), None] {
            let bytes = cache.get((0, 0, 9), || false, || Ok(region(made.unwrap())));
            assert_eq!(bytes.unwrap().len(), 4);
        }
        assert_eq!(held.bytes, 0);
    }
}
