//! Pieces of objects: which bytes are asked for, which are here, and which are needed still. No request is
//! made here.

use crate::disk::DiskPiece;
use crate::failure::{Cause, RequestFailure};
use crate::in_flight::InFlight;
use crate::ready::HasPieces;
use crate::slow::Slow;
use crate::wanted::WantedBytes;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tfseek::io::{Region, Traffic};

/// The most bytes of a piece.
pub(crate) const PIECE: u64 = 8 << 20;
/// Wanted ranges are fetched together over a gap of at most a quarter of the bytes wanted so far, between
/// these numbers of bytes.
const GAP: [u64; 2] = [64 << 10, 1 << 20];

/// Bytes of other pieces, beside those that a reader makes room for.
const IN_FLIGHT: u64 = 64 << 20;

/// Returns the pieces of wanted ranges, in the order in which they are needed first. With `joins` they are
/// fetched together over gaps, else only if they are adjacent: a piece in a cache has the same range in the
/// next epoch.
pub(crate) fn merge(ranges: &[Range<u64>], len: u64, joins: bool) -> Vec<Range<u64>> {
    let ranges = ranges.iter().enumerate().map(|(k, range)| (range.start..range.end.min(len), k));
    let mut sorted: Vec<(Range<u64>, usize)> = ranges.filter(|(range, _)| range.start < range.end).collect();
    sorted.sort_unstable_by_key(|(range, _)| range.start);
    let mut merged = Vec::<(Range<u64>, usize, u64)>::new();
    for (range, k) in sorted {
        let bytes = range.end - range.start;
        if let Some((last, first, wanted)) = merged.last_mut()
            && range.start <= last.end.saturating_add(if joins { gap(*wanted) } else { 0 })
        {
            last.end = last.end.max(range.end);
            // Ranges may overlap, in an object of any size.
            (*first, *wanted) = ((*first).min(k), wanted.saturating_add(bytes));
        } else {
            merged.push((range, k, bytes));
        }
    }
    merged.sort_by_key(|(_, first, _)| *first);
    merged.into_iter().flat_map(|(range, ..)| cut(range)).collect()
}

/// Returns the gap over which ranges are fetched together.
fn gap(wanted: u64) -> u64 {
    (wanted / 4).clamp(GAP[0], GAP[1])
}

/// Cuts a range to pieces.
fn cut(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(PIECE as usize).map(move |start| start..start + PIECE.min(end - start))
}

/// A piece of an object.
#[derive(Debug)]
struct Piece {
    end: u64,
    state: PieceState,
    /// The wanted bytes in it, unless it is open on disk.
    wanted: WantedBytes,
    /// Number of threads that wait for it.
    waiting: usize,
    /// When it was last used.
    used: u64,
    /// The requests for it that are under way, and when the first was made.
    asked: Vec<u64>,
    since: Duration,
}

#[derive(Debug)]
enum PieceState {
    Queued,
    Running,
    Here(Held),
    Failed(RequestFailure),
}

/// The bytes of a piece.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    Memory(Region),
    /// They take no memory but for copies for small records.
    Disk(DiskPiece),
}

impl PieceState {
    fn is_in_memory(&self) -> bool {
        matches!(self, PieceState::Here(Held::Memory(_)))
    }
}

/// The place of the bytes of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Cache,
    Server,
    /// A server that refused requests while this one was under way.
    RefusingServer,
}

/// A request for a piece.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    id: u64,
    pub(crate) range: Range<u64>,
    /// The time before it is made.
    pub(crate) delay: Duration,
    since: Duration,
}

/// The answer to a thread that needs a range.
pub(crate) enum Answer {
    Wait,
    Failed(RequestFailure),
    /// The parts of the range, in order.
    Here(Vec<PiecePart>),
}

/// A part of a piece.
#[derive(Debug)]
pub(crate) struct PiecePart {
    pub(crate) held: Held,
    pub(crate) range: Range<usize>,
}

impl PiecePart {
    /// Returns the part of the piece at `start` that has a range of the object.
    fn new(start: u64, held: &Held, range: &Range<u64>) -> PiecePart {
        let at = |at: u64| (at - start) as usize;
        PiecePart { held: held.clone(), range: at(range.start)..at(range.end) }
    }
}

struct Object<O> {
    object: Arc<O>,
    pieces: BTreeMap<u64, Piece>,
}

impl<O: HasPieces> Object<O> {
    fn remove_ready(&self, start: u64) {
        if let Some(ready) = self.object.ready() {
            ready.remove(start);
        }
    }
}

/// The pieces of all objects of a store.
pub(crate) struct Pieces<O> {
    objects: HashMap<u64, Object<O>>,
    /// Pieces to fetch, by object and start. Some are not queued any more.
    queue: VecDeque<(u64, u64)>,
    /// Pieces that a thread waits for.
    urgent: VecDeque<(u64, u64)>,
    /// Pieces that are asked for once more.
    again: VecDeque<(u64, u64)>,
    running: usize,
    /// Number of requests so far.
    requests: u64,
    /// Bytes of pieces that are here, and of requests that are under way.
    bytes: u64,
    clock: u64,
    in_flight: InFlight,
    slow: Slow,
    memory: u64,
    /// Ranges are fetched together over gaps.
    joins: bool,
    traffic: Traffic,
}

impl<O: HasPieces> Pieces<O> {
    pub(crate) fn new(requests: usize, memory: u64, joins: bool) -> Pieces<O> {
        Pieces {
            joins,
            traffic: Traffic::default(),
            objects: HashMap::new(),
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            again: VecDeque::new(),
            running: 0,
            requests: 0,
            bytes: 0,
            clock: 0,
            in_flight: InFlight::new(requests),
            slow: Slow::default(),
            memory,
        }
    }

    /// Raises the number of bytes that are kept.
    pub(crate) fn make_room(&mut self, bytes: u64) {
        self.memory = self.memory.max(bytes.saturating_add(IN_FLIGHT));
    }

    fn object(&mut self, id: u64, object: &Arc<O>) -> &mut Object<O> {
        let new = || Object { object: object.clone(), pieces: BTreeMap::new() };
        self.objects.entry(id).or_insert_with(new)
    }

    /// Notes ranges that will be needed, in this order.
    pub(crate) fn want(&mut self, id: u64, object: &Arc<O>, ranges: &[Range<u64>], len: u64) {
        let joins = self.joins;
        let mut queued = Vec::new();
        let pieces = &mut self.object(id, object).pieces;
        for wanted in merge(ranges, len, joins) {
            for gap in gaps(pieces, wanted) {
                queued.push((id, gap.start));
                pieces.insert(gap.start, Piece::new(gap.end));
            }
        }
        for range in ranges {
            for_each_in(pieces, range, |piece, bytes| piece.wanted().add(bytes));
        }
        self.queue.extend(queued);
    }

    /// Takes ranges back. Pieces that are not needed are dropped. Returns the requests that are not needed.
    pub(crate) fn forget(&mut self, id: u64, ranges: &[Range<u64>]) -> Vec<u64> {
        let mut requests = Vec::new();
        for range in ranges {
            let Some(object) = self.objects.get_mut(&id) else { break };
            for_each_in(&mut object.pieces, range, |piece, bytes| _ = piece.wanted().take(bytes));
            self.clear(id, range);
            requests.append(&mut self.abandon(id, range));
        }
        requests
    }

    /// Ends the wait of a thread for a range. Returns the requests that are not needed.
    pub(crate) fn give_up(&mut self, id: u64, range: &Range<u64>) -> Vec<u64> {
        if let Some(object) = self.objects.get_mut(&id) {
            for_each_start_in(&mut object.pieces, range, |_, piece| piece.waiting -= 1);
        }
        self.forget(id, std::slice::from_ref(range))
    }

    /// Drops the pieces in a range of an object that are on their way and not needed. Returns their requests,
    /// whose results are dropped.
    fn abandon(&mut self, id: u64, range: &Range<u64>) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut requests = Vec::new();
        let Some(object) = self.objects.get_mut(&id) else { return requests };
        for_each_start_in(&mut object.pieces, range, |start, piece| {
            if matches!(piece.state, PieceState::Running) && piece.wanted().get() == 0 && piece.waiting == 0 {
                starts.push(start);
                requests.append(&mut piece.asked);
            }
        });
        for start in starts {
            object.pieces.remove(&start);
        }
        requests
    }

    /// Drops the pieces in a range of an object that are not needed.
    pub(crate) fn clear(&mut self, id: u64, range: &Range<u64>) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        loop {
            let mut dropped = None;
            for_each_start_in(&mut object.pieces, range, |start, piece| {
                if !piece.is_needed() {
                    dropped = Some(start);
                }
            });
            let Some(start) = dropped else { return };
            match object.pieces.remove(&start) {
                Some(piece) if piece.state.is_in_memory() => {
                    self.bytes -= piece.end - start;
                }
                Some(Piece { state: PieceState::Here(Held::Disk(_)), .. }) => object.remove_ready(start),
                _ => {}
            }
        }
    }

    /// Drops an object. Returns its requests.
    pub(crate) fn remove(&mut self, id: u64) -> Vec<u64> {
        let mut requests = Vec::new();
        let Some(object) = self.objects.remove(&id) else { return requests };
        for (start, mut piece) in object.pieces {
            if piece.state.is_in_memory() {
                self.bytes -= piece.end - start;
            }
            requests.append(&mut piece.asked);
        }
        requests
    }

    /// Returns the next request and its object, if one may be made.
    pub(crate) fn next(&mut self, now: Duration) -> Option<(Request, Arc<O>)> {
        while let Some((id, start)) = self.again.pop_front() {
            let piece = self.objects.get(&id).and_then(|object| object.pieces.get(&start));
            if let Some(piece) = piece.filter(|piece| matches!(piece.state, PieceState::Running)) {
                let len = piece.end - start;
                return self.ask(id, start, len, now, Duration::ZERO);
            }
        }
        loop {
            // Threads wait for urgent pieces, also while announced ones are on their way.
            let limit = self.in_flight.limit();
            let urgent = !self.urgent.is_empty() && self.running < limit * 2;
            let queue = if urgent {
                &self.urgent
            } else if self.running < limit {
                &self.queue
            } else {
                if !self.urgent.is_empty() || !self.queue.is_empty() {
                    self.in_flight.full();
                }
                return None;
            };
            let (id, start) = *queue.front()?;
            let piece = self.objects.get(&id).and_then(|object| object.pieces.get(&start));
            let len = piece
                .filter(|piece| matches!(piece.state, PieceState::Queued))
                .map(|piece| piece.end - start);
            if let Some(len) = len.filter(|_| self.bytes > 0)
                && self.bytes + len > self.memory
            {
                if urgent {
                    self.evict(len);
                } else {
                    return None;
                }
            }
            if urgent {
                self.urgent.pop_front()
            } else {
                self.queue.pop_front()
            };
            let Some(len) = len else { continue };
            let delay = if urgent { Duration::ZERO } else { self.in_flight.delay(now, self.running) };
            if let Some(request) = self.ask(id, start, len, now, delay) {
                return Some(request);
            }
        }
    }

    /// Notes a request for a piece, which is made after a delay.
    fn ask(
        &mut self,
        id: u64,
        start: u64,
        len: u64,
        now: Duration,
        delay: Duration,
    ) -> Option<(Request, Arc<O>)> {
        let object = self.objects.get_mut(&id)?;
        let piece = object.pieces.get_mut(&start)?;
        let number = self.requests;
        let since = now + delay;
        if piece.asked.is_empty() {
            piece.since = since;
        }
        piece.state = PieceState::Running;
        piece.asked.push(number);
        self.requests += 1;
        self.running += 1;
        self.bytes += len;
        self.traffic.held = self.traffic.held.max(self.bytes);
        self.in_flight.asked(now, len);
        let request = Request { number, id, range: start..start + len, delay, since };
        Some((request, object.object.clone()))
    }

    /// Drops the pieces that were not used for the longest time, until there is memory for `len` bytes.
    fn evict(&mut self, len: u64) {
        while self.bytes + len > self.memory {
            let pieces = self.objects.iter().flat_map(|(id, object)| {
                object.pieces.iter().map(move |(start, piece)| (piece, *id, *start))
            });
            let idle = pieces.filter(|(piece, ..)| piece.state.is_in_memory() && piece.waiting == 0);
            let Some((piece, id, start)) = idle.min_by_key(|(piece, ..)| piece.used) else { return };
            self.bytes -= piece.end - start;
            if let Some(object) = self.objects.get_mut(&id) {
                object.pieces.remove(&start);
            }
        }
    }

    /// Returns what was read so far.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.traffic;
        traffic.latency = self.slow.latency();
        traffic
    }

    /// Counts a read that waited.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.traffic.waits += 1;
        self.traffic.waited += time;
    }

    /// Notes the result of a request. `from` is the place of the bytes.
    pub(crate) fn done(
        &mut self,
        request: &Request,
        result: Result<Held, RequestFailure>,
        now: Duration,
        from: From,
    ) {
        let Request { number, id, range, since, .. } = request;
        let len = range.end - range.start;
        debug_assert!(self.running > 0 && self.bytes >= len, "request {number} has ended before");
        self.running -= 1;
        self.clock += 1;
        let arrived = if result.is_ok() { len } else { 0 };
        let given_up = matches!(&result, Err(failure) if failure.cause == Cause::Cancelled);
        if given_up {
            // It tells nothing of the server.
        } else if from == From::Cache {
            self.traffic.cached += 1;
            self.traffic.cached_bytes += arrived;
        } else {
            self.traffic.requests += 1;
            self.traffic.bytes += arrived;
            self.in_flight.answered(now, arrived, self.running, from == From::RefusingServer);
            if result.is_ok() {
                self.slow.answered(len, now.saturating_sub(*since));
            }
        }
        let (object, piece) = match self.objects.get_mut(id) {
            Some(Object { object, pieces }) => (Some(object), pieces.get_mut(&range.start)),
            None => (None, None),
        };
        // The object may be dropped, or the other of two requests for the piece was faster.
        let piece =
            piece.filter(|piece| matches!(piece.state, PieceState::Running) && piece.asked.contains(number));
        match (piece, result) {
            (Some(piece), Ok(held)) => {
                if let Held::Disk(open) = &held {
                    open.wanted().set(piece.wanted.get());
                    if let Some(ready) = object.and_then(|object| object.ready()) {
                        ready.add(open.clone());
                    }
                }
                (piece.state, piece.used) = (PieceState::Here(held), self.clock);
                piece.asked.clear();
                if !piece.state.is_in_memory() {
                    self.bytes -= len;
                }
            }
            (piece, result) => {
                self.bytes -= len;
                if let (Some(piece), Err(failure)) = (piece, result) {
                    piece.asked.retain(|asked| asked != number);
                    if piece.asked.is_empty() {
                        piece.state = PieceState::Failed(failure);
                    }
                }
            }
        }
        self.clear(*id, range);
    }

    /// Asks once more for pieces of a range that a thread waits for, if they are slow. Returns the time at
    /// which to look again.
    pub(crate) fn hurry(&mut self, id: u64, range: &Range<u64>, now: Duration) -> Option<Duration> {
        let slow = &self.slow;
        let again = &mut self.again;
        let mut next: Option<Duration> = None;
        let object = self.objects.get_mut(&id)?;
        let requests = self.requests;
        let mut found = Vec::new();
        for_each_start_in(&mut object.pieces, range, |start, piece| {
            if !matches!(piece.state, PieceState::Running) || piece.asked.len() != 1 {
                return;
            }
            let Some(limit) = slow.limit(piece.end - start) else { return };
            let at = piece.since.saturating_add(limit);
            if at > now {
                next = Some(next.map_or(at, |next| next.min(at)));
            } else {
                found.push((id, start));
            }
        });
        for piece in found {
            if !again.contains(&piece) && self.slow.may_repeat(requests) {
                self.traffic.repeated += 1;
                again.push_back(piece);
            }
        }
        next
    }

    /// Begins to wait for a range, whose pieces are fetched first.
    pub(crate) fn begin(&mut self, id: u64, object: &Arc<O>, range: &Range<u64>) {
        let mut urgent = Vec::new();
        let pieces = &mut self.object(id, object).pieces;
        for gap in gaps(pieces, range.clone()) {
            let piece = Piece::new(gap.end);
            piece.wanted().add(gap.end - gap.start);
            pieces.insert(gap.start, piece);
        }
        for_each_start_in(pieces, range, |start, piece| {
            piece.waiting += 1;
            if matches!(piece.state, PieceState::Queued) {
                urgent.push((id, start));
            }
        });
        self.urgent.extend(urgent);
    }

    /// Returns the range if one piece has all of it and is here. Like [`begin`](Pieces::begin) and
    /// [`take`](Pieces::take) of it.
    pub(crate) fn take_one(&mut self, id: u64, range: &Range<u64>) -> Option<PiecePart> {
        let object = self.objects.get_mut(&id)?;
        let (&start, piece) = object.pieces.range_mut(..=range.start).next_back()?;
        let PieceState::Here(held) = &piece.state else { return None };
        if range.end > piece.end || range.end <= range.start {
            return None;
        }
        let part = PiecePart::new(start, held, range);
        self.clock += 1;
        piece.used = self.clock;
        piece.wanted().take(range.end - range.start);
        if !piece.is_needed() {
            self.clear(id, range);
        }
        Some(part)
    }

    /// Fetches a piece again that could not be read from disk.
    pub(crate) fn lost(&mut self, id: u64, start: u64) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        let piece = object.pieces.get_mut(&start);
        if let Some(piece) = piece.filter(|piece| matches!(piece.state, PieceState::Here(Held::Disk(_)))) {
            piece.wanted.set(piece.wanted().get());
            piece.state = PieceState::Queued;
            object.remove_ready(start);
            self.queue.push_back((id, start));
        }
    }

    /// Drops the bytes of a range that are here. Those that are needed are fetched again.
    pub(crate) fn drop_here(&mut self, id: u64, range: &Range<u64>) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        let mut here = Vec::new();
        let mut freed = 0;
        for_each_start_in(&mut object.pieces, range, |start, piece| {
            if !matches!(piece.state, PieceState::Here(_)) {
                return;
            }
            if piece.state.is_in_memory() {
                freed += piece.end - start;
            }
            piece.wanted.set(piece.wanted().get());
            piece.state = PieceState::Queued;
            here.push((id, start));
        });
        here.iter().for_each(|(_, start)| object.remove_ready(*start));
        self.bytes -= freed;
        self.queue.extend(here);
        self.clear(id, range);
    }

    /// Returns the range if all of its pieces are here. The thread then waits no more.
    pub(crate) fn take(&mut self, id: u64, range: &Range<u64>) -> Answer {
        self.clock += 1;
        let clock = self.clock;
        let Some(object) = self.objects.get_mut(&id) else { return Answer::Here(Vec::new()) };
        let mut failed = None;
        let mut parts = Vec::new();
        let mut waits = false;
        for_each_start_in(&mut object.pieces, range, |start, piece| match &piece.state {
            PieceState::Here(held) => {
                let range = range.start.max(start)..range.end.min(piece.end);
                parts.push(PiecePart::new(start, held, &range));
            }
            PieceState::Failed(failure) => failed = failed.take().or(Some(failure.clone())),
            PieceState::Queued | PieceState::Running => waits = true,
        });
        if waits && failed.is_none() {
            return Answer::Wait;
        }
        for_each_in(&mut object.pieces, range, |piece, bytes| {
            piece.waiting -= 1;
            piece.used = clock;
            piece.wanted().take(bytes);
            // The next thread asks again.
            if matches!(piece.state, PieceState::Failed(_)) {
                piece.wanted().set(0);
            }
        });
        self.clear(id, range);
        failed.map_or(Answer::Here(parts), Answer::Failed)
    }
}

impl Piece {
    /// The wanted bytes in it that were not read yet.
    fn wanted(&self) -> &WantedBytes {
        match &self.state {
            PieceState::Here(Held::Disk(open)) => open.wanted(),
            _ => &self.wanted,
        }
    }

    fn is_needed(&self) -> bool {
        self.wanted().get() > 0 || self.waiting > 0 || matches!(self.state, PieceState::Running)
    }

    fn new(end: u64) -> Piece {
        Piece {
            end,
            state: PieceState::Queued,
            wanted: WantedBytes::default(),
            waiting: 0,
            used: 0,
            asked: Vec::new(),
            since: Duration::ZERO,
        }
    }
}

/// Returns the parts of a range that no piece has, cut to pieces.
fn gaps(pieces: &BTreeMap<u64, Piece>, range: Range<u64>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut at = range.start;
    let before = pieces.range(..=range.start).next_back().map(|(_, piece)| piece.end);
    at = at.max(before.unwrap_or(0));
    for (start, piece) in pieces.range(range.start..) {
        if *start >= range.end {
            break;
        }
        if at < *start {
            found.extend(cut(at..*start));
        }
        at = at.max(piece.end);
    }
    if at < range.end {
        found.extend(cut(at..range.end));
    }
    found
}

/// Calls `f` with each piece that has bytes of the range.
fn for_each_start_in(
    pieces: &mut BTreeMap<u64, Piece>,
    range: &Range<u64>,
    mut f: impl FnMut(u64, &mut Piece),
) {
    let before = pieces.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
    if before >= range.end || range.start > range.end {
        return;
    }
    for (start, piece) in pieces.range_mut(before..range.end) {
        if piece.end > range.start {
            f(*start, piece);
        }
    }
}

/// Calls `f` with each piece that has bytes of the range, and their number.
fn for_each_in(pieces: &mut BTreeMap<u64, Piece>, range: &Range<u64>, mut f: impl FnMut(&mut Piece, u64)) {
    for_each_start_in(pieces, range, |start, piece| {
        let bytes = range.end.min(piece.end) - range.start.max(start);
        f(piece, bytes);
    });
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::single_range_in_vec_init,
        clippy::reversed_empty_ranges,
        reason = "ranges are what is tested"
    )]

    use super::*;
    use crate::failure::Cause;
    use crate::ready::ReadyPieces;

    impl HasPieces for () {
        fn ready(&self) -> Option<&ReadyPieces> {
            None
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn near_ranges_are_fetched_together() {
        let len = u64::MAX;
        // A gap of 64 KiB.
        assert_eq!(merge(&[70_000..70_001, 0..10, 65_000..65_010], len, true), [0..70_001]);
        assert_eq!(merge(&[200_000..200_001, 0..10], len, true), [200_000..200_001, 0..10]);
        // A quarter of what is wanted, and at most 1 MiB.
        assert_eq!(merge(&[0..2 * MIB, 2 * MIB + 500_000..2 * MIB + 500_001], len, true).len(), 1);
        assert_eq!(merge(&[0..6 * MIB, 7 * MIB + 1..7 * MIB + 2], len, true).len(), 2);
        // Pieces of 8 MiB, and the end of the object.
        assert_eq!(
            merge(&[0..20 * MIB], 17 * MIB, true),
            [0..8 * MIB, 8 * MIB..16 * MIB, 16 * MIB..17 * MIB]
        );
        assert_eq!(merge(&[5..5, 30..20, 100..u64::MAX], 10, true), [] as [Range<u64>; 0]);
        assert_eq!(merge(&[5..7, u64::MAX - 1..u64::MAX], 10, true), [5..7]);
    }

    fn region(range: &Range<u64>) -> Vec<u8> {
        (range.start..range.end).map(|at| at as u8).collect()
    }

    fn in_memory(range: &Range<u64>) -> Held {
        Held::Memory(region(range).into())
    }

    #[test]
    fn one_piece_is_taken_as_several_are() {
        let object = Arc::new(());
        let len = 64 * PIECE;
        let range = |k: u64| {
            let start = k * 77_919_331 % len;
            start..(start + 1 + k * 6_553 % (PIECE / 8)).min(len)
        };
        let mut all = [0, 1].map(|_| Pieces::new(64, u64::MAX, true));
        let wanted: Vec<Range<u64>> = (0..200).map(range).collect();
        let mut taken = 0;
        for (one, pieces) in all.iter_mut().enumerate() {
            pieces.want(1, &object, &wanted, len);
            while let Some((request, _)) = pieces.next(Duration::ZERO) {
                if request.range.start % 3 > 0 || request.range.start % PIECE == 0 {
                    let held = Held::Memory(Region::from(vec![
                        7;
                        (request.range.end - request.range.start)
                            as usize
                    ]));
                    pieces.done(&request, Ok(held), Duration::ZERO, From::Server);
                }
            }
            for range in &wanted {
                if one == 0 || pieces.take_one(1, range).is_none() {
                    pieces.begin(1, &object, range);
                    pieces.take(1, range);
                } else {
                    taken += 1;
                }
            }
        }
        assert!(taken > 20, "{taken}");
        let state = |pieces: &Pieces<()>| {
            let all = pieces.objects[&1].pieces.iter();
            let of = |(start, piece): (&u64, &Piece)| {
                (*start, piece.end, piece.wanted().get(), piece.waiting, piece.used)
            };
            (all.map(of).collect::<Vec<_>>(), pieces.bytes)
        };
        assert_eq!(state(&all[0]), state(&all[1]));
    }

    fn bytes_of(part: &PiecePart) -> Vec<u8> {
        match &part.held {
            Held::Memory(region) => region[part.range.clone()].to_vec(),
            Held::Disk(piece) => panic!("{piece:?}"),
        }
    }

    /// Makes all requests that may be made, and returns their ranges.
    fn run(pieces: &mut Pieces<()>) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        while let Some((request, _)) = pieces.next(Duration::ZERO) {
            all.push(request);
        }
        for request in &all {
            end(pieces, request);
        }
        all.into_iter().map(|request| request.range).collect()
    }

    /// Notes the answer to a request.
    fn end(pieces: &mut Pieces<()>, request: &Request) {
        pieces.done(request, Ok(in_memory(&request.range)), Duration::ZERO, From::Server);
    }

    fn next(pieces: &mut Pieces<()>) -> Option<Request> {
        pieces.next(Duration::ZERO).map(|(request, _)| request)
    }

    fn bytes(answer: Answer) -> Vec<u8> {
        match answer {
            Answer::Here(parts) => parts.iter().flat_map(bytes_of).collect(),
            Answer::Wait => panic!("the range is not here"),
            Answer::Failed(failure) => panic!("{}", failure.text),
        }
    }

    #[test]
    fn announced_pieces_are_kept_until_they_are_read() {
        let mut pieces = Pieces::<()>::new(4, 100 * MIB, true);
        let object = &Arc::new(());
        pieces.want(1, object, &[0..100, 150..200, 500_000..500_010], 1_000_000);
        assert_eq!(run(&mut pieces), [0..200, 500_000..500_010]);
        assert_eq!(pieces.bytes, 210);
        // Nothing is asked for twice.
        pieces.want(1, object, &[50..60], 1_000_000);
        assert_eq!(run(&mut pieces), [] as [Range<u64>; 0]);
        for range in [0..100, 150..200] {
            pieces.begin(1, object, &range);
            assert_eq!(bytes(pieces.take(1, &range)), region(&range)[..]);
        }
        assert_eq!(pieces.bytes, 210);
        pieces.forget(1, &[50..60, 500_000..500_010]);
        assert_eq!(pieces.bytes, 0);
        // Bytes that were not announced are requested without a gap, and those that are here are not.
        pieces.want(1, object, &[10..20], 1_000_000);
        assert_eq!(run(&mut pieces), [10..20]);
        pieces.begin(1, object, &(5..30));
        assert!(matches!(pieces.take(1, &(5..30)), Answer::Wait));
        assert_eq!(run(&mut pieces), [5..10, 20..30]);
        assert_eq!(bytes(pieces.take(1, &(5..30))), region(&(5..30))[..]);
        assert_eq!((pieces.bytes, pieces.running), (0, 0));
    }

    #[test]
    fn memory_and_requests_are_bounded_and_waiting_threads_come_first() {
        let mut pieces = Pieces::<()>::new(2, 1000, true);
        let object = &Arc::new(());
        let far = |k: u64| k * MIB..k * MIB + 400;
        pieces.want(1, object, &[far(0), far(1), far(2), far(3)], u64::MAX);
        let first = [next(&mut pieces).unwrap(), next(&mut pieces).unwrap()];
        assert!(next(&mut pieces).is_none());
        // A thread waits for the last one: it is asked for although two are on their way.
        pieces.begin(1, object, &far(3));
        let urgent = next(&mut pieces).unwrap();
        assert_eq!(urgent.range, far(3));
        for request in first.into_iter().chain([urgent]) {
            end(&mut pieces, &request);
        }
        assert_eq!(bytes(pieces.take(1, &far(3))).len(), 400);
        // 800 of 1000 bytes are here: the third has to wait until one is read.
        assert!(next(&mut pieces).is_none());
        pieces.begin(1, object, &far(0));
        assert_eq!(bytes(pieces.take(1, &far(0))).len(), 400);
        assert_eq!(run(&mut pieces), [far(2)]);
        // Pieces that are not read make room for one that a thread waits for.
        pieces.begin(2, object, &far(9));
        assert_eq!(run(&mut pieces), [far(9)]);
        assert_eq!(bytes(pieces.take(2, &far(9))).len(), 400);
        assert!(pieces.bytes <= 1000);
        pieces.remove(1);
        pieces.remove(2);
        assert_eq!((pieces.bytes, pieces.running), (0, 0));
    }

    #[test]
    fn failures_are_told_once() {
        let mut pieces = Pieces::<()>::new(2, 1000, true);
        let object = &Arc::new(());
        pieces.want(1, object, &[0..10], 100);
        let request = next(&mut pieces).unwrap();
        let failure = || Err(RequestFailure::new(Cause::Other, "it broke"));
        pieces.done(&request, failure(), Duration::ZERO, From::Server);
        pieces.begin(1, object, &(0..10));
        assert!(matches!(pieces.take(1, &(0..10)), Answer::Failed(_)));
        assert_eq!(pieces.bytes, 0);
        pieces.begin(1, object, &(0..10));
        assert_eq!(run(&mut pieces), [0..10]);
        assert_eq!(bytes(pieces.take(1, &(0..10))).len(), 10);
    }

    #[test]
    fn results_of_dropped_objects_are_dropped() {
        let mut pieces = Pieces::<()>::new(2, 1000, true);
        let object = &Arc::new(());
        pieces.want(1, object, &[0..10], 100);
        let request = next(&mut pieces).unwrap();
        pieces.remove(1);
        end(&mut pieces, &request);
        assert_eq!((pieces.bytes, pieces.running), (0, 0));
        // Forgotten while it is on its way.
        pieces.want(2, object, &[0..10], 100);
        let request = next(&mut pieces).unwrap();
        pieces.forget(2, &[0..10]);
        end(&mut pieces, &request);
        assert_eq!((pieces.bytes, pieces.running), (0, 0));
    }

    #[test]
    fn requests_that_nobody_needs_are_named() {
        let mut pieces = Pieces::<()>::new(4, 100 * MIB, true);
        let object = &Arc::new(());
        // A thread waits, and another one will need the same bytes.
        pieces.begin(1, object, &(0..10));
        pieces.want(1, object, &[0..10], 100);
        let request = next(&mut pieces).unwrap();
        assert!(pieces.give_up(1, &(0..10)).is_empty());
        assert_eq!(pieces.forget(1, &[0..10]), [request.number]);
        // Wanted again, they are asked for again. The end of the first request is not the end of the second.
        pieces.begin(1, object, &(0..10));
        let again = next(&mut pieces).unwrap();
        pieces.done(&request, Err(RequestFailure::cancelled()), Duration::ZERO, From::Server);
        assert!(matches!(pieces.take(1, &(0..10)), Answer::Wait));
        assert_eq!(pieces.traffic().requests, 0);
        end(&mut pieces, &again);
        assert_eq!(bytes(pieces.take(1, &(0..10))).len(), 10);
        assert_eq!((pieces.bytes, pieces.running, pieces.traffic().requests), (0, 0, 1));
        pieces.begin(2, object, &(0..10));
        let request = next(&mut pieces).unwrap();
        assert_eq!(pieces.remove(2), [request.number]);
        pieces.done(&request, Err(RequestFailure::cancelled()), Duration::ZERO, From::Server);
        assert_eq!((pieces.bytes, pieces.running), (0, 0));
    }

    #[test]
    fn slow_pieces_are_asked_for_once_more_and_the_first_answer_counts() {
        let mut pieces = Pieces::<()>::new(4, 100 * MIB, true);
        let object = &Arc::new(());
        let ms = Duration::from_millis;
        let mut now = ms(0);
        let ask = |pieces: &mut Pieces<()>, k: u64, now| {
            let range = k * MIB..k * MIB + 100;
            pieces.begin(1, object, &range);
            (pieces.next(now).unwrap().0, range)
        };
        for k in 0..100 {
            let (request, range) = ask(&mut pieces, k, now);
            // Too few are known.
            assert_eq!(pieces.hurry(1, &range, now + ms(5000)), None);
            assert!(pieces.next(now + ms(5000)).is_none());
            now += ms(1000);
            pieces.done(&request, Ok(in_memory(&range)), now, From::Server);
            assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
        }
        // 100 requests allow five.
        for k in 0..8 {
            let (slow, range) = ask(&mut pieces, 200 + k, now);
            let at = pieces.hurry(1, &range, now).unwrap();
            assert!(at >= now + ms(2000));
            now = at;
            assert_eq!(pieces.hurry(1, &range, now), None);
            let again = pieces.next(now);
            assert_eq!(again.is_some(), k < 5, "{k}");
            assert!(pieces.next(now).is_none());
            // It is asked for once more, and not twice.
            pieces.hurry(1, &range, now);
            assert!(k >= 5 || pieces.next(now).is_none());
            match (again, k % 3) {
                (Some((again, _)), 0) => {
                    pieces.done(&again, Ok(in_memory(&range)), now, From::Server);
                    assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
                    pieces.done(&slow, Ok(in_memory(&range)), now, From::Server);
                }
                // One fails: the other counts.
                (Some((again, _)), 1) => {
                    pieces.done(&slow, Err(RequestFailure::new(Cause::Other, "it broke")), now, From::Server);
                    assert!(matches!(pieces.take(1, &range), Answer::Wait));
                    pieces.done(&again, Ok(in_memory(&range)), now, From::Server);
                    assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
                }
                (again, _) => {
                    pieces.done(&slow, Ok(in_memory(&range)), now, From::Server);
                    assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
                    if let Some((again, _)) = again {
                        let failure = RequestFailure::new(Cause::Other, "it broke");
                        pieces.done(&again, Err(failure), now, From::Server);
                    }
                }
            }
            assert_eq!((pieces.bytes, pieces.running), (0, 0));
        }
    }

    #[test]
    fn the_bytes_held_are_bounded_and_counted() {
        let memory = 20 * MIB;
        let len = 400 * MIB;
        let step = 4 * MIB;
        let mut pieces = Pieces::<()>::new(128, memory, true);
        let object = &Arc::new(());
        let mut running = VecDeque::new();
        let mut most = 0;
        let mut wanted = 0;
        let mut asked = 0;
        for at in (0..len).step_by(256 << 10) {
            // A reader in order, which announces far more than there is memory for.
            while wanted < len.min(at + 128 * MIB) {
                pieces.want(1, object, &[wanted..wanted + step], len);
                wanted += step;
            }
            let range = at..at + (256 << 10);
            pieces.begin(1, object, &range);
            loop {
                while let Some(request) = next(&mut pieces) {
                    asked += 1;
                    running.push_back(request);
                }
                most = most.max(pieces.bytes);
                assert_eq!(pieces.bytes, held(&pieces, &running));
                match pieces.take(1, &range) {
                    Answer::Here(parts) => {
                        assert_eq!(parts.iter().map(|part| part.range.len()).sum::<usize>(), 256 << 10);
                        break;
                    }
                    Answer::Failed(failure) => panic!("{}", failure.text),
                    Answer::Wait => {}
                }
                // The last request is answered first, from time to time.
                let request = if asked % 7 == 0 { running.pop_back() } else { running.pop_front() };
                end(&mut pieces, &request.unwrap());
            }
        }
        assert!(most <= memory && most > memory / 2, "{most}");
        assert!(asked <= len / step + len / step / 10, "{asked}");
        assert_eq!(pieces.bytes, 0);
    }

    /// Returns the bytes of pieces that are here, and of requests.
    fn held(pieces: &Pieces<()>, running: &VecDeque<Request>) -> u64 {
        let all = pieces.objects.values().flat_map(|object| object.pieces.iter());
        let here = all.filter(|(_, piece)| matches!(piece.state, PieceState::Here(_)));
        let here: u64 = here.map(|(start, piece)| piece.end - start).sum();
        here + running.iter().map(|request| request.range.end - request.range.start).sum::<u64>()
    }
}
