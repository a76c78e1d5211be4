//! Readers of the fields of a JSON object. Their errors contain the expected and the found value.

use super::value::Json;
use crate::error::{Error, Result};
use crate::tensor::TensorDType;
use std::collections::BTreeMap;

/// The unread fields of a JSON object.
pub(super) struct JsonFields(pub(super) BTreeMap<String, Json>);

impl JsonFields {
    /// Reads a field that may be omitted or null.
    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json) -> Result<T, String>,
    ) -> Result<Option<T>> {
        match self.0.remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(json) => read(json).map(Some).map_err(|reason| Error::spec(format!("{name}: {reason}"))),
        }
    }

    pub(super) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json) -> Result<T, String>,
    ) -> Result<T> {
        self.optional(name, read)?.ok_or_else(|| Error::spec(format!("{name} is missing")))
    }

    /// Checks that all unread fields are in `names`.
    pub(super) fn check_known(&self, kind: &str, names: &[&str]) -> Result<()> {
        match self.0.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(Error::spec(format!("{kind} has no field {name:?}"))),
            None => Ok(()),
        }
    }
}

pub(super) fn expected<T>(expected: &str, found: &Json) -> Result<T, String> {
    Err(format!("expected {expected}, found {found}"))
}

pub(super) fn text(json: Json) -> Result<String, String> {
    match json {
        Json::Text(text) => Ok(text),
        other => expected("a string", &other),
    }
}

pub(super) fn boolean(json: Json) -> Result<bool, String> {
    match json {
        Json::Bool(value) => Ok(value),
        other => expected("true or false", &other),
    }
}

pub(super) fn integer<T: TryFrom<i128>>(json: Json) -> Result<T, String> {
    match json {
        Json::Integer(value) => T::try_from(value).map_err(|_| format!("{value} is out of range")),
        other => expected("an integer", &other),
    }
}

pub(super) fn number(json: Json) -> Result<f64, String> {
    match json {
        Json::Integer(value) => Ok(value as f64),
        // -0.0 becomes 0.0, so that equal numbers have one form.
        Json::Float(value) => Ok(value + 0.0),
        other => expected("a number", &other),
    }
}

pub(super) fn list<T>(json: Json, read: impl Fn(Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    match json {
        Json::List(values) => values.into_iter().map(read).collect(),
        other => expected("a list", &other),
    }
}

pub(super) fn one_or_list<T>(json: Json, read: impl Fn(Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    match json {
        Json::List(_) => list(json, read),
        json => Ok(vec![read(json)?]),
    }
}

pub(super) fn array_dtype(json: Json) -> Result<TensorDType, String> {
    let name = text(json)?;
    let known = name.parse().ok().filter(|dtype: &TensorDType| dtype.size().is_some());
    known.ok_or_else(|| {
        format!("expected bool or a type of numbers, such as uint8 or float32, found {name:?}")
    })
}

/// Reads one of these values by its name.
pub(super) fn one_of<T: Copy, const N: usize>(
    json: Json,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    let text = text(json)?;
    all.into_iter().find(|&value| name(value) == text).ok_or_else(|| {
        let names = all.map(name).join(" or ");
        format!("expected {names}, found {text:?}")
    })
}
