//! The CRC32C of the eight length bytes of a header, and of the payload that follows it.

use super::long::{LONG, long};

/// An implementation of the CRC32C of headers and payloads. It is `Copy`, so that a loop can carry it.
pub(crate) trait LenCrc: Copy {
    /// Returns the CRC of eight little-endian bytes.
    fn crc(self, len: u64) -> u32;

    /// Returns the CRC of two slices joined: `crc` is the first one's, `bytes` is the second, which is short.
    fn append_short(self, crc: u32, bytes: &[u8]) -> u32;

    /// Returns the CRC of two slices joined: `crc` is the first one's, `bytes` is the second.
    #[inline(always)]
    fn append(self, crc: u32, bytes: &[u8]) -> u32 {
        let long = if bytes.len() < LONG { None } else { long(crc, bytes) };
        match long {
            Some(crc) => crc,
            None => self.append_short(crc, bytes),
        }
    }
}

/// A loop that checks many records. Its `run` must be `#[inline(always)]`: it is then compiled once per
/// [`LenCrc`], with the instructions inside the loop.
pub(crate) trait WithLenCrc {
    type Out;
    fn run(self, crc: impl LenCrc) -> Self::Out;
}

/// The safe twin, for processors without the instruction: eight lookups in tables of 256 entries (*slicing by
/// 8*), and the `crc32c` crate for short payloads.
#[derive(Clone, Copy)]
pub(crate) struct Tables;

impl LenCrc for Tables {
    #[inline(always)]
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`k` is at most 7, below the 8 tables, and a byte is below 256, the length of a table"
    )]
    fn crc(self, len: u64) -> u32 {
        let x = (len ^ 0xffff_ffff).to_le_bytes();
        let mut crc = 0;
        for (k, byte) in x.into_iter().enumerate() {
            crc ^= TABLES[7 - k][byte as usize];
        }
        !crc
    }

    #[inline(always)]
    fn append_short(self, crc: u32, bytes: &[u8]) -> u32 {
        ::crc32c::crc32c_append(crc, bytes)
    }
}

/// `TABLES[k][b]`: the CRC (without the inversions) of byte `b` followed by `k` zero bytes.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where an index out of bounds is an error"
)]
static TABLES: [[u32; 256]; 8] = {
    let mut t = [[0u32; 256]; 8];
    let mut b = 0;
    while b < 256 {
        let mut crc = b as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        t[0][b] = crc;
        b += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut b = 0;
        while b < 256 {
            let crc = t[k - 1][b];
            t[k][b] = (crc >> 8) ^ t[0][(crc & 0xff) as usize];
            b += 1;
        }
        k += 1;
    }
    t
};
