//! The program that `parse_example.py` compares with TensorFlow.
//!
//! `parse make DIR` writes `SHAPE-ORDER.tfrecord` and `SHAPE.json` for all shapes.
//! `parse run DIR SHAPE ORDER LAYOUT SECONDS` parses one of these files from memory, batch by batch, and
//! prints the time per example as JSON. LAYOUT is `spans`, `contiguous` or `copy`, which is a plain copy of
//! the values of the largest feature without parsing.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use tfseek::batch::BatchParser;
use tfseek::frame::put_record;
use tfseek::io::Region;
use tfseek::{DatasetOptions, IndexMode, Record, Verify};
use tfseek_testkit::bench::shapes::{BATCH, Order, Shape};
use tfseek_testkit::bench::{copy, sum::Sum};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", dir] => make(Path::new(dir)),
        ["run", dir, shape, order, layout, seconds] => {
            let shape = Shape::named(shape).ok_or("unknown shape")?;
            let path = Path::new(dir).join(format!("{}-{order}.tfrecord", shape.name));
            run(&path, &shape, layout, Duration::from_secs_f64(seconds.parse()?))
        }
        _ => Err("parse make DIR | parse run DIR SHAPE ORDER LAYOUT SECONDS".into()),
    }
}

fn make(dir: &Path) -> Result<(), Failure> {
    for shape in Shape::all() {
        fs::write(dir.join(format!("{}.json", shape.name)), shape.schema().to_json())?;
        for order in Order::ALL {
            let mut file = Vec::new();
            for payload in shape.payloads(order, shape.records) {
                put_record(&mut file, &payload)?;
            }
            fs::write(dir.join(format!("{}-{}.tfrecord", shape.name, order.name())), file)?;
        }
    }
    Ok(())
}

fn run(path: &Path, shape: &Shape, layout: &str, time: Duration) -> Result<(), Failure> {
    let options = DatasetOptions::new().index(IndexMode::Memory).verify(Verify::Header);
    let dataset = options.open_regions([Region::from(fs::read(path)?)])?;
    let records = dataset.iter().collect::<tfseek::Result<Vec<Record<'_>>>>()?;
    if layout == "copy" {
        let key = copy::feature(shape).ok_or("the shape has no feature to copy")?;
        let values = copy::values(records.iter().map(|record| record.payload()), key);
        let mut to = Vec::new();
        let seconds = timed(time, || {
            values.chunks(BATCH).for_each(|batch| copy::copy(black_box(batch), black_box(&mut to)));
            Ok(())
        })?;
        println!(r#"{{"parse": {:e}}}"#, seconds / records.len() as f64);
        return Ok(());
    }
    let parser = BatchParser::new(&shape.schema()).contiguous_bytes(layout == "contiguous");
    let mut sum = Sum::default();
    for rows in records.chunks(BATCH) {
        sum.batch(&parser.parse(rows)?);
    }
    let parse = timed(time, || {
        for rows in records.chunks(BATCH) {
            black_box(parser.parse(rows)?);
        }
        Ok(())
    })?;
    let summed = timed(time, || {
        let mut sum = Sum::default();
        for rows in records.chunks(BATCH) {
            sum.batch(&parser.parse(rows)?);
        }
        black_box(sum);
        Ok(())
    })?;
    let each = |seconds: f64| seconds / records.len() as f64;
    println!(
        r#"{{"parse": {:e}, "parse_sum": {:e}, "sum": {{"ints": {}, "floats": {}, "lens": {}, "bytes": {}}}}}"#,
        each(parse),
        each(summed),
        sum.ints,
        sum.floats,
        sum.lens,
        sum.bytes
    );
    Ok(())
}

/// Returns the seconds of a pass over all records: the mean of the passes within the given time, after a
/// warm-up pass.
fn timed(time: Duration, mut pass: impl FnMut() -> tfseek::Result<()>) -> tfseek::Result<f64> {
    pass()?;
    let (start, mut passes) = (Instant::now(), 0);
    while start.elapsed() < time {
        pass()?;
        passes += 1;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(passes.max(1)))
}
