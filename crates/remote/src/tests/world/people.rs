//! The processes of a world: they open data sets, read records and epochs, are killed and go on, and compare
//! all they get with what is in the stores.

use super::network::Network;
use super::plan::{EpochPlan, Event, Host, ProcessPlan, SHARDS, Work};
use super::server::Stored;
use super::truth::{LENS, Truth, Versions, kind_of, reference};
use super::turns::Turns;
use super::{Process, World, lock};
use crate::{RemoteOptions, RemoteStore};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tfseek::index::IndexOptions;
use tfseek::loader::{Loader, LoaderOptions, Step};
use tfseek::order::State;
use tfseek::{Dataset, DatasetOptions, Error};
use tokio::runtime::Runtime;

/// How often a thread begins a work anew, after errors that may be.
const TRIES: usize = 40;

/// The state that outlives processes.
struct Shared {
    truth: Truth,
    folder: PathBuf,
    /// The place of each thread, by process and thread.
    places: Mutex<HashMap<(usize, usize), Place>>,
}

/// The work that a thread does, and the last state of its epoch.
#[derive(Clone, Default)]
struct Place {
    work: usize,
    epoch: Option<(u64, String)>,
}

/// Runs the processes of a world to their ends. Returns what was wrong first.
pub(super) fn live(world: &Arc<World>, runtime: &Runtime, folder: &Path) -> Option<String> {
    let shared = Arc::new(Shared {
        truth: Truth::new(world.plan.has_versions),
        folder: folder.to_owned(),
        places: Mutex::default(),
    });
    for host in 0..2 {
        for shard in 0..SHARDS {
            put(&world.network, &shared.truth, host, shard);
        }
    }
    let mut events = BTreeMap::<Duration, Vec<Event>>::new();
    for (time, event) in &world.plan.events {
        events.entry(Duration::from_millis(*time)).or_default().push(*event);
    }
    let plans = world.plan.processes.iter().enumerate();
    let mut running: Vec<Arc<Process>> = plans.map(|(k, plan)| begin(world, &shared, k, plan)).collect();
    let ended = world.turns.run(world, runtime, |now| {
        while let Some(due) = events.first_entry().filter(|due| *due.key() <= now) {
            for event in due.remove() {
                let _entered = runtime.enter();
                world.log(|| format!("{event:?}"));
                happen(world, &shared, event, &mut running);
                if let Event::Remove(host, shard) = event {
                    let later = now + Duration::from_millis(700);
                    events.entry(later).or_default().push(Event::Replace(host, shard));
                }
            }
        }
        events.first_key_value().map(|(time, _)| *time)
    });
    world.turns.end(world, runtime);
    ended.err()
}

/// Writes the current version of a shard to its server.
fn put(network: &Network, truth: &Truth, host: Host, shard: usize) {
    network.set(host, &format!("bucket/{}", name(shard)), Some(truth.stored(host, shard)));
}

fn name(shard: usize) -> String {
    format!("data/a-{shard:05}-of-{SHARDS:05}.tfrecord")
}

fn happen(world: &Arc<World>, shared: &Arc<Shared>, event: Event, running: &mut [Arc<Process>]) {
    match event {
        Event::Replace(host, shard) => {
            shared.truth.change(host, shard);
            put(&world.network, &shared.truth, host, shard);
        }
        Event::Remove(host, shard) => {
            shared.truth.remove(host, shard);
            world.network.set(host, &format!("bucket/{}", name(shard)), None::<Stored>);
        }
        Event::Kill(k) => {
            let Some(process) = running.get_mut(k) else { return };
            process.is_killed.store(true, Relaxed);
            *process = begin(world, shared, k, &world.plan.processes[k]);
        }
        Event::FlipCached(at) => with_file(&shared.folder, at, |path| {
            let mut bytes = fs::read(path).unwrap();
            if !bytes.is_empty() {
                let at = (at >> 8) as usize % bytes.len();
                bytes[at] ^= 1;
                fs::write(path, bytes).unwrap();
            }
        }),
        Event::CutCached(at) => with_file(&shared.folder, at, |path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }),
        Event::DeleteCached(at) => with_file(&shared.folder, at, |path| fs::remove_file(path).unwrap()),
        Event::TimeCached(at, later) => with_file(&shared.folder, at, |path| {
            let day = Duration::from_secs(86_400);
            let time = if later { SystemTime::now() + day } else { SystemTime::UNIX_EPOCH + 9000 * day };
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }),
    }
}

/// Calls `f` with one of the files that processes share, if there is one.
fn with_file(folder: &Path, at: u64, f: impl FnOnce(&Path)) {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    // Names of files that are being written have the number of the process.
    files.retain(|file| file.extension().is_none_or(|extension| extension != "tmp"));
    files.sort();
    if !files.is_empty() {
        f(&files[at as usize % files.len()]);
    }
}

/// Starts a process, whose threads go on where those of the last one were.
fn begin(world: &Arc<World>, shared: &Arc<Shared>, k: usize, plan: &ProcessPlan) -> Arc<Process> {
    let process = world.new_process();
    let mut options = RemoteOptions::default();
    let server = if plan.host == 0 { "http://one.test" } else { "http://two.test" };
    let variables =
        [("AWS_ENDPOINT_URL", server), ("AWS_ALLOW_HTTP", "true"), ("AWS_SKIP_SIGNATURE", "true")];
    options.variables = Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    (options.requests, options.memory) = (plan.requests, plan.memory);
    if plan.is_cached {
        options.cache_dir = Some(shared.folder.join("cache"));
        options.cache_bytes = Some(world.plan.cache_bytes);
    }
    let store = Arc::new(RemoteStore::new(options));
    for (thread, works) in plan.threads.iter().cloned().enumerate() {
        let mut person = Person {
            world: world.clone(),
            shared: shared.clone(),
            host: plan.host,
            key: (k, thread),
            store: store.clone(),
            opened: None,
        };
        Turns::add(world, &process, move || person.work(&works));
    }
    process
}

/// A thread of a process.
struct Person {
    world: Arc<World>,
    shared: Arc<Shared>,
    host: Host,
    key: (usize, usize),
    store: Arc<RemoteStore>,
    opened: Option<Opened>,
}

/// A data set, and the versions of its shards that it may have.
struct Opened {
    ds: Dataset,
    versions: Versions,
}

/// Why a work was not done.
enum Failed {
    /// An error that may be, after which a thread begins anew.
    Allowed,
    Wrong(String),
}

impl Person {
    fn work(&mut self, works: &[Work]) -> Result<(), String> {
        let mut tries = 0;
        loop {
            let place = lock(&self.shared.places).entry(self.key).or_default().clone();
            let Some(work) = works.get(place.work) else { return self.leave() };
            let done = match work {
                Work::Open => self.open().map(drop),
                Work::Records(at) => self.records(at),
                Work::Epoch(epoch) => self.epoch(epoch, place.epoch),
            };
            match done {
                Ok(()) => {
                    tries = 0;
                    let place = Place { work: place.work + 1, epoch: None };
                    lock(&self.shared.places).insert(self.key, place);
                }
                Err(Failed::Wrong(text)) => return Err(format!("process {:?}: {text}", self.key)),
                Err(Failed::Allowed) if tries < TRIES => {
                    tries += 1;
                    self.opened = None;
                    // A server that lacks an object has it again after a while.
                    super::pause(Duration::from_millis(50));
                }
                Err(Failed::Allowed) => return Err(format!("process {:?}: {TRIES} errors", self.key)),
            }
            self.world.turns.step();
        }
    }

    /// Drops the data set. What was asked for then ends, and no account has it any more.
    fn leave(&mut self) -> Result<(), String> {
        self.opened = None;
        for _ in 0..1000 {
            if self.store.wrong_account().is_none() {
                return Ok(());
            }
            super::pause(Duration::from_millis(20));
        }
        self.store.wrong_account().map_or(Ok(()), Err)
    }

    /// Opens the data set anew.
    fn open(&mut self) -> Result<(), Failed> {
        let urls: Vec<String> = (0..SHARDS).map(|shard| format!("s3://bucket/{}", name(shard))).collect();
        let index = IndexOptions::new().threads(1).index_dir(self.shared.folder.join("index"));
        let mut versions = self.shared.truth.versions(self.host);
        let opened = DatasetOptions::new().index(index).store(self.store.clone()).open(urls);
        let (name, host) = (self.key, self.host);
        self.world.log(|| format!("process {name:?} opens server {host}: {}", text(&opened)));
        let ds = opened.map_err(|e| self.judge(&e, &versions))?;
        versions.until(&self.shared.truth.versions(self.host));
        if ds.len() != LENS.iter().sum::<u64>() {
            return Err(Failed::Wrong(format!("a data set of {} records", ds.len())));
        }
        self.opened = Some(Opened { ds, versions });
        self.world.turns.step();
        Ok(())
    }

    /// Returns the data set, which is opened if there is none.
    fn opened(&mut self) -> Result<&mut Opened, Failed> {
        if self.opened.is_none() {
            self.open()?;
        }
        self.opened.as_mut().ok_or(Failed::Allowed)
    }

    fn records(&mut self, at: &[u64]) -> Result<(), Failed> {
        let mut buf = Vec::new();
        for at in at {
            let opened = self.opened()?;
            let i = at * opened.ds.len() / 1000;
            let read = opened.ds.read(i, &mut buf).map(|record| record.payload().to_vec());
            let name = self.key;
            self.world.log(|| format!("process {name:?} reads record {i}: {}", text(&read)));
            let Some(opened) = &mut self.opened else { return Err(Failed::Allowed) };
            match read {
                Ok(payload) => {
                    opened.versions.check(&self.shared.truth, i, &payload).map_err(Failed::Wrong)?
                }
                Err(e) => {
                    let versions = opened.versions.clone();
                    return Err(self.judge(&e, &versions));
                }
            }
            self.world.turns.step();
        }
        Ok(())
    }

    fn epoch(&mut self, plan: &EpochPlan, from: Option<(u64, String)>) -> Result<(), Failed> {
        let options = |ds: &Dataset| -> LoaderOptions {
            let options = ds.record_loader().shuffle(plan.shuffle.clone()).seed(plan.seed).threads(0);
            options.rank(plan.rank, plan.ranks).global_batch_size(plan.batch * plan.ranks).damage(plan.damage)
        };
        let expected: Vec<Vec<u64>> =
            options(reference()).build().unwrap().map(|step| step.unwrap().ids.to_vec()).collect();
        let mut at = from.as_ref().map_or(0, |(at, _)| *at);
        let len = expected.len() as u64;
        // The state at the end of an epoch begins the next one.
        if at == len {
            return Ok(());
        }
        let ds = self.opened()?.ds.clone();
        let mut loader = self.resumed(options(&ds), from.map(|(_, state)| state))?;
        loop {
            if plan.leaves == Some(at) {
                return Ok(());
            }
            if plan.resumes.contains(&at) && at < len {
                let state = self.state(&loader)?;
                drop(loader);
                loader = self.resumed(options(&ds), Some(state))?;
            }
            let step = loader.next();
            let name = self.key;
            self.world.log(|| match &step {
                Some(step) => format!("process {name:?} gets batch {at}: {}", text(step)),
                None => format!("process {name:?} ends an epoch after {at} batches"),
            });
            let Some(step) = step else { break };
            self.check(step, expected.get(at as usize))?;
            at += 1;
            let state = self.state(&loader)?;
            if let Some(place) = lock(&self.shared.places).get_mut(&self.key) {
                place.epoch = Some((at, state));
            }
            self.world.turns.step();
        }
        if at == len {
            return Ok(());
        }
        Err(Failed::Wrong(format!("an epoch of {at} batches, and not {len}")))
    }

    fn state(&self, loader: &Loader) -> Result<String, Failed> {
        loader.state().map(|state| state.to_json()).map_err(|e| self.judge_now(&e))
    }

    /// Returns a loader that goes on from a state.
    fn resumed(&self, options: LoaderOptions, state: Option<String>) -> Result<Loader, Failed> {
        let wrong = |e: Error| self.judge_now(&e);
        let mut loader = options.build().map_err(wrong)?;
        if let Some(state) = state {
            let sought = loader.seek(&State::from_json(&state).map_err(wrong)?);
            let is_other = self.shared.truth.changes(self.host) > 0 || self.world.network.flips() > 0;
            if sought.is_err() && is_other {
                // It is a state of other bytes, or an index was made of a flipped bit. The epoch begins anew.
                lock(&self.shared.places).entry(self.key).or_default().epoch = None;
                return Err(Failed::Allowed);
            }
            sought.map_err(wrong)?;
        }
        Ok(loader)
    }

    fn check(&mut self, step: tfseek::Result<Step>, expected: Option<&Vec<u64>>) -> Result<(), Failed> {
        let Some(opened) = &mut self.opened else { return Err(Failed::Allowed) };
        let read = step.and_then(|step| {
            let records: tfseek::Result<Vec<Vec<u8>>> =
                step.records().into_iter().flatten().map(|record| Ok(record?.payload().to_vec())).collect();
            Ok((step.ids.to_vec(), records?))
        });
        let (ids, records) = match read {
            Ok(read) => read,
            Err(e) => {
                let versions = opened.versions.clone();
                return Err(self.judge(&e, &versions));
            }
        };
        if Some(&ids) != expected {
            // Records that came damaged twice are left out.
            if self.world.network.flips() > 1 {
                return Err(Failed::Allowed);
            }
            return Err(Failed::Wrong(format!("a batch of {ids:?}, and not {expected:?}")));
        }
        for (i, payload) in ids.iter().zip(&records) {
            opened.versions.check(&self.shared.truth, *i, payload).map_err(Failed::Wrong)?;
        }
        Ok(())
    }

    /// Returns whether an error of the open data set may be.
    fn judge_now(&self, e: &Error) -> Failed {
        self.opened.as_ref().map_or(Failed::Allowed, |opened| self.judge(e, &opened.versions))
    }

    /// Returns whether an error may be.
    fn judge(&self, e: &Error, versions: &Versions) -> Failed {
        let truth = &self.shared.truth;
        let network = &self.world.network;
        let text = e.to_string();
        let has_versions = self.world.plan.has_versions;
        let has_changed = truth.has_changed(self.host, versions);
        let is_allowed = match kind_of(e) {
            // An index that was made of a flipped bit is of other bytes. No version tells that the object is the same.
            "stale" => has_changed || !has_versions && network.flips() > 0,
            "missing" => truth.has_removed(self.host),
            "damage" => network.flips() > 1 || !has_versions && has_changed,
            // A user does as the error says.
            "index" if self.world.plan.damages_files() => {
                // Another may have done it.
                let _ = fs::remove_dir_all(self.shared.folder.join("index"));
                true
            }
            // A body broke, and its rest is another version's: the error is about the broken body.
            "input" => network.was_wrong() || network.refusals() >= 3 || has_changed,
            _ => false,
        };
        if is_allowed { Failed::Allowed } else { Failed::Wrong(format!("an error without a reason: {text}")) }
    }
}

/// Returns what came of an operation, for the log.
fn text<T>(result: &tfseek::Result<T>) -> String {
    result.as_ref().map_or_else(|e| format!("{e:?}"), |_| "done".to_owned())
}
