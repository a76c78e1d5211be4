//! The CRC32C of long payloads, by the carry-less multiplications of the crate `crc-fast`. The safe twin is the `crc32c` crate.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes from which a slice is *long*. For shorter ones the `crc32` instruction is faster (`benches/crc.rs`).
pub(super) const LONG: usize = 512;

/// Returns the CRC32C of two slices joined: `crc` is that of the first, `bytes` is the second.
#[inline(never)]
pub(super) fn long(crc: u32, bytes: &[u8]) -> u32 {
    // The state of a digest is the CRC before its last inversion.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}
