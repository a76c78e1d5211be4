//! Packed chunks: counted and checked in one pass, decoded later and without errors.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod short;

pub(crate) use short::{few_varints, one_varint};

use self::avx2::Masked;
use super::{Fault, MAX_VARINT};
use crate::error::WireErrorKind;

const HIGH: u64 = 0x8080_8080_8080_8080;

/// Bytes from which on the masks are faster (`benches/varint.rs`): below, it is the set-up that counts.
#[cfg(target_arch = "x86_64")]
const MASKED_COUNT: usize = 32;
#[cfg(target_arch = "x86_64")]
const MASKED_DECODE: usize = 16;

/// The number of varints in a packed chunk, all of which are whole and of at most ten bytes.
#[inline]
pub(crate) fn count_varints(chunk: &[u8]) -> Result<usize, Fault> {
    #[cfg(target_arch = "x86_64")]
    if chunk.len() >= MASKED_COUNT
        && let Some(masked) = Masked::detect()
        && let Some(count) = masked.count(chunk)
    {
        return Ok(count);
    }
    // Also where the masks have found something wrong: which rule, and where, is said here.
    count_scalar(chunk)
}

/// Decodes a packed chunk that `count_varints` has accepted, up to as many values as `out` takes. How many there were.
///
/// Should the bytes have changed since, the list ends at the first value that is cut or too long, and what is then left
/// in `out` behind the values is of no meaning.
#[inline]
pub(crate) fn decode_varints(chunk: &[u8], out: &mut [i64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if chunk.len() >= MASKED_DECODE
        && let Some(masked) = Masked::detect()
    {
        return masked.decode(chunk, out);
    }
    decode_scalar(chunk, out)
}

/// The safe twin of `Masked::decode`: eight values at once where all of them have one byte, else one after the other.
#[inline]
pub(super) fn decode_scalar(mut chunk: &[u8], out: &mut [i64]) -> usize {
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
        let Some((value, rest)) = first_varint(chunk) else { break };
        out[done] = value as i64;
        (chunk, done) = (rest, done + 1);
    }
    done
}

/// The value that a chunk starts with, and what follows. Unlike `Reader::varint` it need not say what is wrong, so it is
/// small enough to be inlined whole.
#[inline(always)]
fn first_varint(mut chunk: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for k in 0..MAX_VARINT {
        let (&byte, rest) = chunk.split_first()?;
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Some((value, rest));
        }
        chunk = rest;
    }
    None
}

/// The safe twin of `Masked::count`.
///
/// Eight bytes a step: a varint ends where the high bit is clear. Cost: about 0.1 ns a byte.
#[inline]
pub(super) fn count_scalar(chunk: &[u8]) -> Result<usize, Fault> {
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

    /// The values before the first that is cut or too long.
    fn naive_decode(chunk: &[u8]) -> Vec<i64> {
        let mut reader = Reader::new(chunk, 0);
        std::iter::from_fn(|| reader.varint().ok()).map(|value| value as i64).collect()
    }

    type Decoder = (&'static str, fn(&[u8], &mut [i64]) -> usize);

    /// Every way that this processor can go.
    fn decoders() -> Vec<Decoder> {
        let mut all: Vec<Decoder> = vec![("chosen", decode_varints), ("scalar", decode_scalar)];
        #[cfg(target_arch = "x86_64")]
        if Masked::detect().is_some() {
            all.push(("masked", |chunk, out| Masked::detect().unwrap().decode(chunk, out)));
            all.push(("no pext", |chunk, out| Masked::detect().unwrap().without_pext().decode(chunk, out)));
        }
        all
    }

    /// All decoders against the naive one, into room for more, just as many, and fewer values.
    fn check(chunk: &[u8]) {
        let want = naive_decode(chunk);
        for (name, decode) in decoders() {
            for room in [want.len(), want.len() + 1, want.len() + 200, want.len() / 2] {
                let mut out = vec![0x5555; room];
                let done = decode(chunk, &mut out);
                assert_eq!(out[..done], want[..want.len().min(room)], "{name} {room} {chunk:02x?}");
                if naive(chunk).is_some() {
                    assert!(out[done..].iter().all(|&value| value == 0x5555), "{name} {room} {chunk:02x?}");
                }
            }
        }
        let count = count_varints(chunk).map_err(|fault| fault.in_payload(chunk));
        let scalar = count_scalar(chunk).map_err(|fault| fault.in_payload(chunk));
        assert_eq!(format!("{count:?}"), format!("{scalar:?}"), "{chunk:02x?}");
        assert_eq!(count.ok(), naive(chunk), "{chunk:02x?}");
        #[cfg(target_arch = "x86_64")]
        if let Some(masked) = Masked::detect() {
            assert_eq!(masked.count(chunk), naive(chunk), "{chunk:02x?}");
        }
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

    /// Where the masks hand over from block to block, and to the tail.
    #[test]
    fn runs_around_ten_across_blocks() {
        for before in (40..70).chain(110..134) {
            for run in (0..13).chain(60..70) {
                for after in [0, 1, 2, 80] {
                    check(&[vec![1; before], vec![0x83; run], vec![2; after]].concat());
                }
            }
        }
    }

    /// One value of each length among one-byte values, at every place of a block, its unused bits set.
    #[test]
    fn one_long_value_anywhere() {
        for len in 1..=MAX_VARINT {
            for before in 0..150 {
                let value = [vec![0xff; len - 1], vec![0x7f]].concat();
                check(&[vec![1; before], value, vec![2; 150 - before]].concat());
            }
        }
    }

    /// Values of one length only, at every count.
    #[test]
    fn values_of_one_length() {
        for len in 1..=MAX_VARINT {
            for n in 0..100 {
                let values = (0..n).flat_map(|k: u8| {
                    let mut value: Vec<u8> = (0..len as u8).map(|b| k.wrapping_mul(7) ^ b | 0x80).collect();
                    value[len - 1] &= 0x7f;
                    value
                });
                check(&values.collect::<Vec<_>>());
            }
        }
    }

    /// A mask's way with every pattern of ends in three bytes: all that the table of pairs can meet, and more.
    #[test]
    fn every_pattern_of_ends() {
        for pattern in 0u32..1 << 12 {
            let bytes = (0..12u8).map(|k| if pattern >> k & 1 == 1 { 0x11 + k } else { 0xc1 + k });
            let once: Vec<u8> = bytes.collect();
            check(&[vec![1; 50], once.clone(), once, vec![3; 30]].concat());
        }
    }

    /// Varints of `lens` bytes, the last with whatever bits.
    fn varints(lens: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec((prop::collection::vec(0x80u8.., 10), 0u8..0x80, lens), 0..120).prop_map(
            |values| {
                let value = |(mut bytes, last, len): (Vec<u8>, u8, usize)| {
                    bytes.truncate(len - 1);
                    bytes.push(last);
                    bytes
                };
                values.into_iter().flat_map(value).collect()
            },
        )
    }

    proptest! {
        #[test]
        fn counts_like_the_naive_twin(chunk in prop::collection::vec(prop_oneof![0u8..4, 0x7eu8..0x82, 0xfcu8..], 0..80)) {
            prop_assert_eq!(count_varints(&chunk).ok(), naive(&chunk));
        }

        #[test]
        fn all_ways_agree(
            chunk in prop_oneof![varints(1..=1), varints(1..=3), varints(1..=5), varints(5..=9), varints(9..=10), varints(1..=10)],
            lead in 0usize..64,
        ) {
            // The same bytes at another address.
            let moved = [vec![0xff; lead], chunk].concat();
            check(&moved[lead..]);
        }

        #[test]
        fn all_ways_agree_over_mixed_blocks(parts in prop::collection::vec(prop_oneof![varints(1..=1), varints(1..=4), varints(1..=10)], 0..6)) {
            check(&parts.concat());
        }

        #[test]
        fn any_bytes_end_somewhere(chunk in prop::collection::vec(any::<u8>(), 0..300)) {
            check(&chunk);
        }

        #[test]
        fn mostly_long_bytes_end_somewhere(chunk in prop::collection::vec(prop_oneof![1 => 0u8..0x80, 4 => 0x80u8..], 0..300)) {
            check(&chunk);
        }

        #[test]
        fn a_cut_chunk_ends_early(chunk in varints(1..=10), cut in 0usize..12) {
            check(&chunk[..chunk.len().saturating_sub(cut)]);
        }
    }
}
