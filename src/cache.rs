//! Hints that load cache lines before they are needed.

#![allow(unsafe_code)]

/// The cache that a line is loaded into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheLevel {
    /// All caches.
    First,
    /// All but the first. The few buffers of the first cache stay free for the loads that the processor waits
    /// for.
    Second,
}

/// Starts to load the cache line that contains byte `offset` from the start of `bytes`, which may be beyond
/// its end. Does not wait for it.
///
/// There is no safe twin, because no value depends on a prefetch. On other processors it does nothing.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch(level: CacheLevel, bytes: &[u8], offset: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    let line = bytes.as_ptr().wrapping_add(offset).cast();
    // SAFETY: a prefetch is a hint: it reads and writes no value, and for an address that is not mapped or
    // not readable it does nothing and raises no exception (Intel's manual, volume 2, PREFETCHh; AMD's
    // manual, volume 3, PREFETCHlevel). So any address will do, and `wrapping_add` makes one without a rule
    // about bounds. The instruction is part of SSE, which every x86-64 processor has.
    unsafe {
        match level {
            CacheLevel::First => _mm_prefetch::<_MM_HINT_T0>(line),
            CacheLevel::Second => _mm_prefetch::<_MM_HINT_T1>(line),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch(_: CacheLevel, _: &[u8], _: usize) {}

/// Starts to load a record that is read [`distance`] records later: a short one into all caches, and the
/// first [`FAR_BYTES`] of a longer one into the second.
#[inline]
pub(crate) fn prefetch_record(bytes: &[u8]) {
    let level = if is_far(bytes.len()) { CacheLevel::Second } else { CacheLevel::First };
    (0..bytes.len().min(FAR_BYTES)).step_by(LINE).for_each(|at| prefetch(level, bytes, at));
}

/// Returns the number of records between one that is read and one of `len` bytes that is prefetched
/// meanwhile.
///
/// In a shuffled epoch of the loader, records of 900 bytes are 1.25 times as fast as without prefetches (Zen
/// 4), and take 1.02 times as long with the second cache (Xeon with AMX). Records of 4 KB take 0.93 of the
/// time that they take with the first cache, two records ahead and up to 1 KiB (Xeon with AMX).
#[inline]
pub(crate) fn distance(len: usize) -> usize {
    if is_far(len) { FAR } else { NEAR }
}

/// Returns true for the length of a record that is prefetched into the second cache.
#[inline]
pub(crate) fn is_far(len: usize) -> bool {
    len > NEAR_BYTES
}

const NEAR: usize = 2;
pub(crate) const FAR: usize = 6;
/// Maximum number of bytes of a record that is prefetched into the first cache.
const NEAR_BYTES: usize = 1024;
/// Maximum number of bytes of a record that are prefetched. Hardware prefetchers load the rest of a longer
/// one.
const FAR_BYTES: usize = 8 << 10;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

#[cfg(test)]
mod tests {
    use super::{CacheLevel, FAR, NEAR, distance, prefetch, prefetch_record};

    #[test]
    fn any_address_is_accepted() {
        let bytes = [7; 10];
        for offset in [0, 9, 10, 4096, 1 << 20, usize::MAX / 2, usize::MAX] {
            for level in [CacheLevel::First, CacheLevel::Second] {
                prefetch(level, &bytes, offset);
                prefetch(level, &[], offset);
            }
        }
        prefetch_record(&bytes);
        prefetch_record(&[]);
        prefetch_record(&[7; 9000]);
        assert_eq!([0, 1024, 1025, usize::MAX].map(distance), [NEAR, NEAR, FAR, FAR]);
        assert_eq!(bytes, [7; 10]);
    }
}
