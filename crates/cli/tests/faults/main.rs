//! Verbs that write, with failing system calls and kills.
//!
//! Each call of `write`, `fsync`, `rename`, `open` and `close` fails once, and runs are killed at random times. Afterwards the target
//! is unchanged, or new and complete.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

use common::*;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tfseek::ExampleBuilder;

const ENOENT: i32 = 2;
const EINTR: i32 = 4;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

/// Content of a target before a run.
const OLD: &[u8] = b"old";

/// Compiles the library that makes calls fail. Returns `None` and prints the reason if there is no C compiler or the library is not
/// loaded.
fn shim(name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
    let shim = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&shim, &source])
        .arg("-ldl")
        .output();
    match compiled {
        Ok(done) if done.status.success() => {}
        Ok(done) => panic!("{}", String::from_utf8_lossy(&done.stderr)),
        Err(e) => {
            println!("skipped: no C compiler (cc): {e}");
            return None;
        }
    }
    let dir = Folder::new();
    dir.shard("a.gz", labels(0..3));
    let fails = failing(&dir, &shim, &["unpack", "a.gz"], "open", 1, EIO);
    if fails.is_none() {
        println!("skipped: the command does not honour LD_PRELOAD");
    }
    fails.map(|_| shim)
}

/// Runs the command with the n-th `call` failing. Returns `None` if the run makes fewer calls.
fn failing(dir: &Folder, shim: &Path, args: &[&str], call: &str, n: usize, errno: i32) -> Option<Ran> {
    let fired = dir.path("fired");
    let _ = fs::remove_file(&fired);
    let mut command = dir.command(args);
    command
        .env("LD_PRELOAD", shim)
        .env("TFSEEK_FIRED", &fired)
        .env("TFSEEK_FAIL", format!("{call}:{n}:{errno}"));
    let ran = Ran::of(command.output().unwrap());
    fired.exists().then_some(ran)
}

fn temporary_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(temporary_files(&entry.path()));
        } else if entry.file_name().to_str().unwrap().starts_with(".tmp-") {
            found.push(entry.path());
        }
    }
    found
}

/// A verb and the file that it writes.
struct Case {
    args: &'static [&'static str],
    target: &'static str,
}

const CASES: [Case; 8] = [
    Case { args: &["index", "--rebuild", "a"], target: ".tfseek/a.tfri" },
    Case { args: &["index", "--rebuild", "--column", "label", "a"], target: ".tfseek/COLUMN" },
    Case { args: &["index", "--pack", "p", "a", "b"], target: ".tfseek/p.tfrp" },
    Case { args: &["index", "--format", "dali", "a"], target: "a.idx" },
    Case { args: &["unpack", "--force", "u.gz"], target: "u" },
    Case { args: &["parse", "--force", "-s", "schema", "-o", "out.npz", "a"], target: "out.npz" },
    Case {
        args: &["epoch", "-b", "64", "--threads", "0", "--json", "--state-out", "state", "a"],
        target: "state",
    },
    Case { args: &["salvage", "--force", "a", "s"], target: "s" },
];

impl Case {
    /// Returns a folder in which the verb can run, the path of the target, and the content that a run writes.
    fn prepare(&self) -> (Folder, PathBuf, Vec<u8>) {
        let dir = Folder::new();
        dir.shard("a", labels(0..300));
        dir.shard("b", labels(0..10));
        dir.shard("u.gz", labels(0..300));
        fs::write(dir.path("schema"), dir.run(&["schema", "--json", "a"]).out).unwrap();
        let ran = dir.run(self.args);
        assert_eq!(ran.code, 0, "{:?}: {}", self.args, ran.err);
        let mut target = dir.path(self.target);
        if self.target.ends_with("COLUMN") {
            let mut files = fs::read_dir(dir.path(".tfseek")).unwrap().map(|e| e.unwrap().path());
            target = files.find(|path| path.extension().is_some_and(|e| e != "tfri")).unwrap();
        }
        let want = fs::read(&target).unwrap();
        (dir, target, want)
    }
}

fn check_every_failing_call(shim: &Path, case: &Case) {
    let (dir, target, want) = case.prepare();
    let calls = [
        ("write", ENOSPC),
        ("write", EINTR),
        ("fsync", EIO),
        ("fsync", EINTR),
        ("rename", EIO),
        ("rename", EINTR),
        ("open", EMFILE),
        ("open", EINTR),
        ("close", EIO),
        ("ftruncate", EIO),
    ];
    for (call, errno) in calls {
        let mut n = 0;
        loop {
            n += 1;
            fs::write(&target, OLD).unwrap();
            let Some(ran) = failing(&dir, shim, case.args, call, n, errno) else { break };
            let run = format!("{:?}, call {n} of {call} with {errno}: {} {}", case.args, ran.code, ran.err);
            let content = fs::read(&target).unwrap();
            if ran.code == 0 {
                assert!(content == want, "success, but another content: {run}");
            } else {
                assert!((1..=4).contains(&ran.code) && ran.err.contains("tfseek: "), "{run}");
                assert!(!ran.err.contains("panicked"), "{run}");
                // A run that ends with an error still saves its state.
                let state =
                    case.target == "state" && serde_json::from_slice::<serde_json::Value>(&content).is_ok();
                assert!(state || content == OLD || content == want, "neither old nor new: {run}");
                assert!(errno != EINTR && call != "close", "a signal or a late error ends the run: {run}");
                // If the file was written and renamed before the error, the message states that it exists.
                let reported = ran.err.contains("the file is complete and renamed");
                assert!(reported || state || content == OLD, "new, but not reported: {run}");
            }
            assert!(temporary_files(&dir.path("")).is_empty(), "a temporary file is left: {run}");
        }
        assert!(n > 1 || call == "ftruncate", "{:?} does not call {call}", case.args);
    }
}

#[test]
fn a_failing_call_leaves_the_target_old_or_complete() {
    let Some(shim) = shim("calls") else { return };
    std::thread::scope(|scope| {
        let (first, second) = CASES.split_at(3);
        for cases in [first, second] {
            let shim = &shim;
            scope.spawn(move || cases.iter().for_each(|case| check_every_failing_call(shim, case)));
        }
    });
}

/// An old target that is as long as the new file does not count as the new file.
#[test]
fn a_lost_rename_is_an_error() {
    let Some(shim) = shim("lost") else { return };
    for case in &CASES {
        let (dir, target, want) = case.prepare();
        let old = vec![b'x'; want.len()];
        fs::write(&target, &old).unwrap();
        let ran = failing(&dir, &shim, case.args, "rename", 1, ENOENT).unwrap();
        assert_eq!(ran.code, 3, "{:?}: {}", case.args, ran.err);
        assert!(
            ran.err.contains("does not exist any more, so it was not renamed"),
            "{:?}: {}",
            case.args,
            ran.err
        );
        assert!(fs::read(&target).unwrap() == old, "{:?}", case.args);
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    let Some(shim) = shim("threads") else { return };
    let dir = Folder::new();
    let names = ["x-0", "x-1", "x-2", "x-3"];
    names.iter().for_each(|name| drop(dir.shard(name, labels(0..50))));
    for (threads, args) in [
        (4, &["epoch", "x-?", "-b", "10", "--threads", "3"][..]),
        (4, &["verify", "x-?", "-j", "4"]),
        (4, &["index", "x-?", "-j", "4"]),
        (4, &["index", "x-?", "-j", "4", "--format", "dali"]),
    ] {
        for n in 1..=threads {
            let ran = failing(&dir, &shim, args, "thread", n, EAGAIN);
            let ran = ran.unwrap_or_else(|| panic!("{args:?} starts fewer than {n} threads"));
            assert_eq!(ran.code, 3, "{args:?} {n}: {}", ran.err);
            assert!(ran.err.contains("cannot start "), "{args:?} {n}: {}", ran.err);
        }
    }
}

#[test]
fn a_killed_run_leaves_the_target_old_or_complete() {
    let mut random = 1u64;
    for case in [&CASES[0], &CASES[4], &CASES[5]] {
        let (dir, target, _) = case.prepare();
        // With this number of records, a run takes longer than the start of the process.
        dir.shard("a", (0..20_000).map(label));
        dir.shard("u.gz", (0..20_000).map(label));
        let start = Instant::now();
        assert_eq!(dir.run(case.args).code, 0);
        let (took, want) = (start.elapsed(), fs::read(&target).unwrap());
        let mut seen = [0; 2];
        for _ in 0..30 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            fs::write(&target, OLD).unwrap();
            let mut run = dir.command(case.args).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(
                took.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64) + Duration::from_micros(100),
            );
            run.kill().unwrap();
            run.wait().unwrap();
            let content = fs::read(&target).unwrap();
            assert!(content == OLD || content == want, "{:?}: {} bytes", case.args, content.len());
            seen[usize::from(content == want)] += 1;
            // A killed run leaves a hidden file with a temporary name: that of an index, or of an output that had to have a name.
            temporary_files(&dir.path("")).iter().for_each(|path| fs::remove_file(path).unwrap());
        }
        println!("{:?}: {seen:?} old and new", case.args);
    }
}

/// Interrupted while they read a pipe, the verbs that write an output leave neither a part of it nor a temporary file.
#[test]
fn an_interrupted_run_leaves_nothing() {
    let dir = Folder::new();
    let payload = |k: u8| ExampleBuilder::new().bytes("b", [vec![k; 1 << 20]]).encode().unwrap();
    // More than `parse` keeps in memory.
    let bytes = fs::read(dir.shard("a", (0..40).map(payload))).unwrap();
    let packed = fs::read(dir.shard("a.gz", labels(0..50_000))).unwrap();
    fs::write(dir.path("s"), dir.run(&["schema", "--json", "a"]).out).unwrap();
    fs::create_dir(dir.path("out")).unwrap();
    let runs: [(&[&str], &[u8]); 3] = [
        (&["parse", "-", "-s", "s", "-b", "4", "-o", "out/x"], &bytes),
        (&["parse", "-", "-s", "s", "-b", "4", "--batches", "-o", "out/x"], &bytes),
        (&["unpack", "-", "-o", "out/x"], &packed[..packed.len() - 100]),
    ];
    for (args, input) in runs {
        for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-KILL", 9)] {
            for old in [None, Some(OLD)] {
                let _ = fs::remove_file(dir.path("out/x"));
                if let Some(old) = old {
                    fs::write(dir.path("out/x"), old).unwrap();
                }
                let mut command = dir.command(args);
                command.args(old.map(|_| "--force"));
                let mut run = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
                // The pipe stays open, so the run waits for more.
                let mut pipe = run.stdin.take().unwrap();
                pipe.write_all(input).unwrap();
                let names = || -> Vec<_> {
                    let entries = fs::read_dir(dir.path("out")).unwrap().map(|e| e.unwrap().file_name());
                    entries.filter(|name| name != "x").collect()
                };
                let named = !names().is_empty();
                let kill = Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap();
                assert!(kill.success());
                let status = run.wait().unwrap();
                assert_eq!(status.signal(), Some(number), "{args:?} {status}");
                assert_eq!(fs::read(dir.path("out/x")).ok().as_deref(), old, "{args:?}");
                if named {
                    println!("skipped: the file system has no files without a name");
                    return;
                }
                assert!(names().is_empty(), "{args:?} {signal}: {:?}", names());
            }
        }
    }
}
