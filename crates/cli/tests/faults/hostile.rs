//! Truncated and flipped index files, saved states and schemas: an error, or the right records.

use crate::common::*;
use std::fs;
use std::path::Path;
use tfseek::column::ColumnOptions;
use tfseek::index::{IndexOptions, build_beside, write_pack};
use tfseek::order::State;
use tfseek::{Dataset, DatasetOptions, IndexMode, Schema};

const RECORDS: i64 = 20;

/// Returns every truncation of these bytes, and every version with one flipped bit.
fn hostile(bytes: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let cuts = (0..bytes.len()).map(|len| (format!("cut at {len}"), bytes[..len].to_vec()));
    let flips = (0..8 * bytes.len()).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (format!("bit {bit}"), flipped)
    });
    cuts.chain(flips)
}

/// Reads all records. Each one must be the right one or an error. Returns the number of errors.
#[track_caller]
fn check_records(ds: &Dataset, wanted: i64, what: &str) -> usize {
    assert_eq!(ds.len(), wanted as u64, "{what}");
    let mut buf = Vec::new();
    let wrong = |i: &i64| match ds.read(*i as u64, &mut buf) {
        Ok(record) => {
            assert!(record.payload() == label(*i), "{what}: record {i}");
            false
        }
        Err(_) => true,
    };
    (0..wanted).filter(wrong).count()
}

struct Shards {
    dir: Folder,
    paths: Vec<std::path::PathBuf>,
}

fn shards(names: &[&str]) -> Shards {
    let dir = Folder::new();
    let write = |(s, name): (usize, &&str)| {
        let start = RECORDS * s as i64;
        dir.shard(name, labels(start..start + RECORDS))
    };
    let paths = names.iter().enumerate().map(write).collect();
    Shards { dir, paths }
}

/// Replaces an index file by hostile versions of it, and reads all records with it. A refused file is built
/// again in memory.
fn check_index_file(what: &str, file: &Path, wanted: i64, read: impl Fn(&str) -> Option<usize>) {
    let whole = fs::read(file).unwrap();
    assert_eq!(read(what), Some(0));
    let (mut refused, mut errors, mut right) = (0, 0, 0);
    for (fault, bytes) in hostile(&whole) {
        fs::write(file, bytes).unwrap();
        match read(&format!("{what}, {fault}")) {
            None => refused += 1,
            Some(0) => right += 1,
            Some(n) => errors += usize::from(n <= wanted as usize),
        }
    }
    fs::write(file, &whole).unwrap();
    println!("{what}, {} bytes: {refused} refused, {errors} errors, {right} right", whole.len());
    assert!(refused > whole.len());
}

#[test]
fn every_flipped_bit_of_a_pack_a_sidecar_and_a_column() {
    let Shards { dir, paths } = shards(&["x", "y"]);
    let (pack, _) = write_pack("p", &paths, &IndexOptions::new()).unwrap();
    let require = || DatasetOptions::new().index(IndexOptions::new().mode(IndexMode::Require).threads(1));
    check_index_file("pack", &pack, 2 * RECORDS, |what| {
        let ds = require().open(&pack).ok()?;
        Some(check_records(&ds, 2 * RECORDS, what))
    });
    build_beside(&paths, &IndexOptions::new().threads(1)).unwrap();
    let ds = require().open(&paths).unwrap();
    for name in ["x.tfri", "y.tfri"] {
        check_index_file(name, &dir.path(".tfseek").join(name), 2 * RECORDS, |what| {
            let ds = require().open(&paths).ok()?;
            Some(check_records(&ds, 2 * RECORDS, what))
        });
    }
    dir.run(&["index", "--column", "label", "x", "y"]);
    drop(ds);
    check_index_file("column", &dir.path(".tfseek/x.label.tfrc"), 2 * RECORDS, |what| {
        let ds = require().open(&paths).unwrap();
        let column = ds.column("label", &ColumnOptions::default()).ok()?;
        let right = column
            .iter()
            .zip(0..)
            .all(|(value, i): (_, i64)| format!("{value:?}").contains(&format!("({i})")));
        assert!(right, "{what}: another value");
        Some(0)
    });
}

#[test]
fn every_flipped_bit_of_a_saved_state() {
    let Shards { dir: _dir, paths } = shards(&["x", "y"]);
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    let loader = || ds.record_loader().batch_size(8).threads(0).seed(7);
    let mut first = loader().build().unwrap();
    first.next().unwrap().unwrap();
    let text = first.state().unwrap().to_json();
    let (mut refused, mut accepted) = (0, 0);
    for (fault, bytes) in hostile(text.as_bytes()) {
        let state = String::from_utf8(bytes).ok().and_then(|text| State::from_json(&text).ok());
        let mut other = loader().build().unwrap();
        let Some(()) = state.and_then(|state| other.seek(&state).ok()) else {
            refused += 1;
            continue;
        };
        // A changed digit is another state of the same dataset. Its records are the right ones.
        accepted += 1;
        for step in other.by_ref().take(3) {
            let step = step.unwrap();
            for (sample, record) in step.samples().zip(step.records().unwrap()) {
                assert!(record.unwrap().payload() == label(sample.record as i64), "{fault}");
            }
        }
    }
    println!("saved state, {} bytes: {refused} refused, {accepted} other states", text.len());
    assert!(refused > 5 * accepted);
}

#[test]
fn every_flipped_bit_of_a_schema() {
    let Shards { dir, paths } = shards(&["x", "y"]);
    let text = dir.run(&["schema", "--json", "x"]).out;
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    let (mut refused, mut errors, mut parsed) = (0, 0, 0);
    for (_, bytes) in hostile(text.as_bytes()) {
        let Some(schema) = String::from_utf8(bytes).ok().and_then(|text| Schema::from_json(&text).ok())
        else {
            refused += 1;
            continue;
        };
        // Another name, type or shape is another schema: its batches are errors or have its columns.
        match ds
            .loader(&schema)
            .batch_size(8)
            .threads(0)
            .build()
            .and_then(|mut loader| loader.next().unwrap())
        {
            Ok(_) => parsed += 1,
            Err(_) => errors += 1,
        }
    }
    println!("schema, {} bytes: {refused} refused, {errors} errors, {parsed} other schemas", text.len());
    assert!(refused > errors + parsed);
}

/// `tail --follow` with a hostile state ends with an error, or prints records of the file.
#[test]
fn hostile_states_of_follow() {
    let dir = Folder::new();
    let path = dir.shard("x", labels(0..20)).canonicalize().unwrap();
    let state = |record: u64, offset: u64| {
        format!(
            "{{\"v\":1,\"file\":{:?},\"record\":{record},\"offset\":{offset}}}\n",
            path.display().to_string()
        )
    };
    let whole = state(10, 340);
    let cuts = (0..whole.len() - 2).map(|len| whole[..len].to_owned());
    let others = [state(10, 341), state(10, 12), state(10, 1 << 40), state(10, u64::MAX), state(3, 339)];
    let mut runs = 0;
    for text in cuts.chain(others) {
        fs::write(dir.path("state"), &text).unwrap();
        let ran = Ran::limited(dir.command(&["tail", "--follow", "--state", "state", "x"]), &dir);
        // An empty file is not a state.
        assert!((1..=3).contains(&ran.code) && !ran.err.contains("panicked"), "{text}: {ran:?}");
        assert!(
            ran.out.is_empty() && fs::read_to_string(dir.path("state")).unwrap() == text,
            "{text}: {ran:?}"
        );
        runs += 1;
    }
    println!("states of tail --follow: {runs} errors");
}
