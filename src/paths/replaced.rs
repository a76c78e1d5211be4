//! Sets of files that are replaced: the old files are kept out of sight until the new ones are complete.
//!
//! Files get their names one after the other, so a set that is being replaced is neither the old one nor the
//! new one for a moment. A run that replaces several files takes these steps:
//!
//! 1. It locks their folders.
//! 2. It links all old shards but the last into the folder [`REPLACED`] next to them.
//! 3. It moves the last old shard of each set there. The set does not open now. Then it moves those that
//!    could not be linked.
//! 4. It gives the new files their names, the last shard of each set last. The set opens again.
//! 5. It removes the old files.
//!
//! After a kill in steps 3 and 4 an old shard is in that folder, or else still under its name. Moving the
//! folder's files back restores the set. Old shards are linked, not copied or renamed, so a set lacks one
//! name at a time only.

use super::set::{ShardName, folder_at, set_of};
use crate::error::{Error, ErrorKind, PathsError, Result};
use crate::io::{HiddenFolder, OutputTarget, folder, sync_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
    hidden: Option<HiddenFolder>,
    sets: BTreeMap<SetKey, Vec<OsString>>,
}

impl OldFiles {
    fn read(folder: &Path) -> Result<OldFiles> {
        let path = folder.join(REPLACED);
        let in_hidden = |e| Error::from(e).in_file(&path);
        let hidden = HiddenFolder::open(&path, false).map_err(in_hidden)?;
        let mut sets = BTreeMap::<_, Vec<OsString>>::new();
        for name in hidden.as_ref().map_or(Ok(Vec::new()), HiddenFolder::names).map_err(in_hidden)? {
            sets.entry(SetKey::of(&name).0).or_default().push(name);
        }
        Ok(OldFiles { folder: folder.into(), hidden, sets })
    }

    /// Returns the sets whose last shard is not there, neither the old one nor a new one.
    fn interrupted(&self) -> Result<BTreeSet<&SetKey>> {
        let is_there = |name: &OsStr| fs::metadata(self.folder.join(name)).is_ok();
        let mut open: BTreeSet<&SetKey> = self.sets.keys().collect();
        if !open.is_empty() {
            let here = |e| Error::from(e).in_file(&self.folder);
            for entry in fs::read_dir(&self.folder).map_err(here)? {
                let name = entry.map_err(here)?.file_name();
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
        let Some(hidden) = &self.hidden else { return Ok(()) };
        for name in self.sets.get(set).into_iter().flatten() {
            hidden.remove(name).map_err(|e| {
                let text = format!("this file was replaced, and cannot be removed: {e}");
                Error::from(io::Error::new(e.kind(), text)).in_file(&hidden.path().join(name))
            })?;
        }
        Ok(())
    }
}

/// Checks that no run was interrupted while it replaced a set in `folder` with a file of a name that is
/// `wanted`. A folder that cannot be read has no such set.
///
/// # Errors
/// [`PathsError::Interrupted`].
pub(super) fn check(folder: &Path, wanted: impl Fn(&OsStr) -> bool) -> Result<()> {
    let Ok(old) = OldFiles::read(folder_at(folder)) else { return Ok(()) };
    for set in old.interrupted().into_iter().flatten() {
        let Some(names) = old.sets.get(set).filter(|names| names.iter().any(|name| wanted(name))) else {
            continue;
        };
        let file = names.first().map_or_else(PathBuf::new, |name| folder.join(name));
        let set = set_of(&file).unwrap_or(file).into();
        let folder = folder.join(REPLACED).into();
        return Err(PathsError::Interrupted { set, folder, files: names.len() }.into());
    }
    Ok(())
}

/// Checks that no run was interrupted while it replaced this file, which does not exist. Of a link, its
/// target.
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

/// Returns the error of [`check_file`] in place of the error that a file does not exist. Returns other errors
/// unchanged.
pub(crate) fn explained(e: Error) -> Error {
    let is_missing = matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::NotFound);
    match e.location().path.as_deref().filter(|_| is_missing).map(check_file) {
        Some(Err(interrupted)) => interrupted,
        _ => e,
    }
}

/// A file that is set aside.
#[derive(Clone)]
struct OldFile {
    is_last: bool,
    path: PathBuf,
    hidden: Rc<HiddenFolder>,
    name: OsString,
}

/// The old files of sets, while new ones get their names.
///
/// The folders of the outputs are locked while it lives, on systems and file systems with locks. So of two
/// sets of one name, one is written after the other, never shard by shard in turns. A lock ends with its
/// process.
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

    /// Puts old files of these names aside, if there are any. Sets of several shards then do not open, until
    /// their last shard gets its name. The other shards may still have theirs.
    ///
    /// Old files that an interrupted run has left are kept in place of the files of the same name, because
    /// that run has replaced the latter.
    ///
    /// # Errors
    /// I/O errors; the files have their names then, if they can be given back.
    pub fn set_aside(&mut self, old: &[PathBuf]) -> Result<()> {
        self.add(old);
        let mut moved = Vec::new();
        let done = self.set_aside_each(old, &mut moved);
        if done.is_err() {
            // The last shards were moved before the others, and get their names back after them.
            for OldFile { path, hidden, name, .. } in moved.into_iter().rev() {
                let is_there = path.symlink_metadata().is_ok();
                let _ = if is_there { hidden.remove(name) } else { hidden.rename(Path::new(&name), &path) };
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

    /// Adds each file that was moved or linked to `moved`.
    fn set_aside_each(&self, old: &[PathBuf], moved: &mut Vec<OldFile>) -> Result<()> {
        let mut files = Vec::new();
        for (folder, names) in by_folder(old) {
            let old = OldFiles::read(&folder)?;
            let interrupted = old.interrupted()?;
            // A complete set needs no older one.
            let complete: BTreeSet<SetKey> = names.iter().map(|name| SetKey::of(name).0).collect();
            complete.iter().filter(|set| !interrupted.contains(set)).try_for_each(|set| old.remove(set))?;
            let names: Vec<OsString> = names.into_iter().filter(|name| folder.join(name).is_file()).collect();
            if names.is_empty() {
                continue;
            }
            let path = folder.join(REPLACED);
            let hidden = HiddenFolder::open(&path, true).map_err(|e| Error::from(e).in_file(&path))?;
            let Some(hidden) = hidden.map(Rc::new) else { continue };
            files.extend(names.into_iter().map(|name| OldFile {
                is_last: is_last(Path::new(&name)),
                path: folder.join(&name),
                hidden: hidden.clone(),
                name,
            }));
        }
        // The folder must have its name before the only name of a file is in it.
        let sync = || -> Result<()> {
            let hidden: BTreeMap<&Path, _> =
                files.iter().map(|file| (file.hidden.path(), &file.hidden)).collect();
            for (path, hidden) in hidden {
                let synced = hidden.sync().and_then(|()| sync_folder(folder(path)));
                synced.map_err(|e| Error::from(e).in_file(path))?;
            }
            Ok(())
        };
        let (last, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.is_last);
        let mut to_move = last;
        for file in others {
            let OldFile { path, hidden, name, .. } = file;
            // Old files of an interrupted run are there already.
            if hidden.has(name.as_ref()).map_err(|e| Error::from(e).in_file(hidden.path()))? {
                continue;
            }
            match hidden.link(path, name.as_ref()) {
                Ok(()) => moved.push(file.clone()),
                Err(_) => to_move.push(file),
            }
        }
        sync()?;
        // The last shards are moved first: the set must not open while others are moved.
        for file in to_move {
            let OldFile { path, hidden, name, .. } = file;
            hidden.rename(path, name.as_ref()).map_err(|e| Error::from(e).in_file(path))?;
            moved.push(file.clone());
        }
        sync()
    }

    /// Removes the old files that are aside, and the old files of the sets that these new files belong to.
    /// The new files have their names, durably.
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

/// Returns the folders of files, and their names in them. Of a link, the folder and name of its target, as an
/// output replaces the target.
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
