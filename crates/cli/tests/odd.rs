//! Inputs that are not intact regular TFRecord files. Each verb ends within the time limit, with the right
//! status and a message.

use crate::common::*;
use crate::every_verb::*;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use tfseek::{FeatureBuf, SequenceExampleBuilder};

/// Verbs with an argument that is not a dataset: a schema, saved statistics, JSON, or payloads without
/// framing.
const OTHER_FILES: &[&str] = &[
    "validate -s FILE ok",
    "validate -s s.json ok --baseline FILE",
    "stats --merge FILE",
    "convert -s FILE lines.jsonl unpacked.tfrecord",
    "convert --bare FILE unpacked.tfrecord",
    "cat --bare FILE",
];

/// Files of other content: an error that names the file, in bounded time and memory.
#[test]
fn schemas_and_saved_statistics_that_are_something_else() {
    let dir = folder();
    dir.shard("ok", labels(0..3));
    fs::write(dir.path("lines.jsonl"), dir.run(&["cat", "-f", "json", "ok"]).out).unwrap();
    fs::write(dir.path("noise"), (0..9999u32).map(|i| ((i * i) >> 5) as u8).collect::<Vec<_>>()).unwrap();
    fs::write(dir.path("empty"), "").unwrap();
    fs::create_dir(dir.path("folder")).unwrap();
    for file in ["noise", "empty", "folder", "missing", "/dev/null", "/dev/zero"] {
        for verb in OTHER_FILES {
            // Zeros are an endless stream of empty payloads.
            if file == "/dev/zero" && verb.starts_with("convert --bare") {
                continue;
            }
            _ = fs::remove_file(dir.path("unpacked.tfrecord"));
            let args = words(verb, OsStr::new(file));
            let ran = run(&dir, &args.iter().map(OsString::as_os_str).collect::<Vec<_>>());
            let context = format!("{verb} of {file}: {ran:?}");
            // An empty schema asks nothing. An empty file has no records.
            let is_empty = ["empty", "/dev/null"].contains(&file) && !verb.starts_with("stats");
            assert!(ran.code > 0 || is_empty, "{context}");
            assert!(ran.code == 0 || ran.code == 1 && is_empty || ran.err.contains(file), "{context}");
            assert!(!ran.err.contains("panicked"), "{context}");
        }
    }
}

/// The first records of a SequenceExample's file may lack feature lists. No verb then drops those of later
/// ones.
#[test]
fn a_guess_that_a_later_record_contradicts_is_an_error() {
    let dir = folder();
    let record = |i: i64| {
        let record = SequenceExampleBuilder::new().int64("id", [i]).bytes("text", ["a needle"]);
        let frames = || [FeatureBuf::Bytes(vec![]), FeatureBuf::Bytes(vec![b"needles".into()])];
        if i < 16 { record } else { record.feature_list("frames", frames()) }.encode().unwrap()
    };
    dir.shard("q.tfrecord", (0..20).map(record));
    let verbs: &[&[&str]] = &[
        &["cat"],
        &["head", "-n", "20", "-f", "json"],
        &["tail", "-n", "1"],
        &["get", "-f", "proto-json"],
        &["sample", "-n", "20"],
        &["digest"],
        &["schema"],
        &["stats"],
        &["stats", "--damage", "skip"],
        &["cat", "--damage", "skip"],
        &["verify", "--decode"],
        &["validate", "-s", "s.json"],
        &["grep", "-F", "needles"],
        &["convert", "--force", "-o", "q.parquet"],
        &["convert", "--force", "-o", "q.jsonl"],
        &["reshard", "--features", "id", "--force", "-o", "kept.tfrecord"],
    ];
    for verb in verbs {
        let name = verb[0];
        let (mut args, mut last) = (verb.to_vec(), vec!["q.tfrecord"]);
        match name {
            "get" => last.push("18"),
            "convert" => (args, last) = (verb[..2].to_vec(), vec!["q.tfrecord", verb[3]]),
            _ => {}
        }
        args.extend(last);
        let ran = dir.run(&args);
        let told = "expected an Example, found a SequenceExample with feature lists (`--kind sequence-example` reads it)";
        assert!(
            ran.code != 0 && ran.err.contains("q.tfrecord: record ") && ran.err.contains(told),
            "{args:?}: {ran:?}"
        );
        args.extend(["--kind", "sequence-example"]);
        let ran = dir.run(&args);
        assert!(ran.code == 0 || name == "validate", "{args:?}: {ran:?}");
        assert!(!ran.err.contains(told), "{args:?}: {ran:?}");
    }
    // A condition tests features, and names what is none.
    dir.shard("lists.tfrecord", (15..20).map(record));
    dir.run(&["grep", "present(frames)", "lists.tfrecord"]).fails(2, &["it is a feature list"]);
    // Tables keep the lists, and digests tell.
    let sequence = ["--kind", "sequence-example"];
    assert_eq!(dir.run(&["convert", "--force", "q.tfrecord", "q.arrow", sequence[0], sequence[1]]).code, 0);
    assert_eq!(dir.run(&["convert", "q.arrow", "back.tfrecord"]).code, 0);
    let digests = |file: &str| dir.run(&["digest", file, sequence[0], sequence[1]]).out;
    let contents = |text: &str| {
        text.lines().map(|line| line.split("digest").last().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(contents(&digests("q.tfrecord")), contents(&digests("back.tfrecord")));
}

/// Fields that an Example does not have are kept, refused or shown as bytes, and not dropped.
#[test]
fn fields_of_no_example_are_not_dropped() {
    let dir = folder();
    let mut records = labels(0..17);
    records.push([&records[0][..], b"\x1a\x04more"].concat());
    dir.shard("m.tfrecord", &records);
    let last = |args: &[&str]| dir.run(args).out.lines().last().unwrap_or_default().to_owned();
    assert!(last(&["digest", "m.tfrecord"]).contains("\"digest\":null"));
    assert!(last(&["cat", "-f", "json", "m.tfrecord"]).contains("\"payload\""));
    let unknown = "malformed message at payload byte";
    for args in [
        &["digest", "--kind", "example", "m.tfrecord"][..],
        &["schema", "m.tfrecord"],
        &["convert", "m.tfrecord", "m.parquet"],
        &["reshard", "m.tfrecord", "--features", "label", "-o", "kept.tfrecord"],
    ] {
        let ran = dir.run(args);
        let words = ["record 17", unknown, "field that the message does not have"];
        assert!(ran.code == 1 && words.iter().all(|word| ran.err.contains(word)), "{args:?}: {}", ran.err);
    }
}

/// Exceptions for a file without records, which is not an error: `schema` has no records to infer from,
/// `grep` no match, `validate` no value of a required feature, and `get` no record 0.
const EMPTY: &[(&str, i32)] =
    &[("schema", 1), ("grep", 1), ("validate FILE -s s.json", 1), ("validate --json", 1), ("get", 2)];

#[test]
fn an_empty_file() {
    let dir = folder();
    fs::write(dir.path("empty"), "").unwrap();
    all_verbs(&dir, "empty", (0, 0, EMPTY));
    let info = dir.run(&["info", "empty"]);
    assert!(info.out.contains("records      0\n") && info.out.contains("kind         unknown\n"), "{info:?}");
}

#[test]
fn a_missing_file_and_a_folder_without_shards() {
    let dir = folder();
    all_verbs(&dir, "missing", (3, 3, &[]));
    fs::create_dir(dir.path("folder")).unwrap();
    fs::write(dir.path("folder/x"), "").unwrap();
    all_verbs(&dir, "folder", (3, 3, &[]));
    dir.run(&["cat", "missing"]).fails(3, &["missing: no such file or directory\n"]);
    dir.run(&["cat", "folder"]).fails(3, &["no file matches folder"]);
}

#[test]
fn a_git_lfs_pointer_and_compressed_text() {
    let dir = folder();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    fs::write(dir.path("x.tfrecord"), pointer).unwrap();
    all_verbs(&dir, "x.tfrecord", (4, 4, &[]));
    // A gzip header, one stored block, its CRC and its length.
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01\x1d\x00\xe2\xff\
        one line of text\nand another\n\
        \xc3\xad\xc7\x21\x1d\x00\x00\x00";
    fs::write(dir.path("y.tfrecord"), gzip).unwrap();
    all_verbs(&dir, "y.tfrecord", (4, 4, &[]));
    dir.run(&["head", "y.tfrecord"]).fails(4, &["y.tfrecord: expected a TFRecord file, found text"]);
    // `info` prints a row for each file, even for a missing one. The exit status is the highest of all.
    dir.shard("z.tfrecord", labels(0..2));
    let ran = dir.run(&["info", "--json", "x.tfrecord", "y.tfrecord", "z.tfrecord", "none"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    let lines: Vec<serde_json::Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let all = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    use serde_json::json;
    assert_eq!(all("records"), [json!(null), json!(null), json!(2), json!(null)]);
    assert_eq!(all("kind"), [json!(null), json!(null), json!("example"), json!(null)]);
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
fn truncated_and_damaged_files() {
    let dir = folder();
    let path = dir.shard("cut.tfrecord", labels(0..3));
    let bytes = fs::read(&path).unwrap();
    for len in [5, 20] {
        fs::write(&path, &bytes[..len]).unwrap();
        all_verbs(&dir, "cut.tfrecord", (1, 1, &[]));
        let ran = dir.run(&["info", "--json", "cut.tfrecord"]);
        let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&line["records"], &line["kind"]), (&0.into(), &serde_json::Value::Null), "{ran:?}");
        assert!(line["error"].as_str().unwrap().contains("truncated"), "{ran:?}");
    }
    // Damage in the length of record 1. `unpack` skips an uncompressed file after its first record.
    let path = dir.shard("length.tfrecord", labels(0..3));
    damage(&path, 34);
    all_verbs(&dir, "length.tfrecord", (1, 1, &[("unpack", 0)]));
    assert_eq!(dir.run(&["cat", "-f", "json", "length.tfrecord"]).out.lines().count(), 1);
    let ran = dir.run(&["info", "--json", "length.tfrecord"]);
    let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&line["records"], &line["kind"]), (&1.into(), &"example".into()), "{ran:?}");
    assert!(line["error"].as_str().unwrap().contains("record 1 at byte 34"), "{ran:?}");
    // Damage in the payload of record 1, which a scan of headers does not read.
    let path = dir.shard("payload.tfrecord", labels(0..3));
    damage(&path, 34 + 20);
    let sound =
        [("unpack", 0), ("info", 0), ("get", 0), ("order", 0), ("index --format", 0), ("index -q FILE", 0)];
    all_verbs(&dir, "payload.tfrecord", (1, 1, &[&sound[..], &[("index -q --pack", 0)]].concat()));
}

#[test]
fn a_file_without_read_permission() {
    let dir = folder();
    let path = dir.shard("closed.tfrecord", labels(0..3));
    let mut mode = fs::metadata(&path).unwrap().permissions();
    mode.set_readonly(true);
    #[cfg(unix)]
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0);
    fs::set_permissions(&path, mode).unwrap();
    if File::open(&path).is_ok() {
        tfseek_testkit::skipped("a user who is not root");
        return;
    }
    all_verbs(&dir, "closed.tfrecord", (3, 3, &[]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_name_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = folder();
    let name = OsStr::from_bytes(b"caf\xe9.tfrecord");
    if fs::rename(dir.shard("x.tfrecord", labels(0..3)), dir.path("").join(name)).is_err() {
        tfseek_testkit::skipped("a file system that allows names of any bytes");
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
            all_verbs(&dir, "/dev/null", (0, 2, &EMPTY[..4]));
            let info = dir.run(&["info", "/dev/null"]);
            info.prints("/dev/null\n  records      0\n  compression  none\n  kind         unknown\n");
        }
        if Path::new("/dev/zero").exists() {
            all_verbs(&dir, "/dev/zero", (4, 2, &[]));
        }
        let _socket = std::os::unix::net::UnixListener::bind(dir.path("socket")).unwrap();
        all_verbs(&dir, "socket", (3, 2, &[]));
        dir.run(&["get", "socket", "0"])
            .fails(2, &["socket: expected a regular file, found a socket", "in order"]);
    }

    /// A process that writes a file into a pipe. It waits until a reader opens the pipe.
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
            tfseek_testkit::skipped("mkfifo");
            return;
        }
        let file = dir.shard("a.tfrecord", labels(0..30));
        for (verbs, code) in [(IN_ORDER, 0), (BY_NUMBER, 2)] {
            for verb in verbs {
                let _feeder = Feeder::new(&file, &pipe);
                check_verb(&dir, verb, OsStr::new("pipe"), &[], code);
            }
        }
        // The pipe is refused without being opened, so no writer is needed.
        dir.run(&["get", "pipe", "0"]).fails(2, &["pipe: expected a regular file, found a FIFO", "in order"]);
        let feeder = Feeder::new(&file, &pipe);
        let info = dir.run(&["info", "pipe"]);
        assert!(info.code == 0 && info.out.contains("records      30\n"), "{info:?}");
        drop(feeder);
        // The records would have to be read again as SequenceExamples.
        let lists = dir.shard("b.tfrecord", (0..30).map(|_| sequence()));
        let feeder = Feeder::new(&lists, &pipe);
        let want = dir.run(&["schema", "b.tfrecord"]);
        let ran = dir.run(&["schema", "pipe"]);
        assert_eq!((ran.code, ran.out, ran.err), (0, want.out, want.err));
        drop(feeder);
        let _feeder = Feeder::new(&file, &pipe);
        dir.run(&["schema", "pipe", "b.tfrecord"])
            .fails(2, &["pipe: cannot be read again", "--kind sequence-example"]);
    }
}
