//! Resizing: each pixel is a weighted mean of the source's pixels, first of rows, then within them.
//!
//! Pixels are rounded once, at the end, so that they are within 0.52 of exact weights. Sums are added in one
//! order, without fused operations, so that all machines agree.

use crate::crop::Span;
use crate::error::PictureFault;
use crate::memory;
use crate::sample::Sample;
use std::ops::{AddAssign, Mul};
use tfseek::schema::Resize;
use tfseek_wire::VectorWork;

/// Scratch memory of a resize, and the weights of the last one.
#[derive(Default)]
pub(crate) struct Resizer {
    down: Axis,
    across: Axis,
    /// A row of sums in the width of the source.
    sums: Vec<f32>,
}

/// The weights of one dimension.
#[derive(Default)]
struct Axis {
    /// The source, the result and the filter that they belong to.
    of: Option<(Span, usize, Resize)>,
    /// For each result: the first value of the source, and the weights of this one and those behind it.
    starts: Vec<(usize, std::ops::Range<usize>)>,
    weights: Vec<f32>,
}

impl Axis {
    /// Computes the weights, unless they are there.
    fn prepare(&mut self, source: Span, result: usize, filter: Resize) {
        let of = Some((source, result, filter));
        if self.of == of {
            return;
        }
        self.of = of;
        self.starts.clear();
        self.weights.clear();
        let Span { len, from, to } = source;
        let scale = (to - from) / result as f64;
        // A filter reaches over the values that a result covers, and at least over its neighbours.
        let reach = match filter {
            Resize::Bilinear => scale.max(1.0),
            Resize::Area => scale / 2.0,
        };
        for i in 0..result {
            let center = from + (i as f64 + 0.5) * scale;
            let first = (center - reach).floor().max(0.0) as usize;
            let end = ((center + reach).ceil() as usize).min(len);
            let weight = |k: usize| {
                // The part of the pixel in the span.
                let start = (k as f64).max(from);
                let end = (k as f64 + 1.0).min(to);
                match filter {
                    Resize::Bilinear => {
                        let near = 1.0 - (((start + end) / 2.0 - center) / reach).abs();
                        near.max(0.0) * (end - start)
                    }
                    Resize::Area => (end.min(center + reach) - start.max(center - reach)).max(0.0),
                }
            };
            let sum: f64 = (first..end).map(weight).sum();
            let begin = self.weights.len();
            self.weights.extend((first..end).map(|k| (weight(k) / sum) as f32));
            // Weights of 0 at the ends cost time only.
            while self.weights.len() > begin + 1 && self.weights.last() == Some(&0.0) {
                self.weights.pop();
            }
            let zeros = self.weights[begin..].iter().take_while(|&&weight| weight == 0.0).count();
            self.starts.push((first + zeros, begin + zeros..self.weights.len()));
        }
    }
}

impl Resizer {
    /// Resizes the spans `from` of a picture (height and width) to `to`. Both have pixels of `channels` values.
    pub(crate) fn resize<T: Sample>(
        &mut self,
        source: &[T],
        from: [Span; 2],
        out: &mut [T],
        to: [usize; 2],
        channels: usize,
        filter: Resize,
    ) -> Result<(), PictureFault> {
        self.down.prepare(from[0], to[0], filter);
        self.across.prepare(from[1], to[1], filter);
        let row = from[1].len * channels;
        // Four values are read at each pixel.
        memory::resize(&mut self.sums, row + 4)?;
        match channels {
            1 => ResizeRows::<T, 1> { resizer: self, source, row, out, width: to[1] }.run_vectors(),
            3 => ResizeRows::<T, 3> { resizer: self, source, row, out, width: to[1] }.run_vectors(),
            _ => ResizeRows::<T, 4> { resizer: self, source, row, out, width: to[1] }.run_vectors(),
        }
        Ok(())
    }
}

/// Makes the rows of a result.
struct ResizeRows<'a, T, const C: usize> {
    resizer: &'a mut Resizer,
    source: &'a [T],
    /// Values in a row of the source.
    row: usize,
    out: &'a mut [T],
    width: usize,
}

impl<T: Sample, const C: usize> VectorWork for ResizeRows<'_, T, C> {
    type Output = ();

    const AVX512: bool = true;

    #[inline(always)]
    fn run(self) {
        let ResizeRows { resizer: Resizer { down, across, sums }, source, row, out, width } = self;
        for ((start, weights), out) in down.starts.iter().zip(out.chunks_exact_mut(width * C)) {
            let weights = &down.weights[weights.clone()];
            mean_of_rows(&source[start * row..(start + weights.len()) * row], row, weights, &mut sums[..row]);
            means_within_row::<T, C>(sums, across, out);
        }
    }
}

/// Values of a row that are summed together.
const BATCH: usize = 32;
/// Sums of more terms than this are in `f64`.
const TERMS: usize = 32;

/// The numbers of a sum.
trait Real: Copy + Default + AddAssign + Mul<Output = Self> + From<f32> {
    fn narrow(self) -> f32;
}

impl Real for f32 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        self
    }
}

impl Real for f64 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        self as f32
    }
}

/// Computes the weighted mean of rows of `row` values.
#[inline(always)]
fn mean_of_rows<T: Sample>(rows: &[T], row: usize, weights: &[f32], out: &mut [f32]) {
    if weights.len() > TERMS {
        return means::<T, f64>(rows, row, weights, out);
    }
    means::<T, f32>(rows, row, weights, out);
}

#[inline(always)]
fn means<T: Sample, R: Real>(rows: &[T], row: usize, weights: &[f32], out: &mut [f32]) {
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    let whole = batches.len() * BATCH;
    for (k, out) in batches.iter_mut().enumerate() {
        *out = sum_columns::<T, R, BATCH>(&rows[k * BATCH..], row, weights);
    }
    for (k, out) in rest.iter_mut().enumerate() {
        [*out] = sum_columns::<T, R, 1>(&rows[whole + k..], row, weights);
    }
}

/// Computes the weighted sums of the first `N` columns.
#[inline(always)]
fn sum_columns<T: Sample, R: Real, const N: usize>(rows: &[T], row: usize, weights: &[f32]) -> [f32; N] {
    let mut sums = [R::default(); N];
    for (k, &weight) in weights.iter().enumerate() {
        for (sum, value) in sums.iter_mut().zip(&rows[k * row..k * row + N]) {
            *sum += R::from(weight) * R::from(value.to_f32());
        }
    }
    narrow(sums)
}

#[inline(always)]
fn narrow<R: Real, const N: usize>(sums: [R; N]) -> [f32; N] {
    let mut out = [0.0; N];
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = sum.narrow();
    }
    out
}

/// Computes the weighted means of neighbours in a row, and rounds them.
#[inline(always)]
fn means_within_row<T: Sample, const C: usize>(row: &[f32], axis: &Axis, out: &mut [T]) {
    for (i, (start, weights)) in axis.starts.iter().enumerate() {
        let values = &row[start * C..];
        let weights = &axis.weights[weights.clone()];
        // Four values are as fast as one. Those that do not belong to the pixel are overwritten by the next
        // one.
        let means = if weights.len() > TERMS {
            sum_pixels::<f64, C>(values, weights)
        } else {
            sum_pixels::<f32, C>(values, weights)
        };
        let mut samples = [T::default(); 4];
        for (sample, mean) in samples.iter_mut().zip(means) {
            *sample = T::of_f32(mean);
        }
        let out = &mut out[i * C..];
        match out.first_chunk_mut() {
            Some(place) => *place = samples,
            None => out[..C].copy_from_slice(&samples[..C]),
        }
    }
}

/// Computes the weighted sums of pixels of `C` values, and of those behind them.
#[inline(always)]
fn sum_pixels<R: Real, const C: usize>(values: &[f32], weights: &[f32]) -> [f32; 4] {
    let mut sums = [R::default(); 4];
    for (k, &weight) in weights.iter().enumerate() {
        for (sum, &value) in sums.iter_mut().zip(&values[k * C..k * C + 4]) {
            *sum += R::from(weight) * R::from(value);
        }
    }
    narrow(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole([height, width]: [usize; 2]) -> [Span; 2] {
        [height, width].map(|len| Span { len, from: 0.0, to: len as f64 })
    }

    /// One dimension by its definition, in `f64`: sums of weights over all values.
    fn exact(values: &[f64], Span { from, to, .. }: Span, result: usize, filter: Resize) -> Vec<f64> {
        let scale = (to - from) / result as f64;
        let mean = |i: usize| {
            let begin = from + i as f64 * scale;
            let weight = |k: usize| {
                // What the span has of a value.
                let [first, last] = [k as f64, k as f64 + 1.0].map(|end| end.clamp(from, to));
                match filter {
                    Resize::Bilinear => {
                        let away = first.midpoint(last) - (begin + scale / 2.0);
                        (last - first) * (1.0 - away.abs() / scale.max(1.0)).max(0.0)
                    }
                    Resize::Area => (last.min(begin + scale) - first.max(begin)).max(0.0),
                }
            };
            let sum: f64 = values.iter().enumerate().map(|(k, value)| weight(k) * value).sum();
            sum / (0..values.len()).map(weight).sum::<f64>()
        };
        (0..result).map(mean).collect()
    }

    /// Both dimensions, first the columns.
    fn exact_picture(values: &[f64], spans: [Span; 2], to: [usize; 2], c: usize, filter: Resize) -> Vec<f64> {
        let from = spans.map(|span| span.len);
        let mut out = vec![0.0; to[0] * to[1] * c];
        let mut rows = vec![0.0; to[0] * from[1] * c];
        for x in 0..from[1] * c {
            let column: Vec<f64> = (0..from[0]).map(|y| values[y * from[1] * c + x]).collect();
            for (y, value) in exact(&column, spans[0], to[0], filter).into_iter().enumerate() {
                rows[y * from[1] * c + x] = value;
            }
        }
        for y in 0..to[0] {
            for k in 0..c {
                let row: Vec<f64> = (0..from[1]).map(|x| rows[(y * from[1] + x) * c + k]).collect();
                for (x, value) in exact(&row, spans[1], to[1], filter).into_iter().enumerate() {
                    out[(y * to[1] + x) * c + k] = value;
                }
            }
        }
        out
    }

    fn compare<T: Sample + Into<f64>>(
        next: &mut impl FnMut() -> T,
        from: [Span; 2],
        to: [usize; 2],
        c: usize,
    ) {
        let source: Vec<T> = (0..from[0].len * from[1].len * c).map(|_| next()).collect();
        let values: Vec<f64> = source.iter().map(|&value| value.into()).collect();
        for filter in [Resize::Bilinear, Resize::Area] {
            let mut found = vec![T::default(); to[0] * to[1] * c];
            Resizer::default().resize(&source, from, &mut found, to, c, filter).unwrap();
            let want = exact_picture(&values, from, to, c, filter);
            for (&found, want) in found.iter().zip(want) {
                let off = (found.into() - want).abs();
                assert!(off < 0.52, "{from:?} to {to:?}, {c} channels, {filter:?}: {off} from {want}");
            }
        }
    }

    #[test]
    fn pixels_are_those_of_exact_weights() {
        let mut state = 7_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u16
        };
        let sizes = [
            ([1, 1], [5, 4]),
            ([3, 5], [7, 11]),
            ([40, 30], [7, 9]),
            ([40, 30], [40, 9]),
            ([9, 50], [20, 3]),
            ([17, 13], [16, 12]),
            ([64, 64], [1, 1]),
            ([5, 2000], [2, 3]),
        ];
        for (from, to) in sizes {
            for c in [1, 3, 4] {
                let spans = whole(from);
                // As of pictures that are reduced to an eighth.
                let parts = spans.map(|span| Span { from: 0.125, to: span.to - 0.625, ..span });
                for spans in [spans, [spans[0], parts[1]], parts] {
                    compare(&mut next, spans, to, c);
                    compare(&mut || next() as u8, spans, to, c);
                    // Extremes stay in range.
                    compare(&mut || u8::MAX, spans, to, c);
                    compare(&mut || u16::MAX, spans, to, c);
                }
            }
        }
    }

    /// Long sums stay within 1 of exact weights, too.
    #[test]
    fn rows_of_65500_pixels_are_resized() {
        compare(&mut || u16::MAX - 3, whole([1, 65_500]), [1, 2], 1);
        compare(&mut || u8::MAX, whole([65_500, 1]), [3, 1], 3);
    }
}
