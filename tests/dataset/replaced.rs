//! Files that are replaced, truncated, deleted or not regular, before or after a dataset is opened.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "some tests are of Unix or Linux")
)]
#![allow(unsafe_code)] // `Mapped` has one unsafe constructor.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Once, mpsc};
use std::time::Duration;
use tfseek::error::IndexError;
use tfseek::index::{IndexOptions, open_shards, write_pack};
use tfseek::{Dataset, DatasetOptions, ErrorKind, ExampleBuilder, IndexMode};
use tfseek_testkit::shards::{built_beside, equal, options, records, set_mtime, write};

fn with(index: IndexOptions) -> DatasetOptions {
    DatasetOptions::new().index(index)
}

/// Opens the shard with positional reads and with maps.
fn both(options: &DatasetOptions, path: &Path) -> [Dataset; 2] {
    // SAFETY: these tests replace shards by rename.
    let mapped = unsafe { options.open_mapped(path) }.unwrap();
    [options.open(path).unwrap(), mapped.dataset().clone()]
}

/// Replaces the file at `path` by rename.
fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, path).unwrap();
}

#[track_caller]
fn is_stale<T>(found: tfseek::Result<T>, path: &Path) {
    let e = found.err().expect("the file was replaced");
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
    assert_eq!(e.location().path.as_deref(), Some(path));
}

#[test]
fn a_shard_replaced_before_its_first_access_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(100, 40));
    for mode in [IndexMode::Memory, IndexMode::Auto] {
        for touch in 0..4 {
            fs::write(&path, equal(100, 40)).unwrap();
            for ds in both(&with(options().mode(mode).index_dir(dir.path().join("i"))), &path) {
                // The records have the same lengths, so every header matches the index.
                replace(&path, &records(&vec![&[0xaa; 40][..]; 100]));
                match touch {
                    0 => is_stale(ds.read(7, &mut Vec::new()), &path),
                    1 => is_stale(ds.fingerprint(), &path),
                    2 => is_stale(ds.column("label", &Default::default()), &path),
                    _ => is_stale(ds.read_many(&Vec::from_iter(0..100), |_| Ok(())), &path),
                }
                fs::write(&path, equal(100, 40)).unwrap();
            }
        }
    }
}

#[test]
fn a_shard_replaced_by_its_copy_or_extended_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(100, 40));
    let longer = equal(120, 40);
    for bytes in [&longer[..100 * 56], &longer] {
        for ds in both(&with(options().mode(IndexMode::Memory)), &path) {
            replace(&path, bytes);
            assert_eq!(ds.read(99, &mut Vec::new()).unwrap().payload(), [99; 40]);
            assert_eq!(ds.len(), 100);
            replace(&path, &longer[..100 * 56]);
        }
    }
}

/// A name with `-of-` is that of a shard only with both numbers.
#[test]
fn a_file_that_is_replaced_while_others_open_is_an_error_in_sets_only() {
    for (names, is_set) in [(["a-of-b", "c-3-of-d"], false), (["a-00000-of-00002", "a-00001-of-00002"], true)]
    {
        let dir = tempfile::tempdir().unwrap();
        let paths = names.map(|name| write(dir.path(), name, &equal(100, 9)));
        // Once, and after the first shard is read: a third file may get the number of the first one.
        let (first, replaced) = (paths[0].clone(), Once::new());
        let index = options().mode(IndexMode::Memory).threads(1).progress(move |bytes| {
            if bytes > 0 {
                replaced.call_once(|| replace(&first, &equal(100, 9)));
            }
            ControlFlow::Continue(())
        });
        match with(index).open(&paths) {
            Ok(ds) => assert!(!is_set && ds.len() == 200, "{names:?}"),
            Err(e) => {
                let words = "the shard was replaced while its set was opened";
                assert!(is_set && e.to_string().contains(words), "{e}");
            }
        }
    }
}

/// Beyond the limit of open descriptors per dataset, each read reopens the file.
#[cfg(unix)]
#[test]
fn a_reopened_shard_is_distinguished_from_a_replacement_of_equal_size_and_time() {
    const T: u64 = 1_600_000_000_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        (0..257).map(|s| write(dir.path(), &format!("{s:03}"), &equal(3, 40))).collect();
    let last = &paths[256];
    set_mtime(last, T);
    let ds = with(options().mode(IndexMode::Memory)).open(&paths).unwrap();
    let mut buf = Vec::new();
    (0..ds.len()).for_each(|i| _ = ds.read(i, &mut buf).unwrap());
    let new = write(dir.path(), "new", &records(&[&[0xaa; 40][..]; 3]));
    set_mtime(&new, T);
    fs::rename(&new, last).unwrap();
    is_stale(ds.read(256 * 3, &mut buf), last);
}

/// Writes a shard of 300,000 records, whose index exceeds 1 MiB.
fn large(dir: &Path) -> (PathBuf, IndexOptions, PathBuf) {
    let path = write(dir, "large", &equal(300_000, 1));
    let options = options().index_dir(dir.join("i"));
    built_beside(std::slice::from_ref(&path), &options).unwrap();
    let file = dir.join("i/large.tfri");
    assert!(file.metadata().unwrap().len() > 1 << 20);
    (path, options.mode(IndexMode::Require), file)
}

#[test]
fn a_dataset_outlives_its_index_files() {
    let dir = tempfile::tempdir().unwrap();
    let (large_path, index, large_file) = large(dir.path());
    let payload = |i: i64| ExampleBuilder::new().int64("label", [i % 7]).encode().unwrap();
    let payloads: Vec<Vec<u8>> = (0..40_000).map(payload).collect();
    let small = write(dir.path(), "small", &records(&payloads.iter().map(|p| &p[..]).collect::<Vec<_>>()));
    built_beside(std::slice::from_ref(&small), &index.clone().mode(IndexMode::Auto)).unwrap();
    let small_file = dir.path().join("i/small.tfri");
    assert!(small_file.metadata().unwrap().len() > 64 << 10);
    for (path, file) in [(&large_path, &large_file), (&small, &small_file)] {
        let kept = fs::read(file).unwrap();
        for ds in both(&with(index.clone()), path) {
            fs::remove_file(file).unwrap();
            assert!(ds.read(0, &mut Vec::new()).is_ok());
            assert!(ds.read(ds.len() - 1, &mut Vec::new()).is_ok());
            fs::write(file, &kept).unwrap();
        }
    }
}

/// Truncating an index file in place must not kill a process that maps it.
#[cfg(target_os = "linux")]
#[test]
fn an_index_truncated_in_place_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (path, index, file) = large(dir.path());
    let kept = fs::read(&file).unwrap();
    for left in [0, 100, 5000, 600_000] {
        for mapped in [false, true] {
            let opened = if mapped {
                // SAFETY: the shard is written once. This test truncates the index file only.
                let mapped = unsafe { with(index.clone()).open_mapped(&path) }.unwrap();
                mapped.dataset().index(0).unwrap().clone()
            } else {
                open_shards(std::slice::from_ref(&path), &index).unwrap().indexes.remove(0)
            };
            File::options().write(true).open(&file).unwrap().set_len(left).unwrap();
            let found = opened.locate(299_999);
            let e = found.unwrap_err();
            assert!(e.to_string().contains("large.tfri"), "{e}");
            assert!(opened.verify().is_err());
            assert!(opened.write_to(&mut Vec::new()).is_err());
            fs::write(&file, &kept).unwrap();
        }
    }
    // If truncated before opening, the file counts as refused.
    File::options().write(true).open(&file).unwrap().set_len(5000).unwrap();
    assert!(open_shards(&[path], &index).is_err());
}

/// A process may have 1024 descriptors by default, which must suffice for two datasets with columns.
#[cfg(target_os = "linux")]
#[test]
fn descriptors_and_memory_of_index_files_are_released() {
    let dir = tempfile::tempdir().unwrap();
    let payload = ExampleBuilder::new().int64("label", [1]).encode().unwrap();
    let bytes = records(&vec![&payload[..]; 150_000]);
    let paths: Vec<PathBuf> = (0..12).map(|s| write(dir.path(), &format!("{s:02}"), &bytes)).collect();
    let index = options().index_dir(dir.path().join("i"));
    let open = || with(index.clone()).open(&paths).unwrap();
    let written = open()
        .columns(&["label"], &tfseek::column::ColumnOptions { beside: true, ..Default::default() })
        .unwrap();
    assert!(written[0].shards()[0].file().unwrap().metadata().unwrap().len() > 1 << 20);
    drop(written);
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let ds = open();
    ds.column("label", &Default::default()).unwrap();
    let before = descriptors();
    let held: Vec<_> = (0..5).map(|_| ds.column("label", &Default::default()).unwrap()).collect();
    // Other tests in this process open files at the same time.
    assert!(descriptors() < before + 5 * 12 / 2, "columns that were read keep their files open");
    drop(held);
}

/// Runs `f` with a time limit: opening a FIFO without `O_NONBLOCK` waits for a writer forever.
#[track_caller]
fn with_time_limit<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(f()));
    receive.recv_timeout(Duration::from_secs(600)).expect("it blocks, or panicked")
}

/// Creates a file at `path` that is not a regular file. `None` if this system cannot create one of this kind.
#[cfg(unix)]
fn create_special_file(kind: &str, path: &Path) -> Option<()> {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(path);
    match kind {
        "folder" => fs::create_dir(path).ok(),
        "device" => std::os::unix::fs::symlink("/dev/zero", path).ok(),
        "socket" => std::os::unix::net::UnixListener::bind(path).map(drop).ok(),
        _ => {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            made.is_ok_and(|status| status.success()).then_some(())
        }
    }
}

#[cfg(unix)]
#[test]
fn index_files_and_shards_must_be_regular_files() {
    let dir = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> =
        (0..100).map(|i| ExampleBuilder::new().int64("label", [i]).encode().unwrap()).collect();
    let bytes = records(&payloads.iter().map(|p| &p[..]).collect::<Vec<_>>());
    for kind in ["fifo", "device", "socket", "folder"] {
        // Socket paths have a short limit.
        let own = tempfile::tempdir_in(dir.path()).unwrap();
        let path = write(own.path(), "x", &bytes);
        let index = options().index_dir(own.path());
        let open = |index: IndexOptions, path: PathBuf| {
            with_time_limit(move || {
                let ds = with(index).open(&path)?;
                let mut buf = Vec::new();
                ds.read(ds.len() - 1, &mut buf)?;
                let label = ds.column("label", &Default::default())?;
                let warnings = [ds.warnings(), &label.warnings].concat();
                Ok::<_, tfseek::Error>((label.count(), warnings.len()))
            })
        };
        if create_special_file(kind, &own.path().join("x.tfri")).is_none() {
            tfseek_testkit::skipped(&format!("a {kind} in a folder"));
            continue;
        }
        let required = open(index.clone().mode(IndexMode::Require), path.clone()).unwrap_err();
        assert!(required.to_string().contains("index"), "{kind}: {required}");
        create_special_file(kind, &own.path().join("x.label.tfrc")).unwrap();
        let (count, warnings) = open(index.clone(), path.clone()).unwrap();
        assert_eq!(count, 100, "{kind}");
        assert!(warnings >= 2, "{kind}: index and column were refused without a warning");
        // A pack, and a shard listed in a pack.
        let named = write(own.path(), "named", &bytes);
        let (pack, _) = write_pack("p", std::slice::from_ref(&named), &options()).unwrap();
        create_special_file(kind, &named).unwrap();
        let e = open(options(), pack.clone()).unwrap_err();
        assert_eq!(e.location().path.as_deref(), Some(&*named), "{kind}: {e}");
        create_special_file(kind, &pack).unwrap();
        assert!(open(options(), pack).is_err(), "{kind}");
        // A shard.
        create_special_file(kind, &path).unwrap();
        for mode in [IndexMode::Auto, IndexMode::Memory, IndexMode::Require] {
            let e = open(index.clone().mode(mode), path.clone()).unwrap_err();
            let refused = e.to_string().contains("expected a regular file");
            assert!(
                matches!(e.kind(), tfseek::ErrorKind::Io(_)) || refused || kind == "folder",
                "{kind}: {e}"
            );
        }
    }
}
