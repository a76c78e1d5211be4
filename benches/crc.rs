//! The two checksums of a record: of the eight length bytes, and of the payload.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::crc;
use tfseek_testkit::bench;
use tfseek_testkit::rng::Rng;

/// Returns the masked form that a record stores.
fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Table lookup of one byte at a time, the usual C implementation.
struct Table([u32; 256]);

impl Table {
    fn new() -> Table {
        Table(std::array::from_fn(|byte| {
            (0..8).fold(byte as u32, |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
        }))
    }

    fn masked(&self, bytes: &[u8]) -> u32 {
        let step = |crc: u32, byte: &u8| (crc >> 8) ^ self.0[((crc ^ u32::from(*byte)) & 0xff) as usize];
        mask(!bytes.iter().fold(u32::MAX, step))
    }
}

fn header(c: &mut Criterion) {
    let mut rng = Rng::new(1);
    let lens: Vec<u64> = (0..4096).map(|_| rng.u64() >> 40).collect();
    let table = Table::new();
    for &len in &lens {
        assert_eq!(crc::masked_len(len), table.masked(&len.to_le_bytes()));
        assert_eq!(crc::masked_len(len), crc::masked(&len.to_le_bytes()));
    }
    let mut group = c.benchmark_group("crc/header");
    group.throughput(Throughput::Elements(lens.len() as u64));
    let sum = |f: &dyn Fn(u64) -> u32| lens.iter().fold(0, |sum, &len| sum ^ f(len));
    // The three loops are separate: a call through `dyn` would cost more than the checksum.
    group.bench_function("inline", |b| {
        b.iter(|| black_box(&lens).iter().fold(0, |sum, &len| sum ^ crc::masked_len(len)))
    });
    group.bench_function("crate", |b| {
        b.iter(|| black_box(&lens).iter().fold(0, |sum, len| sum ^ mask(crc32c::crc32c(&len.to_le_bytes()))))
    });
    group.bench_function("table", |b| {
        b.iter(|| black_box(&lens).iter().fold(0, |sum, len| sum ^ table.masked(&len.to_le_bytes())))
    });
    assert_eq!(sum(&crc::masked_len), sum(&|len| table.masked(&len.to_le_bytes())));
    group.finish();
}

fn payload(c: &mut Criterion) {
    let mut rng = Rng::new(2);
    let bytes: Vec<u8> = (0..100_000).map(|_| rng.u64() as u8).collect();
    let mut group = c.benchmark_group("crc/payload");
    for (name, len) in [("100B", 100), ("4KB", 4096), ("100KB", 100_000)] {
        let bytes = &bytes[..len];
        assert_eq!(crc::masked(bytes), Table::new().masked(bytes));
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| crc::masked(black_box(bytes))));
    }
    group.finish();
}

criterion_group! { name = benches; config = bench::short(); targets = header, payload }
criterion_main!(benches);
