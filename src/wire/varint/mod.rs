//! The decoders of varints: one family, and each fast form is tested against a plain twin.
//!
//! | | decodes | fast | slow |
//! | --- | --- | --- | --- |
//! | [`first`] | the first value of some bytes | | a byte at a time |
//! | [`Reader::varint`](super::Reader::varint) | the same, with errors | one or two bytes, inlined | [`first`] |
//! | [`decode_one`], [`decode_few`] | chunks of one value, or of few | `short.rs`: a word at a time, no branch on a length | [`first`] |
//! | [`decode`] | all values of a chunk | `avx2.rs`: blocks of 64 bytes | [`decode_slow`]: eight values of one byte, else [`first`] |
//! | [`count`] | how many values a chunk has, and if all are whole | `avx2.rs` | [`count_slow`]: a word at a time |
//!
//! A packed chunk is counted and checked in one pass, and decoded later without errors.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod short;
mod slow;

pub(crate) use short::{decode_few, decode_one};
pub(crate) use slow::{MAX_VARINT, first};

#[cfg(target_arch = "x86_64")]
use self::avx2::Masked;
use self::slow::{count_slow, decode_slow};
use super::fault::Fault;

/// Bytes from which on the masks are faster (`benches/varint.rs`): below, it is the set-up that counts.
#[cfg(target_arch = "x86_64")]
const MASKED_COUNT: usize = 32;
#[cfg(target_arch = "x86_64")]
const MASKED_DECODE: usize = 16;

/// Counts the varints of a packed chunk. All of them must be whole and of at most ten bytes; the offset of a fault is that in
/// the chunk.
#[inline]
pub(crate) fn count(chunk: &[u8]) -> Result<usize, Fault> {
    #[cfg(target_arch = "x86_64")]
    if chunk.len() >= MASKED_COUNT
        && let Some(masked) = Masked::detect()
        && let Some(count) = masked.count(chunk)
    {
        return Ok(count);
    }
    // Also where the masks have found a fault: the slow form says which, and where.
    count_slow(chunk)
}

/// Decodes a packed chunk that [`count`] has accepted, up to as many values as `out` takes. Returns their number.
///
/// If the bytes have changed since, the list ends at the first value that is cut or too long, and `out` behind the values is
/// unspecified.
#[inline]
pub(crate) fn decode(chunk: &[u8], out: &mut [i64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if chunk.len() >= MASKED_DECODE
        && let Some(masked) = Masked::detect()
    {
        return masked.decode(chunk, out);
    }
    decode_slow(chunk, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The plain twin of all forms: bits are added one value at a time, in 128 bits.
    pub(super) fn plain(bytes: &[u8]) -> Option<(u64, &[u8])> {
        let len = bytes.iter().take(MAX_VARINT).position(|byte| byte & 0x80 == 0)? + 1;
        let value = bytes[..len].iter().rev().fold(0u128, |value, byte| value << 7 | u128::from(byte & 0x7f));
        Some((value as u64, &bytes[len..]))
    }

    /// One varint at a time.
    fn naive(chunk: &[u8]) -> Option<usize> {
        let (mut rest, mut count) = (chunk, 0);
        while !rest.is_empty() {
            rest = plain(rest)?.1;
            count += 1;
        }
        Some(count)
    }

    /// The values before the first that is cut or too long.
    fn naive_decode(chunk: &[u8]) -> Vec<i64> {
        let mut rest = chunk;
        let next = || {
            let (value, behind) = plain(rest)?;
            rest = behind;
            Some(value as i64)
        };
        std::iter::from_fn(next).collect()
    }

    type Decoder = (&'static str, fn(&[u8], &mut [i64]) -> usize);

    /// Every form that this processor can run.
    fn decoders() -> Vec<Decoder> {
        let mut all: Vec<Decoder> = vec![("chosen", decode), ("slow", decode_slow)];
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
        let counted = count(chunk);
        let slow = count_slow(chunk);
        assert_eq!(format!("{counted:?}"), format!("{slow:?}"), "{chunk:02x?}");
        assert_eq!(counted.ok(), naive(chunk), "{chunk:02x?}");
        #[cfg(target_arch = "x86_64")]
        if let Some(masked) = Masked::detect() {
            assert_eq!(masked.count(chunk), naive(chunk), "{chunk:02x?}");
        }
    }

    /// The forms that read one value, with the plain twin: of all lengths, cut, too long, with bits beyond 64.
    #[test]
    fn first_values() {
        use crate::wire::Reader;
        for len in 0..14 {
            for last in [0, 1, 0x7f, 0x80, 0xff] {
                for fill in [0x80, 0xff, 0xa5] {
                    let bytes = [vec![fill; len], vec![last], vec![0x05, 0x81]].concat();
                    for bytes in [&bytes[..], &bytes[..len + 1], &bytes[..len]] {
                        let want = plain(bytes);
                        assert_eq!(first::<MAX_VARINT>(bytes), want, "{bytes:02x?}");
                        let mut reader = Reader::new(bytes);
                        let read = reader.varint().ok().map(|value| (value, &bytes[reader.position()..]));
                        assert_eq!(read, want, "{bytes:02x?}");
                        let short = want.filter(|(_, rest)| bytes.len() - rest.len() <= 5);
                        assert_eq!(first::<5>(bytes), short, "{bytes:02x?}");
                    }
                }
            }
        }
    }

    #[test]
    fn runs_around_ten_at_every_position() {
        for before in 0..20 {
            for run in 0..24 {
                for after in 0..12 {
                    let chunk = [vec![1; before], vec![0x80; run], vec![2; after]].concat();
                    assert_eq!(count(&chunk).ok(), naive(&chunk), "{before} {run} {after}");
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

    /// A block leaves up to three values of no meaning behind its last, and the end of the chunk may hold no more than two.
    #[test]
    fn nothing_is_written_behind_the_values() {
        for (twos, ones, tens) in
            (0..6).flat_map(|a| (50..140).flat_map(move |b| (0..5).map(move |c| (a, b, c))))
        {
            let ten = [[0x81; 9].as_slice(), &[1]].concat();
            check(&[[0x81, 1].repeat(twos), vec![5; ones], ten.repeat(tens)].concat());
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
            prop_assert_eq!(count(&chunk).ok(), naive(&chunk));
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
