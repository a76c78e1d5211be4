//! Resolution of existing paths: a file, or the shards in a folder.

use super::natural::natural_cmp;
use super::replaced::{self, explained};
use super::set::{FoundShard, ShardName};
use crate::error::{Error, ErrorKind, PathsError, Result};
use crate::io::{Compression, open_regular, sniff};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File name extensions of TFRecord files. `.gz` or `.zz` and `-NNNNN-of-NNNNN` may follow them.
pub const EXTENSIONS: [&str; 5] = [".tfrecord", ".tfrecords", ".tfrec", ".record", ".tfr"];

/// Maximum number of files with other names that are examined in a folder.
const MAX_EXAMINED: usize = 1000;

/// Returns the path itself, or the shards in it if it is a folder, which is added to `folders`. `None` if it does not exist. A pattern need not be a
/// file name: it may be too long for one, and Windows refuses wildcards.
pub(super) fn existing(
    path: &Path,
    is_pattern: bool,
    folders: &mut Vec<PathBuf>,
) -> Result<Option<Vec<FoundShard>>> {
    Ok(match existing_metadata(path) {
        Ok(Some(meta)) if meta.is_dir() => {
            let found = folder(path)?;
            folders.push(path.to_path_buf());
            Some(found)
        }
        Ok(Some(_)) => Some(vec![FoundShard { path: path.to_path_buf(), searched: false }]),
        Ok(None) => None,
        Err(e) if is_pattern && cannot_exist(&e) => None,
        Err(e) => return Err(e),
    })
}

/// Returns true for the error of a name that no file can have.
fn cannot_exist(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::InvalidFilename)
}

/// Returns true if a folder exists.
///
/// # Errors
/// I/O errors. A folder that cannot be examined may exist, and a pattern with its name must not match other folders.
pub(super) fn exists(path: &Path) -> Result<bool> {
    match existing_metadata(path) {
        Ok(found) => Ok(found.is_some()),
        Err(e) if cannot_exist(&e) => Ok(false),
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

fn folder(dir: &Path) -> Result<Vec<FoundShard>> {
    let in_dir = |e| Error::from(e).in_file(dir);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(in_dir)? {
        let name = entry.map_err(in_dir)?.file_name();
        if !has_extension(&name.to_string_lossy()) {
            continue;
        }
        let path = dir.join(name);
        // Links are followed. A dangling link is an error, because skipping it would silently lose a shard.
        if !fs::metadata(&path).map_err(|e| explained(Error::from(e).in_file(&path)))?.is_dir() {
            found.push(FoundShard { path, searched: true });
        }
    }
    replaced::check(dir, |name| has_extension(&name.to_string_lossy()))?;
    if found.is_empty() {
        let others = other_shards(dir);
        if !others.is_empty() {
            return Err(PathsError::OtherNames { folder: dir.into(), found: others }.into());
        }
        let pattern = dir.join("*.{tfrecord,tfrecords,tfrec,record,tfr}").display().to_string().into();
        return Err(PathsError::NoMatch { pattern }.into());
    }
    Ok(found)
}

/// Returns the TFRecord files in a folder, compressed ones too, that do not count as its shards because of their names, in natural order.
/// Examines the first bytes of at most [`MAX_EXAMINED`] files. Files that are not regular or cannot be read are left out.
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

/// Returns true if a file is regular and begins with a record, whose header has a correct checksum. Never blocks.
fn begins_with_record(path: &Path) -> bool {
    // Opening a device may change its state, so a link to one is not opened.
    fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && open_regular(path)
            .and_then(sniff::first_bytes)
            .is_ok_and(|first| sniff::begins_with_record(&first))
}

/// Returns true if a file of this name counts as a shard of its folder: it has one of the [`EXTENSIONS`], which a suffix of a compression
/// and `-NNNNN-of-NNNNN` may follow, and does not begin with a dot.
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
    let before_shard = || ShardName::parse(name).is_some_and(|m| m.suffix.is_empty() && plain(m.stem));
    // `x.tfrecord-00000-of-00002.gz` has its extension before the shard number and its compression after it.
    let between = || {
        let is_suffix =
            |suffix: &str| matches!(Compression::of_name(suffix), (found, "") if found != Compression::None);
        ShardName::parse(name).is_some_and(|m| is_suffix(m.suffix) && plain(m.stem))
    };
    !name.starts_with('.') && (plain(name) || before_shard() || between())
}
