//! Records in another order in two sequential passes.
//!
//! The first pass reads the dataset in its order and copies each record to a bucket, by its position in the
//! output. The second pass orders one bucket after the other in memory. An entry of a bucket is the position,
//! 8 bytes little-endian, followed by the record with its framing.

use super::gather::Gather;
use super::members::Members;
use super::rewrite;
use super::splits::BATCH;
use crate::error::{OptionsReason, ToolsError};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tfseek::frame::{HEADER_LEN, OVERHEAD, frames, put_record};
use tfseek::{Error, Result, Writer};

/// Number of buckets, at most.
const MOST: u64 = 512;
/// Bytes of an entry before the record.
const POSITION: usize = 8;
/// Bytes of memory per record of a bucket: its position, and its offset in the bucket.
const PER_RECORD: u64 = 16;

/// Returns the number of buckets for these bytes of records. A bucket takes at most about 40 % of the memory.
fn count(total: u64, records: u64, memory: u64) -> u64 {
    let bytes = total.saturating_add(records.saturating_mul(PER_RECORD));
    bytes.div_ceil((memory / 5 * 2).max(1)).clamp(1, MOST)
}

/// Returns the free space that the temporary files and the outputs together take: the buckets, and the
/// outputs of one of them.
pub(super) fn size(total: u64, records: u64, memory: u64) -> u64 {
    let bytes = total.saturating_add(records.saturating_mul(POSITION as u64));
    bytes.saturating_add(bytes / count(total, records, memory))
}

/// Writes all files through buckets. Without `memory` there is one bucket, in memory.
pub(super) fn write(
    gather: &Gather<'_>,
    members: &Members<'_>,
    total: u64,
    memory: Option<u64>,
) -> Result<Vec<Writer>, ToolsError> {
    let n = gather.plan.records();
    let count = memory.map_or(1, |memory| count(total, n, memory));
    let limit = memory.map(|memory| memory / 5 * 3);
    if let Some(memory) = memory
        && total / count > memory / 5 * 3
    {
        let expected = total / MOST / 2 * 5;
        return Err(ToolsError::Options(OptionsReason::Memory { files: MOST, expected, found: memory }));
    }
    let folder = gather.plan.sets.first().map_or(Path::new("."), |set| set.names.folder());
    let mut buckets = Buckets::new(n, count, memory.map(|memory| (folder, memory / 5 / count)));
    fill(gather, members, &mut buckets)?;
    drain(gather, buckets, limit)
}

/// Copies all records to the buckets.
fn fill(gather: &Gather<'_>, members: &Members<'_>, buckets: &mut Buckets<'_>) -> Result<(), ToolsError> {
    let plan = gather.plan;
    let mut firsts = Vec::new();
    let mut first = 0;
    for set in &plan.sets {
        firsts.push(first);
        first += set.sequence.len();
    }
    let n = gather.ds.len();
    let mut ids = Vec::new();
    let mut start = 0;
    let mut tally = gather.progress.tally();
    while start < n {
        ids.clear();
        let end = start + BATCH.min(n - start);
        ids.extend((start..end).filter(|&i| members.split_of(i).is_some()));
        let mut positions = ids.iter().map(|&i| {
            let s = members.split_of(i).unwrap_or(0);
            match (plan.sets.get(s), firsts.get(s)) {
                (Some(set), Some(first)) => Ok(first + set.sequence.position_of(i)?),
                _ => Err(changed()),
            }
        });
        gather.ds.read_many(&ids, |record| {
            let position = positions.next().unwrap_or_else(|| Err(changed()))?;
            let payload = rewrite::payload(gather.rewrite, record)?;
            buckets.append(position, &payload)?;
            tally.record(record.payload().len())
        })?;
        start = end;
    }
    tally.end()?;
    Ok(())
}

/// Writes the records of the buckets in the order of their positions.
fn drain(gather: &Gather<'_>, buckets: Buckets<'_>, limit: Option<u64>) -> Result<Vec<Writer>, ToolsError> {
    let mut outputs = Outputs {
        gather,
        next: 0,
        first: 0,
        end: 0,
        shards: gather.plan.shards(),
        open: None,
        done: Vec::new(),
    };
    let width = buckets.width;
    let folder = buckets.folder;
    let mut tally = gather.progress.tally();
    for (b, bucket) in (0u64..).zip(buckets.each) {
        let start = b * width;
        let records = width.min(buckets.n - start);
        let mut put = |position: u64, payload: &[u8]| -> Result<()> {
            outputs.at(position)?.write(payload)?;
            tally.record(payload.len())
        };
        let place = |e: Error| {
            folder.map_or(e.to_string(), |folder| format!("a temporary file in {}: {e}", folder.display()))
        };
        let drained = match limit.filter(|&limit| bucket.len + records * PER_RECORD > limit) {
            None => bucket.in_memory().and_then(|bytes| ordered(&bytes, start, records, &mut put)),
            Some(_) => bucket.in_file(start, records, &mut put),
        };
        drained.map_err(|e| match e.location().path {
            Some(_) => e,
            None => Error::from(io::Error::other(place(e))),
        })?;
    }
    tally.end()?;
    outputs.finish()
}

/// Calls `put` with the records of a bucket in order.
fn ordered(
    bytes: &[u8],
    start: u64,
    records: u64,
    put: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut offsets = vec![u64::MAX; usize::try_from(records).map_err(|_| changed())?];
    let mut at = 0usize;
    while let Some(entry) = bytes.get(at..).filter(|entry| !entry.is_empty()) {
        let (position, len) = header(entry)?;
        set_offset(&mut offsets, start, position, (at + POSITION) as u64)?;
        at = usize::try_from(len).ok().and_then(|len| at.checked_add(len + POSITION)).ok_or_else(changed)?;
    }
    for (position, &offset) in (start..).zip(&offsets) {
        let frame =
            usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).ok_or_else(changed)?;
        let (_, payload) = frames(frame).next().ok_or_else(changed)??;
        put(position, payload)?;
    }
    Ok(())
}

/// Returns the position of an entry, and the length of its record with framing.
fn header(entry: &[u8]) -> Result<(u64, u64)> {
    let number = |at: usize| {
        entry.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
    };
    let (position, len) = number(0).zip(number(POSITION)).ok_or_else(changed)?;
    Ok((position, len.checked_add(OVERHEAD as u64).ok_or_else(changed)?))
}

fn set_offset(offsets: &mut [u64], start: u64, position: u64, offset: u64) -> Result<()> {
    let entry = position.checked_sub(start).and_then(|k| offsets.get_mut(usize::try_from(k).ok()?));
    match entry {
        Some(entry) if *entry == u64::MAX => *entry = offset,
        _ => return Err(changed()),
    }
    Ok(())
}

/// Returns the error of an entry that was not written.
fn changed() -> Error {
    io::Error::new(io::ErrorKind::InvalidData, "expected the records that were written, found other bytes")
        .into()
}

struct Buckets<'a> {
    each: Vec<Bucket>,
    /// Number of records.
    n: u64,
    /// Number of positions per bucket.
    width: u64,
    /// Folder of the temporary files. `None` for one bucket in memory.
    folder: Option<&'a Path>,
    /// Size of a buffer.
    buffer: usize,
}

#[derive(Default)]
struct Bucket {
    file: Option<File>,
    buffer: Vec<u8>,
    /// Number of bytes in the file and the buffer.
    len: u64,
}

impl<'a> Buckets<'a> {
    fn new(n: u64, count: u64, files: Option<(&'a Path, u64)>) -> Buckets<'a> {
        let width = n.div_ceil(count).max(1);
        let each = (0..n.div_ceil(width)).map(|_| Bucket::default()).collect();
        let buffer = files.map_or(usize::MAX, |(_, buffer)| buffer.clamp(4096, 4 << 20) as usize);
        Buckets { each, n, width, folder: files.map(|(folder, _)| folder), buffer }
    }

    fn append(&mut self, position: u64, payload: &[u8]) -> Result<()> {
        let bucket = usize::try_from(position / self.width).ok().and_then(|b| self.each.get_mut(b));
        let bucket = bucket.ok_or_else(changed)?;
        let len = POSITION + OVERHEAD + payload.len();
        bucket.buffer.try_reserve(len)?;
        bucket.buffer.extend_from_slice(&position.to_le_bytes());
        put_record(&mut bucket.buffer, payload)?;
        bucket.len += len as u64;
        match self.folder {
            Some(folder) if bucket.buffer.len() >= self.buffer => {
                bucket.flush(folder, self.buffer).map_err(|e| Error::from(e).in_file(folder))
            }
            _ => Ok(()),
        }
    }
}

impl Bucket {
    /// Appends the buffer to the file, which has no name.
    fn flush(&mut self, folder: &Path, capacity: usize) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all(&self.buffer)?;
        // A long record does not keep its memory.
        self.buffer.clear();
        self.buffer.shrink_to(2 * capacity);
        Ok(())
    }

    /// Returns all entries.
    fn in_memory(mut self) -> Result<Vec<u8>> {
        let Some(mut file) = self.file.take() else { return Ok(self.buffer) };
        let mut bytes = Vec::new();
        let len = usize::try_from(self.len).map_err(|_| changed())?;
        bytes.try_reserve_exact(len)?;
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        bytes.extend_from_slice(&self.buffer);
        Ok(bytes)
    }

    /// Calls `put` with the records in order, each read from the file. For a bucket that is larger than the
    /// memory.
    fn in_file(
        mut self,
        start: u64,
        records: u64,
        put: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(mut file) = self.file.take() else { return ordered(&self.buffer, start, records, put) };
        file.write_all(&self.buffer)?;
        self.buffer = Vec::new();
        file.rewind()?;
        let mut offsets = vec![(u64::MAX, 0u64); usize::try_from(records).map_err(|_| changed())?];
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let mut at = 0u64;
        while at < self.len {
            let mut entry = [0; POSITION + HEADER_LEN];
            reader.read_exact(&mut entry)?;
            let (position, len) = header(&entry)?;
            let slot = position.checked_sub(start).and_then(|k| offsets.get_mut(usize::try_from(k).ok()?));
            match slot {
                Some(slot) if slot.0 == u64::MAX => *slot = (at + POSITION as u64, len),
                _ => return Err(changed()),
            }
            let rest = len
                .checked_sub(HEADER_LEN as u64)
                .and_then(|rest| i64::try_from(rest).ok())
                .ok_or_else(changed)?;
            reader.seek_relative(rest)?;
            at = at.checked_add(len + POSITION as u64).ok_or_else(changed)?;
        }
        drop(reader);
        let mut bytes = Vec::new();
        for (position, &(offset, len)) in (start..).zip(&offsets) {
            file.seek(SeekFrom::Start(offset))?;
            bytes.clear();
            (&file).take(len).read_to_end(&mut bytes)?;
            let (_, payload) = frames(&bytes).next().ok_or_else(changed)??;
            put(position, payload)?;
        }
        Ok(())
    }
}

/// The files of all sets, which are written one after the other.
struct Outputs<'a> {
    gather: &'a Gather<'a>,
    /// Number of shards that were begun.
    next: usize,
    /// Position of the first record of the current set, over all sets.
    first: u64,
    /// Position after the last record of the current shard, over all sets.
    end: u64,
    shards: Vec<(usize, usize)>,
    open: Option<Writer>,
    done: Vec<Writer>,
}

impl Outputs<'_> {
    /// Returns the writer of a position. Positions ascend.
    fn at(&mut self, position: u64) -> Result<&mut Writer> {
        while position >= self.end {
            self.begin()?;
        }
        self.open.as_mut().ok_or_else(changed)
    }

    /// Ends the current shard and begins the next one.
    fn begin(&mut self) -> Result<()> {
        self.end_shard()?;
        let &(s, k) = self.shards.get(self.next).ok_or_else(changed)?;
        if k == 0 && self.next > 0 {
            self.first = self.end;
        }
        let (set, _, end) = self.gather.range(s, k)?;
        self.open = Some(self.gather.writer.create(set.names.path(k as u64))?);
        self.end = self.first + end;
        self.next += 1;
        Ok(())
    }

    fn end_shard(&mut self) -> Result<()> {
        if let Some(mut writer) = self.open.take() {
            writer.finish()?;
            self.done.push(writer);
        }
        Ok(())
    }

    /// Ends the last shard, and writes the empty ones after it.
    fn finish(mut self) -> Result<Vec<Writer>, ToolsError> {
        while self.next < self.shards.len() {
            self.begin()?;
        }
        self.end_shard()?;
        Ok(self.done)
    }
}
