//! The fields of a protobuf message of unknown type: numbers, wire types, and what length-delimited fields probably contain.
//!
//! Two types get the names of their fields: TensorBoard's `Event` and TensorFlow Ranking's `ExampleListWithContext`. Sources:
//! `tensorflow/core/util/event.proto`, `tensorflow/core/framework/summary.proto`, `tensorflow_serving/apis/input.proto`.

use tfseek::Example;

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
const MAX_FIELDS: usize = 10_000;

/// Decodes a payload as a message. Returns `None` if it is not one, is empty, or has more than ten thousand fields.
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
    if let Some(names) = known(&fields, payload) {
        name(&mut fields, names);
    }
    Some(fields)
}

fn message<'a>(mut bytes: &'a [u8], depth: usize, left: &mut usize) -> Option<Vec<ProtoField<'a>>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        *left = left.checked_sub(1)?;
        let (number, wire) = tag(&mut bytes)?;
        let value = match wire {
            0 => ProtoValue::Varint(varint(&mut bytes)?),
            1 => ProtoValue::Fixed64(u64::from_le_bytes(take(&mut bytes)?)),
            2 => {
                let len = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(len)?;
                bytes = rest;
                delimited(value, depth, left)
            }
            5 => ProtoValue::Fixed32(u32::from_le_bytes(take(&mut bytes)?)),
            // Groups are deprecated, and no type in TFRecord files is known to have one.
            _ => return None,
        };
        fields.push(ProtoField { number, name: None, value });
    }
    (!fields.is_empty()).then_some(fields)
}

fn delimited<'a>(value: &'a [u8], depth: usize, left: &mut usize) -> ProtoValue<'a> {
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

fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r')).then_some(text)
}

/// Takes the number and the wire type of a field.
fn tag(bytes: &mut &[u8]) -> Option<(u32, u32)> {
    let tag = u32::try_from(varint(bytes)?).ok()?;
    (tag >> 3 > 0).then_some((tag >> 3, tag & 7))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for k in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if k == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*value)
}

/// Names of the fields of a type by their numbers, and the types of those that are messages.
type Names = &'static [(u32, &'static str, Option<&'static KnownType>)];

struct KnownType(Names);

static EVENT: KnownType = KnownType(&[
    (1, "wall_time", None),
    (2, "step", None),
    (3, "file_version", None),
    (4, "graph_def", None),
    (5, "summary", Some(&SUMMARY)),
    (6, "log_message", None),
    (7, "session_log", None),
    (8, "tagged_run_metadata", None),
    (9, "meta_graph_def", None),
    (10, "source_metadata", None),
]);

static SUMMARY: KnownType = KnownType(&[(1, "value", Some(&SUMMARY_VALUE))]);

static SUMMARY_VALUE: KnownType = KnownType(&[
    (1, "tag", None),
    (2, "simple_value", None),
    (3, "obsolete_old_style_histogram", None),
    (4, "image", Some(&IMAGE)),
    (5, "histo", Some(&HISTOGRAM)),
    (6, "audio", None),
    (7, "node_name", None),
    (8, "tensor", None),
    (9, "metadata", None),
]);

static IMAGE: KnownType = KnownType(&[
    (1, "height", None),
    (2, "width", None),
    (3, "colorspace", None),
    (4, "encoded_image_string", None),
]);

static HISTOGRAM: KnownType = KnownType(&[
    (1, "min", None),
    (2, "max", None),
    (3, "num", None),
    (4, "sum", None),
    (5, "sum_squares", None),
    (6, "bucket_limit", None),
    (7, "bucket", None),
]);

static EXAMPLES_WITH_CONTEXT: KnownType = KnownType(&[(1, "examples", None), (2, "context", None)]);

/// Returns the type of a message if it is one of the known ones.
fn known(fields: &[ProtoField<'_>], payload: &[u8]) -> Option<&'static KnownType> {
    let is_time = |value: &ProtoValue<'_>| {
        // Seconds since 1970, before the year 5138.
        matches!(value, ProtoValue::Fixed64(bits) if (0.0..1e11).contains(&f64::from_bits(*bits)))
    };
    let in_event = |field: &ProtoField<'_>| match field.number {
        1 => is_time(&field.value),
        2 => matches!(field.value, ProtoValue::Varint(_)),
        3..=10 => {
            !matches!(field.value, ProtoValue::Varint(_) | ProtoValue::Fixed32(_) | ProtoValue::Fixed64(_))
        }
        _ => false,
    };
    if fields.first().is_some_and(|field| field.number == 1) && fields.iter().all(in_event) {
        return Some(&EVENT);
    }
    are_examples(payload).then_some(&EXAMPLES_WITH_CONTEXT)
}

/// Returns true if all fields of a message are Examples with the numbers 1 and 2.
fn are_examples(mut bytes: &[u8]) -> bool {
    let mut example = || -> Option<bool> {
        let (number, wire) = tag(&mut bytes)?;
        let len = usize::try_from(varint(&mut bytes)?).ok()?;
        let (value, rest) = bytes.split_at_checked(len)?;
        bytes = rest;
        let example = Example::new(value);
        let is_one = wire == 2 && number <= 2 && example.has_features() && example.validate().is_ok();
        is_one.then_some(bytes.is_empty())
    };
    loop {
        match example() {
            Some(true) => return true,
            Some(false) => {}
            None => return false,
        }
    }
}

fn name(fields: &mut [ProtoField<'_>], known: &'static KnownType) {
    for field in fields {
        let Some(&(_, name_of, inner)) = known.0.iter().find(|(number, ..)| *number == field.number) else {
            continue;
        };
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
