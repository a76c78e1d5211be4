//! Guesses the kind of the messages in a file from its first payloads.

use super::sequence::SequenceExample;
use super::view::Example;
use crate::error::{ErrorKind, Result, WireError};
use std::iter::from_fn;
use std::mem::replace;
use tfseek_wire::{Fault, WireReader, WireValue};

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
    /// The reason for which records without features are refused.
    pub(crate) const NO_FEATURES: &str = "the records are neither Examples nor SequenceExamples";

    /// Returns `Example`, `SequenceExample` or `other`.
    pub const fn name(self) -> &'static str {
        match self {
            MessageKind::Example => "Example",
            MessageKind::SequenceExample => "SequenceExample",
            MessageKind::Other => "other",
        }
    }

    /// Refuses a payload that a view of this kind shows in part only. A view skips fields that its message
    /// does not have, as protobuf's decoder does, so whoever writes, converts or digests a decoded record
    /// would lose them. Malformed payloads are not refused here.
    ///
    /// ```
    /// use tfseek::SequenceExampleBuilder;
    /// use tfseek::example::MessageKind;
    /// let payload = SequenceExampleBuilder::new().int64("id", [5]).feature_list("frames", []).encode()?;
    /// assert!(MessageKind::SequenceExample.check(&payload).is_ok());
    /// let e = MessageKind::Example.check(&payload).unwrap_err();
    /// assert_eq!(e.to_string(), "expected an Example, found a SequenceExample with feature lists");
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OtherKind`] for an Example with feature lists, [`ErrorKind::Wire`] for another unknown
    /// field.
    pub fn check(self, payload: &[u8]) -> Result<()> {
        let is_sequence = self == MessageKind::SequenceExample;
        if self == MessageKind::Other {
            return Ok(());
        }
        match check_message(WireReader::new(payload), is_sequence) {
            Ok(()) | Err(Remainder::Malformed) => Ok(()),
            Err(Remainder::Field(_)) if !is_sequence && has_lists(payload) => {
                let found = MessageKind::SequenceExample.name();
                Err(ErrorKind::OtherKind { expected: self.name(), found }.into())
            }
            Err(Remainder::Field(offset)) => Err(Fault::new(WireError::UnknownField, offset).into()),
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
/// All messages of a file are assumed to be of one kind. A SequenceExample without feature lists is also an
/// Example, so one record with feature lists among the first makes all of them SequenceExamples. Empty
/// payloads are ignored. If there are no others, the kind is Example.
///
/// Decoding is not enough: protobuf decodes an event, or a list of Examples, as an Example with unknown
/// fields or strange keys. The guess therefore also requires that there are no fields other than the
/// message's own, that map entries have one key and at most one value, and that no key is a nested message.
/// The payload must also decode.
///
/// [`MessageKind::check`] refuses a later record that contradicts the guess.
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

    /// Returns true after 16 payloads, or 1 MiB of payloads, were added. Callers then stop reading ahead for
    /// the guess. More payloads may still be added.
    pub fn is_complete(&self) -> bool {
        self.payloads >= KindGuess::COMPLETE.0 || self.bytes >= KindGuess::COMPLETE.1
    }

    /// Returns the kind, as guessed so far. Without payloads it is Example.
    pub fn kind(&self) -> MessageKind {
        self.kind.unwrap_or(MessageKind::Example)
    }
}

/// Returns true if `message` is a plain map: entries with one key and at most one value, for which `value`
/// returns true.
fn is_map(message: &[u8], value: impl Fn(&[u8]) -> bool) -> bool {
    all_fields(message, |number, entry| {
        let mut has_key = false;
        let mut has_value = false;
        let known = all_fields(entry, |number, body| match number {
            1 => !replace(&mut has_key, true) && std::str::from_utf8(body).is_ok_and(is_key),
            2 => !replace(&mut has_value, true) && value(body),
            _ => false,
        });
        number == 1 && known && has_key
    })
}

/// Returns true for a key that is not a nested message. Tags and lengths of such a message are control
/// characters. The names of a text file may end in one, such as `label\r`.
fn is_key(key: &str) -> bool {
    if !key.trim_end().chars().any(char::is_control) {
        return true;
    }
    let mut reader = WireReader::new(key.as_bytes());
    from_fn(|| reader.next().transpose()).any(|field| field.is_err())
}

/// Returns true if field 2 of a payload is the feature lists of a SequenceExample.
fn has_lists(payload: &[u8]) -> bool {
    let is_lists = |list: &[u8]| all_fields(list, |number, step| number == 1 && is_feature(step));
    let mut found = false;
    let mut reader = WireReader::new(payload);
    while let Ok(Some((number, value))) = reader.next() {
        if number == 2 {
            found = true;
            if !matches!(value, WireValue::Len(body) if is_map(body, is_lists)) {
                return false;
            }
        }
    }
    found
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
    from_fn(|| reader.next().transpose())
        .all(|field| matches!(field, Ok((number, WireValue::Len(body))) if f(number, body)))
}

/// The part of a message that a view does not show.
enum Remainder {
    /// A field, at this offset in the payload.
    Field(usize),
    /// The rest of a malformed message.
    Malformed,
}

impl From<Fault> for Remainder {
    fn from(_: Fault) -> Remainder {
        Remainder::Malformed
    }
}

type Checked<T = ()> = std::result::Result<T, Remainder>;

/// Calls `is_known` with each field of a message, and the reader after it, until it returns false.
fn check_fields<'a>(
    mut reader: WireReader<'a>,
    is_known: impl Fn(u32, WireValue<'a>, WireReader<'a>) -> Checked<bool>,
) -> Checked {
    loop {
        let start = reader.position();
        // Nearly all fields are read without a call.
        let field = if let Some(body) = reader.take_field(0x0a) {
            Some((1, WireValue::Len(body)))
        } else if let Some(body) = reader.take_field(0x12) {
            Some((2, WireValue::Len(body)))
        } else {
            reader.next()?
        };
        let Some((number, value)) = field else { return Ok(()) };
        if !is_known(number, value, reader)? {
            return Err(Remainder::Field(start));
        }
    }
}

fn check_message(payload: WireReader<'_>, is_sequence: bool) -> Checked {
    check_fields(payload, |number, map, at| match (number, map) {
        (1, WireValue::Len(map)) => check_map(at.nested(map), check_feature),
        (2, WireValue::Len(map)) if is_sequence => check_map(at.nested(map), |list| {
            check_fields(list, |number, step, at| match (number, step) {
                (1, WireValue::Len(step)) => check_feature(at.nested(step)).map(|()| true),
                _ => Ok(false),
            })
        }),
        _ => Ok(false),
    })
}

fn check_map(map: WireReader<'_>, value: fn(WireReader<'_>) -> Checked) -> Checked<bool> {
    check_fields(map, |number, entry, at| {
        let (1, WireValue::Len(entry)) = (number, entry) else { return Ok(false) };
        // Decoders refuse an unknown field in an entry.
        check_fields(at.nested(entry), |number, field, at| match (number, field) {
            (2, WireValue::Len(body)) => value(at.nested(body)).map(|()| true),
            _ => Ok(true),
        })
        .map(|()| true)
    })
    .map(|()| true)
}

fn check_feature(feature: WireReader<'_>) -> Checked {
    check_fields(feature, |kind, list, at| {
        let (1..=3, WireValue::Len(list)) = (kind, list) else { return Ok(false) };
        check_fields(at.nested(list), |number, value, _| {
            let is_value = match value {
                WireValue::Len(_) => true,
                WireValue::Fixed32(_) => kind == 2,
                WireValue::Varint(_) => kind == 3,
                WireValue::Fixed64(_) | WireValue::Group => false,
            };
            Ok(number == 1 && is_value)
        })
        .map(|()| true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::ExampleBuilder;

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

    #[test]
    fn keys_with_control_characters() {
        let kind = |key: &str| MessageKind::of(&ExampleBuilder::new().int64(key, [1]).encode().unwrap());
        for key in ["label\r", "x\r", "p\n", "a\tb", "\u{1}", "a\u{7f}b", "tab\t", "\n"] {
            assert_eq!(kind(key), Some(MessageKind::Example), "{key:?}");
        }
        // The key is a map entry, or a message with a varint.
        for key in ["\n\u{1}a\u{12}\u{2}\n\0", "\u{8}\u{1}"] {
            assert_eq!(kind(key), Some(MessageKind::Other), "{key:?}");
        }
    }

    #[test]
    fn fields_that_a_view_skips_are_refused() {
        let lists = b"\x12\x0e\x0a\x0c\x0a\x01f\x12\x07\x0a\x05\x1a\x03\x0a\x01\x02";
        let both = [A_IS_1, lists].concat();
        let message = |kind: MessageKind, payload: &[u8]| {
            kind.check(payload).map_err(|e| (e.is_data(), e.to_string())).err()
        };
        let sequence = "expected an Example, found a SequenceExample with feature lists".to_owned();
        for payload in [&both[..], lists, b"\x12\x00"] {
            assert_eq!(message(MessageKind::Example, payload), Some((false, sequence.clone())));
            assert_eq!(message(MessageKind::SequenceExample, payload), None);
            assert_eq!(message(MessageKind::Other, payload), None);
        }
        let unknown = |offset| {
            let text =
                format!("malformed message at payload byte {offset}: field that the message does not have");
            Some((true, text))
        };
        let cases: [(&[u8], usize); 7] = [
            // In the payload: text in field 2, a varint, a group.
            (b"\x0a\x00\x12\x03abc", 2),
            (b"\x18\x01", 0),
            (b"\x0a\x00\x1b\x1c", 2),
            // In the features, in a feature, in a list: a varint in a list of bytes.
            (b"\x0a\x02\x10\x01", 2),
            (b"\x0a\x09\x0a\x07\x0a\x01a\x12\x02\x22\x00", 9),
            (b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x0a\x02\x08\x01", 11),
            (b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x12\x01\x01", 11),
        ];
        for (payload, offset) in cases {
            assert_eq!(message(MessageKind::Example, payload), unknown(offset), "{payload:?}");
        }
        // What merges or repeats is shown. What is malformed is refused where it is decoded.
        let entry = b"\x0a\x15\x0a\x13\x0a\x01b\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x01\x12\x04\x1a\x02\x08\x02";
        for payload in [&[A_IS_1, A_IS_1].concat()[..], entry, b"\x0a\x7f", b""] {
            assert_eq!(message(MessageKind::Example, payload), None, "{payload:?}");
        }
    }
}
