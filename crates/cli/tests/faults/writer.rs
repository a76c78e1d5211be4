//! `Writer` in a process of its own, with failing calls and kills.

use crate::common::*;
use crate::support::*;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Damage, Dataset, DatasetOptions, IndexMode};
use tfseek_tools::set::{SetOptions, SetWriter, TaskAttempt, TaskOptions, TaskWriter, commit};

/// Environment variable with the kind of the file that a child process writes. The test binary runs itself
/// with it set.
const KIND: &str = "TFSEEK_TEST_KIND";
pub(crate) const KINDS: [&str; 7] = ["plain", "gzip", "zlib", "members", "indexed", "shards", "appended"];
/// Kinds of sets of three shards. The second one is written by tasks, whose files have names before they are
/// complete, the third one in order, as `tfseek.write` of Python does.
pub(crate) const SETS: [&str; 3] = ["shards", "tasks", "in-order"];
const RECORDS: u64 = 3000;

fn options(kind: &str) -> WriterOptions {
    let compression = match kind {
        "gzip" | "members" => Compression::Gzip,
        "zlib" => Compression::Zlib,
        _ => Compression::None,
    };
    WriterOptions {
        compression,
        members: (kind == "members").then_some(100_000),
        append: kind == "appended",
        index: (kind == "indexed" || SETS.contains(&kind)).then(IndexOptions::new),
        ..WriterOptions::default()
    }
}

/// Returns a payload that does not compress well.
fn payload(i: u64) -> Vec<u8> {
    let mut x = i + 1;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    (0..200).map(|_| next()).collect()
}

fn write_tasks(records: u64) -> Result<(), Box<dyn std::error::Error>> {
    let options = TaskOptions::default();
    let mut files = Vec::new();
    for task in 0..3 {
        let who = TaskAttempt { job: "j".into(), task: task.to_string(), attempt: "0".into() };
        let mut writer = TaskWriter::create(Path::new("."), &who, &options)?;
        (task..records).step_by(3).try_for_each(|i| writer.write(&payload(i)))?;
        files.push(writer.close()?);
    }
    commit(Path::new("out.tfrecord"), "j", &files, &options, true)?;
    Ok(())
}

/// Writes the records of the first shard, then those of the second one. Their number is not known before.
fn write_in_order(records: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut options = SetOptions::new("out@3.tfrecord");
    options.index = true;
    options.force = true;
    let mut writer = SetWriter::new(&options)?;
    for shard in 0..3 {
        (shard..records).step_by(3).try_for_each(|i| writer.write(&payload(i)))?;
    }
    writer.close(&|_| std::ops::ControlFlow::Continue(()))?;
    Ok(())
}

fn write(kind: &str, records: u64) -> Result<(), Box<dyn std::error::Error>> {
    match kind {
        "tasks" => return write_tasks(records),
        "in-order" => return write_in_order(records),
        _ => {}
    }
    if kind == "shards" {
        let mut shards = options(kind).create_shards("out", ".tfrecord", 3)?;
        (0..records).try_for_each(|i| shards.write(&payload(i)))?;
        shards.close()?;
        return Ok(());
    }
    let appends = kind == "appended";
    let mut writer = options(kind).create("out")?;
    for i in if appends { 10 } else { 0 }..records {
        writer.write(&payload(i))?;
        if i == records / 2 {
            writer.sync()?;
        }
    }
    Ok(writer.close()?)
}

/// Not a test: the body of the child process. Calls fail after the file of `TFSEEK_ARM` was opened.
#[test]
fn as_a_child() {
    let Ok(kind) = std::env::var(KIND) else { return };
    drop(File::open(std::env::var("TFSEEK_ARM").unwrap()).unwrap());
    if let Err(e) = write(&kind, RECORDS) {
        eprintln!("tfseek: {e}");
        std::process::exit(3);
    }
    std::process::exit(0);
}

/// A folder with files of 10 records, which a child replaces by files of [`RECORDS`].
pub(crate) struct Target {
    kind: &'static str,
    pub(crate) dir: Folder,
    pub(crate) old: Files,
    names: Vec<String>,
}

impl Target {
    pub(crate) fn new(kind: &'static str) -> Target {
        let dir = Folder::new();
        fs::write(dir.path("arm"), "").unwrap();
        let ran = Ran::limited(Target::command(&dir, kind), &dir);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let mut names = vec!["out".to_owned()];
        if SETS.contains(&kind) {
            names = (0..3).map(|s| format!("out-{s:05}-of-00003.tfrecord")).collect();
        }
        let found: Vec<PathBuf> = files(&dir.path("")).into_keys().collect();
        let is_index = |path: &PathBuf| path.starts_with(".tfseek");
        assert_eq!(found.iter().filter(|path| !is_index(path)).count(), names.len() + 1, "{found:?}");
        // The same names, with 10 records.
        let old = tempfile::tempdir().unwrap();
        for (s, name) in names.iter().enumerate() {
            let mut writer = options(kind).create(old.path().join(name)).unwrap();
            (0..10).for_each(|i| writer.write(&payload(i * names.len() as u64 + s as u64)).unwrap());
            writer.close().unwrap();
        }
        let old = files(old.path());
        restore(&dir.path(""), &old);
        fs::write(dir.path("arm"), "").unwrap();
        let old = files(&dir.path(""));
        assert_eq!(old.len(), found.len());
        Target { kind, dir, old, names }
    }

    fn command(dir: &Folder, kind: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "writer::as_a_child", "--nocapture"]).current_dir(dir.path(""));
        command.env(KIND, kind).env("TFSEEK_ARM", dir.path("arm")).env("RUST_BACKTRACE", "0");
        command
    }

    pub(crate) fn child(&self) -> Command {
        Target::command(&self.dir, self.kind)
    }

    /// Checks that each file has the old or the new records, with the index that was found or a new one, and
    /// that a set is the old or the new one, or refused; the old one is then put back. Returns true if all
    /// files are new.
    #[track_caller]
    pub(crate) fn check(&self, context: &str) -> bool {
        let is_set = SETS.contains(&self.kind);
        let refused =
            if is_set { tfseek::paths::resolve(self.dir.path("out@3.tfrecord"), false).err() } else { None };
        if let Some(e) = &refused {
            assert!(e.to_string().contains(REPLACED), "{e}: {context}");
            put_back(&self.dir.path(""));
        }
        let found = files(&self.dir.path(""));
        for path in found.keys() {
            let is_known = self.old.contains_key(path) || is_set && path.starts_with(REPLACED);
            assert!(is_known, "{} is left: {context}", path.display());
        }
        let mut index = IndexOptions::new().index_dir(self.dir.path("index")).threads(1);
        let appends = self.kind == "appended";
        if appends {
            index = index.damage(Damage::Skip);
        }
        let mut complete = 0;
        for (s, name) in self.names.iter().enumerate() {
            let ds = DatasetOptions::new().index(index.clone()).open(self.dir.path(name));
            let ds = ds.unwrap_or_else(|e| panic!("{e}: {context}"));
            let shards = self.names.len() as u64;
            let is_len = [10, RECORDS / shards].contains(&ds.len()) || appends && ds.len() > 10;
            assert!(is_len, "{} records: {context}", ds.len());
            let mut buf = Vec::new();
            // Of appended records that were not synced, some may be damaged.
            let mut wanted = 0;
            for i in (0..ds.len()).step_by(if appends { 1 } else { 7 }) {
                let record = ds.read(i, &mut buf).unwrap_or_else(|e| panic!("{e}: {context}"));
                wanted = if appends && i >= 10 { wanted + 1 } else { i * shards + s as u64 };
                while appends && i >= 10 && wanted < RECORDS && record.payload() != payload(wanted) {
                    wanted += 1;
                }
                assert!(record.payload() == payload(wanted), "record {i}: {context}");
            }
            complete += usize::from(if appends { ds.len() == RECORDS } else { ds.len() > 10 });
        }
        let _ = fs::remove_dir_all(self.dir.path("index"));
        assert!(refused.is_none() || complete == 0, "not the old set: {context}");
        assert!(!is_set || [0, self.names.len()].contains(&complete), "a mixture: {context}");
        complete == self.names.len()
    }

    /// Checks that all files are new and have their indexes, if the kind has indexes.
    #[track_caller]
    fn check_success(&self, context: &str) {
        assert!(self.check(context), "success, but not all files are new: {context}");
        if self.kind == "indexed" || SETS.contains(&self.kind) {
            let index = IndexOptions::new().mode(IndexMode::Require);
            for name in &self.names {
                let opened: tfseek::Result<Dataset> =
                    DatasetOptions::new().index(index.clone()).open(self.dir.path(name));
                assert!(opened.is_ok(), "{:?}: {context}", opened.err());
            }
        }
    }
}

/// Runs a child with these variables of the library. Returns true if it succeeded.
fn run(shim: &Shim, target: &Target, variables: &[(&str, String)]) -> bool {
    restore(&target.dir.path(""), &target.old);
    let mut command = target.child();
    shim.preload(&mut command, variables);
    let ran = Ran::limited(command, &target.dir);
    let context = format!("{} {variables:?}: {} {}", target.kind, ran.code, ran.err);
    assert!(!ran.err.contains("panicked"), "{context}");
    if ran.code == 0 {
        target.check_success(&context);
    } else {
        assert!(ran.code == 3 && (ran.err.contains("out") || ran.err.contains(".tfseek")), "{context}");
        target.check(&context);
    }
    ran.code == 0
}

const CALLS: &[(&str, i32)] = &[
    ("write", ENOSPC),
    ("write", EINTR),
    ("fsync", EIO),
    ("rename", EIO),
    ("link", EIO),
    ("mkdir", EACCES),
    ("open", EMFILE),
    ("open", EINTR),
    ("close", EIO),
    ("dup", EMFILE),
    ("stat", EIO),
    ("stat", EACCES),
    ("realpath", EIO),
    ("readlink", EIO),
    ("read", EIO),
];

fn check_writers(name: &str, next: fn(usize) -> usize, step: usize) {
    let Some(shim) = Shim::new(name) else { return };
    let mut seen = [0; 2];
    let mut count = |success: bool| seen[usize::from(!success)] += 1;
    for kind in KINDS {
        let target = Target::new(kind);
        let fired = target.dir.path("fired");
        for (call, errno) in CALLS {
            let mut n = 1;
            loop {
                let fail = format!("{call}:{n}:{errno}");
                let fired = fired.display().to_string();
                let success = run(&shim, &target, &[("TFSEEK_FAIL", fail), ("TFSEEK_FIRED", fired.clone())]);
                if fs::remove_file(fired).is_err() {
                    assert!(success);
                    break;
                }
                assert!(success || *errno != EINTR && *call != "close", "{kind} {call}");
                count(success);
                n = next(n);
            }
        }
        for (fault, value) in [("TFSEEK_SHORT", 7), ("TFSEEK_SHORT", 4096), ("TFSEEK_INTERRUPT", 1)] {
            assert!(run(&shim, &target, &[(fault, value.to_string())]), "{kind} {fault}");
            count(true);
        }
        for bytes in (0..).step_by(step) {
            let success = run(&shim, &target, &[("TFSEEK_DISK", bytes.to_string())]);
            count(success);
            if bytes > 700_000 {
                assert!(success, "{kind} {bytes}");
                break;
            }
        }
    }
    println!("writers of {} kinds of files: {seen:?} succeeded and errors", KINDS.len());
}

#[test]
fn a_failing_call_of_a_writer() {
    check_writers("writer", |n| n * 3, 150_000);
}

#[test]
#[ignore = "thousands of runs: `make test-slow`"]
fn every_failing_call_of_a_writer() {
    check_writers("every-call-of-a-writer", |n| n + 1, 9_000);
}

fn check_kills(kills: usize) {
    let mut random = 3u64;
    for kind in KINDS {
        let target = Target::new(kind);
        let start = Instant::now();
        assert!(target.child().stdout(Stdio::null()).status().unwrap().success());
        let took = start.elapsed();
        let (mut seen, mut left) = ([0; 2], 0);
        for kill in 0..kills {
            restore(&target.dir.path(""), &target.old);
            let mut run = target.child().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wait = took.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64);
            std::thread::sleep(wait + Duration::from_micros(100));
            run.kill().unwrap();
            run.wait().unwrap();
            for path in temporary_files(&target.dir.path("")) {
                left += 1;
                fs::remove_file(path).unwrap();
            }
            seen[usize::from(target.check(&format!("{kind}, kill {kill}")))] += 1;
        }
        // The next run succeeds. A torn tail is refused.
        if kind == "appended" {
            restore(&target.dir.path(""), &target.old);
        }
        let ran = Ran::limited(target.child(), &target.dir);
        assert_eq!(ran.code, 0, "{}", ran.err);
        target.check_success("after the kills");
        println!("writer of {kind}: {kills} kills, {seen:?} old and new, {left} temporary files");
    }
}

/// Kills writers of sets before each call that changes a folder.
#[test]
fn a_writer_that_is_killed_at_any_step_loses_no_set() {
    let Some(shim) = Shim::new("writer-steps") else { return };
    for kind in SETS {
        let target = Target::new(kind);
        let folder = target.dir.path("");
        let (mut runs, mut new) = (0, 0);
        for call in STEPS {
            for n in 1.. {
                restore(&folder, &target.old);
                let fired = target.dir.path("fired");
                let _ = fs::remove_file(&fired);
                let mut command = target.child();
                let fail = format!("{call}:{n}:{KILL}");
                shim.preload(
                    &mut command,
                    &[("TFSEEK_FAIL", fail), ("TFSEEK_FIRED", fired.display().to_string())],
                );
                let ran = Ran::limited(command, &target.dir);
                if fs::remove_file(fired).is_err() {
                    break;
                }
                assert_eq!(ran.code, -1, "{}", ran.err);
                temporary_files(&folder).into_iter().for_each(|path| fs::remove_file(path).unwrap());
                let context = format!("{kind}, killed before call {n} of {call}");
                new += usize::from(target.check(&context));
                runs += 1;
                // The next run succeeds, and cleans up.
                let ran = Ran::limited(target.child(), &target.dir);
                assert_eq!(ran.code, 0, "{context}: {}", ran.err);
                target.check_success(&context);
                assert!(!folder.join(REPLACED).exists(), "{context}");
            }
        }
        println!("writer of {kind}: {runs} kills, {new} left the new set");
        assert!(new > 0 && new < runs);
    }
}

#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    check_kills(8);
}

#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn hundreds_of_kills_of_a_writer() {
    check_kills(200);
}
