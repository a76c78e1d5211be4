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

    /// Compares two values, a number exactly with one of the other kind. Returns `None` for NaN, and for a
    /// number and a string.
    pub(crate) fn compare(self, other: Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Int(a), Value::Float(b)) => compare_numbers(a, b),
            (Value::Float(a), Value::Int(b)) => compare_numbers(b, a).map(Ordering::reverse),
            _ => None,
        }
    }

    /// Compares two values in a total order: first by kind, then by value. Floats compare by IEEE 754's total
    /// order.
    pub(crate) fn total_cmp(&self, other: &Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

/// Compares an integer with a float without rounding it.
fn compare_numbers(int: i64, float: f32) -> Option<Ordering> {
    /// 2^63, the first float above all integers.
    const END: f32 = 9_223_372_036_854_775_808.0;
    match float {
        _ if float.is_nan() => None,
        _ if float >= END => Some(Ordering::Less),
        _ if float < -END => Some(Ordering::Greater),
        // The cast is exact: a float in this range is an integer without its fraction.
        _ => Some(int.cmp(&(float as i64)).then(0f32.total_cmp(&(float.fract() + 0.0)))),
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
