//! The sections of a file of tables. The normative page is `docs/index.md`, with the words of one format.
//!
//! ```text
//! 32 KEYS      bytes of the format, which tell what the tables have
//! 33 NUMBERS   blocked table: the sum of the numbers of the records before record i, and of all records
//! 34 PLACES    blocked table: the offset of the table of record i, and the length of TABLES
//! 35 TABLES    the tables, one after the other. Each has its own checksum, the section has none
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::index::layout::{self, CHECKED, IndexHeader, Refusal, Section, TFRS};

pub(super) const KEYS: u32 = 32;
pub(super) const NUMBERS: u32 = 33;
pub(super) const PLACES: u32 = 34;
pub(super) const TABLES: u32 = 35;

/// The table entries of a file's sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableSections {
    pub(super) keys: Section,
    pub(super) numbers: Section,
    pub(super) places: Section,
    pub(super) tables: Section,
}

/// Decodes the header and the section table of a file of `file_len` bytes that starts with `prefix`, in O(1).
pub(super) fn decode(prefix: &[u8], file_len: u64) -> Result<(IndexHeader, TableSections), Refusal> {
    let (header, all) = layout::decode_file(prefix, file_len, &TFRS)?;
    if !header.has(CHECKED) {
        return Err("the flag checked is not set".into());
    }
    let known = layout::known(&all, [KEYS, NUMBERS, PLACES, TABLES])?;
    let [Some(keys), Some(numbers), Some(places), Some(tables)] = known else {
        return Err("a mandatory section is missing".into());
    };
    Ok((header, TableSections { keys, numbers, places, tables }))
}

/// Returns the section table of a new file, and its first bytes.
pub(super) fn encode(header: &IndexHeader, sections: [(u32, u16, u64, u32); 4]) -> (Vec<u8>, Vec<Section>) {
    let section = |(kind, param, len, crc)| Section { kind, mandatory: true, param, offset: 0, len, crc };
    layout::encode_file(&TFRS, header, sections.map(section).to_vec())
}
