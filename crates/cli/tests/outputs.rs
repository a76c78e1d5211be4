//! Output paths (replaced, followed, written to or refused), and arguments with extreme values.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "some tests are of Unix or Linux")
)]

use crate::common::*;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns a folder with `a.tfrecord`, the same records in `a.gz`, and a schema.
fn folder() -> Folder {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    dir.shard("a.gz", labels(0..100));
    fs::write(dir.path("schema.json"), dir.run(&["schema", "--json", "a.tfrecord"]).out).unwrap();
    fs::write(dir.path("a.jsonl"), dir.run(&["cat", "-f", "json", "a.tfrecord"]).out).unwrap();
    dir
}

/// Returns the arguments of the verbs that write one file of any name, with the path `out`.
fn writers(out: &str) -> [Vec<&str>; 3] {
    [
        vec!["unpack", "a.gz", "-o", out],
        vec!["salvage", "a.tfrecord", out],
        vec!["epoch", "a.tfrecord", "-b", "10", "--json", "--state-out", out],
    ]
}

/// Returns the output of a verb to a regular file.
fn wanted(dir: &Folder, args: &[&str]) -> Vec<u8> {
    let args: Vec<_> = args.iter().map(|&arg| if arg == "OUT" { "wanted" } else { arg }).collect();
    let ran = dir.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let bytes = fs::read(dir.path("wanted")).unwrap();
    fs::remove_file(dir.path("wanted")).unwrap();
    assert!(!bytes.is_empty());
    bytes
}

fn temporary_files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".tmp-")).collect()
}

#[cfg(unix)]
fn is_fifo(path: &Path) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&path.symlink_metadata().unwrap().file_type())
}

#[test]
#[cfg(unix)]
fn a_fifo_receives_the_bytes_and_is_not_replaced() {
    let dir = folder();
    assert!(Command::new("mkfifo").arg(dir.path("fifo")).status().unwrap().success());
    for verb in 0..2 {
        let want = wanted(&dir, &writers("OUT")[verb]);
        for force in [false, true] {
            let mut args = writers("fifo")[verb].clone();
            args.extend(force.then_some("--force"));
            let mut reader =
                Command::new("cat").arg(dir.path("fifo")).stdout(Stdio::piped()).spawn().unwrap();
            let ran = dir.run(&args);
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
            assert!(is_fifo(&dir.path("fifo")), "{args:?}");
            let mut got = Vec::new();
            reader.stdout.take().unwrap().read_to_end(&mut got).unwrap();
            reader.wait().unwrap();
            assert!(got == want, "{args:?}: {} of {} bytes", got.len(), want.len());
        }
    }
    assert!(temporary_files(&dir.path("")).is_empty());
}

/// The test writes through a link to `/dev/null`, because a failing test could otherwise remove the device.
#[test]
#[cfg(target_os = "linux")]
fn devices_and_descriptors_are_written_to() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let dir = folder();
    symlink("/dev/null", dir.path("null")).unwrap();
    symlink("/dev/full", dir.path("full")).unwrap();
    for verb in 0..3 {
        let ran = dir.run(&writers("null")[verb]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let link = dir.path("null");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert!(link.metadata().unwrap().file_type().is_char_device());

        let ran = dir.run(&writers("full")[verb]);
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains("full: No space left"), "{}", ran.err);

        // A pipe, and a file that is appended to.
        let want = wanted(&dir, &writers("OUT")[verb]);
        let args = &writers("/dev/stdout")[verb];
        let out = dir.command(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        assert!(out.stdout == want, "{args:?}");
        let mut file = fs::File::create(dir.path("redirected")).unwrap();
        file.write_all(b"before").unwrap();
        let status = dir.command(args).stdout(file).stderr(Stdio::null()).status().unwrap();
        assert!(status.success(), "{args:?}");
        let got = fs::read(dir.path("redirected")).unwrap();
        assert!(got == [b"before", &want[..]].concat(), "{args:?}: {} bytes", got.len());
    }
    assert!(temporary_files(&dir.path("")).is_empty());
}

#[test]
#[cfg(unix)]
fn a_link_is_kept_and_its_target_is_replaced() {
    use std::os::unix::fs::symlink;
    for verb in 0..3 {
        let dir = folder();
        let want = wanted(&dir, &writers("OUT")[verb]);
        fs::create_dir(dir.path("there")).unwrap();
        symlink("there/file", dir.path("link")).unwrap();
        for old in [None, Some("old")] {
            if let Some(old) = old {
                fs::write(dir.path("there/file"), old).unwrap();
            }
            let mut args = writers("link")[verb].clone();
            if old.is_some() && verb < 2 {
                dir.run(&args).fails(2, &["link: already exists"]);
                args.push("--force");
            }
            let ran = dir.run(&args);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert!(dir.path("link").symlink_metadata().unwrap().is_symlink());
            assert!(fs::read(dir.path("there/file")).unwrap() == want);
        }
        assert!(temporary_files(&dir.path("there")).is_empty());
    }
}

#[test]
fn outputs_to_the_same_file_are_refused_before_anything_is_written() {
    let dir = Folder::new();
    for folder in ["x", "y"] {
        fs::create_dir(dir.path(folder)).unwrap();
        dir.shard(&format!("{folder}/s.gz"), [folder]);
        dir.shard(&format!("{folder}/s"), [folder]);
    }
    let both = ["x/s.gz", "y/s.gz", "would both be written"];
    dir.run(&["unpack", "x/s.gz", "y/s.gz", "-o", "o"]).fails(2, &both);
    dir.run(&["unpack", "--force", "x/s.gz", "y/s.gz", "-o", "o"]).fails(2, &both);
    assert!(!dir.path("o").exists());
    fs::create_dir(dir.path("o")).unwrap();
    dir.run(&["unpack", "x/s.gz", "y/s.gz", "-o", "o"]).fails(2, &both);
    dir.run(&["unpack", "x/s.gz", "./x/s.gz", "-o", "o"]).fails(2, &["both"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("x", dir.path("link")).unwrap();
        fs::remove_file(dir.path("x/s")).unwrap();
        dir.run(&["unpack", "x/s.gz", "link/s.gz"]).fails(2, &["both"]);
        assert!(!dir.path("x/s").exists());
    }
    assert_eq!(fs::read_dir(dir.path("o")).unwrap().count(), 0);
    // A plain file is skipped.
    let ran = dir.run(&["unpack", "x/s.gz", "y/s", "-o", "o"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(dir.path("o/s.tfrecord").exists());

    dir.shard("x/s", ["x"]);
    let dali = ["index", "--format", "dali", "--index-dir", "i", "x/s", "y/s"];
    dir.run(&dali).fails(2, &["x/s", "y/s", "would both be written"]);
    assert!(!dir.path("i").exists());
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let dir = folder();
    let before = fs::read(dir.path("a.tfrecord")).unwrap();
    let gz = fs::read(dir.path("a.gz")).unwrap();
    fs::copy(dir.path("a.gz"), dir.path("a.tfrecord.gz")).unwrap();
    let salvage = ["salvage", "--force", "a.tfrecord"];
    let epoch = ["epoch", "a.tfrecord", "-b", "10", "-s", "schema.json", "--state-out"];
    dir.run(&[&salvage[..], &["a.tfrecord"]].concat()).fails(2, &["a.tfrecord: is an input"]);
    dir.run(&[&epoch[..], &["a.tfrecord"]].concat()).fails(2, &["a.tfrecord: is an input"]);
    dir.run(&[&epoch[..], &["schema.json"]].concat()).fails(2, &["schema.json: is an input"]);
    dir.run(&["unpack", "--force", "a.gz", "-o", "a.gz"]).fails(2, &["a.gz: is an input"]);
    dir.run(&["unpack", "--force", "a.tfrecord.gz", "a.tfrecord"]).fails(2, &["a.tfrecord: is an input"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.tfrecord", dir.path("link")).unwrap();
        dir.run(&[&salvage[..], &["link"]].concat())
            .fails(2, &["link: is the same file as the input a.tfrecord"]);
        fs::copy(dir.path("a.tfrecord"), dir.path("a.tfrecord.idx")).unwrap();
        dir.run(&["index", "--format", "dali", "a.tfrecord", "a.tfrecord.idx"]).fails(2, &["is an input"]);
    }
    assert!(fs::read(dir.path("a.tfrecord")).unwrap() == before && fs::read(dir.path("a.gz")).unwrap() == gz);
    // The state that a run resumes from may be replaced by the new state.
    for _ in 0..2 {
        let resume: &[&str] = if dir.path("state").exists() { &["--resume", "state"] } else { &[] };
        let args = ["epoch", "a.tfrecord", "-b", "10", "--steps", "2", "--json", "--state-out", "state"];
        let ran = dir.run(&[&args, resume].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }
    assert!(fs::read_to_string(dir.path("state")).unwrap().contains("40"));
}

#[test]
#[cfg(unix)]
fn index_files_replace_links_but_not_fifos() {
    let dir = folder();
    fs::create_dir(dir.path(".tfseek")).unwrap();
    fs::write(dir.path("precious"), "precious").unwrap();
    std::os::unix::fs::symlink("../precious", dir.path(".tfseek/a.tfrecord.tfri")).unwrap();
    std::os::unix::fs::symlink("../precious", dir.path(".tfseek/p.tfrp")).unwrap();
    assert_eq!(dir.run(&["index", "--rebuild", "a.tfrecord"]).code, 0);
    assert_eq!(dir.run(&["index", "--pack", "p", "a.tfrecord"]).code, 0);
    for name in [".tfseek/a.tfrecord.tfri", ".tfseek/p.tfrp"] {
        assert!(dir.path(name).symlink_metadata().unwrap().is_file());
        fs::remove_file(dir.path(name)).unwrap();
        assert!(Command::new("mkfifo").arg(dir.path(name)).status().unwrap().success());
    }
    assert_eq!(fs::read(dir.path("precious")).unwrap(), b"precious");
    dir.run(&["index", "--rebuild", "a.tfrecord"]).fails(3, &["expected a regular file, found a FIFO"]);
    dir.run(&["index", "--pack", "p", "--rebuild", "a.tfrecord"])
        .fails(3, &["expected a regular file, found a FIFO"]);
    assert!(is_fifo(&dir.path(".tfseek/a.tfrecord.tfri")) && is_fifo(&dir.path(".tfseek/p.tfrp")));
}

#[test]
#[cfg(target_os = "linux")]
fn schemas_and_states_are_read_from_pipes_up_to_a_limit() {
    let dir = folder();
    let state =
        dir.run(&["epoch", "a.tfrecord", "-b", "10", "--steps", "3", "--state-out", "/dev/stderr", "--json"]);
    let schema = fs::read(dir.path("schema.json")).unwrap();
    let parse = ["parse", "a.tfrecord", "-n", "1", "--schema"];
    let order = ["order", "a.tfrecord", "-b", "10", "--describe", "--resume"];
    fn with<'a>(args: &[&'a str], path: &'a str) -> Vec<&'a str> {
        [args, &[path]].concat()
    }
    let ran = dir.run_on(&schema, &with(&parse, "/dev/stdin"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = dir.run_on(state.err.as_bytes(), &with(&order, "/dev/stdin"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    for (args, what) in [(&parse[..], "expected a schema"), (&order, "expected a saved state")] {
        // The address space is limited to 400 MB, which reading `/dev/zero` without a limit would exceed.
        let bounded = |path: &str| {
            let mut command = Command::new("sh");
            command.arg("-c").arg("ulimit -v 400000; exec \"$@\"").arg("sh");
            command.arg(env!("CARGO_BIN_EXE_tfseek")).args(with(args, path)).current_dir(dir.path(""));
            command.env("XDG_CACHE_HOME", dir.path("cache")).env("MALLOC_ARENA_MAX", "1");
            Ran::of(command.output().unwrap())
        };
        bounded("/dev/zero").fails(2, &["/dev/zero: expected", "more than 67108864 bytes", what]);
        dir.run_on(b"\xff{}", &with(args, "/dev/stdin"))
            .fails(3, &["/dev/stdin: expected", "not UTF-8", what]);
        dir.run(&with(args, ".")).fails(3, &[".: Is a directory"]);
        dir.run(&with(args, "/dev/null")).fails(2, &["/dev/null: "]);
    }
}

/// An output has a name. Without --shuffle or --split a seed has no use, and a forgotten --shuffle would
/// leave the order as it is.
#[test]
fn outputs_and_options_without_effect_are_refused() {
    let dir = folder();
    for args in [
        &["reshard", "a.tfrecord", "--out", "-"][..],
        &["salvage", "a.tfrecord", "-"],
        &["stats", "a.tfrecord", "--save", "-"],
    ] {
        dir.run(args).fails(2, &["expected a file for the output, found `-`"]);
        assert!(!dir.path("-").exists(), "{args:?}");
    }
    dir.run(&["reshard", "a.tfrecord", "--out", "b", "--seed", "7"]).fails(2, &["--shuffle|--split"]);
    let ran = dir.run(&["reshard", "a.tfrecord", "--out", "b", "--seed", "7", "--shuffle"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let split = ["reshard", "a.tfrecord", "--out", "{split}", "--split", "x=0.5,y=0.5", "--seed", "7"];
    let ran = dir.run(&[&split[..], &["--shuffle"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// The width in a Rust format string is a 16-bit number, and a larger width panics.
#[test]
fn patterns_with_very_wide_numbers() {
    let dir = folder();
    let zeros = "0".repeat(70_000);
    for pattern in [format!("a-{{{zeros}0..9}}"), format!("a-{{0..{zeros}}}"), format!("a@{zeros}5")] {
        let ran = dir.run(&["head", &pattern]);
        assert_eq!(ran.code, 3, "{}", &ran.err[..ran.err.len().min(200)]);
        assert!(!ran.err.contains("panicked"));
    }
}

#[test]
fn more_than_1024_threads_are_refused() {
    let dir = folder();
    for n in ["1025", "1000000000", "9223372036854775808", "18446744073709551615"] {
        for args in [
            &["epoch", "a.tfrecord", "-b", "10", "--threads", n][..],
            &["epoch", "a.tfrecord", "-b", "10", "-j", n],
            &["index", "a.tfrecord", "-j", n],
            &["index", "a.tfrecord", "--format", "dali", "-j", n],
            &["verify", "a.tfrecord", "--threads", n],
            &["get", "a.tfrecord", "1", "-j", n],
        ] {
            dir.run(args).fails(2, &[n, "expected at most 1024 threads"]);
        }
    }
    dir.run(&["verify", "a.tfrecord", "-j", "18446744073709551616"]).fails(2, &["too large"]);
    let ran = dir.run(&["epoch", "a.tfrecord", "-b", "1", "--threads", "300"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn quiet_runs_print_no_summary() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..10));
    let quiet = |args: &[&str]| dir.run(&[args, &["-q"]].concat());
    dir.run(&["reshard", "a.tfrecord", "--out", "b@2.tfrecord"])
        .prints("b@2.tfrecord: 10 records, 2 shards, 340 bytes\n");
    quiet(&["reshard", "a.tfrecord", "--out", "c@2.tfrecord"]).prints("");
    dir.run(&["salvage", "a.tfrecord", "d.tfrecord"]).prints("d.tfrecord: 10 records, 340 bytes\n");
    quiet(&["salvage", "a.tfrecord", "e.tfrecord"]).prints("");
    // Damage is still reported.
    damage(&path, 34 * 4 + 20);
    let ran = quiet(&["salvage", "a.tfrecord", "f.tfrecord"]);
    assert!(ran.code == 1 && ran.err.contains("1 damaged range, 34 bytes left out"), "{}", ran.err);
    assert_eq!(ran.out, "a.tfrecord: damaged: bytes 136..170 (34 bytes): payload crc32c; record 5 follows\n");
}

#[test]
fn index_reports_in_json() {
    let dir = Folder::new();
    for k in 0..2 {
        dir.shard(&format!("x-{k}.tfrecord"), labels(0..3));
    }
    let report = |args: &[&str]| {
        let ran = dir.run(&[&["index", "--json"], args].concat());
        assert_eq!(ran.err, "");
        let mut report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert!(report.get("files").is_some() || report["seconds"].as_f64().is_some_and(|s| s > 0.0));
        report.as_object_mut().unwrap().remove("seconds");
        report
    };
    let both = ["x-0.tfrecord", "x-1.tfrecord"];
    let want = |built: u64, fresh: u64| {
        serde_json::json!({
            "shards": 2, "failed": 0, "records": 6, "bytes": 204, "built": built, "fresh": fresh, "pack": null,
        })
    };
    assert_eq!(report(&both), want(2, 0));
    let mut columns = want(0, 2);
    columns["columns"] =
        serde_json::json!([{"feature": "label", "kind": "int64", "values": 6, "records": 6}]);
    assert_eq!(report(&[&both[..], &["--column", "label"]].concat()), columns);
    let files = serde_json::json!({"files": ["x-0.tfrecord.idx", "x-1.tfrecord.idx"]});
    assert_eq!(report(&[&both[..], &["--format", "dali"]].concat()), files);
    let packed = report(&[&both[..], &["--pack", "all"]].concat());
    assert!(packed["pack"].as_str().is_some_and(|path| path.ends_with("all.tfrp")), "{packed}");
    // A shard that fails is counted, and named.
    damage(&dir.path("x-1.tfrecord"), 36);
    let ran = dir.run(&["index", "--json", "--rebuild", both[0], both[1]]);
    assert!(ran.code == 1 && ran.err.contains("x-1.tfrecord: record 1"), "{}", ran.err);
    assert!(ran.out.contains("\"failed\":1"), "{}", ran.out);
}
