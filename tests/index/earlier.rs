//! Index files and saved states that version 0.1 wrote.

use serde_json::Value;
use std::fs;
use std::path::Path;
use tfseek::order::{Spec, State};
use tfseek::{Dataset, DatasetOptions, IndexMode};
use tfseek_testkit::hex::unhex;
use tfseek_testkit::shards::{options, set_mtime};

const SHARDS: [&str; 2] = ["a.tfrecord", "b.tfrecord.gz"];

/// Writes the files of version 0.1 to a folder. Returns its saved states.
fn written(dir: &Path) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../data/written_by_0_1.json")).unwrap();
    fs::create_dir(dir.join(".tfseek")).unwrap();
    for (name, bytes) in all["files"].as_object().unwrap() {
        fs::write(dir.join(name), unhex(bytes.as_str().unwrap())).unwrap();
        set_mtime(&dir.join(name), 1_600_000_000_000_000_000);
    }
    all["states"].as_array().unwrap().clone()
}

/// Opens files whose indexes are all there.
fn opened(paths: Vec<std::path::PathBuf>) -> Dataset {
    let ds = DatasetOptions::new().index(options().mode(IndexMode::Require)).open(paths).unwrap();
    assert!(ds.warnings().is_empty(), "{:?}", ds.warnings());
    ds
}

#[test]
fn indexes_packs_and_columns_are_used() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    let shards: Vec<_> = SHARDS.iter().map(|name| dir.path().join(name)).collect();
    for ds in [opened(shards), opened(vec![dir.path().join(".tfseek/all.tfrp")])] {
        let column = ds.column("label", &Default::default()).unwrap();
        assert!(column.warnings.is_empty(), "{:?}", column.warnings);
        let mut buf = Vec::new();
        for i in 0..14 {
            let record = ds.read(i, &mut buf).unwrap();
            let expected = tfseek::ExampleBuilder::new().int64("label", [i as i64 % 7]).encode().unwrap();
            assert_eq!(record.payload(), expected);
        }
    }
}

#[test]
fn states_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let states = written(dir.path());
    let ds = opened(SHARDS.iter().map(|name| dir.path().join(name)).collect());
    let specs = [Spec::Global, Spec::Block { block: 1, window: 1 }, Spec::Sequential];
    assert_eq!(states.len(), specs.len());
    for (saved, spec) in states.iter().zip(&specs) {
        let state = State::from_json(saved["state"].as_str().unwrap()).unwrap();
        let order = state.resume(spec, ds.len(), &ds.fingerprint().unwrap()).unwrap();
        let next: Vec<u64> = (state.position..ds.len()).map(|at| order.get(at).unwrap()).collect();
        assert_eq!(serde_json::json!(next), saved["next"], "{spec:?}");
    }
}
