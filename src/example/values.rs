//! The Rust types that can be put into lists.

use crate::error::EncodeError;
use std::borrow::Cow;

/// A type that can be put into an int64 list (`T` is `i64`) or a float list (`T` is `f32`).
///
/// Integers and `bool` are both, as in Python. Floats can only be put into a float list, even if they are
/// integral:
///
/// ```compile_fail,E0277
/// tfseek::example::ExampleBuilder::new().int64("label", [3.0]);
/// ```
///
/// An `f64` is rounded to the nearest `f32`. Integers are converted to `f32` through `f64`. Python's protobuf
/// does the same, including the double rounding, but stores infinity for a number beyond the range of `f32`,
/// which is refused here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into a list of `{T}`",
    note = "integers of up to 64 bits and `bool` can; floats can be put into lists of `f32`"
)]
pub trait ToNumber<T> {
    /// Returns the value as a number of a list.
    ///
    /// # Errors
    /// [`EncodeError::Int64Range`] above 2^63 - 1; [`EncodeError::FloatRange`] for a finite number that would
    /// become infinite.
    fn to_number(self) -> Result<T, EncodeError>;
}

macro_rules! ints {
    ($($t:ty),*) => {$(
        impl ToNumber<i64> for $t {
            #[inline]
            fn to_number(self) -> Result<i64, EncodeError> {
                // No type here has values below -2^63, so a value that does not fit is positive.
                i64::try_from(self).map_err(|_| EncodeError::Int64Range { value: self as u128 })
            }
        }
        impl ToNumber<f32> for $t {
            #[inline]
            fn to_number(self) -> Result<f32, EncodeError> {
                // No integer here is beyond the range.
                Ok(self as f64 as f32)
            }
        }
    )*};
}
ints!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl ToNumber<i64> for bool {
    #[inline]
    fn to_number(self) -> Result<i64, EncodeError> {
        Ok(self.into())
    }
}
impl ToNumber<f32> for bool {
    #[inline]
    fn to_number(self) -> Result<f32, EncodeError> {
        Ok(self.into())
    }
}

impl ToNumber<f32> for f32 {
    #[inline]
    fn to_number(self) -> Result<f32, EncodeError> {
        Ok(self)
    }
}
impl ToNumber<f32> for f64 {
    #[inline]
    fn to_number(self) -> Result<f32, EncodeError> {
        match self as f32 {
            float if float.is_infinite() && self.is_finite() => {
                Err(EncodeError::FloatRange { value: format!("{self:e}").into() })
            }
            float => Ok(float),
        }
    }
}

/// A type that can be put into a bytes list: strings and bytes, owned or borrowed. Owned values are moved,
/// not copied.
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
impl<N, T: ToNumber<N> + Copy> ToNumber<N> for &T {
    #[inline]
    fn to_number(self) -> Result<N, EncodeError> {
        (*self).to_number()
    }
}
impl<T: IntoBytes + Clone> IntoBytes for &T {
    #[inline]
    fn into_bytes(self) -> Vec<u8> {
        self.clone().into_bytes()
    }
}
