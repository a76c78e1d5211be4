//! The files of a world, each with a mirror, and how they change.

use crate::seen;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tfseek_testkit::mirror::{Inode, LARGE};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards;

pub(crate) const NAMES: [&str; 4] = ["a0.tfrecord", "a1.tfrecord", "b0.tfrecord", "b1.tfrecord"];

pub(crate) struct Disk {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) inodes: Vec<Inode>,
    /// The file under each of the [`NAMES`].
    pub(crate) names: [Option<usize>; 4],
    /// Some records are large.
    pub(crate) large: bool,
    /// A file of the index folder that was removed: its path, bytes and time.
    removed: Option<(PathBuf, Vec<u8>, SystemTime)>,
}

impl Disk {
    pub(crate) fn new(large: bool) -> Disk {
        // In memory, where there is such a folder: a disk waits at each rename.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Disk { dir, inodes: Vec::new(), names: [None; 4], large, removed: None }
    }

    pub(crate) fn path(&self, name: usize) -> PathBuf {
        self.dir.path().join(NAMES[name])
    }

    pub(crate) fn index_dir(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    /// Returns what the system tells of a file. Two changes within one clock tick have the same times.
    pub(crate) fn stamp(&self, name: usize) -> Option<String> {
        let found = fs::metadata(self.path(name)).ok()?;
        let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        Some(format!("{times:?} {} {}", found.len(), found.ino()))
    }

    fn pads(&self, rng: &mut Rng) -> Vec<usize> {
        let len = rng.below(14);
        let mut pads: Vec<usize> = (0..len).map(|_| rng.below(90)).collect();
        if self.large && len > 0 && rng.chance(96) {
            pads[rng.below(len)] = LARGE;
        }
        pads
    }

    /// Changes one file, and its time.
    pub(crate) fn change(&mut self, rng: &mut Rng) -> String {
        let name = rng.below(NAMES.len());
        let path = self.path(name);
        let before = fs::metadata(&path).and_then(|found| found.modified()).ok();
        let mut pads = self.pads(rng);
        let what = match (self.names[name], rng.below(16)) {
            (None, _) | (_, 0 | 1) => self.replace(name, &pads),
            (Some(k), 2 | 3) => {
                pads = self.inodes[k].pads();
                pads.reverse();
                self.replace(name, &pads) + " of the same lengths"
            }
            (Some(_), 4) => {
                fs::remove_file(&path).unwrap();
                self.names[name] = None;
                "removed".to_owned()
            }
            (Some(_), 5) => "touched".to_owned(),
            (Some(k), _) => {
                let what = self.inodes[k].change(rng, &pads);
                let file = File::options().write(true).open(&path).unwrap();
                file.write_all_at(&self.inodes[k].bytes, 0).unwrap();
                file.set_len(self.inodes[k].bytes.len() as u64).unwrap();
                what
            }
        };
        let time = set_time(&path, before, rng);
        if let Some(k) = self.names[name] {
            self.inodes[k].changes += 1;
        }
        format!("{}: {what}{time}", NAMES[name])
    }

    /// Puts another file under a name.
    fn replace(&mut self, name: usize, pads: &[usize]) -> String {
        let inode = Inode::new(self.inodes.len(), pads);
        let new = self.dir.path().join(".new");
        fs::write(&new, &inode.bytes).unwrap();
        fs::rename(&new, self.path(name)).unwrap();
        self.names[name] = Some(self.inodes.len());
        self.inodes.push(inode);
        format!("file {} with {} records", self.inodes.len() - 1, pads.len())
    }

    /// Removes a file of the index folder, or puts back the one that was removed, with its time.
    pub(crate) fn change_index(&mut self, rng: &mut Rng) -> String {
        if let Some((path, bytes, time)) = self.removed.take() {
            let new = self.dir.path().join(".new");
            fs::write(&new, bytes).unwrap();
            File::options().write(true).open(&new).unwrap().set_modified(time).unwrap();
            fs::rename(&new, &path).unwrap();
            seen("index put back");
            return format!("{} put back", path.file_name().unwrap().display());
        }
        let names = shards::names(&self.index_dir());
        let Some(name) = names.get(rng.below(names.len().max(1))) else { return "is empty".to_owned() };
        let path = self.index_dir().join(name);
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        self.removed = Some((path.clone(), fs::read(&path).unwrap(), time));
        fs::remove_file(&path).unwrap();
        format!("{name} removed")
    }
}

/// Sets the time of a file that was changed: as it was, the same for all, earlier, or before all others.
fn set_time(path: &Path, before: Option<SystemTime>, rng: &mut Rng) -> &'static str {
    let start = SystemTime::UNIX_EPOCH;
    let seconds = Duration::from_secs;
    let (time, text) = match rng.below(8) {
        0..3 => return "",
        3 | 4 => (before, ", with its old time"),
        5 => (start.checked_add(seconds(1_600_000_000)), ", with a fixed time"),
        6 => (before.and_then(|time| time.checked_sub(seconds(3600))), ", an hour earlier"),
        _ => (start.checked_sub(seconds(10_000_000_000)), ", with a time before all others"),
    };
    let (Some(time), Ok(file)) = (time, File::options().write(true).open(path)) else { return "" };
    // Some file systems refuse times so long ago.
    if file.set_modified(time).is_ok() { text } else { "" }
}
