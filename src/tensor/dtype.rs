//! The dtypes of tensors.

use crate::error::{Error, OptionsError, Result, TensorError};
use std::fmt;
use std::str::FromStr;

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])* $variant:ident = $number:literal $name:literal $size:expr;)*) => {
        /// The type of a tensor's elements. TensorFlow has more dtypes. These are strings and the dtypes
        /// whose elements are plain bytes.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TensorDType {
            $($(#[doc = $doc])* $variant = $number,)*
        }

        impl TensorDType {
            /// All dtypes, in the order of their numbers.
            pub const ALL: &'static [TensorDType] = &[$(TensorDType::$variant),*];

            /// Returns TensorFlow's name, for example `float32`, `int64` or `string`.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(TensorDType::$variant => $name,)* }
            }

            /// Returns the bytes of an element, or `None` for strings.
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
    /// Unsigned 8-bit integers.
    UInt8 = 4 "uint8" Some(1);
    /// 16-bit integers.
    Int16 = 5 "int16" Some(2);
    /// 8-bit integers.
    Int8 = 6 "int8" Some(1);
    /// Byte strings of any length.
    String = 7 "string" None;
    /// Complex numbers of two 32-bit floats, real and imaginary.
    Complex64 = 8 "complex64" Some(8);
    /// 64-bit integers.
    Int64 = 9 "int64" Some(8);
    /// Booleans, one byte each, 0 or 1.
    Bool = 10 "bool" Some(1);
    /// 16-bit floats with the upper half of the bits of a 32-bit float.
    BFloat16 = 14 "bfloat16" Some(2);
    /// Unsigned 16-bit integers.
    UInt16 = 17 "uint16" Some(2);
    /// Complex numbers of two 64-bit floats, real and imaginary.
    Complex128 = 18 "complex128" Some(16);
    /// 16-bit floats as defined by IEEE 754.
    Float16 = 19 "float16" Some(2);
    /// Unsigned 32-bit integers.
    UInt32 = 22 "uint32" Some(4);
    /// Unsigned 64-bit integers.
    UInt64 = 23 "uint64" Some(8);
}

/// Parses the name that `Display` writes.
impl FromStr for TensorDType {
    type Err = Error;

    fn from_str(name: &str) -> Result<TensorDType> {
        TensorDType::ALL.iter().copied().find(|dtype| dtype.name() == name).ok_or_else(|| {
            let reason = "expected a dtype of TensorFlow, such as float32";
            OptionsError::Name { what: "dtype", name: name.into(), reason }.into()
        })
    }
}

impl fmt::Display for TensorDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns an error for the first byte that is neither 0 nor 1.
pub(super) fn check_bools(bytes: &[u8]) -> Result<(), TensorError> {
    match bytes.iter().enumerate().find(|&(_, &byte)| byte > 1) {
        Some((element, &found)) => Err(TensorError::Bool { element: element as u64, found }),
        None => Ok(()),
    }
}
