//! Where a shard's index and column files lie: looked for, judged and saved.

use super::file::{OpenedFile, open_file};
use super::identity::{Stamp, Verdict, fingerprints, hex128, judge};
use super::layout::{CHECKED, GAPS, Header};
use super::options::IndexOptions;
use super::sidecar::{Sidecar, TableOrigin};
use crate::error::{Error, IndexError, Result};
use crate::io::{AtomicFile, Compression, folder, open_regular};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The hidden folder beside the data. Hidden, so that another job's `glob("train-*")` never catches an index.
pub(crate) const BESIDE: &str = ".tfseek";
/// The ending of a sidecar's name.
pub(super) const TFRI: &str = ".tfri";

/// A shard, as the caller named it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedShard<'a> {
    pub(crate) path: &'a Path,
    pub(crate) compression: Compression,
}

#[cfg(test)]
pub(crate) fn beside(path: &Path) -> PathBuf {
    named(&folder(path).join(BESIDE), path)
}

/// The sidecar in a folder where names are shards' names.
pub(crate) fn named(dir: &Path, path: &Path) -> PathBuf {
    named_with(dir, path, TFRI)
}

/// A file of a shard in a folder where names are shards' names; `ending` says which.
pub(crate) fn named_with(dir: &Path, path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or(OsStr::new("")));
    name.push(ending);
    dir.join(name)
}

/// A file of a shard in a folder for shards from anywhere: its name is the hash of the shard's real path.
pub(crate) fn hashed_with(dir: &Path, path: &Path, ending: &str) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    Ok(dir.join(hex128(real.as_os_str().as_encoded_bytes()) + ending))
}

/// Where a shard's file with this ending may lie, in the order of the search.
pub(crate) fn places(path: &Path, ending: &str, options: &IndexOptions) -> impl Iterator<Item = PathBuf> {
    // Each is made only when its turn has come: a hash costs a look at the real path.
    (0..4).filter_map(move |turn| match turn {
        0 => Some(named_with(options.index_dir.as_deref()?, path, ending)),
        1 => hashed_with(options.env_dir.as_deref()?, path, ending).ok(),
        2 => Some(named_with(&folder(path).join(BESIDE), path, ending)),
        _ => hashed_with(options.cache_dir.as_deref()?, path, ending).ok(),
    })
}

/// Two shards with one name cannot share an `index_dir`.
pub(crate) fn check_names(shards: &[NamedShard<'_>], options: &IndexOptions) -> Result<()> {
    if options.index_dir.is_none() {
        return Ok(());
    }
    let mut seen: HashMap<&OsStr, &Path> = HashMap::new();
    for shard in shards {
        let name = shard.path.file_name().unwrap_or_default();
        match seen.insert(name, shard.path) {
            Some(other) if other != shard.path => {
                let clash = IndexError::NameClash { other: other.into() };
                return Err(Error::from(clash).in_file(shard.path));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the search has come to.
pub(crate) enum IndexSearch {
    /// Of this very file.
    Fresh(Sidecar),
    /// Of the same bytes, with another time.
    Moved(Sidecar),
    /// Of the file's beginning.
    Partial(Sidecar),
    /// Nothing that can be used, and why, if there was something.
    Nothing(Option<&'static str>),
}

/// Looks where §1 of the format page says, in its order. The first that is of this very file is taken, then the first
/// with another time only, then the one that covers most of the file.
pub(crate) fn search(
    shard: NamedShard<'_>,
    now: Stamp,
    options: &IndexOptions,
    mut refused: impl FnMut(&Path, &str),
) -> Result<IndexSearch> {
    let path = shard.path;
    let mut best = IndexSearch::Nothing(None);
    for place in places(path, TFRI, options) {
        let sidecar = match read(&place, options) {
            Ok(Some(sidecar)) => sidecar,
            Ok(None) => continue,
            Err(reason) => {
                refused(&place, &reason);
                best = best.or(IndexSearch::Nothing(Some("the index file is refused")));
                continue;
            }
        };
        best = match judge_core(sidecar, shard, now, options)? {
            fresh @ IndexSearch::Fresh(_) => return Ok(fresh),
            other => best.or(other),
        };
    }
    Ok(best)
}

/// Why an index, whoever's it is, is not fit for what the caller wants.
pub(crate) fn unfit(
    header: &Header,
    compression: Compression,
    options: &IndexOptions,
) -> Option<&'static str> {
    if header.compression() != compression {
        return Some("the index is for another compression");
    }
    if header.has(GAPS) {
        return Some("damage was skipped when it was indexed");
    }
    if options.check_payloads && !header.has(CHECKED) {
        return Some("payloads were not checked when it was indexed");
    }
    None
}

/// Whether an index is this shard's and fits what the caller wants.
fn judge_core(
    sidecar: Sidecar,
    shard: NamedShard<'_>,
    now: Stamp,
    options: &IndexOptions,
) -> Result<IndexSearch> {
    let header = &sidecar.header;
    if let Some(why) = unfit(header, shard.compression, options) {
        return Ok(IndexSearch::Nothing(Some(why)));
    }
    let verdict = judge(header, now, |end| fingerprints(&open_regular(shard.path)?, end))
        .map_err(|e| Error::from(e).in_file(shard.path))?;
    Ok(match verdict {
        Verdict::Accept => IndexSearch::Fresh(sidecar),
        Verdict::Moved => IndexSearch::Moved(sidecar),
        Verdict::Extend => IndexSearch::Partial(sidecar),
        Verdict::Rebuild(why) => IndexSearch::Nothing(Some(why)),
    })
}

impl IndexSearch {
    fn rank(&self) -> (u8, u64) {
        match self {
            IndexSearch::Fresh(_) => (4, 0),
            IndexSearch::Moved(_) => (3, 0),
            IndexSearch::Partial(sidecar) => (2, sidecar.header.indexed_end),
            IndexSearch::Nothing(Some(_)) => (1, 0),
            IndexSearch::Nothing(None) => (0, 0),
        }
    }

    /// The better of two; the first, when they are equally good.
    fn or(self, other: IndexSearch) -> IndexSearch {
        if other.rank() > self.rank() { other } else { self }
    }
}

/// The sidecar at `path`; `None` if there is none, or a reason for which it counts as none.
pub(crate) fn read(path: &Path, options: &IndexOptions) -> Result<Option<Sidecar>, String> {
    let Some(held) = open_file(path, options)? else { return Ok(None) };
    let mut sidecar = match held {
        OpenedFile::Whole(bytes, reserved) => {
            let len = bytes.len() as u64;
            Sidecar { _reserved: reserved, ..Sidecar::from_bytes(bytes, len)? }
        }
        OpenedFile::Start { bytes, len, head, file } => {
            let from = match file {
                Some(file) => TableOrigin::Kept(Mutex::new(Some(Arc::new(file)))),
                None => TableOrigin::Path { path: path.into(), head },
            };
            Sidecar::lazy(&bytes, len, from)?
        }
    };
    sidecar.file = Some(path.into());
    Ok(Some(sidecar))
}

/// Where an index or a column that was built goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Save {
    /// Not beside the data, and if nowhere else, then nowhere.
    Unasked,
    /// Beside the data, or an error.
    Asked,
    /// Nowhere: a pack takes it.
    Never,
}

/// The folder of index files that were asked for.
pub(crate) fn target_dir(path: &Path, options: &IndexOptions) -> PathBuf {
    options.index_dir.clone().unwrap_or_else(|| folder(path).join(BESIDE))
}

/// Writes an index file whole: in the target folder, made if missing.
pub(crate) fn write(target: &Path, bytes: impl FnOnce(&mut AtomicFile) -> Result<()>) -> Result<()> {
    fs::create_dir_all(folder(target))?;
    let mut file = AtomicFile::create(target)?;
    bytes(&mut file)?;
    file.commit()?;
    Ok(())
}

/// Writes to the first of index_dir, TFSEEK_INDEX_DIR and cache that takes it: where. What the last one said, if none does.
pub(crate) fn save_somewhere(
    path: &Path,
    ending: &str,
    options: &IndexOptions,
    bytes: impl Fn(&mut AtomicFile) -> Result<()>,
) -> io::Result<PathBuf> {
    let mut last = io::Error::other("there is no folder for indexes");
    let targets = [
        options.index_dir.as_deref().map(|dir| Ok(named_with(dir, path, ending))),
        options.env_dir.as_deref().map(|dir| hashed_with(dir, path, ending)),
        options.cache_dir.as_deref().map(|dir| hashed_with(dir, path, ending)),
    ];
    for target in targets.into_iter().flatten() {
        match target.map_err(Error::from).and_then(|target| write(&target, &bytes).map(|()| target)) {
            Ok(target) => return Ok(target),
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}
