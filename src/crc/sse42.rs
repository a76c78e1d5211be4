//! The `crc32` instruction of SSE 4.2, inline in the loops that hop from header to header.
//!
//! Measured (`benches/crc.rs`): 0.5 ns a header inside such a loop against 11 ns for a call of the `crc32c`
//! crate. The safe twin is [`Tables`](super::header::Tables); `the_three_ways_agree` holds them together.

#![allow(unsafe_code)]

use super::header::{LenCrc, WithLenCrc};
use std::arch::x86_64::_mm_crc32_u64;

/// Proof that this processor has SSE 4.2: only `detect` makes one.
#[derive(Clone, Copy)]
pub(super) struct Sse42(());

impl Sse42 {
    #[inline]
    pub(super) fn detect() -> Option<Sse42> {
        is_x86_feature_detected!("sse4.2").then_some(Sse42(()))
    }

    #[inline]
    pub(super) fn run<F: WithLenCrc>(self, f: F) -> F::Out {
        #[target_feature(enable = "sse4.2")]
        fn with_feature<F: WithLenCrc>(crc: Sse42, f: F) -> F::Out {
            f.run(crc)
        }
        // SAFETY: the only demand of `with_feature` is that the processor has SSE 4.2. `self` exists, so
        // `detect` has returned it, so it has.
        unsafe { with_feature(self, f) }
    }
}

impl LenCrc for Sse42 {
    #[inline(always)]
    fn crc(self, len: u64) -> u32 {
        // SAFETY: as in `run`: `self` exists only on a processor that has SSE 4.2, and that is all that this
        // intrinsic demands. It reads no memory.
        let crc = unsafe { _mm_crc32_u64(0xffff_ffff, len) };
        !(crc as u32)
    }
}
