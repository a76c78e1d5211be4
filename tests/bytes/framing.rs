//! Damage in a record stream is always detected: every truncation, every flipped bit, every impossible
//! length.

use tfseek::ErrorKind;
use tfseek::frame::{FOOTER_LEN, HEADER_LEN, OVERHEAD, frames, put_record};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::twin::put_header;
use tfseek_testkit::{agree, alloc};

const PAYLOADS: [&[u8]; 3] = [b"the first record", b"", b"and \x00 the third"];

/// Returns three records, the offset of each, and the length of the file.
fn three() -> (Vec<u8>, [usize; 4]) {
    let (mut file, mut offsets) = (Vec::new(), [0; 4]);
    for (i, payload) in PAYLOADS.into_iter().enumerate() {
        put_record(&mut file, payload).unwrap();
        offsets[i + 1] = file.len();
    }
    (file, offsets)
}

/// Checks that the records before the damage are those of `three`, and that the error is in record `i` at
/// `offset`.
#[track_caller]
fn damaged(file: &[u8], i: usize, offset: usize) -> ErrorKind {
    agree::frames(file);
    let mut frames = frames(file);
    for payload in &PAYLOADS[..i] {
        assert_eq!(frames.next().unwrap().unwrap().1, *payload);
    }
    let e = frames.next().unwrap().unwrap_err();
    assert_eq!((e.location().record, e.location().offset), (Some(i as u64), Some(offset as u64)), "{e}");
    assert!(e.to_string().starts_with(&format!("record {i} at byte {offset}: ")), "{e}");
    assert!(frames.next().is_none());
    e.into_kind()
}

#[test]
fn every_truncation() {
    let (file, offsets) = three();
    for cut in 0..file.len() {
        let i = offsets.iter().rposition(|&offset| offset <= cut).unwrap();
        let offset = offsets[i];
        if cut == offset {
            // Truncation between records cannot be detected.
            agree::frames(&file[..cut]);
            assert_eq!(frames(&file[..cut]).map(|f| f.unwrap().1).collect::<Vec<_>>(), PAYLOADS[..i]);
            continue;
        }
        let have = cut - offset;
        let need = if have < HEADER_LEN { HEADER_LEN } else { PAYLOADS[i].len() + OVERHEAD };
        match damaged(&file[..cut], i, offset) {
            ErrorKind::Truncated { need: n, have: h } => assert_eq!((n, h), (need as u64, have as u64)),
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
}

/// CRC32C detects every single-bit error: in the length, in the payload and in the checksums.
#[test]
fn every_flipped_bit() {
    let (file, offsets) = three();
    for bit in 0..8 * file.len() {
        let mut file = file.clone();
        let at = bit / 8;
        file[at] ^= 1 << (bit % 8);
        let i = offsets.iter().rposition(|&offset| offset <= at).unwrap();
        let kind = damaged(&file, i, offsets[i]);
        match (at - offsets[i] < HEADER_LEN, &kind) {
            (true, ErrorKind::CorruptLength { computed, stored })
            | (false, ErrorKind::CorruptData { computed, stored }) => assert_ne!(computed, stored),
            _ => panic!("bit {bit}: {kind:?}"),
        }
    }
}

/// Random damage is detected, unless the twin also accepts the result as a well-formed file.
#[test]
fn random_damage() {
    let (whole, _) = three();
    for seed in 0..50_000 {
        let mut rng = Rng::new(seed);
        let mut file = whole.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(file.len());
            match rng.below(5) {
                0 => file[at] = rng.u64() as u8,
                1 => file.insert(at, rng.u64() as u8),
                2 => drop(file.remove(at)),
                3 => file[at..].rotate_left(1),
                _ => {
                    let to = (at + 12).min(file.len());
                    file[at..to].fill(0);
                }
            }
        }
        agree::frames(&file);
    }
}

/// A header with a correct checksum can contain a length that exceeds the file.
#[test]
fn lengths_beyond_the_file_are_refused() {
    let around = |n: u64| (0..40).flat_map(move |d| [n.wrapping_add(d), n.wrapping_sub(d)]);
    let lengths = [1u64 << 31, 1 << 32, 1 << 40, 1 << 63, 0].into_iter().flat_map(around);
    // Values just below 0 wrap around to almost 2^64. Values just above 0 are possible lengths.
    for len in lengths.filter(|&len| len > 64) {
        for trailing in [0, 1, 3, 4, 5, 40] {
            let (mut file, offsets) = three();
            put_header(&mut file, len).unwrap();
            file.resize(file.len() + trailing, 0);
            let mut frames = frames(&file);
            for payload in PAYLOADS {
                assert_eq!(frames.next().unwrap().unwrap().1, payload);
            }
            let (e, asked) = alloc::during(|| frames.next().unwrap().unwrap_err());
            let (need, have) = (len.saturating_add(OVERHEAD as u64), (HEADER_LEN + trailing) as u64);
            match e.kind() {
                ErrorKind::Truncated { need: n, have: h } => assert_eq!((*n, *h), (need, have)),
                other => panic!("{len}: {other:?}"),
            }
            assert_eq!((e.location().record, e.location().offset), (Some(3), Some(offsets[3] as u64)));
            // The boxed error is the only allocation.
            assert!(asked.times <= 1 && asked.bytes < 512, "{len}: {asked:?}");
        }
    }
}

#[test]
fn iteration_does_not_allocate() {
    let (file, _) = three();
    alloc::none(|| assert_eq!(frames(&file).filter(Result::is_ok).count(), 3));
}

/// Twelve zero bytes are not a valid header, so a tail of zeros is damage and not a series of empty records.
#[test]
fn a_tail_of_zeros_is_an_error() {
    let (mut file, offsets) = three();
    file.resize(file.len() + 4096, 0);
    assert!(matches!(damaged(&file, 3, offsets[3]), ErrorKind::CorruptLength { stored: 0, .. }));
}

#[test]
fn header_and_footer_match_the_twin() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let len = rng.below(300);
        let payload = rng.bytes(len);
        let mut file = Vec::new();
        put_header(&mut file, len as u64).unwrap();
        file.extend(&payload);
        file.extend(tfseek::crc::masked(&payload).to_le_bytes());
        assert_eq!(file.len(), len + HEADER_LEN + FOOTER_LEN);
        assert_eq!(tfseek_testkit::twin::frames(&file), [tfseek_testkit::twin::Frame::Record(payload)]);
        agree::frames(&file);
    }
}
