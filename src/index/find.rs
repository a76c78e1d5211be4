//! Where a shard's index lies, and what is found there.

use super::core::{Core, Origin};
use super::identity::{Stamp, Verdict, fingerprints, hex128, judge};
use super::layout::{CHECKED, GAPS, HEADER_LEN, Header, MAX_PREFIX};
use super::options::IndexOptions;
use crate::error::{IndexError, Result};
use crate::io::{Compression, KeptFile, Map, ReadAt, Region, Reserved, folder, open_regular, zeroed};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The hidden folder beside the data. Hidden, so that another job's `glob("train-*")` never catches an index.
pub(crate) const BESIDE: &str = ".tfseek";
/// The ending of a sidecar's name.
pub(super) const TFRI: &str = ".tfri";
/// Up to here an index file is always read into memory: a process may hold 65,530 maps on Linux.
pub(crate) const SMALL: u64 = 64 << 10;
/// Up to here it is read into memory while the [`Budget`](crate::io::Budget) lasts: it may be deleted or cut from then on.
pub(crate) const READ_IN: u64 = 1 << 20;

/// A shard, as the caller named it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard<'a> {
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
pub(super) fn named_with(dir: &Path, path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or(OsStr::new("")));
    name.push(ending);
    dir.join(name)
}

/// A file of a shard in a folder for shards from anywhere: its name is the hash of the shard's real path.
pub(super) fn hashed_with(dir: &Path, path: &Path, ending: &str) -> io::Result<PathBuf> {
    let real = std::fs::canonicalize(path)?;
    Ok(dir.join(hex128(real.as_os_str().as_encoded_bytes()) + ending))
}

/// Where a shard's file with this ending may lie, in the order of the search.
pub(super) fn places(path: &Path, ending: &str, options: &IndexOptions) -> impl Iterator<Item = PathBuf> {
    // Each is made only when its turn has come: a hash costs a look at the real path.
    (0..4).filter_map(move |turn| match turn {
        0 => Some(named_with(options.index_dir.as_deref()?, path, ending)),
        1 => hashed_with(options.env_dir.as_deref()?, path, ending).ok(),
        2 => Some(named_with(&folder(path).join(BESIDE), path, ending)),
        _ => hashed_with(options.cache_dir.as_deref()?, path, ending).ok(),
    })
}

/// Two shards with one name cannot share an `index_dir`.
pub(crate) fn check_names(shards: &[Shard<'_>], options: &IndexOptions) -> Result<()> {
    if options.index_dir.is_none() {
        return Ok(());
    }
    let mut seen: HashMap<&OsStr, &Path> = HashMap::new();
    for shard in shards {
        let name = shard.path.file_name().unwrap_or_default();
        match seen.insert(name, shard.path) {
            Some(other) if other != shard.path => {
                let clash = IndexError::NameClash { other: other.into() };
                return Err(crate::error::Error::from(clash).in_file(shard.path));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the search has come to.
pub(crate) enum Found {
    /// Of this very file.
    Fresh(Core),
    /// Of the same bytes, with another time.
    Moved(Core),
    /// Of the file's beginning.
    Partial(Core),
    /// Nothing that can be used, and why, if there was something.
    Nothing(Option<&'static str>),
}

/// Looks where §1 of the format page says, in its order. The first that is of this very file is taken, then the first
/// with another time only, then the one that covers most of the file.
pub(crate) fn search(
    shard: Shard<'_>,
    now: Stamp,
    options: &IndexOptions,
    mut refused: impl FnMut(&Path, &str),
) -> Result<Found> {
    let path = shard.path;
    let mut best = Found::Nothing(None);
    for place in places(path, TFRI, options) {
        let core = match read(&place, options) {
            Ok(Some(core)) => core,
            Ok(None) => continue,
            Err(reason) => {
                refused(&place, &reason);
                best = best.or(Found::Nothing(Some("the index file is refused")));
                continue;
            }
        };
        best = match judge_core(core, shard, now, options)? {
            fresh @ Found::Fresh(_) => return Ok(fresh),
            other => best.or(other),
        };
    }
    Ok(best)
}

/// Why an index, whoever's it is, is not fit for what the caller wants.
pub(super) fn unfit(
    header: &Header,
    compression: Compression,
    options: &IndexOptions,
) -> Option<&'static str> {
    if header.compression() != compression {
        return Some("the index is for another compression");
    }
    if header.has(GAPS) && !options.accept_gaps {
        return Some("damage was skipped when it was indexed");
    }
    if options.check_payloads && !header.has(CHECKED) {
        return Some("payloads were not checked when it was indexed");
    }
    None
}

/// Whether an index is this shard's and fits what the caller wants.
fn judge_core(core: Core, shard: Shard<'_>, now: Stamp, options: &IndexOptions) -> Result<Found> {
    let header = &core.header;
    if let Some(why) = unfit(header, shard.compression, options) {
        return Ok(Found::Nothing(Some(why)));
    }
    let verdict = judge(header, now, |end| fingerprints(&open_regular(shard.path)?, end))
        .map_err(|e| crate::error::Error::from(e).in_file(shard.path))?;
    Ok(match verdict {
        Verdict::Accept => Found::Fresh(core),
        Verdict::Moved => Found::Moved(core),
        Verdict::Extend => Found::Partial(core),
        Verdict::Rebuild(why) => Found::Nothing(Some(why)),
    })
}

impl Found {
    fn rank(&self) -> (u8, u64) {
        match self {
            Found::Fresh(_) => (4, 0),
            Found::Moved(_) => (3, 0),
            Found::Partial(core) => (2, core.header.indexed_end),
            Found::Nothing(Some(_)) => (1, 0),
            Found::Nothing(None) => (0, 0),
        }
    }

    /// The better of two; the first, when they are equally good.
    fn or(self, other: Found) -> Found {
        if other.rank() > self.rank() { other } else { self }
    }
}

/// The sidecar at `path`; `None` if there is none, or a reason for which it counts as none.
pub(crate) fn read(path: &Path, options: &IndexOptions) -> Result<Option<Core>, String> {
    let Some(held) = hold(path, options)? else { return Ok(None) };
    let mut core = match held {
        Held::Whole(bytes, reserved) => {
            let len = bytes.len() as u64;
            Core { _reserved: reserved, ..Core::from_bytes(bytes, len)? }
        }
        Held::Start { bytes, len, head, file } => {
            let from = match file {
                Some(file) => Origin::Kept(Mutex::new(Some(Arc::new(file)))),
                None => Origin::Path { path: path.into(), head },
            };
            Core::lazy(&bytes, len, from)?
        }
    };
    core.file = Some(path.into());
    Ok(Some(core))
}

/// An index file that was opened.
pub(super) enum Held {
    /// All of it: read in, or mapped.
    Whole(Region, Option<Reserved>),
    /// Its header and section table; the rest is read at its first use, from `file` if the budget had a descriptor for it.
    Start { bytes: Vec<u8>, len: u64, head: Box<[u8; HEADER_LEN]>, file: Option<KeptFile> },
}

/// Opens the index file at `path`; `None` if there is none.
pub(super) fn hold(path: &Path, options: &IndexOptions) -> Result<Option<Held>, String> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(e.to_string()),
    };
    let io = |e: io::Error| e.to_string();
    let len = file.size().map_err(io)?;
    let budget = options.budget();
    let reserved = (SMALL < len && len <= READ_IN).then(|| budget.reserve(len)).flatten();
    let read_in = len <= SMALL || reserved.is_some();
    if !read_in && let Some(promise) = options.may_map {
        let map = Map::open(&file, promise).map_err(io)?;
        return Ok(Some(Held::Whole(map.into(), None)));
    }
    let mut bytes = zeroed(if read_in { len } else { MAX_PREFIX as u64 }).map_err(io)?;
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    if read_in {
        return Ok(Some(Held::Whole(Region::from(bytes), reserved)));
    }
    let head = Box::new(*bytes.first_chunk().ok_or("shorter than a header")?);
    Ok(Some(Held::Start { bytes, len, head, file: budget.keep_index(file).ok() }))
}

/// Opens an index file again to read a section that was left: it must be the one that was opened.
///
/// # Errors
/// [`IndexError::Stale`] for a file that is gone, or another one.
pub(super) fn reopen(path: &Path, head: &[u8; HEADER_LEN]) -> Result<File> {
    let stale = |what: &str| {
        let reason = format!("the index file was {what} before it was read: open the dataset again").into();
        IndexError::Stale { reason }
    };
    let file = match open_regular(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(stale("deleted").into()),
        opened => opened?,
    };
    let mut now = [0; HEADER_LEN];
    match file.read_exact_at(&mut now, 0) {
        Ok(()) if now == *head => Ok(file),
        Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => Err(e.into()),
        _ => Err(stale("replaced").into()),
    }
}
