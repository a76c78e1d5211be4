//! Many processes that use one index, and processes that are killed while they write one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tfseek::IndexMode;
use tfseek::index::*;
use tfseek_testkit::shards::*;

/// Environment variable with the role of a child process. The test binary runs itself with it set.
const ROLE: &str = "TFSEEK_TEST_ROLE";

fn child(role: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &tfseek_testkit::test_name(module_path!(), "as_a_child"), "--nocapture"])
        .env(ROLE, role)
        .env("TFSEEK_TEST_DIR", dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn in_index_dir(dir: &Path) -> IndexOptions {
    options().index_dir(dir.join("index"))
}

fn paths(dir: &Path) -> Vec<PathBuf> {
    (0..3).map(|s| dir.join(format!("train-{s}"))).collect()
}

/// Not a test: the body of the child processes.
#[test]
fn as_a_child() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let dir = PathBuf::from(std::env::var_os("TFSEEK_TEST_DIR").unwrap());
    match role.to_str().unwrap() {
        "build" => {
            // All children start at once.
            while !dir.join("go").exists() {
                std::thread::yield_now();
            }
            let opened = open_shards(&paths(&dir), &in_index_dir(&dir)).unwrap();
            assert!(opened.warnings.is_empty(), "{:?}", opened.warnings);
            opened.indexes.iter().for_each(|i| i.verify().unwrap());
        }
        "write" => {
            let options = in_index_dir(&dir).mode(IndexMode::Rebuild);
            loop {
                open(&dir.join("train-0"), &options).unwrap();
            }
        }
        other => panic!("{other}"),
    }
}

#[test]
fn sixteen_processes_build_one_file() {
    let dir = tempfile::tempdir().unwrap();
    for (s, path) in paths(dir.path()).iter().enumerate() {
        fs::write(path, equal(30_000 + s, s)).unwrap();
    }
    let children: Vec<Child> = (0..16).map(|_| child("build", dir.path())).collect();
    fs::write(dir.path().join("go"), b"").unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(names(&dir.path().join("index")), ["train-0.tfri", "train-1.tfri", "train-2.tfri"]);
    let memory = options().mode(IndexMode::Memory);
    for path in paths(dir.path()) {
        let file = dir.path().join("index").join(path.file_name().unwrap()).with_extension("tfri");
        assert_eq!(fs::read(file).unwrap(), sidecar(&open(&path, &memory).unwrap().indexes[0]));
    }
}

#[test]
fn a_killed_writer_leaves_no_partial_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train-0");
    fs::write(&path, equal(60_000, 1)).unwrap();
    let index_dir = dir.path().join("index");
    let rounds = std::env::var("TFSEEK_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let (mut accepted, mut left) = (0, 0);
    for round in 0..rounds {
        let mut child = child("write", dir.path());
        // Waits until the child writes, then for a delay that varies between rounds.
        let start = Instant::now();
        while names(&index_dir).is_empty() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(round * 7919 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = names(&index_dir);
        left += usize::from(now.iter().any(|n| n.starts_with(".tmp-")));
        if now.iter().any(|n| n == "train-0.tfri") {
            let opened = open(&path, &in_index_dir(dir.path()).mode(IndexMode::Require)).unwrap();
            assert!(opened.warnings.is_empty());
            opened.indexes[0].verify().unwrap();
            accepted += 1;
        }
        assert!(now.iter().all(|n| n.starts_with(".tmp-") || n == "train-0.tfri"), "{now:?}");
        fs::remove_dir_all(&index_dir).unwrap_or_default();
    }
    assert!(accepted > 0, "some writers completed");
    println!("{rounds} kills: {accepted} whole files, {left} temporary ones left");
}

#[test]
fn a_glob_next_to_the_data_matches_only_shards() {
    let dir = tempfile::tempdir().unwrap();
    for path in paths(dir.path()) {
        fs::write(path, equal(5, 5)).unwrap();
    }
    let glob = || -> Vec<PathBuf> {
        let pattern = dir.path().join("train-*");
        glob::glob(pattern.to_str().unwrap()).unwrap().map(|p| p.unwrap()).collect()
    };
    open_shards(&paths(dir.path()), &options()).unwrap();
    assert_eq!(names(dir.path()).len(), 3, "opening creates no files");
    built_beside(&paths(dir.path()), &options()).unwrap();
    write_pack("train-all", &paths(dir.path()), &options()).unwrap();
    assert_eq!(glob(), paths(dir.path()));
}

#[test]
fn threads_share_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(40_000, 2));
    let options = in_index_dir(dir.path());
    open(&path, &options).unwrap();
    let index = open(&path, &options).unwrap().indexes.remove(0);
    std::thread::scope(|scope| {
        for t in 0..4 {
            let index = index.clone();
            scope.spawn(move || {
                for i in (t..40_000).step_by(7) {
                    assert_eq!(index.locate(i).unwrap(), Span { offset: i * 18, payload_len: 2 });
                }
            });
        }
    });
}

/// A set that is replaced at any moment while it opens is one of the two sets, or an error.
#[cfg(unix)]
#[test]
fn a_set_that_is_replaced_while_it_opens_is_no_mixture() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// Replaces the set by one with `n` records per shard.
    fn write(dir: &Path, names: &[PathBuf], n: u8) {
        for name in names {
            let new = dir.join("new");
            let mut writer = tfseek::Writer::create(&new).unwrap();
            (0..n).for_each(|i| writer.write(&[n, i]).unwrap());
            writer.close().unwrap();
            fs::rename(&new, name).unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..4).map(|s| dir.path().join(format!("x-{s:05}-of-00004.tfrecord"))).collect();
    let (mut opened, mut refused) = ([0; 2], 0);
    for k in 0..20 {
        write(dir.path(), &names, 50);
        let (calls, folder, paths) = (AtomicUsize::new(0), dir.path().to_path_buf(), names.clone());
        let progress = move |_| {
            if calls.fetch_add(1, Relaxed) == k {
                write(&folder, &paths, 60);
            }
            std::ops::ControlFlow::Continue(())
        };
        let index = IndexOptions::new().mode(IndexMode::Memory).threads(1).progress(progress);
        match tfseek::DatasetOptions::new().index(index).open(&names) {
            Ok(dataset) => {
                assert!([200, 240].contains(&dataset.len()), "a mixture after {k} calls: {}", dataset.len());
                opened[usize::from(dataset.len() == 240)] += 1;
            }
            Err(e) => {
                refused += 1;
                assert!(e.to_string().contains("-of-00004.tfrecord: "), "{e}");
            }
        }
    }
    assert!(opened[0] > 0 && opened[1] > 0 && refused > 0, "{opened:?} {refused}");
}
