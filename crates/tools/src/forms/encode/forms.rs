//! The forms of records in JSON.

use super::kinds::FeatureKinds;
use super::observed::ObservedKinds;
use super::source::RecordSource;
use super::value::{JsonValue, Member, Token, ValueError};
use super::values::{self, Manner, base64, base64_object};
use crate::error::{TextPosition, ToolsError};
use std::collections::BTreeMap;
use std::io::Read;
use tfseek::{DType, ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

/// The form of records in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonForm {
    /// Known from the first keys of each record: the plain form, unless a key has a meaning in one of the
    /// others and is not the name of a feature of the schema. After `file`, `index` and `record` the next key
    /// decides.
    #[default]
    Auto,
    /// An object of features.
    Plain,
    /// The form that `tfseek cat -f json` prints.
    Json,
    /// Protobuf's JSON mapping.
    ProtoJson,
}

/// Records from a text of JSON values, which may be separated by space and line ends or not at all.
///
/// ```
/// use tfseek::Schema;
/// use tfseek_tools::encode::{FeatureKinds, JsonForm, JsonRecords};
/// let schema = Schema::from_json(r#"{"features": {"label": {"type": "varlen", "dtype": "int64"}}}"#)?;
/// let text = b"{\"label\": 3}\n{\"label\": \"x\"}\n";
/// let mut records = JsonRecords::new(&text[..], Some(FeatureKinds::of(&schema)), JsonForm::Auto, 1 << 20);
/// let mut payload = Vec::new();
/// assert!(records.next(&mut payload).unwrap());
/// assert!(tfseek::Example::new(&payload).int64("label")?.iter().eq([3]));
/// let e = records.next(&mut payload).unwrap_err();
/// assert_eq!(e.to_string(), "line 2, column 11 (byte 23): feature \"label\": expected an int64, found \"x\"");
/// # Ok::<(), tfseek::Error>(())
/// ```
pub struct JsonRecords<R> {
    source: RecordSource<R>,
    kinds: Option<FeatureKinds>,
    form: JsonForm,
}

/// The parts of a record that have been read.
#[derive(Default)]
struct Parts {
    /// Features of an Example or a context.
    features: BTreeMap<String, FeatureBuf>,
    lists: BTreeMap<String, Vec<FeatureBuf>>,
    payload: Option<Vec<u8>>,
    has_features: bool,
    is_sequence: bool,
}

/// Keys of `-f json` with the numbers and the file of a record or a step.
const NUMBERS: [&str; 5] = ["file", "index", "record", "episode", "step"];

/// Keys of the other forms than the plain one.
const SECTIONS: [&str; 5] = ["features", "context", "feature_lists", "featureLists", "payload"];

/// The error of a form without kinds, if there is no schema.
const NO_SCHEMA: &str = "expected a schema, because this form of JSON has no kinds, found none";

impl<R: Read> JsonRecords<R> {
    /// Reads records. Without `kinds` only the form of protobuf is read. The text of a record has at most
    /// `max_record` bytes.
    pub fn new(input: R, kinds: Option<FeatureKinds>, form: JsonForm, max_record: u64) -> JsonRecords<R> {
        JsonRecords { source: RecordSource::new(input, max_record), kinds, form }
    }

    /// Returns the number of bytes that have been read.
    pub fn offset(&self) -> u64 {
        self.source.position().offset
    }

    /// Reads the next record and encodes it to `payload`. Returns false at the end.
    ///
    /// # Errors
    /// [`ToolsError`]. The records after it cannot be read.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Result<bool, ToolsError> {
        if !self.begin_record()? {
            return Ok(false);
        }
        let record = self.source.record()?;
        let reader = RecordReader { kinds: self.kinds.as_ref(), form: self.form };
        *payload = reader.payload(record.value()).map_err(|e| record.error(e))?;
        Ok(true)
    }

    /// Reads the next record and adds the kinds of its values to `seen`. Returns false at the end.
    ///
    /// # Errors
    /// [`ToolsError`]; also for a value of another kind than an earlier one of its feature.
    pub fn observe(&mut self, seen: &mut ObservedKinds) -> Result<bool, ToolsError> {
        if !self.begin_record()? {
            return Ok(false);
        }
        let start = self.source.position();
        let record = self.source.record()?;
        let reader = RecordReader { kinds: self.kinds.as_ref(), form: self.form };
        reader.observe(record.value(), start, seen).map_err(|e| record.error(e))?;
        Ok(true)
    }

    fn begin_record(&mut self) -> Result<bool, ToolsError> {
        match self.source.begin_record()? {
            None => Ok(false),
            // A list of records may be longer than any record, so it is not read.
            Some(b'[') => Err(ToolsError::json(self.source.position(), "expected an object, found a list")),
            Some(_) => Ok(true),
        }
    }
}

/// Reads the values of a record by their form.
#[derive(Clone, Copy)]
struct RecordReader<'k> {
    kinds: Option<&'k FeatureKinds>,
    form: JsonForm,
}

impl RecordReader<'_> {
    fn payload(self, record: JsonValue<'_>) -> Result<Vec<u8>, ValueError<'_>> {
        if matches!(self.form, JsonForm::Auto | JsonForm::ProtoJson)
            && let Token::Text(text) = record.token()?
        {
            return base64(record, &text);
        }
        let members = record.members()?;
        let mut parts = Parts::default();
        if self.is_plain(&members) {
            self.plain(members, &mut parts)?;
        } else {
            self.sections(members, &mut parts).map_err(|e| self.guessed(e))?;
        }
        parts.encode().map_err(|e| record.error(e.to_string()))
    }

    /// Adds the kinds of the values of a record. Protobuf's form names them, so its values are left out.
    fn observe<'a>(
        self,
        record: JsonValue<'a>,
        start: TextPosition,
        seen: &mut ObservedKinds,
    ) -> Result<(), ValueError<'a>> {
        if self.form == JsonForm::ProtoJson || !record.is_object() {
            return Ok(());
        }
        let members = record.members()?;
        if self.is_plain(&members) {
            return members.iter().try_for_each(|member| {
                let added = seen.feature(&member.key, member.value, start, true);
                added.map_err(|e| e.feature(&member.key))
            });
        }
        for section in members {
            let lists = match &*section.key {
                "features" | "context" => false,
                "feature_lists" | "featureLists" => true,
                _ => continue,
            };
            seen.is_sequence |= section.key != "features";
            let members = section.value.members().map_err(|e| self.guessed(e))?;
            if self.is_proto(&members, lists) {
                continue;
            }
            for member in members {
                let added = if lists {
                    seen.feature_list(&member.key, member.value, start)
                } else {
                    seen.feature(&member.key, member.value, start, false)
                };
                added.map_err(|e| e.feature(&member.key))?;
            }
        }
        Ok(())
    }

    /// Adds to an error that the form was guessed: the keys of sections may be names of features.
    fn guessed<'a>(self, mut e: ValueError<'a>) -> ValueError<'a> {
        if self.form == JsonForm::Auto {
            e.reason += "; in the form `plain` (`-f plain`) each key is a feature";
        }
        e
    }

    /// Returns true for the members of a section in protobuf's form.
    fn is_proto(self, members: &[Member<'_>], lists: bool) -> bool {
        match (members.first(), self.form) {
            (_, JsonForm::ProtoJson) => true,
            // The values of the other form are lists or null.
            (Some(first), JsonForm::Auto) => {
                map_names(lists).contains(&&*first.key) && first.value.is_object()
            }
            _ => false,
        }
    }

    /// Returns true for the members of a record in the plain form.
    fn is_plain(self, members: &[Member<'_>]) -> bool {
        if self.form != JsonForm::Auto {
            return self.form == JsonForm::Plain;
        }
        let is_number = |member: &Member<'_>| NUMBERS.contains(&&*member.key);
        // The numbers of a record, which `-f json` prints before its features, may also be names of features.
        let mut deciding = members.iter().skip_while(|member| {
            let is_scalar = !member.value.is_list() && !member.value.is_object();
            is_number(member) && is_scalar && self.is_feature(&member.key)
        });
        deciding.next().is_none_or(|member| {
            self.is_feature(&member.key) || !is_number(member) && !SECTIONS.contains(&&*member.key)
        })
    }

    /// Returns true for the name of a feature or a feature list of the schema.
    fn is_feature(self, name: &str) -> bool {
        self.kinds.is_some_and(|kinds| kinds.features.contains_key(name) || kinds.lists.contains_key(name))
    }

    /// Reads a record in the plain form.
    fn plain<'a>(self, members: Vec<Member<'a>>, parts: &mut Parts) -> Result<(), ValueError<'a>> {
        let Some(kinds) = self.kinds else {
            return match members.first() {
                Some(first) => Err(first.error(NO_SCHEMA).feature(&first.key)),
                None => Ok(()),
            };
        };
        if members.is_empty() {
            return Ok(());
        }
        parts.is_sequence = kinds.is_sequence;
        parts.has_features = !kinds.is_sequence;
        for member in members {
            let name = &*member.key;
            let value = member.value;
            // Null leaves no feature.
            let read = match (kinds.features.get(name), kinds.lists.get(name)) {
                (Some(_), Some(_)) => Err(member.error(
                    "expected {\"context\": .., \"feature_lists\": ..}, because the schema has a context feature and a feature list of this name",
                )),
                (Some(&dtype), None) => values::feature(value, dtype).map(|feature| {
                    parts.features.extend(feature.map(|feature| (name.to_owned(), feature)));
                }),
                (None, Some(&dtype)) => steps(value, dtype).map(|steps| {
                    parts.lists.extend(steps.map(|steps| (name.to_owned(), steps)));
                }),
                (None, None) => Err(member.error("expected a feature of the schema")),
            };
            read.map_err(|e| e.feature(name))?;
        }
        Ok(())
    }

    /// Reads a record with the sections of `-f json` or of protobuf.
    fn sections<'a>(self, members: Vec<Member<'a>>, parts: &mut Parts) -> Result<(), ValueError<'a>> {
        let is_json = self.form != JsonForm::ProtoJson;
        let is_lists = |member: &Member<'_>| matches!(&*member.key, "feature_lists" | "featureLists");
        for member in &members {
            let value = member.value;
            match &*member.key {
                "features" => {
                    parts.has_features = true;
                    self.map(member, false, parts)?;
                }
                "context" => {
                    parts.is_sequence = true;
                    self.map(member, false, parts)?;
                }
                "feature_lists" | "featureLists" => {
                    // The two spellings are one key.
                    if members.iter().filter(|other| is_lists(other)).nth(1).is_some() {
                        return Err(
                            member.error("expected \"feature_lists\" once, found both of its spellings")
                        );
                    }
                    parts.is_sequence = true;
                    self.map(member, true, parts)?;
                }
                "payload" if is_json => {
                    parts.payload = Some(match value.token()? {
                        Token::Text(text) => values::bytes(value, text)?,
                        Token::Object => base64_object(value)?,
                        _ => return Err(value.expected("a string or {\"base64\": ..}")),
                    });
                }
                name @ ("index" | "record" | "file" | "episode" | "step") if is_json => {
                    match value.token()? {
                        Token::Null | Token::Number(_) | Token::Text(_) => {}
                        token => {
                            let reason = format!("{name}: expected a number or a path, found {token}");
                            return Err(value.error(reason));
                        }
                    }
                }
                _ => return Err(member.unexpected("\"features\", or \"context\" and \"feature_lists\"")),
            }
        }
        let Some(first) = members.first() else { return Ok(()) };
        let kinds =
            u8::from(parts.has_features) + u8::from(parts.is_sequence) + u8::from(parts.payload.is_some());
        let found = match kinds {
            0 => "none",
            1 => return Ok(()),
            _ => "several",
        };
        Err(first.error(format!(
            "expected \"features\", or \"context\" and \"feature_lists\", or \"payload\", found {found} of them"
        )))
    }

    /// Reads a section: a map of features or of feature lists. Protobuf's map is in a member of its own.
    fn map<'a>(self, section: &Member<'a>, lists: bool, parts: &mut Parts) -> Result<(), ValueError<'a>> {
        let members = section.value.members()?;
        if !self.is_proto(&members, lists) {
            return self.json_map(section, members, lists, parts);
        }
        let names = map_names(lists);
        for (k, member) in members.iter().enumerate() {
            if !names.contains(&&*member.key) || k > 0 {
                let [name, _] = names;
                return Err(member.unexpected(&format!("{name:?} once")));
            }
            proto_map(member.value, lists, parts)?;
        }
        Ok(())
    }

    /// Reads the members of a section of `-f json`.
    fn json_map<'a>(
        self,
        section: &Member<'a>,
        members: Vec<Member<'a>>,
        lists: bool,
        parts: &mut Parts,
    ) -> Result<(), ValueError<'a>> {
        for member in members {
            let name = &*member.key;
            let value = member.value;
            let dtype =
                self.kinds.and_then(|kinds| if lists { &kinds.lists } else { &kinds.features }.get(name));
            let read = match dtype {
                Some(&dtype) if lists => steps(value, dtype).and_then(|steps| {
                    let steps = steps.ok_or_else(|| member.error("expected a list of steps, found null"))?;
                    parts.lists.insert(name.to_owned(), steps);
                    Ok(())
                }),
                Some(&dtype) => values::feature(value, dtype).map(|feature| {
                    drop(parts.features.insert(name.to_owned(), feature.unwrap_or(FeatureBuf::None)))
                }),
                // A feature without a kind needs no schema, and neither does a list of such steps.
                None if value.is_null() && !lists => {
                    parts.features.insert(name.to_owned(), FeatureBuf::None);
                    Ok(())
                }
                None => match lists.then(|| steps_without_kind(value)).flatten() {
                    Some(steps) => {
                        parts.lists.insert(name.to_owned(), steps);
                        Ok(())
                    }
                    None if self.kinds.is_none() => Err(section.error(NO_SCHEMA)),
                    None => Err(member.error("expected a feature of the schema")),
                },
            };
            read.map_err(|e| e.feature(name))?;
        }
        Ok(())
    }
}

impl Parts {
    fn encode(self) -> tfseek::Result<Vec<u8>> {
        if let Some(payload) = self.payload {
            return Ok(payload);
        }
        if self.is_sequence {
            let context = self.features.into_iter();
            let builder =
                context.fold(SequenceExampleBuilder::new(), |b, (name, value)| b.feature(name, value));
            let lists = self.lists.into_iter();
            return lists.fold(builder, |b, (name, steps)| b.feature_list(name, steps)).encode();
        }
        if !self.has_features {
            return Ok(Vec::new());
        }
        let features = self.features.into_iter();
        features.fold(ExampleBuilder::new(), |b, (name, value)| b.feature(name, value)).encode()
    }
}

/// Returns the names of the map in a section of protobuf's form.
fn map_names(lists: bool) -> [&'static str; 2] {
    if lists { ["featureList", "feature_list"] } else { ["feature", "feature"] }
}

/// Reads the steps of a feature list in the plain manner: each is a list, a value, or null for a step without
/// a kind. `None` for null.
fn steps(list: JsonValue<'_>, dtype: DType) -> Result<Option<Vec<FeatureBuf>>, ValueError<'_>> {
    if list.is_null() {
        return Ok(None);
    }
    let steps = list
        .elements("a list of steps", |step| Ok(values::feature(step, dtype)?.unwrap_or(FeatureBuf::None)));
    steps.map(Some)
}

/// Reads the steps of a feature list that are all null, and returns `None` for others.
fn steps_without_kind(list: JsonValue<'_>) -> Option<Vec<FeatureBuf>> {
    let steps = list.elements("a list of null", |step| {
        if step.is_null() { Ok(FeatureBuf::None) } else { Err(step.expected("null")) }
    });
    steps.ok()
}

/// Reads a map of protobuf's form.
fn proto_map<'a>(map: JsonValue<'a>, lists: bool, parts: &mut Parts) -> Result<(), ValueError<'a>> {
    for member in map.members()? {
        let name = member.key.clone().into_owned();
        let read = if lists {
            proto_steps(member.value).map(|steps| drop(parts.lists.insert(name, steps)))
        } else {
            proto_feature(member.value).map(|feature| drop(parts.features.insert(name, feature)))
        };
        read.map_err(|e| e.feature(&member.key))?;
    }
    Ok(())
}

/// Reads a feature list of protobuf's form: an object with the member `feature`.
fn proto_steps(list: JsonValue<'_>) -> Result<Vec<FeatureBuf>, ValueError<'_>> {
    match only_member(list, "feature")? {
        Some(list) => list.elements("a list", proto_feature),
        None => Ok(Vec::new()),
    }
}

/// Reads a feature of protobuf's form: an object with the list of its kind, or an empty one.
fn proto_feature(feature: JsonValue<'_>) -> Result<FeatureBuf, ValueError<'_>> {
    let members = feature.members()?;
    let Some(member) = only(&members)? else { return Ok(FeatureBuf::None) };
    let mut values = match &*member.key {
        "bytesList" | "bytes_list" => values::empty(DType::Bytes),
        "floatList" | "float_list" => values::empty(DType::Float32),
        "int64List" | "int64_list" => values::empty(DType::Int64),
        _ => return Err(member.unexpected("\"bytesList\", \"floatList\" or \"int64List\"")),
    };
    if let Some(list) = only_member(member.value, "value")? {
        values::list(list, Manner::Proto, &mut values)?;
    }
    Ok(values)
}

/// Returns the value of the only member of an object, which must have this name, or `None` for an empty
/// object.
fn only_member<'a>(object: JsonValue<'a>, name: &str) -> Result<Option<JsonValue<'a>>, ValueError<'a>> {
    let members = object.members()?;
    match only(&members)? {
        Some(member) if member.key != name => Err(member.unexpected(&format!("{name:?}"))),
        member => Ok(member.map(|member| member.value)),
    }
}

/// Returns the first member of an object, which must have no other one.
fn only<'m, 'a>(members: &'m [Member<'a>]) -> Result<Option<&'m Member<'a>>, ValueError<'a>> {
    match members.get(1) {
        None => Ok(members.first()),
        Some(second) => Err(second.error(format!("expected one key, found another one, {}", second.name()))),
    }
}
