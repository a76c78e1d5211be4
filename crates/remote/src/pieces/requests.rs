//! The requests for pieces: which is next, and what their results change.

use super::piece::{PieceBytes, PieceState, for_each_in};
use super::table::{Object, Pieces};
use crate::failure::{Cause, RequestFailure};
use crate::ready::HasPieces;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Where the bytes of a piece came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
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

impl<O: HasPieces> Pieces<O> {
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

    /// Notes the result of a request.
    pub(crate) fn done(
        &mut self,
        request: &Request,
        result: Result<PieceBytes, RequestFailure>,
        now: Duration,
        origin: Origin,
    ) {
        let Request { number, id, range, .. } = request;
        let len = range.end - range.start;
        debug_assert!(self.running > 0 && self.bytes >= len, "request {number} has ended before");
        self.running -= 1;
        self.clock += 1;
        // One that was given up tells nothing of the server.
        if !matches!(&result, Err(failure) if failure.cause == Cause::Cancelled) {
            self.count(request, result.is_ok(), now, origin);
        }
        let (object, piece) = match self.objects.get_mut(id) {
            Some(Object { object, pieces }) => (Some(object), pieces.get_mut(&range.start)),
            None => (None, None),
        };
        // The object may be dropped, or the other of two requests for the piece was faster.
        let piece =
            piece.filter(|piece| matches!(piece.state, PieceState::Running) && piece.asked.contains(number));
        match (piece, result) {
            (Some(piece), Ok(bytes)) => {
                if let PieceBytes::Disk(open) = &bytes {
                    open.wanted().set(piece.wanted.get());
                    if let Some(ready) = object.and_then(|object| object.ready()) {
                        ready.add(open.clone());
                    }
                }
                piece.state = PieceState::Here(bytes);
                piece.used = self.clock;
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

    /// Counts a request that ended by itself, and its bytes if they arrived.
    fn count(&mut self, request: &Request, has_arrived: bool, now: Duration, origin: Origin) {
        let len = request.range.end - request.range.start;
        let arrived = if has_arrived { len } else { 0 };
        if origin == Origin::Cache {
            self.traffic.cached += 1;
            self.traffic.cached_bytes += arrived;
            return;
        }
        self.traffic.requests += 1;
        self.traffic.bytes += arrived;
        self.in_flight.answered(now, arrived, self.running, origin == Origin::RefusingServer);
        if has_arrived {
            self.slow.answered(len, now.saturating_sub(request.since));
        }
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
        for_each_in(&mut object.pieces, range, |start, piece, _| {
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
}
