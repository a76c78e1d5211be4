//! The dtypes.

use crate::error::TensorError;
use std::fmt;

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])* $variant:ident = $number:literal $name:literal $size:expr;)*) => {
        /// What the elements of a tensor are. TensorFlow has more; these are the ones whose elements are plain bytes, and
        /// strings.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TensorDType {
            $($(#[doc = $doc])* $variant = $number,)*
        }

        impl TensorDType {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [TensorDType] = &[$(TensorDType::$variant),*];

            /// TensorFlow's name: `float32`, `int64`, `string`.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(TensorDType::$variant => $name,)* }
            }

            /// Bytes of one element; `None` for strings.
            pub const fn size(self) -> Option<usize> {
                match self { $(TensorDType::$variant => $size,)* }
            }
        }
    };
}

dtypes! {
    /// 32-bit floats.
    Float32 = 1 "float32" Some(4);
    /// 64-bit floats.
    Float64 = 2 "float64" Some(8);
    /// 32-bit integers.
    Int32 = 3 "int32" Some(4);
    /// Bytes.
    UInt8 = 4 "uint8" Some(1);
    /// 16-bit integers.
    Int16 = 5 "int16" Some(2);
    /// 8-bit integers.
    Int8 = 6 "int8" Some(1);
    /// Byte strings of any length.
    String = 7 "string" None;
    /// A real and an imaginary part, 32-bit floats.
    Complex64 = 8 "complex64" Some(8);
    /// 64-bit integers.
    Int64 = 9 "int64" Some(8);
    /// A byte each, 0 or 1.
    Bool = 10 "bool" Some(1);
    /// The upper half of a 32-bit float.
    BFloat16 = 14 "bfloat16" Some(2);
    /// 16-bit integers without a sign.
    UInt16 = 17 "uint16" Some(2);
    /// A real and an imaginary part, 64-bit floats.
    Complex128 = 18 "complex128" Some(16);
    /// 16-bit floats of IEEE 754.
    Float16 = 19 "float16" Some(2);
    /// 32-bit integers without a sign.
    UInt32 = 22 "uint32" Some(4);
    /// 64-bit integers without a sign.
    UInt64 = 23 "uint64" Some(8);
}

impl TensorDType {
    /// Returns the number that stands for it in a message.
    pub(super) const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the dtype of this number. Those that TensorFlow has besides have none here.
    pub(super) fn from_number(number: i32) -> Option<TensorDType> {
        TensorDType::ALL.iter().copied().find(|dtype| dtype.number() == number)
    }

    /// Returns the dtype of this name, which `Display` writes.
    pub fn from_name(name: &str) -> Option<TensorDType> {
        TensorDType::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for TensorDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Refuses the first byte that is no bool.
pub(super) fn check_bools(bytes: &[u8]) -> Result<(), TensorError> {
    match bytes.iter().position(|&byte| byte > 1) {
        Some(element) => Err(TensorError::Bool { element: element as u64, found: bytes[element] }),
        None => Ok(()),
    }
}
