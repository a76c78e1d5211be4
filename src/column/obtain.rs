//! Finds or builds the columns of a dataset. Searches all shards first, then builds all missing columns in
//! one scan per shard.

#![expect(clippy::indexing_slicing, reason = "shards and features are numbered from 0 to their count")]

use super::dataset::DatasetColumn;
use super::feature::FeatureColumn;
use super::known::KnownFeatures;
use super::left_out::Undecoded;
use super::scan::ColumnScan;
use super::store::{ColumnSearch, save, search};
use crate::dataset::shard::ShardFile;
use crate::dataset::{Dataset, for_each_record};
use crate::error::{Build, Error, IndexError, Result};
use crate::index::{
    CompanionShard, Obtained, ProgressCallback, Save, SearchResult, ShardFiles, Work, build_advice,
    header_for, header_in_memory, never_used, obtain, refused_file,
};
use crate::io::Stamp;
use crate::order::Subset;
use crate::policy::{Damage, IndexMode};
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Options for finding and building columns, used by [`Dataset::column`], [`Dataset::columns`] and
/// [`Dataset::select`].
#[derive(Clone, Default)]
pub struct ColumnOptions {
    /// Adds a list of the records of each distinct value to the files. Default: false. Columns of floats have
    /// no classes.
    pub classes: bool,
    /// Builds all columns again and reads no column file. Default: false.
    pub rebuild: bool,
    /// Accepts a feature that no record has, and returns a column without values. Default: false, an error.
    /// Useful if shards are opened one by one and only some of them have the feature.
    pub unknown: bool,
    /// Writes each column to `.tfseek/` next to its shard, or to the folder for index files if one is
    /// configured. Columns of objects are written to the user's cache. Default: false.
    ///
    /// The command `tfseek index --column` does the same. With this option the scan has no limit, and a file
    /// that cannot be written is an error. So is a record that does not decode, also with [`Damage::Skip`],
    /// because the file is for all readers.
    pub beside: bool,
    /// Restricts [`Dataset::select`](crate::Dataset::select) to these records: a condition is not tested on
    /// others, so they cause no errors. Columns have the values of all records, regardless. Default: `None`,
    /// all records.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// use tfseek::{column::ColumnOptions, order::Subset};
    /// let options = ColumnOptions { among: Some(Subset::from_ids([1, 3, 5])?), ..Default::default() };
    /// assert_eq!(ds.select(&"label > 2".parse()?, &options)?.0.iter().collect::<Vec<_>>(), [3, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub among: Option<Subset>,
    /// A progress callback in place of [`DatasetOptions::progress`](crate::DatasetOptions::progress). It
    /// follows the rules of [`IndexOptions::progress`](crate::index::IndexOptions::progress): it receives the
    /// number of bytes scanned since its last call, and may cancel the work.
    pub progress: Option<Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>>,
}

impl fmt::Debug for ColumnOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ColumnOptions { classes, rebuild, unknown, beside, among, progress: _ } = self;
        f.debug_struct("ColumnOptions")
            .field("classes", classes)
            .field("rebuild", rebuild)
            .field("unknown", unknown)
            .field("beside", beside)
            .field("among", among)
            .finish_non_exhaustive()
    }
}

impl ColumnOptions {
    /// Returns the progress of a call: from these options, or from the dataset.
    pub(super) fn work(&self, dataset: &Dataset) -> Work {
        let own = self.progress.clone().map(ProgressCallback::from);
        Work::new(own.as_ref().or(dataset.index_options().progress.as_ref()))
    }
}

impl Dataset {
    /// Returns one feature's value for each record. Reads column files, and builds missing columns by the
    /// rules for indexes, which the [`DatasetOptions`](crate::DatasetOptions) of the dataset configure.
    /// Writes nothing next to the data.
    ///
    /// The feature must have at most one value per record. A feature that is absent, has no kind or has no
    /// values counts as none. In a SequenceExample it is a feature of the context. To build a column, every
    /// payload is read and its crc is verified.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 3]).encode()?)?; }
    /// # writer.close()?;
    /// # let options = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory);
    /// use tfseek::column::{ColumnOptions, Value};
    /// let ds = options.open(&path)?;
    /// let label = ds.column("label", &ColumnOptions::default())?;
    /// assert_eq!(label.get(7), Some(Value::Int(1)));
    /// assert_eq!(label.classes()?[2], (Value::Int(2), vec![2, 5, 8]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFeature`](crate::ErrorKind::UnknownFeature) if no record has a value of the
    /// feature and its key does not occur in the first records of any shard, for example because the name is
    /// misspelt. Nothing is saved then.
    ///
    /// An error that names the record, if the record has two values or a value of another kind than earlier
    /// records, is damaged, or does not parse. Nothing is saved then. In a dataset of [`Damage::Skip`] a
    /// record that is damaged or does not parse has no value, which [`DatasetColumn::warnings`] tell
    /// ([`Warning::PayloadsSkipped`](crate::Warning::PayloadsSkipped)). The column of its shard is not saved.
    ///
    /// [`IndexError::BuildLimit`], [`IndexError::NoColumn`], [`IndexError::CorruptSection`],
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), and I/O errors.
    pub fn column(&self, feature: &str, columns: &ColumnOptions) -> Result<DatasetColumn> {
        let columns = self.columns(&[feature], columns)?;
        columns.into_iter().next().ok_or_else(|| IndexError::Missing.into())
    }

    /// Returns the columns of several features, like [`column`](Dataset::column). All missing columns are
    /// built in one scan.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 3]).encode()?)?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// use std::ops::ControlFlow;
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    /// use tfseek::column::ColumnOptions;
    /// let scanned = Arc::new(AtomicU64::new(0));
    /// let count = {
    ///     let scanned = Arc::clone(&scanned);
    ///     move |bytes| {
    ///         scanned.fetch_add(bytes, Ordering::Relaxed);
    ///         ControlFlow::Continue(())
    ///     }
    /// };
    /// let options = ColumnOptions { progress: Some(Arc::new(count)), ..ColumnOptions::default() };
    /// ds.columns(&["label"], &options)?;
    /// assert_eq!(scanned.load(Ordering::Relaxed), std::fs::metadata(&path)?.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`column`](Dataset::column).
    pub fn columns(&self, features: &[&str], columns: &ColumnOptions) -> Result<Vec<DatasetColumn>> {
        let work = columns.work(self);
        work.end(self.find_or_build(features, false, columns, &work))
    }

    /// Returns the number of values of a feature in each record, as a column of integers. A record without
    /// the feature, or with one that has no values, has none. The feature may have any number of values, of
    /// any kind.
    ///
    /// It has files of its own, and otherwise is like [`column`](Dataset::column).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("tokens", 0..i).encode()?)?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// use tfseek::column::{ColumnOptions, Value};
    /// let lengths = ds.value_counts("tokens", &ColumnOptions::default())?;
    /// assert_eq!((lengths.get(7), lengths.get(0)), (Some(Value::Int(7)), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`column`](Dataset::column), except errors of records with two values or with values of
    /// different kinds.
    pub fn value_counts(&self, feature: &str, columns: &ColumnOptions) -> Result<DatasetColumn> {
        let work = columns.work(self);
        let columns = work.end(self.find_or_build(&[feature], true, columns, &work))?;
        columns.into_iter().next().ok_or_else(|| IndexError::Missing.into())
    }

    /// Returns the columns of several features, each only if every shard has a column file that fits its
    /// records. Builds nothing, and reads no shard. In the index modes that read no index files there are no
    /// columns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 3]).encode()?)?; }
    /// # writer.close()?;
    /// # let options = tfseek::DatasetOptions::new();
    /// use tfseek::column::ColumnOptions;
    /// let ds = options.open(&path)?;
    /// assert!(ds.find_columns(&["label"])?[0].is_none());
    /// ds.column("label", &ColumnOptions { beside: true, ..ColumnOptions::default() })?;
    /// assert_eq!(ds.find_columns(&["label"])?[0].as_ref().unwrap().count(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`column`](Dataset::column) for files that are there.
    pub fn find_columns(&self, features: &[&str]) -> Result<Vec<Option<DatasetColumn>>> {
        features.iter().map(|feature| self.find_column(feature)).collect()
    }

    fn find_column(&self, feature: &str) -> Result<Option<DatasetColumn>> {
        let mut columns = Vec::new();
        let mut warnings = Vec::new();
        for shard in self.files() {
            let index = shard.index()?;
            let stamp = shard.stamp()?;
            let options = self.index_options();
            if !options.reads_indexes() || !shard.is_file() {
                return Ok(None);
            }
            let of = CompanionShard { path: shard.path(), index, stamp: stamp.as_ref(), checked: false };
            let found = search(&of, (feature, false), options, |file, reason| {
                warnings.push(refused_file(file, reason));
            });
            let ColumnSearch::Found(column) = found else { return Ok(None) };
            load(&column, feature, shard)?;
            columns.push(column);
        }
        DatasetColumn::new(self, feature, columns, warnings, None).map(Some)
    }

    fn find_or_build(
        &self,
        features: &[&str],
        counts: bool,
        columns: &ColumnOptions,
        work: &Work,
    ) -> Result<Vec<DatasetColumn>> {
        if let Some(whole) = self.of_whole_shards()? {
            let found = whole.find_or_build(features, counts, columns, work)?;
            return found.into_iter().map(|column| column.for_some(self, &whole)).collect();
        }
        let save = if columns.beside { Save::Required } else { Save::BestEffort };
        let named: Vec<_> = self.files().iter().map(ShardFile::path).collect();
        let known = KnownFeatures::new(features.len(), columns.unknown);
        let files =
            ColumnFiles { dataset: self, named: &named, features, counts, columns, save, known, work };
        let (mut obtained, mut warnings) = obtain(&files, &named, self.index_options(), save, work)?;
        let mut undecoded = None;
        for (shard, start) in obtained.iter_mut().zip(self.set().starts()) {
            if let Some(of_shard) = shard.undecoded.take() {
                Undecoded::append(&mut undecoded, self.len(), of_shard, *start)?;
            }
        }
        warnings.extend(undecoded.as_ref().and_then(|found| found.left_out.warning()));
        let undecoded = undecoded.map(|found| Arc::new(found.records));
        let join_shards = |k: usize| {
            let shard_columns = obtained.iter().filter_map(|shard| shard.columns.get(k).cloned()).collect();
            DatasetColumn::new(self, features[k], shard_columns, warnings.clone(), undecoded.clone())
        };
        (0..features.len()).map(join_shards).collect()
    }
}

/// Loads and validates a shard's column, so that no later access to a value can fail.
fn load(column: &FeatureColumn, feature: &str, shard: &ShardFile) -> Result<()> {
    column.data().map_err(|e| e.in_file(shard.path()).feature(feature.as_bytes())).map(drop)
}

/// The search for the column files of a dataset's shards, and the scans that build missing ones.
struct ColumnFiles<'a> {
    dataset: &'a Dataset,
    named: &'a [&'a Path],
    features: &'a [&'a str],
    /// The columns have the numbers of values.
    counts: bool,
    columns: &'a ColumnOptions,
    save: Save,
    known: KnownFeatures,
    work: &'a Work,
}

/// The search results for a shard's columns, and the shard's size and time during the search.
struct FoundColumns {
    stamp: Option<Stamp>,
    search: Vec<ColumnSearch>,
}

/// A shard's columns, one for each feature, and the indexes of those that must still be saved.
struct ShardColumns {
    columns: Vec<FeatureColumn>,
    unsaved: Vec<usize>,
    undecoded: Option<Undecoded>,
}

/// The columns that a scan has built.
struct ScannedColumns {
    columns: Vec<FeatureColumn>,
    undecoded: Option<Undecoded>,
    /// The shard did not change, so the columns can be saved.
    is_current: bool,
}

impl ShardFiles for ColumnFiles<'_> {
    type Found = FoundColumns;
    type Files = ShardColumns;

    fn search(&self, s: usize) -> Result<SearchResult<FoundColumns>> {
        let shard = &self.dataset.files()[s];
        let options = self.dataset.index_options();
        let index = shard.index()?;
        let stamp = shard.stamp()?;
        let mut warnings = Vec::new();
        let reads = options.reads_indexes() && shard.is_file() && !self.columns.rebuild;
        let found = self.features.iter().map(|feature| {
            if !reads {
                return ColumnSearch::Missing(None);
            }
            let of = CompanionShard { path: shard.path(), index, stamp: stamp.as_ref(), checked: false };
            search(&of, (feature, self.counts), options, |file, reason| {
                warnings.push(refused_file(file, reason));
            })
        });
        let search: Vec<ColumnSearch> = found.collect();
        let misses = search.iter().any(|found| matches!(found, ColumnSearch::Missing(_)));
        let scan = misses.then(|| index.indexed_end());
        Ok(SearchResult { found: FoundColumns { stamp, search }, scan, warnings })
    }

    #[cold]
    fn require(&self, searched: &[SearchResult<FoundColumns>]) -> Result<()> {
        for (searched, shard) in searched.iter().zip(self.dataset.files()) {
            for (found, feature) in searched.found.search.iter().zip(self.features) {
                if let ColumnSearch::Missing(found) = found {
                    let build = Box::new(Build { features: self.features(), ..build_advice(self.named) });
                    let error = Error::from(IndexError::NoColumn { found: *found, build });
                    return Err(error.in_file(shard.path()).feature(feature.as_bytes()));
                }
            }
        }
        Ok(())
    }

    fn features(&self) -> Vec<String> {
        // The command builds columns of values only.
        if self.counts {
            return Vec::new();
        }
        self.features.iter().map(|&feature| feature.to_owned()).collect()
    }

    fn begin(&self) {
        self.known.note_first(self.dataset, self.features);
    }

    /// Builds the missing columns of a shard in one scan, and saves the new ones.
    fn build(&self, s: usize, found: FoundColumns, _: usize) -> Result<Obtained<ShardColumns>> {
        self.work.report(0)?;
        let FoundColumns { stamp, search } = found;
        let shard = &self.dataset.files()[s];
        let lacks = |found: &ColumnSearch| matches!(found, ColumnSearch::Missing(_));
        let missing = self.features.iter().zip(&search).filter(|(_, found)| lacks(found));
        let missing: Vec<&str> = missing.map(|(feature, _)| *feature).collect();
        // A file that was requested is for all readers.
        let required = self.save == Save::Required;
        let damage = if required { Damage::Raise } else { self.dataset.damage() };
        let mut never_used = never_used(stamp.as_ref());
        if required && let Some(e) = never_used.take() {
            return Err(Error::from(e).in_file(shard.path()));
        }
        let ScannedColumns { columns: built, undecoded, is_current } = if missing.is_empty() {
            // The stamp of the search is still current.
            ScannedColumns { columns: Vec::new(), undecoded: None, is_current: stamp.is_some() }
        } else {
            self.scan(s, missing, damage, stamp.as_ref())?
        };
        let changed = !built.is_empty() && !is_current && shard.is_file();
        let mut built = built.into_iter();
        let writes = is_current
            && undecoded.is_none()
            && (required
                || matches!(self.dataset.index_options().mode, IndexMode::Auto | IndexMode::Rebuild));
        let mut not_saved = never_used.filter(|_| writes);
        let writes = writes && not_saved.is_none();
        let mut columns = Vec::with_capacity(search.len());
        let mut unsaved = Vec::new();
        for (k, found) in search.into_iter().enumerate() {
            let (column, new) = match found {
                ColumnSearch::Found(column) if self.columns.classes => {
                    let with = column.with_classes()?;
                    let new = with.has_classes() != column.has_classes();
                    (with, new)
                }
                ColumnSearch::Found(column) => (column, false),
                ColumnSearch::Missing(_) => (built.next().ok_or(IndexError::Missing)?, true),
            };
            if (new || required) && writes {
                unsaved.push(k);
            }
            columns.push(column);
        }
        let mut files = ShardColumns { columns, unsaved, undecoded };
        if !self.known.all() {
            self.load(&files.columns, shard)?;
            self.known.note(&files.columns);
        }
        if self.known.all() {
            not_saved = self.save_new(&mut files, shard)?.or(not_saved);
        }
        Ok(Obtained { files, changed, not_saved })
    }

    /// Refuses features that no record has. Then saves the columns that had to wait until all features were
    /// known.
    fn finish(&self, obtained: &mut [(usize, Obtained<ShardColumns>)], all: bool) -> Result<()> {
        let undecoded = obtained.iter().filter_map(|(_, shard)| shard.files.undecoded.as_ref());
        let left_out: u64 = undecoded.map(|found| found.left_out.count()).sum();
        // Where all records are left out, none tells which features there are.
        if all && left_out < self.dataset.len() {
            self.known.check(self.dataset, self.features)?;
        }
        if self.known.all() {
            for (s, shard) in obtained.iter_mut().filter(|(_, shard)| !shard.files.unsaved.is_empty()) {
                self.work.report(0)?;
                shard.not_saved = self.save_new(&mut shard.files, &self.dataset.files()[*s])?;
            }
        }
        Ok(())
    }
}

impl ColumnFiles<'_> {
    /// Builds the columns of these features of a shard in one scan. `stamp` is of the search.
    fn scan(
        &self,
        s: usize,
        features: Vec<&str>,
        damage: Damage,
        stamp: Option<&Stamp>,
    ) -> Result<ScannedColumns> {
        let shard = &self.dataset.files()[s];
        let index = shard.index()?;
        let mut scan = ColumnScan::new(features, self.counts, damage);
        let start = self.dataset.set().starts()[s];
        let len = shard.len();
        for_each_record(self.dataset, s, start..start + len, self.work, |i, record| {
            scan.push(i - start, len, record)
        })?;
        let is_same = stamp.is_some() && shard.stamp()?.as_ref() == stamp;
        let header = header_for(index, stamp).filter(|_| is_same);
        let is_current = header.is_some();
        let header = header.unwrap_or_else(|| header_in_memory(index));
        let (columns, undecoded) = scan.finish(&header, self.columns.classes)?;
        Ok(ScannedColumns { columns, undecoded, is_current })
    }

    /// Saves the unsaved columns of a shard. Returns the error of a column that could not be saved and stays
    /// in memory.
    fn save_new(&self, files: &mut ShardColumns, shard: &ShardFile) -> Result<Option<io::Error>> {
        let mut not_saved = None;
        for k in std::mem::take(&mut files.unsaved) {
            let Some(column) = files.columns.get_mut(k) else { continue };
            match save(column, shard.path(), self.dataset.index_options(), self.save)? {
                Ok(saved) => *column = saved,
                Err(e) => not_saved = Some(e),
            }
        }
        self.load(&files.columns, shard)?;
        Ok(not_saved)
    }

    fn load(&self, columns: &[FeatureColumn], shard: &ShardFile) -> Result<()> {
        columns.iter().zip(self.features).try_for_each(|(column, feature)| load(column, feature, shard))
    }
}
