//! JSON values, with integers separate from floats and without duplicate names in objects.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// Signed or unsigned 64-bit integer. A larger number is a float.
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

/// Formats a value for error messages.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => value.fmt(f),
            Json::Integer(value) => value.fmt(f),
            // In JSON notation: `1.0`, `1e30`.
            Json::Float(value) => write!(f, "{value:?}"),
            Json::Text(text) => match text.char_indices().nth(40) {
                None => write!(f, "{text:?}"),
                Some((end, _)) => write!(f, "{:?}..", text.get(..end).unwrap_or(text)),
            },
            Json::List(_) => f.write_str("a list"),
            Json::Object(_) => f.write_str("an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
        from.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = from.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut object = BTreeMap::new();
        while let Some(name) = from.next_key::<String>()? {
            match object.entry(name) {
                Entry::Vacant(free) => free.insert(from.next_value()?),
                Entry::Occupied(taken) => {
                    return Err(A::Error::custom(format!("{:?} is given twice", taken.key())));
                }
            };
        }
        Ok(Json::Object(object))
    }
}
