//! Finding, extending, building and saving the indexes of many shards.

use super::build::{from_offsets, scan};
use super::identity::{stale, why_partial};
use super::layout::TORN;
use super::left_out::{long_blocks, report};
use super::lookup::Index;
use super::obtain::{Obtained, SearchResult, ShardFiles, obtain, refused_file};
use super::options::IndexOptions;
use super::packed::Pack;
use super::progress::Work;
use super::sidecar::Sidecar;
use super::store::{
    self, HIDDEN_DIR, IndexSearch, Save, TFRI, TFRP, classify, save_required, save_somewhere, search,
    target_dir,
};
use super::table::TableBuilder;
use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::frame::{HEADER_LEN, RecordHeader, Salvage, Torn};
use crate::io::{
    Compression, HiddenFolder, Inflate, ReadRange, SalvageItem, SalvageReader, Source, Stamp, TMP_PREFIX,
    check_regular, file_type_name, folder, join, read_exact_at, sniff, threads, url_of,
};
use crate::paths;
use crate::policy::{Damage, IndexMode};
use crate::warning::Warning;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tfseek_wire::MAX_LEN;

/// The indexes of a set of shards, in the order of the set. Collecting several of these joins them.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct Indexes {
    /// One index per shard.
    pub indexes: Vec<Index>,
    /// Index files that were refused or could not be saved, shards that changed while they were scanned, and
    /// what was left out.
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

/// Finds, extends or builds the indexes of shards, as [`mode`](IndexOptions::mode) allows. Processes several
/// shards at once. Nothing is written next to the data.
///
/// # Errors
/// - a corrupt record, with path, record and offset
/// - a torn tail, unless tolerated
/// - [`IndexError::BuildLimit`], before anything is scanned
/// - [`IndexError::Missing`] or [`IndexError::Stale`], if an index is required
/// - [`IndexError::NameClash`]
/// - [`ErrorKind::Cancelled`], if the [`progress`](IndexOptions::progress) callback cancels the call
/// - I/O errors
///
/// If several shards fail, the first one's error is returned.
pub fn open_shards(paths: &[PathBuf], options: &IndexOptions) -> Result<Indexes> {
    let options = &options.budgeted();
    let paths = options.storage.names(paths)?;
    let work = Work::new(options.progress.as_ref());
    let shards: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    work.end(open_all(&shards, options, Save::BestEffort, &work))
}

/// Builds indexes like the command `tfseek index`. Works like [`open_shards`], but without the limit on bytes
/// to scan. Writes each index to `.tfseek/` next to its shard, or to [`index_dir`](IndexOptions::index_dir).
/// Indexes of objects are written to the user's cache. Also removes temporary files there that killed writers
/// left at least a day ago.
///
/// Returns the index or the error of each shard. A shard that fails does not stop the others.
/// [`IndexMode::Rebuild`] and [`IndexMode::Memory`] skip the search for existing indexes. With
/// [`IndexMode::Require`] a shard without a usable index is an error.
///
/// # Errors
/// Errors of the whole set: [`IndexError::NameClash`] and [`ErrorKind::Cancelled`]. Errors per shard: errors
/// of [`open_shards`], and a failed write of its index.
#[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
pub fn build_beside(paths: &[PathBuf], options: &IndexOptions) -> Result<Vec<Result<Indexes>>> {
    let options = &options.budgeted();
    let paths = options.storage.names(paths)?;
    let shards: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    store::check_names(&shards, options)?;
    // With fewer shards than threads, a shard has several threads.
    let each = threads::threads(options.threads)? / shards.len().max(1);
    let one = options.clone().threads(each);
    let work = Work::new(options.progress.as_ref());
    let build = |s: usize| Ok(open_all(&shards[s..=s], &one, Save::Required, &work));
    let mut built = threads::each(options.threads, shards.len(), false, build);
    if let Ok(built) = &mut built {
        let index = |shard: &Result<Indexes>| shard.as_ref().ok()?.indexes.first()?.longest_segment();
        let long = long_blocks(paths.iter().cloned().zip(built.iter().map(index)));
        // One warning for all shards, with the warnings of the first.
        let first = long.as_ref().and_then(|long| paths.iter().position(|path| Some(&**path) == long.path()));
        if let Some(Ok(first)) = first.and_then(|first| built.get_mut(first)) {
            first.warnings.extend(long);
        }
        if let Some(Ok(first)) = built.first_mut() {
            first.warnings.extend(options.untrusted());
        }
    }
    let mut folders: Vec<PathBuf> = paths.iter().map(|p| target_dir(p, options)).collect();
    folders.sort();
    folders.dedup();
    // A leftover that cannot be removed is not an error, because the indexes are complete.
    folders.iter().for_each(|dir| drop(remove_leftovers(dir)));
    work.end(built)
}

/// Removes temporary files in `dir` that are at least a day old. Killed writers leave such files.
fn remove_leftovers(dir: &Path) -> io::Result<()> {
    if url_of(dir).is_some() {
        return Ok(());
    }
    let Some(day_ago) = SystemTime::now().checked_sub(Duration::from_secs(24 * 60 * 60)) else {
        return Ok(());
    };
    HiddenFolder::check(dir)?;
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

/// Finds, extends or builds the indexes of shards.
pub(crate) fn open_all(shards: &[&Path], options: &IndexOptions, save: Save, work: &Work) -> Result<Indexes> {
    let options = &options.budgeted();
    // A builder that goes over the shards one by one tells of folders itself.
    let untrusted = (save != Save::Required).then(|| options.untrusted()).into_iter().flatten();
    let (indexes, mut warnings) = obtain(
        &IndexFiles { shards, options, save, work, packs: Mutex::default() },
        shards,
        options,
        save,
        work,
    )?;
    warnings.extend(untrusted);
    check_one_set(shards, &indexes, options)?;
    for (&shard, index) in shards.iter().zip(&indexes) {
        warnings.extend(report(shard, index, options, work).map_err(|e| e.in_file(shard))?);
    }
    Ok(Indexes { indexes, warnings })
}

/// Returns an error if a shard of a set has been replaced since its index was obtained: the others may then
/// belong to another set. A writer that replaces a set gives all its shards to other files.
fn check_one_set(shards: &[&Path], indexes: &[Index], options: &IndexOptions) -> Result<()> {
    if shards.len() < 2 {
        return Ok(());
    }
    for (&shard, index) in shards.iter().zip(indexes).filter(|(shard, _)| paths::is_of_set(shard)) {
        let Some(known) = index.shard_id() else { continue };
        let now = options.storage.id(shard).map_err(|e| Error::from(e).in_file(shard))?;
        if now != Some(known) {
            let reason = "the shard was replaced while its set was opened: open the set again".into();
            return Err(Error::from(IndexError::Stale { reason }).in_file(shard));
        }
    }
    Ok(())
}

/// Returns the stamp of a shard, which must be a regular file or an object.
fn stamp(path: &Path, options: &IndexOptions) -> Result<Stamp> {
    if url_of(path).is_some() {
        return options.storage.stamp(path);
    }
    let meta = fs::metadata(path)?;
    match check_regular(&meta) {
        Ok(()) => Ok(Stamp::of(&meta)?),
        Err(e) if meta.is_dir() => Err(e.into()),
        Err(_) => Err(IndexError::NotRegular { found: file_type_name(&meta).into() }.into()),
    }
}

/// Maximum number of packs that are read beside the objects of a folder.
const MAX_PACKS: usize = 16;

/// The index files of shards.
struct IndexFiles<'a> {
    shards: &'a [&'a Path],
    options: &'a IndexOptions,
    save: Save,
    work: &'a Work,
    /// The packs beside objects, by their folders.
    packs: Mutex<HashMap<PathBuf, Arc<OpenedPacks>>>,
}

/// The packs in a folder: opened, or the path and the reason why one is refused.
type OpenedPacks = Vec<Result<Pack, (PathBuf, String)>>;

/// The result of the search for an index, and the state of the shard at that time.
struct FoundIndex {
    stamp: Stamp,
    search: IndexSearch,
}

impl ShardFiles for IndexFiles<'_> {
    type Found = FoundIndex;
    type Files = Index;

    #[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
    fn search(&self, s: usize) -> Result<SearchResult<FoundIndex>> {
        let shard = self.shards[s];
        let options = self.options;
        let stamp = stamp(shard, options).map_err(|e| e.in_file(shard))?;
        let mut warnings = Vec::new();
        let found = if options.reads_indexes() {
            let mut refused = |file: &Path, reason: &str| warnings.push(refused_file(file, reason));
            match search(shard, &stamp, options, &mut refused)? {
                fresh @ IndexSearch::Fresh(_) => fresh,
                found => found.or(self.search_packs(shard, &stamp, &mut refused)?),
            }
        } else {
            IndexSearch::Nothing(None)
        };
        if options.mode == IndexMode::Require {
            let error = match &found {
                IndexSearch::Fresh(_) | IndexSearch::Moved(_) => None,
                IndexSearch::Partial(old) => {
                    Some(stale(&old.header, &stamp, why_partial(&old.header, &stamp)))
                }
                IndexSearch::Nothing(None) => Some(IndexError::Missing.into()),
                IndexSearch::Nothing(Some(why)) => Some(IndexError::Stale { reason: (*why).into() }.into()),
            };
            if let Some(error) = error {
                return Err(error.in_file(shard));
            }
        }
        let scan = match &found {
            IndexSearch::Fresh(_) | IndexSearch::Moved(_) => None,
            IndexSearch::Partial(old) => Some(stamp.size - old.header.indexed_end),
            IndexSearch::Nothing(_) => Some(stamp.size),
        };
        let found = FoundIndex { stamp, search: found };
        Ok(SearchResult { found, scan, warnings })
    }

    #[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
    fn build(&self, s: usize, found: FoundIndex, threads: usize) -> Result<Obtained<Index>> {
        self.complete(self.shards[s], found, threads).map_err(|e| explain(e, self.shards[s], self.options))
    }
}

impl IndexFiles<'_> {
    /// Searches for the index of an object in the packs beside it, whose names are known from the listing of
    /// their folder.
    fn search_packs(
        &self,
        shard: &Path,
        now: &Stamp,
        refused: &mut impl FnMut(&Path, &str),
    ) -> Result<IndexSearch> {
        let mut best = IndexSearch::Nothing(None);
        if url_of(shard).is_none() || !self.options.storage.is_selected_by_name(shard) {
            return Ok(best);
        }
        for url in self.packs_of(shard)?.iter() {
            let found = match url {
                Ok(pack) => pack.sidecar_of(shard),
                Err((path, reason)) => {
                    refused(path, reason);
                    continue;
                }
            };
            best = match found {
                Ok(None) => continue,
                Ok(Some(sidecar)) => best.or(classify(sidecar, shard, now, self.options)?),
                Err(e) => {
                    refused(e.location().path.as_deref().unwrap_or(shard), &e.kind().to_string());
                    continue;
                }
            };
            if let IndexSearch::Fresh(_) = best {
                break;
            }
        }
        Ok(best)
    }

    /// Returns the packs beside an object. Each is read once for all shards of the set.
    fn packs_of(&self, path: &Path) -> Result<Arc<OpenedPacks>> {
        let folder = join(folder(path), HIDDEN_DIR);
        let mut known = self.packs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(packs) = known.get(&folder) {
            return Ok(Arc::clone(packs));
        }
        let mut all = Vec::new();
        for url in self.options.storage.index_files(&folder, TFRP)?.into_iter().take(MAX_PACKS) {
            let path = PathBuf::from(&*url);
            all.push(Pack::open(&path, self.options).map_err(|e| (path, e.kind().to_string())));
        }
        let packs = Arc::new(all);
        known.insert(folder, Arc::clone(&packs));
        Ok(packs)
    }

    /// Scans the part of a shard that is not indexed, saves a new index, and checks the result against the
    /// options.
    fn complete(&self, shard: &Path, found: FoundIndex, threads: usize) -> Result<Obtained<Index>> {
        let IndexFiles { options, work, .. } = *self;
        let FoundIndex { stamp, search } = found;
        let (mut sidecar, fresh) = match search {
            IndexSearch::Fresh(old) => (Sidecar { shard: Some(stamp), ..old }, true),
            IndexSearch::Moved(mut old) => {
                // An object without a time is never fresh, and its index has nothing new.
                let unchanged = old.header.mtime_ns == stamp.mtime_ns() && stamp.changed_ns.is_none();
                old.header.mtime_ns = stamp.mtime_ns();
                (Sidecar { shard: Some(stamp), ..old }, unchanged)
            }
            IndexSearch::Partial(old) => (scan(shard, &stamp, Some(&old), options, threads, work)?, false),
            IndexSearch::Nothing(_) => (scan(shard, &stamp, None, options, threads, work)?, false),
        };
        // A fresh index was compared with the shard a moment ago, and nothing was scanned since.
        let changed = !fresh && {
            let now = options.storage.stamp(shard)?;
            let state = |stamp: &Stamp| (stamp.size, stamp.modified_ns, stamp.changed_ns);
            sidecar.shard.as_ref().is_none_or(|then| state(then) != state(&now))
        };
        let mut not_saved = None;
        let write = |mut w: &mut dyn Write| sidecar.write_to(&mut w);
        match self.save {
            Save::Required if !changed => {
                let known = sidecar.file.as_deref().filter(|_| fresh);
                let file = save_required(shard, TFRI, known, false, options, write)?;
                sidecar.file = Some(file.into());
            }
            Save::BestEffort
                if !changed && !fresh && matches!(options.mode, IndexMode::Auto | IndexMode::Rebuild) =>
            {
                match save_somewhere(shard, TFRI, options, write) {
                    Ok(target) => sidecar.file = Some(target.into()),
                    Err(e) => not_saved = Some(e),
                }
            }
            _ => {}
        }
        if sidecar.header.has(TORN) && !options.allows_torn() {
            return Err(torn_tail(&sidecar, shard, options)?);
        }
        Ok(Obtained { files: sidecar.into(), changed, not_saved })
    }
}

/// Number of first bytes of a shard that may explain its damage.
const EXPLAINED: u64 = 64 << 10;
/// Number of first bytes of a shard, or of an object, in which a sound record is searched for.
const SEARCHED: u64 = 64 << 20;
const SEARCHED_OBJECT: u64 = 1 << 20;

/// Returns false if a shard has no sound record, and does not begin like one: a length that fits is probably
/// the length of a damaged record.
fn may_have_records(file: &dyn Source, first: &[u8], options: &IndexOptions) -> bool {
    if first.first_chunk().is_some_and(|len| u64::from_le_bytes(*len) <= file.len()) {
        return true;
    }
    let most = if options.storage.has_store() { SEARCHED_OBJECT } else { SEARCHED };
    let len = file.len();
    let mut reader = SalvageReader::plain(file, len.min(most), Salvage::new(MAX_LEN));
    while let Ok(Some(item)) = reader.next() {
        if let SalvageItem::Record { .. } = item {
            return true;
        }
    }
    len > most
}

/// Adds the path to an error. If the first record is damaged, also adds the kind of file that the shard seems
/// to be.
#[cold]
fn explain(e: Error, shard: &Path, options: &IndexOptions) -> Error {
    let e = e.in_file(shard);
    let Ok(opened) = options.storage.open(shard) else { return e };
    let file = opened.source();
    let bytes = || ReadRange { file, at: 0, end: file.len() };
    let Ok(first) = sniff::first_bytes(bytes()) else { return e };
    let compression = sniff::compression(&first);
    match compression.format() {
        None => {
            let mut first = Vec::new();
            if bytes().take(EXPLAINED).read_to_end(&mut first).is_err() {
                return e;
            }
            let e = sniff::explain(e, &first);
            let is_no_record = sniff::is_unexplained(&e)
                && (options.damage == Damage::Skip || !may_have_records(file, &first, options));
            if is_no_record { sniff::without_records(e) } else { e }
        }
        // The start of the content decides. A damaged stream has an error of its own.
        Some(format) => match sniff::first_bytes(Inflate::new(bytes(), compression)) {
            Ok(first) => sniff::explain_inflated(e, format, &first),
            Err(_) => e,
        },
    }
}

/// Writes the sidecar of a shard that a `Writer` has just closed, from the offsets that it recorded. Writes
/// to `.tfseek/` next to the shard, or to the `index_dir` of `options`.
pub(crate) fn sidecar_for_written(
    path: &Path,
    compression: Compression,
    offsets: TableBuilder,
    end: u64,
    options: &IndexOptions,
) -> Result<Index> {
    let mut sidecar = from_offsets(path, compression, offsets, end).map_err(|e| e.in_file(path))?;
    let file = save_required(path, TFRI, None, false, options, |mut w| sidecar.write_to(&mut w))?;
    sidecar.file = Some(file.into());
    Ok(sidecar.into())
}

/// Returns the error of a torn tail. If this process did not scan the shard, the header of the torn record is
/// read from it.
pub(super) fn torn_tail(sidecar: &Sidecar, path: &Path, options: &IndexOptions) -> Result<Error> {
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
                read_exact_at(options.storage.open(path)?.source(), &mut bytes, header.indexed_end)?;
                RecordHeader::parse(&bytes).map_err(|e| e.at(place))?.record_len()
            };
            Torn { need, have }
        }
    };
    Ok(Error::from(ErrorKind::Truncated { need: torn.need, have: torn.have }).at(place))
}
