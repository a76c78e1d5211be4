//! Finds or builds the tables of a dataset's shards, or the numbers of their records alone.

use super::file::{TableFile, TableFileBuilder};
use super::format::{TableFormat, TableOptions};
use crate::dataset::shard::ShardFile;
use crate::dataset::{Dataset, LeftOut, for_each_record};
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::index::{
    CompanionReasons, CompanionSearch, CompanionShard, IndexOptions, Obtained, Save, SearchResult,
    ShardFiles, Span, Work, check_start, header_for, header_in_memory, never_used, obtain, refused_file,
    save_required, save_somewhere, search_companion,
};
use crate::io::{Compression, Stamp, read_exact_at};
use crate::memory::zeroed;
use crate::policy::{Damage, IndexMode, Verify};
use crate::record::Record;
use crate::warning::Warning;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The end of the name of a file of tables.
const ENDING: &str = ".tfrs";

/// Bytes of an object that are read together for the heads of a record.
const HEADS: u64 = 16 << 10;
/// Number of records of an object whose heads are requested together.
const HEADS_AHEAD: u64 = 16;

/// The tables of a shard, as far as they are known.
#[derive(Debug)]
pub(super) enum ShardTables<F> {
    Stored(TableFile<F>),
    /// The number of each record. Tables are made when they are needed.
    Numbers(Box<[u32]>),
}

impl<F: TableFormat> ShardTables<F> {
    /// Returns the number of record `i`.
    pub(super) fn number(&self, i: u64) -> Option<u64> {
        match self {
            ShardTables::Stored(file) => file.number(i),
            ShardTables::Numbers(all) => all.get(usize::try_from(i).ok()?).map(|number| u64::from(*number)),
        }
    }
}

/// The search for the tables of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableSearch {
    /// Files of tables are used and built.
    Build,
    /// Files of tables are used. Of other shards, the numbers of records are found.
    Count,
    /// The numbers of records are found.
    Memory,
}

/// Finds the tables of all shards. A dataset of some records has the tables of all records of its shards.
///
/// # Errors
/// Errors of reading, [`IndexError::BuildLimit`], and damage, unless the dataset skips it.
pub(super) fn find<F: TableFormat>(
    dataset: &Dataset,
    format: &F,
    search: TableSearch,
    how: &TableOptions,
    work: &Work,
) -> Result<(Vec<ShardTables<F>>, Vec<Warning>)> {
    let whole = dataset.of_whole_shards()?;
    let dataset = whole.as_ref().unwrap_or(dataset);
    let shards = dataset.files();
    let options = dataset.index_options();
    let named: Vec<_> = shards.iter().map(|shard| shard.path()).collect();
    let files = TableFiles { dataset, shards, format, options, search, how, work };
    let (found, mut warnings) = obtain(&files, &named, options, files.place(), work)?;
    let mut left_out = LeftOut::default();
    let all = found.into_iter().map(|shard| {
        left_out.append(shard.left_out);
        shard.tables
    });
    let all = all.collect();
    warnings.extend(left_out.warning());
    Ok((all, warnings))
}

/// Searches for the files of all shards of a dataset, and builds none. The error is the reason why a file
/// that exists is not used.
///
/// # Errors
/// Errors of reading the shards' indexes.
pub(super) fn find_files<F: TableFormat>(
    dataset: &Dataset,
    format: &F,
) -> Result<Vec<Result<PathBuf, Option<&'static str>>>> {
    let shards = dataset.files();
    let options = dataset.index_options();
    let work = Work::new(None);
    let how = &TableOptions::default();
    let search = TableSearch::Count;
    let files = TableFiles { dataset, shards, format, options, search, how, work: &work };
    let found = |s| {
        let SearchedTables { tables, refused, .. } = files.searched(s, &mut Vec::new())?;
        Ok(tables.and_then(|tables| tables.file().map(Path::to_path_buf)).ok_or(refused))
    };
    (0..shards.len()).map(found).collect()
}

struct TableFiles<'a, F> {
    dataset: &'a Dataset,
    shards: &'a [ShardFile],
    format: &'a F,
    options: &'a IndexOptions,
    search: TableSearch,
    how: &'a TableOptions,
    work: &'a Work,
}

/// The result of the search for the tables of a shard, and the shard's size and time during the search.
struct SearchedTables<F> {
    stamp: Option<Stamp>,
    tables: Option<TableFile<F>>,
    /// The reason why a file is not used.
    refused: Option<&'static str>,
    /// The tables of the first records of a shard that has grown. They are copied, unlike columns: checksums
    /// tell of a stale table.
    earlier: Option<TableFile<F>>,
}

/// The tables of a shard, and its records without one.
struct ShardFound<F> {
    tables: ShardTables<F>,
    left_out: LeftOut,
}

impl<F: TableFormat> TableFiles<'_, F> {
    /// Returns the place of new files.
    fn place(&self) -> Save {
        match self.search {
            TableSearch::Build if self.how.beside => Save::Required,
            TableSearch::Build => Save::BestEffort,
            TableSearch::Count | TableSearch::Memory => Save::Never,
        }
    }

    /// Returns true if the tables of a shard may be in a file: it is a plain file or object.
    fn has_files(&self, shard: &ShardFile) -> bool {
        shard.is_file() && shard.compression() == Compression::None
    }

    fn searched(&self, s: usize, warnings: &mut Vec<Warning>) -> Result<SearchedTables<F>> {
        let Some(shard) = self.shards.get(s) else { return Err(IndexError::Missing.into()) };
        let index = shard.index()?;
        let stamp = shard.stamp()?;
        let rebuild = self.search == TableSearch::Build && self.how.rebuild;
        let reads = self.options.reads_indexes() && self.search != TableSearch::Memory && !rebuild;
        let mut found = SearchedTables { stamp, tables: None, refused: None, earlier: None };
        if !reads || !self.has_files(shard) {
            return Ok(found);
        }
        let of = CompanionShard { path: shard.path(), index, stamp: found.stamp.as_ref(), checked: true };
        let mut earlier = None;
        let open = |opened, file: &Path| TableFile::opened(opened, file, self.format);
        let other = |header: crate::index::IndexHeader, file: Option<TableFile<F>>| {
            let starts = header.n_records < index.len() && !header.has_gaps() && !index.header().has_gaps();
            let of_these = || check_start(&header, shard.source()?);
            if starts && earlier.is_none() && of_these().is_ok() {
                earlier = file;
            }
        };
        let refused = |file: &Path, reason: &str| warnings.push(refused_file(file, reason));
        let [invalid, other_records, changed] = F::REFUSALS;
        let reasons = CompanionReasons { invalid, other: other_records, changed };
        let search = search_companion(&of, ENDING, self.options, reasons, open, other, refused);
        match search {
            CompanionSearch::Found(Some(file)) => found.tables = Some(file),
            CompanionSearch::Found(None) => found.refused = Some(other_records),
            CompanionSearch::Missing(reason) => found.refused = reason,
        }
        found.earlier = earlier;
        Ok(found)
    }

    /// Scans a shard, and returns the tables of its records. The tables of its first records may be known.
    #[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
    fn scan(&self, s: usize, shard: &ShardFile, found: SearchedTables<F>) -> Result<Obtained<ShardFound<F>>> {
        let index = shard.index()?;
        let SearchedTables { stamp, earlier, .. } = found;
        let save = self.place();
        // A file that was requested is for all readers.
        let damage = if save == Save::Required { Damage::Raise } else { self.options.damage };
        let mut never_used = never_used(stamp.as_ref());
        if save == Save::Required
            && let Some(e) = never_used.take()
        {
            return Err(Error::from(e).in_file(shard.path()));
        }
        let mut tables = TableFileBuilder::new();
        let known = earlier.as_ref().map_or(0, TableFile::len);
        for i in 0..known {
            let table = earlier.as_ref().and_then(|file| file.table(i, index.locate(i).ok()?.payload_len));
            // A damaged table is made again by `for_each_record` only if all later ones are.
            let Some(table) = table else {
                let found = SearchedTables { stamp, tables: None, refused: None, earlier: None };
                return self.scan(s, shard, found);
            };
            tables.push::<F>(Some(&table))?;
        }
        let mut left_out = LeftOut::default();
        let start = self.dataset.set().starts()[s];
        let ids = start + known..start + shard.len();
        for_each_record(self.dataset, s, ids, self.work, |_, record| match self.table_of(record) {
            Ok(table) => tables.push::<F>(Some(&table)),
            Err(e) if damage == Damage::Skip && e.is_data() => {
                left_out.add(e);
                tables.push::<F>(None)
            }
            Err(e) => Err(e),
        })?;
        let unchanged = stamp.is_some() && shard.stamp()? == stamp;
        let header = header_for(index, stamp.as_ref()).filter(|_| unchanged && self.has_files(shard));
        let saves = header.is_some();
        let tables = tables.finish(self.format, header.unwrap_or_else(|| header_in_memory(index)))?;
        let writes = saves
            && left_out.is_empty()
            && (save == Save::Required || matches!(self.options.mode, IndexMode::Auto | IndexMode::Rebuild));
        let not_saved = match never_used.filter(|_| writes) {
            None if writes => self.save(&tables, shard, save)?,
            not_saved => not_saved,
        };
        let changed = !saves && shard.is_file() && self.has_files(shard);
        let tables = ShardTables::Stored(tables);
        Ok(Obtained { files: ShardFound { tables, left_out }, changed, not_saved })
    }

    fn table_of(&self, record: Result<Record<'_>>) -> Result<F::Table> {
        let record = record?;
        self.format.make(record.payload()).map_err(|e| e.at(record.at()))
    }

    fn save(&self, tables: &TableFile<F>, shard: &ShardFile, save: Save) -> Result<Option<io::Error>> {
        match save {
            Save::Never => Ok(None),
            Save::BestEffort => {
                Ok(save_somewhere(shard.path(), ENDING, self.options, |w| tables.write_to(w)).err())
            }
            Save::Required => {
                let known = tables.file();
                let beside = self.how.beside_objects;
                let write = |w: &mut dyn Write| tables.write_to(w);
                save_required(shard.path(), ENDING, known, beside, self.options, write)?;
                Ok(None)
            }
        }
    }

    /// Finds the numbers of the records of a shard, from their heads if the shard is not compressed.
    #[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
    fn count(&self, s: usize, shard: &ShardFile) -> Result<ShardFound<F>> {
        let mut numbers = Vec::new();
        let mut left_out = LeftOut::default();
        numbers.try_reserve(usize::try_from(shard.len()).unwrap_or(usize::MAX))?;
        let start = self.dataset.set().starts()[s];
        let plain = shard.compression() == Compression::None;
        // Heads do not tell whether a whole record has a table. Large sets, which are only counted, leave out
        // what they can when they are read.
        let by_all = self.options.damage == Damage::Skip && self.search == TableSearch::Memory;
        let is_object = plain && shard.is_object();
        for i in 0..shard.len() {
            if i % 256 == 0 || is_object {
                self.work.report(0)?;
            }
            if is_object && i % HEADS_AHEAD == 0 {
                let known = if i == 0 { 0 } else { i + HEADS_AHEAD };
                want_heads(shard, known..(i + 2 * HEADS_AHEAD).min(shard.len()));
            }
            let by_heads = if plain && !by_all { self.by_heads(shard, i)? } else { None };
            let number = match by_heads {
                Some(number) => Ok(number),
                None => {
                    let mut found = Ok(0);
                    let id = start + i;
                    for_each_record(self.dataset, s, id..id + 1, self.work, |_, record| {
                        found = self.table_of(record).map(|table| F::number(&table));
                        Ok(())
                    })?;
                    found
                }
            };
            numbers.push(match number {
                Err(e) if self.options.damage == Damage::Skip && e.is_data() => {
                    left_out.add(e);
                    0
                }
                number => number?,
            });
        }
        Ok(ShardFound { tables: ShardTables::Numbers(numbers.into()), left_out })
    }

    fn by_heads(&self, shard: &ShardFile, i: u64) -> Result<Option<u32>> {
        let span = shard.locate(i)?;
        if shard.can_borrow() {
            let payload = shard.borrow(i, span, Verify::Header)?.payload();
            return self.format.number_of(payload.len() as u64, |at, to| {
                let from = usize::try_from(at).ok().and_then(|at| payload.get(at..));
                let Some(mut from) = from else { return Ok(0) };
                Ok(from.read(to)?)
            });
        }
        let source = shard.source()?;
        let start = payload_start(span);
        // Heads of an object that are near each other are read together.
        let ahead = if shard.is_object() { HEADS } else { 0 };
        let mut from = 0u64;
        let mut bytes = Vec::new();
        self.format.number_of(span.payload_len, |at, to| {
            let Some(left) = span.payload_len.checked_sub(at) else { return Ok(0) };
            let len = left.min(to.len() as u64);
            if at < from || at + len > from + bytes.len() as u64 {
                bytes = zeroed(len.max(ahead).min(left))?;
                from = at;
                read_exact_at(source, &mut bytes, start + at)
                    .map_err(|e| Error::from(e).in_file(shard.path()))?;
            }
            let Some(mut known) = bytes.get((at - from) as usize..) else { return Ok(0) };
            Ok(known.read(to)?)
        })
    }
}

/// Returns the offset of a record's payload.
fn payload_start(span: Span) -> u64 {
    span.end() - span.payload_len - 4
}

/// Announces the first heads of records of an object.
fn want_heads(shard: &ShardFile, records: Range<u64>) {
    // A read will tell of a failure.
    let Ok(source) = shard.source() else { return };
    let spans = records.filter_map(|i| shard.locate(i).ok());
    let heads = spans.map(|span| {
        let start = payload_start(span);
        start..start + HEADS.min(span.payload_len)
    });
    source.want(&heads.collect::<Vec<_>>());
}

impl<F: TableFormat> ShardFiles for TableFiles<'_, F> {
    type Found = SearchedTables<F>;
    type Files = ShardFound<F>;

    fn search(&self, s: usize) -> Result<SearchResult<SearchedTables<F>>> {
        let mut warnings = Vec::new();
        let found = self.searched(s, &mut warnings)?;
        let Some(shard) = self.shards.get(s) else { return Err(IndexError::Missing.into()) };
        let scans = found.tables.is_none() && self.search == TableSearch::Build;
        let scan = if scans && self.has_files(shard) {
            let known = found.earlier.as_ref().map_or(0, TableFile::len);
            let index = shard.index()?;
            let from = if known > 0 { index.locate(known)?.offset } else { 0 };
            Some(index.indexed_end() - from)
        } else {
            None
        };
        Ok(SearchResult { found, scan, warnings })
    }

    #[cold]
    fn require(&self, searched: &[SearchResult<SearchedTables<F>>]) -> Result<()> {
        let missing = searched.iter().zip(self.shards).find(|(searched, _)| searched.scan.is_some());
        match missing {
            Some((_, shard)) => Err(Error::from(ErrorKind::Index(IndexError::Missing)).in_file(shard.path())),
            None => Ok(()),
        }
    }

    fn build(&self, s: usize, found: SearchedTables<F>, _: usize) -> Result<Obtained<ShardFound<F>>> {
        self.work.report(0)?;
        let Some(shard) = self.shards.get(s) else { return Err(IndexError::Missing.into()) };
        let (files, not_saved) = match &found.tables {
            None if self.search == TableSearch::Build && self.has_files(shard) => {
                return self.scan(s, shard, found);
            }
            None => (self.count(s, shard)?, None),
            Some(tables) => {
                let required = self.place() == Save::Required;
                let not_saved = if required { self.save(tables, shard, Save::Required)? } else { None };
                let tables = ShardTables::Stored(tables.clone());
                (ShardFound { tables, left_out: LeftOut::default() }, not_saved)
            }
        };
        Ok(Obtained { files, changed: false, not_saved })
    }
}
