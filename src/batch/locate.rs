//! Location: one scan of a record finds the spans of the features that the schema names.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::compile::MapField;
use super::keys::KeyPredictor;
use super::span::{RowSpans, SpanTable, ValueSpan};
use crate::example::{Feature, FeatureList, MapEntries, MapEntry, VALUE_DEPTH};
use tfseek_wire::Fault;

/// Fills row `row` of the table, in which all values are absent, with the spans of one map of the payload.
/// Features that the schema does not name are skipped unread.
#[inline(never)]
pub(super) fn locate(
    payload: &[u8],
    map: MapField,
    keys: &mut KeyPredictor,
    table: &mut SpanTable,
    row: usize,
) -> Result<(), Fault> {
    let mut spans = table.row(row);
    let mut entries = MapEntries::new(payload, map as u32, false);
    let store = |spans: &mut RowSpans<'_>, slot: u32, value: ValueSpan| match spans.slot(slot) {
        Some(span) if *span == ValueSpan::ABSENT => {
            *span = value;
            Ok(())
        }
        None => Ok(()),
        Some(span) => store_again(span, payload, map, value),
    };
    keys.start();
    // The common encoding has separate loops without error values, because half of the parse time is spent
    // here.
    loop {
        if keys.hash_only {
            loop {
                while let Some((slot, value)) = keys.take_by_hash(&mut entries, &mut spans) {
                    store(&mut spans, slot, value)?;
                }
                let Some((key, value)) = entries.next_fast() else { break };
                let value = ValueSpan::message_at(entries.start_of(value), value.len());
                store(&mut spans, keys.slot_by_hash(key), value)?;
            }
        } else {
            loop {
                while let Some((slot, value)) = keys.take_predicted(&mut entries, &mut spans) {
                    store(&mut spans, slot, value)?;
                }
                let Some((key, value)) = entries.next_fast() else { break };
                let value = ValueSpan::message_at(entries.start_of(value), value.len());
                store(&mut spans, keys.slot(key), value)?;
            }
        }
        let Some(MapEntry { key, value }) = entries.next()? else { return Ok(()) };
        store(&mut spans, keys.slot(key), ValueSpan::new(value))?;
    }
}

/// Stores a value that repeats a key. It counts, but the one before it must be well-formed too.
#[inline(never)]
fn store_again(span: &mut ValueSpan, payload: &[u8], map: MapField, value: ValueSpan) -> Result<(), Fault> {
    let Some(message) = std::mem::replace(span, value).message(payload) else { return Ok(()) };
    match map {
        MapField::Features => Feature::check(message, VALUE_DEPTH).map(drop),
        MapField::FeatureLists => FeatureList::check(message).map(drop),
    }
}
