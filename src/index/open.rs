//! From paths to indexes: search, limit, scan.

use super::build::{from_offsets, scan};
use super::identity::Stamp;
use super::layout::TORN;
use super::options::IndexOptions;
use super::progress::{Progress, Work};
use super::sidecar::Core;
use super::store::{self, Found, Shard, named, search};
use super::store::{Save, save_somewhere, target_dir, write};
use super::table::TableBuilder;
use super::{Index, stale};
use crate::error::{At, Build, Error, ErrorKind, IndexError, Result};
use crate::frame::{HEADER_LEN, Torn};
use crate::io::threads;
use crate::io::{Compression, FileId, ReadAt, TMP_PREFIX, check_regular, open_regular, sniff};
use crate::policy::{IndexMode, Tail};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// The indexes of a set of shards, in its order.
#[derive(Debug)]
pub struct Opened {
    /// One a shard.
    pub indexes: Vec<Index>,
    /// What was not as it should be, and stood in nobody's way.
    pub warnings: Vec<Warning>,
}

/// Something that a user should hear of, and that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file it is about.
    pub path: PathBuf,
    /// What it is.
    pub kind: WarningKind,
}

/// The kinds of warnings.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// An index file is damaged or of a later version; it counts as missing.
    Refused {
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// Indexes, or columns, could be saved nowhere, and will be built again next time. Said once; the path is the first shard's.
    NotSaved {
        /// How many.
        shards: usize,
        /// What the last folder that was tried said.
        reason: Box<str>,
    },
    /// The shard changed while it was scanned, so its index, or column, was not saved.
    Changed,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            WarningKind::Refused { reason } => write!(f, "index file is not used: {reason}"),
            WarningKind::NotSaved { shards, reason } => {
                write!(
                    f,
                    "what was built of {shards} shards stays in memory and is built again next time: {reason}"
                )
            }
            WarningKind::Changed => f.write_str("changed while it was scanned, what was found is not saved"),
        }
    }
}

/// Finds, extends or builds the indexes of uncompressed shards, several at once, as
/// [`mode`](IndexOptions::mode) says. Nothing is written beside the data.
///
/// # Errors
/// Damage, with path, record and offset; a torn tail, unless tolerated; [`IndexError::BuildLimit`] before anything is
/// scanned; [`IndexError::Missing`] and [`IndexError::Stale`] where an index is required; [`IndexError::NameClash`];
/// [`ErrorKind::Cancelled`] where `progress` says so; those of the system. Of several, that of the first shard.
pub fn open_shards(paths: &[PathBuf], options: &IndexOptions, progress: Progress<'_>) -> Result<Opened> {
    let work = Work::new(progress);
    work.end(open_all(&plain(paths), options, Save::Unasked, &work))
}

/// The command `tfseek index`: as [`open_shards`], without the limit, and each index is written to `.tfseek/` beside its
/// shard, or to [`index_dir`](IndexOptions::index_dir). Removes what killed writers left there a day ago or earlier.
///
/// With [`IndexMode::Rebuild`] nothing is searched for; the other modes mean the same here. A shard that fails does not
/// keep the others from being indexed; [`build_each`] tells which ones did.
///
/// # Errors
/// As [`open_shards`]; also where an index cannot be written.
pub fn build_beside(paths: &[PathBuf], options: &IndexOptions, progress: Progress<'_>) -> Result<Opened> {
    let mut all = Opened { indexes: Vec::with_capacity(paths.len()), warnings: Vec::new() };
    for built in build_each(paths, options, progress)? {
        let built = built?;
        all.indexes.extend(built.indexes);
        all.warnings.extend(built.warnings);
    }
    Ok(all)
}

/// As [`build_beside`], and for each shard what became of it: its one index, or its error.
///
/// # Errors
/// Errors of the set as a whole: [`IndexError::NameClash`], and [`ErrorKind::Cancelled`].
pub fn build_each(
    paths: &[PathBuf],
    options: &IndexOptions,
    progress: Progress<'_>,
) -> Result<Vec<Result<Opened>>> {
    let shards = plain(paths);
    store::check_names(&shards, options)?;
    let (one, work) = (options.clone().jobs(1), Work::new(progress));
    let build = |s: usize| Ok(open_all(&shards[s..=s], &one, Save::Asked, &work));
    let built = threads::each(options.jobs, shards.len(), false, build);
    let mut folders: Vec<PathBuf> = paths.iter().map(|p| target_dir(p, options)).collect();
    folders.sort();
    folders.dedup();
    folders.iter().for_each(|dir| drop(remove_leftovers(dir)));
    work.end(built)
}

fn plain(paths: &[PathBuf]) -> Vec<Shard<'_>> {
    paths.iter().map(|path| Shard { path, compression: Compression::None }).collect()
}

/// Removes the temporary files in `dir` that are a day old: what is left when a writer is killed. How many.
///
/// # Errors
/// Those of reading the folder; a file that cannot be removed stays.
pub fn remove_leftovers(dir: &Path) -> io::Result<usize> {
    let day_ago = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
    let mut removed = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let hex = name.to_str().and_then(|n| n.strip_prefix(TMP_PREFIX));
        let ours = hex.is_some_and(|h| h.len() == 16 && h.bytes().all(|b| b.is_ascii_hexdigit()));
        let old = || entry.metadata().and_then(|m| m.modified()).is_ok_and(|t| t < day_ago);
        if ours && old() && fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Shards looked at, before anything is scanned.
struct Look {
    stamp: Stamp,
    id: Option<FileId>,
    found: Found,
    warnings: Vec<Warning>,
}

/// A shard's index, and what happened on the way.
struct Done {
    core: Core,
    changed: bool,
    not_saved: Option<io::Error>,
}

/// All doors lead here.
pub(crate) fn open_all(
    shards: &[Shard<'_>],
    options: &IndexOptions,
    save: Save,
    work: &Work<'_>,
) -> Result<Opened> {
    store::check_names(shards, options)?;
    threads::threads(options.jobs)?;
    let options = &options.budgeted();
    // A look takes some 20 us, a pool of threads a hundred.
    let look_jobs = if shards.len() < 64 { 1 } else { options.jobs };
    let looks = threads::each(look_jobs, shards.len(), true, |s| {
        work.report(0)?;
        look(shards[s], options)
    })?;
    let mut warnings = Vec::new();
    let mut todo = Vec::new();
    let (mut missing, mut bytes) = (0, 0u64);
    for mut look in looks {
        warnings.append(&mut look.warnings);
        let scan = match &look.found {
            Found::Fresh(_) | Found::Moved(_) => None,
            Found::Partial(core) => Some(look.stamp.size - core.header.indexed_end),
            Found::Nothing(_) => Some(look.stamp.size),
        };
        missing += usize::from(scan.is_some());
        bytes = bytes.saturating_add(scan.unwrap_or(0));
        // Each look is taken once, by the thread that meets its shard.
        todo.push(Mutex::new(Some(look)));
    }
    if options.mode == IndexMode::Auto && save == Save::Unasked && bytes > options.auto_limit {
        let build = Box::new(build_of(shards));
        return Err(
            IndexError::BuildLimit { shards: missing, bytes, limit: options.auto_limit, build }.into()
        );
    }
    // Likewise a scan of a MiB.
    let jobs = if bytes < 1 << 20 { 1 } else { options.jobs };
    let done = threads::each(jobs, shards.len(), true, |s| {
        let taken = todo[s].lock().unwrap_or_else(|e| e.into_inner()).take();
        let look = taken.ok_or(IndexError::Missing)?;
        finish(shards[s], look, options, save, work).map_err(|e| explained(e, shards[s]))
    })?;
    let mut not_saved: Option<Warning> = None;
    let mut indexes = Vec::with_capacity(done.len());
    for (shard, done) in shards.iter().zip(done) {
        if done.changed {
            warnings.push(Warning { path: shard.path.into(), kind: WarningKind::Changed });
        }
        if let Some(e) = done.not_saved {
            let first = not_saved.get_or_insert_with(|| Warning {
                path: shard.path.into(),
                kind: WarningKind::NotSaved { shards: 0, reason: e.to_string().into() },
            });
            if let WarningKind::NotSaved { shards, .. } = &mut first.kind {
                *shards += 1;
            }
        }
        indexes.push(done.core.into());
    }
    warnings.extend(not_saved);
    Ok(Opened { indexes, warnings })
}

fn look(shard: Shard<'_>, options: &IndexOptions) -> Result<Look> {
    let here = |e: io::Error| Error::from(e).in_file(shard.path);
    let meta = fs::metadata(shard.path).map_err(here)?;
    if let Err(e) = check_regular(&meta) {
        if meta.is_dir() {
            return Err(here(e));
        }
        let found = e.to_string().into();
        return Err(Error::from(IndexError::NotRegular { found }).in_file(shard.path));
    }
    let stamp = Stamp::of(&meta).map_err(here)?;
    let mut warnings = Vec::new();
    let found = match options.mode {
        IndexMode::Memory | IndexMode::Rebuild => Found::Nothing(None),
        IndexMode::Auto | IndexMode::Require => search(shard, stamp, options, |file, reason| {
            let kind = WarningKind::Refused { reason: reason.into() };
            warnings.push(Warning { path: file.into(), kind });
        })?,
    };
    if options.mode == IndexMode::Require {
        let error = match &found {
            Found::Fresh(_) | Found::Moved(_) => None,
            Found::Partial(core) => Some(stale(&core.header, stamp, "the shard has grown")),
            Found::Nothing(None) => Some(IndexError::Missing.into()),
            Found::Nothing(Some(why)) => Some(IndexError::Stale { reason: (*why).into() }.into()),
        };
        if let Some(error) = error {
            return Err(error.in_file(shard.path));
        }
    }
    Ok(Look { stamp, id: FileId::known(&meta), found, warnings })
}

/// Scans what is left to scan, saves what is new, and holds the result against the options.
fn finish(
    shard: Shard<'_>,
    Look { stamp, id, found, .. }: Look,
    options: &IndexOptions,
    save: Save,
    work: &Work<'_>,
) -> Result<Done> {
    let (mut core, fresh) = match found {
        Found::Fresh(core) => (Core { shard_id: id, ..core }, true),
        Found::Moved(mut core) => {
            core.header.mtime_ns = stamp.mtime_ns;
            (Core { shard_id: id, ..core }, false)
        }
        Found::Partial(old) => (scan(shard, stamp, Some(&old), options, work)?, false),
        Found::Nothing(_) => (scan(shard, stamp, None, options, work)?, false),
    };
    let known = Stamp { size: core.header.data_size, mtime_ns: core.header.mtime_ns };
    // What was not scanned was looked at just now.
    let changed = !fresh && Stamp::of(&fs::metadata(shard.path)?)? != known;
    let mut not_saved = None;
    if !changed {
        match save {
            Save::Asked => {
                let target = named(&target_dir(shard.path, options), shard.path);
                if !fresh || core.file.as_deref() != Some(&target) {
                    write(&target, |w| core.write_to(w)).map_err(|e| e.in_file(&target))?;
                    core.file = Some(target.into());
                }
            }
            Save::Unasked if !fresh && matches!(options.mode, IndexMode::Auto | IndexMode::Rebuild) => {
                match save_somewhere(shard.path, store::TFRI, options, |w| core.write_to(w)) {
                    Ok(target) => core.file = Some(target.into()),
                    Err(e) => not_saved = Some(e),
                }
            }
            _ => {}
        }
    }
    if core.header.has(TORN) && options.tail == Tail::Strict {
        return Err(torn_tail(&core, shard.path)?);
    }
    Ok(Done { core, changed, not_saved })
}

/// Names the shard, and what it is if its very first record is none.
#[cold]
fn explained(e: Error, shard: Shard<'_>) -> Error {
    let e = e.in_file(shard.path);
    let mut first = Vec::new();
    let read = |file: File| file.take(sniff::SNIFF_LEN as u64).read_to_end(&mut first);
    match (shard.compression, open_regular(shard.path).and_then(read)) {
        (Compression::None, Ok(_)) => sniff::explain(e, &first),
        _ => e,
    }
}

/// Writes the sidecar of a file that a Writer has just closed, from the offsets it noted: to `.tfseek/` beside it, or to
/// the `index_dir` of `options`.
#[allow(dead_code, reason = "the writer's door")]
pub(crate) fn sidecar_for_written(
    path: &Path,
    compression: Compression,
    offsets: TableBuilder,
    end: u64,
    options: &IndexOptions,
) -> Result<Index> {
    let mut core = from_offsets(path, compression, offsets, end, true).map_err(|e| e.in_file(path))?;
    let target = named(&target_dir(path, options), path);
    write(&target, |w| core.write_to(w)).map_err(|e| e.in_file(&target))?;
    core.file = Some(target.into());
    Ok(core.into())
}

/// A torn tail as an error: with what this process's scan found, or twelve bytes read where an older one stopped.
pub(super) fn torn_tail(core: &Core, path: &Path) -> Result<Error> {
    let header = &core.header;
    let place = At::new(path, header.n_records, header.stream_end);
    let torn = match core.torn {
        Some(torn) => torn,
        None if header.compression() != Compression::None => {
            return Ok(Error::from(IndexError::TornTail).at(place));
        }
        None => {
            let have = header.data_size - header.indexed_end;
            let mut bytes = [0; HEADER_LEN];
            let need = if have < HEADER_LEN as u64 {
                HEADER_LEN as u64
            } else {
                open_regular(path)?.read_exact_at(&mut bytes, header.indexed_end)?;
                crate::frame::Header::parse(&bytes).map_err(|e| e.at(place))?.record_len()
            };
            Torn { need, have }
        }
    };
    Ok(Error::from(ErrorKind::Truncated { need: torn.need, have: torn.have }).at(place))
}

/// The build of the indexes of these shards: their paths, or the pattern that they have in common.
pub(crate) fn build_of(shards: &[Shard<'_>]) -> Build {
    let names: Vec<String> = shards.iter().map(|s| s.path.display().to_string()).collect();
    let (Some(first), true) = (names.first(), names.len() > 3) else {
        return Build { paths: names, ..Build::default() };
    };
    let (mut start, mut end) = (first.len(), first.len());
    for name in &names {
        start = start.min(first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count());
        end = end.min(first.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count());
    }
    let tail = first.len() - end.min(first.len() - start);
    match (first.get(..start), first.get(tail..)) {
        (Some(head), Some(tail))
            if names.iter().all(|n| n.get(start..).is_some_and(|n| !n.contains('/'))) =>
        {
            Build { paths: vec![format!("{head}*{tail}")], ..Build::default() }
        }
        _ => Build { paths: vec![first.clone()], more: names.len() - 1, ..Build::default() },
    }
}
