//! Warm random access: `Mapped::get` and a pass over every byte, compared with a plain loop over a table of
//! offsets.
//!
//! `bare` reads the start and the end of the record from a table of u64 and checks nothing. `bare/header`
//! verifies the same as `get/header` without an API: a table of u32 with a base per 1024 records, and the
//! header's checksum and length.
#![allow(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tfseek::{DatasetOptions, IndexMode, Verify, crc};
use tfseek_testkit::bench;
use tfseek_testkit::rng::Rng;

/// File size in bytes, larger than the last-level cache.
const TOTAL: u64 = 1 << 30;
/// Records per run of the timed loop.
const RUN: usize = 4096;

fn sum(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |s, w| s.wrapping_add(u64::from_le_bytes(*w)));
    tail.iter().fold(sum, |s, &b| s.wrapping_add(u64::from(b)))
}

fn random_access(c: &mut Criterion) {
    let options = DatasetOptions::new().index(IndexMode::Memory);
    for (name, mean) in [("90B", 90), ("4KB", 4 << 10), ("100KB", 100 << 10)] {
        let path = bench::shard(TOTAL, mean);
        // SAFETY: files of this bench; nothing else writes to them.
        let mapped = unsafe { options.open_mapped(&path) }.unwrap();
        assert!(
            mapped.iter().map(|r| sum(r.unwrap().payload())).fold(0, u64::wrapping_add) > 0,
            "all pages are mapped"
        );
        // All variants share a map, because two maps of a file may use pages of different sizes.
        let map = mapped.get(0).unwrap().region().unwrap().0.clone();
        let open = |verify| options.clone().verify(verify).open_regions([map.clone()]).unwrap();
        let (header, payload) = (open(Verify::Header), open(Verify::Payload));
        let pread = options.clone().verify(Verify::Header).open(&path).unwrap();
        let index = header.dataset().index(0).unwrap();
        let mut ends: Vec<u64> = (0..header.len()).map(|i| index.locate(i).unwrap().offset).collect();
        ends.push(index.stream_end());

        let mut rng = Rng::new(7);
        let ids: Vec<u64> = (0..(1 << 20)).map(|_| rng.below_u64(header.len())).collect();
        let bytes: &[u8] = &map;
        let bare = |i: u64| sum(&bytes[ends[i as usize] as usize + 12..ends[i as usize + 1] as usize - 4]);
        let bases: Vec<u64> = ends.iter().step_by(1024).copied().collect();
        let rel: Vec<u32> = ends.iter().enumerate().map(|(i, end)| (end - bases[i >> 10]) as u32).collect();
        let checked = |i: u64| {
            let i = i as usize;
            let at = |i: usize| (bases[i >> 10] + u64::from(rel[i])) as usize;
            let record = &bytes[at(i)..at(i + 1)];
            let (len, crc) = (record.first_chunk().unwrap(), record[8..].first_chunk().unwrap());
            let len = u64::from_le_bytes(*len);
            // As in `get`, the compiler must not take the length from the header.
            let indexed = black_box(record.len() as u64 - 16);
            assert!(len == indexed && crc::masked(&len.to_le_bytes()) == u32::from_le_bytes(*crc));
            sum(&record[12..record.len() - 4])
        };
        for &i in &ids[..1000] {
            assert_eq!(bare(i), checked(i));
            assert_eq!(bare(i), sum(header.get(i).unwrap().payload()));
            assert_eq!(bare(i), sum(payload.get(i).unwrap().payload()));
        }

        let mut group = c.benchmark_group(format!("random_access/{name}"));
        group.throughput(Throughput::Elements(RUN as u64));
        group.sample_size(20).measurement_time(Duration::from_secs(3));
        // Each run continues where the last one stopped, so that no record is read again while it is in a
        // cache.
        let mut windows = ids.chunks_exact(RUN).cycle();
        group.bench_function(BenchmarkId::from_parameter("bare"), |b| {
            b.iter(|| windows.next().unwrap().iter().map(|&i| bare(i)).fold(0, u64::wrapping_add));
        });
        group.bench_function(BenchmarkId::from_parameter("bare/header"), |b| {
            b.iter(|| windows.next().unwrap().iter().map(|&i| checked(i)).fold(0, u64::wrapping_add));
        });
        for (mode, ds) in [("get/header", &header), ("get/payload", &payload)] {
            group.bench_function(BenchmarkId::from_parameter(mode), |b| {
                b.iter(|| {
                    let ids = windows.next().unwrap();
                    ids.iter().map(|&i| sum(ds.get(i).unwrap().payload())).fold(0, u64::wrapping_add)
                });
            });
        }
        for (mode, ds) in [("get_many/header", &header), ("get_many/payload", &payload)] {
            group.bench_function(BenchmarkId::from_parameter(mode), |b| {
                b.iter(|| {
                    let records = ds.get_many(windows.next().unwrap());
                    records.map(|r| sum(r.unwrap().payload())).fold(0, u64::wrapping_add)
                });
            });
        }
        let mut buf = Vec::new();
        group.bench_function(BenchmarkId::from_parameter("read/header"), |b| {
            b.iter(|| {
                let ids = windows.next().unwrap();
                ids.iter()
                    .map(|&i| sum(pread.read(i, &mut buf).unwrap().payload()))
                    .fold(0, u64::wrapping_add)
            });
        });
        group.finish();
    }
}

criterion_group!(benches, random_access);
criterion_main!(benches);
