//! A packed chunk of one varint, or of a few.

use crate::wire::Reader;

/// The value of a chunk that is one varint and nothing else; `None` if it is not. The chunk is part of `payload`.
///
/// Which length a value has is anybody's guess, so up to eight bytes no branch depends on it: a word is read, if the payload
/// has one from there on, and what belongs to the value is told by masks.
#[inline]
pub(crate) fn one_varint(chunk: &[u8], payload: &[u8]) -> Option<u64> {
    let start = chunk.as_ptr().addr().wrapping_sub(payload.as_ptr().addr());
    match payload.get(start..).and_then(<[u8]>::first_chunk) {
        Some(word) if matches!(chunk.len(), 1..=8) => {
            let (value, len) = leading(u64::from_le_bytes(*word))?;
            (len == chunk.len()).then_some(value)
        }
        _ => bytewise(chunk),
    }
}

/// If a chunk has as many varints as `to` has room for, puts them there. The chunk is part of `payload`. A word at a time, as
/// [`one_varint`] does; what lies too near to the payload's end for that, and values of more than eight bytes, byte by byte.
#[inline]
pub(crate) fn few_varints(chunk: &[u8], payload: &[u8], to: &mut [i64]) -> Option<()> {
    let start = chunk.as_ptr().addr().wrapping_sub(payload.as_ptr().addr());
    let from = payload.get(start..).unwrap_or_default();
    let mut at = 0;
    for to in to {
        let word = from.get(at..).and_then(<[u8]>::first_chunk).copied().map(u64::from_le_bytes);
        match word.and_then(leading) {
            Some((value, len)) => {
                *to = value as i64;
                at += len;
            }
            None => {
                let mut reader = Reader::new(chunk.get(at..)?, 0);
                *to = reader.varint().ok()? as i64;
                at = chunk.len() - reader.len();
            }
        }
    }
    // A value that reaches beyond the chunk is none of its own.
    (at == chunk.len()).then_some(())
}

/// The value that a word begins with, and its bytes, if it ends in there.
#[inline(always)]
fn leading(word: u64) -> Option<(u64, usize)> {
    let ends = !word & 0x8080_8080_8080_8080;
    let bits = ends.trailing_zeros() + 1;
    (ends != 0).then(|| (sevens(word & (u64::MAX >> (64 - bits))), bits as usize / 8))
}

/// The low seven bits of each byte, moved together.
#[inline]
fn sevens(word: u64) -> u64 {
    let x = word & 0x7f7f_7f7f_7f7f_7f7f;
    let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
    let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
    (x & 0x0000_0000_0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4
}

fn bytewise(chunk: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(chunk, 0);
    let value = reader.varint().ok()?;
    reader.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_like_the_naive_twin(
            payload in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x80), Just(0xff)], 0..24),
            start in 0..24usize,
            len in 0..12usize,
        ) {
            let start = start.min(payload.len());
            let chunk = &payload[start..payload.len().min(start + len)];
            prop_assert_eq!(one_varint(chunk, &payload), bytewise(chunk));
        }
    }

    proptest! {
        #[test]
        fn a_few_are_read_like_the_naive_twin(
            payload in prop::collection::vec(prop_oneof![3 => any::<u8>(), 3 => 0..0x80u8, 1 => Just(0x80), 1 => Just(0xff)], 0..40),
            start in 0..40usize,
            len in 0..24usize,
            count in 0..10usize,
        ) {
            let start = start.min(payload.len());
            let chunk = &payload[start..payload.len().min(start + len)];
            let mut reader = Reader::new(chunk, 0);
            let want: Option<Vec<i64>> = (0..count).map(|_| reader.varint().ok().map(|v| v as i64)).collect();
            let want = want.filter(|_| reader.is_empty());
            let mut found = vec![0; count];
            let done = few_varints(chunk, &payload, &mut found);
            prop_assert_eq!(done.map(|()| found), want);
        }
    }

    #[test]
    fn every_length_of_value() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let (mut payload, mut rest) = (vec![0x1a], value);
                while rest >= 0x80 {
                    payload.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                payload.push(rest as u8);
                let end = payload.len();
                for behind in [0, 1, 8] {
                    payload.resize(end + behind, 0xff);
                    assert_eq!(one_varint(&payload[1..end], &payload), Some(value));
                }
            }
        }
    }
}
