//! `tail --follow`: each record once and in order, across files, kills and damage.

use crate::common::*;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tfseek::frame::put_record;

/// A running command, and the lines that it prints.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(dir: &Folder, args: &[&str]) -> Running {
        let mut command = dir.interruptible(&[&["tail", "--follow"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            // An incomplete last line, after a kill, was not printed.
            let mut out = BufReader::new(out);
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
                if send.send(line.trim_end().to_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        Running { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(600)).unwrap()
    }

    /// Returns the labels of the next records.
    fn labels(&self, n: usize) -> Vec<i64> {
        (0..n).map(|_| label_of(&self.line())).collect()
    }

    /// Asserts that nothing is printed for a while.
    fn is_quiet(&self) {
        assert_eq!(self.lines.recv_timeout(Duration::from_millis(700)).ok(), None);
    }

    /// Kills the command and returns the labels of the other records that it printed.
    fn kill(mut self) -> Vec<i64> {
        self.child.kill().unwrap();
        ended(&mut self.child);
        self.lines.iter().map(|line| label_of(&line)).collect()
    }

    /// Waits until the command ends by itself.
    fn end(&mut self) -> (ExitStatus, String) {
        // Its messages fit into a pipe.
        let status = ended(&mut self.child);
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status, err)
    }

    fn fails(mut self, words: &[&str]) {
        let (status, err) = self.end();
        assert_eq!(status.code(), Some(1), "{err}");
        words.iter().for_each(|word| assert!(err.contains(word), "no {word:?} in {err:?}"));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn label_of(line: &str) -> i64 {
    json(line)["features"]["label"][0].as_i64().unwrap()
}

fn append(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

fn framed(labels: std::ops::Range<i64>) -> Vec<u8> {
    let mut file = Vec::new();
    labels.for_each(|i| put_record(&mut file, &label(i)).unwrap());
    file
}

fn state(dir: &Folder) -> serde_json::Value {
    json(&fs::read_to_string(dir.path("state")).unwrap())
}

#[test]
fn the_last_records_and_then_new_ones() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..20));
    let running = Running::start(&dir, &["-n", "3", "-f", "json", "a.tfrecord"]);
    assert_eq!(running.labels(3), [17, 18, 19]);
    running.is_quiet();
    let mut writer = append(&path);
    // Odd pieces, most of which end inside a header or a payload.
    let (file, mut k) = (framed(20..10_020), 0usize);
    let mut rest = file.as_slice();
    while !rest.is_empty() {
        k += 1;
        let (piece, later) = rest.split_at((k * 7919 % 1021 + 1).min(rest.len()));
        writer.write_all(piece).unwrap();
        rest = later;
    }
    for i in 20..10_020 {
        let line = json(&running.line());
        assert_eq!((line["index"].as_i64(), line["record"].as_i64()), (Some(i), Some(i)));
        assert_eq!(line["features"]["label"][0], i);
        assert!(line["file"].is_null(), "{line}");
    }
    // A record is printed once its last byte is there.
    let one = framed(10_020..10_021);
    writer.write_all(&one[..15]).unwrap();
    running.is_quiet();
    writer.write_all(&one[15..]).unwrap();
    assert_eq!(running.labels(1), [10_020]);
    assert!(running.kill().is_empty());

    let human = Running::start(&dir, &["-1", "--features", "label", "a.tfrecord"]);
    assert!(human.line().starts_with("record 10020, "));
    assert!(human.line().contains("label"));
    let none = Running::start(&dir, &["-n", "0", "-f", "json", "a.tfrecord"]);
    none.is_quiet();
    append(&path).write_all(&framed(7..8)).unwrap();
    assert_eq!(none.labels(1), [7]);
}

#[test]
fn later_files_of_a_pattern_follow() {
    let dir = Folder::new();
    let shard = |k: i64| dir.path(&format!("x-{k}.tfrecord"));
    for k in 8..10 {
        fs::write(shard(k), framed(k * 10..k * 10 + 10)).unwrap();
    }
    let last = Running::start(&dir, &["-n", "2", "-f", "json", "x-*.tfrecord"]);
    let all = Running::start(&dir, &["-n", "+5", "-f", "json", "."]);
    assert_eq!(last.labels(2), [98, 99]);
    assert_eq!(all.labels(16), (84..100).collect::<Vec<_>>());
    let skipped = Running::start(&dir, &["-n", "+15", "-f", "json", "x-*.tfrecord"]);
    assert_eq!(skipped.labels(10), (90..100).collect::<Vec<_>>(), "the first file has fewer records");
    // An earlier name, another name, and a record in two pieces before the next file.
    fs::write(shard(1), framed(0..1)).unwrap();
    fs::write(dir.path("y.txt"), framed(0..1)).unwrap();
    let one = framed(100..101);
    append(&shard(9)).write_all(&one[..20]).unwrap();
    last.is_quiet();
    append(&shard(9)).write_all(&one[20..]).unwrap();
    fs::write(shard(10), framed(101..103)).unwrap();
    fs::write(shard(11), framed(103..104)).unwrap();
    for running in [&last, &all] {
        assert_eq!(json(&running.line())["features"]["label"][0], 100);
        let line = json(&running.line());
        assert!(line["file"].as_str().unwrap().ends_with("x-10.tfrecord"), "{line}");
        assert_eq!((line["record"].as_i64(), line["features"]["label"][0].as_i64()), (Some(0), Some(101)));
        assert_eq!(running.labels(2), [102, 103]);
    }
    append(&shard(11)).write_all(&framed(104..106)).unwrap();
    assert_eq!(last.labels(2), [104, 105]);
    assert_eq!(all.labels(2), [104, 105]);
}

#[test]
fn nothing_is_lost_by_kills() {
    const RECORDS: i64 = 12_000;
    let dir = Folder::new();
    fs::write(dir.path("x-0.tfrecord"), "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for k in 0..6 {
                let mut writer = append(&dir.path(&format!("x-{k}.tfrecord")));
                let per_file = RECORDS / 6;
                for piece in framed(k * per_file..(k + 1) * per_file).chunks(997) {
                    writer.write_all(piece).unwrap();
                    std::thread::sleep(Duration::from_millis(12));
                }
            }
        });
        let mut next = 0;
        let mut runs = 0;
        while next < RECORDS {
            let args = ["-n", "+1", "-f", "json", "--state", "state", "x-*.tfrecord"];
            let running = Running::start(&dir, &args);
            std::thread::sleep(Duration::from_millis(300 + runs * 437 % 1500));
            let printed = running.kill();
            runs += 1;
            let Some(&first) = printed.first() else { continue };
            assert!(first <= next, "lost {next}..{first} in run {runs}");
            assert!(printed.windows(2).all(|pair| pair[1] == pair[0] + 1), "run {runs}");
            next = next.max(printed.last().unwrap() + 1);
        }
        assert!(runs > 3);
        println!("{runs} kills");
    });
    // The state is at the end soon, and then nothing is printed again.
    let args = ["-n", "+1", "-f", "json", "--state", "state", "x-*.tfrecord"];
    let running = Running::start(&dir, &args);
    let last = dir.path("x-5.tfrecord").canonicalize().unwrap();
    while state(&dir)["record"] != RECORDS / 6 || state(&dir)["file"] != last.to_str().unwrap() {
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(running);
    Running::start(&dir, &args).is_quiet();
    let state = state(&dir);
    assert_eq!(state["offset"], fs::metadata(dir.path("x-5.tfrecord")).unwrap().len());
    append(&dir.path("x-5.tfrecord")).write_all(&framed(RECORDS..RECORDS + 1)).unwrap();
    assert_eq!(Running::start(&dir, &args).labels(1), [RECORDS]);
}

#[test]
fn damage_ends_the_command_after_the_records_before_it() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..5));
    let sound = fs::metadata(&path).unwrap().len();
    for at in [8, 20] {
        append(&path).set_len(sound).unwrap();
        let args = ["-n", "1", "-f", "json", "--state", "state", "a.tfrecord"];
        fs::remove_file(dir.path("state")).ok();
        let running = Running::start(&dir, &args);
        assert_eq!(running.labels(1), [4]);
        let mut bad = framed(5..8);
        let len = bad.len() / 3;
        bad[len + at] ^= 1;
        append(&path).write_all(&bad).unwrap();
        assert_eq!(running.labels(1), [5]);
        running.fails(&["a.tfrecord: record 6 at byte", "crc32c", "the 6 records before it are sound"]);
        assert_eq!(state(&dir)["record"], 6, "the state is at the damaged record");
        Running::start(&dir, &args).fails(&["record 6 at byte"]);
    }

    // A record that is not of the specified kind is not printed, and the state is not after it.
    let args = ["-n", "0", "--state", "other", "b.tfrecord", "--kind", "example", "-f", "json"];
    fs::write(dir.path("b.tfrecord"), framed(0..1)).unwrap();
    let running = Running::start(&dir, &args);
    while !dir.path("other").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut text = Vec::new();
    put_record(&mut text, b"text").unwrap();
    append(&dir.path("b.tfrecord")).write_all(&text).unwrap();
    running.fails(&["record 1"]);
    assert_eq!(json(&fs::read_to_string(dir.path("other")).unwrap())["record"], 1);
    Running::start(&dir, &args).fails(&["record 1"]);
}

#[test]
fn files_that_change_other_than_by_appending() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..5));
    let begin = || {
        fs::write(&path, framed(0..5)).unwrap();
        let running = Running::start(&dir, &["-n", "1", "-f", "json", "a.tfrecord"]);
        assert_eq!(running.labels(1), [4]);
        running
    };
    let running = begin();
    append(&path).set_len(30).unwrap();
    running.fails(&["a.tfrecord: the file changed other than by appending", "found 30"]);
    if cfg!(unix) {
        let running = begin();
        fs::write(dir.path("b"), framed(0..5)).unwrap();
        fs::rename(dir.path("b"), &path).unwrap();
        running.fails(&["found another one at its path"]);
        let running = begin();
        fs::remove_file(&path).unwrap();
        running.fails(&["found none at its path"]);
    }
}

#[test]
fn a_record_in_parts_before_a_later_file() {
    let dir = Folder::new();
    let cut = || {
        let file = framed(0..3);
        fs::write(dir.path("x-0.tfrecord"), &file[..file.len() - 1]).unwrap();
        fs::remove_file(dir.path("x-1.tfrecord")).ok();
    };
    cut();
    let strict = Running::start(&dir, &["-f", "json", "x-*.tfrecord"]);
    assert_eq!(strict.labels(2), [0, 1]);
    strict.is_quiet();
    fs::write(dir.path("x-1.tfrecord"), framed(3..4)).unwrap();
    strict.fails(&["x-0.tfrecord: record 2 at byte", "x-1.tfrecord follows it", "--tail tolerate"]);

    cut();
    let mut tolerant = Running::start(&dir, &["-f", "json", "--tail", "tolerate", "x-*.tfrecord"]);
    assert_eq!(tolerant.labels(2), [0, 1]);
    fs::write(dir.path("x-1.tfrecord"), framed(3..4)).unwrap();
    assert_eq!(tolerant.labels(1), [3]);
    tolerant.child.kill().unwrap();
    assert!(tolerant.end().1.contains("the file ends inside the record"));
}

#[test]
fn usage() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..5));
    dir.shard("a.tfrecord.gz", labels(0..5));
    let run = |args: &[&str]| dir.run(&[&["tail"], args].concat());
    run(&["-F", "-"]).fails(2, &["expected files, found standard input"]);
    run(&["--state", "s", "a.tfrecord"]).fails(2, &["--follow"]);
    run(&["-F", "none.tfrecord"]).fails(3, &["none.tfrecord"]);
    run(&["-F", "a.tfrecord.gz"]).fails(2, &["a.tfrecord.gz: expected an uncompressed", "found gzip"]);
    run(&["-F", "a.tfrecord", "--state", "a.tfrecord"]).fails(2, &["is an input"]);
    fs::write(dir.path("s"), "{}").unwrap();
    run(&["-F", "a.tfrecord", "--state", "s"]).fails(2, &["s: invalid state of tail --follow: v: expected"]);
    let other = r#"{"v":1,"file":"/none/b","record":0,"offset":0}"#;
    fs::write(dir.path("s"), other).unwrap();
    let words = ["expected one of the files to follow, found /none/b, which does not exist"];
    run(&["-F", "a.tfrecord", "--state", "s"]).fails(2, &words);
    assert_eq!(fs::read_to_string(dir.path("s")).unwrap(), other);
    fs::write(dir.path("b.tfrecord"), "PAR1 and more than twelve bytes").unwrap();
    run(&["-F", "b.tfrecord"]).fails(4, &["found Parquet"]);
}

/// A script's `&` makes its commands ignore SIGINT, and their children inherit that.
#[test]
#[cfg(unix)]
fn an_interrupt_ends_the_command_where_the_tests_ignore_it() {
    if !resets_signals() {
        return tfseek_testkit::skipped("`env --default-signal`");
    }
    let mut shell = std::process::Command::new("sh");
    shell.args([
        "-c",
        "trap '' INT; exec \"$0\" --exact follow::an_interrupt_and_a_closed_pipe_end_the_command",
    ]);
    let shell = shell.arg(std::env::current_exe().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = Ran::of(output_of(shell.spawn().unwrap()));
    assert!(ran.code == 0 && ran.out.contains("1 passed"), "{ran:?}");
}

#[test]
#[cfg(unix)]
fn an_interrupt_and_a_closed_pipe_end_the_command() {
    use std::os::unix::process::ExitStatusExt;
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..5));
    let mut running = Running::start(&dir, &["-n", "1", "-f", "json", "a.tfrecord"]);
    assert_eq!(running.labels(1), [4]);
    let pid = running.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let (status, err) = running.end();
    assert_eq!((status.signal(), err.as_str()), (Some(2), ""));

    let mut command = dir.command(&["tail", "-F", "-n", "1", "-f", "json", "--state", "state", "a.tfrecord"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    while !dir.path("state").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(out);
    append(&path).write_all(&framed(5..6)).unwrap();
    let output = output_of(child);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(state(&dir)["record"], 5, "a record that was not read is not part of the state");
}
