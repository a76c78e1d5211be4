#![allow(
    clippy::single_range_in_vec_init,
    clippy::reversed_empty_ranges,
    reason = "ranges are what is tested"
)]

use super::piece::{Piece, PieceState};
use super::ranges::{PIECE, merge};
use super::{Answer, Origin, PieceBytes, PiecePart, Pieces, Request};
use crate::failure::{Cause, RequestFailure};
use crate::ready::{HasPieces, ReadyPieces};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tfseek::io::Region;

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
    assert_eq!(merge(&[0..20 * MIB], 17 * MIB, true), [0..8 * MIB, 8 * MIB..16 * MIB, 16 * MIB..17 * MIB]);
    assert_eq!(merge(&[5..5, 30..20, 100..u64::MAX], 10, true), [] as [Range<u64>; 0]);
    assert_eq!(merge(&[5..7, u64::MAX - 1..u64::MAX], 10, true), [5..7]);
}

fn region(range: &Range<u64>) -> Vec<u8> {
    (range.start..range.end).map(|at| at as u8).collect()
}

fn in_memory(range: &Range<u64>) -> PieceBytes {
    PieceBytes::Memory(region(range).into())
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
                let len = (request.range.end - request.range.start) as usize;
                let bytes = PieceBytes::Memory(Region::from(vec![7; len]));
                pieces.done(&request, Ok(bytes), Duration::ZERO, Origin::Server);
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
    match &part.bytes {
        PieceBytes::Memory(region) => region[part.range.clone()].to_vec(),
        PieceBytes::Disk(piece) => panic!("{piece:?}"),
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
    pieces.done(request, Ok(in_memory(&request.range)), Duration::ZERO, Origin::Server);
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
    pieces.done(&request, failure(), Duration::ZERO, Origin::Server);
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
    pieces.done(&request, Err(RequestFailure::cancelled()), Duration::ZERO, Origin::Server);
    assert!(matches!(pieces.take(1, &(0..10)), Answer::Wait));
    assert_eq!(pieces.traffic().requests, 0);
    end(&mut pieces, &again);
    assert_eq!(bytes(pieces.take(1, &(0..10))).len(), 10);
    assert_eq!((pieces.bytes, pieces.running, pieces.traffic().requests), (0, 0, 1));
    pieces.begin(2, object, &(0..10));
    let request = next(&mut pieces).unwrap();
    assert_eq!(pieces.remove(2), [request.number]);
    pieces.done(&request, Err(RequestFailure::cancelled()), Duration::ZERO, Origin::Server);
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
        pieces.done(&request, Ok(in_memory(&range)), now, Origin::Server);
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
                pieces.done(&again, Ok(in_memory(&range)), now, Origin::Server);
                assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
                pieces.done(&slow, Ok(in_memory(&range)), now, Origin::Server);
            }
            // One fails: the other counts.
            (Some((again, _)), 1) => {
                pieces.done(&slow, Err(RequestFailure::new(Cause::Other, "it broke")), now, Origin::Server);
                assert!(matches!(pieces.take(1, &range), Answer::Wait));
                pieces.done(&again, Ok(in_memory(&range)), now, Origin::Server);
                assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
            }
            (again, _) => {
                pieces.done(&slow, Ok(in_memory(&range)), now, Origin::Server);
                assert_eq!(bytes(pieces.take(1, &range)).len(), 100);
                if let Some((again, _)) = again {
                    let failure = RequestFailure::new(Cause::Other, "it broke");
                    pieces.done(&again, Err(failure), now, Origin::Server);
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

impl<O: HasPieces> Pieces<O> {
    /// Returns what is wrong in the accounts while no request is under way.
    pub(crate) fn wrong_account(&self) -> Option<String> {
        let pieces = self.objects.values().flat_map(|object| &object.pieces);
        let here = pieces.filter(|(_, piece)| piece.state.is_in_memory());
        let bytes: u64 = here.map(|(start, piece)| piece.end - start).sum();
        let is_right = self.running == 0 && self.bytes == bytes;
        (!is_right).then(|| format!("{} requests, and {} bytes of {bytes}", self.running, self.bytes))
    }
}
