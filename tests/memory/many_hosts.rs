//! Plans for many hosts: shares of a dataset that does not fit on this machine, and the bytes that a block
//! order makes each host fetch.
//!
//! The ignored test makes 10^9 records in 10,000 shards. The shards are hard links to 16 files, and so are
//! their sidecars, so the dataset takes 200 MB on the disk. Every call is that of a real dataset. It prints
//! the tables of docs/engines.md.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::order::{LastBatch, Order, RankShare, Spec};
use tfseek::{Dataset, DatasetOptions, IndexMode, Part};
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::{built_beside, options, write};

const HOSTS: [u64; 6] = [1, 2, 4, 8, 64, 1024];
/// Payloads are shorter than this.
const MAX_LEN: usize = 192;
/// Files that shards are links to.
const FILES: usize = 16;

fn name(shard: usize) -> String {
    format!("part-{shard:05}.tfrecord")
}

/// Makes a dataset of `shards` shards with `records` records each, with an index.
fn make(dir: &Path, shards: usize, records: usize) -> Dataset {
    let mut rng = Rng::new(records as u64);
    let mut paths = Vec::new();
    for shard in 0..FILES.min(shards) {
        let mut bytes = Vec::new();
        for _ in 0..records {
            put_record(&mut bytes, &[7; MAX_LEN][..rng.below(MAX_LEN)]).unwrap();
        }
        paths.push(write(dir, &name(shard), &bytes));
    }
    built_beside(&paths, &options()).unwrap();
    let sidecars = dir.join(".tfseek");
    for shard in FILES..shards {
        let (from, to) = (name(shard % FILES), name(shard));
        fs::hard_link(dir.join(&from), dir.join(&to)).unwrap();
        fs::hard_link(sidecars.join(from + ".tfri"), sidecars.join(to + ".tfri")).unwrap();
    }
    let ds = open(dir);
    assert_eq!(ds.len(), (shards * records) as u64);
    ds
}

fn open(dir: &Path) -> Dataset {
    DatasetOptions::new().index(options().mode(IndexMode::Require)).open(dir).unwrap()
}

/// What a plan takes.
struct Plan {
    parts: usize,
    time: Duration,
    /// Bytes of JSON: of all parts, and of the longest list of one host.
    json: usize,
    longest: usize,
    /// Peak of the bytes allocated by a call that has the sidecars, and by the first call, which reads one
    /// for each border.
    memory: u64,
    first: u64,
    /// Largest difference between a share and the n-th part of all bytes, in bytes.
    difference: u64,
}

/// Divides a dataset into `hosts` shares. Checks that they are disjoint, complete and equal within one
/// record.
fn plan(ds: &Dataset, hosts: u64) -> Plan {
    let started = Instant::now();
    let (shares, first) = alloc::most_held(usize::MAX, || ds.shares(hosts).unwrap());
    let time = started.elapsed();
    let (again, memory) = alloc::most_held(usize::MAX, || ds.shares(hosts).unwrap());
    assert_eq!(shares, again);
    let size = |part: &Part| part.bytes.end - part.bytes.start;
    let total: u64 = shares.iter().flatten().map(size).sum();
    assert_eq!(shares.len() as u64, hosts);
    assert_eq!(
        total,
        shares.iter().flatten().filter(|part| part.ordinal == 0).map(|part| part.size).sum::<u64>()
    );

    let (mut next, mut last, mut difference) = (0, None::<&Part>, 0);
    for share in &shares {
        for part in share {
            assert_eq!(part.first, next);
            match last.filter(|last| last.shard == part.shard) {
                Some(last) => assert_eq!(part.bytes.start, last.bytes.end),
                None => {
                    assert_eq!(part.bytes.start, 0);
                    assert!(last.is_none_or(|last| last.bytes.end == last.size));
                }
            }
            (next, last) = (next + part.records.unwrap(), Some(part));
        }
        let here: u64 = share.iter().map(size).sum();
        difference = difference.max((u128::from(here) * u128::from(hosts)).abs_diff(total.into()));
    }
    assert_eq!(next, ds.len());
    let difference = (difference / u128::from(hosts)) as u64;
    assert!(difference < (MAX_LEN + OVERHEAD) as u64, "{hosts} hosts: {difference}");

    let json: Vec<usize> =
        shares.iter().map(|share| share.iter().map(|part| part.to_json().len()).sum()).collect();
    Plan {
        parts: shares.iter().map(Vec::len).sum(),
        time,
        json: json.iter().sum(),
        longest: json.into_iter().max().unwrap(),
        memory,
        first,
        difference,
    }
}

/// Returns, for each number of hosts, the blocks that each host fetches in an epoch of a block order, as a
/// fraction of all blocks: the mean over the hosts. A host keeps the blocks of two windows, so it fetches a
/// block once.
fn fetched(n: u64, block: u64, window: u64, batch: u64) -> Vec<f64> {
    let finest = *HOSTS.last().unwrap();
    assert_eq!(batch % finest, 0);
    let order = Order::new(&Spec::Block { block, window }, n, 42, 0).unwrap();
    let blocks = n.div_ceil(block) as usize;
    // Hosts per block, one bit each. Hosts of a smaller number are groups of neighbours: each has a range of
    // every global batch.
    let words = finest as usize / 64;
    let mut touched = vec![0u64; blocks * words];
    let mut records = vec![0; 1 << 16];
    let mut start = 0;
    while start < n {
        let len = records.len().min((n - start) as usize);
        order.fill(start, &mut records[..len]).unwrap();
        for (position, record) in (start..).zip(&records[..len]) {
            let host = (position % batch / (batch / finest)) as usize;
            touched[(record / block) as usize * words + host / 64] |= 1 << (host % 64);
        }
        start += len as u64;
    }
    HOSTS
        .iter()
        .map(|hosts| {
            let group = (finest / hosts) as usize;
            let has = |block: &[u64], host: usize| {
                (host * group..(host + 1) * group).any(|bit| block[bit / 64] >> (bit % 64) & 1 == 1)
            };
            let pairs: usize = touched
                .chunks(words)
                .map(|block| (0..*hosts as usize).filter(|host| has(block, *host)).count())
                .sum();
            pairs as f64 / blocks as f64 / *hosts as f64
        })
        .collect()
}

#[test]
fn shares_for_a_thousand_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let ds = make(dir.path(), 40, 500);
    let plans: Vec<Plan> = HOSTS.iter().map(|hosts| plan(&ds, *hosts)).collect();
    for (plan, hosts) in plans.iter().zip(HOSTS) {
        // Each border inside a shard makes one part more.
        assert!((plan.parts as u64) < 40 + hosts, "{}", plan.parts);
        assert!(
            plan.memory < 1000 * plan.parts as u64 + 20_000,
            "{} parts, {} bytes",
            plan.parts,
            plan.memory
        );
    }
}

/// The arithmetic of [`fetched`] is that of the ranks of a loader.
#[test]
fn blocks_of_each_host() {
    let (n, block, window, batch) = (50_000, 100, 16, 1024);
    let order = Order::new(&Spec::Block { block, window }, n, 42, 0).unwrap();
    for (hosts, found) in HOSTS.into_iter().zip(fetched(n, block, window, batch)) {
        let mut pairs = std::collections::HashSet::new();
        for host in 0..hosts {
            let share = RankShare::new(n, batch, host, hosts, LastBatch::Pad).unwrap();
            for run in
                (0..share.steps()).flat_map(|step| share.step(step).unwrap()).filter(|run| !run.padding)
            {
                pairs.extend((run.start..run.start + run.len).map(|t| (host, order.get(t).unwrap() / block)));
            }
        }
        let want = pairs.len() as f64 / (n / block) as f64 / hosts as f64;
        // A last batch that is not full is divided in another way.
        assert!((found - want).abs() < 0.02, "{hosts} hosts: {found}, {want}");
    }
}

#[test]
#[ignore = "10^9 records: about a minute with --release"]
fn a_billion_records() {
    println!(
        "| Records | Shards | Hosts | Parts | Time | Memory | With sidecars | JSON | JSON of one host | Largest difference |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for shards in [100, 1_000, 10_000] {
        let dir = tempfile::tempdir().unwrap();
        drop(make(dir.path(), shards, 100_000));
        for hosts in HOSTS {
            // Opened again for each row, so that each plan begins without open sidecars.
            let ds = open(dir.path());
            let found = plan(&ds, hosts);
            println!(
                "| 10^{} | {shards} | {hosts} | {} | {:.1} ms | {:.1} MB | {:.1} MB | {:.2} MB | {:.1} KB | {} bytes |",
                ds.len().ilog10(),
                found.parts,
                found.time.as_secs_f64() * 1e3,
                found.memory as f64 / 1e6,
                found.first as f64 / 1e6,
                found.json as f64 / 1e6,
                found.longest as f64 / 1e3,
                found.difference,
            );
        }
    }
    println!(
        "\n| Records | Records of a block | Hosts | Blocks that a host fetches | Bytes of a host | All hosts fetch |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (len, n, block) in [(110, 1_000_000_000, 9_532), (100_000, 2_000_000, 10)] {
        for (hosts, share) in HOSTS.into_iter().zip(fetched(n, block, 4096, 1024)) {
            println!(
                "| {n} of {len} bytes | {block} | {hosts} | {:.1} % | {:.0} GB | {:.1} datasets |",
                share * 100.0,
                share * (n * len) as f64 / 1e9,
                share * hosts as f64,
            );
        }
    }
}
