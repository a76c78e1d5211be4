//! Tests of checkpoints, and of decompression from them.

use super::scan::*;
use super::{Inflate, InflateFrom};
use crate::error::ErrorKind;
use crate::error::{CompressionError, Error};
use crate::io::CompressedFormat;
use flate2::Compression as Level;
use flate2::Crc;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::io::Read;
use std::io::Write;

/// Returns bytes that are partly repetitive and partly random, as records of text and numbers are.
fn content(len: usize, seed: u32) -> Vec<u8> {
    let mut x = seed | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x
    };
    let mut bytes = Vec::with_capacity(len + 300);
    while bytes.len() < len {
        match next() % 4 {
            0 => (0..next() % 200).for_each(|_| bytes.push(next() as u8)),
            1 => bytes.extend(std::iter::repeat_n(next() as u8, (next() % 300) as usize)),
            _ => {
                let n = (next() as usize % 250).min(bytes.len());
                let from = next() as usize % (bytes.len() - n + 1);
                bytes.extend_from_within(from..from + n);
            }
        }
    }
    bytes.truncate(len);
    bytes
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Level::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns gzip with a flush after each of the parts, which makes empty stored blocks, and blocks of fixed
/// codes where parts are short.
fn flushed(parts: &[&[u8]]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::new(6));
    for part in parts {
        encoder.write_all(part).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

/// Reads all bytes, and returns the error after them.
fn read_all(mut reader: impl Read) -> (Vec<u8>, Option<ErrorKind>) {
    let mut bytes = Vec::new();
    match reader.read_to_end(&mut bytes) {
        Ok(_) => (bytes, None),
        Err(e) => (bytes, Some(Error::from(e).into_kind())),
    }
}

fn scan(file: &[u8], format: CompressedFormat, spacing: u64) -> (Vec<u8>, Option<ErrorKind>, Checkpoints) {
    let mut scan = CheckpointScan::new(file, format, spacing);
    let (bytes, error) = read_all(&mut scan);
    (bytes, error, scan.into_checkpoints())
}

/// Checks every checkpoint: its window, and the bytes up to the next one.
fn check(file: &[u8], format: CompressedFormat, content: &[u8], spacing: u64) -> usize {
    let (bytes, error, points) = scan(file, format, spacing);
    assert!(error.is_none(), "spacing {spacing}: {error:?}");
    let same = bytes.iter().zip(content).take_while(|(a, b)| a == b).count();
    assert!(
        bytes == content,
        "spacing {spacing}: {} and {} bytes, {same} of them equal",
        bytes.len(),
        content.len()
    );
    for k in 0..points.len() {
        let point = points.get(k).unwrap();
        let start = point.out as usize;
        let end = points.get(k + 1).map_or(content.len(), |p| p.out as usize);
        assert!(k == 0 || start - points.get(k - 1).unwrap().out as usize >= 1);
        assert!(content[..start].ends_with(point.window));
        let likely_end = [0, file.len() as u64 / 2, u64::MAX][k % 3];
        let what = format!("checkpoint {k} at bit {} with {}", point.bit % 8, point.window.len());
        let mut found = vec![0; end - start];
        let mut from = InflateFrom::new(file, format, point, likely_end).unwrap();
        assert!(from.fill(&mut found).expect(&what));
        assert!(content[start..end] == found, "checkpoint {k}");
        // The same after some bytes that are dropped, in pieces of any size.
        let skipped = (end - start) / 3;
        let mut from = InflateFrom::new(file, format, point, likely_end).unwrap();
        from.skip(skipped as u64).expect(&what);
        found.truncate(skipped);
        while found.len() < end - start {
            let mut piece = vec![0; 1 + found.len() % 999];
            let n = from.read(&mut piece).expect(&what);
            assert!(n > 0);
            found.extend_from_slice(&piece[..n]);
        }
        assert!(content[start..].starts_with(&found), "checkpoint {k}");
        let mut found = vec![0; end - start];
        assert!(InflateFrom::as_scanned(file, format, point).fill(&mut found).expect(&what));
        assert!(content[start..end] == found, "checkpoint {k}");
    }
    points.len()
}

#[test]
fn bytes_after_checkpoints() {
    let bytes = content(3 << 20, 1);
    for level in [0, 1, 6, 9] {
        for spacing in [0, 64 << 10, 1 << 20] {
            let points = check(&gzip(&bytes, level), CompressedFormat::Gzip, &bytes, spacing);
            assert!(points >= 2 && (spacing == 0 || points <= 1 + bytes.len() / spacing as usize));
            assert_eq!(check(&zlib(&bytes, level), CompressedFormat::Zlib, &bytes, spacing), points);
        }
    }
    for len in [0, 1, 15, WINDOW - 1, WINDOW, WINDOW + 1, OUTPUT, OUTPUT + 1] {
        check(&gzip(&bytes[..len], 6), CompressedFormat::Gzip, &bytes[..len], 0);
        check(&zlib(&bytes[..len], 6), CompressedFormat::Zlib, &bytes[..len], 0);
    }
}

#[test]
fn members_and_flushes() {
    let bytes = content(1 << 20, 2);
    let all = |sizes: &[usize], spacing: u64| {
        let mut file = Vec::new();
        let mut rest = &bytes[..];
        for &size in sizes.iter().cycle().take(200) {
            let (part, after) = rest.split_at(size.min(rest.len()));
            file.extend(gzip(part, 6));
            rest = after;
        }
        file.extend(gzip(rest, 6));
        check(&file, CompressedFormat::Gzip, &bytes, spacing)
    };
    // Small members as in BGZF: no checkpoint inside a member, so no windows.
    assert!(all(&[4096], 64 << 10) <= 17);
    all(&[1, 0, 70_000, 3], 0);
    // Members that are longer than the spacing, and checkpoints whose bytes extend over several members.
    all(&[300_000, 10, 20], 64 << 10);
    let parts: Vec<&[u8]> = bytes.chunks(7001).collect();
    check(&flushed(&parts), CompressedFormat::Gzip, &bytes, 0);
    check(&flushed(&[b"a", b"", b"bc", b"d"]), CompressedFormat::Gzip, b"abcd", 0);
}

#[test]
fn headers_with_all_fields() {
    let bytes = content(100_000, 3);
    let mut file = flate2::GzBuilder::new()
        .extra(vec![7; 300])
        .filename("a name")
        .comment("a comment")
        .write(Vec::new(), Level::new(6));
    file.write_all(&bytes).unwrap();
    let mut file = file.finish().unwrap();
    check(&file, CompressedFormat::Gzip, &bytes, 0);
    // With a checksum of the header.
    let end = 10 + 2 + 300 + "a name".len() + 1 + "a comment".len() + 1;
    file[3] |= 2;
    let mut crc = Crc::new();
    crc.update(&file[..end]);
    let sum = (crc.sum() as u16).to_le_bytes();
    file.splice(end..end, sum);
    check(&file, CompressedFormat::Gzip, &bytes, 0);
    file[end] ^= 1;
    let (found, error, points) = scan(&file, CompressedFormat::Gzip, 0);
    assert!(found.is_empty() && points.len() == 0);
    assert!(error.unwrap().to_string().contains("header"));
}

/// Compares with `Inflate`: the same bytes up to the damage, and the same kind of error. zlib-rs may return
/// fewer bytes before damage inside a block.
#[test]
fn damage_is_found_as_by_the_other_reader() {
    let bytes = content(20_000, 4);
    for (format, file) in
        [(CompressedFormat::Gzip, gzip(&bytes, 6)), (CompressedFormat::Zlib, zlib(&bytes, 6))]
    {
        let compare = |damaged: &[u8], what: &str| {
            let (found, error, _) = scan(damaged, format, 1000);
            let (want, other) = read_all(Inflate::new(damaged, format.compression()));
            assert!(found.starts_with(&want) || want.starts_with(&found), "{what}");
            let kind = |error: &Option<ErrorKind>| match error {
                None => "none",
                Some(ErrorKind::Compression(CompressionError::Cut { .. })) => "cut",
                Some(ErrorKind::Compression(CompressionError::TrailingData { .. })) => "trailing",
                Some(ErrorKind::Compression(CompressionError::Corrupt { .. })) => "corrupt",
                Some(other) => panic!("{what}: {other}"),
            };
            assert_eq!(kind(&error), kind(&other), "{what}: {error:?}, {other:?}");
            if error.is_none() || kind(&error) == "trailing" {
                assert_eq!(found, want, "{what}");
            }
        };
        for len in 0..file.len() {
            compare(&file[..len], &format!("{format:?}, {len} bytes"));
        }
        for bit in
            (0..80).chain((80..file.len() * 8 - 80).step_by(97)).chain(file.len() * 8 - 80..file.len() * 8)
        {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // An unused field of the header, and unknown flags, of which the other reader accepts some.
            if format == CompressedFormat::Gzip && (24..80).contains(&bit) {
                scan(&damaged, format, 1000);
                continue;
            }
            compare(&damaged, &format!("{format:?}, bit {bit}"));
        }
        for garbage in [&b"\0"[..], b"garbage", &file[..5]] {
            compare(&[&file[..], garbage].concat(), &format!("{format:?}, garbage {garbage:?}"));
        }
    }
}

#[test]
fn damage_after_a_checkpoint_is_an_error() {
    let bytes = content(1 << 20, 5);
    let file = gzip(&bytes, 6);
    let (_, _, points) = scan(&file, CompressedFormat::Gzip, 100_000);
    let point = points.get(3).unwrap();
    assert!(point.bit % 8 > 0 || points.get(4).unwrap().bit % 8 > 0, "a checkpoint inside a byte");
    let cut = &file[..point.bit as usize / 8 + 1000];
    let all = |file: &[u8], point| InflateFrom::new(file, CompressedFormat::Gzip, point, 0)?.skip(u64::MAX);
    let error = all(cut, point).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Compression(CompressionError::Cut { .. })), "{error}");
    for wrong in [Checkpoint { bit: u64::MAX, ..point }, Checkpoint { bit: file.len() as u64 * 8, ..point }] {
        assert!(all(&file, wrong).is_err());
    }
    // Any bit position gives an error or other bytes, without a panic.
    for bit in (point.bit..point.bit + 4000).step_by(7) {
        let mut from =
            InflateFrom::new(&file[..], CompressedFormat::Gzip, Checkpoint { bit, ..point }, 0).unwrap();
        let _ = from.skip(1 << 20);
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Level::new(6));
    encoder.write_all(&bytes).unwrap();
    let raw = encoder.finish().unwrap();
    assert!(
        scan(&raw, CompressedFormat::Gzip, 0).1.is_some()
            && scan(&raw, CompressedFormat::Zlib, 0).1.is_some()
    );
}
