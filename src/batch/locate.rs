//! Location: one scan of a record finds the spans of the features that the schema names.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

use super::keys::KeyPredictor;
use crate::example::{EntryRules, Feature, FeatureList, MapEntries, MapEntry, VALUE_DEPTH, ValueMessage};
use crate::wire::Fault;

/// Number of rows in a block. All rows of a block are located before any of their values is decoded.
///
/// The number is large enough to fill each column with many values at a time, and small enough that the payloads are still in the
/// CPU cache when they are decoded.
pub(super) const BLOCK_ROWS: usize = 64;

/// The span of the value of a map entry in its payload, which is shorter than 2^31 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueSpan {
    start: u32,
    len: u32,
}

/// Flag in `len`: the span is a whole map entry, whose value is in several pieces.
const ENTRY: u32 = 1 << 31;
/// The span of an absent feature. It starts beyond the end of every payload.
const ABSENT: ValueSpan = ValueSpan { start: u32::MAX, len: 0 };

impl ValueSpan {
    #[inline]
    fn new(value: ValueMessage<'_>) -> ValueSpan {
        let flag = if value.as_one().is_some() { 0 } else { ENTRY };
        ValueSpan { start: value.start() as u32, len: value.len() as u32 | flag }
    }

    /// Returns the bytes of the value if they are contiguous; `None` if they are not, or if there is no value.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a payload is shorter than 2^31 bytes, so a span ends below 2^32 even with the flag; an absent one ends at `u32::MAX`"
    )]
    pub(super) fn contiguous(self, payload: &[u8]) -> Option<&[u8]> {
        // With the flag `ENTRY` the end is beyond every payload.
        payload.get(self.start as usize..self.start as usize + self.len as usize)
    }

    /// Returns the value, if there is one.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the span ends within its payload, which is shorter than 2^31 bytes"
    )]
    pub(super) fn message(self, payload: &[u8]) -> Option<ValueMessage<'_>> {
        if self == ABSENT {
            return None;
        }
        let (start, len) = (self.start as usize, (self.len & !ENTRY) as usize);
        let bytes = payload.get(start..start + len).unwrap_or_default();
        Some(match self.len & ENTRY {
            0 => ValueMessage::one(bytes, start),
            _ => ValueMessage::entry(bytes, start),
        })
    }

    /// Returns true if the feature is there and has a kind. Its values have been validated.
    #[inline]
    pub(super) fn has_kind(self, payload: &[u8]) -> bool {
        match self.contiguous(payload) {
            // The tag of a list: whatever follows, the feature has a kind.
            Some([0x0a | 0x12 | 0x1a, ..]) => true,
            _ => self.has_kind_slow(payload),
        }
    }

    #[inline(never)]
    fn has_kind_slow(self, payload: &[u8]) -> bool {
        let feature = self.message(payload).map(|value| Feature::check(value, VALUE_DEPTH));
        feature.is_some_and(|feature| feature.is_ok_and(|feature| feature.kind().is_some()))
    }

    /// Returns the offset in the payload of `tail`, the last bytes of a contiguous value.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the span ends within its payload, and `tail` is not longer than the span"
    )]
    pub(super) fn start_of_tail(self, tail: &[u8]) -> usize {
        self.start as usize + self.len as usize - tail.len()
    }
}

/// The value spans of a block of rows: a table with one row per record and one column per slot.
#[derive(Default)]
pub(super) struct SpanTable {
    spans: Vec<ValueSpan>,
    slots: usize,
    stride: usize,
}

impl SpanTable {
    /// Resizes the table to `rows` rows of `slots` slots.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "each slot takes more than 64 bytes of memory, and a block has at most 64 rows"
    )]
    pub(super) fn reset(&mut self, rows: usize, slots: usize) {
        self.slots = slots;
        // The stride is an odd number of cache lines, so that the spans of one slot are spread over all sets of the cache.
        self.stride = (slots.div_ceil(8) | 1) * 8;
        self.spans.resize(rows * self.stride, ABSENT);
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`row` and `slot` are below the numbers passed to `reset`, whose product it has computed"
    )]
    pub(super) fn get(&self, row: usize, slot: usize) -> ValueSpan {
        self.spans.get(row * self.stride + slot).copied().unwrap_or(ABSENT)
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`row` is below the number passed to `reset`, which made all rows `stride` long, and `slots` is at most `stride`"
    )]
    fn row(&mut self, row: usize) -> &mut [ValueSpan] {
        &mut self.spans[row * self.stride..][..self.slots]
    }
}

/// A map field of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MapField {
    Features,
    FeatureLists,
}

impl MapField {
    /// Validates a whole value.
    fn validate(self, value: ValueMessage<'_>) -> Result<(), Fault> {
        match self {
            MapField::Features => Feature::check(value, VALUE_DEPTH).map(drop),
            MapField::FeatureLists => FeatureList::check(value).map(drop),
        }
    }
}

/// Validation options of map entries and of features that the schema does not name.
#[derive(Clone, Copy)]
pub(super) struct Validation {
    pub(super) rules: EntryRules,
    /// True if the values of these features are validated too.
    pub(super) full: bool,
}

/// Fills row `row` of the table with the spans of one map of the payload.
#[inline]
pub(super) fn locate(
    payload: &[u8],
    map: MapField,
    validation: Validation,
    keys: &mut KeyPredictor,
    table: &mut SpanTable,
    row: usize,
) -> Result<(), Fault> {
    let spans = table.row(row);
    spans.fill(ABSENT);
    let field = match map {
        MapField::Features => 1,
        MapField::FeatureLists => 2,
    };
    let mut entries = MapEntries::new(payload, field, validation.rules);
    let store = |span: Option<&mut ValueSpan>, value: &[u8], start: usize| match span {
        Some(span) if *span == ABSENT => {
            *span = ValueSpan { start: start as u32, len: value.len() as u32 };
            Ok(())
        }
        None if !validation.full => Ok(()),
        span => store_slow(span, payload, map, validation, ValueMessage::one(value, start)),
    };
    keys.start();
    // The common encoding has separate loops without error values, because half of the parse time is spent here.
    loop {
        if keys.is_hash_only() {
            while let Some((key, value)) = entries.next_fast() {
                store(spans.get_mut(keys.slot_by_hash(key)), value, entries.start_of(value))?;
            }
        } else {
            loop {
                let (slot, value) = match keys.expected().and_then(|head| entries.next_expected(head)) {
                    Some(value) => (keys.accept_expected(), value),
                    None => match entries.next_fast() {
                        Some((key, value)) => (keys.slot(key), value),
                        None => break,
                    },
                };
                store(spans.get_mut(slot), value, entries.start_of(value))?;
            }
        }
        let Some(MapEntry { key, value }) = entries.next()? else { return Ok(()) };
        store_slow(spans.get_mut(keys.slot(key)), payload, map, validation, value)?;
    }
}

/// Stores a value that repeats a key, has no slot, or has an uncommon encoding.
#[inline(never)]
fn store_slow(
    span: Option<&mut ValueSpan>,
    payload: &[u8],
    map: MapField,
    validation: Validation,
    value: ValueMessage<'_>,
) -> Result<(), Fault> {
    match span {
        Some(span) => {
            let earlier = std::mem::replace(span, ValueSpan::new(value));
            // The last value counts, but the earlier one must be well-formed too.
            earlier.message(payload).map_or(Ok(()), |earlier| map.validate(earlier))
        }
        None if validation.full => map.validate(value),
        None => Ok(()),
    }
}
