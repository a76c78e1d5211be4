//! Tests of [`Salvage`] on files in memory.

use super::{HEADER_LEN, Salvage, SalvageStep, frames, put_record};
use crate::error::ErrorKind;

/// Offsets of the sound records with their ordinals, and the gaps.
#[derive(Debug, Default, PartialEq)]
struct Found {
    records: Vec<(u64, Option<u64>)>,
    gaps: Vec<(u64, u64)>,
}

/// Drives a parser with bytes that arrive `chunk` at a time.
fn run(file: &[u8], chunk: usize) -> Found {
    let mut salvage = Salvage::new(1 << 20);
    let mut found = Found::default();
    let mut end = 0;
    loop {
        let at = salvage.offset();
        let record = salvage.record();
        let start = at as usize;
        end = end.max(start);
        match salvage.step(&file[start..end], end < file.len()) {
            SalvageStep::Need(n) => {
                assert!(n > (end - start) as u64 && end < file.len(), "the parser already has these bytes");
                end = (end + chunk).min(file.len());
            }
            SalvageStep::Record(len) => {
                assert_eq!(frames(&file[start..start + len]).filter(|f| f.is_ok()).count(), 1);
                found.records.push((at, record));
            }
            SalvageStep::Damage { len, error } => {
                assert!(len > 0);
                match found.gaps.last_mut().filter(|gap| gap.1 == at) {
                    Some(gap) => {
                        assert!(error.is_none());
                        gap.1 += len as u64;
                    }
                    None => {
                        let error = error.unwrap();
                        assert_eq!((error.location().offset, error.location().record), (Some(at), record));
                        found.gaps.push((at, at + len as u64));
                    }
                }
            }
            SalvageStep::End => {
                assert_eq!(at as usize, file.len());
                return found;
            }
        }
    }
}

/// The result, which must not depend on the pieces in which the bytes arrive.
fn salvage(file: &[u8]) -> Found {
    let found = run(file, file.len().max(1));
    for chunk in [1, 13, 100] {
        let other = run(file, chunk);
        assert_eq!(other.records.iter().map(|r| r.0).collect::<Vec<_>>(), found.offsets(), "{chunk}");
        assert_eq!(other.gaps, found.gaps, "{chunk}");
    }
    found
}

impl Found {
    fn offsets(&self) -> Vec<u64> {
        self.records.iter().map(|r| r.0).collect()
    }
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn noise(seed: &mut u64, len: usize) -> Vec<u8> {
    (0..len).map(|_| random(seed) as u8).collect()
}

/// A file of `n` records, and the offsets of the records.
fn file(n: usize, mut payload: impl FnMut(usize) -> Vec<u8>) -> (Vec<u8>, Vec<usize>) {
    let mut file = Vec::new();
    let mut starts = Vec::new();
    for i in 0..n {
        starts.push(file.len());
        put_record(&mut file, &payload(i)).unwrap();
    }
    (file, starts)
}

/// A payload of three records.
fn nested(i: usize) -> Vec<u8> {
    file(3, |k| vec![(i + k) as u8; 20 + (i + 7 * k) % 13]).0
}

/// Flips random bits, and returns the offsets of the records without one.
fn flip(file: &mut [u8], starts: &[usize], flips: usize, seed: &mut u64) -> Vec<u64> {
    let mut touched = vec![false; starts.len()];
    for _ in 0..flips {
        let bit = (random(seed) % (file.len() as u64 * 8)) as usize;
        let hit = starts.partition_point(|&start| start <= bit / 8) - 1;
        // A bit that is flipped twice is sound.
        if !touched[hit] {
            file[bit / 8] ^= 1 << (bit % 8);
            touched[hit] = true;
        }
    }
    starts.iter().zip(touched).filter(|(_, touched)| !touched).map(|(&start, _)| start as u64).collect()
}

#[test]
fn sound_files_have_no_gap() {
    for n in [0, 1, 2, 9] {
        let (file, starts) = file(n, nested);
        let found = salvage(&file);
        let want: Vec<_> = starts.iter().enumerate().map(|(i, &at)| (at as u64, Some(i as u64))).collect();
        assert_eq!(found, Found { records: want, gaps: vec![] });
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn every_flipped_bit_costs_one_record() {
    let (file, starts) = file(5, |i| vec![i as u8; 9 * i]);
    for bit in 0..file.len() * 8 {
        let mut bad = file.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let hit = starts.partition_point(|&start| start <= bit / 8) - 1;
        let want: Vec<_> =
            starts.iter().enumerate().filter(|(i, _)| *i != hit).map(|(_, &at)| at as u64).collect();
        let found = salvage(&bad);
        assert_eq!(found.offsets(), want, "bit {bit}");
        let end = starts.get(hit + 1).copied().unwrap_or(file.len());
        assert_eq!(found.gaps, [(starts[hit] as u64, end as u64)], "bit {bit}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn every_truncation_keeps_the_whole_records() {
    let (file, starts) = file(6, nested);
    for cut in 0..=file.len() {
        let found = salvage(&file[..cut]);
        let whole = starts.iter().skip(1).chain([&file.len()]).filter(|&&end| end <= cut).count();
        let torn =
            (starts.get(whole).is_some_and(|&at| at < cut)).then(|| (starts[whole] as u64, cut as u64));
        // A cut at the end of a nested record looks like a record that lacks bytes and sound records after
        // it.
        let nested_end = torn.is_some_and(|_| found.records.len() > whole);
        if nested_end {
            assert_eq!(
                found.offsets()[..whole],
                starts[..whole].iter().map(|&at| at as u64).collect::<Vec<_>>()
            );
            let last = *found.offsets().last().unwrap() as usize;
            let n = frames(&file[last..cut]).filter(|f| f.is_ok()).count();
            assert_eq!(n, 1, "cut {cut}");
            continue;
        }
        assert_eq!((found.records.len(), found.gaps), (whole, torn.into_iter().collect()), "cut {cut}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn one_or_twenty_flips_leave_exactly_the_other_records() {
    let mut seed = 1;
    let (file, starts) = file(200, |i| noise(&mut seed.clone(), 1900 + i % 200));
    for flips in [1, 20] {
        for _ in 0..100 {
            let mut bad = file.clone();
            let want = flip(&mut bad, &starts, flips, &mut seed);
            assert_eq!(run(&bad, bad.len()).offsets(), want);
            assert_eq!(run(&bad, 64 << 10).offsets(), want);
        }
    }
}

#[test]
#[ignore = "40 GB are searched: `make test-slow`"]
fn a_thousand_copies_of_large_records() {
    let mut seed = 2;
    let (file, starts) = file(200, |i| noise(&mut seed.clone(), (100 << 10) + i % 200));
    for flips in [1, 20] {
        for _ in 0..1000 {
            let mut bad = file.clone();
            let want = flip(&mut bad, &starts, flips, &mut seed);
            assert_eq!(run(&bad, bad.len()).offsets(), want);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn nested_records_are_not_records() {
    let (file, starts) = file(40, nested);
    let mut seed = 3;
    let all: Vec<_> = starts.iter().map(|&at| at as u64).collect();
    let mut payloads = 0;
    let mut lengths = 0;
    for _ in 0..500 {
        let mut bad = file.clone();
        let bit = (random(&mut seed) % (file.len() as u64 * 8)) as usize;
        let hit = starts.partition_point(|&start| start <= bit / 8) - 1;
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut found = salvage(&bad).offsets();
        let inside = |at: &u64| *at > all[hit] && all.get(hit + 1).is_none_or(|end| at < end);
        let false_records = found.iter().filter(|at| inside(at)).count();
        if bit / 8 < starts[hit] + HEADER_LEN {
            // Without its length, the record's extent is not known.
            lengths += false_records;
            found.retain(|at| !inside(at));
        } else {
            payloads += false_records;
        }
        let want: Vec<_> = all.iter().copied().filter(|&at| at != all[hit]).collect();
        assert_eq!(found, want);
    }
    assert_eq!(payloads, 0);
    assert!(lengths > 0);
    // Two neighbours: a payload, and the length after it.
    for (payload, n) in [(true, 0), (false, 3)] {
        let mut bad = file.clone();
        bad[if payload { starts[7] + HEADER_LEN + 3 } else { starts[7] }] ^= 1;
        bad[starts[8]] ^= 1;
        assert_eq!(salvage(&bad).records.len(), 38 + n + 3);
    }
}

#[test]
fn records_after_missing_bytes_are_found() {
    let (file, starts) = file(20, |i| vec![i as u8; 50 + i]);
    // A record was cut off, and the writer went on.
    for cut in (1..50).step_by(if cfg!(miri) { 12 } else { 1 }) {
        let bad = [&file[..starts[4] + cut], &file[starts[5]..]].concat();
        assert_eq!(salvage(&bad).records.len(), 19, "{cut}");
        assert_eq!(salvage(&bad[..bad.len() - 1]).records.len(), 18, "{cut}");
    }
    // A record longer than all that follow.
    let mut bad = Vec::new();
    put_record(&mut bad, &[7; 5000]).unwrap();
    bad.truncate(100);
    bad.extend(&file);
    assert_eq!(salvage(&bad).records.len(), 20);
    // Its end is stated to be anywhere in those that follow. Where one begins there, those before are its
    // payload.
    for stated in (200..300).step_by(if cfg!(miri) { 40 } else { 1 }) {
        let mut bad = Vec::new();
        put_record(&mut bad, &vec![7; stated]).unwrap();
        bad.truncate(100);
        bad.extend(&file);
        let inside = starts.iter().position(|&start| 100 + start == 16 + stated).unwrap_or(0);
        assert_eq!(salvage(&bad).records.len(), 20 - inside, "{stated}");
    }
}

/// A writer that died, was started again and died again: a chain of sound records between two torn ones.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn records_between_torn_ones_are_found() {
    let torn = |stated: usize, left: usize| {
        let mut record = Vec::new();
        put_record(&mut record, &vec![9; stated]).unwrap();
        record.truncate(left);
        record
    };
    for n in [2, 3, 60] {
        let (sound, starts) = file(n, |i| vec![i as u8; 30 + i]);
        // The first record states an end after the file.
        for first in [torn(100_000, 12), torn(100_000, 90)] {
            // Cut in the header, after it, in the payload, and in the footer.
            for cut in [1, 11, 12, 40, 214] {
                let end = torn(200, cut);
                let bad = [&first[..], &sound, &end].concat();
                assert_eq!(salvage(&bad).records.len(), n, "{n}, {cut}");
                // The writer was started once more.
                let bad = [&bad[..], &sound].concat();
                assert_eq!(salvage(&bad).records.len(), 2 * n, "{n}, {cut}");
            }
            // A payload, or a length, with a flipped bit in the chain.
            for at in [HEADER_LEN + 2, 0] {
                if (n, at) == (2, 0) {
                    continue; // one sound record, and nothing after it
                }
                let mut bad = [&first[..], &sound].concat();
                bad[first.len() + starts[n / 2] + at] ^= 1;
                assert_eq!(salvage(&bad).records.len(), n - 1, "{n}, {at}");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn noise_and_zeros_contain_no_records() {
    let mut seed = 4;
    for bytes in [vec![0; 8 << 20], vec![0xff; 1 << 20], noise(&mut seed, 8 << 20)] {
        let found = run(&bytes, bytes.len());
        assert_eq!(found, Found { records: vec![], gaps: vec![(0, bytes.len() as u64)] });
        // In front of records and after them.
        let (sound, starts) = file(3, |i| vec![i as u8; 100]);
        let joined = [&sound[..], &bytes, &sound].concat();
        assert_eq!(run(&joined, joined.len()).records.len(), 2 * starts.len());
    }
}

/// Headers with lengths whose bytes are skipped by the search, after bytes of each kind.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn no_offset_is_skipped() {
    let mut seed = 5;
    for len in [0, 1, 255, 256, 257, 65_536, 70_000] {
        let (sound, _) = file(1, |_| noise(&mut seed, len));
        for before in 1..40 {
            for byte in [0, 1, 0x80] {
                let mut bytes = vec![byte; before];
                if before % 2 == 0 {
                    bytes[before / 2] = 9;
                }
                bytes.extend(&sound);
                assert_eq!(run(&bytes, bytes.len()).offsets(), [before as u64], "{len} {before} {byte}");
            }
        }
    }
}

#[test]
fn ordinals_are_known_until_a_search() {
    let (file, starts) = file(6, |i| vec![i as u8; 30]);
    let mut bad = file.clone();
    bad[starts[1] + 20] ^= 1;
    bad[starts[2] + 20] ^= 1;
    bad[starts[4]] ^= 1;
    let ordinals: Vec<_> = salvage(&bad).records.iter().map(|r| r.1).collect();
    assert_eq!(ordinals, [Some(0), Some(3), None]);
}

#[test]
fn payloads_above_the_limit_are_damage() {
    let (file, starts) = file(4, |i| vec![i as u8; [10, 200, 10, 10][i]]);
    let mut salvage = Salvage::new(100);
    let mut steps = Vec::new();
    while let step @ (SalvageStep::Record(_) | SalvageStep::Damage { .. }) =
        salvage.step(&file[salvage.offset() as usize..], false)
    {
        steps.push(step);
    }
    let [
        SalvageStep::Record(_),
        SalvageStep::Damage { len, error: Some(e) },
        SalvageStep::Record(_),
        SalvageStep::Record(_),
    ] = &steps[..]
    else {
        panic!("{steps:?}")
    };
    assert_eq!(*len, starts[2] - starts[1]);
    assert!(matches!(e.kind(), ErrorKind::RecordTooLarge { len: 200, max_record: 100 }), "{e}");
    // It ends a chain of records that may be inside of a damaged one.
    let mut torn = self::file(1, |_| vec![7; 90]).0;
    torn.truncate(20);
    let mut salvage = Salvage::new(100);
    let bad = [&torn[..], &file].concat();
    let step = salvage.step(&bad, false);
    assert!(matches!(step, SalvageStep::Damage { len: 106, .. }), "{step:?}");
    let step = salvage.step(&bad[106..], false);
    assert!(matches!(step, SalvageStep::Damage { len, .. } if 106 + len == 20 + starts[2]), "{step:?}");
}

#[test]
fn a_search_can_begin_inside_a_gap() {
    let (file, starts) = file(3, |i| vec![i as u8; 30]);
    let at = starts[1] - 5;
    let mut salvage = Salvage::searching(u64::MAX, at as u64);
    assert_eq!((salvage.offset(), salvage.record()), (at as u64, None));
    // The gap has begun before, so there is no error.
    let step = salvage.step(&file[at..], false);
    assert!(matches!(step, SalvageStep::Damage { len: 5, error: None }), "{step:?}");
    assert!(matches!(salvage.step(&file[starts[1]..], false), SalvageStep::Record(46)));
}

/// After noise, a record with a damaged payload is skipped only if another header follows it.
#[test]
fn a_damaged_record_after_noise() {
    let (mut sound, starts) = file(3, |i| vec![i as u8; 30]);
    sound[starts[1] + 20] ^= 1;
    let noise = [9; 7];
    let found = salvage(&[&noise, &sound[starts[1]..]].concat());
    assert_eq!(found.offsets(), [7 + 46]);
    assert_eq!(found.gaps, [(0, 7 + 46)]);
    for cut in [sound.len() - 1, starts[2] + 5, starts[2], starts[2] - 1] {
        let found = salvage(&[&noise, &sound[starts[1]..cut]].concat());
        assert_eq!((found.offsets(), found.gaps), (vec![], vec![(0, (7 + cut - starts[1]) as u64)]), "{cut}");
    }
    let found = salvage(&[&noise, &sound[starts[1]..starts[2]], &noise, &sound[starts[2]..]].concat());
    assert_eq!(found.offsets(), [14 + 46]);
}

/// Bytes of checksums that a parser computes over a file in memory, as a multiple of the file.
fn work(file: &[u8], max: u64) -> u64 {
    let mut salvage = Salvage::new(max);
    while let Some(rest) = file.get(salvage.offset() as usize..) {
        if let SalvageStep::End | SalvageStep::Need(_) = salvage.step(rest, false) {
            break;
        }
    }
    salvage.work.get() / file.len() as u64
}

/// Sound headers whose payloads overlap would take time that grows with the square of the file.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn the_work_is_linear_for_any_file() {
    let limit = super::salvage::SEARCH_LIMIT + 2;
    for n in [1000usize, 8000] {
        let mut headers = Vec::new();
        let size = 16 * n as u64;
        let header = |len: u64| {
            let mut header = Vec::new();
            super::put_header(&mut header, len).unwrap();
            header
        };
        // Each payload reaches up to the end of the file, or to the middle of the rest.
        for part in [1, 2] {
            headers.clear();
            for i in 0..n as u64 {
                headers.extend(header((size - 16 * i - 16) / part));
                headers.extend([0x55; 4]);
            }
            assert!(work(&headers, u64::MAX) <= limit, "{} times", work(&headers, u64::MAX));
            // The same inside of a damaged record, in a search, and after a damaged header.
            let mut inside = header(headers.len() as u64);
            inside.extend(&headers);
            inside.extend([1; 4]);
            assert!(work(&inside, u64::MAX) <= limit, "{} times", work(&inside, u64::MAX));
            inside[3] ^= 1;
            assert!(work(&inside, u64::MAX) <= limit, "{} times", work(&inside, u64::MAX));
        }
    }
    // Records that are nested many times, all damaged at the innermost byte.
    let mut nested = vec![0];
    for _ in 0..400 {
        let mut outer = Vec::new();
        put_record(&mut outer, &nested).unwrap();
        nested = outer;
    }
    let middle = nested.len() / 2;
    for file in [nested.clone(), [&b"damage"[..], &nested].concat()] {
        let mut file = file;
        file[middle] ^= 0x10;
        assert!(work(&file, u64::MAX) <= limit, "{} times", work(&file, u64::MAX));
    }
}

/// The limit depends on the bytes only, not on the pieces in which they arrive.
#[test]
#[cfg_attr(miri, ignore = "too slow under Miri")]
fn the_limit_does_not_depend_on_the_pieces() {
    let mut seed = 77;
    for _ in 0..60 {
        let mut file = noise(&mut seed, 30);
        for i in 0..60u64 {
            super::put_header(&mut file, random(&mut seed) % (700 + 4 * i)).unwrap();
            if random(&mut seed).is_multiple_of(3) {
                put_record(&mut file, &noise(&mut seed, 5)).unwrap();
            }
        }
        salvage(&file);
    }
}
