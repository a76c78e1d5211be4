//! A dataset is an array of records with the same contents from every constructor.

#![allow(unsafe_code)] // `Mapped` has one unsafe constructor.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tfseek::error::{IndexError, PathsError, Remedy};
use tfseek::frame::put_record;
use tfseek::{Dataset, DatasetOptions, ErrorKind, IndexMode, Mapped, Verify};
use tfseek_testkit::twin::put_header;

/// Returns record `i` of shard `s`. Lengths are 0 to 300 and differ between neighbours.
fn payload(s: usize, i: usize) -> Vec<u8> {
    vec![(s * 31 + i) as u8; (s * 77 + i * 13) % 301]
}

fn write_shards(dir: &Path, counts: &[usize]) -> Vec<PathBuf> {
    let path = |s: usize| dir.join(format!("train-{s:05}-of-{:05}.tfrecord", counts.len()));
    for (s, &count) in counts.iter().enumerate() {
        let mut file = Vec::new();
        (0..count).for_each(|i| put_record(&mut file, &payload(s, i)).unwrap());
        fs::write(path(s), file).unwrap();
    }
    (0..counts.len()).map(path).collect()
}

fn all(counts: &[usize]) -> Vec<Vec<u8>> {
    counts.iter().enumerate().flat_map(|(s, &n)| (0..n).map(move |i| payload(s, i))).collect()
}

fn memory() -> DatasetOptions {
    DatasetOptions::new().index(IndexMode::Memory)
}

fn mapped(paths: &[PathBuf], options: &DatasetOptions) -> Mapped {
    // SAFETY: the tests write their shards before they open them, and only replace them by rename.
    unsafe { options.open_mapped(paths) }.unwrap()
}

#[test]
fn parts_of_a_payload_end_inside_it() {
    let dir = tempfile::tempdir().unwrap();
    let ds = memory().open(write_shards(dir.path(), &[5])).unwrap();
    let payload = payload(0, 4);
    let len = payload.len() as u32;
    let record = ds.stored(4).unwrap();
    let read = |parts: &[Range<u32>]| {
        let mut buf = Vec::new();
        record.read_parts(parts, Verify::Payload, |_| None, &mut buf).map(|()| buf)
    };
    let reversed = Range { start: len, end: 3 };
    assert_eq!(
        read(&[2..9, reversed, len..len, 50..len]).unwrap(),
        [&payload[2..9], &payload[50..]].concat()
    );
    for (outside, last) in [(0..len + 1, len), (len..u32::MAX, u32::MAX - 1)] {
        let e = read(&[0..1, outside]).unwrap_err();
        let text = format!("no payload byte {last}: there are {len}");
        assert!(e.to_string().ends_with(&text), "{e}");
    }
}

#[test]
fn every_access_method_returns_the_same_records() {
    let dir = tempfile::tempdir().unwrap();
    let counts = [0, 5, 0, 0, 2100, 1, 33, 0];
    let paths = write_shards(dir.path(), &counts);
    let want = all(&counts);

    let ds = memory().open(&paths).unwrap();
    let map = mapped(&paths, &memory());
    assert_eq!(ds.len(), want.len() as u64);
    assert_eq!(map.len(), want.len() as u64);
    assert!(Mapped::from_dataset(&ds).is_none() && Mapped::from_dataset(map.dataset()).is_some());
    assert_eq!(ds.fingerprint().unwrap(), map.dataset().fingerprint().unwrap());

    let mut buf = Vec::new();
    for (i, want) in want.iter().enumerate() {
        assert_eq!(ds.read(i as u64, &mut buf).unwrap().payload(), want);
        assert_eq!(map.get(i as u64).unwrap().payload(), want);
    }
    assert!(map.iter().map(|r| r.unwrap().payload()).eq(&want));

    // A permutation with repeats.
    let ids: Vec<u64> = (0..5000u64).map(|k| k * 7919 % ds.len()).collect();
    assert!(map.get_many(&ids).zip(&ids).all(|(r, &i)| r.unwrap().payload() == want[i as usize]));
    for ds in [&ds, map.dataset()] {
        let mut turn = ids.iter();
        ds.read_many(&ids, |r| {
            assert_eq!(r.payload(), want[*turn.next().unwrap() as usize]);
            Ok(())
        })
        .unwrap();
        assert!(turn.next().is_none());
        let mut k = 3;
        ds.read_many(&Vec::from_iter(3..2000), |r| {
            k += 1;
            assert_eq!(r.payload(), want[k - 1]);
            Ok(())
        })
        .unwrap();
        assert_eq!(k, 2000);
    }

    let mut part = map.range(4..90).unwrap();
    assert_eq!(part.size_hint(), (86, Some(86)));
    assert!(part.clone().map(|r| r.unwrap().payload()).eq(&want[4..90]));
    assert_eq!(part.nth(80).unwrap().unwrap().payload(), want[84]);
    assert!(part.nth(5).is_none() && part.next().is_none());
    assert!(map.range(80..map.len() + 1).is_err() && map.range(Range { start: 5, end: 4 }).is_err());
    assert_eq!(map.range(map.len()..map.len()).unwrap().count(), 0);

    let e = map.get(want.len() as u64).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::OutOfRange { .. }), "{e}");
    assert!(map.get(u64::MAX).is_err() && ds.read(u64::MAX, &mut buf).is_err());
}

#[test]
fn records_report_their_location() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), &[3, 3]);
    let map = mapped(&paths, &memory());
    let at = map.get(4).unwrap().at();
    assert_eq!((at.path, at.record, at.offset), (Some(paths[1].as_path()), Some(1), Some(16 + 77)));
}

#[test]
fn bytes_in_memory_open_as_a_dataset() {
    let mut file = Vec::new();
    put_record(&mut file, b"one").unwrap();
    put_record(&mut file, b"").unwrap();
    let ds = Mapped::from_bytes(file).unwrap();
    assert_eq!(ds.len(), 2);
    assert_eq!(ds.get(0).unwrap().payload(), b"one");
    assert!(Mapped::from_bytes(Vec::new()).unwrap().is_empty());
    let e = Mapped::from_bytes(vec![7; 100]).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. } | ErrorKind::NotTfRecord { .. }), "{e}");
}

#[test]
fn a_damaged_payload_is_located_and_its_neighbours_are_readable() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), &[3, 10]);
    let mut bytes = fs::read(&paths[1]).unwrap();
    // The first payload byte of record 1. Record 0 of this shard has 77 bytes.
    bytes[16 + 77 + 12] ^= 1;
    fs::write(&paths[1], bytes).unwrap();

    let map = mapped(&paths, &memory());
    let mut buf = Vec::new();
    let ds = memory().open(&paths).unwrap();
    for e in [map.get(4).unwrap_err(), ds.read(4, &mut buf).unwrap_err()] {
        assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }), "{e}");
        let place = e.location();
        assert_eq!(
            (place.path.as_deref(), place.record, place.offset),
            (Some(paths[1].as_path()), Some(1), Some(93))
        );
        assert!(
            e.to_string()
                .contains("train-00001-of-00002.tfrecord: record 1 at byte 93: payload crc32c: expected 0x")
        );
    }
    assert_eq!(map.iter().filter(|r| r.is_err()).count(), 1);
    assert_eq!(map.get(5).unwrap().payload(), payload(1, 2));
    let all = Vec::from_iter(0..map.len());
    let e = map.dataset().read_many(&all, |_| Ok(())).unwrap_err();
    assert_eq!(e.location().record, Some(1));

    let header_only = mapped(&paths, &memory().verify(Verify::Header));
    assert_ne!(header_only.get(4).unwrap().payload(), payload(1, 1));
}

#[test]
fn a_header_that_does_not_match_the_index_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), &[10]);
    let ds = memory().open(&paths).unwrap();
    let mut buf = Vec::new();
    ds.read(1, &mut buf).unwrap();
    // Same offset, same file size, other record length: an in-place rewrite, which only positional reads can
    // survive.
    let mut file = OpenOptions::new().write(true).open(&paths[0]).unwrap();
    file.seek(SeekFrom::Start(16)).unwrap();
    put_header(&mut file, 12).unwrap();
    let e = ds.read(1, &mut buf).unwrap_err();
    assert!(
        matches!(e.kind(), ErrorKind::Index(IndexError::LengthMismatch { indexed: 13, stored: 12 })),
        "{e}"
    );
    file.seek(SeekFrom::Start(16)).unwrap();
    file.write_all(&[0; 12]).unwrap();
    let e = ds.read(1, &mut buf).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
    // The file is shorter than before.
    file.set_len(20).unwrap();
    let e = ds.read(1, &mut buf).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Truncated { need: 29, have: 4 }), "{e}");
}

#[test]
fn a_replaced_shard_does_not_disturb_an_open_map() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), &[10]);
    let map = mapped(&paths, &memory());
    assert_eq!(map.get(3).unwrap().payload(), payload(0, 3));
    let other = dir.path().join("other");
    fs::write(&other, b"").unwrap();
    fs::rename(&other, &paths[0]).unwrap();
    assert!(map.iter().map(|r| r.unwrap().payload().to_vec()).eq(all(&[10])));
}

#[test]
fn compressed_shards_cannot_be_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut writer =
        tfseek::writer::WriterOptions { compression: tfseek::Compression::Gzip, ..Default::default() }
            .create(&path)
            .unwrap();
    writer.write(b"payload").unwrap();
    writer.close().unwrap();
    // SAFETY: the writer is closed, and nothing else writes to the shard.
    let e = unsafe { memory().open_mapped(&path) }.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Compressed { format: "gzip" }), "{e}");
    assert_eq!(e.location().path.as_deref(), Some(&*path));
    assert_eq!(e.kind().remedy(), Some(Remedy::Unpack));
}

#[test]
fn errors_name_the_format_of_other_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n").unwrap();
    let e = memory().open(&path).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotTfRecord { .. }), "{e}");
    assert!(e.to_string().to_lowercase().contains("lfs"), "{e}");
    assert_eq!(e.kind().remedy(), Some(Remedy::FetchLfs));
}

#[test]
fn missing_shards_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), &[3, 4, 5]);
    fs::remove_file(&paths[1]).unwrap();
    let pattern = dir.path().join("train-*").to_str().unwrap().to_owned();
    let e = memory().open(pattern.as_str()).unwrap_err();
    match e.kind() {
        ErrorKind::Paths(PathsError::MissingShards { missing, missing_count: 1, .. }) => {
            assert_eq!(missing, &paths[1..2])
        }
        _ => panic!("{e}"),
    }
    assert_eq!(memory().allow_missing(true).open(pattern.as_str()).unwrap().len(), 8);
}

#[test]
fn offsets_beyond_4_gib() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.tfrecord");
    let mut file = File::create(&path).unwrap();
    // Five records of 1 GiB of zeros as holes, so that only headers and footers use disk space. A small
    // record follows.
    let gib = 1u64 << 30;
    for _ in 0..5 {
        put_header(&mut file, gib).unwrap();
        file.seek(SeekFrom::Current(gib as i64 + 4)).unwrap();
    }
    put_header(&mut file, 4).unwrap();
    file.write_all(b"last").unwrap();
    file.write_all(&tfseek::crc::masked(b"last").to_le_bytes()).unwrap();
    drop(file);

    let ds = memory().verify(Verify::Header).open(&path).unwrap();
    assert_eq!(ds.len(), 6);
    let mut buf = Vec::new();
    let last = ds.read(5, &mut buf).unwrap();
    assert_eq!((last.payload(), last.at().offset), (&b"last"[..], Some(5 * (gib + 16))));
    let map = mapped(&[path], &memory().verify(Verify::Header));
    assert_eq!(map.get(5).unwrap().payload(), b"last");
    let fourth = map.get(4).unwrap();
    assert_eq!((fourth.payload().len() as u64, fourth.at().offset), (gib, Some(4 * (gib + 16))));
    assert_eq!(fourth.payload()[gib as usize / 2], 0);
}

#[test]
fn a_dataset_is_cheap_to_clone_and_sendable() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), &[100, 100]);
    let map = mapped(&paths, &memory());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let map = map.clone();
            std::thread::spawn(move || map.iter().map(|r| r.unwrap().payload().len()).sum::<usize>())
        })
        .collect();
    let want: usize = all(&[100, 100]).iter().map(Vec::len).sum();
    assert!(threads.into_iter().all(|t| t.join().unwrap() == want));
    let _: &Dataset = map.dataset();
}
