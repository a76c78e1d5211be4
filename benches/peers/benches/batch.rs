//! Parsing records to columns, compared with protobuf libraries and a loop that fills columns. The shapes are
//! those of the library's own bench `batch`. Uses one core, or two (`/2`).

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::thread;
use tfseek::batch::BatchParser;
use tfseek::frame::put_record;
use tfseek::{DType, Mapped, Record};
use tfseek_peers::prost::Prost;
use tfseek_peers::quick::Quick;
use tfseek_peers::{Column, Peer, Values};
use tfseek_testkit::bench;
use tfseek_testkit::bench::shapes::{BATCH, Order, Shape};
use tfseek_testkit::bench::sum::Sum;

fn columns(shape: &Shape) -> Vec<Column> {
    let column = |feature: &bench::shapes::ShapeFeature| Column {
        key: feature.key.clone(),
        len: feature.len.unwrap_or(1),
        values: match feature.dtype() {
            DType::Int64 => Values::Int64(Vec::new()),
            DType::Float32 => Values::Float(Vec::new()),
            DType::Bytes => Values::Bytes(Vec::new(), Vec::new()),
        },
    };
    shape.features.iter().map(column).collect()
}

fn sum(columns: &[Column]) -> Sum {
    let mut sum = Sum::default();
    for column in columns {
        match &column.values {
            Values::Int64(values) => sum.ints(values),
            Values::Float(values) => sum.floats(values),
            Values::Bytes(data, ends) => {
                let mut from = 0;
                for &end in ends {
                    sum.string(&data[from..end]);
                    from = end;
                }
            }
        }
    }
    sum
}

/// Fills the columns batch by batch and calls `each` with them.
fn fill<P: Peer>(rows: &[&[u8]], columns: &mut [Column], mut each: impl FnMut(&[Column])) {
    for rows in rows.chunks(BATCH) {
        P::fill(rows, columns).unwrap();
        each(columns);
    }
}

/// Processes one half of the rows per thread.
fn halves<T: Sync>(rows: &[T], columns: &mut [Vec<Column>; 2], work: impl Fn(&[T], &mut Vec<Column>) + Sync) {
    let (first, second) = rows.split_at(rows.len() / 2);
    let [one, two] = columns;
    thread::scope(|scope| {
        scope.spawn(|| work(first, one));
        work(second, two);
    });
}

fn batch(c: &mut Criterion) {
    for shape in Shape::all() {
        for order in Order::ALL {
            let payloads = shape.payloads(order, shape.records);
            let mut file = Vec::new();
            payloads.iter().for_each(|payload| put_record(&mut file, payload).unwrap());
            drop(payloads);
            let dataset = Mapped::from_bytes(file).unwrap();
            let records: Vec<Record<'_>> = dataset.iter().map(Result::unwrap).collect();
            let rows: Vec<&[u8]> = records.iter().map(|record| record.payload()).collect();
            let parser = BatchParser::new(&shape.schema()).contiguous_bytes(true);
            let mut columns = [columns(&shape), columns(&shape)];

            let mut want = Sum::default();
            records.chunks(BATCH).for_each(|rows| want.batch(&parser.parse(rows).unwrap()));
            let add = |to: &mut Sum, columns: &[Column]| {
                let Sum { ints, floats, lens, bytes } = sum(columns);
                to.ints = to.ints.wrapping_add(ints);
                to.floats = to.floats.wrapping_add(floats);
                to.lens = to.lens.wrapping_add(lens);
                to.bytes = to.bytes.wrapping_add(bytes);
            };
            let (mut prost, mut quick) = (Sum::default(), Sum::default());
            fill::<Prost>(&rows, &mut columns[0], |columns| add(&mut prost, columns));
            fill::<Quick>(&rows, &mut columns[0], |columns| add(&mut quick, columns));
            assert_eq!((prost, quick), (want, want));

            let mut group = c.benchmark_group(format!("batch/{}/{}", shape.name, order.name()));
            group.throughput(Throughput::ElementsAndBytes {
                elements: shape.records as u64,
                bytes: rows.iter().map(|row| row.len() as u64).sum(),
            });
            let parse = |records: &[Record<'_>]| {
                for rows in black_box(records).chunks(BATCH) {
                    black_box(parser.parse(rows).unwrap());
                }
            };
            let seen = |columns: &[Column]| {
                black_box(columns);
            };
            group.bench_function("tfseek", |b| b.iter(|| parse(&records)));
            group.bench_function("prost", |b| b.iter(|| fill::<Prost>(&rows, &mut columns[0], seen)));
            group
                .bench_function("quick-protobuf", |b| b.iter(|| fill::<Quick>(&rows, &mut columns[0], seen)));
            group.bench_function("tfseek/2", |b| {
                b.iter(|| halves(&records, &mut columns, |records, _| parse(records)))
            });
            group.bench_function("prost/2", |b| {
                b.iter(|| halves(&rows, &mut columns, |rows, columns| fill::<Prost>(rows, columns, seen)))
            });
            group.bench_function("quick-protobuf/2", |b| {
                b.iter(|| halves(&rows, &mut columns, |rows, columns| fill::<Quick>(rows, columns, seen)))
            });
            group.finish();
        }
    }
}

criterion_group! { name = benches; config = bench::short(); targets = batch }
criterion_main!(benches);
