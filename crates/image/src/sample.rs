//! `Sample`: the types of a channel of a pixel.

use std::fmt::Debug;

/// A channel of a pixel: `u8` or `u16`.
pub trait Sample: Debug + Default + Copy + PartialEq + Send + Sync + 'static + sealed::Sealed {}

impl Sample for u8 {}
impl Sample for u16 {}

pub(crate) mod sealed {
    /// The parts of a sample that decoders use.
    pub trait Sealed: Sized {
        /// The largest value.
        const MOST: Self;
        /// Returns samples of 8 bits as such.
        fn as_bytes(samples: &mut [Self]) -> Option<&mut [u8]>;
        /// Makes samples from samples of 8 bits. In 16 bits they are multiplied by `factor`.
        fn of_bytes(row: &[u8], factor: u16, out: &mut [Self]);
        /// Makes a sample of one of 8 bits in a PNG.
        fn of_byte(value: u32) -> Self;
        /// Makes a sample of one of 16 bits.
        fn of_word(value: u32) -> Self;
        fn to_f32(self) -> f32;
        /// Rounds a number that is not negative. Halves become even.
        fn of_f32(value: f32) -> Self;
        /// Returns the scratch pixels of this type.
        fn scratch(scratch: &mut Scratch) -> &mut Vec<Self>;
    }

    /// Rounds a number below 2^22, unlike `as` with the same instructions for several: the last bits of 2^23
    /// and more are whole numbers.
    #[inline(always)]
    fn round(value: f32) -> u32 {
        (value + 8_388_608.0).to_bits()
    }

    /// Pixels before the resize, of either type.
    #[derive(Default)]
    pub struct Scratch {
        bytes: Vec<u8>,
        words: Vec<u16>,
    }

    impl Sealed for u8 {
        const MOST: u8 = u8::MAX;

        fn as_bytes(samples: &mut [u8]) -> Option<&mut [u8]> {
            Some(samples)
        }

        #[inline(always)]
        fn of_bytes(row: &[u8], _: u16, out: &mut [u8]) {
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

        fn scratch(scratch: &mut Scratch) -> &mut Vec<u8> {
            &mut scratch.bytes
        }
    }

    impl Sealed for u16 {
        const MOST: u16 = u16::MAX;

        fn as_bytes(_: &mut [u16]) -> Option<&mut [u8]> {
            None
        }

        fn of_bytes(row: &[u8], factor: u16, out: &mut [u16]) {
            for (out, &value) in out.iter_mut().zip(row) {
                *out = u16::from(value) * factor;
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

        fn scratch(scratch: &mut Scratch) -> &mut Vec<u16> {
            &mut scratch.words
        }
    }
}
