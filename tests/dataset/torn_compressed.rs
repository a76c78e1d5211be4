//! Compressed shards with a torn tail: a cut or missing trailer, and other bytes after the last member or
//! stream.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use tfseek::error::{CompressionError, IndexError};
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::{Damage, Dataset, DatasetOptions, ErrorKind, IndexMode, Tail, Warning};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::{options, sidecar, torn_bytes, write};

const RECORDS: usize = 300;

fn payload(i: usize) -> Vec<u8> {
    let mut rng = Rng::new(i as u64);
    let len = rng.below(300);
    [format!("record {i} ").repeat(i % 9).into_bytes(), rng.bytes(len)].concat()
}

fn stream(range: std::ops::Range<usize>) -> Vec<u8> {
    let mut stream = Vec::new();
    range.for_each(|i| put_record(&mut stream, &payload(i)).unwrap());
    stream
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn with(index: &IndexOptions) -> DatasetOptions {
    DatasetOptions::new().index(index.clone())
}

fn index_options(dir: &Path) -> IndexOptions {
    options().index_dir(dir.join("i")).checkpoint_every(3000)
}

/// Reads all records in order and at random.
#[track_caller]
fn check(ds: &Dataset, n: usize) {
    assert_eq!(ds.len(), n as u64);
    let mut i = 0;
    ds.read_many(&Vec::from_iter(0..n as u64), |record| {
        assert_eq!(record.payload(), payload(i));
        i += 1;
        Ok(())
    })
    .unwrap();
    let (mut rng, mut buf) = (Rng::new(5), Vec::new());
    for _ in 0..n {
        let i = rng.below(n);
        assert_eq!(ds.read(i as u64, &mut buf).unwrap().payload(), payload(i));
    }
}

#[test]
fn all_whole_records_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let all = stream(0..RECORDS);
    let members: Vec<u8> = all.chunks(9001).flat_map(gzip).collect();
    for whole in [gzip(&all), zlib(&all), members] {
        let trailer = if whole[0] == 0x1f { 8 } else { 4 };
        let cuts = (1..=trailer).map(|n| (whole[..whole.len() - n].to_vec(), (trailer - n) as u64));
        let more = [&b"garbage"[..], &[0; 512]].map(|rest| ([&whole[..], rest].concat(), rest.len() as u64));
        for (file, left) in cuts.chain(more) {
            let path = write(dir.path(), "x", &file);
            let strict = index_options(dir.path());
            let tolerant = strict.clone().tail(Tail::Tolerate);
            let e = with(&strict).open(&path).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Compression(_)), "{e}");

            let built = with(&tolerant).open(&path).unwrap();
            check(&built, RECORDS);
            let index = built.index(0).unwrap();
            assert_eq!(torn_bytes(index), left);
            assert_eq!((index.stream_end(), index.has_gaps()), (all.len() as u64, false));
            let fresh = with(&tolerant.clone().mode(IndexMode::Memory)).open(&path).unwrap();
            assert_eq!(sidecar(fresh.index(0).unwrap()), sidecar(index));
            // The saved index is accepted, and states that the tail is torn.
            let found = with(&tolerant.clone().mode(IndexMode::Require)).open(&path).unwrap();
            check(&found, RECORDS);
            assert_eq!(torn_bytes(found.index(0).unwrap()), left);
            let e = with(&strict).open(&path).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Index(IndexError::TornTail)) && e.is_data(), "{e}");
            assert_eq!(e.location().record, Some(RECORDS as u64));
            let skip = strict.clone().damage(Damage::Skip).mode(IndexMode::Memory);
            let skip = with(&skip).open(&path).unwrap();
            check(&skip, RECORDS);
            assert!(matches!(skip.warnings(), [Warning::DamageSkipped { .. }]));

            // The whole file takes its place.
            fs::write(&path, &whole).unwrap();
            check(&with(&strict).open(&path).unwrap(), RECORDS);
            fs::remove_dir_all(dir.path().join("i")).unwrap();
        }
    }
}

#[test]
fn cut_and_corrupt_data_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let tolerant = with(&options().tail(Tail::Tolerate).mode(IndexMode::Memory));
    for whole in [gzip(&stream(0..50)), zlib(&stream(0..50))] {
        for cut in [whole.len() / 2, whole.len() - 9] {
            let e = tolerant.open(write(dir.path(), "x", &whole[..cut])).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::Cut { .. })), "{e}");
        }
        let mut bad = whole.clone();
        *bad.last_mut().unwrap() ^= 1;
        let e = tolerant.open(write(dir.path(), "x", &bad)).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::Corrupt { .. })), "{e}");
        for rest in [gzip(&stream(0..9)), zlib(&stream(0..9)), stream(0..9)] {
            let rest = [&b"-"[..usize::from(rest[0] == 0x1f)], &rest].concat();
            let e = tolerant.open(write(dir.path(), "x", &[&whole[..], &rest].concat())).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Compression(_)), "{e}");
        }
    }
}

/// A file that is written member by member.
#[test]
fn a_growing_file() {
    let dir = tempfile::tempdir().unwrap();
    let members = [gzip(&stream(0..100)), gzip(&stream(100..200)), gzip(&stream(200..300))];
    let path = write(dir.path(), "x", &members[0]);
    let tolerant = index_options(dir.path()).tail(Tail::Tolerate);
    let mut ds = with(&tolerant).open(&path).unwrap();
    let append = |bytes: &[u8]| File::options().append(true).open(&path).unwrap().write_all(bytes).unwrap();
    for (k, member) in members[1..].iter().enumerate() {
        let n = (k + 1) * 100;
        let steps = [
            (0..4, n),
            (4..9, n),
            (9..member.len() - 8, n + 100),
            (member.len() - 8..member.len() - 3, n + 100),
        ];
        for (part, n) in steps {
            append(&member[part]);
            let before = ds.clone();
            ds = ds.refresh().unwrap();
            check(&ds, n);
            check(&before, before.len() as usize);
        }
        append(&member[member.len() - 3..]);
        ds = ds.refresh().unwrap();
        check(&ds, n + 100);
        assert_eq!(torn_bytes(ds.index(0).unwrap()), 0);
    }
    append(b"garbage");
    check(&ds.refresh().unwrap(), 300);
}
