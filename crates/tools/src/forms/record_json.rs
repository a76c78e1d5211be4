//! Records as JSON objects, in a flat form that suits `jq`.
//!
//! ```text
//! {"index":7,"record":2,"features":{"image":[{"base64":"iVBORw=="}],"label":[4],"word":["goat"],"unset":null}}
//! {"index":7,"record":2,"context":{"id":[5]},"feature_lists":{"frames":[[0.5],[1.5]]}}
//! {"index":7,"record":2,"payload":"a payload that is not an Example"}
//! {"index":40,"record":2,"episode":7,"step":4,"features":{"action":[0.5,1.5]}}
//! ```
//!
//! `index` is the record's number over all files, as `get` takes it, or null if it is not known: verbs that
//! read in order build no index, so it is null after a file that was not read to its end. `record` is the
//! number in its file, as in error messages. A step of an episode has the number of its episode over all
//! files and its own in the episode; `index` counts steps. With several files each line also has `"file"`. A
//! byte string is a JSON string if it is UTF-8, otherwise an object with `base64`. Integers are exact. Floats
//! have the shortest form that reads back as the same 32 bits, or are `"NaN"`, `"Infinity"`, `"-Infinity"`. A
//! feature without a kind is `null`; an empty list is `[]`.

use super::content::Content;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::path::Path;
use tfseek::{Feature, FeatureList};

/// A record as a JSON object. Serialization does not collect lists first.
#[derive(Debug)]
pub struct RecordJson<'a> {
    /// Path of the file, if the object has a key `file`.
    pub file: Option<&'a Path>,
    /// Number of the record over all files, if it is known.
    pub index: Option<u64>,
    /// Ordinal of the record in its file, if it is known.
    pub record: Option<u64>,
    /// For a step of an episode, the number of the episode over all files, if it is known, and the step's
    /// number in the episode.
    pub step: Option<(Option<u64>, u64)>,
    /// The payload.
    pub payload: &'a [u8],
    /// The decoded payload.
    pub content: &'a Content<'a>,
}

impl Serialize for RecordJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut line = s.serialize_map(None)?;
        if let Some(file) = self.file {
            line.serialize_entry("file", &file.to_string_lossy())?;
        }
        line.serialize_entry("index", &self.index)?;
        line.serialize_entry("record", &self.record)?;
        if let Some((episode, step)) = self.step {
            line.serialize_entry("episode", &episode)?;
            line.serialize_entry("step", &step)?;
        }
        match self.content {
            Content::Example(features) => line.serialize_entry("features", &MapJson(features, ValuesJson))?,
            Content::Sequence(context, lists) => {
                line.serialize_entry("context", &MapJson(context, ValuesJson))?;
                line.serialize_entry("feature_lists", &MapJson(lists, StepsJson))?;
            }
            Content::Raw => line.serialize_entry("payload", &BytesJson(self.payload))?,
        }
        line.end()
    }
}

/// A map, and the function that makes JSON of its values.
pub(super) struct MapJson<'a, V, F>(pub(super) &'a BTreeMap<&'a str, V>, pub(super) F);

impl<V: Copy, J: Serialize, F: Fn(V) -> J> Serialize for MapJson<'_, V, F> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(key, value)| (key, (self.1)(*value))))
    }
}

struct StepsJson<'a>(FeatureList<'a>);

impl Serialize for StepsJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.iter().map(ValuesJson))
    }
}

struct ValuesJson<'a>(Feature<'a>);

impl Serialize for ValuesJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Feature::None => s.serialize_none(),
            Feature::Bytes(list) => s.collect_seq(list.iter().map(BytesJson)),
            Feature::Float(list) => s.collect_seq(list.iter().map(FloatJson)),
            Feature::Int64(list) => s.collect_seq(list.iter()),
        }
    }
}

struct FloatJson(f32);

impl Serialize for FloatJson {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match non_finite(self.0) {
            Some(name) => s.serialize_str(name),
            None => s.serialize_f32(self.0),
        }
    }
}

/// Returns protobuf's name of a float that is not finite, because JSON has no number for it.
pub fn non_finite(value: f32) -> Option<&'static str> {
    match value {
        f32::INFINITY => Some("Infinity"),
        f32::NEG_INFINITY => Some("-Infinity"),
        v if v.is_nan() => Some("NaN"),
        _ => None,
    }
}

struct BytesJson<'a>(&'a [u8]);

impl Serialize for BytesJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => s.serialize_str(text),
            Err(_) => s.collect_map([("base64", Base64(self.0))]),
        }
    }
}

/// A byte string as a base64 string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base64<'a>(pub(super) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}
