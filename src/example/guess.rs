//! What a payload is, when nobody says.

use super::{Example, SequenceExample};
use crate::wire::{Reader, Value};

/// What a payload, or a file of them, is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// A `tf.train.Example`.
    Example,
    /// A `tf.train.SequenceExample`.
    SequenceExample,
    /// Anything else: text, an event, another message.
    Other,
}

impl MessageKind {
    /// `Example`, `SequenceExample` or `other`.
    pub const fn name(self) -> &'static str {
        match self {
            MessageKind::Example => "Example",
            MessageKind::SequenceExample => "SequenceExample",
            MessageKind::Other => "other",
        }
    }

    /// The guess for one payload. `None` for an empty one, which can be anything.
    ///
    /// Every decoder of protobuf takes an event or a list of Examples for an Example with unknown fields or strange keys: that
    /// a payload decodes says little. This asks for more: nothing but the fields that an Example (or a SequenceExample) has,
    /// map entries with one key and at most one value, and keys without control characters. The bytes of a message inside begin
    /// with such a character, so a message that is nested otherwise betrays itself. What passes must decode as well.
    pub fn guess(payload: &[u8]) -> Option<MessageKind> {
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
        Some(match (known, lists) {
            (true, true) if SequenceExample::new(payload).validate().is_ok() => MessageKind::SequenceExample,
            (true, false) if Example::new(payload).validate().is_ok() => MessageKind::Example,
            _ => MessageKind::Other,
        })
    }

    /// The guess for a file, from its first payloads. Files are of one kind, and a SequenceExample without feature lists is an
    /// Example too: one record with lists among the first makes all of them SequenceExamples. Empty payloads say nothing;
    /// where there are no others, they are Examples.
    pub fn guess_all<'a>(first: impl IntoIterator<Item = &'a [u8]>) -> MessageKind {
        first.into_iter().fold(None, MessageKind::guess_next).unwrap_or(MessageKind::Example)
    }

    /// The guess for a file from its payloads so far and one more: a step of [`guess_all`](MessageKind::guess_all). `None` while
    /// all were empty.
    pub fn guess_next(so_far: Option<MessageKind>, payload: &[u8]) -> Option<MessageKind> {
        match so_far {
            // Nothing changes these any more.
            Some(MessageKind::SequenceExample | MessageKind::Other) => so_far,
            Some(MessageKind::Example) => match MessageKind::guess(payload) {
                Some(MessageKind::SequenceExample) => Some(MessageKind::SequenceExample),
                _ => so_far,
            },
            None => MessageKind::guess(payload),
        }
    }
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
fn fields(message: &[u8], mut f: impl FnMut(u32, &[u8]) -> bool) -> bool {
    let mut reader = Reader::new(message);
    loop {
        match reader.next() {
            Ok(Some((number, Value::Len(body)))) if f(number, body) => {}
            Ok(None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_IS_1: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x01";

    #[test]
    fn examples() {
        let of = MessageKind::guess;
        assert_eq!(of(A_IS_1), Some(MessageKind::Example));
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\x0a\x00"), Some(MessageKind::Example));
        // A feature without a kind, with and without its value field.
        assert_eq!(of(b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00"), Some(MessageKind::Example));
        assert_eq!(of(b"\x0a\x05\x0a\x03\x0a\x01a"), Some(MessageKind::Example));
    }

    #[test]
    fn sequences() {
        // A context, then a list `f` of one step.
        let lists = b"\x12\x0e\x0a\x0c\x0a\x01f\x12\x07\x0a\x05\x1a\x03\x0a\x01\x02";
        let both = [A_IS_1, lists].concat();
        assert_eq!(MessageKind::guess(lists), Some(MessageKind::SequenceExample));
        assert_eq!(MessageKind::guess_all([A_IS_1, &both]), MessageKind::SequenceExample);
        assert_eq!(MessageKind::guess_all([b"".as_slice(), A_IS_1]), MessageKind::Example);
        assert_eq!(MessageKind::guess_all([]), MessageKind::Example);
    }

    #[test]
    fn what_only_decodes() {
        // An event: its time is a fixed64 in field 1.
        assert_eq!(MessageKind::guess(b"\x09\0\0\0\0\0\0\xf0\x3f"), Some(MessageKind::Other));
        // A list of Examples: field 1 is an Example, whose entry would be a key of control characters.
        let list = [b"\x0a\x0e".as_slice(), A_IS_1].concat();
        assert!(Example::new(&list).validate().is_ok());
        assert_eq!(MessageKind::guess(&list), Some(MessageKind::Other));
        assert_eq!(MessageKind::guess(b"plain text"), Some(MessageKind::Other));
    }
}
