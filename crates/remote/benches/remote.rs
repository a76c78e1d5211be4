//! Objects over a link of 200 MB/s with 25 MB/s a connection, compared with a bare client of the same server: it requests pieces of 8 MiB, 16 at a time.
//!
//! `TFSEEK_REMOTE=N` sets the size of the large shard in MiB, by default 1024. `TFSEEK_ROUNDS` sets the number of rounds, by default 3. All ways run in
//! turn in each round, and the table has the medians. Copies are written below `TFSEEK_DIR`, by default the current folder. `TFSEEK_LATENCIES` sets the latencies in ms, by default `5,20,50,100`.
//!
//! Then a set of `TFSEEK_OBJECTS` small shards, by default 100,000: listings, and opening it from a pack, without a limit of the link. The listing of Azure is
//! that in a row.

#[path = "../tests/server/mod.rs"]
mod server;

use server::Server;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::io::Store;
use tfseek::stream::StreamOptions;
use tfseek::{Dataset, DatasetOptions, IndexMode};
use tfseek_remote::{RemoteOptions, RemoteStore};
use tfseek_testkit::bucket::{BucketStore, Manners};
use tfseek_tools::WriteProgress;
use tfseek_tools::fetch::{FetchOptions, FetchPlan};

const LINK: u64 = 200_000_000;
const CONNECTION: u64 = 25_000_000;
/// Bytes of a request of the bare client, and its requests at a time.
const PIECE: u64 = 8 << 20;
const AT_ONCE: usize = 16;
/// Bytes of a payload.
const RECORD: usize = 100_000;
/// Bytes of a payload that scans skip.
const LARGE_RECORD: usize = 10_000_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn shard(bytes: u64, record: usize) -> Vec<u8> {
    let mut shard = Vec::new();
    let payload = vec![7; record];
    while (shard.len() as u64) < bytes {
        put_record(&mut shard, &payload).unwrap();
    }
    shard
}

fn store(server: &Server) -> Arc<RemoteStore> {
    let url = server.url();
    let variables = [
        ("AWS_ENDPOINT_URL", url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_SKIP_SIGNATURE", "true"),
        ("GOOGLE_BASE_URL", &url),
        ("GOOGLE_SKIP_SIGNATURE", "true"),
        ("AZURE_STORAGE_ENDPOINT", &url),
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_ALLOW_HTTP", "true"),
        ("AZURE_SKIP_SIGNATURE", "true"),
    ];
    let mut options = RemoteOptions::default();
    options.variables = Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    Arc::new(RemoteStore::new(options))
}

/// Requests all pieces of an object.
fn bare(address: SocketAddr, path: &str, len: u64) {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(address).unwrap();
                let mut buf = vec![0; 256 << 10];
                loop {
                    let at = next.fetch_add(PIECE, Relaxed);
                    if at >= len {
                        return;
                    }
                    let last = (at + PIECE).min(len) - 1;
                    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes={at}-{last}\r\n\r\n");
                    stream.write_all(head.as_bytes()).unwrap();
                    read_answer(&mut stream, &mut buf, last + 1 - at);
                }
            });
        }
    });
}

/// Reads an answer with a body of `len` bytes.
fn read_answer(stream: &mut TcpStream, buf: &mut [u8], len: u64) {
    let (mut head, mut found) = (Vec::new(), 0);
    while found < len {
        let n = stream.read(buf).unwrap();
        assert!(n > 0, "the answer ended");
        let mut bytes = &buf[..n];
        if found == 0 && !head.ends_with(b"\r\n\r\n") {
            head.extend_from_slice(bytes);
            let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            assert!(head.starts_with(b"HTTP/1.1 206"));
            let rest = head.split_off(end + 4).len();
            bytes = &bytes[n - rest..];
        }
        found += bytes.len() as u64;
    }
    assert_eq!(found, len);
}

fn open(server: &Server, name: &str) -> Dataset {
    let index = IndexOptions::new().default_dirs(None, None).mode(IndexMode::Memory);
    DatasetOptions::new().index(index).store(store(server)).open(format!("s3://bucket/{name}")).unwrap()
}

fn stream(server: &Server, name: &str, records: u64) -> u64 {
    let options = StreamOptions { store: Some(store(server)), ..StreamOptions::default() };
    let mut stream = options.open(format!("s3://bucket/{name}")).unwrap();
    let mut n = 0;
    while n < records && stream.next().unwrap().is_some() {
        n += 1;
    }
    n
}

/// Copies an object to a folder.
fn fetch(server: &Server, len: u64) {
    let dir = tempfile::tempdir_in(std::env::var_os("TFSEEK_DIR").unwrap_or_else(|| ".".into())).unwrap();
    let options = FetchOptions::new(store(server), "s3://bucket/small.tfrecord", dir.path().join("to"));
    let report = FetchPlan::new(&options).unwrap().run(&WriteProgress::default()).unwrap();
    assert_eq!((report.bytes, report.records), (len, len / (RECORD as u64 + 16)));
}

/// The results of one way: seconds, bytes, requests, and the largest number of requests at a time.
#[derive(Default)]
struct Runs(Vec<(f64, u64, u64, u64)>);

impl Runs {
    fn run(&mut self, server: &Server, work: impl FnOnce()) {
        server.counts();
        server.most_at_once();
        let start = Instant::now();
        work();
        let seconds = start.elapsed().as_secs_f64();
        // What was asked for in vain counts.
        while server.running() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let counts = server.counts();
        self.0.push((seconds, counts.bytes, counts.requests, server.most_at_once()));
    }

    fn median(&mut self) -> (f64, u64, u64, u64) {
        self.0.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.0[self.0.len() / 2]
    }
}

fn main() {
    let rounds = number("TFSEEK_ROUNDS", 3).max(1);
    let latencies = std::env::var("TFSEEK_LATENCIES").unwrap_or_else(|_| "5,20,50,100".to_owned());
    let latencies: Vec<u64> = latencies.split(',').map(|text| text.trim().parse().unwrap()).collect();
    if number("TFSEEK_REMOTE", 1024) > 0 {
        large_objects(rounds, &latencies);
    }
    if number("TFSEEK_OBJECTS", 100_000) > 0 {
        many_objects(rounds, &latencies);
    }
}

/// Returns a server with many shards and their pack.
fn many(objects: u64) -> Server {
    let (server, bucket) =
        (Server::start(), BucketStore::new(Manners { latency: Duration::ZERO, ..Manners::BUCKET }));
    let mut urls = Vec::new();
    for k in 0..objects {
        let name = format!("bucket/train-{k:05}-of-{objects:05}.tfrecord");
        let shard = shard(1, 100 + k as usize % 900);
        bucket.set(&format!("s3://{name}"), shard.clone());
        urls.push(format!("s3://{name}").into());
        server.set(&name, shard);
    }
    let options = IndexOptions::new().default_dirs(None, None).store(bucket.store());
    tfseek::index::write_pack("train", &urls, &options).unwrap();
    server.set("bucket/.tfseek/train.tfrp", bucket.get("s3://bucket/.tfseek/train.tfrp").unwrap());
    server
}

fn many_objects(rounds: u64, latencies: &[u64]) {
    let objects = number("TFSEEK_OBJECTS", 100_000);
    let server = many(objects);
    println!(
        "\nA set of {objects} shards.\n\n| What | Latency | Seconds | MB | Requests | At a time |\n| --- | --- | --- | --- | --- | --- |"
    );
    for latency in latencies {
        let mut runs: [Runs; 5] = Default::default();
        let ways =
            ["listing, az", "listing, s3", "listing, gs", "open from a pack, s3", "open from a pack, gs"];
        server.latency(Duration::from_millis(*latency));
        for _ in 0..rounds {
            for (k, scheme) in ["az", "s3", "gs"].into_iter().enumerate() {
                let (store, prefix) = (store(&server), format!("{scheme}://bucket/train-"));
                runs[k].run(&server, || {
                    assert_eq!(store.list(&prefix, false).unwrap().objects.len() as u64, objects);
                });
            }
            for (k, scheme) in ["s3", "gs"].into_iter().enumerate() {
                runs[3 + k].run(&server, || {
                    let index = IndexOptions::new().default_dirs(None, None);
                    let options = DatasetOptions::new().index(index).store(store(&server));
                    let ds = options.open(format!("{scheme}://bucket/.tfseek/train.tfrp")).unwrap();
                    assert_eq!(ds.len(), objects);
                });
            }
        }
        for (what, runs) in ways.iter().zip(&mut runs) {
            let (seconds, bytes, requests, most) = runs.median();
            println!(
                "| {what} | {latency} ms | {seconds:.2} | {:.2} | {requests} | {most} |",
                bytes as f64 / 1e6
            );
        }
    }
}

fn large_objects(rounds: u64, latencies: &[u64]) {
    let server = Server::start();
    let small = shard(number("TFSEEK_REMOTE", 1024) << 20, RECORD);
    let large = shard(number("TFSEEK_REMOTE", 1024) << 20, LARGE_RECORD);
    let lens = [small.len() as u64, large.len() as u64];
    server.set("bucket/small.tfrecord", small);
    server.set("bucket/large.tfrecord", large);
    println!(
        "A shard of {} MB. Bare: pieces of 8 MiB, {AT_ONCE} at a time. The ratio is the bare client's time by the other's.\n",
        lens[0] / 1_000_000
    );
    println!(
        "| What | Latency | Seconds | MB | Requests | At a time | Ratio |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for latency in latencies {
        let mut runs: [Runs; 6] = Default::default();
        server.latency(Duration::from_millis(*latency));
        server.rates(LINK, CONNECTION);
        for _ in 0..rounds {
            runs[0].run(&server, || bare(server.address, "/bucket/small.tfrecord", lens[0]));
            runs[1].run(&server, || {
                assert_eq!(open(&server, "small.tfrecord").len(), lens[0] / (RECORD as u64 + 16));
            });
            runs[2].run(&server, || {
                assert_eq!(stream(&server, "small.tfrecord", u64::MAX), lens[0] / (RECORD as u64 + 16));
            });
            runs[3].run(&server, || assert_eq!(stream(&server, "small.tfrecord", 5), 5));
            runs[4].run(&server, || {
                assert_eq!(open(&server, "large.tfrecord").len(), lens[1] / (LARGE_RECORD as u64 + 16));
            });
            runs[5].run(&server, || fetch(&server, lens[0]));
        }
        let limit = runs[0].median().0;
        let ways = ["bare", "index", "read in order", "5 records", "index of records of 10 MB", "fetch"];
        for (k, (what, runs)) in ways.iter().zip(&mut runs).enumerate() {
            let (seconds, bytes, requests, most) = runs.median();
            let ratio = if k < 3 || k == 5 { format!("{:.2}", limit / seconds) } else { String::new() };
            println!(
                "| {what} | {latency} ms | {seconds:.2} | {:.2} | {requests} | {most} | {ratio} |",
                bytes as f64 / 1e6
            );
        }
    }
}
