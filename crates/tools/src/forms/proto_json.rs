//! Records in protobuf's JSON mapping.
//!
//! [`print()`] equals Python's `MessageToJson` with its defaults, byte for byte, except that keys are sorted
//! here and unordered there.

use super::content::Content;
use super::record_json::{Base64, MapJson, non_finite};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};
use std::collections::BTreeMap;
use std::io::{self, Write};
use tfseek::{Example, Feature, FeatureList, SequenceExample};

/// Prints a record in lines, with a line end after it.
///
/// # Errors
/// Errors of `out`.
pub fn print(out: &mut impl Write, record: &ProtoJson<'_>) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(&mut *out, PythonFormatter(PrettyFormatter::new()));
    record.serialize(&mut json).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// A record in protobuf's JSON mapping. Serialization does not collect lists first.
#[derive(Debug)]
pub struct ProtoJson<'a> {
    /// The payload.
    pub payload: &'a [u8],
    /// The decoded payload.
    pub content: &'a Content<'a>,
}

impl Serialize for ProtoJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A member that is set but empty is printed; a member that is not set is omitted.
        let has_features = |empty: bool| !empty || Example::new(self.payload).has_features();
        let mut members = Vec::new();
        match self.content {
            // A payload of unknown type has only its bytes.
            Content::Raw => return Base64(self.payload).serialize(s),
            Content::Example(features) => {
                let has_features = has_features(features.is_empty());
                members.extend(has_features.then_some(("features", MapMessage::Features(features))));
            }
            Content::Sequence(context, lists) => {
                let has_context = has_features(context.is_empty());
                members.extend(has_context.then_some(("context", MapMessage::Features(context))));
                let has_lists = !lists.is_empty() || SequenceExample::new(self.payload).has_feature_lists();
                members.extend(has_lists.then_some(("featureLists", MapMessage::Lists(lists))));
            }
        }
        s.collect_map(members)
    }
}

/// A message whose only member is a map: `Features` or `FeatureLists`.
enum MapMessage<'a> {
    Features(&'a BTreeMap<&'a str, Feature<'a>>),
    Lists(&'a BTreeMap<&'a str, FeatureList<'a>>),
}

impl Serialize for MapMessage<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            MapMessage::Features(map) => member(s, "feature", map.is_empty(), &MapJson(map, FeatureMessage)),
            MapMessage::Lists(map) => {
                member(s, "featureList", map.is_empty(), &MapJson(map, FeatureListMessage))
            }
        }
    }
}

/// Serializes a message with one repeated member, which is omitted if it is empty.
fn member<S: Serializer>(s: S, name: &str, empty: bool, values: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut message = s.serialize_map(None)?;
    if !empty {
        message.serialize_entry(name, values)?;
    }
    message.end()
}

struct FeatureListMessage<'a>(FeatureList<'a>);

impl Serialize for FeatureListMessage<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        member(s, "feature", self.0.iter().len() == 0, &IterSeq(|| self.0.iter().map(FeatureMessage)))
    }
}

/// A sequence whose iterator is created each time it is serialized.
struct IterSeq<F>(F);

impl<T: Serialize, I: Iterator<Item = T>, F: Fn() -> I> Serialize for IterSeq<F> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq((self.0)())
    }
}

/// A feature: an object with the list of its kind, or an empty object.
struct FeatureMessage<'a>(Feature<'a>);

impl Serialize for FeatureMessage<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let name = match self.0 {
            Feature::None => return s.serialize_map(Some(0))?.end(),
            Feature::Bytes(_) => "bytesList",
            Feature::Float(_) => "floatList",
            Feature::Int64(_) => "int64List",
        };
        s.collect_map([(name, ListMessage(self.0))])
    }
}

/// The list in a feature: an object with the member `value`.
struct ListMessage<'a>(Feature<'a>);

impl Serialize for ListMessage<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let empty = self.0.is_empty();
        match self.0 {
            Feature::None => s.serialize_map(Some(0))?.end(),
            Feature::Bytes(list) => member(s, "value", empty, &IterSeq(|| list.iter().map(Base64))),
            Feature::Float(list) => member(s, "value", empty, &IterSeq(|| list.iter().map(ProtoFloat))),
            Feature::Int64(list) => {
                member(s, "value", empty, &IterSeq(|| list.iter().map(|v| v.to_string())))
            }
        }
    }
}

struct ProtoFloat(f32);

impl Serialize for ProtoFloat {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match non_finite(self.0) {
            Some(name) => s.serialize_str(name),
            None => s.serialize_f64(shortest(self.0)),
        }
    }
}

/// Rounds a float to the fewest digits that read back as the same 32 bits, but at least six, as protobuf
/// does. Some of the smallest floats would need fewer than six.
fn shortest(value: f32) -> f64 {
    let original = f64::from(value);
    (5..17)
        .filter_map(|digits| format!("{original:.digits$e}").parse().ok())
        .find(|&short: &f64| short as f32 == value)
        .unwrap_or(original)
}

/// Writes a number as Python does: below 1e-4 and from 1e16 with an exponent of at least two digits.
fn write_python(w: &mut (impl Write + ?Sized), value: f64) -> io::Result<()> {
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return write!(w, "{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(w, "{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// The layout of Python's `json.dumps(indent=2)`: serde's pretty layout, with Python's numbers and non-ASCII
/// characters escaped.
struct PythonFormatter(PrettyFormatter<'static>);

impl Formatter for PythonFormatter {
    fn write_f64<W: Write + ?Sized>(&mut self, w: &mut W, value: f64) -> io::Result<()> {
        write_python(w, value)
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, w: &mut W, fragment: &str) -> io::Result<()> {
        for c in fragment.chars() {
            match c {
                ' '..='~' => write!(w, "{c}")?,
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(w, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        Ok(())
    }

    fn begin_array<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_array(w)
    }

    fn end_array<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array(w)
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(w, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array_value(w)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object(w)
    }

    fn end_object<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object(w)
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(w, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object_value(w)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object_value(w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f32) -> String {
        let mut text = Vec::new();
        write_python(&mut text, shortest(value)).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// The expected texts are printed by `MessageToJson` of protobuf 7.36.
    #[test]
    fn floats_are_printed_as_by_protobuf() {
        let table: &[(f32, &str)] = &[
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333334"),
            (16_777_216.0, "16777216.0"),
            (2_097_152.0 + 0.25, "2097152.2"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e38, "1e+38"),
            (f32::MAX, "3.4028235e+38"),
            (f32::MIN_POSITIVE, "1.1754944e-38"),
            (1e-45, "1.4013e-45"),
        ];
        for &(value, text) in table {
            assert_eq!(float(value), text);
        }
    }
}
