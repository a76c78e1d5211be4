//! Features and byte strings as JSON for the page.

use crate::media::{decoded, is_one_array, payload_type};
use serde_json::{Map, Value, json};
use tfseek::filter::image_size;
use tfseek::{Feature, FeatureList};
use tfseek_tools::fields::{self, ProtoField, ProtoValue};
use tfseek_tools::record_json::non_finite;

/// The largest integer up to which JavaScript's numbers are exact.
const EXACT: u64 = 1 << 53;
/// Bytes in hex of a byte string.
const HEX: usize = 32;

/// Number of values of a step.
pub(crate) const STEP_VALUES: usize = 64;

/// Limits on the values of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueLimits {
    /// Number of features and of feature lists.
    pub(crate) features: usize,
    /// Values of a feature.
    pub(crate) values: usize,
    /// Steps of a feature list.
    pub(crate) steps: usize,
    /// Characters of a text.
    pub(crate) text: usize,
    /// Values of the record.
    pub(crate) total: usize,
    /// Bytes of the texts of the record.
    pub(crate) total_text: usize,
}

/// Limits for a card, or a row of a table.
pub(crate) const SUMMARY: ValueLimits =
    ValueLimits { features: 200, values: 64, steps: 1, text: 200, total: 4000, total_text: 20_000 };

/// Limits for the page of a record.
pub(crate) const RECORD: ValueLimits = ValueLimits {
    features: 10_000,
    values: 4096,
    steps: 1000,
    text: 20_000,
    total: 100_000,
    total_text: 4_000_000,
};

/// A writer of values within limits.
pub(crate) struct ValueWriter {
    limits: ValueLimits,
    values: usize,
    text: usize,
}

impl ValueWriter {
    pub(crate) fn new(limits: ValueLimits) -> ValueWriter {
        ValueWriter { limits, values: limits.total, text: limits.total_text }
    }

    /// Returns the values of a feature from number `from` on.
    pub(crate) fn feature(&mut self, feature: Feature<'_>, from: usize) -> Value {
        self.at_most(feature, from, self.limits.values)
    }

    fn at_most(&mut self, feature: Feature<'_>, from: usize, values: usize) -> Value {
        let n = feature.len();
        let taken = values.min(self.values).min(n.saturating_sub(from));
        self.values -= taken;
        match feature {
            Feature::None => json!({ "n": 0 }),
            Feature::Int64(list) => {
                json!({ "int64": list.iter().skip(from).take(taken).map(int64).collect::<Vec<_>>(), "n": n })
            }
            Feature::Float(list) => {
                json!({ "float": list.iter().skip(from).take(taken).map(float).collect::<Vec<_>>(), "n": n })
            }
            Feature::Bytes(list) if from == 0 && is_one_array(list) => {
                let all: Vec<u8> = list.iter().flatten().copied().collect();
                json!({ "bytes": [{ "bytes": n, "hex": hex(&all) }], "n": 1, "joined": n })
            }
            Feature::Bytes(list) => {
                let values: Vec<_> =
                    list.iter().skip(from).take(taken).map(|bytes| self.bytes(bytes)).collect();
                json!({ "bytes": values, "n": n })
            }
        }
    }

    pub(crate) fn list(&mut self, list: FeatureList<'_>) -> Value {
        let kind = list.iter().find_map(Feature::kind).map(|kind| kind.list_name());
        json!({ "kind": kind, "steps": list.len(), "first": self.steps(list.iter()) })
    }

    /// Returns the first of some steps.
    pub(crate) fn steps<'s>(&mut self, steps: impl Iterator<Item = Feature<'s>>) -> Vec<Value> {
        let mut first = Vec::new();
        for step in steps.take(self.limits.steps) {
            if self.values == 0 {
                break;
            }
            // A step without values counts too, so that a million of them do not make a long answer.
            self.values -= 1;
            first.push(self.at_most(step, 0, STEP_VALUES));
        }
        first
    }

    /// Returns a byte string: text, or the type of its content, or its first bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Value {
        let bytes = &*decoded(bytes);
        // Only the start of a long text is read.
        let limit = self.limits.text.min(self.text);
        let start = start_of_text(bytes, limit * 4);
        if let Some(text) = start.and_then(fields::text) {
            let shown: String = text.chars().take(limit).collect();
            self.text -= shown.len().min(self.text);
            if shown.len() == bytes.len() {
                return Value::from(shown);
            }
            return json!({ "bytes": bytes.len(), "text": shown });
        }
        match payload_type(bytes) {
            Some(name) => {
                let mut object = json!({ "bytes": bytes.len(), "type": name });
                if name.starts_with("image/")
                    && let Some((width, height)) = image_size(bytes)
                {
                    insert(&mut object, "width", width);
                    insert(&mut object, "height", height);
                }
                object
            }
            None => json!({ "bytes": bytes.len(), "hex": hex(bytes) }),
        }
    }

    /// Returns the fields of a message of unknown type.
    pub(crate) fn fields(&mut self, fields: &[ProtoField<'_>]) -> Value {
        let mut list = Vec::new();
        for field in fields {
            if self.values == 0 {
                break;
            }
            self.values -= 1;
            let (kind, value) = match &field.value {
                ProtoValue::Varint(value) => ("varint", unsigned(*value)),
                ProtoValue::Fixed32(bits) => ("fixed32", float(f32::from_bits(*bits))),
                ProtoValue::Fixed64(bits) => ("fixed64", double(f64::from_bits(*bits))),
                ProtoValue::Text(text) => ("text", self.bytes(text.as_bytes())),
                ProtoValue::Message(fields) => ("message", self.fields(fields)),
                ProtoValue::Bytes(bytes) => ("bytes", self.bytes(bytes)),
            };
            list.push(json!({ "number": field.number, "name": field.name, "type": kind, "value": value }));
        }
        Value::from(list)
    }
}

/// Returns the part of `bytes` whose characters are tested to be text: all, or about the first `limit` bytes
/// up to a whole character.
fn start_of_text(bytes: &[u8], limit: usize) -> Option<&[u8]> {
    let limit = limit.max(64);
    if bytes.len() <= limit {
        return Some(bytes);
    }
    let start = bytes.get(..limit)?;
    match std::str::from_utf8(start) {
        Ok(_) => Some(start),
        // A character that the limit cuts.
        Err(e) if e.error_len().is_none() => start.get(..e.valid_up_to()),
        Err(_) => None,
    }
}

fn int64(value: i64) -> Value {
    if value.unsigned_abs() <= EXACT { Value::from(value) } else { Value::from(value.to_string()) }
}

fn unsigned(value: u64) -> Value {
    if value <= EXACT { Value::from(value) } else { Value::from(value.to_string()) }
}

/// Returns the shortest number that reads back as the same float.
fn float(value: f32) -> Value {
    match non_finite(value) {
        Some(name) => Value::from(name),
        None => Value::from(value.to_string().parse::<f64>().unwrap_or(value.into())),
    }
}

fn double(value: f64) -> Value {
    if value.is_finite() { Value::from(value) } else { float(value as f32) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(HEX).map(|byte| format!("{byte:02x}")).collect()
}

/// Adds a member to an object.
pub(crate) fn insert(object: &mut Value, name: &str, value: impl Into<Value>) {
    object[name] = value.into();
}

/// Returns an object of the first `n` entries of a map, and the number of the others.
pub(crate) fn object<'a, V>(
    map: impl ExactSizeIterator<Item = (&'a str, V)>,
    n: usize,
    mut value: impl FnMut(V) -> Value,
) -> (Map<String, Value>, usize) {
    let left_out = map.len().saturating_sub(n);
    (map.take(n).map(|(name, item)| (name.to_owned(), value(item))).collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings_are_text_or_have_a_type() {
        let mut writer = ValueWriter::new(SUMMARY);
        assert_eq!(writer.bytes(b"cat"), json!("cat"));
        let long = "\u{e9}".repeat(300);
        assert_eq!(writer.bytes(long.as_bytes()), json!({"bytes": 600, "text": "\u{e9}".repeat(200)}));
        assert_eq!(writer.bytes(&[0xff, 0]), json!({"bytes": 2, "hex": "ff00"}));
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";
        let expected = json!({"bytes": 29, "type": "image/png", "width": 320, "height": 240});
        assert_eq!(writer.bytes(png), expected);
    }

    #[test]
    fn byte_strings_of_one_byte_are_an_array() {
        let payload = tfseek::ExampleBuilder::new().bytes("a", (0..9_u8).map(|i| [i])).bytes("b", ["x"; 9]);
        let payload = payload.encode().unwrap();
        let example = tfseek::Example::new(&payload);
        let value = |name| ValueWriter::new(SUMMARY).feature(example.get(name).unwrap().unwrap(), 0);
        assert_eq!(
            value("a"),
            json!({"bytes": [{"bytes": 9, "hex": "000102030405060708"}], "n": 1, "joined": 9})
        );
        assert_eq!(value("b")["n"], 9);
    }

    #[test]
    fn numbers_that_json_or_javascript_lack_are_strings() {
        let numbers =
            [int64(1 << 53), int64(i64::MIN), float(0.1), float(f32::NAN), double(f64::NEG_INFINITY)];
        assert_eq!(
            numbers,
            [json!(1u64 << 53), json!("-9223372036854775808"), json!(0.1), json!("NaN"), json!("-Infinity")]
        );
    }
}
