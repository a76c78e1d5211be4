//! The output and the exit status of each verb.

use crate::common::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::process::Stdio;

#[test]
fn digests_of_the_worked_example() {
    let dir = Folder::new();
    let a_is_1 = tfseek::ExampleBuilder::new().int64("a", [1]).encode().unwrap();
    // The same content, not packed.
    let unpacked = b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x02\x08\x01".to_vec();
    dir.shard("a.tfrecord", [a_is_1, Vec::new(), unpacked]);
    let ran = dir.run(&["digest", "a.tfrecord"]);
    let lines: Vec<serde_json::Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let digest = "60e1a574cc928ed433b4a991d949237210c60eafffbbb5d7b9ed3bf48e6b4f3a";
    assert_eq!(lines[0]["digest"], digest);
    assert_eq!(lines[2]["digest"], digest);
    assert_ne!(lines[0]["sha256"], lines[2]["sha256"]);
    assert_eq!(
        ran.out.lines().nth(1).unwrap(),
        "{\"index\":1,\"record\":1,\"length\":0,\
         \"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\
         \"digest\":\"6fa1fe1cd6debd64f7a9f93660a341684169fea401e63a3a11464b66d9de611a\"}"
    );
    dir.shard("text.tfrecord", ["plain"]);
    assert!(dir.run(&["digest", "text.tfrecord"]).out.ends_with("\"digest\":null}\n"));
}

#[test]
fn by_number() {
    let dir = Folder::new();
    dir.shard("x-00000-of-00002.tfrecord", labels(0..5));
    dir.shard("x-00001-of-00002.tfrecord", labels(5..10));
    let json = |args: &[&str]| {
        let ran = dir.run(&[&["get", "x@2.tfrecord", "-f", "json"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let label = |line: &str| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["features"]["label"][0].clone()
        };
        ran.out.lines().map(|line| label(line).as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(json(&["7", "-1", "3..6"]), [7, 9, 3, 4, 5]);
    assert_eq!(json(&["--io", "pread", "8..", "..2"]), [8, 9, 0, 1]);
    dir.run(&["get", "x-*", "6"])
        .prints("record 6, 18 bytes, record 1 of x-00001-of-00002.tfrecord\n  label  int64  6\n");
    dir.run(&["get", "x@2.tfrecord", "10"]).fails(2, &["10"]);
    dir.run(&["get", "x@2.tfrecord", "other"]).fails(2, &["expected record numbers after the paths"]);
    dir.run(&["get", "1", "2"]).fails(2, &["./7"]);
}

#[test]
fn samples_are_distinct_and_reproducible() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    let sample = |args: &[&str]| dir.run(&[&["sample", "-f", "json", "a.tfrecord"], args].concat()).out;
    let first = sample(&["-n", "50", "--seed", "1"]);
    assert_eq!(first, sample(&["-n", "50", "--seed", "1"]));
    assert_ne!(first, sample(&["-n", "50", "--seed", "2"]));
    let mut lines: Vec<_> = first.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 50);
    assert_eq!(sample(&["-n", "500"]).lines().count(), 100);
}

#[test]
fn indexes_next_to_the_data() {
    let dir = Folder::new();
    for s in 0..3 {
        dir.shard(&format!("x-0000{s}-of-00003.tfrecord"), labels(0..100));
    }
    let ran = dir.run(&["index", "x-*"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.starts_with("3 shards, 300 records, "), "{}", ran.err);
    assert_eq!(fs::read_dir(dir.path(".tfseek")).unwrap().count(), 3);
    let info = dir.run(&["info", "x@3.tfrecord"]);
    assert_eq!(info.out.matches("fresh").count(), 3, "{}", info.out);
    assert!(info.out.ends_with("3 files\n") && info.out.contains("\n    300 "), "{}", info.out);

    dir.run(&["index", "--format", "dali", "x-00000-of-00003.tfrecord"])
        .prints("x-00000-of-00003.tfrecord.idx\n");
    let text = fs::read_to_string(dir.path("x-00000-of-00003.tfrecord.idx")).unwrap();
    assert!(text.starts_with("0 34\n34 34\n") && text.lines().count() == 100);

    let ran = dir.run(&["index", "--pack", "train", "x@3.tfrecord"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    dir.run(&["get", ".tfseek/train.tfrp", "250"])
        .prints("record 250, 18 bytes, record 50 of ./x-00002-of-00003.tfrecord\n  label  int64  50\n");
}

#[test]
fn columns_next_to_the_data() {
    let dir = Folder::new();
    for s in 0..2 {
        dir.shard(&format!("x-{s}.tfrecord"), labels(0..100));
    }
    let other = tfseek::ExampleBuilder::new().int64("label", [7]).int64("other", [7]).encode().unwrap();
    dir.shard("x-2.tfrecord", [other]);
    let ran = dir.run(&["index", "x-*", "--column", "label", "--column", "other", "--classes"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("column label: int64 values in 201 of 201 records"), "{}", ran.err);
    assert!(ran.err.contains("column other: int64 values in 1 of 201 records"), "{}", ran.err);
    assert!(
        dir.path(".tfseek/x-0.tfrecord.other.tfrc").exists(),
        "a shard without the feature has a file too"
    );
    assert_eq!(fs::read_dir(dir.path(".tfseek")).unwrap().count(), 3 * 3);

    dir.shard("y.tfrecord", [tfseek::ExampleBuilder::new().int64("label", [1, 2]).encode().unwrap()]);
    let ran = dir.run(&["index", "[xy]*.tfrecord", "--column", "label", "--rebuild"]);
    ran.fails(1, &["y.tfrecord: record 0", "\"label\"", "expected 1 value, found 2", "201 of 201 records"]);
}

#[test]
fn a_misspelt_feature_is_an_error() {
    let dir = Folder::new();
    for s in 0..2 {
        dir.shard(&format!("x-{s}.tfrecord"), labels(0..100));
    }
    let words = ["feature \"labels\": no record has a value of this feature; the nearest name is \"label\""];
    for _ in 0..2 {
        let ran = dir.run(&["index", "x-*", "--column", "label", "--column", "labels"]);
        ran.fails(2, &words);
        assert!(ran.err.contains("column label: int64 values in 200 of 200 records"), "{}", ran.err);
        assert!(!ran.err.contains("column labels"), "{}", ran.err);
        assert!(!dir.path(".tfseek/x-0.tfrecord.labels.tfrc").exists());
    }
    for verb in [&["epoch", "-b", "8"][..], &["order", "-b", "8", "--describe"]] {
        dir.run(&[verb, &["x-*", "--where", "labels in 3"]].concat()).fails(2, &words);
        dir.run(&[verb, &["x-*", "--where", "absent(labels)"]].concat()).fails(2, &words);
        dir.run(&[verb, &["x-*", "--balance", "labels"]].concat()).fails(2, &words);
        dir.run(&[verb, &["x-*", "--balance", "label", "--where", "label > 100"]].concat())
            .fails(2, &["\"label\"", "no classes to balance: none of the selected records has a value"]);
    }
}

#[test]
fn seeds_may_be_negative() {
    let dir = Folder::new();
    dir.shard("x.tfrecord", labels(0..100));
    for verb in [&["order", "-b", "8", "--step", "0", "--ids"][..], &["sample", "-n", "5"]] {
        let out = |seed: &str| {
            let ran = dir.run(&[verb, &["x.tfrecord", "--seed", seed]].concat());
            assert_eq!(ran.code, 0, "{}", ran.err);
            ran.out
        };
        assert_eq!(out("-1"), out("18446744073709551615"), "the number with the same bits");
        assert_eq!(out("-9223372036854775808"), out("9223372036854775808"));
        assert_ne!(out("-1"), out("1"));
    }
    for verb in [&["order", "x.tfrecord", "-b", "8", "--step", "0"][..], &["sample", "x.tfrecord"], &["demo"]]
    {
        for seed in ["-9223372036854775809", "18446744073709551616", "1.5", "x"] {
            dir.run(&[verb, &["--seed", seed]].concat()).fails(2, &["a number from -2^63 to 2^64 - 1"]);
        }
    }
    let epoch = |seed| {
        dir.run(&["epoch", "x.tfrecord", "-b", "8", "--seed", seed, "--state-out", "s", "--steps", "1"]).code
    };
    assert_eq!(epoch("-2"), 0);
    assert!(fs::read_to_string(dir.path("s")).unwrap().contains("\"seed\":18446744073709551614"));
}

#[test]
fn each_damaged_shard_is_named() {
    let dir = Folder::new();
    for s in 0..4 {
        let path = dir.shard(&format!("x-{s}.tfrecord"), labels(0..100));
        if s % 2 == 1 {
            // The length of record 50.
            damage(&path, 34 * 50);
        }
    }
    let at = "record 50 at byte 1700";
    let ran = dir.run(&["index", "x-*"]);
    ran.fails(1, &[&format!("x-1.tfrecord: {at}"), &format!("x-3.tfrecord: {at}"), "2 of 4 shards, "]);
    let ran = dir.run(&["verify", "x-*"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.out,
        "x-1.tfrecord: damaged: bytes 1700..1734 (34 bytes): length crc32c\n\
         x-3.tfrecord: damaged: bytes 1700..1734 (34 bytes): length crc32c\n\
         2 of 4 files sound: 398 records, 7.16 kB of payload\n"
    );
    assert!(
        ran.err.contains(&format!("x-1.tfrecord: {at}")) && ran.err.contains(&format!("x-3.tfrecord: {at}"))
    );
    // The records before the damage, then the error.
    let ran = dir.run(&["cat", "-f", "json", "x-1.tfrecord"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 50));
    assert!(ran.err.contains(at));
    assert_eq!(dir.run(&["head", "-n", "50", "-f", "json", "x-1.tfrecord"]).code, 0);
    // The last records before the damage.
    let ran = dir.run(&["tail", "-n", "1", "-f", "json", "x-1.tfrecord"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (1, "{\"index\":49,\"record\":49,\"features\":{\"label\":[49]}}\n")
    );
    dir.run(&["get", "x-1.tfrecord", "0"]).fails(1, &[at]);
    let ran = dir.run(&["info", "--json", "x-1.tfrecord"]);
    assert!(ran.code == 1 && ran.out.contains("\"records\":50,"), "{}", ran.out);
}

#[test]
fn damaged_and_malformed_payloads() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..10));
    damage(&path, 34 * 4 + 20);
    assert_eq!(dir.run(&["index", "-q", "a.tfrecord"]).code, 0);
    dir.run(&["index", "--rebuild", "--check", "a.tfrecord"])
        .fails(1, &["record 4 at byte 136: payload crc32c"]);
    let mut payloads = labels(0..3);
    payloads.push(b"\x0a\x05\x0a\x03".to_vec());
    dir.shard("b.tfrecord", payloads);
    assert_eq!(dir.run(&["verify", "b.tfrecord"]).code, 0);
    let ran = dir.run(&["verify", "--decode", "--json", "b.tfrecord"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("b.tfrecord: record 3 at byte 102: "), "{}", ran.err);
    let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&line["ok"], &line["records"], &line["malformed"]), (&false.into(), &4.into(), &1.into()));
}

#[test]
fn unpack_and_its_errors() {
    let dir = Folder::new();
    dir.shard("a.tfrecord.gz", labels(0..10));
    let gz = dir.shard("zipped.gz", labels(0..10));
    fs::rename(gz, dir.path("b.tfrecord")).unwrap();
    dir.run(&["get", "a.tfrecord.gz", "3"]).prints("record 3, 18 bytes\n  label  int64  3\n");
    let ran = dir.run(&["unpack", "a.tfrecord.gz"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    dir.run(&["get", "a.tfrecord", "3", "-f", "json"])
        .prints("{\"index\":3,\"record\":3,\"features\":{\"label\":[3]}}\n");
    dir.run(&["unpack", "a.tfrecord.gz"]).fails(2, &["--force"]);
    assert_eq!(dir.run(&["unpack", "--force", "a.tfrecord.gz"]).code, 0);
    dir.run(&["unpack", "b.tfrecord"]).fails(2, &["-o"]);
    assert_eq!(dir.run(&["unpack", "-o", "c.tfrecord", "b.tfrecord"]).code, 0);
    assert_eq!(fs::read(dir.path("a.tfrecord")).unwrap(), fs::read(dir.path("c.tfrecord")).unwrap());
    // A damaged file produces no output.
    let path = dir.shard("d.tfrecord.gz", labels(0..10));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(dir.run(&["unpack", "d.tfrecord.gz"]).code, 1);
    assert!(!dir.path("d.tfrecord").exists());
}

#[test]
fn standard_input() {
    let dir = Folder::new();
    for name in ["a.tfrecord", "a.tfrecord.gz", "a.tfrecord.zz"] {
        let bytes = fs::read(dir.shard(name, labels(0..30))).unwrap();
        let head = dir.run_on(&bytes, &["head", "-n", "1", "-"]);
        head.prints("record 0, 18 bytes\n  label  int64  0\n");
        assert_eq!(dir.run_on(&bytes, &["cat", "-f", "json", "-"]).out.lines().count(), 30);
        assert_eq!(dir.run_on(&bytes, &["digest", "-"]).out.lines().count(), 30);
        assert_eq!(
            dir.run_on(&bytes, &["verify", "-"]).out,
            "1 of 1 file sound: 30 records, 540 bytes of payload\n"
        );
        assert!(dir.run_on(&bytes, &["info", "-"]).out.contains("records      30\n"));
    }
    dir.run_on(b"", &["cat", "-"]).prints("");
    dir.run_on(b"{\"no\": \"tfrecord\"}", &["head", "-"]).fails(4, &["<stdin>", "JSON"]);
}

#[test]
fn files_that_are_not_tfrecords() {
    let dir = Folder::new();
    fs::write(dir.path("lfs"), "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        .unwrap();
    dir.run(&["head", "lfs"]).fails(4, &["lfs", "git-LFS pointer", "git lfs pull"]);
    dir.run(&["head", "missing.tfrecord"]).fails(3, &["missing.tfrecord: no such file or directory\n"]);
    for args in [["parse", "a", "--schema", "none.json"], ["order", "-b1", "--step=0", "--resume=none.json"]]
    {
        let ran = dir.run(&args);
        assert!(!ran.err.contains("entity"), "{}", ran.err);
    }
    dir.run(&["head", "missing-*"]).fails(3, &["no file matches missing-*"]);
    dir.run(&["head"]).fails(2, &["PATHS"]);
    dir.run(&["head", "--kind", "nonsense", "x"]).fails(2, &["nonsense"]);
}

#[test]
fn missing_shards() {
    let dir = Folder::new();
    dir.shard("x-00000-of-00003.tfrecord", labels(0..1));
    dir.shard("x-00002-of-00003.tfrecord", labels(2..3));
    for verb in ["head", "index", "verify", "digest", "info", "sample"] {
        let ran = dir.run(&[verb, "x-*"]);
        let words = ["x-00001-of-00003.tfrecord", "--allow-missing"];
        assert!(ran.code == 1 && words.iter().all(|word| ran.err.contains(word)), "{verb}: {}", ran.err);
        assert_eq!(dir.run(&[verb, "x-*", "--allow-missing"]).code, 0, "{verb}");
    }
}

/// The reader of standard output closes its pipe early.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..50_000));
    for args in [["cat", "a.tfrecord"], ["digest", "a.tfrecord"]] {
        let mut command = dir.command(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = output_of(child);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    }
}

#[test]
fn progress_is_printed_on_request() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..1000));
    assert_eq!(dir.run(&["verify", "a.tfrecord"]).err, "");
    assert_eq!(dir.run(&["verify", "-q", "--progress", "a.tfrecord"]).err, "");
    let ran = dir.run(&["verify", "--progress", "a.tfrecord"]);
    // However many lines are left out, the last one says that all is done.
    let is_whole = |err: &str| {
        let (done, all) = err.lines().rfind(|line| line.contains('█'))?.split_once('/')?;
        Some(all.starts_with(done.rsplit('█').next()?.trim()))
    };
    assert_eq!(is_whole(&ran.err), Some(true), "{}", ran.err);
    dir.shard("z.gz", labels(0..1000));
    fs::write(dir.path("s.json"), dir.run(&["schema", "--json", "a.tfrecord"]).out).unwrap();
    fs::write(dir.path("a.jsonl"), dir.run(&["cat", "-f", "json", "a.tfrecord"]).out).unwrap();
    for (args, labels) in [
        (&["schema", "--all", "a.tfrecord"][..], &["reading"][..]),
        (&["parse", "-s", "s.json", "a.tfrecord"], &["parsing"]),
        (&["unpack", "z.gz", "-o", "z", "--force"], &["unpacking"]),
        (&["grep", "-c", "label >= 0", "a.tfrecord"], &["searching"]),
        (&["stats", "a.tfrecord"], &["reading"]),
        (&["stats", "--sample", "10", "a.tfrecord"], &["reading"]),
        (&["validate", "-s", "s.json", "a.tfrecord"], &["validating"]),
        (&["salvage", "a.tfrecord", "s", "--force"], &["salvaging"]),
        (&["reshard", "a.tfrecord", "--out", "r", "--force"], &["resharding"]),
        (&["convert", "a.jsonl", "-s", "s.json", "e.tfrecord", "--force"], &["converting"]),
    ] {
        let ran = dir.run(&[args, &["--progress"]].concat());
        assert!(ran.code == 0 && labels.iter().all(|label| ran.err.contains(label)), "{}", ran.err);
        assert!(args[0] == "unpack" || is_whole(&ran.err) == Some(true), "{}", ran.err);
        assert_eq!(dir.run(&[args, &["--progress", "-q"]].concat()).err, "", "{args:?}");
        assert!(!dir.run(args).err.contains("ing"), "{args:?}");
    }
    // Nothing is shown for the first records only.
    assert_eq!(dir.run(&["schema", "--progress", "a.tfrecord"]).err, "");
}

#[test]
fn the_demo_runs_and_cleans_up() {
    let dir = Folder::new();
    fs::create_dir(dir.path("tmp")).unwrap();
    let output = dir.command(&["demo"]).env("TMPDIR", dir.path("tmp")).output().unwrap();
    let ran = Ran::of(output);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for words in [
        "10,000 observations in 4 shards",
        "feature2  bytes",
        "image     bytes  <png 24x24 ",
        "tfseek order",
        "of 10,000 records in",
        "mean",
        "the next records, resumed",
        "a shuffled epoch",
        "records/s",
        "Next",
    ] {
        assert!(ran.out.contains(words), "no {words:?} in {}", ran.out);
    }
    // All records that meet the condition are named, so no more follow.
    assert!(ran.out.lines().any(|line| line.ends_with(": 455 3040")), "{}", ran.out);
    let next = |name: &str| {
        let line = ran.out.lines().find(|line| line.contains(&format!("the next records, {name}")));
        line.unwrap().split_once(name).unwrap().1.trim().to_owned()
    };
    assert_eq!(next("without a stop"), next("resumed"));
    // The lines under "Next" work as they are printed.
    let (_, lines) = ran.out.split_once("Next\n").unwrap();
    for line in lines.lines() {
        let mut shell = std::process::Command::new("sh");
        let ran = Ran::of(shell.args(["-c", line]).current_dir(dir.path("")).output().unwrap());
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    assert_eq!(lines.lines().count(), 6);
    assert_eq!(fs::read_dir(dir.path("tmp")).unwrap().count(), 0);
    assert_eq!(dir.run(&["demo", "--out", "kept"]).code, 0);
    assert!(dir.run(&["info", "kept"]).out.contains("10,000"));
    dir.run(&["demo", "--out", "kept"])
        .fails(2, &["kept: already exists", "--out expects a new or empty folder"]);
}

/// The sky of a picture follows from `feature0`, its animal from `feature2`, and its bar from `feature3`,
/// from -3 to 3.
#[test]
fn pictures_of_the_demo_show_the_other_features() {
    let dir = Folder::new();
    assert_eq!(dir.run(&["demo", "--out", "data", "-q"]).code, 0);
    let dataset = tfseek::Dataset::open(dir.path("data").to_str().unwrap()).unwrap();
    let (mut pictures, mut buf) = (BTreeMap::new(), Vec::new());
    for i in 0..dataset.len() {
        let record = dataset.read(i, &mut buf).unwrap();
        let example = record.example();
        let word = example.bytes("feature2").unwrap().first().unwrap().to_vec();
        let value = example.float("feature3").unwrap().first().unwrap();
        let bar = ((value + 3.0) * 2.0).round().clamp(0.0, 12.0) as usize;
        let day = example.int64("feature0").unwrap().first().unwrap();
        let file = example.bytes("image").unwrap().first().unwrap();
        // Records that are alike have the same picture, and others another one.
        let known = pictures.entry(file.to_vec()).or_insert_with(|| (day, word.clone(), bar));
        assert_eq!(*known, (day, word, bar), "record {i}");
    }
    assert!((120..=130).contains(&pictures.len()), "{} pictures", pictures.len());
    let (mut skies, mut heads) = (BTreeMap::new(), BTreeMap::new());
    for (file, (day, word, bar)) in &pictures {
        assert!(file.len() < 256, "{} bytes", file.len());
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (24, 24, png::ColorType::Rgb));
        let pixels: Vec<&[u8]> = bytes.chunks(3).collect();
        let sky = pixels[0];
        assert_eq!(*skies.entry(day).or_insert_with(|| sky.to_vec()), sky);
        let drawn = |pixel: &&[u8]| if *pixel == sky { Vec::new() } else { pixel.to_vec() };
        let (head, last) = pixels.split_at(22 * 24);
        let head: Vec<_> = head.iter().map(drawn).collect();
        assert_eq!(*heads.entry(word).or_insert_with(|| head.clone()), head);
        let full = last.iter().map(|&pixel| pixel != sky).collect::<Vec<_>>();
        assert_eq!(full, [vec![true; 2 * bar], vec![false; 24 - 2 * bar]].concat().repeat(2));
    }
    assert_ne!(skies[&0], skies[&1]);
    assert_eq!(
        heads.keys().map(|word| str::from_utf8(word).unwrap()).collect::<Vec<_>>(),
        ["cat", "chicken", "dog", "goat", "horse"]
    );
    assert_eq!(heads.values().collect::<BTreeSet<_>>().len(), 5);
}

/// The page of the command names every verb, and only verbs and options that exist.
#[test]
fn the_page_of_the_command_names_every_verb() {
    let Ok(page) = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command.md")) else {
        tfseek_testkit::skipped("docs/command.md");
        return;
    };
    let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let dir = Folder::new();
    let help = dir.run(&["--help"]).out;
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let verbs: Vec<&str> = commands.lines().filter_map(|l| l.strip_prefix("  ")?.split(' ').next()).collect();
    let verbs: Vec<&str> = verbs.into_iter().filter(|&verb| !verb.is_empty() && verb != "help").collect();
    assert!(verbs.len() > 10);
    let mut options = String::new();
    for verb in &verbs {
        assert!(quoted.contains(verb), "docs/command.md does not name {verb}");
        options += &dir.run(&[verb, "--help"]).out;
    }
    let rows = page
        .split_once("\n## Verbs\n")
        .unwrap()
        .1
        .split_once("\n## ")
        .unwrap()
        .0
        .lines()
        .filter_map(|row| row.strip_prefix("| `")?.split_once(" |"));
    for name in rows.flat_map(|(names, _)| names.split(", ")).map(|name| name.trim_matches('`')) {
        assert!(verbs.contains(&name), "there is no verb {name}");
    }
    let words = page.split(|c: char| c.is_whitespace() || "`();,.:".contains(c));
    for option in words.filter(|word| word.starts_with("--") && word.len() > 3 && *word != "--path") {
        assert!(options.contains(option), "there is no option {option}");
    }
}

#[test]
fn completions_and_help() {
    let dir = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(dir.run(&["completions", shell]).out.contains("tfseek"), "{shell}");
    }
    let help = dir.run(&["--help"]).out;
    assert!(help.contains("Exit status"));
    // The pages of the repository are not installed with the command.
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in verbs {
        let help = dir.run(&["help", verb]).out;
        assert!(!help.contains("docs/") && !help.contains(".md"), "{verb}: {help}");
    }
    // The examples of the grammar are conditions.
    let help = dir.run(&["help", "grep"]).out;
    let grammar =
        help.lines().skip_while(|line| *line != "Conditions:").skip(1).take_while(|line| !line.is_empty());
    let texts = grammar.filter_map(|line| line.trim_start().split("  ").next());
    let whole: Vec<_> = texts.filter(|text| text.parse::<tfseek::Filter>().is_ok()).collect();
    assert_eq!(
        whole,
        [
            "width > height",
            "label in 1, 2, 5..9",
            "name contains \"at\"",
            "name matches \"^c.t$\"",
            "any(steps(x)) > 3",
            "record in 10..20",
            "split(0.1, seed=7)"
        ]
    );
    dir.run(&["--version"]).prints(concat!("tfseek ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// A feature that some shards lack is not an error, and a damaged shard might have any feature.
#[test]
fn a_shard_may_lack_a_feature_that_others_have() {
    let folder = Folder::new();
    let a = folder.shard("a.tfrecord", labels(0..5));
    let other = tfseek::ExampleBuilder::new().int64("other", [1]).encode().unwrap();
    folder.shard("b.tfrecord", [other]);
    let columns = || folder.run(&["index", "--column", "label", "a.tfrecord", "b.tfrecord"]);
    assert_eq!(columns().code, 0);
    let kept = folder.path(".tfseek/b.tfrecord.label.tfrc");
    assert!(kept.exists());
    crate::common::damage(&a, 20);
    let ran = columns();
    assert!(ran.code == 1 && !ran.err.contains("no record has"), "{ran:?}");
    assert!(kept.exists());
}

/// The command and the Python package have one name for one thing. Names of the command have `-` for `_`.
#[test]
fn options_have_the_names_of_the_python_package() {
    let read = |path: &str| fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR")));
    let (Ok(choices), Ok(loader), Ok(open), Ok(page)) = (
        read("python/src/options.rs"),
        read("python/tfseek/_loader.py"),
        read("python/tfseek/_open.py"),
        read("docs/command.md"),
    ) else {
        tfseek_testkit::skipped("the Python package");
        return;
    };
    let dir = Folder::new();
    let python = |choice: &str| -> Vec<String> {
        let (_, values) = choices.split_once(&format!("\n    {choice} {{")).unwrap();
        let words = values.split('}').next().unwrap().split('"');
        let mut names: Vec<_> = words.skip(1).step_by(2).map(str::to_owned).collect();
        names.sort();
        names
    };
    let command = |verb: &str, option: &str| -> Vec<String> {
        let ran = dir.run(&[verb, "x", option, "?"]);
        let (_, values) = ran.err.split_once("[possible values: ").unwrap();
        let mut names: Vec<_> =
            values.split(']').next().unwrap().split(", ").map(|name| name.replace('-', "_")).collect();
        names.sort();
        names
    };
    for (verb, option, choice, only_python, only_command) in [
        ("cat", "--kind", "KindOption: \"kind\"", "", ""),
        // Reads without maps must be requested. File order is `shuffle=False` in Python.
        ("get", "--io", "ReadMode: \"io\"", "auto", ""),
        ("epoch", "--shuffle", "Shuffle: \"shuffle\"", "", "none"),
        ("epoch", "--verify", "LoaderVerify: \"verify\"", "", ""),
        ("order", "--last-batch", "LastBatch: \"last_batch\"", "", ""),
    ] {
        let (mut python, mut command) = (python(choice), command(verb, option));
        python.retain(|name| name != only_python);
        command.retain(|name| name != only_command);
        assert_eq!(command, python, "{option}");
    }
    let table = page.split_once("## Names shared with Python").unwrap().1.split_once("\n## ").unwrap().0;
    for (verb, option) in [
        ("cat", "--kind"),
        ("get", "--io"),
        ("epoch", "--shuffle"),
        ("epoch", "--verify"),
        ("order", "--last-batch"),
    ] {
        let row = table.lines().find(|line| line.starts_with(&format!("| `{option}`"))).unwrap();
        for name in command(verb, option) {
            assert!(row.contains(&format!("`{}`", name.replace('_', "-"))), "{option}: {name}");
        }
    }
    // The spelling of Python, and earlier names.
    dir.shard("a.tfrecord", labels(0..3));
    for (earlier, kind) in
        [("sequence_example", "sequence-example"), ("sequence", "sequence-example"), ("raw", "bytes")]
    {
        let print = |kind| dir.run(&["cat", "--kind", kind, "-f", "json", "a.tfrecord"]).out;
        assert!(!print(kind).is_empty() && print(earlier) == print(kind), "{earlier}");
    }
    assert_eq!(dir.run(&["epoch", "a.tfrecord", "-b", "1", "--verify", "first_epoch"]).code, 0);

    let shared = [
        (
            "epoch",
            &loader,
            &[
                "batch_size",
                "global_batch_size",
                "shuffle",
                "balance",
                "seed",
                "epoch",
                "rank",
                "world_size",
                "threads",
                "verify",
            ][..],
        ),
        ("get", &open, &["kind", "io", "index_dir", "max_record", "allow_missing", "threads"]),
    ];
    for (verb, source, names) in shared {
        let help = dir.run(&[verb, "--help"]).out;
        for name in names {
            assert!(
                source.contains(&format!("\n    {name}: "))
                    || source.contains(&format!("\n        {name}: ")),
                "{name}"
            );
            let option = format!("--{}", name.replace('_', "-"));
            assert!(
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                "{option}"
            );
        }
    }
}

#[test]
fn checkpoints_of_compressed_files() {
    let dir = Folder::new();
    let payloads = labels(0..3000);
    for name in ["a.tfrecord.gz", "b.tfrecord.zz", "c.tfrecord"] {
        dir.shard(name, payloads.clone());
    }
    let size = |name: &str| fs::metadata(dir.path(&format!(".tfseek/{name}.tfri"))).unwrap().len();
    let index = |every: &str| {
        let ran = dir.run(&[
            "index",
            "--rebuild",
            "--checkpoint-every",
            every,
            "a.tfrecord.gz",
            "b.tfrecord.zz",
            "c.tfrecord",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        (size("a.tfrecord.gz"), size("b.tfrecord.zz"))
    };
    let (coarse, fine) = (index("1000000"), index("10000"));
    assert!(fine.0 > coarse.0 && fine.1 > coarse.1, "{coarse:?} {fine:?}");
    let args = ["get", "a.tfrecord.gz", "b.tfrecord.zz", "c.tfrecord", "2999", "3000", "8999", "-f", "json"];
    let lines = dir.run(&args).out;
    let labels: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let label = |k: usize| labels[k]["features"]["label"][0].as_i64();
    assert_eq!((label(0), label(1), label(2)), (Some(2999), Some(0), Some(2999)));
    dir.run(&["index", "-q", "--pack", "p", "a.tfrecord.gz", "b.tfrecord.zz", "c.tfrecord"]).prints("");
    assert_eq!(
        dir.run(&["get", ".tfseek/p.tfrp", "2999", "3000", "8999", "-f", "json"]).out.lines().count(),
        3
    );
    let info = |file: &str| dir.run(&["info", "--json", file]).out;
    let found: serde_json::Value = serde_json::from_str(&info("a.tfrecord.gz")).unwrap();
    let file = dir.path(".tfseek/a.tfrecord.gz.tfri");
    assert_eq!(found["records"], 3000);
    assert_eq!(found["index_file"], "fresh ./.tfseek/a.tfrecord.gz.tfri");
    assert_eq!(found["index_bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(found["checkpoint_spacing"], 10_000);
    assert!(found["checkpoints"].as_u64().unwrap() >= 2, "{found}");
    let plain: serde_json::Value = serde_json::from_str(&info("c.tfrecord")).unwrap();
    assert_eq!(
        (&plain["inflated"], &plain["checkpoints"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(found["inflated"], plain["size"]);
    let text = dir.run(&["info", "a.tfrecord.gz"]).out;
    for part in ["inflated", "checkpoints", "at least 10 kB apart", "% of the file", "fresh"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    fs::remove_file(file).unwrap();
    let found: serde_json::Value = serde_json::from_str(&info("a.tfrecord.gz")).unwrap();
    assert_eq!((&found["index_file"], &found["records"]), (&"none".into(), &3000.into()));
    assert_eq!(found["inflated"], serde_json::Value::Null);
}

/// The first record may lack a feature that the others have, although it has one of a similar name.
#[test]
fn a_name_that_the_first_record_lacks_is_no_misspelt_one() {
    let dir = Folder::new();
    let record = |i: i64| {
        let record = tfseek::ExampleBuilder::new().int64("age", [i]);
        if i == 0 { record } else { record.int64("ages", [2 * i]) }.encode().unwrap()
    };
    dir.shard("a.tfrecord", (0..100).map(record));
    dir.shard("short.tfrecord", (0..1).map(record));
    dir.shard("b.tfrecord.gz", (0..100).map(record));
    let condition = ["--where", "age == 0 or ages == 8"];
    for (verb, lines) in [("cat", 2), ("head", 2), ("digest", 2), ("sample", 2), ("tail", 2)] {
        for file in ["a.tfrecord", "b.tfrecord.gz"] {
            let format: &[&str] = if verb == "digest" { &[] } else { &["-f", "json"] };
            let ran = dir.run(&[&[verb, file], &condition[..], format].concat());
            assert_eq!((ran.code, ran.out.lines().count()), (0, lines), "{verb} {file}: {ran:?}");
        }
    }
    let ran = dir.run(&[&["cat", "short.tfrecord", "a.tfrecord", "-f", "json"], &condition[..]].concat());
    assert_eq!((ran.code, ran.out.lines().count()), (0, 3), "{ran:?}");
    let ran = dir.run(&[&["get", "a.tfrecord", "0,4", "-f", "json"], &condition[..]].concat());
    assert_eq!((ran.code, ran.out.lines().count()), (0, 2), "{ran:?}");
}

#[test]
fn a_misspelt_name_in_a_condition_is_an_error_before_the_first_record() {
    let dir = Folder::new();
    let records = (0..40).map(|i| tfseek::ExampleBuilder::new().int64("age", [i]).encode().unwrap());
    dir.shard("a.tfrecord", records);
    for verb in ["head", "tail", "cat", "get", "sample", "digest", "stats", "grep"] {
        for (condition, quiet) in [("agee > 20", false), ("not agee > 20", true)] {
            let mut args = vec![verb, "a.tfrecord"];
            match verb {
                "grep" => args = vec![verb, condition, "a.tfrecord"],
                "get" => args.extend(["0:40", "--where", condition]),
                _ => args.extend(["--where", condition]),
            }
            args.extend(quiet.then_some("-q"));
            dir.run(&args).fails(2, &["has a feature \"agee\"; the nearest name is \"age\""]);
        }
    }
    // A name without a similar one may occur in a later record.
    let ran = dir.run(&["cat", "a.tfrecord", "--where", "weight > 20"]);
    assert!(ran.code == 0 && ran.err.contains("no record that was read has a feature \"weight\""), "{ran:?}");
    assert_eq!(dir.run(&["cat", "-q", "a.tfrecord", "--where", "weight > 20"]).err, "");
    let few = dir.run(&["head", "a.tfrecord", "--where", "record == 3 or agee == 3"]);
    few.fails(2, &["nearest name is \"age\""]);
    // The other files have no such feature, too.
    let several = dir.run(&["head", "a.tfrecord", "a.tfrecord", "--where", "agee > 20"]);
    assert_eq!(
        (several.code, several.out.matches("==>").count(), several.err.matches("agee").count()),
        (2, 1, 2)
    );
    assert!(!several.err.contains("no record that was read"), "{}", several.err);
}
