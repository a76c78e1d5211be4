//! Indexes of many shards: found, extended or built, and saved.

use super::build::{from_offsets, scan};
use super::identity::{Stamp, stale};
use super::layout::TORN;
use super::lookup::Index;
use super::obtain::{Made, Searched, ShardFiles, obtain, refused_file};
use super::options::IndexOptions;
use super::progress::Work;
use super::sidecar::Sidecar;
use super::store::{self, IndexSearch, NamedShard, Save, named, save_somewhere, search, target_dir, write};
use super::table::TableBuilder;
use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::frame::{HEADER_LEN, RecordHeader, Torn};
use crate::io::threads;
use crate::io::{Compression, FileId, ReadAt, TMP_PREFIX, check_regular, open_regular, sniff};
use crate::policy::{IndexMode, Tail};
use crate::warning::Warning;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The indexes of a set of shards, in its order. Several of these collect into one.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct Indexes {
    /// One for each shard.
    pub indexes: Vec<Index>,
    /// Warnings: index files that were refused or could not be saved, shards that changed meanwhile.
    pub warnings: Vec<Warning>,
}

impl FromIterator<Indexes> for Indexes {
    fn from_iter<I: IntoIterator<Item = Indexes>>(parts: I) -> Indexes {
        let mut all = Indexes::default();
        for part in parts {
            all.indexes.extend(part.indexes);
            all.warnings.extend(part.warnings);
        }
        all
    }
}

/// Finds, extends or builds the indexes of uncompressed shards, several at once, as
/// [`mode`](IndexOptions::mode) says. Nothing is written beside the data.
///
/// # Errors
/// Damage, with path, record and offset; a torn tail, unless tolerated; [`IndexError::BuildLimit`] before anything is
/// scanned; [`IndexError::Missing`] and [`IndexError::Stale`] where an index is required; [`IndexError::NameClash`];
/// [`ErrorKind::Cancelled`] where [`progress`](IndexOptions::progress) says so; I/O errors. Of several, that of the first shard.
pub fn open_shards(paths: &[PathBuf], options: &IndexOptions) -> Result<Indexes> {
    let work = Work::new(options.progress.as_ref());
    work.end(open_all(&plain(paths), options, Save::Unasked, &work))
}

/// Builds indexes as the command `tfseek index` does: as [`open_shards`], without the limit, and each index is written to
/// `.tfseek/` beside its shard, or to [`index_dir`](IndexOptions::index_dir). Removes the temporary files that killed writers left
/// there a day ago or earlier.
///
/// Returns the one index of each shard, or its error: a shard that fails does not keep the others from being indexed. With
/// [`IndexMode::Rebuild`] nothing is searched for; the other modes mean the same here.
///
/// # Errors
/// Errors of the set as a whole: [`IndexError::NameClash`], and [`ErrorKind::Cancelled`]. Those of a shard are as in [`open_shards`];
/// also where an index cannot be written.
pub fn build_beside(paths: &[PathBuf], options: &IndexOptions) -> Result<Vec<Result<Indexes>>> {
    let shards = plain(paths);
    store::check_names(&shards, options)?;
    let (one, work) = (options.clone().jobs(1), Work::new(options.progress.as_ref()));
    let build = |s: usize| Ok(open_all(&shards[s..=s], &one, Save::Asked, &work));
    let built = threads::each(options.jobs, shards.len(), false, build);
    let mut folders: Vec<PathBuf> = paths.iter().map(|p| target_dir(p, options)).collect();
    folders.sort();
    folders.dedup();
    // A file that stays is no error: the indexes are there.
    folders.iter().for_each(|dir| drop(remove_leftovers(dir)));
    work.end(built)
}

fn plain(paths: &[PathBuf]) -> Vec<NamedShard<'_>> {
    paths.iter().map(|path| NamedShard { path, compression: Compression::None }).collect()
}

/// Removes the temporary files in `dir` that are a day old: those that killed writers have left.
fn remove_leftovers(dir: &Path) -> io::Result<()> {
    let day_ago = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let hex = name.to_str().and_then(|n| n.strip_prefix(TMP_PREFIX));
        let ours = hex.is_some_and(|h| h.len() == 16 && h.bytes().all(|b| b.is_ascii_hexdigit()));
        let old = || entry.metadata().and_then(|m| m.modified()).is_ok_and(|t| t < day_ago);
        if ours && old() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Finds or builds the indexes of these shards.
pub(crate) fn open_all(
    shards: &[NamedShard<'_>],
    options: &IndexOptions,
    save: Save,
    work: &Work,
) -> Result<Indexes> {
    let options = &options.budgeted();
    let (indexes, warnings) =
        obtain(&IndexFiles { shards, options, save, work }, shards, options, save, work)?;
    Ok(Indexes { indexes, warnings })
}

/// The index files of shards.
struct IndexFiles<'a> {
    shards: &'a [NamedShard<'a>],
    options: &'a IndexOptions,
    save: Save,
    work: &'a Work,
}

/// A shard's index as it was found, and the shard's state then.
struct FoundIndex {
    stamp: Stamp,
    id: Option<FileId>,
    search: IndexSearch,
}

impl ShardFiles for IndexFiles<'_> {
    type Found = FoundIndex;
    type Made = Index;

    fn search(&self, s: usize) -> Result<Searched<FoundIndex>> {
        let (shard, options) = (self.shards[s], self.options);
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
        let found = match options.reads_indexes() {
            false => IndexSearch::Nothing(None),
            true => search(shard, stamp, options, |file, reason| warnings.push(refused_file(file, reason)))?,
        };
        if options.mode == IndexMode::Require {
            let error = match &found {
                IndexSearch::Fresh(_) | IndexSearch::Moved(_) => None,
                IndexSearch::Partial(old) => Some(stale(&old.header, stamp, "the shard has grown")),
                IndexSearch::Nothing(None) => Some(IndexError::Missing.into()),
                IndexSearch::Nothing(Some(why)) => Some(IndexError::Stale { reason: (*why).into() }.into()),
            };
            if let Some(error) = error {
                return Err(error.in_file(shard.path));
            }
        }
        let scan = match &found {
            IndexSearch::Fresh(_) | IndexSearch::Moved(_) => None,
            IndexSearch::Partial(old) => Some(stamp.size - old.header.indexed_end),
            IndexSearch::Nothing(_) => Some(stamp.size),
        };
        let found = FoundIndex { stamp, id: FileId::known(&meta), search: found };
        Ok(Searched { found, scan, warnings })
    }

    fn make(&self, s: usize, found: FoundIndex) -> Result<Made<Index>> {
        self.finished(self.shards[s], found).map_err(|e| explained(e, self.shards[s]))
    }
}

impl IndexFiles<'_> {
    /// Scans what is left to scan, saves what is new, and compares the result with the options.
    fn finished(&self, shard: NamedShard<'_>, found: FoundIndex) -> Result<Made<Index>> {
        let IndexFiles { options, work, .. } = *self;
        let FoundIndex { stamp, id, search } = found;
        let (mut sidecar, fresh) = match search {
            IndexSearch::Fresh(old) => (Sidecar { shard_id: id, ..old }, true),
            IndexSearch::Moved(mut old) => {
                old.header.mtime_ns = stamp.mtime_ns;
                (Sidecar { shard_id: id, ..old }, false)
            }
            IndexSearch::Partial(old) => (scan(shard, stamp, Some(&old), options, work)?, false),
            IndexSearch::Nothing(_) => (scan(shard, stamp, None, options, work)?, false),
        };
        let known = Stamp { size: sidecar.header.data_size, mtime_ns: sidecar.header.mtime_ns };
        // What was not scanned was compared just now.
        let changed = !fresh && Stamp::of(&fs::metadata(shard.path)?)? != known;
        let mut not_saved = None;
        if !changed {
            match self.save {
                Save::Asked => {
                    let target = named(&target_dir(shard.path, options), shard.path);
                    if !fresh || sidecar.file.as_deref() != Some(&target) {
                        write(&target, |w| sidecar.write_to(w)).map_err(|e| e.in_file(&target))?;
                        sidecar.file = Some(target.into());
                    }
                }
                Save::Unasked if !fresh && matches!(options.mode, IndexMode::Auto | IndexMode::Rebuild) => {
                    match save_somewhere(shard.path, store::TFRI, options, |w| sidecar.write_to(w)) {
                        Ok(target) => sidecar.file = Some(target.into()),
                        Err(e) => not_saved = Some(e),
                    }
                }
                _ => {}
            }
        }
        if sidecar.header.has(TORN) && options.tail == Tail::Strict {
            return Err(torn_tail(&sidecar, shard.path)?);
        }
        Ok(Made { files: sidecar.into(), changed, not_saved })
    }
}

/// Names the shard, and says what the file is where its very first record is damaged.
#[cold]
fn explained(e: Error, shard: NamedShard<'_>) -> Error {
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
pub(crate) fn sidecar_for_written(
    path: &Path,
    compression: Compression,
    offsets: TableBuilder,
    end: u64,
    options: &IndexOptions,
) -> Result<Index> {
    let mut sidecar = from_offsets(path, compression, offsets, end, true).map_err(|e| e.in_file(path))?;
    let target = named(&target_dir(path, options), path);
    write(&target, |w| sidecar.write_to(w)).map_err(|e| e.in_file(&target))?;
    sidecar.file = Some(target.into());
    Ok(sidecar.into())
}

/// A torn tail as an error: with what this process's scan found, or twelve bytes read where an older one stopped.
pub(super) fn torn_tail(sidecar: &Sidecar, path: &Path) -> Result<Error> {
    let header = &sidecar.header;
    let place = At::new(path, header.n_records, header.stream_end);
    let torn = match sidecar.torn {
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
                RecordHeader::parse(&bytes).map_err(|e| e.at(place))?.record_len()
            };
            Torn { need, have }
        }
    };
    Ok(Error::from(ErrorKind::Truncated { need: torn.need, have: torn.have }).at(place))
}
