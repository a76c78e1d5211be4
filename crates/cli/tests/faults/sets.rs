//! Sets of shards that are replaced, by runs that are killed.

use crate::calls::CALLS;
use crate::common::*;
use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The sets that a run writes: two of several shards, or two of one.
pub(crate) const SETS: [&str; 4] =
    ["out/a@5.tfrecord", "out/b@5.tfrecord", "one/a.tfrecord", "one/b.tfrecord"];

/// Returns the arguments of a run that writes two of the sets.
pub(crate) fn args<'a>(out: &'a str, seed: &'a str, memory: &'a str) -> Vec<&'a str> {
    let split = ["--split", "a=0.7,b=0.3", "--shuffle", "--seed", seed, "--memory", memory];
    [&["reshard", "data", "--out", out, "--force"], &split[..]].concat()
}

/// Returns a folder with two indexed shards in `data`.
pub(crate) fn two_shards() -> Folder {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for s in 0..2i64 {
        dir.shard(&format!("data/x-{s:05}-of-00002.tfrecord"), labels(100 * s..100 * s + 100));
    }
    assert_eq!(dir.run(&["index", "data"]).code, 0);
    dir
}

/// Kills runs after random times. Each set is then missing, the old one, the new one, or refused. If the
/// first set is the new one, no set is the old one.
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
                    let mut run = dir.interruptible(&args(out, "2", memory));
                    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                    // Most kills are near the end, where files get their names.
                    let part = 1.0 - ((random >> 40) as f64 / (1u64 << 24) as f64).powi(2);
                    std::thread::sleep(took.mul_f64(part) + Duration::from_micros(100));
                    let signal = if kill % 2 == 0 { "-KILL" } else { "-INT" };
                    let id = run.id().to_string();
                    let _ = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status();
                    ended(&mut run);
                    let left = temporary_files(&folder);
                    temporary += left.len();
                    assert!(with_old || left.is_empty(), "{left:?}");
                    left.iter().for_each(|path| fs::remove_file(path).unwrap());
                    let states = check_states(&dir, sets, &before, &old, &new, out);
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

/// Runs with a failing call or a full disk. A run either writes the new sets, or ends with an error; each set
/// is then missing, the old one, the new one, or refused, and no temporary file is left.
fn check_faults(name: &str, next: fn(usize) -> usize) {
    let Some(shim) = Shim::new(name) else { return };
    let dir = two_shards();
    let (mut succeeded, mut failed) = (0, [0; 4]);
    for (out, sets) in [("out/{split}@5.tfrecord", &SETS[..2]), ("one/{split}.tfrecord", &SETS[2..])] {
        let folder = dir.path(out.split_once('/').unwrap().0);
        for memory in ["1GB", "3kB"] {
            let content = |seed: &str| {
                let ran = dir.run(&args(out, seed, memory));
                assert_eq!(ran.code, 0, "{}", ran.err);
                files(&folder)
            };
            let (old, new) = (content("1"), content("2"));
            for before in [&Files::new(), &old] {
                let mut check = |ran: &Ran, fault: &str, must_succeed: bool| {
                    let context = format!("{out}, memory {memory}, {fault}: {ran:?}");
                    assert!(!ran.err.contains("panicked") && (0..=4).contains(&ran.code), "{context}");
                    assert_eq!(temporary_files(&folder), Vec::<std::path::PathBuf>::new(), "{context}");
                    let states = check_states(&dir, sets, before, &old, &new, &context);
                    let is_new = states.iter().all(|&state| state == 2);
                    assert!(ran.code != 0 || is_new, "{states:?} {context}");
                    assert!(ran.code == 0 || !must_succeed && ran.err.contains("tfseek: "), "{context}");
                    succeeded += usize::from(ran.code == 0);
                    states.into_iter().filter(|_| ran.code != 0).for_each(|state| failed[state] += 1);
                };
                for &(call, errno) in CALLS {
                    let mut n = 1;
                    loop {
                        restore(&folder, before);
                        let ran = shim.failing(&dir, &args(out, "2", memory), call, n, errno);
                        let Some(ran) = ran else { break };
                        check(
                            &ran,
                            &format!("call {n} of {call} with {errno}"),
                            errno == EINTR || call == "close",
                        );
                        n = next(n);
                    }
                }
                let mut bytes = 0;
                loop {
                    restore(&folder, before);
                    let variables = [("TFSEEK_DISK", bytes.to_string())];
                    let ran = shim.run(&dir, &args(out, "2", memory), &variables);
                    // Temporary files and shards.
                    let is_enough = bytes > 4 * new.values().map(Vec::len).sum::<usize>();
                    check(&ran, &format!("a disk of {bytes} bytes"), is_enough);
                    if is_enough {
                        break;
                    }
                    bytes += 500 * next(1);
                }
            }
        }
    }
    println!("{name}: {succeeded} succeeded; sets after errors: {failed:?} missing, old, new and refused");
    assert!(failed[1] > 0);
}

#[test]
fn a_fault_leaves_no_mixture_of_sets() {
    check_faults("sets", |n| n * 4);
}

#[test]
#[ignore = "thousands of runs: `make test-slow`"]
fn every_fault_of_sets() {
    check_faults("every-set", |n| n + 1);
}

/// Returns the states of all sets: 0 for a set without files, 1 for the old one, 2 for the new one, 3 for one
/// that is refused. Refused old sets can be put back.
#[track_caller]
pub(crate) fn check_states(
    dir: &Folder,
    sets: &[&str],
    before: &Files,
    old: &Files,
    new: &Files,
    context: &str,
) -> Vec<usize> {
    let folder = dir.path(Path::new(sets[0]).parent().unwrap().to_str().unwrap());
    let states = || -> Vec<usize> {
        sets.iter().map(|set| state(&dir.path(set), &folder, before, old, new, context)).collect()
    };
    let found = states();
    assert!(!(found.contains(&1) && found.contains(&2)), "{found:?} {context}");
    assert!(!before.is_empty() || !found.contains(&1), "{found:?} {context}");
    if !before.is_empty() && found.contains(&3) {
        put_back(&folder);
        assert_eq!(states(), vec![1; sets.len()], "{found:?} {context}");
    }
    found
}

fn state(set: &Path, folder: &Path, before: &Files, old: &Files, new: &Files, context: &str) -> usize {
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
                assert!(is(old), "{} is a mixture: {context}", set.display());
                1
            }
        }
        Err(e) if !before.is_empty() => {
            assert!(e.to_string().contains(REPLACED), "{e}: {context}");
            3
        }
        Err(e) if e.to_string().contains("missing") => 3,
        Err(_) => 0,
    }
}

/// Kills runs before each call that changes a folder.
#[test]
fn a_run_that_is_killed_at_any_step_loses_no_set() {
    let Some(shim) = Shim::new("set-steps") else { return };
    let dir = two_shards();
    for (out, sets) in [("out/{split}@5.tfrecord", &SETS[..2]), ("one/{split}.tfrecord", &SETS[2..])] {
        let folder = dir.path(out.split_once('/').unwrap().0);
        let content = |seed: &str| {
            let ran = dir.run(&args(out, seed, "1GB"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert!(!folder.join(REPLACED).exists());
            files(&folder)
        };
        let (old, new) = (content("1"), content("2"));
        let (mut seen, mut messages) = ([0; 4], 0);
        for call in STEPS {
            for n in 1.. {
                restore(&folder, &old);
                let Some(ran) = shim.failing(&dir, &args(out, "2", "1GB"), call, n, KILL) else { break };
                assert_eq!(ran.code, -1, "{}", ran.err);
                let context = format!("{out}, killed before call {n} of {call}");
                let told = dir.run(&["get", sets[1], "0"]);
                let states = check_states(&dir, sets, &old, &old, &new, &context);
                if states[1] == 3 {
                    told.fails(1, &[sets[1], "interrupted", REPLACED]);
                    messages += 1;
                } else {
                    assert_eq!(told.code, 0, "{context}: {}", told.err);
                }
                states.into_iter().for_each(|state| seen[state] += 1);
                temporary_files(&folder).into_iter().for_each(|path| fs::remove_file(path).unwrap());
                assert!(content("2") == new, "{context}");
            }
        }
        println!("`{out}`: {seen:?} missing, old, new and refused");
        assert!(seen[0] == 0 && seen[1..].iter().all(|&n| n > 0) && messages > 0, "{seen:?}");
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
