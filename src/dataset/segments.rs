//! The cache of the decompressed bytes of compressed shards, one for the process.

use super::ready_segments::{ReadySegments, SegmentKey};
use crate::error::{ErrorKind, Result};
use crate::index::LONG_SEGMENT;
use crate::io::{PausedInflate, PerProcess, Region, is_interrupted};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// Maximum number of decompressed bytes that the process keeps, unless the windows of its block orders are
/// larger together.
pub(crate) const INFLATED_BYTES: u64 = 128 << 20;

/// Decompressed bytes of the compressed shards of all datasets of the process, the most recently used ones:
/// segments, pieces of long segments, and blocks of block orders. Also the paused decoders of long segments.
///
/// If several threads need a segment, one decompresses it, and the others wait.
#[derive(Default)]
pub(crate) struct SegmentCache {
    segments: PerProcess<ProcessSegments>,
    shards: AtomicU64,
    /// Bytes of the windows of all block orders.
    windows: AtomicU64,
    /// Number of bytes that were decompressed.
    #[cfg(test)]
    pub(super) inflated: AtomicU64,
    #[cfg(test)]
    pub(crate) before_inflate: BeforeInflate,
}

/// The segments of one process. Threads that decompress do not exist in a forked child.
#[derive(Default)]
struct ProcessSegments {
    ready: ReadySegments,
    segments: Mutex<CachedSegments>,
    /// A pending segment is ready, or has failed.
    done: Condvar,
}

impl ProcessSegments {
    fn lock(&self) -> MutexGuard<'_, CachedSegments> {
        self.segments.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A function that a test calls before each decompression, with the number of the segment.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct BeforeInflate(pub(crate) OnceLock<Box<dyn Fn(usize) + Send + Sync>>);

#[cfg(test)]
impl BeforeInflate {
    pub(super) fn call(&self, k: usize) {
        self.0.get().into_iter().for_each(|f| f(k));
    }
}

impl fmt::Debug for SegmentCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SegmentCache")
    }
}

/// The share of a dataset in the limit of the cache: the bytes of the largest window of its block orders. The
/// cache has room for the windows of all datasets that exist.
#[derive(Debug)]
pub(super) struct OrderWindow {
    cache: Arc<SegmentCache>,
    bytes: AtomicU64,
}

impl OrderWindow {
    pub(super) fn new(cache: Arc<SegmentCache>) -> OrderWindow {
        OrderWindow { cache, bytes: AtomicU64::new(0) }
    }

    /// Raises the share to this number of bytes.
    pub(super) fn keep(&self, bytes: u64) {
        // A sum of any number of windows does not overflow.
        let bytes = bytes.min(1 << 48);
        let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        self.cache.windows.fetch_add(bytes.saturating_sub(before), Ordering::Relaxed);
    }
}

impl Drop for OrderWindow {
    fn drop(&mut self) {
        self.cache.windows.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// The state that is seldom looked at.
#[derive(Default)]
struct CachedSegments {
    /// Segments that a thread decompresses.
    pending: HashSet<SegmentKey>,
    /// Segments of the last single accesses that the cache does not contain, the latest last.
    single: VecDeque<SegmentKey>,
    /// Paused decoders by shard and offset in its stream.
    paused: BTreeMap<(u64, u64), Paused>,
    /// Number of uses of paused decoders so far.
    uses: u64,
}

#[derive(Clone)]
struct Paused {
    decoder: Arc<PausedInflate>,
    /// Number of the last use.
    used: u64,
}

impl SegmentCache {
    /// Maximum number of bytes of a segment that is kept as a whole. A longer one is decompressed and kept in
    /// pieces. Deflate blocks can be of any length.
    pub(super) const LARGEST: u64 = LONG_SEGMENT;
    /// Maximum number of bytes that are decompressed ahead.
    pub(super) const AHEAD: u64 = INFLATED_BYTES / 8;
    /// Number of single accesses that are remembered.
    const SINGLE: usize = 256;
    /// Maximum number of paused decoders.
    const PAUSED: usize = (INFLATED_BYTES / 4 / PausedInflate::BYTES) as usize;

    /// Returns the cache of the process.
    pub(super) fn of_process() -> Arc<SegmentCache> {
        static CACHE: OnceLock<Arc<SegmentCache>> = OnceLock::new();
        Arc::clone(CACHE.get_or_init(Arc::default))
    }

    /// Returns the maximum number of bytes of all segments.
    fn limit(&self) -> u64 {
        INFLATED_BYTES.max(self.windows.load(Ordering::Relaxed))
    }

    pub(super) fn next_shard(&self) -> u64 {
        self.shards.fetch_add(1, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn count(&self, bytes: usize) {
        self.inflated.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Removes everything of a shard.
    pub(super) fn remove_shard(&self, shard: u64) {
        // A child that was forked while another thread held the lock has segments of its own.
        let own = self.segments.own();
        own.ready.remove_shard(shard);
        own.lock().paused.retain(|&(other, _), _| other != shard);
    }

    /// Keeps a paused decoder of a shard, instead of those that were not used for the longest time.
    pub(super) fn keep_paused(&self, shard: u64, decoder: PausedInflate) {
        let mut segments = self.segments.own().lock();
        segments.uses += 1;
        let used = segments.uses;
        segments.paused.insert((shard, decoder.out()), Paused { decoder: Arc::new(decoder), used });
        while segments.paused.len() > SegmentCache::PAUSED {
            let oldest = segments.paused.iter().map(|(&key, paused)| (paused.used, key)).min();
            let Some((_, oldest)) = oldest else { return };
            segments.paused.remove(&oldest);
        }
    }

    /// Removes the paused decoder of a shard at an offset.
    pub(super) fn remove_paused(&self, shard: u64, at: u64) {
        self.segments.own().lock().paused.remove(&(shard, at));
    }

    /// Returns the last paused decoder of a shard in a range of its stream, which includes its end.
    pub(super) fn paused(&self, shard: u64, range: Range<u64>) -> Option<Arc<PausedInflate>> {
        let mut segments = self.segments.own().lock();
        segments.uses += 1;
        let now = segments.uses;
        let (_, paused) = segments.paused.range_mut((shard, range.start)..=(shard, range.end)).next_back()?;
        paused.used = now;
        Some(Arc::clone(&paused.decoder))
    }

    /// Returns true if there is a paused decoder at this offset.
    pub(super) fn is_paused(&self, shard: u64, at: u64) -> bool {
        self.segments.own().lock().paused.contains_key(&(shard, at))
    }

    /// Waits until no thread decompresses this segment any more.
    pub(super) fn wait_for(&self, key: &SegmentKey) {
        let own = self.segments.own();
        let mut segments = own.lock();
        while segments.pending.contains(key) && !is_interrupted() {
            let waited = own.done.wait_timeout(segments, Duration::from_millis(100));
            segments = waited.map_or_else(|e| e.into_inner().0, |(segments, _)| segments);
        }
    }

    /// Returns true if a segment is in the cache, or is being decompressed.
    pub(super) fn contains(&self, key: &SegmentKey) -> bool {
        let own = self.segments.own();
        own.ready.contains(key) || own.lock().pending.contains(key)
    }

    /// Returns true if a segment is in the cache, is being decompressed, or was used by one of the last
    /// single accesses. Otherwise it counts as used from now on.
    pub(super) fn used_before(&self, key: SegmentKey) -> bool {
        let own = self.segments.own();
        if own.ready.contains(&key) {
            return true;
        }
        let mut segments = own.lock();
        if segments.pending.contains(&key) || segments.single.contains(&key) {
            return true;
        }
        if segments.single.len() >= SegmentCache::SINGLE {
            segments.single.pop_front();
        }
        segments.single.push_back(key);
        false
    }

    /// Begins the decompression of a segment, unless the cache contains it.
    pub(super) fn begin(&self, key: SegmentKey) -> Option<PendingSegment<'_>> {
        let own = self.segments.own();
        let mut segments = own.lock();
        (!own.ready.contains(&key) && segments.pending.insert(key))
            .then(|| PendingSegment { cache: self, key })
    }

    /// Returns a segment. `inflate` makes it if the cache does not contain it.
    ///
    /// While another thread makes it, `help` is called. It returns true if it found other work.
    pub(super) fn get(
        &self,
        key: SegmentKey,
        mut help: impl FnMut() -> bool,
        inflate: impl FnOnce() -> Result<Region>,
    ) -> Result<Region> {
        let own = self.segments.own();
        if let Some(bytes) = own.ready.get(&key) {
            return Ok(bytes);
        }
        let mut segments = own.lock();
        loop {
            // A segment becomes ready under this lock, so it is not made twice.
            if let Some(bytes) = own.ready.get(&key) {
                return Ok(bytes);
            }
            if segments.pending.insert(key) {
                break;
            }
            drop(segments);
            // The other thread may be another loader's.
            if is_interrupted() {
                return Err(ErrorKind::Cancelled.into());
            }
            let helped = help();
            segments = own.lock();
            if !helped && segments.pending.contains(&key) {
                let waited = own.done.wait_timeout(segments, Duration::from_millis(100));
                segments = waited.map_or_else(|e| e.into_inner().0, |(segments, _)| segments);
            }
        }
        drop(segments);
        let pending = PendingSegment { cache: self, key };
        let bytes = inflate()?;
        pending.finish(bytes.clone());
        Ok(bytes)
    }
}

/// Removes a pending segment when its decompression has failed or panicked, so that another thread tries.
pub(super) struct PendingSegment<'a> {
    cache: &'a SegmentCache,
    key: SegmentKey,
}

impl PendingSegment<'_> {
    pub(super) fn finish(self, bytes: Region) {
        let PendingSegment { cache, key } = self;
        std::mem::forget(self);
        let own = cache.segments.own();
        let mut segments = own.lock();
        own.ready.add(key, bytes, cache.limit());
        segments.pending.remove(&key);
        drop(segments);
        own.done.notify_all();
    }
}

impl Drop for PendingSegment<'_> {
    fn drop(&mut self) {
        let own = self.cache.segments.own();
        own.lock().pending.remove(&self.key);
        own.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::OrderBlocks;
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
        let mut writer = WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }
            .create(&path)
            .unwrap();
        (0..500).for_each(|i| writer.write(&payload(i)).unwrap());
        writer.close().unwrap();
        let index = IndexOptions::new().mode(IndexMode::Memory).checkpoint_every(16 << 10);
        let mut options = DatasetOptions::new().index(index);
        options.segments = Arc::default();
        options.open(&path).unwrap()
    }

    #[test]
    fn the_second_use_of_a_segment_is_known() {
        let cache = SegmentCache::default();
        let key = |k| (0, k, 9);
        assert!(!cache.used_before(key(0)));
        assert!(cache.used_before(key(0)));
        // Only the last ones are remembered.
        for k in 1..=SegmentCache::SINGLE as u64 {
            assert!(!cache.used_before(key(k)));
        }
        assert!(!cache.used_before(key(0)));
        cache.get(key(700), || false, || Ok(region(5))).unwrap();
        assert!(cache.used_before(key(700)));
    }

    /// The first single access to a segment keeps nothing, the second one keeps the segment.
    #[test]
    fn single_accesses() {
        let dir = tempfile::tempdir().unwrap();
        let ds = made(dir.path());
        let cache = ds.set().files()[0].segment_cache().unwrap();
        let read = |i: u64| {
            let mut buf = Vec::new();
            assert_eq!(ds.read(i, &mut buf).unwrap().payload(), payload(i as usize));
            cache.segments.own().ready.bytes()
        };
        assert_eq!((read(7), read(400)), (0, 0));
        let one = read(7);
        assert!(one >= 16 << 10);
        assert_eq!((read(8), read(7)), (one, one));
    }

    #[test]
    fn an_error_is_not_kept() {
        let cache = SegmentCache::default();
        let failed = cache.get((0, 0, 9), || false, || Err(ErrorKind::Cancelled.into()));
        assert!(failed.is_err() && cache.segments.own().lock().pending.is_empty());
        assert_eq!(cache.get((0, 0, 9), || false, || Ok(region(5))).unwrap().len(), 5);
    }

    #[test]
    fn the_oldest_segments_are_removed() {
        let cache = SegmentCache::default();
        let len = usize::try_from(SegmentCache::LARGEST).unwrap();
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
        let fits = usize::try_from(INFLATED_BYTES / SegmentCache::LARGEST).unwrap();
        (0..fits).for_each(|k| drop(get(k).unwrap()));
        // Segment 0 becomes the newest, so segment 1 is removed.
        for k in [0, fits, 0] {
            get(k).unwrap();
        }
        assert_eq!(inflated.load(Ordering::Relaxed), fits + 1);
        get(1).unwrap();
        assert_eq!(inflated.load(Ordering::Relaxed), fits + 2);
        assert!(cache.segments.own().ready.bytes() <= INFLATED_BYTES);
    }

    #[test]
    fn a_larger_window_is_kept() {
        let cache = Arc::new(SegmentCache::default());
        let window = OrderWindow::new(Arc::clone(&cache));
        window.keep(INFLATED_BYTES + SegmentCache::LARGEST);
        window.keep(1);
        let len = usize::try_from(SegmentCache::LARGEST).unwrap();
        let fits = usize::try_from(INFLATED_BYTES / SegmentCache::LARGEST).unwrap() + 1;
        (0..fits + 2).for_each(|k| drop(cache.get((1, k as u64, 99), || false, || Ok(region(len))).unwrap()));
        assert_eq!(cache.segments.own().ready.keys().len(), fits);
        // The limit is the sum of the windows of all datasets that exist.
        let other = OrderWindow::new(Arc::clone(&cache));
        other.keep(5);
        assert_eq!(cache.limit(), INFLATED_BYTES + SegmentCache::LARGEST + 5);
        drop((window, other));
        assert_eq!(cache.limit(), INFLATED_BYTES);
    }

    #[test]
    fn data_sets_share_the_cache_of_the_process_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] =
            [made(dir.path()), made(dir.path())].map(|ds| ds.set().files()[0].segment_cache().cloned());
        assert!(!Arc::ptr_eq(&a.unwrap(), &b.unwrap()), "tests have a cache each");
        let cache = |options: DatasetOptions| {
            let index = IndexOptions::new().mode(IndexMode::Memory);
            let ds = options.index(index).open(dir.path().join("a.gz")).unwrap();
            Arc::clone(ds.set().files()[0].segment_cache().unwrap())
        };
        assert!(Arc::ptr_eq(&cache(DatasetOptions::new()), &cache(DatasetOptions::default())));
        let ds = made(dir.path());
        let cache = Arc::clone(ds.set().files()[0].segment_cache().unwrap());
        ds.read_many(&[0, 499], |_| Ok(())).unwrap();
        assert!(cache.segments.own().ready.bytes() > 0);
        drop(ds);
        let left = &cache.segments.own().ready;
        assert_eq!((left.bytes(), left.keys().len()), (0, 0));
    }

    /// Returns a gzip file whose content is one deflate block of literals with fixed codes (RFC 1951, 3.2.6).
    fn one_block(stream: &[u8]) -> Vec<u8> {
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        // The last block, with fixed codes.
        let mut bits = 0b011u64;
        let mut held = 3;
        let mut put = |code: u16, len: u32, last: bool| {
            bits |= u64::from(code.reverse_bits() >> (16 - len)) << held;
            held += len;
            while held >= 8 || last && held > 0 {
                file.push(bits as u8);
                (bits, held) = (bits >> 8, held.saturating_sub(8));
            }
        };
        for &byte in stream {
            match u16::from(byte) {
                byte @ 0..=143 => put(0x30 + byte, 8, false),
                byte => put(0x190 + byte - 144, 9, false),
            }
        }
        put(0, 7, true);
        let mut crc = flate2::Crc::new();
        crc.update(stream);
        file.extend(crc.sum().to_le_bytes());
        file.extend((stream.len() as u32).to_le_bytes());
        file
    }

    /// A segment that is longer than all pieces that are kept around an access. Orders that jump decompress a
    /// piece and the way from a paused decoder, not everything from the checkpoint.
    #[test]
    fn a_long_deflate_block_is_read_in_any_order() {
        const N: usize = 300;
        let payload = |i: usize| {
            (0..80_000 + i % 7).map(|k| (i * 31).wrapping_add(k.wrapping_mul(k)) as u8).collect::<Vec<_>>()
        };
        let mut stream = Vec::new();
        (0..N).for_each(|i| crate::frame::put_record(&mut stream, &payload(i)).unwrap());
        assert!(stream.len() as u64 > SegmentCache::LARGEST + (4 << 20));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gz");
        std::fs::write(&path, one_block(&stream)).unwrap();
        let index = IndexOptions::new().mode(IndexMode::Memory);
        let jumps: Vec<usize> = (0..N).map(|k| k * 77 % N).collect();
        let orders = [(0..N).collect(), (0..N).rev().collect(), jumps];
        for (order, block) in orders.iter().flat_map(|order: &Vec<usize>| [(order, None), (order, Some(7))]) {
            let mut options = DatasetOptions::new().index(index.clone());
            options.segments = Arc::default();
            let ds = options.open(&path).unwrap();
            let long = ds.warnings().iter().find(|warning| warning.kind() == "long_blocks").unwrap();
            let words = format!("a.gz: deflate blocks of {} decompressed bytes", stream.len());
            assert!(long.to_string().contains(&words), "{long}");
            let set = ds.set();
            let mut buf = Vec::new();
            for &i in order {
                buf.clear();
                match block {
                    Some(_) => {
                        let at = set.locate(i as u64).unwrap();
                        let blocks = block.map(|len| OrderBlocks { first: 0, len });
                        let range = set.append(&at, blocks, Verify::Payload, &mut buf).unwrap();
                        assert!(buf[range] == payload(i));
                    }
                    None => assert!(ds.read(i as u64, &mut buf).unwrap().payload() == payload(i)),
                }
            }
            let cache = set.files()[0].segment_cache().unwrap();
            let inflated = cache.inflated.load(Ordering::Relaxed);
            // The first access may have decompressed all of it.
            assert!(inflated <= 3 * stream.len() as u64, "{inflated} of {} bytes", stream.len());
            assert!(cache.segments.own().lock().paused.len() <= SegmentCache::PAUSED);
        }
    }

    #[test]
    fn a_block_is_decompressed_once() {
        let dir = tempfile::tempdir().unwrap();
        let ds = made(dir.path());
        let set = ds.set();
        // Every record, in an order that jumps between blocks.
        for i in (0..500).map(|k| k * 77 % 500) {
            let at = set.locate(i as u64).unwrap();
            let mut buf = Vec::new();
            let range =
                set.append(&at, Some(OrderBlocks { first: 0, len: 33 }), Verify::Payload, &mut buf).unwrap();
            assert!(buf[range] == payload(i));
        }
        let cache = set.files()[0].segment_cache().unwrap();
        let mut kept = cache.segments.own().ready.keys();
        kept.sort_unstable();
        let offset = |i: u64| set.locate(i).unwrap().span.offset;
        let blocks: Vec<_> = (0..500).step_by(33).map(|i| (kept[0].0, offset(i))).collect();
        assert_eq!(kept.iter().map(|&(shard, start, _)| (shard, start)).collect::<Vec<_>>(), blocks);
    }

    #[test]
    fn threads_wait_for_one_that_decompresses() {
        let cache = SegmentCache::default();
        let inflated = AtomicUsize::new(0);
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

    /// A forked child finds the lock as a thread of its parent held it, and segments of threads that it does
    /// not have.
    #[test]
    fn a_forked_child_has_segments_of_its_own() {
        let segments = PerProcess::default().forked();
        let cache = SegmentCache { segments, ..SegmentCache::default() };
        let mut held = cache.segments.first().lock();
        held.pending.insert((0, 0, 9));
        for made in [Some(4), None] {
            let bytes = cache.get((0, 0, 9), || false, || Ok(region(made.unwrap())));
            assert_eq!(bytes.unwrap().len(), 4);
        }
        assert_eq!(cache.segments.first().ready.bytes(), 0);
        drop(held);
        cache.segments.joined();
    }
}
