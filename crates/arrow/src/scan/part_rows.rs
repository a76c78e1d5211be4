//! The records of parts, collected into rows for a parser.

use super::rows::BATCH_BYTES;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::batch::Row;
use tfseek::example::MessageKind;
use tfseek::filter::RecordFilter;
use tfseek::io::{Region, Store};
use tfseek::stream::{Stream, StreamOptions};
use tfseek::{At, Filter, Part, Record, Verify};

/// Reads the records of parts, one after the other.
pub(super) struct PartRows {
    parts: VecDeque<Part>,
    open: Option<OpenPart>,
    streams: StreamOptions,
}

/// A part that is being read.
struct OpenPart {
    stream: Stream,
    /// The number of the part's first record in the dataset, and its ordinal in the shard.
    first: u64,
    ordinal: u64,
}

/// Records that were read: their payloads, in one buffer, and their places.
pub(super) struct ReadRows {
    pub(super) bytes: Vec<u8>,
    rows: Vec<RowPlace>,
    /// Shards of the records. Rows of one shard are adjacent.
    shards: Vec<PathBuf>,
}

/// The place of a record: in the buffer, in the dataset, and in its shard.
pub(super) struct RowPlace {
    payload: Range<usize>,
    pub(super) number: u64,
    shard: usize,
    ordinal: u64,
    offset: u64,
}

/// A record as a row of a parser.
pub(super) struct PlacedRow<'a> {
    payload: &'a [u8],
    pub(super) place: &'a RowPlace,
    shard: &'a Path,
    region: Option<&'a Region>,
}

/// The records to keep, and the number of rows that are read together.
pub(super) struct RowLimits {
    filter: Option<RecordFilter>,
    kind: MessageKind,
    pub(super) max_rows: usize,
}

impl RowLimits {
    pub(super) fn new(filter: Option<&Filter>, is_sequence: bool, max_rows: usize) -> RowLimits {
        let kind = if is_sequence { MessageKind::SequenceExample } else { MessageKind::Example };
        RowLimits { filter: filter.map(Filter::for_records), kind, max_rows }
    }

    /// Returns true if the rows are as many as one batch has.
    pub(super) fn are_reached(&self, rows: &ReadRows) -> bool {
        rows.rows.len() >= self.max_rows || rows.bytes.len() as u64 >= BATCH_BYTES
    }

    /// Adds a record to the rows if it meets the condition.
    pub(super) fn add(&mut self, record: Record<'_>, number: u64, rows: &mut ReadRows) -> tfseek::Result<()> {
        let is_kept = match &mut self.filter {
            Some(filter) => {
                filter.accepts(number, record.payload(), self.kind).map_err(|e| e.at(record.at()))?
            }
            None => true,
        };
        if is_kept { rows.push(record, number) } else { Ok(()) }
    }
}

impl PartRows {
    pub(super) fn new(parts: &[Part], verify: Verify, store: Option<Arc<dyn Store>>) -> PartRows {
        let streams = StreamOptions { verify, store, ..StreamOptions::default() };
        PartRows { parts: parts.iter().cloned().collect(), open: None, streams }
    }

    /// Reads the records of the next batch into `rows`, which is empty. No record is added at the end of the
    /// last part.
    pub(super) fn read(&mut self, limits: &mut RowLimits, rows: &mut ReadRows) -> tfseek::Result<()> {
        while !limits.are_reached(rows) {
            let open = match &mut self.open {
                Some(open) => open,
                closed => {
                    let Some(part) = self.parts.pop_front() else { return Ok(()) };
                    let stream = self.streams.part(&part)?;
                    closed.insert(OpenPart { stream, first: part.first, ordinal: part.ordinal })
                }
            };
            match open.stream.next()? {
                None => self.open = None,
                Some(record) => {
                    // A part may begin later in its shard than in the dataset.
                    let after = record.at().record.and_then(|ordinal| ordinal.checked_sub(open.ordinal));
                    let number = after.map_or(open.first, |after| open.first.saturating_add(after));
                    limits.add(record, number, rows)?;
                }
            }
        }
        Ok(())
    }
}

impl ReadRows {
    /// Returns no records, and a buffer for them.
    pub(super) fn new(mut buffer: Vec<u8>) -> ReadRows {
        buffer.clear();
        ReadRows { bytes: buffer, rows: Vec::new(), shards: Vec::new() }
    }

    /// Adds a record with its number in the dataset.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn push(&mut self, record: Record<'_>, number: u64) -> tfseek::Result<()> {
        let at = record.at();
        let path = at.path.unwrap_or(Path::new(""));
        if self.shards.last().is_none_or(|last| last != path) {
            self.shards.push(path.to_owned());
        }
        let start = self.bytes.len();
        self.bytes.try_reserve(record.payload().len())?;
        self.rows.try_reserve(1)?;
        self.bytes.extend_from_slice(record.payload());
        let payload = start..self.bytes.len();
        let shard = self.shards.len() - 1;
        let ordinal = at.record.unwrap_or(0);
        let offset = at.offset.unwrap_or(0);
        self.rows.push(RowPlace { payload, number, shard, ordinal, offset });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows. Batches can borrow the bytes of a region, to which the buffer was moved.
    pub(super) fn rows<'a>(&'a self, region: Option<&'a Region>) -> Vec<PlacedRow<'a>> {
        let bytes = region.map_or(&*self.bytes, |region| region);
        let row = |place: &'a RowPlace| {
            let payload = bytes.get(place.payload.clone())?;
            let shard = self.shards.get(place.shard)?;
            Some(PlacedRow { payload, place, shard, region })
        };
        self.rows.iter().filter_map(row).collect()
    }
}

impl Row for PlacedRow<'_> {
    fn payload(&self) -> &[u8] {
        self.payload
    }

    fn at(&self) -> At<'_> {
        At::new(self.shard, self.place.ordinal, self.place.offset)
    }

    fn region(&self) -> Option<(&Region, usize)> {
        Some((self.region?, self.place.payload.start))
    }
}
