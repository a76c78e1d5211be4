//! Ranges of the objects of a filesystem: which are asked for, which are here, and which are needed still. No
//! call is made here.
//!
//! `tfseek-remote` has another such table. Builds without that crate have this one too, so what both shared
//! would be public in a crate below them. There a request is for one piece, may be ended or made twice, and
//! their number follows the rate of answers; pieces may be on disk. Here a call is for many parts. A part
//! that failed while no thread waited is asked for again, because nothing below has repeated the call.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use tfseek::io::Region;

/// The most bytes of a part that is asked for.
const PART: u64 = 8 << 20;
/// The most bytes of the parts of a call.
const CALL: u64 = 32 << 20;
/// The most bytes that are here or on their way. Threads that wait may exceed it by what they need.
const MEMORY: u64 = 256 << 20;
/// Wanted ranges are asked for together over a gap of at most a quarter of the bytes wanted so far, between
/// these numbers of bytes.
const GAP: [u64; 2] = [64 << 10, 1 << 20];

/// A failed call, in words without secrets.
#[derive(Clone, Debug)]
pub(crate) struct CallFailure {
    pub(crate) cause: FailureCause,
    pub(crate) text: Box<str>,
}

impl CallFailure {
    pub(crate) fn other(text: impl Into<Box<str>>) -> CallFailure {
        CallFailure { cause: FailureCause::Other, text: text.into() }
    }
}

/// The reason of a failure, as far as callers tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    Missing,
    Denied,
    Stale,
    Unsupported,
    /// The thread that waited gave its work up.
    Cancelled,
    Other,
}

/// A part of an object that is kept, or asked for.
struct KeptPart {
    end: u64,
    state: PartState,
    /// Number of wanted bytes in it that were not read yet.
    wanted: u64,
    /// Number of threads that wait for it.
    waiting: usize,
    /// The time of its last use.
    used: u64,
}

enum PartState {
    Queued,
    Running,
    Here(Region),
    Failed(CallFailure),
}

type Parts = BTreeMap<u64, KeptPart>;

/// A part to ask for: the number of its object, and its range.
#[derive(Clone, Debug)]
pub(crate) struct PartRequest {
    pub(crate) id: u64,
    pub(crate) range: Range<u64>,
}

/// The state of a range that a thread needs.
pub(crate) enum RangeAnswer {
    Wait,
    Failed(CallFailure),
    /// The parts of the range, in order: a part, and the range in it.
    Here(Vec<(Region, Range<usize>)>),
}

/// The ranges of all objects.
#[derive(Default)]
pub(crate) struct RangeTable {
    objects: HashMap<u64, Parts>,
    /// Announced parts, by object and start. Some are not queued any more.
    queue: VecDeque<(u64, u64)>,
    /// Parts that a thread waits for.
    urgent: VecDeque<(u64, u64)>,
    /// Bytes of parts that are here or on their way.
    bytes: u64,
    clock: u64,
}

impl RangeTable {
    /// Notes ranges that will be needed, in this order.
    pub(crate) fn want(&mut self, id: u64, ranges: &[Range<u64>], len: u64) {
        let parts = self.objects.entry(id).or_default();
        for wanted in merge(ranges, len) {
            for gap in gaps(parts, wanted) {
                self.queue.push_back((id, gap.start));
                parts.insert(gap.start, KeptPart::new(gap.end));
            }
        }
        for range in ranges {
            for_each_in(parts, range, |_, part, bytes| part.wanted += bytes);
        }
    }

    /// Takes ranges back. Parts that are not needed are dropped.
    pub(crate) fn forget(&mut self, id: u64, ranges: &[Range<u64>]) {
        if let Some(parts) = self.objects.get_mut(&id) {
            for range in ranges {
                for_each_in(parts, range, |_, part, bytes| part.wanted = part.wanted.saturating_sub(bytes));
            }
            self.clear(id);
        }
    }

    /// Begins to wait for a range, whose parts are asked for first.
    pub(crate) fn begin(&mut self, id: u64, range: &Range<u64>) {
        let parts = self.objects.entry(id).or_default();
        for gap in gaps(parts, range.clone()) {
            let wanted = gap.end - gap.start;
            parts.insert(gap.start, KeptPart { wanted, ..KeptPart::new(gap.end) });
        }
        for_each_in(parts, range, |start, part, _| {
            part.waiting += 1;
            if matches!(part.state, PartState::Queued) {
                self.urgent.push_back((id, start));
            }
        });
    }

    /// Returns the range if all of its parts are here. The thread then waits no more.
    pub(crate) fn take(&mut self, id: u64, range: &Range<u64>) -> RangeAnswer {
        self.clock += 1;
        let clock = self.clock;
        let Some(parts) = self.objects.get_mut(&id) else { return RangeAnswer::Here(Vec::new()) };
        let mut found = Vec::new();
        let mut failed = None;
        let mut waits = false;
        for_each_in(parts, range, |start, part, _| match &part.state {
            PartState::Here(bytes) => {
                let from = range.start.max(start) - start;
                let to = range.end.min(part.end) - start;
                found.push((bytes.clone(), from as usize..to as usize));
            }
            PartState::Failed(failure) => failed = failed.take().or(Some(failure.clone())),
            PartState::Queued | PartState::Running => waits = true,
        });
        if waits && failed.is_none() {
            return RangeAnswer::Wait;
        }
        for_each_in(parts, range, |_, part, bytes| {
            part.waiting -= 1;
            part.used = clock;
            part.wanted = part.wanted.saturating_sub(bytes);
            // The next thread asks again.
            if matches!(part.state, PartState::Failed(_)) {
                part.wanted = 0;
            }
        });
        self.clear(id);
        failed.map_or(RangeAnswer::Here(found), RangeAnswer::Failed)
    }

    /// Ends the wait of a thread for a range. Its calls go on, and their results are dropped.
    pub(crate) fn give_up(&mut self, id: u64, range: &Range<u64>) {
        if let Some(parts) = self.objects.get_mut(&id) {
            for_each_in(parts, range, |_, part, _| part.waiting -= 1);
        }
        self.forget(id, std::slice::from_ref(range));
    }

    /// Returns the parts of the next call, at most `most`.
    pub(crate) fn next(&mut self, most: usize) -> Vec<PartRequest> {
        let mut call = Vec::new();
        let mut bytes = 0_u64;
        while call.len() < most {
            let is_urgent = !self.urgent.is_empty();
            let queue = if is_urgent { &mut self.urgent } else { &mut self.queue };
            let Some(&(id, start)) = queue.front() else { break };
            let part = self.objects.get(&id).and_then(|parts| parts.get(&start));
            let end = part.filter(|part| matches!(part.state, PartState::Queued)).map(|part| part.end);
            if let Some(end) = end {
                let len = end - start;
                if bytes > 0 && bytes + len > CALL {
                    break;
                }
                if self.bytes > 0 && self.bytes + len > MEMORY {
                    if !is_urgent {
                        break;
                    }
                    self.evict(len);
                }
            }
            let queue = if is_urgent { &mut self.urgent } else { &mut self.queue };
            queue.pop_front();
            let part = self.objects.get_mut(&id).and_then(|parts| parts.get_mut(&start));
            if let (Some(part), Some(end)) = (part, end) {
                part.state = PartState::Running;
                let len = end - start;
                bytes += len;
                self.bytes += len;
                call.push(PartRequest { id, range: start..end });
            }
        }
        call
    }

    /// Notes the result for a part.
    pub(crate) fn done(&mut self, request: &PartRequest, result: Result<Region, CallFailure>) {
        self.clock += 1;
        let PartRequest { id, range } = request;
        let part = self.objects.get_mut(id).and_then(|parts| parts.get_mut(&range.start));
        match (part.filter(|part| matches!(part.state, PartState::Running)), result) {
            (Some(part), Ok(bytes)) => (part.state, part.used) = (PartState::Here(bytes), self.clock),
            (part, result) => {
                self.bytes -= range.end - range.start;
                if let (Some(part), Err(failure)) = (part, result) {
                    // If no thread waits for it, the one that needs it asks again.
                    part.wanted = if part.waiting > 0 { part.wanted } else { 0 };
                    part.state = PartState::Failed(failure);
                }
            }
        }
        self.clear(*id);
    }

    /// Drops the bytes of a range that are here. Those that are needed are asked for again.
    pub(crate) fn drop_here(&mut self, id: u64, range: &Range<u64>) {
        let Some(parts) = self.objects.get_mut(&id) else { return };
        let queue = &mut self.queue;
        let mut freed = 0;
        for_each_in(parts, range, |start, part, _| {
            if matches!(part.state, PartState::Here(_)) {
                part.state = PartState::Queued;
                freed += part.end - start;
                queue.push_back((id, start));
            }
        });
        self.bytes -= freed;
        self.clear(id);
    }

    /// Drops an object. The results for its parts that are on their way are dropped when they come.
    pub(crate) fn remove(&mut self, id: u64) {
        for (start, part) in self.objects.remove(&id).into_iter().flatten() {
            self.drop_bytes(&part.state, part.end - start);
        }
    }

    /// Drops the parts of an object that are not needed.
    fn clear(&mut self, id: u64) {
        let Some(parts) = self.objects.get_mut(&id) else { return };
        let bytes = &mut self.bytes;
        parts.retain(|start, part| {
            let is_needed = part.wanted > 0 || part.waiting > 0 || matches!(part.state, PartState::Running);
            if !is_needed && matches!(part.state, PartState::Here(_)) {
                *bytes -= part.end - start;
            }
            is_needed
        });
    }

    /// Drops the parts that were not used for the longest time, until there is memory for `len` bytes.
    fn evict(&mut self, len: u64) {
        while self.bytes + len > MEMORY {
            let all = self
                .objects
                .iter()
                .flat_map(|(id, parts)| parts.iter().map(move |(start, part)| (part, *id, *start)));
            let idle = all.filter(|(part, ..)| matches!(part.state, PartState::Here(_)) && part.waiting == 0);
            let Some((_, id, start)) = idle.min_by_key(|(part, ..)| part.used) else { return };
            if let Some(part) = self.objects.get_mut(&id).and_then(|parts| parts.remove(&start)) {
                self.drop_bytes(&part.state, part.end - start);
            }
        }
    }

    fn drop_bytes(&mut self, state: &PartState, len: u64) {
        if matches!(state, PartState::Here(_)) {
            self.bytes -= len;
        }
    }
}

impl KeptPart {
    fn new(end: u64) -> KeptPart {
        KeptPart { end, state: PartState::Queued, wanted: 0, waiting: 0, used: 0 }
    }
}

/// Returns the parts of wanted ranges, in the order in which they are needed first.
fn merge(ranges: &[Range<u64>], len: u64) -> Vec<Range<u64>> {
    let ranges = ranges.iter().enumerate().map(|(k, range)| (range.start..range.end.min(len), k));
    let mut sorted: Vec<(Range<u64>, usize)> = ranges.filter(|(range, _)| range.start < range.end).collect();
    sorted.sort_unstable_by_key(|(range, _)| range.start);
    let mut merged = Vec::<(Range<u64>, usize, u64)>::new();
    for (range, k) in sorted {
        let bytes = range.end - range.start;
        if let Some((last, first, wanted)) = merged.last_mut()
            && range.start <= last.end.saturating_add((*wanted / 4).clamp(GAP[0], GAP[1]))
        {
            last.end = last.end.max(range.end);
            (*first, *wanted) = ((*first).min(k), wanted.saturating_add(bytes));
        } else {
            merged.push((range, k, bytes));
        }
    }
    merged.sort_by_key(|(_, first, _)| *first);
    merged.into_iter().flat_map(|(range, ..)| cut(range)).collect()
}

/// Cuts a range to parts.
fn cut(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(PART as usize).map(move |start| start..start + PART.min(end - start))
}

/// Returns the ranges in a range that no part has, cut to parts.
fn gaps(parts: &Parts, range: Range<u64>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let before = parts.range(..=range.start).next_back().map_or(0, |(_, part)| part.end);
    let mut at = range.start.max(before);
    for (start, part) in parts.range(range.start..).take_while(|(start, _)| **start < range.end) {
        found.extend(cut(at..*start));
        at = at.max(part.end);
    }
    found.extend(cut(at..range.end));
    found
}

/// Calls `f` with the start of each part that has bytes of the range, the part, and the number of these
/// bytes.
fn for_each_in(parts: &mut Parts, range: &Range<u64>, mut f: impl FnMut(u64, &mut KeptPart, u64)) {
    let before = parts.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
    if before >= range.end || range.start > range.end {
        return;
    }
    for (start, part) in parts.range_mut(before..range.end) {
        if part.end > range.start {
            let bytes = range.end.min(part.end) - range.start.max(*start);
            f(*start, part, bytes);
        }
    }
}
