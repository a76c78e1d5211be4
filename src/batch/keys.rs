//! Lookup of the slot of each key of a record, by prediction from earlier records or by hash.

use super::compile::{MapField, Need, PlanSlot};
use super::span::{RowSpans, ValueSpan, first_span};
use crate::example::{DType, EntryForm, EntryValue, MapEntries, Taken, entry_head};
use tfseek_wire::keys_equal;

/// The slot of a key that the schema does not name.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// A predictor and hash table of keys: the keys of a schema, and other keys that are learned so that they are
/// skipped quickly.
///
/// Most writers store the features of all records in one order; others use a different order for each record
/// (the order of a hash map). Therefore the key that followed the last key in an earlier record is compared
/// first. If the prediction fails too often it is turned off, until sampled records have a stable order
/// again.
///
/// Key numbers: 0 is the start of a record, 1 to `slots` are the keys of the schema, higher numbers are
/// learned keys.
pub(super) struct KeyPredictor {
    known: Vec<KnownKey>,
    forms: Vec<KeyForm>,
    numbers: KeyTable,
    slots: usize,
    /// Number of the last key.
    last: u32,
    /// Number of the key that is predicted to follow the last one.
    predicted: u32,
    /// Confidence in the prediction. The predicted key is compared first while this is above 0.
    confidence: u32,
    /// True if the keys of this record are looked up with [`slot_by_hash`](KeyPredictor::slot_by_hash) only.
    pub(super) hash_only: bool,
    /// Number of records, wrapping.
    records: u32,
}

struct KnownKey {
    /// The [`entry_head`] of this key. Empty for number 0.
    head: Box<[u8]>,
    /// The kind of its values, if `content` is taken from its entries.
    kind: DType,
    content: bool,
}

/// The predictions for one key. They are one cache line.
struct KeyForm {
    /// The usual encoding of an entry with this key.
    form: EntryForm,
    /// The first span of the slot of this key in a [`SpanTable`](super::span::SpanTable), or [`NO_SLOT`].
    slot: u32,
    /// Number of the key that followed this key last time; 0 if none did.
    next: u32,
}

const _: () = assert!(size_of::<KeyForm>() <= 64);

impl KnownKey {
    #[inline(always)]
    fn matches(&self, key: &[u8]) -> bool {
        matches!(&*self.head, [_, _, own @ .., _] if keys_equal(own, key))
    }

    fn key(&self) -> &[u8] {
        if let [_, _, own @ .., _] = &*self.head { own } else { &[] }
    }

    /// Takes the next entry, if it has this key and the usual encoding.
    #[inline(always)]
    fn next_long(&self, entries: &mut MapEntries<'_>) -> Option<ValueSpan> {
        let value = entries.next_long(&self.head, self.kind, self.content)?;
        Some(located(if self.content { Taken::Content } else { Taken::Message }, value))
    }
}

/// Returns the kind of the values of a slot, and what is taken from its entries.
pub(super) fn taken(slot: &PlanSlot, map: MapField) -> (DType, Taken) {
    let kind = slot.dtype;
    let taken = match slot.need {
        _ if map == MapField::FeatureLists => Taken::Message,
        Need::Fixed { count: 1, .. } | Need::Optional { .. } if kind != DType::Bytes => Taken::Number,
        _ => Taken::Content,
    };
    (kind, taken)
}

/// Returns the located value of an entry in its usual encoding.
#[inline(always)]
fn located(taken: Taken, value: EntryValue) -> ValueSpan {
    ValueSpan::usual(taken, value.start, value.len, value.word)
}

/// Maximum number of learned keys. It bounds the memory for a file that uses keys as data.
const MAX_LEARNED_KEYS: usize = 1024;
/// Maximum length of a learned key, in bytes.
const MAX_LEARNED_KEY_LEN: usize = 127;
/// Maximum probe length of a learned key. It bounds the cost of a file whose keys are crafted to collide.
const MAX_PROBE_LEN: usize = 8;
const MAX_CONFIDENCE: u32 = 32;
/// While prediction is off, every 32nd record is checked for a stable key order.
const SAMPLE_INTERVAL: u32 = 32;
/// Decrease of the confidence per mispredicted key. A miss costs as much as 4 hits save.
const MISS_PENALTY: u32 = 4;

impl KeyPredictor {
    pub(super) fn new(slots: &[PlanSlot], map: MapField) -> KeyPredictor {
        let none = KnownKey { head: Box::default(), kind: DType::Bytes, content: false };
        let mut keys = KeyPredictor {
            known: vec![none],
            forms: vec![KeyForm { form: EntryForm::NONE, slot: NO_SLOT, next: 0 }],
            numbers: KeyTable::default(),
            slots: slots.len(),
            last: 0,
            predicted: 0,
            confidence: MAX_CONFIDENCE,
            hash_only: false,
            records: 0,
        };
        for slot in slots {
            keys.add(slot.key.as_bytes(), taken(slot, map));
        }
        keys
    }

    fn add(&mut self, key: &[u8], (kind, taken): (DType, Taken)) -> u32 {
        let number = self.known.len() as u32;
        // Key 1 has slot 0.
        let slot = if self.known.len() <= self.slots { first_span(number - 1) } else { NO_SLOT };
        self.known.push(KnownKey { head: entry_head(key), kind, content: taken != Taken::Message });
        self.forms.push(KeyForm { form: EntryForm::new(key, kind, taken), slot, next: 0 });
        if self.known.len() > self.numbers.slots.len() / 4 {
            self.numbers = KeyTable::new(&self.known);
        } else {
            self.numbers.insert(key, number);
        }
        number
    }

    /// Starts a new record.
    #[inline]
    pub(super) fn start(&mut self) {
        self.records = self.records.wrapping_add(1);
        self.hash_only = self.confidence == 0 && !self.records.is_multiple_of(SAMPLE_INTERVAL);
        self.advance(0);
    }

    /// Takes entries as long as they have the predicted keys and the usual encoding, and stores their spans.
    /// Returns early with the slot and the span of an entry that repeats a key.
    // Not inlined, so that the state of the loop is in registers.
    #[inline(never)]
    pub(super) fn take_predicted(
        &mut self,
        entries: &mut MapEntries<'_>,
        spans: &mut RowSpans<'_>,
    ) -> Option<(u32, ValueSpan)> {
        if self.confidence == 0 {
            return None;
        }
        let forms = &*self.forms;
        let mut last = self.last;
        let mut number = self.predicted;
        let mut hits = 0;
        let mut rest = *entries;
        let mut returned = None;
        while let Some(KeyForm { form, slot, next }) = forms.get(number as usize) {
            let value = match rest.next_of_form(form) {
                Some(value) => located(form.taken(), value),
                None if number == 0 => break,
                None => match self.known.get(number as usize).and_then(|known| known.next_long(&mut rest)) {
                    Some(value) => value,
                    None => break,
                },
            };
            last = number;
            number = *next;
            hits += 1;
            match spans.slot(*slot) {
                Some(span) if *span == ValueSpan::ABSENT => *span = value,
                None => {}
                Some(_) => {
                    returned = Some((*slot, value));
                    break;
                }
            }
        }
        self.confidence = (self.confidence + hits).min(MAX_CONFIDENCE);
        (*entries, self.last, self.predicted) = (rest, last, number);
        returned
    }

    /// Takes entries as long as their keys are known and they have the usual encoding, without prediction.
    /// Returns early as [`take_predicted`](KeyPredictor::take_predicted) does.
    #[inline(never)]
    pub(super) fn take_by_hash(
        &self,
        entries: &mut MapEntries<'_>,
        spans: &mut RowSpans<'_>,
    ) -> Option<(u32, ValueSpan)> {
        let mut rest = *entries;
        let mut returned = None;
        while let Some(key) = rest.peek_key() {
            let number = self.numbers.first(key);
            let Some(KeyForm { form, slot, .. }) = self.forms.get(number as usize) else { break };
            let (slot, value) = match rest.next_of_form(form) {
                Some(value) => (*slot, located(form.taken(), value)),
                None => {
                    match self.find(key).and_then(|(known, slot)| Some((slot, known.next_long(&mut rest)?))) {
                        Some(found) => found,
                        None => break,
                    }
                }
            };
            match spans.slot(slot) {
                Some(span) if *span == ValueSpan::ABSENT => *span = value,
                None => {}
                Some(_) => {
                    returned = Some((slot, value));
                    break;
                }
            }
        }
        *entries = rest;
        returned
    }

    #[inline(never)]
    fn find(&self, key: &[u8]) -> Option<(&KnownKey, u32)> {
        let number = self.numbers.find(key, &self.known)?;
        Some((self.known.get(number as usize)?, self.slot_of(number)))
    }

    /// Returns the slot of the next key of the record, or [`NO_SLOT`].
    #[inline(always)]
    pub(super) fn slot(&mut self, key: &[u8]) -> u32 {
        let number = self.predict_or_find(key);
        self.slot_of(number)
    }

    /// Returns the slot of the next key, or [`NO_SLOT`]. For records without prediction.
    #[inline(always)]
    pub(super) fn slot_by_hash(&mut self, key: &[u8]) -> u32 {
        let number = self.numbers.find(key, &self.known).unwrap_or_else(|| self.predict_or_find(key));
        self.slot_of(number)
    }

    #[inline(always)]
    fn slot_of(&self, number: u32) -> u32 {
        self.forms.get(number as usize).map_or(NO_SLOT, |form| form.slot)
    }

    #[inline(always)]
    fn advance(&mut self, number: u32) {
        self.last = number;
        self.predicted = self.forms.get(number as usize).map_or(0, |form| form.next);
    }

    #[inline(always)]
    fn gain_confidence(&mut self) {
        self.confidence = (self.confidence + 1).min(MAX_CONFIDENCE);
    }

    #[inline(never)]
    fn predict_or_find(&mut self, key: &[u8]) -> u32 {
        if self.confidence > 0
            && let Some(predicted) = self.known.get(self.predicted as usize)
        {
            if predicted.matches(key) {
                self.gain_confidence();
                self.advance(self.predicted);
                return self.last;
            }
            // The predicted key may be missing in this record.
            let second = self.forms.get(self.predicted as usize).map_or(0, |form| form.next);
            if self.predicted != 0 && self.known.get(second as usize).is_some_and(|known| known.matches(key))
            {
                self.advance(second);
                return second;
            }
        }
        self.find_or_learn(key)
    }

    #[inline]
    fn find_or_learn(&mut self, key: &[u8]) -> u32 {
        let number = match self.numbers.find(key, &self.known) {
            Some(number) => number,
            None if self.is_learnable(key) => self.add(key, (DType::Bytes, Taken::Message)),
            // The key is ignored, and the prediction stays the same.
            None => return 0,
        };
        if self.predicted == number {
            self.gain_confidence();
        } else {
            self.confidence = self.confidence.saturating_sub(MISS_PENALTY);
        }
        if let Some(last) = self.forms.get_mut(self.last as usize) {
            last.next = number;
        }
        self.advance(number);
        number
    }

    /// Returns true if a key without a slot can be learned. It must be UTF-8, because predicted keys are not
    /// validated again.
    fn is_learnable(&self, key: &[u8]) -> bool {
        self.known.len() - self.slots <= MAX_LEARNED_KEYS
            && key.len() <= MAX_LEARNED_KEY_LEN
            && self.numbers.probe_len(key) <= MAX_PROBE_LEN
            && std::str::from_utf8(key).is_ok()
    }
}

/// A hash table from keys to numbers, with open addressing and a load factor of at most 1/4.
///
/// A standard library map takes three times as long, which is noticeable if the key order differs between
/// records.
#[derive(Default)]
struct KeyTable {
    /// Numbers; 0 marks a free slot. The length is a power of two. A number is in the first free slot from
    /// its key's hash on.
    slots: Vec<u32>,
    /// Maximum number of occupied slots before the slot of any number.
    max_probe: usize,
}

impl KeyTable {
    /// Creates a table of all keys except number 0.
    fn new(known: &[KnownKey]) -> KeyTable {
        let mut numbers = KeyTable { slots: vec![0; (known.len() * 8).next_power_of_two()], max_probe: 0 };
        for (number, known) in known.iter().enumerate().skip(1) {
            numbers.insert(known.key(), number as u32);
        }
        numbers
    }

    #[inline(always)]
    fn first_slot(&self, key: &[u8]) -> usize {
        hash(key) as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn find(&self, key: &[u8], known: &[KnownKey]) -> Option<u32> {
        let first = self.first_slot(key);
        let mask = self.slots.len().wrapping_sub(1);
        for probe in 0..=self.max_probe {
            let number = *self.slots.get(first.wrapping_add(probe) & mask)?;
            if number == 0 {
                return None;
            }
            if known.get(number as usize)?.matches(key) {
                return Some(number);
            }
        }
        None
    }

    /// Returns the number that this key probably has, or 0.
    #[inline(always)]
    fn first(&self, key: &[u8]) -> u32 {
        self.slots.get(self.first_slot(key)).copied().unwrap_or(0)
    }

    /// Returns the number of occupied slots before the first free slot for this key.
    fn probe_len(&self, key: &[u8]) -> usize {
        let first = self.first_slot(key);
        let mask = self.slots.len().wrapping_sub(1);
        let is_free = |probe: &usize| self.slots.get(first.wrapping_add(*probe) & mask) == Some(&0);
        (0..self.slots.len()).find(is_free).unwrap_or(usize::MAX)
    }

    fn insert(&mut self, key: &[u8], number: u32) {
        let first = self.first_slot(key);
        let mask = self.slots.len().wrapping_sub(1);
        let probe_len = self.probe_len(key);
        self.max_probe = self.max_probe.max(probe_len);
        if let Some(slot) = self.slots.get_mut(first.wrapping_add(probe_len) & mask) {
            *slot = number;
        }
    }
}

/// Hashes the first and the last words of the key, without a loop for common lengths.
#[inline(always)]
fn hash(key: &[u8]) -> u64 {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let len = key.len() as u64;
    match (key.as_chunks().0, key.last_chunk()) {
        ([first] | [first, _], Some(last)) if key.len() <= 16 => mix(len, word(first), word(last)),
        ([first, second, ..], Some(last)) if key.len() <= 24 => {
            mix(len, word(first) ^ word(second).rotate_left(32), word(last))
        }
        _ => hash_slow(key),
    }
}

#[inline(never)]
fn hash_slow(key: &[u8]) -> u64 {
    key.chunks(8).fold(key.len() as u64, |hash, bytes| {
        mix(hash, bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0)
    })
}

/// Multiplies to 128 bits and combines both halves with XOR.
#[inline(always)]
fn mix(hash: u64, low: u64, high: u64) -> u64 {
    let low = low ^ hash ^ 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(low) * u128::from(high ^ 0xbf58_476d_1ce4_e5b9);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> KeyPredictor {
        let slot = |&key: &&str| PlanSlot {
            key: key.into(),
            dtype: DType::Int64,
            need: Need::Any,
            fallback: None,
            array: None,
        };
        KeyPredictor::new(&names.iter().map(slot).collect::<Vec<_>>(), MapField::Features)
    }

    #[test]
    fn key_order_does_not_change_slots() {
        let mut keys = keys(&["a", "b", "c", "d"]);
        let orders = ["abcd", "abcd", "dcba", "xaybzc", "xaybzc", "", "bb", "acd", "abd", "q"];
        for order in orders.iter().cycle().take(500) {
            keys.start();
            for key in order.bytes() {
                let expected = if key < b'e' { first_span(u32::from(key - b'a')) } else { NO_SLOT };
                assert_eq!(keys.slot(&[key]), expected, "{order}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn keys_of_all_lengths_are_found() {
        let names: Vec<String> = (0..1000).map(|k| format!("{k}{}", "x".repeat(k % 300))).collect();
        let mut keys = keys(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(keys.numbers.max_probe <= MAX_PROBE_LEN, "{}", keys.numbers.max_probe);
        for step in [1, 7, 999] {
            keys.start();
            for k in (0..1000).map(|k| k * step % 1000) {
                assert_eq!(keys.slot(names[k].as_bytes()), first_span(k as u32));
            }
        }
        // Column names of a table, which differ only in their last bytes.
        let rows: Vec<String> = (0..1000).map(|k| format!("feature/key/{k:05}")).collect();
        let rows = self::keys(&rows.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(rows.numbers.max_probe <= MAX_PROBE_LEN, "{}", rows.numbers.max_probe);
        assert_eq!(keys.slot(b""), NO_SLOT);
    }

    #[test]
    fn the_number_of_learned_keys_is_bounded() {
        let mut keys = keys(&["a"]);
        let rounds = MAX_LEARNED_KEYS + if cfg!(miri) { 20 } else { MAX_LEARNED_KEYS * 3 };
        for k in 0..rounds {
            keys.start();
            assert_eq!(keys.slot(format!("key {k}").as_bytes()), NO_SLOT);
            assert_eq!(keys.slot(b"a"), 0);
            assert_eq!(keys.slot(&[b'x'; 1000]), NO_SLOT);
        }
        assert!(keys.known.len() <= MAX_LEARNED_KEYS + 2);
    }
}
