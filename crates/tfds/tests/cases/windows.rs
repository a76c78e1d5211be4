//! Steps and windows of the sets with episodes, compared with the recorded values.

use super::npz::Npz;
use super::{Set, compare, sets};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tfseek::loader::Shuffle;
use tfseek::{Dataset, DatasetOptions, IndexMode};
use tfseek_rlds::{EpisodeOptions, Pad};
use tfseek_tfds::{
    Builder, BuilderOptions, Decoder, EpisodeWindows, Episodes, FeatureTree, Features, Offsets, RecordValue,
    WindowOptions,
};

/// Returns the ways to read a set: from memory, by positional reads without and with files of tables.
fn opened(folder: &Path, split: &str, steps: Option<&str>, tables: &Path) -> Vec<Episodes> {
    let memory = DatasetOptions::new().index(IndexMode::Memory);
    let files = DatasetOptions::new()
        .index(tfseek::index::IndexOptions::new().default_dirs(None, Some(tables.into())));
    let regions = |builder: &Builder| {
        let shards = builder.splits().iter().find(|found| found.name == split).unwrap().shards.clone();
        let regions = shards.iter().map(|path| fs::read(path).unwrap().into());
        memory.open_regions(regions).unwrap().dataset().clone()
    };
    let mut all = Vec::new();
    for (options, in_memory) in [(&memory, false), (&memory, true), (&files, false), (&files, false)] {
        let options = BuilderOptions { dataset: options.clone(), ..Default::default() };
        let builder = Builder::open(folder, &options).unwrap();
        let ds: Dataset = if in_memory {
            regions(&builder)
        } else {
            let selection = builder.select(split).unwrap();
            selection.dataset.ranges(&selection.ranges).unwrap()
        };
        all.push(Episodes::new(&ds, builder.features().unwrap(), steps, &EpisodeOptions::default()).unwrap());
    }
    all
}

/// Returns the paths of the features whose items are steps.
fn paths_of_steps(tree: &FeatureTree, path: &str, found: &mut Vec<String>) {
    match tree {
        FeatureTree::Dict(all) => {
            for (name, tree) in all {
                let path = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
                paths_of_steps(tree, &path, found);
            }
        }
        FeatureTree::Sequence(sequence) if sequence.steps => found.push(path.to_owned()),
        _ => {}
    }
}

fn value(decoder: &Decoder, ds: &Dataset, i: u64) -> Result<RecordValue, String> {
    let mut buf = Vec::new();
    let row = ds.read(i, &mut buf).map_err(|e| e.to_string())?;
    decoder.record(&row).and_then(|record| record.value()).map_err(|e| e.to_string())
}

#[test]
fn steps_are_those_of_their_episodes() {
    let Some(sets) = sets() else { return };
    let tables = tempfile::tempdir().unwrap();
    let (mut steps, mut refused) = (0, 0);
    for Set { name, golden, npz, .. } in sets.iter().filter(|set| set.name.starts_with("rlds_")) {
        let folder =
            PathBuf::from(std::env::var("TFSEEK_TFDS_CASES").unwrap()).join(golden["dir"].as_str().unwrap());
        let splits = golden["splits"].as_object().unwrap();
        for (split, records) in splits {
            let records = records.as_array().unwrap();
            if name == "rlds_uneven" {
                let builder = Builder::open(&folder, &BuilderOptions::default()).unwrap();
                let ds = builder.select(split).unwrap().dataset;
                let e = Episodes::new(&ds, builder.features().unwrap(), None, &EpisodeOptions::default())
                    .unwrap_err();
                assert!(
                    e.to_string().contains("number of steps") || e.to_string().contains("for each step"),
                    "{e}"
                );
                refused += 1;
                continue;
            }
            let (features, _) = Features::read(&folder, None).unwrap();
            let mut paths = Vec::new();
            paths_of_steps(&features.root, "", &mut paths);
            for (path, robot) in paths.iter().flat_map(|path| {
                let robots = opened(&folder, split, Some(path), tables.path());
                robots.into_iter().map(move |robot| (path, robot))
            }) {
                let windows = robot.step_records().unwrap();
                let decoder = Decoder::new(windows.features(), windows.decode()).unwrap();
                assert_eq!(robot.steps().dataset().len(), records.len() as u64);
                let mut number = 0;
                for (episode, record) in records.iter().enumerate() {
                    let Some(node) = record.get("v") else { continue };
                    let expected = path.split('/').fold(node, |node, name| &node["d"][name]);
                    let expected = expected["s"].as_array().unwrap();
                    let at = format!("{name} {split}[{episode}] {path}");
                    assert_eq!(robot.steps().length(episode as u64).unwrap(), expected.len() as u64, "{at}");
                    for (t, node) in expected.iter().enumerate() {
                        assert_eq!(robot.steps().locate(number).unwrap(), (episode as u64, t as u64));
                        let found = value(&decoder, windows.windows().dataset(), number).unwrap();
                        compare(&found, node, npz, &format!("{at} step {t}")).unwrap();
                        number += 1;
                        steps += 1;
                    }
                }
            }
        }
    }
    eprintln!("{steps} steps, {refused} sets refused");
    assert!(steps > 0 && refused > 0);
}

fn offsets(json: &Json) -> Offsets {
    match json.as_i64() {
        Some(one) => Offsets::One(one),
        None => Offsets::Many(json.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()),
    }
}

fn text(value: Option<RecordValue>) -> String {
    match value {
        Some(RecordValue::Array(array)) => {
            let (values, start) = array.values();
            let tfseek::batch::Values::Bytes(strings) = values else { panic!("no strings") };
            String::from_utf8(strings.get(start).unwrap().to_vec()).unwrap()
        }
        _ => panic!("no array"),
    }
}

/// Returns the anchors of a case: ranges by the number of an episode or by names made of its metadata, or a
/// condition.
fn anchors(case: &Json, robot: &Episodes, features: &Features) -> Option<Vec<(u64, Range<u64>)>> {
    let ds = robot.steps().dataset();
    if let Some(condition) = case.get("where").and_then(Json::as_str) {
        let filter = features.filter(&condition.parse().unwrap()).unwrap();
        let (expected, _) = ds.select(&filter, &Default::default()).unwrap();
        let selected = robot.select(&filter).unwrap();
        let has_steps = |episode: &u64| robot.steps().length(*episode).unwrap() > 0;
        assert_eq!(selected, expected.iter().filter(has_steps).collect::<Vec<_>>());
        return Some(selected.into_iter().map(|episode| (episode, 0..u64::MAX)).collect());
    }
    let ranges = case.get("anchors")?.as_object().unwrap();
    let decoder = Decoder::new(
        features,
        &tfseek_tfds::DecodeOptions { select: Some(vec!["episode_metadata".into()]), ..Default::default() },
    );
    let decoder = decoder.unwrap();
    let mut all = Vec::new();
    for episode in 0..ds.len() {
        let name = match case.get("key").and_then(Json::as_str) {
            None => episode.to_string(),
            Some(_) => {
                let mut buf = Vec::new();
                let record = decoder.record(&ds.read(episode, &mut buf).unwrap()).unwrap();
                let get = |name: &str| text(record.get(&format!("episode_metadata/{name}")).unwrap());
                format!("{}--{}", get("recording_folderpath"), get("file_path"))
            }
        };
        for range in ranges.get(&name).and_then(Json::as_array).into_iter().flatten() {
            let end = |k: usize| range[k].as_i64().unwrap().max(0) as u64;
            all.push((episode, end(0)..end(1)));
        }
    }
    Some(all)
}

fn windows_of(case: &Json, robot: &Episodes, features: &Features) -> EpisodeWindows {
    let pad = match case["pad"].as_str().unwrap() {
        "repeat" => Pad::Repeat,
        "zero" => Pad::Zero,
        _ => Pad::None,
    };
    let keys = case["windows"].as_object().unwrap().iter().map(|(key, json)| (key, offsets(json)));
    let options = WindowOptions { pad, anchors: anchors(case, robot, features), ..Default::default() };
    robot.windows(keys, &options).unwrap()
}

#[test]
fn windows_are_those_of_the_cases() {
    let Ok(root) = std::env::var("TFSEEK_TFDS_CASES") else {
        tfseek_testkit::skipped("TFSEEK_TFDS_CASES");
        return;
    };
    let root = PathBuf::from(root);
    let cases: Json = serde_json::from_slice(&fs::read(root.join("cases/windows.json")).unwrap()).unwrap();
    let npz = Npz::read(&root.join("cases/windows.npz"));
    let tables = tempfile::tempdir().unwrap();
    let (mut samples, mut all) = (0, 0);
    for (k, case) in cases.as_array().unwrap().iter().enumerate() {
        let (name, split) = (case["set"].as_str().unwrap(), case["split"].as_str().unwrap());
        let golden: Json =
            serde_json::from_slice(&fs::read(root.join(format!("golden/{name}.json"))).unwrap()).unwrap();
        let folder = root.join(golden["dir"].as_str().unwrap());
        for robot in opened(&folder, split, None, tables.path()) {
            let (features, _) = Features::read(&folder, None).unwrap();
            let windows = windows_of(case, &robot, &features);
            let found = windows.windows();
            let n = found.dataset().len();
            assert_eq!(n, case["n"].as_u64().unwrap(), "case {k}");
            if let Some(at) = case.get("at").and_then(Json::as_array) {
                let at = at.iter().map(|at| (at[0].as_u64().unwrap(), at[1].as_u64().unwrap()));
                assert!(at.eq((0..n).map(|i| found.locate(i).unwrap())), "case {k}");
            }
            let decoder = Decoder::new(windows.features(), windows.decode()).unwrap();
            for sample in case["samples"].as_array().unwrap() {
                let i = sample["i"].as_u64().unwrap();
                let at = format!("case {k} window {i}");
                let RecordValue::Dict(values) = value(&decoder, found.dataset(), i).unwrap() else {
                    panic!()
                };
                let get = |name: &str| {
                    values
                        .iter()
                        .find(|(known, _)| **known == *name)
                        .map(|(_, value)| value)
                        .unwrap_or_else(|| panic!("{at}: {name}"))
                };
                for (key, node) in sample["values"].as_object().unwrap() {
                    compare(get(key), node, &npz, &format!("{at} {key}")).unwrap();
                }
                for (key, flags) in sample["is_pad"].as_object().unwrap() {
                    let RecordValue::Array(array) = get(&format!("{key}_is_pad")) else { panic!("{at}") };
                    let (bytes, start) = array.values();
                    let flags: Vec<u8> =
                        flags.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u8).collect();
                    let found: Vec<u8> = (start..start + array.len())
                        .flat_map(|k| super::nested::item(bytes, array.dtype(), k))
                        .collect();
                    assert_eq!(found, flags, "{at} {key}");
                }
                samples += 1;
            }
            all += n;
            // A loader delivers each window once.
            let loader = found.dataset().record_loader().parser(decoder.parser().unwrap());
            let loader = loader.batch_size(37).shuffle(Shuffle::Global).seed(3).threads(2).build().unwrap();
            let mut seen = BTreeSet::new();
            for step in loader {
                let step = step.unwrap();
                let batch = step.batch().unwrap();
                let (episodes, numbers) = (batch.int64("_episode").unwrap(), batch.int64("_step").unwrap());
                for (id, at) in step.ids.iter().zip(episodes.iter().zip(numbers)) {
                    assert_eq!(found.locate(*id).unwrap(), (*at.0 as u64, *at.1 as u64));
                    assert!(seen.insert(*id));
                }
            }
            assert_eq!(seen.len() as u64, n);
        }
    }
    eprintln!("{samples} samples of {all} windows");
    assert!(samples > 0);
}
