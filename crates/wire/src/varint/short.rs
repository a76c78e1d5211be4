//! Decoders of chunks of one or a few varints, a word at a time.
//!
//! The lengths of values cannot be predicted, so for values of up to eight bytes no branch depends on the
//! length. A word of the payload is read if there is one, and masks select the bits of the value. The word
//! may extend beyond the chunk, so a chunk is passed as its range in the payload.

use super::slow::{HIGH, MAX_VARINT, first};

/// Decodes the chunk `payload[start..start + len]`, if it is exactly one varint. `None` if it is not.
#[inline]
pub fn decode_one(payload: &[u8], start: usize, len: usize) -> Option<u64> {
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

/// Decodes the chunk `payload[start..start + len]` into `out`, if it has exactly `out.len()` varints. Values
/// of more than eight bytes, and values within eight bytes of the payload's end, are read byte by byte.
#[inline]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "`at` and `value_len` are inside of `from`, and `rest` is a suffix of its first `len` bytes"
)]
pub fn decode_few(payload: &[u8], start: usize, len: usize, out: &mut [i64]) -> Option<()> {
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
    // False if the last value extends beyond the chunk.
    (at == len).then_some(())
}

/// Returns the value at the start of a word and its length in bytes, if it ends in the word.
#[inline(always)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "`bits` is at most 64 if `ends` is not 0, and at most 65 otherwise"
)]
fn leading(word: u64) -> Option<(u64, usize)> {
    let ends = !word & HIGH;
    let bits = ends.trailing_zeros() + 1;
    (ends != 0).then(|| (join_sevens(word & (u64::MAX >> (64 - bits))), bits as usize / 8))
}

/// Joins the low seven bits of each byte.
#[inline]
pub fn join_sevens(word: u64) -> u64 {
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
        fn decode_one_agrees_with_the_naive_twin(
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
        fn decode_few_agrees_with_the_naive_twin(
            payload in prop::collection::vec(prop_oneof![3 => any::<u8>(), 3 => 0..0x80u8, 1 => Just(0x80), 1 => Just(0xff)], 0..40),
            start in 0..40usize,
            len in 0..24usize,
            count in 0..10usize,
        ) {
            let start = start.min(payload.len());
            let len = len.min(payload.len() - start);
            let mut rest = &payload[start..start + len];
            let next = |_| {
                let (value, after) = plain(rest)?;
                rest = after;
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
                let mut payload = vec![0x1a];
                let mut rest = value;
                while rest >= 0x80 {
                    payload.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                payload.push(rest as u8);
                let end = payload.len();
                for after in [0, 1, 8] {
                    payload.resize(end + after, 0xff);
                    assert_eq!(decode_one(&payload, 1, end - 1), Some(value));
                }
            }
        }
    }
}
