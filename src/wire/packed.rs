//! Packed chunks: counted and checked in one pass, decoded later and without errors.

use super::{Fault, MAX_VARINT};
use crate::error::WireErrorKind;

const HIGH: u64 = 0x8080_8080_8080_8080;

/// The number of varints in a packed chunk, all of which are whole and of at most ten bytes.
///
/// Eight bytes a step: a varint ends where the high bit is clear. Cost: about 0.1 ns a byte.
#[inline]
pub(crate) fn count_varints(chunk: &[u8]) -> Result<usize, Fault> {
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
            return Err(Fault::new(WireErrorKind::LongVarint, &chunk[(8 * k).saturating_sub(run)..]));
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
                return Err(Fault::new(WireErrorKind::LongVarint, &tail[k..]));
            }
        }
    }
    if run > 0 {
        return Err(Fault::new(WireErrorKind::CutVarint, &chunk[chunk.len() - run.min(chunk.len())..]));
    }
    Ok(count)
}

/// Decodes a chunk that [`count_varints`] accepted, and returns how many values were written.
pub(crate) fn decode_varints(chunk: &[u8], out: &mut [i64]) -> usize {
    let mut reader = super::Reader::new(chunk, 0);
    for (k, to) in out.iter_mut().enumerate() {
        match reader.varint() {
            Ok(value) => *to = value as i64,
            Err(_) => return k,
        }
    }
    out.len()
}

/// The number of floats in a packed chunk.
#[inline]
pub(crate) fn count_floats(chunk: &[u8]) -> Result<usize, Fault> {
    if !chunk.len().is_multiple_of(4) {
        return Err(Fault::new(WireErrorKind::PackedFloatLength, chunk));
    }
    Ok(chunk.len() / 4)
}

/// The number of doubles in a packed chunk.
#[inline]
pub(crate) fn count_doubles(chunk: &[u8]) -> Result<usize, Fault> {
    if !chunk.len().is_multiple_of(8) {
        return Err(Fault::new(WireErrorKind::PackedDoubleLength, chunk));
    }
    Ok(chunk.len() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Reader;
    use proptest::prelude::*;

    /// One varint at a time.
    fn naive(chunk: &[u8]) -> Option<usize> {
        let mut reader = Reader::new(chunk, 0);
        let mut count = 0;
        while !reader.is_empty() {
            reader.varint().ok()?;
            count += 1;
        }
        Some(count)
    }

    #[test]
    fn runs_around_ten_at_every_position() {
        for before in 0..20 {
            for run in 0..24 {
                for after in 0..12 {
                    let chunk = [vec![1; before], vec![0x80; run], vec![2; after]].concat();
                    assert_eq!(count_varints(&chunk).ok(), naive(&chunk), "{before} {run} {after}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn counts_like_the_naive_twin(chunk in prop::collection::vec(prop_oneof![0u8..4, 0x7eu8..0x82, 0xfcu8..], 0..80)) {
            prop_assert_eq!(count_varints(&chunk).ok(), naive(&chunk));
        }
    }
}
