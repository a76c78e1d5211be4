//! Scan of a shard compared with a minimal loop over the headers, and a lookup in the index.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use tfseek::index::{Index, IndexOptions, open_shards};
use tfseek::io::Region;
use tfseek::{DatasetOptions, IndexMode, Mapped};
use tfseek_testkit::bench;

/// The upper bound for a scan with one dependency chain: trusts every length and stores nothing.
fn bare_hop(bytes: &[u8]) -> u64 {
    let (mut pos, mut n) = (0, 0);
    while let Some(len) = bytes.get(pos..).and_then(|b| b.first_chunk()) {
        n += 1;
        pos += u64::from_le_bytes(*len) as usize + 16;
    }
    n
}

fn open(path: &Path, options: &IndexOptions) -> Index {
    open_shards(&[path.to_path_buf()], options).unwrap().indexes.remove(0)
}

fn mapped(path: &Path, options: &IndexOptions) -> Mapped {
    // SAFETY: a file of this bench; nothing else writes to it.
    #[allow(unsafe_code)]
    unsafe { DatasetOptions::new().index(options.clone()).open_mapped(path) }.unwrap()
}

fn bench(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("index/scan");
    group.sample_size(10);
    for (shape, mean, total) in
        [("90B", 90, 256 << 20), ("4KB", 4096, 512 << 20), ("100KB", 100 << 10, 1 << 30)]
    {
        let path = bench::shard(total, mean);
        let n = bare_hop(&std::fs::read(&path).unwrap());
        let memory = IndexOptions::new().mode(IndexMode::Memory);
        assert_eq!(mapped(&path, &memory).len(), n);
        // The minimal loop uses the same map and has the same page faults.
        let file = std::fs::File::open(&path).unwrap();
        group.throughput(Throughput::Elements(n));
        group.bench_function(BenchmarkId::new("bare_hop", shape), |b| {
            b.iter(|| {
                // SAFETY: as above.
                #[allow(unsafe_code)]
                let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
                black_box(bare_hop(&map))
            })
        });
        let payloads = memory.clone().check_payloads(true);
        for threads in [1, 2] {
            let id = |name: &str| BenchmarkId::new(format!("{name}_{threads}"), shape);
            let (memory, payloads) = (memory.clone().threads(threads), payloads.clone().threads(threads));
            group.bench_function(id("map"), |b| b.iter(|| mapped(&path, &memory).len()));
            group.bench_function(id("payloads"), |b| b.iter(|| mapped(&path, &payloads).len()));
        }
        group.bench_function(BenchmarkId::new("pread", shape), |b| b.iter(|| open(&path, &memory).len()));
        // The same bytes in memory: no page faults.
        let region = Region::from(std::fs::read(&path).unwrap());
        group.bench_function(BenchmarkId::new("bare_hop_in_memory", shape), |b| {
            b.iter(|| black_box(bare_hop(&region)))
        });
        for threads in [1, 2] {
            let options = DatasetOptions::new().index(memory.clone().threads(threads));
            let id = BenchmarkId::new(format!("in_memory_{threads}"), shape);
            group.bench_function(id, |b| b.iter(|| options.open_regions([region.clone()]).unwrap().len()));
        }
    }
    group.finish();

    let path = bench::shard(256 << 20, 90);
    let saved = IndexOptions::new().default_dirs(None, None).index_dir(dir.path().join("i"));
    let built = open(&path, &saved);
    let read = mapped(&path, &saved);
    let read = read.dataset().index(0).unwrap();
    let mut group = c.benchmark_group("index/locate");
    for (shape, index) in [("built", &built), ("mapped", read)] {
        for (order, step) in [("in_order", 1), ("far_apart", 7_654_321 % index.len())] {
            let mut i = 0;
            group.bench_function(BenchmarkId::new(shape, order), |b| {
                b.iter(|| {
                    i += step;
                    if i >= index.len() {
                        i -= index.len();
                    }
                    index.locate(black_box(i)).unwrap()
                })
            });
        }
    }
    group.bench_function("open", |b| b.iter(|| open(&path, &saved)));
}

criterion_group!(benches, bench);
criterion_main!(benches);
