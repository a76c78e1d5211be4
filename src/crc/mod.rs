//! Masked CRC32C, the checksum of the record framing.
//!
//! CRC32C is the Castagnoli polynomial (0x82F63B78 reflected, RFC 3720 §B.4). TFRecord stores it *masked*, so
//! that the checksum of bytes that contain checksums is not degenerate:
//! `mask(c) = rotate_right(c, 15) + 0xa282ead8`.
//!
//! On x86-64 the checks of headers and of short payloads are inlined into the loops over records: with two
//! calls of the `crc32c` crate per record, a pass over records of 90 bytes takes twice as long
//! (`benches/crc.rs`). On other processors, short payloads are checked with that crate. The crate `crc-fast`
//! checks long payloads, by carry-less multiplications.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod header;
#[cfg(target_arch = "x86_64")]
mod sse42;

use header::Tables;
pub(crate) use header::{LenCrc, WithLenCrc};

const MASK_DELTA: u32 = 0xa282_ead8;

/// Returns the CRC32C of `bytes`, as RFC 3720 defines it: `crc32c(b"123456789") == 0xe3069283`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// Returns the CRC32C of two slices joined: `crc` is the first one's, `bytes` is the second.
#[inline]
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    struct Append<'a>(u32, &'a [u8]);
    impl WithLenCrc for Append<'_> {
        type Out = u32;
        #[inline(always)]
        fn run(self, crc: impl LenCrc) -> u32 {
            crc.append(self.0, self.1)
        }
    }
    with_len_crc(Append(crc, bytes))
}

/// Masks a CRC32C, as a record stores it.
#[inline]
pub(crate) const fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Returns the masked CRC32C of `bytes`, as a header or footer stores it.
#[inline]
pub fn masked(bytes: &[u8]) -> u32 {
    mask(crc32c(bytes))
}

/// Returns the masked CRC32C of a record's length, as its header stores it.
#[inline]
pub(crate) fn masked_len(len: u64) -> u32 {
    struct MaskedLen(u64);
    impl WithLenCrc for MaskedLen {
        type Out = u32;
        #[inline(always)]
        fn run(self, crc: impl LenCrc) -> u32 {
            mask(crc.crc(self.0))
        }
    }
    with_len_crc(MaskedLen(len))
}

/// Runs `f` with the fastest [`LenCrc`] of this processor. The choice is made once, outside the loop.
/// Inlined, because a copy of `f` takes longer than the check of a header.
#[inline(always)]
pub(crate) fn with_len_crc<F: WithLenCrc>(f: F) -> F::Out {
    #[cfg(target_arch = "x86_64")]
    if let Some(sse42) = sse42::Sse42::detect() {
        return sse42.run(f);
    }
    f.run(Tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // The footer of an empty payload, and the header of length 0 (twelve zero bytes are not a header).
        assert_eq!(masked(b""), MASK_DELTA);
        assert_eq!(masked_len(0), u32::from_le_bytes([0x29, 0x03, 0x98, 0x07]));
    }

    proptest! {
        #[test]
        fn implementations_agree(len: u64) {
            let want = ::crc32c::crc32c(&len.to_le_bytes());
            prop_assert_eq!(Tables.crc(len), want);
            prop_assert_eq!(masked_len(len), mask(want));
        }

        #[test]
        fn a_mask_can_be_removed(crc: u32) {
            prop_assert_eq!(mask(crc).wrapping_sub(MASK_DELTA).rotate_left(15), crc);
        }

        #[test]
        fn append_continues(a: Vec<u8>, b: Vec<u8>) {
            let whole = [a.as_slice(), &b].concat();
            prop_assert_eq!(crc32c_append(crc32c(&a), &b), crc32c(&whole));
            prop_assert_eq!(Tables.append(crc32c(&a), &b), ::crc32c::crc32c(&whole));
        }
    }
}
