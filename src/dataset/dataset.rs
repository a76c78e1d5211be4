//! [`Dataset`]: shards in order.

use super::get_many::GetMany;
use super::shard::ShardFile;
use super::shards::ShardSet;
use crate::error::{ErrorKind, Result};
use crate::index::{Index, IndexOptions};
use crate::record::Record;
use crate::warning::Warning;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Shards in order, as one array of records: record `i` is found by its number. `Send + Sync + 'static`, and cloned for the
/// price of a counter.
///
/// This is the safe way: files are read at positions, and a record is copied into the caller's buffer. It keeps
/// a bounded number of descriptors. [`Mapped`](super::Mapped) lends records out of a map instead, without a copy.
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
    /// Columns are found and built as the indexes were.
    options: IndexOptions,
}

/// One shard of a dataset: a file, and the numbers of its records.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct ShardEntry<'a> {
    /// The file.
    pub path: &'a Path,
    /// Number of the shard's first record in the dataset.
    pub start: u64,
    /// Number of records.
    pub len: u64,
}

impl Dataset {
    pub(super) fn new(set: ShardSet, warnings: Vec<Warning>, options: IndexOptions) -> Dataset {
        Dataset(Arc::new(DatasetInner { set, warnings, options }))
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.set.len()
    }

    /// Returns true if there is no record.
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
        })
    }

    /// Returns the records and where they are.
    #[inline]
    pub(crate) fn set(&self) -> &ShardSet {
        &self.0.set
    }

    /// Returns the files and their indexes, in order.
    pub(crate) fn files(&self) -> &[ShardFile] {
        self.set().files()
    }

    /// Returns the options by which indexes were found and built; columns are, too.
    pub(crate) fn index_options(&self) -> &IndexOptions {
        &self.0.options
    }

    /// Returns the index of shard `s`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; for a dataset opened from a pack, those of the shard's first touch.
    pub fn index(&self, s: usize) -> Result<&Index> {
        let len = self.files().len() as u64;
        self.files().get(s).ok_or(ErrorKind::OutOfRange { what: "shard", i: s as i128, len })?.index()
    }

    /// Returns what was noticed while opening and is no error, such as an index that had to be ignored.
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    /// Returns an identifier of the records of this dataset, independent of paths and times: a copy has the same. 32 hex digits.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub fn fingerprint(&self) -> Result<String> {
        let indexes = self.files().iter().map(|file| file.index().cloned()).collect::<Result<Vec<_>>>()?;
        Ok(crate::index::dataset_fingerprint(&indexes))
    }

    /// Returns the bytes of all shards, by their indexes.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub(crate) fn stored_bytes(&self) -> Result<u64> {
        self.files().iter().try_fold(0u64, |sum, file| Ok(sum.saturating_add(file.index()?.data_size())))
    }

    /// Returns the bytes of all shards; `None` if shards must be touched for that, since a pack does not have their sizes.
    pub fn known_bytes(&self) -> Option<u64> {
        self.files().iter().try_fold(0u64, |sum, file| Some(sum.saturating_add(file.known_bytes()?)))
    }

    /// Returns the shard that holds record `i`, and the record's number in it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    #[inline]
    pub fn shard_of(&self, i: u64) -> Result<(usize, u64)> {
        self.set().shard_of(i)
    }

    /// Returns record `i`. Of a mapped dataset it is lent, and `buf` left as it is; else it is read into `buf`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; damage at its place; an index that is out of date.
    pub fn read<'b>(&'b self, i: u64, buf: &'b mut Vec<u8>) -> Result<Record<'b>> {
        let set = self.set();
        set.read(&set.locate(i)?, buf)
    }

    /// Calls `f` with the records `ids`, one after the other. Reads ahead: a mapped record's bytes are asked for before its
    /// turn, and records that lie side by side are read at once.
    ///
    /// # Errors
    /// Those of [`read`](Dataset::read) and of `f`; `f` has seen the records before.
    pub fn read_many(&self, ids: &[u64], mut f: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        let set = self.set();
        match set.lends() {
            true => GetMany::new(set, ids).try_for_each(|record| f(record?)),
            false => set.read_runs(ids.iter().copied(), set.verify(), f),
        }
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({} records in {} shards)", self.len(), self.files().len())
    }
}
