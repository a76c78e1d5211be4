//! Iteration over a stream with both checksums verified, from memory that is not in the CPU caches.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::frame::Frames;
use tfseek_testkit::bench;

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
        let records = Frames::new(bytes).count() as u64;
        let frames = |bytes: &[u8]| Frames::new(bytes).map(|f| f.unwrap().payload.len() as u64).sum::<u64>();
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

criterion_group! { name = benches; config = bench::short(); targets = walk }
criterion_main!(benches);
