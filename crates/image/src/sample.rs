//! `Sample`: the types of a channel of a pixel. `PixelsMut`: memory for pixels.

use std::fmt::Debug;
use tfseek::TensorDType;

/// A channel of a pixel: `u8` or `u16`.
pub trait Sample: Debug + Default + Copy + PartialEq + Send + Sync + 'static + sealed::Sealed {}

impl Sample for u8 {}
impl Sample for u16 {}

/// Memory for pixels, of the type that the form or the spec declares.
#[derive(Debug)]
pub enum PixelsMut<'a> {
    /// Values of 8 bits.
    U8(&'a mut [u8]),
    /// Values of 16 bits, or the bits of floats of 16 bits.
    U16(&'a mut [u16]),
    /// The bits of floats.
    F32(&'a mut [u32]),
}

impl PixelsMut<'_> {
    /// Returns the number of values, and their type.
    pub(crate) fn kind(&self) -> (usize, TensorDType) {
        match self {
            PixelsMut::U8(values) => (values.len(), TensorDType::UInt8),
            PixelsMut::U16(values) => (values.len(), TensorDType::UInt16),
            PixelsMut::F32(values) => (values.len(), TensorDType::Float32),
        }
    }
}

/// Pixels that a decoder keeps from picture to picture: as they are in the file, as they are seen, and in the
/// size of the spec.
pub(crate) type PictureMemory<T> = [Vec<T>; 3];

/// Rounds a number of 0 to 2^22 to a whole one in the last bits, unlike `as` with the same instructions for
/// several: the last bits of 2^23 and more are whole numbers. Halves become even.
#[inline(always)]
pub(crate) fn round(value: f32) -> u32 {
    (value + 8_388_608.0).to_bits()
}

pub(crate) mod sealed {
    use crate::sample::{PictureMemory, PixelsMut, round};

    /// The parts of a sample that decoders use.
    pub trait Sealed: Sized {
        /// The largest value.
        const MOST: Self;
        /// Returns samples by their type.
        fn pixels(samples: &mut [Self]) -> PixelsMut<'_>;
        /// Returns samples and a place for others if they are bytes.
        fn bytes<'a>(source: &'a [Self], out: &'a mut [Self]) -> Option<(&'a [u8], &'a mut [u8])>;
        /// Makes samples from samples of 8 bits in a PNG.
        fn of_bytes(row: &[u8], out: &mut [Self]);
        /// Makes a sample of one of 8 bits in a PNG.
        fn of_byte(value: u32) -> Self;
        /// Makes a sample of one of 16 bits.
        fn of_word(value: u32) -> Self;
        fn to_f32(self) -> f32;
        /// Rounds a number that is not negative. Halves become even.
        fn of_f32(value: f32) -> Self;
        /// Returns the memory of this type.
        fn memory<'a>(
            bytes: &'a mut PictureMemory<u8>,
            words: &'a mut PictureMemory<u16>,
        ) -> &'a mut PictureMemory<Self>;
    }

    impl Sealed for u8 {
        const MOST: u8 = u8::MAX;

        fn pixels(samples: &mut [u8]) -> PixelsMut<'_> {
            PixelsMut::U8(samples)
        }

        fn bytes<'a>(source: &'a [u8], out: &'a mut [u8]) -> Option<(&'a [u8], &'a mut [u8])> {
            Some((source, out))
        }

        #[inline(always)]
        fn of_bytes(row: &[u8], out: &mut [u8]) {
            out.copy_from_slice(row);
        }

        #[inline(always)]
        fn of_byte(value: u32) -> u8 {
            value as u8
        }

        #[inline(always)]
        fn of_word(value: u32) -> u8 {
            (value >> 8) as u8
        }

        #[inline(always)]
        fn to_f32(self) -> f32 {
            f32::from(self)
        }

        #[inline(always)]
        fn of_f32(value: f32) -> u8 {
            round(value.min(255.0)) as u8
        }

        fn memory<'a>(
            bytes: &'a mut PictureMemory<u8>,
            _: &'a mut PictureMemory<u16>,
        ) -> &'a mut PictureMemory<u8> {
            bytes
        }
    }

    impl Sealed for u16 {
        const MOST: u16 = u16::MAX;

        fn pixels(samples: &mut [u16]) -> PixelsMut<'_> {
            PixelsMut::U16(samples)
        }

        fn bytes<'a>(_: &'a [u16], _: &'a mut [u16]) -> Option<(&'a [u8], &'a mut [u8])> {
            None
        }

        fn of_bytes(row: &[u8], out: &mut [u16]) {
            for (out, &value) in out.iter_mut().zip(row) {
                *out = u16::of_byte(value.into());
            }
        }

        #[inline(always)]
        fn of_byte(value: u32) -> u16 {
            value as u16 * 257
        }

        #[inline(always)]
        fn of_word(value: u32) -> u16 {
            value as u16
        }

        #[inline(always)]
        fn to_f32(self) -> f32 {
            f32::from(self)
        }

        #[inline(always)]
        fn of_f32(value: f32) -> u16 {
            round(value.min(65535.0)) as u16
        }

        fn memory<'a>(
            _: &'a mut PictureMemory<u8>,
            words: &'a mut PictureMemory<u16>,
        ) -> &'a mut PictureMemory<u16> {
            words
        }
    }
}
