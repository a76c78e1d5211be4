//! Memory of an epoch over a set that is larger than what may be under way: what is stated, and what the system counts.
//!
//! `TFSEEK_MEMORY_DIR=DIR cargo test --release --lib -- --ignored --nocapture` writes 2 GB into that folder, and
//! takes them away again.

use crate::batch::{BatchParser, Column, Values};
use crate::{DType, Dataset, DatasetOptions, ExampleBuilder, FeatureSpec, IndexMode, Schema, Verify, Writer};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const THREADS: u64 = 2;
const SHARDS: u64 = 5;
const RECORDS: u64 = 4_000;
const LEN: u64 = 100 << 10;
/// Large, so that the bound is met.
const BATCH: u64 = 1024;
/// What threads, tables and pages half filled take beside payloads.
const SLACK: u64 = 32 << 20;

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// The most of `RssAnon` and `VmPTE` while `f` runs, above what there was before.
fn peaks<T>(f: impl FnOnce() -> T) -> (u64, u64, T) {
    let (anon, tables, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
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

/// What a consumer sees: payload bytes, the most bytes under way, and the largest batch.
fn epoch(dataset: &Dataset, schema: Option<&Schema>, memory: Option<u64>) -> (u64, u64, u64) {
    let options = match schema {
        Some(schema) => {
            let parser = BatchParser::new(schema).contiguous_bytes(true);
            dataset.loader(schema).parser(parser)
        }
        None => dataset.record_loader(),
    };
    let options =
        options.batch_size(BATCH).order(crate::loader::Shuffle::Global).seed(42).threads(THREADS as usize);
    let mut loader = match memory {
        Some(bytes) => options.memory(bytes),
        None => options,
    }
    .build()
    .unwrap();
    let (mut bytes, mut most, mut largest) = (0, 0, 0);
    while let Some(step) = loader.next() {
        let step = step.unwrap();
        let len = match (step.batch(), step.records()) {
            (Some(batch), _) => batch.columns().map(|(_, column)| image(column)).sum(),
            (_, Some(records)) => records.map(|record| sum(record.unwrap().payload())).sum(),
            _ => 0,
        };
        // Late, so that the threads have made what they may.
        std::thread::sleep(Duration::from_millis(20));
        bytes += len;
        most = most.max(loader.bytes_under_way());
        largest = largest.max(len);
    }
    (bytes, most, largest)
}

fn image(column: &Column) -> u64 {
    match column.values() {
        Values::Bytes(images) => images.iter().map(sum).sum(),
        _ => 0,
    }
}

/// Reads all bytes, and counts them.
fn sum(bytes: &[u8]) -> u64 {
    std::hint::black_box(bytes.iter().fold(0u64, |sum, &b| sum.wrapping_add(u64::from(b))));
    bytes.len() as u64
}

#[test]
#[ignore = "writes 2 GB"]
fn an_epoch_stays_under_its_bound() {
    let Some(dir) = std::env::var_os("TFSEEK_MEMORY_DIR") else {
        eprintln!("skipped: TFSEEK_MEMORY_DIR does not name a folder with room for 2 GB");
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
    println!("MB: the bound, the most under way, the most of RssAnon and VmPTE above what there was");
    for memory in [Some(256 << 20), None] {
        for (name, lends, schema) in [
            ("mapped, records", true, None),
            ("mapped, parsed", true, Some(&schema)),
            ("read, records", false, None),
            ("read, parsed", false, Some(&schema)),
        ] {
            let (anon, tables, (bytes, most, largest)) = peaks(|| {
                #[allow(unsafe_code)]
                let dataset = match lends {
                    // SAFETY: files of this test, which nobody else writes to.
                    true => unsafe { options.open_mapped(&paths) }.unwrap().dataset().clone(),
                    false => options.open(&paths).unwrap(),
                };
                epoch(&dataset, schema, memory)
            });
            // The default, on a machine with 8 GiB or more.
            let bound = memory.unwrap_or(1 << 30);
            let mb = |bytes: u64| bytes as f64 / 1e6;
            println!("{name:18} {:7.0} {:7.0} {:7.0} {:7.1}", mb(bound), mb(most), mb(anon), mb(tables));
            assert!(bytes >= total, "every record");
            assert!(most <= bound);
            // Beside what is under way: the batch that the consumer holds, and the short one at the end, which may lie in a
            // large buffer. What a batch is parsed into each thread keeps for its next ones, and may be an eighth too large.
            let made = bound + 2 * largest;
            let parsed = if schema.is_some() { THREADS * (made + made / 8) } else { 0 };
            let stated = parsed + if lends { 0 } else { made };
            assert!(anon <= stated + SLACK, "{name}: {anon} bytes, {stated} are stated");
        }
    }
}
