//! Chunks of one varint, or of a few, a word at a time.
//!
//! The lengths of values cannot be predicted, so up to eight bytes no branch depends on one: a word is read, if the payload has
//! one from there on, and masks tell which of its bits belong to the value. That reads beyond the chunk, hence a chunk is
//! given as its place in the payload.

use super::slow::{HIGH, MAX_VARINT, first};

/// The value of the chunk `payload[start..start + len]`, which is one varint and nothing else; `None` if it is not.
#[inline]
pub(crate) fn decode_one(payload: &[u8], start: usize, len: usize) -> Option<u64> {
    let from = payload.get(start..)?;
    match from.first_chunk() {
        Some(word) if matches!(len, 1..=8) => {
            let (value, value_len) = leading(u64::from_le_bytes(*word))?;
            (value_len == len).then_some(value)
        }
        _ => decode_one_slow(from.get(..len)?),
    }
}

fn decode_one_slow(chunk: &[u8]) -> Option<u64> {
    let (value, rest) = first::<MAX_VARINT>(chunk)?;
    rest.is_empty().then_some(value)
}

/// If the chunk `payload[start..start + len]` has as many varints as `out` has room for, puts them there. What lies too near to
/// the payload's end for a word, and values of more than eight bytes, are read byte by byte.
#[inline]
pub(crate) fn decode_few(payload: &[u8], start: usize, len: usize, out: &mut [i64]) -> Option<()> {
    let from = payload.get(start..)?;
    let mut at = 0;
    for out in out {
        let word = from.get(at..).and_then(<[u8]>::first_chunk).copied().map(u64::from_le_bytes);
        match word.and_then(leading) {
            Some((value, value_len)) => {
                *out = value as i64;
                at += value_len;
            }
            None => {
                let (value, rest) = first::<MAX_VARINT>(from.get(at..len)?)?;
                *out = value as i64;
                at = len - rest.len();
            }
        }
    }
    // A value that reaches beyond the chunk is none of its own.
    (at == len).then_some(())
}

/// The value that a word begins with, and its length in bytes, if it ends in the word.
#[inline(always)]
fn leading(word: u64) -> Option<(u64, usize)> {
    let ends = !word & HIGH;
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

#[cfg(test)]
mod tests {
    use super::super::tests::plain;
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
            let len = len.min(payload.len() - start);
            let chunk = &payload[start..start + len];
            let want = plain(chunk).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value);
            prop_assert_eq!(decode_one(&payload, start, len), want);
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
            let len = len.min(payload.len() - start);
            let mut rest = &payload[start..start + len];
            let next = |_| {
                let (value, behind) = plain(rest)?;
                rest = behind;
                Some(value as i64)
            };
            let want: Option<Vec<i64>> = (0..count).map(next).collect();
            let want = want.filter(|_| rest.is_empty());
            let mut found = vec![0; count];
            let done = decode_few(&payload, start, len, &mut found);
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
                    assert_eq!(decode_one(&payload, 1, end - 1), Some(value));
                }
            }
        }
    }
}
