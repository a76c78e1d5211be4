//! The entries of a map field, in wire order.

use super::feature::utf8;
use super::source::Source;
use crate::error::WireErrorKind;
use crate::wire::{Fault, Reader, Value};

/// Levels below the payload of the message that is a map entry's value.
pub(crate) const VALUE_DEPTH: u8 = 3;

/// One entry: its key, as bytes, and where its value is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: Source<'a>,
}

/// How an entry is to be taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// An unknown field in an entry is ignored instead of refused.
    pub(crate) lenient: bool,
    /// Keys must be UTF-8, also those that a later one in the same entry replaces.
    pub(crate) utf8: bool,
}

/// The entries of the map `field` of a payload, duplicates and all: field `field` of the payload, which may
/// repeat, holds messages whose field 1 is the entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapEntries<'a> {
    payload: Reader<'a>,
    message: Reader<'a>,
    field: u32,
    rules: Rules,
}

impl<'a> MapEntries<'a> {
    #[inline]
    pub(crate) fn new(payload: &'a [u8], field: u32, rules: Rules) -> MapEntries<'a> {
        let mut payload = Reader::new(payload, 0);
        // The map is all there is, as a rule.
        let message = payload.eat_field((field as u8) << 3 | 2).unwrap_or_default();
        MapEntries { payload, message: payload.nested(message), field, rules }
    }

    /// The value of the next entry, if that is short and begins like this: with [`head`] of a key that is UTF-8.
    #[inline(always)]
    pub(crate) fn value_behind(&mut self, head: &[u8]) -> Option<&'a [u8]> {
        self.message.eat_field_behind(0x0a, head)
    }

    /// The next entry, if it has the shape that every encoder writes: key and value. Else nothing is read, and
    /// [`next`](MapEntries::next) tells what there is.
    #[inline(always)]
    pub(crate) fn canonical(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let mut message = self.message;
        let (key, value) = match message.eat_short_pair() {
            Some(pair) => pair,
            None => long_entry(message.eat_field(0x0a)?)?,
        };
        if self.rules.utf8 && utf8(key).is_err() {
            return None;
        }
        self.message = message;
        Some((key, value))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, Fault> {
        match self.canonical() {
            Some((key, value)) => Ok(Some(Entry { key, value: Source::One(value) })),
            None => self.any(),
        }
    }

    #[inline(never)]
    fn any(&mut self) -> Result<Option<Entry<'a>>, Fault> {
        loop {
            match self.message.next()? {
                Some((1, Value::Len(entry))) => return self.general(entry).map(Some),
                Some(_) => {}
                None => match self.payload.next()? {
                    Some((number, Value::Len(message))) if number == self.field => {
                        self.message = self.payload.nested(message);
                    }
                    Some(_) => {}
                    None => return Ok(None),
                },
            }
        }
    }

    /// Key and value in any order, missing (then they are empty) or repeated (the last key, all values merged).
    fn general(&self, entry: &'a [u8]) -> Result<Entry<'a>, Fault> {
        let (mut key, mut value) = (&[][..], &[][..]);
        let mut values = 0;
        let mut reader = self.message.nested(entry);
        while let Some(field) = reader.next()? {
            match field {
                (1, Value::Len(bytes)) => {
                    if self.rules.utf8 {
                        utf8(bytes)?;
                    }
                    key = bytes;
                }
                (2, Value::Len(bytes)) => {
                    value = bytes;
                    values += 1;
                }
                _ if self.rules.lenient => {}
                _ => return Err(Fault::new(WireErrorKind::MapEntryUnknownField, entry)),
            }
        }
        Ok(Entry { key, value: if values > 1 { Source::Entry(entry) } else { Source::One(value) } })
    }
}

/// The shape that every encoder writes: `0a klen key 12 vlen value`, and nothing behind it.
#[inline(never)]
fn long_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut entry = Reader::new(entry, 0);
    let pair = (entry.eat_field(0x0a)?, entry.eat_field(0x12)?);
    entry.is_empty().then_some(pair)
}

/// What stands before the value's length in an entry of this key: `0a klen key 12`. Where `klen` needs more than a byte this is
/// something else, but longer than any entry that [`value_behind`](MapEntries::value_behind) takes.
pub(crate) fn head(key: &[u8]) -> Box<[u8]> {
    [&[0x0a, key.len() as u8], key, &[0x12]].concat().into()
}

/// Whether a payload has the map `field` at all, if only an empty one.
pub(super) fn has_map(payload: &[u8], field: u32) -> bool {
    let mut reader = Reader::new(payload, 0);
    while let Ok(Some((number, value))) = reader.next() {
        if number == field && matches!(value, Value::Len(_)) {
            return true;
        }
    }
    false
}
