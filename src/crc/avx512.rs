//! The CRC32C of slices of 64 bytes and more by carry-less multiplications of 512 bits.
//!
//! A slice is a polynomial, and its CRC the remainder modulo P. To move 16 bytes over `n` later ones, both
//! halves are multiplied with the remainders of powers of x, so that the sum with the bytes there has the
//! same remainder (Intel, *Fast CRC Computation Using PCLMULQDQ Instruction*). Four registers of 64 bytes
//! move over 256 bytes in each step. At the end all 16 parts move onto the last one, and two `crc32`
//! instructions compute its remainder.
//!
//! Blocks of 64 bytes are counted from the end of the slice, because zeros before a slice do not change a
//! remainder, and zeros after it do. So the bytes before the first whole block are one block too, with zeros
//! before them, and no loop over single words or bytes is needed.
//!
//! Measured (Xeon with AMX): 0.55 to 0.8 of the time of the forms without AVX-512 for 300 to 1,000 bytes in
//! the cache, and 0.8 to 0.95 over records of 256 bytes to 2 KB that are not in the caches, in random order
//! with prefetches. `crc-fast` also multiplies 512 bits, but checks up to 63 bytes before and up to 383 bytes
//! after them in words.
//!
//! Memory is read through slices and arrays only. The unsafe part is to execute these instructions at all.
//! The safe twin is the `crc32c` crate.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// Bytes of a block, which is one register.
const BLOCK: usize = 64;

/// Proof that this processor has the instructions below. Only `detect` creates a value.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    #[inline]
    pub(super) fn detect() -> Option<Avx512> {
        // The rarest is the first, so that other processors lose little time.
        let all = is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("sse4.2");
        all.then_some(Avx512(()))
    }

    /// Returns the CRC32C of two slices joined: `crc` is the first one's, `bytes` is the second. `None` for
    /// less than 64 bytes.
    #[inline(always)]
    pub(super) fn append(self, crc: u32, bytes: &[u8]) -> Option<u32> {
        // SAFETY: `append` requires only that the processor has its target features. `self` exists, so
        // `detect` has found all of them.
        unsafe { append(crc, bytes) }
    }
}

#[target_feature(enable = "sse4.2,avx512f,avx512vbmi2,vpclmulqdq")]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "the head has less than 64 bytes, and four bytes are 32 bits"
)]
fn append(crc: u32, bytes: &[u8]) -> Option<u32> {
    let (head, blocks) = bytes.as_rchunks::<BLOCK>();
    // The state is added to the first four bytes. The head may have fewer.
    let state = u64::from(!crc);
    let first = _mm512_xor_si512(load(bytes.first_chunk()?), low(state));
    let state = low(state >> (8 * head.len().min(4)));
    let head = _mm512_maskz_expand_epi8(!(u64::MAX >> head.len()), first);
    let zero = _mm512_setzero_si512();
    let step = constants(&STEP);
    let start = |block| _mm512_xor_si512(load(block), state);
    let (mut sums, rest) = match (blocks.len() % 4, blocks) {
        (1, [a, rest @ ..]) => ([zero, zero, head, start(a)], rest),
        (2, [a, b, rest @ ..]) => ([zero, head, start(a), load(b)], rest),
        (3, [a, b, c, rest @ ..]) => ([head, start(a), load(b), load(c)], rest),
        (_, [a, b, c, d, rest @ ..]) => ([start(a), load(b), load(c), moved(head, step, load(d))], rest),
        _ => return None,
    };
    for four in rest.as_chunks::<4>().0 {
        for (sum, block) in sums.iter_mut().zip(four) {
            *sum = moved(*sum, step, load(block));
        }
    }
    let ends = sums.iter().zip(&ENDS).fold(zero, |end, (sum, k)| moved(*sum, constants(k), end));
    let half = _mm256_xor_si256(_mm512_castsi512_si256(ends), _mm512_extracti64x4_epi64::<1>(ends));
    let last = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
    let [first, second]: [u64; 2] = bytemuck::cast(last);
    Some(!(_mm_crc32_u64(_mm_crc32_u64(0, first), second) as u32))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &[u8; BLOCK]) -> __m512i {
    bytemuck::cast(*block)
}

/// Returns a number in the first eight bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn low(number: u64) -> __m512i {
    _mm512_zextsi128_si512(_mm_cvtsi64_si128(number as i64))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn constants(k: &[u64; 8]) -> __m512i {
    bytemuck::cast(*k)
}

/// Moves the four parts of `sum` by the distances of the constants `k`, and adds them to `to`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn moved(sum: __m512i, k: __m512i, to: __m512i) -> __m512i {
    let first = _mm512_clmulepi64_epi128::<0x00>(sum, k);
    let second = _mm512_clmulepi64_epi128::<0x11>(sum, k);
    _mm512_ternarylogic_epi64::<0x96>(first, second, to)
}

/// The constants of a step over four blocks.
static STEP: [u64; 8] = four_parts([256; 4]);

/// The constants of the last step: each part of four registers moves onto the last one.
static ENDS: [[u64; 8]; 4] = [
    four_parts([240, 224, 208, 192]),
    four_parts([176, 160, 144, 128]),
    four_parts([112, 96, 80, 64]),
    four_parts([48, 32, 16, 0]),
];

/// Returns the constants that move four parts of 16 bytes over numbers of bytes.
///
/// A product of two numbers of 64 bits has its lowest power in bit 126, not in bit 127, and a constant is in
/// the higher 32 powers of 64. So a product is x^33 times too large. The first half of a part is x^64 times
/// as large as the second.
#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated at compile time")]
const fn four_parts(bytes: [i32; 4]) -> [u64; 8] {
    let mut k = [0; 8];
    let mut part = 0;
    while part < 4 {
        k[2 * part] = power(8 * bytes[part] + 64 - 33) as u64;
        k[2 * part + 1] = power(8 * bytes[part] - 33) as u64;
        part += 1;
    }
    k
}

/// Returns the remainder of x^n. Its bit 31 is the power 0, as in a CRC32C.
#[expect(clippy::arithmetic_side_effects, reason = "evaluated at compile time")]
const fn power(n: i32) -> u32 {
    const P: u32 = 0x82f6_3b78;
    const ONE: u32 = 1 << 31;
    let mut x = ONE;
    let mut k = 0;
    while k < n {
        x = (x >> 1) ^ (P & (x & 1).wrapping_neg());
        k += 1;
    }
    while k > n {
        // P has the power 0. Without it, the sum is divisible by x, and the quotient of P has the power 31.
        x = if x & ONE == 0 { x << 1 } else { (x ^ P) << 1 | 1 };
        k -= 1;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Compares with the crate, of which each half is a slice too.
    fn check(crc: u32, bytes: &[u8], middle: usize) {
        let Some(avx512) = Avx512::detect() else { return };
        let twin = |crc, bytes: &[u8]| ::crc32c::crc32c_append(crc, bytes);
        let at = || format!("{} bytes from {:?} after {crc:#x}", bytes.len(), bytes.as_ptr());
        let (whole, (first, second)) = (twin(crc, bytes), bytes.split_at(middle));
        assert_eq!(avx512.append(crc, bytes), (bytes.len() >= BLOCK).then_some(whole), "{}", at());
        let first = avx512.append(crc, first).unwrap_or_else(|| twin(crc, first));
        let joined = avx512.append(first, second).unwrap_or_else(|| twin(first, second));
        assert_eq!(joined, whole, "in two parts, {middle} bytes first, {}", at());
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32).map(|k| (k.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
    }

    #[test]
    fn every_length_at_every_alignment() {
        let bytes = noise(2048 + 64);
        for len in 0..=2048usize {
            let state = (len as u32).wrapping_mul(0x9e37_79b9);
            (0..64).for_each(|from| check(state, &bytes[from..from + len], len / 64 * from));
        }
    }

    #[test]
    fn every_split_point() {
        let bytes = noise(1000);
        (0..=1000).for_each(|middle| check(0, &bytes, middle));
    }

    #[test]
    fn constants_are_powers() {
        // Without its inversions, the CRC of a slice is the remainder of x^32 times the slice, whose last bit
        // is the power 0.
        let plain = |bytes: &[u8]| !::crc32c::crc32c_append(!0, bytes);
        assert_eq!(power(0), 1 << 31);
        assert_eq!(power(32), plain(&[0x80]));
        assert_eq!(power(32 + 8 * 200), plain(&[&[0x80][..], &[0; 200]].concat()));
        // x^-33 times x^33.
        let mut one = power(-33);
        (0..33).for_each(|_| one = (one >> 1) ^ (0x82f6_3b78 & (one & 1).wrapping_neg()));
        assert_eq!(one, power(0));
    }

    proptest! {
        #[test]
        fn random_bytes_after_any_crc(crc: u32, bytes in vec(any::<u8>(), 0..10_000), middle: usize) {
            check(crc, &bytes, middle % (bytes.len() + 1));
        }
    }
}
