//! A packed chunk of one varint.

use super::Reader;

/// The value of a chunk that is one varint and nothing else; `None` if it is not. The chunk is part of `payload`.
///
/// Which length a value has is anybody's guess, so up to eight bytes no branch depends on it: a word is read, if the payload
/// has one from there on, and what belongs to the value is told by masks.
#[inline]
pub(crate) fn one_varint(chunk: &[u8], payload: &[u8]) -> Option<u64> {
    let start = chunk.as_ptr().addr().wrapping_sub(payload.as_ptr().addr());
    match payload.get(start..).and_then(<[u8]>::first_chunk) {
        Some(word) if matches!(chunk.len(), 1..=8) => {
            let word = u64::from_le_bytes(*word);
            let bits = 8 * chunk.len() as u32;
            let first_end = (!word & 0x8080_8080_8080_8080).trailing_zeros() + 1;
            (first_end == bits).then(|| sevens(word & (u64::MAX >> (64 - bits))))
        }
        _ => bytewise(chunk),
    }
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
