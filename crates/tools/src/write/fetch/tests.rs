//! Fetches from a store in memory, with faults.

use super::*;
use crate::error::FetchReason;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use tfseek::frame::put_record;
use tfseek::io::Store;
use tfseek::io::{Fetched, Listing, Object, Region, Source, Stamp};
use tfseek::{Compression, DatasetOptions, IndexMode, error::IndexError};
use tfseek_testkit::labelled::{labels, shard};

/// A fault of a request.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// This bit of the object is another one.
    Flip(usize),
    /// The object is replaced before it is read.
    Replace(Vec<u8>),
    /// Requests of this byte fail.
    Broken(u64),
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Bytes and versions.
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    faults: Vec<(String, Fault, usize)>,
    /// The ranges that were requested.
    log: Vec<(String, Range<u64>)>,
    puts: usize,
    /// Objects have no time and no version.
    nameless: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<State>>);

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn set(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.state();
        state.puts += 1;
        let version = state.puts as u64;
        state.objects.insert(format!("mem://b/{name}"), (bytes, version));
    }

    pub(super) fn fail(&self, name: &str, fault: Fault, times: usize) {
        self.state().faults.push((format!("mem://b/{name}"), fault, times));
    }

    /// Returns the requests since the last call, sorted.
    pub(super) fn requests(&self) -> Vec<(String, u64)> {
        let log = std::mem::take(&mut self.state().log);
        let mut log: Vec<_> =
            log.into_iter().map(|(url, range)| (url.replace("mem://b/", ""), range.start / PIECE)).collect();
        log.sort();
        log
    }
}

#[derive(Debug)]
struct OneObject {
    memory: Memory,
    object: Object,
}

impl Source for OneObject {
    fn name(&self) -> &str {
        &self.object.url
    }

    fn len(&self) -> u64 {
        self.object.stamp.size
    }

    fn stamp(&self) -> tfseek::Result<Stamp> {
        Ok(self.object.stamp.clone())
    }

    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> tfseek::Result<Fetched> {
        let url = self.object.url.to_string();
        let mut state = self.memory.state();
        state.log.push((url.clone(), range.clone()));
        let mut flip = None;
        if let Some(fault) = state.faults.iter_mut().find(|(of, _, left)| *of == url && *left > 0) {
            let is_here = |at: usize| range.contains(&(at as u64 / 8));
            match fault.1.clone() {
                Fault::Flip(at) if !is_here(at) => {}
                Fault::Flip(at) => {
                    fault.2 -= 1;
                    flip = Some(at);
                }
                Fault::Replace(bytes) => {
                    fault.2 -= 1;
                    drop(state);
                    self.memory.set(url.strip_prefix("mem://b/").unwrap(), bytes);
                    state = self.memory.state();
                }
                Fault::Broken(at) if !range.contains(&at) => {}
                Fault::Broken(_) => {
                    fault.2 -= 1;
                    return Err(io::Error::other("the line broke").into());
                }
            }
        }
        let (bytes, version) = &state.objects[&url];
        if !state.nameless && self.object.stamp.version.as_deref() != Some(&*version.to_string()) {
            let stale = IndexError::Stale { reason: "its version is another".into() };
            return Err(tfseek::Error::from(ErrorKind::Index(stale)).in_file(url.as_ref()));
        }
        let mut bytes = bytes[range.start as usize..range.end as usize].to_vec();
        if let Some(at) = flip {
            bytes[at / 8 - range.start as usize] ^= 1 << (at % 8);
        }
        buf.append(&mut bytes);
        Ok(Fetched::Appended)
    }
}

impl Store for Memory {
    fn list(&self, prefix: &str, deep: bool) -> tfseek::Result<Listing> {
        let mut listing = Listing::default();
        let mut folders = BTreeSet::new();
        let state = self.state();
        for (url, (bytes, version)) in &state.objects {
            let Some(rest) = url.strip_prefix(prefix) else { continue };
            if let Some(at) = rest.find('/').filter(|_| !deep) {
                folders.insert(format!("{prefix}{}", &rest[..=at]).into());
                continue;
            }
            let mut stamp = Stamp::new(bytes.len() as u64);
            if state.nameless {
                listing.objects.push(Object { url: url.as_str().into(), stamp });
                continue;
            }
            stamp.version = Some(version.to_string().into());
            stamp.modified_ns = Some(1_600_000_000_000_000_000 + *version as i64 * 1_000_000_000);
            listing.objects.push(Object { url: url.as_str().into(), stamp });
        }
        listing.folders = folders.into_iter().collect();
        Ok(listing)
    }

    fn open(&self, object: &Object) -> tfseek::Result<Arc<dyn Source>> {
        Ok(Arc::new(OneObject { memory: self.clone(), object: object.clone() }))
    }

    fn small(&self, url: &str, _: u64) -> tfseek::Result<Option<(Region, Stamp)>> {
        let state = self.state();
        Ok(state.objects.get(url).map(|(bytes, _)| (bytes.clone().into(), Stamp::new(bytes.len() as u64))))
    }

    fn put(&self, _: &str, _: &[u8]) -> tfseek::Result<()> {
        panic!("a fetch writes nothing");
    }
}

const NAMES: [&str; 3] =
    ["x-00000-of-00003.tfrecord", "x-00001-of-00003.tfrecord", "x-00002-of-00003.tfrecord"];

/// Returns the bytes of a shard of several pieces.
fn large(first: i64) -> Vec<u8> {
    let mut bytes = shard(first..first + 10);
    for k in 0..9 {
        put_record(&mut bytes, &vec![k; 2_500_000 + usize::from(k)]).unwrap();
    }
    bytes
}

/// A store with three shards, one of three pieces, and a folder that does not exist.
struct Case {
    memory: Memory,
    dir: tempfile::TempDir,
    bytes: Vec<Vec<u8>>,
}

impl Case {
    fn new() -> Case {
        let memory = Memory::default();
        let dir = tempfile::tempdir().unwrap();
        let bytes = vec![shard(0..30), large(30), shard(50..70)];
        for (name, bytes) in NAMES.iter().zip(&bytes) {
            memory.set(name, bytes.clone());
        }
        Case { memory, dir, bytes }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("to/here")
    }

    fn options(&self) -> FetchOptions {
        FetchOptions::new(Arc::new(self.memory.clone()), "mem://b/x-*", self.folder())
    }

    fn run(&self, options: &FetchOptions) -> Result<FetchReport, ToolsError> {
        FetchPlan::new(options)?.run(&WriteProgress::default())
    }

    /// Returns the paths of all files, hidden ones too.
    fn files(&self) -> Vec<String> {
        fn walk(at: &Path, root: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, found)
                } else {
                    found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.folder(), &self.folder(), &mut found);
        found.sort();
        found
    }

    fn assert_whole(&self) {
        assert_eq!(self.files(), [&[".tfseek/fetch.json"], &NAMES[..]].concat());
        for (name, bytes) in NAMES.iter().zip(&self.bytes) {
            assert!(fs::read(self.folder().join(name)).unwrap() == *bytes, "{name}");
        }
    }
}

fn pieces(of: &[(usize, u64)]) -> Vec<(String, u64)> {
    of.iter().map(|(shard, piece)| (NAMES[*shard].to_owned(), *piece)).collect()
}

const ALL: [(usize, u64); 5] = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)];

#[test]
fn shards_are_copied_with_their_times_and_nothing_is_asked_for_twice() {
    let case = Case::new();
    let plan = FetchPlan::new(&case.options()).unwrap();
    let estimate = plan.estimate().unwrap();
    let bytes: u64 = case.bytes.iter().map(|bytes| bytes.len() as u64).sum();
    assert_eq!((estimate.files, estimate.bytes, estimate.requests), (3, bytes, 5));
    assert!(case.memory.requests().is_empty() && !case.folder().exists());
    let expected = Arc::new(AtomicU64::new(0));
    let advanced = Arc::new(AtomicU64::new(0));
    let a = expected.clone();
    let b = advanced.clone();
    let progress = WriteProgress {
        expect: Arc::new(move |bytes| a.store(bytes, Relaxed)),
        advance: Arc::new(move |bytes| {
            b.fetch_add(bytes, Relaxed);
            ControlFlow::Continue(())
        }),
    };
    let report = plan.run(&progress).unwrap();
    assert_eq!((report.files, report.records, report.bytes), (3, 69, bytes));
    assert_eq!((report.fetched, report.requests, report.found), (bytes, 5, 0));
    assert_eq!((expected.load(Relaxed), advanced.load(Relaxed)), (bytes, bytes));
    assert_eq!(case.memory.requests(), pieces(&ALL));
    case.assert_whole();
    let time = fs::metadata(case.folder().join(NAMES[1])).unwrap().modified().unwrap();
    assert_eq!(time.duration_since(std::time::UNIX_EPOCH).unwrap(), Duration::from_secs(1_600_000_002));
    // The same command again asks for nothing, also beside an index.
    DatasetOptions::new().open(case.folder()).unwrap();
    fs::create_dir_all(case.folder().join(".tfseek")).unwrap();
    fs::write(case.folder().join(".tfseek/x.tfrp"), "").unwrap();
    let report = case.run(&case.options()).unwrap();
    assert_eq!((report.files, report.fetched, report.requests), (3, 0, 0));
    assert!(case.memory.requests().is_empty());
    assert_eq!(FetchPlan::new(&case.options()).unwrap().estimate().unwrap().bytes_left, 0);
}

/// Requests of the last piece of the large shard fail, and those before it were written.
fn begun() -> Case {
    let case = Case::new();
    case.memory.fail(NAMES[1], Fault::Broken(2 * PIECE), usize::MAX);
    let e = case.run(&case.options()).unwrap_err().to_string();
    assert!(e.contains("the line broke"), "{e}");
    case.memory.state().faults.clear();
    let of_large = case.memory.requests().into_iter().filter(|piece| piece.0 == NAMES[1]);
    assert_eq!(of_large.collect::<Vec<_>>(), pieces(&[(1, 0), (1, 1), (1, 2)]));
    case
}

/// Returns the pieces of the large shard that a second run requests.
fn second_run(case: &Case) -> Vec<(String, u64)> {
    let left = FetchPlan::new(&case.options()).unwrap().estimate().unwrap();
    assert!((1..=3).contains(&left.requests) && left.files_left >= 1, "{left:?}");
    case.run(&case.options()).unwrap();
    case.assert_whole();
    case.memory.requests().into_iter().filter(|piece| piece.0 == NAMES[1]).collect()
}

#[test]
fn a_run_goes_on_where_another_one_ended() {
    assert_eq!(second_run(&begun()), pieces(&[(1, 2)]));
}

#[test]
fn pieces_that_the_disk_lost_are_fetched_again() {
    let case = begun();
    let part = case.folder().join(HIDDEN).join(hidden(NAMES[1], "part"));
    let mut bytes = fs::read(&part).unwrap();
    bytes[7] ^= 1;
    fs::write(&part, bytes).unwrap();
    assert_eq!(second_run(&case), pieces(&[(1, 0), (1, 2)]));
}

#[test]
fn damage_on_the_way_is_fetched_again_and_damage_in_the_store_is_told() {
    let case = Case::new();
    // In the payload of a record that begins in the first piece.
    let at = (PIECE as usize + 5) * 8 + 3;
    case.memory.fail(NAMES[1], Fault::Flip(at), 1);
    let report = case.run(&case.options()).unwrap();
    assert!(report.damaged.is_empty());
    case.assert_whole();
    assert_eq!(case.memory.requests(), pieces(&[(0, 0), (1, 0), (1, 0), (1, 1), (1, 1), (1, 2), (2, 0)]));

    let case = Case::new();
    case.memory.fail(NAMES[1], Fault::Flip(at), usize::MAX);
    let report = case.run(&case.options()).unwrap();
    let told = report.damaged[0].to_string();
    assert!(
        told.contains(NAMES[1]) && told.contains("record 13 at byte 7500876") && report.damaged.len() == 1,
        "{told}"
    );
    assert_eq!((report.files, report.records), (2, 50));
    assert!(case.files().contains(&NAMES[2].to_owned()) && !case.files().contains(&NAMES[1].to_owned()));
    // It is told as often as it is there, until it is taken as it is.
    let report = case.run(&case.options()).unwrap();
    assert_eq!(report.damaged.len(), 1);
    let mut options = case.options();
    options.keep_damaged = true;
    case.memory.requests();
    let report = case.run(&options).unwrap();
    assert_eq!((report.damaged.len(), report.kept.len(), report.files), (0, 1, 3));
    let damaged = fs::read(case.folder().join(NAMES[1])).unwrap();
    assert!(damaged.iter().zip(&case.bytes[1]).filter(|(a, b)| a != b).count() == 1);
    assert_eq!(damaged.len(), case.bytes[1].len());
    let report = case.run(&case.options()).unwrap();
    assert_eq!((report.files, report.requests), (3, 0));
}

#[test]
fn an_object_that_is_replaced_begins_again_once() {
    let case = Case::new();
    let new = shard(100..140);
    case.memory.fail(NAMES[1], Fault::Replace(new.clone()), 1);
    let report = case.run(&case.options()).unwrap();
    assert_eq!((report.begun_again, report.records), (vec![NAMES[1].to_owned()], 90));
    assert!(fs::read(case.folder().join(NAMES[1])).unwrap() == new);
    case.memory.set(NAMES[0], shard(7..9));
    let report = case.run(&case.options()).unwrap();
    assert_eq!((report.begun_again, report.records), (vec![NAMES[0].to_owned()], 62));
    assert!(fs::read(case.folder().join(NAMES[0])).unwrap() == shard(7..9));

    let case = Case::new();
    case.memory.fail(NAMES[1], Fault::Replace(large(3)), 2);
    let e = case.run(&case.options()).unwrap_err().to_string();
    assert!(e.contains("version is another") && e.contains(NAMES[1]), "{e}");
}

/// Without a time and a version nothing tells that an object is the same, so bytes of an earlier one are not
/// kept.
#[test]
fn objects_without_an_identity_are_fetched_again() {
    let case = Case::new();
    case.memory.state().nameless = true;
    for k in [1, 2] {
        let mut new = Vec::new();
        (0..60).for_each(|_| put_record(&mut new, &[k; 500]).unwrap());
        case.memory.set(NAMES[0], new.clone());
        let report = case.run(&case.options()).unwrap();
        assert!(fs::read(case.folder().join(NAMES[0])).unwrap() == new);
        assert!(report.requests > 0);
    }
}

#[test]
fn other_folders_are_left_alone() {
    let case = Case::new();
    fs::create_dir_all(case.folder()).unwrap();
    fs::write(case.folder().join(NAMES[0]), "mine").unwrap();
    let e = case.run(&case.options()).unwrap_err();
    assert!(matches!(e, ToolsError::Fetch(FetchReason::Foreign(_))), "{e}");
    assert_eq!((case.files(), case.memory.requests().len()), (vec![NAMES[0].to_owned()], 0));
    fs::remove_file(case.folder().join(NAMES[0])).unwrap();
    case.run(&case.options()).unwrap();
    let before = case.files();
    let mut other = case.options();
    other.url = format!("mem://b/{}", NAMES[0]);
    let e = FetchPlan::new(&other).unwrap().estimate().unwrap_err();
    assert!(matches!(e, ToolsError::Fetch(FetchReason::OtherFetch { .. })), "{e}");
    let mut filtered = case.options();
    filtered.filter = Some("label > 3".parse().unwrap());
    assert!(case.run(&filtered).unwrap_err().to_string().contains("found that of mem://b/x-*"));
    assert_eq!(case.files(), before);
}

#[test]
fn one_process_at_a_time_fetches_into_a_folder() {
    let case = Case::new();
    fs::create_dir_all(case.folder()).unwrap();
    let lock = lock_folder(&case.folder()).unwrap();
    let e = case.run(&case.options()).unwrap_err();
    assert!(matches!(e, ToolsError::Fetch(FetchReason::Busy(_))), "{e}");
    drop(lock);
    case.run(&case.options()).unwrap();
    case.assert_whole();
}

#[test]
fn selected_records_are_a_new_set() {
    let case = Case::new();
    let mut options = case.options();
    options.filter = Some("label >= 55 or label in 2, 4".parse().unwrap());
    case.memory.set(NAMES[1], shard(30..50));
    let report = case.run(&options).unwrap();
    assert_eq!((report.files, report.records, report.unseen.len()), (2, 17, 0));
    let names = ["x-00000-of-00002.tfrecord", "x-00001-of-00002.tfrecord"];
    assert_eq!(case.files(), [".tfseek/fetch.json", names[0], names[1]]);
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(case.folder()).unwrap();
    assert_eq!(labels(&ds), [2, 4].into_iter().chain(55..70).collect::<Vec<_>>());
    assert_eq!(case.run(&options).unwrap().requests, 0);
    case.memory.requests();
    assert_eq!(case.run(&options).unwrap().requests, 0);
    assert!(case.memory.requests().is_empty());
    options.folder = case.dir.path().join("other");
    options.filter = Some("lable > 3".parse().unwrap());
    let e = case.run(&options).unwrap_err().to_string();
    assert!(e.contains("lable"), "{e}");
    options.filter = Some("record < 3".parse().unwrap());
    let e = case.run(&options).unwrap_err();
    assert!(matches!(e, ToolsError::Fetch(FetchReason::NumbersInCondition)), "{e}");
}

#[test]
fn a_replaced_object_changes_the_names_of_a_new_set() {
    let case = Case::new();
    case.memory.set(NAMES[1], shard(30..50));
    let mut options = case.options();
    options.filter = Some("label in 3, 33, 53, 103".parse().unwrap());
    let names = |n: usize| (0..n).map(|k| format!("x-{k:05}-of-{n:05}.tfrecord")).collect::<Vec<_>>();
    let files = || case.files().into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>();
    let found = || labels(&DatasetOptions::new().index(IndexMode::Memory).open(case.folder()).unwrap());
    for (shards, expected) in [
        ([shard(0..10), shard(30..50), shard(50..70)], vec![3, 33, 53]),
        ([shard(7..9), shard(30..50), shard(50..70)], vec![33, 53]),
        ([shard(7..9), shard(8..9), shard(50..70)], vec![53]),
        ([shard(0..10), shard(100..110), shard(50..70)], vec![3, 103, 53]),
        ([shard(0..10), shard(30..33), shard(50..70)], vec![3, 53]),
    ] {
        for (name, bytes) in NAMES.iter().zip(shards) {
            if case.memory.state().objects[&format!("mem://b/{name}")].0 != bytes {
                case.memory.set(name, bytes);
            }
        }
        // It fails once, and the folder does not belong to something else then.
        case.memory.fail(NAMES[1], Fault::Broken(0), 1);
        let _ = case.run(&options);
        assert_eq!(case.run(&options).unwrap().records as usize, expected.len());
        assert_eq!((files(), found()), (names(expected.len()), expected));
        case.memory.state().faults.clear();
        assert_eq!(case.run(&options).unwrap().requests, 0);
    }
}

#[test]
fn compressed_shards_are_checked_too() {
    let case = Case::new();
    let gz = case.dir.path().join("gz");
    let options = tfseek::writer::WriterOptions {
        compression: Compression::Gzip,
        ..tfseek::writer::WriterOptions::default()
    };
    let mut writer = options.create(&gz).unwrap();
    for (_, payload) in tfseek::frame::frames(&shard(0..40)).map(Result::unwrap) {
        writer.write(payload).unwrap();
    }
    writer.close().unwrap();
    let bytes = fs::read(&gz).unwrap();
    case.memory.set("y.tfrecord.gz", bytes.clone());
    let mut options = case.options();
    options.url = "mem://b/y.tfrecord.gz".into();
    case.memory.fail("y.tfrecord.gz", Fault::Flip(bytes.len() * 4), 1);
    let report = case.run(&options).unwrap();
    assert_eq!((report.records, report.requests), (40, 2));
    assert!(fs::read(case.folder().join("y.tfrecord.gz")).unwrap() == bytes);
}

#[test]
fn a_fetch_can_be_cancelled_while_nothing_arrives() {
    let case = Case::new();
    let progress =
        WriteProgress { advance: Arc::new(|_| ControlFlow::Break(())), ..WriteProgress::default() };
    let e = FetchPlan::new(&case.options()).unwrap().run(&progress).unwrap_err();
    assert!(matches!(&e, ToolsError::Error(e) if matches!(e.kind(), ErrorKind::Cancelled)), "{e}");
    case.run(&case.options()).unwrap();
    case.assert_whole();
}

/// A folder that somebody else prepared, whose list or journal names files of the user: no fetch writes such
/// names.
#[test]
fn a_state_that_names_files_elsewhere_is_refused() {
    let case = Case::new();
    let victim = case.dir.path().join("thesis");
    fs::write(&victim, "ten years of work").unwrap();
    case.run(&case.options()).unwrap();
    let list = case.folder().join(".tfseek/fetch.json");
    let sound = fs::read_to_string(&list).unwrap();
    let absolute = victim.to_str().unwrap();
    let before = case.files();
    for found in [absolute, "../../thesis", "x/../../../thesis", ".tfseek-fetch/journal", "x\ny"] {
        let text = serde_json::Value::from(found).to_string();
        for member in ["path", "name"] {
            let theirs =
                sound.replacen(&format!("\"{member}\":\"{}\"", NAMES[0]), &format!("\"{member}\":{text}"), 1);
            assert_ne!(theirs, sound);
            fs::write(&list, theirs).unwrap();
            for e in [
                case.run(&case.options()).unwrap_err(),
                FetchPlan::new(&case.options()).unwrap().estimate().unwrap_err(),
            ] {
                let ToolsError::Fetch(FetchReason::State { path, found: told }) = &e else { panic!("{e}") };
                assert_eq!((path, &**told), (&list, found));
                assert!(e.to_string().contains("remove this file, or fetch into a new folder"), "{e}");
            }
        }
        fs::remove_file(&list).unwrap();
        let hidden = tfseek::io::HiddenFolder::open(&case.folder().join(HIDDEN), true).unwrap().unwrap();
        let mut earlier = Earlier::new(Stamp::new(17));
        earlier.placed = Some(found.into());
        let request = FetchPlan::new(&case.options()).unwrap().wanted.request;
        Journal::begin(&case.folder(), &hidden, &request, [(NAMES[0], &earlier)].into_iter()).unwrap();
        // A line has no line ends.
        let is_read = !found.contains('\n');
        let e = case.run(&case.options()).unwrap_err();
        assert!(matches!(&e, ToolsError::Fetch(FetchReason::State { .. })) == is_read, "{e}");
        fs::remove_dir_all(case.folder().join(HIDDEN)).unwrap();
        fs::write(&list, &sound).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "ten years of work");
    assert_eq!(case.files(), before);
    assert!(case.memory.requests().len() == ALL.len());
}

#[cfg(unix)]
#[test]
fn links_that_others_put_into_the_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let new = || {
        let case = Case::new();
        let victim = case.dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::create_dir_all(case.folder()).unwrap();
        fs::create_dir(case.dir.path().join("elsewhere")).unwrap();
        (case, victim)
    };
    let kinds = ["part", "ready", "new"];
    let names = NAMES.iter().flat_map(|name| kinds.iter().map(move |kind| hidden(name, kind)));
    for name in names.chain(["journal", "journal.new", "lock"].map(String::from)) {
        for selects in [false, true] {
            let (case, victim) = new();
            fs::create_dir(case.folder().join(HIDDEN)).unwrap();
            symlink(&victim, case.folder().join(HIDDEN).join(&name)).unwrap();
            let mut options = case.options();
            case.memory.set(NAMES[1], shard(30..50));
            if selects {
                options.filter = Some("label >= 0".parse().unwrap());
            }
            assert_eq!(case.run(&options).unwrap().files, 3);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
            assert!(!case.folder().join(HIDDEN).exists());
            for name in NAMES {
                assert!(case.folder().join(name).symlink_metadata().unwrap().is_file(), "{name}");
            }
        }
    }
    for folder in [HIDDEN, ".tfseek"] {
        let (case, _) = new();
        symlink("../../elsewhere", case.folder().join(folder)).unwrap();
        let e = case.run(&case.options()).unwrap_err().to_string();
        assert!(e.contains(folder) && e.contains("found a link, which is not followed"), "{e}");
        assert_eq!(fs::read_dir(case.dir.path().join("elsewhere")).unwrap().count(), 0);
    }
    // Links to a folder, and to a file of the same length, in place of what the fetch wrote.
    let (case, victim) = new();
    case.memory.set("x-sub/y.tfrecord", shard(0..3));
    let mut options = case.options();
    options.url = "mem://b/**/*.tfrecord".into();
    case.run(&options).unwrap();
    fs::write(&victim, vec![0; shard(0..3).len()]).unwrap();
    let [sub, file] = ["x-sub", "x-sub/y.tfrecord"].map(|name| case.folder().join(name));
    fs::remove_file(&file).unwrap();
    symlink(&victim, &file).unwrap();
    assert_eq!(case.run(&options).unwrap().requests, 1);
    assert!(fs::read(&file).unwrap() == shard(0..3) && fs::read(&victim).unwrap()[0] == 0);
    fs::remove_dir_all(&sub).unwrap();
    symlink("../../elsewhere", &sub).unwrap();
    let e = case.run(&options).unwrap_err();
    assert!(matches!(&e, ToolsError::Fetch(FetchReason::Foreign(path)) if *path == sub), "{e}");
    assert_eq!(fs::read_dir(case.dir.path().join("elsewhere")).unwrap().count(), 0);
}
