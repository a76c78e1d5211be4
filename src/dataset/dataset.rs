//! The type [`Dataset`].

use super::derived::DerivedRecords;
use super::get_many::GetMany;
use super::options::DatasetOptions;
use super::prefetch;
use super::shard::ShardFile;
use super::shards::ShardSet;
use crate::error::{ErrorKind, Result};
use crate::index::{Index, IndexOptions, hex128};
use crate::io::{Compression, Promise, Store, Traffic};
use crate::order::joined_fingerprint;
use crate::policy::{Damage, Verify};
use crate::record::Record;
use crate::warning::Warning;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of compressed shards whose checkpoints give their mean distance.
const MAX_DISTANCES: usize = 16;

/// A sequence of shards, as one array of records with access by record number. It is `Send + Sync + 'static`,
/// and a clone only increments a counter.
///
/// [`Dataset::open`] needs no `unsafe` code: records are read by positional reads into a buffer of the
/// caller, and a bounded number of descriptors is kept open. [`Mapped`](super::Mapped) returns records that
/// borrow from a map instead, without a copy.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
/// # writer.close()?;
/// let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
/// assert_eq!(ds.len(), 10);
/// let mut buf = Vec::new();
/// assert_eq!(ds.read(7, &mut buf)?.example().int64("label")?.first(), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Dataset(Arc<DatasetInner>);

struct DatasetInner {
    set: ShardSet,
    warnings: Vec<Warning>,
    /// The options for finding and building indexes, which columns use as well.
    options: IndexOptions,
    /// `None` for bytes in memory.
    origin: Option<Origin>,
}

/// The paths and options from which a dataset was opened.
pub(super) struct Origin {
    pub(super) paths: Vec<PathBuf>,
    pub(super) options: DatasetOptions,
    pub(super) promise: Option<Promise>,
}

/// One shard of a dataset, with its range of record numbers.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct ShardEntry<'a> {
    /// Path of the shard.
    pub path: &'a Path,
    /// Number of the shard's first record in the dataset.
    pub start: u64,
    /// Number of records.
    pub len: u64,
    /// The ordinal of the first record in the file. 0, unless [`Dataset::ranges`] has left out records before
    /// it.
    pub first: u64,
}

impl Dataset {
    pub(super) fn new(set: ShardSet, warnings: Vec<Warning>, options: IndexOptions) -> Dataset {
        Dataset(Arc::new(DatasetInner { set, warnings, options, origin: None }))
    }

    /// Returns the records of several datasets, one after the other. Shards are opened again at their first
    /// access. Payloads are verified if one of the datasets verifies them.
    ///
    /// # Errors
    /// [`ErrorKind::TooMany`] for 2^64 records or more.
    pub(crate) fn joined<'a>(datasets: impl Iterator<Item = &'a Dataset> + Clone) -> Result<Dataset> {
        let files = datasets.clone().flat_map(Dataset::files).map(ShardFile::again).collect();
        let headers = datasets.clone().all(|dataset| dataset.set().verify() == Verify::Header);
        let set = ShardSet::new(files, if headers { Verify::Header } else { Verify::Payload })?;
        let warnings = datasets.clone().flat_map(|dataset| dataset.warnings().iter().cloned()).collect();
        let options = datasets.map(|dataset| dataset.index_options().clone()).next().unwrap_or_default();
        Ok(Dataset::new(set, warnings, options))
    }

    /// Returns a dataset of derived records. Options, warnings and the verification come from the dataset
    /// that the records are made of.
    ///
    /// # Errors
    /// [`ErrorKind::TooMany`] for 2^64 records.
    pub fn derived(records: Arc<dyn DerivedRecords>, of: &Dataset) -> Result<Dataset> {
        let set = ShardSet::new(vec![ShardFile::derived(records)], of.set().verify())?;
        Ok(Dataset::new(set, of.warnings().to_vec(), of.index_options().clone()))
    }

    /// Returns the records in these ranges of record numbers, one range after the other, as a dataset of its
    /// own. Its numbers are 0 for the first one, and so on. Records that are in several ranges come again.
    /// Nothing is read or indexed, and errors have the ordinals of records in their files.
    /// [`refresh`](Dataset::refresh) returns the same records.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..10u8 { writer.write(&[i])?; }
    /// # writer.close()?;
    /// let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// let some = ds.ranges(&[8..10, 0..3])?;
    /// let mut buf = Vec::new();
    /// assert_eq!((some.len(), some.read(2, &mut buf)?.payload()), (5, &[0][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a range that begins or ends after the last record, and
    /// [`ErrorKind::TooMany`] for 2^64 records or more. The range may end before it begins; it is then empty.
    pub fn ranges(&self, ranges: &[Range<u64>]) -> Result<Dataset> {
        let set = self.set();
        let mut files = Vec::new();
        for range in ranges {
            if let Some(outside) = [range.start, range.end].into_iter().find(|end| *end > self.len()) {
                return Err(
                    ErrorKind::OutOfRange { what: "record", i: outside.into(), len: self.len() }.into()
                );
            }
            let shards = set.files().iter().zip(set.starts().iter().zip(set.starts().iter().skip(1)));
            // Shards that end after the range begins, until one begins after the range ends.
            let skipped = set.starts().iter().skip(1).take_while(|end| **end <= range.start).count();
            let shards = shards.skip(skipped).take_while(|(_, (start, _))| **start < range.end);
            files.extend(shards.filter_map(|(file, (start, end))| {
                let from = range.start.saturating_sub(*start);
                let to = range.end.min(*end) - *start;
                (from < to).then(|| file.cut(from..to))
            }));
        }
        let set = ShardSet::new(files, set.verify())?;
        Ok(Dataset::new(set, self.warnings().to_vec(), self.index_options().clone()))
    }

    /// Returns a dataset with all records of the same shards. `None` if this one has all of them.
    pub(crate) fn of_whole_shards(&self) -> Result<Option<Dataset>> {
        if self.files().iter().all(ShardFile::is_whole) {
            return Ok(None);
        }
        let set = ShardSet::new(self.files().iter().map(ShardFile::whole).collect(), self.set().verify())?;
        Ok(Some(Dataset::new(set, self.warnings().to_vec(), self.index_options().clone())))
    }

    /// Keeps the paths and options for [`refresh`](Dataset::refresh). Called before the dataset is cloned.
    pub(super) fn with_origin(mut self, origin: Origin) -> Dataset {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.origin = Some(origin);
        }
        self
    }

    /// Returns the paths and options from which the dataset was opened. `None` for bytes in memory.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.0.origin.as_ref()
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.set.len()
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the shards, in order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = ShardEntry<'_>> {
        let set = self.set();
        set.files().iter().zip(set.starts()).map(|(file, &start)| ShardEntry {
            path: file.path(),
            start,
            len: file.len(),
            first: file.first(),
        })
    }

    /// Returns the shards as one array of records.
    #[inline]
    pub(crate) fn set(&self) -> &ShardSet {
        &self.0.set
    }

    /// Returns the shards, in order.
    pub(crate) fn files(&self) -> &[ShardFile] {
        self.set().files()
    }

    /// Returns the options for finding and building indexes and columns.
    pub(crate) fn index_options(&self) -> &IndexOptions {
        &self.0.options
    }

    /// Returns the index of shard `s`: of all its records, also after [`ranges`](Dataset::ranges).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]. For a dataset opened from a pack, also the errors of opening the shard.
    pub fn index(&self, s: usize) -> Result<&Index> {
        let len = self.files().len() as u64;
        self.files().get(s).ok_or(ErrorKind::OutOfRange { what: "shard", i: s as i128, len })?.index()
    }

    /// Returns the store from which the shards whose names are URLs are read. `None` if the dataset was
    /// opened without one.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.index_options().storage.store()
    }

    /// Returns the treatment of damage with which the dataset was opened.
    pub fn damage(&self) -> Damage {
        self.index_options().damage
    }

    /// Returns the warnings from opening the dataset, for example about an index that was ignored.
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    /// Returns an identifier of the records of this dataset, 32 hex digits. It does not depend on paths and
    /// times, so a copy has the same one.
    ///
    /// # Errors
    /// For a dataset opened from a pack, the errors of opening each shard.
    pub fn fingerprint(&self) -> Result<String> {
        let all = match self.files().iter().find_map(ShardFile::as_derived) {
            Some(records) => hex128(&records.identity()?),
            None => {
                let indexes = self.files().iter().map(|file| file.index().cloned());
                crate::index::dataset_fingerprint(&indexes.collect::<Result<Vec<_>>>()?)
            }
        };
        if self.files().iter().all(ShardFile::is_whole) {
            return Ok(all);
        }
        // The ranges of the records count as well.
        let ranges = self.files().iter().flat_map(|file| [file.records().start, file.records().end]);
        let parts: Vec<(String, u64)> = ranges.map(|end| (all.clone(), end)).collect();
        Ok(joined_fingerprint(&parts))
    }

    /// Returns the total size of the shards in bytes, from their indexes.
    ///
    /// # Errors
    /// For a dataset opened from a pack, the errors of opening each shard.
    pub(crate) fn stored_bytes(&self) -> Result<u64> {
        self.files().iter().try_fold(0u64, |sum, file| Ok(sum.saturating_add(file.stored_bytes()?)))
    }

    /// Returns the number of decompressed bytes of the compressed shards, as far as it is known without
    /// opening shards.
    pub(crate) fn inflated_bytes(&self) -> u64 {
        let compressed = |file: &&ShardFile| file.compression() != Compression::None;
        let bytes = self.files().iter().filter(compressed).filter_map(ShardFile::known_bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the mean distance of two checkpoints of the first compressed shards in decompressed bytes.
    /// `None` without such shards.
    pub(crate) fn checkpoint_distance(&self) -> Option<u64> {
        let distances = self.files().iter().filter_map(ShardFile::checkpoint_distance);
        let add = |(sum, n): (u64, u64), distance| Some((sum.checked_add(distance)?, n + 1));
        let (sum, n) = distances.take(MAX_DISTANCES).try_fold((0, 0), add)?;
        sum.checked_div(n)
    }

    /// Returns the total size of the shards in bytes, if it is known without opening them. After
    /// [`ranges`](Dataset::ranges) it is the share of the records. The size of a compressed shard is the size
    /// of its decompressed records. `None` is possible with a pack, which does not store sizes of shards.
    pub fn known_bytes(&self) -> Option<u64> {
        self.files().iter().try_fold(0u64, |sum, file| Some(sum.saturating_add(file.known_bytes()?)))
    }

    /// Returns what the store of the shards has read so far in this process, for all data sets that share it.
    /// `None` without a store, and for one that does not count.
    pub fn traffic(&self) -> Option<Traffic> {
        self.files().iter().find_map(ShardFile::traffic)
    }

    /// Returns the shard that contains record `i`, and the record's ordinal in that shard.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    #[inline]
    pub fn shard_of(&self, i: u64) -> Result<(usize, u64)> {
        self.set().shard_of(i)
    }

    /// Returns record `i`. The record of a mapped dataset borrows from the map, and `buf` does not change.
    /// Otherwise the record is read into `buf`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; a corrupt record, with its location; a stale index.
    pub fn read<'b>(&'b self, i: u64, buf: &'b mut Vec<u8>) -> Result<Record<'b>> {
        let set = self.set();
        set.read_verified(&set.locate(i)?, set.verify(), buf)
    }

    /// Calls `f` with each of the records `ids`, in that order. Mapped records are prefetched. For positional
    /// reads, records that are adjacent in the file are read together. Records of objects are requested
    /// before they are read, up to 16 MiB ahead.
    ///
    /// # Errors
    /// Errors of [`read`](Dataset::read) and of `f`. The first error ends the call; `f` was called with the
    /// records before it.
    pub fn read_many(&self, ids: &[u64], mut f: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        let set = self.set();
        if set.can_borrow() {
            GetMany::new(set, ids).try_for_each(|record| f(record?))
        } else if set.has_objects() {
            prefetch::read_requested(set, ids, f)
        } else {
            set.read_runs(ids.iter().copied(), set.verify(), |record| f(record?))
        }
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({} records in {} shards)", self.len(), self.files().len())
    }
}
