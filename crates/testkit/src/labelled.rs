//! Shards of Examples with labels, and what a dataset of them returns.

use tfseek::frame::put_record;
use tfseek::loader::Step;
use tfseek::{DType, Dataset, ExampleBuilder, FeatureSpec, Result, Schema, Shuffle};

/// Returns a shard of Examples with the labels `ids`, and texts of some lengths.
pub fn shard(ids: std::ops::Range<i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in ids {
        let example =
            ExampleBuilder::new().int64("label", [i]).bytes("text", [vec![i as u8; i as usize % 90]]);
        put_record(&mut bytes, &example.encode().unwrap()).unwrap();
    }
    bytes
}

/// Returns the labels of all records.
pub fn labels(ds: &Dataset) -> Vec<i64> {
    let mut buf = Vec::new();
    let label = |i| ds.read(i, &mut buf).unwrap().example().int64("label").unwrap().first().unwrap();
    (0..ds.len()).map(label).collect()
}

/// A batch of an epoch.
#[derive(Debug, PartialEq)]
pub struct LabelledBatch {
    /// Record numbers.
    pub ids: Vec<u64>,
    pub labels: Vec<i64>,
    pub texts: Vec<Vec<u8>>,
}

/// Returns the batches of an epoch.
pub fn epoch(ds: &Dataset, shuffle: &Shuffle, threads: usize) -> Vec<LabelledBatch> {
    let schema = Schema::example()
        .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("text", FeatureSpec::fixed_len(&[], DType::Bytes))
        .build()
        .unwrap();
    let loader = ds.loader(&schema).batch_size(16).shuffle(shuffle.clone()).seed(5).threads(threads);
    let step = |step: Result<Step>| {
        let step = step.unwrap();
        let batch = step.batch().unwrap();
        let texts = batch.bytes("text").unwrap().iter().map(|text| text.to_vec()).collect();
        LabelledBatch { ids: step.ids.to_vec(), labels: batch.int64("label").unwrap().to_vec(), texts }
    };
    loader.build().unwrap().map(step).collect()
}
