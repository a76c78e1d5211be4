//! From samples to pixels: upsampling and colours, with the arithmetic of libjpeg.

use super::header::{Colour, Component, Frame};
use crate::crop::Rect;

/// Scratch rows.
#[derive(Default)]
pub(super) struct ScratchRows {
    /// A row of each component, upsampled.
    full: [Vec<u8>; 4],
    /// A row of each colour.
    colours: [Vec<u8>; 3],
    /// Weighted sums of two rows of samples, with a copy of the first and of the last one around them.
    sums: Vec<u16>,
}

/// How samples become pixels.
pub(super) struct Target {
    pub(super) colour: Colour,
    /// True if inks are stored as what they leave, as Adobe's programs do.
    pub(super) inverted: bool,
    pub(super) rect: Rect,
    /// Channels of the pixels: 1 or 3.
    pub(super) channels: usize,
}

/// The samples of two rows of units.
pub(super) struct Samples<'a> {
    pub(super) frame: &'a Frame,
    /// The samples of each component, with the odd row of units behind the even one.
    pub(super) planes: &'a [&'a [u8]],
}

impl Samples<'_> {
    /// Writes the pixels of row `y` to `out`.
    #[inline(always)]
    pub(super) fn write_row(&self, target: &Target, y: usize, scratch: &mut ScratchRows, out: &mut [u8]) {
        // Brightness alone needs no other component.
        let is_brightness = target.channels == 1 && target.colour == Colour::YCbCr;
        let used = if is_brightness { 1 } else { self.planes.len() };
        let ScratchRows { full, colours, sums } = scratch;
        let mut rows: [&[u8]; 4] = [&[]; 4];
        for (k, (row, full)) in rows.iter_mut().zip(full).enumerate().take(used) {
            *row = self.upsample(k, y, target.rect, full, sums);
        }
        match (target.colour, target.channels) {
            (Colour::Grey | Colour::YCbCr, 1) => out.copy_from_slice(rows[0]),
            (Colour::Grey, _) => spread(rows[0], out),
            (Colour::YCbCr, _) => rgb(rows, colours, out),
            (Colour::Rgb, 1) => brightness(rows, out),
            (Colour::Rgb, _) => join(rows, out),
            (Colour::Cmyk, _) => {
                join(rows, out);
                apply_ink(target.inverted, rows[3], out);
            }
            (Colour::Ycck, _) => {
                rgb(rows, colours, out);
                out.iter_mut().for_each(|sample| *sample = 255 - *sample);
                apply_ink(target.inverted, rows[3], out);
            }
        }
    }

    /// Returns a row of samples of component `k`.
    #[inline(always)]
    fn samples(&self, k: usize, row: usize) -> &[u8] {
        let component = &self.frame.components[k];
        &self.planes[k][row % (component.v * component.size * 2) * component.stride()..][..component.width]
    }

    /// Returns row `y` of component `k` with a sample for each pixel of the rectangle, which are in `full`
    /// unless the component has them.
    #[inline(always)]
    fn upsample<'a>(
        &'a self,
        k: usize,
        y: usize,
        rect: Rect,
        full: &'a mut Vec<u8>,
        scratch: &mut Vec<u16>,
    ) -> &'a [u8] {
        let component = &self.frame.components[k];
        let Component { across, down, width, .. } = *component;
        let Rect { left, width: pixels, .. } = rect;
        if (across, down) == (1, 1) {
            return &self.samples(k, y)[left..left + pixels];
        }
        // With a neighbour on each side.
        let first = (left / across).max(1) - 1;
        let end = ((left + pixels - 1) / across + 2).min(width);
        let near = &self.samples(k, y / down)[first..end];
        let (other, bias) = neighbour(component, y);
        let far = || &self.samples(k, other)[first..end];
        full.resize((end - first) * across, 0);
        // Very narrow planes are repeated, as in libjpeg, and pictures with a sample a block.
        match (across, down) {
            _ if self.frame.size == 1 => repeat(near, across, full),
            (1, 2) => {
                for ((out, &a), &b) in full.iter_mut().zip(near).zip(far()) {
                    *out = ((u16::from(a) * 3 + u16::from(b) + bias) >> 2) as u8;
                }
            }
            (2, 1) if width > 2 => {
                sums(near.iter().map(|&a| u16::from(a)), scratch);
                widen(scratch, [1, 2], 2, full);
            }
            (2, 2) if width > 2 => {
                let two = near.iter().zip(far());
                sums(two.map(|(&a, &b)| u16::from(a) * 3 + u16::from(b)), scratch);
                widen(scratch, [8, 7], 4, full);
            }
            _ => repeat(near, across, full),
        }
        &full[left - first * across..][..pixels]
    }
}

/// Repeats each sample.
#[inline(always)]
fn repeat(row: &[u8], times: usize, out: &mut [u8]) {
    for (out, &sample) in out.chunks_exact_mut(times).zip(row) {
        out.fill(sample);
    }
}

/// Makes colours of inks, where `out` has three of them and `black` the fourth.
#[inline(always)]
fn apply_ink(inverted: bool, black: &[u8], out: &mut [u8]) {
    let flip = if inverted { 0 } else { 255 };
    for (pixel, black) in out.chunks_exact_mut(3).zip(black) {
        for sample in pixel {
            *sample = (u16::from(*sample ^ flip) * u16::from(black ^ flip) / 255) as u8;
        }
    }
}

/// Returns the second nearest row of samples of a row of pixels, where there are half as many, and what is
/// added for rounding.
#[inline(always)]
fn neighbour(component: &Component, y: usize) -> (usize, u16) {
    if y.is_multiple_of(2) {
        ((y / 2).saturating_sub(1), 1)
    } else {
        ((y / 2 + 1).min(component.height - 1), 2)
    }
}

/// Collects numbers, with a copy of the first before them, and of the last behind them.
#[inline(always)]
fn sums(row: impl ExactSizeIterator<Item = u16>, out: &mut Vec<u16>) {
    let n = row.len();
    out.resize(n + 2, 0);
    for (out, sum) in out[1..].iter_mut().zip(row) {
        *out = sum;
    }
    out[0] = out[1];
    out[n + 1] = out[n];
}

/// Makes two samples of each sum: three parts of it, and one of its neighbour.
#[inline(always)]
fn widen(sums: &[u16], bias: [u16; 2], shift: u32, out: &mut [u8]) {
    let n = sums.len() - 2;
    let before = &sums[..n];
    let own = &sums[1..n + 1];
    let after = &sums[2..];
    for (((out, &before), &own), &after) in
        out.as_chunks_mut::<2>().0.iter_mut().zip(before).zip(own).zip(after)
    {
        let even = (own * 3 + before + bias[0]) >> shift;
        let odd = (own * 3 + after + bias[1]) >> shift;
        // One word of 16 bits is stored, which vectors do better than two bytes.
        *out = (even | odd << 8).to_le_bytes();
    }
}

/// Repeats a row of brightness for three colours.
#[inline(always)]
fn spread(row: &[u8], out: &mut [u8]) {
    for (out, &sample) in out.as_chunks_mut::<3>().0.iter_mut().zip(row) {
        *out = [sample; 3];
    }
}

/// Joins three rows.
#[inline(always)]
fn join(rows: [&[u8]; 4], out: &mut [u8]) {
    for (((out, &a), &b), &c) in out.as_chunks_mut::<3>().0.iter_mut().zip(rows[0]).zip(rows[1]).zip(rows[2])
    {
        *out = [a, b, c];
    }
}

/// Computes the brightness of three rows of colours.
#[inline(always)]
fn brightness(rows: [&[u8]; 4], out: &mut [u8]) {
    for (((out, &r), &g), &b) in out.iter_mut().zip(rows[0]).zip(rows[1]).zip(rows[2]) {
        *out = ((u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471 + 32768) >> 16) as u8;
    }
}

/// Returns `(a * factor + 32768) >> 16`, by the upper half of a product of 16 bits, which vectors have: it is
/// `((2 * a * factor >> 16) + 1) >> 1`.
#[inline(always)]
fn times(a: i16, factor: i16) -> i16 {
    let upper = (i32::from(a * 2) * i32::from(factor)) >> 16;
    (upper as i16 + 1) >> 1
}

/// Computes colours of brightness and two differences. The factors of libjpeg are reduced by multiples of
/// 65536, so that they have 16 bits.
#[inline(always)]
fn rgb(rows: [&[u8]; 4], colours: &mut [Vec<u8>; 3], out: &mut [u8]) {
    let n = rows[0].len();
    let [red, green, blue] = colours;
    for colour in [&mut *red, &mut *green, &mut *blue] {
        colour.resize(n, 0);
    }
    let y = &rows[0][..n];
    let cb = &rows[1][..n];
    let cr = &rows[2][..n];
    let r = &mut red[..n];
    let g = &mut green[..n];
    let b = &mut blue[..n];
    for i in 0..n {
        let y = i16::from(y[i]);
        let cb = i16::from(cb[i]) - 128;
        let cr = i16::from(cr[i]) - 128;
        r[i] = (y + cr + times(cr, 26345)).clamp(0, 255) as u8;
        let both = (-22554 * i32::from(cb) + 18734 * i32::from(cr) + 32768) >> 16;
        g[i] = (y - cr + both as i16).clamp(0, 255) as u8;
        b[i] = (y + 2 * cb + times(cb, -14942)).clamp(0, 255) as u8;
    }
    join([r, g, b, &[]], out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_16_bits_are_rounded_as_those_of_32() {
        for factor in [26345, -14942] {
            for a in -128..128_i16 {
                let want = (i32::from(a) * i32::from(factor) + 32768) >> 16;
                assert_eq!(i32::from(times(a, factor)), want);
            }
        }
    }
}
