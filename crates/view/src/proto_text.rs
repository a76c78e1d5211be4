//! Records in protobuf's text format.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use tfseek::Feature;
use tfseek::example::MessageKind;
use tfseek_tools::Content;
use tfseek_tools::fields::{ProtoField, ProtoValue};

/// Largest text in bytes. The rest of a longer one is left out, and the text says so.
const MAX_TEXT: usize = 4 << 20;

/// A text of at most [`MAX_TEXT`] bytes, with indentation.
struct Indented {
    text: String,
    depth: usize,
}

impl Indented {
    fn line(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        if self.text.len() > MAX_TEXT {
            return Err(fmt::Error);
        }
        writeln!(self.text, "{:1$}{line}", "", self.depth * 2)
    }

    fn block(
        &mut self,
        name: fmt::Arguments<'_>,
        content: impl FnOnce(&mut Indented) -> fmt::Result,
    ) -> fmt::Result {
        self.line(format_args!("{name} {{"))?;
        self.depth += 1;
        content(self)?;
        self.depth -= 1;
        self.line(format_args!("}}"))
    }
}

/// Returns the text of a record, which protobuf's parser of the message type accepts unless the text is cut.
/// A payload of another type is written with the numbers of its fields.
pub(crate) fn text(content: &Content<'_>, fields: Option<&[ProtoField<'_>]>) -> String {
    let mut out = Indented { text: String::new(), depth: 0 };
    let written = match content {
        Content::Example(map) => features(&mut out, "features", map),
        Content::Sequence(context, lists) => features(&mut out, "context", context).and_then(|()| {
            if lists.is_empty() {
                return Ok(());
            }
            out.block(format_args!("feature_lists"), |out| {
                lists.iter().try_for_each(|(name, list)| {
                    out.block(format_args!("feature_list"), |out| {
                        out.line(format_args!("key: \"{}\"", Escaped(name.as_bytes())))?;
                        out.block(format_args!("value"), |out| {
                            list.iter().try_for_each(|step| {
                                out.block(format_args!("feature"), |out| feature(out, step))
                            })
                        })
                    })
                })
            })
        }),
        Content::Raw => match fields {
            Some(fields) => unknown(&mut out, fields),
            None => out.line(format_args!("# The payload is not a protobuf message.")),
        },
    };
    finished(out, written)
}

/// Returns the text of an `ExampleListWithContext`: its Examples with the names of their fields.
pub(crate) fn examples(all: &[(&str, &[u8])]) -> String {
    let mut out = Indented { text: String::new(), depth: 0 };
    let written = all.iter().try_for_each(|(name, payload)| {
        let Ok(Content::Example(map)) = Content::decode(payload, MessageKind::Example) else { return Ok(()) };
        out.block(format_args!("{name}"), |out| features(out, "features", &map))
    });
    finished(out, written)
}

fn finished(mut out: Indented, written: fmt::Result) -> String {
    if written.is_err() {
        let _ = writeln!(out.text, "# The rest is left out: the text is longer than {} MB.", MAX_TEXT >> 20);
    }
    out.text
}

fn features(out: &mut Indented, name: &str, map: &BTreeMap<&str, Feature<'_>>) -> fmt::Result {
    if map.is_empty() {
        return Ok(());
    }
    out.block(format_args!("{name}"), |out| {
        map.iter().try_for_each(|(key, value)| {
            out.block(format_args!("feature"), |out| {
                out.line(format_args!("key: \"{}\"", Escaped(key.as_bytes())))?;
                out.block(format_args!("value"), |out| feature(out, *value))
            })
        })
    })
}

fn feature(out: &mut Indented, feature: Feature<'_>) -> fmt::Result {
    match feature {
        Feature::None => Ok(()),
        Feature::Bytes(list) => out.block(format_args!("bytes_list"), |out| {
            list.iter().try_for_each(|value| {
                // Escapes are four times as long.
                let rest = MAX_TEXT.saturating_sub(out.text.len());
                let shown = value.get(..rest).unwrap_or(value);
                out.line(format_args!("value: \"{}\"", Escaped(shown)))?;
                if shown.len() < value.len() { Err(fmt::Error) } else { Ok(()) }
            })
        }),
        Feature::Float(list) => out.block(format_args!("float_list"), |out| {
            list.iter().try_for_each(|value| {
                // Infinities have the same names here.
                if value.is_nan() {
                    return out.line(format_args!("value: nan"));
                }
                out.line(format_args!("value: {value}"))
            })
        }),
        Feature::Int64(list) => out.block(format_args!("int64_list"), |out| {
            list.iter().try_for_each(|value| out.line(format_args!("value: {value}")))
        }),
    }
}

fn unknown(out: &mut Indented, fields: &[ProtoField<'_>]) -> fmt::Result {
    fields.iter().try_for_each(|ProtoField { number, value, .. }| match value {
        ProtoValue::Varint(value) => out.line(format_args!("{number}: {value}")),
        ProtoValue::Fixed32(bits) => out.line(format_args!("{number}: 0x{bits:08x}")),
        ProtoValue::Fixed64(bits) => out.line(format_args!("{number}: 0x{bits:016x}")),
        ProtoValue::Text(text) => out.line(format_args!("{number}: \"{}\"", Escaped(text.as_bytes()))),
        ProtoValue::Bytes(bytes) => out.line(format_args!("{number}: \"{}\"", Escaped(bytes))),
        ProtoValue::Message(fields) => out.block(format_args!("{number}"), |out| unknown(out, fields)),
    })
}

/// The escapes of protobuf's text format: bytes that are not printable ASCII are octal numbers.
struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| match byte {
            b'\n' => f.write_str("\\n"),
            b'\r' => f.write_str("\\r"),
            b'\t' => f.write_str("\\t"),
            b'"' | b'\'' | b'\\' => write!(f, "\\{}", char::from(*byte)),
            b' '..=b'~' => f.write_char(char::from(*byte)),
            _ => write!(f, "\\{byte:03o}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::ExampleBuilder;

    #[test]
    fn examples_are_written_as_protobuf_writes_them() {
        let payload = ExampleBuilder::new()
            .int64("b", [3, -1])
            .float("a", [0.1, f32::INFINITY])
            .bytes("c", [b"\xff\"\n1".as_slice()])
            .encode()
            .unwrap();
        let content = Content::decode(&payload, MessageKind::Example).unwrap();
        let expected = "features {\n  feature {\n    key: \"a\"\n    value {\n      float_list {\n        value: 0.1\n        value: inf\n      \
                        }\n    }\n  }\n  feature {\n    key: \"b\"\n    value {\n      int64_list {\n        value: 3\n        value: -1\n      \
                        }\n    }\n  }\n  feature {\n    key: \"c\"\n    value {\n      bytes_list {\n        value: \"\\377\\\"\\n1\"\n      \
                        }\n    }\n  }\n}\n";
        assert_eq!(text(&content, None), expected);
    }

    #[test]
    fn long_texts_are_cut() {
        let payload = ExampleBuilder::new().bytes("c", [vec![0; 5 << 20]]).encode().unwrap();
        let content = Content::decode(&payload, MessageKind::Example).unwrap();
        let text = text(&content, None);
        assert!(text.len() < 5 * MAX_TEXT && text.ends_with("longer than 4 MB.\n"));
    }
}
