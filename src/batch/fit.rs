//! Comparison of eight records with a skeleton, stretch by stretch, and their values.
//!
//! The position of the next stretch depends only on the length of the value between them, so the loads of
//! eight rows overlap.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
#![expect(clippy::indexing_slicing, reason = "the arrays of a group have a place for each of its rows")]

use super::sample::header;
use super::skeleton::{After, ContentPlace, Skeleton, StretchWindow, WINDOW};
use super::span::{SpanTable, ValueSpan};
use crate::example::{Taken, long_entry};
use tfseek_wire::VectorWork;

/// Number of rows that are compared together.
pub(super) const GROUP: usize = 8;
/// The high bit of each byte of a word.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The positions of the values of a group of rows.
#[derive(Default)]
pub(super) struct GroupPlaces {
    stretches: Vec<StretchPlaces>,
    /// The bytes of each varint, as words.
    varints: Vec<[u64; GROUP]>,
    /// Start and length of the value of each long entry.
    longs: Vec<[(u32, u32); GROUP]>,
}

/// The positions of a stretch in each row, and its last byte.
#[derive(Clone, Copy, Default)]
struct StretchPlaces {
    at: [u32; GROUP],
    last: [u8; GROUP],
}

/// Comparison of a group with a skeleton. The values of the rows that fit are stored in the table, in which
/// the group begins at row `first`. Returns one bit for each row that fits.
pub(super) struct Fit<'a> {
    pub(super) skeleton: &'a Skeleton,
    /// Rows that are not compared are empty.
    pub(super) payloads: &'a [&'a [u8]; GROUP],
    pub(super) places: &'a mut GroupPlaces,
    pub(super) table: &'a mut SpanTable,
    pub(super) first: usize,
}

impl VectorWork for Fit<'_> {
    type Output = u8;

    const AVX512: bool = true;

    #[inline(always)]
    fn run(self) -> u8 {
        let Fit { skeleton, payloads, places, table, first } = self;
        let mut fits = skeleton.find(payloads, places);
        if fits != 0 {
            fits = skeleton.check_windows(payloads, places, fits);
        }
        if fits != 0 {
            fits &= skeleton.check_varints(payloads, places);
        }
        if fits != 0 {
            skeleton.store_numbers(payloads, places, fits, table, first);
            skeleton.store_contents(places, fits, table, first);
        }
        fits
    }
}

// Loops over rows are written out, because closures are not always inlined, and are then compiled without
// vectors.
#[expect(clippy::needless_range_loop, reason = "closures are not always inlined")]
impl Skeleton {
    /// Finds the positions of all stretches from the lengths between them. Returns one bit for each row that
    /// may fit: its lengths are in their ranges, and the last position is its end.
    #[inline(always)]
    fn find(&self, payloads: &[&[u8]; GROUP], places: &mut GroupPlaces) -> u8 {
        places.stretches.resize(self.stretches.len(), StretchPlaces::default());
        places.varints.resize(self.varints.len(), [0; GROUP]);
        places.longs.resize(self.longs.len(), [(0, 0); GROUP]);
        let mut next = [0usize; GROUP];
        let mut wrong = [0u8; GROUP];
        for row in 0..GROUP {
            // A position beyond the end stays there.
            next[row] = header(payloads[row]).unwrap_or(payloads[row].len().wrapping_add(1));
        }
        for (stretch, place) in self.stretches.iter().zip(&mut places.stretches) {
            let len = stretch.len as usize;
            for row in 0..GROUP {
                place.at[row] = next[row] as u32;
                next[row] = next[row].wrapping_add(len);
            }
            match stretch.after {
                After::Length { min, range } => {
                    for row in 0..GROUP {
                        let last = payloads[row].get(next[row].wrapping_sub(1)).copied().unwrap_or(0);
                        place.last[row] = last;
                        next[row] = next[row].wrapping_add(usize::from(last));
                    }
                    for row in 0..GROUP {
                        wrong[row] |= u8::from(place.last[row].wrapping_sub(min) > range);
                    }
                }
                After::Skip(skipped) => {
                    for row in 0..GROUP {
                        next[row] = next[row].wrapping_add(skipped as usize);
                    }
                }
                After::Long(number) => {
                    for row in 0..GROUP {
                        let beyond = (payloads[row].len().wrapping_add(1), 0);
                        let (start, len) = self.long(number, payloads[row], next[row]).unwrap_or(beyond);
                        places.longs[number][row] = (start as u32, len as u32);
                        next[row] = start.wrapping_add(len);
                    }
                }
                After::End => {}
            }
        }
        let mut fits = 0;
        for row in 0..GROUP {
            fits |= u8::from(next[row] == payloads[row].len() && wrong[row] == 0) << row;
        }
        fits
    }

    #[inline(never)]
    fn long(&self, number: usize, payload: &[u8], position: usize) -> Option<(usize, usize)> {
        let entry = self.longs.get(number)?;
        let (start, len) = long_entry(payload.get(position..)?, &entry.head, entry.kind, entry.content)?;
        Some((position.checked_add(start)?, len))
    }

    /// Compares the bytes of all stretches of the rows of `fits`. Returns one bit for each of them that fits.
    #[inline(always)]
    fn check_windows(&self, payloads: &[&[u8]; GROUP], places: &GroupPlaces, fits: u8) -> u8 {
        if fits == u8::MAX && !self.differ([0, 1, 2, 3, 4, 5, 6, 7], payloads, places) {
            return fits;
        }
        let mut equal = fits;
        for row in 0..GROUP {
            if fits & 1 << row != 0 && self.differ([row], payloads, places) {
                equal &= !(1 << row);
            }
        }
        equal
    }

    /// Returns true if a row of `rows` differs. Several rows are compared with one window at a time, so that
    /// the windows are read once.
    #[inline(always)]
    fn differ<const N: usize>(
        &self,
        rows: [usize; N],
        payloads: &[&[u8]; GROUP],
        places: &GroupPlaces,
    ) -> bool {
        let mut differences = [0u8; WINDOW];
        for StretchWindow { template, mask, lens, stretch, offset } in &self.windows {
            let place = &places.stretches[*stretch];
            for k in 0..N {
                let row = rows[k];
                let last = place.last[rows[k]];
                let start = place.at[row].wrapping_add(*offset) as usize;
                // The windows of a payload that is too short are not compared.
                let Some(bytes) = at::<WINDOW>(payloads[row], start) else { return true };
                for (k, byte) in bytes.iter().enumerate() {
                    // With an accepted length no sum exceeds 127.
                    let expected = template[k].wrapping_add(last & lens[k]);
                    differences[k] |= (byte ^ expected) & mask[k];
                }
            }
        }
        differences != [0; WINDOW]
    }

    /// Reads and checks the varints of variable length. Returns one bit for each row that fits.
    #[inline(always)]
    fn check_varints(&self, payloads: &[&[u8]; GROUP], places: &mut GroupPlaces) -> u8 {
        let mut wrong = [0u64; GROUP];
        for (number, words) in self.varints.iter().zip(&mut places.varints) {
            let place = &places.stretches[number.stretch];
            for row in 0..GROUP {
                let last = place.last[row];
                // The eight bytes that end with the number.
                let offset = number.offset.wrapping_add(u32::from(last));
                let unused = 64u32.wrapping_sub(u32::from(last).wrapping_mul(8));
                words[row] = word(payloads[row], place.at[row], offset).wrapping_shr(unused);
                // All bytes of a varint except the last have the high bit.
                wrong[row] |= (words[row] & HIGH) ^ (HIGH >> 8).wrapping_shr(unused);
            }
        }
        let mut fits = 0;
        for row in 0..GROUP {
            fits |= u8::from(wrong[row] == 0) << row;
        }
        fits
    }

    #[inline(always)]
    fn store_numbers(
        &self,
        payloads: &[&[u8]; GROUP],
        places: &GroupPlaces,
        fits: u8,
        table: &mut SpanTable,
        first: usize,
    ) {
        for number in &self.fixed {
            let place = &places.stretches[number.stretch];
            let mut words = [0; GROUP];
            for row in 0..GROUP {
                words[row] = word(payloads[row], place.at[row], number.offset);
            }
            for row in 0..GROUP {
                words[row] = words[row].wrapping_shr(number.before);
            }
            put_numbers(table, number.first_span, first, fits, words);
        }
        for (number, words) in self.varints.iter().zip(&places.varints) {
            put_numbers(table, number.first_span, first, fits, *words);
        }
    }

    #[inline(always)]
    fn store_contents(&self, places: &GroupPlaces, fits: u8, table: &mut SpanTable, first: usize) {
        for content in &self.contents {
            let mut starts = [0u32; GROUP];
            let mut lens = [0u32; GROUP];
            match content.place {
                ContentPlace::Fixed { stretch, offset, len } => {
                    for row in 0..GROUP {
                        starts[row] = places.stretches[stretch].at[row].wrapping_add(offset);
                        lens[row] = len;
                    }
                }
                ContentPlace::Variable { stretch } => {
                    for row in 0..GROUP {
                        starts[row] =
                            places.stretches[stretch].at[row].wrapping_add(self.stretches[stretch].len);
                        lens[row] = u32::from(places.stretches[stretch].last[row]);
                    }
                }
                ContentPlace::Long(long) => {
                    for row in 0..GROUP {
                        (starts[row], lens[row]) = places.longs[long][row];
                    }
                }
            }
            let mut values = [ValueSpan::ABSENT; GROUP];
            for row in 0..GROUP {
                values[row] = ValueSpan::usual(content.taken, starts[row] as usize, lens[row] as usize, 0);
            }
            put(table.slot_mut(content.first_span), first, fits, values);
        }
    }
}

/// Stores the values of the rows of `fits`, in the spans of a slot.
#[inline(always)]
fn put(spans: &mut [ValueSpan], first: usize, fits: u8, values: [ValueSpan; GROUP]) {
    let Some(spans) = spans.get_mut(first..) else { return };
    match spans.first_chunk_mut() {
        Some(spans) if fits == u8::MAX => *spans = values,
        _ => {
            for (row, (to, value)) in spans.iter_mut().zip(values).enumerate() {
                if fits & 1 << row != 0 {
                    *to = value;
                }
            }
        }
    }
}

#[inline(always)]
fn put_numbers(table: &mut SpanTable, first_span: u32, first: usize, fits: u8, words: [u64; GROUP]) {
    let mut values = [ValueSpan::ABSENT; GROUP];
    for (value, word) in values.iter_mut().zip(words) {
        *value = ValueSpan::usual(Taken::Number, 0, 0, word);
    }
    put(table.slot_mut(first_span), first, fits, values);
}

/// Returns the bytes of a payload from `start` on. With a `start` below 2^33, this is one comparison.
#[inline(always)]
fn at<const N: usize>(payload: &[u8], start: usize) -> Option<&[u8; N]> {
    payload.get(start..start.wrapping_add(N))?.try_into().ok()
}

/// Returns the word at `offset` in a stretch, if the row fits.
#[inline(always)]
fn word(payload: &[u8], stretch: u32, offset: u32) -> u64 {
    at(payload, (stretch as usize).wrapping_add(offset as usize)).map_or(0, |word| u64::from_le_bytes(*word))
}
