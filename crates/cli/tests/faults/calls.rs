//! The n-th call of one function fails.

use crate::cases::*;
use crate::common::*;
use crate::support::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The calls that fail, and their errors.
pub(crate) const CALLS: &[(&str, i32)] = &[
    ("write", ENOSPC),
    ("write", EINTR),
    ("fsync", EIO),
    ("fsync", EINTR),
    ("rename", EIO),
    ("rename", EINTR),
    ("link", EIO),
    ("mkdir", EACCES),
    ("open", EMFILE),
    ("open", EINTR),
    ("open", EACCES),
    ("close", EIO),
    ("lseek", EIO),
    ("dup", EMFILE),
    ("read", EIO),
    ("read", EINTR),
    ("stat", EIO),
    ("stat", EACCES),
    ("mmap", ENOMEM),
    ("opendir", EACCES),
    ("readdir", EIO),
    ("realpath", EIO),
    ("thread", EAGAIN),
];

/// The numbers of runs that succeeded and that ended with an error, by call.
type Counts = Mutex<BTreeMap<&'static str, [usize; 2]>>;

/// Makes the n-th call fail for n = 1, `next(1)`, `next(next(1))`, .. until the run makes fewer calls.
fn check_failing_calls(shim: &Shim, case: &Case, next: fn(usize) -> usize, counts: &Counts) {
    let prepared = case.prepare();
    for &(call, errno) in CALLS {
        let mut n = 1;
        loop {
            prepared.restore();
            let Some(ran) = shim.failing(&prepared.dir, &prepared.args(), call, n, errno) else { break };
            let fault = format!("call {n} of {call} with {errno}");
            let seen = prepared.check(&ran, &fault);
            // An error of `close` comes too late to matter, because the file was synced.
            let must_succeed = errno == EINTR || call == "close";
            assert!(seen == Seen::Success || !must_succeed, "`{}`, {fault}: {}", case.args, ran.err);
            counts.lock().unwrap().entry(call).or_default()[usize::from(seen == Seen::Error)] += 1;
            n = next(n);
        }
    }
}

fn check_all(name: &str, cases: &[Case], next: fn(usize) -> usize) {
    let Some(shim) = Shim::new(name) else { return };
    let counts = Counts::default();
    let left = Mutex::new(cases.iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(case) = left.lock().unwrap().next() else { return };
                    check_failing_calls(&shim, case, next, &counts);
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    for (call, _) in CALLS {
        let is_called = counts.contains_key(call)
            || *call == "dup"
            || cases.len() == READERS.len() && ["link", "fsync"].contains(call);
        assert!(is_called, "no verb calls {call}");
    }
    let [succeeded, failed] = [0, 1].map(|k| counts.values().map(|count| count[k]).sum::<usize>());
    for (call, [succeeded, failed]) in counts {
        println!("{call}: {succeeded} succeeded, {failed} errors");
    }
    println!("{name}: {} verbs, {succeeded} succeeded, {failed} errors", cases.len());
}

#[test]
fn a_failing_call_leaves_the_target_old_or_complete() {
    check_all("writers", WRITERS, |n| n * 2);
}

#[test]
fn a_failing_call_is_an_error_or_has_no_effect() {
    check_all("readers", READERS, |n| n * 3);
}

/// The report has the size of a file. It was 0 when the call that returns it failed.
#[test]
fn every_failing_stat_of_reshard() {
    let Some(shim) = Shim::new("stat-of-reshard") else { return };
    let case = WRITERS.iter().find(|case| case.args == "reshard --force --shuffle a --out r").unwrap();
    let (prepared, mut n) = (case.prepare(), 1);
    loop {
        prepared.restore();
        let Some(ran) = shim.failing(&prepared.dir, &prepared.args(), "stat", n, EIO) else { break };
        prepared.check(&ran, &format!("call {n} of stat"));
        n += 1;
    }
    assert!(n > 20, "{n}");
}

#[test]
#[ignore = "thousands of runs: `make test-slow`"]
fn every_failing_call() {
    check_all("every-writer", WRITERS, |n| n + 1);
    check_all("every-reader", READERS, |n| n + 1);
}

/// An old target that is as long as the new file does not count as the new file.
#[test]
fn a_lost_rename_is_an_error() {
    let Some(shim) = Shim::new("lost") else { return };
    for case in WRITERS {
        let mut prepared = case.prepare();
        prepared.lengthen();
        let ran = shim.failing(&prepared.dir, &prepared.args(), "rename", 1, ENOENT).unwrap();
        assert_eq!(ran.code, 3, "{}: {}", case.args, ran.err);
        let message = "does not exist any more, so it was not renamed";
        assert!(ran.err.contains(message), "{}: {}", case.args, ran.err);
        // Other shards are indexed.
        if !case.args.contains("data") {
            prepared.check_unchanged();
        }
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    let Some(shim) = Shim::new("threads") else { return };
    let dir = Folder::new();
    let names = ["x-0", "x-1", "x-2", "x-3"];
    names.iter().for_each(|name| drop(dir.shard(name, labels(0..50))));
    std::fs::write(dir.path("schema"), "feature { name: \"label\" type: INT }").unwrap();
    for (threads, args) in [
        (3, &["epoch", "x-?", "-b", "10", "--threads", "3"][..]),
        // Reads are planned by a thread of their own.
        (4, &["epoch", "x-?", "-b", "10", "--threads", "3", "--io", "pread"]),
        (4, &["verify", "x-?", "-j", "4"]),
        (4, &["index", "x-?", "-j", "4"]),
        (4, &["validate", "-s", "schema", "x-?", "-j", "4"]),
        (4, &["grep", "-c", "label >= 0", "x-?", "-j", "4"]),
        (4, &["index", "x-?", "-j", "4", "--format", "dali"]),
    ] {
        for n in 1..=threads {
            let ran = shim.failing(&dir, args, "thread", n, EAGAIN);
            let ran = ran.unwrap_or_else(|| panic!("{args:?} starts fewer than {n} threads"));
            assert_eq!(ran.code, 3, "{args:?} {n}: {}", ran.err);
            assert!(ran.err.contains("cannot start "), "{args:?} {n}: {}", ran.err);
        }
    }
    // Fewer threads compute the same statistics.
    let stats = ["stats", "--json", "x-?", "-j", "4"];
    let wanted = dir.run(&stats).out;
    for n in 1..=3 {
        let ran = shim.failing(&dir, &stats, "thread", n, EAGAIN);
        ran.unwrap_or_else(|| panic!("stats starts fewer than {n} threads")).prints(&wanted);
    }
}
