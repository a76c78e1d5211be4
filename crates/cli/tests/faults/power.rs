//! A disk that forgets: the states that files may have after a power failure at any moment of a run.
//!
//! `recorder.c` writes down the calls of a run. A state has the effects of all calls before a moment. Of those
//! that were not synced, names may be lost one by one, and the data of a file wholly or in part, by pages,
//! with the length that they give it or without it, or all after one of its writes.
//!
//! With the variable TFSEEK_POWER, a run is looked at in one state only: the one that this seed draws.

use crate::support::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tfseek_testkit::rng::Rng;

/// Bytes that a disk writes together.
const PAGE: usize = 4096;

/// A file or a folder, by its number in a recording. The folder that is recorded is folder 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(usize),
    Folder(usize),
}

/// The names in folders.
type Names = BTreeMap<(usize, String), Node>;

/// Names that change together.
type Renaming = Vec<((usize, String), Option<Node>)>;

/// A change of the bytes of a file.
#[derive(Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

#[derive(Clone)]
enum Event {
    Change(usize, Change),
    Rename(Renaming),
    Sync(usize),
    SyncFolder(usize),
}

/// A state after a power failure.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) files: Files,
    /// The folders, which may have no files.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// True if the run had ended.
    pub(crate) is_end: bool,
    /// Its moment and its number, or the seed that draws it.
    pub(crate) origin: String,
}

/// How many states of a run are looked at.
#[derive(Clone, Copy)]
pub(crate) struct Tries {
    /// The first ones of each moment, which are all if there are fewer.
    pub(crate) of_moment: usize,
    /// The number of seeds, each of which draws a moment and a state.
    pub(crate) seeds: u64,
}

/// The files before a run, and what the run did to them.
#[derive(Clone, Default)]
pub(crate) struct Recording {
    names: Names,
    contents: Vec<Vec<u8>>,
    events: Vec<Event>,
}

/// A reader of the calls of a run.
#[derive(Default)]
struct CallReader {
    nodes: HashMap<u64, Node>,
    /// The names after the calls that were read.
    live: Names,
    folders: usize,
    recording: Recording,
}

impl CallReader {
    /// Reads the files of a folder before a run.
    fn of_folder(root: &Path) -> CallReader {
        let mut reader = CallReader::default();
        reader.add_folder(root, 0);
        reader.recording.names = reader.live.clone();
        reader
    }

    fn add_folder(&mut self, path: &Path, number: usize) {
        self.nodes.insert(fs::metadata(path).unwrap().ino(), Node::Folder(number));
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let inode = entry.metadata().unwrap().ino();
            let node = if entry.file_type().unwrap().is_dir() {
                let folder = self.new_folder(inode);
                self.add_folder(&entry.path(), folder);
                Node::Folder(folder)
            } else {
                self.new_file(inode, fs::read(entry.path()).unwrap())
            };
            self.live.insert((number, name), node);
        }
    }

    fn new_folder(&mut self, inode: u64) -> usize {
        self.folders += 1;
        self.nodes.insert(inode, Node::Folder(self.folders));
        self.folders
    }

    fn new_file(&mut self, inode: u64, bytes: Vec<u8>) -> Node {
        self.recording.contents.push(bytes);
        let node = Node::File(self.recording.contents.len() - 1);
        self.nodes.insert(inode, node);
        node
    }

    /// Returns the folder and the name of a path.
    fn place(&self, path: &str) -> (usize, String) {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let inner = |folder, name: &str| match self.live[&(folder, name.to_owned())] {
            Node::Folder(number) => number,
            Node::File(_) => panic!("{path}: a file in place of a folder"),
        };
        (folders.split('/').filter(|name| !name.is_empty()).fold(0, inner), name.to_owned())
    }

    fn rename(&mut self, changes: Renaming) {
        for (place, node) in &changes {
            match node {
                Some(node) => self.live.insert(place.clone(), *node),
                None => self.live.remove(place),
            };
        }
        self.recording.events.push(Event::Rename(changes));
    }

    fn change(&mut self, node: Node, change: Change) {
        let Node::File(file) = node else { panic!("a write to a folder") };
        self.recording.events.push(Event::Change(file, change));
    }

    /// Reads a call. Returns the number of bytes that follow its line.
    fn read(&mut self, line: &str, rest: &[u8]) -> usize {
        let (call, what) = line.split_once(' ').unwrap();
        let (first, path) = what.split_once(' ').unwrap_or((what, ""));
        let inode = || first.parse::<u64>().unwrap();
        match call {
            "create" => {
                let node = self.new_file(inode(), Vec::new());
                if !path.is_empty() {
                    self.rename(vec![(self.place(path), Some(node))]);
                }
            }
            "mkdir" => {
                let node = Node::Folder(self.new_folder(inode()));
                self.rename(vec![(self.place(path), Some(node))]);
            }
            "link" => self.rename(vec![(self.place(path), Some(self.nodes[&inode()]))]),
            "unlink" | "rmdir" => self.rename(vec![(self.place(what), None)]),
            "rename" => {
                let (from, to) = what.split_once('|').unwrap();
                let node = self.live[&self.place(from)];
                self.rename(vec![(self.place(from), None), (self.place(to), Some(node))]);
            }
            "write" => {
                let (at, len) = path.split_once(' ').unwrap();
                let len = len.parse().unwrap();
                let bytes = rest[..len].to_vec();
                self.change(self.nodes[&inode()], Change::Write { at: at.parse().unwrap(), bytes });
                return len;
            }
            "truncate" => self.change(self.nodes[&inode()], Change::Resize(path.parse().unwrap())),
            "sync" => {
                let Node::File(file) = self.nodes[&inode()] else { panic!("{line}") };
                self.recording.events.push(Event::Sync(file));
            }
            "folder" => {
                let Node::Folder(folder) = self.nodes[&inode()] else { panic!("{line}") };
                self.recording.events.push(Event::SyncFolder(folder));
            }
            _ => panic!("{line}"),
        }
        0
    }
}

impl Recording {
    /// Records a run in the folder `root`. `run` is called with the variables of the recorder.
    pub(crate) fn of(root: &Path, run: impl FnOnce(&[(&str, String)])) -> Recording {
        let root = root.canonicalize().unwrap();
        let calls = tempfile::NamedTempFile::new().unwrap();
        let mut reader = CallReader::of_folder(&root);
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        run(&[("TFSEEK_ROOT", text(&root)), ("TFSEEK_CALLS", text(calls.path()))]);
        let calls = fs::read(calls.path()).unwrap();
        let mut rest = &calls[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = str::from_utf8(&rest[..end]).unwrap();
            rest = &rest[end + 1..];
            let bytes = reader.read(line, rest);
            rest = &rest[bytes..];
        }
        let recording = reader.recording;
        // What a disk has that forgets nothing.
        let disk = recording.disk(recording.events.len());
        let mut expected = disk.state(&mut Choices::default()).files;
        expected.retain(|path, _| !is_of_recorder(path));
        let mut found = files(&root);
        found.retain(|path, _| !is_of_recorder(path));
        assert!(found == expected, "the recorder has not seen each call");
        recording
    }

    /// Returns the number of moments at which the power may fail.
    pub(crate) fn moments(&self) -> usize {
        self.events.len() + 1
    }

    /// Returns the numbers of the calls that wait for the disk, with those of one file between two writes
    /// together.
    pub(crate) fn syncs(&self) -> Vec<Vec<usize>> {
        let mut found: Vec<Vec<usize>> = Vec::new();
        // The calls of a file since it was written last.
        let mut last: HashMap<usize, usize> = HashMap::new();
        for (k, event) in self.events.iter().enumerate() {
            match event {
                Event::Change(file, _) => drop(last.remove(file)),
                Event::Sync(file) if last.contains_key(file) => found[last[file]].push(k),
                Event::Sync(file) => {
                    last.insert(*file, found.len());
                    found.push(vec![k]);
                }
                Event::SyncFolder(_) => found.push(vec![k]),
                Event::Rename(_) => {}
            }
        }
        found
    }

    /// Leaves out calls.
    pub(crate) fn without(mut self, calls: &[usize]) -> Recording {
        let mut k = 0;
        self.events.retain(|_| {
            k += 1;
            !calls.contains(&(k - 1))
        });
        self
    }

    /// Returns what the disk has at a moment.
    fn disk(&self, moment: usize) -> Disk<'_> {
        let mut disk = Disk {
            names: self.names.clone(),
            contents: self.contents.clone(),
            renamings: Vec::new(),
            changes: self.contents.iter().map(|_| Vec::new()).collect(),
        };
        for event in &self.events[..moment] {
            match event {
                Event::Change(file, change) => disk.changes[*file].push(change),
                Event::Rename(changes) => disk.renamings.push(changes),
                Event::Sync(file) => {
                    for change in std::mem::take(&mut disk.changes[*file]) {
                        apply(&mut disk.contents[*file], change);
                    }
                }
                Event::SyncFolder(folder) => {
                    let is_in = |changes: &&Renaming| changes.iter().any(|((of, _), _)| of == folder);
                    let (synced, rest): (Vec<_>, Vec<_>) = disk.renamings.into_iter().partition(is_in);
                    synced.into_iter().for_each(|changes| rename(&mut disk.names, changes));
                    disk.renamings = rest;
                }
            }
        }
        disk
    }

    /// Calls `check` with states of all moments, each once, and returns their number.
    pub(crate) fn each_state(&self, tries: Tries, mut check: impl FnMut(State)) -> usize {
        let only: Option<u64> = std::env::var("TFSEEK_POWER").ok().map(|seed| seed.parse().unwrap());
        let of_moment = if only.is_some() { 0 } else { tries.of_moment };
        let seeds = only.map_or(0..tries.seeds, |seed| seed..seed + 1);
        let mut drawn: Vec<(usize, u64)> =
            seeds.map(|seed| (Rng::new(seed).below(self.moments()), seed)).collect();
        drawn.sort_unstable();
        let mut drawn = drawn.into_iter().peekable();
        let mut seen = BTreeSet::new();
        for moment in 0..self.moments() {
            let disk = self.disk(moment);
            let mut look = |choices: &mut Choices, origin: String| {
                let mut state = disk.state(choices);
                state.files.retain(|path, _| !is_of_recorder(path) && !is_temporary(path));
                (state.is_end, state.origin) = (moment + 1 == self.moments(), origin);
                if seen.insert(digest(&state)) {
                    check(state);
                }
            };
            let mut choices = Choices::default();
            for number in 0..of_moment {
                look(&mut choices, format!("state {number} of moment {moment}"));
                if !choices.next() {
                    break;
                }
            }
            while let Some((_, seed)) = drawn.next_if(|(of, _)| *of == moment) {
                let mut rng = Rng::new(seed);
                rng.below(self.moments());
                choices.random = Some(rng);
                look(&mut choices, format!("TFSEEK_POWER={seed}"));
            }
        }
        seen.len()
    }
}

/// Returns true for the outputs of a run that is recorded.
fn is_of_recorder(path: &Path) -> bool {
    ["stdout", "stderr"].iter().any(|name| path == Path::new(name))
}

/// Returns true for a file that a run leaves only if it was killed, under a name that shows it.
fn is_temporary(path: &Path) -> bool {
    let is_temporary = |name: &str| name.starts_with(".tmp-") || name.contains(".incomplete");
    path.iter().any(|name| is_temporary(name.to_str().unwrap()))
}

fn digest(state: &State) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (&state.files, &state.folders, state.is_end).hash(&mut hasher);
    hasher.finish()
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Resize(len) => content.resize(*len, 0),
        Change::Write { at, bytes } => {
            let end = at + bytes.len();
            content.resize(content.len().max(end), 0);
            content[*at..end].copy_from_slice(bytes);
        }
    }
}

fn rename(names: &mut Names, changes: &Renaming) {
    for (place, node) in changes {
        match node {
            Some(node) => names.insert(place.clone(), *node),
            None => names.remove(place),
        };
    }
}

/// All ways to choose, one after the other, or drawn ones.
#[derive(Default)]
struct Choices {
    /// What was chosen, and of how many.
    chosen: Vec<[usize; 2]>,
    at: usize,
    random: Option<Rng>,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if let Some(rng) = &mut self.random {
            return rng.below(of);
        }
        if self.at == self.chosen.len() {
            self.chosen.push([0, of]);
        }
        self.at += 1;
        self.chosen[self.at - 1][0]
    }

    /// Begins the next way. Returns false after the last one.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some([chosen, of]) = self.chosen.pop() {
            if chosen + 1 < of {
                self.chosen.push([chosen + 1, of]);
                return true;
            }
        }
        false
    }
}

/// What is left of the data of a file that were not synced.
#[derive(Clone, Copy)]
enum KeptData {
    All,
    None,
    /// Zeros of the right length.
    Length,
    /// Some pages, and zeros in place of the others.
    Pages,
    /// The first writes.
    First,
}

/// What a disk has for certain, and what it may have lost.
struct Disk<'a> {
    names: Names,
    contents: Vec<Vec<u8>>,
    renamings: Vec<&'a Renaming>,
    changes: Vec<Vec<&'a Change>>,
}

impl Disk<'_> {
    /// Returns a state.
    fn state(&self, choices: &mut Choices) -> State {
        let mut names = self.names.clone();
        for changes in &self.renamings {
            if choices.choose(2) == 0 {
                rename(&mut names, changes);
            }
        }
        let mut found = State::default();
        let mut contents: HashMap<usize, Vec<u8>> = HashMap::new();
        let mut waiting = vec![(0, PathBuf::new())];
        while let Some((folder, path)) = waiting.pop() {
            let inside = names.range((folder, String::new())..(folder + 1, String::new()));
            for ((_, name), node) in inside {
                match *node {
                    Node::Folder(number) => {
                        found.folders.insert(path.join(name));
                        waiting.push((number, path.join(name)));
                    }
                    Node::File(file) => {
                        let content = contents.entry(file).or_insert_with(|| self.content(file, choices));
                        found.files.insert(path.join(name), content.clone());
                    }
                }
            }
        }
        found
    }

    /// Returns what is left of a file.
    fn content(&self, file: usize, choices: &mut Choices) -> Vec<u8> {
        let old = &self.contents[file];
        let mut new = old.clone();
        self.changes[file].iter().for_each(|change| apply(&mut new, change));
        // With the new length, but without the data.
        let mut kept = old.clone();
        kept.resize(new.len(), 0);
        let pages: Vec<usize> = (0..new.len()).step_by(PAGE).collect();
        let changed = |from: &usize| {
            let range = *from..new.len().min(from + PAGE);
            new[range.clone()] != kept[range]
        };
        let pages: Vec<usize> = pages.into_iter().filter(changed).collect();
        if new == *old {
            return new;
        }
        let changes = &self.changes[file];
        let mut ways = vec![KeptData::All, KeptData::None, KeptData::Length];
        ways.extend((pages.len() > 1).then_some(KeptData::Pages));
        ways.extend((changes.len() > 1).then_some(KeptData::First));
        match ways[choices.choose(ways.len())] {
            KeptData::All => return new,
            KeptData::None => return old.clone(),
            KeptData::Length => return kept,
            KeptData::First => {
                let mut first = old.clone();
                let count = 1 + choices.choose(changes.len() - 1);
                changes[..count].iter().for_each(|change| apply(&mut first, change));
                return first;
            }
            KeptData::Pages => {}
        }
        let is_random = choices.random.is_some();
        // The first pages or the last ones, where all ways are tried.
        let cut = if is_random { 0 } else { 1 + choices.choose(pages.len() - 1) };
        let is_first = is_random || choices.choose(2) == 0;
        for (k, from) in pages.into_iter().enumerate() {
            let is_kept = if is_random { choices.choose(2) == 0 } else { (k < cut) == is_first };
            if is_kept {
                let range = from..new.len().min(from + PAGE);
                kept[range.clone()].copy_from_slice(&new[range]);
            }
        }
        kept
    }
}
