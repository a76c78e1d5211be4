//! The transform by SSE2, which all x86-64 processors have.
#![allow(unsafe_code)]

use bytemuck::cast;
use std::arch::x86_64::*;

/// Two factors, for pairs of neighbouring numbers of 16 bits.
#[inline]
#[target_feature(enable = "sse2")]
fn pair(a: i16, b: i16) -> __m128i {
    _mm_set1_epi32(i32::from(a as u16) | i32::from(b) << 16)
}

/// `a * x + b * y` of eight pairs of numbers, in two vectors.
type Wide = [__m128i; 2];

/// Returns the pairs of two vectors.
#[inline]
#[target_feature(enable = "sse2")]
fn zip(a: __m128i, b: __m128i) -> Wide {
    [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)]
}

#[inline]
#[target_feature(enable = "sse2")]
fn times(pairs: Wide, a: i16, b: i16) -> Wide {
    let by = pair(a, b);
    [_mm_madd_epi16(pairs[0], by), _mm_madd_epi16(pairs[1], by)]
}

#[inline]
#[target_feature(enable = "sse2")]
fn add(a: Wide, b: Wide) -> Wide {
    [_mm_add_epi32(a[0], b[0]), _mm_add_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "sse2")]
fn sub(a: Wide, b: Wide) -> Wide {
    [_mm_sub_epi32(a[0], b[0]), _mm_sub_epi32(a[1], b[1])]
}

/// Returns the numbers with 13 more bits.
#[inline]
#[target_feature(enable = "sse2")]
fn widen(a: __m128i) -> Wide {
    let [low, high] = zip(_mm_setzero_si128(), a);
    [_mm_srai_epi32::<3>(low), _mm_srai_epi32::<3>(high)]
}

/// Rounds, drops `BITS` bits, and joins the numbers as 16 bits.
#[inline]
#[target_feature(enable = "sse2")]
fn round<const BITS: i32>(a: Wide) -> __m128i {
    let half = _mm_set1_epi32(1 << (BITS - 1));
    let a = add(a, [half, half]);
    _mm_packs_epi32(_mm_srai_epi32::<BITS>(a[0]), _mm_srai_epi32::<BITS>(a[1]))
}

/// One dimension of the transform. Drops `BITS` bits of the results.
#[inline]
#[target_feature(enable = "sse2")]
fn transform<const BITS: i32>(row: [__m128i; 8]) -> [__m128i; 8] {
    let pairs = zip(row[2], row[6]);
    let t3 = times(pairs, 4433 + 6270, 4433);
    let t2 = times(pairs, 4433, 4433 - 15137);
    let t0 = widen(_mm_add_epi16(row[0], row[4]));
    let t1 = widen(_mm_sub_epi16(row[0], row[4]));
    let even = [add(t0, t3), add(t1, t2), sub(t1, t2), sub(t0, t3)];

    let pairs = zip(_mm_add_epi16(row[7], row[3]), _mm_add_epi16(row[5], row[1]));
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
    [
        round::<BITS>(add(even[0], odd[0])),
        round::<BITS>(add(even[1], odd[1])),
        round::<BITS>(add(even[2], odd[2])),
        round::<BITS>(add(even[3], odd[3])),
        round::<BITS>(sub(even[3], odd[3])),
        round::<BITS>(sub(even[2], odd[2])),
        round::<BITS>(sub(even[1], odd[1])),
        round::<BITS>(sub(even[0], odd[0])),
    ]
}

#[inline]
#[target_feature(enable = "sse2")]
fn transpose(a: [__m128i; 8]) -> [__m128i; 8] {
    let [b0, b1] = zip(a[0], a[1]);
    let [b2, b3] = zip(a[2], a[3]);
    let [b4, b5] = zip(a[4], a[5]);
    let [b6, b7] = zip(a[6], a[7]);
    let four = |a, b| [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
    let ([c0, c1], [c2, c3]) = (four(b0, b2), four(b1, b3));
    let ([c4, c5], [c6, c7]) = (four(b4, b6), four(b5, b7));
    let eight = |a, b| [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)];
    let ([d0, d1], [d2, d3]) = (eight(c0, c4), eight(c1, c5));
    let ([d4, d5], [d6, d7]) = (eight(c2, c6), eight(c3, c7));
    [d0, d1, d2, d3, d4, d5, d6, d7]
}

/// Returns the rows of samples of a block of coefficients.
#[inline(always)]
pub(super) fn samples(block: &[i16; 64], table: &[i16; 64]) -> [[u8; 8]; 8] {
    // SAFETY: all x86-64 processors have SSE2.
    unsafe { vectors(block, table) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn vectors(block: &[i16; 64], table: &[i16; 64]) -> [[u8; 8]; 8] {
    let (mut rows, table): ([__m128i; 8], [__m128i; 8]) = (cast(*block), cast(*table));
    for (row, table) in rows.iter_mut().zip(table) {
        *row = _mm_mullo_epi16(*row, table);
    }
    let rows = transpose(transform::<18>(transpose(transform::<11>(rows))));
    let middle = _mm_set1_epi8(-128);
    let two = |a, b| _mm_add_epi8(_mm_packs_epi16(a, b), middle);
    cast([two(rows[0], rows[1]), two(rows[2], rows[3]), two(rows[4], rows[5]), two(rows[6], rows[7])])
}
