//! The `crc32` instruction of SSE 4.2, inlined into the loops that step from record to record.
//!
//! Measured (`benches/crc.rs`): 1.6 ns per header inside a loop, against 7 ns for a call of the `crc32c`
//! crate, and 0.45 to 0.8 of its time for payloads of 16 to 255 bytes. The crate `crc-fast` checks longer
//! payloads. The safe twins are [`Tables`](super::header::Tables) and the crate. The tests here and the
//! property test `implementations_agree` compare them.

#![allow(unsafe_code)]

use super::header::{LenCrc, WithLenCrc};
use std::arch::x86_64::_mm_crc32_u64;

/// Proof that this processor has SSE 4.2. Only `detect` creates a value.
#[derive(Clone, Copy)]
pub(super) struct Sse42(());

impl Sse42 {
    #[inline]
    pub(super) fn detect() -> Option<Sse42> {
        is_x86_feature_detected!("sse4.2").then_some(Sse42(()))
    }

    #[inline(always)]
    pub(super) fn run<F: WithLenCrc>(self, f: F) -> F::Out {
        #[target_feature(enable = "sse4.2")]
        fn with_feature<F: WithLenCrc>(crc: Sse42, f: F) -> F::Out {
            f.run(crc)
        }
        // SAFETY: `with_feature` requires only that the processor has SSE 4.2. `self` exists, so `detect`
        // returned it, and `detect` returns a value only if the processor has SSE 4.2.
        unsafe { with_feature(self, f) }
    }

    /// One `crc32` of eight bytes.
    #[inline(always)]
    fn word(self, state: u64, word: u64) -> u64 {
        // SAFETY: the intrinsic requires only that the processor has SSE 4.2, and reads no memory. As in
        // `run`, `self` exists only on a processor that has it.
        unsafe { _mm_crc32_u64(state, word) }
    }
}

impl LenCrc for Sse42 {
    #[inline(always)]
    fn crc(self, len: u64) -> u32 {
        !(self.word(0xffff_ffff, len) as u32)
    }

    /// Moves the CRC, without its inversions, over the bytes in one stream.
    #[inline(always)]
    fn append_short(self, crc: u32, bytes: &[u8]) -> u32 {
        let mut state = u64::from(!crc);
        let (words, tail) = bytes.as_chunks::<8>();
        for &word in words {
            state = self.word(state, u64::from_le_bytes(word));
        }
        let (word, rest) = partial_word(state, bytes, tail.len());
        !((self.word(0, word) ^ rest) as u32)
    }
}

/// Returns a word and a number. Their sum, after `crc32` of the word, is the CRC after the last `tail` bytes
/// of a slice, which are fewer than eight. No branch depends on their number.
///
/// The word begins with zeros, which leave the CRC 0 as it is, and ends with the tail. So the state is added
/// to the bytes of the tail, and the part of it beyond a tail of less than four bytes is the number.
#[inline(always)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a tail has at most seven bytes, so all shifts are below 64 bits"
)]
fn partial_word(state: u64, bytes: &[u8], tail: usize) -> (u64, u64) {
    let last = match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => bytes.iter().fold(0, |word, &byte| word >> 8 | u64::from(byte) << 56),
    };
    let bits = 8 * (tail as u32 & 7);
    let zeros = 56 - bits;
    ((last & u64::MAX << zeros << 8) ^ state << zeros << 8, state >> bits)
}

#[cfg(test)]
mod tests {
    use super::super::header::append_long;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Compares all forms with the crate.
    fn check(crc: u32, bytes: &[u8]) {
        let Some(sse42) = Sse42::detect() else { return };
        let want = ::crc32c::crc32c_append(crc, bytes);
        let at = || format!("{} bytes from {:?} after {crc:#x}", bytes.len(), bytes.as_ptr());
        assert_eq!(sse42.append(crc, bytes), want, "{}", at());
        assert_eq!(sse42.append_short(crc, bytes), want, "one stream, {}", at());
        assert_eq!(append_long(crc, bytes), want, "crc-fast, {}", at());
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32).map(|k| (k.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
    }

    #[test]
    fn every_length_at_every_alignment() {
        let bytes = noise(4096 + 64);
        for len in 0..=4096 {
            (0..64).for_each(|from| check(0, &bytes[from..from + len]));
        }
    }

    #[test]
    fn long_slices() {
        let lens = [65_536, 100_000, 1 << 20, (1 << 20) + 4095, 3 << 20];
        let lens = if cfg!(miri) { &lens[..2] } else { &lens };
        let bytes = noise(lens[lens.len() - 1]);
        for &len in lens {
            check(0, &bytes[..len]);
            check(0x1234_5678, &bytes[bytes.len() - len..]);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_after_any_crc(crc: u32, bytes in vec(any::<u8>(), 0..10_000)) {
            check(crc, &bytes);
        }
    }
}
