//! The cost of opening an index does not grow with the number of records: a sidecar of 10^8 records and a
//! pack of 10,000 shards.
#![allow(unsafe_code)]

use criterion::{Criterion, criterion_group, criterion_main};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tfseek::frame::put_record;
use tfseek::index::{IndexOptions, write_pack};
use tfseek::{DatasetOptions, IndexMode, Verify};
use tfseek_testkit::bench;

fn one_large(c: &mut Criterion) {
    // Empty records take 16 bytes each, so the shard is small compared with its index.
    let n = 100_000_000u64;
    let path = bench::file("1e8.tfrecord", |w| (0..n).for_each(|_| put_record(w, b"").unwrap()));
    let options = DatasetOptions::new().verify(Verify::Header);
    let index = IndexOptions::new().index_dir(path.with_extension("index"));
    // SAFETY: files of this bench; nothing else writes to them.
    let open = |mode| unsafe { options.clone().index(index.clone().mode(mode)).open_mapped(&path) }.unwrap();
    assert_eq!(open(IndexMode::Auto).len(), n);

    let mut group = c.benchmark_group("sidecar/1e8");
    group.sample_size(50).measurement_time(Duration::from_secs(3));
    group.bench_function("open", |b| b.iter(|| open(IndexMode::Require).len()));
    group.bench_function("open+first get", |b| {
        b.iter(|| open(IndexMode::Require).get(n / 2).unwrap().at().offset);
    });
    group.finish();
}

fn many_small(c: &mut Criterion) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench/10000");
    let mut shard = Vec::new();
    (0..10u8).for_each(|i| put_record(&mut shard, &[i; 100]).unwrap());
    let name = |s: usize| dir.join(format!("train-{s:05}-of-10000.tfrecord"));
    let pack = dir.join(".tfseek/train.tfrp");
    if !pack.exists() {
        fs::create_dir_all(&dir).unwrap();
        (0..10_000).for_each(|s| fs::write(name(s), &shard).unwrap());
        let paths: Vec<_> = (0..10_000).map(name).collect();
        write_pack("train", &paths, &IndexOptions::new()).unwrap();
    }
    // SAFETY: as above.
    let mapped = || unsafe { DatasetOptions::new().open_mapped(&pack) }.unwrap();
    let read = || DatasetOptions::new().open(&pack).unwrap();
    assert_eq!((mapped().len(), read().len()), (100_000, 100_000));
    assert_eq!(mapped().get(54_321).unwrap().payload(), [1; 100]);

    let mut group = c.benchmark_group("pack/10000 shards");
    group.sample_size(20).measurement_time(Duration::from_secs(3));
    group.bench_function("open mapped", |b| b.iter(|| mapped().len()));
    group.bench_function("open read", |b| b.iter(|| read().len()));
    group.bench_function("open mapped+first get", |b| b.iter(|| mapped().get(54_321).unwrap().at().offset));
    group.finish();
}

criterion_group!(benches, one_large, many_small);
criterion_main!(benches);
