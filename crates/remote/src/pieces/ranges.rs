//! Ranges of an object to fetch: wanted ranges, merged over gaps and cut to pieces.

use std::ops::Range;

/// The most bytes of a piece.
pub(super) const PIECE: u64 = 8 << 20;
/// Wanted ranges are fetched together over a gap of at most a quarter of the bytes wanted so far, between
/// these numbers of bytes.
const GAP: [u64; 2] = [64 << 10, 1 << 20];

/// Returns the pieces of wanted ranges, in the order in which they are needed first. With `joins` they are
/// fetched together over gaps, else only if they are adjacent: a piece in a cache has the same range in the
/// next epoch.
pub(super) fn merge(ranges: &[Range<u64>], len: u64, joins: bool) -> Vec<Range<u64>> {
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
            *wanted = wanted.saturating_add(bytes);
            *first = (*first).min(k);
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
pub(super) fn cut(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(PIECE as usize).map(move |start| start..start + PIECE.min(end - start))
}
