//! Work on a row of a picture as planes of `f32`, one for each channel.
//!
//! Each product and each sum is rounded by itself, so that all machines agree.

use crate::sample::{Sample, round};
use tfseek_wire::VectorWork;

/// The planes of a row, of which as many are used as there are channels.
pub(crate) type Planes = [Vec<f32>; 4];

/// Fills planes with the samples of a row.
pub(crate) struct LoadRow<'a, T, const C: usize> {
    pub(crate) pixels: &'a [[T; C]],
    /// Reads the row from its end.
    pub(crate) mirrored: bool,
    /// Divides the samples.
    pub(crate) divisor: Option<f32>,
    pub(crate) planes: &'a mut Planes,
}

impl<T: Sample, const C: usize> VectorWork for LoadRow<'_, T, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (c, plane) in self.planes.iter_mut().enumerate().take(C) {
            for (value, pixel) in plane.iter_mut().zip(self.pixels) {
                *value = pixel[c].to_f32();
            }
            if self.mirrored {
                plane.reverse();
            }
            if let Some(divisor) = self.divisor {
                for value in plane {
                    *value /= divisor;
                }
            }
        }
    }
}

/// An operation on colours, with the factor that was drawn.
#[derive(Clone, Copy)]
pub(crate) struct ColourOperation {
    pub(crate) colour: ColourChange,
    pub(crate) factor: f32,
    /// 1 - factor, rounded once. Of contrast its product with the mean of the picture.
    pub(crate) rest: f32,
}

/// The change of an operation. Its number is its draw's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColourChange {
    Brightness = 0,
    Contrast = 1,
    Saturation = 2,
    Hue = 3,
}

/// Applies operations to the planes of colours: 1 or 3.
pub(crate) struct ColourRow<'a> {
    pub(crate) planes: &'a mut [Vec<f32>],
    pub(crate) operations: &'a [ColourOperation],
}

impl VectorWork for ColourRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for &ColourOperation { colour, factor, rest } in self.operations {
            match (colour, &mut *self.planes) {
                (ColourChange::Brightness, planes) => {
                    change_each(planes, |value| clamp(factor * value));
                }
                (ColourChange::Contrast, planes) => {
                    change_each(planes, |value| clamp(factor * value + rest));
                }
                (ColourChange::Saturation, [red, green, blue]) => {
                    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
                        let y = rest * (0.2989 * *r + 0.587 * *g + 0.114 * *b);
                        [*r, *g, *b] = [*r, *g, *b].map(|value| clamp(factor * value + y));
                    }
                }
                (ColourChange::Hue, [red, green, blue]) => {
                    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
                        [*r, *g, *b] = turned([*r, *g, *b], factor).map(clamp);
                    }
                }
                // A spec has these only for three colours.
                (ColourChange::Saturation | ColourChange::Hue, _) => {}
            }
        }
    }
}

/// Changes each value. The planes are no flattened iterator, which vectors cannot follow.
#[inline(always)]
fn change_each(planes: &mut [Vec<f32>], change: impl Fn(f32) -> f32) {
    for plane in planes {
        for value in plane {
            *value = change(*value);
        }
    }
}

/// Returns one of two values, by an instruction for several at once.
#[inline(always)]
fn select(condition: bool, then: f32, otherwise: f32) -> f32 {
    if condition { then } else { otherwise }
}

/// Limits a value to 0 to 255.
#[inline(always)]
fn clamp(value: f32) -> f32 {
    let value = select(value > 0.0, value, 0.0);
    select(value < 255.0, value, 255.0)
}

/// Turns the hue by a part of the circle, in the model HSV.
#[inline(always)]
fn turned([r, g, b]: [f32; 3], part: f32) -> [f32; 3] {
    let larger = |a: f32, b: f32| select(a > b, a, b);
    let smaller = |a: f32, b: f32| select(a < b, a, b);
    let v = larger(larger(r, g), b);
    let d = v - smaller(smaller(r, g), b);
    let s = d / v;
    let others = select(g == v, 2.0 + (b - r) / d, 4.0 + (r - g) / d);
    let h = select(r == v, (g - b) / d, others) / 6.0 + part;
    let sixths = 6.0 * (h - h.floor());
    let whole = sixths.floor();
    let e = sixths - whole;
    let p = v * (1.0 - s);
    let q = v * (1.0 - s * e);
    let t = v * (1.0 - s * (1.0 - e));
    // 6, which a rounded hue may give, is 0.
    let i = select(whole < 6.0, whole, 0.0);
    let [one, two, three, four, five] = [1.0, 2.0, 3.0, 4.0, 5.0].map(|limit| mask(i < limit));
    let pick = |[a, b, c, d, e, f]: [f32; 6]| {
        let low = blend(one, a, blend(two, b, c));
        let high = blend(four, d, blend(five, e, f));
        blend(three, low, high)
    };
    // Grey has no hue.
    let grey = mask(d == 0.0);
    [
        blend(grey, r, pick([v, q, p, p, t, v])),
        blend(grey, g, pick([t, v, v, q, p, p])),
        blend(grey, b, pick([p, p, t, v, v, q])),
    ]
}

/// Returns all bits, or none.
#[inline(always)]
fn mask(condition: bool) -> u32 {
    0_u32.wrapping_sub(u32::from(condition))
}

/// Returns one of two values by its bits: a compiler makes a table of nested conditions, and vectors have none.
#[inline(always)]
fn blend(mask: u32, then: f32, otherwise: f32) -> f32 {
    f32::from_bits(then.to_bits() & mask | otherwise.to_bits() & !mask)
}

/// Sums the values of each plane in units of 1/4096, which are whole numbers.
pub(crate) struct SumRow<'a> {
    pub(crate) planes: &'a [Vec<f32>],
    pub(crate) sums: &'a mut [u64; 3],
}

impl VectorWork for SumRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (plane, sum) in self.planes.iter().zip(self.sums) {
            for &value in plane {
                *sum += u64::from(round(4096.0 * value) & 0x7f_ffff);
            }
        }
    }
}

/// The way from values of 0 to 255 to numbers.
#[derive(Clone, Copy)]
pub(crate) enum NumberForm {
    Whole,
    /// Divided by this number.
    Divided(f32),
    /// A factor and a term for each channel.
    Normalized([[f32; 2]; 4]),
}

/// Makes numbers of values.
pub(crate) struct NumberRow<'a> {
    pub(crate) planes: &'a mut [Vec<f32>],
    pub(crate) numbers: NumberForm,
}

impl VectorWork for NumberRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.numbers {
            NumberForm::Whole => {}
            NumberForm::Divided(divisor) => {
                change_each(self.planes, |value| value / divisor);
            }
            NumberForm::Normalized(channels) => {
                for (plane, [factor, term]) in self.planes.iter_mut().zip(channels) {
                    for value in plane {
                        *value = *value * factor + term;
                    }
                }
            }
        }
    }
}

/// A type of numbers of a batch.
pub(crate) trait Number {
    type Bits: Copy;

    /// Rounds a number that the type can have, and returns its bits. Halves become even.
    fn bits(value: f32) -> Self::Bits;
}

impl Number for u8 {
    type Bits = u8;

    #[inline(always)]
    fn bits(value: f32) -> u8 {
        round(value) as u8
    }
}

impl Number for u16 {
    type Bits = u16;

    #[inline(always)]
    fn bits(value: f32) -> u16 {
        round(value) as u16
    }
}

impl Number for f32 {
    type Bits = u32;

    #[inline(always)]
    fn bits(value: f32) -> u32 {
        value.to_bits()
    }
}

/// IEEE 754's float of 16 bits.
pub(crate) struct Float16;

impl Number for Float16 {
    type Bits = u16;

    #[inline(always)]
    fn bits(value: f32) -> u16 {
        /// 2^16, from which on all is infinite.
        const INFINITE: u32 = 143 << 23;
        /// 2^-14, below which the exponent stays.
        const SUBNORMAL: u32 = 113 << 23;
        let bits = value.to_bits();
        let sign = bits & 0x8000_0000;
        let bits = bits ^ sign;
        // The last bit of 0.5 is worth 2^-24, as the last one of a subnormal number is.
        let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
        let odd = bits >> 13 & 1;
        let normal = bits.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
        let rounded = if bits < SUBNORMAL { subnormal } else { normal };
        let finite = if bits < INFINITE { rounded } else { 0x7c00 };
        (sign >> 16 | finite) as u16
    }
}

/// The upper half of an `f32`.
pub(crate) struct BFloat16;

impl Number for BFloat16 {
    type Bits = u16;

    #[inline(always)]
    fn bits(value: f32) -> u16 {
        let bits = value.to_bits();
        (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
    }
}

/// Stores planes as pixels.
pub(crate) struct StoreRow<'a, T: Number, const C: usize> {
    pub(crate) planes: &'a Planes,
    pub(crate) out: &'a mut [[T::Bits; C]],
}

impl<T: Number, const C: usize> VectorWork for StoreRow<'_, T, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let len = self.out.len();
        let planes: [&[f32]; C] = std::array::from_fn(|c| &self.planes[c][..len]);
        for (x, pixel) in self.out.iter_mut().enumerate() {
            *pixel = std::array::from_fn(|c| T::bits(planes[c][x]));
        }
    }
}

/// Stores a plane.
pub(crate) struct StorePlane<'a, T: Number> {
    pub(crate) plane: &'a [f32],
    pub(crate) out: &'a mut [T::Bits],
}

impl<T: Number> VectorWork for StorePlane<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &value) in self.out.iter_mut().zip(self.plane) {
            *out = T::bits(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of the nearest float of 16 bits, by its definition: found between its neighbours, of which
    /// halves take the even one. `widen` returns the value of a positive float.
    fn nearest(value: f32, widen: fn(u16) -> f64) -> u16 {
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        let magnitude = f64::from(value.abs());
        // Positive floats ascend with their bits.
        let (mut low, mut high) = (0_u16, 0x7fff_u16);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if widen(middle) <= magnitude { low = middle } else { high = middle - 1 }
        }
        let below = magnitude - widen(low);
        let above = widen(low + 1) - magnitude;
        let up = above < below || (above == below && low % 2 == 1);
        sign | if up { low + 1 } else { low }
    }

    /// The value of a float of 16 bits. Infinity counts as the next power of two, at which rounding ends.
    fn wide16(bits: u16) -> f64 {
        let exponent = i32::from(bits >> 10);
        let fraction = f64::from(bits & 0x3ff) / 1024.0;
        match exponent {
            0 => fraction * 2_f64.powi(-14),
            31 if bits == 0x7c00 => 65536.0,
            31 => f64::INFINITY,
            _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
        }
    }

    fn wide_bfloat16(bits: u16) -> f64 {
        match bits {
            0x7f80 => 2_f64.powi(128),
            0x7f81.. => f64::INFINITY,
            _ => f64::from(f32::from_bits(u32::from(bits) << 16)),
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn floats_of_16_bits_are_the_nearest() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        };
        let near = (0..=0x7c00_u16).flat_map(|bits| {
            let exact = (wide16(bits) as f32).to_bits();
            let middle = ((wide16(bits) + wide16((bits + 1).min(0x7c00))) / 2.0) as f32;
            [exact, middle.to_bits(), middle.to_bits() - 1, middle.to_bits() + 1]
        });
        let any = (0..200_000).map(|_| random()).collect::<Vec<_>>();
        for bits in near.chain(any) {
            let value = f32::from_bits(bits);
            if !value.is_finite() {
                continue;
            }
            if f64::from(value.abs()) < 65536.0 {
                assert_eq!(Float16::bits(value), nearest(value, wide16), "{value:?}");
            }
            assert_eq!(BFloat16::bits(value), nearest(value, wide_bfloat16), "{value:?}");
        }
        assert_eq!([65520.0, -1e30, 0.0, -0.0].map(Float16::bits), [0x7c00, 0xfc00, 0, 0x8000]);
    }
}
