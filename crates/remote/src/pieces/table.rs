//! The table of all pieces of a store: threads announce ranges, wait for them and take them.

use super::piece::{ObjectPieces, Piece, PieceBytes, PiecePart, PieceState, for_each_in, gaps};
use super::ranges::merge;
use crate::failure::RequestFailure;
use crate::in_flight::InFlight;
use crate::ready::HasPieces;
use crate::slow::Slow;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tfseek::io::Traffic;

/// Bytes of other pieces, beside those that a reader makes room for.
const IN_FLIGHT: u64 = 64 << 20;

/// The answer to a thread that needs a range.
pub(crate) enum Answer {
    Wait,
    Failed(RequestFailure),
    /// The parts of the range, in order.
    Here(Vec<PiecePart>),
}

/// An object, and its pieces.
pub(super) struct Object<O> {
    pub(super) object: Arc<O>,
    pub(super) pieces: ObjectPieces,
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
    pub(super) objects: HashMap<u64, Object<O>>,
    /// Pieces to fetch, by object and start. Some are not queued any more.
    pub(super) queue: VecDeque<(u64, u64)>,
    /// Pieces that a thread waits for.
    pub(super) urgent: VecDeque<(u64, u64)>,
    /// Pieces that are asked for once more.
    pub(super) again: VecDeque<(u64, u64)>,
    pub(super) running: usize,
    /// Number of requests so far.
    pub(super) requests: u64,
    /// Bytes of pieces that are here, and of requests that are under way.
    pub(super) bytes: u64,
    pub(super) clock: u64,
    pub(super) in_flight: InFlight,
    pub(super) slow: Slow,
    pub(super) memory: u64,
    /// Ranges are fetched together over gaps.
    joins: bool,
    pub(super) traffic: Traffic,
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
        let new = || Object { object: object.clone(), pieces: ObjectPieces::new() };
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
            for_each_in(pieces, range, |_, piece, bytes| piece.wanted().add(bytes));
        }
        self.queue.extend(queued);
    }

    /// Takes ranges back. Pieces that are not needed are dropped. Returns the requests that are not needed.
    pub(crate) fn forget(&mut self, id: u64, ranges: &[Range<u64>]) -> Vec<u64> {
        let mut requests = Vec::new();
        for range in ranges {
            let Some(object) = self.objects.get_mut(&id) else { break };
            for_each_in(&mut object.pieces, range, |_, piece, bytes| _ = piece.wanted().take(bytes));
            self.clear(id, range);
            requests.append(&mut self.abandon(id, range));
        }
        requests
    }

    /// Ends the wait of a thread for a range. Returns the requests that are not needed.
    pub(crate) fn give_up(&mut self, id: u64, range: &Range<u64>) -> Vec<u64> {
        if let Some(object) = self.objects.get_mut(&id) {
            for_each_in(&mut object.pieces, range, |_, piece, _| piece.waiting -= 1);
        }
        self.forget(id, std::slice::from_ref(range))
    }

    /// Drops the pieces in a range of an object that are on their way and not needed. Returns their requests,
    /// whose results are dropped.
    fn abandon(&mut self, id: u64, range: &Range<u64>) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut requests = Vec::new();
        let Some(object) = self.objects.get_mut(&id) else { return requests };
        for_each_in(&mut object.pieces, range, |start, piece, _| {
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
            for_each_in(&mut object.pieces, range, |start, piece, _| {
                if !piece.is_needed() {
                    dropped = Some(start);
                }
            });
            let Some(start) = dropped else { return };
            match object.pieces.remove(&start) {
                Some(piece) if piece.state.is_in_memory() => {
                    self.bytes -= piece.end - start;
                }
                Some(Piece { state: PieceState::Here(PieceBytes::Disk(_)), .. }) => {
                    object.remove_ready(start)
                }
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

    /// Begins to wait for a range, whose pieces are fetched first.
    pub(crate) fn begin(&mut self, id: u64, object: &Arc<O>, range: &Range<u64>) {
        let mut urgent = Vec::new();
        let pieces = &mut self.object(id, object).pieces;
        for gap in gaps(pieces, range.clone()) {
            let piece = Piece::new(gap.end);
            piece.wanted().add(gap.end - gap.start);
            pieces.insert(gap.start, piece);
        }
        for_each_in(pieces, range, |start, piece, _| {
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
        let PieceState::Here(bytes) = &piece.state else { return None };
        if range.end > piece.end || range.end <= range.start {
            return None;
        }
        let part = PiecePart::new(start, bytes, range);
        self.clock += 1;
        piece.used = self.clock;
        piece.wanted().take(range.end - range.start);
        if !piece.is_needed() {
            self.clear(id, range);
        }
        Some(part)
    }

    /// Returns the range if all of its pieces are here. The thread then waits no more.
    pub(crate) fn take(&mut self, id: u64, range: &Range<u64>) -> Answer {
        self.clock += 1;
        let clock = self.clock;
        let Some(object) = self.objects.get_mut(&id) else { return Answer::Here(Vec::new()) };
        let mut failed = None;
        let mut parts = Vec::new();
        let mut waits = false;
        for_each_in(&mut object.pieces, range, |start, piece, _| match &piece.state {
            PieceState::Here(bytes) => {
                let range = range.start.max(start)..range.end.min(piece.end);
                parts.push(PiecePart::new(start, bytes, &range));
            }
            PieceState::Failed(failure) => failed = failed.take().or(Some(failure.clone())),
            PieceState::Queued | PieceState::Running => waits = true,
        });
        if waits && failed.is_none() {
            return Answer::Wait;
        }
        for_each_in(&mut object.pieces, range, |_, piece, bytes| {
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

    /// Fetches a piece again that could not be read from disk.
    pub(crate) fn lost(&mut self, id: u64, start: u64) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        let piece = object.pieces.get_mut(&start);
        if let Some(piece) =
            piece.filter(|piece| matches!(piece.state, PieceState::Here(PieceBytes::Disk(_))))
        {
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
        for_each_in(&mut object.pieces, range, |start, piece, _| {
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
}
