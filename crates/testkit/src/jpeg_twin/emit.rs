//! From planes to pixels: upsampling and colours, with the arithmetic of libjpeg.

use super::header::{Colour, TwinComponent, TwinFrame};
use super::support::Rect;
use super::support::TwinWork;

/// Scratch rows.
#[derive(Default)]
pub(super) struct ScratchRows {
    /// A row of each component in full width.
    full: [Vec<u8>; 4],
    /// A row of each colour.
    colours: [Vec<u8>; 3],
    /// Weighted sums of two rows of samples, with a copy of the first and of the last one around them.
    sums: Vec<u16>,
}

/// A picture with complete planes.
pub(super) struct Picture<'a> {
    pub(super) frame: &'a TwinFrame,
    pub(super) colour: Colour,
    /// True if inks are stored as what they leave, as Adobe's programs do.
    pub(super) inverted: bool,
    pub(super) planes: &'a [&'a [u8]],
}

/// Writes the pixels of a rectangle to `out`.
pub(super) struct Emit<'a> {
    pub(super) picture: Picture<'a>,
    pub(super) rect: Rect,
    pub(super) channels: usize,
    pub(super) rows: &'a mut ScratchRows,
    pub(super) out: &'a mut [u8],
}

impl TwinWork for Emit<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.picture.emit(self.rect, self.channels, self.rows, self.out);
    }
}

impl Picture<'_> {
    #[inline(always)]
    fn emit(&self, rect: Rect, channels: usize, rows: &mut ScratchRows, out: &mut [u8]) {
        // Brightness alone needs no other component.
        let used = if channels == 1 && self.colour == Colour::YCbCr { 1 } else { self.planes.len() };
        for (row, out) in out.chunks_exact_mut(rect.width * channels).take(rect.height).enumerate() {
            let y = rect.top + row;
            for k in 0..used {
                self.upsample(k, y, rows);
            }
            let ScratchRows { full: [a, b, c, d], colours, .. } = &mut *rows;
            let rows = [a, b, c, d].map(|row| row.get(rect.left..rect.left + rect.width).unwrap_or_default());
            match (self.colour, channels) {
                (Colour::Grey | Colour::YCbCr, 1) => out.copy_from_slice(rows[0]),
                (Colour::Grey, _) => spread(rows[0], out),
                (Colour::YCbCr, _) => rgb(rows, colours, out),
                (Colour::Rgb, 1) => brightness(rows, out),
                (Colour::Rgb, _) => join(rows, out),
                (Colour::Cmyk, _) => {
                    join(rows, out);
                    self.apply_ink(rows[3], out);
                }
                (Colour::Ycck, _) => {
                    rgb(rows, colours, out);
                    out.iter_mut().for_each(|sample| *sample = 255 - *sample);
                    self.apply_ink(rows[3], out);
                }
            }
        }
    }

    /// Makes colours of inks, where `out` has three of them and `black` the fourth.
    #[inline(always)]
    fn apply_ink(&self, black: &[u8], out: &mut [u8]) {
        let flip = if self.inverted { 0 } else { 255 };
        for (pixel, black) in out.chunks_exact_mut(3).zip(black) {
            for sample in pixel {
                *sample = (u16::from(*sample ^ flip) * u16::from(black ^ flip) / 255) as u8;
            }
        }
    }

    /// Makes row `y` of component `k` in full width.
    #[inline(always)]
    fn upsample(&self, k: usize, y: usize, rows: &mut ScratchRows) {
        let component = &self.frame.components[k];
        let across = self.frame.h / component.h;
        let down = self.frame.v / component.v;
        let width = component.width;
        let at = y / down;
        let row = |at: usize| &self.planes[k][at * component.stride()..][..width];
        let out = &mut rows.full[k];
        out.resize(width * across, 0);
        // Very narrow planes are repeated, as in libjpeg.
        match (across, down) {
            (1, 1) => out.copy_from_slice(row(at)),
            (1, 2) => {
                let (other, bias) = neighbour(component, y);
                for ((out, &a), &b) in out.iter_mut().zip(row(at)).zip(row(other)) {
                    *out = ((u16::from(a) * 3 + u16::from(b) + bias) >> 2) as u8;
                }
            }
            (2, 1) if width > 2 => {
                sums(row(at).iter().map(|&a| u16::from(a)), &mut rows.sums);
                widen(&rows.sums, [1, 2], 2, out);
            }
            (2, 2) if width > 2 => {
                let (other, _) = neighbour(component, y);
                let two = row(at).iter().zip(row(other));
                sums(two.map(|(&a, &b)| u16::from(a) * 3 + u16::from(b)), &mut rows.sums);
                widen(&rows.sums, [8, 7], 4, out);
            }
            _ => {
                for (out, &sample) in out.chunks_exact_mut(across).zip(row(at)) {
                    out.fill(sample);
                }
            }
        }
    }
}

/// Returns the second nearest row of samples of a row of pixels, where there are half as many, and what is
/// added for rounding.
#[inline(always)]
fn neighbour(component: &TwinComponent, y: usize) -> (usize, u16) {
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
        *out = [((own * 3 + before + bias[0]) >> shift) as u8, ((own * 3 + after + bias[1]) >> shift) as u8];
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
        let y = i32::from(y[i]);
        let cb = i32::from(cb[i]) - 128;
        let cr = i32::from(cr[i]) - 128;
        r[i] = (y + cr + ((26345 * cr + 32768) >> 16)).clamp(0, 255) as u8;
        g[i] = (y - cr + ((-22554 * cb + 18734 * cr + 32768) >> 16)).clamp(0, 255) as u8;
        b[i] = (y + 2 * cb + ((-14942 * cb + 32768) >> 16)).clamp(0, 255) as u8;
    }
    join([r, g, b, &[]], out);
}
