//! Packed varints of up to four bytes in blocks of 64 bytes, with AVX-512.
//!
//! All first bytes of the values of a block are moved together by one instruction, then all second bytes, and
//! so on. Each step after that works on 16 or 32 values at once. Longer values are decoded by
//! [`avx2`](super::avx2).
//!
//! Measured (`benches/varint.rs`, Zen 4): 1.4 to 1.6 times as fast as the form with AVX2 on ids of one to
//! three bytes. Memory is read and written through slices and arrays only. The unsafe part is to execute
//! these instructions at all. The safe twin is [`decode_slow`](super::slow::decode_slow). Without this form
//! an epoch of records of 512 ids takes 1.4 times as long; a second form of an algorithm must gain 10 % end
//! to end.

#![allow(unsafe_code)]

use super::avx2::{self, Avx2, BLOCK, Longest, WINDOW, continuations, decode_blocks, longest};
use std::arch::x86_64::*;

/// Proof that this processor has the instructions below and a fast `pext`. Only `detect` creates a value.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    #[inline]
    pub(super) fn detect() -> Option<Avx512> {
        let all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi2");
        // Every processor with these has a fast `pext`.
        (all && Avx2::detect().is_some_and(|avx2| avx2.pext)).then_some(Avx512(()))
    }

    /// Decodes a chunk, as specified for [`decode`](super::decode).
    #[inline]
    pub(super) fn decode(self, chunk: &[u8], out: &mut [i64]) -> usize {
        // SAFETY: `decode` requires only that the processor has its target features. `self` exists, so
        // `detect` has found all of them.
        unsafe { decode(chunk, out) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vbmi2")]
fn decode(chunk: &[u8], out: &mut [i64]) -> usize {
    let block = |window: &[u8; WINDOW], ends, out: &mut [i64; BLOCK]| {
        match longest(ends)? {
            Longest::Four => short(window, ends, out),
            other => avx2::block::<true>(other, window, ends, out),
        }
        Some(())
    };
    decode_blocks::<7>(chunk, out, |block| continuations(block), block)
}

/// Returns 64 bytes of the window from byte `AT` on.
#[inline]
#[target_feature(enable = "avx512f")]
fn bytes<const AT: usize>(window: &[u8; WINDOW]) -> __m512i {
    // A window has 16 bytes more than this, so the compiler removes the other branch.
    bytemuck::cast(window.get(AT..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; BLOCK]))
}

/// Decodes values of up to four bytes, eight at a time. Up to seven elements of `out` after the last value
/// are unspecified.
#[inline]
#[target_feature(enable = "avx2,popcnt,avx512f,avx512bw,avx512vbmi2")]
fn short(window: &[u8; WINDOW], ends: u64, out: &mut [i64; BLOCK]) {
    // Bit i of `open_n`: bytes i to i + n - 1 do not end a value, so a value that starts at byte i has a byte
    // i + n.
    let starts = ends << 1 | 1;
    let open_1 = !ends;
    let open_2 = open_1 & open_1 >> 1;
    let open_3 = open_2 & open_1 >> 2;
    // Byte i: the first, second, third and fourth byte of value i, or 0 if it has fewer.
    let sevens = _mm512_set1_epi8(0x7f);
    let pick = |bytes, open| {
        _mm512_maskz_compress_epi8(starts, _mm512_maskz_mov_epi8(open, _mm512_and_si512(bytes, sevens)))
    };
    let first = pick(bytes::<0>(window), u64::MAX);
    let second = pick(bytes::<1>(window), open_1);
    let third = pick(bytes::<2>(window), open_2);
    let fourth = if open_3 == 0 { _mm512_setzero_si512() } else { pick(bytes::<3>(window), open_3) };

    // 14 bits of each value.
    let low = join(first, second).into_iter();
    let high = join(third, fourth);
    let mut left = ends.count_ones() as usize;
    let mut to = out.as_chunks_mut::<8>().0.iter_mut();
    for (low, high) in low.zip(high) {
        let high = _mm512_slli_epi32::<14>(_mm512_cvtepu16_epi32(high));
        let values: [__m256i; 2] = bytemuck::cast(_mm512_or_si512(_mm512_cvtepu16_epi32(low), high));
        for eight in values {
            if left == 0 {
                return;
            }
            if let Some(to) = to.next() {
                *to = bytemuck::cast(_mm512_cvtepu32_epi64(eight));
            }
            left = left.saturating_sub(8);
        }
    }
}

/// Joins the seven bits of each byte of `low` with the seven bits of the same byte of `high`, in 16 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn join(low: __m512i, high: __m512i) -> [__m256i; 4] {
    let half = |low, high| {
        _mm512_or_si512(_mm512_cvtepu8_epi16(low), _mm512_slli_epi16::<7>(_mm512_cvtepu8_epi16(high)))
    };
    let [[low_0, low_1], [high_0, high_1]]: [[__m256i; 2]; 2] = bytemuck::cast([low, high]);
    bytemuck::cast([half(low_0, high_0), half(low_1, high_1)])
}
