//! Varint decoders. Each fast form is tested against a naive twin.
//!
//! | | result | fast | slow |
//! | --- | --- | --- | --- |
//! | [`first`] | the first varint of some bytes | | a byte at a time |
//! | [`WireReader::varint`](super::WireReader::varint) | the same, with errors | one or two bytes, inlined | [`first`] |
//! | [`decode_one`], [`decode_few`] | chunks of one or a few values | `short.rs`: a word at a time, no branch on a length | [`first`] |
//! | [`decode`] | all values of a chunk | `avx512.rs`, `avx2.rs`: blocks of 64 bytes | `decode_slow`: eight values of one byte, otherwise [`first`] |
//! | [`count`] | the number of values of a chunk, validated | `avx2.rs` | `count_slow`: a word at a time |
//!
//! A packed chunk is counted and validated in one pass. It can then be decoded without errors.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod short;
mod slow;

pub use short::{decode_few, decode_one, join_sevens};
pub use slow::{MAX_VARINT, first};

#[cfg(target_arch = "x86_64")]
use self::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use self::avx512::Avx512;
use self::slow::{count_slow, decode_slow};
use crate::fault::Fault;

/// Shortest chunks for which the AVX2 forms are faster (`benches/varint.rs`). For shorter chunks their set-up
/// dominates.
#[cfg(target_arch = "x86_64")]
const AVX2_MIN_COUNT: usize = 32;
#[cfg(target_arch = "x86_64")]
const AVX2_MIN_DECODE: usize = 16;

/// Counts the varints of a packed chunk. All must be whole and have at most ten bytes. The offset of a fault
/// is relative to the chunk.
#[inline]
pub fn count(chunk: &[u8]) -> Result<usize, Fault> {
    #[cfg(target_arch = "x86_64")]
    if chunk.len() >= AVX2_MIN_COUNT
        && let Some(avx2) = Avx2::detect()
        && let Some(count) = avx2.count(chunk)
    {
        return Ok(count);
    }
    // The slow form also runs after the AVX2 form has found a fault, to report its kind and offset.
    count_slow(chunk)
}

/// Decodes at most `out.len()` values of a packed chunk that [`count`] has accepted. Returns the number of
/// values decoded.
///
/// If the bytes have changed since then, decoding ends at the first value that is cut off or too long. The
/// elements of `out` after the decoded values are then unspecified.
#[inline]
pub fn decode(chunk: &[u8], out: &mut [i64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if chunk.len() >= AVX2_MIN_DECODE {
        if let Some(avx512) = Avx512::detect() {
            return avx512.decode(chunk, out);
        }
        if let Some(avx2) = Avx2::detect() {
            return avx2.decode(chunk, out);
        }
    }
    decode_slow(chunk, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The naive twin of all forms, which joins the bits of one value in 128 bits.
    pub(super) fn plain(bytes: &[u8]) -> Option<(u64, &[u8])> {
        let len = bytes.iter().take(MAX_VARINT).position(|byte| byte & 0x80 == 0)? + 1;
        let value = bytes[..len].iter().rev().fold(0u128, |value, byte| value << 7 | u128::from(byte & 0x7f));
        Some((value as u64, &bytes[len..]))
    }

    /// Counts one varint at a time.
    fn naive_count(chunk: &[u8]) -> Option<usize> {
        let mut rest = chunk;
        let mut count = 0;
        while !rest.is_empty() {
            rest = plain(rest)?.1;
            count += 1;
        }
        Some(count)
    }

    /// Decodes the values before the first that is cut off or too long.
    fn naive_decode(chunk: &[u8]) -> Vec<i64> {
        let mut rest = chunk;
        let next = || {
            let (value, after) = plain(rest)?;
            rest = after;
            Some(value as i64)
        };
        std::iter::from_fn(next).collect()
    }

    /// Under Miri, `check` takes a second: tests take one of this many cases there.
    const STEP: usize = if cfg!(miri) { 61 } else { 1 };

    type Decoder = (&'static str, fn(&[u8], &mut [i64]) -> usize);

    /// Returns all forms that this processor can run.
    fn decoders() -> Vec<Decoder> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "no further form"))]
        let mut all: Vec<Decoder> = vec![("chosen", decode), ("slow", decode_slow)];
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_some() {
            all.push(("avx2", |chunk, out| Avx2::detect().unwrap().decode(chunk, out)));
            if Avx512::detect().is_some() {
                all.push(("avx512", |chunk, out| Avx512::detect().unwrap().decode(chunk, out)));
            }
            all.push(("no pext", |chunk, out| Avx2::detect().unwrap().without_pext().decode(chunk, out)));
        }
        all
    }

    /// Compares all decoders with the naive one, with room for fewer, exactly as many, and more values.
    fn check(chunk: &[u8]) {
        let want = naive_decode(chunk);
        for (name, decode) in decoders() {
            for room in [want.len(), want.len() + 1, want.len() + 200, want.len() / 2] {
                let mut out = vec![0x5555; room];
                let done = decode(chunk, &mut out);
                assert_eq!(out[..done], want[..want.len().min(room)], "{name} {room} {chunk:02x?}");
                if naive_count(chunk).is_some() {
                    assert!(out[done..].iter().all(|&value| value == 0x5555), "{name} {room} {chunk:02x?}");
                }
            }
        }
        let counted = count(chunk);
        let slow = count_slow(chunk);
        assert_eq!(format!("{counted:?}"), format!("{slow:?}"), "{chunk:02x?}");
        assert_eq!(counted.ok(), naive_count(chunk), "{chunk:02x?}");
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            assert_eq!(avx2.count(chunk), naive_count(chunk), "{chunk:02x?}");
        }
    }

    /// Compares the forms that read one value with the naive twin: all lengths, cut off, too long, bits
    /// beyond 64.
    #[test]
    fn first_value() {
        use crate::WireReader;
        for len in 0..14 {
            for last in [0, 1, 0x7f, 0x80, 0xff] {
                for fill in [0x80, 0xff, 0xa5] {
                    let bytes = [vec![fill; len], vec![last], vec![0x05, 0x81]].concat();
                    for bytes in [&bytes[..], &bytes[..len + 1], &bytes[..len]] {
                        let want = plain(bytes);
                        assert_eq!(first::<MAX_VARINT>(bytes), want, "{bytes:02x?}");
                        let mut reader = WireReader::new(bytes);
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
                    assert_eq!(count(&chunk).ok(), naive_count(&chunk), "{before} {run} {after}");
                }
            }
        }
    }

    /// Long runs across the borders of blocks, and into the tail.
    #[test]
    fn runs_around_ten_across_blocks() {
        let cases = (40..70).chain(110..134).flat_map(|before| {
            let runs = (0..13).chain(60..70);
            runs.flat_map(move |run| [0, 1, 2, 80].map(move |after| (before, run, after)))
        });
        for (before, run, after) in cases.step_by(STEP) {
            check(&[vec![1; before], vec![0x83; run], vec![2; after]].concat());
        }
    }

    /// One value of each length among one-byte values, at every position of a block, with its unused bits
    /// set.
    #[test]
    fn one_long_value_anywhere() {
        for len in 1..=MAX_VARINT {
            for before in (0..150).step_by(STEP) {
                let value = [vec![0xff; len - 1], vec![0x7f]].concat();
                check(&[vec![1; before], value, vec![2; 150 - before]].concat());
            }
        }
    }

    /// Zeros in ten bytes: words of which all bytes have the high bit set and no other.
    #[test]
    fn zeros_in_ten_bytes() {
        for before in 0..20 {
            let zero = [vec![0x80; 9], vec![0]].concat();
            check(&[vec![1; before], zero.repeat(3), vec![2; 40]].concat());
        }
    }

    /// A fault is at the start of the value.
    #[test]
    fn faults_are_at_the_start_of_a_value() {
        for before in 0..40 {
            for run in 1..30 {
                for after in [0, 1, 7, 30] {
                    let chunk = [vec![1; before], vec![0x80; run], vec![2; after]].concat();
                    if let Err(fault) = count_slow(&chunk) {
                        assert_eq!(fault.offset as usize, before, "{before} {run} {after}");
                    }
                }
            }
        }
    }

    /// Values of one length, in every number up to 100.
    #[test]
    fn values_of_one_length() {
        for len in 1..=MAX_VARINT {
            for n in (0..100).step_by(STEP) {
                let values = (0..n).flat_map(|k: u8| {
                    let mut value: Vec<u8> = (0..len as u8).map(|b| k.wrapping_mul(7) ^ b | 0x80).collect();
                    value[len - 1] &= 0x7f;
                    value
                });
                check(&values.collect::<Vec<_>>());
            }
        }
    }

    /// A block leaves up to three unspecified elements after its last value, and the rest of the chunk may
    /// have only two values.
    #[test]
    fn nothing_is_written_after_the_last_value() {
        let cases = (0..6).flat_map(|a| (50..140).flat_map(move |b| (0..5).map(move |c| (a, b, c))));
        for (twos, ones, tens) in cases.step_by(STEP) {
            let ten = [[0x81; 9].as_slice(), &[1]].concat();
            check(&[[0x81, 1].repeat(twos), vec![5; ones], ten.repeat(tens)].concat());
        }
    }

    /// Every pattern of value ends in twelve bytes, which includes every index of the table of pairs.
    #[test]
    fn every_pattern_of_ends() {
        for pattern in (0u32..1 << 12).step_by(STEP) {
            let bytes = (0..12u8).map(|k| if pattern >> k & 1 == 1 { 0x11 + k } else { 0xc1 + k });
            let once: Vec<u8> = bytes.collect();
            check(&[vec![1; 50], once.clone(), once, vec![3; 30]].concat());
        }
    }

    /// Generates varints of `lens` bytes, whose last byte is arbitrary.
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
        fn count_agrees_with_the_naive_twin(chunk in prop::collection::vec(prop_oneof![0u8..4, 0x7eu8..0x82, 0xfcu8..], 0..80)) {
            prop_assert_eq!(count(&chunk).ok(), naive_count(&chunk));
        }

        #[test]
        fn all_forms_agree(
            chunk in prop_oneof![varints(1..=1), varints(1..=3), varints(1..=5), varints(5..=9), varints(9..=10), varints(1..=10)],
            lead in 0usize..64,
        ) {
            // The same bytes at another alignment.
            let moved = [vec![0xff; lead], chunk].concat();
            check(&moved[lead..]);
        }

        #[test]
        #[cfg_attr(miri, ignore = "too slow under Miri")]
        fn all_forms_agree_over_mixed_blocks(parts in prop::collection::vec(prop_oneof![varints(1..=1), varints(1..=4), varints(1..=10)], 0..6)) {
            check(&parts.concat());
        }

        #[test]
        fn all_forms_agree_on_any_bytes(chunk in prop::collection::vec(any::<u8>(), 0..300)) {
            check(&chunk);
        }

        #[test]
        fn all_forms_agree_on_mostly_continuation_bytes(chunk in prop::collection::vec(prop_oneof![1 => 0u8..0x80, 4 => 0x80u8..], 0..300)) {
            check(&chunk);
        }

        #[test]
        fn all_forms_agree_on_truncated_chunks(chunk in varints(1..=10), cut in 0usize..12) {
            check(&chunk[..chunk.len().saturating_sub(cut)]);
        }
    }
}
