//! The two checksums of a record: of the eight length bytes, and of the payload.
//!
//! `crc/payload` compares tfseek with the two crates that have the other forms: `crc32c`, and `crc-fast`,
//! which checks long payloads.
//!
//! `crc/records` checks records that are not in the CPU caches. The reference `read` only adds up their
//! words, and `read/prefetch` also prefetches the line 4 KiB later, as the checks do on Intel's processors.
#![allow(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::crc;
use tfseek::frame::frames;
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
        assert_eq!(crc::masked(&len.to_le_bytes()), table.masked(&len.to_le_bytes()));
    }
    let mut group = c.benchmark_group("crc/header");
    group.throughput(Throughput::Elements(lens.len() as u64));
    let sum = |f: &dyn Fn(u64) -> u32| lens.iter().fold(0, |sum, &len| sum ^ f(len));
    // The three loops are separate: a call through `dyn` would cost more than the checksum.
    group.bench_function("inline", |b| {
        b.iter(|| black_box(&lens).iter().fold(0, |sum, &len| sum ^ crc::masked(&len.to_le_bytes())))
    });
    group.bench_function("crate", |b| {
        b.iter(|| black_box(&lens).iter().fold(0, |sum, len| sum ^ mask(crc32c::crc32c(&len.to_le_bytes()))))
    });
    group.bench_function("table", |b| {
        b.iter(|| black_box(&lens).iter().fold(0, |sum, len| sum ^ table.masked(&len.to_le_bytes())))
    });
    assert_eq!(sum(&|len| crc::masked(&len.to_le_bytes())), sum(&|len| table.masked(&len.to_le_bytes())));
    group.finish();
}

fn payload(c: &mut Criterion) {
    let mut rng = Rng::new(2);
    let bytes: Vec<u8> = (0..100_000).map(|_| rng.u64() as u8).collect();
    let mut group = c.benchmark_group("crc/payload");
    for (name, len) in [
        ("16B", 16),
        ("90B", 90),
        ("300B", 300),
        ("500B", 500),
        ("1KB", 1 << 10),
        ("4KB", 4 << 10),
        ("100KB", 100_000),
    ] {
        let bytes = &bytes[..len];
        assert_eq!(crc::masked(bytes), Table::new().masked(bytes));
        assert_eq!(crc::masked(bytes), mask(crc_fast::crc32_iscsi(bytes)));
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| crc::masked(black_box(bytes))));
        group.bench_function(BenchmarkId::new("crate", name), |b| {
            b.iter(|| mask(crc32c::crc32c(black_box(bytes))))
        });
        group.bench_function(BenchmarkId::new("crc-fast", name), |b| {
            b.iter(|| mask(crc_fast::crc32_iscsi(black_box(bytes))))
        });
    }
    group.finish();
}

/// Moves from record to record, and calls `f` with each record.
fn hop(bytes: &[u8], mut f: impl FnMut(&[u8])) {
    let mut at = 0;
    while at < bytes.len() {
        let len = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let (from, to) = (at, at + 16 + len);
        f(&bytes[from..to]);
        at = to;
    }
}

/// Adds up the words of a payload. Prefetches the line `AHEAD` bytes after each, unless that is 0.
#[inline(always)]
fn sum<const AHEAD: usize>(payload: &[u8]) -> u64 {
    let (lines, rest) = payload.as_chunks::<64>();
    let add = |sum: u64, words: &[u8]| {
        words.as_chunks().0.iter().fold(sum, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
    };
    let sum = lines.iter().fold(0, |sum, line| {
        #[cfg(target_arch = "x86_64")]
        if AHEAD > 0 {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch of any address is valid, as `src/cache.rs` proves.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(AHEAD).cast()) }
        }
        add(sum, line)
    });
    add(sum, rest)
}

fn records(c: &mut Criterion) {
    for (name, mean) in [("90B", 90), ("4KB", 4 << 10), ("100KB", 100 << 10)] {
        let bytes = bench::records(128 << 20, mean);
        let bytes = bytes.as_slice();
        let own = |bytes| frames(bytes).map(|frame| frame.unwrap().1.len() as u64).sum::<u64>();
        let by_crate = |bytes| {
            let mut sum = 0;
            hop(bytes, |record| {
                let (header, rest) = record.split_at(12);
                let (payload, footer) = rest.split_at(rest.len() - 4);
                assert_eq!(mask(crc32c::crc32c(&header[..8])).to_le_bytes(), header[8..]);
                assert_eq!(mask(crc32c::crc32c(payload)).to_le_bytes(), footer);
                sum += payload.len() as u64;
            });
            sum
        };
        assert_eq!(own(bytes), by_crate(bytes));
        let mut group = c.benchmark_group(format!("crc/records/{name}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("own", |b| b.iter(|| own(black_box(bytes))));
        group.bench_function("crate", |b| b.iter(|| by_crate(black_box(bytes))));
        group.bench_function("read", |b| {
            b.iter(|| {
                let mut total = 0u64;
                hop(black_box(bytes), |record| total = total.wrapping_add(sum::<0>(record)));
                total
            })
        });
        group.bench_function("read/prefetch", |b| {
            b.iter(|| {
                let mut total = 0u64;
                hop(black_box(bytes), |record| total = total.wrapping_add(sum::<4096>(record)));
                total
            })
        });
        group.finish();
    }
}

criterion_group! { name = benches; config = bench::short(); targets = header, payload, records }
criterion_main!(benches);
