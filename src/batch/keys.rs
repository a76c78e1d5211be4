//! From the keys of a record to the slots of a plan: predicted by the order of the last record, or else looked up by hash.

use super::compile::PlanSlot;
use crate::example::entry_head;
use crate::wire::keys_equal;

/// The slot of a key that the schema does not name.
pub(super) const UNWANTED: usize = usize::MAX;

/// The keys of a schema, and those of other features that were met often enough to be skipped quickly.
///
/// Writers put the features of a record into the same order as in the one before, or each into an order of its own (a hash
/// map's). So the key behind the last one is tried first, and if that fails too often, no longer until it would have been
/// right again.
///
/// Key numbers: 0 is the start of a record, 1 to `slots` are the schema's, those above were learned.
pub(super) struct KeyPredictor {
    known: Vec<KnownKey>,
    numbers: KeyTable,
    slots: usize,
    /// The number of the last key, and of the one predicted to follow.
    last: u32,
    guess: u32,
    /// While above 0, the predicted key is compared first.
    trust: u32,
    /// In this record keys are neither predicted nor watched.
    blind: bool,
    records: u32,
}

struct KnownKey {
    /// The [`entry_head`] of this key. Empty for number 0.
    head: Box<[u8]>,
    /// The number of the key that followed; 0 if none did.
    next: u32,
}

impl KnownKey {
    #[inline(always)]
    fn is(&self, key: &[u8]) -> bool {
        matches!(&*self.head, [_, _, own @ .., _] if keys_equal(own, key))
    }

    fn key(&self) -> &[u8] {
        self.head.get(2..self.head.len().saturating_sub(1)).unwrap_or_default()
    }
}

/// Learned keys: a file whose keys are data must not fill the memory.
const MOST_LEARNED: usize = 1024;
const LONGEST_LEARNED: usize = 127;
/// The longest probe for a learned key: a file whose keys are made to collide must not cost more than others.
const LONGEST_WAY: usize = 8;
const MOST_TRUST: u32 = 32;
/// While prediction is off, every 32nd record is checked for a stable key order.
const WATCHED: u32 = 32;
/// Hits whose gain one miss costs.
const MISS: u32 = 4;

impl KeyPredictor {
    pub(super) fn new(slots: &[PlanSlot]) -> KeyPredictor {
        let mut keys = KeyPredictor {
            known: vec![KnownKey { head: Box::default(), next: 0 }],
            numbers: KeyTable::default(),
            slots: slots.len(),
            last: 0,
            guess: 0,
            trust: MOST_TRUST,
            blind: false,
            records: 0,
        };
        for slot in slots {
            keys.add(slot.key.as_bytes());
        }
        keys
    }

    fn add(&mut self, key: &[u8]) -> u32 {
        self.known.push(KnownKey { head: entry_head(key), next: 0 });
        if self.known.len() * 4 > self.numbers.slots.len() {
            self.numbers = KeyTable::new(&self.known);
        } else {
            self.numbers.insert(key, self.known.len() as u32 - 1);
        }
        self.known.len() as u32 - 1
    }

    /// Begins a new record.
    #[inline]
    pub(super) fn start(&mut self) {
        self.records = self.records.wrapping_add(1);
        self.blind = self.trust == 0 && !self.records.is_multiple_of(WATCHED);
        self.came(0);
    }

    /// The first bytes of the next entry, if keys come in the order of the last record.
    #[inline(always)]
    pub(super) fn expected(&self) -> Option<&[u8]> {
        let head = &*self.known.get(self.guess as usize)?.head;
        (self.trust > 0 && !head.is_empty()).then_some(head)
    }

    /// The slot of the expected key, which came, or [`UNWANTED`].
    #[inline(always)]
    pub(super) fn slot_of_expected(&mut self) -> usize {
        self.trust = (self.trust + 1).min(MOST_TRUST);
        self.came(self.guess);
        self.slot_of(self.last)
    }

    /// Returns true if nothing is predicted in this record: its keys are looked up with [`by_hash`](KeyPredictor::by_hash).
    #[inline(always)]
    pub(super) fn is_blind(&self) -> bool {
        self.blind
    }

    /// The slot of the next key of the record, or [`UNWANTED`].
    #[inline(always)]
    pub(super) fn slot(&mut self, key: &[u8]) -> usize {
        let number = self.watched(key);
        self.slot_of(number)
    }

    /// The slot of the next key of a record without prediction, or [`UNWANTED`].
    #[inline(always)]
    pub(super) fn by_hash(&mut self, key: &[u8]) -> usize {
        let number = self.numbers.find(key, &self.known).unwrap_or_else(|| self.watched(key));
        self.slot_of(number)
    }

    #[inline(always)]
    fn slot_of(&self, number: u32) -> usize {
        // 0, which stands for no key of ours, wraps round to a number that is no slot either.
        let slot = (number as usize).wrapping_sub(1);
        if slot < self.slots { slot } else { UNWANTED }
    }

    #[inline(always)]
    fn came(&mut self, number: u32) {
        self.last = number;
        self.guess = self.known.get(number as usize).map_or(0, |known| known.next);
    }

    #[inline(never)]
    fn watched(&mut self, key: &[u8]) -> u32 {
        if self.trust > 0 {
            let guess = &self.known[self.guess as usize];
            if guess.is(key) {
                self.trust = (self.trust + 1).min(MOST_TRUST);
                self.came(self.guess);
                return self.last;
            }
            // The predicted key may be missing in this record.
            let second = guess.next;
            if self.guess != 0 && self.known[second as usize].is(key) {
                self.came(second);
                return second;
            }
        }
        self.hashed(key)
    }

    #[inline]
    fn hashed(&mut self, key: &[u8]) -> u32 {
        let number = match self.numbers.find(key, &self.known) {
            Some(number) => number,
            None if self.learns(key) => self.add(key),
            // Not remembered: the prediction stays as if the key were not there.
            None => return 0,
        };
        self.trust = match self.guess == number {
            true => (self.trust + 1).min(MOST_TRUST),
            false => self.trust.saturating_sub(MISS),
        };
        self.known[self.last as usize].next = number;
        self.came(number);
        number
    }

    /// Returns true if a key that no slot has is to be remembered. A predicted key is not checked again, so it has to be UTF-8.
    fn learns(&self, key: &[u8]) -> bool {
        self.known.len() <= self.slots + MOST_LEARNED
            && key.len() <= LONGEST_LEARNED
            && self.numbers.way(key) <= LONGEST_WAY
            && std::str::from_utf8(key).is_ok()
    }
}

/// Numbers by key: open addressing, a quarter full at most. A map of the standard library takes three times as long, which
/// is felt where each record has an order of its own.
#[derive(Default)]
struct KeyTable {
    /// A power of two of them; 0 is free. A number stands in its key's slot, or in one of the next.
    slots: Vec<u32>,
    /// The most slots that lie before a number's.
    longest: usize,
}

impl KeyTable {
    /// A table of all keys but number 0.
    fn new(known: &[KnownKey]) -> KeyTable {
        let mut numbers = KeyTable { slots: vec![0; (known.len() * 8).next_power_of_two()], longest: 0 };
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
        let (first, mask) = (self.first_slot(key), self.slots.len().wrapping_sub(1));
        for way in 0..=self.longest {
            let number = *self.slots.get((first + way) & mask)?;
            if number == 0 {
                return None;
            }
            if known.get(number as usize)?.is(key) {
                return Some(number);
            }
        }
        None
    }

    /// Number of taken slots before the first free one for this key.
    fn way(&self, key: &[u8]) -> usize {
        let (first, mask) = (self.first_slot(key), self.slots.len().wrapping_sub(1));
        (0..self.slots.len()).find(|way| self.slots[(first + way) & mask] == 0).unwrap_or(usize::MAX)
    }

    fn insert(&mut self, key: &[u8], number: u32) {
        let (first, mask, way) = (self.first_slot(key), self.slots.len().wrapping_sub(1), self.way(key));
        self.longest = self.longest.max(way);
        if let Some(slot) = self.slots.get_mut(first.wrapping_add(way) & mask) {
            *slot = number;
        }
    }
}

/// Hashes two words, the first and the last of the key; no loop for common lengths.
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

/// Both halves of a product of all bits.
#[inline(always)]
fn mix(hash: u64, low: u64, high: u64) -> u64 {
    let low = low ^ hash ^ 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(low) * u128::from(high ^ 0xbf58_476d_1ce4_e5b9);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::compile::Need;
    use crate::schema::DType;

    fn keys(names: &[&str]) -> KeyPredictor {
        let slot =
            |&key: &&str| PlanSlot { key: key.into(), dtype: DType::Int64, need: Need::Any, fallback: None };
        KeyPredictor::new(&names.iter().map(slot).collect::<Vec<_>>())
    }

    #[test]
    fn every_order_gives_the_same_slots() {
        let mut keys = keys(&["a", "b", "c", "d"]);
        let orders = ["abcd", "abcd", "dcba", "xaybzc", "xaybzc", "", "bb", "acd", "abd", "q"];
        for order in orders.iter().cycle().take(500) {
            keys.start();
            for key in order.bytes() {
                let want = if key < b'e' { usize::from(key - b'a') } else { UNWANTED };
                assert_eq!(keys.slot(&[key]), want, "{order}");
            }
        }
    }

    #[test]
    fn keys_of_all_lengths_are_found() {
        let names: Vec<String> = (0..1000).map(|k| format!("{k}{}", "x".repeat(k % 300))).collect();
        let mut keys = keys(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(keys.numbers.longest <= LONGEST_WAY, "{}", keys.numbers.longest);
        for step in [1, 7, 999] {
            keys.start();
            for k in (0..1000).map(|k| k * step % 1000) {
                assert_eq!(keys.slot(names[k].as_bytes()), k);
            }
        }
        // Names as tables have them: they differ in their last bytes.
        let rows: Vec<String> = (0..1000).map(|k| format!("feature/key/{k:05}")).collect();
        let rows = self::keys(&rows.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(rows.numbers.longest <= LONGEST_WAY, "{}", rows.numbers.longest);
        assert_eq!(keys.slot(b""), UNWANTED);
    }

    #[test]
    fn keys_that_are_data_are_not_remembered_for_ever() {
        let mut keys = keys(&["a"]);
        for k in 0..100_000u32 {
            keys.start();
            assert_eq!(keys.slot(format!("key {k}").as_bytes()), UNWANTED);
            assert_eq!(keys.slot(b"a"), 0);
            assert_eq!(keys.slot(&[b'x'; 1000]), UNWANTED);
        }
        assert!(keys.known.len() <= MOST_LEARNED + 2);
    }
}
