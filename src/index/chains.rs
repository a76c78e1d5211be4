//! Chains of headers that are walked in turn. Each header has to be loaded before the place of the next one
//! is known, so the loads of one chain wait for each other, and the loads of several chains overlap.

use crate::crc::{LenCrc, WithLenCrc, with_len_crc};
use crate::frame::{OVERHEAD, find_chain, payload_is_sound, whole_len};
use std::ops::Range;

/// Bytes of a payload that a chain verifies. Longer ones are left to the scan by one chain, which reports
/// progress inside of them.
const MAX_VERIFIED: usize = 16 << 20;

/// The records of a chunk that a chain has found.
#[derive(Debug)]
pub(super) struct Chain {
    /// The bytes in which records of this chain may begin. Fewer than 2^32.
    pub(super) chunk: Range<usize>,
    /// The end of the last record.
    pos: usize,
    /// The starts of the records, from the start of the chunk on.
    pub(super) starts: Vec<u32>,
}

impl Chain {
    /// Creates the chain of a chunk, which begins in the first `search` bytes, or is empty if no header is
    /// found there. The memory of `starts` is reused.
    pub(super) fn find(bytes: &[u8], chunk: Range<usize>, search: usize, mut starts: Vec<u32>) -> Chain {
        starts.clear();
        let last = chunk.start + search.min(chunk.len());
        let pos = find_chain(bytes, chunk.start..last).unwrap_or(chunk.end);
        Chain { chunk, pos, starts }
    }

    /// Returns the records from byte `at` on, if one begins there: their starts from the start of the chunk
    /// on, and their end.
    pub(super) fn records_from(&mut self, at: usize) -> Option<(&mut [u32], usize)> {
        let delta = u32::try_from(at.checked_sub(self.chunk.start)?).ok()?;
        let first = self.starts.binary_search(&delta).ok()?;
        Some((self.starts.get_mut(first..)?, self.pos))
    }

    /// Moves past one record. Returns false if the chain has reached the end of its chunk, or a record that
    /// is not whole or not sound.
    #[inline(always)]
    fn step<const PAYLOADS: bool>(&mut self, bytes: &[u8], crc: impl LenCrc) -> bool {
        if self.pos >= self.chunk.end {
            return false;
        }
        let Some(rest) = bytes.get(self.pos..) else { return false };
        let Some(len) = whole_len(rest, crc) else { return false };
        if PAYLOADS && (len > MAX_VERIFIED || !payload_is_sound(rest, len, crc)) {
            return false;
        }
        self.starts.push(self.pos.wrapping_sub(self.chunk.start) as u32);
        self.pos = self.pos.wrapping_add(OVERHEAD).wrapping_add(len);
        true
    }
}

/// Walks chains in turn, record by record. Returns the number of one that is at its end, or `None` after
/// `turns` turns.
pub(super) fn walk(bytes: &[u8], chains: &mut [Chain], turns: usize, payloads: bool) -> Option<usize> {
    if payloads {
        with_len_crc(Walk::<true> { bytes, chains, turns })
    } else {
        with_len_crc(Walk::<false> { bytes, chains, turns })
    }
}

struct Walk<'a, const PAYLOADS: bool> {
    bytes: &'a [u8],
    chains: &'a mut [Chain],
    turns: usize,
}

impl<const PAYLOADS: bool> WithLenCrc for Walk<'_, PAYLOADS> {
    type Out = Option<usize>;

    #[inline(always)]
    fn run(self, crc: impl LenCrc) -> Option<usize> {
        for _ in 0..self.turns {
            for (k, chain) in self.chains.iter_mut().enumerate() {
                if !chain.step::<PAYLOADS>(self.bytes, crc) {
                    return Some(k);
                }
            }
        }
        None
    }
}
