//! A piece of an object: its bytes, and who needs them.

use super::ranges::cut;
use crate::disk::DiskPiece;
use crate::failure::RequestFailure;
use crate::wanted::WantedBytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use tfseek::io::Region;

/// A piece of an object.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) end: u64,
    pub(super) state: PieceState,
    /// The wanted bytes in it, unless it is open on disk.
    pub(super) wanted: WantedBytes,
    /// Number of threads that wait for it.
    pub(super) waiting: usize,
    /// When it was last used.
    pub(super) used: u64,
    /// The requests for it that are under way, and when the first was made.
    pub(super) asked: Vec<u64>,
    pub(super) since: Duration,
}

/// The pieces of an object by their first bytes. They do not overlap.
pub(super) type ObjectPieces = BTreeMap<u64, Piece>;

#[derive(Debug)]
pub(super) enum PieceState {
    Queued,
    Running,
    Here(PieceBytes),
    Failed(RequestFailure),
}

/// The bytes of a piece.
#[derive(Clone, Debug)]
pub(crate) enum PieceBytes {
    Memory(Region),
    /// They take no memory but for copies for small records.
    Disk(DiskPiece),
}

impl PieceState {
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self, PieceState::Here(PieceBytes::Memory(_)))
    }
}

/// A part of a piece.
#[derive(Debug)]
pub(crate) struct PiecePart {
    pub(crate) bytes: PieceBytes,
    pub(crate) range: Range<usize>,
}

impl PiecePart {
    /// Returns the part of the piece at `start` that has a range of the object.
    pub(super) fn new(start: u64, bytes: &PieceBytes, range: &Range<u64>) -> PiecePart {
        let at = |at: u64| (at - start) as usize;
        PiecePart { bytes: bytes.clone(), range: at(range.start)..at(range.end) }
    }
}

impl Piece {
    /// The wanted bytes in it that were not read yet.
    pub(super) fn wanted(&self) -> &WantedBytes {
        match &self.state {
            PieceState::Here(PieceBytes::Disk(open)) => open.wanted(),
            _ => &self.wanted,
        }
    }

    pub(super) fn is_needed(&self) -> bool {
        self.wanted().get() > 0 || self.waiting > 0 || matches!(self.state, PieceState::Running)
    }

    pub(super) fn new(end: u64) -> Piece {
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
pub(super) fn gaps(pieces: &ObjectPieces, range: Range<u64>) -> Vec<Range<u64>> {
    let before = pieces.range(..=range.start).next_back().map_or(0, |(_, piece)| piece.end);
    let mut found = Vec::new();
    let mut at = range.start.max(before);
    for (start, piece) in pieces.range(range.start..).take_while(|(start, _)| **start < range.end) {
        found.extend(cut(at..*start));
        at = at.max(piece.end);
    }
    found.extend(cut(at..range.end));
    found
}

/// Calls `f` with each piece that has bytes of the range: its start, the piece, and the number of these
/// bytes.
pub(super) fn for_each_in(
    pieces: &mut ObjectPieces,
    range: &Range<u64>,
    mut f: impl FnMut(u64, &mut Piece, u64),
) {
    let before = pieces.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
    if before >= range.end || range.start > range.end {
        return;
    }
    for (start, piece) in pieces.range_mut(before..range.end) {
        if piece.end > range.start {
            let bytes = range.end.min(piece.end) - range.start.max(*start);
            f(*start, piece, bytes);
        }
    }
}
