//! Splits of data sets as paths: `DIR[train[:50%]]`, in each verb that reads records.

use crate::common::*;
use serde_json::{Value, json};
use std::fs;

/// Writes a data set with the splits `train`, of shards with 3, 0 and 5 records whose labels are their
/// numbers, and `test`, of 4 records with the labels from 100.
fn tiny() -> Folder {
    let dir = Folder::new();
    fs::create_dir_all(dir.path("tiny/1.0.0")).unwrap();
    for (k, labels_of) in [0..3, 3..3, 3..8].into_iter().enumerate() {
        dir.shard(&format!("tiny/1.0.0/tiny-train.tfrecord-0000{k}-of-00003"), labels(labels_of));
    }
    dir.shard("tiny/1.0.0/tiny-test.tfrecord-00000-of-00001", labels(100..104));
    let info = json!({"name": "tiny", "version": "1.0.0", "splits": [
        {"name": "train", "shardLengths": ["3", "0", "5"]}, {"name": "test", "shardLengths": ["4"]}
    ]});
    fs::write(dir.path("tiny/1.0.0/dataset_info.json"), info.to_string()).unwrap();
    dir
}

/// Returns the index, the number in its file, and the label of each record that is printed as JSON.
fn printed(ran: &Ran) -> Vec<(u64, u64, i64)> {
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let label = line["features"]["label"].to_string();
        let digits: String = label.chars().filter(char::is_ascii_digit).collect();
        (line["index"].as_u64().unwrap(), line["record"].as_u64().unwrap(), digits.parse().unwrap())
    };
    ran.out.lines().map(line).collect()
}

#[test]
fn records_of_a_split_are_printed_with_its_numbers() {
    let dir = tiny();
    let cat = |split: &str| printed(&dir.run(&["cat", "-f", "json", split]));
    for folder in ["tiny", "tiny/1.0.0"] {
        assert_eq!(cat(&format!("{folder}[test[1:3]]")), [(0, 1, 101), (1, 2, 102)]);
    }
    assert_eq!(cat("tiny[train]").len(), 8);
    assert_eq!(cat("tiny[train[25%:50%]]"), [(0, 2, 2), (1, 0, 3)]);
    // The parts overlap, and are of several splits.
    let mixed = "tiny[test[-1:] + train[2:4] + train[:3]]";
    let expected = [(0, 3, 103), (1, 2, 2), (2, 0, 3), (3, 0, 0), (4, 1, 1), (5, 2, 2)];
    assert_eq!(cat(mixed), expected);
    assert_eq!(printed(&dir.run(&["get", "-f", "json", mixed, ":"])), expected);
    assert_eq!(printed(&dir.run(&["get", "-f", "json", mixed, "4", "-1"])), [expected[4], expected[5]]);
    assert_eq!(printed(&dir.run(&["head", "-n", "1", "-f", "json", mixed]))[..2], expected[..2]);
    let last = |ran: Ran| printed(&ran).pop().unwrap();
    assert_eq!(last(dir.run(&["tail", "-n", "1", "-f", "json", mixed])), expected[5]);
    let mut sampled = printed(&dir.run(&["sample", "-n", "6", "-f", "json", mixed]));
    sampled.sort_unstable();
    assert_eq!(sampled, expected);

    // Conditions, also on record numbers.
    for verb in ["cat", "head", "tail"] {
        let found = printed(&dir.run(&[verb, "-f", "json", "--where", "record in 2..5", mixed]));
        assert_eq!(found, expected[2..5], "{verb}");
    }
    let ran = dir.run(&["grep", "--ids", "label == 2", mixed]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1\n5\n"));
    let ran = dir.run(&["grep", "-c", "record > 0", mixed]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "5\n"));
    let ran = dir.run(&["get", "tiny[train[:2]]", "2"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("no record 2: there are 2"), "{}", ran.err);
}

#[test]
fn the_records_of_a_split_are_described() {
    let dir = tiny();
    let split = "tiny[train[1:4]+test[:2]]";
    let ran = dir.run(&["digest", split]);
    let digests: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers = digests.iter().map(|line| (line["index"].as_u64(), line["record"].as_u64()));
    let expected = [(0, 1), (1, 2), (2, 0), (3, 0), (4, 1)].map(|(i, k)| (Some(i), Some(k)));
    assert_eq!(numbers.collect::<Vec<_>>(), expected);

    let ran = dir.run(&["stats", "--json", split]);
    let stats: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(stats["records"], 5, "{}", ran.err);
    let ran = dir.run(&["stats", "--json", "--where", "record >= 3", split]);
    let stats: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(stats["records"], 2, "{}", ran.err);
    let ran = dir.run(&["schema", split]);
    assert!(ran.out.contains("Example, 5 records seen"), "{}", ran.out);
    let ran = dir.run(&["schema", "--json", split]);
    fs::write(dir.path("schema.json"), &ran.out).unwrap();
    let ran = dir.run(&["parse", "--schema", "schema.json", split]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.replace(' ', "").contains("[1,2,3,100,101]"), "{}", ran.out);
    let ran = dir.run(&["validate", "--schema", "schema.json", split]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "no anomaly in 5 records\n"), "{}", ran.err);

    let ran = dir.run(&["verify", split]);
    assert!(ran.out.starts_with("3 of 3 files sound: 5 records, "), "{}{}", ran.out, ran.err);
    let ran = dir.run(&["verify", "tiny[train]"]);
    assert!(ran.out.ends_with("\nrecords as in tiny/1.0.0/dataset_info.json: train 8\n"), "{}", ran.out);
    let ran = dir.run(&["info", "--json", split]);
    let files: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(files.iter().map(|file| file["records"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 1, 2]);

    let ran = dir.run(&["epoch", "--json", "--batch-size", "2", split]);
    let epoch: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(epoch["records"], 5, "{}{}", ran.out, ran.err);
    let ran = dir.run(&["order", "--batch-size", "5", "--step", "0", split]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("tiny-train.tfrecord-00002-of-00003"), "{}", ran.out);
    let ran = dir.run(&["convert", split, "some.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(fs::read_to_string(dir.path("some.jsonl")).unwrap().lines().count(), 5);
    let ran = dir.run(&["convert", "--where", "record == 3", split, "one.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let one = fs::read_to_string(dir.path("one.jsonl")).unwrap();
    assert!(one.lines().count() == 1 && one.contains("100"), "{one}");
}

#[test]
fn errors_name_the_file_and_the_record_in_it() {
    let dir = tiny();
    let shard = "tiny/1.0.0/tiny-train.tfrecord-00002-of-00003";
    assert_eq!(dir.run(&["get", "tiny[train]", "7"]).code, 0);
    // A payload of record 4 of the shard, after its index was built.
    let bytes = fs::read(dir.path(shard)).unwrap();
    damage(&dir.path(shard), bytes.len() - 6);
    for args in
        [&["cat", "tiny[train[6:]]"][..], &["get", "tiny[train[6:]]", "1"], &["verify", "tiny[train[6:]]"]]
    {
        let ran = dir.run(args);
        assert_eq!(ran.code, 1, "{args:?}");
        assert!(ran.err.contains(&format!("{shard}: record 4 at byte ")), "{args:?}: {}", ran.err);
    }
    // Records that are not selected are not read.
    assert_eq!(dir.run(&["cat", "tiny[train[:7]]"]).code, 0);
    // Without its damaged records the split has other numbers. A part of a damaged shard is not read in
    // order.
    let ran = dir.run(&["cat", "-f", "json", "--damage", "skip", "tiny[train]"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 7), "{}", ran.err);
    let ran = dir.run(&["get", "-f", "json", "--damage", "skip", "tiny[train[6:]]", ":"]);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.err);
    let ran = dir.run(&["cat", "--damage", "skip", "tiny[train[6:]]"]);
    assert!(ran.err.contains(&format!("{shard}: expected a shard without damage")), "{}", ran.err);
}

#[test]
fn other_paths_and_verbs_are_refused() {
    let dir = tiny();
    let refused = |args: &[&str], code: i32, message: &str| {
        let ran = dir.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(message), "{args:?}: {}", ran.err);
    };
    let splits = "The splits are train, test";
    refused(&["cat", "tiny[trian]"], 2, "expected a split, found \"trian\"; the nearest name is \"train\"");
    refused(&["get", "tiny[nope]", "0"], 2, splits);
    refused(&["head", "tiny[train[:9]]"], 2, "expected ends from -8 to 8, found 9");
    let combined = "cannot be combined with other paths; several splits are `tiny[train+test]`";
    refused(&["cat", "tiny[train]", "tiny[test]"], 2, combined);
    refused(&["get", "tiny/1.0.0", "tiny[test]", "0"], 2, combined);
    for args in [
        &["index", "tiny[train]"][..],
        &["unpack", "tiny[train]"],
        &["salvage", "tiny[train]", "out"],
        &["tail", "-F", "tiny[train]"],
        &["reshard", "tiny[train]", "--out", "out@2.tfrecord"],
    ] {
        refused(args, 2, "expected files, found `tiny[train]` (a split)");
    }
    // A folder that is no data set is a pattern, and a file that exists is one.
    refused(&["cat", "nothing[train]"], 3, "nothing[train]");
    dir.shard("tiny[train]", labels(0..2));
    assert_eq!(dir.run(&["cat", "-f", "json", "tiny[train]"]).out.lines().count(), 2);
    fs::remove_file(dir.path("tiny[train]")).unwrap();
    fs::remove_file(dir.path("tiny/1.0.0/tiny-train.tfrecord-00001-of-00003")).unwrap();
    let missing = "tiny/1.0.0/dataset_info.json: 1 of 3 shards of split train is missing: tiny/1.0.0/tiny-train.tfrecord-00001-of-00003";
    for verb in ["cat", "info", "verify", "digest"] {
        refused(&[verb, "tiny[test]"], 1, missing);
    }
    fs::rename(dir.path("tiny/1.0.0"), dir.path("tiny/1.0.0.incompleteXYZ")).unwrap();
    refused(
        &["cat", "tiny[test]"],
        1,
        "found 1.0.0.incompleteXYZ, which is being written or was interrupted",
    );
}
