//! Sets of files that are replaced: the old files are kept out of sight until the new ones are complete.
//!
//! Files get their names one after the other, so a set that is being replaced is neither the old one nor the new one for a moment. A run
//! that replaces several files takes these steps:
//!
//! 1. It locks their folders.
//! 2. It links all old shards but the last into the folder [`REPLACED`] next to them.
//! 3. It moves the last old shard of each set there. The set does not open now. Then it moves those that could not be linked.
//! 4. It gives the new files their names, the last shard of each set last. The set opens again.
//! 5. It removes the old files.
//!
//! After a kill in steps 3 and 4 an old shard is in that folder, or else still under its name. Moving the folder's files back restores the
//! set.

use super::set::{ShardName, set_of};
use crate::error::{Error, ErrorKind, PathsError, Result};
use crate::io::{OutputTarget, folder, sync_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of old files, next to them. It is hidden, so no pattern matches it.
const REPLACED: &str = ".tfseek-replaced";

/// The set that a file belongs to by its name. A file without the name of a shard is a set of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SetKey {
    Shards { stem: String, suffix: String },
    File(OsString),
}

impl SetKey {
    /// Returns the set of a name, and true for its last file.
    fn of(name: &OsStr) -> (SetKey, bool) {
        match name.to_str().and_then(ShardName::parse).and_then(|shard| Some((shard.numbers()?, shard))) {
            Some(((index, total), shard)) => {
                let [stem, suffix] = [shard.stem, shard.suffix].map(String::from);
                (SetKey::Shards { stem, suffix }, index.checked_add(1) == Some(total))
            }
            None => (SetKey::File(name.into()), true),
        }
    }
}

/// Returns true for the last shard of a set, and for a file that is no shard of a set.
pub(crate) fn is_last(path: &Path) -> bool {
    SetKey::of(path.file_name().unwrap_or_default()).1
}

/// The old files of the sets of one folder.
struct OldFiles {
    folder: PathBuf,
    sets: BTreeMap<SetKey, Vec<OsString>>,
}

impl OldFiles {
    fn read(folder: &Path) -> Result<OldFiles> {
        let mut sets = BTreeMap::<_, Vec<OsString>>::new();
        for name in names(&folder.join(REPLACED))? {
            sets.entry(SetKey::of(&name).0).or_default().push(name);
        }
        Ok(OldFiles { folder: folder.into(), sets })
    }

    /// Returns the sets whose last shard is not there, neither the old one nor a new one.
    fn interrupted(&self) -> Result<BTreeSet<&SetKey>> {
        let is_there = |name: &OsStr| fs::metadata(self.folder.join(name)).is_ok();
        let mut open: BTreeSet<&SetKey> = self.sets.keys().collect();
        if !open.is_empty() {
            for name in names(&self.folder)? {
                let (set, is_last) = SetKey::of(&name);
                if is_last && is_there(&name) {
                    open.remove(&set);
                }
            }
        }
        Ok(open)
    }

    /// Removes the old files of a set.
    fn remove(&self, set: &SetKey) -> Result<()> {
        for name in self.sets.get(set).into_iter().flatten() {
            let path = self.folder.join(REPLACED).join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    let text = format!("this file was replaced, and cannot be removed: {e}");
                    return Err(Error::from(io::Error::new(e.kind(), text)).in_file(&path));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the names in a folder. A folder that does not exist has none.
fn names(folder: &Path) -> Result<Vec<OsString>> {
    let listed = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect()),
    };
    listed.map_err(|e| Error::from(e).in_file(folder))
}

/// Checks that no run was interrupted while it replaced a set in `folder` with a file of a name that is `wanted`. A folder that cannot be read has
/// no such set.
///
/// # Errors
/// [`PathsError::Interrupted`].
pub(super) fn check(folder: &Path, wanted: impl Fn(&OsStr) -> bool) -> Result<()> {
    let Ok(old) = OldFiles::read(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }) else {
        return Ok(());
    };
    for set in old.interrupted().unwrap_or_default() {
        let Some(names) = old.sets.get(set).filter(|names| names.iter().any(|name| wanted(name))) else {
            continue;
        };
        let file = folder.join(names.first().map(PathBuf::from).unwrap_or_default());
        let set = set_of(&file).unwrap_or(file).into();
        let folder = folder.join(REPLACED).into();
        return Err(PathsError::Interrupted { set, folder, files: names.len() }.into());
    }
    Ok(())
}

/// Checks that no run was interrupted while it replaced this file, which does not exist. Of a link, its target.
///
/// # Errors
/// [`PathsError::Interrupted`].
pub(super) fn check_file(path: &Path) -> Result<()> {
    match OutputTarget::of(path) {
        Ok(OutputTarget::File(target)) => {
            check(target.parent().unwrap_or(Path::new("")), |name| Some(name) == target.file_name())
        }
        _ => Ok(()),
    }
}

/// Returns the error of [`check_file`] in place of the error that a file does not exist. Returns other errors unchanged.
pub(crate) fn explained(e: Error) -> Error {
    let is_missing = matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::NotFound);
    match e.location().path.as_deref().filter(|_| is_missing).map(check_file) {
        Some(Err(interrupted)) => interrupted,
        _ => e,
    }
}

/// The old files of sets, while new ones get their names.
///
/// The folders of the outputs are locked while it lives, on systems and file systems with locks. So of two sets of one name, one is written
/// after the other, never shard by shard in turns. A lock ends with its process.
#[derive(Debug)]
pub struct Replacement {
    /// The sets that were set aside, by folder.
    sets: BTreeMap<PathBuf, BTreeSet<SetKey>>,
    _locked: Vec<File>,
}

impl Replacement {
    /// Waits for the locks of the folders of these files.
    #[must_use]
    pub fn lock<'p>(files: impl IntoIterator<Item = &'p Path>) -> Replacement {
        // All processes lock folders in the same order, so none waits for another in a circle.
        let folders: BTreeSet<PathBuf> =
            files.into_iter().filter_map(|file| folder(file).canonicalize().ok()).collect();
        let lock = |folder: PathBuf| {
            let opened = File::open(folder).ok()?;
            opened.lock().ok()?;
            Some(opened)
        };
        Replacement { sets: BTreeMap::new(), _locked: folders.into_iter().filter_map(lock).collect() }
    }

    /// Puts old files of these names aside, if there are any. Sets of several shards then do not open, until their last shard gets its name. The
    /// other shards may still have theirs.
    ///
    /// Old files that an interrupted run has left are kept in place of those of the same name, because that run has replaced the latter.
    ///
    /// # Errors
    /// I/O errors; the files have their names then, if they can be given back.
    pub fn set_aside(&mut self, old: &[PathBuf]) -> Result<()> {
        self.add(old);
        let mut moved = Vec::new();
        let done = self.set_aside_each(old, &mut moved);
        if done.is_err() {
            // The last shards were moved before the others, and get their names back after them.
            for (from, to) in moved.into_iter().rev() {
                let _ =
                    if from.symlink_metadata().is_ok() { fs::remove_file(to) } else { fs::rename(to, from) };
            }
            by_folder(old).into_keys().for_each(|folder| drop(fs::remove_dir(folder.join(REPLACED))));
        }
        done
    }

    fn add(&mut self, files: &[PathBuf]) {
        for (folder, names) in by_folder(files) {
            let sets = names.iter().map(|name| SetKey::of(name).0);
            self.sets.entry(folder).or_default().extend(sets);
        }
    }

    /// Adds the old and the new path of each file that was moved or linked to `moved`.
    fn set_aside_each(&self, old: &[PathBuf], moved: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
        let mut files = Vec::new();
        for (folder, names) in by_folder(old) {
            let old = OldFiles::read(&folder)?;
            let interrupted = old.interrupted()?;
            // A complete set needs no older one.
            let complete: BTreeSet<SetKey> = names.iter().map(|name| SetKey::of(name).0).collect();
            complete.iter().filter(|set| !interrupted.contains(set)).try_for_each(|set| old.remove(set))?;
            let hidden = folder.join(REPLACED);
            let is_file = |name: &OsString| folder.join(name).is_file();
            for name in names.into_iter().filter(is_file) {
                files.push((is_last(Path::new(&name)), folder.join(&name), hidden.join(&name)));
            }
        }
        let folders: BTreeSet<&Path> = files.iter().filter_map(|(_, from, _)| from.parent()).collect();
        for folder in &folders {
            let hidden = folder.join(REPLACED);
            create(&hidden).map_err(|e| Error::from(e).in_file(&hidden))?;
        }
        let sync = |with_parent: bool| -> Result<()> {
            for folder in &folders {
                let hidden = folder.join(REPLACED);
                let synced = sync_folder(&hidden).and_then(|()| match with_parent {
                    true => sync_folder(folder),
                    false => Ok(()),
                });
                synced.map_err(|e| Error::from(e).in_file(&hidden))?;
            }
            Ok(())
        };
        let (last, others): (Vec<_>, Vec<_>) = files.iter().partition(|(is_last, ..)| *is_last);
        let mut to_move = last;
        for file @ (_, from, to) in others {
            // Old files of an interrupted run are there already.
            if to.symlink_metadata().is_ok() {
                continue;
            }
            match fs::hard_link(from, to) {
                Ok(()) => moved.push((from.clone(), to.clone())),
                Err(_) => to_move.push(file),
            }
        }
        sync(false)?;
        // The last shards are moved first: the set must not open while others are moved.
        for (_, from, to) in to_move {
            rename(from, to).map_err(|e| Error::from(e).in_file(from))?;
            moved.push((from.clone(), to.clone()));
        }
        sync(true)
    }

    /// Removes the old files that are aside, and those of the sets that these new files belong to. The new files have their names, durably.
    ///
    /// # Errors
    /// I/O errors, which name an old file.
    pub fn end(&mut self, new: &[PathBuf]) -> Result<()> {
        self.add(new);
        for (folder, sets) in &self.sets {
            // Files that cannot be listed are removed by a later run.
            if let Ok(old) = OldFiles::read(folder) {
                sets.iter().try_for_each(|set| old.remove(set))?;
            }
            // Fails if there is none, and if it has files of other sets.
            let _ = fs::remove_dir(folder.join(REPLACED));
        }
        Ok(())
    }
}

/// Returns the folders of files, and their names in them. Of a link those of its target, as an output replaces the target.
fn by_folder(paths: &[PathBuf]) -> BTreeMap<PathBuf, Vec<OsString>> {
    let mut folders = BTreeMap::<_, Vec<OsString>>::new();
    for path in paths {
        if let Ok(OutputTarget::File(target)) = OutputTarget::of(path)
            && let Some(name) = target.file_name()
        {
            folders.entry(folder(&target).to_path_buf()).or_default().push(name.into());
        }
    }
    folders
}

/// Renames a file. A call that a signal interrupted on a network file system may have succeeded.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let mut interrupted = false;
    loop {
        match fs::rename(from, to) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => interrupted = true,
            Err(e) if interrupted && e.kind() == io::ErrorKind::NotFound && to.symlink_metadata().is_ok() => {
                return Ok(());
            }
            renamed => return renamed,
        }
    }
}

/// Creates a folder, which may exist. A link to one is refused.
fn create(hidden: &Path) -> io::Result<()> {
    match fs::create_dir(hidden) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => match hidden.symlink_metadata()?.is_dir() {
            true => Ok(()),
            false => Err(io::ErrorKind::NotADirectory.into()),
        },
        created => created,
    }
}
