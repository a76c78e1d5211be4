//! Outputs whose names are given to other files while they are written, and their modes.

#![cfg(unix)]

mod common;

use common::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A folder with inputs that are larger than a pipe's buffer by far.
fn folder() -> Folder {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..20_000));
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    dir.shard("noise.gz", (0..700).map(|_| (0..1000).map(|_| noise()).collect::<Vec<u8>>()));
    fs::write(dir.path("bare"), dir.command(&["cat", "--bare", "noise.gz"]).output().unwrap().stdout)
        .unwrap();
    assert!(Command::new("mkfifo").arg(dir.path("fifo")).status().unwrap().success());
    dir
}

/// Runs a command whose input is a FIFO. Its output gets a file of another writer when a part of the input
/// was read.
fn meanwhile(dir: &Folder, input: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let out = dir.path(args.iter().find(|arg| arg.starts_with("out")).unwrap());
    let child = dir.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let bytes = fs::read(dir.path(input)).unwrap();
    let mut fifo = OpenOptions::new().write(true).open(dir.path("fifo")).unwrap();
    // A pipe holds 64 KiB, so the command has read the rest of this, and has opened its output.
    let (first, second) = bytes.split_at(500_000);
    fifo.write_all(first).unwrap();
    fs::write(&out, "theirs").unwrap();
    fifo.write_all(second).unwrap();
    drop(fifo);
    let ended = child.wait_with_output().unwrap();
    let kept = fs::read_to_string(&out).unwrap_or_default();
    fs::remove_file(out).unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap(), kept)
}

#[test]
fn a_file_that_was_made_meanwhile_is_kept() {
    let dir = folder();
    for (input, args) in [
        ("noise.gz", &["unpack", "fifo", "-o", "out"][..]),
        ("bare", &["convert", "--bare", "fifo", "out.tfrecord"]),
        ("a.tfrecord", &["stats", "fifo", "--save", "out"]),
        ("a.tfrecord", &["stats", "fifo", "--tfdv", "out"]),
    ] {
        let (code, err, kept) = meanwhile(&dir, input, args);
        assert_eq!((code, kept.as_str()), (Some(3), "theirs"), "{args:?}: {err}");
        assert!(err.contains(": the file was made meanwhile by another writer"), "{args:?}: {err}");
        let (code, err, replaced) = meanwhile(&dir, input, &[args, &["--force"]].concat());
        assert!(code == Some(0) && replaced != "theirs", "{args:?}: {err}");
    }
}

/// Starts two writers of the same output, and returns their exit codes, the smaller first.
fn race(dir: &Folder, args: [&[&str]; 2]) -> [i32; 2] {
    let start =
        |args: &[&str]| dir.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let children = args.map(start);
    let mut codes = children.map(|mut child| child.wait().unwrap().code().unwrap());
    codes.sort_unstable();
    codes
}

fn races(rounds: usize) {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..300));
    dir.shard("b.tfrecord", labels(1000..1300));
    for (verb, out) in [("reshard", "new@5.tfrecord"), ("convert", "new.parquet"), ("salvage", "new")] {
        for round in 0..rounds {
            let args = |input| match verb {
                "reshard" => vec![verb, input, "-o", out],
                _ => vec![verb, input, out],
            };
            let codes = race(&dir, [&args("a.tfrecord"), &args("b.tfrecord")]);
            assert!(codes[0] == 0 && codes[1] != 0, "{verb}, round {round}: {codes:?}");
            if verb == "reshard" {
                let found = dir.run(&["cat", "-f", "json", "new@5.tfrecord"]);
                assert_eq!((found.code, found.out.lines().count()), (0, 300), "{}", found.err);
                let of_b = found.out.lines().filter(|line| number(line) >= 1000);
                assert!([0, 300].contains(&of_b.count()), "a mixture in round {round}");
            }
            for entry in fs::read_dir(dir.path("")).unwrap().map(Result::unwrap) {
                let name = entry.file_name().into_string().unwrap();
                assert!(!name.starts_with(".tmp-"), "{name}");
                if name.starts_with("new") {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        }
    }
}

/// With `--force` one set replaces the other as a whole.
fn forced_races(rounds: usize) {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..300));
    dir.shard("b.tfrecord", labels(1000..1300));
    let args = |input| vec!["reshard", "--force", input, "-o", "new@5.tfrecord"];
    for round in 0..rounds {
        assert_eq!(race(&dir, [&args("a.tfrecord"), &args("b.tfrecord")]), [0, 0]);
        let found = dir.run(&["cat", "-f", "json", "new@5.tfrecord"]);
        let of_b = found.out.lines().filter(|line| number(line) >= 1000).count();
        assert_eq!((found.code, found.out.lines().count(), of_b % 300), (0, 300, 0), "round {round}: {of_b}");
    }
}

/// Two forced writers of one set, killed at random, and a reader: it gets one set, or an error that names a
/// shard.
fn killed_races(rounds: usize) {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..300));
    dir.shard("b.tfrecord", labels(1000..1300));
    let args = |input| vec!["reshard", "--force", input, "-o", "new@5.tfrecord"];
    assert_eq!(dir.run(&args("a.tfrecord")).code, 0);
    let check = |ran: &Ran, round: usize| {
        let of_b = ran.out.lines().filter(|line| number(line) >= 1000).count();
        match ran.code {
            0 => assert_eq!((ran.out.lines().count(), of_b % 300), (300, 0), "round {round}: {of_b}"),
            _ => assert!(ran.err.contains("new-0000") || ran.err.contains("new@5"), "round {round}: {ran:?}"),
        }
        ran.code == 0
    };
    let mut state = 7u64;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let read = ["get", "-f", "json", "--io", "pread", "new@5.tfrecord", "0:300"];
    let (mut whole, mut refused) = (0, 0);
    for round in 0..rounds {
        let start =
            |args: &[&str]| dir.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut writers = [start(&args("a.tfrecord")), start(&args("b.tfrecord"))];
        let wait = std::time::Duration::from_micros(random(12_000));
        let victim = random(3);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| check(&dir.run(&read), round));
            std::thread::sleep(wait);
            if let Some(writer) = writers.get_mut(victim as usize) {
                writer.kill().unwrap();
            }
            *(if reader.join().unwrap() { &mut whole } else { &mut refused }) += 1;
        });
        for writer in &mut writers {
            writer.wait().unwrap();
        }
        let ran = dir.run(&read);
        let told = "interrupted, or is still at work; ";
        assert!(check(&ran, round) || ran.err.contains(told), "round {round}: {ran:?}");
    }
    // A later writer repairs a set whose writer was killed.
    assert_eq!(dir.run(&args("a.tfrecord")).code, 0);
    assert!(check(&dir.run(&read), rounds));
    assert!(whole > 0, "{whole} {refused}");
    println!("{rounds} rounds: {whole} whole, {refused} refused");
}

#[test]
fn a_reader_beside_killed_writers_gets_one_set() {
    killed_races(40);
}

#[test]
#[ignore = "takes minutes; `make test-slow`"]
fn a_reader_beside_killed_writers_gets_one_set_in_a_thousand_rounds() {
    killed_races(1000);
}

/// Returns the label of a record in JSON.
fn number(line: &str) -> i64 {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["features"]["label"][0].as_i64().unwrap()
}

#[test]
fn of_two_forced_writers_one_set_remains() {
    forced_races(20);
}

#[test]
#[ignore = "takes minutes; `make test-slow`"]
fn of_two_forced_writers_one_set_remains_in_a_thousand_rounds() {
    forced_races(1000);
}

#[test]
fn of_two_writers_one_fails() {
    races(8);
}

#[test]
#[ignore = "takes minutes; `make test-slow`"]
fn of_two_writers_one_fails_in_a_thousand_rounds() {
    races(1000);
}

#[test]
fn a_replaced_file_keeps_its_mode() {
    let dir = folder();
    let out = dir.path("out");
    let mode = || fs::metadata(&out).unwrap().permissions().mode() & 0o7777;
    for (mask, args) in [
        (0o600, &["epoch", "a.tfrecord", "-b", "10", "--state-out", "out"][..]),
        (0o640, &["stats", "a.tfrecord", "--save", "out", "--force"]),
        (0o604, &["unpack", "noise.gz", "-o", "out", "--force"]),
    ] {
        fs::write(&out, "old").unwrap();
        fs::set_permissions(&out, fs::Permissions::from_mode(mask)).unwrap();
        let ran = dir.run(args);
        assert_eq!((ran.code, mode()), (0, mask), "{args:?}: {}", ran.err);
        fs::remove_file(&out).unwrap();
        fs::write(dir.path("new"), "").unwrap();
        let of_new = fs::metadata(dir.path("new")).unwrap().permissions().mode() & 0o7777;
        assert_eq!((dir.run(args).code, mode()), (0, of_new), "{args:?}");
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn each_shard_of_a_replaced_set_keeps_its_mode() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..30));
    let args = ["reshard", "a.tfrecord", "-o", "out@3", "--force"];
    assert_eq!(dir.run(&args).code, 0);
    let shards = (0..3).map(|s| dir.path(&format!("out-{s:05}-of-00003"))).collect::<Vec<_>>();
    shards.iter().for_each(|path| fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap());
    assert_eq!(dir.run(&args).code, 0);
    let modes: Vec<u32> =
        shards.iter().map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o7777).collect();
    assert_eq!(modes, [0o600; 3]);
}

/// Damaged bytes are written to new files only.
#[test]
fn damaged_bytes_replace_no_file() {
    let dir = Folder::new();
    damage(&dir.shard("a.tfrecord", labels(0..10)), 34 * 4 + 20);
    let args = ["index", "--damage", "skip", "--rest", "rest", "--rebuild", "a.tfrecord"];
    let ran = dir.run(&args);
    let files: Vec<_> = fs::read_dir(dir.path("rest")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{ran:?}");
    let wanted = fs::read(&files[0]).unwrap();
    assert_eq!(wanted.len(), 34);
    for link in [false, true] {
        fs::write(dir.path("theirs"), "theirs").unwrap();
        fs::remove_file(&files[0]).unwrap();
        if link {
            std::os::unix::fs::symlink(dir.path("theirs"), &files[0]).unwrap()
        } else {
            fs::write(&files[0], "theirs").unwrap()
        }
        let ran = dir.run(&args);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(dir.path("theirs")).unwrap(), "theirs");
    }
}
