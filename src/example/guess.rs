//! Guesses the kind of the messages in a file from its first payloads.

use super::sequence::SequenceExample;
use super::view::Example;
use crate::wire::{WireReader, WireValue};

/// The kind of a message, or of all messages in a file.
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
    /// Returns `Example`, `SequenceExample` or `other`.
    pub const fn name(self) -> &'static str {
        match self {
            MessageKind::Example => "Example",
            MessageKind::SequenceExample => "SequenceExample",
            MessageKind::Other => "other",
        }
    }

    /// Returns the kind of a payload. `None` for an empty payload, which can be of any kind.
    fn of(payload: &[u8]) -> Option<MessageKind> {
        if payload.is_empty() {
            return None;
        }
        let mut lists = false;
        let known = all_fields(payload, |number, body| match number {
            1 => is_map(body, is_feature),
            2 => {
                lists = true;
                is_map(body, |list| all_fields(list, |number, step| number == 1 && is_feature(step)))
            }
            _ => false,
        });
        Some(match (known, lists) {
            (true, true) if SequenceExample::new(payload).validate().is_ok() => MessageKind::SequenceExample,
            (true, false) if Example::new(payload).validate().is_ok() => MessageKind::Example,
            _ => MessageKind::Other,
        })
    }
}

/// Guesses the kind of a file's messages from its first payloads.
///
/// All messages of a file are assumed to be of one kind. A SequenceExample without feature lists is also an Example, so one record
/// with feature lists among the first makes all of them SequenceExamples. Empty payloads are ignored. If there are no others, the
/// kind is Example.
///
/// Decoding is not enough: protobuf decodes an event, or a list of Examples, as an Example with unknown fields or strange keys. The
/// guess therefore also requires that there are no fields other than those of the message, that map entries have one key and at most
/// one value, and that keys have no control characters. A nested message starts with a control character, so it is not accepted as a
/// key. The payload must also decode.
///
/// ```
/// use tfseek::ExampleBuilder;
/// use tfseek::example::{KindGuess, MessageKind};
/// let mut guess = KindGuess::default();
/// for payload in [ExampleBuilder::new().int64("a", [1]).encode()?, Vec::new()] {
///     guess.add(&payload);
///     if guess.is_complete() {
///         break;
///     }
/// }
/// assert_eq!(guess.kind(), MessageKind::Example);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct KindGuess {
    kind: Option<MessageKind>,
    payloads: usize,
    bytes: usize,
}

impl KindGuess {
    /// Number of payloads, or of bytes, after which a guess is complete.
    const COMPLETE: (usize, usize) = (16, 1 << 20);

    /// Adds the next payload of the file.
    pub fn add(&mut self, payload: &[u8]) {
        self.payloads = self.payloads.saturating_add(1);
        self.bytes = self.bytes.saturating_add(payload.len());
        self.kind = match self.kind {
            // These are final.
            Some(MessageKind::SequenceExample | MessageKind::Other) => self.kind,
            Some(MessageKind::Example) => match MessageKind::of(payload) {
                Some(MessageKind::SequenceExample) => Some(MessageKind::SequenceExample),
                _ => self.kind,
            },
            None => MessageKind::of(payload),
        };
    }

    /// Returns true after 16 payloads, or 1 MiB of payloads, were added. Callers then stop reading ahead for the guess. More payloads
    /// may still be added.
    pub fn is_complete(&self) -> bool {
        self.payloads >= KindGuess::COMPLETE.0 || self.bytes >= KindGuess::COMPLETE.1
    }

    /// Returns the kind, as guessed so far. Without payloads it is Example.
    pub fn kind(&self) -> MessageKind {
        self.kind.unwrap_or(MessageKind::Example)
    }
}

/// Returns true if `message` is a plain map: entries with one key and at most one value, for which `value` returns true.
fn is_map(message: &[u8], value: impl Fn(&[u8]) -> bool) -> bool {
    all_fields(message, |number, entry| {
        let (mut keys, mut values) = (0usize, 0usize);
        let known = all_fields(entry, |number, body| match number {
            1 => {
                keys = keys.saturating_add(1);
                std::str::from_utf8(body).is_ok_and(|key| !key.chars().any(char::is_control))
            }
            2 => {
                values = values.saturating_add(1);
                value(body)
            }
            _ => false,
        });
        number == 1 && known && keys == 1 && values <= 1
    })
}

/// Returns true if `message` has the fields of a Feature and its lists.
fn is_feature(message: &[u8]) -> bool {
    all_fields(message, |number, list| match number {
        1 => all_fields(list, |number, _| number == 1),
        // The first value is packed or unpacked.
        2 => matches!(list, [] | [0x0a | 0x0d, ..]),
        3 => matches!(list, [] | [0x0a | 0x08, ..]),
        _ => false,
    })
}

/// Returns true if all fields of a message are length-delimited, and `f` returns true for each.
fn all_fields(message: &[u8], mut f: impl FnMut(u32, &[u8]) -> bool) -> bool {
    let mut reader = WireReader::new(message);
    loop {
        match reader.next() {
            Ok(Some((number, WireValue::Len(body)))) if f(number, body) => {}
            Ok(None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> MessageKind {
        let mut guess = KindGuess::default();
        payloads.into_iter().for_each(|payload| guess.add(payload));
        guess.kind()
    }

    #[test]
    fn a_guess_is_complete_after_some_payloads_or_bytes() {
        let mut guess = KindGuess::default();
        for _ in 0..15 {
            guess.add(A_IS_1);
        }
        assert!(!guess.is_complete());
        guess.add(A_IS_1);
        assert!(guess.is_complete());
        let mut guess = KindGuess::default();
        guess.add(&vec![0; 1 << 20]);
        assert!(guess.is_complete());
    }

    const A_IS_1: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x01";

    #[test]
    fn examples() {
        let of = MessageKind::of;
        assert_eq!(of(A_IS_1), Some(MessageKind::Example));
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\x0a\x00"), Some(MessageKind::Example));
        // A feature without a kind, with and without a value field.
        assert_eq!(of(b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00"), Some(MessageKind::Example));
        assert_eq!(of(b"\x0a\x05\x0a\x03\x0a\x01a"), Some(MessageKind::Example));
    }

    #[test]
    fn sequences() {
        // A context, then a list `f` of one step.
        let lists = b"\x12\x0e\x0a\x0c\x0a\x01f\x12\x07\x0a\x05\x1a\x03\x0a\x01\x02";
        let both = [A_IS_1, lists].concat();
        assert_eq!(MessageKind::of(lists), Some(MessageKind::SequenceExample));
        assert_eq!(guess([A_IS_1, &both]), MessageKind::SequenceExample);
        assert_eq!(guess([b"".as_slice(), A_IS_1]), MessageKind::Example);
        assert_eq!(guess([]), MessageKind::Example);
    }

    #[test]
    fn other_messages_that_decode() {
        // An event: its time is a fixed64 in field 1.
        assert_eq!(MessageKind::of(b"\x09\0\0\0\0\0\0\xf0\x3f"), Some(MessageKind::Other));
        // A list of Examples: field 1 is an Example, whose entry would be a key of control characters.
        let list = [b"\x0a\x0e".as_slice(), A_IS_1].concat();
        assert!(Example::new(&list).validate().is_ok());
        assert_eq!(MessageKind::of(&list), Some(MessageKind::Other));
        assert_eq!(MessageKind::of(b"plain text"), Some(MessageKind::Other));
    }
}
