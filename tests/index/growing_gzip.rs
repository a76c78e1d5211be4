//! Indexes of gzip shards to which members were appended.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use tfseek::error::{CompressionError, IndexError};
use tfseek::index::*;
use tfseek::{DatasetOptions, ErrorKind, IndexMode, Tail};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::*;

/// Records whose payloads are partly random, so that they have deflate blocks of several kinds.
fn stream(range: std::ops::Range<usize>) -> Vec<u8> {
    let payload = |i: usize| {
        let mut rng = Rng::new(i as u64);
        let noise: Vec<u8> = (0..rng.below(600)).map(|_| rng.below(256) as u8).collect();
        [format!("record {i} ").repeat(rng.below(60)).as_bytes(), &noise].concat()
    };
    let payloads: Vec<Vec<u8>> = range.map(payload).collect();
    records(&payloads.iter().map(|p| &p[..]).collect::<Vec<_>>())
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn members(bytes: &[u8], len: usize) -> Vec<u8> {
    bytes.chunks(len).flat_map(member).collect()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Case {
    dir: tempfile::TempDir,
    path: PathBuf,
    options: IndexOptions,
}

/// Creates a shard with a saved index.
fn case(bytes: &[u8], spacing: u64) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", bytes);
    let options = options().index_dir(dir.path().join("i")).checkpoint_every(spacing);
    let case = Case { dir, path, options };
    case.check(&case.options);
    case
}

impl Case {
    fn append(&self, bytes: &[u8]) {
        File::options().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
    }

    /// Checks that the index in use and the saved one equal the result of a full scan, and that all records
    /// can be read. Returns the number of bytes that were scanned.
    fn check(&self, options: &IndexOptions) -> u64 {
        let (fresh, all) = scanned(&self.path, &options.clone().mode(IndexMode::Memory));
        assert_eq!(all, fs::metadata(&self.path).unwrap().len(), "progress counts bytes of the file");
        let (index, bytes) = scanned(&self.path, options);
        assert_eq!(sidecar(&index), sidecar(&fresh));
        assert_eq!(fs::read(self.dir.path().join("i/x.tfri")).unwrap(), sidecar(&fresh));
        assert_eq!(scanned(&self.path, options).1, 0, "the saved index is accepted");
        index.verify().unwrap();
        let ds = DatasetOptions::new().index(options.clone()).open(&self.path).unwrap();
        let mut buf = Vec::new();
        (0..ds.len()).rev().for_each(|i| _ = ds.read(i, &mut buf).unwrap());
        bytes
    }

    /// Checks that the index after this change is that of a full scan, and that only the new bytes were
    /// scanned.
    #[track_caller]
    fn extends(&self, new: &[u8]) {
        self.append(new);
        assert_eq!(self.check(&self.options), new.len() as u64);
    }

    /// Checks that the index after this change is that of a full scan, and that all bytes were scanned.
    #[track_caller]
    fn rebuilds(&self, options: &IndexOptions) {
        assert_eq!(self.check(options), fs::metadata(&self.path).unwrap().len());
    }

    /// Checks that opening fails with the error of a full scan, and returns it.
    #[track_caller]
    fn fails(&self) -> tfseek::Error {
        let want = open(&self.path, &self.options.clone().mode(IndexMode::Memory)).unwrap_err();
        let e = open(&self.path, &self.options).unwrap_err();
        assert_eq!(e.to_string(), want.to_string());
        e
    }
}

#[test]
fn whole_members_are_scanned_alone() {
    for spacing in [0, 20_000, 1 << 20] {
        for len in [usize::MAX, 100_003, 5000, 64] {
            let case = case(&members(&stream(0..100), len), spacing);
            case.extends(&members(&stream(100..150), len));
            case.extends(&members(&stream(150..151), len));
            case.extends(&members(&stream(151..400), len.min(30_000)));
            // A member may be empty.
            case.extends(&member(b""));
            case.extends(&[member(b""), members(&stream(400..420), len)].concat());
        }
    }
    // An empty stream, and an empty file, whose compression is not known.
    case(&member(b""), 20_000).extends(&member(&stream(0..50)));
    let empty = case(b"", 20_000);
    empty.append(&member(&stream(0..50)));
    empty.rebuilds(&empty.options);
}

#[test]
fn an_open_dataset_keeps_its_records() {
    let case = case(&member(&stream(0..100)), 20_000);
    let options = DatasetOptions::new().index(case.options.clone());
    let (touched, untouched) = (options.open(&case.path).unwrap(), options.open(&case.path).unwrap());
    let mut buf = Vec::new();
    touched.read(0, &mut buf).unwrap();
    case.append(&member(&stream(100..130)));
    for ds in [&touched, &untouched] {
        (0..100).for_each(|i| _ = ds.read(i, &mut buf).unwrap());
        assert_eq!((ds.len(), ds.refresh().unwrap().len()), (100, 130));
    }
    let required = case.options.clone().mode(IndexMode::Require);
    File::options().append(true).open(&case.path).unwrap().write_all(&member(b"")).unwrap();
    let e = open(&case.path, &required).unwrap_err();
    assert!(e.to_string().contains("the shard has grown"), "{e}");
}

#[test]
fn other_appended_bytes_are_the_error_of_a_full_scan() {
    let whole = member(&stream(0..100));
    let more = member(&stream(100..130));
    for part in [1, 5, 10, 18, more.len() / 2, more.len() - 8, more.len() - 1] {
        let case = case(&whole, 20_000);
        case.append(&more[..part]);
        let e = case.fails();
        assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::Cut { .. })), "{part}: {e}");
        assert_eq!(e.location().path.as_deref(), Some(&*case.path));
        // The rest of the member.
        case.append(&more[part..]);
        assert_eq!(case.check(&case.options), more.len() as u64);
    }
    let mut damaged = more.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for garbage in [&b"garbage"[..], &[0; 512], &equal(5, 3), &zlib(&stream(0..5)), &damaged] {
        let case = case(&whole, 20_000);
        case.append(garbage);
        let e = case.fails();
        assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::Corrupt { .. })), "{e}");
    }
    // Records that are not: a member whose content is not framed.
    let case = case(&whole, 20_000);
    case.append(&member(b"not the header of a record"));
    let e = case.fails();
    assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
    assert_eq!(e.location().record, Some(100));
}

#[test]
fn a_zlib_stream_has_one_end() {
    let case = case(&zlib(&stream(0..50)), 20_000);
    case.append(&zlib(&stream(50..60)));
    let e = case.fails();
    assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::TrailingData { .. })), "{e}");
}

/// A member that ends inside a record: an error unless a torn tail is tolerated. The next member may continue
/// with that record.
#[test]
fn a_torn_tail_of_the_stream_is_scanned_again() {
    let bytes = stream(0..60);
    let (a, rest) = bytes.split_at(stream(0..20).len());
    let (b, c) = rest.split_at(stream(20..40).len() + 40);
    let case = case(&member(a), 20_000);
    case.append(&member(b));
    assert!(matches!(case.fails().kind(), ErrorKind::Truncated { .. }));
    let e = open(&case.path, &case.options).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::TornTail) | ErrorKind::Truncated { .. }), "{e}");
    let tolerant = case.options.clone().tail(Tail::Tolerate);
    assert_eq!(open(&case.path, &tolerant).unwrap().indexes[0].len(), 40);
    assert_eq!(case.check(&tolerant), 0, "the index was saved");
    let ds = DatasetOptions::new().index(tolerant.clone()).open(&case.path).unwrap();
    case.append(&member(c));
    assert_eq!((ds.refresh().unwrap().len(), ds.len()), (60, 40));
    ds.read(39, &mut Vec::new()).unwrap();
    case.check(&tolerant);
    fs::write(&case.path, member(&bytes[..a.len() + b.len()])).unwrap();
    open(&case.path, &tolerant).unwrap();
    case.append(&member(c));
    case.rebuilds(&tolerant);
}

/// Bytes that are left out after the last member, and a cut trailer.
#[test]
fn a_torn_tail_of_the_file_is_scanned_again() {
    let more = member(&stream(100..130));
    let zeros = [0; 512];
    for (part, rest) in [(&zeros[..], &[0, 0][..]), (&more[..5], &more[5..]), more.split_at(more.len() - 3)] {
        let case = case(&member(&stream(0..100)), 20_000);
        let tolerant = case.options.clone().tail(Tail::Tolerate);
        case.append(part);
        assert_eq!(case.check(&tolerant), part.len() as u64);
        let e = open(&case.path, &case.options).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Index(IndexError::TornTail)), "{e}");
        case.append(rest);
        case.rebuilds(&tolerant);
    }
}

#[test]
fn another_spacing_other_checks_and_other_content_scan_the_whole_shard() {
    let whole = member(&stream(0..100));
    let more = member(&stream(100..130));
    let grown = || {
        let case = case(&whole, 20_000);
        case.append(&more);
        case
    };
    let case = grown();
    case.rebuilds(&case.options.clone().checkpoint_every(30_000));
    // A fresh index serves, whatever its spacing.
    assert_eq!(scanned(&case.path, &case.options).1, 0);

    let case = grown();
    case.rebuilds(&case.options.clone().check_payloads(true));
    case.append(&member(&stream(130..140)));
    let checked = case.options.clone().check_payloads(true);
    assert!(is_checked(&scanned(&case.path, &checked).0));

    // Another member in the place of the old one.
    let case = grown();
    fs::write(&case.path, [member(&stream(1..101)), more.clone()].concat()).unwrap();
    case.rebuilds(&case.options);

    // A damaged window of the old index.
    let case = grown();
    let file = case.dir.path().join("i/x.tfri");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(scanned(&case.path, &case.options).1, fs::metadata(&case.path).unwrap().len());
}

/// Any members at any borders, in any number of steps.
#[test]
fn random_members() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let spacing = [0, 3000, 40_000][rng.below(3)];
        let mut at = 0;
        let mut next = |rng: &mut Rng| {
            let end = at + rng.below(30);
            let part = stream(at..end);
            at = end;
            let len = if part.is_empty() { 1 } else { 1 + rng.below(part.len() + 1000) };
            if part.is_empty() { member(b"") } else { members(&part, len.max(50)) }
        };
        let case = case(&next(&mut rng), spacing);
        for _ in 0..1 + rng.below(5) {
            let new = next(&mut rng);
            case.extends(&new);
        }
    }
}

#[test]
fn a_file_that_grows_during_the_scan_is_indexed_up_to_its_size_before() {
    let case = case(&member(&stream(0..3000)), 20_000);
    fs::remove_dir_all(case.dir.path().join("i")).unwrap();
    let (path, more) = (case.path.clone(), member(&stream(0..10)));
    let appended = std::sync::Once::new();
    let append = move |path: &Path| {
        appended.call_once(|| File::options().append(true).open(path).unwrap().write_all(&more).unwrap());
    };
    let options = case.options.clone().progress(move |bytes| {
        if bytes > 0 {
            append(&path);
        }
        std::ops::ControlFlow::Continue(())
    });
    let opened = open(&case.path, &options).unwrap();
    assert_eq!(opened.indexes[0].len(), 3000);
    assert_eq!(opened.warnings.len(), 1, "{:?}", opened.warnings);
    assert_eq!(open(&case.path, &case.options).unwrap().indexes[0].len(), 3010);
}
