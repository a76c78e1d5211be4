//! Parsing records to batches, and converting these to record batches: `arrow/SHAPE/WHO`.
//!
//! `parse` is the parser of the schema alone, and `parse-copy` one that copies byte strings, as for NumPy.
//! `view` and `copy` parse and convert with either form of byte strings; `view-copied` makes views of strings
//! that the parser has copied, as a scan of small records does. Before the timing, the numbers of rows are
//! compared.

use arrow_array::{Array, RecordBatch};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tfseek::batch::{Batch, BatchParser};
use tfseek::frame::put_record;
use tfseek::{Mapped, Record};
use tfseek_arrow::{ByteStrings, Converter, Options};
use tfseek_testkit::bench;
use tfseek_testkit::bench::shapes::{Order, Shape};

/// Rows of a batch.
const ROWS: usize = 1024;

fn convert(c: &mut Criterion) {
    for shape in Shape::all() {
        let mut file = Vec::new();
        for payload in shape.payloads(Order::ALL[0], shape.records) {
            put_record(&mut file, &payload).unwrap();
        }
        let bytes = file.len() - 16 * shape.records;
        let dataset = Mapped::from_bytes(file).unwrap();
        let records: Vec<Record<'_>> = dataset.iter().map(Result::unwrap).collect();
        let schema = shape.schema();
        let mut group = c.benchmark_group(format!("arrow/{}", shape.name));
        group
            .throughput(Throughput::ElementsAndBytes { elements: shape.records as u64, bytes: bytes as u64 });
        let parser = BatchParser::new(&schema);
        let parsed: Vec<Batch> = records.chunks(ROWS).map(|rows| parser.parse(rows).unwrap()).collect();
        let rows: usize = parsed.iter().map(Batch::rows).sum();
        for (name, bytes, copied) in [
            ("view", ByteStrings::View, false),
            ("view-copied", ByteStrings::View, true),
            ("copy", ByteStrings::Copy, true),
        ] {
            let converter = Converter::new(&schema, &Options::new().bytes(bytes)).unwrap();
            let parser = converter.parser().contiguous_bytes(copied);
            let made = |rows: &[Record<'_>]| converter.record_batch(&parser.parse(rows).unwrap()).unwrap();
            let batches: Vec<RecordBatch> = records.chunks(ROWS).map(made).collect();
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
            assert!(batches.iter().all(|batch| batch.columns().iter().all(|array| array.null_count() == 0)));
            drop(batches);
            group.bench_function(name, |b| {
                b.iter(|| black_box(&records).chunks(ROWS).for_each(|rows| drop(black_box(made(rows)))));
            });
        }
        let copying = BatchParser::new(&schema).contiguous_bytes(true);
        for (name, parser) in [("parse", &parser), ("parse-copy", &copying)] {
            group.bench_function(name, |b| {
                b.iter(|| {
                    for rows in black_box(&records).chunks(ROWS) {
                        drop(black_box(parser.parse(rows).unwrap()));
                    }
                });
            });
        }
    }
}

criterion_group!(name = benches; config = bench::short(); targets = convert);
criterion_main!(benches);
