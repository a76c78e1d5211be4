//! Iteration over a stream with both checksums verified, and the search for sound records in damaged bytes,
//! from memory that is not in the CPU caches.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::frame::frames;
use tfseek::io::{SalvageItem, SalvageReader};
use tfseek_testkit::{bench, rng::Rng};

/// Returns the masked form that a record stores.
fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A straightforward loop with one call per checksum.
fn bare(bytes: &[u8]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    while at < bytes.len() {
        let header = &bytes[at..at + 12];
        let len = u64::from_le_bytes(header[..8].try_into().unwrap());
        assert_eq!(mask(crc32c::crc32c(&header[..8])).to_le_bytes(), header[8..]);
        let end = at + 12 + len as usize;
        assert_eq!(tfseek::crc::masked(&bytes[at + 12..end]).to_le_bytes(), bytes[end..end + 4]);
        sum += len;
        at = end + 4;
    }
    sum
}

fn walk(c: &mut Criterion) {
    for (name, mean) in [("90B", 90), ("4KB", 4 << 10), ("100KB", 100 << 10)] {
        let bytes = bench::records(64 << 20, mean);
        let bytes = bytes.as_slice();
        let records = frames(bytes).count() as u64;
        let frames = |bytes: &[u8]| frames(bytes).map(|f| f.unwrap().1.len() as u64).sum::<u64>();
        assert_eq!(frames(bytes), bare(bytes));
        assert_eq!(frames(bytes), bytes.len() as u64 - 16 * records);
        for (unit, throughput) in
            [("bytes", Throughput::Bytes(bytes.len() as u64)), ("records", Throughput::Elements(records))]
        {
            let mut group = c.benchmark_group(format!("frame/walk/{unit}"));
            group.throughput(throughput);
            group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| frames(black_box(bytes))));
            if unit == "bytes" {
                group.bench_function(BenchmarkId::new("bare", name), |b| b.iter(|| bare(black_box(bytes))));
            }
            group.finish();
        }
    }
}

/// Returns the number of sound records.
fn salvage(bytes: &[u8]) -> u64 {
    let mut reader = SalvageReader::new(&bytes, u64::from(u32::MAX >> 1)).unwrap();
    let mut records = 0;
    while let Some(item) = reader.next().unwrap() {
        records += u64::from(matches!(item, SalvageItem::Record { .. }));
    }
    records
}

fn search(c: &mut Criterion) {
    const LEN: usize = 64 << 20;
    let mut rng = Rng::new(1);
    let noise: Vec<u8> = (0..LEN / 8).flat_map(|_| rng.u64().to_le_bytes()).collect();
    // Every length is damaged, so that each record is searched.
    let mut lengths = bench::records(LEN, 4 << 10).as_slice().to_vec();
    let starts: Vec<u64> = frames(&lengths).map(|frame| frame.unwrap().0).collect();
    starts.iter().step_by(2).for_each(|&start| lengths[start as usize] ^= 1);
    let mut group = c.benchmark_group("frame/salvage");
    group.throughput(Throughput::Bytes(LEN as u64));
    for (name, bytes, records) in [
        ("noise", noise, 0),
        ("zeros", vec![0; LEN], 0),
        ("sound 4KB", bench::records(LEN, 4 << 10).as_slice().to_vec(), starts.len() as u64),
        ("every second length", lengths, starts.len() as u64 / 2),
    ] {
        assert_eq!(salvage(&bytes), records);
        group.bench_function(name, |b| b.iter(|| salvage(black_box(&bytes))));
    }
    group.finish();
}

criterion_group! { name = benches; config = bench::short(); targets = walk, search }
criterion_main!(benches);
