//! Which slot a key belongs to: by the order in which keys came before, or else by its hash.

use super::plan::Slot;
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// No such slot.
pub(super) const UNWANTED: usize = usize::MAX;

/// The keys of a schema, and those of other features that were met often enough to be skipped quickly.
///
/// Writers put the features of a record into the same order as in the one before, or each into an order of its own (a hash
/// map's). So the key behind the last one is tried first, and if that fails too often, no longer until it would have been
/// right again.
///
/// Key numbers: 0 is the start of a record, 1 to `slots` are the schema's, those above were learned.
pub(super) struct Keys {
    keys: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32, FixedState>,
    /// The number of the key that followed, by number; 0 if none did.
    next: Vec<u32>,
    slots: usize,
    /// The number of the last key.
    last: u32,
    /// Above 0, `next` is asked first.
    trust: u32,
}

/// Learned keys: a file whose keys are data must not fill the memory.
const MOST_LEARNED: usize = 1024;
const LONGEST_LEARNED: usize = 127;
const MOST_TRUST: u32 = 32;
/// A miss costs about as much as this many hits save.
const MISS: u32 = 4;

impl Keys {
    pub(super) fn new(slots: &[Slot]) -> Keys {
        let mut keys = Keys {
            keys: vec![Box::default()],
            numbers: HashMap::with_hasher(FixedState::default()),
            next: vec![0],
            slots: slots.len(),
            last: 0,
            trust: MOST_TRUST,
        };
        for slot in slots {
            keys.add(slot.key.as_bytes());
        }
        keys
    }

    fn add(&mut self, key: &[u8]) -> u32 {
        let number = self.keys.len() as u32;
        self.keys.push(key.into());
        self.numbers.insert(key.into(), number);
        self.next.push(0);
        number
    }

    /// A new record begins.
    #[inline]
    pub(super) fn start(&mut self) {
        self.last = 0;
    }

    /// The slot of the next key of the record, or [`UNWANTED`].
    #[inline]
    pub(super) fn slot(&mut self, key: &[u8]) -> usize {
        let number = self.number(key) as usize;
        // 0, which stands for no key of ours, wraps round to a number that is no slot either.
        let slot = number.wrapping_sub(1);
        if slot < self.slots { slot } else { UNWANTED }
    }

    #[inline]
    fn number(&mut self, key: &[u8]) -> u32 {
        if self.trust > 0 {
            let guess = self.next[self.last as usize];
            if guess != 0 && *self.keys[guess as usize] == *key {
                self.trust = (self.trust + 1).min(MOST_TRUST);
                self.last = guess;
                return guess;
            }
            // One that is missing in this record.
            let second = self.next[guess as usize];
            if guess != 0 && second != 0 && *self.keys[second as usize] == *key {
                self.last = second;
                return second;
            }
        }
        self.hashed(key)
    }

    #[inline(never)]
    fn hashed(&mut self, key: &[u8]) -> u32 {
        let number = match self.numbers.get(key) {
            Some(&number) => number,
            None if self.keys.len() <= self.slots + MOST_LEARNED && key.len() <= LONGEST_LEARNED => {
                self.add(key)
            }
            // Not to be remembered: the order goes on behind it as if it were not there.
            None => return 0,
        };
        let next = &mut self.next[self.last as usize];
        self.trust = match *next == number {
            true => (self.trust + 1).min(MOST_TRUST),
            false => self.trust.saturating_sub(MISS),
        };
        *next = number;
        self.last = number;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::plan::Need;
    use crate::schema::DType;

    fn keys(names: &[&str]) -> Keys {
        let slot =
            |&key: &&str| Slot { key: key.into(), dtype: DType::Int64, need: Need::Any, fallback: None };
        Keys::new(&names.iter().map(slot).collect::<Vec<_>>())
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
    fn keys_that_are_data_are_not_remembered_for_ever() {
        let mut keys = keys(&["a"]);
        for k in 0..100_000u32 {
            keys.start();
            assert_eq!(keys.slot(format!("key {k}").as_bytes()), UNWANTED);
            assert_eq!(keys.slot(b"a"), 0);
            assert_eq!(keys.slot(&[b'x'; 1000]), UNWANTED);
        }
        assert!(keys.keys.len() <= MOST_LEARNED + 2);
    }
}
