//! Progress callbacks that cancel a call: no partial files are left, and later calls work.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tfseek::column::ColumnOptions;
use tfseek::index::{IndexOptions, build_beside, open_shards, write_pack};
use tfseek::io::Region;
use tfseek::{Dataset, DatasetOptions, Error, ErrorKind, ExampleBuilder, Filter, IndexMode};
use tfseek_testkit::shards::{names, options, records, write};

/// Maximum number of bytes between two progress reports, not counting the last record.
const REPORT: u64 = 1 << 20;

/// Shards of 30 records, 2.3 MB each.
fn write_shards(dir: &Path, n: usize) -> Vec<PathBuf> {
    let payload = |i: i64| {
        ExampleBuilder::new()
            .int64("label", [i % 3])
            .bytes("image", [vec![i as u8; 77_777]])
            .encode()
            .unwrap()
    };
    let payloads: Vec<Vec<u8>> = (0..30).map(payload).collect();
    let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    (0..n).map(|s| write(dir, &format!("s{s}"), &records(&payloads))).collect()
}

fn in_dir(dir: &Path) -> IndexOptions {
    options().index_dir(dir.join("i"))
}

/// Returns a callback that cancels the work at call number `at`, counted from 0, and the counter of its
/// calls.
fn cancels_at(at: usize) -> (Arc<AtomicUsize>, impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let callback = move |_| {
        if count.fetch_add(1, Relaxed) == at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    (calls, callback)
}

fn check(e: &Error) {
    assert!(matches!(e.kind(), ErrorKind::Cancelled), "{e}");
    assert!(!e.is_data() && !matches!(e.kind(), tfseek::ErrorKind::Io(_)) && e.category().is_none());
    assert_eq!(e.to_string(), "cancelled by the caller");
}

/// Checks the files left by a cancelled call: complete files, and no temporary ones.
fn check_files(dir: &Path, paths: &[PathBuf], ending: &str) {
    let made = names(&dir.join("i"));
    assert!(made.iter().all(|name| name.ends_with(ending)), "{made:?}");
    for path in paths {
        let file = format!("{}.tfri", path.file_name().unwrap().to_str().unwrap());
        let found = DatasetOptions::new().index(in_dir(dir).mode(IndexMode::Require)).open(path);
        assert_eq!(found.is_ok(), made.contains(&file), "{made:?}");
    }
}

type Call = dyn Fn(&[PathBuf], &IndexOptions) -> tfseek::Result<()>;

#[test]
fn a_callback_cancels_a_scan() {
    let calls: [(&str, &Call); 3] = [
        ("open", &|paths, options| open_shards(paths, options).map(drop)),
        ("build", &|paths, options| {
            let each = build_beside(paths, options)?;
            each.into_iter().try_for_each(|shard| shard.map(drop))
        }),
        ("pack", &|paths, options| write_pack("all", paths, options).map(drop)),
    ];
    for (name, call) in calls {
        for (threads, payloads) in [(1, false), (1, true), (3, false), (3, true)] {
            for at in 0.. {
                let dir = tempfile::tempdir().unwrap();
                std::fs::create_dir(dir.path().join("i")).unwrap();
                let paths = write_shards(dir.path(), 3);
                let (calls, progress) = cancels_at(at);
                let options = in_dir(dir.path()).threads(threads).check_payloads(payloads);
                let done = call(&paths, &options.clone().progress(progress));
                if calls.load(Relaxed) <= at {
                    // Calls per shard: inspected, started, and three reports.
                    assert!(at > 3 * 4, "{name}: {at} calls");
                    done.unwrap();
                    break;
                }
                check(&done.unwrap_err());
                assert!(threads > 1 || calls.load(Relaxed) == at + 1, "called again");
                assert!(calls.load(Relaxed) <= at + threads);
                check_files(dir.path(), &paths, ".tfri");
                assert!(!dir.path().join(".tfseek").exists());
                // A later call completes.
                call(&paths, &options).unwrap();
            }
        }
    }
}

#[test]
fn a_callback_cancels_a_column_build() {
    for threads in [1, 3] {
        for mapped in [true, false] {
            for at in 0.. {
                let dir = tempfile::tempdir().unwrap();
                let paths = write_shards(dir.path(), 3);
                let options = DatasetOptions::new().index(in_dir(dir.path()).threads(threads));
                let mut ds = options.open(&paths).unwrap();
                if mapped {
                    // SAFETY: files of this test; nothing writes to them.
                    #[allow(unsafe_code)]
                    let mapped = unsafe { options.open_mapped(&paths) }.unwrap();
                    ds = mapped.dataset().clone();
                }
                let (calls, progress) = cancels_at(at);
                let done = ds.columns(
                    &["label"],
                    &ColumnOptions { progress: Some(Arc::new(progress)), ..ColumnOptions::default() },
                );
                if calls.load(Relaxed) <= at {
                    assert!(at > 3 * 4, "{at} calls");
                    done.unwrap();
                    break;
                }
                check(&done.unwrap_err());
                assert!(calls.load(Relaxed) <= at + threads);
                let made = names(&dir.path().join("i"));
                let ours = |name: &String| name.ends_with(".tfri") || name.ends_with(".label.tfrc");
                assert!(made.iter().all(ours), "{made:?}");
                assert!(made.iter().filter(|name| name.ends_with(".tfrc")).count() < 3);
                assert_eq!(ds.column("label", &Default::default()).unwrap().count(), 90);
            }
        }
    }
}

#[test]
fn a_callback_cancels_a_filter() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), 2);
    let ds = DatasetOptions::new().index(in_dir(dir.path())).open(&paths).unwrap();
    let filter: Filter = "label == 1".parse().unwrap();
    let (_, progress) = cancels_at(5);
    check(
        &ds.select(
            &filter,
            &ColumnOptions { progress: Some(Arc::new(progress)), ..ColumnOptions::default() },
        )
        .unwrap_err(),
    );
    assert_eq!(ds.select(&filter, &Default::default()).unwrap().0.len(), 20);
}

#[test]
fn a_callback_per_call_replaces_the_callback_of_the_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), 2);
    let stop = Arc::new(AtomicUsize::new(0));
    let of_dataset = Arc::clone(&stop);
    let ds = DatasetOptions::new()
        .index(in_dir(dir.path()))
        .progress(move |_| match of_dataset.load(Relaxed) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        })
        .open(&paths)
        .unwrap();
    stop.store(1, Relaxed);
    check(&ds.column("label", &Default::default()).unwrap_err());
    let (calls, progress) = cancels_at(usize::MAX);
    assert_eq!(
        ds.column("label", &ColumnOptions { progress: Some(Arc::new(progress)), ..ColumnOptions::default() })
            .unwrap()
            .count(),
        60
    );
    assert!(calls.load(Relaxed) > 0);
}

#[test]
fn a_callback_cancels_opening() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), 1);
    for at in [0, 1, 3] {
        let options = DatasetOptions::new().index(IndexMode::Memory);
        check(&options.clone().progress(cancels_at(at).1).open(&paths).unwrap_err());
        let bytes = std::fs::read(&paths[0]).unwrap();
        let regions = [Region::from(bytes.clone()), Region::from(bytes)];
        check(&options.progress(cancels_at(at).1).open_regions(regions).unwrap_err());
    }
}

/// The caller gets `Cancelled`, not an error that another thread met in the meantime.
#[test]
fn cancellation_takes_precedence_over_other_errors() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), 1);
    let mut bytes = std::fs::read(&paths[0]).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    std::fs::write(&paths[0], &bytes).unwrap();
    let options = in_dir(dir.path()).check_payloads(true);
    for at in 0..3 {
        check(&open_shards(&paths, &options.clone().progress(cancels_at(at).1)).unwrap_err());
    }
    assert!(open_shards(&paths, &options.clone().progress(cancels_at(99).1)).unwrap_err().is_data());
}

/// All bytes are reported in time, for records of any size and for every way to read them.
#[test]
fn progress_is_reported_per_mib() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [100, 5 << 20, 0, 3 << 20, 1, (1 << 20) + 1, 70_000, 70_000];
    let payloads: Vec<Vec<u8>> = sizes.iter().map(|n| vec![7; *n]).collect();
    let small = vec![vec![7; 50]; 100_000];
    for (payloads, largest) in [(payloads, 5 << 20), (small, 50)] {
        let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let path = write(dir.path(), "x", &records(&payloads));
        let size = std::fs::metadata(&path).unwrap().len();
        for (checked, mapped) in [(false, false), (false, true), (true, false), (true, true)] {
            let index = options().mode(IndexMode::Memory).check_payloads(checked);
            let seen = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
            let counters = Arc::clone(&seen);
            let progress = move |bytes| {
                counters.0.fetch_add(bytes, Relaxed);
                counters.1.fetch_max(bytes, Relaxed);
                ControlFlow::Continue(())
            };
            let index = index.progress(progress);
            if mapped {
                // SAFETY: a file of this test; nothing writes to it.
                #[allow(unsafe_code)]
                drop(unsafe { DatasetOptions::new().index(index).open_mapped(&path) }.unwrap());
            } else {
                drop(open_shards(std::slice::from_ref(&path), &index).unwrap());
            }
            let (all, most) = (seen.0.load(Relaxed), seen.1.load(Relaxed));
            assert_eq!(all, size);
            // A record whose payload is not read is skipped at once.
            let late = if checked { REPORT / 4 } else { largest + 16 };
            assert!(most <= REPORT + late);
        }
    }
}

#[test]
fn column_progress_is_reported_per_mib() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write_shards(dir.path(), 1);
    let ds: Dataset = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let counters = Arc::clone(&seen);
    let progress = move |bytes| {
        counters.lock().unwrap().push(bytes);
        ControlFlow::Continue(())
    };
    ds.column("label", &ColumnOptions { progress: Some(Arc::new(progress)), ..ColumnOptions::default() })
        .unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().sum::<u64>(), std::fs::metadata(&paths[0]).unwrap().len());
    assert!(seen.iter().all(|bytes| *bytes < REPORT + 80_000), "{seen:?}");
}
