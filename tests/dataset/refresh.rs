//! Datasets that are opened again after shards were appended to.

#![allow(unsafe_code)] // `Mapped` has one unsafe constructor.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tfseek::column::ColumnOptions;
use tfseek::error::{IndexError, PathsError};
use tfseek::index::{IndexOptions, write_pack};
use tfseek::{Damage, Dataset, DatasetOptions, ErrorKind, ExampleBuilder, IndexMode, Mapped, Tail};
use tfseek_testkit::shards::{equal, options, records, set_mtime, write};

fn with(index: IndexOptions) -> DatasetOptions {
    DatasetOptions::new().index(index)
}

fn append(path: &Path, bytes: &[u8]) {
    File::options().append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn payloads(ds: &Dataset) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    ds.read_many(&Vec::from_iter(0..ds.len()), |record| {
        all.push(record.payload().to_vec());
        Ok(())
    })
    .unwrap();
    all
}

/// Opens a dataset with positional reads and with maps.
fn both(options: &DatasetOptions, path: impl AsRef<Path>) -> [Dataset; 2] {
    // SAFETY: these tests append to shards, and replace them by rename.
    let mapped = unsafe { options.open_mapped(path.as_ref()) }.unwrap();
    [options.open(path.as_ref()).unwrap(), mapped.dataset().clone()]
}

/// The error of a refresh, and the name of the shard in it.
#[track_caller]
fn renumbered(ds: &Dataset, name: &str) -> String {
    let e = ds.refresh().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Renumbered { .. }), "{e}");
    assert_eq!(e.location().path.as_deref().unwrap().file_name().unwrap(), name, "{e}");
    e.to_string()
}

#[track_caller]
fn is_stale<T>(found: tfseek::Result<T>, name: &str) {
    let e = found.err().expect("the shard has other content");
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
    assert_eq!(e.location().path.as_deref().unwrap().file_name().unwrap(), name, "{e}");
}

/// Appends in pieces of any size, and compares each refreshed dataset with one that is opened anew without
/// index files.
#[test]
fn every_prefix_of_a_growing_file() {
    let whole = records(&[b"one", b"", &[7; 70], b"four"]);
    for mode in [IndexMode::Auto, IndexMode::Memory] {
        for step in [1, 7, 30] {
            let dir = tempfile::tempdir().unwrap();
            let path = write(dir.path(), "x", b"");
            let options = with(options().mode(mode).index_dir(dir.path().join("i")).tail(Tail::Tolerate));
            let mut all = both(&options, &path);
            let first = all.clone();
            for part in whole.chunks(step) {
                append(&path, part);
                for ds in &mut all {
                    let before = payloads(ds);
                    let new = ds.refresh().unwrap();
                    assert_eq!(payloads(ds), before, "the old dataset has not changed");
                    let fresh = with(options_in_memory()).open(&path).unwrap();
                    assert_eq!(payloads(&new), payloads(&fresh));
                    assert_eq!(new.fingerprint().unwrap(), fresh.fingerprint().unwrap());
                    assert!(payloads(&new).starts_with(&before));
                    *ds = new;
                }
            }
            assert_eq!(all.map(|ds| ds.len()), [4, 4]);
            assert_eq!(first.map(|ds| ds.len()), [0, 0]);
        }
    }
}

fn options_in_memory() -> IndexOptions {
    options().mode(IndexMode::Memory).tail(Tail::Tolerate)
}

#[test]
fn only_the_new_part_is_scanned() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(1000, 84));
    let ds = with(options().index_dir(dir.path().join("i"))).open(&path).unwrap();
    append(&path, &equal(10, 84));
    let scanned = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&scanned);
    let new = ds.refresh_with(move |bytes| {
        count.fetch_add(bytes, Relaxed);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!((new.unwrap().len(), scanned.load(Relaxed)), (1010, 1000));
    append(&path, &equal(1, 84));
    let cancelled = ds.refresh_with(|_| std::ops::ControlFlow::Break(()));
    assert!(matches!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled));
}

#[test]
fn new_shards_of_a_folder_or_pattern() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write(dir.path(), "b.tfrecord", &equal(5, 3));
    let options = with(options().mode(IndexMode::Memory));
    for path in [dir.path().to_path_buf(), at("*.tfrecord")] {
        for ds in both(&options, &path) {
            append(&at("b.tfrecord"), &equal(2, 3));
            append(&at("c.tfrecord"), &equal(3, 4));
            let new = ds.refresh().unwrap();
            assert_eq!((ds.len(), new.len()), (5, 10));
            assert_eq!(payloads(&new)[7..], [vec![0; 4], vec![1; 4], vec![2; 4]]);
            // A shard that is not the last one grows: its new records would move those of the next one.
            append(&at("b.tfrecord"), &equal(1, 3));
            let text = renumbered(&new, "b.tfrecord");
            assert!(text.ends_with("expected 7 records before the next shard, found 8 records"), "{text}");
            // The first dataset had that shard only.
            assert_eq!(ds.refresh().unwrap().len(), 11);
            fs::write(at("a.tfrecord"), equal(1, 1)).unwrap();
            let text = renumbered(&ds, "a.tfrecord");
            assert!(text.contains("expected no shard before") && text.contains("b.tfrecord"), "{text}");
            // A shard without records moves nothing.
            write(dir.path(), "a.tfrecord", b"");
            assert_eq!(ds.refresh().unwrap().len(), 11);
            fs::remove_file(at("a.tfrecord")).unwrap();
            fs::remove_file(at("c.tfrecord")).unwrap();
            replace(&at("b.tfrecord"), &equal(5, 3));
        }
    }
}

/// Replaces the file at `path` by rename.
fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn shards_that_shrink_change_or_disappear() {
    const T: u64 = 1_600_000_000_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["a.tfrecord", "b.tfrecord", "c.tfrecord"] {
        set_mtime(&write(dir.path(), name, &equal(5, 3)), T);
    }
    let index = options().index_dir(at("i"));
    for ds in both(&with(index), dir.path()) {
        for (name, bytes) in [("a.tfrecord", equal(4, 3)), ("c.tfrecord", equal(4, 3))] {
            replace(&at(name), &bytes);
            is_stale(ds.refresh(), name);
            replace(&at(name), &equal(5, 3));
        }
        // Other records of the same number, size and time.
        replace(&at("b.tfrecord"), &records(&[&b"xyz"[..]; 5]));
        set_mtime(&at("b.tfrecord"), T);
        is_stale(ds.refresh(), "b.tfrecord");
        // A copy of the same bytes.
        replace(&at("b.tfrecord"), &equal(5, 3));
        assert_eq!(payloads(&ds.refresh().unwrap()), payloads(&ds));
        for (name, text) in [("b.tfrecord", "at its place"), ("c.tfrecord", "expected a shard, found none")] {
            fs::remove_file(at(name)).unwrap();
            assert!(renumbered(&ds, name).contains(text));
            replace(&at(name), &equal(5, 3));
        }
        replace(&at("a.tfrecord"), &[&equal(5, 3)[..], b"damage!!damage!!"].concat());
        let e = ds.refresh().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
        replace(&at("a.tfrecord"), &equal(5, 3));
    }
}

/// `x@*` and wildcards refuse a set until it is complete.
#[test]
fn an_incomplete_set_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = |s: usize| dir.path().join(format!("x-{s:05}-of-00003.tfrecord"));
    fs::write(at(0), equal(5, 3)).unwrap();
    let options = with(options().mode(IndexMode::Memory));
    let ds = options.clone().allow_missing(true).open(dir.path()).unwrap();
    fs::write(at(2), equal(5, 3)).unwrap();
    let later = ds.refresh().unwrap();
    assert_eq!(later.len(), 10);
    fs::write(at(1), equal(5, 3)).unwrap();
    assert!(renumbered(&later, "x-00001-of-00003.tfrecord").contains("found a new one"));
    let all = options.open(dir.path()).unwrap();
    fs::remove_file(at(1)).unwrap();
    let e = all.refresh().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::MissingShards { .. })), "{e}");
}

#[test]
fn a_torn_tail_is_an_error_unless_it_is_tolerated() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(5, 3));
    let ds = with(options().mode(IndexMode::Memory)).open(&path).unwrap();
    append(&path, &equal(1, 3)[..15]);
    let e = ds.refresh().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Truncated { need: 19, have: 15 }), "{e}");
    assert_eq!(e.location().record, Some(5));
    // The size of a shard includes a torn tail.
    let tolerant = with(options().mode(IndexMode::Memory).tail(Tail::Tolerate)).open(&path).unwrap();
    assert_eq!((tolerant.len(), tolerant.known_bytes()), (5, Some(std::fs::metadata(&path).unwrap().len())));
    append(&path, &equal(1, 3)[15..]);
    assert_eq!(ds.refresh().unwrap().len(), 6);
}

#[test]
fn loaders_columns_and_iterators_keep_their_records() {
    let dir = tempfile::tempdir().unwrap();
    let payload = |i: i64| ExampleBuilder::new().int64("label", [i]).encode().unwrap();
    let some = |range: std::ops::Range<i64>| {
        records(&range.map(payload).collect::<Vec<_>>().iter().map(|p| &p[..]).collect::<Vec<_>>())
    };
    let path = write(dir.path(), "x", &some(0..100));
    for ds in both(&with(options().index_dir(dir.path().join("i"))), &path) {
        let mut loader = ds.record_loader().batch_size(10).threads(2).build().unwrap();
        let mut seen = loader.next().unwrap().unwrap().ids.len();
        append(&path, &some(100..130));
        let new = ds.refresh().unwrap();
        seen += loader.map(|step| step.unwrap().ids.len()).sum::<usize>();
        assert_eq!(seen, 100);
        for (ds, n) in [(&ds, 100), (&new, 130)] {
            let column = ds.column("label", &ColumnOptions::default()).unwrap();
            assert_eq!((column.len(), ds.len()), (n, n));
            let (selected, _) =
                ds.select(&"label >= 90".parse().unwrap(), &ColumnOptions::default()).unwrap();
            assert_eq!(selected.len(), n - 90);
        }
        if let Some(mapped) = Mapped::from_dataset(&ds) {
            let mut records = mapped.iter();
            records.next();
            assert_eq!((records.count(), mapped.refresh().unwrap().iter().count()), (99, 130));
        }
        replace(&path, &some(0..100));
    }
}

/// Beyond the limit of open descriptors per dataset, each read reopens the file.
#[test]
fn a_reopened_shard_may_grow() {
    let dir = tempfile::tempdir().unwrap();
    for s in 0..258 {
        write(dir.path(), &format!("{s:03}.tfrecord"), &equal(3, 40));
    }
    let ds = with(options().mode(IndexMode::Memory)).open(dir.path()).unwrap();
    let all = payloads(&ds);
    let last = dir.path().join("257.tfrecord");
    append(&last, &equal(2, 40));
    assert_eq!(payloads(&ds), all);
    assert_eq!(payloads(&ds.refresh().unwrap()).len(), all.len() + 2);
    replace(&last, &equal(3, 40));
    assert_eq!(payloads(&ds), all);
    replace(&last, &records(&[&[1; 40][..]; 3]));
    is_stale(ds.read(3 * 257, &mut Vec::new()), "257.tfrecord");
}

#[test]
fn a_pack_grows_when_it_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c"].map(|name| write(dir.path(), name, &equal(5, 3)));
    let (pack, _) = write_pack("x", &names[..2], &options()).unwrap();
    for ds in both(&DatasetOptions::new(), &pack) {
        assert_eq!(ds.refresh().unwrap().len(), 10);
        append(&names[1], &equal(1, 3));
        // The pack has the old records, and so does the dataset.
        assert_eq!(ds.refresh().unwrap().len(), 10);
        write_pack("x", &names, &options()).unwrap();
        let new = ds.refresh().unwrap();
        assert_eq!((ds.len(), payloads(&new).len()), (10, 16));
        write_pack("x", &[names[0].clone(), names[2].clone()], &options()).unwrap();
        assert!(renumbered(&ds, "c").contains("expected no shard before"));
        assert!(renumbered(&new, "b").contains("at its place"));
        replace(&names[1], &records(&[&b"xyz"[..]; 5]));
        write_pack("x", &names[..2], &options()).unwrap();
        is_stale(ds.refresh(), "b");
        replace(&names[1], &equal(5, 3));
        write_pack("x", &names[..2], &options()).unwrap();
    }
}

/// A damaged record, a damaged tail, and a torn one, after which sound records are appended.
#[test]
fn a_damaged_shard_grows() {
    let sound = records(&[b"one", b"two", b"three", b"four"]);
    let more = records(&[b"five", b"six"]);
    let damaged = |at: usize| {
        let mut file = sound.clone();
        file[at] ^= 1;
        file
    };
    let (last, torn) = (sound.len() - 20, sound.len() - 3);
    for (file, n, left) in [
        (damaged(12), 3, 3),
        (damaged(last + 2), 3, 3),
        (damaged(last + 12), 3, 3),
        (sound[..torn].to_vec(), 3, 3),
        (damaged(12)[..torn].to_vec(), 2, 2),
    ] {
        for mode in [IndexMode::Auto, IndexMode::Memory] {
            let dir = tempfile::tempdir().unwrap();
            let path = write(dir.path(), "x", &file);
            let index = options().mode(mode).index_dir(dir.path().join("i")).damage(Damage::Skip);
            for k in 0..2 {
                let ds = both(&with(index.clone()), &path)[k].clone();
                let untouched = with(index.clone()).open(&path).unwrap();
                let before = payloads(&ds);
                assert_eq!((before.len(), ds.warnings().len()), (n, 1));
                append(&path, &more);
                let new = ds.refresh().unwrap();
                assert_eq!(payloads(&new), [&before[..left], &[b"five".to_vec(), b"six".to_vec()]].concat());
                assert_eq!(new.warnings().len(), 1);
                let fresh = with(index.clone().mode(IndexMode::Memory)).open(&path).unwrap();
                assert_eq!(new.fingerprint().unwrap(), fresh.fingerprint().unwrap());
                // The old one has its records, whether it was read before or not.
                assert_eq!((payloads(&ds), payloads(&untouched)), (before.clone(), before));
                // Damage after the sound records.
                append(&path, b"damage!!damage!!");
                assert_eq!(payloads(&new.refresh().unwrap()), payloads(&new));
                replace(&path, &file);
            }
        }
    }
}

/// The end of a damaged shard has records inside a record that is not whole yet. They are none once it is.
#[test]
fn records_inside_a_record_that_becomes_whole() {
    let dir = tempfile::tempdir().unwrap();
    let inner = records(&[b"a", b"b", b"c"]);
    let outer = records(&[b"one", &inner, b"two"]);
    let part = 19 + 12 + 2 * 17;
    let path = write(dir.path(), "x", &outer[..part]);
    let index = options().mode(IndexMode::Memory).damage(Damage::Skip);
    let ds = with(index).open(&path).unwrap();
    let before = payloads(&ds);
    append(&path, &outer[part..]);
    match ds.refresh() {
        Ok(new) => assert!(payloads(&new).starts_with(&before), "{before:?}"),
        Err(e) => assert!(matches!(e.kind(), ErrorKind::Renumbered { .. }), "{e}"),
    }
}

#[test]
fn bytes_in_memory_do_not_grow() {
    let ds = Mapped::from_bytes(equal(5, 3)).unwrap();
    assert_eq!((ds.refresh().unwrap().len(), ds.dataset().refresh().unwrap().len()), (5, 5));
}
