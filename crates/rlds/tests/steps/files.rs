//! Rules for files of tables: where they are found and written, and when they are built again.

use super::*;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tfseek::index::IndexOptions;
use tfseek::{ErrorKind, Warning};
use tfseek_testkit::formats;
use tfseek_testkit::shards::{names, set_mtime};

const T: u64 = 1_600_000_000_000_000_000;
/// Environment variable that makes a test the body of a child process.
const ROLE: &str = "TFSEEK_TEST_STEPS";

struct Case {
    dir: tempfile::TempDir,
    path: PathBuf,
    keys: Vec<EpisodeKey>,
    payloads: Vec<Vec<u8>>,
}

fn case() -> Case {
    let rng = &mut Rng::new(11);
    let keys = episodes::keys(rng);
    let payloads = episodes::payloads(rng, &keys, 30);
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &framed(&payloads));
    set_mtime(&path, T);
    Case { dir, path, keys, payloads }
}

impl Case {
    fn index(&self) -> IndexOptions {
        options().index_dir(self.dir.path().join("i"))
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("i/x.tfrs")
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.path).unwrap().len()
    }

    /// Returns the steps, after a comparison of windows with the records, and the number of scanned bytes.
    fn found(&self, index: IndexOptions, options: &EpisodeOptions) -> (Episodes, u64) {
        let ds = DatasetOptions::new().index(index).open(&self.path).unwrap();
        let bytes = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&bytes);
        let progress = move |n| {
            count.fetch_add(n, Relaxed);
            ControlFlow::Continue(())
        };
        let options = EpisodeOptions { progress: Some(Arc::new(progress)), ..options.clone() };
        let robot = Episodes::open(&ds, &episodes::checked(&self.keys), &options).unwrap();
        let decoded = decoded(&self.payloads, &self.keys);
        let spec = WindowSpec::random(&mut Rng::new(5), &self.keys, decoded.len() as u64);
        episodes::check(&spec, &self.keys, &robot, &decoded);
        (robot, bytes.load(Relaxed))
    }

    fn scanned(&self) -> u64 {
        let (robot, bytes) = self.found(self.index(), &EpisodeOptions::default());
        assert!(robot.warnings().is_empty(), "{:?}", robot.warnings());
        bytes
    }
}

#[test]
fn a_file_is_built_once_and_has_the_same_bytes_each_time() {
    let case = case();
    assert_eq!(case.scanned(), case.len());
    let first = fs::read(case.file()).unwrap();
    assert_eq!(case.scanned(), 0);
    let rebuild = EpisodeOptions { rebuild: true, ..EpisodeOptions::default() };
    assert_eq!(case.found(case.index(), &rebuild).1, case.len());
    assert_eq!(fs::read(case.file()).unwrap(), first);
    fs::remove_file(case.file()).unwrap();
    assert_eq!(case.found(case.index().mode(IndexMode::Rebuild), &EpisodeOptions::default()).1, case.len());
    assert_eq!(fs::read(case.file()).unwrap(), first);
    assert_eq!(names(&case.dir.path().join("i")), ["x.tfri", "x.tfrs"]);
}

/// Returns features of each division, and an episode of none, of three, and of ninety steps.
fn kept_episodes() -> (Vec<EpisodeKey>, Vec<Vec<u8>>) {
    let key = |name: &str, kind, values| EpisodeKey { name: name.into(), kind, values };
    let steps = |width| EpisodeValues::Steps { width };
    let keys = vec![
        key("action", DType::Float32, steps(2)),
        key("goal", DType::Bytes, EpisodeValues::Episode),
        key("image", DType::Bytes, steps(1)),
        key("points", DType::Int64, EpisodeValues::Divided { lengths: vec!["sizes".into()], width: 1 }),
        key("sizes", DType::Int64, steps(1)),
    ];
    let payload = |steps: i64| {
        let images: Vec<Vec<u8>> = (0..steps).map(|t| vec![t as u8; t as usize % 5]).collect();
        let sizes: Vec<i64> = (0..steps).map(|t| t % 3).collect();
        let builder = ExampleBuilder::new()
            .float("action", (0..2 * steps).map(|t| t as f32 / 8.0))
            .bytes("goal", [format!("{steps} steps")])
            .bytes("image", &images)
            .int64("points", (0..sizes.iter().sum()).map(|point| point * point * point))
            .int64("sizes", sizes);
        builder.encode().unwrap()
    };
    (keys, [0, 3, 90].map(payload).into())
}

/// `TFSEEK_WRITE_FORMATS=1` writes the files of this version.
#[test]
fn tables_of_all_versions_are_read_without_a_scan() {
    let shard_name = "episodes.tfrecord";
    let name = "episodes.tfrs";
    let copied = |shard: &[u8]| {
        let (keys, payloads) = kept_episodes();
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), "x", shard);
        set_mtime(&path, T);
        Case { dir, path, keys, payloads }
    };
    let case = copied(&framed(&kept_episodes().1));
    assert_eq!(case.scanned(), case.len());
    formats::compare(shard_name, &fs::read(&case.path).unwrap());
    formats::compare(name, &fs::read(case.file()).unwrap());
    for version in formats::versions(name) {
        let case = copied(&fs::read(version.join(shard_name)).unwrap());
        fs::create_dir(case.dir.path().join("i")).unwrap();
        fs::copy(version.join(name), case.file()).unwrap();
        assert_eq!(case.scanned(), 0, "{}", version.display());
    }
}

#[test]
fn a_changed_shard_and_other_features_need_other_tables() {
    let mut case = case();
    case.scanned();
    let first = fs::read(case.file()).unwrap();
    set_mtime(&case.path, T + 100);
    assert_eq!(case.scanned(), case.len());
    assert_ne!(fs::read(case.file()).unwrap(), first, "another time");
    case.payloads.reverse();
    fs::write(&case.path, framed(&case.payloads)).unwrap();
    assert_eq!(case.scanned(), case.len());
    let all = case.keys.clone();
    case.keys.truncate(1);
    assert_eq!((case.scanned(), case.scanned()), (case.len(), 0), "other features");
    case.keys = all;
    assert_eq!((case.scanned(), case.scanned()), (case.len(), 0));
    // Features that the records do not have that way.
    let last = fs::read(case.file()).unwrap();
    case.keys[0].values = EpisodeValues::Steps { width: 1 << 20 };
    let ds = DatasetOptions::new().index(case.index()).open(&case.path).unwrap();
    Episodes::open(&ds, &episodes::checked(&case.keys), &EpisodeOptions::default()).unwrap_err();
    assert_eq!(fs::read(case.file()).unwrap(), last);
}

#[test]
fn a_file_of_a_grown_shard_is_extended_by_a_scan_of_the_new_records() {
    let mut case = case();
    case.scanned();
    let before = case.len();
    let more = episodes::payloads(&mut Rng::new(3), &case.keys, 5);
    let mut file = fs::File::options().append(true).open(&case.path).unwrap();
    file.write_all(&framed(&more)).unwrap();
    drop(file);
    set_mtime(&case.path, T + 500);
    case.payloads.extend(more);
    assert_eq!(case.scanned(), case.len() - before);
    let extended = fs::read(case.file()).unwrap();
    let rebuild = EpisodeOptions { rebuild: true, ..EpisodeOptions::default() };
    case.found(case.index(), &rebuild);
    assert_eq!(fs::read(case.file()).unwrap(), extended);
    // With a damaged table all records are scanned.
    let mut bad = extended.clone();
    *bad.last_mut().unwrap() ^= 1;
    fs::write(case.file(), &bad).unwrap();
    let mut file = fs::File::options().append(true).open(&case.path).unwrap();
    let more = episodes::payloads(&mut Rng::new(4), &case.keys, 2);
    file.write_all(&framed(&more)).unwrap();
    case.payloads.extend(more);
    assert_eq!(case.scanned(), case.len());
    assert_eq!(case.scanned(), 0);
}

#[test]
fn a_file_may_be_next_to_the_shard_or_nowhere() {
    let case = case();
    let beside = EpisodeOptions { beside: true, ..EpisodeOptions::default() };
    let nowhere = options().mode(IndexMode::Memory);
    assert_eq!(case.found(nowhere.clone(), &beside).1, case.len());
    assert_eq!(names(&case.dir.path().join(".tfseek")), ["x.tfrs"]);
    // Without a configured folder, the file next to the shard is found.
    assert_eq!(case.found(options(), &EpisodeOptions::default()).1, 0);
    assert_eq!(case.found(options(), &beside).1, 0);
    assert_eq!(case.found(case.index(), &EpisodeOptions::default()).1, 0);
    assert!(!case.file().exists());
    let memory = EpisodeOptions { memory: true, ..EpisodeOptions::default() };
    fs::remove_dir_all(case.dir.path().join(".tfseek")).unwrap();
    for (index, options) in [(nowhere, EpisodeOptions::default()), (case.index(), memory)] {
        let (robot, _) = case.found(index, &options);
        assert!(robot.warnings().is_empty());
        assert!(!case.file().exists() && names(&case.dir.path().join(".tfseek")).is_empty());
    }
    // Without a place for it, a file that was requested is an error, and another one a warning.
    let blocked = options().index_dir(case.path.join("x"));
    let (robot, _) = case.found(blocked.clone(), &EpisodeOptions::default());
    assert!(matches!(robot.warnings(), [Warning::NotSaved { .. }]), "{:?}", robot.warnings());
    let ds = DatasetOptions::new().index(blocked).open(&case.path).unwrap();
    let e = Episodes::open(&ds, &episodes::checked(&case.keys), &beside).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Io(_)), "{e}");
}

#[test]
fn above_the_limit_steps_are_counted_with_a_warning() {
    let case = case();
    drop(DatasetOptions::new().index(case.index()).open(&case.path).unwrap());
    let limited = case.index().auto_limit(case.len() - 1);
    let (robot, _) = case.found(limited.clone(), &EpisodeOptions::default());
    let [warning @ Warning::Derived { kind: "steps_not_indexed", path, .. }] = robot.warnings() else {
        panic!("{:?}", robot.warnings())
    };
    assert!(*path == case.path && warning.to_string().contains(&format!("scans {} bytes", case.len())));
    assert!(robot.warnings()[0].to_string().contains("tfseek index --steps"));
    assert!(!case.file().exists());
    // A file on request has no limit, and is then found.
    let beside = EpisodeOptions { beside: true, ..EpisodeOptions::default() };
    assert_eq!(case.found(limited.clone(), &beside).1, case.len());
    let (robot, bytes) = case.found(limited, &EpisodeOptions::default());
    assert!(robot.warnings().is_empty() && bytes == 0 && case.file().exists());
    // A mode that scans nothing uses files, and counts without them.
    let require = case.index().mode(IndexMode::Require);
    assert_eq!(case.found(require.clone(), &EpisodeOptions::default()).1, 0);
    fs::remove_file(case.file()).unwrap();
    case.found(require, &EpisodeOptions::default());
    assert!(!case.file().exists());
}

#[test]
fn a_cancelled_build_leaves_nothing() {
    let case = case();
    let ds = DatasetOptions::new().index(case.index()).open(&case.path).unwrap();
    let before = names(&case.dir.path().join("i"));
    for calls in 0..3 {
        let left = AtomicU64::new(calls);
        let stop = move |_| match left.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)) {
            Ok(_) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        let options = EpisodeOptions { progress: Some(Arc::new(stop)), ..EpisodeOptions::default() };
        match Episodes::open(&ds, &episodes::checked(&case.keys), &options) {
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Cancelled), "{e}");
                assert_eq!(names(&case.dir.path().join("i")), before);
            }
            Ok(_) => assert!(calls > 0),
        }
    }
    assert!(names(&case.dir.path().join("i")).iter().all(|name| !name.starts_with(".tmp")));
}

/// More than 1 MiB of tables, of more than 1024 episodes: not read at once, and in several blocks.
#[test]
fn a_large_file_is_read_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let keys = episodes::checked(&[steps_key("n", DType::Int64, 1), steps_key("s", DType::Bytes, 1)]);
    let len = |e: usize| (e * 7) % 180;
    let text = |e: usize, t: usize| vec![(e + t) as u8; (e + t) % 4];
    let payload = |e: usize| {
        let numbers: Vec<i64> = (0..len(e)).map(|t| (e * 1000 + t) as i64).collect();
        let texts: Vec<_> = (0..len(e)).map(|t| text(e, t)).collect();
        ExampleBuilder::new().int64("n", numbers).bytes("s", texts).encode().unwrap()
    };
    let shard = |n: usize| framed(&(0..n).map(payload).collect::<Vec<_>>());
    fs::write(&path, shard(1900)).unwrap();
    let scanned = |n: u64| {
        let ds = files(dir.path()).open(&path).unwrap();
        let bytes = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&bytes);
        let progress = move |n| {
            count.fetch_add(n, Relaxed);
            ControlFlow::Continue(())
        };
        let options = EpisodeOptions { progress: Some(Arc::new(progress)), ..EpisodeOptions::default() };
        let robot = Episodes::open(&ds, &keys, &options).unwrap();
        assert!(robot.dataset().len() == n && robot.warnings().is_empty());
        (robot, bytes.load(Relaxed))
    };
    let check = |robot: &Episodes, n: usize| {
        let starts: Vec<u64> = (0..=n).map(|n| (0..n).map(len).sum::<usize>() as u64).collect();
        assert_eq!(robot.starts(), starts);
        let builder = robot.windows().rows("n", "n", &[0], Default::default());
        let windows = builder.rows("s", "s", &[0], Default::default()).build().unwrap();
        let mut buf = Vec::new();
        for i in (0..windows.dataset().len()).step_by(997) {
            let (e, t) = windows.locate(i).unwrap();
            let record = windows.dataset().read(i, &mut buf).unwrap();
            let example = record.example();
            assert_eq!(example.int64("n").unwrap().first(), Some((e * 1000 + t) as i64));
            assert_eq!(example.bytes("s").unwrap().first().unwrap(), text(e as usize, t as usize));
        }
    };
    let first = fs::metadata(&path).unwrap().len();
    assert_eq!(scanned(1900).1, first);
    let file = dir.path().join("i/x.tfrs");
    assert!(fs::metadata(&file).unwrap().len() > 1 << 20);
    let (robot, bytes) = scanned(1900);
    assert_eq!(bytes, 0);
    check(&robot, 1900);
    // A file in use may be deleted. Tables that can no longer be read are made of their records.
    let (open, good) = (scanned(1900).0, fs::read(&file).unwrap());
    fs::remove_file(&file).unwrap();
    check(&open, 1900);
    fs::write(&file, &good).unwrap();
    let open = scanned(1900).0;
    fs::File::options().write(true).open(&file).unwrap().set_len(1 << 18).unwrap();
    check(&open, 1900);
    fs::write(&file, &good).unwrap();
    fs::write(&path, shard(2100)).unwrap();
    let (robot, bytes) = scanned(2100);
    assert_eq!(bytes, fs::metadata(&path).unwrap().len() - first, "extended");
    check(&robot, 2100);
    check(&scanned(2100).0, 2100);
    let extended = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    scanned(2100);
    assert_eq!(fs::read(&file).unwrap(), extended);
}

/// Not a test: the body of the child processes.
#[test]
fn as_a_child() {
    let Some(dir) = std::env::var_os(ROLE).map(PathBuf::from) else { return };
    while !dir.join("go").exists() {
        std::thread::yield_now();
    }
    let keys = episodes::checked(&episodes::keys(&mut Rng::new(11)));
    let robot = find(&files(&dir).open(dir.join("x")).unwrap(), &keys);
    assert!(robot.warnings().is_empty() && robot.dataset().len() == 30);
}

#[test]
fn threads_and_processes_build_one_file() {
    let case = case();
    let child = || -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &tfseek_testkit::test_name(module_path!(), "as_a_child"), "--nocapture"])
            .env(ROLE, case.dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..6).map(|_| child()).collect();
    write(case.dir.path(), "go", b"");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| case.found(case.index(), &EpisodeOptions::default()));
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(names(&case.dir.path().join("i")), ["x.tfri", "x.tfrs"]);
    let found = fs::read(case.file()).unwrap();
    let rebuild = EpisodeOptions { rebuild: true, ..EpisodeOptions::default() };
    case.found(case.index(), &rebuild);
    assert_eq!(fs::read(case.file()).unwrap(), found);
}
