//! Requests of memory fail above a cap, for many caps: the result is right, or an error of the kind
//! `OutOfMemory`. An infallible request ends the test process.

use std::fs;
use std::path::Path;
use tfseek::batch::{BatchParser, Column, Values};
use tfseek::example::{ExampleBuf, SequenceExampleBuf};
use tfseek::io::Region;
use tfseek::{
    DatasetOptions, Error, ErrorKind, Example, ExampleBuilder, FeatureBuf, IndexMode, Schema,
    SequenceExample, SequenceExampleBuilder, Writer,
};
use tfseek_testkit::alloc;
use tfseek_testkit::shards::{options, records};

/// Caps from 320 KiB on: smaller requests are those of buffers and structures whose sizes do not come from
/// files.
fn caps() -> impl Iterator<Item = usize> {
    (0..8).flat_map(|k| [(320 << 10) << k, (448 << 10) << k])
}

/// Calls `f` under each cap. Checks that it fails under the first cap and succeeds under the last one.
#[track_caller]
fn under_each_cap<T>(what: &str, mut f: impl FnMut() -> Result<T, Error>) {
    let mut results = Vec::new();
    for cap in caps() {
        match alloc::most_held(cap, &mut f).0 {
            Ok(_) => results.push(true),
            Err(e) => {
                let is_memory =
                    matches!(e.kind(), ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory);
                assert!(is_memory, "{what}: {e}");
                results.push(false);
            }
        }
    }
    assert!(!results[0] && results[results.len() - 1], "{what}: {results:?}");
    assert!(results.is_sorted(), "{what}: {results:?}");
}

fn strings(n: usize) -> Vec<u8> {
    ExampleBuilder::new().bytes("x", (0..n).map(|k| vec![k as u8; k % 3])).encode().unwrap()
}

fn numbers(n: i64) -> Vec<u8> {
    ExampleBuilder::new().int64("x", (0..n).map(|k| k % 100)).encode().unwrap()
}

fn long(n: usize) -> Vec<u8> {
    ExampleBuilder::new().bytes("x", [vec![7u8; n]]).encode().unwrap()
}

fn steps(n: usize) -> Vec<u8> {
    let steps = vec![FeatureBuf::Bytes(vec![vec![1, 2]]); n];
    SequenceExampleBuilder::new().feature_list("x", steps).encode().unwrap()
}

#[test]
fn batches() {
    let n = 200_000;
    let payloads = [("string", strings(n)), ("string", long(2 << 20)), ("int64", numbers(n as i64))];
    for (dtype, payload) in &payloads {
        let fixed = if payload.len() > 2 << 20 { 1 } else { n };
        for spec in [
            r#""type": "varlen""#.to_owned(),
            r#""type": "ragged""#.to_owned(),
            r#""type": "fixed_sequence", "shape": [], "allow_missing": true"#.to_owned(),
            format!(r#""type": "fixed", "shape": [{fixed}]"#),
        ] {
            let json = format!(r#"{{"features": {{"x": {{{spec}, "dtype": "{dtype}"}}}}}}"#);
            let schema = Schema::from_json(&json).unwrap();
            let region = Region::new(payload.clone());
            under_each_cap(&json, || {
                let parser = BatchParser::new(&schema).contiguous_bytes(true).presence(true);
                parser.parse(&[payload.as_slice(), payload.as_slice()])
            });
            // Borrowed strings need memory for their places only.
            if fixed > 1 {
                under_each_cap(&json, || BatchParser::new(&schema).parse_single(&region));
            }
        }
    }
    let payload = steps(n);
    for spec in [r#""type": "varlen""#, r#""type": "ragged""#, r#""type": "fixed_sequence", "shape": [1]"#] {
        let json = format!(r#"{{"context": {{}}, "sequence": {{"x": {{{spec}, "dtype": "string"}}}}}}"#);
        let schema = Schema::from_json(&json).unwrap();
        under_each_cap(&json, || {
            let batch =
                BatchParser::new(&schema).contiguous_bytes(true).presence(true).parse(&[&payload[..]])?;
            let Some(Values::Bytes(strings)) = batch.feature_list("x").map(Column::values) else { panic!() };
            strings.to_contiguous()
        });
    }
}

#[test]
fn copies_of_records() {
    for payload in [strings(200_000), numbers(500_000), long(1 << 20)] {
        under_each_cap("an Example", || ExampleBuf::try_from(Example::new(&payload)).map(drop));
        let example = ExampleBuf::try_from(Example::new(&payload)).unwrap();
        under_each_cap("encode", || example.encode());
    }
    let payload = steps(60_000);
    under_each_cap("steps", || SequenceExampleBuf::try_from(SequenceExample::new(&payload)).map(drop));
    let sequence = SequenceExampleBuf::try_from(SequenceExample::new(&payload)).unwrap();
    under_each_cap("encode", || sequence.encode());
}

#[test]
fn tensors() {
    let strings: Vec<&[u8]> = vec![b"a"; 200_000];
    let message = tfseek::tensor::serialize_strings(&[200_000], &strings).unwrap();
    under_each_cap("strings", || tfseek::parse_tensor(&message, tfseek::TensorDType::String).map(drop));
    let message = tfseek::serialize_tensor(tfseek::TensorDType::Int32, &[200_000], &[1; 800_000]).unwrap();
    let tensor = tfseek::parse_tensor(&message, tfseek::TensorDType::Int32).unwrap();
    under_each_cap("numbers", || tensor.to_vec::<i32>());
}

/// Opens a file with one thread, so that the cap holds for all of the work.
fn open(path: &Path) -> Result<tfseek::Dataset, Error> {
    DatasetOptions::new().index(options().mode(IndexMode::Memory).threads(1)).open(path)
}

#[test]
fn indexes_and_columns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.tfrecord");
    fs::write(&path, records(&vec![&b""[..]; 200_000])).unwrap();
    under_each_cap("an index", || open(&path));

    let path = dir.path().join("wide.tfrecord");
    let mut writer = Writer::create(&path).unwrap();
    for k in 0..60_000 {
        let text = format!("{k:0>100}");
        writer.write(&ExampleBuilder::new().bytes("s", [text]).int64("i", [k]).encode().unwrap()).unwrap();
    }
    writer.close().unwrap();
    let ds = open(&path).unwrap();
    for feature in ["s", "i"] {
        under_each_cap(feature, || ds.column(feature, &Default::default()).map(drop));
    }

    // One record, in a segment that is decompressed as a whole.
    let path = dir.path().join("long.gz");
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&long(1 << 20)).unwrap();
    writer.close().unwrap();
    let ds = open(&path).unwrap();
    under_each_cap("gzip", || ds.read(0, &mut Vec::new()).map(|record| record.payload().len()));
}
