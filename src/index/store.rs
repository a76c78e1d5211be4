//! The locations of index and column files: search, choice and saving.

use super::file::{OpenedFile, open_file};
use super::identity::{Sameness, Staleness, compare, fingerprints_beside, hex128, sameness};
use super::layout::{CHECKED, GAPS, IndexHeader, Refusal, TORN};
use super::options::IndexOptions;
use super::sidecar::Sidecar;
use crate::error::{Error, IndexError, Result};
use crate::io::{AtomicFile, Compression, Stamp, create_own_folder, folder, join, url_of};
use crate::policy::Damage;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Name of the hidden index folder next to the data. It is hidden so that `glob("train-*")` in another job
/// never matches an index.
pub(crate) const HIDDEN_DIR: &str = ".tfseek";
/// File name extension of a sidecar.
pub(super) const TFRI: &str = ".tfri";
/// File name extension of a pack.
pub(super) const TFRP: &str = ".tfrp";

pub(super) const NO_CHECKPOINTS: &str = "the index of a compressed shard has no checkpoints";

/// Returns the path of a sidecar in the hidden folder.
#[cfg(test)]
pub(crate) fn hidden_sidecar(path: &Path) -> PathBuf {
    named_with(&join(folder(path), HIDDEN_DIR), path, TFRI)
}

/// Returns the path of a file with the extension `ending` in a folder where files are named after shards.
pub(crate) fn named_with(dir: &Path, path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or(OsStr::new("")));
    name.push(ending);
    join(dir, name)
}

/// Returns the path of a file with the extension `ending` in the caller's folder for index files. Objects
/// whose name does not tell them apart have their key there too.
fn named_apart(dir: &Path, path: &Path, ending: &str, options: &IndexOptions) -> PathBuf {
    match options.storage.key_beside_name(path) {
        Some(key) => named_with(dir, path, &format!(".{key}{ending}")),
        None => named_with(dir, path, ending),
    }
}

/// Returns the path of a file in a folder that serves all shards of the machine. Its name is the hash of the
/// shard's real path, or the key of the object. Columns are values of one version of an object, if it has
/// one; an index is compared with the object.
pub(crate) fn hashed_with(
    dir: &Path,
    path: &Path,
    ending: &str,
    options: &IndexOptions,
) -> io::Result<PathBuf> {
    if let Some(key) = options.storage.key(path) {
        let version = options.storage.version(path).filter(|_| ending != TFRI);
        let version = version.map_or_else(String::new, |version| format!("\n{version}"));
        return Ok(dir.join(hex128(format!("{key}{version}").as_bytes()) + ending));
    }
    let real = fs::canonicalize(path)?;
    Ok(dir.join(hex128(real.as_os_str().as_encoded_bytes()) + ending))
}

/// Returns the paths where a shard's file with the extension `ending` may be, in search order.
pub(crate) fn candidates(path: &Path, ending: &str, options: &IndexOptions) -> impl Iterator<Item = PathBuf> {
    // Each path is computed only when it is needed, because a hash requires resolving the real path.
    (0..4).filter_map(move |k| match k {
        0 => Some(named_apart(options.index_dir.as_deref()?, path, ending, options)),
        1 => hashed_with(options.env_dir.as_deref()?, path, ending, options).ok(),
        2 if !options.storage.is_selected_by_name(path) => None,
        2 => Some(named_with(&join(folder(path), HIDDEN_DIR), path, ending)),
        _ => hashed_with(options.cache_dir.as_deref()?, path, ending, options).ok(),
    })
}

/// Refuses a folder for index files that others can write to, and two shards with the same file name if there
/// is a folder where files are named after shards.
pub(crate) fn check_names(shards: &[&Path], options: &IndexOptions) -> Result<()> {
    options.check_index_dir()?;
    if options.index_dir.is_none() && options.rest.is_none() {
        return Ok(());
    }
    let mut seen: HashMap<&OsStr, &Path> = HashMap::new();
    for &shard in shards {
        let name = shard.file_name().unwrap_or_default();
        match seen.insert(name, shard) {
            Some(other) if other != shard => {
                let clash = IndexError::NameClash { other: other.into() };
                return Err(Error::from(clash).in_file(shard));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The result of the search for the index of a shard.
pub(crate) enum IndexSearch {
    /// An index with the size and the time of the shard.
    Fresh(Sidecar),
    /// An index of the same bytes with another time.
    Moved(Sidecar),
    /// An index of the first part of the shard, which has grown since.
    Partial(Sidecar),
    /// No usable index. If one was found, the field is the reason why it is not usable.
    Nothing(Option<&'static str>),
}

/// Searches for an index in the folders of docs/index.md §1, in that order. The first with the shard's size
/// and time is taken; otherwise the first of the same bytes with another time; otherwise the one that covers
/// most of the shard. In another order, a copied shard would be fingerprinted and its index saved again at
/// every open.
pub(crate) fn search(
    shard: &Path,
    now: &Stamp,
    options: &IndexOptions,
    refused: &mut impl FnMut(&Path, &str),
) -> Result<IndexSearch> {
    let mut best = IndexSearch::Nothing(None);
    for file in candidates(shard, TFRI, options) {
        let sidecar = match read(&file, options) {
            Ok(Some(sidecar)) => sidecar,
            Ok(None) => continue,
            Err(reason) => {
                refused(&file, &reason);
                best = best.or(IndexSearch::Nothing(Some("the index file is invalid")));
                continue;
            }
        };
        best = match classify(sidecar, shard, now, options)? {
            fresh @ IndexSearch::Fresh(_) => return Ok(fresh),
            other => best.or(other),
        };
    }
    Ok(best)
}

/// Returns the reason why an index is unsuitable for the options of the caller, whatever its shard is.
pub(crate) fn mismatch(header: &IndexHeader, options: &IndexOptions) -> Option<&'static str> {
    if header.has(GAPS) && options.damage == Damage::Raise {
        return Some("damaged records were skipped when the shard was indexed");
    }
    // An index with gaps is one of a scan that skipped damage.
    let checked = header.has(CHECKED) || header.has(GAPS) && !options.check_payloads;
    if options.checks_payloads() && !checked {
        return Some("payloads were not verified when the shard was indexed");
    }
    None
}

/// Compares an index with the options and with the shard.
pub(super) fn classify(
    sidecar: Sidecar,
    shard: &Path,
    now: &Stamp,
    options: &IndexOptions,
) -> Result<IndexSearch> {
    let header = &sidecar.header;
    if let Some(why) = mismatch(header, options) {
        return Ok(IndexSearch::Nothing(Some(why)));
    }
    if !sidecar.allows_access() {
        return Ok(IndexSearch::Nothing(Some(NO_CHECKPOINTS)));
    }
    if !sidecar.tells_losses() {
        return Ok(IndexSearch::Nothing(Some(
            "the index does not tell what it leaves out of a compressed shard",
        )));
    }
    let shard_fingerprints = || fingerprints_beside(options.storage.open(shard)?.source(), header);
    let mut sameness = sameness(header, sidecar.saved_ns, now);
    // The fingerprints do not cover what was left out, which may be sound now. A later index tells.
    let is_later = now.changed_ns.filter(|&changed| changed != i64::MAX) > sidecar.saved_ns;
    if sameness == Sameness::Unknown && is_later && (header.has(GAPS) || header.has(TORN)) {
        sameness = Sameness::Changed;
    }
    let staleness =
        compare(header, sameness, now, shard_fingerprints).map_err(|e| Error::from(e).in_file(shard))?;
    Ok(match staleness {
        Staleness::Fresh => IndexSearch::Fresh(sidecar),
        Staleness::Moved if tells_all(&sidecar, now) => IndexSearch::Fresh(sidecar),
        Staleness::Moved => IndexSearch::Moved(sidecar),
        Staleness::Grown => match cannot_extend(&sidecar, options) {
            Some(why) => IndexSearch::Nothing(Some(why)),
            None => IndexSearch::Partial(sidecar),
        },
        Staleness::Stale(why) => IndexSearch::Nothing(Some(why)),
    })
}

/// Returns true if an index of the same bytes would tell no more of a file if it was written now: both were
/// written in one clock tick, or the system does not tell when a file was changed.
fn tells_all(sidecar: &Sidecar, now: &Stamp) -> bool {
    let is_told = |changed| changed == i64::MAX || sidecar.saved_ns.is_some_and(|saved| saved >= changed);
    sidecar.header.mtime_ns == now.mtime_ns() && now.changed_ns.is_some_and(is_told)
}

/// Returns the reason why the index of a shard that has grown cannot be extended. A gzip shard is extended at
/// the end of its last member, where no window is needed. Damage in the new part leads to no rebuild: a
/// reader that polls would scan the whole shard each time.
fn cannot_extend(sidecar: &Sidecar, options: &IndexOptions) -> Option<&'static str> {
    if sidecar.header.compression() == Compression::None {
        None
    } else if sidecar.header.has(TORN) {
        Some("the compressed shard has grown, and its tail was torn when it was indexed")
    } else if sidecar.spacing() != Some(options.checkpoint_every) {
        Some("the compressed shard has grown, and the spacing of its checkpoints is another one")
    } else {
        None
    }
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

    /// Returns the better of two results, or `self` if they are equally good.
    pub(super) fn or(self, other: IndexSearch) -> IndexSearch {
        if other.rank() > self.rank() { other } else { self }
    }
}

/// Reads the sidecar at `path`. Returns `None` if there is no file; the error is the reason why the file is
/// refused.
pub(crate) fn read(path: &Path, options: &IndexOptions) -> Result<Option<Sidecar>, String> {
    let is_in_store = url_of(path).is_some();
    let decode = |opened| {
        let sidecar = decode(opened)?;
        // A bit may have flipped on its way. Blocks of a file are verified on first use.
        if is_in_store {
            sidecar.verify().map_err(|e| e.kind().to_string())?;
        }
        Ok(sidecar)
    };
    let Some((mut sidecar, saved_ns)) = open_file(path, options, decode)? else { return Ok(None) };
    sidecar.file = Some(path.into());
    sidecar.saved_ns = saved_ns;
    Ok(Some(sidecar))
}

fn decode(opened: OpenedFile) -> Result<Sidecar, Refusal> {
    match opened {
        OpenedFile::Whole(bytes, reserved) => {
            Ok(Sidecar { _reserved: reserved, ..Sidecar::from_bytes(bytes)? })
        }
        OpenedFile::Start { bytes, len, from } => Sidecar::lazy(&bytes, len, from),
    }
}

/// The destination of an index or a column that was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Save {
    /// The first writable of `index_dir`, `TFSEEK_INDEX_DIR` and the cache; otherwise memory only. Never the
    /// folder of the data.
    BestEffort,
    /// `index_dir`, or else the hidden folder next to the data; for an object the folders of `BestEffort`. A
    /// failed write is an error.
    Required,
    /// Memory only: a pack will contain it.
    Never,
}

/// Returns the folder for index files that the caller requests: `index_dir`, or the hidden folder next to the
/// data.
pub(crate) fn target_dir(path: &Path, options: &IndexOptions) -> PathBuf {
    options.index_dir.clone().unwrap_or_else(|| join(folder(path), HIDDEN_DIR))
}

/// Writes an index file atomically, to a path or URL, and ends with `commit`. Creates its folder if it is
/// missing.
pub(super) fn write(
    target: &Path,
    options: &IndexOptions,
    bytes: impl FnOnce(&mut dyn Write) -> Result<()>,
    commit: fn(AtomicFile) -> io::Result<()>,
) -> Result<()> {
    if url_of(target).is_some() {
        let mut all = Vec::new();
        bytes(&mut all)?;
        return options.storage.put(target, &all);
    }
    let dir = folder(target);
    let IndexOptions { index_dir, env_dir, cache_dir, .. } = options;
    if [index_dir, env_dir, cache_dir].into_iter().flatten().any(|own| own == dir) {
        create_own_folder(dir)?;
    } else {
        fs::create_dir_all(dir)?;
    }
    let mut file = BufWriter::new(AtomicFile::create(target)?);
    bytes(&mut file)?;
    commit(file.into_inner().map_err(io::IntoInnerError::into_error)?)?;
    Ok(())
}

/// Writes an index file that was requested to [`target_dir`], unless `known` is there, and returns its path.
/// Unless it is `beside_objects`, nothing is written beside an object: [`save_somewhere`] saves its files,
/// unless `known` is a file anywhere.
///
/// # Errors
/// A failed write.
pub(crate) fn save_required(
    path: &Path,
    ending: &str,
    known: Option<&Path>,
    beside_objects: bool,
    options: &IndexOptions,
    bytes: impl Fn(&mut dyn Write) -> Result<()>,
) -> Result<PathBuf> {
    if url_of(path).is_some() && options.index_dir.is_none() && !beside_objects {
        return match known {
            Some(file) => Ok(file.into()),
            None => save_somewhere(path, ending, options, bytes).map_err(|e| Error::from(e).in_file(path)),
        };
    }
    let target = match &options.index_dir {
        Some(dir) => named_apart(dir, path, ending, options),
        None => named_with(&target_dir(path, options), path, ending),
    };
    if known != Some(&*target) {
        write(&target, options, bytes, AtomicFile::commit).map_err(|e| e.in_file(&target))?;
    }
    Ok(target)
}

/// Writes an index file to the first writable of `index_dir`, `TFSEEK_INDEX_DIR` and the cache, and returns
/// its path. If all fail, returns the last error.
pub(crate) fn save_somewhere(
    path: &Path,
    ending: &str,
    options: &IndexOptions,
    bytes: impl Fn(&mut dyn Write) -> Result<()>,
) -> io::Result<PathBuf> {
    let mut last = io::Error::other("no folder for index files is configured");
    let targets = [
        options.index_dir.as_deref().map(|dir| Ok(named_apart(dir, path, ending, options))),
        options.env_dir.as_deref().map(|dir| hashed_with(dir, path, ending, options)),
        options.cache_dir.as_deref().map(|dir| hashed_with(dir, path, ending, options)),
    ];
    for target in targets.into_iter().flatten() {
        // A power failure costs at most the file: a part of it is refused by its length or its checksums, and
        // built again.
        let written = target.map_err(Error::from).and_then(|target| {
            write(&target, options, &bytes, AtomicFile::commit_unsynced)?;
            Ok(target)
        });
        match written {
            Ok(target) => return Ok(target),
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}
