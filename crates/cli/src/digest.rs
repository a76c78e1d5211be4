//! The digest of a record's content: equal for equal content, whatever the encoding.
//!
//! It is the SHA-256, in lower-case hex, of this text, JSON without spaces:
//!
//! ```text
//! Example          {"features":MAP}
//! SequenceExample  {"context":MAP,"feature_lists":LISTS}
//! MAP              [["NAME","KIND",COUNT,"HASH"],..]              sorted by the keys' bytes
//! LISTS            [["NAME",STEPS,[["KIND",COUNT,"HASH"],..]],..]  sorted by the keys' bytes
//! ```
//!
//! NAME is the key in hex, KIND `bytes`, `float`, `int64` or `none`, HASH the SHA-256 of the values: an int64 as 8 bytes, a float
//! as 4, a byte string as 8 bytes of length and then itself, all little-endian.

use crate::output::{Content, Map};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use tfseek::Feature;

/// The digest, or `None` for what is neither.
pub(crate) fn content(content: &Content<'_>) -> Option<String> {
    let mut text = String::new();
    match content {
        Content::Raw => return None,
        Content::Example(features) => {
            text.push_str("{\"features\":");
            push_map(&mut text, features);
        }
        Content::Sequence(context, lists) => {
            text.push_str("{\"context\":");
            push_map(&mut text, context);
            text.push_str(",\"feature_lists\":[");
            for (k, (key, list)) in lists.iter().enumerate() {
                let comma = if k == 0 { "" } else { "," };
                let _ = write!(text, "{comma}[\"{}\",{},[", hex(key.as_bytes()), list.len());
                for (k, step) in list.iter().enumerate() {
                    text.push_str(if k == 0 { "[" } else { ",[" });
                    push_feature(&mut text, step);
                    text.push(']');
                }
                text.push_str("]]");
            }
            text.push(']');
        }
    }
    text.push('}');
    Some(sha256(text.as_bytes()))
}

fn push_map(text: &mut String, map: &Map<'_, Feature<'_>>) {
    text.push('[');
    for (k, (key, feature)) in map.iter().enumerate() {
        let comma = if k == 0 { "" } else { "," };
        let _ = write!(text, "{comma}[\"{}\",", hex(key.as_bytes()));
        push_feature(text, *feature);
        text.push(']');
    }
    text.push(']');
}

fn push_feature(text: &mut String, feature: Feature<'_>) {
    let mut hash = Sha256::new();
    match feature {
        Feature::None => {}
        Feature::Int64(list) => list.iter().for_each(|v| hash.update(v.to_le_bytes())),
        Feature::Float(list) => list.iter().for_each(|v| hash.update(v.to_le_bytes())),
        Feature::Bytes(list) => list.iter().for_each(|v| {
            hash.update((v.len() as u64).to_le_bytes());
            hash.update(v);
        }),
    }
    let kind = feature.kind().map_or("none", |kind| kind.name());
    let _ = write!(text, "\"{kind}\",{},\"{}\"", feature.len(), hex(&hash.finalize()));
}

/// The SHA-256 of some bytes, in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
