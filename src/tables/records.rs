//! `RecordTables`: the tables of a dataset's records.

use super::format::{TableFormat, TableOptions};
use super::obtain::{ShardTables, TableSearch, find, find_files};
use crate::dataset::{Dataset, StoredRecord};
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::index::{ProgressCallback, Work};
use crate::io::Compression;
use crate::policy::IndexMode;
use crate::warning::Warning;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The tables of a dataset's records, as far as they are stored, and their numbers.
#[derive(Debug)]
pub struct RecordTables<F: TableFormat> {
    dataset: Dataset,
    shards: Vec<ShardTables<F>>,
}

impl<F: TableFormat> RecordTables<F> {
    /// Finds the tables of all records, with warnings. Files are found, extended and built by the rules for
    /// columns. If a build scans more than the limit of the dataset's options, there are numbers only.
    ///
    /// # Errors
    /// The error of the first record that is damaged or has no table. With
    /// [`Damage::Skip`](crate::Damage::Skip) its number is 0, with [`Warning::PayloadsSkipped`].
    ///
    /// [`ErrorKind::Cancelled`], and I/O errors.
    pub fn open(
        dataset: &Dataset,
        format: &F,
        options: &TableOptions,
    ) -> Result<(RecordTables<F>, Vec<Warning>)> {
        let own = options.progress.clone().map(ProgressCallback::from);
        let work = Work::new(own.as_ref().or(dataset.index_options().progress.as_ref()));
        let first = match dataset.index_options().mode {
            _ if options.beside => TableSearch::Build,
            IndexMode::Memory => TableSearch::Memory,
            _ if options.memory => TableSearch::Memory,
            IndexMode::Require => TableSearch::Count,
            _ => TableSearch::Build,
        };
        let find = |search| work.end(find(dataset, format, search, options, &work));
        let found = find(first);
        let (shards, mut warnings) = match found {
            Err(e) if !options.beside => match e.kind() {
                ErrorKind::Index(IndexError::BuildLimit { bytes, .. }) => {
                    let (shards, mut warnings) = find(TableSearch::Count)?;
                    let path = dataset.files().first().map_or(Path::new(""), |shard| shard.path());
                    warnings.push(F::not_built(path, *bytes));
                    (shards, warnings)
                }
                _ => return Err(e),
            },
            found => found?,
        };
        if let Some(shard) = dataset.files().iter().find(|shard| shard.compression() != Compression::None) {
            warnings.push(F::compressed(shard.path()));
        }
        Ok((RecordTables { dataset: dataset.clone(), shards }, warnings))
    }

    /// Searches for the files of a dataset's shards, one result for each. Reads no record and builds nothing.
    /// The error is the reason why a file that exists is not used, and `None` if there is none.
    ///
    /// # Errors
    /// Errors of reading the index of a shard.
    pub fn files(dataset: &Dataset, format: &F) -> Result<Vec<Result<PathBuf, Option<&'static str>>>> {
        find_files(dataset, format)
    }

    /// Returns the number of record `i` of a shard.
    ///
    /// # Errors
    /// [`IndexError::CorruptSection`] if the sums in the file are not ascending. [`ErrorKind::OutOfRange`].
    pub fn number(&self, shard: usize, i: u64) -> Result<u64> {
        let tables = self.shards.get(shard);
        if let Some(number) = tables.and_then(|tables| tables.number(i)) {
            return Ok(number);
        }
        match tables {
            Some(ShardTables::Stored(file)) if i < file.len() => {
                // The file of tables, and never the shard: the remedy is to delete it.
                let path = file.file().unwrap_or(Path::new("<memory>"));
                let reason = "the sums are not ascending";
                let e = IndexError::CorruptSection { file: path.into(), section: "NUMBERS", reason };
                Err(Error::from(e).in_file(path))
            }
            _ => Err(ErrorKind::OutOfRange { what: "record", i: i.into(), len: self.dataset.len() }.into()),
        }
    }

    /// Returns the table of a record from its file. `None` if the file has no valid one.
    pub fn table(&self, record: &StoredRecord<'_>) -> Option<F::Table> {
        let (shard, i) = record.place();
        match self.shards.get(shard)? {
            ShardTables::Stored(file) => file.table(i, record.payload_len),
            ShardTables::Numbers(_) => None,
        }
    }

    /// Announces that the tables of these records will be read, one after the other.
    pub fn want(&self, ids: impl IntoIterator<Item = u64>) {
        let mut wanted: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (s, i) in ids.into_iter().filter_map(|id| self.dataset.shard_of(id).ok()) {
            wanted.entry(s).or_default().push(i);
        }
        for (s, records) in &wanted {
            if let Some(ShardTables::Stored(file)) = self.shards.get(*s) {
                file.want(records);
            }
        }
    }

    /// Returns the path of the first object without a file of tables. `None` if all have one.
    pub fn without(&self) -> Option<&Path> {
        let shards = self.dataset.files().iter().zip(&self.shards);
        let mut counted = shards.filter(|(_, tables)| matches!(tables, ShardTables::Numbers(_)));
        counted.find(|(shard, _)| shard.is_object()).map(|(shard, _)| shard.path())
    }
}
