//! What a payload is: guessed from its bytes, unless the user says.
//!
//! Every decoder of protobuf takes an event or a list of Examples for an Example with unknown fields or strange keys, so
//! that a payload decodes says little. The guess asks for more: nothing but the fields that an Example (or a
//! SequenceExample) has, map entries with one key and at most one value, and keys without control characters. The
//! bytes of a message inside begin with such a character, so a message that is nested otherwise betrays itself.

use crate::args::KindChoice;
use tfseek::{Example, SequenceExample};

/// What the records of a file are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Example,
    Sequence,
    /// Anything else: text, an event, another message.
    Raw,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Example => "Example",
            Kind::Sequence => "SequenceExample",
            Kind::Raw => "other",
        }
    }
}

/// Records that are looked at before a file is called one thing, and their bytes.
pub(crate) const LOOK: (usize, usize) = (16, 1 << 20);

/// The guess for a file, from its first payloads. Files are of one kind, and a SequenceExample without feature lists
/// is an Example too: one record with lists among the first makes all of them SequenceExamples. Empty payloads
/// say nothing.
pub(crate) fn guess<'a>(first: impl IntoIterator<Item = &'a [u8]>) -> Kind {
    let mut kind = None;
    for payload in first {
        match (kind, of(payload)) {
            (_, None) => {}
            (None | Some(Kind::Example), Some(Kind::Sequence)) => kind = Some(Kind::Sequence),
            (None, found) => kind = found,
            _ => {}
        }
    }
    kind.unwrap_or(Kind::Example)
}

impl KindChoice {
    /// The kind the user named.
    pub(crate) fn named(self) -> Option<Kind> {
        match self {
            KindChoice::Auto => None,
            KindChoice::Example => Some(Kind::Example),
            KindChoice::Sequence => Some(Kind::Sequence),
            KindChoice::Raw => Some(Kind::Raw),
        }
    }
}

/// The guess for one payload; an empty one can be anything.
fn of(payload: &[u8]) -> Option<Kind> {
    if payload.is_empty() {
        return None;
    }
    let mut lists = false;
    let known = fields(payload, |number, body| match number {
        1 => map(body, feature),
        2 => {
            lists = true;
            map(body, |list| fields(list, |number, step| number == 1 && feature(step)))
        }
        _ => false,
    });
    // The library has the last word on whether it decodes.
    Some(match (known, lists) {
        (true, true) if SequenceExample::new(payload).validate().is_ok() => Kind::Sequence,
        (true, false) if Example::new(payload).validate().is_ok() => Kind::Example,
        _ => Kind::Raw,
    })
}

/// Whether a message has field `number`, as far as it can be read.
pub(crate) fn has_field(message: &[u8], number: u32) -> bool {
    let mut found = false;
    fields(message, |n, _| {
        found |= n == number;
        true
    });
    found
}

fn map(message: &[u8], value: impl Fn(&[u8]) -> bool) -> bool {
    fields(message, |number, entry| {
        let (mut keys, mut values) = (0, 0);
        let known = fields(entry, |number, body| match number {
            1 => {
                keys += 1;
                std::str::from_utf8(body).is_ok_and(|key| !key.chars().any(char::is_control))
            }
            2 => {
                values += 1;
                value(body)
            }
            _ => false,
        });
        number == 1 && known && keys == 1 && values <= 1
    })
}

fn feature(message: &[u8]) -> bool {
    fields(message, |number, list| match number {
        1 => fields(list, |number, _| number == 1),
        // Packed, or value by value.
        2 => matches!(list, [] | [0x0a | 0x0d, ..]),
        3 => matches!(list, [] | [0x0a | 0x08, ..]),
        _ => false,
    })
}

/// Whether a message is length-delimited fields only, and `f` holds for each.
fn fields(mut message: &[u8], mut f: impl FnMut(u32, &[u8]) -> bool) -> bool {
    while !message.is_empty() {
        let Some((tag, rest)) = varint(message) else { return false };
        let Some((len, rest)) = varint(rest) else { return false };
        let Some((body, rest)) = rest.split_at_checked(len as usize) else { return false };
        if tag & 7 != 2 || !f(tag >> 3, body) {
            return false;
        }
        message = rest;
    }
    true
}

/// A tag or a length: at most five bytes, below 2^32.
fn varint(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0u64;
    for (k, &byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Some((u32::try_from(value).ok()?, &bytes[k + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_IS_1: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x01";

    #[test]
    fn examples() {
        assert_eq!(of(A_IS_1), Some(Kind::Example));
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\x0a\x00"), Some(Kind::Example));
        // A feature without a kind, with and without its value field.
        assert_eq!(of(b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00"), Some(Kind::Example));
        assert_eq!(of(b"\x0a\x05\x0a\x03\x0a\x01a"), Some(Kind::Example));
    }

    #[test]
    fn sequences() {
        // A context, then a list `f` of one step.
        let lists = b"\x12\x0e\x0a\x0c\x0a\x01f\x12\x07\x0a\x05\x1a\x03\x0a\x01\x02";
        let both = [A_IS_1, lists].concat();
        assert_eq!(of(lists), Some(Kind::Sequence));
        assert_eq!(guess([A_IS_1, &both]), Kind::Sequence);
        assert_eq!(guess([b"".as_slice(), A_IS_1]), Kind::Example);
        assert_eq!(guess([]), Kind::Example);
    }

    #[test]
    fn what_only_decodes() {
        // An event: its time is a fixed64 in field 1.
        assert_eq!(of(b"\x09\0\0\0\0\0\0\xf0\x3f"), Some(Kind::Raw));
        // A list of Examples: field 1 is an Example, whose entry would be a key of control characters.
        let list = [b"\x0a\x0e".as_slice(), A_IS_1].concat();
        assert!(Example::new(&list).validate().is_ok());
        assert_eq!(of(&list), Some(Kind::Raw));
        assert_eq!(of(b"plain text"), Some(Kind::Raw));
    }
}
