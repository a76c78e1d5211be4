//! Memory of an epoch over a dataset that is larger than the limit of bytes in flight: the documented limits,
//! and the memory that the system counts.
//!
//! `TFSEEK_MEMORY_DIR=DIR cargo test --release --lib -- --ignored --nocapture` writes 2 GB into that folder
//! and deletes them afterwards.

use crate::batch::{BatchParser, Column, Values};
use crate::{DType, Dataset, DatasetOptions, ExampleBuilder, FeatureSpec, IndexMode, Schema, Verify, Writer};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const THREADS: u64 = 2;
const SHARDS: u64 = 5;
const RECORDS: u64 = 4_000;
const LEN: u64 = 100 << 10;
/// The number of samples of a batch: large, so that the limit is reached.
const BATCH: u64 = 1024;
/// Allowance for threads, tables and partly filled pages.
const SLACK: u64 = 32 << 20;

/// Returns a value of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// Returns the maxima of `RssAnon` and `VmPTE` while `f` runs, minus their values before.
fn peaks<T>(f: impl FnOnce() -> T) -> (u64, u64, T) {
    let anon = AtomicU64::new(0);
    let tables = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let before = (status("RssAnon"), status("VmPTE"));
    let value = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                anon.fetch_max(status("RssAnon"), Relaxed);
                tables.fetch_max(status("VmPTE"), Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let value = f();
        done.store(true, Relaxed);
        value
    });
    (anon.into_inner().saturating_sub(before.0), tables.into_inner().saturating_sub(before.1), value)
}

/// Runs an epoch. Returns the payload bytes, the maximum of bytes in flight, and the bytes of the largest
/// batch.
fn epoch(dataset: &Dataset, schema: Option<&Schema>, memory: Option<u64>) -> (u64, u64, u64) {
    let options = match schema {
        Some(schema) => {
            let parser = BatchParser::new(schema).contiguous_bytes(true);
            dataset.loader(schema).parser(parser)
        }
        None => dataset.record_loader(),
    };
    let options =
        options.batch_size(BATCH).shuffle(crate::loader::Shuffle::Global).seed(42).threads(THREADS as usize);
    let mut loader = match memory {
        Some(bytes) => options.memory(bytes),
        None => options,
    }
    .build()
    .unwrap();
    let mut bytes = 0;
    let mut max = 0;
    let mut largest = 0;
    while let Some(step) = loader.next() {
        let step = step.unwrap();
        let len = match (step.batch(), step.records()) {
            (Some(batch), _) => batch.columns().map(|(_, column)| image(column)).sum(),
            (_, Some(records)) => records.map(|record| sum(record.unwrap().payload())).sum(),
            _ => 0,
        };
        // A slow consumer, so that the threads reach their limits.
        std::thread::sleep(Duration::from_millis(20));
        bytes += len;
        max = max.max(loader.bytes_in_flight());
        largest = largest.max(len);
    }
    (bytes, max, largest)
}

fn image(column: &Column) -> u64 {
    match column.values() {
        Values::Bytes(images) => images.iter().map(sum).sum(),
        _ => 0,
    }
}

/// Reads all bytes and returns their number.
fn sum(bytes: &[u8]) -> u64 {
    std::hint::black_box(bytes.iter().fold(0u64, |sum, &b| sum.wrapping_add(u64::from(b))));
    bytes.len() as u64
}

#[test]
#[ignore = "writes 2 GB"]
fn an_epoch_stays_within_its_memory_limit() {
    let Some(dir) = std::env::var_os("TFSEEK_MEMORY_DIR") else {
        tfseek_testkit::skipped("TFSEEK_MEMORY_DIR, a folder with room for 2 GB");
        return;
    };
    let dir = tempfile::tempdir_in(dir).unwrap();
    let mut total = 0;
    for shard in 0..SHARDS {
        let mut writer = Writer::create(dir.path().join(format!("{shard}.tfrecord"))).unwrap();
        for i in 0..RECORDS {
            let len = LEN / 2 + (i * 2_654_435_761) % LEN;
            let image: Vec<u8> = (0..len).map(|k| (k ^ i) as u8).collect();
            writer.write(&ExampleBuilder::new().bytes("image", [image]).encode().unwrap()).unwrap();
            total += len;
        }
        writer.close().unwrap();
    }
    let paths = dir.path().join("*.tfrecord");
    let options = DatasetOptions::new().index(IndexMode::Memory).verify(Verify::Payload);
    let schema =
        Schema::example().feature("image", FeatureSpec::fixed_len(&[], DType::Bytes)).build().unwrap();
    println!("MB: limit, maximum in flight, growth of RssAnon and VmPTE");
    for memory in [Some(256 << 20), None] {
        for (name, mapped, schema) in [
            ("mapped, records", true, None),
            ("mapped, parsed", true, Some(&schema)),
            ("read, records", false, None),
            ("read, parsed", false, Some(&schema)),
        ] {
            let (anon, tables, (bytes, max, largest)) = peaks(|| {
                #[allow(unsafe_code)]
                let dataset = if mapped {
                    // SAFETY: the files belong to this test, and no other process writes to them.
                    unsafe { options.open_mapped(&paths) }.unwrap().dataset().clone()
                } else {
                    options.open(&paths).unwrap()
                };
                epoch(&dataset, schema, memory)
            });
            // The default limit on a machine with 8 GiB or more.
            let limit = memory.unwrap_or(1 << 30);
            let mb = |bytes: u64| bytes as f64 / 1e6;
            println!("{name:18} {:7.0} {:7.0} {:7.0} {:7.1}", mb(limit), mb(max), mb(anon), mb(tables));
            assert!(bytes >= total, "every record");
            assert!(max <= limit);
            // Not in flight: the batch that the consumer holds, and the short last batch, which may be in a
            // large buffer. Each thread keeps the buffers of parsed batches for its next ones, and they may
            // be an eighth too large.
            let made = limit + 2 * largest;
            let parsed = if schema.is_some() { THREADS * (made + made / 8) } else { 0 };
            let expected = parsed + if mapped { 0 } else { made };
            assert!(anon <= expected + SLACK, "{name}: {anon} bytes, at most {expected} expected");
        }
    }
}
