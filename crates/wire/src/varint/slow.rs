//! General varint decoders, which read a byte or a word at a time.

use crate::error::WireError;
use crate::fault::Fault;

/// Bytes of the longest varint (W1).
pub const MAX_VARINT: usize = 10;
/// The high bits of eight bytes. The high bit of a varint's last byte is clear.
pub(super) const HIGH: u64 = 0x8080_8080_8080_8080;

/// The safe twin of `Avx2::decode`. Decodes eight values at once if each has one byte, and otherwise one
/// value at a time.
#[inline]
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`done` is below `out.len()`, and grows only by values that were written"
)]
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

/// Returns the first varint of some bytes and the bytes after it. `None` if it is cut off or longer than
/// `MAX` bytes, which are at most 10. Bits beyond 64 are dropped. The function is small enough to be inlined.
#[inline(always)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "`k` is at most 9, so the value is shifted by at most 63 bits"
)]
pub fn first<const MAX: usize>(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
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

/// The safe twin of `Avx2::count`. Reads eight bytes per step, about 0.1 ns per byte.
#[inline]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "counts and offsets are at most the chunk's length; `run` is below 10 before each step, which adds at most 8"
)]
pub(super) fn count_slow(chunk: &[u8]) -> Result<usize, Fault> {
    let mut count = 0;
    // Number of bytes with the high bit set directly before the current word.
    let mut run = 0;
    let (words, tail) = chunk.as_chunks::<8>();
    for (k, word) in words.iter().enumerate() {
        let ends = !u64::from_le_bytes(*word) & HIGH;
        if ends == HIGH {
            count += 8;
            run = 0;
            continue;
        }
        // A run that starts and ends inside a word is at most seven bytes, so only runs across words can be
        // too long.
        let first = (ends.trailing_zeros() / 8) as usize;
        if run + first >= MAX_VARINT {
            return Err(Fault::new(WireError::LongVarint, (8 * k).saturating_sub(run)));
        }
        count += ends.count_ones() as usize;
        run = if ends == 0 { run + 8 } else { (ends.leading_zeros() / 8) as usize };
    }
    for (k, &byte) in tail.iter().enumerate() {
        if byte < 0x80 {
            count += 1;
            run = 0;
        } else {
            run += 1;
            if run >= MAX_VARINT {
                let end = chunk.len() - tail.len() + k + 1;
                return Err(Fault::new(WireError::LongVarint, end.saturating_sub(run)));
            }
        }
    }
    if run > 0 {
        return Err(Fault::new(WireError::CutVarint, chunk.len() - run.min(chunk.len())));
    }
    Ok(count)
}
