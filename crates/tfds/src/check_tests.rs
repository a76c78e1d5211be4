//! Tests of the reader and of the comparison, on folders of empty files.

use crate::set_folder::MAX_BYTES;
use crate::{DatasetInfo, SplitCheck};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const TRAIN: &str = r#"{"name": "train", "shardLengths": ["3", 2], "numBytes": "99", "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}"#;
const TEST: &str = r#"{"name": "test", "shardLengths": [4]}"#;

fn info(splits: &str) -> String {
    format!(
        r#"{{"name": "tiny", "moduleName": "a.tiny", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [{splits}]}}"#
    )
}

fn folder(info: &str, files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(DatasetInfo::FILE_NAME), info).unwrap();
    for file in files {
        fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        fs::write(folder.path().join(file), "").unwrap();
    }
    folder
}

#[test]
fn integers_are_strings_or_numbers() {
    let read = DatasetInfo::parse(info(&format!("{TRAIN}, {TEST}")).as_bytes()).unwrap();
    assert_eq!((read.title().as_str(), read.module.as_deref()), ("tiny 1.0.0", Some("a.tiny")));
    let [train, test] = &read.splits[..] else { panic!("{read:?}") };
    assert_eq!((train.records(), train.shards(), train.num_bytes), (Some(5), Some(2), Some(99)));
    assert_eq!((test.records(), test.num_bytes), (Some(4), None));
    // Old files have neither a format nor lengths of shards.
    let old = br#"{"name": "x", "splits": [{"name": "train", "numShards": "2", "statistics": {"numExamples": "4"}}]}"#;
    let old = DatasetInfo::parse(old).unwrap();
    assert!(old.is_tfrecord() && old.splits[0].records().is_none());
    assert_eq!(old.title(), "x");
}

#[test]
fn names_are_in_camel_case_or_in_snake_case() {
    let text = br#"{"name": "x", "config_name": "en", "file_format": "tfrecord", "supervised_keys": {"tuple": {"items": [{"feature_key": "a"}, {"featureKey": "b"}]}},
        "splits": [{"name": "train", "shard_lengths": ["1", 2], "num_bytes": "7", "filepath_template": "{SHARD_INDEX}"}]}"#;
    let read = DatasetInfo::parse(text).unwrap();
    assert_eq!((read.config.as_deref(), read.version), (Some("en"), None));
    let keys = read.supervised_keys.unwrap();
    assert_eq!(keys, ["a", "b"]);
    let train = &read.splits[0];
    assert_eq!((train.records(), train.num_bytes), (Some(3), Some(7)));
    assert_eq!(train.shard_path(1, 2).to_str(), Some("00001"));
}

#[test]
fn supervised_keys_have_two_forms() {
    let read =
        |keys: &str| DatasetInfo::parse(format!(r#"{{"name": "x", "supervisedKeys": {keys}}}"#).as_bytes());
    let keys = |keys: &str| read(keys).unwrap().supervised_keys;
    let two = |a: &str, b: &str| Some(vec![a.to_owned(), b.to_owned()]);
    assert_eq!(keys(r#"{"input": "image", "output": "label"}"#), two("image", "label"));
    assert_eq!(keys(r#"{"tuple": {"items": [{"featureKey": "x"}, {"featureKey": "y"}]}}"#), two("x", "y"));
    assert_eq!((keys("null"), keys("{}"), keys(r#"{"input": "image"}"#)), (None, None, None));
    // Dicts, and tuples in tuples.
    let nested = read(r#"{"tuple": {"items": [{"featureKey": "x"}, {"tuple": {}}]}}"#).unwrap();
    assert!(nested.supervised_keys.is_none() && nested.has_nested_keys);
    for (bad, message) in [
        ("3", "supervisedKeys: expected an object, found 3"),
        (r#"{"tuple": []}"#, "supervisedKeys.tuple: expected an object with a list of items, found a list"),
        (r#"{"tuple": {"items": [1]}}"#, "supervisedKeys.tuple.items[0]: expected an object, found 1"),
        (r#"{"input": 1}"#, "supervisedKeys.input: expected a string, found 1"),
    ] {
        assert_eq!(read(bad).unwrap_err().to_string(), message);
    }
}

#[test]
fn the_names_of_shards_follow_the_template() {
    let path = |template: &str, shards| {
        let text = format!(r#"{{"name": "train", "filepathTemplate": "{template}"}}"#);
        let read = DatasetInfo::parse(info(&text).as_bytes()).unwrap();
        let path = read.splits[0].shard_path(7, shards);
        // Each name is read back.
        assert_eq!(read.splits[0].template.shard(path.to_str().unwrap()), Some(7));
        path.display().to_string()
    };
    assert_eq!(path("", 10), "tiny-train.tfrecord-00007-of-00010");
    assert_eq!(path("{SPLIT}/d.{FILEFORMAT}-{SHARD_INDEX}", 10), "train/d.tfrecord-00007");
    assert_eq!(path("{SHARD_INDEX}.{NUM_SHARDS}.{DATASET}", 1_234_567), "0000007.1234567.tiny");
    let read = DatasetInfo::parse(info(TRAIN).as_bytes()).unwrap();
    let number = |name| read.splits[0].template.shard(name);
    assert_eq!(number("tiny-train.tfrecord-7-of-9"), Some(7));
    for name in [
        "tiny-train.tfrecord-7-of-",
        "tiny-train.tfrecord-7",
        "tiny-test.tfrecord-7-of-9",
        "tiny-train.tfrecord-7-of-9.gz",
    ] {
        assert_eq!(number(name), None, "{name}");
    }
    assert_eq!(number("tiny-train.tfrecord-99999999999999999999-of-9"), None);
}

#[test]
fn damaged_files_are_refused_with_the_field() {
    let refused = |text: &str, message: &str| {
        let e = DatasetInfo::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(e.contains(message), "{e}");
    };
    refused("{", "expected JSON, found: EOF");
    refused(&"[".repeat(100_000), "expected JSON, found: recursion limit");
    refused("[]", "expected an object, found a list");
    refused("{}", "name: expected a string, found nothing");
    refused(r#"{"name": 3}"#, "name: expected a string, found 3");
    // The file of this name that Hugging Face's `datasets` writes.
    refused(r#"{"name": "x", "splits": {"train": {}}}"#, "splits: expected a list, found an object");
    refused(r#"{"name": "x", "splits": [1]}"#, "splits[0]: expected an object, found 1");
    let split = |fields: &str, message: &str| refused(&info(&format!("{TEST}, {{{fields}}}")), message);
    split("", "splits[1].name: expected a string, found nothing");
    for (length, found) in
        [("-1", "-1"), ("1.5", "1.5"), ("\"Unknown\"", "\"Unknown\""), ("\"\"", "\"\""), ("null", "null")]
    {
        let message =
            format!("splits[1].shardLengths[1]: expected an integer from 0 to 2^64 - 1, found {found}");
        split(&format!(r#""name": "x", "shardLengths": [1, {length}]"#), &message);
    }
    split(
        r#""name": "x", "shardLengths": "18446744073709551616""#,
        "splits[1].shardLengths: expected a list",
    );
    split(r#""name": "x", "numBytes": "18446744073709551616""#, "splits[1].numBytes: expected an integer");
    split(
        r#""name": "x", "filepathTemplate": "{SHARD}""#,
        "splits[1].filepathTemplate: expected the variable DATASET",
    );
    split(r#""name": "x", "filepathTemplate": "a{""#, "splits[1].filepathTemplate: expected `}`");
    for (template, found) in
        [("/tmp/{SHARD_INDEX}", "/tmp/00000"), ("../{SPLIT}", "../x"), ("a/../../b", "a/../../b")]
    {
        let message =
            format!("splits[1].filepathTemplate: expected a path below the folder, found \"{found}\"");
        split(&format!(r#""name": "x", "filepathTemplate": "{template}""#), &message);
    }
    split(r#""name": "..", "filepathTemplate": "{SPLIT}/{SHARD_INDEX}""#, "expected a path below the folder");
    for (name, template) in
        [("x".repeat(3000), "{SPLIT}{SPLIT}".to_owned()), ("x".to_owned(), "x".repeat(5000))]
    {
        split(
            &format!(r#""name": "{name}", "filepathTemplate": "{template}""#),
            "splits[1].filepathTemplate: expected a path of at most 4096 bytes, found more",
        );
    }
    let long = format!(r#""name": "x", "numBytes": "{}""#, "x".repeat(1000));
    let e = DatasetInfo::parse(info(&format!("{{{long}}}")).as_bytes()).unwrap_err().to_string();
    assert!(e.len() < 200, "{e}");
    // The sum exceeds 64 bits, each number does not.
    let sum = info(&format!(r#"{{"name": "x", "shardLengths": ["{0}", "{0}"]}}"#, u64::MAX));
    assert_eq!(DatasetInfo::parse(sum.as_bytes()).unwrap().splits[0].records(), None);
}

#[test]
fn files_of_other_types_and_sizes_are_warnings() {
    let large = folder(&" ".repeat(MAX_BYTES as usize + 1), &[]);
    let mut check = SplitCheck::default();
    for _ in 0..2 {
        assert_eq!(check.add(&large.path().join("x.tfrecord"), Some(1)), None);
    }
    let warnings = std::mem::take(&mut check.warnings);
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].ends_with("not compared: expected at most 8388608 bytes, found more"),
        "{warnings:?}"
    );
    let other = folder(&info("").replace("tfrecord", "array_record"), &[]);
    check.add_folder(other.path());
    let [warning] = &std::mem::take(&mut check.warnings)[..] else { panic!() };
    assert!(warning.ends_with("the dataset's files are array_record, not tfrecord"), "{warning}");
    let nested = tempfile::tempdir().unwrap();
    fs::create_dir(nested.path().join(DatasetInfo::FILE_NAME)).unwrap();
    check.add_folder(nested.path());
    assert!(std::mem::take(&mut check.warnings)[0].ends_with("expected a regular file, found another one"));
    check.add_folder(&large.path().join("nothing"));
    assert!(std::mem::take(&mut check.warnings).is_empty() && check.infos.is_empty());
}

#[test]
fn shards_are_compared_with_their_split() {
    let names = [
        "tiny-train.tfrecord-00000-of-00002",
        "tiny-train.tfrecord-00001-of-00002",
        "tiny-test.tfrecord-00000-of-00001",
    ];
    let folder = folder(&info(&format!("{TRAIN}, {TEST}")), &names);
    let at = |name: &str| folder.path().join(name);
    let mut check = SplitCheck::default();
    check.add_folder(folder.path());
    for (name, records) in names.iter().zip([3, 2, 4]) {
        let found = check.add(&at(name), Some(records)).unwrap();
        assert_eq!((found.records, &found.difference), (Some(records), &None));
    }
    assert_eq!(check.add(&at("other.tfrecord"), Some(1)), None);
    assert!(check.missing(folder.path()).is_empty());
    let info = &check.infos[0];
    let counts: Vec<_> = info.splits.iter().map(|split| (split.records, split.shards)).collect();
    assert_eq!((counts, info.other_files, info.differences), (vec![(Some(5), 2), (Some(4), 1)], 1, 0));

    let mut check = SplitCheck::default();
    let found = check.add(&at(names[1]), Some(7)).unwrap();
    let text = found.difference.unwrap();
    assert!(
        text.contains("00001-of-00002: expected 2 records, found 7 (shard 1 of split train), by "),
        "{text}"
    );
    assert_eq!((found.split.as_str(), found.shard, found.shards), ("train", Some(1), Some(2)));
    // Without a count nothing is compared.
    assert_eq!(check.add(&at(names[0]), None).unwrap().difference, None);
    assert_eq!(check.infos[0].splits[0].records, None);
    let other = check.add(&at("tiny-train.tfrecord-00001-of-00003"), Some(2)).unwrap();
    assert!(
        other
            .difference
            .unwrap()
            .contains("expected a shard of split train, which has 2 shards, found another name")
    );
    assert_eq!((other.shard, other.records), (None, None));
    assert_eq!(check.infos[0].differences, 2);

    // Shards that exist are not missing if they were not added.
    assert!(check.missing(folder.path()).is_empty());
    fs::remove_file(at(names[2])).unwrap();
    let [missing] = &check.missing(folder.path())[..] else { panic!() };
    assert!(missing.contains("1 of 1 shards of split test is missing: "), "{missing}");
    assert!(check.missing(Path::new("elsewhere")).is_empty());
}

#[test]
fn a_template_with_folders_is_found_from_them() {
    let split =
        r#"{"name": "train", "shardLengths": ["3"], "filepathTemplate": "{SPLIT}/{SHARD_INDEX}.tfrecord"}"#;
    let nested = folder(&info(split), &["train/00000.tfrecord"]);
    let mut check = SplitCheck::default();
    let found = check.add(&nested.path().join("train/00000.tfrecord"), Some(4)).unwrap();
    assert!(found.difference.unwrap().contains("expected 3 records, found 4"));
    // Otherwise the file of the folder above is another dataset's.
    let flat = folder(&info(TEST), &["train/tiny-test.tfrecord-00000-of-00001"]);
    let mut check = SplitCheck::default();
    assert_eq!(check.add(&flat.path().join("train/tiny-test.tfrecord-00000-of-00001"), Some(3)), None);
}

#[test]
fn splits_with_the_same_names_are_not_compared() {
    let split = |name| {
        format!(r#"{{"name": "{name}", "shardLengths": ["3"], "filepathTemplate": "{{SHARD_INDEX}}"}}"#)
    };
    let folder = folder(&info(&format!("{}, {}", split("a"), split("b"))), &[]);
    let mut check = SplitCheck::default();
    assert_eq!(check.add(&folder.path().join("00000"), Some(9)), None);
    assert_eq!(check.infos[0].other_files, 1);
}
