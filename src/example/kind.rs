//! The types of values.

use std::fmt;

/// The type of the values of a feature's list, and of a column. Values are never cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Byte strings, of bytes lists; TensorFlow's `string`.
    Bytes,
    /// 32-bit floats, of float lists.
    Float32,
    /// 64-bit signed integers, of int64 lists.
    Int64,
}

impl DType {
    /// Returns TensorFlow's name: `float32`, `int64` or `string`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            DType::Bytes => "string",
            DType::Float32 => "float32",
            DType::Int64 => "int64",
        }
    }

    /// Returns the name of the list: `bytes`, `float` or `int64`.
    pub const fn list_name(self) -> &'static str {
        match self {
            DType::Bytes => "bytes",
            DType::Float32 => "float",
            DType::Int64 => "int64",
        }
    }

    /// Returns the tag of the kind's list in a feature.
    #[inline]
    pub(crate) const fn tag(self) -> u8 {
        match self {
            DType::Bytes => 0x0a,
            DType::Float32 => 0x12,
            DType::Int64 => 0x1a,
        }
    }

    #[inline]
    pub(super) fn of_field(number: u32) -> Option<DType> {
        match number {
            1 => Some(DType::Bytes),
            2 => Some(DType::Float32),
            3 => Some(DType::Int64),
            _ => None,
        }
    }
}

/// Writes TensorFlow's name.
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
