//! The kinds of features, as the values of records show them.

use super::kinds::FeatureKinds;
use super::value::{JsonValue, Token, ValueError};
use crate::error::{TextPosition, ToolsError};
use crate::infer::Inference;
use std::collections::BTreeMap;
use tfseek::DType;

/// Kinds of features that were observed in records without a schema.
///
/// A number without a point and without an exponent is an int64, and so is a bool; another number a float,
/// and a string or an object with `base64` a byte string. `"NaN"`, `"Infinity"` and `"-Infinity"` are floats
/// where the feature has other floats, and strings elsewhere. A feature with values of several kinds is an
/// error.
#[derive(Debug, Default)]
pub struct ObservedKinds {
    features: BTreeMap<String, ObservedKind>,
    lists: BTreeMap<String, ObservedKind>,
    pub(super) is_sequence: bool,
}

/// The kind of one feature, as far as its values show it.
#[derive(Debug, Default)]
struct ObservedKind {
    /// The kind, with the line of the first record that shows it.
    shown: Option<(Shown, u64)>,
    /// The first record with an empty list.
    empty: Option<TextPosition>,
}

/// The kinds that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Only(DType),
    /// The name of a float that JSON has no number for, or a text.
    FloatOrBytes,
}

impl Shown {
    /// Returns the kinds that two values of one feature may both have.
    fn and(self, other: Shown) -> Option<Shown> {
        match (self, other) {
            (one, other) if one == other => Some(one),
            (Shown::FloatOrBytes, Shown::Only(dtype)) | (Shown::Only(dtype), Shown::FloatOrBytes)
                if dtype != DType::Int64 =>
            {
                Some(Shown::Only(dtype))
            }
            _ => None,
        }
    }
}

impl ObservedKinds {
    /// Returns the kinds of all observed features.
    ///
    /// # Errors
    /// A feature has lists, and all of them are empty.
    pub fn kinds(mut self) -> Result<FeatureKinds, ToolsError> {
        // Of a feature list without steps the plain form shows an empty list.
        self.features.retain(|name, feature| feature.shown.is_some() || !self.lists.contains_key(name));
        let kinds = |observed: BTreeMap<String, ObservedKind>| {
            let kind = |(name, observed): (String, ObservedKind)| match observed {
                ObservedKind { shown: Some((Shown::Only(dtype), _)), .. } => Ok((name, dtype)),
                ObservedKind { shown: None, empty: Some(at) } => Err(ToolsError::Json {
                    at,
                    feature: Some(name),
                    reason: "expected a value that shows the kind, or a schema, found only empty lists"
                        .into(),
                }),
                // A feature that is always null has no values.
                _ => Ok((name, DType::Bytes)),
            };
            observed.into_iter().map(kind).collect::<Result<BTreeMap<_, _>, _>>()
        };
        Ok(FeatureKinds {
            features: kinds(self.features)?,
            lists: kinds(self.lists)?,
            is_sequence: self.is_sequence,
        })
    }

    /// Adds the values of a feature: a value, a list, or null. A list of lists is a feature list if
    /// `may_be_list`.
    pub(super) fn feature<'a>(
        &mut self,
        name: &str,
        value: JsonValue<'a>,
        record: TextPosition,
        may_be_list: bool,
    ) -> Result<(), ValueError<'a>> {
        if may_be_list && is_nested(value)? {
            self.is_sequence = true;
            return self.feature_list(name, value, record);
        }
        self.observed(name, false, value)?.values(value, record)
    }

    /// Adds the steps of a feature list.
    pub(super) fn feature_list<'a>(
        &mut self,
        name: &str,
        value: JsonValue<'a>,
        record: TextPosition,
    ) -> Result<(), ValueError<'a>> {
        let observed = self.observed(name, true, value)?;
        if value.is_null() {
            return Ok(());
        }
        value.elements("a list of steps", |step| observed.values(step, record)).map(drop)
    }

    fn observed<'a>(
        &mut self,
        name: &str,
        list: bool,
        value: JsonValue<'a>,
    ) -> Result<&mut ObservedKind, ValueError<'a>> {
        let keys = self.features.len() + self.lists.len();
        let map = if list { &mut self.lists } else { &mut self.features };
        if keys >= Inference::MAX_KEYS && !map.contains_key(name) {
            let max = Inference::MAX_KEYS;
            return Err(value.error(format!("expected at most {max} different features, or a schema")));
        }
        Ok(map.entry(name.to_owned()).or_default())
    }
}

impl ObservedKind {
    fn values<'a>(&mut self, value: JsonValue<'a>, record: TextPosition) -> Result<(), ValueError<'a>> {
        if value.is_null() {
            return Ok(());
        }
        if !value.is_list() {
            return self.value(value, record);
        }
        let mut is_empty = true;
        value.elements("a list", |value| {
            is_empty = false;
            self.value(value, record)
        })?;
        if is_empty && self.empty.is_none() {
            self.empty = Some(record);
        }
        Ok(())
    }

    fn value<'a>(&mut self, value: JsonValue<'a>, record: TextPosition) -> Result<(), ValueError<'a>> {
        let kind = match value.token()? {
            Token::Number(digits) if digits.contains(['.', 'e', 'E']) => Shown::Only(DType::Float32),
            Token::Number(_) | Token::Bool(_) => Shown::Only(DType::Int64),
            Token::Text(text) if matches!(&*text, "NaN" | "Infinity" | "-Infinity") => Shown::FloatOrBytes,
            Token::Text(_) | Token::Object => Shown::Only(DType::Bytes),
            _ => return Err(value.expected("a number, a string or {\"base64\": ..}")),
        };
        let (before, line) = self.shown.unwrap_or((kind, record.line));
        let Some(both) = before.and(kind) else {
            let expected = match before {
                Shown::Only(dtype) => dtype.to_string(),
                Shown::FloatOrBytes => "a float or a string".to_owned(),
            };
            return Err(value.expected(&format!("{expected}, as in line {line}, or a schema")));
        };
        self.shown = Some((both, line));
        Ok(())
    }
}

/// Returns true for a list whose first element is a list.
fn is_nested(value: JsonValue<'_>) -> Result<bool, ValueError<'_>> {
    if !value.is_list() {
        return Ok(false);
    }
    let mut first = None;
    value.elements("a list", |element| {
        first.get_or_insert(element.is_list());
        Ok(())
    })?;
    Ok(first == Some(true))
}
