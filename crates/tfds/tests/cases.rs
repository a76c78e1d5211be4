//! Compares records of data sets with the recorded values of TensorFlow Datasets, one by one and in batches.
//!
//! The folder with the cases is named by `TFSEEK_TFDS_CASES`: `sets/NAME/..`, and `golden/NAME.json` and
//! `.npz`. Without it nothing is compared.

#[path = "target/nested.rs"]
mod nested;
#[path = "cases/npz.rs"]
mod npz;
#[path = "cases/windows.rs"]
mod windows;

use npz::Npz;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tfseek::loader::Shuffle;
use tfseek::{Damage, Dataset, DatasetOptions, IndexMode, TensorDType};
use tfseek_tfds::{Array, DatasetInfo, DecodeOptions, Decoder, FeatureTree, Features, RecordValue};

/// Returns the array of a leaf: its type, its shape, and its bytes or byte strings.
fn golden_leaf(leaf: &Json, npz: &Npz) -> (String, Vec<usize>, Vec<Vec<u8>>) {
    let name = leaf[0].as_str().unwrap();
    let shape: Vec<usize> =
        leaf[1].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let at = leaf[2].as_u64().unwrap() as usize;
    let len: usize = shape.iter().product();
    (name.to_owned(), shape, npz.values(name, at, len))
}

fn array_leaf(array: &Array) -> (String, Vec<usize>, Vec<Vec<u8>>) {
    let (values, start) = array.values();
    let name =
        if array.dtype() == TensorDType::String { "string".to_owned() } else { array.dtype().to_string() };
    let items = (start..start + array.len()).map(|k| nested::item(values, array.dtype(), k));
    (name, array.shape().to_vec(), items.collect())
}

/// Compares a value with a recorded one. Returns the first difference.
fn compare(found: &RecordValue, node: &Json, npz: &Npz, at: &str) -> Result<(), String> {
    let differ = |what: String| Err(format!("{at}: {what}"));
    let (key, expected) = node.as_object().unwrap().iter().next().unwrap();
    match (key.as_str(), found) {
        ("d", RecordValue::Dict(values)) => {
            let expected = expected.as_object().unwrap();
            let found: BTreeMap<&str, &RecordValue> =
                values.iter().map(|(name, value)| (&**name, value)).collect();
            if !found.keys().copied().eq(expected.keys().map(String::as_str)) {
                return differ(format!("names {:?}, expected {:?}", found.keys(), expected.keys()));
            }
            found
                .iter()
                .try_for_each(|(name, value)| compare(value, &expected[*name], npz, &format!("{at}/{name}")))
        }
        ("a", RecordValue::Array(array)) => same(array_leaf(array), golden_leaf(expected, npz), at),
        ("r", RecordValue::Ragged { values, row_splits }) => {
            same(array_leaf(values), golden_leaf(&expected[0], npz), at)?;
            let splits = expected[1].as_array().unwrap();
            if splits.len() != row_splits.len() {
                return differ(format!("{} splits, expected {}", row_splits.len(), splits.len()));
            }
            splits.iter().zip(row_splits).try_for_each(|(expected, found)| {
                let found = found.iter().map(|n| n.to_le_bytes().to_vec()).collect::<Vec<_>>();
                same(("int64".into(), vec![found.len()], found), golden_leaf(expected, npz), at)
            })
        }
        ("s", RecordValue::Steps(steps)) => {
            let expected = expected.as_array().unwrap();
            if steps.len() != expected.len() {
                return differ(format!("{} steps, expected {}", steps.len(), expected.len()));
            }
            expected.iter().enumerate().try_for_each(|(k, node)| {
                let value = steps.get(k).unwrap().map_err(|e| format!("{at}[{k}]: {e}"))?;
                compare(&value, node, npz, &format!("{at}[{k}]"))
            })
        }
        ("l", RecordValue::List(values)) => {
            let expected = expected.as_array().unwrap();
            if values.len() != expected.len() {
                return differ(format!("{} items, expected {}", values.len(), expected.len()));
            }
            let mut all = values.iter().zip(expected).enumerate();
            all.try_for_each(|(k, (value, node))| compare(value, node, npz, &format!("{at}[{k}]")))
        }
        (key, _) => differ(format!("expected {key}, found another value")),
    }
}

fn same(
    found: (String, Vec<usize>, Vec<Vec<u8>>),
    expected: (String, Vec<usize>, Vec<Vec<u8>>),
    at: &str,
) -> Result<(), String> {
    if (&found.0, &found.1) != (&expected.0, &expected.1) {
        return Err(format!("{at}: {} {:?}, expected {} {:?}", found.0, found.1, expected.0, expected.1));
    }
    let is_nan = |value: &[u8]| match found.0.as_str() {
        "float32" => f32::from_le_bytes(value.try_into().unwrap()).is_nan(),
        "float64" => f64::from_le_bytes(value.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let pairs = found.2.iter().zip(&expected.2);
    match pairs.enumerate().find(|(_, (a, b))| a != b && !(is_nan(a) && is_nan(b))) {
        Some((k, (a, b))) => Err(format!("{at}: value {k} of {}: {a:02x?}, expected {b:02x?}", found.0)),
        None => Ok(()),
    }
}

/// Opens the value of all leaves, also those in steps.
fn touch(value: &RecordValue) -> Result<(), String> {
    match value {
        RecordValue::Dict(values) => values.iter().try_for_each(|(_, value)| touch(value)),
        RecordValue::List(values) => values.iter().try_for_each(touch),
        RecordValue::Steps(steps) => {
            (0..steps.len()).try_for_each(|k| touch(&steps.get(k).unwrap().map_err(|e| e.to_string())?))
        }
        _ => Ok(()),
    }
}

/// A set of the cases.
struct Set {
    name: String,
    golden: Json,
    npz: Npz,
    /// The record sets of its splits, or the reason why it cannot be opened.
    opened: Result<Opened, String>,
}

struct Opened {
    decoder: Decoder,
    /// The features that batches can have.
    of_batches: Decoder,
    splits: Vec<(String, Dataset)>,
}

/// Returns all sets. `None` without the folder of the cases.
fn sets() -> Option<Vec<Set>> {
    let Ok(root) = std::env::var("TFSEEK_TFDS_CASES") else {
        tfseek_testkit::skipped("TFSEEK_TFDS_CASES");
        return None;
    };
    let root = PathBuf::from(root);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root.join("golden")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "json"));
    paths.sort();
    assert!(!paths.is_empty());
    let set = |path: &PathBuf| {
        let golden: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let opened = open(&root.join(golden["dir"].as_str().unwrap()));
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Set { name, golden, npz: Npz::read(&path.with_extension("npz")), opened }
    };
    Some(paths.iter().map(set).collect())
}

#[test]
fn records_have_the_values_of_tensorflow_datasets() {
    let Some(sets) = sets() else { return };
    let (mut records, mut errors, mut faults) = (0, 0, Vec::new());
    for Set { name, golden, npz, opened } in &sets {
        let Opened { decoder, splits, .. } = match opened {
            Ok(opened) => opened,
            Err(_) if golden["truth"] == "error" => continue,
            Err(e) => {
                faults.push(format!("{name}: {e}"));
                continue;
            }
        };
        for (split, ds) in splits {
            let Some(expected) = golden["splits"].get(split).and_then(Json::as_array) else { continue };
            assert_eq!(ds.len(), expected.len() as u64, "{name} {split}");
            let mut buf = Vec::new();
            for (i, expected) in expected.iter().enumerate() {
                let at = format!("{name} {split}[{i}]");
                let row = ds.read(i as u64, &mut buf).unwrap();
                records += 1;
                let found = decoder.record(&row).and_then(|record| record.value());
                let found = found.map_err(|e| e.to_string());
                if let Some(node) = expected.get("v") {
                    match found {
                        Ok(found) => faults.extend(compare(&found, node, npz, &at).err()),
                        Err(_) if expected.get("or_error").is_some() => errors += 1,
                        Err(e) => faults.push(format!("{at}: {e}")),
                    }
                } else {
                    errors += 1;
                    if found.and_then(|value| touch(&value)).is_ok() {
                        faults.push(format!("{at}: expected an error ({}), found values", expected["e"]));
                    }
                }
            }
        }
    }
    eprintln!("{} sets, {records} records, {errors} errors, {} differences", sets.len(), faults.len());
    assert!(faults.is_empty(), "{:#?}", &faults[..faults.len().min(60)]);
    assert!(records > 0);
}

/// A loader delivers the values of the records, in every order and with any number of threads. Records with
/// errors are skipped.
#[test]
fn a_loader_has_the_values_of_the_records() {
    let Some(sets) = sets() else { return };
    let (mut rows, mut skipped) = (0, 0);
    for Set { name, opened, .. } in &sets {
        let Ok(Opened { of_batches: decoder, splits, .. }) = opened else { continue };
        let parser = decoder.parser().unwrap();
        for (split, ds) in splits {
            for (shuffle, threads) in
                [(Shuffle::None, 1), (Shuffle::Global, 1), (Shuffle::Global, 4), (Shuffle::Block, 2)]
            {
                let options =
                    ds.record_loader().parser(parser.clone()).batch_size(3).shuffle(shuffle).seed(5);
                let loader = options.threads(threads).damage(Damage::Skip).build().unwrap();
                let mut buf = Vec::new();
                let mut seen = 0;
                for step in loader {
                    let step = step.unwrap();
                    seen += step.ids.len() + step.skipped.len();
                    for (id, _) in &step.skipped {
                        let row = ds.read(*id, &mut buf).unwrap();
                        assert!(
                            decoder.record(&row).and_then(|record| record.value()).is_err(),
                            "{name} {split}[{id}]"
                        );
                        skipped += 1;
                    }
                    let batch = step.batch().unwrap();
                    for (number, id) in step.ids.iter().enumerate() {
                        let row = ds.read(*id, &mut buf).unwrap();
                        let record = decoder.record(&row).unwrap();
                        rows += 1;
                        for leaf in 0.. {
                            let Some((path, leaf)) = decoder.leaf(leaf) else { break };
                            let value = record.get(path).unwrap().as_ref().and_then(nested::of_record);
                            let found = nested::of_row(batch.get(path).unwrap(), leaf.dtype, number);
                            assert_eq!(Some(found), value, "{name} {split}[{id}] {path}");
                        }
                    }
                }
                assert_eq!(seen as u64, ds.len(), "{name} {split}");
            }
        }
    }
    eprintln!("{rows} rows, {skipped} skipped");
    assert!(rows > 0);
}

fn open(folder: &Path) -> Result<Opened, String> {
    let info = fs::read(folder.join("dataset_info.json")).map_err(|e| e.to_string())?;
    let info = DatasetInfo::parse(&info).map_err(|e| e.to_string())?;
    let (features, _) = Features::read(folder, None).map_err(|e| e.to_string())?;
    let decoder = Decoder::new(&features, &DecodeOptions::default()).map_err(|e| e.to_string())?;
    // Some sets have features without a form in batches: steps, and unknown classes.
    let FeatureTree::Dict(all) = &features.root else { panic!("no dict") };
    let select = |names: Vec<String>| DecodeOptions { select: Some(names), ..DecodeOptions::default() };
    let has_form =
        |name: &String| Decoder::new(&features, &select(vec![name.clone()])).unwrap().parser().is_ok();
    let names = all.iter().map(|(name, _)| name.to_string()).filter(has_form).collect();
    let of_batches = Decoder::new(&features, &select(names)).unwrap();
    let mut splits = Vec::new();
    for split in &info.splits {
        let n = split.shards().unwrap();
        let shards: Vec<PathBuf> = (0..n).map(|k| folder.join(split.shard_path(k, n))).collect();
        if n > 0 {
            let ds =
                DatasetOptions::new().index(IndexMode::Memory).open(&shards).map_err(|e| e.to_string())?;
            splits.push((split.name.clone(), ds));
        }
    }
    Ok(Opened { decoder, of_batches, splits })
}
