//! The general forms: any varint, a byte or a word at a time.

use crate::error::WireErrorKind;
use crate::wire::fault::Fault;

/// Bytes of the longest varint (W1).
pub(crate) const MAX_VARINT: usize = 10;
/// The high bits of eight bytes: clear where a varint ends.
pub(super) const HIGH: u64 = 0x8080_8080_8080_8080;

/// The safe twin of `Masked::decode`: eight values at once where all of them have one byte, else one after the other.
#[inline]
pub(super) fn decode_slow(mut chunk: &[u8], out: &mut [i64]) -> usize {
    let mut done = 0;
    while done < out.len() {
        if let Some((word, rest)) = chunk.split_first_chunk::<8>()
            && u64::from_le_bytes(*word) & HIGH == 0
            && let Some(to) = out[done..].first_chunk_mut::<8>()
        {
            *to = word.map(i64::from);
            (chunk, done) = (rest, done + 8);
            continue;
        }
        let Some((value, rest)) = first::<MAX_VARINT>(chunk) else { break };
        out[done] = value as i64;
        (chunk, done) = (rest, done + 1);
    }
    done
}

/// The first value of some bytes, of at most `MAX` bytes itself, and the bytes behind it. Bits beyond 64 are dropped. Small
/// enough to be inlined whole.
#[inline(always)]
pub(crate) fn first<const MAX: usize>(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for k in 0..MAX {
        let (&byte, rest) = bytes.split_first()?;
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Some((value, rest));
        }
        bytes = rest;
    }
    None
}

/// The safe twin of `Masked::count`.
///
/// Eight bytes a step: a varint ends where the high bit is clear. Cost: about 0.1 ns a byte.
#[inline]
pub(super) fn count_slow(chunk: &[u8]) -> Result<usize, Fault> {
    let mut count = 0;
    // Bytes with the high bit set that stand directly before the current word.
    let mut run = 0;
    let mut words = chunk.chunks_exact(8);
    for (k, word) in words.by_ref().enumerate() {
        let word =
            u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        let ends = !word & HIGH;
        if ends == HIGH {
            count += 8;
            run = 0;
            continue;
        }
        // Inside a word a run is at most seven bytes, so only those across words can be too long.
        let first = (ends.trailing_zeros() / 8) as usize;
        if run + first >= MAX_VARINT {
            return Err(Fault::new(WireErrorKind::LongVarint, (8 * k).saturating_sub(run)));
        }
        count += ends.count_ones() as usize;
        run = if ends == 0 { run + 8 } else { (ends.leading_zeros() / 8) as usize };
    }
    let tail = words.remainder();
    for (k, &byte) in tail.iter().enumerate() {
        if byte < 0x80 {
            count += 1;
            run = 0;
        } else {
            run += 1;
            if run >= MAX_VARINT {
                return Err(Fault::new(WireErrorKind::LongVarint, chunk.len() - tail.len() + k));
            }
        }
    }
    if run > 0 {
        return Err(Fault::new(WireErrorKind::CutVarint, chunk.len() - run.min(chunk.len())));
    }
    Ok(count)
}
