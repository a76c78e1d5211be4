//! Compares records of data sets with the recorded values of TensorFlow Datasets, one by one and in batches.
//!
//! The folder with the cases is named by `TFSEEK_TFDS_CASES`: `sets/NAME/..`, and `golden/NAME.json` and `.npz`. Without it nothing is compared.

#[path = "cases/npz.rs"]
mod npz;

use npz::Npz;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tfseek::batch::Values;
use tfseek::{DatasetOptions, IndexMode, TensorDType};
use tfseek_tfds::{Array, DatasetInfo, DecodeOptions, Decoder, Features, RecordValue};

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
    let range = start..start + array.len();
    let name =
        if array.dtype() == TensorDType::String { "string".to_owned() } else { array.dtype().to_string() };
    fn bytes<T: Copy, const N: usize>(values: &[T], of: fn(T) -> [u8; N]) -> Vec<Vec<u8>> {
        values.iter().map(|value| of(*value).to_vec()).collect()
    }
    let size = array.dtype().size().unwrap_or(1);
    let found = match values {
        Values::Int64(values) => bytes(&values[range], i64::to_le_bytes),
        Values::Float32(values) => bytes(&values[range], |v| v.to_bits().to_le_bytes()),
        Values::Bytes(values) => range.map(|k| values.get(k).unwrap().to_vec()).collect(),
        Values::Array(values) => {
            use tfseek::batch::ArrayBits as B;
            let parts = size.min(8);
            let n = if matches!(array.dtype(), TensorDType::Complex64) { 2 } else { 1 };
            let range = range.start * n..range.end * n;
            let all: Vec<u8> = match values.bits() {
                B::Bits8(v) => v[range].to_vec(),
                B::Bits16(v) => bytes(&v[range], u16::to_le_bytes).concat(),
                B::Bits32(v) => bytes(&v[range], u32::to_le_bytes).concat(),
                B::Bits64(v) => bytes(&v[range], u64::to_le_bytes).concat(),
            };
            all.chunks(parts).map(<[u8]>::to_vec).collect()
        }
    };
    (name, array.shape().to_vec(), found)
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

#[test]
fn records_have_the_values_of_tensorflow_datasets() {
    let Ok(root) = std::env::var("TFSEEK_TFDS_CASES") else {
        eprintln!("skipped: TFSEEK_TFDS_CASES is not set");
        return;
    };
    let root = PathBuf::from(root);
    let mut goldens: Vec<PathBuf> =
        fs::read_dir(root.join("golden")).unwrap().map(|entry| entry.unwrap().path()).collect();
    goldens.retain(|path| path.extension().is_some_and(|ext| ext == "json"));
    goldens.sort();
    let (mut records, mut errors, mut faults) = (0, 0, Vec::new());
    for path in &goldens {
        let golden: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let folder = root.join(golden["dir"].as_str().unwrap());
        let opened = open(&folder);
        let (info, decoder) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                if golden["truth"] != "error" {
                    faults.push(format!("{name}: {e}"));
                }
                continue;
            }
        };
        if golden["truth"] == "error" {
            continue; // about the shards
        }
        let npz = Npz::read(&path.with_extension("npz"));
        for split in &info.splits {
            let Some(expected) = golden["splits"].get(&split.name).and_then(Json::as_array) else { continue };
            let n = split.shards().unwrap();
            let shards: Vec<PathBuf> = (0..n).map(|k| folder.join(split.shard_path(k, n))).collect();
            if expected.is_empty() {
                continue;
            }
            let ds = DatasetOptions::new().index(IndexMode::Memory).open(&shards).unwrap();
            assert_eq!(ds.len(), expected.len() as u64, "{name} {}", split.name);
            let mut buf = Vec::new();
            for (i, expected) in expected.iter().enumerate() {
                let at = format!("{name} {}[{i}]", split.name);
                let row = ds.read(i as u64, &mut buf).unwrap();
                records += 1;
                let found = decoder.record(&row).and_then(|record| record.value());
                let found = found.map_err(|e| e.to_string());
                if let Some(node) = expected.get("v") {
                    match found {
                        Ok(found) => faults.extend(compare(&found, node, &npz, &at).err()),
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
    eprintln!("{} sets, {records} records, {errors} errors, {} differences", goldens.len(), faults.len());
    assert!(faults.is_empty(), "{:#?}", &faults[..faults.len().min(60)]);
    assert!(records > 0);
}

fn open(folder: &Path) -> Result<(DatasetInfo, Decoder), String> {
    let info = fs::read(folder.join("dataset_info.json")).map_err(|e| e.to_string())?;
    let info = DatasetInfo::parse(&info).map_err(|e| e.to_string())?;
    let text = fs::read(folder.join("features.json")).map_err(|e| e.to_string())?;
    let features = Features::parse(&text).map_err(|e| e.to_string())?;
    let decoder = Decoder::new(&features, &DecodeOptions::default()).map_err(|e| e.to_string())?;
    Ok((info, decoder))
}
