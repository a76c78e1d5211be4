//! Fetches of a data set of TensorFlow Datasets.

use super::tests::{Fault, Memory};
use super::*;
use crate::error::FetchReason;
use std::ops::Range;
use std::path::Path;
use tfseek::{DatasetOptions, IndexMode};
use tfseek_testkit::labelled::{labels, shard};
use tfseek_tfds::{Builder, BuilderOptions, DatasetInfo};

const INFO: &str = r#"{"name": "x", "version": "1.0.0", "unknown": [1.5], "splits": [
  {"name": "train", "shardLengths": ["10", "0", "20"], "numBytes": "7"},
  {"name": "test", "shardLengths": ["5"], "numBytes": "8"}]}"#;

const FEATURES: &str = r#"{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
  "label": {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 100}},
  "text": {"type": "tensorflow_datasets.core.features.text_feature.Text", "content": {}}}}"#;

/// The shards, and the labels of their records.
const SHARDS: [(&str, Range<i64>); 4] = [
    ("x-train.tfrecord-00000-of-00003", 0..10),
    ("x-train.tfrecord-00001-of-00003", 10..10),
    ("x-train.tfrecord-00002-of-00003", 10..30),
    ("x-test.tfrecord-00000-of-00001", 50..55),
];

struct Case {
    memory: Memory,
    dir: tempfile::TempDir,
}

impl Case {
    fn new() -> Case {
        let case = Case { memory: Memory::default(), dir: tempfile::tempdir().unwrap() };
        for (name, ids) in SHARDS {
            case.memory.set(&format!("x/1.0.0/{name}"), shard(ids));
        }
        let names: String = (0..100).map(|k| format!("class{k}\n")).collect();
        for (name, text) in
            [("dataset_info.json", INFO), ("features.json", FEATURES), ("label.labels.txt", &names)]
        {
            case.memory.set(&format!("x/1.0.0/{name}"), text.as_bytes().to_vec());
        }
        case
    }

    fn options(&self, split: Option<&str>, to: &str) -> FetchOptions {
        let mut options =
            FetchOptions::new(Arc::new(self.memory.clone()), "mem://b/x/1.0.0", self.dir.path().join(to));
        options.split = split.map(str::to_owned);
        options
    }

    fn names(&self, to: &str) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join(to)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }
}

fn run(options: &FetchOptions) -> Result<FetchReport, ToolsError> {
    FetchPlan::new(options)?.run(&WriteProgress::default())
}

/// Opens a prepared data set, and returns its splits with the labels of their records.
fn splits_of(folder: &Path) -> Vec<(String, Vec<i64>)> {
    let dataset = DatasetOptions::new().index(IndexMode::Memory);
    let builder = Builder::open(folder, &BuilderOptions { dataset, ..BuilderOptions::default() }).unwrap();
    let split = |name: &str| labels(&builder.select(name).unwrap().dataset);
    builder.splits().iter().map(|found| (found.name.clone(), split(&found.name))).collect()
}

fn train() -> Vec<i64> {
    (0..30).collect()
}

#[test]
fn a_whole_data_set_is_the_same() {
    let case = Case::new();
    let report = run(&case.options(None, "all")).unwrap();
    assert_eq!((report.files, report.records), (7, 35));
    let here = |name: &str| fs::read(case.dir.path().join("all").join(name)).unwrap();
    for (name, ids) in SHARDS {
        assert!(here(name) == shard(ids), "{name}");
    }
    assert!(here("dataset_info.json") == INFO.as_bytes() && here("features.json") == FEATURES.as_bytes());
    assert_eq!(splits_of(&case.dir.path().join("all")).len(), 2);
    // The folder above stands for its highest version.
    case.memory.requests();
    assert_eq!(run(&case.options(None, "all")).unwrap().requests, 0);
    assert!(case.memory.requests().is_empty());
    let mut above = case.options(Some("test"), "above");
    above.url = "mem://b/x".into();
    assert_eq!(run(&above).unwrap().records, 5);
}

#[test]
fn parts_of_splits_are_data_sets() {
    let case = Case::new();
    for (k, (split, expected, files)) in [
        ("train", vec![("train", train())], 6),
        ("test+train[:4]", vec![("train", (0..4).collect()), ("test", (50..55).collect())], 5),
        ("train[5:12]", vec![("train", (5..12).collect())], 5),
        ("train[:2]+train[1:3]+train[-1:]", vec![("train", vec![0, 1, 2, 29])], 5),
        ("test[:0%]", vec![("test", vec![])], 3),
        ("train[:10]", vec![("train", (0..10).collect())], 4),
        ("train[10:]+test", vec![("train", (10..30).collect()), ("test", (50..55).collect())], 5),
    ]
    .into_iter()
    .enumerate()
    {
        let to = format!("to{k}");
        case.memory.requests();
        let report = run(&case.options(Some(split), &to)).unwrap();
        let expected: Vec<(String, Vec<i64>)> =
            expected.into_iter().map(|(name, labels)| (name.to_owned(), labels)).collect();
        assert_eq!(splits_of(&case.dir.path().join(&to)), expected, "{split}");
        assert_eq!(case.names(&to).len(), files, "{split}: {:?}", case.names(&to));
        assert_eq!(report.records as usize, expected.iter().map(|(_, labels)| labels.len()).sum::<usize>());
        let read = case.memory.requests().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(!read.iter().any(|name| name.contains("test")) || split.contains("test"), "{read:?}");
        case.memory.requests();
        assert_eq!(run(&case.options(Some(split), &to)).unwrap().requests, 0, "{split}");
    }
    let info = fs::read(case.dir.path().join("to2/dataset_info.json")).unwrap();
    let info = DatasetInfo::parse(&info).unwrap();
    assert_eq!((info.splits[0].shard_lengths.as_deref(), info.splits.len()), (Some(&[5, 2][..]), 1));
    assert_eq!(
        case.names("to2")[3..],
        ["x-train.tfrecord-00000-of-00002", "x-train.tfrecord-00001-of-00002"]
    );
    let e = run(&case.options(Some("trian"), "other")).unwrap_err().to_string();
    assert!(e.contains("train") && !case.dir.path().join("other").exists(), "{e}");
}

#[test]
fn conditions_know_the_names_of_classes() {
    let case = Case::new();
    let mut options = case.options(None, "some");
    options.filter = Some("label in 'class3', 'class29', 'class52'".parse().unwrap());
    assert_eq!(run(&options).unwrap().records, 3);
    let expected = [("train".to_owned(), vec![3, 29]), ("test".to_owned(), vec![52])];
    assert_eq!(splits_of(&case.dir.path().join("some")), expected);
    options.filter = Some("label == 'horse'".parse().unwrap());
    options.folder = case.dir.path().join("none");
    assert!(run(&options).unwrap_err().to_string().contains("horse"));
}

#[test]
fn another_number_of_records_is_damage() {
    let case = Case::new();
    case.memory.set(&format!("x/1.0.0/{}", SHARDS[2].0), shard(10..29));
    for (split, to) in [(None, "all"), (Some("train[:15]"), "some"), (Some("train[-1:]"), "last")] {
        let report = run(&case.options(split, to)).unwrap();
        // The first records are there in any case.
        assert_eq!(report.damaged.len(), usize::from(to != "some"), "{to}");
        for damage in &report.damaged {
            let expected = FetchReason::Count {
                url: format!("mem://b/x/1.0.0/{}", SHARDS[2].0),
                expected: 20,
                found: 19,
            };
            assert!(matches!(damage, ToolsError::Fetch(reason) if *reason == expected), "{damage}");
        }
        assert_eq!(case.dir.path().join(to).join("dataset_info.json").exists(), to == "some");
    }
    let mut options = case.options(None, "all");
    options.keep_damaged = true;
    assert_eq!(run(&options).unwrap().kept.len(), 1);
    assert_eq!(case.names("all").len(), 7);
}

#[test]
fn the_description_comes_last() {
    let case = Case::new();
    case.memory.fail(&format!("x/1.0.0/{}", SHARDS[2].0), Fault::Broken(0), 1);
    run(&case.options(None, "all")).unwrap_err();
    assert!(!case.dir.path().join("all/dataset_info.json").exists());
    run(&case.options(None, "all")).unwrap();
    assert!(case.dir.path().join("all/dataset_info.json").exists());
}
