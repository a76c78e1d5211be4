//! Resizing of bytes by AVX2: one instruction multiplies two neighbouring numbers and adds the products.
//!
//! All functions are safe: the compiler lets only code call them that is compiled for AVX2, too.

use super::axis::{Axis, MEAN_BITS};
use super::fixed::{BATCH, ResizeBytes, WeighedRows, first_sum, first_values};
use bytemuck::cast;
use std::arch::x86_64::*;

/// Resizes as the portable code does.
#[target_feature(enable = "avx2")]
pub(super) fn resize<const C: usize>(work: ResizeBytes<'_, C>) {
    work.resize_by(
        |rows, out| mean_of_rows(rows, out),
        |rows, across, out| match across.fixed.per_result {
            1 => means_within_rows::<C, 1>(rows, across, out),
            2 => means_within_rows::<C, 2>(rows, across, out),
            3 => means_within_rows::<C, 3>(rows, across, out),
            4 => means_within_rows::<C, 4>(rows, across, out),
            5 => means_within_rows::<C, 5>(rows, across, out),
            _ => means_within_rows::<C, 0>(rows, across, out),
        },
    );
}

/// Computes the mean of rows.
#[target_feature(enable = "avx2")]
fn mean_of_rows(rows: &WeighedRows<'_>, out: &mut [i16]) {
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    let rest = rest.len();
    for (k, out) in batches.iter_mut().enumerate() {
        *out = mean_of_columns(rows, k * BATCH);
    }
    if rest > 0 {
        // The last columns, some of them for the second time.
        match out.last_chunk_mut::<BATCH>() {
            Some(_) => {
                let first = out.len() - BATCH;
                let means = mean_of_columns(rows, first);
                out[first..].copy_from_slice(&means);
            }
            None => super::fixed::mean_of_rows(rows, out),
        }
    }
}

#[target_feature(enable = "avx2")]
fn mean_of_columns(rows: &WeighedRows<'_>, first: usize) -> [i16; BATCH] {
    let zero = _mm256_setzero_si256();
    let shift = _mm_cvtsi32_si128((rows.bits - MEAN_BITS) as i32);
    let mut sums = [[_mm256_set1_epi32(first_sum(rows.bits)); 4]; BATCH / 32];
    for (k, &weights) in rows.pairs.iter().enumerate() {
        let weights = _mm256_set1_epi32(cast(weights));
        let [upper, lower]: [[__m256i; BATCH / 32]; 2] = cast(rows.columns::<BATCH>(k, first));
        for (sums, (upper, lower)) in sums.iter_mut().zip(upper.into_iter().zip(lower)) {
            let low = _mm256_unpacklo_epi8(upper, lower);
            let high = _mm256_unpackhi_epi8(upper, lower);
            let pairs = [
                _mm256_unpacklo_epi8(low, zero),
                _mm256_unpackhi_epi8(low, zero),
                _mm256_unpacklo_epi8(high, zero),
                _mm256_unpackhi_epi8(high, zero),
            ];
            for (sum, pair) in sums.iter_mut().zip(pairs) {
                *sum = _mm256_sub_epi32(*sum, _mm256_madd_epi16(pair, weights));
            }
        }
    }
    let mut means = [zero; BATCH / 16];
    for (means, sums) in means.chunks_exact_mut(2).zip(&mut sums) {
        for sum in &mut *sums {
            *sum = _mm256_sra_epi32(*sum, shift);
        }
        let low = _mm256_packs_epi32(sums[0], sums[1]);
        let high = _mm256_packs_epi32(sums[2], sums[3]);
        means[0] = _mm256_permute2x128_si256::<0x20>(low, high);
        means[1] = _mm256_permute2x128_si256::<0x31>(low, high);
    }
    cast(means)
}

/// Places of the bytes of two pixels' values, so that a channel's values are neighbours.
const fn places<const C: usize>() -> [i8; 32] {
    let mut places = [0; 32];
    let mut at = 0;
    while at < 32 {
        let value = at % 16 / 2;
        // Channels behind the last are not used.
        let channel = value / 2 % C;
        places[at] = ((value % 2 * C + channel) * 2 + at % 2) as i8;
        at += 1;
    }
    places
}

/// Computes the means of neighbours in two rows, one in each half of the vectors. `PAIRS` is the number of a
/// result's pairs of weights, or 0 for any.
#[target_feature(enable = "avx2")]
fn means_within_rows<const C: usize, const PAIRS: usize>(
    rows: [&[i16]; 2],
    across: &Axis,
    out: [&mut [u8]; 2],
) {
    let places = cast(const { places::<C>() });
    // The lowest bytes of four sums.
    let lowest = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    let middle = _mm256_set1_epi8(-128);
    let bits = across.fixed.bits + MEAN_BITS;
    let shift = _mm_cvtsi32_si128(bits as i32);
    let half = _mm256_set1_epi32(1 << (bits - 1));
    let pairs = if PAIRS == 0 { across.fixed.per_result } else { PAIRS };
    let [upper, lower] = out;
    for (i, (start, _)) in across.starts.iter().enumerate() {
        let weights = &across.fixed.of_result(i)[..pairs];
        let read = start * C..start * C + (pairs - 1) * 2 * C + 8;
        let top = &rows[0][read.clone()];
        let bottom = &rows[1][read];
        let mut sums = half;
        let tops = top.windows(8).step_by(2 * C);
        let bottoms = bottom.windows(8).step_by(2 * C);
        for ((top, bottom), &weights) in tops.zip(bottoms).zip(weights) {
            let top: __m128i = cast(first_values::<i16, 8>(top));
            let bottom: __m128i = cast(first_values::<i16, 8>(bottom));
            let values = _mm256_shuffle_epi8(_mm256_set_m128i(bottom, top), places);
            let weights = _mm256_set1_epi32(cast(weights));
            sums = _mm256_sub_epi32(sums, _mm256_madd_epi16(values, weights));
        }
        let bytes = _mm256_shuffle_epi8(_mm256_sra_epi32(sums, shift), lowest);
        let bytes = _mm256_add_epi8(bytes, middle);
        write_pixel::<C>(upper, i, _mm256_extract_epi32::<0>(bytes));
        write_pixel::<C>(lower, i, _mm256_extract_epi32::<4>(bytes));
    }
}

/// Writes a pixel, where the row has one. Four values are as fast as one. Those behind the pixel are
/// overwritten by the next one.
#[inline(always)]
fn write_pixel<const C: usize>(row: &mut [u8], i: usize, pixel: i32) {
    let pixel = pixel.to_le_bytes();
    if let Some(place) = row.get_mut(i * C..i * C + 4) {
        place.copy_from_slice(&pixel);
    } else if let Some(place) = row.get_mut(i * C..i * C + C) {
        place.copy_from_slice(&pixel[..C]);
    }
}
