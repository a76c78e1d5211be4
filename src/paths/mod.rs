//! Resolution of paths and patterns to an ordered list of shards.
//!
//! | form | example | result | order | checked for gaps |
//! | --- | --- | --- | --- | --- |
//! | file | `train.tfrecord` | the file, which must exist | - | no |
//! | pack | `.tfseek/train.tfrp` | the pack; [`is_pack`] distinguishes it from a shard | - | no |
//! | folder | `data/` | its files with one of the [`EXTENSIONS`]; if none has one, its TFRecord files of any name | natural | yes |
//! | folders | `data/**` | the same of the folder and all folders below it | natural | yes |
//! | wildcards | `data/train-*`, `**/*.tfrecord`, `x-[0-4]?` | the matching files; `*` and `?` match neither `/` nor a leading dot | natural | yes |
//! | braces | `x-{00000..00009}`, `{a,b}.tfrecord` | all names of the expansion, each of which must exist | natural | no |
//! | set | `train@10.tfrecord`, `train.tfrecord@10` | `train-00000-of-00010.tfrecord`.., `train.tfrecord-00000-of-00010`.. | natural | yes |
//! | set of any size | `train@*.tfrecord` | the only set of this name; two sets of different sizes are an error | natural | yes |
//! | list | `["b.tfrecord", "a-*"]` | the results of the items, with duplicates | the list's | the same as for each item |
//!
//! * **An existing path is not a pattern.** It is taken literally, whatever characters its name contains. The
//!   same holds for the leading folders of a pattern, as far as they exist.
//! * **The order determines record numbers**, so it is fixed. A list keeps the order of its items. The
//!   results of one pattern are in natural order (runs of digits compare by value), each file once.
//! * **Other names.** In a folder without the extensions, files count that begin with a record, such as
//!   `train-00000-of-00016`, and those
//!   whose names differ from such a name in numbers only. In other folders files with other names are not
//!   shards, and
//!   [`resolve_in_store`] names those that are TFRecord files. Objects are recognised by their names:
//!   `-NNNNN-of-NNNNN` and `part-*`.
//! * **Links.** `**` visits each folder once, under the first of its paths, whatever links lead to it.
//! * **Once.** A folder or pattern that finds a data set twice (`a.tfrecord` and `a.tfrecord.gz`, sets of two
//!   and of three shards) is an
//!   error. Items of a list may name both.
//! * **Gaps.** A name like `-00003-of-00010` contains the number of shards in its set. If a folder, a
//!   wildcard or an `@` found some shards of a set but not all, that is an error with the names of the
//!   missing ones. A set whose shards were all named by the caller, one by one or in braces, may be
//!   incomplete. The check covers all resolved paths, so two patterns may share a set. Sets in different
//!   folders are different sets.
//! * **Addresses need a store.** A path that begins with a scheme and `://`, like `gs://bucket/x`, is one of
//!   [`DatasetOptions::store`](crate::DatasetOptions::store). Without a store it is
//!   [`NotLocal`](PathsError::NotLocal), and so is `file://`. Use `./gs:/x` for a file in a local folder with
//!   such a name.
//! * **Braces.** `{a..b}` and `{a..b..step}` are ranges of decimal numbers. If one end begins with a zero,
//!   numbers are padded to the length of the longer end, as in a shell. Braces nest. They may expand to at
//!   most [`MAX_NAMES`] names. No other form takes memory in proportion to a given number: `x@999999999999`
//!   lists the folder instead of counting.

mod folder;
mod natural;
mod objects;
mod pattern;
mod replaced;
mod set;
mod walk;

pub use folder::{EXTENSIONS, has_extension};
pub(crate) use objects::list_many;
pub use pattern::MAX_NAMES;
pub use replaced::Replacement;
pub(crate) use replaced::{explained, is_last};
pub(crate) use set::is_of_set;
pub use set::set_of;

use folder::{existing, other_shards};
use natural::natural_cmp;
use set::FoundShard;

use crate::error::{Error, PathsError, Result};
use crate::io::{Storage, Store};
use crate::warning::Warning;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The shards of a dataset, given as one path or pattern or as a list of them.
///
/// The [module's table](self) describes the forms.
pub trait IntoPaths {
    /// Returns the paths and patterns, as given.
    fn into_paths(self) -> Vec<PathBuf>;
}

macro_rules! one_path {
    ($($t:ty),*) => {$(
        impl IntoPaths for $t {
            fn into_paths(self) -> Vec<PathBuf> {
                vec![PathBuf::from(self)]
            }
        }
    )*};
}
one_path!(&str, String, &String, &OsStr, OsString, &OsString, &Path, PathBuf, &PathBuf);

macro_rules! list_of_paths {
    ($([$($n:ident)?] $t:ty),*) => {$(
        impl<P: AsRef<Path> $(, const $n: usize)?> IntoPaths for $t {
            fn into_paths(self) -> Vec<PathBuf> {
                self.iter().map(|p| p.as_ref().to_path_buf()).collect()
            }
        }
    )*};
}
list_of_paths!([] &[P], [] Vec<P>, [] &Vec<P>, [N] [P; N], [N] &[P; N]);

/// Returns the shards that `paths` match, in order. Opens no shard.
///
/// With `allow_missing` a set may have gaps and names in braces may not exist, if at least one file remains.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let at = |name: &str| folder.path().join(name);
/// for i in [0, 1, 3] {
///     std::fs::write(at(&format!("train-0000{i}-of-00004.tfrecord")), "")?;
/// }
/// let e = tfseek::paths::resolve(at("train-*"), false).unwrap_err();
/// assert!(e.to_string().contains("train-00002-of-00004.tfrecord"));
/// assert_eq!(tfseek::paths::resolve(at("train@4.tfrecord"), true)?.len(), 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::Paths`](crate::ErrorKind::Paths) if a pattern matches no file, is invalid or leaves gaps, or
/// if a path is the address of a store; [`ErrorKind::Io`](crate::ErrorKind::Io) if a file does not exist or a
/// folder cannot be read.
pub fn resolve(paths: impl IntoPaths, allow_missing: bool) -> Result<Vec<PathBuf>> {
    resolve_all(&Storage::default(), paths.into_paths(), allow_missing, &mut Vec::new())
}

/// Returns the shards that `paths` match, as [`resolve`] does, and warnings of folders with TFRecord files
/// that were left out ([`Warning::OtherNames`]), of which it examines at most 1,000 files each. URLs are the
/// store's, and get names without their query: a store should know them also by these.
///
/// # Errors
/// Errors of [`resolve`], and of [`Store::list`].
pub fn resolve_in_store(
    store: Option<Arc<dyn Store>>,
    paths: impl IntoPaths,
    allow_missing: bool,
) -> Result<(Vec<PathBuf>, Vec<Warning>)> {
    resolve_in(&store.map_or_else(Storage::default, Storage::with_store), paths, allow_missing)
}

/// Returns the shards that `paths` match, as [`resolve_in_store`] does.
pub(crate) fn resolve_in(
    storage: &Storage,
    paths: impl IntoPaths,
    allow_missing: bool,
) -> Result<(Vec<PathBuf>, Vec<Warning>)> {
    let mut folders = Vec::new();
    let paths = resolve_all(storage, paths.into_paths(), allow_missing, &mut folders)?;
    folders.sort();
    folders.dedup();
    let mut warnings = Vec::new();
    for folder in folders {
        let mut found = other_shards(&folder);
        // Files that are given by name as well.
        found.retain(|path| !paths.contains(path));
        if !found.is_empty() {
            warnings.push(Warning::OtherNames { path: folder, found });
        }
    }
    Ok((paths, warnings))
}

fn resolve_all(
    storage: &Storage,
    given: Vec<PathBuf>,
    allow_missing: bool,
    folders: &mut Vec<PathBuf>,
) -> Result<Vec<PathBuf>> {
    if given.is_empty() {
        return Err(PathsError::NoMatch { pattern: "an empty list of paths".into() }.into());
    }
    list_many(storage, &given, true)?;
    let mut all = Vec::with_capacity(given.len());
    let mut is_once = Ok(());
    for path in given {
        let mut found = match storage.object_of(&path)? {
            Some((store, url)) => objects::resolve(storage, store, url, allow_missing)?,
            None => resolve_one(path, allow_missing, folders)?,
        };
        if found.len() > 1 {
            found.sort_by(|a, b| natural_cmp(&a.path, &b.path));
            // Braces and wildcards may find a file twice. It counts as searched if it was searched for at
            // least once.
            found.dedup_by(|b, a| {
                a.searched |= a.path == b.path && b.searched;
                a.path == b.path
            });
        }
        is_once = is_once.and_then(|()| set::check_once(&found));
        all.append(&mut found);
    }
    if !allow_missing {
        set::check_complete(&all)?;
    }
    is_once?;
    Ok(all.into_iter().map(|f| f.path).collect())
}

/// Returns true if a path is the path of a pack (`.tfrp`), which contains the indexes and the shard names of
/// a dataset.
pub fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "tfrp")
}

fn resolve_one(path: PathBuf, allow_missing: bool, folders: &mut Vec<PathBuf>) -> Result<Vec<FoundShard>> {
    let is_pattern = pattern::is_pattern(&path);
    match existing(&path, is_pattern, folders)? {
        Some(found) => Ok(found),
        None if is_pattern => pattern::resolve(&path, allow_missing, folders),
        None => Err(explained(Error::from(io::Error::from(io::ErrorKind::NotFound)).in_file(&path))),
    }
}

#[cfg(test)]
mod replaced_tests;
#[cfg(test)]
mod tests;
