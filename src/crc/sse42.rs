//! The `crc32` instruction of SSE 4.2, inlined into the loops that step from record to record.
//!
//! Measured (`benches/crc.rs`): 1.6 ns per header inside a loop, against 7 ns for a call of the `crc32c` crate, and 0.45 to 0.8 of
//! its time for payloads of 16 to 500 bytes. Longer payloads are [`folded`]. The safe twins are [`Tables`](super::header::Tables) and the
//! crate. The tests here and the property test `implementations_agree` compare them.

#![allow(unsafe_code)]

use super::folded::{self, AHEAD, append_words};
use super::header::{LenCrc, Next, WithLenCrc};
use std::arch::x86_64::_mm_crc32_u64;

/// Bytes from which a slice is folded.
const LONG: usize = 512;

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
        // SAFETY: `with_feature` requires only that the processor has SSE 4.2. `self` exists, so `detect` returned it, and
        // `detect` returns a value only if the processor has SSE 4.2.
        unsafe { with_feature(self, f) }
    }

    /// One `crc32` of eight bytes.
    #[inline(always)]
    fn word(self, state: u64, word: u64) -> u64 {
        // SAFETY: the intrinsic requires only that the processor has SSE 4.2, and reads no memory. As in `run`, `self` exists
        // only on a processor that has it.
        unsafe { _mm_crc32_u64(state, word) }
    }

    /// Moves a CRC, without its inversions, over the bytes of a short slice.
    #[inline(always)]
    fn short(self, state: u64, bytes: &[u8]) -> u64 {
        append_words(state, bytes, |state, word| self.word(state, word))
    }

    #[inline(never)]
    fn long(self, crc: u32, bytes: &[u8], next: Next) -> u32 {
        if !is_x86_feature_detected!("pclmulqdq") {
            return ::crc32c::crc32c_append(crc, bytes);
        }
        // Prefetches make the check of records of 4 KB and more 1.3 to 1.6 times as fast on Intel's processors (Cascade Lake), and 0.8
        // times on AMD's (Zen 4), whose hardware prefetchers continue at the next page. SSE4a identifies AMD's processors.
        let reach = match next {
            _ if is_x86_feature_detected!("sse4a") => 0,
            Next::Adjacent => bytes.len(),
            Next::Unknown => bytes.len().saturating_sub(AHEAD),
        };
        // SAFETY: `append` requires only that the processor has SSE 4.2, as in `run`, and PCLMULQDQ, which was detected.
        let state = unsafe { folded::append(u64::from(!crc), bytes, reach) };
        !(state as u32)
    }
}

impl LenCrc for Sse42 {
    #[inline(always)]
    fn crc(self, len: u64) -> u32 {
        !(self.word(0xffff_ffff, len) as u32)
    }

    #[inline(always)]
    fn append(self, crc: u32, bytes: &[u8], next: Next) -> u32 {
        if bytes.len() < LONG {
            !(self.short(u64::from(!crc), bytes) as u32)
        } else {
            self.long(crc, bytes, next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Compares all forms with the crate.
    fn check(crc: u32, bytes: &[u8]) {
        let Some(sse42) = Sse42::detect() else { return };
        let want = ::crc32c::crc32c_append(crc, bytes);
        let at = || format!("{} bytes from {:?} after {crc:#x}", bytes.len(), bytes.as_ptr());
        assert_eq!(sse42.append(crc, bytes, Next::Unknown), want, "{}", at());
        assert_eq!(!(sse42.short(u64::from(!crc), bytes) as u32), want, "one stream, {}", at());
        if is_x86_feature_detected!("pclmulqdq") {
            for reach in [0, bytes.len() / 2, bytes.len()] {
                // SAFETY: the processor has both features.
                let state = unsafe { folded::append(u64::from(!crc), bytes, reach) };
                assert_eq!(!(state as u32), want, "folded, prefetched up to {reach}, {}", at());
            }
        }
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
        let bytes = noise(3 << 20);
        for len in [65_536, 100_000, 1 << 20, (1 << 20) + 4095, 3 << 20] {
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
