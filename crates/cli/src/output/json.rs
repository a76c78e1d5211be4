//! A record as one line of JSON, flat enough for `jq`.
//!
//! ```text
//! {"index":7,"record":2,"features":{"image":[{"base64":"iVBORw=="}],"label":[4],"word":["goat"],"unset":null}}
//! {"index":7,"record":2,"context":{"id":[5]},"feature_lists":{"frames":[[0.5],[1.5]]}}
//! {"index":7,"record":2,"payload":"a payload that is no Example"}
//! ```
//!
//! `index` is the record's number over all files, which `get` takes, or null where it is not known; `record` is its number in its
//! file, as in error messages. With several files each line also has `"file"`. A byte string is a JSON string if it is UTF-8, else an object with
//! `base64`. Integers are exact; floats are the shortest that read back as the same 32 bits, or `"NaN"`, `"Infinity"`,
//! `"-Infinity"`. A feature without a kind is `null`, which an empty list is not.

use super::Item;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::io::{self, Write};
use std::path::Path;
use tfseek::{Feature, FeatureList};
use tfseek_tools::{Content, Map};

pub(super) fn print(
    out: &mut impl Write,
    item: Item<'_>,
    content: &Content<'_>,
    file: Option<&Path>,
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Line { item, content, file }).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

struct Line<'a> {
    item: Item<'a>,
    content: &'a Content<'a>,
    file: Option<&'a Path>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut line = s.serialize_map(None)?;
        if let Some(file) = self.file {
            line.serialize_entry("file", &file.to_string_lossy())?;
        }
        line.serialize_entry("index", &self.item.index)?;
        line.serialize_entry("record", &self.item.record.at().record)?;
        match self.content {
            Content::Example(features) => line.serialize_entry("features", &Features(features))?,
            Content::Sequence(context, lists) => {
                line.serialize_entry("context", &Features(context))?;
                line.serialize_entry("feature_lists", &Lists(lists))?;
            }
            Content::Raw => line.serialize_entry("payload", &Bytes(self.item.record.payload()))?,
        }
        line.end()
    }
}

struct Features<'a>(&'a Map<'a, Feature<'a>>);

impl Serialize for Features<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(key, feature)| (key, Values(*feature))))
    }
}

struct Lists<'a>(&'a Map<'a, FeatureList<'a>>);

impl Serialize for Lists<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(key, list)| (key, Steps(*list))))
    }
}

struct Steps<'a>(FeatureList<'a>);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.iter().map(Values))
    }
}

struct Values<'a>(Feature<'a>);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Feature::None => s.serialize_none(),
            Feature::Bytes(list) => s.collect_seq(list.iter().map(Bytes)),
            Feature::Float(list) => s.collect_seq(list.iter().map(Float)),
            Feature::Int64(list) => s.collect_seq(list.iter()),
        }
    }
}

struct Float(f32);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match non_finite(self.0) {
            Some(name) => s.serialize_str(name),
            None => s.serialize_f32(self.0),
        }
    }
}

/// What JSON has no number for, by protobuf's names.
pub(super) fn non_finite(value: f32) -> Option<&'static str> {
    match value {
        f32::INFINITY => Some("Infinity"),
        f32::NEG_INFINITY => Some("-Infinity"),
        v if v.is_nan() => Some("NaN"),
        _ => None,
    }
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => s.serialize_str(text),
            Err(_) => {
                let mut object = s.serialize_map(Some(1))?;
                object.serialize_entry("base64", &Base64(self.0))?;
                object.end()
            }
        }
    }
}

/// Bytes as a base64 string.
pub(super) struct Base64<'a>(pub(super) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}
