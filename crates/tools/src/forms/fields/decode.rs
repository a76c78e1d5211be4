//! The fields of a payload with all messages in it.

use super::known::{EXAMPLES_WITH_CONTEXT, KnownType};
use super::raw::{RawFields, RawValue};

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtoField<'a> {
    /// Number of the field.
    pub number: u32,
    /// Name of the field, if the type of the message is known.
    pub name: Option<&'static str>,
    /// Value of the field.
    pub value: ProtoValue<'a>,
}

/// A value on the wire. Except for named fields, the type of a length-delimited value is a guess.
#[derive(Clone, Debug, PartialEq)]
pub enum ProtoValue<'a> {
    /// A varint: an integer, a bool or an enum value.
    Varint(u64),
    /// Four bytes: a float or an integer.
    Fixed32(u32),
    /// Eight bytes: a double or an integer.
    Fixed64(u64),
    /// A string in UTF-8 without control characters except for tabs and line ends.
    Text(&'a str),
    /// A message.
    Message(Vec<ProtoField<'a>>),
    /// Other bytes.
    Bytes(&'a [u8]),
}

/// Maximum depth of messages that are decoded. Deeper ones are bytes.
const MAX_DEPTH: usize = 8;
/// Maximum number of fields of a payload, so that a payload of empty fields needs little memory.
pub(super) const MAX_FIELDS: usize = 10_000;

/// Decodes a payload as a message. Returns `None` if it is not one, is empty, or has more than ten thousand
/// fields.
///
/// ```
/// use tfseek_tools::fields::{ProtoValue, decode};
/// let fields = decode(b"\x08\x05\x12\x03cat").unwrap();
/// assert_eq!((fields[0].number, &fields[0].value), (1, &ProtoValue::Varint(5)));
/// assert_eq!((fields[1].number, &fields[1].value), (2, &ProtoValue::Text("cat")));
/// ```
pub fn decode(payload: &[u8]) -> Option<Vec<ProtoField<'_>>> {
    let mut left = MAX_FIELDS;
    let mut fields = message(payload, 0, &mut left)?;
    if let Some(known) = KnownType::of(payload) {
        name(&mut fields, known);
    }
    Some(fields)
}

/// Returns the Examples of TensorFlow Ranking's `ExampleListWithContext` with the names of their fields,
/// `examples` and `context`, in their order. `None` for other payloads.
pub fn examples(payload: &[u8]) -> Option<Vec<(&'static str, &[u8])>> {
    KnownType::of(payload).filter(|known| std::ptr::eq(*known, &EXAMPLES_WITH_CONTEXT))?;
    let mut found = Vec::new();
    let mut raw = RawFields::new(payload);
    while let Some(Some((number, RawValue::Len(example)))) = raw.next() {
        found.push((EXAMPLES_WITH_CONTEXT.field(number)?.0, example));
    }
    Some(found)
}

fn message<'a>(bytes: &'a [u8], depth: usize, left: &mut usize) -> Option<Vec<ProtoField<'a>>> {
    let mut fields = Vec::new();
    let mut raw = RawFields::new(bytes);
    while let Some((number, value)) = raw.next()? {
        *left = left.checked_sub(1)?;
        let value = match value {
            RawValue::Varint(value) => ProtoValue::Varint(value),
            RawValue::Fixed64(bits) => ProtoValue::Fixed64(bits),
            RawValue::Fixed32(bits) => ProtoValue::Fixed32(bits),
            RawValue::Len(value) => delimited(value, depth, left),
        };
        fields.push(ProtoField { number, name: None, value });
    }
    (!fields.is_empty()).then_some(fields)
}

/// Guesses the type of a length-delimited value. At most `left` fields of messages in it are decoded.
pub(super) fn delimited<'a>(value: &'a [u8], depth: usize, left: &mut usize) -> ProtoValue<'a> {
    if let Some(text) = text(value) {
        return ProtoValue::Text(text);
    }
    let before = *left;
    match (depth < MAX_DEPTH).then(|| message(value, depth + 1, left)).flatten() {
        Some(fields) => ProtoValue::Message(fields),
        None => {
            *left = before;
            ProtoValue::Bytes(value)
        }
    }
}

/// Returns the bytes as text if they are UTF-8 without control characters other than tabs and line ends.
pub fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r')).then_some(text)
}

fn name(fields: &mut [ProtoField<'_>], known: &'static KnownType) {
    for field in fields {
        let Some((name_of, inner)) = known.field(field.number) else { continue };
        field.name = Some(name_of);
        if let (Some(inner), ProtoValue::Message(fields)) = (inner, &mut field.value) {
            name(fields, inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::ExampleBuilder;

    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut len = value.len();
        while len > 127 {
            out.push(len as u8 | 128);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend_from_slice(value);
        out
    }

    fn show(fields: &[ProtoField<'_>]) -> String {
        let parts = fields.iter().map(|field| {
            let name = field.name.map_or(field.number.to_string(), str::to_owned);
            match &field.value {
                ProtoValue::Message(fields) => format!("{name}({})", show(fields)),
                ProtoValue::Text(text) => format!("{name}={text:?}"),
                other => format!("{name}={other:?}"),
            }
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_of_all_types() {
        let bytes = [
            &[0x08, 0xac, 0x02][..],
            &[0x15, 0, 0, 0x80, 0x3f],
            &[0x19, 1, 0, 0, 0, 0, 0, 0, 0],
            &field(4, b"text\n"),
            &field(5, &field(6, &[0xff, 1])),
            &field(7, b""),
        ]
        .concat();
        let want =
            "1=Varint(300) 2=Fixed32(1065353216) 3=Fixed64(1) 4=\"text\\n\" 5(6=Bytes([255, 1])) 7=\"\"";
        assert_eq!(show(&decode(&bytes).unwrap()), want);
        for end in 1..bytes.len() {
            // A truncated payload is no message, or ends after a field.
            if let Some(fields) = decode(&bytes[..end]) {
                assert!([3, 8, 17, 24].contains(&end) || end + 2 == bytes.len(), "{end}: {fields:?}");
            }
        }
        assert!(
            [&b""[..], b"\0", b"\x0b", b"\x07", b"plain text"].iter().all(|bytes| decode(bytes).is_none())
        );
    }

    #[test]
    fn events_and_lists_of_examples_have_names() {
        let time = [&[0x09][..], &1.5e9f64.to_le_bytes()].concat();
        let value = [field(1, b"loss"), vec![0x15, 0, 0, 0, 0x3f]].concat();
        let event = [time, vec![0x10, 7], field(5, &field(1, &value))].concat();
        let want = format!(
            "wall_time=Fixed64({}) step=Varint(7) summary(value(tag=\"loss\" simple_value=Fixed32({})))",
            1.5e9f64.to_bits(),
            0.5f32.to_bits()
        );
        assert_eq!(show(&decode(&event).unwrap()), want);
        let example = ExampleBuilder::new().int64("label", [3]).encode().unwrap();
        let list = [field(1, &example), field(1, &example), field(2, &example)].concat();
        let found = examples(&list).unwrap();
        assert_eq!(found, [("examples", &example[..]), ("examples", &example), ("context", &example)]);
        assert!(examples(&event).is_none() && examples(&field(3, &example)).is_none());
        let names: Vec<_> = decode(&list).unwrap().into_iter().map(|field| field.name).collect();
        assert_eq!(names, [Some("examples"), Some("examples"), Some("context")]);
        assert!(decode(&field(3, &example)).unwrap()[0].name.is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let deep = (0..100).fold(vec![0x08, 1], |inner, _| field(1, &inner));
        let mut fields = decode(&deep).unwrap();
        let mut depth = 0;
        while let ProtoValue::Message(inner) = fields.remove(0).value {
            (fields, depth) = (inner, depth + 1);
        }
        assert_eq!(depth, MAX_DEPTH);
        assert!(decode(&[0x08, 1].repeat(MAX_FIELDS)).is_some());
        assert!(decode(&[0x08, 1].repeat(MAX_FIELDS + 1)).is_none());
    }
}
