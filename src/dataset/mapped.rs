//! The type [`Mapped`].

use super::dataset::Dataset;
use super::get_many::GetMany;
use super::iter::MappedIter;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Compression, check_local};
use crate::record::Record;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

/// A [`Dataset`] whose shards are all mapped or in memory. Records borrow from the dataset, and nothing is
/// allocated from `get` to a decoded value.
///
/// [`dataset`](Mapped::dataset) gives access to the methods of all datasets: shards, columns, loaders. A
/// shard is mapped on first access. Page tables take about 2 MB for each GiB accessed.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().float("emb", [i as f32; 4]).encode()?)?; }
/// # writer.close()?;
/// # let options = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory);
/// // SAFETY: the writer is closed, and nothing else writes to the shard.
/// let ds = unsafe { options.open_mapped(&path) }?;
/// let emb = ds.get(3)?.example().float("emb")?;
/// assert_eq!(emb.get(2), Some(3.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A view cannot outlive its dataset:
///
/// ```compile_fail,E0505
/// fn late(ds: tfseek::Mapped) -> tfseek::Result<Option<i64>> {
///     let list = ds.get(0)?.example().int64("label")?;
///     drop(ds);
///     Ok(list.first())
/// }
/// ```
#[derive(Clone)]
pub struct Mapped(pub(super) Dataset);

impl Mapped {
    /// Returns `dataset` as a `Mapped`. `None` if it uses positional reads.
    pub fn from_dataset(dataset: &Dataset) -> Option<Mapped> {
        dataset.set().can_borrow().then(|| Mapped(dataset.clone()))
    }

    /// Wraps a dataset that was opened with maps.
    ///
    /// # Errors
    /// [`ErrorKind::Compressed`] for the first compressed shard, which is not mapped;
    /// [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for an object of a store.
    pub(super) fn of_maps(dataset: Dataset) -> Result<Mapped> {
        for file in dataset.files() {
            if file.is_object() {
                check_local(file.path())?;
            }
            if file.compression() != Compression::None {
                let kind = ErrorKind::Compressed { format: file.compression().name() };
                return Err(Error::from(kind).in_file(file.path()));
            }
        }
        Ok(Mapped(dataset))
    }

    /// Returns the same records as a dataset.
    pub fn dataset(&self) -> &Dataset {
        &self.0
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns record `i`, which borrows from the dataset.
    ///
    /// Cost while the record is in the page cache: two or three cache misses, and the verification that
    /// [`Verify`](crate::Verify) selects.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange); a corrupt record, with its location; a stale
    /// index.
    #[inline]
    pub fn get(&self, i: u64) -> Result<Record<'_>> {
        self.0.set().get(i)
    }

    /// Returns the records `ids`, in that order, with prefetching. Records are processed in windows: the
    /// index entries and records of a window are touched together, so that their cache misses overlap. While
    /// records come from disk, the bytes of the next window are requested early.
    pub fn get_many<'s>(&'s self, ids: &'s [u64]) -> impl ExactSizeIterator<Item = Result<Record<'s>>> {
        GetMany::new(self.0.set(), ids)
    }

    /// Returns the records of `range`, in order. The iterator continues after an error, because the records
    /// after a corrupt one are still readable.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange).
    pub fn range(
        &self,
        range: Range<u64>,
    ) -> Result<impl FusedIterator<Item = Result<Record<'_>>> + Clone + fmt::Debug> {
        MappedIter::new(self.0.set(), range)
    }

    /// Returns all records, as [`range`](Mapped::range) does.
    pub fn iter(&self) -> impl FusedIterator<Item = Result<Record<'_>>> + Clone + fmt::Debug {
        MappedIter::all(self.0.set())
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} records in {} shards)", self.len(), self.0.files().len())
    }
}

const _: () = {
    const fn send_sync_static<T: Send + Sync + 'static>() {}
    const fn copy<T: Copy>() {}
    send_sync_static::<Dataset>();
    send_sync_static::<Mapped>();
    send_sync_static::<crate::Error>();
    copy::<Record<'_>>();
    copy::<crate::example::Example<'_>>();
    copy::<crate::example::Feature<'_>>();
    copy::<crate::example::SequenceExample<'_>>();
};
