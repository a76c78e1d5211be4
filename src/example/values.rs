//! The Rust types that can be put into lists.

use crate::error::EncodeError;
use std::borrow::Cow;

/// A type that can be put into an int64 list: integers and `bool`, as in Python. A float cannot, even if it is integral:
///
/// ```compile_fail,E0277
/// tfseek::example::ExampleBuilder::new().int64("label", [3.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into an int64 list",
    note = "integers of up to 64 bits and `bool` can; a float must be converted first"
)]
pub trait ToInt64 {
    /// Returns the value as an `i64`.
    ///
    /// # Errors
    /// [`EncodeError::Int64Range`] above 2^63 - 1.
    fn to_int64(self) -> Result<i64, EncodeError>;
}

/// A type that can be put into a float list: `f32`, `f64`, integers and `bool`.
///
/// An `f64` is rounded to the nearest `f32`. Integers are converted through `f64`. Python's protobuf does the same, including the double
/// rounding, but stores infinity for a number beyond the range of `f32`, which is refused here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into a float list",
    note = "`f32`, `f64`, integers of up to 64 bits and `bool` can"
)]
pub trait ToFloat {
    /// Returns the value as an `f32`.
    ///
    /// # Errors
    /// [`EncodeError::FloatRange`] for a finite number that would become infinite.
    fn to_float(self) -> Result<f32, EncodeError>;
}

macro_rules! ints {
    ($($t:ty),*) => {$(
        impl ToInt64 for $t {
            #[inline]
            fn to_int64(self) -> Result<i64, EncodeError> {
                // No type here has values below -2^63, so a value that does not fit is positive.
                i64::try_from(self).map_err(|_| EncodeError::Int64Range { value: self as u128 })
            }
        }
        impl ToFloat for $t {
            #[inline]
            fn to_float(self) -> Result<f32, EncodeError> {
                // No integer here is beyond the range.
                Ok(self as f64 as f32)
            }
        }
    )*};
}
ints!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl ToInt64 for bool {
    #[inline]
    fn to_int64(self) -> Result<i64, EncodeError> {
        Ok(self.into())
    }
}
impl ToFloat for bool {
    #[inline]
    fn to_float(self) -> Result<f32, EncodeError> {
        Ok(self.into())
    }
}

impl ToFloat for f32 {
    #[inline]
    fn to_float(self) -> Result<f32, EncodeError> {
        Ok(self)
    }
}
impl ToFloat for f64 {
    #[inline]
    fn to_float(self) -> Result<f32, EncodeError> {
        match self as f32 {
            float if float.is_infinite() && self.is_finite() => {
                Err(EncodeError::FloatRange { value: format!("{self:e}").into() })
            }
            float => Ok(float),
        }
    }
}

/// A type that can be put into a bytes list: strings and bytes, owned or borrowed. Owned values are moved, not copied.
///
/// A single value must be given as a list of one: an image is `[image]`, not its bytes.
///
/// ```compile_fail,E0277
/// tfseek::example::ExampleBuilder::new().bytes("image", vec![0xffu8, 0xd8]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into a bytes list",
    note = "strings and bytes can; a single value is given as a list of one, `[value]`"
)]
pub trait IntoBytes {
    /// Returns the bytes of the value.
    fn into_bytes(self) -> Vec<u8>;
}

macro_rules! into_bytes {
    ($([$($n:ident)?] $t:ty: $f:expr),* $(,)?) => {$(
        impl $(<const $n: usize>)? IntoBytes for $t {
            #[inline]
            fn into_bytes(self) -> Vec<u8> {
                $f(self)
            }
        }
    )*};
}
into_bytes! {
    [] Vec<u8>: |v| v,
    [] Box<[u8]>: Vec::from,
    [] String: String::into_bytes,
    [] Cow<'_, [u8]>: Cow::into_owned,
    [] Cow<'_, str>: |s: Cow<'_, str>| s.into_owned().into_bytes(),
    [] &[u8]: <[u8]>::to_vec,
    [] &str: |s: &str| s.as_bytes().to_vec(),
    [N] [u8; N]: Vec::from,
}

// Iterating over `&values` yields references.
impl<T: ToInt64 + Copy> ToInt64 for &T {
    #[inline]
    fn to_int64(self) -> Result<i64, EncodeError> {
        (*self).to_int64()
    }
}
impl<T: ToFloat + Copy> ToFloat for &T {
    #[inline]
    fn to_float(self) -> Result<f32, EncodeError> {
        (*self).to_float()
    }
}
impl<T: IntoBytes + Clone> IntoBytes for &T {
    #[inline]
    fn into_bytes(self) -> Vec<u8> {
        self.clone().into_bytes()
    }
}
