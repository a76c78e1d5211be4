//! From what a user types to an ordered list of shards.
//!
//! | form | example | gives | order | checked for gaps |
//! | --- | --- | --- | --- | --- |
//! | file | `train.tfrecord` | itself; it has to exist | - | no |
//! | pack | `.tfseek/train.tfrp` | itself; [`is_pack`] tells it from a shard | - | no |
//! | folder | `data/` | its files with one of the [`EXTENSIONS`], not those of its folders | natural | yes |
//! | wildcards | `data/train-*`, `**/*.tfrecord`, `x-[0-4]?` | the files that match; `*` and `?` stop at `/` and at a leading dot | natural | yes |
//! | braces | `x-{00000..00009}`, `{a,b}.tfrecord` | each name spelled, all of which have to exist | natural | no |
//! | set | `train@10.tfrecord`, `train.tfrecord@10` | `train-00000-of-00010.tfrecord`.., `train.tfrecord-00000-of-00010`.. | natural | yes |
//! | set of any size | `train@*.tfrecord` | the one set there is; two of different sizes are refused | natural | yes |
//! | list | `["b.tfrecord", "a-*"]` | what each item gives, repeated if an item is | the caller's | as its items |
//!
//! * **What exists is not a pattern.** A path that is there is taken literally, whatever characters its name
//!   has; so are the folders at its start, as far as they exist.
//! * **Order decides record numbers**, so it is fixed: a list keeps the caller's, and what one pattern gives is in
//!   natural order (runs of digits by their value), each file once.
//! * **Gaps.** A name `-00003-of-00010` tells how many shards its set has. A set of which a folder, a wildcard or an
//!   `@` found some but which lacks others is an error that names them; a set whose members were all spelled by the
//!   caller, one by one or in braces, is what the caller says it is. Members are looked for among all that was
//!   resolved, so two patterns may share a set. Each folder has sets of its own.
//! * **Addresses are refused.** What begins with a scheme and `://`, as `gs://bucket/x` does, is
//!   [`NotLocal`](PathsError::NotLocal), `file://` too. A file in a folder whose name looks like a scheme is reached by
//!   `./gs:/x`.
//! * In braces `{a..b}` and `{a..b..step}` are ranges of decimal numbers, padded with zeros as in a shell: to the
//!   longer end if one begins with a zero. Braces nest. They may spell at most [`MAX_NAMES`] names; nothing else
//!   here takes room by a number that was typed: `x@999999999999` looks at what the folder holds.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod folder;
mod natural;
mod pattern;
mod set;

pub use folder::EXTENSIONS;
pub use pattern::MAX_NAMES;

use folder::existing;

use natural::natural_cmp;
use set::Found;

use crate::error::{Error, PathsError, Result};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Shards of a dataset: one path or pattern, or a list of them. A single one is a list of one.
///
/// The forms are in the [module's table](self). This trait is sealed.
pub trait IntoPaths: sealed::Sealed {
    /// The paths and patterns, as given.
    fn into_paths(self) -> Vec<PathBuf>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! one_path {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
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
        impl<P: AsRef<Path> $(, const $n: usize)?> sealed::Sealed for $t {}
        impl<P: AsRef<Path> $(, const $n: usize)?> IntoPaths for $t {
            fn into_paths(self) -> Vec<PathBuf> {
                self.iter().map(|p| p.as_ref().to_path_buf()).collect()
            }
        }
    )*};
}
list_of_paths!([] &[P], [] Vec<P>, [] &Vec<P>, [N] [P; N], [N] &[P; N]);

/// The shards that `paths` name, in order.
///
/// With `allow_missing` a set may have gaps and braces may spell names that are not there, as long as something is
/// left. No shard is opened.
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
/// [`ErrorKind::Paths`](crate::ErrorKind::Paths) when a pattern matches nothing, cannot be understood or leaves gaps, and when
/// an address is given for a path;
/// [`ErrorKind::Io`](crate::ErrorKind::Io) when a file is not there or a folder cannot be read.
pub fn resolve(paths: impl IntoPaths, allow_missing: bool) -> Result<Vec<PathBuf>> {
    let given = paths.into_paths();
    if given.is_empty() {
        return Err(PathsError::NoMatch { pattern: "an empty list of paths".into() }.into());
    }
    let mut all = Vec::with_capacity(given.len());
    for path in given {
        let mut found = resolve_one(path, allow_missing)?;
        if found.len() > 1 {
            found.sort_by(|a, b| natural_cmp(&a.path, &b.path));
            // Braces and wildcards may reach a file twice. If one of the two searched for it, it was searched for.
            found.dedup_by(|b, a| {
                a.searched |= a.path == b.path && b.searched;
                a.path == b.path
            });
        }
        all.append(&mut found);
    }
    if !allow_missing {
        set::check_complete(&all)?;
    }
    Ok(all.into_iter().map(|f| f.path).collect())
}

/// Whether a path is that of a pack (`.tfrp`): the indexes of a whole dataset, and the names of its shards.
pub fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "tfrp")
}

fn resolve_one(path: PathBuf, allow_missing: bool) -> Result<Vec<Found>> {
    check_local(&path)?;
    match existing(&path) {
        Ok(Some(found)) => Ok(found),
        // Whatever the system has against the name (too long, not a folder), a pattern is not a name.
        Ok(None) | Err(_) if pattern::is_pattern(&path) => pattern::resolve(&path, allow_missing),
        Ok(None) => Err(Error::from(io::Error::new(io::ErrorKind::NotFound, "no such file")).in_file(&path)),
        Err(e) => Err(e),
    }
}

/// Refuses the address of a store or a server.
///
/// # Errors
/// [`PathsError::NotLocal`].
pub(crate) fn check_local(path: &Path) -> Result<()> {
    let Some((scheme, slashes)) = path.to_str().and_then(scheme) else { return Ok(()) };
    // With one slash, as `pathlib.Path` writes it, it may be a folder of that name.
    if slashes < 2 && Path::new(&format!("{scheme}:")).exists() {
        return Ok(());
    }
    Err(PathsError::NotLocal { address: path.display().to_string().into(), scheme: scheme.into() }.into())
}

/// The scheme that an address begins with (RFC 3986, 3.1), and how many slashes follow its colon, of two. A single letter is a
/// drive of Windows.
fn scheme(path: &str) -> Option<(&str, usize)> {
    let (scheme, rest) = path.split_once(":/")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && scheme.len() > 1;
    is_scheme.then_some((scheme, if rest.starts_with('/') { 2 } else { 1 }))
}

#[cfg(test)]
mod tests;
