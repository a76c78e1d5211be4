//! Digests of record contents. Equal contents have equal digests, whatever their encoding.
//!
//! A digest is the SHA-256, in lower-case hex, of the following text, which is JSON without spaces:
//!
//! ```text
//! Example          {"features":MAP}
//! SequenceExample  {"context":MAP,"feature_lists":LISTS}
//! MAP              [["NAME","KIND",COUNT,"HASH"],..]              sorted by the keys' bytes
//! LISTS            [["NAME",STEPS,[["KIND",COUNT,"HASH"],..]],..]  sorted by the keys' bytes
//! ```
//!
//! NAME is the key in hex. KIND is `bytes`, `float`, `int64` or `none`. HASH is the SHA-256 of the values: an
//! int64 as 8 bytes, a float as 4 bytes, a byte string as 8 bytes of length followed by its bytes. All
//! numbers are little-endian.

use super::content::{Content, for_each_value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use tfseek::Feature;

/// Returns the digest of a record, or `None` for a record that is neither an Example nor a SequenceExample.
pub fn content(content: &Content<'_>) -> Option<String> {
    // The text has about a hundred bytes for each step and each key, so it is hashed and not collected.
    let mut text = HashedText::default();
    match content {
        Content::Raw => return None,
        Content::Example(features) => {
            text.push("{\"features\":");
            push_map(&mut text, features);
        }
        Content::Sequence(context, lists) => {
            text.push("{\"context\":");
            push_map(&mut text, context);
            text.push(",\"feature_lists\":[");
            for (k, (key, list)) in lists.iter().enumerate() {
                let comma = if k == 0 { "" } else { "," };
                let _ = write!(text, "{comma}[\"{}\",{},[", hex(key.as_bytes()), list.iter().len());
                for (k, step) in list.iter().enumerate() {
                    text.push(if k == 0 { "[" } else { ",[" });
                    push_feature(&mut text, step);
                    text.push("]");
                }
                text.push("]]");
            }
            text.push("]");
        }
    }
    text.push("}");
    Some(hex(&text.0.finalize()))
}

/// The hash of a text.
#[derive(Default)]
struct HashedText(Sha256);

impl HashedText {
    fn push(&mut self, text: &str) {
        self.0.update(text);
    }
}

impl Write for HashedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

fn push_map(text: &mut HashedText, map: &BTreeMap<&str, Feature<'_>>) {
    text.push("[");
    for (k, (key, feature)) in map.iter().enumerate() {
        let comma = if k == 0 { "" } else { "," };
        let _ = write!(text, "{comma}[\"{}\",", hex(key.as_bytes()));
        push_feature(text, *feature);
        text.push("]");
    }
    text.push("]");
}

fn push_feature(text: &mut HashedText, feature: Feature<'_>) {
    let mut hash = Sha256::new();
    for_each_value(feature, |bytes| hash.update(bytes));
    let kind = feature.kind().map_or_else(|| "none", |kind| kind.list_name());
    let _ = write!(text, "\"{kind}\",{},\"{}\"", feature.len(), hex(&hash.finalize()));
}

/// Returns the SHA-256 of `bytes`, in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes in lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::example::MessageKind;
    use tfseek::{ExampleBuilder, SequenceExampleBuilder};

    fn digest(payload: &[u8], kind: MessageKind) -> Option<String> {
        content(&Content::decode(payload, kind).unwrap())
    }

    #[test]
    fn digests_are_those_of_the_documented_text() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let payload = ExampleBuilder::new().int64("a", [1, -1]).bytes("b", ["xy"]).encode().unwrap();
        let ints = sha256(&[1i64.to_le_bytes(), (-1i64).to_le_bytes()].concat());
        let bytes = sha256(b"\x02\0\0\0\0\0\0\0xy");
        let text = format!(r#"{{"features":[["61","int64",2,"{ints}"],["62","bytes",1,"{bytes}"]]}}"#);
        assert_eq!(digest(&payload, MessageKind::Example), Some(sha256(text.as_bytes())));
        let payload = SequenceExampleBuilder::new().encode().unwrap();
        let text = r#"{"context":[],"feature_lists":[]}"#;
        assert_eq!(digest(&payload, MessageKind::SequenceExample), Some(sha256(text.as_bytes())));
        assert_eq!(digest(b"text", MessageKind::Other), None);
    }

    #[test]
    fn the_encoding_does_not_matter() {
        // One feature, `a` = [1], packed and not packed.
        let packed = b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x01";
        let plain = b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x02\x08\x01";
        let found = digest(packed, MessageKind::Example);
        assert!(found.is_some());
        assert_eq!(found, digest(plain, MessageKind::Example));
    }
}
