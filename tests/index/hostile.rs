//! Index files whose checksums are right and whose content is not, as an attacker could write them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tfseek::crc::crc32c;
use tfseek::error::{CompressionError, IndexError};
use tfseek::index::{Index, IndexOptions, export_text, open_shards, write_pack};
use tfseek::io::Region;
use tfseek::{DatasetOptions, ErrorKind, IndexMode, Mapped};
use tfseek_testkit::shards::{equal, options, sidecar, write};

/// Offsets in the header of a pack.
const N_RECORDS: usize = 24;
const SHARD_COUNT: usize = 32;
const NAMES_LEN: usize = 40;
/// Bytes of the header, and of an entry of the shard table.
const HEADER: usize = 128;
const ENTRY: usize = 32;

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Writes a pack of three shards with 4 records each, and returns its path.
fn packed(dir: &Path) -> PathBuf {
    let paths: Vec<_> = (0..3).map(|s| write(dir, &format!("x-{s}.tfrecord"), &equal(4, 10 + s))).collect();
    write_pack("x", &paths, &options()).unwrap().0
}

/// Changes a pack, repairs the checksums of its header and tables, and returns the error of opening it or
/// reading its last record.
fn opened(pack: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
    let good = fs::read(pack).unwrap();
    let mut bad = good.clone();
    change(&mut bad);
    let tables = ENTRY * 3 + u64_at(&good, NAMES_LEN) as usize;
    let crc = crc32c(&bad[HEADER..HEADER + tables]);
    bad[120..124].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c(&bad[..124]);
    bad[124..128].copy_from_slice(&crc.to_le_bytes());
    fs::write(pack, &bad).unwrap();
    let mut buf = Vec::new();
    let opened = DatasetOptions::new().index(IndexOptions::new().mode(IndexMode::Require)).open(pack);
    let read = opened.and_then(|ds| ds.read(11, &mut buf).map(|_| ()));
    fs::write(pack, good).unwrap();
    read.err().map(|e| {
        assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Refused { .. })), "{e}");
        assert_eq!(e.location().path.as_deref(), Some(pack), "{e}");
        e.to_string()
    })
}

#[test]
fn packs_with_wrong_tables_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pack = packed(dir.path());
    assert_eq!(opened(&pack, |_| {}), None);
    let entry = |s: usize, field: usize| HEADER + ENTRY * s + 8 * field;
    let add = |at: usize, value: u64| {
        move |bytes: &mut Vec<u8>| {
            let old = u64_at(bytes, at);
            put(bytes, at, old.wrapping_add(value));
        }
    };
    let names = HEADER + 3 * ENTRY;
    for (reason, change) in [
        ("longer than the file", Box::new(add(SHARD_COUNT, u64::MAX / 2)) as Box<dyn Fn(&mut Vec<u8>)>),
        ("longer than the file", Box::new(add(NAMES_LEN, 1 << 40))),
        ("name 2 is out of bounds", Box::new(add(entry(2, 3), 1))),
        ("name 1 is out of bounds", Box::new(move |bytes| put(bytes, entry(1, 3), 0))),
        ("does not cover all names", Box::new(add(entry(2, 3), u64::MAX))),
        ("sidecar 0 has a wrong offset", Box::new(add(entry(0, 0), 64))),
        ("a sidecar's end overflows", Box::new(move |bytes| put(bytes, entry(0, 1), u64::MAX - 64))),
        ("sidecar 1 has a wrong offset", Box::new(add(entry(0, 1), 64))),
        ("expected the last sidecar to end at byte", Box::new(add(entry(2, 1), 64))),
        ("the shards have 13 records, the header declares 12", Box::new(add(entry(2, 2), 1))),
        ("the number of records overflows", Box::new(add(entry(1, 2), u64::MAX - 7))),
        ("the shards have 12 records, the header declares 11", Box::new(add(N_RECORDS, u64::MAX))),
        ("found a NUL byte", Box::new(move |bytes| bytes[names] = 0)),
        ("a part that is empty, `.` or `..`", Box::new(move |bytes| bytes[names] = b'/')),
        (
            "a part that is empty, `.` or `..`",
            Box::new(move |bytes| bytes[names..names + 3].copy_from_slice(b"../")),
        ),
        (
            "an embedded sidecar has 4 records, the shard table declares 3",
            Box::new(move |bytes| {
                add(entry(1, 2), 1)(bytes);
                add(entry(2, 2), u64::MAX)(bytes);
            }),
        ),
    ] {
        let found = opened(&pack, change).unwrap_or_else(|| panic!("accepted: {reason}"));
        assert!(found.contains(reason), "{reason}: {found}");
    }
}

/// A large pack is not read at once, and large indexes in it are read at their first use.
#[test]
fn indexes_in_a_large_pack_are_read_at_first_use() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> =
        (0..2).map(|s| write(dir.path(), &format!("x-{s}.tfrecord"), &equal(150_000, s))).collect();
    let (pack, _) = write_pack("x", &paths, &options()).unwrap();
    assert!(fs::metadata(&pack).unwrap().len() > 1 << 20);
    let ds = DatasetOptions::new().index(IndexMode::Require).open(&pack).unwrap();
    let mut buf = Vec::new();
    for i in [299_999, 0, 150_000, 149_999] {
        assert_eq!(
            ds.read(i, &mut buf).unwrap().payload(),
            vec![(i % 150_000) as u8; (i / 150_000) as usize]
        );
    }
    // One more record than the second sidecar declares: found in the large pack too.
    let mut bad = fs::read(&pack).unwrap();
    let at = u64_at(&bad, HEADER + ENTRY) as usize;
    bad[at + 30] ^= 1;
    fs::write(&pack, bad).unwrap();
    let ds = DatasetOptions::new().index(IndexMode::Require).open(&pack).unwrap();
    let e = ds.read(150_000, &mut buf).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Refused { .. })), "{e}");
}

/// The names in a pack are relative to its folder, however the caller wrote the paths.
#[test]
fn paths_of_a_pack_may_contain_parent_folders() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let plain = write(dir.path(), "a.tfrecord", &equal(2, 3));
    let inner = write(&dir.path().join("sub"), "b.tfrecord", &equal(3, 3));
    let around = dir.path().join("sub/../a.tfrecord");
    let (pack, _) = write_pack("x", &[around, inner.clone()], &options()).unwrap();
    let ds = DatasetOptions::new().index(IndexMode::Require).open(&pack).unwrap();
    let canonical = |path: &Path| path.canonicalize().unwrap();
    assert!(ds.shards().map(|shard| canonical(shard.path)).eq([canonical(&plain), canonical(&inner)]));
    assert_eq!(ds.len(), 5);
    // A missing folder, and a path that ends in `..`.
    write_pack("x", &[dir.path().join("none/../a.tfrecord")], &options()).unwrap_err();
    write_pack("x", &[dir.path().join("sub/..")], &options()).unwrap_err();
}

/// The indexes in a pack must have been made with the options of the reader.
#[test]
fn a_pack_without_verified_payloads_is_stale_if_they_are_required() {
    let dir = tempfile::tempdir().unwrap();
    let pack = packed(dir.path());
    let ds = DatasetOptions::new().index(options().check_payloads(true)).open(&pack).unwrap();
    let e = ds.read(0, &mut Vec::new()).unwrap_err();
    let ErrorKind::Index(IndexError::StalePack { reason, .. }) = e.kind() else { panic!("{e:?}") };
    assert!(reason.contains("payloads were not verified"), "{e}");
}

fn gzip(dir: &Path) -> (PathBuf, Index) {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    for payload in equal(3, 3000).chunks(1000) {
        encoder.write_all(payload).unwrap();
        encoder.flush().unwrap();
    }
    let path = write(dir, "x.tfrecord.gz", &encoder.finish().unwrap());
    let options = options().mode(IndexMode::Memory).checkpoint_every(1);
    let index = open_shards(std::slice::from_ref(&path), &options).unwrap().indexes.remove(0);
    (path, index)
}

#[test]
fn checkpoints_out_of_order_are_found_by_verify() {
    let dir = tempfile::tempdir().unwrap();
    let (_, index) = gzip(dir.path());
    index.verify().unwrap();
    let mut bytes = sidecar(&index);
    let sections = u64_at(&bytes, 12) as usize & 0xff;
    let table = (0..sections).map(|k| HEADER + 32 * k).find(|&at| bytes[at] == 3).unwrap();
    let first = u64_at(&bytes, table + 8) as usize + 16;
    let (a, b) = bytes[first..first + 64].split_at_mut(32);
    a.swap_with_slice(b);
    let e = Index::from_sidecar(Region::new(bytes)).unwrap().verify().unwrap_err();
    assert!(e.to_string().contains("checkpoints do not ascend"), "{e}");
}

/// What the index of a compressed shard says about losses is for one that has some.
#[test]
fn wrong_losses_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = gzip(dir.path());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let torn = options().mode(IndexMode::Memory).tail(tfseek::Tail::Tolerate);
    let good = sidecar(&open_shards(&[path], &torn).unwrap().indexes[0]);
    let tables = HEADER + 32 * (u64_at(&good, 12) as usize & 0xff);
    // The flag *torn*, and the length of the last section.
    for (at, more, reason) in [(80, 0, "a shard without losses"), (tables - 16, 4, "losses has a wrong size")]
    {
        let mut bad = [&good[..], &[0; 4][..more]].concat();
        let len = bad.len() as u64;
        put(&mut bad, 16, len);
        bad[at] ^= 4;
        for (part, crc) in [(HEADER..tables, 120), (0..124, 124)] {
            let sum = crc32c(&bad[part]).to_le_bytes();
            bad[crc..crc + 4].copy_from_slice(&sum);
        }
        let e = Index::from_sidecar(Region::new(bad)).unwrap_err();
        assert!(e.to_string().contains(reason), "{e}");
    }
}

#[test]
fn text_indexes_are_for_uncompressed_shards() {
    let dir = tempfile::tempdir().unwrap();
    let (_, index) = gzip(dir.path());
    let e = export_text(&index, 0..index.len(), &mut Vec::new()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Compressed { format: "gzip" }), "{e}");
}

#[test]
fn a_torn_tail_in_memory_has_its_place() {
    let mut bytes = equal(3, 10);
    bytes.truncate(70);
    let e = Mapped::from_bytes(bytes).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Truncated { need: 26, have: 18 }), "{e}");
    assert_eq!((e.location().record, e.location().offset), (Some(2), Some(52)));
}

#[test]
fn damage_of_the_stream_is_an_error_of_the_scan() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = gzip(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(5000);
    fs::write(&path, bytes).unwrap();
    let e = open_shards(&[path], &options().mode(IndexMode::Memory)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::Cut { .. })), "{e}");
}

/// Debug forms of options do not contain the callback.
#[test]
fn a_callback_has_a_debug_form() {
    let options = options().progress(|_| std::ops::ControlFlow::Continue(()));
    assert!(format!("{options:?}").contains("progress: Some(ProgressCallback)"), "{options:?}");
}
