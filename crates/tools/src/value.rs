//! Values of statistics and of warnings, of which the command makes JSON and the Python package objects.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// Named values, in their order.
pub(crate) type NamedValues<'s> = Vec<(&'s str, ReportValue<'s>)>;

/// A value of statistics or of a warning. Its text is JSON without spaces between its parts.
pub enum ReportValue<'s> {
    /// No value, or a number that is not finite.
    Null,
    /// True or false.
    Bool(bool),
    /// A number of things, or of bytes.
    Count(u128),
    /// An integer of records, or a float without a fraction.
    Int(i64),
    /// A float with a fraction, or a large one.
    Float(f64),
    /// A float of 32 bits. Its text has the digits that identify it, fewer than its value in 64 bits needs.
    Float32(f32),
    /// A text.
    Text(Cow<'s, str>),
    /// A byte string that is not UTF-8. In JSON it is an object with base64.
    Bytes(&'s [u8]),
    /// A list.
    List(Vec<ReportValue<'s>>),
    /// Names with their values, in their order.
    Fields(Vec<(&'s str, ReportValue<'s>)>),
}

impl ReportValue<'_> {
    /// Returns the value with integers of records beyond 2^53 as texts, because JavaScript would round them.
    pub(crate) fn for_browser(self) -> Self {
        match self {
            ReportValue::Int(value) if value.unsigned_abs() > 1 << 53 => value.to_string().into(),
            ReportValue::List(values) => values.into_iter().map(ReportValue::for_browser).collect(),
            ReportValue::Fields(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, value.for_browser()));
                ReportValue::Fields(fields.collect())
            }
            other => other,
        }
    }
}

macro_rules! variants {
    ($($from:ty: $variant:ident),*) => {$(
        impl<'s> From<$from> for ReportValue<'s> {
            fn from(value: $from) -> ReportValue<'s> {
                ReportValue::$variant(value.into())
            }
        }
    )*};
}

variants! { bool: Bool, u64: Count, u128: Count, i64: Int, &'s str: Text, String: Text, Cow<'s, str>: Text }

impl From<f64> for ReportValue<'_> {
    fn from(value: f64) -> Self {
        match value {
            _ if value.fract() == 0.0 && value.abs() < 9e15 => ReportValue::Int(value as i64),
            _ if value.is_finite() => ReportValue::Float(value),
            _ => ReportValue::Null,
        }
    }
}

impl From<f32> for ReportValue<'_> {
    fn from(value: f32) -> Self {
        if value.is_finite() { ReportValue::Float32(value) } else { ReportValue::Null }
    }
}

impl<'s> From<&'s [u8]> for ReportValue<'s> {
    fn from(value: &'s [u8]) -> ReportValue<'s> {
        std::str::from_utf8(value).map_or(ReportValue::Bytes(value), ReportValue::from)
    }
}

impl<'s, T: Into<ReportValue<'s>>> From<Option<T>> for ReportValue<'s> {
    fn from(value: Option<T>) -> ReportValue<'s> {
        value.map_or(ReportValue::Null, Into::into)
    }
}

impl<'s, T: Into<ReportValue<'s>>> FromIterator<T> for ReportValue<'s> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> ReportValue<'s> {
        ReportValue::List(values.into_iter().map(Into::into).collect())
    }
}

impl Serialize for ReportValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ReportValue::Null => serializer.serialize_unit(),
            ReportValue::Bool(value) => serializer.serialize_bool(*value),
            ReportValue::Count(value) => serializer.serialize_u128(*value),
            ReportValue::Int(value) => serializer.serialize_i64(*value),
            ReportValue::Float(value) => serializer.serialize_f64(*value),
            ReportValue::Float32(value) => serializer.serialize_f32(*value),
            ReportValue::Text(value) => serializer.serialize_str(value),
            ReportValue::Bytes(value) => serializer.collect_map([("base64", STANDARD.encode(value))]),
            ReportValue::List(values) => serializer.collect_seq(values),
            ReportValue::Fields(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

impl Display for ReportValue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Browsers read integers up to 2^53 exactly.
    #[test]
    fn wide_integers_are_text_for_browsers() {
        let values = || ReportValue::from_iter([1i64 << 53, -(1 << 53) - 1]);
        assert_eq!(values().to_string(), "[9007199254740992,-9007199254740993]");
        let fields = ReportValue::Fields(vec![("a", values())]);
        assert_eq!(fields.for_browser().to_string(), "{\"a\":[9007199254740992,\"-9007199254740993\"]}");
    }

    #[test]
    fn values_have_their_text_in_json() {
        let floats = [Some(1.5), Some(2.0), Some(-0.0), Some(1e300), None, Some(f64::NAN)];
        let values = ReportValue::Fields(vec![
            ("a", ReportValue::from_iter([1u64, 2])),
            ("b\n", ReportValue::from(&b"\xff"[..])),
            ("c", ReportValue::from_iter([0u64; 0])),
            ("d", ReportValue::from_iter(floats)),
            ("e", ReportValue::from_iter([0.1f32, 1.0, -0.0, f32::INFINITY])),
            ("f", (u128::from(u64::MAX) + 1).into()),
            ("g", ReportValue::from(&b"\""[..])),
            ("h", true.into()),
        ]);
        let expected = r#"{"a":[1,2],"b\n":{"base64":"/w=="},"c":[],"d":[1.5,2,0,1e+300,null,null],"#;
        let more = r#""e":[0.1,1.0,-0.0,null],"f":18446744073709551616,"g":"\"","h":true}"#;
        assert_eq!(values.to_string(), expected.to_owned() + more);
    }
}
