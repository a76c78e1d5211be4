//! The bytes of index files, and refused files.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tfseek::error::{IndexError, Remedy};
use tfseek::index::*;
use tfseek::io::Region;
use tfseek::{DatasetOptions, ErrorKind, IndexMode, Warning};
use tfseek_testkit::hex::unhex;
use tfseek_testkit::shards::*;

/// The example of the format page, section 8.
const GOLDEN: &str = "
    89544652490d0a1a 0100000001000000 e000000000000000 0300000000000000 3300000000000000 3300000000000000 15cd853dfe9c9717 71df3ffb486295bb
    71df3ffb486295bb 3300000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 052849a86a7a6f51
    0100000001000400 c000000000000000 2000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000
    0000000000000000 cc008d8500000000 0000000010000000 2100000033000000";

fn golden() -> Vec<u8> {
    unhex(&GOLDEN.split_whitespace().collect::<String>())
}

fn from(bytes: &[u8]) -> tfseek::Result<Index> {
    Index::from_sidecar(Region::new(bytes.to_vec()))
}

fn three() -> Vec<u8> {
    records(&[b"", b"a", b"bb"])
}

#[test]
#[cfg_attr(windows, ignore = "its times are multiples of 100 ns")]
fn the_example_of_the_format_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "three", &three());
    set_mtime(&path, 1_700_000_000_123_456_789);
    let built = built_beside(&[path], &options()).unwrap();
    assert!(built.warnings.is_empty());
    assert_eq!(fs::read(dir.path().join(".tfseek/three.tfri")).unwrap(), golden());

    let index = from(&golden()).unwrap();
    assert_eq!(spans(&index), [(0, 0), (16, 1), (33, 2)]);
    assert_eq!((index.stream_end(), torn_bytes(&index), is_checked(&index)), (51, 0, false));
    assert_eq!(sidecar(&index), golden());
}

#[test]
fn every_flipped_bit_is_detected() {
    for bit in 0..golden().len() * 8 {
        let byte = bit / 8;
        if (160..192).contains(&byte) || (204..208).contains(&byte) {
            continue; // padding, and the zero in the block table
        }
        let mut bad = golden();
        bad[byte] ^= 1 << (bit % 8);
        let found = from(&bad).and_then(|index| (0..3).try_for_each(|i| index.locate(i).map(drop)));
        assert!(found.is_err(), "bit {bit}");
    }
    for cut in 0..golden().len() {
        assert!(from(&golden()[..cut]).is_err());
    }
}

#[test]
fn numbers_of_records_around_a_block() {
    let dir = tempfile::tempdir().unwrap();
    for n in [0, 1, 1022, 1023, 1024, 1025, 2046, 2047, 2048, 2049] {
        let path = write(dir.path(), "x", &equal(n, 1));
        for tail in [IndexMode::Rebuild, IndexMode::Require] {
            let found = open(&path, &options().index_dir(dir.path().join("i")).mode(tail)).unwrap();
            let want: Vec<_> = (0..n as u64).map(|i| (i * 17, 1)).collect();
            assert_eq!(spans(&found.indexes[0]), want);
            found.indexes[0].verify().unwrap();
            let e = found.indexes[0].locate(n as u64).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::OutOfRange { .. }));
        }
    }
    let path = write(dir.path(), "empty", b"");
    let index = &open(&path, &options().mode(IndexMode::Memory)).unwrap().indexes[0];
    let fingerprint = 0x2d06_8005_38d3_94c2u64.to_le_bytes();
    assert_eq!(sidecar(index)[56..72], [fingerprint, fingerprint].concat());
}

/// Records of 3 GiB in a sparse file: a block spans more than 4 GiB, so the table uses wide offsets.
#[test]
fn beyond_4_gib() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse");
    let mut file = File::create(&path).unwrap();
    let len = 3u64 << 30;
    for i in 0..3 {
        file.seek(SeekFrom::Start(i * (len + 16))).unwrap();
        tfseek_testkit::twin::put_header(&mut file, len).unwrap();
    }
    if file.set_len(3 * (len + 16)).is_err() {
        return; // the file system does not support sparse files
    }
    drop(file);
    let options = options().index_dir(dir.path().join("i"));
    let (index, _) = scanned(&path, &options);
    assert_eq!(spans(&index), [(0, len), (len + 16, len), (2 * (len + 16), len)]);
    assert_eq!(sidecar(&index)[128 + 6], 8, "wide");
    let (again, bytes) = scanned(&path, &options);
    assert_eq!((spans(&again), bytes), (spans(&index), 0));
}

#[test]
fn maps_and_positional_reads_agree() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(40_000, 5));
    let pread = options().index_dir(dir.path().join("i"));
    let mapped = || {
        let bytes = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&bytes);
        let options = DatasetOptions::new().index(pread.clone()).progress(move |n| {
            count.fetch_add(n, Relaxed);
            ControlFlow::Continue(())
        });
        // SAFETY: files of this test; nothing writes to them.
        #[allow(unsafe_code)]
        let opened = unsafe { options.open_mapped(&path) }.unwrap();
        (opened.dataset().index(0).unwrap().clone(), bytes.load(Relaxed))
    };
    let built = sidecar(&mapped().0);
    assert!(built.len() > 64 << 10, "large enough that the reader maps it, or reads blocks at first use");
    assert_eq!(sidecar(&scanned(&path, &pread.clone().mode(IndexMode::Memory)).0), built);
    for (index, bytes) in [mapped(), scanned(&path, &pread)] {
        assert_eq!(bytes, 0);
        assert_eq!(index.locate(39_999).unwrap(), Span { offset: 39_999 * 21, payload_len: 5 });
        assert_eq!(sidecar(&index), built);
    }
}

#[test]
fn damage_is_located_in_the_lowest_shard() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = (0..40).map(|s| write(dir.path(), &format!("s{s:02}"), &three())).collect();
    let mut bad = three();
    bad[17] ^= 1;
    for s in [31, 12, 25] {
        fs::write(&paths[s], &bad).unwrap();
    }
    for threads in [1, 4] {
        let e = open_shards(&paths, &options().mode(IndexMode::Memory).threads(threads)).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
        assert_eq!(e.location().path.as_deref(), Some(&*paths[12]));
        assert_eq!((e.location().record, e.location().offset), (Some(1), Some(16)));
    }
    paths.push(dir.path().join("missing"));
    assert!(matches!(open_shards(&paths, &options()).unwrap_err().kind(), tfseek::ErrorKind::Io(_)));
    // The command indexes the shards that it can.
    paths.pop();
    built_beside(&paths, &options()).unwrap_err();
    assert_eq!(names(&dir.path().join(".tfseek")).len(), 37);
}

#[test]
fn payload_crcs_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &three());
    let options = options().index_dir(dir.path().join("i"));
    assert!(!is_checked(&scanned(&path, &options).0));
    let checked = options.clone().check_payloads(true);
    let (index, bytes) = scanned(&path, &checked);
    assert_eq!(
        (is_checked(&index), bytes),
        (true, 51),
        "an index without verified payloads does not suffice"
    );
    assert_eq!(scanned(&path, &checked).1, 0);
    let mut bad = three();
    bad[28] ^= 1;
    let path = write(dir.path(), "y", &bad);
    open(&path, &options).unwrap();
    let e = open(&path, &checked).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }), "{e}");
    assert_eq!(e.location().record, Some(1));
}

#[test]
fn refused_files_count_as_missing_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &three());
    let options = options().index_dir(dir.path().join("i"));
    open(&path, &options).unwrap();
    let file = dir.path().join("i/x.tfri");
    let mut bytes = fs::read(&file).unwrap();
    bytes[130] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let e = open(&path, &options.clone().mode(IndexMode::Require)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
    let opened = open(&path, &options).unwrap();
    assert!(matches!(opened.warnings[..], [Warning::FileRefused { .. }]));
    assert!(open(&path, &options).unwrap().warnings.is_empty(), "the file was rewritten");
}

#[test]
fn text_export() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &three());
    let index = &open(&path, &options().mode(IndexMode::Memory)).unwrap().indexes[0];
    let mut text = Vec::new();
    export_text(index, 0..index.len(), &mut text).unwrap();
    assert_eq!(text, b"0 16\n16 17\n33 18\n");
}

fn files(dir: &std::path::Path, n: usize) -> Vec<PathBuf> {
    let name = |s: usize| format!("part-{}/train-{s:05}", s % 3);
    (0..3).for_each(|k| fs::create_dir_all(dir.join(format!("part-{k}"))).unwrap());
    (0..n).map(|s| write(dir, &name(s), &equal(s % 5, 1))).collect()
}

fn open_pack(file: &std::path::Path) -> tfseek::Result<tfseek::Dataset> {
    DatasetOptions::new().index(options()).open(file)
}

#[test]
fn a_pack_opens_without_accessing_its_ten_thousand_shards() {
    let dir = tempfile::tempdir().unwrap();
    let paths = files(dir.path(), 10_000);
    let (file, written) = write_pack("all", &paths, &options()).unwrap();
    assert_eq!(file, dir.path().join(".tfseek/all.tfrp"));
    assert_eq!(names(dir.path()), [".tfseek", "part-0", "part-1", "part-2"]);
    assert_eq!(written.indexes.iter().map(Index::len).sum::<u64>(), 20_000);
    let list = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    let stored =
        fs::read(&file).unwrap()[48..64].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(stored, list.fingerprint().unwrap());
    (0..3).for_each(|k| fs::remove_dir_all(dir.path().join(format!("part-{k}"))).unwrap());
    let pack = open_pack(&file).unwrap();
    assert_eq!((pack.shards().len(), pack.len()), (10_000, 20_000));
    assert!(pack.shards().map(|shard| shard.path.to_path_buf()).eq(paths));
}

#[test]
fn a_pack_validates_a_shard_at_its_first_access() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = files(dir.path(), 7);
    paths.push(write(dir.path(), "part-1/large", &equal(30_000, 1)));
    let (file, written) = write_pack("all", &paths, &options()).unwrap();
    let pack = open_pack(&file).unwrap();
    for s in 0..paths.len() {
        assert_eq!(spans(pack.index(s).unwrap()), spans(&written.indexes[s]));
    }
    let pack = open_pack(&file).unwrap();
    let mut shard = File::options().append(true).open(&paths[2]).unwrap();
    shard.write_all(&records(&[b"more"])).unwrap();
    let e = pack.index(2).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::StalePack { .. })));
    assert_eq!(e.kind().remedy(), Some(Remedy::WritePack(&file)));
    let text = e.to_string();
    for part in ["train-00002", "all.tfrp", "34 bytes", "54 bytes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    set_mtime(&paths[3], 5);
    pack.index(3).unwrap();
}

#[test]
fn invalid_packs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let paths = files(dir.path(), 4);
    let (file, _) = write_pack("all", &paths, &options()).unwrap();
    let good = fs::read(&file).unwrap();
    let open = |bytes: &[u8]| open_pack(&write(dir.path(), "p.tfrp", bytes));
    let names_at = 128 + 4 * 32;
    let put_checksums = |bytes: &mut Vec<u8>| {
        let end = names_at + 4 * "part-0/train-00000".len();
        let crc = tfseek::crc::crc32c(&bytes[128..end]);
        bytes[120..124].copy_from_slice(&crc.to_le_bytes());
        let crc = tfseek::crc::crc32c(&bytes[..124]);
        bytes[124..128].copy_from_slice(&crc.to_le_bytes());
    };
    assert_eq!(open(&good).unwrap().len(), 6);
    for name in [
        b"/art-0/train-00000",
        b"../t-0/train-00000",
        b"part-0/./ain-00000",
        b"part-0//rain-00000",
        b"part-0\0train-00000",
    ] {
        let mut bad = good.clone();
        bad[names_at..names_at + name.len()].copy_from_slice(name);
        assert!(open(&bad).is_err(), "the checksum of the names");
        put_checksums(&mut bad);
        assert!(open(&bad).unwrap_err().to_string().contains("name 0"), "{}", name.escape_ascii());
    }
    for at in (128..names_at).step_by(8) {
        let mut bad = good.clone();
        bad[at..at + 8].fill(0xff);
        put_checksums(&mut bad);
        assert!(open(&bad).is_err(), "field at {at}");
    }
    for byte in 0..128 {
        let mut bad = good.clone();
        bad[byte] ^= 0x10;
        assert!(open(&bad).is_err(), "byte {byte}");
    }
    // A changed letter is still a valid name.
    for byte in 128..names_at + 4 * "part-0/train-00000".len() {
        let mut bad = good.clone();
        bad[byte] ^= 1;
        assert!(open(&bad).is_err(), "byte {byte} of the tables");
    }
    for cut in 0..good.len() {
        assert!(open(&good[..cut]).is_err());
    }
    assert!(write_pack("../all", &paths, &options()).is_err());
    assert!(write_pack("all", &[], &options()).is_err());
}
