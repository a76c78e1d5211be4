//! Resizing of bytes with sums of whole numbers: weights have 16 bits, and so have the means of rows.

use super::axis::{Axis, MEAN_BITS};

/// Values of a row that are summed together.
pub(super) const BATCH: usize = 64;

/// Returns the length of a row of means, with as much behind it as is read beside weights of 0.
pub(super) fn stride(row: usize, channels: usize, across: &Axis) -> usize {
    row + across.fixed.per_result * 2 * channels + 8
}

/// Makes the rows of a result, two at a time.
pub(super) struct ResizeBytes<'a, const C: usize> {
    pub(super) down: &'a Axis,
    pub(super) across: &'a Axis,
    /// Two rows of means.
    pub(super) means: &'a mut [i16],
    pub(super) source: &'a [u8],
    /// Values in a row of the source.
    pub(super) row: usize,
    /// Values in a row of means.
    pub(super) stride: usize,
    pub(super) out: &'a mut [u8],
    pub(super) width: usize,
}

/// Copies the first values.
#[inline(always)]
pub(super) fn first_values<T: Copy + Default, const N: usize>(values: &[T]) -> [T; N] {
    let mut first = [T::default(); N];
    first.copy_from_slice(&values[..N]);
    first
}

/// Rows of a picture, and their weights.
pub(super) struct WeighedRows<'a> {
    source: &'a [u8],
    row: usize,
    count: usize,
    pub(super) pairs: &'a [[i16; 2]],
    pub(super) bits: u32,
}

impl WeighedRows<'_> {
    /// Returns `N` values of both rows of a pair. The last row may be alone, beside a weight of 0.
    #[inline(always)]
    pub(super) fn columns<const N: usize>(&self, pair: usize, first: usize) -> [[u8; N]; 2] {
        let next = (2 * pair + 1).min(self.count - 1);
        let row = |k: usize| first_values(&self.source[k * self.row + first..]);
        [row(2 * pair), row(next)]
    }
}

impl<const C: usize> ResizeBytes<'_, C> {
    /// Resizes by functions for the mean of rows and for means within two rows.
    #[inline(always)]
    pub(super) fn resize_by(
        self,
        mean_of_rows: impl Fn(&WeighedRows<'_>, &mut [i16]),
        means_within_rows: impl Fn([&[i16]; 2], &Axis, [&mut [u8]; 2]),
    ) {
        let ResizeBytes { down, across, means, source, row, stride, out, width } = self;
        let (top, bottom) = means.split_at_mut(stride);
        for (k, out) in out.chunks_mut(2 * width * C).enumerate() {
            for (place, mean) in [&mut *top, bottom].into_iter().enumerate() {
                let i = 2 * k + place;
                let Some((start, weights)) = down.starts.get(i) else { break };
                let pairs = &down.fixed.of_result(i)[..weights.len().div_ceil(2)];
                let source = &source[start * row..];
                let rows = WeighedRows { source, row, count: weights.len(), pairs, bits: down.fixed.bits };
                mean_of_rows(&rows, &mut mean[..row]);
            }
            // The last row of an odd number is alone.
            let (upper, lower) = out.split_at_mut(width * C);
            means_within_rows([top, bottom], across, [upper, lower]);
        }
    }
}

/// Resizes without vector instructions of our own.
pub(super) fn resize<const C: usize>(work: ResizeBytes<'_, C>) {
    work.resize_by(mean_of_rows, means_within_rows::<C>);
}

/// Computes the mean of rows.
pub(super) fn mean_of_rows(rows: &WeighedRows<'_>, out: &mut [i16]) {
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    let whole = batches.len() * BATCH;
    for (k, out) in batches.iter_mut().enumerate() {
        *out = mean_of_columns(rows, k * BATCH);
    }
    for (k, out) in rest.iter_mut().enumerate() {
        [*out] = mean_of_columns(rows, whole + k);
    }
}

/// Half of the last bit of a mean of rows, less 128.
pub(super) fn first_sum(bits: u32) -> i32 {
    (1 << (bits - MEAN_BITS - 1)) - (1 << (bits + 7))
}

#[inline(always)]
fn mean_of_columns<const N: usize>(rows: &WeighedRows<'_>, first: usize) -> [i16; N] {
    let mut sums = [first_sum(rows.bits); N];
    for (k, weights) in rows.pairs.iter().enumerate() {
        for (row, &weight) in rows.columns::<N>(k, first).into_iter().zip(weights) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum -= i32::from(value) * i32::from(weight);
            }
        }
    }
    sums.map(|sum| (sum >> (rows.bits - MEAN_BITS)) as i16)
}

/// Computes the means of neighbours in two rows.
fn means_within_rows<const C: usize>(rows: [&[i16]; 2], across: &Axis, out: [&mut [u8]; 2]) {
    let bits = across.fixed.bits + MEAN_BITS;
    for (row, out) in rows.into_iter().zip(out) {
        let (pixels, _) = out.as_chunks_mut::<C>();
        for (i, (pixel, (start, _))) in pixels.iter_mut().zip(&across.starts).enumerate() {
            let mut sums = [1 << (bits - 1); C];
            let weights = across.fixed.of_result(i).as_flattened();
            let (values, _) = row[start * C..].as_chunks::<C>();
            for (values, &weight) in values.iter().zip(weights) {
                for (sum, &value) in sums.iter_mut().zip(values) {
                    *sum -= i32::from(value) * i32::from(weight);
                }
            }
            *pixel = sums.map(|sum| ((sum >> bits) + 128) as u8);
        }
    }
}
