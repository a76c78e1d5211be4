//! The Rust types of a tensor's elements.

use super::TensorDType;

/// A Rust type of a tensor's elements: numbers, `bool`, and arrays of real and imaginary part for complex
/// numbers.
///
/// `float16` and `bfloat16` have no type in Rust. [`Tensor::as_bytes`](super::Tensor::as_bytes) returns their
/// bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of tensor elements",
    note = "`f32`, `f64`, integers of up to 64 bits, `bool`, `[f32; 2]` and `[f64; 2]` are"
)]
pub trait Element: Copy + 'static {
    /// The dtype of these elements.
    const DTYPE: TensorDType;

    /// Reads an element from its little-endian bytes, which must have its size.
    fn read(bytes: &[u8]) -> Self;

    /// Appends the element's little-endian bytes.
    fn put(self, out: &mut Vec<u8>);

    /// Returns bytes in the machine's byte order as elements, if they are aligned.
    fn native(bytes: &[u8]) -> Option<&[Self]>;

    /// Returns little-endian bytes as elements, if they are aligned and the machine is little-endian.
    fn cast(bytes: &[u8]) -> Option<&[Self]> {
        // An empty slice may have any address, even an unaligned one.
        match bytes {
            [] => Some(&[]),
            bytes if cfg!(target_endian = "little") => Self::native(bytes),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($t:ty => $dtype:ident),*) => {$(
        impl Element for $t {
            const DTYPE: TensorDType = TensorDType::$dtype;

            #[inline]
            fn read(bytes: &[u8]) -> $t {
                <$t>::from_le_bytes(array(bytes))
            }

            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn native(bytes: &[u8]) -> Option<&[$t]> {
                bytemuck::try_cast_slice(bytes).ok()
            }
        }
    )*};
}
numbers!(f32 => Float32, f64 => Float64, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64);

macro_rules! complex {
    ($($t:ty => $dtype:ident),*) => {$(
        impl Element for [$t; 2] {
            const DTYPE: TensorDType = TensorDType::$dtype;

            #[inline]
            fn read(bytes: &[u8]) -> [$t; 2] {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                [<$t>::read(real), <$t>::read(imaginary)]
            }

            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                self.into_iter().for_each(|part| part.put(out));
            }

            fn native(bytes: &[u8]) -> Option<&[[$t; 2]]> {
                bytemuck::try_cast_slice(bytes).ok()
            }
        }
    )*};
}
complex!(f32 => Complex64, f64 => Complex128);

impl Element for bool {
    const DTYPE: TensorDType = TensorDType::Bool;

    #[inline]
    fn read(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|&byte| byte != 0)
    }

    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        out.push(self.into());
    }

    fn native(bytes: &[u8]) -> Option<&[bool]> {
        // The bytes were validated to be 0 or 1, and the cast validates them again.
        bytemuck::checked::try_cast_slice(bytes).ok()
    }
}

/// Returns the bytes of an element. Callers pass its exact size. If there were fewer bytes, the result would
/// be zeros.
#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}
