//! Columns of a dataset, found or built: all shards looked at, then all that is missing in one scan of each shard.

use super::dataset::DatasetColumn;
use super::feature::FeatureColumn;
use super::known::Known;
use super::scan::{Scan, header_for, header_in_memory};
use super::store::{Found, save, search};
use crate::dataset::shard::ShardFile;
use crate::dataset::{Callback, Dataset, call};
use crate::error::{Build, Error, IndexError, Result};
use crate::frame::OVERHEAD;
use crate::index::{
    Index, NamedShard, REPORT, Save, Stamp, Warning, WarningKind, Work, build_of, check_names,
};
use crate::io::Compression;
use crate::io::threads;
use crate::policy::{IndexMode, Verify};
use crate::record::Record;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How columns are found and built: options of [`Dataset::column_with`], [`Dataset::columns_with`], [`Dataset::select_with`] and
/// [`Dataset::write_columns`].
#[derive(Clone, Default)]
pub struct ColumnOptions {
    classes: bool,
    rebuild: bool,
    unknown: bool,
    progress: Option<Callback>,
}

impl ColumnOptions {
    /// The defaults: what is missing is built, without lists of classes.
    pub fn new() -> ColumnOptions {
        ColumnOptions::default()
    }

    /// Whether the files list the records of each distinct value too. Floats have no such lists.
    #[must_use]
    pub fn classes(mut self, yes: bool) -> ColumnOptions {
        self.classes = yes;
        self
    }

    /// Whether no column file is read, so that all are built anew.
    #[must_use]
    pub fn rebuild(mut self, yes: bool) -> ColumnOptions {
        self.rebuild = yes;
        self
    }

    /// Accepts a feature that no record has, as a column without values: for shards that are opened one by one, others of which
    /// have it. By default that is an error.
    #[must_use]
    pub fn unknown(mut self, yes: bool) -> ColumnOptions {
        self.unknown = yes;
        self
    }

    /// Calls `f` in place of the callback that [`DatasetOptions::progress`](crate::DatasetOptions::progress) named, as
    /// [`Progress`](crate::index::Progress) says: with the bytes scanned since its last call, and `f` may end the work.
    #[must_use]
    pub fn progress(mut self, f: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> ColumnOptions {
        self.progress = Some(Arc::new(f));
        self
    }
}

/// What is wanted.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    features: &'a [&'a str],
    columns: &'a ColumnOptions,
    save: Save,
}

/// A shard looked at, before anything is scanned.
struct Look<'a> {
    index: &'a Index,
    stamp: Option<Stamp>,
    found: Vec<Found>,
    warnings: Vec<Warning>,
}

impl Look<'_> {
    fn misses(&self) -> bool {
        self.found.iter().any(|found| matches!(found, Found::Nothing(_)))
    }
}

/// A shard's columns, and what happened on the way.
struct Done {
    columns: Vec<FeatureColumn>,
    /// Columns that are yet to be saved, by their places.
    unsaved: Vec<usize>,
    changed: bool,
    not_saved: Option<io::Error>,
}

impl Dataset {
    /// One feature's value for each record: read from column files, and built where there are none, by the same rules as
    /// indexes are (those of the [`DatasetOptions`](crate::DatasetOptions) that the dataset was opened with). Nothing is written beside the
    /// data.
    ///
    /// A feature has one value a record, or none: absent, without a kind, and without values are the same. Of a
    /// SequenceExample it is one of the context. To build a column every payload is read and its crc checked.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 3]).encode()?)?; }
    /// # writer.close()?;
    /// # let options = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory);
    /// use tfseek::column::Value;
    /// let ds = options.open(&path)?;
    /// let label = ds.column("label")?;
    /// assert_eq!(label.get(7), Some(Value::Int(1)));
    /// assert_eq!(label.classes()?.of(Value::Int(2)), [2, 5, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFeature`](crate::ErrorKind::UnknownFeature) where no record has a value of the feature, nor one of the
    /// first records of each shard its key: the name is misspelt, say. Nothing is saved then.
    ///
    /// A record with two values or with a value of another kind than the one before it, and a payload that is damaged or does
    /// not parse: with the record; nothing is saved then. [`IndexError::BuildLimit`], [`IndexError::NoColumn`],
    /// [`IndexError::CorruptSection`]; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled); those of the system.
    pub fn column(&self, feature: &str) -> Result<DatasetColumn> {
        self.column_with(feature, &ColumnOptions::new())
    }

    /// As [`column`](Dataset::column), with options.
    ///
    /// # Errors
    /// As [`column`](Dataset::column).
    pub fn column_with(&self, feature: &str, columns: &ColumnOptions) -> Result<DatasetColumn> {
        let columns = self.columns_with(&[feature], columns)?;
        columns.into_iter().next().ok_or_else(|| IndexError::Missing.into())
    }

    /// As [`column`](Dataset::column), for several features: those that are missing are built in one scan.
    ///
    /// # Errors
    /// As [`column`](Dataset::column).
    pub fn columns(&self, features: &[&str]) -> Result<Vec<DatasetColumn>> {
        self.columns_with(features, &ColumnOptions::new())
    }

    /// As [`columns`](Dataset::columns), with options.
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
    /// let options = ColumnOptions::new().progress({
    ///     let scanned = Arc::clone(&scanned);
    ///     move |bytes| {
    ///         scanned.fetch_add(bytes, Ordering::Relaxed);
    ///         ControlFlow::Continue(())
    ///     }
    /// });
    /// ds.columns_with(&["label"], &options)?;
    /// assert_eq!(scanned.load(Ordering::Relaxed), std::fs::metadata(&path)?.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`column`](Dataset::column).
    pub fn columns_with(&self, features: &[&str], columns: &ColumnOptions) -> Result<Vec<DatasetColumn>> {
        self.find_or_build(Wanted { features, columns, save: Save::Unasked })
    }

    /// The command `tfseek index --column`: as [`columns`](Dataset::columns), without the limit, and each column is written to
    /// `.tfseek/` beside its shard, or to the folder for index files if one was named.
    ///
    /// # Errors
    /// As [`column`](Dataset::column); also where a file cannot be written.
    pub fn write_columns(&self, features: &[&str], columns: &ColumnOptions) -> Result<Vec<DatasetColumn>> {
        self.find_or_build(Wanted { features, columns, save: Save::Asked })
    }

    fn find_or_build(&self, wanted: Wanted<'_>) -> Result<Vec<DatasetColumn>> {
        let callback = wanted.columns.progress.as_ref().or(self.building().progress.as_ref());
        let progress = |bytes| call(callback, bytes);
        let work = Work::new(&progress);
        work.end(self.find_or_build_under(wanted, &work))
    }

    fn find_or_build_under(&self, wanted: Wanted<'_>, work: &Work<'_>) -> Result<Vec<DatasetColumn>> {
        let options = &self.building().options;
        let shards = self.files();
        let named: Vec<NamedShard<'_>> =
            shards.iter().map(|s| NamedShard { path: s.path(), compression: Compression::None }).collect();
        check_names(&named, options)?;
        // A look takes some 30 us, a pool of threads a hundred.
        let look_jobs = if shards.len() < 64 { 1 } else { options.jobs };
        let looks = threads::each(look_jobs, shards.len(), true, |s| {
            work.report(0)?;
            self.look(&shards[s], wanted)
        })?;
        let (mut missing, mut bytes) = (0, 0u64);
        for look in looks.iter().filter(|look| look.misses()) {
            missing += 1;
            bytes = bytes.saturating_add(look.index.indexed_end());
        }
        let build = || {
            let features = wanted.features.iter().map(|&feature| feature.to_owned()).collect();
            Box::new(Build { features, ..build_of(&named) })
        };
        if missing > 0 && options.mode == IndexMode::Require && wanted.save == Save::Unasked {
            return Err(self.missing(wanted.features, &looks, build()));
        }
        if options.mode == IndexMode::Auto && wanted.save == Save::Unasked && bytes > options.auto_limit {
            let limit =
                IndexError::BuildLimit { shards: missing, bytes, limit: options.auto_limit, build: build() };
            return Err(limit.into());
        }
        // Likewise a scan of a MiB.
        let jobs = if bytes < 1 << 20 { 1 } else { options.jobs };
        let known = Known::new(wanted.features.len(), wanted.columns.unknown);
        if missing > 0 {
            known.note_first(self, wanted.features);
        }
        let finished: Vec<Mutex<Option<Done>>> = shards.iter().map(|_| Mutex::new(None)).collect();
        let scanned = threads::each(jobs, shards.len(), true, |s| {
            let done = self.finish(s, &looks[s], wanted, &known, work)?;
            *finished[s].lock().unwrap_or_else(|e| e.into_inner()) = Some(done);
            Ok(())
        });
        let finished = finished.into_iter().map(|done| done.into_inner().unwrap_or_else(|e| e.into_inner()));
        let mut done: Vec<(Done, &ShardFile)> =
            finished.zip(shards).filter_map(|(done, shard)| Some((done?, shard))).collect();
        // Where a shard failed, the scans of the others are not lost.
        if scanned.is_ok() {
            known.check(self, wanted.features)?;
        }
        if known.all() {
            for (done, shard) in done.iter_mut().filter(|(done, _)| !done.unsaved.is_empty()) {
                work.report(0)?;
                self.save(done, shard, wanted)?;
            }
        }
        scanned?;
        let done: Vec<Done> = done.into_iter().map(|(done, _)| done).collect();
        let warnings = warnings(shards, looks, &done);
        let of_feature = |k: usize| {
            let columns = done.iter().filter_map(|done| done.columns.get(k).cloned()).collect();
            DatasetColumn::new(self, wanted.features[k], columns, warnings.clone())
        };
        (0..wanted.features.len()).map(of_feature).collect()
    }

    fn look<'a>(&self, shard: &'a ShardFile, wanted: Wanted<'_>) -> Result<Look<'a>> {
        let options = &self.building().options;
        let (index, stamp) = (shard.index()?, shard.stamp()?);
        let mut warnings = Vec::new();
        let mut refused = |file: &Path, reason: &str| {
            let kind = WarningKind::Refused { reason: reason.into() };
            warnings.push(Warning { path: file.into(), kind });
        };
        let reads = options.reads_indexes() && shard.is_file() && !wanted.columns.rebuild;
        let found = wanted.features.iter().map(|feature| match reads {
            true => search(shard.path(), feature, index, stamp, options, &mut refused),
            false => Found::Nothing(None),
        });
        let found = found.collect();
        Ok(Look { index, stamp, found, warnings })
    }

    #[cold]
    fn missing(&self, features: &[&str], looks: &[Look<'_>], build: Box<Build>) -> Error {
        for (look, shard) in looks.iter().zip(self.files()) {
            for (found, feature) in look.found.iter().zip(features) {
                if let Found::Nothing(found) = found {
                    let error = Error::from(IndexError::NoColumn { found: *found, build });
                    return error.in_file(shard.path()).feature(feature.as_bytes());
                }
            }
        }
        IndexError::Missing.into()
    }

    /// Scans a shard for the columns that it lacks, and saves what is new.
    fn finish(
        &self,
        s: usize,
        look: &Look<'_>,
        wanted: Wanted<'_>,
        known: &Known,
        work: &Work<'_>,
    ) -> Result<Done> {
        work.report(0)?;
        let options = &self.building().options;
        let shard = &self.files()[s];
        let lacks = |found: &Found| matches!(found, Found::Nothing(_));
        let missing = wanted.features.iter().zip(&look.found).filter(|(_, found)| lacks(found));
        let missing: Vec<&str> = missing.map(|(feature, _)| *feature).collect();
        // What was not scanned was looked at just now.
        let (mut changed, mut built, mut saves) = (false, Vec::new().into_iter(), look.stamp.is_some());
        if !missing.is_empty() {
            let mut scan = Scan::new(missing);
            self.scan(s, work, |record| scan.record(record))?;
            saves = saves && shard.stamp()? == look.stamp;
            let header = header_for(look.index, look.stamp).filter(|_| saves);
            saves = header.is_some();
            changed = !saves && shard.is_file();
            let header = header.unwrap_or_else(|| header_in_memory(look.index));
            built = scan.finish(&header, wanted.columns.classes)?.into_iter();
        }
        let asked = wanted.save == Save::Asked;
        let writes = saves && (asked || matches!(options.mode, IndexMode::Auto | IndexMode::Rebuild));
        let (mut columns, mut unsaved) = (Vec::with_capacity(look.found.len()), Vec::new());
        for (k, found) in look.found.iter().enumerate() {
            let (column, new) = match found {
                Found::Column(column) if wanted.columns.classes => {
                    let with = column.with_classes()?;
                    let new = with.has_classes() != column.has_classes();
                    (with, new)
                }
                Found::Column(column) => (column.clone(), false),
                Found::Nothing(_) => (built.next().ok_or(IndexError::Missing)?, true),
            };
            if (new || asked) && writes {
                unsaved.push(k);
            }
            columns.push(column);
        }
        let mut done = Done { columns, unsaved, changed, not_saved: None };
        if !known.all() {
            load(&done.columns, shard, wanted)?;
            known.note(&done.columns);
        }
        if known.all() {
            self.save(&mut done, shard, wanted)?;
        }
        Ok(done)
    }

    /// Saves those of a shard's columns that are new and not saved yet.
    fn save(&self, done: &mut Done, shard: &ShardFile, wanted: Wanted<'_>) -> Result<()> {
        for k in std::mem::take(&mut done.unsaved) {
            let Some(column) = done.columns.get_mut(k) else { continue };
            match save(column, shard.path(), &self.building().options, wanted.save)? {
                Ok(saved) => *column = saved,
                Err(e) => done.not_saved = Some(e),
            }
        }
        load(&done.columns, shard, wanted)
    }

    /// The records of shard `s` in order, payloads checked whatever the dataset's readers check.
    fn scan(&self, s: usize, work: &Work<'_>, mut f: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        let (start, shard) = (self.set().starts()[s], &self.files()[s]);
        let mut seen = 0;
        let mut each = |record: Record<'_>| {
            seen += (record.payload().len() + OVERHEAD) as u64;
            if seen >= REPORT as u64 {
                work.report(std::mem::take(&mut seen))?;
            }
            f(record)
        };
        if shard.lends() {
            (0..shard.len()).try_for_each(|i| each(shard.lend(i, shard.locate(i)?, Verify::Payload)?))?;
        } else {
            self.set().read_runs(start..start + shard.len(), Verify::Payload, &mut each)?;
        }
        work.report(seen)
    }
}

impl fmt::Debug for ColumnOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ColumnOptions { classes, rebuild, unknown, progress: _ } = self;
        let mut s = f.debug_struct("ColumnOptions");
        s.field("classes", classes)
            .field("rebuild", rebuild)
            .field("unknown", unknown)
            .finish_non_exhaustive()
    }
}

/// Checks a shard's columns: every look at a value is sound from here on.
fn load(columns: &[FeatureColumn], shard: &ShardFile, wanted: Wanted<'_>) -> Result<()> {
    columns.iter().zip(wanted.features).try_for_each(|(column, feature)| {
        column.data().map_err(|e| e.in_file(shard.path()).feature(feature.as_bytes())).map(drop)
    })
}

/// What was noticed, for people: once what could not be saved.
fn warnings(shards: &[ShardFile], looks: Vec<Look<'_>>, done: &[Done]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut not_saved: Option<Warning> = None;
    for ((shard, look), done) in shards.iter().zip(looks).zip(done) {
        let path = || shard.path().to_path_buf();
        warnings.extend(look.warnings);
        if done.changed {
            warnings.push(Warning { path: path(), kind: WarningKind::Changed });
        }
        if let Some(e) = &done.not_saved {
            let kind = || WarningKind::NotSaved { shards: 0, reason: e.to_string().into() };
            let first = not_saved.get_or_insert_with(|| Warning { path: path(), kind: kind() });
            if let WarningKind::NotSaved { shards, .. } = &mut first.kind {
                *shards += 1;
            }
        }
    }
    warnings.extend(not_saved);
    warnings
}
