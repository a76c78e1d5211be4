//! Records that no cache holds: each run begins with an empty page cache, and every byte of every record is summed.
//!
//! A plain map reads ahead around each record that it touches, and so fills the cache with the rest of the file: the files are
//! so large, and its runs so short, that later records seldom profit. The loader's are long, for at its end it has asked for
//! another thousand records. Headers are checked by all who read records.

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
/// Of a file.
const SIZE: u64 = 4 << 30;
/// Bytes of a run that reads neighbours together.
const STREAM: u64 = 2 << 30;

/// What a run did.
struct Run {
    time: Duration,
    records: u64,
    /// Of payloads.
    bytes: u64,
    /// What came from the disk.
    device: u64,
    /// Of the records that all runs of the same order read.
    sum: u64,
}

/// Counts what is read, on the way.
struct Tally {
    start: Instant,
    device: u64,
    records: u64,
    bytes: u64,
    sums: (u64, u64),
    /// Records that every run reads.
    common: u64,
}

impl Tally {
    fn start(common: u64) -> Tally {
        let device = device_bytes();
        Tally { start: Instant::now(), device, records: 0, bytes: 0, sums: (0, 0), common }
    }

    fn add(&mut self, payload: &[u8]) {
        let sum = sum(payload);
        match self.records < self.common {
            true => self.sums.0 = self.sums.0.wrapping_add(sum),
            false => self.sums.1 = self.sums.1.wrapping_add(sum),
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

/// Bytes that this process had read from disks.
fn device_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Only clean pages that nobody has mapped leave the cache.
fn drop_caches() -> std::io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "1")
}

/// With the index beside the file: a scan would warm it.
fn options() -> DatasetOptions {
    DatasetOptions::new().index(IndexMode::Auto).verify(Verify::Header)
}

fn mapped(path: &Path) -> Mapped {
    // SAFETY: a file of this bench, which nobody else writes to.
    unsafe { options().open_mapped(path) }.unwrap()
}

/// A way to read, records of it, and how many of them others read too.
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

/// In the loader's order.
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
    let mut loader = dataset.record_loader().batch_size(BATCH).order(shuffle).seed(SEED).build().unwrap();
    let mut tally = Tally::start(common);
    for step in loader.by_ref().take(records.div_ceil(BATCH) as usize) {
        let step = step.unwrap();
        step.records().expect("it has no schema").for_each(|record| tally.add(record.unwrap().payload()));
    }
    tally.end()
}

/// The first `STREAM` bytes of the file, as they lie there.
fn sequential(path: &Path, _records: u64, _common: u64) -> Run {
    let mut file = File::open(path).unwrap();
    let mut buf = vec![0; 1 << 20];
    let mut tally = Tally::start(0);
    while tally.bytes < STREAM {
        let n = file.read(&mut buf).unwrap();
        assert!(n > 0, "the file is longer");
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
        "first touch, headers checked, every byte summed, medians of {rounds} runs; ratio to the first of its kind"
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
        // Of streams the last batch may be a few records more.
        let speed = match common {
            0 => run.bytes as f64 / median,
            _ => run.records as f64 / median,
        };
        let &mut (first, sum) = base.get_or_insert((speed, run.sum));
        assert_eq!(run.sum, sum, "{}: the same records in the same order", way.0);
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
