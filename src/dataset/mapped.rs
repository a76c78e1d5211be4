//! [`Mapped`]: shards that lend their records.

use super::dataset::Dataset;
use super::get_many::GetMany;
use super::iter::MappedIter;
use crate::error::Result;
use crate::record::Record;
use std::fmt;
use std::ops::Range;

/// A [`Dataset`] all of whose shards are bytes: maps, or memory. Records are lent for the dataset's life, and
/// from `get` to a decoded value nothing is allocated.
///
/// [`dataset`](Mapped::dataset) has what all datasets have: shards, columns, loaders. A shard is mapped when it is first
/// touched. Page tables cost about 2 MB for each GiB touched.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..10 { writer.write(&tfseek::ExampleBuilder::new().float("emb", [i as f32; 4]).encode()?)?; }
/// # writer.close()?;
/// # let options = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory);
/// // SAFETY: the shards are written once, and by then closed.
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
pub struct Mapped(Dataset);

impl Mapped {
    /// Returns a dataset as one that lends; `None` if it reads its shards.
    pub fn from_dataset(dataset: &Dataset) -> Option<Mapped> {
        dataset.set().lends().then(|| Mapped(dataset.clone()))
    }

    /// Takes a dataset whose shards all lend.
    pub(super) fn new(dataset: Dataset) -> Mapped {
        Mapped(dataset)
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

    /// Returns true if there is no record.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns record `i`, lent for the dataset's life.
    ///
    /// Cost when warm: two or three cache misses, and the check that [`Verify`](crate::Verify) asks for.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange); damage at its place; an index that is out of date.
    #[inline]
    pub fn get(&self, i: u64) -> Result<Record<'_>> {
        self.0.set().get(i)
    }

    /// Returns the records `ids`, in that order. Reads ahead: index entries and records of the next window are touched together,
    /// so that their cache misses overlap, and while records have to be waited for the next window's bytes are asked for early.
    pub fn get_many<'s>(&'s self, ids: &'s [u64]) -> impl ExactSizeIterator<Item = Result<Record<'s>>> {
        GetMany::new(self.0.set(), ids)
    }

    /// Returns the records of `range`, in order.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange).
    pub fn range(&self, range: Range<u64>) -> Result<MappedIter<'_>> {
        MappedIter::new(self.0.set(), range)
    }

    /// Returns all records, in order.
    pub fn iter(&self) -> MappedIter<'_> {
        MappedIter::all(self.0.set())
    }
}

impl<'a> IntoIterator for &'a Mapped {
    type Item = Result<Record<'a>>;
    type IntoIter = MappedIter<'a>;

    fn into_iter(self) -> MappedIter<'a> {
        self.iter()
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
