//! The folder of a fetch: what it may have, its lock, and the names of its files.

use super::check::place;
use super::data_set::DataSet;
use super::journal::{Done, Earlier, FetchRequest, HIDDEN, Left, replace};
use super::plan::Wanted;
use super::wanted::WantedPart;
use super::worker::{FetchRun, hidden};
use crate::error::{FetchReason, ToolsError};
use crate::write::reshard::limits::disk_space;
use crate::write::reshard::names::OutPattern;
use crate::write::sync::sync_folder;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tfseek::Error;
use tfseek::io::HiddenFolder;
use tfseek::paths::set_of;

/// Refuses a folder that has files of something else, or of another fetch. Two fetches in one folder could
/// not tell which file belongs to which.
///
/// # Errors
/// [`FetchReason::OtherFetch`], [`FetchReason::Foreign`], I/O errors.
pub(super) fn check_folder(folder: &Path, request: &FetchRequest, left: &Left) -> Result<(), ToolsError> {
    if let Some(found) = left.request.as_ref().filter(|found| *found != request) {
        let FetchRequest { url, key, split, filter } = found;
        let other = url == &request.url && key != &request.key;
        let other = if other { " with another query, user or server" } else { "" };
        let split = split.as_ref().map_or_else(String::new, |split| format!("[{split}]"));
        let filter = filter.as_ref().map_or_else(String::new, |filter| format!(" where {filter}"));
        let found = format!("{url}{other}{split}{filter}");
        return Err(FetchReason::OtherFetch { folder: folder.into(), found }.into());
    }
    let known: HashSet<PathBuf> =
        left.files.values().filter_map(|file| file.placed.as_ref()).map(|name| folder.join(name)).collect();
    let folders: HashSet<&Path> = known.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(at) = waiting.pop() {
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound && at == folder => return Ok(()),
            Err(e) => return Err(Error::from(e).in_file(&at).into()),
        };
        for entry in entries {
            let entry = entry.map_err(|e| Error::from(e).in_file(&at))?;
            let path = entry.path();
            let name = entry.file_name();
            // Indexes may have been made of the files.
            let is_own = name == HIDDEN && at == folder || name == ".tfseek" && !known.is_empty();
            if is_own || known.contains(&path) {
                continue;
            }
            // A link to a folder is none of ours, and what it leads to may be anywhere.
            if !folders.contains(&*path) || !entry.file_type().is_ok_and(|found| found.is_dir()) {
                return Err(FetchReason::Foreign(path).into());
            }
            waiting.push(path);
        }
    }
    Ok(())
}

/// Compares the free space of the disk with the bytes that will arrive.
///
/// # Errors
/// [`ToolsError::Space`].
pub(super) fn check_space(folder: &Path, needed: u64) -> Result<(), ToolsError> {
    match disk_space(existing(folder)) {
        Some(space) if space.free < needed => {
            Err(ToolsError::Space { folder: folder.into(), expected: needed, found: space.free })
        }
        _ => Ok(()),
    }
}

/// The name of the file that is locked.
const LOCK: &str = "lock";

/// Locks a folder, into which one process at a time fetches. The lock lives as long as the file.
///
/// # Errors
/// [`FetchReason::Busy`], I/O errors.
pub(super) fn lock_folder(folder: &Path) -> Result<(File, HiddenFolder), ToolsError> {
    let path = folder.join(HIDDEN).join(LOCK);
    let here = |e: io::Error| Error::from(e).in_file(&path);
    loop {
        let Some(hidden) = HiddenFolder::open(&folder.join(HIDDEN), true).map_err(here)? else { continue };
        let file = match hidden.file(LOCK, true).and_then(|file| file.ok_or(io::ErrorKind::NotFound.into())) {
            // The process that had the lock has removed the folder.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(here)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FetchReason::Busy(folder.into()).into()),
            Err(TryLockError::Error(e)) => return Err(here(e).into()),
        }
        if is_at(&file, &path) {
            return Ok((file, hidden));
        }
    }
}

/// Returns true if a file still has its name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    let opened = file.metadata().map(id);
    let named = fs::symlink_metadata(path).map(id);
    matches!((opened, named), (Ok(opened), Ok(named)) if opened == named)
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Gives all complete files their names that have none. Files of selected records are numbered anew, without
/// the empty ones. The description of a data set is written last.
///
/// # Errors
/// I/O errors.
pub(super) fn place_all(
    run: &FetchRun,
    wanted: &Wanted,
    files: &mut [Earlier],
    is_new_set: bool,
) -> Result<(), ToolsError> {
    let names = if is_new_set {
        new_names(wanted, files)
    } else {
        wanted.files.iter().map(|file| Some(file.name.clone())).collect()
    };
    take_back(run, wanted, files, &names)?;
    let mut are_new = false;
    for (index, ((file, earlier), name)) in wanted.files.iter().zip(files.iter_mut()).zip(&names).enumerate()
    {
        let Some(name) = name.as_ref().filter(|_| file.part != WantedPart::Description) else { continue };
        if earlier.placed.as_ref() != Some(name) {
            run.journal.placed(index, name)?;
            earlier.placed = Some(name.clone());
            are_new = true;
        }
    }
    // A name that another file had is then known to be the new one's.
    if are_new {
        run.journal.sync()?;
    }
    for (file, name) in wanted.files.iter().zip(&names) {
        let ready = hidden(&file.name, "ready");
        // It has its name already if a run was killed after this.
        if let Some(name) = name.as_ref().filter(|_| file.part != WantedPart::Description)
            && is_ready(run, &ready)
        {
            place(run, &ready, name)?;
        }
    }
    sync_folders(run, files)?;
    if let Some(data_set) = &wanted.data_set {
        describe(run, data_set, wanted, files)?;
    }
    Ok(())
}

/// Syncs the folders of all files, and those around them.
fn sync_folders(run: &FetchRun, files: &[Earlier]) -> Result<(), ToolsError> {
    let names = files.iter().filter_map(|file| file.placed.as_deref());
    let mut folders: BTreeSet<&Path> = names.flat_map(|name| Path::new(name).ancestors().skip(1)).collect();
    folders.insert(Path::new(""));
    for folder in folders {
        let path = run.folder.join(folder);
        sync_folder(&path).map_err(|e| Error::from(e).in_file(&path))?;
    }
    Ok(())
}

/// Returns true if a file of the hidden folder is there.
fn is_ready(run: &FetchRun, ready: &str) -> bool {
    run.folder.join(HIDDEN).join(ready).symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Moves the files whose names change back to the hidden folder, before any other file gets one of these
/// names, and removes files of shards that have no selected records now: an object was replaced since an
/// earlier run.
fn take_back(
    run: &FetchRun,
    wanted: &Wanted,
    files: &mut [Earlier],
    names: &[Option<String>],
) -> Result<(), ToolsError> {
    for (k, (file, name)) in wanted.files.iter().zip(names).enumerate() {
        let Some(old) = files.get(k).and_then(|earlier| earlier.placed.clone()) else { continue };
        if name.as_ref() == Some(&old) || file.part == WantedPart::Description {
            continue;
        }
        let path = run.folder.join(&old);
        let ready = hidden(&file.name, "ready");
        // A run that was killed may have given the name to another file.
        let is_own = files.iter().filter(|earlier| earlier.placed.as_ref() == Some(&old)).count() == 1;
        if is_own && path.symlink_metadata().is_ok() {
            let moved = match name {
                Some(_) if !is_ready(run, &ready) => run.hidden.rename(&path, ready.as_ref()),
                _ => fs::remove_file(&path),
            };
            moved.map_err(|e| Error::from(e).in_file(&path))?;
        }
        if let Some(earlier) = files.get_mut(k).filter(|_| name.is_none()) {
            earlier.placed = None;
        }
    }
    Ok(())
}

/// Writes the description of a data set, if it is not there.
fn describe(
    run: &FetchRun,
    data_set: &DataSet,
    wanted: &Wanted,
    files: &mut [Earlier],
) -> Result<(), ToolsError> {
    let text = data_set.info_text(files);
    let found = wanted.files.iter().zip(files.iter_mut()).enumerate();
    let mut found = found.filter(|(_, (file, _))| file.part == WantedPart::Description);
    let Some((index, (file, earlier))) = found.next() else { return Ok(()) };
    let path = run.folder.join(&file.name);
    let done = Done { records: 0, selected: 0, bytes: text.len() as u64 };
    (earlier.done, earlier.placed) = (Some(done), Some(file.name.clone()));
    if fs::read(&path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    run.journal.done(index, done)?;
    run.journal.placed(index, &file.name)?;
    run.journal.sync()?;
    let ready = hidden(&file.name, "ready");
    replace(&run.hidden, &ready, &text).map_err(|e| run.in_hidden(e, &ready))?;
    Ok(place(run, &ready, &file.name)?)
}

/// Returns the names of a new set. `None` for shards without a selected record. Empty shards are legal, and
/// surprise readers.
fn new_names(wanted: &Wanted, files: &[Earlier]) -> Vec<Option<String>> {
    let selected = |k: usize| files.get(k).and_then(|file| file.done).map_or(0, |done| done.selected);
    let mut names = Vec::new();
    let mut sets = BTreeMap::<PathBuf, Vec<usize>>::new();
    for (k, file) in wanted.files.iter().enumerate() {
        let is_shard = !matches!(file.part, WantedPart::File | WantedPart::Description);
        names.push((!is_shard || selected(k) > 0).then(|| file.name.clone()));
        if let Some(set) = set_of(Path::new(&file.name)).filter(|_| is_shard && wanted.data_set.is_none()) {
            sets.entry(set).or_default().push(k);
        }
    }
    for (k, path) in wanted.data_set.iter().flat_map(|data_set| data_set.names(files)) {
        if let Some(name) = names.get_mut(k) {
            *name = path.to_str().map(str::to_owned);
        }
    }
    for (set, shards) in sets {
        let kept: Vec<usize> = shards.into_iter().filter(|k| selected(*k) > 0).collect();
        let Ok(pattern) = OutPattern::parse(&set, None, false) else { continue };
        let set = pattern.set(None, Some(kept.len() as u64));
        for (shard, k) in (0..).zip(kept) {
            if let Some(name) = names.get_mut(k) {
                *name = set.path(shard).to_str().map(str::to_owned);
            }
        }
    }
    names
}

/// Returns the nearest folder above a path that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."))
}
