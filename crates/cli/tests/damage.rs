//! One policy for damage, the same in every verb that reads records.

use crate::common::{Folder, Ran, damage, label, labels};
use std::fs;
use tfseek::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

/// Two shards. In the first, the payload of record 2 is damaged and the length of record 5, and the payload
/// of record 7 is no message.
fn shards() -> Folder {
    let dir = Folder::new();
    let records = (0..10).map(|i| if i == 7 { b"\x0a\x10\x0a\x0e123456789abcde".to_vec() } else { label(i) });
    let path = dir.shard("a.tfrecord", records);
    damage(&path, 34 * 2 + 20);
    damage(&path, 34 * 5);
    dir.shard("b.tfrecord", labels(10..12));
    let schema = dir.run(&["schema", "--json", "b.tfrecord"]);
    fs::write(dir.path("s.json"), schema.out).unwrap();
    dir
}

/// Returns a gzip file of one stored block.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap();
    let crc = bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    let mut file = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    file.extend(len.to_le_bytes().into_iter().chain((!len).to_le_bytes()));
    file.extend(bytes);
    file.extend((!crc).to_le_bytes().into_iter().chain(u32::from(len).to_le_bytes()));
    file
}

/// The labels of the records that can be read.
const SOUND: [i64; 9] = [0, 1, 3, 4, 6, 8, 9, 10, 11];
const RANGES: &str =
    "a.tfrecord: 2 damaged ranges are left out, 68 bytes; the first one begins at byte 68, after 2 records";

fn numbers(text: &str) -> Vec<i64> {
    let mut numbers: Vec<i64> = text
        .split("label")
        .skip(1)
        .filter_map(|rest| {
            let digits: String =
                rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Runs a verb on both files, with damage and without an option: it fails. Then with the option: status 1,
/// and what was left out is said.
fn run(dir: &Folder, verb: &[&str], decodes: bool) -> Ran {
    let failed = dir.run(&[verb, &["a.tfrecord", "b.tfrecord"]].concat());
    assert_eq!(failed.code, 1, "{verb:?}: {failed:?}");
    assert!(failed.err.contains("a.tfrecord: record "), "{verb:?}: {failed:?}");
    assert!(failed.err.contains("`--damage skip` leaves it out"), "{verb:?}: {failed:?}");
    assert!(failed.err.contains("`tfseek salvage`"), "{verb:?}: {failed:?}");
    let ran = dir.run(&[verb, &["--damage", "skip", "a.tfrecord", "b.tfrecord"]].concat());
    assert_eq!(ran.code, 1, "{verb:?}: {ran:?}");
    assert!(ran.err.contains(RANGES), "{verb:?}: {ran:?}");
    let payloads = ran.err.contains("1 record was left out: a.tfrecord: record 5 at byte 238: ")
        || ran.err.contains("1 record left out; the first: a.tfrecord: record 5 at byte 238: ")
        || (ran.err.contains("left out record 5: ") && ran.err.contains("1 record was left out"));
    assert_eq!(payloads, decodes, "{verb:?}: {ran:?}");
    assert!(!ran.err.contains("`--damage skip`"), "{verb:?}: {ran:?}");
    ran
}

#[test]
fn every_verb_leaves_the_same_records_out() {
    let dir = shards();
    let example = ["--kind", "example"];
    let json: &[&str] = &["-f", "json", "--kind", "example"];
    for verb in [&["cat"][..], &["head", "-n", "20"], &["tail", "-n", "20"], &["sample", "-n", "20"]] {
        let ran = run(&dir, &[verb, json].concat(), true);
        assert_eq!(numbers(&ran.out), SOUND, "{verb:?}");
    }
    assert_eq!(numbers(&run(&dir, &[&["grep", "label >= 0"], json].concat(), true).out), SOUND);
    let ran = run(&dir, &[&["digest"][..], &example].concat(), true);
    assert_eq!(ran.out.lines().count(), SOUND.len());
    let ran = run(&dir, &[&["schema", "--all", "--json"][..], &example].concat(), true);
    assert!(ran.out.contains("label"), "{ran:?}");
    let ran = run(&dir, &[&["stats", "--json"][..], &example].concat(), true);
    let stats: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&stats["records"], &stats["damaged_bytes"]), (&9.into(), &68.into()));
    let ran = run(&dir, &[&["validate", "-s", "s.json"][..], &example].concat(), true);
    assert!(ran.out.contains("no anomaly in 9 records"), "{ran:?}");
    for size in ["1", "3", "4", "5", "100"] {
        let ran = run(&dir, &["parse", "-s", "s.json", "-b", size], true);
        let rows: Vec<serde_json::Value> =
            ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found: Vec<i64> = rows
            .iter()
            .flat_map(|batch| batch["outputs"]["label"]["data"].as_array().unwrap())
            .map(|value| value.as_i64().unwrap())
            .collect();
        assert_eq!(found, SOUND, "{size}: {ran:?}");
        let batches = SOUND.len().div_ceil(size.parse().unwrap());
        assert_eq!(rows.len(), batches, "{size}");
    }
    let ran = run(&dir, &["epoch", "-b", "4", "-s", "s.json", "--json"], true);
    let epoch: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&epoch["examples"], &epoch["skipped"]), (&9.into(), &1.into()));
    run(&dir, &["order", "-b", "4", "--step", "0"], false);
    run(&dir, &["index", "--index-dir", "indexes"], false);
}

#[test]
fn every_verb_writes_the_same_records() {
    let dir = shards();
    let labels_of = |path: &str| numbers(&dir.run(&["cat", "-f", "json", path]).out);
    run(
        &dir,
        &["reshard", "--features", "label", "--kind", "example", "--force", "-o", "kept.tfrecord"],
        true,
    );
    assert_eq!(labels_of("kept.tfrecord"), SOUND);
    let args = ["reshard", "--where", "label != 3", "--kind", "example", "--force", "-o", "some.tfrecord"];
    run(&dir, &args, true);
    assert_eq!(labels_of("some.tfrecord"), [0, 1, 4, 6, 8, 9, 10, 11]);
    // Payloads that are copied as they are need not be messages.
    run(&dir, &["reshard", "--force", "-o", "all.tfrecord"], false);
    assert_eq!(dir.run(&["cat", "-f", "json", "all.tfrecord"]).out.lines().count(), 10);
    let bytes = fs::read(dir.path("a.tfrecord")).unwrap();
    fs::write(dir.path("g.tfrecord.gz"), stored(&bytes)).unwrap();
    dir.run(&["unpack", "g.tfrecord.gz"])
        .fails(1, &["g.tfrecord.gz: record 2", "`--damage skip` leaves it out"]);
    let ran = dir.run(&["unpack", "--damage", "skip", "g.tfrecord.gz"]);
    assert!(ran.code == 1 && ran.err.contains("g.tfrecord.gz: 2 damaged ranges are left out"), "{ran:?}");
    assert_eq!(dir.run(&["cat", "-f", "json", "g.tfrecord"]).out.lines().count(), 8);
}

#[cfg(feature = "tables")]
#[test]
fn conversions_leave_the_same_records_out() {
    let dir = shards();
    for out in ["t.parquet", "t.arrow", "t.arrows", "t.jsonl"] {
        let convert = |args: &[&str]| {
            let words = ["convert", "--kind", "example", "--force", "a.tfrecord", "b.tfrecord", out];
            dir.run(&[&words[..], args].concat())
        };
        convert(&[]).fails(1, &["a.tfrecord: record", "`--damage skip` leaves it out", "`tfseek salvage`"]);
        let ran = convert(&["--damage", "skip"]);
        assert_eq!(ran.code, 1, "{out}: {ran:?}");
        assert!(ran.err.contains(RANGES) && ran.err.contains("1 record was left out: "), "{out}: {ran:?}");
        assert!(ran.err.contains(": 9 records"), "{out}: {ran:?}");
    }
    for case @ (condition, labels, _) in CONDITIONS {
        select(&dir, &["convert", "--kind", "example", "--force"], "--where", case);
        let rows = fs::read_to_string(dir.path("t.jsonl")).unwrap();
        assert_eq!(numbers(&rows), labels, "{condition}");
    }
}

/// A compressed pipe has the records of the file, also after bytes that cannot be inflated.
#[test]
fn a_compressed_pipe_is_read_on_after_damage() {
    let dir = Folder::new();
    let record = |range: std::ops::Range<i64>| fs::read(dir.shard("x.tfrecord", labels(range))).unwrap();
    let mut members = [record(0..4), record(4..7), record(7..9)].map(|bytes| stored(&bytes));
    // The block of the second member has an invalid type.
    members[1][10] = 0xff;
    let bytes = members.concat();
    fs::write(dir.path("g.tfrecord.gz"), &bytes).unwrap();
    for verb in [
        &["cat", "-f", "json", "--kind", "example"][..],
        &["stats", "--json"],
        &["digest", "--kind", "example"],
    ] {
        let file = dir.run(&[verb, &["--damage", "skip", "g.tfrecord.gz"]].concat());
        let pipe = dir.run_on(&bytes, &[verb, &["--damage", "skip", "-"]].concat());
        let named = |text: &str| text.replace("<stdin>", "g.tfrecord.gz").replace("\"index\":null,", "");
        assert_eq!(named(&pipe.err), file.err, "{verb:?}");
        assert!(
            pipe.code == 1 && file.code == 1 && file.err.contains("of the compressed file, after 4 records"),
            "{file:?}"
        );
        if verb[0] == "cat" {
            assert_eq!(numbers(&pipe.out), [0, 1, 2, 3, 7, 8]);
        }
        let failed = dir.run_on(&bytes, &[verb, &["-"]].concat());
        assert!(failed.code == 1 && failed.err.contains("<stdin>: record 4 at byte 136: "), "{failed:?}");
    }
}

/// Conditions, the labels of the records that meet them, and whether the payload that is no message is left
/// out. It is record 5 in both files together. Columns decide the first ones, records the last ones.
const CONDITIONS: [(&str, &[i64], bool); 9] = [
    ("label >= 1", &[1, 3, 4, 6, 8, 9, 10, 11], true),
    ("not label >= 4", &[0, 1, 3], true),
    ("not absent(label)", &SOUND, true),
    ("present(label) and not label == 3", &[0, 1, 4, 6, 8, 9, 10, 11], true),
    ("record in 3..7 and label >= 0", &[4, 6, 8], true),
    ("record in 6..9 and label >= 0", &[8, 9, 10], false),
    ("len(label) == 1 and label < 9", &[0, 1, 3, 4, 6, 8], true),
    ("not any(label) in 3..9", &[0, 1, 9, 10, 11], true),
    ("not (record < 6 and any(label) >= 0) and record < 9", &[8, 9, 10], true),
];

/// Runs a verb with a condition on both files, and checks what it says about records that it leaves out.
fn select(dir: &Folder, verb: &[&str], option: &str, (condition, _, left_out): (&str, &[i64], bool)) -> Ran {
    let mut args = [verb, &[option, condition, "--damage", "skip", "a.tfrecord", "b.tfrecord"]].concat();
    args.extend((verb[0] == "convert").then_some("t.jsonl"));
    let ran = dir.run(&args);
    assert_eq!(ran.code, 1, "{verb:?} {condition}: {ran:?}");
    assert!(ran.err.contains(RANGES), "{verb:?} {condition}: {ran:?}");
    let said = ["1 record was left out: ", "1 record left out; the first: "]
        .iter()
        .map(|said| ran.err.matches(&format!("{said}a.tfrecord: record 5 at byte 238: ")).count());
    assert_eq!(said.sum::<usize>(), usize::from(left_out), "{verb:?} {condition}: {ran:?}");
    ran
}

#[test]
fn a_condition_leaves_the_same_records_out_in_every_verb() {
    let dir = shards();
    let number = |label: &i64| SOUND.iter().position(|sound| sound == label).map(|i| i + usize::from(i > 4));
    for case @ (condition, labels, _) in CONDITIONS {
        let json: &[&str] = &["-f", "json", "--kind", "example"];
        for verb in [&["cat"][..], &["head", "-n", "20"], &["tail", "-n", "20"], &["sample", "-n", "20"]] {
            let ran = select(&dir, &[verb, json].concat(), "--where", case);
            assert_eq!(numbers(&ran.out), labels, "{verb:?} {condition}");
        }
        let files = ["a.tfrecord", "b.tfrecord"];
        let grep = dir.run(&[&["grep", condition, "--damage", "skip"], json, &files].concat());
        assert_eq!(numbers(&grep.out), labels, "{condition}: {grep:?}");
        assert_eq!(grep.err.contains("1 record was left out: a.tfrecord: record 5 "), case.2, "{grep:?}");
        let digest = select(&dir, &["digest", "--kind", "example"], "--where", case);
        assert_eq!(digest.out.lines().count(), labels.len(), "{condition}");
        let stats = select(&dir, &["stats", "--kind", "example", "--json"], "--where", case);
        let stats: serde_json::Value = serde_json::from_str(&stats.out).unwrap();
        assert_eq!(stats["records"], labels.len(), "{condition}");
        for keep in [&[][..], &["--features", "label"]] {
            let verb = ["reshard", "--kind", "example", "--force", "-o", "some.tfrecord"];
            select(&dir, &[&verb, keep].concat(), "--where", case);
            let written = dir.run(&["cat", "-f", "json", "some.tfrecord"]);
            assert_eq!(numbers(&written.out), labels, "{condition}");
        }
        for args in [&[][..], &["--index-dir", "indexes"]] {
            let order = select(
                &dir,
                &[&["order", "-b", "20", "--step", "0", "--ids"], args].concat(),
                "--where",
                case,
            );
            let mut ids: Vec<usize> = order.out.lines().map(|line| line.parse().unwrap()).collect();
            ids.sort_unstable();
            assert_eq!(ids, labels.iter().filter_map(number).collect::<Vec<_>>(), "{condition}");
        }
        let epoch = select(&dir, &["epoch", "-b", "4", "-s", "s.json", "--json"], "--where", case);
        let epoch: serde_json::Value = serde_json::from_str(&epoch.out).unwrap();
        assert_eq!((&epoch["examples"], &epoch["skipped"]), (&labels.len().into(), &0.into()), "{condition}");
        let skipped = epoch["warnings"].as_array().unwrap().iter().find(|w| w["kind"] == "payloads_skipped");
        assert_eq!(skipped.map(|w| &w["skipped"]), case.2.then_some(&1.into()), "{epoch}");
    }
}

/// Columns of records that do not decode have no value for them, and are not saved.
#[test]
fn columns_leave_the_same_records_out() {
    let dir = shards();
    let left_out = "1 record was left out: a.tfrecord: record 5 at byte 238: ";
    let run = |args: &[&str]| {
        let ran = dir.run(&[args, &["--damage", "skip", "a.tfrecord", "b.tfrecord"]].concat());
        assert!(ran.code == 1 && ran.err.matches(left_out).count() == 1, "{args:?}: {ran:?}");
        ran
    };
    for _ in 0..2 {
        let ran = run(&["order", "-b", "200", "--step", "0", "--balance", "label", "--ids"]);
        let mut ids: Vec<&str> = ran.out.lines().collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, ["0", "1", "2", "3", "4", "6", "7", "8", "9"]);
    }
    let ran =
        run(&["epoch", "-b", "4", "--balance", "label", "--where", "label >= 0", "-s", "s.json", "--json"]);
    let epoch: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(epoch["skipped"], 0, "{epoch}");
    run(&["reshard", "--sort-by", "label", "--reverse", "--kind", "example", "-o", "sorted.tfrecord"]);
    let sorted = dir.run(&["cat", "-f", "json", "sorted.tfrecord"]).out;
    assert!(sorted.find("11").unwrap() < sorted.find("[10]").unwrap_or(sorted.len()), "{sorted}");
    assert_eq!(numbers(&sorted), SOUND);
    // The file of a column is for all readers, so it needs all records.
    let ran = dir.run(&["index", "--column", "label", "--damage", "skip", "a.tfrecord", "b.tfrecord"]);
    assert!(ran.code == 1 && ran.err.contains("a.tfrecord: record 5 at byte 238: "), "{ran:?}");
    let saved = |name: &str| dir.path(&format!(".tfseek/{name}.label.tfrc")).exists();
    assert_eq!((saved("a.tfrecord"), saved("b.tfrecord")), (false, true));
}

/// What was left out is said even if nothing remains.
#[test]
fn a_condition_that_no_record_meets_leaves_the_same_records_out() {
    let dir = shards();
    for condition in ["label > 100", "absent(label)"] {
        let mut verbs = vec![vec!["cat"], vec!["reshard", "-o", "none.tfrecord", "--force"]];
        if cfg!(feature = "tables") {
            verbs.push(vec!["convert", "--force"]);
        }
        for verb in verbs {
            let mut args =
                [&verb[..], &["--where", condition, "--kind", "example", "--damage", "skip"]].concat();
            args.extend(["a.tfrecord", "b.tfrecord"]);
            args.extend((verb[0] == "convert").then_some("none.jsonl"));
            let ran = dir.run(&args);
            let left_out = "1 record was left out: a.tfrecord: record 5 at byte 238: ";
            assert!(ran.code == 1 && ran.err.contains(left_out), "{verb:?} {condition}: {ran:?}");
        }
    }
}

/// The verbs that report on damage have no option for it.
#[test]
fn verify_and_info_report_all_damage() {
    let dir = shards();
    for verb in ["verify", "info"] {
        dir.run(&[verb, "--damage", "skip", "a.tfrecord"]).fails(2, &["--damage"]);
        let ran = dir.run(&[verb, "a.tfrecord"]);
        assert!(ran.code == 1 && ran.err.contains("`tfseek salvage` copies the sound records"), "{ran:?}");
        assert!(!ran.err.contains("--damage"), "{ran:?}");
    }
    dir.run(&["tail", "--follow", "--damage", "skip", "a.tfrecord"]).fails(2, &["--follow"]);
}

/// A picture of an encoder, and what a copy can make of it.
#[test]
fn pictures_that_are_not_whole_are_named() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/data");
    let picture = |name: &str| fs::read(format!("{data}/{name}")).unwrap();
    let jpeg = picture("wide.jpg");
    let half = jpeg.len() / 2;
    let files = [
        jpeg.clone(),
        picture("rgb8.png"),
        jpeg[..half].to_vec(),
        Vec::new(),
        b"<html>404</html>".to_vec(),
        [&jpeg[..half], &vec![0; jpeg.len() - half]].concat(),
        // Another format, and one that no decoder of the loader reads.
        picture("bmp24.bmp"),
        b"II*\0\x08\0\0\0\0\0\0\0".to_vec(),
        picture("gif-still.gif"),
    ];
    let record = |(file, k): (&Vec<u8>, i64)| {
        let record = ExampleBuilder::new().bytes("image/encoded", [file]).bytes("text", ["some", "words"]);
        record.int64("k", [k]).encode().unwrap()
    };
    let dir = Folder::new();
    dir.shard("a.tfrecord", files.iter().zip(0..).map(record));
    let frames = |file: &[u8]| {
        SequenceExampleBuilder::new()
            .feature_list("frames", [vec![jpeg.clone()], vec![file.to_vec()]].map(FeatureBuf::Bytes))
    };
    dir.shard("s.tfrecord", [&jpeg[..], &jpeg[..half]].map(|file| frames(file).encode().unwrap()));

    assert_eq!(dir.run(&["verify", "a.tfrecord", "s.tfrecord"]).code, 0);
    let ran = dir.run(&["verify", "--decode", "a.tfrecord", "s.tfrecord"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let expected = [
        "a.tfrecord: record 2 ",
        "a.tfrecord: record 3 ",
        "a.tfrecord: record 4 ",
        "a.tfrecord: record 5 ",
        "s.tfrecord: record 1 ",
    ];
    let texts = [
        "JPEG: the data end before all pixels",
        "found no bytes",
        "found an HTML page",
        "JPEG: ",
        "feature \"frames\": step 1: JPEG: the data end before all pixels",
    ];
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{}", ran.err);
    for ((line, begin), text) in lines.iter().zip(expected).zip(texts) {
        assert!(line.starts_with(&format!("tfseek: {begin}")) && line.contains(text), "{line}");
    }
    assert!(lines[..4].iter().all(|line| line.contains("feature \"image/encoded\": ")), "{}", ran.err);
    assert!(
        ran.out.contains("0 of 2 files sound") && ran.out.contains("\npictures: 5 faults\n"),
        "{}",
        ran.out
    );

    let line: serde_json::Value =
        serde_json::from_str(&dir.run(&["verify", "--decode", "--json", "a.tfrecord"]).out).unwrap();
    assert_eq!(
        (&line["ok"], &line["record"], &line["steps"]),
        (&false.into(), &2.into(), &serde_json::Value::Null)
    );
    assert_eq!(line["faults"].as_array().unwrap().len(), 4);
    let stats = dir.run(&["stats", "a.tfrecord"]).out;
    assert!(stats.contains("3 without a complete header"), "{stats}");
}

#[test]
fn declared_pictures_are_checked_in_each_record() {
    let dir = Folder::new();
    fs::create_dir(dir.path("set")).unwrap();
    let features = r#"{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "featuresDict": {"features": {
        "image": {"pythonClassName": "tensorflow_datasets.core.features.image_feature.Image", "image": {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"}},
        "text": {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text", "text": {}}}}}"#;
    fs::write(dir.path("set/features.json"), features).unwrap();
    // No value is a picture, so only the declaration tells.
    let record =
        ExampleBuilder::new().bytes("image", ["aGVsbG8="]).bytes("text", ["words"]).encode().unwrap();
    dir.shard("set/x-train.tfrecord-00000-of-00001", [record]);
    let ran = dir.run(&["verify", "--decode", "set/x-train.tfrecord-00000-of-00001"]);
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{ran:?}");
    let text = "feature \"image\": expected a JPEG, PNG, BMP, GIF or WebP picture, found a text";
    assert!(ran.err.contains(text) && ran.out.contains("\npictures: 1 fault\n"), "{ran:?}");
}
