//! A sidecar in memory: its header, and its tables, which may be read later. Section 5 of `docs/index.md`
//! defines its sections.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::checkpoints::{CheckpointError, CheckpointTable};
use super::file::{SidecarFile, read_section, slice};
use super::layout::{
    self, GAPS, IndexHeader, Refusal, Section, TFRI, decode_file, encode_file, known, refused,
};
use super::losses::{LossTable, Losses};
use super::table::{self, BLOCK, BLOCK_ENTRY, BadBlock, Table, TableEnds};
use crate::error::{At, Error, IndexError, Result};
use crate::frame::Torn;
use crate::io::inflate::Checkpoints;
use crate::io::{Compression, Region, Reserved, Stamp};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// The location of a record in the record stream (the inflated bytes, if the shard is compressed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Byte offset of the record's header.
    pub offset: u64,
    /// Number of payload bytes.
    pub payload_len: u64,
}

impl Span {
    /// Returns the byte offset of the end of the record's footer. An end that overflows becomes `u64::MAX`,
    /// which is beyond any file.
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(self.payload_len).saturating_add(crate::frame::OVERHEAD as u64)
    }
}

/// A sidecar index of one shard. Its tables may be read later, on first use.
pub(crate) struct Sidecar {
    pub(crate) header: IndexHeader,
    pub(super) tables: OnceLock<SidecarTables>,
    pub(super) source: Option<LazyTables>,
    /// The index file, or the pack.
    pub(crate) file: Option<Box<Path>>,
    /// The torn tail, if this process scanned the shard and found one.
    pub(crate) torn: Option<Torn>,
    /// The state of the shard when this process scanned it or compared it.
    pub(crate) shard: Option<Stamp>,
    /// Time at which the index file was last written.
    pub(crate) saved_ns: Option<i64>,
    /// The share of the memory budget that an index file in memory takes.
    pub(super) _reserved: Option<Reserved>,
}

pub(super) struct SidecarTables {
    pub(super) offsets: Table,
    pub(super) lengths: Option<Table>,
    pub(super) checkpoints: Option<CheckpointTable>,
    pub(super) losses: Option<LossTable>,
}

/// The source of tables that are read on first use.
pub(super) struct LazyTables {
    sections: SidecarSections,
    /// `None` once the tables are read: a file that is kept open for them is closed then.
    from: Mutex<Option<SidecarFile>>,
}

impl Sidecar {
    /// Returns a sidecar that this process built.
    pub(super) fn new(header: IndexHeader, tables: SidecarTables, torn: Option<Torn>) -> Sidecar {
        Sidecar { tables: OnceLock::from(tables), torn, ..Sidecar::without_tables(header) }
    }

    /// Returns true if the index tells what it leaves out.
    pub(super) fn tells_losses(&self) -> bool {
        let in_file = || self.source.as_ref().is_some_and(|source| source.sections.losses.is_some());
        !self.header.needs_losses()
            || self.tables.get().map_or_else(in_file, |tables| tables.losses.is_some())
    }

    /// Returns what is left out of a compressed shard besides the gaps between its records.
    pub(super) fn losses(&self) -> Result<Losses> {
        if !self.header.needs_losses() {
            return Ok(Losses::default());
        }
        let missing = BadBlock { block: 0, reason: "the section of losses is missing" };
        let table = self.load()?.losses.as_ref().ok_or_else(|| self.corrupt(missing, None))?;
        table.decode(&self.header).map_err(|bad| self.corrupt(bad, None))
    }

    /// Returns true if the records of the shard can be accessed in any order: it is not compressed, or has
    /// checkpoints.
    pub(super) fn allows_access(&self) -> bool {
        let in_file = || self.source.as_ref().is_some_and(|source| source.sections.checkpoints.is_some());
        let in_memory = |tables: &SidecarTables| tables.checkpoints.is_some();
        self.header.compression() == Compression::None || self.tables.get().map_or_else(in_file, in_memory)
    }

    /// Returns the spacing of the checkpoints. `None` if there are none, or if they cannot be read.
    pub(super) fn spacing(&self) -> Option<u64> {
        self.load().ok()?.checkpoints.as_ref()?.spacing()
    }

    /// Reads the checkpoints, and nothing else, of a sidecar of `len` bytes that begins with `prefix`.
    /// Returns their longest distance in decompressed bytes. `None` if there are none, or if they cannot be
    /// read.
    pub(super) fn longest_segment_in(prefix: &[u8], len: u64, from: &SidecarFile) -> Option<u64> {
        let (header, sections) = decode(prefix, len).ok()?;
        let section = sections.checkpoints?;
        let table = from.read(|file, at| CheckpointTable::read(file, at, &section, from)).ok()??;
        table.longest_segment(header.stream_end)
    }

    /// Returns the longest distance of two checkpoints in decompressed bytes, or the mean one if the tables
    /// are not read yet.
    pub(super) fn longest_segment(&self) -> Option<u64> {
        match self.tables.get() {
            Some(tables) => tables.checkpoints.as_ref()?.longest_segment(self.header.stream_end),
            None => self.mean_segment(),
        }
    }

    /// Returns the mean distance of two checkpoints in decompressed bytes, estimated if the tables are not
    /// read yet.
    pub(super) fn mean_segment(&self) -> Option<u64> {
        let count = match self.tables.get() {
            Some(tables) => tables.checkpoints.as_ref()?.len() as u64,
            None => CheckpointTable::least_count(self.source.as_ref()?.sections.checkpoints?.len),
        };
        self.header.stream_end.checked_div(count)
    }

    /// Returns the checkpoints, after verifying them. `None` if there are none.
    pub(super) fn known_checkpoints(&self) -> Result<Option<Checkpoints>> {
        let table = self.load()?.checkpoints.as_ref();
        table.map(CheckpointTable::decode).transpose().map_err(|e| self.checkpoint_error(e))
    }

    fn without_tables(header: IndexHeader) -> Sidecar {
        Sidecar {
            header,
            tables: OnceLock::new(),
            source: None,
            file: None,
            torn: None,
            shard: None,
            saved_ns: None,
            _reserved: None,
        }
    }

    /// Reads a sidecar that is in memory.
    pub(crate) fn from_bytes(bytes: Region) -> Result<Sidecar, Refusal> {
        bytes.will_need(0..layout::MAX_PREFIX);
        bytes.populate(0..layout::MAX_PREFIX).map_err(|e| e.to_string())?;
        let (header, sections) = decode(&bytes, bytes.len() as u64)?;
        let truncated = || Refusal::from(TRUNCATED);
        let section = |s: &Section| slice(&bytes, s).ok_or_else(truncated);
        let tables = SidecarTables::open(&header, &sections, section, truncated)?;
        Ok(Sidecar { tables: OnceLock::from(tables), ..Sidecar::without_tables(header) })
    }

    /// Returns a sidecar of `len` bytes whose tables are read on first use. `prefix` is its start.
    pub(super) fn lazy(prefix: &[u8], len: u64, from: SidecarFile) -> Result<Sidecar, Refusal> {
        let (header, sections) = decode(prefix, len)?;
        let source = Some(LazyTables { sections, from: Mutex::new(Some(from)) });
        Ok(Sidecar { source, ..Sidecar::without_tables(header) })
    }

    /// Returns the tables, and reads them first if necessary.
    #[cold]
    pub(super) fn load(&self) -> Result<&SidecarTables> {
        if let Some(tables) = self.tables.get() {
            return Ok(tables);
        }
        let read = || -> Result<&SidecarTables> {
            let Some(LazyTables { sections, from }) = &self.source else {
                return Err(refused("the index has no tables".into()));
            };
            // The lock is not held during the read: a child forked at that moment would wait for it forever.
            let lock = || from.lock().unwrap_or_else(|e| e.into_inner());
            let Some(file) = lock().clone() else {
                return self.tables.get().ok_or_else(|| refused("the index has no tables".into()));
            };
            let tables = SidecarTables::read(&self.header, sections, &file)?;
            // Several threads may read at the same time. The tables of the first one are kept.
            let tables = self.tables.get_or_init(|| tables);
            *lock() = None;
            Ok(tables)
        };
        read().map_err(|e| match &self.file {
            Some(file) => e.in_file(file),
            None => e,
        })
    }

    /// Verifies the checksums of all tables.
    pub(super) fn verify(&self) -> Result<()> {
        let tables = self.load()?;
        for table in [Some(&tables.offsets), tables.lengths.as_ref()].into_iter().flatten() {
            table.verify_all().map_err(|bad| self.corrupt(bad, None))?;
        }
        if let Some(checkpoints) = &tables.checkpoints {
            checkpoints.verify_all().map_err(|e| self.checkpoint_error(e))?;
        }
        self.losses().map(drop)
    }

    /// Returns the offset of record `i`, or the end of the record stream for `i` = number of records.
    pub(crate) fn offset(&self, i: u64) -> Result<u64> {
        self.load()?.offsets.get(i).map_err(|bad| self.corrupt(bad, Some(i)))
    }

    /// Returns the span of record `i`, which is below the number of records.
    pub(super) fn span(&self, i: u64) -> Result<Span> {
        self.load()?.span(&self.header, i).map_err(|bad| self.corrupt(bad, Some(i)))
    }

    /// Encodes the header and the section table. Also returns the sections with their offsets.
    fn encode_head(&self, tables: &SidecarTables) -> (Vec<u8>, Vec<Section>) {
        let SidecarTables { offsets, lengths, checkpoints, losses } = tables;
        let offsets = Some((OFFSETS, offsets.param(), offsets.section_len()));
        let lengths = lengths.as_ref().map(|table| (LENGTHS, table.param(), table.section_len()));
        let checkpoints = checkpoints.as_ref().map(|table| (CHECKPOINTS, 0, table.section_len()));
        let losses = losses.as_ref().map(|table| (LOSSES, 0, table.bytes().len() as u64));
        let sections: Vec<_> = [offsets, lengths, checkpoints, losses].into_iter().flatten().collect();
        encode(&self.header, &sections)
    }

    /// Returns the length of the sidecar file in bytes.
    #[expect(clippy::arithmetic_side_effects, reason = "`encode_file` has computed the same sum")]
    pub(super) fn file_len(&self) -> Result<u64> {
        let (_, placed) = self.encode_head(self.load()?);
        Ok(placed.last().map_or(0, |s| s.offset + s.len))
    }

    #[expect(clippy::arithmetic_side_effects, reason = "`encode_file` has computed the same numbers")]
    #[expect(clippy::indexing_slicing, reason = "`encode_file` adds less than ALIGN bytes of padding")]
    pub(super) fn write_to(&self, w: &mut impl Write) -> Result<()> {
        let tables = self.load()?;
        tables.populate()?;
        let (prefix, placed) = self.encode_head(tables);
        w.write_all(&prefix)?;
        let mut at = prefix.len() as u64;
        for section in placed {
            w.write_all(&[0; layout::ALIGN as usize][..(section.offset - at) as usize])?;
            match section.kind {
                OFFSETS => tables.offsets.write_to(w)?,
                LENGTHS => tables.lengths.as_ref().map_or(Ok(()), |table| table.write_to(w))?,
                CHECKPOINTS => tables.checkpoints.as_ref().map_or(Ok(()), |table| table.write_to(w))?,
                LOSSES => tables.losses.as_ref().map_or(Ok(()), |table| w.write_all(table.bytes()))?,
                _ => {}
            }
            at = section.offset + section.len;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn checkpoint_error(&self, e: CheckpointError) -> Error {
        match (e, &self.file) {
            (CheckpointError::Bad(bad), _) => self.corrupt(bad, None),
            (CheckpointError::Read(e), Some(file)) => e.in_file(file),
            (CheckpointError::Read(e), None) => e,
        }
    }

    #[cold]
    pub(super) fn corrupt(&self, bad: BadBlock, record: Option<u64>) -> Error {
        let file = self.file.clone().unwrap_or_else(|| Path::new("(index in memory)").into());
        let kind = IndexError::CorruptBlock { file, block: bad.block, reason: bad.reason };
        Error::from(kind).at(At { path: None, record, offset: None })
    }
}

/// The reason of a section that is too short for what its header states.
const TRUNCATED: &str = "the sections are truncated";

impl SidecarTables {
    /// Opens the tables in the sections that `bytes` returns. `truncated` makes the error of one that is too
    /// short.
    fn open<E>(
        header: &IndexHeader,
        sections: &SidecarSections,
        bytes: impl Fn(&Section) -> Result<Region, E>,
        truncated: impl Fn() -> E,
    ) -> Result<SidecarTables, E> {
        let table = |s: &Section, m: u64, ends: TableEnds| -> Result<Table, E> {
            Table::open(&bytes(s)?, m, s.param, ends).ok_or_else(&truncated)
        };
        let first = (!header.has(GAPS)).then_some(0);
        let ends = TableEnds { first, last: Some(header.stream_end) };
        let m = header.n_records.checked_add(1).ok_or_else(&truncated)?;
        let offsets = table(&sections.offsets, m, ends)?;
        let lengths = sections.lengths.as_ref();
        let lengths = lengths.map(|s| table(s, header.n_records, TableEnds::default())).transpose()?;
        let checkpoints = match &sections.checkpoints {
            Some(s) => Some(CheckpointTable::open(bytes(s)?).ok_or_else(&truncated)?),
            None => None,
        };
        let losses = match &sections.losses {
            Some(s) => Some(LossTable::open(bytes(s)?).ok_or_else(&truncated)?),
            None => None,
        };
        Ok(SidecarTables { offsets, lengths, checkpoints, losses })
    }

    /// Reads the tables of a sidecar. The windows of checkpoints are read later.
    fn read(header: &IndexHeader, sections: &SidecarSections, from: &SidecarFile) -> Result<SidecarTables> {
        let truncated = || refused(TRUNCATED.into());
        from.read(|file, at| {
            let checkpoints = match &sections.checkpoints {
                Some(s) => Some(CheckpointTable::read(file, at, s, from)?.ok_or_else(truncated)?),
                None => None,
            };
            let in_memory = SidecarSections { checkpoints: None, ..*sections };
            let section = |s: &Section| read_section(file, at, s);
            let tables = SidecarTables::open(header, &in_memory, section, truncated)?;
            Ok(SidecarTables { checkpoints, ..tables })
        })
    }

    /// Makes mapped tables resident; see [`Region::populate`].
    fn populate(&self) -> Result<()> {
        let tables = [Some(&self.offsets), self.lengths.as_ref()];
        tables.into_iter().flatten().try_for_each(Table::populate)?;
        let checkpoints = self.checkpoints.as_ref().map(CheckpointTable::bytes);
        let losses = self.losses.as_ref().map(LossTable::bytes);
        let mut sections = [checkpoints, losses].into_iter().flatten();
        Ok(sections.try_for_each(|bytes| bytes.populate(0..bytes.len()))?)
    }

    /// Returns the span of record `i` on the fast path. `None` means only that [`span`](SidecarTables::span)
    /// must take the slow path.
    #[inline(always)]
    pub(super) fn span_fast(&self, header: &IndexHeader, i: u64) -> Option<Span> {
        if self.lengths.is_some() {
            return None;
        }
        let (offset, next) = self.offsets.pair_fast(i)?;
        let payload_len = next.checked_sub(offset)?.checked_sub(crate::frame::OVERHEAD as u64)?;
        (next <= header.stream_end).then_some(Span { offset, payload_len })
    }

    /// Returns the span of record `i`, or the corrupt block.
    pub(super) fn span(&self, header: &IndexHeader, i: u64) -> Result<Span, BadBlock> {
        const OVERHEAD: u64 = crate::frame::OVERHEAD as u64;
        let bad = |reason| BadBlock { block: i / table::BLOCK, reason };
        let (offset, next) = self.offsets.pair(i)?;
        let room = next.checked_sub(offset).and_then(|room| room.checked_sub(OVERHEAD));
        let room = room.filter(|_| next <= header.stream_end);
        let room = room.ok_or(bad("a record overlaps the next one or the end of the stream"))?;
        let payload_len = self.lengths.as_ref().map_or(Ok(room), |lengths| lengths.get(i))?;
        if payload_len > room {
            return Err(bad("a record overlaps the next one"));
        }
        Ok(Span { offset, payload_len })
    }
}

/// Type of the section with the record offsets, which every sidecar has.
pub(crate) const OFFSETS: u32 = 1;
/// Type of the section with the payload lengths, which a sidecar has if and only if damaged records were
/// skipped.
pub(crate) const LENGTHS: u32 = 2;
/// Type of the section with the checkpoints of a compressed shard. It is not mandatory: versions that do not
/// know it skip it, because they read compressed shards in order.
pub(crate) const CHECKPOINTS: u32 = 3;
/// Type of the section with what the index of a compressed shard leaves out. It is not mandatory: the records
/// are the same without it.
pub(crate) const LOSSES: u32 = 5;

/// The sections of a sidecar that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SidecarSections {
    pub(crate) offsets: Section,
    pub(crate) lengths: Option<Section>,
    pub(crate) checkpoints: Option<Section>,
    pub(crate) losses: Option<Section>,
}

/// Lays out the sections of a sidecar, given as (type, param, length). Returns the header with the section
/// table, and the sections with their offsets.
pub(crate) fn encode(header: &IndexHeader, sections: &[(u32, u16, u64)]) -> (Vec<u8>, Vec<Section>) {
    let section = |&(kind, param, len)| {
        let mandatory = !matches!(kind, CHECKPOINTS | LOSSES);
        Section { kind, mandatory, param, offset: 0, len, crc: 0 }
    };
    encode_file(&TFRI, header, sections.iter().map(section).collect())
}

/// Reads the header and the section table of a sidecar of `file_len` bytes. `prefix` is its start: the whole
/// file, or [`MAX_PREFIX`] bytes. Reads nothing else, so the cost does not depend on the number of records.
pub(crate) fn decode(prefix: &[u8], file_len: u64) -> Result<(IndexHeader, SidecarSections), Refusal> {
    let (header, all) = decode_file(prefix, file_len, &TFRI)?;
    let [offsets, lengths, checkpoints, losses] = known(&all, [OFFSETS, LENGTHS, CHECKPOINTS, LOSSES])?;
    let offsets = offsets.ok_or("the section of offsets is missing")?;
    if lengths.is_some() != header.has(GAPS) {
        return Err("the section of lengths contradicts the gaps flag".into());
    }
    #[expect(clippy::arithmetic_side_effects, reason = "`IndexHeader::check` has limited n_records")]
    let m = header.n_records + 1;
    check_blocked(&offsets, m)?;
    if let Some(lengths) = &lengths {
        check_blocked(lengths, header.n_records)?;
    }
    if let Some(checkpoints) = &checkpoints {
        if header.compression() == Compression::None {
            return Err("an uncompressed shard has checkpoints".into());
        }
        if checkpoints.len < CheckpointTable::MIN_LEN {
            return Err("the section of checkpoints is truncated".into());
        }
    }
    if let Some(losses) = &losses {
        if !header.needs_losses() {
            return Err("a shard without losses, or an uncompressed one, has a section of losses".into());
        }
        if !LossTable::has_valid_len(losses.len) {
            return Err("the section of losses has a wrong size".into());
        }
    }
    Ok((header, SidecarSections { offsets, lengths, checkpoints, losses }))
}

/// Returns the length of the sidecar of a plain shard of `n` records without gaps, if its offsets are narrow.
pub(super) fn plain_len(n: u64) -> Option<u64> {
    let m = n.checked_add(1)?;
    let table = m.div_ceil(BLOCK).checked_mul(BLOCK_ENTRY as u64)?.checked_add(m.checked_mul(4)?)?;
    layout::align((layout::HEADER_LEN + layout::ENTRY_LEN) as u64)?.checked_add(table)
}

/// Checks the length of a blocked table of `m` values.
fn check_blocked(section: &Section, m: u64) -> Result<(), Refusal> {
    let width = match section.param {
        4 | 8 => u64::from(section.param),
        other => return Err(format!("expected entries of 4 or 8 bytes, found {other}")),
    };
    let expected = m
        .div_ceil(BLOCK)
        .checked_mul(BLOCK_ENTRY as u64)
        .and_then(|blocks| m.checked_mul(width)?.checked_add(blocks));
    if expected != Some(section.len) {
        return Err(format!(
            "section {} has a wrong size for {m} entries, {} bytes",
            section.kind, section.len
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::layout::{ENTRY_LEN, HEADER_LEN, MAJOR_AT, MINOR_AT, put_checksums};
    use super::*;
    use crate::crc::crc32c;

    fn with_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
        let crc = crc32c(&bytes[HEADER_LEN..]);
        put_checksums(&mut bytes, crc);
        bytes
    }

    fn header() -> IndexHeader {
        IndexHeader { data_size: 16, indexed_end: 16, stream_end: 16, n_records: 1, ..IndexHeader::default() }
    }

    #[test]
    fn a_header_round_trips() {
        let (bytes, placed) = encode(&header(), &[(OFFSETS, 4, 24)]);
        let (got, sections) = decode(&bytes, 192 + 24).unwrap();
        assert_eq!(got, header());
        assert_eq!(
            sections,
            SidecarSections { offsets: placed[0], lengths: None, checkpoints: None, losses: None }
        );
    }

    #[test]
    fn versions() {
        let (bytes, _) = encode(&header(), &[(OFFSETS, 4, 24)]);
        let mut minor = bytes.clone();
        minor[MINOR_AT] = 7;
        assert!(decode(&with_checksums(minor), 216).is_ok());
        let mut major = bytes;
        major[MAJOR_AT] = 2;
        assert!(
            decode(&with_checksums(major), 216).unwrap_err().contains("format version: expected 1, found 2")
        );
    }

    #[test]
    fn unknown_sections_are_skipped_unless_mandatory() {
        let (bytes, placed) = encode(&header(), &[(OFFSETS, 4, 24), (77, 9, 5)]);
        let file_len = placed[1].offset + 5;
        assert!(decode(&bytes, file_len).unwrap_err().contains("mandatory section 77"));
        let mut optional = bytes;
        optional[HEADER_LEN + ENTRY_LEN + 4] = 0;
        assert!(decode(&with_checksums(optional), file_len).is_ok());
    }

    #[test]
    fn lengths_are_required_exactly_with_gaps() {
        let h = header();
        let gaps = IndexHeader { flags: GAPS, ..h };
        let (bytes, _) = encode(&gaps, &[(OFFSETS, 4, 24)]);
        assert!(decode(&bytes, 216).is_err());
        let (bytes, placed) = encode(&h, &[(OFFSETS, 4, 24), (LENGTHS, 4, 20)]);
        assert!(decode(&bytes, placed[1].offset + 20).is_err());
    }

    #[test]
    fn checkpoints_belong_to_compressed_shards() {
        let sections = [(OFFSETS, 4, 24), (CHECKPOINTS, 0, 16)];
        let (bytes, placed) = encode(&header(), &sections);
        let why = decode(&bytes, placed[1].offset + 16).unwrap_err();
        assert!(why.contains("an uncompressed shard has checkpoints"), "{why}");
        let gzip = IndexHeader { flags: layout::compression_flags(Compression::Gzip), ..header() };
        let (bytes, placed) = encode(&gzip, &sections);
        let (_, found) = decode(&bytes, placed[1].offset + 16).unwrap();
        assert_eq!(found.checkpoints, Some(placed[1]));
        let (bytes, placed) = encode(&gzip, &[(OFFSETS, 4, 24), (CHECKPOINTS, 0, 15)]);
        let why = decode(&bytes, placed[1].offset + 15).unwrap_err();
        assert!(why.contains("checkpoints is truncated"), "{why}");
    }
}
