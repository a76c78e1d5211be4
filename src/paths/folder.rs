//! Resolution of existing paths: a file, or the shards in a folder.

use super::natural::natural_cmp;
use super::replaced::{self, explained};
use super::set::{FoundShard, ShardName, folder_at};
use crate::error::{Error, ErrorKind, PathsError, Result};
use crate::io::{Compression, open_regular, sniff, split_query};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File name extensions of TFRecord files. `.gz` or `.zz` and `-NNNNN-of-NNNNN` may follow them.
pub const EXTENSIONS: [&str; 5] = [".tfrecord", ".tfrecords", ".tfrec", ".record", ".tfr"];

/// Maximum number of files with other names that are examined in a folder whose shards have extensions.
const MAX_EXAMINED: usize = 1000;

/// Maximum number of files that are examined of those whose names differ in numbers only.
const MAX_OF_FORM: usize = 16;

/// Returns the path itself, or the shards in it if it is a folder, which is added to `folders`. `None` if it
/// does not exist. A pattern need not be a file name: it may be too long for one, and Windows refuses
/// wildcards.
pub(super) fn existing(
    path: &Path,
    is_pattern: bool,
    folders: &mut Vec<PathBuf>,
) -> Result<Option<Vec<FoundShard>>> {
    Ok(match existing_metadata(path) {
        Ok(Some(meta)) if meta.is_dir() => Some(shards_in(&BTreeSet::from([path.to_path_buf()]), folders)?),
        Ok(Some(_)) => Some(vec![FoundShard { path: path.to_path_buf(), searched: false }]),
        Ok(None) => None,
        Err(e) if is_pattern && is_io(&e, io::ErrorKind::InvalidFilename) => None,
        Err(e) => return Err(e),
    })
}

/// Returns true for an I/O error of this kind.
pub(super) fn is_io(e: &Error, kind: io::ErrorKind) -> bool {
    matches!(e.kind(), ErrorKind::Io(e) if e.kind() == kind)
}

/// Returns true if a folder exists.
///
/// # Errors
/// I/O errors. A folder that cannot be examined may exist, and a pattern with its name must not match other
/// folders.
pub(super) fn exists(path: &Path) -> Result<bool> {
    match existing_metadata(path) {
        Ok(found) => Ok(found.is_some()),
        // No file can have such a name.
        Err(e) if is_io(&e, io::ErrorKind::InvalidFilename) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Returns the metadata of a file or folder. `None` if it does not exist.
fn existing_metadata(path: &Path) -> Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::from(e).in_file(path)),
    }
}

/// Returns the shards in folders, without their subfolders: the files with a TFRecord extension, or if there
/// is none, the TFRecord files of other names. Folders in which other names do not count are added to
/// `folders`.
///
/// # Errors
/// [`PathsError::NoMatch`], or [`PathsError::OtherSets`] if there are some in the folders below; I/O errors.
pub(super) fn shards_in(dirs: &BTreeSet<PathBuf>, folders: &mut Vec<PathBuf>) -> Result<Vec<FoundShard>> {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for dir in dirs {
        let opened = folder_at(dir);
        let in_dir = |e| Error::from(e).in_file(opened);
        for entry in fs::read_dir(opened).map_err(in_dir)? {
            let name = entry.map_err(in_dir)?.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            let path = dir.join(&name);
            if !has_extension(&name.to_string_lossy()) {
                others.extend((!is_hidden).then_some(path));
            } else if !fs::metadata(&path).map_err(|e| explained(Error::from(e).in_file(&path)))?.is_dir() {
                // Links are followed. A dangling link is an error, because skipping it would silently lose a
                // shard.
                found.push(FoundShard { path, searched: true });
            }
        }
    }
    let by_extension = !found.is_empty();
    for dir in dirs {
        replaced::check(dir, |name| !by_extension || has_extension(&name.to_string_lossy()))?;
    }
    if by_extension {
        folders.extend(dirs.iter().map(|dir| folder_at(dir).to_path_buf()));
        return Ok(found);
    }
    let others = recognised(others);
    if let Some(first) = dirs.first().filter(|_| others.is_empty()) {
        let pattern = first.join("*.{tfrecord,tfrecords,tfrec,record,tfr}").display().to_string().into();
        let is_above = dirs.len() == 1 && has_shards_below(first);
        let found = vec![first.join("**")];
        let none =
            if is_above { PathsError::OtherSets { pattern, found } } else { PathsError::NoMatch { pattern } };
        return Err(none.into());
    }
    Ok(others.into_iter().map(|path| FoundShard { path, searched: true }).collect())
}

/// Returns the TFRecord files among files of any names: those that begin with a record, and those whose names
/// differ from the name of such a file in numbers only. A partition that is empty or damaged begins with
/// none, and must not be lost without a word.
fn recognised(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut forms = BTreeMap::<_, Vec<PathBuf>>::new();
    for path in files.into_iter().filter(|path| !path.is_dir()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let letters = name.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
        let form = letters.collect::<Vec<_>>().join("0");
        forms.entry(form).or_default().push(path);
    }
    let is_empty = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0);
    forms.retain(|_, paths| {
        paths.sort_by(|a, b| natural_cmp(a, b));
        paths.iter().filter(|path| !is_empty(path)).take(MAX_OF_FORM).any(|path| begins_with_record(path))
    });
    let is_file = |path: &PathBuf| fs::metadata(path).map_or(true, |meta| meta.is_file());
    forms.into_values().flatten().filter(is_file).collect()
}

/// Returns true if one of the first folders below a folder has shards.
fn has_shards_below(dir: &Path) -> bool {
    let mut waiting = VecDeque::from([dir.to_path_buf()]);
    for _ in 0..MAX_EXAMINED {
        let Some(at) = waiting.pop_front() else { return false };
        let mut others = Vec::new();
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if entry.file_type().is_ok_and(|found| found.is_dir()) {
                waiting.push_back(entry.path());
            } else if at != *dir && has_extension(&name.to_string_lossy()) {
                return true;
            } else if others.len() < MAX_OF_FORM {
                others.push(entry.path());
            }
        }
        if at != *dir && others.iter().any(|path| begins_with_record(path)) {
            return true;
        }
    }
    false
}

/// Returns the shards among the names of objects: those with a TFRecord extension, or if none has one, those
/// with the numbers of shards or partitions.
pub(super) fn shards_by_name<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<&'n str> {
    let last = |name: &'n str| split_query(name.rsplit_once('/').map_or(name, |(_, last)| last)).0;
    let found: Vec<&str> = names.clone().filter(|name| has_extension(last(name))).collect();
    if found.is_empty() { names.filter(|name| is_numbered(last(name))).collect() } else { found }
}

/// Returns true for the name of a shard or a partition that has no extension: `train-00000-of-00016`,
/// `data_tfrecord-00000-of-00001.gz`, `part-r-00000`.
fn is_numbered(name: &str) -> bool {
    let (_, plain) = Compression::of_name(name);
    let of_set = ShardName::parse(plain).is_some_and(|m| m.suffix.is_empty() && m.numbers().is_some());
    !name.starts_with('.') && (of_set || plain.starts_with("part-") && !plain.contains('.'))
}

/// Returns the TFRecord files in a folder, compressed ones too, that do not count as its shards because of
/// their names, in natural order. Examines the first bytes of at most [`MAX_EXAMINED`] files. Files that are
/// not regular or cannot be read are left out.
pub(super) fn other_shards(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let may_be_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|t| t.is_file() || t.is_symlink());
    let names = entries.flatten().filter(may_be_file).map(|entry| entry.file_name());
    let has_other_name = |name: &str| !name.starts_with('.') && !has_extension(name);
    let mut names: Vec<_> =
        names.filter(|name| has_other_name(&name.to_string_lossy())).map(PathBuf::from).collect();
    names.sort_by(|a, b| natural_cmp(a, b));
    names.truncate(MAX_EXAMINED);
    names.into_iter().map(|name| dir.join(name)).filter(|path| begins_with_record(path)).collect()
}

/// Returns true if a file is regular and begins with a record, whose header has a correct checksum. Never
/// blocks.
fn begins_with_record(path: &Path) -> bool {
    // Opening a device may change its state, so a link to one is not opened.
    fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && open_regular(path)
            .and_then(sniff::first_bytes)
            .is_ok_and(|first| sniff::begins_with_record(&first))
}

/// Returns true if a file of this name counts as a shard of its folder: it has one of the [`EXTENSIONS`],
/// which a suffix of a compression and `-NNNNN-of-NNNNN` may follow, and does not begin with a dot.
///
/// ```
/// use tfseek::paths::has_extension;
///
/// assert!(has_extension("train.tfrecord-00000-of-00002.gz") && has_extension("a.record"));
/// assert!(!has_extension("train-00000-of-00002") && !has_extension("a.tfrecord.idx"));
/// ```
pub fn has_extension(name: &str) -> bool {
    let plain = |name: &str| {
        let (_, name) = Compression::of_name(name);
        EXTENSIONS.iter().any(|e| name.ends_with(e))
    };
    // `x.tfrecord-00000-of-00002.gz` has its extension before the shard number and its compression after it.
    let is_end = |suffix: &str| Compression::of_name(suffix).1.is_empty();
    let before_shard = || ShardName::parse(name).is_some_and(|m| is_end(m.suffix) && plain(m.stem));
    !name.starts_with('.') && (plain(name) || before_shard())
}
