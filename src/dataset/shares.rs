//! Division of a dataset into shares of equal size, for other processes.
//!
//! All bytes of all shards are one axis. A share ends at the border of a record that is nearest to a multiple
//! of its size. The record there is found by binary search in the offsets of the index, so the cost does not
//! grow with the number of records. Without an index a shard is one part: a search for the next plausible
//! header would lose records or read them twice, because a payload may contain a TFRecord file.

use super::dataset::Dataset;
use super::shard::ShardFile;
use crate::error::{At, Error, PartError, Result};
use crate::index::{IndexHeader, Span};
use crate::io::{Compression, Storage};
use crate::part::{Part, PartRecords};
use crate::policy::Tail;
use std::ops::Range;

impl Dataset {
    /// Divides the records into at most `n` shares of nearly equal size in bytes. Each share is a list of
    /// [`Part`]s that can be read in another process, without an index, by
    /// [`StreamOptions::part`](crate::stream::StreamOptions::part).
    ///
    /// Shares and parts are in the order of the records, and each record is in exactly one of them. A share
    /// differs from the n-th part of all bytes by less than the largest record. If a record is larger than
    /// that, there are fewer shares. A compressed shard counts as one record, because it cannot be read from
    /// the middle without its index. Shards without records are left out.
    ///
    /// The shards are not opened, unless the dataset was opened from a pack. If a shard has changed since,
    /// its parts are stale when they are read.
    ///
    /// # Errors
    /// - [`PartError::Zero`], if `n` is 0
    /// - [`PartError::InMemory`] for bytes in memory
    /// - [`PartError::Gaps`], if damage was skipped in a shard: the damaged ranges are not found by binary
    ///   search, and a stream stops at them. `tfseek salvage` makes a shard without damage.
    /// - [`PartError::Compressed`], if some records of a compressed shard belong to the dataset and others do
    ///   not
    /// - [`PartError::NotUtf8`] for a path that is not UTF-8
    /// - Errors of the indexes
    pub fn shares(&self, n: u64) -> Result<Vec<Vec<Part>>> {
        if n == 0 {
            return Err(PartError::Zero { what: "number of shares" }.into());
        }
        Axis::new(self)?.shares(n)
    }

    /// Divides the records into shares of about `bytes` bytes each, like [`shares`](Dataset::shares). All of
    /// them have nearly the same size, which exceeds `bytes` by less than the largest record.
    ///
    /// # Errors
    /// Errors of [`shares`](Dataset::shares); [`PartError::Zero`], if `bytes` is 0.
    pub fn shares_of(&self, bytes: u64) -> Result<Vec<Vec<Part>>> {
        if bytes == 0 {
            return Err(PartError::Zero { what: "bytes of a share" }.into());
        }
        let axis = Axis::new(self)?;
        axis.shares(axis.len.div_ceil(bytes).max(1))
    }
}

/// A shard with records.
struct Unit<'d> {
    file: &'d ShardFile,
    header: IndexHeader,
    /// The ordinals of the records that belong to the dataset.
    records: Range<u64>,
    /// The bytes of these records in the file.
    bytes: Range<u64>,
    /// Record number of the first one.
    first: u64,
    /// Position of its first byte on the axis.
    start: u64,
    /// Position of its end.
    end: u64,
}

/// The shards with records, end to end.
struct Axis<'d> {
    units: Vec<Unit<'d>>,
    len: u64,
    /// The treatment of torn tails, for the reader of a part.
    tail: Tail,
    storage: &'d Storage,
}

/// A border between records: before the record of a unit with the ordinal `i`, which begins at byte `offset`
/// of its file. The first record of the next unit stands for the end of a unit.
#[derive(Clone, Copy)]
struct Cut {
    unit: usize,
    i: u64,
    offset: u64,
    /// Position on the axis.
    at: u64,
}

impl<'d> Axis<'d> {
    fn new(ds: &'d Dataset) -> Result<Axis<'d>> {
        let mut units = Vec::new();
        let mut len = 0u64;
        for (file, &first) in ds.files().iter().zip(ds.set().starts()) {
            let header = file.is_file().then(|| file.index_header()).ok_or(PartError::InMemory);
            let header = header.map_err(|e| Error::from(e).in_file(file.path()))??;
            if header.has_gaps() {
                return Err(Error::from(PartError::Gaps).in_file(file.path()));
            }
            if file.len() > 0 {
                let records = file.records();
                let bytes = bytes_of(file, &header)?;
                let size = bytes.end.saturating_sub(bytes.start);
                let start = len;
                let end = len.saturating_add(size);
                units.push(Unit { file, header, records, bytes, first, start, end });
                len = end;
            }
        }
        let tail = if ds.index_options().allows_torn() { Tail::Tolerate } else { Tail::Strict };
        Ok(Axis { units, len, tail, storage: &ds.index_options().storage })
    }

    fn shares(&self, n: u64) -> Result<Vec<Vec<Part>>> {
        let mut shares = Vec::new();
        let mut k = 1;
        let mut start = self.begin(0, 0);
        let end = self.begin(self.units.len(), self.len);
        while k < n {
            let Some((cut, middle)) = self.nearest(muldiv(k, self.len, n))? else { break };
            if cut.at >= self.len {
                break;
            }
            if cut.at > start.at {
                shares.push(self.share(start, cut)?);
                start = cut;
            }
            // The first target above `middle`, so that the cost does not depend on `n`.
            let above = muldiv(middle + 1, n, self.len);
            let next = if muldiv(above, self.len, n) > middle { above } else { above.saturating_add(1) };
            k = next.max(k + 1);
        }
        if start.at < end.at {
            shares.push(self.share(start, end)?);
        }
        Ok(shares)
    }

    /// Returns the border before a unit.
    fn begin(&self, unit: usize, at: u64) -> Cut {
        let (i, offset) = self.units.get(unit).map_or((0, 0), |unit| (unit.records.start, unit.bytes.start));
        Cut { unit, i, offset, at }
    }

    /// Returns the border nearest to a position, and a position below which it is the nearest one. `None` at
    /// the end of the axis.
    fn nearest(&self, at: u64) -> Result<Option<(Cut, u64)>> {
        let unit = self.units.partition_point(|unit| unit.end <= at);
        let Some(of) = self.units.get(unit) else { return Ok(None) };
        let (i, offset, next) = if of.header.compression() == Compression::None {
            let (i, span) = of.record_at(of.bytes.start + (at - of.start))?;
            (i, span.offset, of.position(span.end()))
        } else {
            (of.records.start, of.bytes.start, of.end)
        };
        let start = of.position(offset);
        let middle = start.midpoint(next);
        Ok(Some(if at <= middle {
            (Cut { unit, i, offset, at: start }, middle)
        } else if next < of.end {
            let offset = of.bytes.start + (next - of.start);
            (Cut { unit, i: i + 1, offset, at: next }, next)
        } else {
            (self.begin(unit + 1, next), next)
        }))
    }

    /// Returns the parts between two borders.
    fn share(&self, start: Cut, end: Cut) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for (u, unit) in self.units.iter().enumerate().take(end.unit + 1).skip(start.unit) {
            let whole = (unit.records.start, unit.bytes.start);
            let (i, from) = if u == start.unit { (start.i, start.offset) } else { whole };
            let (j, to) =
                if u == end.unit { (end.i, end.offset) } else { (unit.records.end, unit.bytes.end) };
            let Some(records) = j.checked_sub(i).filter(|records| *records > 0) else { continue };
            let first = unit.first + (i - unit.records.start);
            let of = PartRecords { bytes: from..to, ordinal: i, first, records: Some(records) };
            let path = unit.file.path();
            let object = self.storage.known_object(path);
            let part = object.and_then(|object| Part::new(path, &unit.header, of, self.tail, object));
            let mut part = part.map_err(|e| e.in_file(path))?;
            part.unverified = unit.file.unverified;
            parts.push(part);
        }
        Ok(parts)
    }
}

impl Unit<'_> {
    /// Returns the position on the axis of a byte of the file.
    fn position(&self, offset: u64) -> u64 {
        self.start.saturating_add(offset.saturating_sub(self.bytes.start))
    }

    /// Returns the record that contains byte `offset`, and its span.
    fn record_at(&self, offset: u64) -> Result<(u64, Span)> {
        let index = self.file.known_index()?;
        let locate = |i| {
            let at = At { path: Some(self.file.path()), record: Some(i), offset: None };
            index.locate(i).map_err(|e| e.at(at))
        };
        // Record `low` begins at `offset` or before, record `high` after it.
        let mut low = self.records.start;
        let mut high = self.records.end;
        while high - low > 1 {
            let i = low.midpoint(high);
            if locate(i)?.offset <= offset {
                low = i;
            } else {
                high = i;
            }
        }
        Ok((low, locate(low)?))
    }
}

/// Returns the bytes of the records of a shard that belong to the dataset. The bytes of a compressed shard
/// cannot be read from the middle.
fn bytes_of(file: &ShardFile, header: &IndexHeader) -> Result<Range<u64>> {
    if file.is_whole() {
        return Ok(0..header.indexed_end);
    }
    let found = (|| {
        if header.compression() != Compression::None {
            return Err(PartError::Compressed.into());
        }
        let index = file.known_index()?;
        let records = file.records();
        let end = index.locate(records.end - 1)?.end();
        Ok(index.locate(records.start)?.offset..end)
    })();
    found.map_err(|e: Error| e.in_file(file.path()))
}

/// Returns `a * b / c` rounded down, for results below 2^64. 0 if `c` is 0.
fn muldiv(a: u64, b: u64, c: u64) -> u64 {
    let quotient = (u128::from(a) * u128::from(b)).checked_div(c.into()).unwrap_or(0);
    u64::try_from(quotient).unwrap_or(u64::MAX)
}
