//! The transform of two blocks by AVX2: one in each half of the vectors.
//!
//! The factors are the portable transform's. One instruction multiplies two neighbouring numbers and adds the
//! products, so what is added later has a factor that is a sum of the portable ones.
//!
//! All functions are safe: the compiler lets only code call them that is compiled for AVX2, too.

use super::pair::{BlockPair, write_rows};
use bytemuck::cast;
use std::arch::x86_64::*;

/// Sixteen numbers of 32 bits, in two vectors.
type Wide = [__m256i; 2];

/// Returns the pairs of two vectors.
#[target_feature(enable = "avx2")]
fn zip(a: __m256i, b: __m256i) -> Wide {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}

/// Returns `a * x + b * y` of each pair of x and y.
#[target_feature(enable = "avx2")]
fn times(pairs: Wide, a: i16, b: i16) -> Wide {
    let by = _mm256_set1_epi32(i32::from(a as u16) | i32::from(b) << 16);
    [_mm256_madd_epi16(pairs[0], by), _mm256_madd_epi16(pairs[1], by)]
}

#[target_feature(enable = "avx2")]
fn add(a: Wide, b: Wide) -> Wide {
    [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])]
}

#[target_feature(enable = "avx2")]
fn sub(a: Wide, b: Wide) -> Wide {
    [_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])]
}

/// Returns the numbers with 13 more bits, and half of the last of the `BITS` bits that are dropped in the
/// end.
#[target_feature(enable = "avx2")]
fn widen<const BITS: i32>(a: __m256i) -> Wide {
    let [low, high] = zip(_mm256_setzero_si256(), a);
    let half = _mm256_set1_epi32(1 << (BITS - 1));
    add([_mm256_srai_epi32::<3>(low), _mm256_srai_epi32::<3>(high)], [half, half])
}

/// Drops `BITS` bits, and joins the numbers as 16 bits.
#[target_feature(enable = "avx2")]
fn narrow<const BITS: i32>(a: Wide) -> __m256i {
    _mm256_packs_epi32(_mm256_srai_epi32::<BITS>(a[0]), _mm256_srai_epi32::<BITS>(a[1]))
}

/// Returns the sums of the even rows and of the odd rows.
#[target_feature(enable = "avx2")]
fn halves<const BITS: i32>(row: &[__m256i; 8]) -> [[Wide; 4]; 2] {
    let pairs = zip(row[2], row[6]);
    let t3 = times(pairs, 4433 + 6270, 4433);
    let t2 = times(pairs, 4433, 4433 - 15137);
    let t0 = widen::<BITS>(_mm256_add_epi16(row[0], row[4]));
    let t1 = widen::<BITS>(_mm256_sub_epi16(row[0], row[4]));

    let pairs = zip(_mm256_add_epi16(row[7], row[3]), _mm256_add_epi16(row[5], row[1]));
    let z3 = times(pairs, 9633 - 16069, 9633);
    let z4 = times(pairs, 9633, 9633 - 3196);
    let outer = zip(row[7], row[1]);
    let inner = zip(row[5], row[3]);
    let odd = [
        add(times(outer, -7373, 12299 - 7373), z4),
        add(times(inner, -20995, 25172 - 20995), z3),
        add(times(inner, 16819 - 20995, -20995), z4),
        add(times(outer, 2446 - 7373, -7373), z3),
    ];
    [[add(t0, t3), add(t1, t2), sub(t1, t2), sub(t0, t3)], odd]
}

/// Returns the sums of the even rows and of the odd rows, where the last four rows are 0.
#[target_feature(enable = "avx2")]
fn halves_of_four_rows<const BITS: i32>(row: &[__m256i; 8]) -> [[Wide; 4]; 2] {
    let pairs = zip(row[2], _mm256_setzero_si256());
    let t3 = times(pairs, 4433 + 6270, 0);
    let t2 = times(pairs, 4433, 0);
    let t0 = widen::<BITS>(row[0]);
    let pairs = zip(row[3], row[1]);
    let odd = [
        times(pairs, 9633, 12299 - 7373 + 9633 - 3196),
        times(pairs, 25172 - 20995 + 9633 - 16069, 9633),
        times(pairs, -20995 + 9633, 9633 - 3196),
        times(pairs, 9633 - 16069, -7373 + 9633),
    ];
    [[add(t0, t3), add(t0, t2), sub(t0, t2), sub(t0, t3)], odd]
}

/// One dimension of the transform. Drops `BITS` bits of the results. `SMALL`: the last four rows are 0.
#[target_feature(enable = "avx2")]
fn transform<const BITS: i32, const SMALL: bool>(row: [__m256i; 8]) -> [__m256i; 8] {
    let [even, odd] = if SMALL { halves_of_four_rows::<BITS>(&row) } else { halves::<BITS>(&row) };
    let mut out = row;
    for k in 0..4 {
        out[k] = narrow::<BITS>(add(even[k], odd[k]));
        out[7 - k] = narrow::<BITS>(sub(even[k], odd[k]));
    }
    out
}

/// Transposes the block in each half.
#[target_feature(enable = "avx2")]
fn transpose(a: [__m256i; 8]) -> [__m256i; 8] {
    let [b0, b1] = zip(a[0], a[1]);
    let [b2, b3] = zip(a[2], a[3]);
    let [b4, b5] = zip(a[4], a[5]);
    let [b6, b7] = zip(a[6], a[7]);
    let four = |a, b| [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
    let [c0, c1] = four(b0, b2);
    let [c2, c3] = four(b1, b3);
    let [c4, c5] = four(b4, b6);
    let [c6, c7] = four(b5, b7);
    let eight = |a, b| [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
    let [d0, d1] = eight(c0, c4);
    let [d2, d3] = eight(c1, c5);
    let [d4, d5] = eight(c2, c6);
    let [d6, d7] = eight(c3, c7);
    [d0, d1, d2, d3, d4, d5, d6, d7]
}

/// Returns the rows of samples of two blocks.
#[target_feature(enable = "avx2")]
fn samples_of_pair(pair: &BlockPair<'_>) -> [[u8; 16]; 8] {
    if pair.small { samples::<true>(pair) } else { samples::<false>(pair) }
}

/// Returns the first `ROWS` rows of the coefficients of two blocks, times the table. The others are 0.
#[target_feature(enable = "avx2")]
fn values<const ROWS: usize>(pair: &BlockPair<'_>) -> [__m256i; 8] {
    let left: [__m128i; 8] = cast(*pair.left);
    let right: [__m128i; 8] = cast(*pair.right);
    let table: [__m128i; 8] = cast(*pair.table);
    let mut rows = [_mm256_setzero_si256(); 8];
    for k in 0..ROWS {
        let both = _mm256_set_m128i(right[k], left[k]);
        rows[k] = _mm256_mullo_epi16(both, _mm256_broadcastsi128_si256(table[k]));
    }
    rows
}

#[target_feature(enable = "avx2")]
fn samples<const SMALL: bool>(pair: &BlockPair<'_>) -> [[u8; 16]; 8] {
    let rows = if SMALL { values::<4>(pair) } else { values::<8>(pair) };
    let rows = transpose(transform::<18, SMALL>(transpose(transform::<11, SMALL>(rows))));
    let middle = _mm256_set1_epi8(-128);
    let two = |a, b| {
        let samples = _mm256_add_epi8(_mm256_packs_epi16(a, b), middle);
        // The first row of both blocks, then the second.
        _mm256_permute4x64_epi64::<0b11_01_10_00>(samples)
    };
    cast([two(rows[0], rows[1]), two(rows[2], rows[3]), two(rows[4], rows[5]), two(rows[6], rows[7])])
}

/// Returns one dimension of four samples of each block: the sums of `idct::reduced`, of whose bits 12 are dropped.
#[target_feature(enable = "avx2")]
fn four_rows(row: &[__m256i; 8]) -> [__m256i; 4] {
    let [low, high] = zip(_mm256_setzero_si256(), row[0]);
    let half = _mm256_set1_epi32(1 << 11);
    let mean = add([_mm256_srai_epi32::<2>(low), _mm256_srai_epi32::<2>(high)], [half, half]);
    let even = times(zip(row[2], row[6]), 15137, -6270);
    let upper = zip(row[7], row[5]);
    let lower = zip(row[3], row[1]);
    let outer = add(times(upper, -4176, -4926), times(lower, 7373, 20995));
    let inner = add(times(upper, -1730, 11893), times(lower, -17799, 8697));
    let near = add(mean, even);
    let far = sub(mean, even);
    [
        narrow::<12>(add(near, outer)),
        narrow::<12>(add(far, inner)),
        narrow::<12>(sub(far, inner)),
        narrow::<12>(sub(near, outer)),
    ]
}

/// Returns the rows of samples of two blocks, with four samples of each.
#[target_feature(enable = "avx2")]
fn four(pair: &BlockPair<'_>) -> [[u8; 8]; 4] {
    /// The factors of a row's coefficients in each sample.
    const FACTORS: [[i16; 8]; 4] = [
        [16384, 20995, 15137, 7373, 0, -4926, -6270, -4176],
        [16384, 8697, -15137, -17799, 0, 11893, 6270, -1730],
        [16384, -8697, -15137, 17799, 0, -11893, 6270, 1730],
        [16384, -20995, 15137, -7373, 0, 4926, -6270, 4176],
    ];
    let factors: [__m128i; 4] = cast(FACTORS);
    let sums = |row: __m256i| {
        let times = |k: usize| _mm256_madd_epi16(row, _mm256_broadcastsi128_si256(factors[k]));
        let all =
            _mm256_hadd_epi32(_mm256_hadd_epi32(times(0), times(1)), _mm256_hadd_epi32(times(2), times(3)));
        _mm256_srai_epi32::<19>(_mm256_add_epi32(all, _mm256_set1_epi32(1 << 18)))
    };
    let [a, b, c, d] = four_rows(&values::<8>(pair));
    let words = |a, b| _mm256_packs_epi32(sums(a), sums(b));
    let samples = _mm256_packs_epi16(words(a, b), words(c, d));
    // The rows of one block, then of the other, become pairs.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    cast(_mm256_add_epi8(_mm256_permutevar8x32_epi32(samples, order), _mm256_set1_epi8(-128)))
}

/// Returns the rows of samples of two blocks, with two samples of each.
#[target_feature(enable = "avx2")]
fn two(pair: &BlockPair<'_>) -> [[u8; 4]; 2] {
    /// The factors of a row's odd coefficients.
    const FACTORS: [i16; 8] = [0, 29692, 0, -10426, 0, 6967, 0, -5906];
    let row = values::<8>(pair);
    let [low, high] = zip(_mm256_setzero_si256(), row[0]);
    let half = _mm256_set1_epi32(1 << 12);
    let mean = add([_mm256_srai_epi32::<1>(low), _mm256_srai_epi32::<1>(high)], [half, half]);
    let odd = add(times(zip(row[7], row[5]), -5906, 6967), times(zip(row[3], row[1]), -10426, 29692));
    let a = narrow::<13>(add(mean, odd));
    let b = narrow::<13>(sub(mean, odd));
    let odd = |row| _mm256_madd_epi16(row, _mm256_broadcastsi128_si256(cast(FACTORS)));
    // Both rows' sums, twice.
    let odd = _mm256_hadd_epi32(odd(a), odd(b));
    let odd = _mm256_hadd_epi32(odd, odd);
    let mean = _mm256_srai_epi32::<1>(_mm256_slli_epi32::<16>(_mm256_unpacklo_epi32(a, b)));
    let mean = _mm256_add_epi32(mean, _mm256_set1_epi32(1 << 19));
    let sums = _mm256_unpacklo_epi32(_mm256_add_epi32(mean, odd), _mm256_sub_epi32(mean, odd));
    let words = _mm256_packs_epi32(_mm256_srai_epi32::<20>(sums), sums);
    let samples = _mm256_add_epi8(_mm256_packs_epi16(words, words), _mm256_set1_epi8(-128));
    let samples: [[u8; 2]; 16] = cast(samples);
    cast([[samples[0], samples[8]], [samples[1], samples[9]]])
}

/// Writes the samples of two blocks to the rows that begin with `out`, `stride` apart.
#[target_feature(enable = "avx2")]
pub(super) fn write_samples(pair: &BlockPair<'_>, size: usize, out: &mut [u8], stride: usize) {
    match size {
        8 => write_rows(&samples_of_pair(pair), out, stride),
        4 => write_rows(&four(pair), out, stride),
        _ => write_rows(&two(pair), out, stride),
    }
}
