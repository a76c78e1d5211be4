//! The fields of a `TensorProto`, and which of them holds the values of a dtype.
//!
//! ```text
//! TensorProto       dtype=1 (enum)  tensor_shape=2  version_number=3  tensor_content=4 (bytes)
//!                   float_val=5  double_val=6  int_val=7  string_val=8  scomplex_val=9  int64_val=10
//!                   bool_val=11  dcomplex_val=12  half_val=13  uint32_val=16  uint64_val=17   all repeated, packed
//! TensorShapeProto  dim=2 (repeated Dim)  unknown_rank=3 (bool)
//! Dim               size=1 (int64)  name=2 (string)
//! ```

use super::TensorDType;
use crate::wire::{Fault, WireReader, WireValue, count_doubles, count_floats, varint};

pub(super) const DTYPE: u32 = 1;
pub(super) const SHAPE: u32 = 2;
pub(super) const CONTENT: u32 = 4;
pub(super) const STRING_VAL: u32 = 8;

pub(super) const SHAPE_DIM: u32 = 2;
pub(super) const SHAPE_UNKNOWN_RANK: u32 = 3;

pub(super) const DIM_SIZE: u32 = 1;
pub(super) const DIM_NAME: u32 = 2;

/// How a typed field encodes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Four bytes a value.
    Float,
    /// Eight bytes a value.
    Double,
    Varint,
    /// Length-delimited.
    Bytes,
}

impl Form {
    /// The form of a typed field; `None` for all other fields.
    pub(super) fn of(number: u32) -> Option<Form> {
        match number {
            5 | 9 => Some(Form::Float),
            6 | 12 => Some(Form::Double),
            7 | 10 | 11 | 13 | 16 | 17 => Some(Form::Varint),
            STRING_VAL => Some(Form::Bytes),
            _ => None,
        }
    }

    /// Counts the values in one occurrence of the field, which `reader` has just read, and checks that none is malformed. Under
    /// a wire type that does not fit it is an unknown field, with no values (W5).
    pub(super) fn count(self, value: WireValue<'_>, reader: WireReader<'_>) -> Result<usize, Fault> {
        let counted = match (self, value) {
            (Form::Float, WireValue::Len(chunk)) => count_floats(chunk),
            (Form::Double, WireValue::Len(chunk)) => count_doubles(chunk),
            (Form::Varint, WireValue::Len(chunk)) => varint::count(chunk),
            (Form::Float, WireValue::Fixed32(_))
            | (Form::Double, WireValue::Fixed64(_))
            | (Form::Varint, WireValue::Varint(_))
            | (Form::Bytes, WireValue::Len(_)) => Ok(1),
            _ => Ok(0),
        };
        counted.map_err(|fault| match value {
            WireValue::Len(chunk) => fault.offset_by(reader.start_of(chunk)),
            _ => fault,
        })
    }
}

/// The number of the typed field that holds a dtype's values.
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
