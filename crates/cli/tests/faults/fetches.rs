//! Fetches that a power failure ends at any moment, and are run again; and the cache of objects.

#[path = "../../../remote/src/tests/server/mod.rs"]
mod server;

use crate::common::*;
use crate::power::{Recording, State, Tries};
use crate::support::*;
use server::Server;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use tfseek_remote::{RemoteOptions, RemoteStore};
use tfseek_tools::WriteProgress;
use tfseek_tools::fetch::{FetchOptions, FetchPlan};

/// A fetch: its URL, the split and the condition.
#[derive(Clone, Copy)]
struct Request {
    url: &'static str,
    split: Option<&'static str>,
    filter: Option<&'static str>,
}

const fn of_url(url: &'static str) -> Request {
    Request { url, split: None, filter: None }
}

const SET: Request = of_url("s3://bucket/set/x-*");
/// A set in folders in folders.
const DEEP: Request = of_url("s3://bucket/deep/*/in/x.tfrecord");
const DATA_SET: Request = of_url("s3://bucket/robot");
const SPLIT: Request = Request { split: Some("train[:4]"), ..DATA_SET };
/// The records of two shards of the first version of the set, and of one shard of the second version.
const SOME: Request = Request { filter: Some("label in 1300..2149"), ..SET };
/// A shard of two pieces.
const LARGE: Request = of_url("s3://bucket/large/x-*");

/// A server, and a folder into which objects are fetched, and which is recorded.
struct Served {
    dir: Folder,
    root: TempDir,
    server: Server,
    store: Arc<RemoteStore>,
}

impl Served {
    fn new() -> Served {
        let server = Server::start();
        let variables = variables(&server);
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
        let mut options = RemoteOptions::default();
        options.variables = Some(variables.collect());
        // Nothing waits for a disk there.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let store = Arc::new(RemoteStore::new(options));
        let served = Served { dir: Folder::new(), root: root.unwrap(), server, store };
        served.put(1);
        let mut large = labels_of(0..100);
        for payload in [vec![7; 5000], vec![0; 8 << 20], vec![7; 5000]] {
            tfseek::frame::put_record(&mut large, &payload).unwrap();
        }
        served.server.set("bucket/large/x-00000-of-00002.tfrecord", labels_of(0..300));
        served.server.set("bucket/large/x-00001-of-00002.tfrecord", large);
        served
    }

    /// Puts a version of all sets on the server. Objects have equal sizes in all versions.
    fn put(&self, version: i64) {
        for k in 0..3 {
            let labels = 1000 * version + 300 * k..1000 * version + 300 * (k + 1);
            self.server.set(&format!("bucket/set/x-{k:05}-of-00003.tfrecord"), labels_of(labels));
        }
        for folder in ["a", "b"] {
            self.server.set(&format!("bucket/deep/{folder}/in/x.tfrecord"), labels_of(0..200));
        }
        let first = 10 * version as usize;
        self.dir.robot(&[&robot::episodes(first, &[3, 1, 4]), &robot::episodes(first + 3, &[5, 2])]);
        for entry in fs::read_dir(self.dir.path("robot")).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            self.server.set(&format!("bucket/robot/{name}"), fs::read(entry.path()).unwrap());
        }
    }

    fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns the command with the variables of the server.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.dir.command(args);
        command.envs(variables(&self.server));
        command
    }

    /// Makes a request by the command, which is recorded.
    fn record(&self, recorder: &Shim, request: Request) -> Recording {
        let url =
            request.url.to_owned() + &request.split.map_or_else(String::new, |split| format!("[{split}]"));
        let to = self.root().join("to");
        let mut args = vec!["fetch", &*url, to.to_str().unwrap()];
        args.extend(request.filter.into_iter().flat_map(|filter| ["--where", filter]));
        Recording::of(self.root(), |variables| {
            let mut command = self.command(&args);
            recorder.preload(&mut command, variables);
            let ran = Ran::limited(command, &self.dir);
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        })
    }

    /// Makes a request in this process.
    fn fetch(&self, Request { url, split, filter }: Request) -> Result<(), String> {
        let mut options = FetchOptions::new(self.store.clone(), url, self.root().join("to"));
        options.split = split.map(str::to_owned);
        options.filter = filter.map(|filter| filter.parse().unwrap());
        let plan = FetchPlan::new(&options).map_err(|e| e.to_string())?;
        let report = plan.run(&WriteProgress::default()).map_err(|e| e.to_string())?;
        if report.damaged.is_empty() { Ok(()) } else { Err(format!("{:?}", report.damaged)) }
    }

    /// Returns the files of a request that begins with these files.
    fn fetched(&self, request: Request, before: &Files) -> Files {
        self.restore(&State { files: before.clone(), ..State::default() });
        self.fetch(request).unwrap();
        files(self.root())
    }

    fn restore(&self, state: &State) {
        for entry in fs::read_dir(self.root()).unwrap().map(Result::unwrap) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
        state.folders.iter().for_each(|folder| fs::create_dir_all(self.root().join(folder)).unwrap());
        restore(self.root(), &state.files);
    }
}

fn labels_of(range: Range<i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    labels(range).iter().for_each(|label| tfseek::frame::put_record(&mut bytes, label).unwrap());
    bytes
}

/// Returns the variables of a command that finds all stores on the server.
fn variables(server: &Server) -> [(&'static str, String); 3] {
    let nowhere = "http://127.0.0.1:1".to_owned();
    [
        ("AWS_ENDPOINT_URL", server.url()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_METADATA_ENDPOINT", nowhere),
    ]
}

/// Returns true for the journal, and for a file that is not complete.
fn is_hidden(path: &Path) -> bool {
    path.starts_with("to/.tfseek-fetch") || path.ends_with(".tfseek/fetch.json.new")
}

/// Checks what the folder of a state tells: each file with its name is the old or the new one, and where the
/// fetch is said to be complete, all are new.
fn check_statements(state: &State, before: &Files, after: &Files) -> Result<(), String> {
    for (path, bytes) in state.files.iter().filter(|(path, _)| !is_hidden(path)) {
        if ![before.get(path), after.get(path)].contains(&Some(bytes)) {
            return Err(format!("{} is neither old nor new", path.display()));
        }
    }
    let is = |wanted: &Files| wanted.iter().all(|(path, bytes)| state.files.get(path) == Some(bytes));
    let is_shard = |(path, _): &(&PathBuf, &Vec<u8>)| path.to_str().unwrap().contains(".tfrecord");
    let of_shards = |files: &Files| -> Files {
        files.iter().filter(is_shard).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
    };
    if state.is_end && !is(after) {
        return Err("the run has succeeded, and files are not there".into());
    }
    for mark in ["to/.tfseek/fetch.json", "to/dataset_info.json"].map(Path::new) {
        let found = state.files.get(mark);
        if found.is_none() || found != after.get(mark) {
            continue;
        }
        let is_old = found == before.get(mark) && is(&of_shards(before));
        if !is_old && !is(&of_shards(after)) {
            return Err(format!("{} is there, and files are not", mark.display()));
        }
    }
    Ok(())
}

/// A request that begins with some files, and was recorded.
struct Recorded<'s> {
    served: &'s Served,
    request: Request,
    before: &'s Files,
    after: Files,
    recording: Recording,
}

impl<'s> Recorded<'s> {
    fn new(served: &'s Served, recorder: &Shim, request: Request, before: &'s Files) -> Recorded<'s> {
        let after = served.fetched(request, before);
        served.restore(&State { files: before.clone(), ..State::default() });
        let recording = served.record(recorder, request);
        assert!(files(served.root()) == after, "{}", request.url);
        Recorded { served, request, before, after, recording }
    }

    /// Checks a state, and makes the request again in it.
    fn check(&self, state: &State) -> Result<(), String> {
        let context = format!("{}, {} files before, {}", self.request.url, self.before.len(), state.origin);
        check_statements(state, self.before, &self.after).map_err(|reason| format!("{reason}: {context}"))?;
        self.served.restore(state);
        self.served.fetch(self.request).map_err(|reason| format!("{reason}: {context}"))?;
        if files(self.served.root()) != self.after {
            return Err(format!("complete, with other files: {context}"));
        }
        Ok(())
    }

    fn check_states(&self, tries: Tries) {
        let states = self.recording.each_state(tries, |state| assert_eq!(self.check(&state), Ok(())));
        println!("`fetch {}`: {} moments, {states} states", self.request.url, self.recording.moments());
    }

    /// Returns the number of waits for the disk, and of those without which no state is wrong.
    fn needless_waits(&self, tries: Tries) -> [usize; 2] {
        let syncs = self.recording.syncs();
        let is_needless = |sync: &&Vec<usize>| {
            let mut is_right = true;
            let recording = self.recording.clone().without(sync);
            recording.each_state(tries, |state| is_right = is_right && self.check(&state).is_ok());
            is_right
        };
        [syncs.len(), syncs.iter().filter(is_needless).count()]
    }
}

fn check_fetches(name: &str, tries: Tries) {
    let Some(recorder) = Shim::recorder(name) else { return };
    let served = Served::new();
    let new = [SET, DEEP, DATA_SET, SPLIT, SOME];
    for request in new {
        Recorded::new(&served, &recorder, request, &Files::new()).check_states(tries);
    }
    // Objects that were replaced by others of the same size.
    let replaced = [SET, DATA_SET, SOME];
    let old = replaced.map(|request| served.fetched(request, &Files::new()));
    served.put(2);
    for (request, old) in replaced.into_iter().zip(&old) {
        Recorded::new(&served, &recorder, request, old).check_states(tries);
    }
    // A run that goes on with what another one left.
    let tries = Tries { of_moment: 0, seeds: tries.seeds / 8 };
    let nothing = Files::new();
    let run = Recorded::new(&served, &recorder, LARGE, &nothing);
    run.check_states(tries);
    let mut left = Vec::new();
    run.recording.each_state(Tries { of_moment: 1, seeds: 0 }, |state| left.push(state.files));
    for part in 1..3 {
        Recorded::new(&served, &recorder, LARGE, &left[left.len() * part / 3]).check_states(tries);
    }
}

#[test]
fn a_fetch_goes_on_after_a_power_failure() {
    check_fetches("power-fetches", Tries { of_moment: 8, seeds: 60 });
}

#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn thousands_of_fetches_go_on_after_power_failures() {
    check_fetches("powers-fetches", Tries { of_moment: 20, seeds: 3000 });
}

/// A run without one of its waits for the disk is found. After the sync of a folder, others need none.
#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn a_fetch_that_does_not_wait_for_the_disk_is_found() {
    let Some(recorder) = Shim::recorder("fetches-without-a-wait") else { return };
    let served = Served::new();
    let nothing = Files::new();
    let old = served.fetched(SET, &nothing);
    for (request, before) in [(DEEP, &nothing), (SPLIT, &nothing), (SET, &old)] {
        served.put(if before.is_empty() { 1 } else { 2 });
        let tries = Tries { of_moment: 4, seeds: 1000 };
        let waits = Recorded::new(&served, &recorder, request, before).needless_waits(tries);
        println!("`fetch {}`: {waits:?} waits, and needless ones", request.url);
        assert!(waits[1] <= 7 && waits[0] >= waits[1] + 8, "{waits:?}");
    }
}

/// Looks at the states of a cache of objects and of their indexes. An epoch is right in each, and leaves no
/// piece that is wrong. After a whole one nothing is requested.
fn check_cache(name: &str, tries: Tries) {
    let Some(recorder) = Shim::recorder(name) else { return };
    let served = Served::new();
    let command = || {
        let mut command =
            served.command(&["epoch", "-b", "16", "--threads", "1", "--json", "--shuffle", "block", SET.url]);
        command.env("XDG_CACHE_HOME", served.root()).env("TFSEEK_CACHE_DIR", served.root().join("pieces"));
        command.env("TFSEEK_CACHE_BYTES", "100000000");
        command
    };
    let sum = |ran: &Ran, context: &str| -> String {
        assert_eq!(ran.code, 0, "{context}: {}", ran.err);
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        format!("{} of {}", report["sum"], report["records"])
    };
    let cached = || {
        let mut found = files(served.root());
        // A process that ends while it writes a piece leaves such files, which are none or count for seconds.
        found.retain(|path, _| !path.extension().is_some_and(|end| end == "lease" || end == "tmp"));
        found
    };
    let mut expected = String::new();
    let mut record = |_| {
        served.restore(&State::default());
        let recording = Recording::of(served.root(), |variables| {
            let mut command = command();
            recorder.preload(&mut command, variables);
            expected = sum(&Ran::limited(command, &served.dir), "recorded");
        });
        let whole = cached();
        // An index and a piece of each shard. The command may have ended before it wrote all.
        (whole.len() == 6).then_some((recording, whole))
    };
    let (recording, whole) = (0..100).find_map(&mut record).expect("a run that writes all");
    let mut torn = 0;
    let states = recording.each_state(tries, |state| {
        served.restore(&state);
        let found = cached();
        served.restore(&State { files: found.clone(), ..State::default() });
        served.server.counts();
        let ran = Ran::limited(command(), &served.dir);
        assert_eq!(sum(&ran, &state.origin), expected, "{}", state.origin);
        if found == whole {
            assert_eq!(served.server.counts().gets, 0, "{}", state.origin);
        }
        let wrong = |files: &Files| -> Vec<PathBuf> {
            files
                .iter()
                .filter(|(path, bytes)| whole.get(*path) != Some(bytes))
                .map(|file| file.0.clone())
                .collect()
        };
        torn += usize::from(!wrong(&found).is_empty());
        assert_eq!(wrong(&cached()), Vec::<PathBuf>::new(), "{}", state.origin);
    });
    assert!(torn > 0);
    println!("a cache: {} moments, {states} states, {torn} torn", recording.moments());
}

#[test]
fn a_cache_has_no_wrong_piece_after_a_power_failure() {
    check_cache("power-cache", Tries { of_moment: 1, seeds: 60 });
}

#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn thousands_of_caches_after_power_failures() {
    check_cache("powers-cache", Tries { of_moment: 20, seeds: 3000 });
}
