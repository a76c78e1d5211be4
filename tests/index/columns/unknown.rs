//! A feature that no record has is an error that suggests the nearest name, not an empty column.

use super::*;
use tfseek::{Dataset, Error, SequenceExampleBuilder};

fn of_keys(keys: &[&str], i: i64) -> Vec<u8> {
    let builder = keys.iter().fold(ExampleBuilder::new(), |builder, key| builder.int64(*key, [i]));
    builder.encode().unwrap()
}

fn shard(keys: &[&str], n: i64) -> Vec<u8> {
    let payloads: Vec<Vec<u8>> = (0..n).map(|i| of_keys(keys, i)).collect();
    records(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[track_caller]
fn refused<T>(result: tfseek::Result<T>, feature: &str, want: Option<&str>) -> Error {
    let Err(e) = result else { panic!("no error for {feature}") };
    let ErrorKind::UnknownFeature { nearest, .. } = e.kind() else { panic!("{e}") };
    assert_eq!((e.location().feature.as_deref(), nearest.as_deref()), (Some(feature), want), "{e}");
    e
}

#[test]
fn a_misspelt_feature_is_an_error_in_every_call() {
    let dir = tempfile::tempdir().unwrap();
    let paths =
        ["s0", "s1"].map(|name| write(dir.path(), name, &shard(&["image/class/label", "other"], 100)));
    let index = dir.path().join("i");
    let open = || DatasetOptions::new().index(options().index_dir(&index)).open(&paths).unwrap();
    let ds = open();
    let saved = || names(&index).iter().filter(|name| name.ends_with(".tfrc")).count();
    let near = Some("image/class/label");
    for feature in ["label", "image/class/lable", "Image/Class/Label"] {
        refused(ds.column(feature, &Default::default()), feature, near);
        refused(ds.columns(&["other", feature], &Default::default()), feature, near);
        let beside = ColumnOptions { beside: true, ..ColumnOptions::default() };
        refused(ds.columns(&[feature], &beside), feature, near);
    }
    for filter in [
        "label in 3",
        "present(label)",
        "absent(label)",
        "not label == 3",
        "other == 1 and label == 3",
        "other == 1 or absent(label)",
    ] {
        let e = refused(ds.select(&filter.parse().unwrap(), &Default::default()), "label", near).to_string();
        let reason = "no record has a value of this feature; the nearest name is \"image/class/label\"";
        assert_eq!(e, format!("feature \"label\": {reason}"), "{filter}");
    }
    assert_eq!(saved(), 0, "nothing is saved, not even for existing features in the same call");
    let e = refused(ds.column("nope", &Default::default()), "nope", None);
    assert!(e.to_string().ends_with("the first records have \"image/class/label\", \"other\""), "{e}");

    // Column files without values.
    ds.columns(&["label"], &ColumnOptions { unknown: true, beside: true, ..ColumnOptions::default() })
        .unwrap();
    assert_eq!(saved(), 2);
    let scanned = DatasetOptions::new().index(options().index_dir(&index)).progress(|bytes| {
        assert_eq!(bytes, 0, "scanned");
        std::ops::ControlFlow::Continue(())
    });
    refused(scanned.open(&paths).unwrap().column("label", &Default::default()), "label", near);
    ds.columns(&["image/class/label", "other"], &Default::default()).unwrap();
    assert_eq!(saved(), 6);
}

#[test]
fn a_feature_without_values_is_an_empty_column() {
    let empty = ExampleBuilder::new().int64("label", [0i64; 0]).encode().unwrap();
    let without_kind = b"\x0a\x09\x0a\x07\x0a\x05label";
    for payload in [&empty[..], without_kind] {
        let ds = memory(&records(&[b"", payload, b""]));
        let column = ds.column("label", &Default::default()).unwrap();
        assert_eq!((column.count(), column.kind), (0, None));
        assert_eq!(ds.select(&"absent(label)".parse().unwrap(), &Default::default()).unwrap().0.len(), 3);
    }
    // Without records, no feature is unknown.
    assert!(memory(b"").column("label", &Default::default()).unwrap().len() == 0);
    let e = refused(memory(&records(&[b"", b""])).column("label", &Default::default()), "label", None);
    assert!(e.to_string().contains("the first records have no features"), "{e}");
}

#[test]
fn a_shard_may_lack_what_others_have() {
    let dir = tempfile::tempdir().unwrap();
    // After the records whose keys are inspected, and only in the last shard.
    let late = [shard(&["other"], 5000), shard(&["other", "label"], 1)].concat();
    let paths = [("s0", shard(&["other"], 10)), ("s1", Vec::new()), ("s2", late)];
    let paths = paths.map(|(name, bytes)| write(dir.path(), name, &bytes));
    let index = dir.path().join("i");
    let ds = DatasetOptions::new().index(options().index_dir(&index)).open(&paths).unwrap();
    let columns = ds.columns(&["label", "other"], &Default::default()).unwrap();
    assert_eq!((columns[0].count(), columns[0].get(5010)), (1, Some(Value::Int(0))));
    assert_eq!(columns[1].count(), 5011);
    assert_eq!(names(&index).iter().filter(|name| name.ends_with(".tfrc")).count(), 6, "saved");
    assert!(columns.iter().all(|column| column.shards().iter().all(|shard| shard.file().is_some())));
    // Opened by itself, the shard lacks the feature.
    let alone: Dataset = DatasetOptions::new().index(options().index_dir(&index)).open(&paths[0]).unwrap();
    refused(alone.column("label", &Default::default()), "label", None);
}

#[test]
fn a_feature_list_is_not_a_context_feature() {
    let record = |list: &str, steps: &[f32]| {
        let steps = steps.iter().map(|step| tfseek::FeatureBuf::Float(vec![*step]));
        SequenceExampleBuilder::new().int64("id", [5]).feature_list(list, steps).encode().unwrap()
    };
    // The last one is after the records whose names are read first.
    let payloads = [vec![record("frames", &[0.5, 1.5]); 30], vec![record("late", &[2.5])]].concat();
    let ds = memory(&records(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    let e = refused(ds.column("frames", &Default::default()), "frames", None);
    assert!(e.to_string().contains("it is a feature list"), "{e}");
    refused(ds.column("ids", &Default::default()), "ids", Some("id"));
    let select = |text: &str| ds.select(&text.parse().unwrap(), &Default::default());
    for (text, expected) in [
        ("len(steps(frames)) == 2 and any(steps(frames)) > 1", 30),
        ("any(steps(late)) > 2", 1),
        ("record < 3 and any(steps(late)) > 2", 0),
    ] {
        assert_eq!(select(text).unwrap().0.len(), expected, "{text}");
    }
    for (text, reason) in [
        ("any(steps(frame)) > 1", "no record has a feature list \"frame\"; the nearest name is \"frames\""),
        ("record < 3 and len(steps(nowhere)) > 3", "list \"nowhere\"; the first records have \"frames\""),
        (
            "id == 5 and absent(steps(id))",
            "list \"id\"; it is a feature, which its name without `steps` tests",
        ),
        ("present(frames)", "it is a feature list, and feature lists have no columns"),
    ] {
        let e = select(text).unwrap_err().to_string();
        assert!(e.contains(reason), "{text}: {e}");
    }
}

#[test]
fn finished_columns_are_kept_if_another_shard_fails() {
    let dir = tempfile::tempdir().unwrap();
    let example = |key: &str| ExampleBuilder::new().int64(key, [1]).encode().unwrap();
    let (other, label) = (example("other"), example("label"));
    // The feature occurs only after the records that are inspected first.
    let rare = [vec![&other[..]; 30], vec![&label[..]; 3]].concat();
    let mut paths = Vec::from_iter((0..4).map(|s| write(dir.path(), &format!("{s}"), &records(&[&other]))));
    paths.push(write(dir.path(), "4", &records(&rare)));
    let mut damaged = records(&[&label]);
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    paths.push(write(dir.path(), "5", &damaged));
    let index = options().index_dir(dir.path().join("i"));
    let ds = DatasetOptions::new().index(index.threads(1)).open(&paths).unwrap();
    let e = ds.column("label", &Default::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }), "{e}");
    let saved = names(&dir.path().join("i")).into_iter().filter(|name| name.ends_with(".tfrc")).count();
    assert_eq!(saved, 5);
}
