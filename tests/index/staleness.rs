//! Handling of an index whose shard has changed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use tfseek::ErrorKind;
use tfseek::error::{IndexError, Remedy};
use tfseek::index::*;
use tfseek::{IndexMode, Tail};
use tfseek_testkit::shards::*;

const T: u64 = 1_600_000_000_000_000_000;

struct Case {
    dir: tempfile::TempDir,
    path: PathBuf,
    options: IndexOptions,
}

/// Creates a shard of 3000 records of 17 bytes with a saved index.
fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(3000, 1));
    set_mtime(&path, T);
    let options = options().index_dir(dir.path().join("i"));
    assert_eq!(scanned(&path, &options).1, 51_000);
    assert_eq!(scanned(&path, &options).1, 0, "accepted");
    Case { dir, path, options }
}

impl Case {
    fn append(&self, bytes: &[u8]) {
        File::options().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
    }

    /// Checks after a change that the index in use and the saved one equal the result of a full scan. Returns
    /// the bytes scanned.
    fn reopen(&self) -> u64 {
        let fresh = scanned(&self.path, &self.options.clone().mode(IndexMode::Memory)).0;
        let (index, bytes) = scanned(&self.path, &self.options);
        assert_eq!(sidecar(&index), sidecar(&fresh));
        assert_eq!(fs::read(self.dir.path().join("i/x.tfri")).unwrap(), sidecar(&fresh));
        assert_eq!(scanned(&self.path, &self.options).1, 0, "the saved index is accepted");
        bytes
    }

    fn require(&self) -> tfseek::Result<Indexes> {
        open(&self.path, &self.options.clone().mode(IndexMode::Require))
    }
}

fn is_stale(found: tfseek::Result<Indexes>) -> bool {
    matches!(found.unwrap_err().kind(), ErrorKind::Index(IndexError::Stale { .. }))
}

#[test]
fn a_touch_keeps_the_offsets_and_updates_the_time() {
    let case = case();
    set_mtime(&case.path, T + 100);
    assert!(case.require().is_ok());
    assert_eq!(case.reopen(), 0);
}

/// An index in another folder, and one with the time before a touch, are written next to the data on request.
#[test]
fn an_index_is_written_beside_from_any_folder() {
    let case = case();
    let beside = case.dir.path().join(".tfseek/x.tfri");
    let cache = case.dir.path().join("i");
    let options = options().default_dirs(None, Some(cache));
    fs::rename(case.dir.path().join("i/x.tfri"), case.dir.path().join("x.tfri")).unwrap();
    open(&case.path, &options).unwrap();
    for touched in [0, 7] {
        set_mtime(&case.path, T + touched);
        built_beside(std::slice::from_ref(&case.path), &options).unwrap();
        let fresh = scanned(&case.path, &options.clone().mode(IndexMode::Memory)).0;
        assert_eq!(fs::read(&beside).unwrap(), sidecar(&fresh), "{touched}");
    }
}

#[test]
fn a_copy_with_its_index_keeps_the_offsets() {
    let case = case();
    let there = tempfile::tempdir().unwrap();
    let copy = there.path().join("x");
    fs::copy(&case.path, &copy).unwrap();
    set_mtime(&copy, T + 500);
    built_beside(std::slice::from_ref(&case.path), &options()).unwrap();
    fs::create_dir(there.path().join(".tfseek")).unwrap();
    fs::copy(case.dir.path().join(".tfseek/x.tfri"), there.path().join(".tfseek/x.tfri")).unwrap();
    let cache = there.path().join("cache");
    let options = options().default_dirs(None, Some(cache.clone()));
    let copied = fs::read(there.path().join(".tfseek/x.tfri")).unwrap();
    assert_eq!(scanned(&copy, &options).1, 0);
    assert_eq!(
        fs::read(there.path().join(".tfseek/x.tfri")).unwrap(),
        copied,
        "no files next to the data by default"
    );
    assert_eq!(names(&cache).len(), 1);
    // The index with the matching time is found, although it is later in the search order.
    assert_eq!(open(&copy, &options).unwrap().indexes[0].file().unwrap().parent(), Some(&*cache));
}

#[test]
fn whole_records_appended_are_scanned_alone() {
    let case = case();
    case.append(&equal(200, 4));
    assert!(is_stale(case.require()));
    assert_eq!(case.reopen(), 4000);
}

#[test]
fn an_extension_keeps_the_payload_flag_only_if_payloads_are_verified() {
    let case = case();
    let checked = case.options.clone().check_payloads(true);
    assert!(is_checked(&scanned(&case.path, &checked).0));
    case.append(&equal(10, 4));
    let (index, bytes) = scanned(&case.path, &checked);
    assert_eq!((is_checked(&index), bytes), (true, 200));
    case.append(&equal(10, 4));
    let (index, bytes) = scanned(&case.path, &case.options);
    assert_eq!((is_checked(&index), bytes), (false, 200));
    assert_eq!(scanned(&case.path, &checked).1, 51_400, "so it does not suffice");
}

#[test]
fn a_partial_record_is_an_error_until_it_is_complete() {
    let case = case();
    let more = records(&[b"tail"]);
    for part in [1, 11, 12, 19] {
        fs::write(&case.path, equal(3000, 1)).unwrap();
        case.append(&more[..part]);
        for scans in [true, false] {
            let e = open(&case.path, &case.options).unwrap_err();
            let need = if part < 12 { 12 } else { 20 };
            assert!(
                matches!(e.kind(), ErrorKind::Truncated { need: n, have } if (*n, *have) == (need, part as u64)),
                "{e} {scans}"
            );
            assert_eq!((e.location().record, e.location().offset), (Some(3000), Some(51_000)));
        }
        let tolerant = case.options.clone().tail(Tail::Tolerate);
        let (index, bytes) = scanned(&case.path, &tolerant);
        assert_eq!((index.len(), torn_bytes(&index), bytes), (3000, part as u64, 0));
        case.append(&more[part..]);
        assert_eq!(case.reopen(), 20);
    }
}

#[test]
fn a_truncated_shard_is_scanned_again() {
    let case = case();
    File::options().write(true).open(&case.path).unwrap().set_len(17 * 1000).unwrap();
    assert!(is_stale(case.require()));
    assert_eq!(case.reopen(), 17_000);
}

#[test]
fn a_rewrite_is_scanned_again() {
    let case = case();
    fs::write(&case.path, equal(1500, 18)).unwrap();
    assert_eq!(case.reopen(), 51_000, "same size, other fingerprints");
}

#[test]
fn a_replaced_file_is_detected() {
    let case = case();
    let new = write(case.dir.path(), "new", &equal(500, 3));
    fs::rename(new, &case.path).unwrap();
    assert_eq!(case.reopen(), 19 * 500);
}

/// The limitation documented on the format page: size, modification time, head and tail are unchanged.
#[test]
fn an_edit_without_metadata_changes_is_detected_by_the_headers() {
    let dir = tempfile::tempdir().unwrap();
    let old = equal(20_000, 1);
    let path = write(dir.path(), "x", &old);
    set_mtime(&path, T);
    let options = options().index_dir(dir.path().join("i"));
    scanned(&path, &options);
    // Two records of 1 byte become one of 18 bytes in the middle of the file.
    let mut new = old;
    let at = 10_000 * 17;
    new[at..at + 34].copy_from_slice(&records(&[&[7; 18]]));
    fs::write(&path, &new).unwrap();
    set_mtime(&path, T);
    let (index, bytes) = scanned(&path, &options);
    assert_eq!(bytes, 0, "size and time are unchanged");
    let header = |i| {
        let span = index.locate(i).unwrap();
        let start = span.offset as usize;
        (header(&new[start..start + 12]), span.payload_len)
    };
    assert_eq!(header(9_999), (Some(1), 1));
    assert_eq!(header(10_000), (Some(18), 1), "the length differs from the index");
    assert_eq!(header(10_001), (None, 1), "not a valid header");
    assert_eq!(scanned(&path, &options.mode(IndexMode::Rebuild)).0.len(), 19_999);
}

#[test]
fn a_missing_index_is_an_error_if_one_is_required() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(3, 1));
    let e = open(&path, &options().mode(IndexMode::Require)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Missing)));
    assert_eq!(e.location().path.as_deref(), Some(&*path));
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn the_order_of_folders_for_search_and_for_writing() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(3, 1));
    let place = |name: &str| dir.path().join(name);
    // A folder cannot be created below a file, not even by root.
    let blocked = |name: &str| path.join(name);
    let saved_in = |options: &IndexOptions| {
        let opened = open(&path, options).unwrap();
        let file = opened.indexes[0].file().map(|f| f.parent().unwrap().to_path_buf());
        (file, opened.warnings.len())
    };
    let all = |a: PathBuf, b: PathBuf, c: PathBuf| options().index_dir(a).default_dirs(Some(b), Some(c));
    let (a, b, c) = (place("a"), place("b"), place("c"));
    let none = saved_in(&all(blocked("a"), blocked("b"), blocked("c")));
    assert_eq!(none, (None, 1), "in memory, with one warning");
    assert_eq!(saved_in(&all(blocked("a"), blocked("b"), c.clone())), (Some(c.clone()), 0));
    let rebuild = |o: IndexOptions| o.mode(IndexMode::Rebuild);
    assert_eq!(saved_in(&rebuild(all(blocked("a"), b.clone(), c.clone()))), (Some(b.clone()), 0));
    assert_eq!(saved_in(&rebuild(all(a.clone(), b.clone(), c.clone()))), (Some(a.clone()), 0));
    assert_eq!(names(dir.path()), ["a", "b", "c", "x"], "no files next to the data");
    // The search: each folder takes precedence over the next.
    built_beside(std::slice::from_ref(&path), &options()).unwrap();
    let every = all(a.clone(), b.clone(), c.clone());
    for found in [a, b, place(".tfseek"), c] {
        assert_eq!(saved_in(&every), (Some(found.clone()), 0));
        fs::remove_dir_all(found).unwrap();
    }
    // An explicitly configured folder that cannot be used is an error.
    assert!(built_beside(std::slice::from_ref(&path), &options().index_dir(blocked("a"))).is_err());
}

fn nothing_scanned(bytes: u64) -> std::ops::ControlFlow<()> {
    assert_eq!(bytes, 0, "scanned");
    std::ops::ControlFlow::Continue(())
}

#[test]
fn shards_above_the_size_limit_are_not_scanned() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        (0..5).map(|s| write(dir.path(), &format!("train-{s:05}.tfrecord"), &equal(100, 1))).collect();
    let options = options().index_dir(dir.path().join("i"));
    open(&paths[0], &options).unwrap();
    let e =
        open_shards(&paths, &options.clone().auto_limit(4 * 1700 - 1).progress(nothing_scanned)).unwrap_err();
    let ErrorKind::Index(IndexError::BuildLimit { shards, bytes, limit, build }) = e.kind() else {
        panic!("{e}")
    };
    assert_eq!((*shards, *bytes, *limit), (4, 6800, 6799));
    assert_eq!(build.paths, [dir.path().join("train-0000*.tfrecord").display().to_string()]);
    assert!(build.more == 0 && build.features.is_empty());
    assert_eq!(e.kind().remedy(), Some(Remedy::Build(build)));
    open_shards(&paths, &options.clone().auto_limit(6800)).unwrap();
    open_shards(&paths, &options.auto_limit(0).progress(nothing_scanned)).unwrap();
}

#[test]
fn shards_of_equal_name_clash_in_one_index_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = |sub: &str| {
        fs::create_dir(dir.path().join(sub)).unwrap();
        write(&dir.path().join(sub), "x", &equal(3, 1))
    };
    let paths = [path("a"), path("b")];
    let e = open_shards(&paths, &options().index_dir(dir.path().join("i"))).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::NameClash { other }) if **other == *paths[0]));
    assert_eq!(e.location().path.as_deref(), Some(&*paths[1]));
    // A shard that is listed twice does not.
    let twice = [paths[0].clone(), paths[0].clone()];
    assert_eq!(open_shards(&twice, &options().index_dir(dir.path().join("i"))).unwrap().indexes.len(), 2);
    // Names by hash differ.
    let cache = dir.path().join("c");
    open_shards(&paths, &options().default_dirs(None, Some(cache.clone()))).unwrap();
    assert_eq!(names(&cache).len(), 2);
}

#[test]
fn temporary_files_of_killed_writers_are_removed_after_a_day() {
    let case = case();
    let folder = case.dir.path().join(".tfseek");
    fs::create_dir(&folder).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let old = now - 25 * 3600 * 1_000_000_000;
    for (name, ns) in
        [(".tmp-0123456789abcdef", old), (".tmp-fedcba9876543210", now), (".tmp-x", old), ("mine", old)]
    {
        set_mtime(&write(&folder, name, b""), ns);
    }
    built_beside(std::slice::from_ref(&case.path), &options()).unwrap();
    assert_eq!(names(&folder), [".tmp-fedcba9876543210", ".tmp-x", "mine", "x.tfri"]);
}

#[test]
fn a_folder_is_not_a_shard() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(Path::new(dir.path()), &options()).unwrap_err();
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)) && e.location().path.is_some(), "{e}");
}

/// Returns the payload's length if the header's checksum is correct.
fn header(bytes: &[u8]) -> Option<u64> {
    let len = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    (tfseek::crc::masked(&len.to_le_bytes()).to_le_bytes() == bytes[8..]).then_some(len)
}

/// What was changed after the index was written is compared, and then written again, so that it is compared
/// once.
#[test]
#[cfg(unix)]
fn a_change_of_the_mode_is_compared_once() {
    let case = case();
    let saved = |case: &Case| fs::metadata(case.dir.path().join("i/x.tfri")).unwrap().modified().unwrap();
    let written = saved(&case);
    let other = case.dir.path().join("other");
    // An index of long ago.
    File::options()
        .write(true)
        .open(case.dir.path().join("i/x.tfri"))
        .unwrap()
        .set_modified(written - std::time::Duration::from_secs(60))
        .unwrap();
    fs::hard_link(&case.path, other).unwrap();
    assert!(case.require().is_ok());
    assert_eq!(case.reopen(), 0);
    assert!(saved(&case) >= written);
    // Other bytes with the old size and time.
    fs::write(&case.path, equal(3000, 1).iter().map(|b| !b).collect::<Vec<_>>()).unwrap();
    fs::write(&case.path, records(&vec![&b"z"[..]; 3000])).unwrap();
    set_mtime(&case.path, T);
    assert!(is_stale(case.require()));
    assert_eq!(case.reopen(), 51_000);
}
