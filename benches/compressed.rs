//! Compressed shards: random reads and block-order epochs, compared with sequential decompression of the same
//! bytes.
//!
//! `TFSEEK_COMPRESSED=N` sets the size of the shard in MiB before compression, by default 256.
//! `TFSEEK_ROUNDS` sets the number of rounds, by default 5. All ways run in turn in each round, with one
//! thread, and the table has the medians.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use tfseek::index::IndexOptions;
use tfseek::order::Spec;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Dataset, DatasetOptions, IndexMode, Shuffle, Stream};
use tfseek_testkit::rng::Rng;

/// Mean payload length.
const RECORD: usize = 6000;
/// Random reads per run.
const READS: u64 = 64;
const SPACINGS: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Bytes per block of the block orders, with windows of 64 blocks.
const BLOCKS: [u64; 3] = [1 << 20, 2 << 20, 3 << 20];
const WINDOW: u64 = 64;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Writes a shard of records of words and noise, which compress to a little more than half.
fn write_shard(path: &Path, bytes: u64) {
    let mut rng = Rng::new(15);
    let mut noise = |len: usize| -> Vec<u8> { (0..len).map(|_| rng.below(256) as u8).collect() };
    let words: Vec<Vec<u8>> = (0..3000).map(|i| noise(3 + i % 7)).collect();
    let mut writer =
        WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }.create(path).unwrap();
    for i in 0..bytes / (RECORD as u64 + 16) {
        let mut rng = Rng::new(i);
        let mut payload = Vec::with_capacity(RECORD + 20);
        while payload.len() < RECORD - 800 {
            payload.extend_from_slice(&words[rng.below(words.len())]);
            payload.push(b' ');
        }
        payload.extend((0..800).map(|_| rng.below(256) as u8));
        writer.write(&payload).unwrap();
    }
    writer.close().unwrap();
}

fn open(path: &Path, dir: &Path, spacing: u64) -> Dataset {
    let index = IndexOptions::new().index_dir(dir).checkpoint_every(spacing);
    DatasetOptions::new().index(index.clone()).open(path).unwrap();
    // A dataset has a new cache of decompressed bytes.
    DatasetOptions::new().index(index.mode(IndexMode::Require)).open(path).unwrap()
}

/// Decompresses the shard in order. Returns the number of bytes.
fn in_order(path: &Path) -> u64 {
    let file = BufReader::with_capacity(64 << 10, File::open(path).unwrap());
    let (mut reader, mut buf, mut bytes) = (flate2::read::MultiGzDecoder::new(file), vec![0; 64 << 10], 0);
    loop {
        match reader.read(&mut buf).unwrap() {
            0 => return bytes,
            n => bytes += black_box(n as u64),
        }
    }
}

/// Reads records in a random order. Returns the mean time of a read.
fn random_reads(ds: &Dataset, seed: u64) -> Duration {
    let (mut rng, mut buf) = (Rng::new(seed), Vec::new());
    // The tables of the index are read at the first access.
    ds.read(0, &mut buf).unwrap();
    let start = Instant::now();
    for _ in 0..READS {
        black_box(ds.read(rng.below_u64(ds.len()), &mut buf).unwrap().payload());
    }
    start.elapsed() / READS as u32
}

/// Runs an epoch in block order. Returns its duration.
fn epoch(ds: &Dataset, block_bytes: u64, seed: u64) -> Duration {
    let block = block_bytes / (RECORD as u64 + 16);
    let order = Shuffle::Order(Spec::Block { block, window: WINDOW });
    let mut buf = Vec::new();
    ds.read(0, &mut buf).unwrap();
    let start = Instant::now();
    let loader = ds.record_loader().batch_size(256).shuffle(order).seed(seed).threads(0).build().unwrap();
    let mut records = 0;
    for step in loader {
        for record in step.unwrap().records().unwrap() {
            black_box(record.unwrap().payload());
            records += 1;
        }
    }
    assert_eq!(records, ds.len());
    start.elapsed()
}

fn check(path: &Path, ds: &Dataset) {
    let (mut stream, mut buf, mut i) = (Stream::open(path).unwrap(), Vec::new(), 0);
    let mut records = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        if i % 97 == 0 {
            records.push((i, record.payload().to_vec()));
        }
        i += 1;
    }
    assert_eq!(i, ds.len());
    for (i, payload) in records.into_iter().rev() {
        assert!(ds.read(i, &mut buf).unwrap().payload() == payload, "record {i}");
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.tfrecord.gz");
    let rounds = number("TFSEEK_ROUNDS", 5).max(1);
    write_shard(&path, number("TFSEEK_COMPRESSED", 256) << 20);
    let indexes: Vec<_> = SPACINGS.iter().map(|spacing| dir.path().join(format!("{spacing}"))).collect();
    for (spacing, index) in SPACINGS.iter().zip(&indexes) {
        check(&path, &open(&path, index, *spacing));
    }
    let bytes = in_order(&path);
    let (mut sequential, mut reads, mut epochs) =
        (vec![], vec![vec![]; SPACINGS.len()], vec![vec![]; BLOCKS.len()]);
    for round in 0..rounds {
        let start = Instant::now();
        in_order(&path);
        sequential.push(start.elapsed());
        for ((spacing, index), times) in SPACINGS.iter().zip(&indexes).zip(&mut reads) {
            times.push(random_reads(&open(&path, index, *spacing), round));
        }
        for (block, times) in BLOCKS.iter().zip(&mut epochs) {
            times.push(epoch(&open(&path, &indexes[2], SPACINGS[2]), *block, round));
        }
    }
    let sequential = median(sequential);
    let size = fs::metadata(&path).unwrap().len();
    println!(
        "{:.0} MB, {:.0} MB compressed; in order {:.0} MB/s",
        bytes as f64 / 1e6,
        size as f64 / 1e6,
        bytes as f64 / 1e6 / sequential
    );
    println!(
        "\n| Spacing | Index, % of the file | Random read | Decompression of half the spacing | Ratio |\n| --- | --- | --- | --- | --- |"
    );
    for ((spacing, index), times) in SPACINGS.iter().zip(&indexes).zip(reads) {
        let files = fs::read_dir(index).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        let percent = 100.0 * files.sum::<u64>() as f64 / size as f64;
        let (read, half) = (median(times), sequential * *spacing as f64 / 2.0 / bytes as f64);
        println!(
            "| {} KiB | {percent:.1} | {:.3} ms | {:.3} ms | {:.2} |",
            spacing >> 10,
            read * 1e3,
            half * 1e3,
            read / half
        );
    }
    println!(
        "\n| Block order, windows of {WINDOW} | Rate | Part of the rate in order | Useful part of the decompression |\n| --- | --- | --- | --- |"
    );
    for (block, times) in BLOCKS.iter().zip(epochs) {
        let time = median(times);
        let useful = 1.0 / (1.0 + SPACINGS[2] as f64 / 2.0 / *block as f64);
        println!(
            "| blocks of {} MiB | {:.0} MB/s | {:.2} | {useful:.2} |",
            block >> 20,
            bytes as f64 / 1e6 / time,
            sequential / time
        );
    }
}
