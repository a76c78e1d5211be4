//! One walk over a record: where each feature that the schema wants lies in its payload.

use super::keys::Keys;
use crate::example::{Feature, FeatureList, MapEntries, Rules, Source, VALUE_DEPTH};
use crate::wire::Fault;

/// Rows that are walked before any of their values is read: enough that each column is filled in a run, few enough that
/// their payloads are still in the cache by then.
pub(super) const TILE: usize = 64;

/// The value of a map entry, by its place in the payload (which is shorter than 2^31).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    start: u32,
    len: u32,
}

/// Set in `len`: the place is that of a whole entry, which holds its value more than once.
const ENTRY: u32 = 1 << 31;
const ABSENT: Found = Found { start: u32::MAX, len: 0 };

impl Found {
    fn of(payload: &[u8], source: Source<'_>) -> Found {
        match source {
            Source::One(value) => Found::new(payload, value, 0),
            Source::Entry(entry) => Found::new(payload, entry, ENTRY),
        }
    }

    #[inline]
    fn new(payload: &[u8], bytes: &[u8], flag: u32) -> Found {
        // An empty value may be one that is nowhere.
        let start = bytes.as_ptr().addr().wrapping_sub(payload.as_ptr().addr());
        let start = if bytes.is_empty() { 0 } else { start as u32 };
        Found { start, len: bytes.len() as u32 | flag }
    }

    /// The value's bytes, if they are in one piece; `None` where they are not, and where there is no value.
    #[inline]
    pub(super) fn one(self, payload: &[u8]) -> Option<&[u8]> {
        payload.get(self.start as usize..self.start as usize + self.len as usize)
    }

    /// The value, if there is one.
    #[inline]
    pub(super) fn source(self, payload: &[u8]) -> Option<Source<'_>> {
        if self == ABSENT {
            return None;
        }
        let len = (self.len & !ENTRY) as usize;
        let bytes = payload.get(self.start as usize..self.start as usize + len).unwrap_or_default();
        Some(if self.len & ENTRY == 0 { Source::One(bytes) } else { Source::Entry(bytes) })
    }
}

/// What was found in the rows of a tile: one line for each row, one place for each slot.
#[derive(Default)]
pub(super) struct Table {
    found: Vec<Found>,
    slots: usize,
    stride: usize,
}

impl Table {
    /// Room for `rows` rows of `slots` slots.
    pub(super) fn reset(&mut self, rows: usize, slots: usize) {
        self.slots = slots;
        // An odd number of cache lines, so that the places of one slot do not fall into the same few sets of the cache.
        self.stride = (slots.div_ceil(8) | 1) * 8;
        self.found.resize(rows * self.stride, ABSENT);
    }

    #[inline]
    pub(super) fn get(&self, row: usize, slot: usize) -> Found {
        self.found.get(row * self.stride + slot).copied().unwrap_or(ABSENT)
    }

    #[inline]
    fn row(&mut self, row: usize) -> &mut [Found] {
        &mut self.found[row * self.stride..][..self.slots]
    }
}

/// What is in the map that is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Features,
    FeatureLists,
}

impl Holds {
    /// Checks all of a value.
    fn check(self, source: Source<'_>) -> Result<(), Fault> {
        match self {
            Holds::Features => Feature::check(source, VALUE_DEPTH).map(drop),
            Holds::FeatureLists => FeatureList::check(source).map(drop),
        }
    }
}

/// What is checked of the features that nobody asked for.
#[derive(Clone, Copy)]
pub(super) struct Scrutiny {
    pub(super) rules: Rules,
    /// Their values, too.
    pub(super) full: bool,
}

/// Fills line `row` of the table with what the map `field` of the payload holds.
#[inline]
pub(super) fn locate(
    payload: &[u8],
    holds: Holds,
    scrutiny: Scrutiny,
    keys: &mut Keys,
    table: &mut Table,
    row: usize,
) -> Result<(), Fault> {
    let line = table.row(row);
    line.fill(ABSENT);
    let field = match holds {
        Holds::Features => 1,
        Holds::FeatureLists => 2,
    };
    let mut entries = MapEntries::new(payload, field, scrutiny.rules);
    let put = |place: Option<&mut Found>, value| match place {
        Some(place) if *place == ABSENT => {
            *place = Found::new(payload, value, 0);
            Ok(())
        }
        None if !scrutiny.full => Ok(()),
        place => beside(place, payload, holds, scrutiny, Source::One(value)),
    };
    keys.start();
    // The shape of every encoder has loops of its own, which know no errors: half of the time is spent here.
    loop {
        if keys.is_blind() {
            while let Some((key, value)) = entries.canonical() {
                put(line.get_mut(keys.by_hash(key)), value)?;
            }
        } else {
            loop {
                let (slot, value) = match keys.expected().and_then(|head| entries.value_behind(head)) {
                    Some(value) => (keys.slot_of_expected(), value),
                    None => match entries.canonical() {
                        Some((key, value)) => (keys.slot(key), value),
                        None => break,
                    },
                };
                put(line.get_mut(slot), value)?;
            }
        }
        let Some(entry) = entries.next()? else { return Ok(()) };
        beside(line.get_mut(keys.slot(entry.key)), payload, holds, scrutiny, entry.value)?;
    }
}

/// A value that is not the first of its key, or not wanted, or in an uncommon shape.
#[inline(never)]
fn beside(
    place: Option<&mut Found>,
    payload: &[u8],
    holds: Holds,
    scrutiny: Scrutiny,
    value: Source<'_>,
) -> Result<(), Fault> {
    match place {
        Some(place) => {
            let before = std::mem::replace(place, Found::of(payload, value));
            // The last one counts, but the earlier one must be sound.
            before.source(payload).map_or(Ok(()), |source| holds.check(source))
        }
        None if scrutiny.full => holds.check(value),
        None => Ok(()),
    }
}
