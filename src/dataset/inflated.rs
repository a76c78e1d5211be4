//! The record stream of a compressed shard, decompressed from checkpoints on demand.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

use crate::error::{CompressionError, IndexError, Result};
use crate::frame;
use crate::index::Index;
use crate::io::deflate::{inflate_as_scanned, inflate_from};
use crate::io::{Fetched, PositionalFile, Process, Region, Source};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A compressed shard. Its bytes are those of the record stream.
///
/// A *span* is the part of the stream between two checkpoints. Spans are kept in a cache that all shards of a dataset share. A single access
/// decompresses a span only as far as it needs; a second access to the span, or one of many records, decompresses all of it.
pub(crate) struct InflatedFile {
    file: PositionalFile,
    index: Index,
    cache: Arc<SpanCache>,
    /// Number of this shard in the cache.
    shard: u64,
}

impl InflatedFile {
    pub(super) fn new(file: PositionalFile, index: Index, cache: &Arc<SpanCache>) -> InflatedFile {
        InflatedFile { file, index, shard: cache.next_shard(), cache: Arc::clone(cache) }
    }

    /// Verifies the entries of the checkpoints around span `k`, which was found by entries that were not verified.
    fn verify_span(&self, k: usize, span: &Range<u64>) -> Result<()> {
        let table = self.index.checkpoints()?;
        let out = |k| table.get(k).map(|point| point.out).map_err(|bad| self.index.corrupt_checkpoint(bad));
        let next = k.saturating_add(1);
        let end = if next < table.len() { out(next)? } else { self.index.stream_end() };
        if (out(k)?..end) == *span { Ok(()) } else { Err(no_record().into()) }
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

    /// Decompresses a span, and passes on the bytes of `part` of the stream, which is inside the span.
    fn inflate(&self, k: usize, part: Range<u64>, mut take: impl FnMut(&[u8])) -> Result<()> {
        let table = self.index.checkpoints()?;
        let from = table.get(k).map_err(|bad| self.index.corrupt_checkpoint(bad))?;
        let compression = self.index.compression();
        let mut at = from.out;
        let mut piece = |piece: &[u8]| {
            let next = at.saturating_add(piece.len() as u64);
            let inside =
                |offset: u64| usize::try_from(offset.clamp(at, next).saturating_sub(at)).unwrap_or(0);
            take(piece.get(inside(part.start)..inside(part.end)).unwrap_or_default());
            at = next;
            Ok(next < part.end)
        };
        self.file.with(|file| match self.index.has_gaps() {
            // The bytes before damage are those that this decoder found when the shard was indexed.
            true => inflate_as_scanned(file, compression, from, &mut piece),
            false => inflate_from(file, compression, from, &mut piece),
        })?;
        if at < part.end {
            return Err(CompressionError::Cut { format: compression.name() }.into());
        }
        Ok(())
    }

    /// Returns a span from the cache, or decompresses it, at least up to the offset `end` of the stream.
    fn cached(&self, k: usize, span: &Range<u64>, end: u64, alone: bool) -> Result<Region> {
        let bytes_to = |end: u64| usize::try_from(end.saturating_sub(span.start)).unwrap_or(usize::MAX);
        self.cache.get((self.shard, span.start, span.end), bytes_to(end), |seen| {
            // A span in the cache was verified with this start and this end.
            self.verify_span(k, span)?;
            // The first access to a span may be the only one. The second one decompresses all of it.
            let end = if alone && !seen { end } else { span.end };
            let mut bytes = Vec::with_capacity(bytes_to(end));
            self.inflate(k, span.start..end, |piece| bytes.extend_from_slice(piece))?;
            Ok(Region::from(bytes))
        })
    }

    /// Appends the bytes of `range`, or returns them if they are all in one span. If `alone`, its neighbours may never be needed.
    fn collect(&self, range: &Range<u64>, alone: bool, buf: &mut Vec<u8>) -> Result<Fetched> {
        let table = self.index.checkpoints()?;
        let mut k = table.find(range.start).ok_or_else(no_record)?;
        let mut at = range.start;
        while at < range.end {
            let span = table.span(k, self.index.stream_end()).ok_or_else(no_record)?;
            if !span.contains(&at) {
                self.verify_span(k, &span)?;
                return Err(no_record().into());
            }
            let end = range.end.min(span.end);
            if span.end.saturating_sub(span.start) > SpanCache::LARGEST {
                self.verify_span(k, &span)?;
                self.inflate(k, at..end, |piece| buf.extend_from_slice(piece))?;
            } else {
                let bytes = self.cached(k, &span, end, alone)?;
                let place =
                    |offset: u64| usize::try_from(offset.saturating_sub(span.start)).unwrap_or(usize::MAX);
                let part = bytes.slice(place(at)..place(end)).ok_or_else(no_record)?;
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

/// Maximum number of decompressed bytes that a dataset keeps.
pub(crate) const INFLATED_BYTES: u64 = 128 << 20;

/// Decompressed spans of all compressed shards of a dataset, the most recently used ones.
///
/// If several threads need a span, one decompresses it, and the others wait.
#[derive(Debug, Default)]
pub(crate) struct SpanCache {
    spans: Mutex<CachedSpans>,
    done: Condvar,
    shards: AtomicU64,
}

/// A shard, by its number in the cache, and the start and end of a span in its stream.
type SpanKey = (u64, u64, u64);

#[derive(Debug, Default)]
struct CachedSpans {
    spans: HashMap<SpanKey, CachedSpan>,
    /// Bytes of all spans.
    bytes: u64,
    /// Number of uses so far.
    uses: u64,
}

#[derive(Debug)]
enum CachedSpan {
    /// A thread of this process decompresses the span.
    Pending(Process),
    Ready {
        /// The span, or the start of it.
        bytes: Region,
        /// Number of the last use.
        used: u64,
    },
}

impl SpanCache {
    /// Maximum number of bytes of all spans.
    const LIMIT: u64 = INFLATED_BYTES;
    /// Maximum number of bytes of a span in the cache. A longer span is decompressed at each use. Deflate blocks can be of any length.
    const LARGEST: u64 = SpanCache::LIMIT / 8;

    fn next_shard(&self) -> u64 {
        self.shards.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, CachedSpans> {
        self.spans.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns at least `len` bytes of a span. `inflate` makes them; its argument is true if the start of the span was used before.
    fn get(&self, key: SpanKey, len: usize, inflate: impl FnOnce(bool) -> Result<Region>) -> Result<Region> {
        let mut spans = self.lock();
        loop {
            spans.uses = spans.uses.saturating_add(1);
            let now = spans.uses;
            match spans.spans.get_mut(&key) {
                Some(CachedSpan::Ready { bytes, used }) if bytes.len() >= len => {
                    *used = now;
                    return Ok(bytes.clone());
                }
                // A thread of the parent process does not exist in a forked child.
                Some(CachedSpan::Pending(process)) if process.is_this() => {
                    let waited = self.done.wait_timeout(spans, Duration::from_millis(100));
                    spans = waited.map_or_else(|e| e.into_inner().0, |(spans, _)| spans);
                }
                _ => break,
            }
        }
        let before = spans.spans.insert(key, CachedSpan::Pending(Process::this()));
        let seen = match before {
            Some(CachedSpan::Ready { bytes, .. }) => {
                spans.bytes = spans.bytes.saturating_sub(bytes.len() as u64);
                true
            }
            _ => false,
        };
        drop(spans);
        let pending = PendingSpan { cache: self, key };
        let bytes = inflate(seen)?;
        let mut spans = self.lock();
        spans.insert(key, bytes.clone());
        drop(spans);
        std::mem::forget(pending);
        self.done.notify_all();
        Ok(bytes)
    }
}

impl CachedSpans {
    /// Adds a span, and removes those that were not used for the longest time.
    fn insert(&mut self, key: SpanKey, bytes: Region) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let used = self.uses;
        self.spans.insert(key, CachedSpan::Ready { bytes, used });
        while self.bytes > SpanCache::LIMIT {
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

impl Drop for PendingSpan<'_> {
    fn drop(&mut self) {
        self.cache.lock().spans.remove(&self.key);
        self.cache.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::sync::atomic::AtomicUsize;

    fn region(len: usize) -> Region {
        Region::from(vec![7; len])
    }

    #[test]
    fn the_second_use_of_a_span_is_known() {
        let cache = SpanCache::default();
        let get = |len: usize, made: usize| {
            let mut given = None;
            let bytes = cache.get((0, 3, 9), len, |seen| {
                given = Some(seen);
                Ok(region(made))
            });
            (bytes.unwrap().len(), given)
        };
        assert_eq!(get(10, 20), (20, Some(false)));
        assert_eq!(get(20, 0), (20, None));
        assert_eq!(get(21, 100), (100, Some(true)));
        assert_eq!(get(100, 0), (100, None));
        assert_eq!(cache.lock().bytes, 100);
    }

    #[test]
    fn an_error_is_not_kept() {
        let cache = SpanCache::default();
        let failed = cache.get((0, 0, 9), 1, |_| Err(ErrorKind::Cancelled.into()));
        assert!(failed.is_err() && cache.lock().spans.is_empty());
        assert_eq!(cache.get((0, 0, 9), 1, |_| Ok(region(5))).unwrap().len(), 5);
    }

    #[test]
    fn the_oldest_spans_are_removed() {
        let cache = SpanCache::default();
        let len = usize::try_from(SpanCache::LARGEST).unwrap();
        let inflated = AtomicUsize::new(0);
        let get = |k: usize| {
            cache.get((1, k as u64, 99), len, |_| {
                inflated.fetch_add(1, Ordering::Relaxed);
                Ok(region(len))
            })
        };
        let fits = usize::try_from(SpanCache::LIMIT / SpanCache::LARGEST).unwrap();
        (0..fits).for_each(|k| drop(get(k).unwrap()));
        // Span 0 becomes the newest, so span 1 is removed.
        for k in [0, fits, 0] {
            get(k).unwrap();
        }
        assert_eq!(inflated.load(Ordering::Relaxed), fits + 1);
        get(1).unwrap();
        assert_eq!(inflated.load(Ordering::Relaxed), fits + 2);
        assert!(cache.lock().bytes <= SpanCache::LIMIT);
    }

    #[test]
    fn threads_wait_for_one_that_decompresses() {
        let (cache, inflated) = (SpanCache::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let bytes = cache.get((0, 0, 9), 9, |_| {
                        std::thread::sleep(Duration::from_millis(20));
                        inflated.fetch_add(1, Ordering::Relaxed);
                        Ok(region(9))
                    });
                    assert_eq!(bytes.unwrap().len(), 9);
                });
            }
        });
        assert_eq!(inflated.load(Ordering::Relaxed), 1);
    }

    /// A child process has the entries of threads that it does not have.
    #[test]
    fn a_span_pending_in_another_process_is_decompressed() {
        let cache = SpanCache::default();
        cache.lock().spans.insert((0, 0, 9), CachedSpan::Pending(Process::other()));
        assert_eq!(cache.get((0, 0, 9), 4, |seen| Ok(region(if seen { 1 } else { 4 }))).unwrap().len(), 4);
    }
}
