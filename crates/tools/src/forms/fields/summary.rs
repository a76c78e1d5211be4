//! The type of the payloads of a file, and their top-level fields.

use super::decode::{MAX_FIELDS, ProtoValue, delimited, text};
use super::known::{EVENT, EXAMPLES_WITH_CONTEXT, KnownType};
use super::raw::{RawFields, RawValue};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of different fields of a message. A payload with more is not taken for one.
pub(crate) const MAX_NUMBERS: usize = 1000;

/// Maximum length of a text that is parsed as JSON.
const MAX_JSON: usize = 1 << 20;

/// The type of payloads that are neither Examples nor SequenceExamples, as guessed from their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadType {
    /// TensorBoard's `Event`.
    Event,
    /// TensorFlow Ranking's `ExampleListWithContext`.
    ExampleListWithContext,
    /// A protobuf message of another type.
    Message,
    /// Objects and lists in JSON.
    Json,
    /// A text in UTF-8 without control characters except for tabs and line ends.
    Text,
    /// Other bytes.
    Bytes,
}

impl PayloadType {
    /// Returns the name in JSON: `event`, `example_list_with_context`, `message`, `json`, `text` or `bytes`.
    pub fn name(self) -> &'static str {
        match self {
            PayloadType::Event => "event",
            PayloadType::ExampleListWithContext => "example_list_with_context",
            PayloadType::Message => "message",
            PayloadType::Json => "json",
            PayloadType::Text => "text",
            PayloadType::Bytes => "bytes",
        }
    }

    /// Returns what payloads of the type are, for people.
    pub fn description(self) -> &'static str {
        match self {
            PayloadType::Event => "TensorBoard events",
            PayloadType::ExampleListWithContext => "ExampleListWithContext",
            PayloadType::Message => "protobuf messages of an unknown type",
            PayloadType::Json => "JSON",
            PayloadType::Text => "text",
            PayloadType::Bytes => "bytes",
        }
    }

    /// Returns true for messages.
    pub(crate) fn is_message(self) -> bool {
        matches!(self, PayloadType::Event | PayloadType::ExampleListWithContext | PayloadType::Message)
    }

    /// Returns the name of a field of messages of the type, if it is known.
    pub(crate) fn field_name(self, number: u32) -> Option<&'static str> {
        self.known()?.field(number).map(|(name, _)| name)
    }

    fn known(self) -> Option<&'static KnownType> {
        match self {
            PayloadType::Event => Some(&EVENT),
            PayloadType::ExampleListWithContext => Some(&EXAMPLES_WITH_CONTEXT),
            _ => None,
        }
    }
}

/// The type of a value of a field. Types of length-delimited values are guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    /// A varint.
    Varint,
    /// Four bytes.
    Fixed32,
    /// Eight bytes.
    Fixed64,
    /// A length-delimited text.
    Text,
    /// A length-delimited message.
    Message,
    /// Other length-delimited bytes.
    Bytes,
}

impl ValueType {
    /// Returns the name of the type: `varint`, `fixed32`, `fixed64`, `string`, `message` or `bytes`.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::Varint => "varint",
            ValueType::Fixed32 => "fixed32",
            ValueType::Fixed64 => "fixed64",
            ValueType::Text => "string",
            ValueType::Message => "message",
            ValueType::Bytes => "bytes",
        }
    }

    /// Returns the name of the wire type: `varint`, `fixed32`, `fixed64` or `len`.
    pub fn wire_type(self) -> &'static str {
        match self {
            ValueType::Text | ValueType::Message | ValueType::Bytes => "len",
            other => other.name(),
        }
    }

    /// All types, in their order.
    pub(crate) const ALL: [ValueType; 6] = [
        ValueType::Varint,
        ValueType::Fixed32,
        ValueType::Fixed64,
        ValueType::Text,
        ValueType::Message,
        ValueType::Bytes,
    ];

    pub(crate) fn of(value: RawValue<'_>) -> ValueType {
        match value {
            RawValue::Varint(_) => ValueType::Varint,
            RawValue::Fixed32(_) => ValueType::Fixed32,
            RawValue::Fixed64(_) => ValueType::Fixed64,
            RawValue::Len(value) => match delimited(value, 0, &mut { MAX_FIELDS }) {
                ProtoValue::Text(_) => ValueType::Text,
                ProtoValue::Message(_) => ValueType::Message,
                _ => ValueType::Bytes,
            },
        }
    }
}

/// A top-level field of the payloads of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSummary {
    /// Number of records that have the field.
    pub records: u64,
    /// Types of its values.
    pub types: BTreeSet<ValueType>,
    /// Smallest and largest number of values in a record that has the field.
    pub values: (u64, u64),
}

/// The type of some payloads, and their top-level fields.
///
/// ```
/// use tfseek_tools::fields::{PayloadSummary, PayloadType};
/// let mut seen = PayloadSummary::default();
/// seen.add(b"\x08\x05\x12\x03cat");
/// seen.add(b"\x08\x07");
/// assert_eq!((seen.payload_type(), seen.records()), (Some(PayloadType::Message), 2));
/// assert_eq!(seen.fields().map(|(number, _, field)| (number, field.records)).collect::<Vec<_>>(), [(1, 2), (2, 1)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PayloadSummary {
    types: TypeCounts,
    fields: BTreeMap<u32, FieldSummary>,
}

impl PayloadSummary {
    /// Adds a payload.
    pub fn add(&mut self, payload: &[u8]) {
        let Some(numbers) = self.types.add(payload) else { return };
        for (&number, &n) in &numbers {
            let empty = || FieldSummary { records: 0, types: BTreeSet::new(), values: (n, n) };
            let field = self.fields.entry(number).or_insert_with(empty);
            field.records += 1;
            field.values = (field.values.0.min(n), field.values.1.max(n));
        }
        let mut raw = RawFields::new(payload);
        while let Some(Some((number, value))) = raw.next() {
            if let Some(field) = self.fields.get_mut(&number) {
                field.types.insert(ValueType::of(value));
            }
        }
    }

    /// Returns the number of payloads.
    pub fn records(&self) -> u64 {
        self.types.records
    }

    /// Returns the type that all payloads have, except for empty ones. `None` if there are no others.
    pub fn payload_type(&self) -> Option<PayloadType> {
        self.types.payload_type()
    }

    /// Returns the fields with their numbers, in ascending order, and their names if they are known. There
    /// are none if the payloads are no messages.
    pub fn fields(&self) -> impl Iterator<Item = (u32, Option<&'static str>, &FieldSummary)> {
        let messages = self.payload_type().filter(|payload_type| payload_type.is_message());
        let fields = self.fields.iter().filter(move |_| messages.is_some());
        fields.map(move |(&number, field)| {
            (number, messages.and_then(|payload_type| payload_type.field_name(number)), field)
        })
    }
}

/// Numbers of payloads, of payloads that are not empty, and of each type's payloads. A payload counts for all
/// types that it may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeCounts {
    pub(crate) records: u64,
    pub(crate) nonempty: u64,
    pub(crate) events: u64,
    pub(crate) lists: u64,
    pub(crate) messages: u64,
    pub(crate) texts: u64,
    pub(crate) jsons: u64,
}

impl TypeCounts {
    /// Adds a payload. Returns the numbers of its fields, each with the number of its values, if it is a
    /// message.
    pub(crate) fn add(&mut self, payload: &[u8]) -> Option<BTreeMap<u32, u64>> {
        self.records += 1;
        if payload.is_empty() {
            return None;
        }
        self.nonempty += 1;
        // A type counts only while all payloads have it, so a later one need not be tested then.
        let is_open = |n: u64| n + 1 == self.nonempty;
        let (json, known) = (is_open(self.jsons), is_open(self.events) || is_open(self.lists));
        if let Some(text) = text(payload) {
            self.texts += 1;
            self.jsons += u64::from(json && is_json(text));
        }
        let numbers = field_numbers(payload)?;
        self.messages += 1;
        match known.then(|| KnownType::of(payload)).flatten() {
            Some(known) if std::ptr::eq(known, &EVENT) => self.events += 1,
            Some(_) => self.lists += 1,
            None => {}
        }
        Some(numbers)
    }

    pub(crate) fn merge(&mut self, other: &TypeCounts) {
        let TypeCounts { records, nonempty, events, lists, messages, texts, jsons } = self;
        let own = [records, nonempty, events, lists, messages, texts, jsons];
        own.into_iter().zip(other.to_array()).for_each(|(own, n)| *own += n);
    }

    pub(crate) fn to_array(&self) -> [u64; 7] {
        let TypeCounts { records, nonempty, events, lists, messages, texts, jsons } = *self;
        [records, nonempty, events, lists, messages, texts, jsons]
    }

    pub(crate) fn from_array(counts: [u64; 7]) -> TypeCounts {
        let [records, nonempty, events, lists, messages, texts, jsons] = counts;
        TypeCounts { records, nonempty, events, lists, messages, texts, jsons }
    }

    /// Returns the type that all payloads have, except for empty ones. `None` if there are no others.
    pub(crate) fn payload_type(&self) -> Option<PayloadType> {
        // A message may be a text by accident, so all payloads decide.
        let types = [
            (self.events, PayloadType::Event),
            (self.lists, PayloadType::ExampleListWithContext),
            (self.jsons, PayloadType::Json),
            (self.texts, PayloadType::Text),
            (self.messages, PayloadType::Message),
            (self.nonempty, PayloadType::Bytes),
        ];
        let all = types.into_iter().find(|(payloads, _)| *payloads == self.nonempty);
        all.map(|(_, payload_type)| payload_type).filter(|_| self.nonempty > 0)
    }
}

/// Returns the numbers of the fields of a payload, each with the number of its values, or `None` if it is no
/// message.
fn field_numbers(payload: &[u8]) -> Option<BTreeMap<u32, u64>> {
    let mut numbers: BTreeMap<u32, u64> = BTreeMap::new();
    let mut raw = RawFields::new(payload);
    while let Some((number, _)) = raw.next()? {
        *numbers.entry(number).or_default() += 1;
        if numbers.len() > MAX_NUMBERS {
            return None;
        }
    }
    Some(numbers)
}

/// Returns true for an object or a list in JSON.
fn is_json(text: &str) -> bool {
    text.len() <= MAX_JSON
        && text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde_json::Value>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::ExampleBuilder;

    fn summary<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> PayloadSummary {
        let mut seen = PayloadSummary::default();
        payloads.into_iter().for_each(|payload| seen.add(payload));
        seen
    }

    #[test]
    fn types_of_payloads() {
        let event = &b"\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0dbrain.Event:2"[..];
        let example = ExampleBuilder::new().int64("label", [3]).encode().unwrap();
        let list = [&[0x0a, example.len() as u8], &example[..]].concat();
        let table: &[(&[&[u8]], Option<PayloadType>)] = &[
            (&[], None),
            (&[b""], None),
            (&[event, b"", event], Some(PayloadType::Event)),
            (&[&list, &list], Some(PayloadType::ExampleListWithContext)),
            (&[&list, event], Some(PayloadType::Message)),
            (&[b"{\"a\": 1}", b"[1]"], Some(PayloadType::Json)),
            (&[b"{\"a\": 1}", b"{a}"], Some(PayloadType::Text)),
            (&[b"1"], Some(PayloadType::Text)),
            // The first one is a text too: a line end, the length `!`, and letters.
            (&[b"\x0a!abcdefghijklmnopqrstuvwxyzabcdefg", b"\x0a\x01a"], Some(PayloadType::Message)),
            (&[b"\x0a!abcdefghijklmnopqrstuvwxyzabcdefg"], Some(PayloadType::Text)),
            (&[b"\xff\xff"], Some(PayloadType::Bytes)),
            (&[b"text", b"\x08\x05"], Some(PayloadType::Bytes)),
        ];
        for (payloads, want) in table {
            assert_eq!(summary(payloads.iter().copied()).payload_type(), *want, "{payloads:?}");
        }
    }

    #[test]
    fn top_level_fields() {
        let seen = summary([
            &b"\x08\x05\x12\x03cat\x12\x02\xff\xff"[..],
            b"",
            b"\x12\x02\x08\x01",
            b"\x1d\0\0\0\0\x21\0\0\0\0\0\0\0\0",
        ]);
        let rows = seen.fields().map(|(number, name, field)| {
            let types: Vec<_> = field.types.iter().map(|t| (t.name(), t.wire_type())).collect();
            (number, name, field.records, types, field.values)
        });
        let want = [
            (1, None, 1, vec![("varint", "varint")], (1, 1)),
            (2, None, 2, vec![("string", "len"), ("message", "len"), ("bytes", "len")], (1, 2)),
            (3, None, 1, vec![("fixed32", "fixed32")], (1, 1)),
            (4, None, 1, vec![("fixed64", "fixed64")], (1, 1)),
        ];
        assert!(rows.eq(want));
        assert_eq!((seen.records(), summary([&b"text"[..]]).fields().count()), (4, 0));
    }

    #[test]
    fn the_number_of_fields_is_bounded() {
        let payload = |n: u32| -> Vec<u8> {
            // Varints of tags, each in two or more bytes, with the value 0.
            (100..100 + n).flat_map(|number| [(number << 3) as u8 | 0x80, (number >> 4) as u8, 0]).collect()
        };
        assert_eq!(summary([&payload(1000)[..]]).fields().count(), 1000);
        assert_eq!(summary([&payload(1001)[..]]).payload_type(), Some(PayloadType::Bytes));
    }
}
