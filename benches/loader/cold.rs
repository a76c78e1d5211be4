//! Records that are not in the page cache: each run starts with an empty page cache and sums every byte of
//! every record.
//!
//! Readahead of a plain map also loads data around each record. The files are large and the runs of the plain
//! map short, so later records seldom profit from it. Runs of the loader are long, because it has prefetched
//! another thousand records at the end. All readers of records verify headers.

use super::turns;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use tfseek::loader::Shuffle;
use tfseek::order::Spec;
use tfseek::{Dataset, DatasetOptions, IndexMode, Mapped, Order, Verify};
use tfseek_testkit::bench;

const SEED: u64 = 42;
const BATCH: u64 = 64;
/// Size of a file in bytes.
const SIZE: u64 = 4 << 30;
/// Bytes per run of the sequential readers.
const STREAM: u64 = 2 << 30;

/// Result of one run.
struct Run {
    time: Duration,
    records: u64,
    /// Payload bytes.
    bytes: u64,
    /// Bytes read from the disk.
    device: u64,
    /// Sum over the records that all runs of the same order read.
    sum: u64,
}

/// Counters during a run.
struct Tally {
    start: Instant,
    device: u64,
    records: u64,
    bytes: u64,
    sums: (u64, u64),
    /// Number of records that every run reads.
    common: u64,
}

impl Tally {
    fn start(common: u64) -> Tally {
        let device = device_bytes();
        Tally { start: Instant::now(), device, records: 0, bytes: 0, sums: (0, 0), common }
    }

    fn add(&mut self, payload: &[u8]) {
        let sum = sum(payload);
        if self.records < self.common {
            self.sums.0 = self.sums.0.wrapping_add(sum);
        } else {
            self.sums.1 = self.sums.1.wrapping_add(sum);
        }
        self.records += 1;
        self.bytes += payload.len() as u64;
    }

    fn end(self) -> Run {
        let time = self.start.elapsed();
        std::hint::black_box(self.sums.1);
        let device = device_bytes() - self.device;
        Run { time, records: self.records, bytes: self.bytes, device, sum: self.sums.0 }
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |s, w| s.wrapping_add(u64::from_le_bytes(*w)));
    tail.iter().fold(sum, |s, &b| s.wrapping_add(u64::from(b)))
}

/// Returns the number of bytes that this process has read from disks.
fn device_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Drops clean pages from the page cache. Mapped pages are not dropped.
fn drop_caches() -> std::io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "1")
}

/// Options with an index file next to the data, because a scan would warm the cache.
fn options() -> DatasetOptions {
    DatasetOptions::new().index(IndexMode::Auto).verify(Verify::Header)
}

fn mapped(path: &Path) -> Mapped {
    // SAFETY: a file of this bench; nothing else writes to it.
    unsafe { options().open_mapped(path) }.unwrap()
}

/// Name of a way to read, its function, its number of records, and the number of records common to all ways.
type Way = (&'static str, fn(&Path, u64, u64) -> Run, u64);

fn plain_map(path: &Path, records: u64, common: u64) -> Run {
    let dataset = mapped(path);
    one_by_one(dataset.dataset(), records, common, |id, tally| tally.add(dataset.get(id).unwrap().payload()))
}

fn plain_read(path: &Path, records: u64, common: u64) -> Run {
    let dataset = options().open(path).unwrap();
    let mut buf = Vec::new();
    one_by_one(&dataset, records, common, |id, tally| {
        tally.add(dataset.read(id, &mut buf).unwrap().payload())
    })
}

/// Reads records one by one in the loader's order.
fn one_by_one(dataset: &Dataset, records: u64, common: u64, mut each: impl FnMut(u64, &mut Tally)) -> Run {
    let order = Order::new(&Spec::Global, dataset.len(), SEED, 0).unwrap();
    let mut ids = vec![0; BATCH as usize];
    let mut tally = Tally::start(common);
    for start in (0..records).step_by(BATCH as usize) {
        order.fill(start, &mut ids).unwrap();
        ids.iter().take((records - start) as usize).for_each(|&id| each(id, &mut tally));
    }
    tally.end()
}

fn loader_map(path: &Path, records: u64, common: u64) -> Run {
    load(mapped(path).dataset(), Shuffle::Global, records, common)
}

fn loader_read(path: &Path, records: u64, common: u64) -> Run {
    load(&options().open(path).unwrap(), Shuffle::Global, records, common)
}

fn loader_block(path: &Path, records: u64, common: u64) -> Run {
    load(mapped(path).dataset(), Shuffle::Block, records, common)
}

fn load(dataset: &Dataset, shuffle: Shuffle, records: u64, common: u64) -> Run {
    let mut loader = dataset.record_loader().batch_size(BATCH).shuffle(shuffle).seed(SEED).build().unwrap();
    let mut tally = Tally::start(common);
    for step in loader.by_ref().take(records.div_ceil(BATCH) as usize) {
        let step = step.unwrap();
        step.records()
            .expect("a record loader has no schema")
            .for_each(|record| tally.add(record.unwrap().payload()));
    }
    tally.end()
}

/// Reads the first `STREAM` bytes of the file sequentially.
fn sequential(path: &Path, _records: u64, _common: u64) -> Run {
    let mut file = File::open(path).unwrap();
    let mut buf = vec![0; 1 << 20];
    let mut tally = Tally::start(0);
    while tally.bytes < STREAM {
        let n = file.read(&mut buf).unwrap();
        assert!(n > 0, "the file is shorter than STREAM");
        tally.add(&buf[..n]);
    }
    tally.end()
}

pub(crate) fn run(dir: &Path, rounds: usize) {
    if let Err(e) = drop_caches() {
        println!("skipped: the page cache cannot be dropped: {e}");
        return;
    }
    println!(
        "first access, headers verified, every byte summed, medians of {rounds} runs; ratio to the first row of the table"
    );
    println!(
        "{:28} {:>8} {:>12} {:>9} {:>9} {:>8}",
        "", "records", "us/record", "MB/s", "read/used", "ratio"
    );
    let streamed = STREAM / (100 << 10);
    let global: [(&str, u64, u64, u64); 2] =
        [("4KB", 4 << 10, 20_000, 128), ("100KB", 100 << 10, 12_800, 128)];
    for (name, mean, many, few) in global {
        let path = bench::shard_in(dir, SIZE, mean);
        drop(options().open(&path).unwrap());
        let ways: [Way; 4] = [
            ("plain map", plain_map, few),
            ("plain positional reads", plain_read, many),
            ("loader, map", loader_map, many),
            ("loader, positional reads", loader_read, many),
        ];
        table(&format!("{name} global"), &path, rounds, &ways, few);
        if mean == 100 << 10 {
            let ways: [Way; 2] =
                [("sequential, File, 1 MiB", sequential, streamed), ("loader, map", loader_block, streamed)];
            table(&format!("{name} block"), &path, rounds, &ways, 0);
        }
    }
}

fn table(title: &str, path: &Path, rounds: usize, ways: &[Way], common: u64) {
    println!("{title}");
    let mut last: Vec<Option<Run>> = ways.iter().map(|_| None).collect();
    let times = turns::take(ways.len(), rounds, |way| {
        drop_caches().unwrap();
        let run = ways[way].1(path, ways[way].2, common);
        let time = run.time;
        last[way] = Some(run);
        time
    });
    let mut base = None;
    for ((way, run), time) in ways.iter().zip(last).zip(times) {
        let Some(run) = run else { continue };
        let median = time.median.as_secs_f64();
        // The last batch of a sequential run may contain a few records more, so its speed is in bytes.
        let speed = match common {
            0 => run.bytes as f64 / median,
            _ => run.records as f64 / median,
        };
        let &mut (first, sum) = base.get_or_insert((speed, run.sum));
        assert_eq!(run.sum, sum, "{}: expected the same records in the same order", way.0);
        println!(
            "  {:26} {:>8} {:>12.1} {:>9.0} {:>9.2} {:>8.2}",
            way.0,
            run.records,
            median * 1e6 / run.records as f64,
            run.bytes as f64 / median / 1e6,
            run.device as f64 / run.bytes as f64,
            speed / first,
        );
    }
}
