//! Inputs that are no sound, regular file of records: each verb ends soon, with the status that fits, and says why.

mod common;

use common::*;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::time::{Duration, Instant};

/// How long a run may take. Only one that hangs takes so long, on however slow a machine.
const LONG: Duration = Duration::from_secs(120);

/// Runs the command; one that hangs is killed, and fails the test.
#[track_caller]
fn run(dir: &Folder, args: &[&OsStr]) -> Ran {
    let (out, err) = (dir.path("stdout"), dir.path("stderr"));
    let mut command = dir.command(&[]);
    command.args(args).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > LONG => {
                child.kill().unwrap();
                panic!("{args:?} hangs");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    Ran {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(fs::read(out).unwrap()).unwrap(),
        err: String::from_utf8(fs::read(err).unwrap()).unwrap(),
    }
}

fn words(text: &str, file: &OsStr) -> Vec<OsString> {
    text.split(' ').map(|word| if word == "FILE" { file.to_owned() } else { word.into() }).collect()
}

/// Verbs that read in order, and then those that read by number.
const IN_ORDER: &[&str] = &[
    "head FILE",
    "head -f json FILE",
    "tail FILE",
    "cat FILE",
    "cat -f json FILE",
    "cat -f proto-json FILE",
    "info FILE",
    "info --json FILE",
    "digest FILE",
    "verify FILE",
    "verify --json FILE",
    "parse -s s.json FILE",
    "schema FILE",
    "unpack -o unpacked FILE",
];
const BY_NUMBER: &[&str] = &[
    "get FILE 0",
    "get --io pread FILE 0",
    "sample FILE",
    "index -q FILE",
    "index -q --pack p FILE",
    "index --format dali FILE",
    "index -q --column label FILE",
    "order -b 2 --describe FILE",
    "epoch -b 2 FILE",
];

/// Runs all verbs. `expected` has the exit status of those that read in order, of those that read by number, and of verbs
/// that differ.
#[track_caller]
fn all_verbs(dir: &Folder, file: impl AsRef<OsStr>, expected: (i32, i32, &[(&str, i32)])) {
    for (verbs, code) in [(IN_ORDER, expected.0), (BY_NUMBER, expected.1)] {
        for verb in verbs {
            one_verb(dir, verb, file.as_ref(), expected.2, code);
        }
    }
}

#[track_caller]
fn one_verb(dir: &Folder, verb: &str, file: &OsStr, others: &[(&str, i32)], code: i32) {
    let code = others.iter().find(|(other, _)| verb.starts_with(other)).map_or(code, |&(_, code)| code);
    let args = words(verb, file);
    let ran = run(dir, &args.iter().map(OsString::as_os_str).collect::<Vec<_>>());
    let what = format!("{verb} of {}: {ran:?}", file.display());
    assert_eq!(ran.code, code, "{what}");
    assert!(!ran.err.contains("panicked"), "{what}");
    assert!(code == 0 || ran.err.contains("tfseek: "), "nothing is said: {what}");
    assert!(ran.out.is_empty() || ran.out.ends_with('\n'), "half a line: {what}");
    if verb.contains("json FILE") && !verb.contains("proto-json") || verb.starts_with("digest") {
        for line in ran.out.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {what}"));
        }
    }
    for left in ["unpacked", ".tfseek"] {
        let path = dir.path(left);
        _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
}

fn folder() -> Folder {
    let dir = Folder::new();
    let schema = r#"{"features":{"label":{"type":"fixed","dtype":"int64","shape":[]}}}"#;
    fs::write(dir.path("s.json"), schema).unwrap();
    dir
}

/// Has no records, which is no fault; a record that is asked for is not there, and there is nothing to infer from.
const EMPTY: &[(&str, i32)] = &[("schema", 1), ("get", 2)];

#[test]
fn an_empty_file() {
    let dir = folder();
    fs::write(dir.path("empty"), "").unwrap();
    all_verbs(&dir, "empty", (0, 0, EMPTY));
    let info = dir.run(&["info", "empty"]);
    assert!(info.out.contains("records      0\n") && info.out.contains("kind         unknown\n"), "{info:?}");
}

#[test]
fn nothing_and_a_folder_without_shards() {
    let dir = folder();
    all_verbs(&dir, "missing", (3, 3, &[]));
    fs::create_dir(dir.path("folder")).unwrap();
    fs::write(dir.path("folder/x"), "").unwrap();
    all_verbs(&dir, "folder", (3, 3, &[]));
    dir.run(&["cat", "missing"]).fails(3, &["missing: no such file\n"]);
    dir.run(&["cat", "folder"]).fails(3, &["no file matches folder"]);
}

/// Addresses of stores are told from names of files.
#[test]
fn addresses() {
    let dir = folder();
    for address in ["gs://bucket/train-*", "s3://bucket/x.tfrecord", "https://example.org/x.tfrecord"] {
        all_verbs(&dir, address, (2, 2, &[]));
        let scheme = address.split(':').next().unwrap();
        dir.run(&["cat", address]).fails(2, &[address, "local files only", &format!("{scheme}://")]);
    }
    dir.run(&["cat", "file:///x.tfrecord"]).fails(2, &["without the file://"]);
}

#[cfg(unix)]
#[test]
fn a_file_under_a_name_like_an_address() {
    let dir = folder();
    dir.run(&["cat", "gs:/x.tfrecord"]).fails(2, &["local files only"]);
    fs::create_dir(dir.path("gs:")).unwrap();
    dir.shard("gs:/x.tfrecord", labels(0..1));
    for name in ["./gs:/x.tfrecord", "./gs://x.tfrecord", "./gs:/*.tfrecord", "gs:/x.tfrecord"] {
        assert_eq!(dir.run(&["cat", name]).code, 0, "{name}");
    }
    dir.run(&["cat", "gs://x.tfrecord"]).fails(2, &["local files only"]);
}

#[test]
fn a_git_lfs_pointer_and_a_text_that_is_compressed() {
    let dir = folder();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    fs::write(dir.path("x.tfrecord"), pointer).unwrap();
    all_verbs(&dir, "x.tfrecord", (4, 4, &[]));
    // A header, one stored block, and its CRC and length.
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01\x1d\x00\xe2\xff\
        one line of text\nand another\n\
        \xc3\xad\xc7\x21\x1d\x00\x00\x00";
    fs::write(dir.path("y.tfrecord"), gzip).unwrap();
    all_verbs(&dir, "y.tfrecord", (4, 2, &[]));
    dir.run(&["head", "y.tfrecord"]).fails(4, &["y.tfrecord: not a TFRecord file, it looks like text"]);
    // `info` has a row for each file, also for one that is not there, and the status is the highest.
    dir.shard("z.tfrecord", labels(0..2));
    let ran = dir.run(&["info", "--json", "x.tfrecord", "y.tfrecord", "z.tfrecord", "none"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    let lines: Vec<serde_json::Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let all = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    use serde_json::json;
    assert_eq!(all("records"), [json!(null), json!(null), json!(2), json!(null)]);
    assert_eq!(all("kind"), ["unknown", "unknown", "Example", "unknown"]);
    assert_eq!(all("looks_like"), [json!("a git-LFS pointer"), json!("text"), json!(null), json!(null)]);
    let errors = all("error");
    assert!(errors[0].as_str().unwrap().contains("git lfs pull"), "{errors:?}");
    assert!(errors[2].is_null() && errors[3].as_str().unwrap().contains("no such file"), "{errors:?}");
    let ran = dir.run(&["info", "x.tfrecord"]);
    assert!(ran.out.contains("looks like   a git-LFS pointer"), "{ran:?}");
    assert!(!ran.out.contains("records") && !ran.out.contains("Example"), "{ran:?}");
    let ran = dir.run(&["info", "x.tfrecord", "z.tfrecord", "none"]);
    assert_eq!((ran.code, ran.out.lines().count()), (4, 5), "{ran:?}");
    assert!(ran.out.contains("a git-LFS pointer, not TFRecord"), "{ran:?}");
}

#[test]
fn a_file_that_is_cut_in_its_first_record_or_damaged() {
    let dir = folder();
    let path = dir.shard("cut.tfrecord", labels(0..3));
    let bytes = fs::read(&path).unwrap();
    for len in [5, 20] {
        fs::write(&path, &bytes[..len]).unwrap();
        all_verbs(&dir, "cut.tfrecord", (1, 1, &[]));
        let ran = dir.run(&["info", "--json", "cut.tfrecord"]);
        let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&line["records"], &line["kind"]), (&0.into(), &"unknown".into()), "{ran:?}");
        assert!(line["error"].as_str().unwrap().contains("truncated"), "{ran:?}");
    }
    // The length of record 1. What is not compressed is left alone from its first record on.
    let path = dir.shard("length.tfrecord", labels(0..3));
    damage(&path, 34);
    all_verbs(&dir, "length.tfrecord", (1, 1, &[("unpack", 0)]));
    assert_eq!(dir.run(&["cat", "-f", "json", "length.tfrecord"]).out.lines().count(), 1);
    let ran = dir.run(&["info", "--json", "length.tfrecord"]);
    let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&line["records"], &line["kind"]), (&1.into(), &"Example".into()), "{ran:?}");
    assert!(line["error"].as_str().unwrap().contains("record 1 at byte 34"), "{ran:?}");
    // Its payload, which a scan of headers does not look at.
    let path = dir.shard("payload.tfrecord", labels(0..3));
    damage(&path, 34 + 20);
    let sound =
        [("unpack", 0), ("info", 0), ("get", 0), ("order", 0), ("index --format", 0), ("index -q FILE", 0)];
    all_verbs(&dir, "payload.tfrecord", (1, 1, &[&sound[..], &[("index -q --pack", 0)]].concat()));
}

#[test]
fn a_file_that_may_not_be_read() {
    let dir = folder();
    let path = dir.shard("closed.tfrecord", labels(0..3));
    let mut mode = fs::metadata(&path).unwrap().permissions();
    mode.set_readonly(true);
    #[cfg(unix)]
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0);
    fs::set_permissions(&path, mode).unwrap();
    if File::open(&path).is_ok() {
        eprintln!("SKIPPED: this user may read everything");
        return;
    }
    all_verbs(&dir, "closed.tfrecord", (3, 3, &[]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_text() {
    use std::os::unix::ffi::OsStrExt;
    let dir = folder();
    let name = OsStr::from_bytes(b"caf\xe9.tfrecord");
    if let Err(e) = fs::rename(dir.shard("x.tfrecord", labels(0..3)), dir.path("").join(name)) {
        eprintln!("SKIPPED: no such name on this file system: {e}");
        return;
    }
    all_verbs(&dir, name, (0, 0, &[]));
}

#[cfg(unix)]
mod pipes_and_devices {
    use super::*;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn devices_and_sockets() {
        let dir = folder();
        if Path::new("/dev/null").exists() {
            all_verbs(&dir, "/dev/null", (0, 2, &[("schema", 1)]));
            let info = dir.run(&["info", "/dev/null"]);
            info.prints("/dev/null\n  records      0\n  compression  none\n  kind         unknown\n");
        }
        if Path::new("/dev/zero").exists() {
            all_verbs(&dir, "/dev/zero", (4, 2, &[]));
        }
        let _socket = std::os::unix::net::UnixListener::bind(dir.path("socket")).unwrap();
        all_verbs(&dir, "socket", (3, 2, &[]));
        dir.run(&["get", "socket", "0"]).fails(2, &["socket: a socket, not a regular file", "in order"]);
    }

    /// A writer at the other end of a pipe, which waits until somebody reads.
    struct Feeder(Child);

    impl Feeder {
        fn new(file: &Path, pipe: &Path) -> Feeder {
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec cat \"$0\" > \"$1\""]).arg(file).arg(pipe);
            Feeder(shell.stderr(Stdio::null()).spawn().unwrap())
        }
    }

    impl Drop for Feeder {
        fn drop(&mut self) {
            _ = self.0.kill();
            _ = self.0.wait();
        }
    }

    #[test]
    fn a_pipe_is_read_in_order_and_refused_by_number() {
        let dir = folder();
        let pipe = dir.path("pipe");
        if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: no mkfifo");
            return;
        }
        let file = dir.shard("a.tfrecord", labels(0..30));
        for (verbs, code) in [(IN_ORDER, 0), (BY_NUMBER, 2)] {
            for verb in verbs {
                let _feeder = Feeder::new(&file, &pipe);
                one_verb(&dir, verb, OsStr::new("pipe"), &[], code);
            }
        }
        // Refused without being opened, so also where nobody writes.
        dir.run(&["get", "pipe", "0"]).fails(2, &["pipe: a FIFO, not a regular file", "in order"]);
        let feeder = Feeder::new(&file, &pipe);
        let info = dir.run(&["info", "pipe"]);
        assert!(info.code == 0 && info.out.contains("records      30\n"), "{info:?}");
        drop(feeder);
        // As SequenceExamples the records would have to be read again.
        let lists = dir.shard("b.tfrecord", (0..30).map(|_| sequence()));
        let feeder = Feeder::new(&lists, &pipe);
        let want = dir.run(&["schema", "b.tfrecord"]).out;
        dir.run(&["schema", "pipe"]).prints(&want);
        drop(feeder);
        let _feeder = Feeder::new(&file, &pipe);
        dir.run(&["schema", "pipe", "b.tfrecord"])
            .fails(2, &["pipe: cannot be read again", "--kind sequence"]);
    }
}
