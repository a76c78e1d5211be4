//! The scan of a shard in memory by several chains of headers, on one thread or more.
//!
//! The shard is cut into chunks. A search finds the first chain of headers in each, chains are walked in
//! turn, and their records are joined in the order of the file. A chunk's records count from the place where
//! those before it end. If its chain does not pass there, for example because the search found a TFRecord
//! inside a payload, the chunk is scanned again by one chain. So do damaged and torn records: the result,
//! errors included, is always the same as with [`scan_slice`]. Advice to the system to read chunks ahead made
//! cold scans slower.

use super::chains::{Chain, walk};
use super::progress::{REPORT, Work};
use super::scan::{Reached, ScanOutcome, ScanStart, scan_slice, scan_slice_until};
use crate::error::{ErrorKind, Result};
use crate::io::threads;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes that one chain scans first, to learn the length of records.
const FIRST: usize = 64 << 10;
/// Bytes of a chunk, at least. Its starts stay in the cache until they are joined.
const MIN_CHUNK: usize = 512 << 10;
/// Bytes of a chunk, at most. Starts are kept in 32 bits.
const MAX_CHUNK: usize = 1 << 30;
/// Mean length from which records are scanned by one chain, unless payloads are verified. The search for a
/// chain reads half a record, and the chain one header per record.
const MAX_MEAN: usize = 16 << 10;
/// Mean length of small records. They are read almost completely, and the processor prefetches only a few
/// sequences at once. The headers of longer ones take little time, but the system reads ahead badly if
/// several threads load chunks of them from a disk.
const SMALL: usize = 1 << 10;
/// Nanoseconds of work below which a second thread does not pay.
const ALONE: u64 = 2_000_000;

/// The way to scan a shard: sizes of its chunks, and numbers of chains and threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkPlan {
    pub(super) chunk: usize,
    /// Bytes at the start of a chunk that are searched for a chain.
    pub(super) search: usize,
    /// Chains that a thread walks in turn.
    pub(super) chains: usize,
    /// Turns between two tests for cancellation.
    pub(super) turns: usize,
    pub(super) threads: usize,
}

impl ChunkPlan {
    /// Plans the scan of `left` bytes with records of `mean` bytes. Returns `None` if one chain is as fast.
    pub(super) fn new(left: usize, mean: usize, payloads: bool, threads: usize) -> Option<ChunkPlan> {
        let mean = mean.max(1);
        // A search should take a small part of the time of its chunk. The time is 1/8 ns for a byte, or 6 to
        // 40 ns for a header.
        let (chunk, time) = if payloads {
            (32 * mean.min(MAX_CHUNK / 32), left / 8)
        } else if mean <= MAX_MEAN {
            (mean * mean / 8, (left / mean).min(ALONE as usize) * (mean / 12).clamp(6, 40))
        } else {
            return None;
        };
        let chunk = chunk.clamp(MIN_CHUNK, MAX_CHUNK);
        let chains = match mean {
            _ if payloads => 1,
            ..SMALL => 6,
            _ => 8,
        };
        let alone = (time as u64) < ALONE || mean >= SMALL && !payloads;
        let threads = if alone { 1 } else { threads.max(1) };
        let turns = (REPORT / mean / chains).max(1);
        let search = (16 * mean.min(MAX_CHUNK / 16)).max(FIRST);
        let worth = left / 2 >= chunk && (chains > 1 || threads > 1);
        worth.then_some(ChunkPlan { chunk, search, chains, turns, threads })
    }
}

/// Scans a shard in memory on at most `threads` threads. The result is the same as with [`scan_slice`].
pub(super) fn scan_chunks(
    bytes: &[u8],
    start: ScanStart,
    payloads: bool,
    threads: usize,
    work: &Work,
) -> Result<ScanOutcome> {
    let at = start.at;
    let known = start.offsets.len();
    let from = usize::try_from(at).unwrap_or(usize::MAX);
    if bytes.get(from..).is_none_or(|rest| rest.len() <= MIN_CHUNK) {
        return scan_slice(bytes, start, payloads, work);
    }
    let start = match scan_slice_until(bytes, start, payloads, from + FIRST, work)? {
        Reached::End(outcome) => return Ok(outcome),
        Reached::Record(start) => start,
    };
    let mean = (start.at - at) / (start.offsets.len() - known).max(1);
    let left = bytes.len() as u64 - start.at;
    match ChunkPlan::new(left as usize, mean as usize, payloads, threads) {
        Some(plan) => PlannedScan { bytes, payloads, plan, work }.run(start),
        None => scan_slice(bytes, start, payloads, work),
    }
}

/// A scan of a shard in memory by a plan.
#[derive(Clone, Copy)]
pub(super) struct PlannedScan<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) payloads: bool,
    pub(super) plan: ChunkPlan,
    pub(super) work: &'a Work,
}

impl PlannedScan<'_> {
    /// Scans the shard. The result is the same as with [`scan_slice`].
    pub(super) fn run(self, start: ScanStart) -> Result<ScanOutcome> {
        let PlannedScan { bytes, payloads, plan, work } = self;
        let joint = Mutex::new(Joint {
            scan: self,
            next: 0,
            so_far: Some(Reached::Record(start)),
            waiting: VecDeque::new(),
            spare: Vec::new(),
            joined: 0,
            missed: 0,
            stopped: false,
        });
        threads::each(Some(plan.threads), plan.threads, true, |_| self.some(&joint))?;
        match joint.into_inner().unwrap_or_else(|e| e.into_inner()).so_far {
            Some(Reached::Record(start)) => scan_slice(bytes, start, payloads, work),
            Some(Reached::End(outcome)) => Ok(outcome),
            // Every error is returned above.
            None => Err(ErrorKind::Cancelled.into()),
        }
    }

    /// Scans chunks until none is left: the work of one thread.
    fn some(self, joint: &Mutex<Joint<'_>>) -> Result<()> {
        let PlannedScan { bytes, payloads, plan, work } = self;
        let lock = || joint.lock().unwrap_or_else(|e| e.into_inner());
        let mut chains = Vec::with_capacity(plan.chains);
        loop {
            while chains.len() < plan.chains {
                let Some((chunk, starts)) = lock().next_chunk() else { break };
                chains.push(Chain::find(bytes, chunk, plan.search, starts));
            }
            if chains.is_empty() {
                return Ok(());
            }
            match walk(bytes, &mut chains, plan.turns, payloads) {
                None => work.report(0)?,
                Some(k) => {
                    let chain = chains.swap_remove(k);
                    if !lock().put(chain)? {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The state that the threads of a scan share.
struct Joint<'a> {
    scan: PlannedScan<'a>,
    /// The start of the next chunk.
    next: usize,
    /// The records of the chunks that are joined, up to the next chunk, or to the last record or a torn tail.
    /// `None` after an error.
    so_far: Option<Reached>,
    /// The starts of the chunks that are not joined, in order, with their chains if these are complete.
    waiting: VecDeque<(usize, Option<Chain>)>,
    /// Memory of chains that are joined.
    spare: Vec<Vec<u32>>,
    /// Number of chunks whose chains had the right records.
    joined: usize,
    /// Number of the others.
    missed: usize,
    /// No chunks follow.
    stopped: bool,
}

impl Joint<'_> {
    /// Returns the next chunk, and memory for its chain.
    fn next_chunk(&mut self) -> Option<(Range<usize>, Vec<u32>)> {
        let Some(Reached::Record(ScanStart { at, .. })) = &self.so_far else { return None };
        let ChunkPlan { chunk, chains, threads, .. } = self.scan.plan;
        // A long record may end after the chunks so far.
        let start = usize::try_from(*at).ok()?.max(self.next);
        let left = self.scan.bytes.len().checked_sub(start)?;
        if self.stopped || left == 0 {
            return None;
        }
        // The last chunks are smaller, so that all threads and chains end at the same time.
        let share = left / (4 * chains * threads).max(1);
        let len = share.clamp(chunk.div_ceil(4), chunk);
        let len = if left / 2 < len { left } else { len };
        self.next = start + len;
        self.waiting.push_back((start, None));
        Some((start..self.next, self.spare.pop().unwrap_or_default()))
    }

    /// Takes a complete chain, and joins those whose turn it is. Returns false if no more chains are needed.
    fn put(&mut self, chain: Chain) -> Result<bool> {
        let start = chain.chunk.start;
        let place = self.waiting.partition_point(|(other, _)| *other < start);
        if let Some((_, slot)) = self.waiting.get_mut(place) {
            *slot = Some(chain);
        }
        while let Some((_, slot)) = self.waiting.front_mut()
            && let Some(mut chain) = slot.take()
        {
            self.waiting.pop_front();
            self.join(&mut chain).inspect_err(|_| self.stopped = true)?;
            self.spare.push(chain.starts);
        }
        // Many chains that are of no use, as in a shard whose payloads are TFRecords.
        let plan = self.scan.plan;
        let in_flight = plan.chains * plan.threads;
        self.stopped |=
            self.missed > 2 * in_flight + self.joined / 4 || !matches!(self.so_far, Some(Reached::Record(_)));
        Ok(!self.stopped)
    }

    /// Adds the records of a chunk, from the place on where those before it end.
    fn join(&mut self, chain: &mut Chain) -> Result<()> {
        let mut start = match self.so_far.take() {
            Some(Reached::Record(start)) => start,
            other => {
                self.so_far = other;
                return Ok(());
            }
        };
        let chunk = chain.chunk.clone();
        let from = start.at;
        let at = usize::try_from(from).unwrap_or(usize::MAX);
        match chain.records_from(at) {
            Some((starts, end)) => {
                start.offsets.extend(chunk.start as u64, starts);
                start.at = end as u64;
                self.joined += 1;
                let mut unreported = start.at - from;
                while unreported > 0 {
                    let bytes = unreported.min(REPORT as u64);
                    self.scan.work.report(bytes)?;
                    unreported -= bytes;
                }
            }
            None => self.missed += 1,
        }
        let PlannedScan { bytes, payloads, work, .. } = self.scan;
        self.so_far = Some(if start.at >= chunk.end as u64 {
            Reached::Record(start)
        } else {
            scan_slice_until(bytes, start, payloads, chunk.end, work)?
        });
        Ok(())
    }
}
