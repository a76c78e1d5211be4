//! Parsing records to columns: five shapes, with the same key order in every record and with a random order
//! per record.
//!
//! `batch/SHAPE/ORDER/WHO`: `spans` borrows byte strings from the records, `contiguous` copies them, `/2`
//! uses two threads, and `copy` is a plain copy of the values of the largest feature. `benches/peers`
//! measures other libraries.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::batch::BatchParser;
use tfseek::frame::put_record;
use tfseek::{Mapped, Record};
use tfseek_testkit::agree_parse::parse_batches;
use tfseek_testkit::bench;
use tfseek_testkit::bench::copy;
use tfseek_testkit::bench::shapes::{BATCH, Order, Shape};
use tfseek_testkit::bench::sum::Sum;

fn batch(c: &mut Criterion) {
    for shape in Shape::all() {
        let mut sums = Vec::new();
        for order in Order::ALL {
            let mut file = Vec::new();
            for payload in shape.payloads(order, shape.records) {
                put_record(&mut file, &payload).unwrap();
            }
            let bytes = file.len() - 16 * shape.records;
            let dataset = Mapped::from_bytes(file).unwrap();
            let records: Vec<Record<'_>> = dataset.iter().map(Result::unwrap).collect();
            let spans = BatchParser::new(&shape.schema());
            let contiguous = BatchParser::new(&shape.schema()).contiguous_bytes(true);
            let parse = |parser: &BatchParser| {
                for rows in black_box(&records).chunks(BATCH) {
                    black_box(parser.parse(rows).unwrap());
                }
            };
            for parser in [&spans, &contiguous] {
                let (mut serial, mut parallel) = (Sum::default(), Sum::default());
                records.chunks(BATCH).for_each(|rows| serial.batch(&parser.parse(rows).unwrap()));
                let batches = parse_batches(parser, &records, BATCH, 2).unwrap();
                batches.iter().for_each(|batch| parallel.batch(batch));
                sums.extend([serial, parallel]);
            }

            let mut group = c.benchmark_group(format!("batch/{}/{}", shape.name, order.name()));
            group.throughput(Throughput::ElementsAndBytes {
                elements: shape.records as u64,
                bytes: bytes as u64,
            });
            group.bench_function("spans", |b| b.iter(|| parse(&spans)));
            group.bench_function("contiguous", |b| b.iter(|| parse(&contiguous)));
            group
                .bench_function("spans/2", |b| b.iter(|| parse_batches(&spans, &records, BATCH, 2).unwrap()));
            if let Some(key) = copy::feature(&shape) {
                let values = copy::values(records.iter().map(|record| record.payload()), key);
                let mut to = Vec::new();
                group.bench_function("copy", |b| {
                    b.iter(|| {
                        for rows in black_box(&values).chunks(BATCH) {
                            copy::copy(rows, black_box(&mut to));
                        }
                    })
                });
            }
            group.finish();
        }
        // All layouts, thread counts and key orders give the same values.
        assert!(sums.iter().all(|sum| *sum == sums[0] && sum.ints + sum.floats > 0));
    }
}

criterion_group! { name = benches; config = bench::short(); targets = batch }
criterion_main!(benches);
