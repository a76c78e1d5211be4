//! The search for a header in bytes whose records are not known.

use super::checks::{HEADER_LEN, RecordHeader, split_header};
use crate::crc::{self, LenCrc, WithLenCrc};
use std::ops::Range;

/// Number of sound headers in a row that [`find_chain`] requires. The checksum of one is right by chance in
/// 2^-32 of all places.
const CHAIN: usize = 4;

/// Returns the length of the record at the start of `bytes`, if its header is sound.
pub(super) fn sound_len(bytes: &[u8]) -> Option<usize> {
    let (len, stored) = split_header(bytes.first_chunk()?);
    if crc::masked_len(len) != stored {
        return None;
    }
    usize::try_from(RecordHeader { payload_len: len }.record_len()).ok()
}

/// Returns the first offset in `range` at which a chain of records begins: four sound headers, each at the
/// end of the record before, or fewer if `bytes` end there.
///
/// The chain may belong to a TFRecord inside a payload. The time is linear in the length of the range, for
/// any bytes.
pub(crate) fn find_chain(bytes: &[u8], range: Range<usize>) -> Option<usize> {
    let mut from = range.start;
    loop {
        let start = find_header(bytes, from, range.end, bytes.len() as u64)?;
        if chain_follows(bytes, start) {
            return Some(start);
        }
        from = start.checked_add(1)?;
    }
}

fn chain_follows(bytes: &[u8], start: usize) -> bool {
    let mut rest = bytes.get(start..);
    for _ in 0..CHAIN {
        let Some(bytes) = rest else { return false };
        if bytes.is_empty() {
            return true;
        }
        let Some(len) = sound_len(bytes) else { return false };
        rest = bytes.get(len..);
    }
    true
}

/// Returns the first offset from `from` on and below `to` with a sound header of a payload of at most `max`
/// bytes.
#[expect(clippy::arithmetic_side_effects, reason = "offsets in `bytes` and sums of two of them")]
pub(super) fn find_header(bytes: &[u8], from: usize, to: usize, max: u64) -> Option<usize> {
    struct Find<'a> {
        bytes: &'a [u8],
        max: u64,
    }
    impl WithLenCrc for Find<'_> {
        type Out = Option<usize>;
        #[inline(always)]
        fn run(self, crc: impl LenCrc) -> Option<usize> {
            // A byte that makes a length too large as its most significant one does so for these next offsets
            // too.
            let stride = (self.max.leading_zeros() / u8::BITS).max(1) as usize;
            let mut at = 0_usize;
            loop {
                let (header, rest) = self.bytes.get(at..)?.split_first_chunk()?;
                let (len, stored) = split_header(header);
                // A branch and not a choice of the step: the next load does not wait for this one.
                if stride > 1 && len >> (u64::BITS - u8::BITS) != 0 {
                    at += stride;
                    continue;
                }
                if len == 0 && stored == 0 {
                    // Zeros are no header.
                    let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
                    at += zeros;
                } else if len <= self.max && crc::mask(crc.crc(len)) == stored {
                    return Some(at);
                }
                at += 1;
            }
        }
    }
    let last = to.saturating_add(HEADER_LEN - 1).min(bytes.len());
    let found = crc::with_len_crc(Find { bytes: bytes.get(from..last)?, max });
    found.map(|i| from + i)
}
