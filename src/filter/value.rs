//! One value of a column.

use crate::example::FeatureKind;
use std::cmp::Ordering;
use std::fmt;

/// One value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Of an int64 feature.
    Int(i64),
    /// Of a float feature.
    Float(f32),
    /// Of a bytes feature.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// The kind of feature that it is of.
    pub fn kind(self) -> FeatureKind {
        match self {
            Value::Int(_) => FeatureKind::Int64,
            Value::Float(_) => FeatureKind::Float,
            Value::Bytes(_) => FeatureKind::Bytes,
        }
    }

    /// Values of one kind in order, floats by IEEE's total order; kinds after each other.
    pub(crate) fn total_cmp(&self, other: &Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(v) => v.fmt(f),
            Value::Float(v) => v.fmt(f),
            Value::Bytes(v) => write!(f, "\"{}\"", v.escape_ascii()),
        }
    }
}
