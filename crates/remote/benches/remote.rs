//! Objects over a link of 200 MB/s with 25 MB/s a connection, compared with a bare client of the same server:
//! it requests pieces of 8 MiB, 16 at a time.
//!
//! `TFSEEK_REMOTE=N` sets the size of the large shard in MiB, by default 1024. `TFSEEK_ROUNDS` sets the
//! number of rounds, by default 3. All ways run in turn in each round, and the table has the medians. Copies
//! are written below `TFSEEK_DIR`, by default the current folder. `TFSEEK_LATENCIES` sets the latencies in
//! ms, by default `5,20,50,100`.
//!
//! Then epochs of loaders over `TFSEEK_EPOCH` MiB in four shards, by default 512: their part of the bare
//! client's rate, and of the rate that 256 requests at a time allow; the time that a trainer waits which
//! takes 0.8 of the link, after its first batch and after its first window, whose batches need most of its
//! blocks; and the second epoch from a cache on disk, beside the same loader over local files.
//!
//! Then the first batch of 1,000 shards of 256 KiB in a block order, from the opening of their pack on, as
//! seconds and as latencies. `TFSEEK_FIRST=0` leaves it out.
//!
//! With `TFSEEK_SERVE=1` it serves an object of `TFSEEK_EPOCH` MiB of records of 100 KB, and each record as
//! an object, at the first latency, over a link of `TFSEEK_LINK` MB/s, by default 200, prints its address,
//! and reads nothing: for `benches/peers/python/remote.py`.
//!
//! Then a set of `TFSEEK_OBJECTS` small shards, by default 100,000: listings, and opening it from a pack,
//! without a limit of the link. The listing of Azure is that in a row.

#[path = "../src/tests/server/mod.rs"]
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
use tfseek::{Dataset, DatasetOptions, IndexMode, Shuffle};
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
    Arc::new(RemoteStore::new(options(server)))
}

fn options(server: &Server) -> RemoteOptions {
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
    options
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
    let latencies: Vec<u64> = latencies
        .split(',')
        .filter(|text| !text.is_empty())
        .map(|text| text.trim().parse().unwrap())
        .collect();
    if number("TFSEEK_SERVE", 0) > 0 {
        serve(latencies[0]);
    }
    if number("TFSEEK_REMOTE", 1024) > 0 {
        large_objects(rounds, &latencies);
    }
    if number("TFSEEK_EPOCH", 512) > 0 {
        epochs(rounds, &latencies);
    }
    if number("TFSEEK_FIRST", 1) > 0 {
        first_batch(rounds, &latencies);
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

/// Serves an object until the process is killed.
fn serve(latency: u64) {
    let server = Server::start();
    let shard = shard(number("TFSEEK_EPOCH", 512) << 20, RECORD);
    for (k, frame) in shard.chunks_exact(RECORD + 16).enumerate() {
        server.set(&format!("bucket/raw/{k:05}.bin"), frame[12..RECORD + 12].to_vec());
    }
    server.set("bucket/serve.tfrecord", shard);
    server.latency(Duration::from_millis(latency));
    server.rates(number("TFSEEK_LINK", LINK / 1_000_000) * 1_000_000, CONNECTION);
    println!("{}", server.url());
    loop {
        thread::park();
    }
}

fn first_batch(rounds: u64, latencies: &[u64]) {
    let server = Server::start();
    let names: Vec<String> = (0..1000).map(|k| format!("bucket/train-{k:05}-of-01000.tfrecord")).collect();
    names.iter().for_each(|name| server.set(name, shard(256 << 10, 2000)));
    let urls: Vec<_> = names.iter().map(|name| format!("s3://{name}").into()).collect();
    let options = IndexOptions::new().default_dirs(None, None).store(store(&server));
    tfseek::index::write_pack("train", &urls, &options).unwrap();
    println!(
        "\nThe first batch of 1,000 shards.\n\n| Latency | Seconds | MB | Requests | Of this, transfer | Latencies |\n| --- | --- | --- | --- | --- | --- |"
    );
    for latency in latencies {
        server.latency(Duration::from_millis(*latency));
        server.rates(LINK, CONNECTION);
        let mut runs = Runs::default();
        for _ in 0..rounds {
            let mut seconds = 0.0;
            runs.run(&server, || {
                let start = Instant::now();
                let index = IndexOptions::new().default_dirs(None, None);
                let options = DatasetOptions::new().index(index).store(store(&server));
                let ds = options.open("s3://bucket/.tfseek/train.tfrp").unwrap();
                let mut loader =
                    ds.record_loader().batch_size(BATCH).shuffle(Shuffle::Block).seed(3).build().unwrap();
                let step = loader.next().unwrap().unwrap();
                seconds = start.elapsed().as_secs_f64();
                assert_eq!(step.ids.len() as u64, BATCH);
            });
            runs.0.last_mut().unwrap().0 = seconds;
        }
        let (seconds, bytes, requests, _) = runs.median();
        // Each record is in another shard, which is one block.
        let transfer = (BATCH * (256 << 10)) as f64 / LINK as f64;
        println!(
            "| {latency} ms | {seconds:.3} | {:.1} | {requests} | {transfer:.3} | {:.1} |",
            bytes as f64 / 1e6,
            (seconds - transfer) / (*latency as f64 / 1e3)
        );
    }
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

/// Four shards of records of one size, on the server and in a folder, with an index of both.
struct Epochs {
    record: usize,
    bytes: u64,
    dir: tempfile::TempDir,
}

/// Samples of a batch, and bytes of a window of its block order: four blocks a sample.
const BATCH: u64 = 32;
const WINDOW: u64 = (4 * BATCH) << 20;

impl Epochs {
    fn new(server: &Server, record: usize) -> Epochs {
        let bytes = number("TFSEEK_EPOCH", 512) << 18;
        let (dir, mut sum) =
            (tempfile::tempdir_in(std::env::var_os("TFSEEK_DIR").unwrap_or_else(|| ".".into())).unwrap(), 0);
        std::fs::create_dir(dir.path().join("data")).unwrap();
        for k in 0..4 {
            let shard = shard(bytes, record);
            sum += shard.len() as u64;
            std::fs::write(dir.path().join(format!("data/{record}-{k}.tfrecord")), &shard).unwrap();
            server.set(&format!("bucket/epochs/{record}-{k}.tfrecord"), shard);
        }
        let epochs = Epochs { record, bytes: sum, dir };
        epochs.open(server, None);
        epochs.files();
        epochs
    }

    fn index(&self) -> IndexOptions {
        IndexOptions::new().default_dirs(None, Some(self.dir.path().join("index")))
    }

    fn open(&self, server: &Server, cache: Option<&std::path::Path>) -> Dataset {
        let mut options = options(server);
        if let Some(cache) = cache {
            (options.cache_dir, options.cache_bytes) = (Some(cache.into()), Some(1 << 40));
        }
        let store = Arc::new(RemoteStore::new(options));
        let options = DatasetOptions::new().index(self.index()).store(store);
        options.open(format!("s3://bucket/epochs/{}-*", self.record)).unwrap()
    }

    fn files(&self) -> Dataset {
        DatasetOptions::new().index(self.index()).open(self.dir.path().join("data/*")).unwrap()
    }

    /// Reads an epoch. With a `rate` in bytes per second, a trainer takes that much. Returns how long it
    /// waited after the first batch, and after the first window.
    fn read(&self, ds: &Dataset, shuffle: &Shuffle, rate: Option<u64>) -> [Duration; 2] {
        let mut loader =
            ds.record_loader().batch_size(BATCH).shuffle(shuffle.clone()).seed(3).build().unwrap();
        let (mut bytes, mut waited) = (0, [Duration::ZERO; 2]);
        loop {
            let start = Instant::now();
            let Some(step) = loader.next() else { break };
            let step = step.unwrap();
            for (waited, after) in waited.iter_mut().zip([0, WINDOW]) {
                if bytes > after {
                    *waited += start.elapsed();
                }
            }
            let batch: u64 =
                step.records().unwrap().map(|record| record.unwrap().payload().len() as u64).sum();
            bytes += batch;
            if let Some(rate) = rate {
                thread::sleep(Duration::from_secs_f64(batch as f64 / rate as f64));
            }
        }
        assert_eq!(bytes, self.bytes / (self.record as u64 + 16) * self.record as u64);
        waited
    }
}

fn epochs(rounds: u64, latencies: &[u64]) {
    let server = Server::start();
    let sets = [1000, 100_000, 1_000_000].map(|record| Epochs::new(&server, record));
    let ways = [
        ("in order", 0, Shuffle::None),
        ("in order", 1, Shuffle::None),
        ("block", 0, Shuffle::Block),
        ("block", 1, Shuffle::Block),
        ("global", 1, Shuffle::Global),
        ("global", 2, Shuffle::Global),
    ];
    let allowed = RemoteOptions::default().requests;
    println!(
        "\nEpochs of {} MB, in batches of {BATCH}. The ratio is of the bare client's rate, or of {allowed} requests at a time if that is less.\n\n\
         | Order | Record | Latency | MB/s | MB | Requests | At a time | Ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
        sets[1].bytes / 1_000_000
    );
    for latency in latencies {
        server.latency(Duration::from_millis(*latency));
        server.rates(LINK, CONNECTION);
        let (mut limit, mut runs): (Runs, [Runs; 6]) = Default::default();
        let mut waits: [Vec<[Duration; 2]>; 6] = Default::default();
        for _ in 0..rounds {
            limit.run(&server, || {
                (0..4).for_each(|k| {
                    bare(server.address, &format!("/bucket/epochs/100000-{k}.tfrecord"), sets[1].bytes / 4)
                });
            });
            for ((_, set, shuffle), runs) in ways.iter().zip(&mut runs) {
                let ds = sets[*set].open(&server, None);
                runs.run(&server, || _ = sets[*set].read(&ds, shuffle, None));
            }
            for ((_, set, shuffle), waits) in ways.iter().zip(&mut waits) {
                if *set == 1 {
                    let ds = sets[1].open(&server, None);
                    waits.push(sets[1].read(&ds, shuffle, Some(LINK / 10 * 8)));
                }
            }
        }
        let limit = sets[1].bytes as f64 / limit.median().0;
        println!("| bare | | {latency} ms | {:.0} | | | | |", limit / 1e6);
        for ((order, set, _), runs) in ways.iter().zip(&mut runs) {
            let (set, (seconds, bytes, requests, most)) = (&sets[*set], runs.median());
            let rate = set.bytes as f64 / seconds;
            let of_requests = match *order {
                "global" => allowed as f64 / (*latency as f64 / 1e3) * set.record as f64,
                _ => f64::INFINITY,
            };
            println!(
                "| {order} | {} | {latency} ms | {:.0} | {:.0} | {requests} | {most} | {:.2} |",
                set.record,
                rate / 1e6,
                bytes as f64 / 1e6,
                rate / limit.min(of_requests)
            );
        }
        for ((order, ..), waits) in ways.iter().zip(&mut waits).filter(|(_, waits)| !waits.is_empty()) {
            waits.sort();
            let [first, later] = waits[waits.len() / 2].map(|waited| waited.as_secs_f64());
            println!(
                "| {order}, a trainer of 0.8 | 100000 | {latency} ms | waited {first:.2} s, after a window {later:.2} s | | | | |"
            );
        }
    }
    let mut runs: [Runs; 4] = Default::default();
    for (k, set) in sets[..2].iter().enumerate() {
        let cache = set.dir.path().join("cache");
        let ds = set.open(&server, Some(&cache));
        set.read(&ds, &Shuffle::Block, None);
        thread::sleep(Duration::from_secs(2));
        let files = set.files();
        for _ in 0..rounds {
            runs[2 * k].run(&server, || _ = set.read(&ds, &Shuffle::Block, None));
            runs[2 * k + 1].run(&server, || _ = set.read(&files, &Shuffle::Block, None));
        }
        let [(cached, _, requests, _), (files, ..)] = [2 * k, 2 * k + 1].map(|k| runs[k].median());
        println!(
            "| block, epoch 2 from the cache | {} | | {:.0} | | {requests} | | {:.2} of files |",
            set.record,
            set.bytes as f64 / cached / 1e6,
            files / cached
        );
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
