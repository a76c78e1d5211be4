//! Hints that load cache lines before they are needed.

#![allow(unsafe_code)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Starts to load the cache line that contains byte `offset` from the start of `bytes`, which may be beyond its end. Does not wait for it.
///
/// There is no safe twin, because no value depends on a prefetch. Its use in checksums is measured (`src/crc/sse42.rs`).
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], offset: usize) {
    let line = bytes.as_ptr().wrapping_add(offset);
    // SAFETY: a prefetch is a hint: it reads and writes no value, and for an address that is not mapped or not readable it does nothing
    // and raises no exception (Intel's manual, volume 2, PREFETCHh; AMD's manual, volume 3, PREFETCHlevel). So any address will do, and
    // `wrapping_add` makes one without a rule about bounds. The instruction is part of SSE, which every x86-64 processor has.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn any_address_is_accepted() {
        let bytes = [7; 10];
        for offset in [0, 9, 10, 4096, 1 << 20, usize::MAX / 2, usize::MAX] {
            prefetch(&bytes, offset);
            prefetch(&[], offset);
        }
        assert_eq!(bytes, [7; 10]);
    }
}
