//! A sidecar in memory: its header and its tables, which may still be on disk; and its sections, which `docs/index.md`,
//! section 5, defines.

use super::file::{read_section, reopen, slice};
use super::layout::{self, GAPS, Header, Refusal, Section, TFRI, decode_file, encode_file, refused, unknown};
use super::table::{self, BLOCK, BLOCK_ENTRY, BadBlock, Table, TableEnds};
use crate::error::{At, Error, IndexError, Result};
use crate::frame::Torn;
use crate::io::{FileId, KeptFile, Region, Reserved};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// One record's place in the record stream (inflated, if the shard is compressed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Byte offset of the record's header.
    pub offset: u64,
    /// Bytes of its payload.
    pub payload_len: u64,
}

/// A sidecar in memory; its tables may still be on disk.
pub(crate) struct Sidecar {
    pub(crate) header: Header,
    pub(super) tables: OnceLock<SidecarTables>,
    pub(super) source: Option<LazyTables>,
    /// The index file, or the pack.
    pub(crate) file: Option<Box<Path>>,
    /// What this process's scan found at the end.
    pub(crate) torn: Option<Torn>,
    /// The shard's file when it was scanned or compared.
    pub(crate) shard_id: Option<FileId>,
    /// The memory of an index file that was read in.
    pub(super) _reserved: Option<Reserved>,
}

pub(super) struct SidecarTables {
    pub(super) offsets: Table,
    pub(super) lengths: Option<Table>,
}

/// Where tables come from that are read at their first use.
pub(super) struct LazyTables {
    sections: SidecarSections,
    from: TableOrigin,
}

pub(super) enum TableOrigin {
    /// The index file itself, kept open until the tables are read: it may be deleted or replaced meanwhile.
    Kept(Mutex<Option<Arc<KeptFile>>>),
    /// Opened again then: thousands of shards must not hold a descriptor each. The header must be the same still.
    Path { path: Box<Path>, head: Box<[u8; layout::HEADER_LEN]> },
    /// A pack, which holds one descriptor for all, and where the sidecar lies in it.
    File { file: Arc<File>, at: u64 },
}

impl Sidecar {
    /// An index of this process's making.
    pub(crate) fn new(header: Header, offsets: Table, lengths: Option<Table>, torn: Option<Torn>) -> Sidecar {
        let tables = OnceLock::from(SidecarTables { offsets, lengths });
        Sidecar { tables, torn, ..Sidecar::unplaced(header) }
    }

    fn unplaced(header: Header) -> Sidecar {
        Sidecar {
            header,
            tables: OnceLock::new(),
            source: None,
            file: None,
            torn: None,
            shard_id: None,
            _reserved: None,
        }
    }

    /// A sidecar whose bytes are all there; `len` is the length that its header must give.
    pub(crate) fn from_bytes(bytes: Region, len: u64) -> Result<Sidecar, Refusal> {
        bytes.populate(0..layout::MAX_PREFIX).map_err(|e| e.to_string())?;
        let (header, sections) = decode(&bytes, len)?;
        let tables = SidecarTables::open(&header, &sections, |s| slice(&bytes, s))
            .ok_or("the sections are cut off")?;
        Ok(Sidecar { tables: OnceLock::from(tables), ..Sidecar::unplaced(header) })
    }

    /// A sidecar whose tables are read at their first use; `prefix` is its start.
    pub(super) fn lazy(prefix: &[u8], len: u64, from: TableOrigin) -> Result<Sidecar, Refusal> {
        let (header, sections) = decode(prefix, len)?;
        let source = Some(LazyTables { sections, from });
        Ok(Sidecar { source, ..Sidecar::unplaced(header) })
    }

    /// The tables, read in if they were not.
    #[cold]
    pub(super) fn load(&self) -> Result<&SidecarTables> {
        if let Some(tables) = self.tables.get() {
            return Ok(tables);
        }
        let read = || -> Result<&SidecarTables> {
            let Some(LazyTables { sections, from }) = &self.source else {
                return Err(refused("no tables".into()));
            };
            let read = |file: &File, at| SidecarTables::read(&self.header, sections, file, at);
            // Threads may come here together: each reads, and the tables of the first are kept.
            let init = |tables| self.tables.get_or_init(|| tables);
            match from {
                TableOrigin::File { file, at } => Ok(init(read(file, *at)?)),
                TableOrigin::Path { path, head } => Ok(init(read(&reopen(path, head)?, 0)?)),
                TableOrigin::Kept(kept) => {
                    // Not locked while it is read: a child that is forked meanwhile would wait for ever.
                    let lock = || kept.lock().unwrap_or_else(|e| e.into_inner());
                    let Some(file) = lock().clone() else {
                        return self.tables.get().ok_or_else(|| refused("no tables".into()));
                    };
                    let tables = init(read(&file, 0)?);
                    *lock() = None;
                    Ok(tables)
                }
            }
        };
        read().map_err(|e| match &self.file {
            Some(file) => e.in_file(file),
            None => e,
        })
    }

    pub(crate) fn offset(&self, i: u64) -> Result<u64> {
        self.load()?.offsets.get(i).map_err(|bad| self.corrupt(bad, Some(i)))
    }

    /// The header and section table, and where the sections go.
    fn encode_head(&self, tables: &SidecarTables) -> (Vec<u8>, Vec<Section>) {
        let mut sections = vec![(OFFSETS, tables.offsets.param(), tables.offsets.section_len())];
        if let Some(lengths) = &tables.lengths {
            sections.push((LENGTHS, lengths.param(), lengths.section_len()));
        }
        encode(&self.header, &sections)
    }

    /// Bytes of the sidecar.
    pub(super) fn file_len(&self) -> Result<u64> {
        let (_, placed) = self.encode_head(self.load()?);
        Ok(placed.last().map_or(0, |s| s.offset + s.len))
    }

    pub(super) fn write_to(&self, w: &mut impl Write) -> Result<()> {
        let tables = self.load()?;
        tables.populate()?;
        let (prefix, placed) = self.encode_head(tables);
        w.write_all(&prefix)?;
        let mut at = prefix.len() as u64;
        let tables = [Some(&tables.offsets), tables.lengths.as_ref()];
        for (table, section) in tables.into_iter().flatten().zip(placed) {
            // Less than 64 bytes.
            w.write_all(&[0; layout::ALIGN as usize][..(section.offset - at) as usize])?;
            for part in table.parts() {
                w.write_all(part)?;
            }
            at = section.offset + section.len;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn corrupt(&self, bad: BadBlock, record: Option<u64>) -> Error {
        let file = self.file.clone().unwrap_or_else(|| Path::new("(index in memory)").into());
        let kind = IndexError::CorruptBlock { file, block: bad.block, reason: bad.reason };
        Error::from(kind).at(At { path: None, record, offset: None })
    }
}

impl SidecarTables {
    fn open(
        header: &Header,
        sections: &SidecarSections,
        bytes: impl Fn(&Section) -> Option<Region>,
    ) -> Option<SidecarTables> {
        let first = (!header.has(GAPS)).then_some(0);
        let ends = TableEnds { first, last: Some(header.stream_end) };
        let s = &sections.offsets;
        let offsets = Table::open(&bytes(s)?, header.n_records.checked_add(1)?, s.param, ends)?;
        let lengths = match &sections.lengths {
            Some(s) => Some(Table::open(&bytes(s)?, header.n_records, s.param, TableEnds::default())?),
            None => None,
        };
        Some(SidecarTables { offsets, lengths })
    }

    /// Reads the tables of a sidecar that begins at byte `at` of `file`.
    fn read(header: &Header, sections: &SidecarSections, file: &File, at: u64) -> Result<SidecarTables> {
        let section = |s: &Section| read_section(file, at, s);
        let offsets = section(&sections.offsets)?;
        let lengths = sections.lengths.as_ref().map(section).transpose()?;
        let pick = |s: &Section| if s.kind == OFFSETS { Some(offsets.clone()) } else { lengths.clone() };
        SidecarTables::open(header, sections, pick).ok_or_else(|| refused("the sections are cut off".into()))
    }

    /// Makes mapped tables resident; see [`Region::populate`].
    fn populate(&self) -> Result<()> {
        let tables = [Some(&self.offsets), self.lengths.as_ref()];
        Ok(tables.into_iter().flatten().try_for_each(Table::populate)?)
    }

    /// Record `i`, in the case that nearly all looks are; says yes or nothing.
    #[inline(always)]
    pub(super) fn span_near(&self, header: &Header, i: u64) -> Option<Span> {
        if self.lengths.is_some() {
            return None;
        }
        let (offset, next) = self.offsets.pair_near(i)?;
        let payload_len = next.checked_sub(offset)?.checked_sub(crate::frame::OVERHEAD as u64)?;
        (next <= header.stream_end).then_some(Span { offset, payload_len })
    }

    /// Record `i`, or why not.
    pub(super) fn span(&self, header: &Header, i: u64) -> Result<Span, BadBlock> {
        const OVERHEAD: u64 = crate::frame::OVERHEAD as u64;
        let (offset, next) = self.offsets.pair(i)?;
        let room = next.checked_sub(offset).and_then(|room| room.checked_sub(OVERHEAD));
        let (Some(room), true) = (room, next <= header.stream_end) else {
            return Err(BadBlock { block: i / table::BLOCK, reason: "an entry is not below the next" });
        };
        let payload_len = match &self.lengths {
            None => room,
            Some(lengths) => match lengths.get(i)? {
                len if len <= room => len,
                _ => {
                    return Err(BadBlock {
                        block: i / table::BLOCK,
                        reason: "a record reaches into the next",
                    });
                }
            },
        };
        Ok(Span { offset, payload_len })
    }
}

/// Where the records start; always there.
pub(crate) const OFFSETS: u32 = 1;
/// The payload lengths; there if and only if damage was skipped.
pub(crate) const LENGTHS: u32 = 2;

/// The sections of a sidecar that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SidecarSections {
    pub(crate) offsets: Section,
    pub(crate) lengths: Option<Section>,
}

/// Lays out the sections of a sidecar, given as (type, param, length), all mandatory: the header and the table, and where the
/// sections go.
pub(crate) fn encode(header: &Header, sections: &[(u32, u16, u64)]) -> (Vec<u8>, Vec<Section>) {
    let section = |&(kind, param, len)| Section { kind, mandatory: true, param, offset: 0, len, crc: 0 };
    encode_file(&TFRI, header, sections.iter().map(section).collect())
}

/// Reads the header and the section table of a sidecar of `file_len` bytes, of which `prefix` is the start
/// (all of it, or [`MAX_PREFIX`]). Looks at nothing else, so the cost does not grow with the records.
pub(crate) fn decode(prefix: &[u8], file_len: u64) -> Result<(Header, SidecarSections), Refusal> {
    let (header, all) = decode_file(prefix, file_len, &TFRI)?;
    let (mut offsets, mut lengths) = (None, None);
    for section in all {
        match section.kind {
            OFFSETS => offsets = Some(section),
            LENGTHS => lengths = Some(section),
            _ => unknown(&section)?,
        }
    }
    let offsets = offsets.ok_or("the section of offsets is missing")?;
    if lengths.is_some() != header.has(GAPS) {
        return Err("the section of lengths does not fit the gaps' flag".into());
    }
    // n_records is at most stream_end / 16, so + 1 stays a u64.
    check_blocked(&offsets, header.n_records + 1)?;
    if let Some(lengths) = &lengths {
        check_blocked(lengths, header.n_records)?;
    }
    Ok((header, SidecarSections { offsets, lengths }))
}

/// A blocked table of `m` values has one length and no other.
fn check_blocked(section: &Section, m: u64) -> Result<(), Refusal> {
    let width = match section.param {
        4 | 8 => u64::from(section.param),
        other => return Err(format!("entries of {other} bytes")),
    };
    let want = m
        .div_ceil(BLOCK)
        .checked_mul(BLOCK_ENTRY as u64)
        .and_then(|blocks| m.checked_mul(width)?.checked_add(blocks));
    if want != Some(section.len) {
        return Err(format!("section {} has {} bytes, which is not {m} entries", section.kind, section.len));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::layout::{ENTRY_LEN, HEADER_LEN, MAJOR_AT, MINOR_AT, seal};
    use super::*;
    use crate::crc::crc32c;

    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let crc = crc32c(&bytes[HEADER_LEN..]);
        seal(&mut bytes, crc);
        bytes
    }

    fn header() -> Header {
        Header { data_size: 16, indexed_end: 16, stream_end: 16, n_records: 1, ..Header::default() }
    }

    #[test]
    fn a_header_comes_back() {
        let (bytes, placed) = encode(&header(), &[(OFFSETS, 4, 24)]);
        let (got, sections) = decode(&bytes, 192 + 24).unwrap();
        assert_eq!(got, header());
        assert_eq!(sections, SidecarSections { offsets: placed[0], lengths: None });
    }

    #[test]
    fn versions() {
        let (bytes, _) = encode(&header(), &[(OFFSETS, 4, 24)]);
        let mut minor = bytes.clone();
        minor[MINOR_AT] = 7;
        assert!(decode(&sealed(minor), 216).is_ok());
        let mut major = bytes;
        major[MAJOR_AT] = 2;
        assert!(decode(&sealed(major), 216).unwrap_err().contains("version 2"));
    }

    #[test]
    fn unknown_sections_are_skipped_unless_mandatory() {
        let (bytes, placed) = encode(&header(), &[(OFFSETS, 4, 24), (77, 9, 5)]);
        let file_len = placed[1].offset + 5;
        assert!(decode(&bytes, file_len).unwrap_err().contains("mandatory section 77"));
        let mut optional = bytes;
        optional[HEADER_LEN + ENTRY_LEN + 4] = 0;
        assert!(decode(&sealed(optional), file_len).is_ok());
    }

    #[test]
    fn lengths_exactly_with_gaps() {
        let h = header();
        let gaps = Header { flags: GAPS, ..h };
        let (bytes, _) = encode(&gaps, &[(OFFSETS, 4, 24)]);
        assert!(decode(&bytes, 216).is_err());
        let (bytes, placed) = encode(&h, &[(OFFSETS, 4, 24), (LENGTHS, 4, 20)]);
        assert!(decode(&bytes, placed[1].offset + 20).is_err());
    }
}
