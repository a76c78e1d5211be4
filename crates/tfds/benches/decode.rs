//! Values of data sets: `tfds/SET/WORK`.
//!
//! `record` decodes all values of single records, `batch` those of 64 records at once, and `stored` parses
//! the stored values of 64 records without decoding them. The records are made here. Before the timing, the
//! values of a batch are compared with those of its records.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::batch::Values;
use tfseek::{BatchParser, ExampleBuilder};
use tfseek_testkit::rng::Rng;
use tfseek_tfds::{DecodeOptions, Decoder, Features, RecordValue};

const ROWS: usize = 64;

fn class(name: &str, content: &str) -> String {
    format!(r#"{{"pythonClassName": "tensorflow_datasets.core.features.{name}", {content}}}"#)
}

fn dict(features: &[(&str, String)]) -> String {
    let features: Vec<String> =
        features.iter().map(|(name, feature)| format!("{name:?}: {feature}")).collect();
    let content = format!(r#""featuresDict": {{"features": {{{}}}}}"#, features.join(", "));
    class("features_dict.FeaturesDict", &content)
}

fn tensor(dtype: &str, dimensions: &str, encoding: &str) -> String {
    let content = format!(
        r#""tensor": {{"shape": {{"dimensions": {dimensions}}}, "dtype": "{dtype}", "encoding": "{encoding}"}}"#
    );
    class("tensor_feature.Tensor", &content)
}

fn sequence(feature: &str) -> String {
    class("sequence_feature.Sequence", &format!(r#""sequence": {{"length": "-1", "feature": {feature}}}"#))
}

/// Returns the name, the features and the payloads of each set.
fn sets() -> Vec<(&'static str, String, Vec<Vec<u8>>)> {
    let mut rng = Rng::new(3);
    let label = class("class_label_feature.ClassLabel", r#""classLabel": {"numClasses": "10"}"#);
    let picture = class(
        "image_feature.Image",
        r#""image": {"shape": {"dimensions": ["5", "7", "3"]}, "dtype": "uint8", "encodingFormat": "png"}"#,
    );
    let png = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/data/rgb8.png")).unwrap();
    let mut all = Vec::new();
    let pictures = (0..ROWS).map(|k| {
        ExampleBuilder::new().bytes("image", [&png]).int64("label", [k as i64 % 10]).encode().unwrap()
    });
    all.push(("pictures", dict(&[("image", picture), ("label", label.clone())]), pictures.collect()));

    let numbers = (0..ROWS).map(|_| {
        let values: Vec<i64> = (0..784).map(|_| rng.below(256) as i64).collect();
        ExampleBuilder::new().int64("pixels", values).int64("label", [3]).encode().unwrap()
    });
    let pixels = tensor("uint8", r#"["28", "28"]"#, "none");
    all.push(("numbers", dict(&[("pixels", pixels), ("label", label.clone())]), numbers.collect()));

    let boxes = class("bounding_boxes.BBoxFeature", r#""boundingBox": {}"#);
    let objects =
        dict(&[("bbox", boxes), ("label", label.clone()), ("is_crowd", tensor("bool", "[]", "none"))]);
    let nested = (0..ROWS).map(|_| {
        let n = 1 + rng.below(12);
        let values: Vec<f32> = (0..4 * n).map(|k| k as f32 / 64.0).collect();
        ExampleBuilder::new()
            .int64("id", [7])
            .float("objects/bbox", values)
            .int64("objects/is_crowd", vec![0i64; n])
            .int64("objects/label", vec![5i64; n])
            .encode()
            .unwrap()
    });
    all.push((
        "boxes",
        dict(&[("id", tensor("int64", "[]", "none")), ("objects", sequence(&objects))]),
        nested.collect(),
    ));

    let texts = (0..ROWS).map(|_| {
        let lengths: Vec<i64> = (0..8).map(|_| rng.below(30) as i64).collect();
        let n: i64 = lengths.iter().sum();
        ExampleBuilder::new()
            .int64("tokens/ragged_flat_values", (0..n).map(|k| k * 31 % 50_000))
            .int64("tokens/ragged_row_lengths_0", lengths)
            .encode()
            .unwrap()
    });
    all.push((
        "ragged",
        dict(&[("tokens", sequence(&sequence(&tensor("int32", "[]", "none"))))]),
        texts.collect(),
    ));

    let packed = (0..ROWS).map(|_| {
        let bytes = rng.bytes(2 * 1024);
        ExampleBuilder::new().bytes("x", [&bytes]).encode().unwrap()
    });
    all.push(("packed", dict(&[("x", tensor("float16", r#"["32", "32"]"#, "bytes"))]), packed.collect()));
    all
}

/// Returns the number of values below a value.
fn count(value: &RecordValue) -> usize {
    match value {
        RecordValue::Dict(values) => values.iter().map(|(_, value)| count(value)).sum(),
        RecordValue::Array(array) => array.len(),
        RecordValue::Ragged { values, .. } => values.len(),
        _ => 0,
    }
}

fn decode(c: &mut Criterion) {
    for (name, features, payloads) in sets() {
        let features = Features::parse(features.as_bytes()).unwrap();
        let decoder = Decoder::new(&features, &DecodeOptions::default()).unwrap();
        let (parser, stored) = (decoder.parser().unwrap(), BatchParser::new(decoder.schema()));
        let record = |payload: &Vec<u8>| decoder.record(payload).unwrap().value().unwrap();
        let values: usize = payloads.iter().map(|payload| count(&record(payload))).sum();
        let batch = parser.parse(&payloads).unwrap();
        let found = batch.columns().map(|(_, column)| match column.values() {
            Values::Array(values) => values.len(),
            values => values.len(),
        });
        assert_eq!(found.sum::<usize>(), values);
        drop(batch);
        let mut group = c.benchmark_group(format!("tfds/{name}"));
        let bytes = payloads.iter().map(|payload| payload.len() as u64).sum();
        group.throughput(Throughput::ElementsAndBytes { elements: ROWS as u64, bytes });
        group.bench_function("record", |b| {
            b.iter(|| payloads.iter().map(|p| count(&record(black_box(p)))).sum::<usize>())
        });
        group.bench_function("batch", |b| b.iter(|| parser.parse(black_box(&payloads)).unwrap().rows()));
        group.bench_function("stored", |b| b.iter(|| stored.parse(black_box(&payloads)).unwrap().rows()));
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = tfseek_testkit::bench::short();
    targets = decode
}
criterion_main!(benches);
