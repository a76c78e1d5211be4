//! Batches of a loader: their order for every number of threads, rank and kind of dataset; resuming at any
//! step; and errors.

mod buckets;
mod classes;
mod derived;
mod descriptors;
mod elastic;
mod faults;
mod flow;
mod iterations;
mod left_out;
mod mix;
mod same;
mod workers;

use tfseek::frame::put_record;
use tfseek::io::Region;
use tfseek::loader::{Shuffle, Step};
use tfseek::order::{Spec, Subset};
use tfseek::{
    DType, Dataset, DatasetOptions, ExampleBuilder, FeatureSpec, IndexMode, Loader, Schema, Verify,
};

/// Returns the payload of record `i`: its number, some floats, and a string of varying length.
fn payload(i: u64) -> Vec<u8> {
    let text = format!("{i}").repeat((i % 7) as usize);
    let example = ExampleBuilder::new().int64("i", [i as i64]).float("x", [i as f32; 3]);
    example.bytes("s", [text]).encode().unwrap()
}

/// Returns shards of these sizes in memory.
fn shards(sizes: &[u64]) -> Vec<Vec<u8>> {
    let mut next = 0;
    let shard = |&size: &u64| {
        let mut bytes = Vec::new();
        (next..next + size).for_each(|i| put_record(&mut bytes, &payload(i)).unwrap());
        next += size;
        bytes
    };
    sizes.iter().map(shard).collect()
}

fn options() -> DatasetOptions {
    DatasetOptions::new().index(IndexMode::Memory).verify(Verify::Payload)
}

/// Opens `n` records in three shards, one of which is empty.
fn memory(n: u64) -> Dataset {
    open(shards(&[n / 3, 0, n - n / 3]))
}

fn open(shards: Vec<Vec<u8>>) -> Dataset {
    options().open_regions(shards.into_iter().map(Region::from)).unwrap().dataset().clone()
}

/// Writes the shards to files and opens them for positional reads.
fn files(dir: &std::path::Path, shards: &[Vec<u8>]) -> Dataset {
    for (k, bytes) in shards.iter().enumerate() {
        std::fs::write(dir.join(format!("{k}.tfrecord")), bytes).unwrap();
    }
    options().open(dir.join("*.tfrecord")).unwrap()
}

fn schema() -> Schema {
    Schema::example()
        .feature("i", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("x", FeatureSpec::fixed_len(&[3], DType::Float32))
        .feature("s", FeatureSpec::var_len(DType::Bytes))
        .build()
        .unwrap()
}

/// Returns one order of each kind.
fn orders(n: u64) -> Vec<Shuffle> {
    let odd = Subset::from_fn(n, |i| i % 2 == 1);
    let classes = (0..3).map(|class| Subset::from_fn(n, |i| i % 5 == class));
    vec![
        Shuffle::None,
        Shuffle::Global,
        Shuffle::Block,
        Shuffle::Order(Spec::Block { block: 4, window: 3 }),
        Shuffle::Order(Spec::Global.filtered(odd)),
        Shuffle::Order(tfseek_testkit::order_twin::balanced(classes)),
    ]
}

/// Checks the values of a step against its records.
fn check(step: &Step) {
    let batch = step.batch().unwrap();
    assert_eq!(batch.rows(), step.ids.len());
    let i = batch.int64("i").unwrap();
    assert!(i.iter().map(|&i| i as u64).eq(step.ids.iter().copied()));
    let x = batch.float32("x").unwrap();
    assert!(x.chunks(3).zip(i).all(|(x, &i)| x == [i as f32; 3]));
    let s = batch.bytes("s").unwrap();
    assert!(s.iter().zip(i).all(|(s, i)| s == i.to_string().repeat((i % 7) as usize).as_bytes()));
}
