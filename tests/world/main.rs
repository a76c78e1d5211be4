//! A world of local files, data sets, streams and loaders, all of it from one seed.
//!
//! One thread makes all events: files are written, grown, replaced and damaged, and processes read them. After
//! each event the results are compared with what was written. `TFSEEK_WORLD=SEED` replays one world with its
//! events, and `TFSEEK_WORLDS=N` tries N of them.

#![cfg(unix)]

mod disk;
mod jobs;
mod readers;
mod sets;

use disk::Disk;
use jobs::{Job, Saved};
use readers::Reader;
use sets::{OpenSet, SetOptions};
use std::rc::Rc;
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::worlds::{self, Class, note, seen};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

/// A request of more bytes fails where memory is scarce.
const SCARCE: usize = 1 << 20;

/// Calls `f`, maybe without memory for large records.
fn attempt<T>(scarce: bool, f: impl FnOnce() -> T) -> T {
    if scarce { alloc::most_held(SCARCE, f).0 } else { f() }
}

/// The kinds of events, and how often each comes among 53.
const KINDS: [&str; 12] = [
    "file", "index", "open", "read", "select", "refresh", "reader", "read on", "job", "step", "save",
    "resume",
];
const WEIGHTS: [usize; 12] = [12, 1, 4, 3, 4, 2, 2, 4, 3, 10, 3, 5];

struct World {
    disk: Disk,
    sets: Vec<Rc<OpenSet>>,
    readers: Vec<Reader>,
    jobs: Vec<Job>,
    saved: Vec<Saved>,
}

impl World {
    fn new(seed: u64) -> World {
        let disk = Disk::new(seed.is_multiple_of(12));
        World { disk, sets: Vec::new(), readers: Vec::new(), jobs: Vec::new(), saved: Vec::new() }
    }

    /// Makes the event of a number.
    fn event(&mut self, draw: u64) {
        let rng = &mut Rng::new(draw);
        let scarce = self.disk.large && rng.chance(48);
        let kinds = KINDS.iter().zip(WEIGHTS).flat_map(|(kind, weight)| std::iter::repeat_n(*kind, weight));
        let kind = rng.pick(&kinds.collect::<Vec<_>>());
        let kind = self.possible(kind);
        note(&format!("{kind}{}", if scarce { " without memory: " } else { ": " }));
        let set = (!self.sets.is_empty()).then(|| Rc::clone(&self.sets[rng.below(self.sets.len())]));
        let text = match (kind, set) {
            ("file", _) => self.disk.change(rng),
            ("index", _) => self.disk.change_index(rng),
            ("open", _) => {
                let options = SetOptions::draw(rng);
                let opened = OpenSet::open(&self.disk, options, scarce);
                self.add_set(opened) + &format!(" by {options:?}")
            }
            ("read", Some(set)) => set.read(&self.disk, rng, scarce),
            ("select", Some(set)) => set.select(&self.disk, rng, scarce),
            ("refresh", Some(set)) => {
                let opened = set.refresh(&self.disk, scarce);
                self.add_set(opened)
            }
            ("reader", _) => {
                self.readers.extend(Reader::open(&self.disk, rng));
                format!("{} readers", self.readers.len())
            }
            ("read on", _) => {
                let k = rng.below(self.readers.len());
                let (text, goes_on) = self.readers[k].step(&self.disk, rng, scarce);
                drop((!goes_on).then(|| self.readers.remove(k)));
                text
            }
            ("job", Some(set)) => self.start_job(rng, set),
            ("step", _) => self.step_job(rng, scarce),
            ("save", _) => {
                let k = rng.below(self.jobs.len());
                self.saved.push(self.jobs[k].save(rng));
                format!("of job {k}")
            }
            ("resume", _) => {
                self.jobs.pop();
                let k = rng.below(self.saved.len());
                let (text, job) = self.saved[k].resume(&self.disk, rng);
                self.jobs.extend(job);
                format!("state {k} {text}")
            }
            (kind, _) => panic!("no event is called {kind}"),
        };
        note(&text);
    }

    /// Returns an event of this kind, or one that has to come before.
    fn possible(&self, kind: &'static str) -> &'static str {
        match kind {
            "read on" if self.readers.is_empty() => self.possible("reader"),
            "resume" if self.saved.is_empty() => self.possible("save"),
            "step" | "save" if self.jobs.is_empty() => self.possible("job"),
            "read" | "select" | "refresh" | "job" if self.sets.is_empty() => self.possible("open"),
            "open" | "reader" if self.disk.names.iter().all(Option::is_none) => "file",
            kind => kind,
        }
    }

    fn add_set(&mut self, opened: Result<OpenSet, Class>) -> String {
        let text = format!("{:?}", opened.as_ref().map(|set| set.view.len()));
        self.sets.extend(opened.ok().map(Rc::new));
        self.sets.drain(..self.sets.len().max(4) - 4);
        text
    }

    fn start_job(&mut self, rng: &mut Rng, set: Rc<OpenSet>) -> String {
        let mut sets = vec![set];
        if rng.chance(128) {
            sets.push(Rc::clone(&self.sets[rng.below(self.sets.len())]));
        }
        if sets.iter().any(|set| set.view.len() == 0 || !set.bind(&self.disk)) {
            return "no records".to_owned();
        }
        let text = format!("{} data sets", sets.len());
        self.jobs.extend(Job::start(&self.disk, rng, sets));
        self.jobs.drain(..self.jobs.len().max(2) - 2);
        text
    }

    fn step_job(&mut self, rng: &mut Rng, scarce: bool) -> String {
        let k = rng.below(self.jobs.len());
        let mut steps = format!("job {k}");
        for _ in 0..1 + rng.below(4) {
            let (text, goes_on) = self.jobs[k].step(&self.disk, rng, scarce);
            steps += &format!("; {text}");
            if !goes_on {
                self.jobs.remove(k);
                break;
            }
        }
        steps
    }
}

#[test]
fn every_result_is_that_of_the_bytes_that_were_opened() {
    let counts = worlds::run("world", 0..200, World::new, World::event);
    let Some(counts) = counts else { return };
    let all = "opened, no memory, read, damaged, changed, access refused, selected, grown, refresh refused, streamed, \
        stream ended, followed, follower refused, batch, batch without damage, batch refused, epoch, resumed, \
        resume refused, other weights";
    let missing: Vec<_> = all.split(", ").filter(|word| !counts.contains_key(word)).collect();
    assert!(missing.is_empty(), "no world had {missing:?}: {counts:?}");
}

#[test]
#[ignore = "takes a quarter of an hour: `make test-slow`"]
fn a_hundred_thousand_worlds() {
    worlds::run("world", 0..100_000, World::new, World::event);
}
