//! Limits of the system: address space, descriptors and threads.

use crate::common::*;
use std::fs;
use std::process::Command;

/// Runs the command in a shell after these commands. Its threads share one heap, because glibc reserves 64 MiB
/// of address space for each further one, and how many there are depends on the load.
pub(crate) fn limited(dir: &Folder, limits: &str, args: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limits}; exec \"$@\"")).arg("sh").arg(env!("CARGO_BIN_EXE_tfseek"));
    command.args(args).current_dir(dir.path("")).env("XDG_CACHE_HOME", dir.path("cache"));
    command.env_remove("TFSEEK_INDEX_DIR").env("MALLOC_ARENA_MAX", "1");
    Ran::limited(command, dir)
}

const VERBS: &[&str] = &[
    "head -n 3 data",
    "cat u.gz",
    "verify data u.gz -j 3",
    "index --rebuild data u.gz -j 3",
    "index --rebuild --column label data",
    "get data 777 --io map",
    "get data 777 --io pread",
    "get u.gz 19000",
    "unpack --force u.gz",
    "parse -s schema -b 64 data",
    "grep -c label>=0 data u.gz -j 3",
    "stats --json data u.gz -j 3",
    "stats --force --save st data",
    "validate -s schema data u.gz -j 3",
    "salvage --force data/x-001-of-200.tfrecord s",
    "reshard --force --shuffle --out r@4.tfrecord data u.gz",
    "reshard --force --shuffle --memory 100kB --out r@4.tfrecord data u.gz",
    "epoch -b 64 --threads 0 -s schema data",
    "epoch -b 64 --threads 3 -s schema data --io pread",
    "epoch -b 64 --threads 3 -s schema data u.gz",
];

fn folder() -> Folder {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for s in 0..200 {
        dir.shard(&format!("data/x-{s:03}-of-200.tfrecord"), labels(10 * s..10 * s + 10));
    }
    dir.shard("u.gz", labels(0..20_000));
    fs::write(dir.path("schema"), dir.run(&["schema", "--json", "u.gz"]).out).unwrap();
    dir
}

fn words(verb: &str) -> Vec<&str> {
    verb.split(' ').collect()
}

fn check_descriptors(limits: &[usize], ways: &[bool]) {
    let dir = folder();
    let mut seen = [0; 2];
    for verb in VERBS {
        for (n, cold) in limits.iter().flat_map(|n| ways.iter().map(move |cold| (n, cold))) {
            if *cold {
                let _ = fs::remove_dir_all(dir.path("cache"));
                let _ = fs::remove_dir_all(dir.path("data/.tfseek"));
            }
            let ran = limited(&dir, &format!("ulimit -n {n}"), &words(verb));
            let context = format!("`{verb}` with {n} descriptors: {ran:?}");
            assert!(!ran.err.contains("panicked") && (0..=4).contains(&ran.code), "{context}");
            assert!(ran.code == 0 || ran.err.contains("Too many open files"), "{context}");
            seen[usize::from(ran.code != 0)] += 1;
        }
    }
    println!("{limits:?} descriptors with 201 files: {seen:?} succeeded and errors");
}

#[test]
fn few_descriptors() {
    check_descriptors(&[16], &[false]);
}

#[test]
#[ignore = "takes a minute: `make test-slow`"]
fn few_descriptors_without_indexes() {
    check_descriptors(&[16, 32, 64], &[true, false]);
}

/// The first limit at which each verb succeeds, and the results below it.
#[test]
fn little_address_space() {
    let dir = folder();
    let mut seen = [0; 3];
    for verb in VERBS {
        let mut report = format!("`{verb}`:");
        for mib in [512, 256, 128, 96, 64, 48, 32, 24, 16] {
            let ran = limited(&dir, &format!("ulimit -v {}", mib << 10), &words(verb));
            let context = format!("`{verb}` with {mib} MiB: {ran:?}");
            let result = match ran.code {
                0 => 0,
                1..=4 => 1,
                // The system cannot start the process, or the process ends without memory.
                _ => 2,
            };
            // The program, which tests compile with little optimization and with the feature `remote`, takes 80.
            assert!(result < 2 || mib < 256, "{context}");
            assert!(result != 1 || ran.err.contains("tfseek: "), "{context}");
            report += &format!(" {mib} MiB {}", ["success", "error", "abort"][result]);
            if result == 2 {
                report += &format!(" ({} {})", ran.code, ran.err.lines().next().unwrap_or_default());
            }
            seen[result] += 1;
        }
        println!("{report}");
    }
    println!("address space: {seen:?} succeeded, errors and aborts");
}

#[test]
fn no_threads() {
    let dir = folder();
    fs::copy(env!("CARGO_BIN_EXE_tfseek"), dir.path("tfseek")).unwrap();
    let all = Command::new("chmod").args(["-R", "a+rwX", "."]).current_dir(dir.path("")).status();
    assert!(all.unwrap().success());
    let run = |limit: &str, args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["prlimit", limit]).arg(dir.path("tfseek")).args(args);
        command
            .current_dir(dir.path(""))
            .env("XDG_CACHE_HOME", dir.path("cache"))
            .env_remove("TFSEEK_INDEX_DIR");
        Ran::limited(command, &dir)
    };
    if run("--nproc=1000", &["--version"]).code != 0 {
        tfseek_testkit::skipped("setpriv and prlimit");
        return;
    }
    let mut seen = [0; 2];
    for verb in VERBS {
        let ran = run("--nproc=1", &words(verb));
        assert!(!ran.err.contains("panicked") && [0, 3].contains(&ran.code), "{verb}: {ran:?}");
        assert!(ran.code == 0 || ran.err.contains("cannot start "), "{verb}: {ran:?}");
        seen[usize::from(ran.code != 0)] += 1;
    }
    println!("no threads: {seen:?} succeeded and errors");
    assert!(seen[0] > 0 && seen[1] > 0);
}
