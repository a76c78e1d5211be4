//! Recorded answers of TensorFlow Datasets, in the folder that `TFSEEK_TFDS_CASES` names. Without it nothing
//! is compared.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tfseek::{DatasetOptions, IndexMode};
use tfseek_tfds::{Builder, BuilderOptions, Rounding, SplitSelection, TfdsError, TfdsErrorKind};

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("TFSEEK_TFDS_CASES").map(PathBuf::from);
    if data.is_none() {
        tfseek_testkit::skipped("TFSEEK_TFDS_CASES");
    }
    data
}

fn options() -> BuilderOptions {
    BuilderOptions { dataset: DatasetOptions::new().index(IndexMode::Memory), ..BuilderOptions::default() }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the split and the number of each record, from its features and from its location.
fn records(selection: &SplitSelection) -> Vec<(String, u64)> {
    let mut buf = Vec::new();
    let read = |i| {
        let record = selection.dataset.read(selection.record(i).unwrap(), &mut buf).unwrap();
        let example = record.example();
        let split = example.bytes("split").unwrap().iter().next().unwrap();
        let i = example.int64("i").unwrap().first().unwrap();
        (String::from_utf8(split.to_vec()).unwrap(), u64::try_from(i).unwrap())
    };
    (0..selection.len()).map(read).collect()
}

fn expected(ranges: &Value) -> Vec<(String, u64)> {
    let range = |range: &Value| {
        let split = range[0].as_str().unwrap().to_owned();
        (range[1].as_u64().unwrap()..range[2].as_u64().unwrap()).map(move |i| (split.clone(), i))
    };
    ranges.as_array().unwrap().iter().flat_map(range).collect()
}

#[test]
fn split_specifications_select_the_same_records() {
    let Some(data) = data() else { return };
    let builder = Builder::open(data.join("sets/splits/1.0.0"), &options()).unwrap();
    let cases = json(&data.join("cases/splits.json"));
    let cases = cases["cases"].as_array().unwrap();
    for case in cases {
        if let Some(spec) = case["even_splits"].as_str() {
            let (n, drop) = (case["n"].as_u64().unwrap(), case["drop_remainder"].as_bool().unwrap());
            let parts: Vec<_> = builder.even_splits(spec, n, drop).unwrap().iter().map(records).collect();
            let ranges: Vec<_> = case["ranges"].as_array().unwrap().iter().map(expected).collect();
            assert_eq!(parts, ranges, "{case}");
            continue;
        }
        let rounding = match case["rounding"].as_str() {
            None => Rounding::Closest,
            Some("pct1_dropremainder") => Rounding::Pct1DropRemainder,
            Some(other) => panic!("{other}"),
        };
        let found = builder.select_rounded(case["spec"].as_str().unwrap(), rounding);
        if case.get("either").is_some() {
            assert!(found.map_or(true, |found| found.len() == 0), "{case}");
        } else if case.get("error").is_some() {
            let e = found.map(|found| found.ranges).unwrap_err();
            assert!(matches!(e.kind(), TfdsErrorKind::Split { .. }), "{case}: {e}");
            assert!(e.to_string().ends_with(". The splits are train, test, val-2, empty"), "{e}");
        } else {
            assert_eq!(records(&found.unwrap()), expected(&case["ranges"]), "{case}");
        }
    }
    assert!(cases.len() >= 86, "{}", cases.len());
}

/// Each set opens with the splits and the numbers of records that were recorded. Those whose folder is at
/// fault are refused.
#[test]
fn folders_open_with_the_same_splits() {
    let Some(data) = data() else { return };
    let (mut sets, mut found) = (0, 0);
    for golden in fs::read_dir(data.join("golden")).unwrap() {
        let path = golden.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let golden = json(&path);
        let folder = data.join(golden["dir"].as_str().unwrap());
        let name = path.file_stem().unwrap().to_str().unwrap();
        let opened = Builder::open(&folder, &options());
        sets += 1;
        let fault = match name {
            "refused_array_record" => Some("array_record"),
            "refused_count" => Some("expected 3 records, found 2"),
            "refused_missing_shard" => Some("1 of 3 shards of split train is missing"),
            "refused_no_features" => Some("expected features.json, which"),
            "refused_parent" => Some("expected dataset_info.json"),
            _ => None,
        };
        if let Some(fault) = fault {
            let e: TfdsError =
                opened.and_then(|builder| builder.select("all")).map(|all| all.ranges).unwrap_err();
            assert!(e.to_string().contains(fault), "{name}: {e}");
            continue;
        }
        // The other sets that are refused have features at fault.
        let Some(splits) = golden["splits"].as_object() else { continue };
        let builder = opened.unwrap();
        for (split, records) in splits {
            let selection = builder.select(split).unwrap();
            let records = records.as_array().unwrap();
            assert_eq!(selection.len(), records.len() as u64, "{name} {split}");
            let mut buf = Vec::new();
            for (i, record) in records.iter().enumerate() {
                let read = selection.dataset.read(i as u64, &mut buf).unwrap();
                assert_eq!(Some(read.payload().len() as u64), record["len"].as_u64(), "{name} {split} {i}");
                found += 1;
            }
        }
    }
    assert!(sets >= 61 && found >= 700, "{sets} sets, {found} records");
}

#[test]
fn versions_and_configurations() {
    let Some(data) = data() else { return };
    let open = |folder: &str, config: Option<&str>| {
        let options = BuilderOptions { config: config.map(str::to_owned), ..options() };
        Builder::open(data.join("sets/versions").join(folder), &options)
    };
    let version = |builder: Builder| builder.version().unwrap().to_owned();
    assert_eq!(open("en", None).map(version).unwrap(), "1.10.0");
    assert_eq!(open("", Some("fr")).map(version).unwrap(), "1.0.0");
    let e = open("", None).unwrap_err().to_string();
    assert!(e.ends_with("found several configurations: en, fr"), "{e}");
    let supervised = Builder::open(data.join("sets/supervised"), &options()).unwrap();
    assert_eq!(supervised.supervised_keys().unwrap(), ["x", "y"]);
}
