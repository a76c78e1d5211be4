//! `stats`: its output, its files and its errors.

#![cfg(unix)]

use crate::common::*;
use std::fs;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn threads_compression_and_pipes_do_not_change_the_output() {
    let dir = Folder::new();
    for folder in ["plain", "gzip"] {
        fs::create_dir(dir.path(folder)).unwrap();
        let suffix = if folder == "gzip" { ".gz" } else { "" };
        dir.shard(&format!("{folder}/a.tfrecord{suffix}"), (0..3_000).map(|k| label(k % 70)));
        dir.shard(&format!("{folder}/b.tfrecord{suffix}"), labels(0..500));
    }
    let gzip = fs::read(dir.path("gzip/a.tfrecord.gz")).unwrap();
    for format in [&["--json"][..], &[]] {
        let run =
            |folder: &str, threads: &str| dir.run(&[&["stats", "-j", threads, folder], format].concat());
        let expected = run("plain", "1");
        assert_eq!((expected.code, expected.err.as_str()), (0, ""));
        for (folder, threads) in [("plain", "8"), ("gzip", "1"), ("gzip", "8")] {
            assert_eq!(run(folder, threads).out, expected.out);
        }
        let alone = dir.run(&[&["stats", "plain/a.tfrecord"], format].concat());
        let ran = dir.run_on(&gzip, &[&["stats", "-"], format].concat());
        assert_eq!((ran.code, ran.out), (0, alone.out));
    }
    dir.run(&["stats", "plain/a.tfrecord"]).prints(
        "3,000 Examples, 1 feature; every value seen\n  records of 18 bytes, 70 distinct\n  \
         feature  kind   in   distinct  values\n  \
         label    int64  all  70        0 .. 34 .. 69  mean 34.4  std 20.16  ██████████████\n",
    );
}

/// In a terminal of 80 columns, the histograms of the demo's data are whole.
#[test]
fn histograms_fit_into_80_columns() {
    let dir = Folder::new();
    assert_eq!(dir.run(&["demo", "-q", "--out", "data"]).code, 0);
    let line =
        format!("stty cols 80; exec {} stats data --color never 2>/dev/null", env!("CARGO_BIN_EXE_tfseek"));
    let mut command = std::process::Command::new("script");
    let ran = command.args(["-qec", &line, "/dev/null"]).current_dir(dir.path("")).output();
    let Ok(ran) = ran.map_err(|_| tfseek_testkit::skipped("script")) else { return };
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap().replace('\r', ""),
        "10,000 Examples, 5 features; every value seen\n  records of 315 .. 320 .. 324 bytes\n  \
         feature   kind   in   distinct  values\n  \
         feature0  int64  all  2         0 .. 0 .. 1\n      mean 0.4989    std 0.5     ██\n  \
         feature1  int64  all  5         0 .. 2 .. 4\n      mean 1.976     std 1.411   █████\n  \
         feature2  bytes  all  5         \"dog\" 20.9 %, \"cat\" 20.1 %, \"chicken\" 19.8 %..\n  \
         feature3  float  all  9,999     -3.508 .. 4.429e-4 .. 3.713\n      mean 0.005091  std 0.9953  ▁▁▁▂▂▃▄▆▇██▇▅▄▃▂▁▁▁▁\n  \
         image     bytes  all  127       10,000 png  24 x 24  212 .. 215 .. 220 bytes\n"
    );
}

#[test]
fn saved_statistics_are_merged() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    dir.shard("b.tfrecord", labels(50..300));
    for name in ["a", "b"] {
        let (shard, saved) = (format!("{name}.tfrecord"), format!("{name}.json"));
        assert_eq!(dir.run(&["stats", &shard, "--save", &saved]).code, 0);
        dir.run(&["stats", &shard, "--save", &saved]).fails(2, &["already exists (--force replaces it)"]);
        assert_eq!(dir.run(&["stats", &shard, "--save", &saved, "--force"]).code, 0);
    }
    let both = dir.run(&["stats", "--json", "a.tfrecord", "b.tfrecord"]).out;
    assert_eq!(dir.run(&["stats", "--json", "--merge", "a.json", "b.json"]).out, both);
    assert_eq!(json(&fs::read_to_string(dir.path("a.json")).unwrap())["tfseek_stats"], 1);
    dir.run(&["stats", "--merge", "a.json", "a.tfrecord"])
        .fails(2, &["a.tfrecord: expected saved statistics, found no JSON object"]);
    fs::write(dir.path("c.json"), "{}").unwrap();
    dir.run(&["stats", "--merge", "c.json"])
        .fails(2, &["c.json: expected saved statistics, found JSON without"]);
    // The output is opened first: the damage is not reached.
    damage(&dir.shard("damaged", labels(0..3)), 20);
    dir.run(&["stats", "damaged", "--save", "nowhere/x"]).fails(3, &["nowhere/x: "]);
    dir.run(&["stats", "a.tfrecord", "--save", "a.tfrecord", "--force"]).fails(2, &["is an input"]);
}

#[test]
fn a_condition_selects_records() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    dir.shard("b.tfrecord", labels(50..300));
    let run =
        |condition: &str| dir.run(&["stats", "--json", "a.tfrecord", "b.tfrecord", "--where", condition]);
    let found = json(&run("label in 90..110").out);
    assert_eq!((&found["records"], &found["where"]), (&30.into(), &"label in 90..110".into()));
    // Numbers over both files come from their indexes.
    assert_eq!(json(&run("record in 95..104").out)["records"], 9);
    let unseen = run("absent(name)");
    assert_eq!((unseen.code, json(&unseen.out)["records"].as_u64()), (0, Some(350)));
    assert!(unseen.err.contains("no record that was read has a feature \"name\""), "{}", unseen.err);
    run("label == \"x\"").fails(2, &["label"]);
    dir.run(&["stats", "a.tfrecord", "--sample", "3", "--where", "label < 3"]).fails(2, &["--where"]);
    let pipe = std::fs::read(dir.path("a.tfrecord")).unwrap();
    let ran = dir.run_on(&pipe, &["stats", "-", "--json", "--where", "record < 7"]);
    assert_eq!(json(&ran.out)["records"], 7);
}

#[test]
fn statistics_for_data_validation() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    assert_eq!(dir.run(&["stats", "a.tfrecord", "--tfdv", "raw.pb"]).code, 0);
    assert_eq!(dir.run(&["stats", "a.tfrecord", "--tfdv", "one.tfrecord"]).code, 0);
    let (raw, framed) = (fs::read(dir.path("raw.pb")).unwrap(), fs::read(dir.path("one.tfrecord")).unwrap());
    assert_eq!(framed[12..framed.len() - 4], raw);
    // One dataset of 100 records with the feature `label`.
    assert!(
        raw[0] == 0x0a
            && raw.windows(2).any(|w| w == [0x10, 100])
            && raw.windows(7).any(|w| w == b"\x0a\x05label")
    );
}

#[test]
fn damage_and_misuse() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..10));
    damage(&path, 34 * 3 + 20);
    dir.run(&["stats", "a.tfrecord"]).fails(1, &["a.tfrecord: record 3 at byte 102: payload crc32c"]);
    let ran = dir.run(&["stats", "--json", "--damage", "skip", "a.tfrecord"]);
    assert_eq!((ran.code, json(&ran.out)["records"].as_u64()), (1, Some(9)));
    let words =
        "tfseek: a.tfrecord: 1 damaged range is left out, 34 bytes; it begins at byte 102, after 3 records\n";
    assert_eq!(ran.err, words);

    let content = fs::read(&path).unwrap();
    let ran = dir.run_on(&content, &["stats", "--damage", "skip", "-"]);
    let title = "9 Examples, 1 feature; 1 damaged range of 34 bytes left out\n";
    assert!(ran.out.starts_with(title), "{}", ran.out);
    assert!(ran.code == 1 && ran.err.starts_with("tfseek: <stdin>: 1 damaged range"), "{}", ran.err);
    let mut content = content;
    content[34 * 5] ^= 1;
    let ran = dir.run_on(&content, &["stats", "--damage", "skip", "-"]);
    let title = "8 Examples, 1 feature; 2 damaged ranges of 68 bytes left out\n";
    assert!(ran.out.starts_with(title), "{}", ran.out);
    dir.shard("m.tfrecord", [label(0), b"\x0a\x05\x0a\x03".to_vec(), label(2)]);
    let ran = dir.run(&["stats", "--damage", "skip", "--kind", "example", "m.tfrecord"]);
    assert!(ran.out.starts_with("2 Examples, 1 feature; 1 record left out\n"), "{}", ran.out);
    let words = "tfseek: 1 record left out; the first: m.tfrecord: record 1 at byte 34";
    assert!(ran.code == 1 && ran.err.starts_with(words), "{}", ran.err);

    dir.shard("b.tfrecord", labels(0..10));
    dir.run(&["stats", "b.tfrecord", "--by", "x"]).fails(2, &["--by: no record has the feature x"]);
    let ran = dir.run(&["stats", "b.tfrecord", "--features", "x,lab*"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "tfseek: --features: no record has the feature x\n"));
    // The nearest name may be one that the patterns do not select.
    let ran = dir.run(&["stats", "b.tfrecord", "--features", "lable"]);
    let want = "no record has the feature lable; the nearest name is label\n";
    assert_eq!((ran.code, ran.err), (0, format!("tfseek: --features: {want}")));
    dir.run(&["stats", "b.tfrecord", "--by", "Label"])
        .fails(2, &["--by: ", "Label; the nearest name is label\n"]);
    dir.run(&["stats", "b.tfrecord", "--memory", "much"]).fails(2, &["expected a size in bytes"]);
    let ran = dir.run(&["stats", "b.tfrecord", "--by", "label", "--json"]);
    assert_eq!(json(&ran.out)["slices"].as_array().unwrap().len(), 10);
    let ran = dir.run(&["stats", "b.tfrecord", "--sample", "4", "--seed", "3", "--json"]);
    let found = json(&ran.out);
    assert_eq!((&found["records"], &found["sampled_from"]), (&4.into(), &10.into()));
    let ran = dir.run_on(b"", &["stats", "-", "--sample", "4"]);
    assert!(ran.code == 2 && ran.err.contains("--sample: expected files"), "{}", ran.err);
    let ran = dir.run_on(b"", &["stats", "-"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "0 records\n"));
}

/// Payloads that are no Examples are described by their fields, plain and compressed, on any number of
/// threads.
#[test]
fn fields_of_other_messages() {
    let dir = Folder::new();
    let time = [&[0x09][..], &1.5e9f64.to_le_bytes()].concat();
    let version = [&time[..], b"\x1a\x0dbrain.Event:2"].concat();
    let step = |k: u8| [&time[..], &[0x10, k]].concat();
    let events: Vec<_> = std::iter::once(version).chain((0..99).map(step)).collect();
    dir.shard("events", &events);
    dir.shard("events.gz", &events);
    let ran = dir.run(&["stats", "events"]);
    let start = "100 other records (TensorBoard events), 3 fields; every value seen\n";
    assert!(ran.code == 0 && ran.out.starts_with(start), "{ran:?}");
    assert!(
        ran.out.contains("\n  2 step          varint   99 of 100  99        0 .. 49 .. 98"),
        "{}",
        ran.out
    );
    let want = dir.run(&["stats", "--json", "events"]).out;
    for args in [["-j", "1", "events.gz"], ["-j", "8", "events"]] {
        assert_eq!(dir.run(&[&["stats", "--json"], &args[..]].concat()).out, want);
    }
    let fields = &json(&want)["fields"];
    assert_eq!((&fields[2]["name"], &fields[2]["types"]["string"]), (&"file_version".into(), &1.into()));
    assert_eq!(dir.run(&["stats", "-q", "--features", "2", "--save", "saved", "events"]).code, 0);
    let merged = dir.run(&["stats", "--json", "--merge", "saved", "saved"]).out;
    let merged = json(&merged);
    assert_eq!(
        (merged["fields"].as_array().unwrap().len(), &merged["fields"][0]["present"]),
        (1, &198.into())
    );
}
