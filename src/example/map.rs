//! The entries of a map field, in wire order.

use super::entry_form::{EntryForm, EntryValue, take_long};
use super::kind::DType;
use super::source::ValueMessage;
use crate::error::WireError;
use tfseek_wire::{Fault, WireReader, WireValue};

/// Number of levels from the payload down to the value of a map entry.
pub(crate) const VALUE_DEPTH: u8 = 3;

/// An entry of a map: its key, as bytes, and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: ValueMessage<'a>,
}

/// The entries of a map in a payload, duplicates included. Field `field` of the payload, which may repeat,
/// contains messages whose field 1 is the entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapEntries<'a> {
    payload: WireReader<'a>,
    message: WireReader<'a>,
    field: u32,
    /// True if keys must be UTF-8, including keys that a later key of the same entry replaces.
    utf8: bool,
}

impl<'a> MapEntries<'a> {
    #[inline]
    pub(crate) fn new(payload: &'a [u8], field: u32, utf8: bool) -> MapEntries<'a> {
        let mut payload = WireReader::new(payload);
        // Normally the payload consists of this field only.
        let message = payload.take_field((field as u8) << 3 | 2).unwrap_or_default();
        MapEntries { payload, message: payload.nested(message), field, utf8 }
    }

    /// Takes the next entry, if it has this form.
    #[inline(always)]
    pub(crate) fn next_of_form(&mut self, form: &EntryForm) -> Option<EntryValue> {
        form.take(&mut self.message)
    }

    /// Takes the next entry, if it has the key of `head`, its [`entry_head`], and the usual encoding, of any
    /// length. If `content`, the result is the content of a list of this kind, otherwise the message that is
    /// the entry's value.
    #[inline(always)]
    pub(crate) fn next_long(&mut self, head: &[u8], kind: DType, content: bool) -> Option<EntryValue> {
        // The reader is passed by value, so that loops over entries keep it in registers.
        let (value, after) = take_long(self.message, head, kind, content)?;
        self.message = after;
        Some(value)
    }

    /// Returns the bytes of the key of the next entry, if it starts like a short one. The entry is not
    /// consumed.
    #[inline(always)]
    pub(crate) fn peek_key(&self) -> Option<&'a [u8]> {
        let (head, body) = self.message.rest().split_first_chunk()?;
        let [_, _, _, key_len] = *head;
        // `0a len 0a len`, compared as one word.
        if u32::from_le_bytes(*head) & 0x80ff_80ff != 0x000a_000a {
            return None;
        }
        body.get(..usize::from(key_len))
    }

    /// Returns key and value of the next entry, if it has the form that every encoder writes, and the reader
    /// after it.
    #[inline(always)]
    fn peek_fast(&self) -> Option<(&'a [u8], &'a [u8], WireReader<'a>)> {
        let mut message = self.message;
        let (key, value) = match message.take_short_pair() {
            Some(pair) => pair,
            None => long_pair(message.take_field(0x0a)?)?,
        };
        Some((key, value, message))
    }

    /// Returns key and value of the next entry, if it has the form that every encoder writes. Otherwise
    /// nothing is consumed, and the caller continues with [`next`](MapEntries::next).
    #[inline(always)]
    pub(crate) fn next_fast(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (key, value, after) = self.peek_fast()?;
        if self.utf8 && std::str::from_utf8(key).is_err() {
            return None;
        }
        self.message = after;
        Some((key, value))
    }

    /// Returns the next entry, with its key as text, which is validated once. For rules that require UTF-8.
    #[inline(always)]
    pub(super) fn next_text(&mut self) -> Result<Option<(&'a str, ValueMessage<'a>)>, Fault> {
        if let Some((key, value, after)) = self.peek_fast()
            && let Ok(key) = std::str::from_utf8(key)
        {
            self.message = after;
            return Ok(Some((key, ValueMessage::one(value, self.start_of(value)))));
        }
        match self.next_slow()? {
            Some(MapEntry { key, value }) => Ok(Some((utf8(key, value.start())?, value))),
            None => Ok(None),
        }
    }

    /// Returns the offset in the payload of the value that [`next_of_form`](MapEntries::next_of_form) or
    /// [`next_fast`](MapEntries::next_fast) returned last. The value is the last field of its entry.
    #[inline(always)]
    pub(crate) fn start_of(&self, value: &[u8]) -> usize {
        self.message.start_of(value)
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<MapEntry<'a>>, Fault> {
        match self.next_fast() {
            Some((key, value)) => {
                Ok(Some(MapEntry { key, value: ValueMessage::one(value, self.start_of(value)) }))
            }
            None if self.message.is_empty() && self.payload.is_empty() => Ok(None),
            None => self.next_slow(),
        }
    }

    #[inline(never)]
    fn next_slow(&mut self) -> Result<Option<MapEntry<'a>>, Fault> {
        loop {
            match self.message.next()? {
                Some((1, WireValue::Len(entry))) => return self.entry_slow(entry).map(Some),
                Some(_) => {}
                None => match self.payload.next()? {
                    Some((number, WireValue::Len(message))) if number == self.field => {
                        self.message = self.payload.nested(message);
                    }
                    Some(_) => {}
                    None => return Ok(None),
                },
            }
        }
    }

    /// Parses the entry that was read last. Key and value may come in any order. If missing, they are empty.
    /// If repeated, the last key wins and all values are merged.
    fn entry_slow(&self, entry: &'a [u8]) -> Result<MapEntry<'a>, Fault> {
        let entry_start = self.message.start_of(entry);
        let mut reader = self.message.nested(entry);
        let mut key = &[][..];
        let mut value = None;
        let mut is_repeated = false;
        while let Some(field) = reader.next()? {
            match field {
                (1, WireValue::Len(bytes)) => {
                    if self.utf8 {
                        utf8(bytes, reader.start_of(bytes))?;
                    }
                    key = bytes;
                }
                (2, WireValue::Len(bytes)) => {
                    is_repeated = value.is_some();
                    value = Some(ValueMessage::one(bytes, reader.start_of(bytes)));
                }
                // Decoders disagree: C++ protobuf ignores the field, Python's drops the whole entry, and
                // TensorFlow's parser rejects the record.
                _ => return Err(Fault::new(WireError::MapEntryUnknownField, entry_start)),
            }
        }
        let value = match value {
            Some(_) if is_repeated => ValueMessage::entry(entry, entry_start),
            value => value.unwrap_or(ValueMessage::one(&[], entry_start)),
        };
        Ok(MapEntry { key, value })
    }
}

/// Returns key and value of an entry in the form that every encoder writes: `0a klen key 12 vlen value`, and
/// nothing after it.
#[inline(never)]
fn long_pair(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut entry = WireReader::new(entry);
    let pair = (entry.take_field(0x0a)?, entry.take_field(0x12)?);
    entry.is_empty().then_some(pair)
}

/// Returns a key as text. `start` is its offset in the payload.
fn utf8(key: &[u8], start: usize) -> Result<&str, Fault> {
    std::str::from_utf8(key).map_err(|_| Fault::new(WireError::Utf8, start))
}

/// Returns true if a payload contains the map `field`, even an empty one.
pub(super) fn has_map(payload: &[u8], field: u32) -> bool {
    let mut reader = WireReader::new(payload);
    std::iter::from_fn(|| reader.next().ok()?)
        .any(|(number, value)| number == field && matches!(value, WireValue::Len(_)))
}
