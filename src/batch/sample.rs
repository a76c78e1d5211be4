//! Samples: the entries that some records have in common, and the lengths of their values.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::compile::{MapField, PlanSlot};
use super::keys::taken;
use super::span::first_span;
use crate::example::{DType, MapEntries, Taken, packed, string};
use std::collections::HashSet;
use tfseek_wire::{field_len, put_varint};

/// Maximum number of entries of a record that is predicted.
const MAX_ENTRIES: usize = 4096;
/// Bytes of a number that is located, at most.
pub(super) const MAX_NUMBER: usize = 7;

/// An entry of records that are learned from.
pub(super) struct SampleEntry {
    pub(super) key: Box<[u8]>,
    pub(super) slot: Option<SampleSlot>,
    /// Smallest and largest length of the value.
    pub(super) min: usize,
    pub(super) max: usize,
    /// True if all values are numbers that can be located.
    pub(super) number: bool,
}

/// The slot of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SampleSlot {
    pub(super) first_span: u32,
    pub(super) kind: DType,
    taken: Taken,
}

impl SampleEntry {
    /// Returns what is taken from the entry.
    pub(super) fn taken(&self) -> Taken {
        match self.slot {
            Some(_) if self.number => Taken::Number,
            Some(slot) if slot.taken != Taken::Message => Taken::Content,
            _ => Taken::Message,
        }
    }

    /// Returns the kind of the list whose content is the value. `None` if the value is the message of the
    /// entry.
    pub(super) fn kind(&self) -> Option<DType> {
        self.slot.and_then(SampleSlot::content)
    }
}

impl SampleSlot {
    fn content(self) -> Option<DType> {
        (self.taken != Taken::Message).then_some(self.kind)
    }

    fn is_number(self, value: &[u8]) -> bool {
        let last = || value.iter().position(|byte| *byte < 0x80);
        match (self.taken, self.kind) {
            (Taken::Number, DType::Int64) => {
                value.len() <= MAX_NUMBER && last().is_some_and(|last| last.wrapping_add(1) == value.len())
            }
            (Taken::Number, _) => value.len() == 4,
            _ => false,
        }
    }
}

/// Returns the value of an entry in its usual encoding.
fn value(message: &[u8], kind: Option<DType>) -> Option<&[u8]> {
    match kind {
        None => Some(message),
        Some(DType::Bytes) => string(message),
        Some(kind) => packed(message, kind),
    }
}

/// Returns the entries of a record, if each has the usual encoding and no key repeats.
pub(super) fn entries_of(payload: &[u8], slots: &[PlanSlot]) -> Option<Vec<SampleEntry>> {
    let mut bytes = header(payload)?;
    let mut entries = MapEntries::new(payload, 1, false);
    let mut found: Vec<SampleEntry> = Vec::new();
    let mut seen = HashSet::new();
    while let Some((key, message)) = entries.next_fast() {
        let number = slots.binary_search_by(|slot| slot.key.as_bytes().cmp(key)).ok();
        let slot = number.and_then(|number| {
            let (kind, taken) = taken(slots.get(number)?, MapField::Features);
            Some(SampleSlot { first_span: first_span(number as u32), kind, taken })
        });
        let kind = slot.and_then(SampleSlot::content);
        let value = value(message, kind)?;
        if found.len() >= MAX_ENTRIES || !seen.insert(key) {
            return None;
        }
        bytes = bytes.checked_add(entry_len(key, kind, value))?;
        let number = slot.is_some_and(|slot| slot.is_number(value));
        found.push(SampleEntry { key: key.into(), slot, min: value.len(), max: value.len(), number });
    }
    // No encoding is shorter than the usual one.
    (bytes == payload.len() && !found.is_empty()).then_some(found)
}

/// Adds a record to the entries of others. Returns false, and changes nothing, if it does not have these
/// entries in their usual encoding.
pub(super) fn add_sample(to: &mut [SampleEntry], payload: &[u8]) -> bool {
    let Some(lens) = lens_of(to, payload) else { return false };
    for (to, (len, number)) in to.iter_mut().zip(lens) {
        (to.min, to.max) = (to.min.min(len), to.max.max(len));
        to.number &= number;
    }
    true
}

/// Returns the length of each value, and whether it is a number.
fn lens_of(sample: &[SampleEntry], payload: &[u8]) -> Option<Vec<(usize, bool)>> {
    let mut bytes = header(payload)?;
    let mut entries = MapEntries::new(payload, 1, false);
    let mut lens = Vec::new();
    for entry in sample {
        let (key, message) = entries.next_fast()?;
        if *key != *entry.key {
            return None;
        }
        let value = value(message, entry.kind())?;
        bytes = bytes.checked_add(entry_len(key, entry.kind(), value))?;
        lens.push((value.len(), entry.slot.is_some_and(|slot| slot.is_number(value))));
    }
    (bytes == payload.len()).then_some(lens)
}

/// Returns the length of an entry in its usual encoding.
#[expect(clippy::arithmetic_side_effects, reason = "lengths of parts of a payload")]
fn entry_len(key: &[u8], kind: Option<DType>, value: &[u8]) -> usize {
    let fields = if kind.is_some() { 3 } else { 1 };
    let value = (0..fields).fold(value.len() as u64, |len, _| field_len(len));
    field_len(field_len(key.len() as u64) + value) as usize
}

/// Returns the length of the header of a payload that consists of a map field 1, as tag and length.
#[inline(always)]
pub(super) fn header(payload: &[u8]) -> Option<usize> {
    let rest = payload.strip_prefix(&[0x0a])?;
    let mut len = 0usize;
    for (k, byte) in rest.iter().take(5).enumerate() {
        len |= usize::from(byte & 0x7f).wrapping_shl((k as u32).wrapping_mul(7));
        if *byte < 0x80 {
            let header = k.wrapping_add(2);
            return (payload.len().wrapping_sub(header) == len).then_some(header);
        }
    }
    None
}

/// Returns the bytes of an entry before a value of `len` bytes, and the positions of their lengths if each is
/// one byte. Without a kind, the value is the message, and otherwise the content of its list.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "lengths of values in memory; an entry has all of its lengths"
)]
pub(super) fn prefix(key: &[u8], kind: Option<DType>, len: usize) -> (Vec<u8>, Vec<usize>) {
    let mut tags = vec![0x12];
    tags.extend(kind.map(|kind| [kind.tag(), 0x0a]).into_iter().flatten());
    // From the value outwards.
    let mut bytes = Vec::new();
    let mut inner = len;
    for tag in tags.into_iter().rev() {
        let field = [&[tag][..], &varint(inner)].concat();
        inner += field.len();
        bytes.splice(0..0, field);
    }
    let key = [&[0x0a][..], &varint(key.len()), key].concat();
    inner += key.len();
    let entry = [&[0x0a][..], &varint(inner), &key, &bytes].concat();
    let end = entry.len() - 1;
    let mut lens = vec![1, end];
    if kind.is_some() {
        lens.extend([end - 2, end - 4]);
    }
    (entry, lens)
}

fn varint(value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(value as u64, &mut bytes);
    bytes
}
