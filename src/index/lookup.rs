//! The index of one shard: the location of each record.

use super::changed::{changed, check_start};
use super::checkpoints::{CheckpointError, CheckpointTable};
use super::identity::{self, Sameness, Staleness};
use super::layout::{self, GAPS, refused};
use super::losses::{Losses, NotInflatedRange};
use super::sidecar::{Sidecar, Span};
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::io::{Compression, FileId, Region, Source, Stamp};
use crate::warning::Gap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The offsets of the records of one shard. Cheap to clone, and usable from any thread.
#[derive(Clone)]
pub struct Index(pub(super) Arc<Sidecar>);

impl Index {
    /// Reads a sidecar from memory. It is checked like an index file, but not compared with a shard.
    ///
    /// # Errors
    /// [`IndexError::Refused`](crate::error::IndexError::Refused).
    pub fn from_sidecar(bytes: Region) -> Result<Index> {
        Ok(Sidecar::from_bytes(bytes).map_err(refused)?.into())
    }

    /// Returns the header of the sidecar.
    pub(crate) fn header(&self) -> &layout::IndexHeader {
        &self.0.header
    }

    /// Returns the identifier of the shard's file when it was scanned or compared, if it is known.
    pub(crate) fn shard_id(&self) -> Option<FileId> {
        self.0.shard.as_ref()?.id
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.header.n_records
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the span of record `i`. Reads two entries and allocates nothing. Spans do not overlap, and end
    /// at [`stream_end`](Index::stream_end) at most.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`]; [`IndexError::CorruptBlock`](crate::error::IndexError::CorruptBlock). The
    /// first use of a large index file that is not mapped can also fail with [`ErrorKind::Io`] or
    /// [`IndexError::Stale`](crate::error::IndexError::Stale).
    #[inline]
    pub fn locate(&self, i: u64) -> Result<Span> {
        match self.locate_fast(i) {
            Some(span) => Ok(span),
            None => self.locate_slow(i),
        }
    }

    /// Returns the span of record `i` if the fast path can. `None` means only that [`locate`](Index::locate)
    /// must take the slow path.
    #[inline(always)]
    pub(crate) fn locate_fast(&self, i: u64) -> Option<Span> {
        let sidecar = &*self.0;
        if i >= sidecar.header.n_records {
            return None;
        }
        sidecar.tables.get()?.span_fast(&sidecar.header, i)
    }

    /// Returns the first byte of the entry of record `i`, if it is in memory.
    #[inline]
    pub(crate) fn entry(&self, i: u64) -> Option<&u8> {
        self.0.tables.get()?.offsets.entry(i)
    }

    #[cold]
    fn locate_slow(&self, i: u64) -> Result<Span> {
        let sidecar = &*self.0;
        if i >= sidecar.header.n_records {
            return Err(out_of_range(i, sidecar.header.n_records));
        }
        sidecar.span(i)
    }

    /// Returns the size of the shard when it was scanned.
    pub fn data_size(&self) -> u64 {
        self.0.header.data_size
    }

    /// Returns the number of bytes that hold the records: of the shard when it was scanned, or of the record
    /// stream if it is compressed.
    pub(crate) fn stored_bytes(&self) -> u64 {
        match self.compression().format() {
            None => self.data_size(),
            Some(_) => self.stream_end(),
        }
    }

    /// Returns the end of the last whole record in the file, or the size of the file if the shard is
    /// compressed.
    pub(crate) fn indexed_end(&self) -> u64 {
        self.0.header.indexed_end
    }

    /// Returns the end of the last whole record in the record stream.
    pub fn stream_end(&self) -> u64 {
        self.0.header.stream_end
    }

    /// Returns true if damaged records were skipped, so that there are gaps between records.
    pub fn has_gaps(&self) -> bool {
        self.0.header.has(GAPS)
    }

    /// Returns the ranges without a sound record, in the order of the records. A torn tail is one of them.
    /// Without flag *gaps* little is read; otherwise all spans are.
    ///
    /// # Errors
    /// Errors of [`locate`](Index::locate). The first error ends the iterator.
    pub fn gaps(&self) -> impl Iterator<Item = Result<Gap>> + '_ {
        let (losses, mut error) = match self.0.losses() {
            Ok(losses) => (losses, None),
            Err(e) => (Losses::default(), Some(e)),
        };
        let (torn, ranges) = match self.compression().format() {
            None => (self.data_size() - self.indexed_end(), Vec::new()),
            Some(_) => (losses.inflated, losses.ranges),
        };
        let in_file = (losses.bytes > 0).then(|| {
            let end = self.data_size();
            NotInflatedRange { records: self.len(), start: end - losses.bytes, end }
        });
        let compressed = |range: NotInflatedRange| {
            let NotInflatedRange { records, start, end } = range;
            Gap { start, end, records, compressed: true }
        };
        let mut in_file = ranges.into_iter().chain(in_file).map(compressed).peekable();
        let between = error.is_none().then(|| self.gaps_between(torn));
        let mut between = between.into_iter().flatten().peekable();
        std::iter::from_fn(move || {
            if let Some(e) = error.take() {
                return Some(Err(e));
            }
            let before = |gap: &Gap| match between.peek() {
                Some(Ok(next)) => gap.records < next.records,
                Some(Err(_)) => false,
                None => true,
            };
            in_file.next_if(before).map(Ok).or_else(|| between.next())
        })
    }

    /// Returns the gaps in the record stream. `torn`: the number of its bytes after the last whole record.
    fn gaps_between(&self, torn: u64) -> impl Iterator<Item = Result<Gap>> + '_ {
        let records = if self.has_gaps() { self.len() } else { 0 };
        let mut i = 0;
        let mut at = if records > 0 { 0 } else { self.stream_end() };
        let mut tail = Some(self.stream_end() + torn);
        let gap = |start, end, records| Gap { start, end, records, compressed: false };
        std::iter::from_fn(move || {
            while i < records {
                let span = match self.locate(i) {
                    Ok(span) => span,
                    Err(e) => {
                        (i, tail) = (records, None);
                        return Some(Err(e));
                    }
                };
                let found = gap(at, span.offset, i);
                (i, at) = (i + 1, span.end());
                if found.bytes() > 0 {
                    return Some(Ok(found));
                }
            }
            let last = gap(at, tail.take()?, self.len());
            (last.bytes() > 0).then_some(Ok(last))
        })
    }

    /// Returns the number of checkpoints of a compressed shard, and their spacing: the minimum number of
    /// decompressed bytes between two of them. `None` for a shard that is not compressed.
    ///
    /// # Errors
    /// Errors of reading a large index file that was not read before.
    pub fn checkpoint_spacing(&self) -> Result<Option<(u64, u64)>> {
        let table = self.0.load()?.checkpoints.as_ref();
        Ok(table.and_then(|table| Some((table.len() as u64, table.spacing()?))))
    }

    /// Returns the longest distance of two checkpoints of a compressed shard in decompressed bytes. If the
    /// index file was not read yet, it is not read: the result is then the mean distance, from the length of
    /// the section. `None` for a shard that is not compressed.
    pub(crate) fn longest_segment(&self) -> Option<u64> {
        self.0.longest_segment()
    }

    /// Returns the mean distance of two checkpoints of a compressed shard in decompressed bytes, from an
    /// index file that was not read yet an estimate. `None` for a shard that is not compressed.
    pub(crate) fn mean_segment(&self) -> Option<u64> {
        self.0.mean_segment()
    }

    /// Returns the compression of the shard.
    pub(crate) fn compression(&self) -> Compression {
        self.0.header.compression()
    }

    /// Returns the checkpoints of a compressed shard.
    ///
    /// # Errors
    /// Errors of reading the index file; [`IndexError::Missing`] if there are none.
    pub(crate) fn checkpoints(&self) -> Result<&CheckpointTable> {
        self.0.load()?.checkpoints.as_ref().ok_or_else(|| IndexError::Missing.into())
    }

    /// Returns the error of a checkpoint that cannot be used.
    pub(crate) fn checkpoint_error(&self, e: CheckpointError) -> Error {
        self.0.checkpoint_error(e)
    }

    /// Returns the index file that this index was read from or saved to. `None` if it is in memory only.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Checks that `file` is the indexed shard, and returns its size and time. It must have the indexed size,
    /// and the indexed time or fingerprints. With `may_have_grown`, a shard that has grown passes as well,
    /// because its indexed records have not moved. For a [`File`](std::fs::File) it costs one `fstat`, and a
    /// read of 128 KiB if the time differs.
    ///
    /// # Errors
    /// [`IndexError::Stale`](crate::error::IndexError::Stale); I/O errors.
    pub(crate) fn check_file(&self, file: &dyn Source, may_have_grown: bool) -> Result<Stamp> {
        let known = &self.0.header;
        let now = file.stamp()?;
        let fingerprints = || identity::fingerprints_beside(file, known);
        let sameness = match &self.0.shard {
            Some(then) if *then == now && now.is_known() => Sameness::Same,
            Some(then) if then.changed_ns.is_some() && then.is_like(&now) => Sameness::Unknown,
            _ => identity::sameness(known, self.0.saved_ns, &now),
        };
        let why = match identity::compare(known, sameness, &now, fingerprints)? {
            Staleness::Grown if !may_have_grown => identity::why_partial(known, &now),
            Staleness::Fresh | Staleness::Moved | Staleness::Grown => return Ok(now),
            // Other records may be sound now, but the indexed ones have not moved.
            Staleness::Stale(_) if may_have_grown && self.has_gaps() && now.size > known.data_size => {
                return check_start(known, file).map(|()| now);
            }
            Staleness::Stale(why) => why,
        };
        Err(changed(known, &now, file, why))
    }

    /// Verifies every block now, instead of each on first use, and validates every span.
    ///
    /// # Errors
    /// [`IndexError::CorruptBlock`](crate::error::IndexError::CorruptBlock).
    pub fn verify(&self) -> Result<()> {
        self.0.verify()?;
        (0..self.len()).try_for_each(|i| self.locate(i).map(drop))
    }

    /// Writes the sidecar. Its bytes depend only on the shard, its time and whether payloads were verified.
    ///
    /// # Errors
    /// Errors of `w`, and of reading a large index file that was not read before.
    pub fn write_to(&self, w: &mut impl Write) -> Result<()> {
        self.0.write_to(w)
    }
}

/// Returns the fingerprint of a dataset as 32 hex digits. It covers the records and bytes of its shards in
/// order, but no paths and no times, so a copy has the same fingerprint.
pub(crate) fn dataset_fingerprint(indexes: &[Index]) -> String {
    let bytes = identity::dataset_hash(indexes.iter().map(|i| &i.0.header));
    format!("{:032x}", u128::from_be_bytes(bytes))
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("header", &self.0.header).field("file", &self.0.file).finish()
    }
}

impl From<Sidecar> for Index {
    fn from(sidecar: Sidecar) -> Index {
        Index(Arc::new(sidecar))
    }
}

#[cold]
fn out_of_range(i: u64, len: u64) -> Error {
    ErrorKind::OutOfRange { what: "record", i: i.into(), len }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc::crc32c;
    use crate::index::IndexOptions;
    use crate::index::layout::{IndexHeader, TORN};
    use crate::index::sidecar::SidecarTables;
    use crate::index::store;
    use crate::index::table::{Table, TableBuilder};

    fn table(mut builder: TableBuilder, values: &[u64]) -> Table {
        values.iter().for_each(|&v| builder.push(v));
        builder.finish().unwrap()
    }

    fn built(header: IndexHeader, offsets: Table, lengths: Option<Table>) -> Sidecar {
        let tables = SidecarTables { offsets, lengths, checkpoints: None, losses: None };
        Sidecar::new(header, tables, None)
    }

    /// A sidecar of two records of 1 and 2 bytes, with 10 damaged bytes between them and a torn tail of 4.
    fn with_gaps(lengths: &[u64]) -> Vec<u8> {
        let header = IndexHeader {
            n_records: 2,
            data_size: 49,
            indexed_end: 45,
            stream_end: 45,
            flags: GAPS | TORN,
            ..IndexHeader::default()
        };
        let offsets = table(TableBuilder::offsets(), &[0, 27, 45]);
        let sidecar = built(header, offsets, Some(table(TableBuilder::lengths(), lengths)));
        let mut bytes = Vec::new();
        sidecar.write_to(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, sidecar.file_len().unwrap());
        bytes
    }

    #[test]
    fn gaps_are_read() {
        let index = Index::from_sidecar(Region::new(with_gaps(&[1, 2]))).unwrap();
        assert!(index.has_gaps());
        assert_eq!(index.locate(0).unwrap(), Span { offset: 0, payload_len: 1 });
        assert_eq!(index.locate(1).unwrap(), Span { offset: 27, payload_len: 2 });
        index.verify().unwrap();
        // A record may end where the next one starts, but not later.
        assert!(Index::from_sidecar(Region::new(with_gaps(&[11, 2]))).unwrap().verify().is_ok());
        for lengths in [[12, 2], [1, 3], [u64::MAX, 2]] {
            let index = Index::from_sidecar(Region::new(with_gaps(&lengths))).unwrap();
            assert!(index.verify().is_err(), "{lengths:?}");
        }
    }

    /// Tables with valid CRCs over inconsistent values.
    #[test]
    fn forged_offsets_stay_inside() {
        for values in
            [[0, 100, 50], [1, 20, 50], [0, 60, 50], [0, 15, 50], [0, 20, 49], [0, 40, 50], [0, u64::MAX, 50]]
        {
            let header = IndexHeader {
                n_records: 2,
                data_size: 50,
                indexed_end: 50,
                stream_end: 50,
                ..IndexHeader::default()
            };
            let sidecar = built(header, table(TableBuilder::offsets(), &values), None);
            let mut bytes = Vec::new();
            sidecar.write_to(&mut bytes).unwrap();
            let index = Index::from_sidecar(Region::from(bytes)).unwrap();
            let e = index.verify().unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Index(IndexError::CorruptBlock { .. })), "{values:?}: {e}");
            for i in 0..2 {
                if let Ok(span) = index.locate(i) {
                    assert!(span.offset + 16 + span.payload_len <= 50, "{values:?}");
                }
            }
        }
    }

    /// Writes a sidecar of `n` records to `path`, for a shard with the time `mtime_ns`.
    fn write_sidecar(path: &Path, n: u64, mtime_ns: i64) {
        let header = IndexHeader {
            n_records: n,
            data_size: n * 17,
            indexed_end: n * 17,
            stream_end: n * 17,
            mtime_ns,
            ..IndexHeader::default()
        };
        let mut offsets = TableBuilder::offsets();
        (0..=n).for_each(|i| offsets.push(i * 17));
        let mut bytes = Vec::new();
        built(header, offsets.finish().unwrap(), None).write_to(&mut bytes).unwrap();
        assert_eq!(crc32c(&bytes[..124]), u32::from_le_bytes(bytes[124..128].try_into().unwrap()));
        std::fs::write(path, bytes).unwrap();
    }

    fn last(index: &Index) -> Result<Span> {
        index.locate(index.len() - 1)
    }

    /// An index file in memory or kept open may be deleted or replaced. A file that must be reopened then
    /// causes an error.
    #[test]
    #[cfg(unix)] // Elsewhere an open file may keep its name.
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn a_deleted_or_replaced_index_file_stays_usable_within_the_budget() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tfri");
        let options = IndexOptions::new().budgeted();
        let open = || Index::from(store::read(&path, &options).unwrap().unwrap());
        for n in [20_000u64, 300_000] {
            let want = Span { offset: (n - 1) * 17, payload_len: 1 };
            for replaced in [true, false] {
                write_sidecar(&path, n, 1);
                let index = open();
                assert_eq!(
                    index.0.tables.get().is_some(),
                    n < 100_000,
                    "files up to 1 MiB are read into memory"
                );
                std::fs::remove_file(&path).unwrap();
                if replaced {
                    write_sidecar(&path, n, 2);
                }
                assert_eq!(last(&index).unwrap(), want);
            }
        }
        // Beyond the limit on descriptors.
        write_sidecar(&path, 300_000, 1);
        let kept: Vec<Index> = (0..128).map(|_| open()).collect();
        let reopened = open();
        let replaced = open();
        let deleted = open();
        assert!(last(&reopened).is_ok());
        for (index, word) in [(replaced, "replaced"), (deleted, "deleted")] {
            match word {
                "replaced" => write_sidecar(&path, 300_000, 2),
                _ => std::fs::remove_file(&path).unwrap(),
            }
            let e = last(&index).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
            assert!(e.to_string().contains(word), "{e}");
            assert_eq!(e.location().path.as_deref(), Some(&*path));
        }
        // A descriptor is returned to the budget once the tables are read.
        assert!(kept.iter().all(|index| last(index).is_ok()));
        write_sidecar(&path, 300_000, 1);
        let again = open();
        std::fs::remove_file(&path).unwrap();
        assert!(last(&again).is_ok());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn threads_that_load_a_table_at_the_same_time_all_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tfri");
        write_sidecar(&path, 300_000, 1);
        let options = IndexOptions::new();
        for _ in 0..20 {
            let index = Index::from(store::read(&path, &options).unwrap().unwrap());
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| assert!(last(&index).is_ok()));
                }
            });
        }
    }
}
