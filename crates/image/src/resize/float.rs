//! Resizing with sums of `f32`, or of `f64` where they are long.

use super::axis::Axis;
use crate::sample::Sample;
use std::ops::{AddAssign, Mul};
use tfseek_wire::VectorWork;

/// Makes the rows of a result.
pub(super) struct ResizeRows<'a, T, const C: usize> {
    pub(super) down: &'a Axis,
    pub(super) across: &'a Axis,
    /// A row of sums.
    pub(super) sums: &'a mut [f32],
    pub(super) source: &'a [T],
    /// Values in a row of the source.
    pub(super) row: usize,
    pub(super) out: &'a mut [T],
    pub(super) width: usize,
}

impl<T: Sample, const C: usize> VectorWork for ResizeRows<'_, T, C> {
    type Output = ();

    const AVX512: bool = true;

    #[inline(always)]
    fn run(self) {
        let ResizeRows { down, across, sums, source, row, out, width } = self;
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
