//! The sections of a column file. The normative page is `docs/index.md`, section 6.
//!
//! ```text
//! 16 NAME     the feature's name
//! 17 VALUES   value[n]: i64 | f32 | u8, u16 or u32 code into DICT | u32 number of values
//! 18 PRESENT  bit i mod 8 of byte i div 8: record i has a value
//! 19 DICT     u64 d | u64 end[d] | the strings, ascending
//! 20 CLASSES  u64 k | u64 end[k] | i64 class[k] | record numbers, u32 or u64
//! ```
//!
//! The section table has one crc for each section.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::crc::crc32c;
use crate::example::DType;
use crate::index::layout::{self, CHECKED, IndexHeader, Refusal, Section, TFRC};
use std::collections::TryReserveError;

pub(super) const NAME: u32 = 16;
pub(super) const VALUES: u32 = 17;
pub(super) const PRESENT: u32 = 18;
pub(super) const DICT: u32 = 19;
pub(super) const CLASSES: u32 = 20;

/// Returns the name of a section for messages.
pub(super) fn section_name(kind: u32) -> &'static str {
    match kind {
        NAME => "NAME",
        VALUES => "VALUES",
        PRESENT => "PRESENT",
        DICT => "DICT",
        _ => "CLASSES",
    }
}

/// The encoding of values: the param of VALUES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueEncoding {
    Int64,
    Float,
    Code8,
    Code16,
    Code32,
    /// The number of values of the feature.
    Count,
}

impl ValueEncoding {
    fn from_param(param: u16) -> Option<ValueEncoding> {
        Some(match param {
            0 => ValueEncoding::Int64,
            1 => ValueEncoding::Float,
            2 => ValueEncoding::Code8,
            3 => ValueEncoding::Code16,
            4 => ValueEncoding::Code32,
            5 => ValueEncoding::Count,
            _ => return None,
        })
    }

    /// Returns the narrowest encoding for `d` codes.
    pub(super) fn for_codes(d: usize) -> ValueEncoding {
        match d {
            0..=0x100 => ValueEncoding::Code8,
            0x101..=0x1_0000 => ValueEncoding::Code16,
            _ => ValueEncoding::Code32,
        }
    }

    pub(super) fn width(self) -> usize {
        match self {
            ValueEncoding::Int64 => 8,
            ValueEncoding::Float | ValueEncoding::Code32 | ValueEncoding::Count => 4,
            ValueEncoding::Code8 => 1,
            ValueEncoding::Code16 => 2,
        }
    }

    pub(super) fn kind(self) -> DType {
        match self {
            ValueEncoding::Int64 | ValueEncoding::Count => DType::Int64,
            ValueEncoding::Float => DType::Float32,
            _ => DType::Bytes,
        }
    }
}

/// The table entries of a column file's sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionTable {
    pub(super) encoding: ValueEncoding,
    pub(super) name: Section,
    pub(super) values: Section,
    pub(super) present: Section,
    pub(super) dict: Option<Section>,
    pub(super) classes: Option<Section>,
}

/// Decodes the header and the section table of a column file of `file_len` bytes that starts with `prefix`,
/// in O(1).
pub(super) fn decode(prefix: &[u8], file_len: u64) -> Result<(IndexHeader, SectionTable), Refusal> {
    let (header, all) = layout::decode_file(prefix, file_len, &TFRC)?;
    if !header.has(CHECKED) {
        return Err("the flag checked is not set".into());
    }
    let [name, values, present, dict, classes] = layout::known(&all, [NAME, VALUES, PRESENT, DICT, CLASSES])?;
    let (Some(name), Some(values), Some(present)) = (name, values, present) else {
        return Err("a mandatory section is missing".into());
    };
    let encoding = ValueEncoding::from_param(values.param)
        .ok_or_else(|| format!("unknown param {} of section VALUES", values.param))?;
    let n = header.n_records;
    check_len(&values, n.checked_mul(encoding.width() as u64))?;
    check_len(&present, Some(n.div_ceil(8)))?;
    if dict.is_some() != (encoding.kind() == DType::Bytes) {
        return Err("section DICT does not match the encoding of the values".into());
    }
    if dict.is_some_and(|dict| dict.len < 8) {
        return Err("section DICT is shorter than 8 bytes".into());
    }
    if let Some(Section { param, len, .. }) = classes
        && (matches!(encoding, ValueEncoding::Float | ValueEncoding::Count)
            || !matches!(param, 4 | 8)
            || len < 8)
    {
        return Err(
            "section CLASSES has floats or counts, a param other than 4 or 8, or less than 8 bytes".into()
        );
    }
    Ok((header, SectionTable { encoding, name, values, present, dict, classes }))
}

/// Compares the length of a section with the expected one. `None`: the expected length overflows.
fn check_len(section: &Section, expected: Option<u64>) -> Result<(), Refusal> {
    let name = section_name(section.kind);
    let expected = expected.ok_or_else(|| format!("section {name} would have more than 2^64 bytes"))?;
    if expected != section.len {
        return Err(format!("section {name}: expected {expected} bytes, found {}", section.len));
    }
    Ok(())
}

/// The contents of the sections of a new column file.
pub(super) struct ColumnSections<'a> {
    pub(super) encoding: ValueEncoding,
    pub(super) name: &'a str,
    pub(super) values: &'a [u8],
    pub(super) present: &'a [u8],
    pub(super) dict: Option<&'a [u8]>,
    /// The width of a record number, and the bytes.
    pub(super) classes: Option<(u16, &'a [u8])>,
}

impl ColumnSections<'_> {
    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn encode(&self, header: &IndexHeader) -> Result<Vec<u8>, TryReserveError> {
        let mut all = vec![
            (NAME, true, 0, self.name.as_bytes()),
            (VALUES, true, self.encoding as u16, self.values),
            (PRESENT, true, 0, self.present),
        ];
        all.extend(self.dict.map(|dict| (DICT, true, 0, dict)));
        all.extend(self.classes.map(|(param, classes)| (CLASSES, false, param, classes)));
        let section = |&(kind, mandatory, param, bytes): &(u32, bool, u16, &[u8])| {
            let len = bytes.len() as u64;
            Section { kind, mandatory, param, offset: 0, len, crc: crc32c(bytes) }
        };
        let (mut file, placed) = layout::encode_file(&TFRC, header, all.iter().map(section).collect());
        // The sections are in memory, so their offsets fit into a usize.
        let len = placed.last().map_or(0, |last| last.offset.saturating_add(last.len) as usize);
        file.try_reserve_exact(len.saturating_sub(file.len()))?;
        for ((.., bytes), section) in all.iter().zip(placed) {
            file.resize(section.offset as usize, 0);
            file.extend(*bytes);
        }
        Ok(file)
    }
}
