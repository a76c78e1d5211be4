//! Many shards as one array of records: [`Dataset`] and [`Mapped`].

mod ahead;
mod options;
pub(crate) mod shard;
mod slice;
mod touch;

pub use ahead::GetMany;
pub use options::DatasetOptions;
pub(crate) use options::{Callback, call};
pub use slice::{Slice, SliceIter};

use crate::error::{At, Error, ErrorKind, Result};
use crate::frame::HEADER_LEN;
use crate::index::{Index, IndexOptions, Span, Warning};
use crate::io::Region;
use crate::io::threads;
use crate::paths::IntoPaths;
use crate::policy::Verify;
use crate::record::Record;
pub(crate) use ahead::{COLD, Located};
use shard::Shard;
use std::fmt;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// Shards in order, as one array of records: record `i` is found by its number. `Send + Sync + 'static`, and cloned for the
/// price of a counter.
///
/// This is the safe door: files are read at positions, and a record is copied into the caller's buffer. It keeps
/// a bounded number of descriptors. [`Mapped`] lends records out of a map instead, without a copy.
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
pub struct Dataset(Arc<Inner>);

struct Inner {
    shards: Vec<Shard>,
    len: u64,
    /// `starts[s]` is the number of shard `s`'s first record; the last one is the number of records.
    starts: Vec<u64>,
    /// Whether every shard is bytes.
    lends: bool,
    verify: Verify,
    warnings: Vec<Warning>,
    building: Building,
}

/// How columns are found and built: as the indexes were.
pub(crate) struct Building {
    pub(crate) options: IndexOptions,
    pub(crate) progress: Option<options::Callback>,
}

/// A [`Dataset`] all of whose shards are bytes: maps, or memory. Records are lent for the dataset's life, and
/// from `get` to a decoded value nothing is allocated.
///
/// A shard is mapped when it is first touched. Page tables cost about 2 MB for each GiB touched.
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

/// One shard of a dataset: a file and what its index says of it.
#[derive(Clone, Copy, Debug)]
pub struct ShardInfo<'a> {
    /// The file.
    pub path: &'a Path,
    /// Number of the shard's first record in the dataset.
    pub start: u64,
    /// Number of records.
    pub len: u64,
}

impl Dataset {
    /// Opens shards for positional reads: a path, a pattern, or a list of them (`docs/paths.md` has the forms). Finds
    /// their indexes, and builds what is missing; see [`DatasetOptions`] for everything that can be said.
    ///
    /// # Errors
    /// [`ErrorKind::Paths`] where nothing or not all of a set is found, [`ErrorKind::Compressed`], the place of the
    /// first damage in a shard that had to be scanned, [`ErrorKind::Cancelled`] where the callback of
    /// [`DatasetOptions::progress`] says so, and I/O errors.
    pub fn open(paths: impl IntoPaths) -> Result<Dataset> {
        DatasetOptions::new().open(paths)
    }

    fn new(
        shards: Vec<Shard>,
        verify: Verify,
        warnings: Vec<Warning>,
        building: Building,
    ) -> Result<Dataset> {
        let mut starts = Vec::with_capacity(shards.len() + 1);
        let mut total = 0u64;
        starts.push(0);
        for shard in &shards {
            let found = u128::from(total) + u128::from(shard.len());
            total = u64::try_from(found).map_err(|_| ErrorKind::TooMany {
                what: "records",
                found,
                limit: u64::MAX,
            })?;
            starts.push(total);
        }
        let lends = shards.iter().all(Shard::is_bytes);
        Ok(Dataset(Arc::new(Inner { shards, len: total, starts, lends, verify, warnings, building })))
    }

    /// Number of records.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shards, in order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = ShardInfo<'_>> {
        let starts = &self.0.starts;
        self.0.shards.iter().zip(starts).map(|(s, &start)| ShardInfo { path: s.path(), start, len: s.len() })
    }

    /// The files and their indexes, in order.
    pub(crate) fn parts(&self) -> &[Shard] {
        &self.0.shards
    }

    /// The number of each shard's first record, and behind them the number of records.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.0.starts
    }

    /// How columns are found and built.
    pub(crate) fn building(&self) -> &Building {
        &self.0.building
    }

    /// The index of shard `s`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; for a dataset opened from a pack, those of the shard's first touch.
    pub fn index(&self, s: usize) -> Result<&Index> {
        let len = self.0.shards.len() as u64;
        self.0.shards.get(s).ok_or(ErrorKind::OutOfRange { what: "shard", i: s as i128, len })?.index()
    }

    /// What was noticed while opening and is no error, for people: an index that had to be ignored, say.
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    /// What identifies the records of this dataset, independent of paths and times: a copy has the same. 32 hex digits.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub fn fingerprint(&self) -> Result<String> {
        let indexes = self.0.shards.iter().map(|s| s.index().cloned()).collect::<Result<Vec<_>>>()?;
        Ok(crate::index::dataset_fingerprint(&indexes))
    }

    /// Bytes of all shards, by their indexes.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub fn stored_bytes(&self) -> Result<u64> {
        self.0.shards.iter().try_fold(0u64, |sum, s| Ok(sum.saturating_add(s.index()?.data_size())))
    }

    /// The same, if the shards need not be touched for it: a pack does not say it.
    pub fn known_bytes(&self) -> Option<u64> {
        self.0.shards.iter().try_fold(0u64, |sum, s| Some(sum.saturating_add(s.known_bytes()?)))
    }

    /// The shard that holds record `i`, and the record's number in it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    #[inline]
    pub fn shard_of(&self, i: u64) -> Result<(usize, u64)> {
        let starts = &self.0.starts;
        if i >= self.len() {
            return Err(ErrorKind::OutOfRange { what: "record", i: i.into(), len: self.len() }.into());
        }
        // Shards without records share their start with the next: the last one that starts at or before `i`.
        let s = starts.partition_point(|&start| start <= i) - 1;
        Ok((s, i - starts[s]))
    }

    /// Where record `i` lies, by the index.
    #[inline]
    pub(crate) fn locate(&self, i: u64) -> Result<Located> {
        let (s, k) = self.shard_of(i)?;
        self.locate_in(s, k)
    }

    /// Where record `k` of shard `s` lies.
    #[inline]
    fn locate_in(&self, s: usize, k: u64) -> Result<Located> {
        let span = self.0.shards[s].locate(k)?;
        Ok(Located { shard: s as u32, i: k, span })
    }

    /// Whether every shard is bytes, so that records are lent.
    pub(crate) fn lends(&self) -> bool {
        self.0.lends
    }

    /// What is checked at each access.
    pub(crate) fn verify(&self) -> Verify {
        self.0.verify
    }

    fn shard_at(&self, at: &Located) -> &Shard {
        &self.0.shards[at.shard as usize]
    }

    /// The place of a record, for errors to name.
    pub(crate) fn place(&self, at: &Located) -> At<'_> {
        At::new(self.shard_at(at).path(), at.i, at.span.offset)
    }

    /// A record that was found; only where records are lent.
    #[inline]
    pub(crate) fn lend_as(&self, at: &Located, verify: Verify) -> Result<Record<'_>> {
        self.shard_at(at).lend(at.i, at.span, verify)
    }

    /// A record that [`lend_as`](Dataset::lend_as) lent before, unchecked.
    pub(crate) fn lent_before(&self, at: &Located) -> Record<'_> {
        self.shard_at(at).lent_before(at.i, at.span)
    }

    /// Reads a record that was found behind what `buf` holds, and says where its payload is now.
    pub(crate) fn append(&self, at: &Located, verify: Verify, buf: &mut Vec<u8>) -> Result<Range<usize>> {
        let Located { i, span, .. } = *at;
        let shard = self.shard_at(at);
        shard.check_len(i, span)?;
        let start = buf.len();
        let end = end_of(span)?;
        shard.append(span.offset, end, buf).map_err(|e| e.at(self.place(at)))?;
        let payload = shard.carve(i, span, span.offset, &buf[start..], verify)?.payload();
        let from = start + HEADER_LEN;
        Ok(from..from + payload.len())
    }

    /// Asks for the bytes of a record that will be read soon.
    pub(crate) fn will_need(&self, at: &Located) {
        self.shard_at(at).will_need(at.span);
    }

    /// Reads a mapped record in.
    pub(crate) fn populate(&self, at: &Located) -> std::io::Result<()> {
        self.shard_at(at).populate(at.span)
    }

    /// Loads a byte of a lent record's header.
    #[inline]
    pub(crate) fn touch(&self, at: &Located) {
        let bytes = self.shard_at(at).bytes().unwrap_or_default();
        let byte = usize::try_from(at.span.offset).ok().and_then(|offset| bytes.get(offset));
        std::hint::black_box(byte.copied());
    }

    /// Record `i`. Of a mapped dataset it is lent, and `buf` left as it is; else it is read into `buf`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; damage at its place; an index that is out of date.
    pub fn read<'b>(&'b self, i: u64, buf: &'b mut Vec<u8>) -> Result<Record<'b>> {
        let Located { shard, i, span } = self.locate(i)?;
        let shard = &self.0.shards[shard as usize];
        if shard.is_bytes() {
            return shard.lend(i, span, self.0.verify);
        }
        shard.check_len(i, span)?;
        let end = end_of(span)?;
        shard.read(span.offset, end, buf).map_err(|e| e.at(At::new(shard.path(), i, span.offset)))?;
        shard.carve(i, span, span.offset, buf, self.0.verify)
    }

    /// Records `ids`, one after the other, each handed to `f`. Looks ahead: a mapped record's bytes are asked for before its
    /// turn, and records that lie side by side are read at once.
    ///
    /// # Errors
    /// Those of [`read`](Dataset::read) and of `f`; the records before were handed out.
    pub fn read_many(&self, ids: &[u64], f: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        match self.mapped() {
            Some(mapped) => mapped.get_many(ids).try_for_each({
                let mut f = f;
                move |record| f(record?)
            }),
            None => self.read_runs(ids.iter().copied(), self.0.verify, f),
        }
    }

    /// The records of `range` in order, each handed to `f`: large reads, however small the records.
    ///
    /// # Errors
    /// As [`read_many`](Dataset::read_many).
    pub fn read_range(&self, range: Range<u64>, mut f: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        match self.mapped() {
            Some(mapped) => mapped.slice(range)?.iter().try_for_each(|record| f(record?)),
            None => {
                slice::check(&range, self.len())?;
                self.read_runs(range, self.0.verify, f)
            }
        }
    }

    /// All records, over `jobs` threads of a pool made for this call (0: one for each processor). `f` gets the record's
    /// number as well; records of a thread come in order, threads in none.
    ///
    /// # Errors
    /// Of the records that failed, the error of the lowest number.
    pub fn par_for_each(&self, jobs: usize, f: impl Fn(u64, Record<'_>) -> Result<()> + Sync) -> Result<()> {
        /// Records a thread takes at a time.
        const CHUNK: u64 = 1024;
        let chunks = self.len().div_ceil(CHUNK);
        let limit = usize::MAX as u64;
        let chunks = usize::try_from(chunks).map_err(|_| ErrorKind::TooMany {
            what: "groups of 1024 records",
            found: chunks.into(),
            limit,
        })?;
        let run = |chunk: usize| {
            let from = chunk as u64 * CHUNK;
            let mut i = from;
            self.read_range(from..self.len().min(from + CHUNK), |record| {
                i += 1;
                f(i - 1, record)
            })
        };
        threads::each(jobs, chunks, true, run).map(drop)
    }

    /// Reads runs of neighbours at once, up to a MiB of them.
    pub(crate) fn read_runs(
        &self,
        ids: impl Iterator<Item = u64>,
        verify: Verify,
        mut f: impl FnMut(Record<'_>) -> Result<()>,
    ) -> Result<()> {
        const RUN: u64 = 1 << 20;
        let mut ids = ids.map(|i| self.locate(i)).peekable();
        let (mut buf, mut run) = (Vec::new(), Vec::new());
        while let Some(first) = ids.next() {
            let first = first?;
            let shard = &self.0.shards[first.shard as usize];
            shard.check_len(first.i, first.span)?;
            let start = first.span.offset;
            let mut end = end_of(first.span).unwrap_or(u64::MAX);
            run.clear();
            run.push(first);
            // An error, a gap or another shard ends the run; its turn comes after the records before it.
            while let Some(Ok(next)) = ids.peek() {
                let next_end = end_of(next.span).unwrap_or(u64::MAX);
                if next.shard != first.shard || next.span.offset != end || next_end - start > RUN {
                    break;
                }
                end = next_end;
                run.push(*next);
                ids.next();
            }
            shard.read(start, end, &mut buf).map_err(|e| e.at(At::new(shard.path(), first.i, start)))?;
            for &Located { i, span, .. } in &run {
                f(shard.carve(i, span, start, &buf, verify)?)?;
            }
        }
        Ok(())
    }

    /// This dataset as one that lends, if every shard of it is bytes.
    pub fn mapped(&self) -> Option<Mapped> {
        self.0.lends.then(|| Mapped(self.clone()))
    }
}

/// Returns the byte behind a record's footer.
fn end_of(span: Span) -> Result<u64, ErrorKind> {
    let end = u128::from(span.offset) + u128::from(span.payload_len) + crate::frame::OVERHEAD as u128;
    u64::try_from(end).map_err(|_| ErrorKind::TooLarge { len: end, limit: u64::MAX })
}

impl Mapped {
    /// Opens shards through maps.
    ///
    /// # Errors
    /// Those of [`Dataset::open`]; [`PathsError::TooManyMaps`](crate::error::PathsError) above the number of maps that a
    /// process may hold.
    ///
    /// # Safety
    /// The contract of [`io::Map`](crate::io::Map): nobody writes to or truncates the shards, or the index files that belong
    /// to them, while this dataset or a clone of it lives. Replacing a file by rename is fine.
    #[allow(unsafe_code)]
    pub unsafe fn open(paths: impl IntoPaths) -> Result<Mapped> {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { DatasetOptions::new().open_mapped(paths) }
    }

    /// One shard that is bytes already; scanned at once, and never written to disk.
    ///
    /// # Errors
    /// The place of the first damage.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Mapped> {
        DatasetOptions::new().open_regions([Region::new(bytes)])
    }

    /// Record `i`, lent for the dataset's life.
    ///
    /// Cost when warm: two or three cache misses, and the check of what [`Verify`] asks for.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; damage at its place; an index that is out of date.
    #[inline]
    pub fn get(&self, i: u64) -> Result<Record<'_>> {
        let inner = &*self.0.0;
        match inner.shards.as_slice() {
            [shard] if i < inner.len => shard.get(i, inner.verify),
            _ => self.get_of_many(i),
        }
    }

    fn get_of_many(&self, i: u64) -> Result<Record<'_>> {
        let (s, k) = self.shard_of(i)?;
        self.0.0.shards[s].get(k, self.0.0.verify)
    }

    #[inline]
    fn lend(&self, at: Located) -> Result<Record<'_>> {
        let inner = &*self.0.0;
        inner.shards[at.shard as usize].lend(at.i, at.span, inner.verify)
    }

    /// Records `ids`, in that order. Looks ahead: index entries and records of the next window are touched together, so
    /// that their cache misses overlap, and once a window had to wait for a disk the next one's bytes are asked for early.
    pub fn get_many<'s>(&'s self, ids: &'s [u64]) -> GetMany<'s> {
        GetMany::new(self, ids)
    }

    /// Records `range` as an array of their own.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    pub fn slice(&self, range: Range<u64>) -> Result<Slice<'_>> {
        Slice::new(self, range)
    }

    /// All records, in order.
    pub fn iter(&self) -> SliceIter<'_> {
        Slice::all(self).iter()
    }
}

impl Deref for Mapped {
    type Target = Dataset;

    fn deref(&self) -> &Dataset {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Mapped {
    type Item = Result<Record<'a>>;
    type IntoIter = SliceIter<'a>;

    fn into_iter(self) -> SliceIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({} records in {} shards)", self.len(), self.0.shards.len())
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} records in {} shards)", self.len(), self.0.0.shards.len())
    }
}

const _: () = {
    const fn send_sync_static<T: Send + Sync + 'static>() {}
    const fn copy<T: Copy>() {}
    send_sync_static::<Dataset>();
    send_sync_static::<Mapped>();
    send_sync_static::<Error>();
    copy::<Record<'_>>();
    copy::<crate::example::Example<'_>>();
    copy::<crate::example::Feature<'_>>();
    copy::<crate::example::SequenceExample<'_>>();
};
