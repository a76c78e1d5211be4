//! Many threads on one dataset, and a long run over a folder that changes.

use crate::common::*;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tfseek::column::ColumnOptions;
use tfseek::index::IndexOptions;
use tfseek::{Dataset, DatasetOptions, IndexMode};
use tfseek_testkit::rng::Rng;

#[test]
fn sixteen_threads_read_at_random() {
    let dir = Folder::new();
    for s in 0..5 {
        dir.shard(&format!("x-{s}"), labels(1000 * s..1000 * s + 1000));
    }
    dir.shard("x-5.gz", labels(5000..6000));
    for mode in [IndexMode::Memory, IndexMode::Auto] {
        let index = IndexOptions::new().mode(mode).index_dir(dir.path("index"));
        let ds = DatasetOptions::new().index(index).open(dir.path("x-*")).unwrap();
        std::thread::scope(|scope| {
            for seed in 0..16 {
                let ds = &ds;
                scope.spawn(move || {
                    let (mut random, mut buf) = (Rng::new(seed), Vec::new());
                    for _ in 0..500 {
                        let i = random.below_u64(ds.len());
                        assert!(ds.read(i, &mut buf).unwrap().payload() == label(i as i64));
                        let ids: Vec<u64> = (0..8).map(|_| random.below_u64(ds.len())).collect();
                        let mut k = 0;
                        let read = ds.read_many(&ids, |record| {
                            assert!(record.payload() == label(ids[k] as i64));
                            k += 1;
                            Ok(())
                        });
                        read.unwrap();
                    }
                });
            }
        });
    }
}

/// A folder of shards that a test changes. Shard `s` of generation `g` has the labels from
/// `1000 s + 100,000 g`.
struct Changing {
    dir: Folder,
    /// Generation and number of records of each shard. `None` if it does not exist.
    shards: Vec<Option<(i64, i64)>>,
}

impl Changing {
    fn path(&self, s: usize) -> PathBuf {
        let ending = if s.is_multiple_of(4) { ".gz" } else { "" };
        self.dir.path(&format!("x-{s:02}{ending}"))
    }

    fn write(&mut self, s: usize, generation: i64, len: i64) {
        let start = 1000 * s as i64 + 100_000 * generation;
        let name = format!("new{}", if s.is_multiple_of(4) { ".gz" } else { "" });
        let new = self.dir.shard(&name, labels(start..start + len));
        fs::rename(new, self.path(s)).unwrap();
        self.shards[s] = Some((generation, len));
    }

    /// Adds, replaces, extends or removes a shard.
    fn change(&mut self, random: &mut Rng) {
        let s = random.below(self.shards.len());
        match (self.shards[s], random.below(4)) {
            (Some(_), 0) if self.shards.iter().flatten().count() > 3 => {
                fs::remove_file(self.path(s)).unwrap();
                self.shards[s] = None;
            }
            (Some((generation, len)), 1 | 2) => self.write(s, generation, len + 1 + random.below(50) as i64),
            (Some((generation, _)), _) => self.write(s, generation + 1, 1 + random.below(200) as i64),
            (None, _) => self.write(s, random.below(5) as i64, 1 + random.below(200) as i64),
        }
    }

    fn labels(&self) -> Vec<i64> {
        let of = |(s, shard): (usize, &Option<(i64, i64)>)| {
            let (generation, len) = (*shard)?;
            let start = 1000 * s as i64 + 100_000 * generation;
            Some(start..start + len)
        };
        self.shards.iter().enumerate().filter_map(of).flatten().collect()
    }
}

/// Returns the resident memory in bytes and the number of open descriptors.
fn resources() -> (u64, usize) {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    (pages * 4096, fs::read_dir("/proc/self/fd").unwrap().count())
}

/// Environment variable that is set in the child process of the long run.
const CHILD: &str = "TFSEEK_TEST_SOAK";

/// The long run has a process of its own, because other tests use memory and descriptors.
#[test]
#[ignore = "takes a minute: `make test-slow`"]
fn resources_return_after_a_long_run() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "soak::as_a_child", "--nocapture"]).env(CHILD, "1");
    let out = child.output().unwrap();
    println!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Not a test: the body of the child process.
#[test]
fn as_a_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let seconds = std::env::var("TFSEEK_SOAK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let mut random = Rng::new(1);
    let mut folder = Changing { dir: Folder::new(), shards: vec![None; 20] };
    (0..10).for_each(|s| folder.write(s, 0, 100));
    let schema = tfseek::Schema::from_json(&folder.dir.run(&["schema", "--json", "x-01"]).out).unwrap();
    let index = IndexOptions::new().index_dir(folder.dir.path("index"));
    let options = DatasetOptions::new().index(index);
    let (start, mut rounds, mut records, mut before) = (Instant::now(), 0u64, 0u64, None);
    while start.elapsed() < Duration::from_secs(seconds) {
        if rounds == 50 {
            before = Some(resources());
        }
        let old: Option<Dataset> = (rounds % 5 == 0).then(|| options.open(folder.dir.path("x-*")).unwrap());
        folder.change(&mut random);
        let wanted = folder.labels();
        let ds = options.open(folder.dir.path("x-*")).unwrap();
        assert_eq!(ds.len(), wanted.len() as u64);
        let mut buf = Vec::new();
        for _ in 0..50 {
            let i = random.below_u64(ds.len());
            assert!(ds.read(i, &mut buf).unwrap().payload() == label(wanted[i as usize]));
        }
        let threads = random.below(3);
        let mut found = Vec::new();
        for step in ds.loader(&schema).batch_size(32).threads(threads).seed(rounds).build().unwrap() {
            found.extend_from_slice(step.unwrap().batch().unwrap().int64("label").unwrap());
        }
        found.sort_unstable();
        let mut sorted = wanted.clone();
        sorted.sort_unstable();
        assert!(found == sorted, "round {rounds}");
        records += found.len() as u64;
        if random.below(4) == 0 {
            let filter = format!("label < {}", wanted[wanted.len() / 2]).parse().unwrap();
            let (some, _) = ds.select(&filter, &ColumnOptions::default()).unwrap();
            assert_eq!(
                some.len(),
                wanted.iter().filter(|&&label| label < wanted[wanted.len() / 2]).count() as u64
            );
        }
        // A dataset from before the change returns its own records or an error.
        if let Some(old) = old {
            let i = random.below_u64(old.len());
            let _ = old.read(i, &mut buf).map(|record| record.payload().len());
        }
        rounds += 1;
    }
    let (before, after) = (before.expect("50 rounds"), resources());
    println!(
        "soak: {seconds} s, {rounds} rounds, {records} records, resident {} and {} bytes",
        before.0, after.0
    );
    assert_eq!(before.1, after.1, "descriptors");
    assert!(after.0 < before.0 + (16 << 20), "{before:?} {after:?}");
}
