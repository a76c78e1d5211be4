//! Indexes of damaged gzip and zlib shards.

use flate2::{Compress, Compression as Level, FlushCompress};
use std::fs;
use std::io::Write;
use std::path::Path;
use tfseek::frame::put_record;
use tfseek::index::*;
use tfseek::io::{SalvageItem, SalvageReader};
use tfseek::{Damage, Dataset, DatasetOptions, ErrorKind, IndexMode};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::*;

const RECORDS: usize = 400;
/// Records between two flushes or members.
const PART: usize = 20;

/// A payload that no other record has. It compresses to about a half, and some refer to earlier records.
fn payload(i: usize) -> Vec<u8> {
    let mut rng = Rng::new(i as u64 + 1);
    let mut bytes = format!("record {i} of a file, {}", "the same text again ".repeat(i % 7)).into_bytes();
    bytes.extend((0..20 + i % 90).map(|_| rng.u64() as u8));
    bytes
}

fn stream(range: std::ops::Range<usize>) -> Vec<u8> {
    let mut file = Vec::new();
    range.for_each(|i| put_record(&mut file, &payload(i)).unwrap());
    file
}

fn parts() -> Vec<Vec<u8>> {
    (0..RECORDS / PART).map(|k| stream(k * PART..(k + 1) * PART)).collect()
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), Level::new(6));
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Returns one gzip member or zlib stream with a flush after each part.
fn flushed(zlib: bool, flush: FlushCompress) -> Vec<u8> {
    let mut deflate = Compress::new(Level::new(6), zlib);
    let mut file = if zlib { Vec::new() } else { vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] };
    let (parts, mut crc) = (parts(), flate2::Crc::new());
    for (k, part) in parts.iter().enumerate() {
        crc.update(part);
        let flush = if k + 1 == parts.len() { FlushCompress::Finish } else { flush };
        let mut out = Vec::with_capacity(2 * part.len() + 1000);
        let before = deflate.total_in();
        deflate.compress_vec(part, &mut out, flush).unwrap();
        assert_eq!((deflate.total_in() - before) as usize, part.len());
        file.extend(out);
    }
    if !zlib {
        file.extend(crc.sum().to_le_bytes());
        file.extend(crc.amount().to_le_bytes());
    }
    file
}

fn skip(dir: &Path) -> IndexOptions {
    options().index_dir(dir.join("i")).damage(Damage::Skip).checkpoint_every(3000)
}

/// The spans that the code of `tfseek salvage` finds.
fn salvaged(path: &Path) -> (Vec<(u64, u64)>, Vec<u8>) {
    let file = fs::File::open(path).unwrap();
    let (mut found, mut rest, mut end) = (Vec::new(), Vec::new(), 0);
    let mut reader = SalvageReader::new(&file, 1 << 30).unwrap();
    while let Some(part) = reader.next().unwrap() {
        match part {
            SalvageItem::Record { offset, bytes, .. } => {
                assert_eq!(offset, end);
                found.push((offset, bytes.len() as u64 - 16));
                end += bytes.len() as u64;
            }
            SalvageItem::Damage { offset, bytes, .. } => {
                assert_eq!(offset, end);
                rest.extend_from_slice(bytes);
                end += bytes.len() as u64;
            }
            SalvageItem::NotInflated { offset, .. } => assert_eq!(offset, end),
            _ => panic!("{part:?}"),
        }
    }
    (found, rest)
}

/// Reads all records at random and in order, and returns their numbers in the sound file.
fn numbers(ds: &Dataset, rng: &mut Rng, what: &str) -> Vec<usize> {
    let (n, mut buf, mut found) = (ds.len(), Vec::new(), Vec::new());
    let number = |payload: &[u8]| {
        let text = payload.split(|&b| b == b' ').nth(1).unwrap();
        let i: usize = std::str::from_utf8(text).unwrap().parse().unwrap();
        assert!(payload == self::payload(i));
        i
    };
    ds.read_many(&Vec::from_iter(0..n), |record| {
        found.push(number(record.payload()));
        Ok(())
    })
    .unwrap();
    for _ in 0..n {
        let i = rng.u64() % n;
        let record = ds.read(i, &mut buf).unwrap();
        assert_eq!(number(record.payload()), found[i as usize]);
    }
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "each record once, in order: {what}: {found:?}");
    found
}

/// Opens a damaged file, compares the records with those of `salvage`, and returns their numbers. Empty if
/// there is none.
fn check(dir: &Path, file: &[u8], rng: &mut Rng, what: &str) -> Vec<usize> {
    let path = write(dir, "x", file);
    let options = DatasetOptions::new().index(skip(dir).rest(dir.join("rest")));
    let _ = fs::remove_dir_all(dir.join("rest"));
    let (want, left) = salvaged(&path);
    let built = match options.open(&path) {
        Ok(built) => built,
        Err(e) if want.is_empty() => {
            assert!(e.is_data(), "{what}: {e}");
            return Vec::new();
        }
        Err(e) => panic!("{what}: {e}"),
    };
    let index = built.index(0).unwrap();
    index.verify().unwrap();
    assert_eq!(spans(index), want, "{what}");
    let found = options.open(&path).unwrap();
    assert_eq!(sidecar(found.index(0).unwrap()), sidecar(index));
    let (a, b) = (numbers(&built, rng, what), numbers(&found, rng, what));
    assert_eq!(a, b, "{what}");
    if !built.warnings().is_empty() {
        assert!(fs::read(dir.join("rest/x.rest")).unwrap() == left, "{what}");
    }
    assert_eq!(built.warnings().is_empty(), !index.has_gaps() && torn_bytes(index) == 0);
    a
}

#[test]
fn flipped_bits_cost_the_part_they_are_in() {
    let (mut rng, dir) = (Rng::new(21), tempfile::tempdir().unwrap());
    let members: Vec<u8> = parts().iter().flat_map(|part| member(part)).collect();
    // The other members begin inside a record.
    let split: Vec<u8> = stream(0..RECORDS).chunks(4001).flat_map(member).collect();
    for (name, file, lost) in [
        ("members", &members, 2 * PART),
        ("split members", &split, 100),
        ("full flush", &flushed(false, FlushCompress::Full), 2 * PART),
        ("full flush, zlib", &flushed(true, FlushCompress::Full), 2 * PART),
        ("sync flush", &flushed(false, FlushCompress::Sync), RECORDS),
        ("one member", &member(&stream(0..RECORDS)), RECORDS),
    ] {
        assert_eq!(check(dir.path(), file, &mut rng, name).len(), RECORDS, "{name}");
        for case in 0..30 {
            let mut bad = file.clone();
            // Not in the first bytes, which tell the compression.
            let bit = 80 + (rng.u64() % (8 * file.len() as u64 - 80)) as usize;
            bad[bit / 8] ^= 1 << (bit % 8);
            let what = format!("{name}, case {case}: bit {bit} of {} bytes", file.len());
            let found = check(dir.path(), &bad, &mut rng, &what);
            assert!(found.len() + lost >= RECORDS, "{what}: {} records", found.len());
        }
        for case in 0..6 {
            let mut bad = file.clone();
            for _ in 0..3 {
                let at = 20 + (rng.u64() % (file.len() as u64 - 60)) as usize;
                bad[at..at + 30].fill_with(|| rng.u64() as u8);
            }
            if case % 2 == 0 {
                bad.drain(file.len() / 2..file.len() / 2 + 100);
                bad.truncate(bad.len() - 5);
            }
            check(dir.path(), &bad, &mut rng, &format!("{name}, burst {case}"));
        }
    }
}

#[test]
fn a_sound_file_has_the_index_of_a_checked_scan() {
    let dir = tempfile::tempdir().unwrap();
    for file in [member(&stream(0..RECORDS)), flushed(true, FlushCompress::Full), member(b"")] {
        let path = write(dir.path(), "x", &file);
        let bytes = |options: IndexOptions| {
            let options = options.checkpoint_every(3000).mode(IndexMode::Memory);
            sidecar(&open(&path, &options).unwrap().indexes[0])
        };
        assert_eq!(bytes(options().damage(Damage::Skip)), bytes(options().check_payloads(true)));
    }
}

/// The bytes after a place of damage change after the shard was indexed: an error or the record, never other
/// bytes.
#[test]
fn later_damage_is_an_error() {
    let (mut rng, dir) = (Rng::new(4), tempfile::tempdir().unwrap());
    let mut file: Vec<u8> = parts().iter().flat_map(|part| member(part)).collect();
    file[500] ^= 1;
    let path = write(dir.path(), "x", &file);
    set_mtime(&path, 9);
    DatasetOptions::new().index(skip(dir.path())).open(&path).unwrap();
    for _ in 0..20 {
        let mut bad = file.clone();
        let at = (rng.u64() % file.len() as u64) as usize;
        bad[at] ^= 4;
        fs::write(&path, &bad).unwrap();
        set_mtime(&path, 9);
        let ds = DatasetOptions::new().index(skip(dir.path())).open(&path).unwrap();
        let mut buf = Vec::new();
        for i in 0..ds.len() {
            match ds.read(i, &mut buf) {
                Ok(record) => assert!((0..RECORDS).any(|i| record.payload() == payload(i))),
                Err(e) => assert!(e.is_data(), "{e}"),
            }
        }
    }
}

#[test]
fn without_the_option_damage_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut file: Vec<u8> = parts().iter().flat_map(|part| member(part)).collect();
    let at = file.len() / 2;
    file[at] ^= 1;
    let path = write(dir.path(), "x", &file);
    let at = |damage| options().index_dir(dir.path().join("i")).damage(damage);
    open(&path, &at(Damage::Skip)).unwrap();
    let e = open(&path, &at(Damage::Raise).check_payloads(true)).unwrap_err();
    assert!(e.is_data(), "{e}");
    let e = open(&path, &at(Damage::Raise).mode(IndexMode::Require)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(_)), "{e}");
}
