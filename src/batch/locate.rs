//! One walk over a record: the spans of the features that the schema names.

use super::keys::KeyPredictor;
use crate::example::{EntryRules, Feature, FeatureList, MapEntries, MapEntry, VALUE_DEPTH, ValueMessage};
use crate::wire::Fault;

/// Rows that are walked before any of their values is read: enough that each column is filled in a run, few enough that
/// their payloads are still in the cache by then.
pub(super) const BLOCK_ROWS: usize = 64;

/// The span of a map entry's value in its payload, which is shorter than 2^31.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueSpan {
    start: u32,
    len: u32,
}

/// Set in `len`: the span is that of a whole entry, which map its value more than once.
const ENTRY: u32 = 1 << 31;
const ABSENT: ValueSpan = ValueSpan { start: u32::MAX, len: 0 };

impl ValueSpan {
    #[inline]
    fn new(value: ValueMessage<'_>) -> ValueSpan {
        let flag = if value.as_one().is_some() { 0 } else { ENTRY };
        ValueSpan { start: value.start() as u32, len: value.len() as u32 | flag }
    }

    /// The value's bytes, if they are in one piece; `None` where they are not, and where there is no value.
    #[inline]
    pub(super) fn one(self, payload: &[u8]) -> Option<&[u8]> {
        payload.get(self.start as usize..self.start as usize + self.len as usize)
    }

    /// The value, if there is one.
    #[inline]
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

    /// Offset in the payload of bytes that the value, which is in one piece, ends with.
    #[inline]
    pub(super) fn start_of_tail(self, tail: &[u8]) -> usize {
        self.start as usize + self.len as usize - tail.len()
    }
}

/// The value spans of a block of rows: one line for each row, one span for each slot.
#[derive(Default)]
pub(super) struct SpanTable {
    spans: Vec<ValueSpan>,
    slots: usize,
    stride: usize,
}

impl SpanTable {
    /// Room for `rows` rows of `slots` slots.
    pub(super) fn reset(&mut self, rows: usize, slots: usize) {
        self.slots = slots;
        // An odd number of cache lines, so that the spans of one slot do not fall into the same few sets of the cache.
        self.stride = (slots.div_ceil(8) | 1) * 8;
        self.spans.resize(rows * self.stride, ABSENT);
    }

    #[inline]
    pub(super) fn get(&self, row: usize, slot: usize) -> ValueSpan {
        self.spans.get(row * self.stride + slot).copied().unwrap_or(ABSENT)
    }

    #[inline]
    fn row(&mut self, row: usize) -> &mut [ValueSpan] {
        &mut self.spans[row * self.stride..][..self.slots]
    }
}

/// The two maps of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MapField {
    Features,
    FeatureLists,
}

impl MapField {
    /// Checks all of a value.
    fn check(self, value: ValueMessage<'_>) -> Result<(), Fault> {
        match self {
            MapField::Features => Feature::check(value, VALUE_DEPTH).map(drop),
            MapField::FeatureLists => FeatureList::check(value).map(drop),
        }
    }
}

/// The checks of features that the schema does not name.
#[derive(Clone, Copy)]
pub(super) struct Validation {
    pub(super) rules: EntryRules,
    /// Their values are checked, too.
    pub(super) full: bool,
}

/// Fills line `row` of the table with the spans of one map of the payload.
#[inline]
pub(super) fn locate(
    payload: &[u8],
    map: MapField,
    validation: Validation,
    keys: &mut KeyPredictor,
    table: &mut SpanTable,
    row: usize,
) -> Result<(), Fault> {
    let line = table.row(row);
    line.fill(ABSENT);
    let field = match map {
        MapField::Features => 1,
        MapField::FeatureLists => 2,
    };
    let mut entries = MapEntries::new(payload, field, validation.rules);
    let put = |span: Option<&mut ValueSpan>, value: &[u8], start: usize| match span {
        Some(span) if *span == ABSENT => {
            *span = ValueSpan { start: start as u32, len: value.len() as u32 };
            Ok(())
        }
        None if !validation.full => Ok(()),
        span => put_slow(span, payload, map, validation, ValueMessage::one(value, start)),
    };
    keys.start();
    // The form of every encoder has loops of its own, without error values: half of the time is spent here.
    loop {
        if keys.is_blind() {
            while let Some((key, value)) = entries.next_fast() {
                put(line.get_mut(keys.by_hash(key)), value, entries.start_of(value))?;
            }
        } else {
            loop {
                let (slot, value) = match keys.expected().and_then(|head| entries.next_expected(head)) {
                    Some(value) => (keys.slot_of_expected(), value),
                    None => match entries.next_fast() {
                        Some((key, value)) => (keys.slot(key), value),
                        None => break,
                    },
                };
                put(line.get_mut(slot), value, entries.start_of(value))?;
            }
        }
        let Some(MapEntry { key, value }) = entries.next()? else { return Ok(()) };
        put_slow(line.get_mut(keys.slot(key)), payload, map, validation, value)?;
    }
}

/// Puts a value that is not the first of its key, or not wanted, or in an uncommon form.
#[inline(never)]
fn put_slow(
    span: Option<&mut ValueSpan>,
    payload: &[u8],
    map: MapField,
    validation: Validation,
    value: ValueMessage<'_>,
) -> Result<(), Fault> {
    match span {
        Some(span) => {
            let before = std::mem::replace(span, ValueSpan::new(value));
            // The last one counts, but the earlier one must be well-formed, too.
            before.message(payload).map_or(Ok(()), |before| map.check(before))
        }
        None if validation.full => map.check(value),
        None => Ok(()),
    }
}
