//! `info` and `verify` on datasets with the `dataset_info.json` of TensorFlow Datasets.

use crate::common::*;
use serde_json::{Value, json};
use std::fs;

/// Writes a dataset `tiny` with the splits `train`, of shards with 3 and 2 records, and `test`, of one shard
/// with 4 records.
fn tiny() -> Folder {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    dir.shard("data/tiny-train.tfrecord-00000-of-00002", labels(0..3));
    dir.shard("data/tiny-train.tfrecord-00001-of-00002", labels(3..5));
    dir.shard("data/tiny-test.tfrecord-00000-of-00001", labels(5..9));
    dir.write_info(&json!(["3", "2"]), &json!([4]));
    dir
}

trait Info {
    fn write_info(&self, train: &Value, test: &Value);
}

impl Info for Folder {
    fn write_info(&self, train: &Value, test: &Value) {
        let template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
        let info = json!({
            "name": "tiny", "moduleName": "my.tiny", "version": "1.0.0", "fileFormat": "tfrecord",
            "splits": [
                {"name": "train", "shardLengths": train, "numBytes": "70", "filepathTemplate": template},
                {"name": "test", "shardLengths": test, "numBytes": "56", "filepathTemplate": template},
            ],
        });
        fs::write(self.path("data/dataset_info.json"), info.to_string()).unwrap();
    }
}

/// Returns the words of each line.
fn rows(out: &str) -> Vec<String> {
    out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn right_counts_are_shown() {
    let dir = tiny();
    let ran = dir.run(&["info", "data"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let end = [
        "tiny 1.0.0 data/dataset_info.json",
        "records expected shards split",
        "5 5 2 of 2 train",
        "4 4 1 of 1 test",
    ];
    assert!(rows(&ran.out).ends_with(&end.map(String::from)), "{}", ran.out);
    let ran = dir.run(&["verify", "data"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.ends_with("\nrecords as in data/dataset_info.json: train 5, test 4\n"), "{}", ran.out);

    // A part of the dataset is compared alone, also as one file and with an index.
    assert_eq!(dir.run(&["index", "data"]).code, 0);
    for part in
        ["data/tiny-train*", "data/tiny-train.tfrecord-00001-of-00002", "data/tiny-{test,train}*0-of*"]
    {
        for verb in ["info", "verify"] {
            let ran = dir.run(&[verb, part, "--allow-missing"]);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{verb} {part}");
        }
    }
    let ran = dir.run(&["info", "data/tiny-train.tfrecord-00001-of-00002"]);
    assert!(rows(&ran.out).contains(&"split train, shard 1 of 2, tiny 1.0.0".to_owned()), "{}", ran.out);
    let mut ran = dir.command(&["verify", "tiny-train.tfrecord-00001-of-00002"]);
    let ran = Ran::of(ran.current_dir(dir.path("data")).output().unwrap());
    assert!(ran.out.ends_with("\nrecords as in dataset_info.json: train 2\n"), "{}", ran.out);

    let ran = dir.run(&["info", "--json", "data"]);
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let split = json!({"dataset": "tiny 1.0.0", "name": "train", "shard": 1, "shards": 2, "records": 2});
    assert_eq!(last["split"], split);
    assert_eq!(dir.run(&["cat", "-f", "json", "data"]).out.lines().count(), 9);
}

#[test]
fn a_shard_with_another_number_of_records() {
    let dir = tiny();
    dir.write_info(&json!([3, 7]), &json!([4]));
    let text = "data/tiny-train.tfrecord-00001-of-00002: expected 7 records, found 2 (shard 1 of split train), by \
                data/dataset_info.json\n";
    let ran = dir.run(&["info", "data"]);
    assert_eq!((ran.code, ran.err), (0, format!("tfseek: {text}")));
    assert!(rows(&ran.out).contains(&"5 10 2 of 2 train".to_owned()), "{}", ran.out);
    let ran = dir.run(&["verify", "data", "-j", "2"]);
    assert_eq!((ran.code, ran.err), (1, format!("tfseek: {text}")));
    // The checksums are right.
    assert!(ran.out.starts_with("3 of 3 files sound") && !ran.out.contains("records as in"), "{}", ran.out);
    // Other shards are not concerned.
    assert_eq!(dir.run(&["verify", "data/tiny-test*"]).code, 0);
    let ran = dir.run(&["verify", "--json", "data"]);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| &line["ok"]).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!((&lines[2]["split"]["records"], ran.code), (&json!(7), 1));
    assert!(lines[2]["error"].as_str().unwrap().contains("expected 7 records, found 2"), "{}", lines[2]);

    // Records after damage were not counted.
    damage(&dir.path("data/tiny-train.tfrecord-00001-of-00002"), 12);
    for verb in ["info", "verify"] {
        let ran = dir.run(&[verb, "data"]);
        assert_eq!((ran.code, ran.err.contains("expected 7 records")), (1, false), "{verb}: {}", ran.err);
    }
}

#[test]
fn missing_and_further_shards() {
    let dir = tiny();
    let moved = dir.path("data/tiny-test.tfrecord-00000-of-00001");
    fs::rename(&moved, dir.path("data/tiny-test.tfrecord-00000-of-00003")).unwrap();
    let (missing, other) = (
        "1 of 1 shards of split test is missing: data/tiny-test.tfrecord-00000-of-00001",
        "found another name",
    );
    for (verb, code) in [("info", 0), ("verify", 1)] {
        // The name itself says that shards are missing.
        assert!(dir.run(&[verb, "data"]).err.contains("missing"));
        let ran = dir.run(&[verb, "data", "--allow-missing"]);
        assert_eq!(
            (ran.code, ran.err.contains(other), ran.err.contains(missing)),
            (code, true, false),
            "{verb}"
        );
    }
    fs::remove_file(dir.path("data/tiny-test.tfrecord-00000-of-00003")).unwrap();
    dir.shard("data/mine.tfrecord", labels(0..3));
    for (verb, code) in [("info", 0), ("verify", 1)] {
        let ran = dir.run(&[verb, "data"]);
        assert_eq!(ran.code, code, "{verb}: {}", ran.err);
        assert_eq!(
            ran.err,
            format!("tfseek: data/dataset_info.json: {missing} (`--allow-missing` continues without them)\n")
        );
        for args in [&["data", "--allow-missing"][..], &["data/*.tfrecord*"]] {
            let ran = dir.run(&[&[verb], args].concat());
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{verb}");
        }
    }
    assert!(rows(&dir.run(&["info", "data"]).out).contains(&"1 file in no split".to_owned()));
}

#[test]
fn files_that_are_not_used_are_warnings() {
    let dir = tiny();
    let long = "[".repeat(100_000);
    let cases = [
        ("", "expected JSON, found: EOF"),
        (&long, "recursion limit"),
        (r#"{"name": "x", "splits": {"train": {}}}"#, "splits: expected a list, found an object"),
        (r#"{"name": "x", "fileFormat": "riegeli"}"#, "the dataset's files are riegeli, not tfrecord"),
    ];
    for (text, warning) in cases {
        fs::write(dir.path("data/dataset_info.json"), text).unwrap();
        for verb in ["info", "verify"] {
            for paths in ["data", "data/tiny-train*"] {
                let ran = dir.run(&[verb, paths]);
                assert_eq!((ran.code, ran.err.lines().count()), (0, 1), "{verb}: {}", ran.err);
                let start = "tfseek: data/dataset_info.json: records are not compared: ";
                assert!(ran.err.starts_with(start) && ran.err.contains(warning), "{}", ran.err);
            }
        }
    }
    // A folder without TFRecord files.
    fs::create_dir(dir.path("other")).unwrap();
    fs::write(dir.path("other/dataset_info.json"), r#"{"name": "x", "fileFormat": "array_record"}"#).unwrap();
    for verb in ["info", "verify"] {
        dir.run(&[verb, "other"])
            .fails(3, &["the dataset's files are array_record, not tfrecord", "no file matches other"]);
    }
    // A sparse file of 1 TiB.
    fs::File::create(dir.path("data/dataset_info.json")).unwrap().set_len(1 << 40).unwrap();
    let ran = dir.run(&["verify", "data"]);
    assert!(ran.code == 0 && ran.err.contains("expected at most 8388608 bytes, found more"), "{}", ran.err);
    fs::remove_file(dir.path("data/dataset_info.json")).unwrap();
    assert_eq!(dir.run(&["verify", "data"]).err, "");
}

/// Writes a `features.json` for the dataset of `tiny`, whose labels are 0, 1, .. 8, with names of three
/// classes.
fn write_features(dir: &Folder, folder: &str) {
    let class = |name: &str| format!("tensorflow_datasets.core.features.{name}");
    let label = json!({"pythonClassName": class("class_label_feature.ClassLabel"), "classLabel": {"numClasses": "3"}});
    let features = json!({
        "pythonClassName": class("features_dict.FeaturesDict"),
        "featuresDict": {"features": {"label": label}},
    });
    fs::write(dir.path(&format!("{folder}/features.json")), features.to_string()).unwrap();
    fs::write(dir.path(&format!("{folder}/label.labels.txt")), "cat\n\"big\" dog\nhorse\n").unwrap();
}

#[test]
fn labels_have_their_names() {
    let dir = tiny();
    write_features(&dir, "data");
    let lines = |args: &[&str]| {
        let ran = dir.run(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        rows(&ran.out).into_iter().filter(|line| line.starts_with("label ")).collect::<Vec<_>>()
    };
    let named = [
        "label int64 0 \"cat\"",
        "label int64 1 \"\\\"big\\\" dog\"",
        "label int64 2 \"horse\"",
        "label int64 3",
    ];
    let train = "data/tiny-train*";
    for verb in [
        &["head", train, "-n", "4"][..],
        &["cat", train],
        &["get", train, "0..4"],
        &["tail", train, "-n", "5"],
    ] {
        let found = lines(verb);
        assert_eq!(found[..4], named, "{verb:?}");
    }
    assert_eq!(lines(&["sample", "data", "-n", "9"]).len(), 9);
    // Other formats have numbers, as before.
    assert!(!dir.run(&["head", train, "-n", "1", "-f", "json"]).out.contains("cat"));

    let horse = r#"label == "horse""#;
    for verb in ["head", "cat", "tail"] {
        assert_eq!(lines(&[verb, "data", "--where", horse]), named[2..3], "{verb}");
    }
    assert_eq!(lines(&["get", "data", "0..9", "--where", horse]), named[2..3]);
    assert_eq!(lines(&["sample", "data", "--where", r#"label in "cat", 2"#, "-n", "5"]).len(), 2);
    assert_eq!(lines(&["grep", r#"label != "horse" and label < 4"#, "data"]).len(), 3);
    assert_eq!(dir.run(&["digest", "data", "--where", horse]).out.lines().count(), 1);
    assert_eq!(dir.run(&["reshard", "data", "-o", "out/part.tfrecord", "--where", horse]).code, 0);
    assert_eq!(dir.run(&["convert", "data", "out.jsonl", "--where", horse]).code, 0);
    assert_eq!(fs::read_to_string(dir.path("out.jsonl")).unwrap().lines().count(), 1);
    let ran = dir.run(&[
        "order",
        "data",
        "--where",
        horse,
        "--shuffle",
        "none",
        "--batch-size",
        "1",
        "--step",
        "0",
    ]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));

    // A name of no class is refused before anything is printed.
    for args in [
        &["head", "data", "--where", "label == 'hrose'"][..],
        &["grep", "label == 'hrose'", "data"],
        &["stats", "data", "--where", "label == 'hrose'"],
        &["convert", "data", "out2.jsonl", "--where", "label == 'hrose'"],
    ] {
        dir.run(args)
            .fails(2, &["has no value named \"hrose\"; the nearest name is \"horse\"", "         ^"]);
    }
    // `grep --literal` searches bytes.
    assert_eq!(dir.run(&["grep", "-F", "horse", "data"]).out, "");
}

#[test]
fn statistics_have_the_names_of_labels() {
    let dir = tiny();
    write_features(&dir, "data");
    let ran = dir.run(&["stats", "data"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let expected =
        "label int64 all 9 0 \"cat\" 11.1 %, 1 \"\\\"big\\\" dog\" 11.1 %, 2 \"horse\" 11.1 %, 6 more";
    assert!(rows(&ran.out).contains(&expected.to_owned()), "{}", ran.out);
    let ran = dir.run(&["stats", "data", "--json", "--where", "label in 'horse', 3"]);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let top = json!([{"value": 2, "name": "horse", "count": 1}, {"value": 3, "name": null, "count": 1}]);
    assert_eq!(json["features"][0]["int64"]["top"], top);
    let ran = dir.run(&["stats", "data", "--by", "label"]);
    assert!(
        ran.out.contains("\nlabel = 2 \"horse\": 1 Example") && ran.out.contains("\nlabel = 3: "),
        "{}",
        ran.out
    );
}

#[test]
fn info_has_the_features() {
    let dir = tiny();
    write_features(&dir, "data");
    let ran = dir.run(&["info", "data"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let end = ["features", r#"label ClassLabel(3) cat, "\"big\" dog", horse"#].map(String::from);
    assert!(rows(&ran.out).ends_with(&end), "{}", ran.out);
    let one = dir.run(&["info", "data/tiny-test.tfrecord-00000-of-00001"]);
    assert!(rows(&one.out).ends_with(&end), "{}", one.out);
    let ran = dir.run(&["info", "--json", "data"]);
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let label = json!({
        "key": "label", "class": "ClassLabel", "dtype": "int64", "shape": [], "encoding": "none", "optional": false,
        "sequences": [], "steps": false, "classes": 3, "first_names": ["cat", "\"big\" dog", "horse"],
    });
    assert_eq!(last["features"], json!({ "label": label }));
    let ran = dir.run(&["schema", "data"]);
    assert!(ran.code == 0 && ran.err.contains("names of labels"), "{}", ran.err);
}

/// Files that are not all of one data set have no features, and damage is no failure.
#[test]
fn features_of_other_files() {
    let dir = tiny();
    write_features(&dir, "data");
    fs::create_dir(dir.path("plain")).unwrap();
    dir.shard("plain/x.tfrecord", labels(0..1));
    let ran = dir.run(&["head", "plain/x.tfrecord", "data/tiny-test.tfrecord-00000-of-00001"]);
    assert!(ran.code == 0 && !ran.out.contains('"') && ran.err.is_empty(), "{} {}", ran.out, ran.err);
    let ran = dir.run(&["head", "plain/x.tfrecord", "--where", "label == 'cat'"]);
    assert!(ran.code != 0 && ran.err.contains("expected a 64-bit integer, found \"cat\""), "{}", ran.err);
    fs::write(dir.path("data/features.json"), "{").unwrap();
    for verb in ["head", "stats", "info", "grep"] {
        let args = if verb == "grep" { vec!["grep", "label == 0", "data"] } else { vec![verb, "data"] };
        let ran = dir.run(&args);
        assert_eq!((ran.code, ran.err.lines().count()), (0, 1), "{verb}: {}", ran.err);
        assert!(ran.err.starts_with("tfseek: features are not used: data/features.json: "), "{}", ran.err);
    }
}

#[test]
fn a_copy_has_its_own_shards_for_each_split() {
    let dir = tiny();
    write_features(&dir, "data");
    let ran = dir.run(&["reshard", "data", "-o", "new/tiny/1.0.0@3", "--where", "label != 1"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let set = |split| format!("new/tiny/1.0.0/tiny-{split}.tfrecord@3: 4 records, 3 shards,");
    assert!(
        rows(&ran.out).iter().zip(["train", "test"]).all(|(row, split)| row.starts_with(&set(split))),
        "{}",
        ran.out
    );
    let ran = dir.run(&["verify", "new/tiny/1.0.0"]);
    assert!(
        ran.out.ends_with("\nrecords as in new/tiny/1.0.0/dataset_info.json: train 4, test 4\n"),
        "{}",
        ran.out
    );
    let features = |folder: &str| fs::read(dir.path(&format!("{folder}/features.json"))).unwrap();
    assert_eq!(features("new/tiny/1.0.0"), features("data"));

    for (args, words) in [
        (&["data", "-o", "new/tiny/1.0.0"][..], "new/tiny/1.0.0: expected a new or an empty folder"),
        (&["data", "-o", "x", "--force"], "force: not for the folder of a data set"),
        (&["data", "-o", "x", "--drop", "label"], "because its features.json describes all"),
        (&["data", "-o", "data/x"], "expected a folder outside of the input data"),
    ] {
        dir.run(&[&["reshard"], args].concat()).fails(2, &[words]);
    }
    fs::remove_file(dir.path("data/tiny-train.tfrecord-00001-of-00002")).unwrap();
    let missing = "1 of 2 shards of split train is missing: data/tiny-train.tfrecord-00001-of-00002";
    dir.run(&["reshard", "data", "-o", "x"]).fails(1, &[missing]);
    assert!(!dir.path("x").exists());
    // The records that are there become plain files.
    assert_eq!(dir.run(&["reshard", "data", "-o", "x.tfrecord", "--allow-missing"]).code, 0);
}

/// The folder of a copy exists only with all its files, whenever the run is killed.
#[test]
fn a_killed_copy_is_whole_or_has_no_name() {
    let dir = tiny();
    dir.shard("data/tiny-test.tfrecord-00000-of-00001", labels(0..20_000));
    dir.write_info(&json!(["3", "2"]), &json!([20_000]));
    let whole =
        ["dataset_info.json", "tiny-test.tfrecord-00001-of-00002", "tiny-train.tfrecord-00001-of-00002"];
    let mut killed = 0;
    for k in 0..40u64 {
        let mut run = dir.command(&["reshard", "data", "-o", "new@2", "--shuffle"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3 * k));
        let _ = run.kill();
        killed += u64::from(!run.wait().unwrap().success());
        if dir.path("new").exists() {
            assert!(whole.iter().all(|name| dir.path(&format!("new/{name}")).exists()), "after {k} steps");
            assert_eq!(dir.run(&["verify", "new"]).code, 0);
            fs::remove_dir_all(dir.path("new")).unwrap();
        }
    }
    assert!(killed > 0);
}

#[test]
#[cfg(feature = "tables")]
fn a_folder_of_versions_has_the_columns_of_its_version() {
    let dir = tiny();
    write_features(&dir, "data");
    fs::create_dir(dir.path("tiny")).unwrap();
    fs::rename(dir.path("data"), dir.path("tiny/1.0.0")).unwrap();
    for (split, out) in [("tiny[train[:3]]", "a.parquet"), ("tiny/1.0.0[train[:3]]", "b.parquet")] {
        let ran = dir.run(&["convert", split, out]);
        assert_eq!(ran.code, 0, "{split}: {}", ran.err);
    }
    assert!(fs::read(dir.path("a.parquet")).unwrap() == fs::read(dir.path("b.parquet")).unwrap());
    let ran = dir.run(&["convert", "a.parquet", "new/tiny/1.0.0", "--schema", "tiny"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // A verb that works on files says how to name them.
    for verb in ["info", "stats", "head", "verify"] {
        dir.run(&[verb, "tiny"]).fails(3, &["no file matches tiny", "'tiny[all]' is its newest version"]);
        assert_eq!(dir.run(&[verb, "tiny[all]"]).code, 0);
    }
}
