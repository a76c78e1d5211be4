//! The shards of a dataset as one array of records.

#![expect(
    clippy::indexing_slicing,
    reason = "shards are those of `shard_of`, and `starts` has one entry more than `files`"
)]

use super::segments::OrderWindow;
use super::shard::{ShardFile, stored_range};
use super::touch::Loads;
use crate::error::{At, ErrorKind, Result};
use crate::frame::HEADER_LEN;
use crate::index::Span;
use crate::policy::Verify;
use crate::record::Record;
use crate::warning::Warning;
use std::fmt;
use std::ops::Range;

/// The shards of a dataset in order, with the record number of each first record.
pub(crate) struct ShardSet {
    files: Vec<ShardFile>,
    len: u64,
    /// Record number of the first record of each shard, followed by the number of records.
    starts: Vec<u64>,
    /// True if every shard is mapped or in memory.
    can_borrow: bool,
    /// True if a shard is an object of a store.
    has_objects: bool,
    verify: Verify,
    /// The share of the set in the cache of decompressed bytes. `None` if no shard is compressed.
    window: Option<OrderWindow>,
}

/// The location of a record according to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordLocation {
    pub(super) shard: u32,
    pub(super) i: u64,
    pub(super) span: Span,
}

/// The blocks of a block order: records from `first` on, `len` in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderBlocks {
    pub(crate) first: u64,
    pub(crate) len: u64,
}

impl RecordLocation {
    /// Returns the number of payload bytes.
    pub(crate) fn payload_len(&self) -> u64 {
        self.span.payload_len
    }

    /// Returns the location of the same record with an empty payload.
    pub(super) fn header(&self) -> RecordLocation {
        RecordLocation { span: Span { payload_len: 0, ..self.span }, ..*self }
    }
}

impl ShardSet {
    pub(super) fn new(files: Vec<ShardFile>, verify: Verify) -> Result<ShardSet> {
        let mut starts = Vec::with_capacity(files.len() + 1);
        let mut len = 0u64;
        starts.push(0);
        for file in &files {
            let found = u128::from(len) + u128::from(file.len());
            let too_many = |_| ErrorKind::TooMany { what: "records", found, limit: u64::MAX };
            len = u64::try_from(found).map_err(too_many)?;
            starts.push(len);
        }
        let can_borrow = files.iter().all(ShardFile::can_borrow);
        let window = files.iter().find_map(ShardFile::segment_cache).cloned().map(OrderWindow::new);
        let has_objects = files.iter().any(ShardFile::is_object);
        Ok(ShardSet { files, len, starts, can_borrow, has_objects, verify, window })
    }

    /// Returns the number of records.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the shards, in order.
    pub(crate) fn files(&self) -> &[ShardFile] {
        &self.files
    }

    /// Returns the record number of the first record of each shard, followed by the number of records.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Returns true if records borrow from the shards, false for positional reads.
    pub(crate) fn can_borrow(&self) -> bool {
        self.can_borrow
    }

    /// Returns true if a shard is an object of a store.
    pub(crate) fn has_objects(&self) -> bool {
        self.has_objects
    }

    /// Returns the warning of derived records about an order of scattered records.
    pub(crate) fn scattered(&self) -> Option<Warning> {
        self.files.iter().find_map(|file| file.as_derived()?.scattered())
    }

    /// Returns true if no shard is compressed.
    pub(crate) fn is_plain(&self) -> bool {
        self.window.is_none()
    }

    /// Returns which checksums are verified on each access.
    pub(crate) fn verify(&self) -> Verify {
        self.verify
    }

    /// Returns the shard that contains record `i`, and the record's ordinal in that shard.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    #[inline]
    pub(crate) fn shard_of(&self, i: u64) -> Result<(usize, u64)> {
        // The first shard whose records end after `i`. This is never an empty shard, which ends where it
        // starts.
        let s = self.starts[1..].partition_point(|&end| end <= i);
        if s >= self.files.len() {
            return Err(ErrorKind::OutOfRange { what: "record", i: i.into(), len: self.len }.into());
        }
        Ok((s, self.files[s].first() + (i - self.starts[s])))
    }

    /// Returns the location of record `i`.
    #[inline]
    pub(crate) fn locate(&self, i: u64) -> Result<RecordLocation> {
        let (s, k) = self.shard_of(i)?;
        self.locate_in(s, k)
    }

    /// Returns the location of record `k` of shard `s`.
    #[inline]
    fn locate_in(&self, s: usize, k: u64) -> Result<RecordLocation> {
        let span = self.files[s].locate(k)?;
        Ok(RecordLocation { shard: s as u32, i: k, span })
    }

    /// Calls `each` with the result of [`locate`](ShardSet::locate) for each of `ids`, in that order.
    /// Overlaps their cache misses.
    pub(crate) fn locate_all(&self, ids: &[u64], mut each: impl FnMut(Result<RecordLocation>)) {
        for ids in ids.chunks(Loads::CAPACITY) {
            let mut shards = [None; Loads::CAPACITY];
            let mut loads = Loads::new();
            for (shard, &id) in shards.iter_mut().zip(ids) {
                *shard = self.shard_of(id).ok();
                loads.push(shard.and_then(|(s, k)| self.files[s].entry(k)));
            }
            loads.run();
            for (shard, &id) in shards.iter().zip(ids) {
                each(match *shard {
                    Some((s, k)) => self.locate_in(s, k),
                    None => self.locate(id),
                });
            }
        }
    }

    #[inline]
    pub(super) fn file_of(&self, at: &RecordLocation) -> &ShardFile {
        &self.files[at.shard as usize]
    }

    /// Keeps the decompressed bytes of at least this number of records, for the window of a block order.
    pub(crate) fn keep_inflated(&self, records: u64) {
        let Some(share) = &self.window else { return };
        // Records of a window may be longer than the mean. They are allowed a quarter more.
        for file in self.files.iter().filter(|file| file.len() > 0 && file.segment_cache().is_some()) {
            if let Some(bytes) = file.known_bytes() {
                let window = u128::from(bytes) * u128::from(records.min(self.len)) / u128::from(file.len());
                share.keep(u64::try_from(window.saturating_add(window / 4)).unwrap_or(u64::MAX));
            }
        }
    }

    /// Returns the location of a record for errors.
    pub(crate) fn location(&self, at: &RecordLocation) -> At<'_> {
        if let Some(records) = self.file_of(at).as_derived() {
            return records.location(at.i);
        }
        At::new(self.file_of(at).path(), at.i, at.span.offset)
    }

    /// Returns record `i`. Only if [`can_borrow`](ShardSet::can_borrow).
    ///
    /// Always inlined into [`Mapped::get`](super::Mapped::get), which otherwise takes 1.2 times as many
    /// instructions: a call saves registers, and a record is returned through memory.
    #[inline(always)]
    pub(super) fn get(&self, i: u64) -> Result<Record<'_>> {
        match self.files.as_slice() {
            [file] if i < self.len => file.get(file.first() + i, self.verify),
            _ => self.get_slow(i),
        }
    }

    /// Like [`get`](ShardSet::get), but never inlined: for several shards, and for callers that seldom use
    /// it.
    #[inline(never)]
    pub(super) fn get_slow(&self, i: u64) -> Result<Record<'_>> {
        let (s, k) = self.shard_of(i)?;
        self.files[s].get(k, self.verify)
    }

    /// Returns the record at a location. Only if [`can_borrow`](ShardSet::can_borrow).
    #[inline(always)]
    pub(crate) fn borrow(&self, at: &RecordLocation, verify: Verify) -> Result<Record<'_>> {
        self.file_of(at).borrow(at.i, at.span, verify)
    }

    /// Returns a record without verification. [`borrow`](ShardSet::borrow) must have returned it before.
    pub(crate) fn borrow_again(&self, at: &RecordLocation) -> Record<'_> {
        self.file_of(at).borrow_again(at.i, at.span)
    }

    /// Reads a record and appends it to `buf`. Returns the range of its payload in `buf`.
    ///
    /// If the order reads blocks, the other records of the block will be needed soon.
    pub(crate) fn append(
        &self,
        at: &RecordLocation,
        blocks: Option<OrderBlocks>,
        verify: Verify,
        buf: &mut Vec<u8>,
    ) -> Result<Range<usize>> {
        let RecordLocation { i, span, .. } = *at;
        let file = self.file_of(at);
        let start = buf.len();
        if let Some(records) = file.as_derived() {
            records.append(i, verify, buf).inspect_err(|_| buf.truncate(start))?;
            return Ok(start..buf.len());
        }
        file.check_len(i, span)?;
        self.append_sound(at, verify, buf, |range, buf| match blocks {
            Some(blocks) => file.append_in(self.in_block(at, blocks), range, buf),
            None => file.append(range, buf),
        })
    }

    /// Appends a record by `append`, once more if it is one of an object and fails a checksum. Returns the
    /// range of its payload in `buf`.
    fn append_sound(
        &self,
        at: &RecordLocation,
        verify: Verify,
        buf: &mut Vec<u8>,
        append: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Range<usize>> {
        let RecordLocation { i, span, .. } = *at;
        let file = self.file_of(at);
        let range = stored_range(span);
        let start = buf.len();
        let read = |buf: &mut Vec<u8>| {
            append(range.clone(), buf).map_err(|e| e.at(self.location(at)))?;
            let payload = file.extract(i, span, span.offset, &buf[start..], verify)?.payload();
            let from = start + HEADER_LEN;
            Ok(from..from + payload.len())
        };
        match read(buf) {
            Err(e) if file.distrusts(&e, &range) => {
                buf.truncate(start);
                read(buf)
            }
            read => read,
        }
    }

    /// Returns the ordinals in its shard of the records that are in the same block as this one.
    fn in_block(&self, at: &RecordLocation, blocks: OrderBlocks) -> Range<u64> {
        let first = self.starts[at.shard as usize];
        self.block_in(at.shard as usize, first + (at.i - self.file_of(at).records().start), blocks)
    }

    /// Returns the ordinals in shard `s` of the records that are in the same block as record `id` of that
    /// shard.
    fn block_in(&self, s: usize, id: u64, blocks: OrderBlocks) -> Range<u64> {
        let first = self.starts[s];
        let records = self.files[s].records();
        let len = blocks.len.max(1);
        let start = id - (id - blocks.first) % len;
        let end = start + len.min(self.starts[s + 1] - start);
        records.start + start.saturating_sub(first)..records.start + (end - first)
    }

    /// Returns the shard of record `id`, and the ordinals of the records in it that are in the same block.
    /// `None` if the shard has no [blocks of objects](ShardFile::has_object_blocks), or no such record.
    pub(crate) fn object_block(&self, id: u64, blocks: OrderBlocks) -> Option<(u32, Range<u64>)> {
        let (s, _) = self.shard_of(id).ok()?;
        self.files[s].has_object_blocks().then(|| (s as u32, self.block_in(s, id, blocks)))
    }

    /// Returns the record at a location, with these checksums verified. It borrows from the shard, or is read
    /// into `buf`.
    pub(crate) fn read_verified<'b>(
        &'b self,
        at: &RecordLocation,
        verify: Verify,
        buf: &'b mut Vec<u8>,
    ) -> Result<Record<'b>> {
        let RecordLocation { i, span, .. } = *at;
        let file = self.file_of(at);
        if file.can_borrow() {
            return file.borrow(i, span, verify);
        }
        buf.clear();
        if let Some(records) = file.as_derived() {
            records.append(i, verify, buf)?;
            return Ok(Record::new(buf, records.location(i)));
        }
        file.check_len(i, span)?;
        let payload = self.append_sound(at, verify, buf, |range, buf| file.append_alone(range, buf))?;
        Ok(Record::new(&buf[payload], self.location(at)))
    }

    /// Calls `f` with each of the records `ids`, in that order, or with the error of reading it. Reads
    /// records that are adjacent in the file together, up to 1 MiB per read.
    ///
    /// # Errors
    /// The first error of `f`.
    pub(crate) fn read_runs(
        &self,
        ids: impl Iterator<Item = u64>,
        verify: Verify,
        mut f: impl FnMut(Result<Record<'_>>) -> Result<()>,
    ) -> Result<()> {
        const RUN: u64 = 1 << 20;
        let mut ids = ids.map(|i| self.locate(i)).peekable();
        let mut buf = Vec::new();
        let mut run = Vec::new();
        let mut alone = Vec::new();
        while let Some(first) = ids.next() {
            let first =
                first.and_then(|first| self.file_of(&first).check_len(first.i, first.span).map(|()| first));
            let first = match first {
                Ok(first) => first,
                Err(e) => {
                    f(Err(e))?;
                    continue;
                }
            };
            let file = self.file_of(&first);
            if let Some(records) = file.as_derived() {
                buf.clear();
                let made = records.append(first.i, verify, &mut buf);
                f(made.map(|()| Record::new(&buf, records.location(first.i))))?;
                continue;
            }
            let Range { start, mut end } = stored_range(first.span);
            run.clear();
            run.push(first);
            // An error, a gap or another shard ends the run. The next iteration handles it, after the records
            // of this run.
            while let Some(Ok(next)) = ids.peek() {
                let next_end = stored_range(next.span).end;
                if next.shard != first.shard || next.span.offset != end || next_end - start > RUN {
                    break;
                }
                end = next_end;
                run.push(*next);
                ids.next();
            }
            buf.clear();
            if file.append(start..end, &mut buf).is_ok() {
                for at in &run {
                    match file.extract(at.i, at.span, start, &buf, verify) {
                        Err(e) if file.distrusts(&e, &stored_range(at.span)) => {
                            f(self.read_verified(at, verify, &mut alone))?;
                        }
                        record => f(record)?,
                    }
                }
                continue;
            }
            // One of the records cannot be read. Each is read alone.
            for at in &run {
                buf.clear();
                let read = self.append_sound(at, verify, &mut buf, |range, buf| file.append(range, buf));
                f(read.map(|payload| Record::new(&buf[payload], self.location(at))))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ShardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardSet({} records in {} shards)", self.len, self.files.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::dataset::DatasetOptions;
    use crate::dataset::prefetch::touch_together;
    use crate::frame::put_record;
    use crate::io::Region;
    use crate::policy::IndexMode;

    #[test]
    fn locate_all_agrees_with_locate() {
        let shard = |n: usize| {
            let mut bytes = Vec::new();
            (0..n).for_each(|i| put_record(&mut bytes, &vec![7; i * 5 % 300]).unwrap());
            Region::from(bytes)
        };
        let shards = [0, 300, 1, 2000].map(shard);
        let ds = DatasetOptions::new().index(IndexMode::Memory).open_regions(shards).unwrap();
        let set = ds.dataset().set();
        let ids: Vec<u64> = (0..2301).map(|k| k * 7 % 2301).chain([2301, u64::MAX]).collect();
        for len in [0, 1, 63, 64, 65, ids.len()] {
            let ids = &ids[ids.len() - len..];
            let mut found = Vec::new();
            set.locate_all(ids, |at| found.push(at));
            assert_eq!(found.len(), len);
            for (found, &id) in found.iter().zip(ids) {
                match (found, set.locate(id)) {
                    (Ok(found), Ok(at)) => assert_eq!(*found, at),
                    (Err(found), Err(e)) => assert_eq!(found.to_string(), e.to_string()),
                    (found, at) => panic!("{id}: {found:?}, {at:?}"),
                }
            }
            touch_together(set, found.iter().flatten());
        }
    }
}
