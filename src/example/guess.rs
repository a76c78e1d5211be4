//! The kind of the messages in a file, guessed from its first payloads.

use super::sequence::SequenceExample;
use super::view::Example;
use crate::wire::{WireReader, WireValue};

/// The kind of a message, or of all messages of a file.
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

    /// The kind of one payload; `None` for an empty one, which can be any.
    fn of(payload: &[u8]) -> Option<MessageKind> {
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
}

/// Guesses the kind of a file's messages from its first payloads.
///
/// Files are of one kind, and a SequenceExample without feature lists is an Example too: one record with lists among the first
/// makes all of them SequenceExamples. Empty payloads say nothing; where there are no others, they are Examples.
///
/// Every decoder of protobuf takes an event or a list of Examples for an Example with unknown fields or strange keys: that
/// a payload decodes says little. The guess asks for more: no fields but those of an Example (or a SequenceExample),
/// map entries with one key and at most one value, and keys without control characters. The bytes of a message inside begin
/// with such a character, so a message that is nested otherwise is told apart. A payload that passes must decode as well.
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
    /// Payloads that make a guess complete, and bytes of payloads that do.
    const COMPLETE: (usize, usize) = (16, 1 << 20);

    /// Takes the next payload of the file into account.
    pub fn add(&mut self, payload: &[u8]) {
        self.payloads += 1;
        self.bytes = self.bytes.saturating_add(payload.len());
        self.kind = match self.kind {
            // Nothing changes these any more.
            Some(MessageKind::SequenceExample | MessageKind::Other) => self.kind,
            Some(MessageKind::Example) => match MessageKind::of(payload) {
                Some(MessageKind::SequenceExample) => Some(MessageKind::SequenceExample),
                _ => self.kind,
            },
            None => MessageKind::of(payload),
        };
    }

    /// Returns true once 16 payloads, or a MiB of them, were added: the point where reading ahead for a guess ends. More may be
    /// added.
    pub fn is_complete(&self) -> bool {
        self.payloads >= KindGuess::COMPLETE.0 || self.bytes >= KindGuess::COMPLETE.1
    }

    /// The kind, as far as the payloads tell; an Example where there was none.
    pub fn kind(&self) -> MessageKind {
        self.kind.unwrap_or(MessageKind::Example)
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

/// Returns true if a message is length-delimited fields only, and `f` holds for each.
fn fields(message: &[u8], mut f: impl FnMut(u32, &[u8]) -> bool) -> bool {
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
        // A feature without a kind, with and without its value field.
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
    fn what_only_decodes() {
        // An event: its time is a fixed64 in field 1.
        assert_eq!(MessageKind::of(b"\x09\0\0\0\0\0\0\xf0\x3f"), Some(MessageKind::Other));
        // A list of Examples: field 1 is an Example, whose entry would be a key of control characters.
        let list = [b"\x0a\x0e".as_slice(), A_IS_1].concat();
        assert!(Example::new(&list).validate().is_ok());
        assert_eq!(MessageKind::of(&list), Some(MessageKind::Other));
        assert_eq!(MessageKind::of(b"plain text"), Some(MessageKind::Other));
    }
}
