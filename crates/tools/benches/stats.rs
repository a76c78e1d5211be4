//! `stats/file/SHAPE`: statistics on one thread compared with verification of the same file, in records and
//! bytes per second.
//!
//! `TFSEEK_ROUNDS` sets the number of rounds, by default 3. Both ways run in turn in each round, and the
//! table has the best. Arguments choose shapes by name.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tfseek::frame::put_record;
use tfseek::stream::Stream;
use tfseek_testkit::bench::shapes::{Order, Shape};
use tfseek_tools::KindedStream;
use tfseek_tools::stats::StatsOptions;

/// Writes records of a shape, its distinct payloads in turn, until the file has about `bytes` bytes.
fn write_file(path: &Path, shape: &Shape, distinct: usize, bytes: usize) -> u64 {
    let payloads = shape.payloads(Order::Same, distinct);
    let mut file = BufWriter::new(File::create(path).unwrap());
    let (mut written, mut records) = (0, 0);
    while written < bytes {
        for payload in &payloads {
            put_record(&mut file, payload).unwrap();
            written += payload.len() + 16;
            records += 1;
        }
    }
    file.flush().unwrap();
    records
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (run(), start.elapsed())
}

fn main() {
    let rounds = std::env::var("TFSEEK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let dir = tempfile::tempdir().unwrap();
    println!("| shape | records/s | MB/s | of verify |\n| --- | --- | --- | --- |");
    let chosen: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    for (name, distinct) in [("tutorial", 400_000), ("wide", 8_000), ("tokens", 30_000), ("image", 500)] {
        if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == name) {
            continue;
        }
        let path = dir.path().join(name);
        let records = write_file(&path, &Shape::named(name).unwrap(), distinct, 60_000_000);
        let bytes = std::fs::metadata(&path).unwrap().len();
        let (mut stats, mut verify) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds {
            let open = |path: &PathBuf| Stream::open(path);
            let (found, time) =
                timed(|| StatsOptions::default().run(std::slice::from_ref(&path), &open).unwrap());
            assert_eq!(found.records(), records);
            stats = stats.min(time);
            let stream = Stream::open(&path).unwrap();
            let raw = Some(tfseek::example::MessageKind::Other);
            let (found, time) = timed(|| tfseek_tools::verify(KindedStream::new(stream, raw), None, |_| ()));
            assert_eq!(found.records, records);
            verify = verify.min(time);
        }
        let seconds = stats.as_secs_f64();
        println!(
            "| {name} | {:.0} | {:.0} | {:.2} |",
            records as f64 / seconds,
            bytes as f64 / seconds / 1e6,
            verify.as_secs_f64() / seconds
        );
        std::fs::remove_file(&path).unwrap();
    }
}
