//! Sets of shards that are replaced, by runs that are killed.

use crate::common::*;
use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The sets that a run writes: two of several shards, or two of one.
const SETS: [&str; 4] = ["out/a@5.tfrecord", "out/b@5.tfrecord", "one/a.tfrecord", "one/b.tfrecord"];

/// Returns the arguments of a run that writes two of the sets.
fn args<'a>(out: &'a str, seed: &'a str, memory: &'a str) -> Vec<&'a str> {
    let split = ["--split", "a=0.7,b=0.3", "--shuffle", "--seed", seed, "--memory", memory];
    [&["reshard", "data", "--out", out, "--force"], &split[..]].concat()
}

/// Kills runs after random times. Each set is then missing, the old one, the new one, or refused. If the first set is the new one, no set is
/// the old one.
fn check_kills(kills: usize) {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for s in 0..4i64 {
        let range = 5000 * s..5000 * (s + 1);
        dir.shard(&format!("data/x-{s:05}-of-00004.tfrecord"), labels(range));
    }
    assert_eq!(dir.run(&["index", "data"]).code, 0);
    let mut random = 1u64;
    for (out, sets) in [("out/{split}@5.tfrecord", &SETS[..2]), ("one/{split}.tfrecord", &SETS[2..])] {
        for memory in ["1GB", "500kB"] {
            for with_old in [false, true] {
                let folder = dir.path(out.split_once('/').unwrap().0);
                let content = |seed: &str| {
                    let start = Instant::now();
                    let ran = dir.run(&args(out, seed, memory));
                    assert_eq!(ran.code, 0, "{}", ran.err);
                    (files(&folder), start.elapsed())
                };
                let ((old, _), (new, took)) = (content("1"), content("2"));
                let before = if with_old { old.clone() } else { Files::new() };
                let (mut seen, mut temporary) = ([0; 4], 0);
                for kill in 0..kills {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    restore(&folder, &before);
                    let mut run = dir.command(&args(out, "2", memory));
                    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                    // Most kills are near the end, where files get their names.
                    let part = 1.0 - ((random >> 40) as f64 / (1u64 << 24) as f64).powi(2);
                    std::thread::sleep(took.mul_f64(part) + Duration::from_micros(100));
                    let signal = if kill % 2 == 0 { "-KILL" } else { "-INT" };
                    let id = run.id().to_string();
                    let _ = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status();
                    run.wait().unwrap();
                    let left = temporary_files(&folder);
                    temporary += left.len();
                    assert!(with_old || left.is_empty(), "{left:?}");
                    left.iter().for_each(|path| fs::remove_file(path).unwrap());
                    let states: Vec<usize> =
                        sets.iter().map(|set| state(&dir.path(set), &folder, &old, &new)).collect();
                    // 1: old, 2: new.
                    assert!(!(states.contains(&1) && states.contains(&2)), "{out}: {states:?}");
                    assert!(with_old || !states.contains(&1), "{out}: {states:?}");
                    states.into_iter().for_each(|state| seen[state] += 1);
                }
                println!(
                    "`{out}`, memory {memory}: {kills} kills, {seen:?} missing, old, new and refused, {temporary} temporary files"
                );
                restore(&folder, &before);
                assert_eq!(content("2").0, new);
            }
        }
    }
}

/// Returns 0 for a set without files, 1 for the old one, 2 for the new one, 3 for one that is refused.
fn state(set: &Path, folder: &Path, old: &Files, new: &Files) -> usize {
    let found = files(folder);
    match tfseek::paths::resolve(set, false) {
        Ok(shards) => {
            let is = |wanted: &Files| {
                let name = |path: &Path| path.strip_prefix(folder).unwrap().to_path_buf();
                shards.iter().all(|path| found[&name(path)] == wanted[&name(path)])
            };
            if is(new) {
                2
            } else {
                assert!(is(old), "{} is a mixture", set.display());
                1
            }
        }
        Err(e) if e.to_string().contains("missing") => 3,
        Err(_) => 0,
    }
}

#[test]
fn a_killed_run_leaves_no_mixture_of_sets() {
    check_kills(8);
}

#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn hundreds_of_killed_sets() {
    check_kills(100);
}
