//! Objects whose identity is unknown: without a time and a version.

use super::*;
use std::time::Duration;
use tfseek::column::ColumnOptions;
use tfseek::{Filter, Warning};

const NAMELESS: Manners =
    Manners { times: false, versions: false, writable: true, latency: Duration::from_micros(10) };

/// A shard of records of equal length. Labels in its middle depend on `k`, and its first and last 64 KiB do
/// not.
fn version(k: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..1000i64 {
        let label = if (400..600).contains(&i) { (i + k) % 10 } else { i % 10 };
        let payload = ExampleBuilder::new().int64("label", [label]).bytes("pad", [vec![b'x'; 200]]);
        put_record(&mut bytes, &payload.encode().unwrap()).unwrap();
    }
    bytes
}

fn labels_found(ds: &Dataset) -> Vec<i64> {
    let filter: Filter = "label == 3".parse().unwrap();
    let (selected, warnings) = ds.select(&filter, &ColumnOptions::default()).unwrap();
    assert!(warnings.iter().all(|warning| matches!(warning, Warning::NotSaved { .. })), "{warnings:?}");
    let mut buf = Vec::new();
    let labels = selected.iter().map(|i| {
        let record = ds.read(i, &mut buf).unwrap();
        record.example().int64("label").unwrap().first().unwrap()
    });
    let mut labels: Vec<i64> = labels.collect();
    assert_eq!(labels.len(), 100);
    labels.dedup();
    labels
}

#[test]
fn columns_do_not_answer_for_a_replacement() {
    let [a, b] = [0, 1].map(version);
    assert!(a.len() == b.len() && a[..1 << 16] == b[..1 << 16] && a != b);
    assert!(a[a.len() - (1 << 16)..] == b[b.len() - (1 << 16)..]);
    let case = Case::new(NAMELESS);
    for bytes in [&a, &b, &a] {
        case.bucket.set(&url("x.tfrecord"), bytes.clone());
        let ds = case.open("x.tfrecord").unwrap();
        assert_eq!(labels_found(&ds), [3]);
        let column = ds.column("label", &ColumnOptions::default()).unwrap();
        let text = column.warnings.iter().map(Warning::to_string).collect::<String>();
        assert!(text.contains("no time and no version"), "{text}");
        assert!(ds.find_columns(&["label"]).unwrap()[0].is_none());
        assert_eq!(case.cached(), 1, "the index");
    }
    // A file that could not be used is not built on request.
    let ds = case.open("x.tfrecord").unwrap();
    let e = ds.column("label", &ColumnOptions { beside: true, ..Default::default() }).unwrap_err();
    assert!(e.to_string().contains("no time and no version"), "{e}");
    // One beside the object, of whatever object, is not used either.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.tfrecord"), &a).unwrap();
    let local = DatasetOptions::new().index(IndexOptions::new().default_dirs(None, None));
    let local = local.open(dir.path().join("x.tfrecord")).unwrap();
    local.column("label", &ColumnOptions { beside: true, ..Default::default() }).unwrap();
    let beside = std::fs::read(dir.path().join(".tfseek/x.tfrecord.label.tfrc")).unwrap();
    case.bucket.set(&url(".tfseek/x.tfrecord.label.tfrc"), beside);
    case.bucket.set(&url("x.tfrecord"), b);
    assert_eq!(labels_found(&case.open("x.tfrecord").unwrap()), [3]);
}

#[test]
fn columns_of_a_version_are_those_of_the_version() {
    for manners in Manners::ALL {
        let case = Case::new(manners);
        for k in [0, 1, 0] {
            case.bucket.set(&url("x.tfrecord"), version(k));
            for _ in 0..2 {
                assert_eq!(labels_found(&case.open("x.tfrecord").unwrap()), [3]);
            }
            let ds = case.open("x.tfrecord").unwrap();
            assert!(ds.find_columns(&["label"]).unwrap()[0].is_some(), "saved, and used");
        }
    }
}
