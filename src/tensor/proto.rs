//! The fields of a `TensorProto`, and the field that contains the values of each dtype.
//!
//! ```text
//! TensorProto       dtype=1 (enum)  tensor_shape=2  version_number=3  tensor_content=4 (bytes)
//!                   float_val=5  double_val=6  int_val=7  string_val=8  scomplex_val=9  int64_val=10
//!                   bool_val=11  dcomplex_val=12  half_val=13  uint32_val=16  uint64_val=17   all repeated, packed
//! TensorShapeProto  dim=2 (repeated Dim)  unknown_rank=3 (bool)
//! Dim               size=1 (int64)  name=2 (string)
//! ```

use super::TensorDType;
use tfseek_wire::{Fault, WireReader, WireValue, count_doubles, count_floats, varint};

pub(super) const DTYPE: u32 = 1;
pub(super) const SHAPE: u32 = 2;
pub(super) const CONTENT: u32 = 4;
pub(super) const STRING_VAL: u32 = 8;

pub(super) const SHAPE_DIM: u32 = 2;
pub(super) const SHAPE_UNKNOWN_RANK: u32 = 3;

pub(super) const DIM_SIZE: u32 = 1;
pub(super) const DIM_NAME: u32 = 2;

/// The encoding of the values of a typed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueEncoding {
    /// Four bytes per value.
    Float,
    /// Eight bytes per value.
    Double,
    Varint,
    /// Length-delimited byte strings.
    Bytes,
}

impl ValueEncoding {
    /// Returns the encoding of a typed field, or `None` for any other field.
    pub(super) fn of(number: u32) -> Option<ValueEncoding> {
        match number {
            5 | 9 => Some(ValueEncoding::Float),
            6 | 12 => Some(ValueEncoding::Double),
            7 | 10 | 11 | 13 | 16 | 17 => Some(ValueEncoding::Varint),
            STRING_VAL => Some(ValueEncoding::Bytes),
            _ => None,
        }
    }

    /// Counts and validates the values in one occurrence of the field, which `reader` has just read. With an
    /// unsuitable wire type it is an unknown field, which has no values (W5).
    pub(super) fn count(self, value: WireValue<'_>, reader: WireReader<'_>) -> Result<usize, Fault> {
        let counted = match (self, value) {
            (ValueEncoding::Float, WireValue::Len(chunk)) => count_floats(chunk),
            (ValueEncoding::Double, WireValue::Len(chunk)) => count_doubles(chunk),
            (ValueEncoding::Varint, WireValue::Len(chunk)) => varint::count(chunk),
            (ValueEncoding::Float, WireValue::Fixed32(_))
            | (ValueEncoding::Double, WireValue::Fixed64(_))
            | (ValueEncoding::Varint, WireValue::Varint(_))
            | (ValueEncoding::Bytes, WireValue::Len(_)) => Ok(1),
            _ => Ok(0),
        };
        counted.map_err(|fault| match value {
            WireValue::Len(chunk) => fault.offset_by(reader.start_of(chunk)),
            _ => fault,
        })
    }
}

/// Returns the number of the typed field that contains a dtype's values.
pub(super) fn typed_field(dtype: TensorDType) -> u32 {
    use TensorDType::*;
    match dtype {
        Float32 => 5,
        Float64 => 6,
        Int32 | Int16 | Int8 | UInt16 | UInt8 => 7,
        String => STRING_VAL,
        Complex64 => 9,
        Int64 => 10,
        Bool => 11,
        Complex128 => 12,
        Float16 | BFloat16 => 13,
        UInt32 => 16,
        UInt64 => 17,
    }
}
