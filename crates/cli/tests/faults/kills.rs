//! Runs that are killed or interrupted.

use crate::cases::*;
use crate::common::*;
use crate::support::*;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use tfseek::ExampleBuilder;

/// The verbs that are killed: an index, an index with checkpoints, a column, a pack, an uncompressed file,
/// statistics, and a shuffled file, in memory and through temporary files. `sets.rs` kills writers of several
/// files.
const KILLED: [&str; 8] = [
    "index --rebuild a",
    "index --rebuild u.gz",
    "index --rebuild --column label a",
    "index --pack p a b",
    "unpack --force u.gz",
    "stats --force --save st a u.gz -j 3",
    "reshard --force --shuffle a --out r",
    "reshard --force --shuffle --memory 5kB a u.gz --out r",
];

/// Kills runs of a verb after random times, and prints how many left the old file and how many the new one.
fn check_kills(verb: &str, kills: usize) {
    let case = WRITERS.iter().find(|case| case.args == verb).unwrap();
    let mut prepared = case.prepare();
    // With this number of records, a run takes longer than the start of the process.
    prepared.dir.shard("a", (0..20_000).map(label));
    prepared.dir.shard("u.gz", (0..20_000).map(label));
    let took = prepared.run_again();
    let mut random = 1u64;
    let (mut seen, mut left) = ([0; 2], 0);
    for _ in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        prepared.restore();
        let mut run = prepared.dir.command(&prepared.args());
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let wait = took.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64);
        std::thread::sleep(wait + Duration::from_micros(100));
        run.kill().unwrap();
        ended(&mut run);
        // A killed run leaves a hidden file with a temporary name: that of an index, or of an output that had
        // to have a name.
        let temporary = temporary_files(&prepared.dir.path(""));
        left += temporary.len();
        temporary.iter().for_each(|path| fs::remove_file(path).unwrap());
        seen[usize::from(prepared.check_old_or_new())] += 1;
    }
    // The next run succeeds.
    prepared.restore();
    let ran = prepared.dir.run(&prepared.args());
    assert_eq!(prepared.check(&ran, "after the kills"), Seen::Success);
    println!("`{verb}`: {kills} kills, {seen:?} old and new, {left} temporary files");
}

#[test]
fn a_killed_run_leaves_the_target_old_or_complete() {
    KILLED.iter().for_each(|verb| check_kills(verb, 10));
}

#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn hundreds_of_kills() {
    KILLED.iter().for_each(|verb| check_kills(verb, 300));
}

/// Interrupted while they read a pipe, the verbs that write an output leave neither a part of it nor a
/// temporary file.
#[test]
fn an_interrupted_run_leaves_nothing() {
    let dir = Folder::new();
    let payload = |k: u8| ExampleBuilder::new().bytes("b", [vec![k; 1 << 20]]).encode().unwrap();
    let bytes = fs::read(dir.shard("a", (0..40).map(payload))).unwrap();
    let packed = fs::read(dir.shard("a.gz", labels(0..50_000))).unwrap();
    fs::write(dir.path("labels"), dir.run(&["schema", "--json", "a.gz"]).out).unwrap();
    let json = dir.run(&["cat", "-f", "json", "a.gz"]).out.into_bytes();
    let bare = dir.command(&["cat", "--bare", "a"]).output().unwrap().stdout;
    fs::create_dir(dir.path("out")).unwrap();
    let runs: [(&[&str], &[u8]); 5] = [
        (&["stats", "-", "--save", "out/x"], &bytes),
        (&["stats", "-", "--tfdv", "out/x"], &packed[..packed.len() - 100]),
        (&["unpack", "-", "-o", "out/x"], &packed[..packed.len() - 100]),
        (&["convert", "-s", "labels", "-", "out/x.tfrecord"], &json),
        (&["convert", "--bare", "-", "out/x.tfrecord"], &bare),
    ];
    for (args, input) in runs {
        let target = args.iter().find(|arg| arg.starts_with("out/")).unwrap();
        let name = target.trim_start_matches("out/");
        for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-KILL", 9)] {
            for old in [None, Some(OLD)] {
                let _ = fs::remove_file(dir.path(target));
                if let Some(old) = old {
                    fs::write(dir.path(target), old).unwrap();
                }
                let mut command = dir.interruptible(args);
                command.args(old.map(|_| "--force"));
                let mut run = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
                // The pipe stays open, so the run waits for more.
                let mut pipe = run.stdin.take().unwrap();
                pipe.write_all(input).unwrap();
                let names = || -> Vec<_> {
                    let entries = fs::read_dir(dir.path("out")).unwrap().map(|e| e.unwrap().file_name());
                    entries.filter(|name_of| name_of != name).collect()
                };
                let named = !names().is_empty();
                let kill = Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap();
                assert!(kill.success());
                let status = ended(&mut run);
                assert_eq!(status.signal(), Some(number), "{args:?} {status}");
                assert_eq!(fs::read(dir.path(target)).ok().as_deref(), old, "{args:?}");
                if named {
                    tfseek_testkit::skipped("a file system that has files without a name");
                    return;
                }
                assert!(names().is_empty(), "{args:?} {signal}: {:?}", names());
            }
        }
    }
}
