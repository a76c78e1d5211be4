//! Loaders of processes that may have few descriptors.
#![cfg(unix)]

use super::*;
use std::path::PathBuf;
use std::process::Command;
use tfseek::index::IndexOptions;

const DIR: &str = "TFSEEK_TEST_DIR";
const SHARDS: u64 = 300;

/// Not a test: the body of the child process. Two datasets of more shards than descriptors are read in turns.
#[test]
fn as_a_child() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let pattern = dir.join("*.tfrecord");
    let options = || {
        let index = IndexOptions::new().default_dirs(None, None).index_dir(dir.join("i"));
        DatasetOptions::new().index(index)
    };
    let opened = [options().open(&pattern).unwrap(), options().open(&pattern).unwrap()];
    let loader =
        |ds: &Dataset| ds.loader(&schema()).batch_size(7).shuffle(Shuffle::Global).seed(3).threads(4);
    for _ in 0..2 {
        let mut loaders = opened.each_ref().map(|ds| loader(ds).build().unwrap());
        let mut rows = [0; 2];
        loop {
            let mut done = 0;
            for (rows, loader) in rows.iter_mut().zip(&mut loaders) {
                match loader.next() {
                    Some(step) => *rows += step.unwrap().ids.len(),
                    None => done += 1,
                }
            }
            if done == 2 {
                break;
            }
        }
        assert_eq!(rows, [SHARDS as usize * 3; 2]);
    }
    // What is left is enough for other files of the process.
    let _others: Vec<_> = (0..64).map(|_| std::fs::File::open(dir.join("0.tfrecord")).unwrap()).collect();
}

#[test]
fn an_epoch_of_many_shards_needs_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    for s in 0..SHARDS {
        let mut bytes = Vec::new();
        (0..3).for_each(|i| put_record(&mut bytes, &payload(3 * s + i)).unwrap());
        std::fs::write(dir.path().join(format!("{s}.tfrecord")), bytes).unwrap();
    }
    let done = Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &tfseek_testkit::test_name(module_path!(), "as_a_child"), "--nocapture"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}");
}
