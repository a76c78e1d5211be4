//! One function per hot path. Each runs on seeded data that its setup makes, and a parser has run before, so
//! that its pools are full. `Mapped::get_many` is not here: it chooses its way by the time that loads take.

use gungraun::{LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};
use std::hint::black_box;
use tfseek::batch::{Batch, BatchParser};
use tfseek::io::Region;
use tfseek::{DatasetOptions, Example, ExampleBuilder, IndexMode, Mapped, Verify, crc, order};
use tfseek_testkit::bench;
use tfseek_testkit::bench::shapes::{BATCH, Order, Shape};
use tfseek_testkit::rng::Rng;

type Rows = (BatchParser, Vec<Vec<u8>>);

/// A batch of one shape, and a parser that has parsed it.
fn rows(name: &str, order: Order) -> Rows {
    let shape = Shape::named(name).unwrap();
    let rows = shape.payloads(order, BATCH);
    let parser = BatchParser::new(&shape.schema());
    for _ in 0..5 {
        drop(parser.parse(&rows).unwrap());
    }
    (parser, rows)
}

#[library_benchmark(setup = rows)]
#[bench::tutorial("tutorial", Order::Same)]
#[bench::tutorial_own("tutorial", Order::Own)]
#[bench::wide("wide", Order::Same)]
#[bench::wide_own("wide", Order::Own)]
#[bench::wide_two("wide", Order::Two)]
#[bench::tokens("tokens", Order::Same)]
fn parse((parser, rows): Rows) -> (Batch, Rows) {
    (parser.parse(black_box(&rows)).unwrap(), (parser, rows))
}

/// About 2 MB of records of 90 bytes.
fn file() -> Vec<u8> {
    bench::records(2 << 20, 90)
}

#[library_benchmark(setup = file)]
fn scan(file: Vec<u8>) -> Mapped {
    Mapped::from_bytes(black_box(file)).unwrap()
}

fn opened(verify: Verify) -> (Mapped, Vec<u64>) {
    let whole = Mapped::from_bytes(file()).unwrap();
    of_regions(verify, [whole.get(0).unwrap().region().unwrap().0.clone()])
}

/// The records of some shards, and 4096 random numbers of records.
fn of_regions<const N: usize>(verify: Verify, shards: [Region; N]) -> (Mapped, Vec<u64>) {
    let mapped = DatasetOptions::new().index(IndexMode::Memory).verify(verify).open_regions(shards).unwrap();
    let mut rng = Rng::new(7);
    let ids = (0..4096).map(|_| rng.below_u64(mapped.len())).collect();
    (mapped, ids)
}

#[library_benchmark(setup = opened)]
#[bench::header(Verify::Header)]
#[bench::payload(Verify::Payload)]
fn get((mapped, ids): (Mapped, Vec<u64>)) -> (usize, Mapped, Vec<u64>) {
    let bytes = black_box(&ids).iter().map(|&i| mapped.get(i).unwrap().payload().len()).sum();
    (bytes, mapped, ids)
}

#[library_benchmark(setup = opened)]
#[bench::header(Verify::Header)]
#[bench::payload(Verify::Payload)]
fn iter((mapped, ids): (Mapped, Vec<u64>)) -> (usize, Mapped, Vec<u64>) {
    let bytes = black_box(&mapped).iter().map(|record| record.unwrap().payload().len()).sum();
    (bytes, mapped, ids)
}

fn several(verify: Verify) -> (Mapped, Vec<u64>) {
    of_regions(verify, [20 << 10, 1 << 20, 5 << 10, 1 << 20].map(|len| bench::records(len, 90).into()))
}

#[library_benchmark(setup = several)]
#[bench::header(Verify::Header)]
#[bench::payload(Verify::Payload)]
fn get_several((mapped, ids): (Mapped, Vec<u64>)) -> (usize, Mapped, Vec<u64>) {
    let bytes = black_box(&ids).iter().map(|&i| mapped.get(i).unwrap().payload().len()).sum();
    (bytes, mapped, ids)
}

fn payload() -> Vec<u8> {
    Rng::new(1).bytes(100 << 10)
}

#[library_benchmark(setup = payload)]
fn checksum(payload: Vec<u8>) -> (u32, Vec<u8>) {
    (crc::crc32c(black_box(&payload)), payload)
}

fn ids() -> (Vec<u8>, Vec<i64>) {
    let mut rng = Rng::new(2);
    let values: Vec<i64> = (0..20_000).map(|_| rng.below_u64(50_000) as i64).collect();
    (ExampleBuilder::new().int64("k", values.iter().copied()).encode().unwrap(), vec![0; values.len()])
}

#[library_benchmark(setup = ids)]
fn packed_ids((payload, mut to): (Vec<u8>, Vec<i64>)) -> (Vec<u8>, Vec<i64>) {
    let example = Example::new(black_box(&payload));
    example.int64("k").unwrap().decode_into(&mut to).unwrap();
    (payload, to)
}

fn example() -> Vec<u8> {
    bench::example(&mut Rng::new(3), 20)
}

#[library_benchmark(setup = example)]
fn one_of_20_features(payload: Vec<u8>) -> (bool, Vec<u8>) {
    let found = Example::new(black_box(&payload)).get(&bench::key(10)).unwrap().is_some();
    (found, payload)
}

#[library_benchmark]
fn permutation() -> Vec<u64> {
    let mut to = vec![0; 4096];
    order::Order::new(&order::Spec::Global, 1_000_000_000, 1, 0).unwrap().fill(0, &mut to).unwrap();
    to
}

library_benchmark_group!(
    name = hot,
    benchmarks = [parse, scan, get, iter, get_several, checksum, packed_ids, one_of_20_features, permutation]
);
main!(config = LibraryBenchmarkConfig::default(), library_benchmark_groups = hot);
