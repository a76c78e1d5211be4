//! The forms of records in JSON.

use super::error::{JsonError, JsonPosition};
use super::kinds::FeatureKinds;
use super::lexer::{JsonReader, Token};
use super::values::{self, Manner, base64, base64_object};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use tfseek::{DType, ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

/// The form of records in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonForm {
    /// Known from the first keys of each record: the plain form, unless a key has a meaning in one of the others and is not the name of a
    /// feature of the schema. After `file`, `index` and `record` the next key decides.
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
    reader: JsonReader<R>,
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

/// Keys of `-f json` with the numbers and the file of a record.
const NUMBERS: [&str; 3] = ["file", "index", "record"];

/// Keys of the other forms than the plain one.
const SECTIONS: [&str; 5] = ["features", "context", "feature_lists", "featureLists", "payload"];

/// A scalar that was read before it was known what its key means.
struct HeldScalar {
    name: String,
    value: OwnedScalar,
    value_at: JsonPosition,
}

enum OwnedScalar {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

impl OwnedScalar {
    fn of(token: Token<'_>) -> OwnedScalar {
        match token {
            Token::Bool(value) => OwnedScalar::Bool(value),
            Token::Number(digits) => OwnedScalar::Number(digits.to_owned()),
            Token::Text(text) => OwnedScalar::Text(text.to_owned()),
            // Lists and objects are not held.
            Token::Null | Token::List | Token::Object => OwnedScalar::Null,
        }
    }

    fn token(&self) -> Token<'_> {
        match self {
            OwnedScalar::Null => Token::Null,
            OwnedScalar::Bool(value) => Token::Bool(*value),
            OwnedScalar::Number(digits) => Token::Number(digits),
            OwnedScalar::Text(text) => Token::Text(text),
        }
    }
}

/// The error of a form without kinds, if there is no schema.
const NO_SCHEMA: &str = "expected a schema, because this form of JSON has no kinds, found none";

impl<R: Read> JsonRecords<R> {
    /// Reads records. Without `kinds` only the form of protobuf is read. The text of a record has at most `max_record` bytes.
    pub fn new(input: R, kinds: Option<FeatureKinds>, form: JsonForm, max_record: u64) -> JsonRecords<R> {
        JsonRecords { reader: JsonReader::new(input, max_record), kinds, form }
    }

    /// Returns the number of bytes that have been read.
    pub fn offset(&self) -> u64 {
        self.reader.position().offset
    }

    /// Reads the next record and encodes it to `payload`. Returns false at the end.
    ///
    /// # Errors
    /// [`JsonError`]. The records after it cannot be read.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Result<bool, JsonError> {
        if !self.reader.begin_record()? {
            return Ok(false);
        }
        let start = self.reader.position();
        *payload = match self.reader.token()? {
            (Token::Text(text), at) if matches!(self.form, JsonForm::Auto | JsonForm::ProtoJson) => {
                base64(text, at)?
            }
            (Token::Object, _) => {
                let parts = self.record()?;
                let encoded = parts.encode();
                encoded.map_err(|e| JsonError::new(start, e.to_string()))?
            }
            (token, at) => return Err(JsonError::new(at, format!("expected an object, found {token}"))),
        };
        Ok(true)
    }

    fn record(&mut self) -> Result<Parts, JsonError> {
        let mut parts = Parts::default();
        let mut next = self.reader.key(true)?;
        let Some((_, first_at)) = next else { return Ok(parts) };
        // The numbers of a record, which `-f json` prints before its features, may also be names of features.
        let mut held: Vec<HeldScalar> = Vec::new();
        while let Some((name, _)) = &next
            && self.form == JsonForm::Auto
            && NUMBERS.contains(&name.as_str())
            && !held.iter().any(|scalar| scalar.name == *name)
            && !matches!(self.reader.peek_token()?.0, Some(b'[' | b'{'))
        {
            let (token, value_at) = self.reader.token()?;
            held.push(HeldScalar { name: name.clone(), value: OwnedScalar::of(token), value_at });
            next = self.reader.key(false)?;
        }
        let is_plain = match self.form {
            JsonForm::Auto => {
                held.iter().all(|scalar| self.is_feature(&scalar.name))
                    && next.as_ref().is_none_or(|(name, _)| {
                        let is_section =
                            SECTIONS.contains(&name.as_str()) || NUMBERS.contains(&name.as_str());
                        self.is_feature(name) || !is_section
                    })
            }
            form => form == JsonForm::Plain,
        };
        if is_plain {
            self.plain(held, next, &mut parts)?;
        } else {
            self.sections(held, next, first_at, &mut parts)?;
        }
        Ok(parts)
    }

    /// Returns true for the name of a feature or a feature list of the schema.
    fn is_feature(&self, name: &str) -> bool {
        self.kinds
            .as_ref()
            .is_some_and(|kinds| kinds.features.contains_key(name) || kinds.lists.contains_key(name))
    }

    /// Reads a record in the plain form. `held` are its first features.
    fn plain(
        &mut self,
        held: Vec<HeldScalar>,
        mut next: Option<(String, JsonPosition)>,
        parts: &mut Parts,
    ) -> Result<(), JsonError> {
        let Some(kinds) = &self.kinds else {
            // Without a schema nothing is held.
            let (name, at) = next.unwrap_or_else(|| (String::new(), self.reader.position()));
            return Err(JsonError::new(at, NO_SCHEMA).feature(&name));
        };
        parts.is_sequence = kinds.is_sequence;
        parts.has_features = !kinds.is_sequence;
        // Null leaves no feature, but counts as given.
        let mut nulls = BTreeSet::new();
        for HeldScalar { name, value, value_at } in held {
            let added = match (kinds.features.get(&name), value.token()) {
                (_, Token::Null) => Ok(None),
                (Some(&dtype), token) => {
                    let mut values = values::empty(dtype);
                    values::scalar(token, value_at, Manner::Plain, &mut values).map(|()| Some(values))
                }
                (None, token) => {
                    Err(JsonError::new(value_at, format!("expected a list of steps, found {token}")))
                }
            };
            match added.map_err(|e| e.feature(&name))? {
                Some(values) => drop(parts.features.insert(name, values)),
                None => drop(nulls.insert(name)),
            }
        }
        while let Some((name, at)) = next {
            let twice = parts.features.contains_key(&name)
                || parts.lists.contains_key(&name)
                || nulls.contains(&name);
            if twice {
                return Err(JsonError::new(at, "the key is given twice").feature(&name));
            }
            let read = match (kinds.features.get(&name), kinds.lists.get(&name)) {
                (Some(_), Some(_)) => Err(JsonError::new(
                    at,
                    "expected {\"context\": .., \"feature_lists\": ..}, because the schema has a context feature and a feature list of this name",
                )),
                (Some(&dtype), None) => {
                    values::feature(&mut self.reader, dtype).map(|feature| match feature {
                        Some(feature) => drop(parts.features.insert(name.clone(), feature)),
                        None => drop(nulls.insert(name.clone())),
                    })
                }
                (None, Some(&dtype)) => steps(&mut self.reader, dtype).map(|steps| match steps {
                    Some(steps) => drop(parts.lists.insert(name.clone(), steps)),
                    None => drop(nulls.insert(name.clone())),
                }),
                (None, None) => Err(JsonError::new(at, "expected a feature of the schema")),
            };
            read.map_err(|e| e.feature(&name))?;
            next = self.reader.key(false)?;
        }
        Ok(())
    }

    /// Reads a record with the sections of `-f json` or of protobuf. `held` are the numbers before them.
    fn sections(
        &mut self,
        held: Vec<HeldScalar>,
        mut next: Option<(String, JsonPosition)>,
        first_at: JsonPosition,
        parts: &mut Parts,
    ) -> Result<(), JsonError> {
        if let Some(scalar) = held.iter().find(|scalar| matches!(scalar.value, OwnedScalar::Bool(_))) {
            return Err(not_a_number(&scalar.name, scalar.value.token(), scalar.value_at));
        }
        let mut given: Vec<String> = held.into_iter().map(|scalar| scalar.name).collect();
        while let Some((key, at)) = next {
            // The two spellings are one key.
            let name = if key == "featureLists" { "feature_lists".to_owned() } else { key };
            if given.contains(&name) {
                return Err(JsonError::new(at, format!("the key {} is given twice", Token::Text(&name))));
            }
            let is_json = self.form != JsonForm::ProtoJson;
            match name.as_str() {
                "features" => {
                    parts.has_features = true;
                    self.map(at, false, parts)?;
                }
                "context" => {
                    parts.is_sequence = true;
                    self.map(at, false, parts)?;
                }
                "feature_lists" => {
                    parts.is_sequence = true;
                    self.map(at, true, parts)?;
                }
                "payload" if is_json => {
                    parts.payload = Some(match self.reader.token()? {
                        (Token::Text(text), _) => text.as_bytes().to_vec(),
                        (Token::Object, at) => base64_object(&mut self.reader, at)?,
                        (token, at) => {
                            let reason = format!("expected a string or {{\"base64\": ..}}, found {token}");
                            return Err(JsonError::new(at, reason));
                        }
                    });
                }
                "index" | "record" | "file" if is_json => match self.reader.token()? {
                    (Token::Null | Token::Number(_) | Token::Text(_), _) => {}
                    (token, at) => return Err(not_a_number(&name, token, at)),
                },
                _ => {
                    let reason = format!(
                        "expected \"features\", or \"context\" and \"feature_lists\", found the key {}",
                        Token::Text(&name)
                    );
                    return Err(JsonError::new(at, reason));
                }
            }
            given.push(name);
            next = self.reader.key(false)?;
        }
        let kinds =
            u8::from(parts.has_features) + u8::from(parts.is_sequence) + u8::from(parts.payload.is_some());
        if kinds > 1 {
            let reason = "expected \"features\", or \"context\" and \"feature_lists\", or \"payload\", found several of them";
            return Err(JsonError::new(first_at, reason));
        }
        if kinds == 0 && !given.is_empty() {
            let reason = "expected \"features\", or \"context\" and \"feature_lists\", or \"payload\", found none of them";
            return Err(JsonError::new(first_at, reason));
        }
        Ok(())
    }

    /// Reads a section: a map of features or of feature lists. That of protobuf is in a member of its own.
    fn map(&mut self, at: JsonPosition, lists: bool, parts: &mut Parts) -> Result<(), JsonError> {
        if let (token, at) = self.reader.token()?
            && token != Token::Object
        {
            return Err(JsonError::new(at, format!("expected an object, found {token}")));
        }
        let members: [&str; 2] = if lists { ["featureList", "feature_list"] } else { ["feature", "feature"] };
        let mut next = self.reader.key(true)?;
        let is_proto = match (&next, self.form) {
            (_, JsonForm::ProtoJson) => true,
            (Some((key, _)), JsonForm::Auto) if members.contains(&key.as_str()) => {
                // The values of the other form are lists or null.
                self.reader.peek_token()?.0 == Some(b'{')
            }
            _ => false,
        };
        if !is_proto {
            return self.json_map(next, at, lists, parts);
        }
        let mut is_first = true;
        while let Some((key, at)) = next {
            if !members.contains(&key.as_str()) || !is_first {
                let [member, _] = members;
                return Err(JsonError::new(
                    at,
                    format!("expected {member:?} once, found the key {}", Token::Text(&key)),
                ));
            }
            self.proto_map(lists, parts)?;
            is_first = false;
            next = self.reader.key(false)?;
        }
        Ok(())
    }

    /// Reads the rest of a section of `-f json`.
    fn json_map(
        &mut self,
        first: Option<(String, JsonPosition)>,
        at: JsonPosition,
        lists: bool,
        parts: &mut Parts,
    ) -> Result<(), JsonError> {
        let no_kinds = FeatureKinds::default();
        let kinds = self.kinds.as_ref();
        let mut next = first;
        while let Some((name, key_at)) = next {
            let known = kinds.unwrap_or(&no_kinds);
            let dtype = if lists { known.lists.get(&name) } else { known.features.get(&name) };
            let reader = &mut self.reader;
            let is_null = reader.peek_token()?.0 == Some(b'n');
            let read = match dtype {
                Some(&dtype) if lists => {
                    let steps = steps(reader, dtype).and_then(|steps| {
                        steps.ok_or_else(|| JsonError::new(key_at, "expected a list of steps, found null"))
                    });
                    steps.and_then(|steps| insert(&mut parts.lists, &name, steps, key_at))
                }
                Some(&dtype) => values::feature(reader, dtype).and_then(|feature| {
                    insert(&mut parts.features, &name, feature.unwrap_or_default(), key_at)
                }),
                // A feature without a kind needs no schema, and neither does a list of such steps.
                None if is_null && !lists => values::feature(reader, DType::Int64)
                    .and_then(|_| insert(&mut parts.features, &name, FeatureBuf::None, key_at)),
                None => {
                    let reason = if kinds.is_none() { NO_SCHEMA } else { "expected a feature of the schema" };
                    match lists.then(|| steps_without_kind(reader)).transpose()?.flatten() {
                        Some(steps) => insert(&mut parts.lists, &name, steps, key_at),
                        None => Err(JsonError::new(if kinds.is_none() { at } else { key_at }, reason)),
                    }
                }
            };
            read.map_err(|e| e.feature(&name))?;
            next = self.reader.key(false)?;
        }
        Ok(())
    }

    /// Reads a map of protobuf's form.
    fn proto_map(&mut self, lists: bool, parts: &mut Parts) -> Result<(), JsonError> {
        let reader = &mut self.reader;
        object(reader)?;
        let mut next = reader.key(true)?;
        while let Some((name, at)) = next {
            let read = if lists {
                proto_steps(reader).and_then(|steps| insert(&mut parts.lists, &name, steps, at))
            } else {
                proto_feature(reader).and_then(|feature| insert(&mut parts.features, &name, feature, at))
            };
            read.map_err(|e| e.feature(&name))?;
            next = reader.key(false)?;
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

fn not_a_number(name: &str, token: Token<'_>, at: JsonPosition) -> JsonError {
    JsonError::new(at, format!("{name}: expected a number or a path, found {token}"))
}

fn insert<V>(map: &mut BTreeMap<String, V>, name: &str, value: V, at: JsonPosition) -> Result<(), JsonError> {
    match map.entry(name.to_owned()) {
        Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        Entry::Occupied(_) => Err(JsonError::new(at, "the key is given twice")),
    }
}

/// Reads the steps of a feature list in the plain manner: each is a list, a value, or null for a step without a kind. `None` for null.
fn steps<R: Read>(reader: &mut JsonReader<R>, dtype: DType) -> Result<Option<Vec<FeatureBuf>>, JsonError> {
    match reader.token()? {
        (Token::List, _) => {}
        (Token::Null, _) => return Ok(None),
        (token, at) => return Err(JsonError::new(at, format!("expected a list of steps, found {token}"))),
    }
    let mut steps = Vec::new();
    while reader.in_list(steps.is_empty())? {
        steps.push(values::feature(reader, dtype)?.unwrap_or_default());
    }
    Ok(Some(steps))
}

/// Reads the steps of a feature list that are all null, and returns `None` if one of them is not.
fn steps_without_kind<R: Read>(reader: &mut JsonReader<R>) -> Result<Option<Vec<FeatureBuf>>, JsonError> {
    if reader.token()?.0 != Token::List {
        return Ok(None);
    }
    let mut steps = Vec::new();
    while reader.in_list(steps.is_empty())? {
        if reader.token()?.0 != Token::Null {
            return Ok(None);
        }
        steps.push(FeatureBuf::None);
    }
    Ok(Some(steps))
}

/// Reads the bracket of an object.
fn object<R: Read>(reader: &mut JsonReader<R>) -> Result<(), JsonError> {
    match reader.token()? {
        (Token::Object, _) => Ok(()),
        (token, at) => Err(JsonError::new(at, format!("expected an object, found {token}"))),
    }
}

/// Reads a feature list of protobuf's form: an object with the member `feature`.
fn proto_steps<R: Read>(reader: &mut JsonReader<R>) -> Result<Vec<FeatureBuf>, JsonError> {
    object(reader)?;
    let mut steps = Vec::new();
    if member(reader, "feature")? {
        while reader.in_list(steps.is_empty())? {
            steps.push(proto_feature(reader)?);
        }
        end(reader)?;
    }
    Ok(steps)
}

/// Reads a feature of protobuf's form: an object with the list of its kind, or an empty one.
fn proto_feature<R: Read>(reader: &mut JsonReader<R>) -> Result<FeatureBuf, JsonError> {
    object(reader)?;
    let Some((kind, at)) = reader.key(true)? else { return Ok(FeatureBuf::None) };
    let mut values = match kind.as_str() {
        "bytesList" | "bytes_list" => values::empty(DType::Bytes),
        "floatList" | "float_list" => values::empty(DType::Float32),
        "int64List" | "int64_list" => values::empty(DType::Int64),
        other => {
            let found = Token::Text(other);
            let reason =
                format!("expected \"bytesList\", \"floatList\" or \"int64List\", found the key {found}");
            return Err(JsonError::new(at, reason));
        }
    };
    object(reader)?;
    if member(reader, "value")? {
        values::list(reader, Manner::Proto, &mut values)?;
        end(reader)?;
    }
    end(reader)?;
    Ok(values)
}

/// Reads the only member of an object, up to the bracket of its list. Returns false if the object has ended instead.
fn member<R: Read>(reader: &mut JsonReader<R>, name: &str) -> Result<bool, JsonError> {
    match reader.key(true)? {
        None => return Ok(false),
        Some((key, _)) if key == name => {}
        Some((key, at)) => {
            return Err(JsonError::new(
                at,
                format!("expected {name:?}, found the key {}", Token::Text(&key)),
            ));
        }
    }
    match reader.token()? {
        (Token::List, _) => Ok(true),
        (token, at) => Err(JsonError::new(at, format!("expected a list, found {token}"))),
    }
}

/// Reads the end of an object.
fn end<R: Read>(reader: &mut JsonReader<R>) -> Result<(), JsonError> {
    match reader.key(false)? {
        None => Ok(()),
        Some((key, at)) => {
            Err(JsonError::new(at, format!("expected one key, found another one, {}", Token::Text(&key))))
        }
    }
}
