//! The layout of index files. The normative page is `docs/index.md`.
//!
//! ```text
//! .tfri | header 128 | section table 32 x count | 0.. | section | 0.. | section |     each section at a multiple of 64
//! .tfrc | the same, with the magic 89 54 46 52 43 0d 0a 1a
//! .tfrs | the same, with the magic 89 54 46 52 53 0d 0a 1a
//! .tfrp | header 128 | shard table 32 x shards | names | 0.. | sidecar | 0.. | sidecar |              the same
//!
//! header  .tfri                                          .tfrp
//!   0     magic 89 54 46 52 49 0d 0a 1a                  89 54 46 52 50 0d 0a 1a
//!   8     major u16, minor u16                           same
//!  12     section count u32                              0
//!  16     file_len u64                                   same
//!  24     n_records u64                                  n_records of all shards
//!  32     data_size u64                                  shard_count
//!  40     indexed_end u64                                names_len
//!  48     mtime_ns i64                                   dataset fingerprint u8[16] ..
//!  56     fp_head u64                                    .. its second half
//!  64     fp_tail u64                                    0
//!  72     stream_end u64                                 0
//!  80     flags u32                                      0
//!  84     0 x 36                                         0
//! 120     crc32c of the section table u32                crc32c of the shard table and the names
//! 124     crc32c of bytes 0..124 u32                     same
//!
//! section   0 type u32 | 4 flags u16 | 6 param u16 | 8 offset u64 | 16 len u64 | 24 crc32c u32 | 28 zero u32
//! shard     0 offset u64 | 8 len u64 | 16 n_records u64 | 24 name_end u64
//! ```
//!
//! Sections are defined in `sidecar.rs` for a sidecar, in `column/layout.rs` for a column, and in
//! `tables/layout.rs` for tables of records. `table.rs` defines the blocks of offsets. All integers are
//! little-endian. CRCs are not masked.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::crc::crc32c;
use crate::error::{Error, IndexError};
use crate::io::{CompressedFormat, Compression};

/// Bytes of the header of every index file.
pub(crate) const HEADER_LEN: usize = CRC_AT + 4;
/// Bytes of an entry of a section table, and of a pack's shard table.
pub(crate) const ENTRY_LEN: usize = 32;
/// Alignment of sections and of embedded sidecars in the file.
pub(crate) const ALIGN: u64 = 64;
/// Maximum number of sections, so that the table fits into the first read. Files with more are refused.
pub(crate) const MAX_SECTIONS: usize = 64;
/// Bytes of the header and the longest section table.
pub(crate) const MAX_PREFIX: usize = HEADER_LEN + MAX_SECTIONS * ENTRY_LEN;

/// A kind of index files: its magic number and its major version. A file of another version is refused; the
/// minor version is ignored.
pub(crate) struct FileFormat {
    magic: [u8; 8],
    major: u16,
}

pub(crate) const TFRI: FileFormat = FileFormat { magic: *b"\x89TFRI\r\n\x1a", major: 1 };
pub(crate) const TFRC: FileFormat = FileFormat { magic: *b"\x89TFRC\r\n\x1a", major: 1 };
pub(crate) const TFRP: FileFormat = FileFormat { magic: *b"\x89TFRP\r\n\x1a", major: 1 };
pub(crate) const TFRS: FileFormat = FileFormat { magic: *b"\x89TFRS\r\n\x1a", major: 1 };

pub(super) const MAJOR_AT: usize = 8;
pub(super) const MINOR_AT: usize = MAJOR_AT + 2;
const COUNT_AT: usize = MINOR_AT + 2;
const FILE_LEN_AT: usize = COUNT_AT + 4;
const N_RECORDS_AT: usize = FILE_LEN_AT + 8;
const DATA_SIZE_AT: usize = N_RECORDS_AT + 8;
const INDEXED_END_AT: usize = DATA_SIZE_AT + 8;
const MTIME_AT: usize = INDEXED_END_AT + 8;
const FP_HEAD_AT: usize = MTIME_AT + 8;
const FP_TAIL_AT: usize = FP_HEAD_AT + 8;
const STREAM_END_AT: usize = FP_TAIL_AT + 8;
const FLAGS_AT: usize = STREAM_END_AT + 8;
const ZERO_AT: usize = FLAGS_AT + 4;
const TABLE_CRC_AT: usize = ZERO_AT + 36;
const CRC_AT: usize = TABLE_CRC_AT + 4;

// Offsets of fields that only a pack has.
const SHARD_COUNT_AT: usize = DATA_SIZE_AT;
const NAMES_LEN_AT: usize = INDEXED_END_AT;
const DATASET_FP_AT: usize = MTIME_AT;

const _: () = assert!(HEADER_LEN == 128);

pub(crate) const GZIP: u32 = 1;
pub(crate) const ZLIB: u32 = 1 << 1;
pub(crate) const TORN: u32 = 1 << 2;
pub(crate) const GAPS: u32 = 1 << 3;
pub(crate) const CHECKED: u32 = 1 << 4;
const KNOWN: u32 = GZIP | ZLIB | TORN | GAPS | CHECKED;

const MANDATORY: u16 = 1;

/// The reason why an index file is refused. It becomes
/// [`IndexError::Refused`](crate::error::IndexError::Refused).
pub(crate) type Refusal = String;

/// Converts a [`Refusal`] to an error.
#[cold]
pub(crate) fn refused(reason: Refusal) -> Error {
    IndexError::Refused { reason: reason.into() }.into()
}

/// Returns flags 0 and 1 for a compression.
pub(crate) const fn compression_flags(compression: Compression) -> u32 {
    match compression {
        Compression::None => 0,
        Compression::Gzip => GZIP,
        Compression::Zlib => ZLIB,
    }
}

/// The fields of a sidecar's header that describe its shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexHeader {
    pub(crate) n_records: u64,
    pub(crate) data_size: u64,
    pub(crate) indexed_end: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) fp_head: u64,
    pub(crate) fp_tail: u64,
    pub(crate) stream_end: u64,
    pub(crate) flags: u32,
}

impl IndexHeader {
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns true if damage was skipped when the shard was indexed.
    pub(crate) fn has_gaps(&self) -> bool {
        self.has(GAPS)
    }

    /// Returns true if the end of the shard was left out when it was indexed.
    pub(crate) fn is_torn(&self) -> bool {
        self.has(TORN)
    }

    /// Returns true if the index of this shard must tell what is left out in a section of its own.
    pub(super) fn needs_losses(&self) -> bool {
        self.compression() != Compression::None && (self.has(TORN) || self.has(GAPS))
    }

    pub(crate) fn compression(&self) -> Compression {
        let is_named = |format: &CompressedFormat| self.has(compression_flags(format.compression()));
        CompressedFormat::ALL
            .into_iter()
            .find(is_named)
            .map_or(Compression::None, CompressedFormat::compression)
    }

    /// Checks that the fields are consistent with each other. Facts that only a scan could verify are
    /// accepted.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        const OVERHEAD: u64 = crate::frame::OVERHEAD as u64;
        let plain = self.compression() == Compression::None;
        let wrong = if self.flags & !KNOWN != 0 {
            "an unknown flag"
        } else if self.flags & (GZIP | ZLIB) == GZIP | ZLIB {
            "two kinds of compression"
        } else if self.indexed_end > self.data_size {
            "indexed_end is beyond data_size"
        } else if plain && self.stream_end != self.indexed_end {
            "stream_end is not indexed_end"
        } else if !plain && self.indexed_end != self.data_size {
            "indexed_end is not data_size"
        } else if plain && self.has(TORN) != (self.indexed_end < self.data_size) {
            // Otherwise a forged index could hide the end of a file without setting the flag that makes it an
            // error.
            "the torn flag contradicts data_size"
        } else if self.n_records > self.stream_end / OVERHEAD {
            "more records than fit into stream_end"
        } else if self.n_records == 0 && self.stream_end != 0 {
            "no records, but stream_end is not 0"
        } else {
            return Ok(());
        };
        Err(wrong.into())
    }
}

/// The section table entry of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: u32,
    pub(crate) mandatory: bool,
    pub(crate) param: u16,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// CRC32C of the whole section. 0 for blocked tables, which store one per block.
    pub(crate) crc: u32,
}

/// Rounds `at` up to a multiple of [`ALIGN`]. Returns `None` above `u64::MAX`.
pub(crate) fn align(at: u64) -> Option<u64> {
    at.checked_next_multiple_of(ALIGN)
}

/// Lays out the sections of a `.tfri`, `.tfrc` or `.tfrs` file. Returns the header with the section table,
/// and the sections with their offsets.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "at most MAX_SECTIONS sections, whose bytes are in memory"
)]
pub(crate) fn encode_file(
    format: &FileFormat,
    header: &IndexHeader,
    mut sections: Vec<Section>,
) -> (Vec<u8>, Vec<Section>) {
    let mut end = (HEADER_LEN + sections.len() * ENTRY_LEN) as u64;
    let mut table = Vec::with_capacity(sections.len() * ENTRY_LEN);
    for section in &mut sections {
        section.offset = end.next_multiple_of(ALIGN);
        end = section.offset + section.len;
        table.extend(section.kind.to_le_bytes());
        table.extend((if section.mandatory { MANDATORY } else { 0 }).to_le_bytes());
        table.extend(section.param.to_le_bytes());
        table.extend(section.offset.to_le_bytes());
        table.extend(section.len.to_le_bytes());
        table.extend(section.crc.to_le_bytes());
        table.extend([0; 4]);
    }
    let mut bytes = vec![0; HEADER_LEN];
    put(&mut bytes, 0, &format.magic);
    put(&mut bytes, MAJOR_AT, &format.major.to_le_bytes());
    put(&mut bytes, COUNT_AT, &(sections.len() as u32).to_le_bytes());
    put(&mut bytes, FILE_LEN_AT, &end.to_le_bytes());
    put(&mut bytes, N_RECORDS_AT, &header.n_records.to_le_bytes());
    put(&mut bytes, DATA_SIZE_AT, &header.data_size.to_le_bytes());
    put(&mut bytes, INDEXED_END_AT, &header.indexed_end.to_le_bytes());
    put(&mut bytes, MTIME_AT, &header.mtime_ns.to_le_bytes());
    put(&mut bytes, FP_HEAD_AT, &header.fp_head.to_le_bytes());
    put(&mut bytes, FP_TAIL_AT, &header.fp_tail.to_le_bytes());
    put(&mut bytes, STREAM_END_AT, &header.stream_end.to_le_bytes());
    put(&mut bytes, FLAGS_AT, &header.flags.to_le_bytes());
    put_checksums(&mut bytes, crc32c(&table));
    bytes.extend(table);
    (bytes, sections)
}

/// Returns the sections of these types. Skips types that this version does not know, and refuses the
/// file if one of them is mandatory.
pub(crate) fn known<const N: usize>(
    all: &[Section],
    kinds: [u32; N],
) -> Result<[Option<Section>; N], Refusal> {
    match all.iter().find(|section| section.mandatory && !kinds.contains(&section.kind)) {
        Some(section) => Err(format!("unknown mandatory section {}", section.kind)),
        None => Ok(kinds.map(|kind| all.iter().copied().find(|section| section.kind == kind))),
    }
}

/// Reads the header and the section table of a `.tfri`, `.tfrc` or `.tfrs` file, and checks the offset of
/// each section.
pub(crate) fn decode_file(
    prefix: &[u8],
    file_len: u64,
    format: &FileFormat,
) -> Result<(IndexHeader, Vec<Section>), Refusal> {
    let head = decode_common(prefix, file_len, format)?;
    let header = IndexHeader {
        n_records: u64_at(head, N_RECORDS_AT),
        data_size: u64_at(head, DATA_SIZE_AT),
        indexed_end: u64_at(head, INDEXED_END_AT),
        mtime_ns: u64_at(head, MTIME_AT) as i64,
        fp_head: u64_at(head, FP_HEAD_AT),
        fp_tail: u64_at(head, FP_TAIL_AT),
        stream_end: u64_at(head, STREAM_END_AT),
        flags: u32_at(head, FLAGS_AT),
    };
    header.check()?;
    let count = u32_at(head, COUNT_AT) as usize;
    if count > MAX_SECTIONS {
        return Err(format!("expected at most {MAX_SECTIONS} sections, found {count}"));
    }
    #[expect(clippy::arithmetic_side_effects, reason = "`count` is at most MAX_SECTIONS")]
    let table_end = HEADER_LEN + count * ENTRY_LEN;
    let table =
        prefix.get(HEADER_LEN..table_end).ok_or_else(|| "the section table is truncated".to_string())?;
    check_table_crc(head, crc32c(table))?;
    Ok((header, decode_sections(table, file_len)?))
}

#[expect(clippy::arithmetic_side_effects, reason = "`table` is a slice of at most MAX_PREFIX bytes")]
fn decode_sections(table: &[u8], file_len: u64) -> Result<Vec<Section>, Refusal> {
    let mut sections = Vec::new();
    let mut end = (HEADER_LEN + table.len()) as u64;
    let mut last_kind = None;
    for entry in table.as_chunks::<ENTRY_LEN>().0 {
        let kind = u32_at(entry, 0);
        let flags_and_param = u32_at(entry, 4);
        let section = Section {
            kind,
            mandatory: flags_and_param as u16 & MANDATORY != 0,
            param: (flags_and_param >> 16) as u16,
            offset: u64_at(entry, 8),
            len: u64_at(entry, 16),
            crc: u32_at(entry, 24),
        };
        if last_kind.is_some_and(|last| last >= kind) {
            return Err("the sections are not in ascending order".into());
        }
        last_kind = Some(kind);
        if align(end) != Some(section.offset) {
            return Err(format!("section {kind} has a wrong offset, {}", section.offset));
        }
        end = section.offset.checked_add(section.len).ok_or("a section's end overflows")?;
        sections.push(section);
    }
    if end != file_len {
        return Err(format!("expected the last section to end at byte {file_len}, found byte {end}"));
    }
    Ok(sections)
}

/// The header of a pack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackHeader {
    pub(crate) n_records: u64,
    pub(crate) shard_count: u64,
    pub(crate) names_len: u64,
    pub(crate) fingerprint: [u8; 16],
}

/// Encodes the header of a pack; `tables` is its shard table and names.
pub(crate) fn encode_pack(header: &PackHeader, tables: &[u8], file_len: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    put(&mut bytes, 0, &TFRP.magic);
    put(&mut bytes, MAJOR_AT, &TFRP.major.to_le_bytes());
    put(&mut bytes, FILE_LEN_AT, &file_len.to_le_bytes());
    put(&mut bytes, N_RECORDS_AT, &header.n_records.to_le_bytes());
    put(&mut bytes, SHARD_COUNT_AT, &header.shard_count.to_le_bytes());
    put(&mut bytes, NAMES_LEN_AT, &header.names_len.to_le_bytes());
    put(&mut bytes, DATASET_FP_AT, &header.fingerprint);
    put_checksums(&mut bytes, crc32c(tables));
    bytes
}

/// Reads the header of a pack. Also returns the length of its shard table and names, and checks that they are
/// inside the file. [`check_pack_tables`] verifies their CRC.
pub(crate) fn decode_pack(prefix: &[u8], file_len: u64) -> Result<(PackHeader, u64), Refusal> {
    let head = decode_common(prefix, file_len, &TFRP)?;
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&head[DATASET_FP_AT..DATASET_FP_AT + 16]);
    let header = PackHeader {
        n_records: u64_at(head, N_RECORDS_AT),
        shard_count: u64_at(head, SHARD_COUNT_AT),
        names_len: u64_at(head, NAMES_LEN_AT),
        fingerprint,
    };
    let tables =
        header.shard_count.checked_mul(ENTRY_LEN as u64).and_then(|t| t.checked_add(header.names_len));
    match tables {
        Some(len) if file_len.checked_sub(HEADER_LEN as u64).is_some_and(|room| len <= room) => {
            Ok((header, len))
        }
        _ => Err("the shard table and the names are longer than the file".into()),
    }
}

/// Verifies the CRC of the shard table and names of a pack.
pub(crate) fn check_pack_tables(prefix: &[u8], tables: &[u8]) -> Result<(), Refusal> {
    let head = prefix.first_chunk::<HEADER_LEN>().ok_or("shorter than a header")?;
    check_table_crc(head, crc32c(tables))
}

/// Checks the header fields that all index files share: magic, major version, CRC and length.
fn decode_common<'a>(
    prefix: &'a [u8],
    file_len: u64,
    format: &FileFormat,
) -> Result<&'a [u8; HEADER_LEN], Refusal> {
    let head = prefix.first_chunk::<HEADER_LEN>().ok_or("shorter than a header")?;
    if head[..MAJOR_AT] != format.magic {
        return Err("the magic number is not that of an index file".into());
    }
    // The version is checked before the CRC, because a later major version may store the CRC elsewhere.
    let major = u16::from_le_bytes([head[MAJOR_AT], head[MAJOR_AT + 1]]);
    let expected = format.major;
    if major != expected {
        return Err(format!("format version: expected {expected}, found {major}"));
    }
    let computed = crc32c(&head[..CRC_AT]);
    let stored = u32_at(head, CRC_AT);
    if computed != stored {
        return Err(format!("header crc32c: expected {stored:#010x}, found {computed:#010x}"));
    }
    let declared = u64_at(head, FILE_LEN_AT);
    if declared != file_len {
        return Err(format!("file size: expected {declared} bytes by the header, found {file_len}"));
    }
    Ok(head)
}

fn check_table_crc(head: &[u8; HEADER_LEN], computed: u32) -> Result<(), Refusal> {
    let stored = u32_at(head, TABLE_CRC_AT);
    if computed != stored {
        return Err(format!("table crc32c: expected {stored:#010x}, found {computed:#010x}"));
    }
    Ok(())
}

/// Writes the CRCs of the tables and of the header itself.
#[expect(clippy::indexing_slicing, reason = "callers pass at least HEADER_LEN bytes")]
pub(super) fn put_checksums(header: &mut [u8], table_crc: u32) {
    put(header, TABLE_CRC_AT, &table_crc.to_le_bytes());
    let crc = crc32c(&header[..CRC_AT]);
    put(header, CRC_AT, &crc.to_le_bytes());
}

#[expect(
    clippy::indexing_slicing,
    reason = "callers pass fields of the header and at least HEADER_LEN bytes"
)]
#[expect(clippy::arithmetic_side_effects, reason = "callers pass fields of the header")]
fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Reads the u64 at `at`. Every caller's array contains the field; otherwise the result would be 0.
pub(crate) fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_fields_are_refused() {
        let h = IndexHeader {
            data_size: 16,
            indexed_end: 16,
            stream_end: 16,
            n_records: 1,
            ..IndexHeader::default()
        };
        let cases = [
            IndexHeader { flags: 1 << 5, ..h },
            IndexHeader { flags: GZIP | ZLIB, ..h },
            IndexHeader { indexed_end: 17, stream_end: 17, ..h },
            IndexHeader { stream_end: 15, ..h },
            IndexHeader { flags: GZIP, indexed_end: 15, ..h },
            IndexHeader { flags: TORN, ..h },
            IndexHeader { data_size: 17, ..h },
            IndexHeader { n_records: 2, ..h },
            IndexHeader { n_records: u64::MAX, ..h },
        ];
        for case in cases {
            assert!(case.check().is_err(), "{case:?}");
        }
        assert!(IndexHeader { data_size: 17, flags: TORN, ..h }.check().is_ok());
        assert!(IndexHeader { flags: ZLIB, stream_end: 900, ..h }.check().is_ok());
    }
}
