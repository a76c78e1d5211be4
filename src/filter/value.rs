//! One value of a column.

use crate::example::DType;
use std::cmp::Ordering;
use std::fmt;

/// One value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A value of an int64 feature.
    Int(i64),
    /// A value of a float feature.
    Float(f32),
    /// A value of a bytes feature.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// Returns the kind of feature with values of this type.
    pub fn kind(self) -> DType {
        match self {
            Value::Int(_) => DType::Int64,
            Value::Float(_) => DType::Float32,
            Value::Bytes(_) => DType::Bytes,
        }
    }

    /// Compares two values in a total order: first by kind, then by value. Floats compare by IEEE 754's total order.
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
