//! Prefetching for [`GetMany`](super::GetMany) and the loader: records are requested from the sources of
//! their shards, touched, and fetched.

use super::shard::ShardFile;
use super::shards::{RecordLocation, ShardSet};
use super::touch::Loads;
use crate::cache;
use crate::error::Result;
use crate::frame::OVERHEAD;
use crate::io::read_ahead::Touch;
use crate::io::{ReadAhead, Requested, Source};
use crate::record::Record;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

const LINE: u64 = cache::LINE as u64;
/// Maximum length of a record of which all cache lines are loaded. For a longer one, the hardware prefetcher
/// loads the rest.
const SHORT: u64 = 4 * LINE;
/// Speed at which a warm record is read and verified, at least, in bytes per nanosecond.
const WARM_BYTES_PER_NS: u64 = 2;
/// Maximum number of records, and of their bytes, that [`read_requested`] requests together.
const GROUP: (usize, u64) = (4096, 8 << 20);
/// Maximum number of records whose ranges are passed to a source in one call.
const MAX_RANGES: usize = 64;

/// Requests the records of a later batch, if records are cold. `None` is a record whose lookup failed.
pub(crate) fn request_ahead(
    set: &ShardSet,
    ahead: &ReadAhead,
    records: &[Option<RecordLocation>],
) -> Requested {
    // The bytes of an object are always waited for.
    let requested = if set.has_objects() { Requested::All } else { ahead.plan(records.len()) };
    match requested {
        Requested::Nothing => {}
        Requested::All => request(set, records),
        Requested::AllButFirst => request(set, records.get(1..).unwrap_or_default()),
    }
    requested
}

/// Touches the records of the current batch, or returns true if they are cold. Cold records are all requested
/// when this returns, and must be [fetched](fetch) before they are used.
pub(crate) fn is_cold(
    set: &ShardSet,
    ahead: &ReadAhead,
    requested: Requested,
    records: &[Option<RecordLocation>],
) -> bool {
    let cold = ahead.is_cold(requested, records.len(), |how, range| {
        touch(set, how, records.get(range).unwrap_or_default())
    });
    if cold {
        match requested {
            // Even a late request is faster than waiting for one record after the other.
            Requested::Nothing => request(set, records),
            Requested::AllButFirst => request(set, records.get(..1).unwrap_or_default()),
            Requested::All => {}
        }
    }
    cold
}

/// Fetches a record before it is returned. All its pages are mapped at once, and a disk failure is an error
/// instead of a signal. Warm records are not populated: a page fault maps 16 pages or more, and `madvise`
/// would be called for each record, mapped or not.
pub(crate) fn fetch(set: &ShardSet, at: &RecordLocation) -> Result<()> {
    let file = set.file_of(at);
    let Some(range) = file.range(at.span) else { return Ok(()) };
    let fetched = file.source()?.fetch(range, &mut Vec::new());
    fetched.map(drop).map_err(|e| e.at(set.location(at)))
}

/// Calls `read` with parts of the records of the current batch, which together are all of them in order. For
/// shards from which records cannot borrow.
///
/// Reads are timed to find out whether records are cold. If they are, those that are left are requested
/// before they are read.
pub(crate) fn read_all(
    set: &ShardSet,
    ahead: &ReadAhead,
    requested: Requested,
    records: &[Option<RecordLocation>],
    mut read: impl FnMut(Range<usize>) -> Result<()>,
) -> Result<()> {
    if !set.is_plain() || set.has_objects() {
        // The time of a read is mostly the time of decompression, or of a request.
        return read(0..records.len());
    }
    let part = |range: Range<usize>| records.get(range).unwrap_or_default();
    let timed = |range: Range<usize>| {
        let start = Instant::now();
        read(range.clone())?;
        let lens = part(range).iter().flatten().map(RecordLocation::payload_len);
        let bytes = lens.fold(0, u64::saturating_add);
        Ok(start.elapsed().saturating_sub(Duration::from_nanos(bytes / WARM_BYTES_PER_NS)))
    };
    read_timed(ahead, requested, records.len(), timed, |range| request(set, part(range)))
}

/// [`read_all`] without a clock and records: `read` returns the time that it took, and `request` requests
/// them.
fn read_timed(
    ahead: &ReadAhead,
    requested: Requested,
    len: usize,
    mut read: impl FnMut(Range<usize>) -> Result<Duration>,
    request: impl FnOnce(Range<usize>),
) -> Result<()> {
    let mut next = 0;
    let mut failed = None;
    let cold = ahead.is_cold(requested, len, |_, range| {
        if failed.is_some() {
            return Duration::ZERO;
        }
        next = range.end;
        read(range).unwrap_or_else(|e| {
            failed = Some(e);
            Duration::ZERO
        })
    });
    if let Some(e) = failed {
        return Err(e);
    }
    if next < len {
        if cold && requested == Requested::Nothing {
            request(next..len);
        }
        read(next..len)?;
    }
    Ok(())
}

/// Records that are requested together. Those that are adjacent in a shard have one range.
struct Group<'a> {
    ids: &'a [u64],
    ranges: BTreeMap<u32, Vec<Range<u64>>>,
}

impl<'a> Group<'a> {
    /// Takes records from the front of `ids`. One whose lookup fails has no range.
    fn take(set: &ShardSet, ids: &mut &'a [u64]) -> Group<'a> {
        let mut ranges = BTreeMap::<u32, Vec<Range<u64>>>::new();
        let mut len = 0;
        let mut bytes = 0u64;
        for &id in ids.iter().take(GROUP.0) {
            len += 1;
            let Ok(at) = set.locate(id) else { continue };
            let Some(range) = set.file_of(&at).range(at.span) else { continue };
            bytes = bytes.saturating_add(range.end - range.start);
            let found = ranges.entry(at.shard).or_default();
            match found.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => found.push(range),
            }
            if bytes >= GROUP.1 {
                break;
            }
        }
        let (group, rest) = ids.split_at_checked(len).unwrap_or((ids, &[]));
        *ids = rest;
        Group { ids: group, ranges }
    }

    /// Calls `f` with the source of each shard, and the ranges in it.
    fn each(&self, set: &ShardSet, f: impl Fn(&dyn Source, &[Range<u64>])) {
        for (&shard, ranges) in &self.ranges {
            // A read will tell of the failure.
            if let Some(Ok(source)) = set.files().get(shard as usize).map(ShardFile::source) {
                f(source, ranges);
            }
        }
    }
}

/// Calls `f` with each of the records `ids`, in that order. While a group of them is read, the next one is on
/// its way.
///
/// # Errors
/// The first error of reading a record or of `f`. Records that were not read are not on their way any more.
pub(super) fn read_requested(
    set: &ShardSet,
    mut ids: &[u64],
    mut f: impl FnMut(Record<'_>) -> Result<()>,
) -> Result<()> {
    let mut take = || {
        let group = Group::take(set, &mut ids);
        group.each(set, |source, ranges| source.want(ranges));
        group
    };
    let mut group = take();
    while !group.ids.is_empty() {
        let next = take();
        let read = set.read_runs(group.ids.iter().copied(), set.verify(), |record| f(record?));
        if read.is_err() {
            [group, next].iter().for_each(|left| left.each(set, |source, ranges| source.forget(ranges)));
            return read;
        }
        group = next;
    }
    Ok(())
}

/// Returns the number of bytes of a block of records, by shard and ordinals.
///
/// # Errors
/// Errors of the first read of its records.
pub(crate) fn block_bytes(set: &ShardSet, (shard, records): (u32, Range<u64>)) -> Result<u64> {
    let Some(file) = set.files().get(shard as usize) else { return Ok(0) };
    if let Some(derived) = file.as_derived() {
        return Ok(derived.mean_bytes().saturating_mul(records.end - records.start));
    }
    let range = file.range_of(records)?;
    Ok(range.end.saturating_sub(range.start))
}

/// Requests a whole block of records. Up to `room` bytes will be requested and not read. An error is returned
/// by the first read.
pub(crate) fn request_block(set: &ShardSet, (shard, records): (u32, Range<u64>), room: u64) {
    let Some(file) = set.files().get(shard as usize) else { return };
    if let Some(derived) = file.as_derived() {
        derived.announce(&records.collect::<Vec<_>>(), true);
    } else if let (Ok(range), Ok(source)) = (file.range_of(records), file.source()) {
        source.make_room(room);
        source.want(std::slice::from_ref(&range));
    }
}

/// Withdraws the request of a block.
pub(crate) fn forget_block(set: &ShardSet, (shard, records): (u32, Range<u64>)) {
    let Some(file) = set.files().get(shard as usize) else { return };
    if let Some(derived) = file.as_derived() {
        derived.announce(&records.collect::<Vec<_>>(), false);
    } else if let Some(source) = file.opened_source()
        && let Ok(range) = file.range_of(records)
    {
        source.forget(std::slice::from_ref(&range));
    }
}

/// Requests records from their sources.
fn request(set: &ShardSet, records: &[Option<RecordLocation>]) {
    by_shard(set, records, true, |source, ranges| source.want(ranges));
}

/// Returns the records of shards whose blocks are not [requested whole](request_block).
pub(crate) fn outside_objects(
    set: &ShardSet,
    records: &[Option<RecordLocation>],
) -> Vec<Option<RecordLocation>> {
    let is_outside = |at: &RecordLocation| !set.file_of(at).has_object_blocks();
    records.iter().copied().filter(|at| at.as_ref().is_some_and(is_outside)).collect()
}

/// Withdraws the request of records.
pub(crate) fn forget(set: &ShardSet, records: &[Option<RecordLocation>]) {
    by_shard(set, records, false, |source, ranges| source.forget(ranges));
}

/// Requests the records of each shard from its source, in the order of the records, or withdraws the request.
/// At most [`MAX_RANGES`] records per call.
#[expect(clippy::indexing_slicing, reason = "a chunk has at most `MAX_RANGES` records")]
fn by_shard(
    set: &ShardSet,
    records: &[Option<RecordLocation>],
    wanted: bool,
    announce: impl Fn(&dyn Source, &[Range<u64>]),
) {
    for records in records.chunks(MAX_RANGES) {
        let mut order = [(u32::MAX, 0); MAX_RANGES];
        let mut found = 0;
        for (k, at) in records.iter().enumerate() {
            if let Some(at) = at {
                order[found] = (at.shard, k);
                found += 1;
            }
        }
        let order = &mut order[..found];
        order.sort_unstable();
        for in_shard in order.chunk_by(|a, b| a.0 == b.0) {
            let mut ranges = [const { 0..0 }; MAX_RANGES];
            let mut ids = [0; MAX_RANGES];
            let mut len = 0;
            let mut source = None;
            for at in in_shard.iter().filter_map(|&(_, k)| records[k].as_ref()) {
                let file = set.file_of(at);
                if file.as_derived().is_some() {
                    ids[len] = at.i;
                    len += 1;
                    continue;
                }
                source = file.source().ok();
                if let Some(range) = file.range(at.span) {
                    ranges[len] = range;
                    len += 1;
                }
            }
            let first = in_shard.first().and_then(|&(_, k)| records[k].as_ref());
            if let Some(records) = first.and_then(|at| set.file_of(at).as_derived()) {
                records.announce(&ids[..len], wanted);
            } else if let Some(source) = source {
                announce(source, &ranges[..len]);
            }
        }
    }
}

/// Touches records, and returns the duration.
fn touch(set: &ShardSet, how: Touch, records: &[Option<RecordLocation>]) -> Duration {
    let start = Instant::now();
    match how {
        Touch::Together => touch_together(set, records.iter().flatten()),
        Touch::Alone => {
            for at in records.iter().flatten() {
                let file = set.file_of(at);
                if let (Ok(source), Some(header)) = (file.source(), file.range(at.header().span)) {
                    source.want(&[header]);
                }
                let Ok(bytes) = file.bytes() else { continue };
                let byte = usize::try_from(at.span.offset).ok().and_then(|offset| bytes.get(offset));
                std::hint::black_box(byte.copied());
            }
        }
    }
    start.elapsed()
}

/// Returns true for the payload of a short record, of which [`is_cold`] has loaded all cache lines if it is
/// warm.
pub(crate) fn is_short(payload_len: u64) -> bool {
    payload_len <= SHORT - OVERHEAD as u64
}

/// Loads the header of each record, and all bytes of short records. Records must be mapped or in memory.
pub(super) fn touch_together<'a>(set: &ShardSet, records: impl IntoIterator<Item = &'a RecordLocation>) {
    let mut loads = Loads::new();
    for at in records {
        let Ok(bytes) = set.file_of(at).bytes() else { continue };
        let start = at.span.offset;
        let byte = |offset: u64| usize::try_from(offset).ok().and_then(|offset| bytes.get(offset));
        loads.push(byte(start));
        if is_short(at.span.payload_len) {
            let first = start / LINE;
            let last = (at.span.end() - 1) / LINE;
            (first + 1..=last).for_each(|line| loads.push(byte(line * LINE)));
        }
    }
    loads.run();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mapped;
    use crate::frame::put_record;
    use crate::io::Region;
    use crate::{DatasetOptions, IndexMode};
    use std::cell::RefCell;

    #[test]
    fn sources_receive_their_ranges_in_order_and_no_records_above_the_limit() {
        let shard = |lens: &[usize]| {
            let mut bytes = Vec::new();
            lens.iter().for_each(|&len| put_record(&mut bytes, &vec![7; len]).unwrap());
            Region::from(bytes)
        };
        let options = DatasetOptions::new().index(IndexMode::Memory).max_record(50);
        let ds = options.open_regions([shard(&[1, 2, 100]), shard(&[10; 200])]).unwrap();
        let set = ds.dataset().set();
        let locate = |ids: &[u64]| ids.iter().map(|&i| set.locate(i).ok()).collect::<Vec<_>>();
        let calls = |ids: &[u64]| {
            let calls = RefCell::new(Vec::new());
            by_shard(set, &locate(ids), true, |_, ranges| calls.borrow_mut().push(ranges.to_vec()));
            calls.into_inner()
        };
        assert_eq!(calls(&[4, 1, u64::MAX, 2, 3, 0]), [vec![17..35, 0..17], vec![26..52, 0..26]]);
        let ids: Vec<u64> = (3..203).rev().collect();
        assert_eq!(calls(&ids).iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 64, 8]);
        let ranges = calls(&ids).concat();
        assert!(ranges.iter().rev().enumerate().all(|(k, range)| range.start == k as u64 * 26));
        locate(&[0, 2, 5]).iter().flatten().for_each(|at| fetch(set, at).unwrap());
    }

    #[test]
    fn a_request_is_taken_back_without_opening_its_shard() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tfrecord");
        let mut bytes = Vec::new();
        put_record(&mut bytes, b"7").unwrap();
        std::fs::write(&path, bytes).unwrap();
        let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
        forget_block(ds.set(), (0, 0..1));
        assert!(ds.set().files()[0].entry(0).is_none());
        request_block(ds.set(), (0, 0..1), 1 << 20);
        assert!(ds.set().files()[0].entry(0).is_some());
    }

    #[test]
    fn records_in_memory_end_up_warm() {
        let mut bytes = Vec::new();
        (0..64).for_each(|_| put_record(&mut bytes, &[7; 100]).unwrap());
        let ds = Mapped::from_bytes(bytes).unwrap();
        let set = ds.dataset().set();
        let records: Vec<_> = (0..64).map(|i| set.locate(i).ok()).collect();
        let ahead = ReadAhead::default();
        // One batch that is measured as cold.
        assert!((0..2).any(|_| ahead.is_cold(Requested::Nothing, 64, |_, _| Duration::from_secs(1))));
        let mut batches = 0;
        loop {
            let requested = request_ahead(set, &ahead, &records);
            let cold = is_cold(set, &ahead, requested, &records);
            records.iter().flatten().for_each(|at| fetch(set, at).unwrap());
            if !cold {
                break;
            }
            batches += 1;
            // A preempted thread may measure warm records as cold, but not every time.
            assert!(batches < 10_000);
        }
        assert!(batches >= 8);
        forget(set, &records);
    }

    /// Positional reads of a simulated disk: requested records and those that were read before are fast.
    #[derive(Default)]
    struct Disk {
        warm: RefCell<std::collections::BTreeSet<usize>>,
        /// The requested records, in order.
        wanted: RefCell<Vec<usize>>,
        /// The records that were read, in order.
        read: RefCell<Vec<usize>>,
        /// Number of records whose read had to wait for the disk.
        waits: std::cell::Cell<usize>,
    }

    impl Disk {
        fn want(&self, records: Range<usize>) {
            self.wanted.borrow_mut().extend(records.clone());
            self.warm.borrow_mut().extend(records);
        }

        /// Requests the batch `records` as the loader does when it plans it.
        fn plan(&self, ahead: &ReadAhead, records: Range<usize>) -> Requested {
            let requested = ahead.plan(records.len());
            match requested {
                Requested::Nothing => {}
                Requested::All => self.want(records),
                Requested::AllButFirst => self.want(records.start + 1..records.end),
            }
            requested
        }

        /// Reads the batch `records`.
        fn make(&self, ahead: &ReadAhead, requested: Requested, records: Range<usize>) -> Result<()> {
            let at = |range: Range<usize>| records.start + range.start..records.start + range.end;
            let read = |range: Range<usize>| {
                let mut took = Duration::ZERO;
                for record in at(range) {
                    self.read.borrow_mut().push(record);
                    if self.warm.borrow_mut().insert(record) {
                        self.waits.set(self.waits.get() + 1);
                        took += Duration::from_micros(100);
                    } else {
                        took += Duration::from_micros(1);
                    }
                }
                Ok(took)
            };
            read_timed(ahead, requested, records.len(), read, |range| self.want(at(range)))
        }

        /// Reads `batches` batches of `len` records, planned `depth` batches ahead. Every record must be read
        /// once, in order.
        fn epoch(&self, ahead: &ReadAhead, batches: usize, len: usize, depth: usize) {
            let batch = |k: usize| k * len..(k + 1) * len;
            let mut plans = std::collections::VecDeque::new();
            self.read.borrow_mut().clear();
            for k in 0..batches + depth {
                if k < batches {
                    plans.push_back(self.plan(ahead, batch(k)));
                }
                if let Some(made) = k.checked_sub(depth) {
                    self.make(ahead, plans.pop_front().unwrap(), batch(made)).unwrap();
                }
            }
            assert!(self.read.borrow().iter().copied().eq(0..batches * len));
        }
    }

    #[test]
    fn cold_positional_reads_are_requested_and_warm_ones_never() {
        for (len, depth) in [(1, 1), (1, 40), (5, 3), (32, 0), (64, 16), (256, 4), (1000, 2)] {
            let disk = Disk::default();
            let ahead = ReadAhead::default();
            let batches = 4000usize.div_ceil(len).max(20);
            disk.epoch(&ahead, batches, len, depth);
            // Three records to detect that the disk is cold, and a probe in 256 records. Each record is
            // requested at most once.
            let probes = batches * len / 256 + 1;
            assert!(disk.waits.get() <= 3 + probes, "{len} {depth}: {}", disk.waits.get());
            let mut wanted = disk.wanted.take();
            assert_eq!(wanted.len() + disk.waits.get(), batches * len);
            wanted.dedup();
            assert_eq!(wanted.len() + disk.waits.get(), batches * len);
            // In the second epoch eight warm probes end the requests ahead.
            disk.epoch(&ahead, batches, len, depth);
            assert_eq!(disk.waits.get() + wanted.len(), batches * len, "no record waited twice");
            assert!(disk.wanted.take().len() <= (9 * 256).max(9 * len) + depth * len, "{len} {depth}");
            disk.epoch(&ahead, batches, len, depth);
            assert!(disk.wanted.take().is_empty(), "warm records were requested");
        }
    }

    #[test]
    fn an_error_of_a_timed_read_ends_the_batch() {
        for bad in 0..70 {
            let ahead = ReadAhead::default();
            let mut read = Vec::new();
            let done = read_timed(
                &ahead,
                Requested::Nothing,
                70,
                |range| {
                    for k in range {
                        if k == bad {
                            return Err(crate::ErrorKind::TooLarge { len: 1, limit: 0 }.into());
                        }
                        read.push(k);
                    }
                    Ok(Duration::ZERO)
                },
                |_| panic!("no record is cold"),
            );
            assert!(done.is_err());
            assert!(read.into_iter().eq(0..bad));
        }
    }

    #[test]
    fn reads_are_timed_only_without_decompression() {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        (0..8).for_each(|_| put_record(&mut bytes, &[7; 100]).unwrap());
        for compressed in [false, true] {
            let path = dir.path().join(format!("{compressed}.tfrecord"));
            let mut file = std::fs::File::create(&path).unwrap();
            if compressed {
                let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                std::io::Write::write_all(&mut gzip, &bytes).unwrap();
                gzip.finish().unwrap();
            } else {
                std::io::Write::write_all(&mut file, &bytes).unwrap();
            }
            let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
            let records: Vec<_> = (0..8).map(|i| ds.set().locate(i).ok()).collect();
            let ahead = ReadAhead::default();
            let mut read = 0;
            read_all(ds.set(), &ahead, request_ahead(ds.set(), &ahead, &records), &records, |part| {
                std::thread::sleep(Duration::from_millis(1) * part.len() as u32);
                read += part.len();
                Ok(())
            })
            .unwrap();
            assert_eq!(read, 8);
            assert_eq!(request_ahead(ds.set(), &ahead, &records) == Requested::Nothing, compressed);
        }
    }
}
