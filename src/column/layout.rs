//! The sections of a column file, drawn once. The normative page is `docs/index.md`, section 6.
//!
//! ```text
//! 16 NAME     the feature's name
//! 17 VALUES   value[n]: i64 | f32 | u8, u16 or u32 code into DICT
//! 18 PRESENT  bit i mod 8 of byte i div 8: record i has a value
//! 19 DICT     u64 d | u64 end[d] | the strings, ascending
//! 20 CLASSES  u64 k | u64 end[k] | i64 class[k] | record numbers, u32 or u64
//! ```
//!
//! Each section has one crc, in the section table.

use crate::crc::crc32c;
use crate::example::FeatureKind;
use crate::index::layout::{self, CHECKED, Header, Refusal, Section, TFRC};

pub(super) const NAME: u32 = 16;
pub(super) const VALUES: u32 = 17;
pub(super) const PRESENT: u32 = 18;
pub(super) const DICT: u32 = 19;
pub(super) const CLASSES: u32 = 20;

/// What a section is called in messages.
pub(super) fn name_of(kind: u32) -> &'static str {
    match kind {
        NAME => "NAME",
        VALUES => "VALUES",
        PRESENT => "PRESENT",
        DICT => "DICT",
        _ => "CLASSES",
    }
}

/// How values are stored: the param of VALUES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueEncoding {
    Int64,
    Float,
    Code8,
    Code16,
    Code32,
}

impl ValueEncoding {
    fn of_param(param: u16) -> Option<ValueEncoding> {
        Some(match param {
            0 => ValueEncoding::Int64,
            1 => ValueEncoding::Float,
            2 => ValueEncoding::Code8,
            3 => ValueEncoding::Code16,
            4 => ValueEncoding::Code32,
            _ => return None,
        })
    }

    fn param(self) -> u16 {
        self as u16
    }

    /// The narrowest that holds `d` codes.
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
            ValueEncoding::Float | ValueEncoding::Code32 => 4,
            ValueEncoding::Code8 => 1,
            ValueEncoding::Code16 => 2,
        }
    }

    pub(super) fn kind(self) -> FeatureKind {
        match self {
            ValueEncoding::Int64 => FeatureKind::Int64,
            ValueEncoding::Float => FeatureKind::Float,
            _ => FeatureKind::Bytes,
        }
    }
}

/// The sections of a column file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionTable {
    pub(super) encoding: ValueEncoding,
    pub(super) name: Section,
    pub(super) values: Section,
    pub(super) present: Section,
    pub(super) dict: Option<Section>,
    pub(super) classes: Option<Section>,
}

/// Reads the header and the section table of a column file of `file_len` bytes, of which `prefix` is the start. O(1).
pub(super) fn decode(prefix: &[u8], file_len: u64) -> Result<(Header, SectionTable), Refusal> {
    let (header, all) = layout::decode_file(prefix, file_len, &TFRC)?;
    if !header.has(CHECKED) {
        return Err("a column whose payloads were not checked".into());
    }
    let [mut name, mut values, mut present, mut dict, mut classes] = [None; 5];
    for section in all {
        let place = match section.kind {
            NAME => &mut name,
            VALUES => &mut values,
            PRESENT => &mut present,
            DICT => &mut dict,
            CLASSES => &mut classes,
            _ => {
                layout::unknown(&section)?;
                continue;
            }
        };
        *place = Some(section);
    }
    let (Some(name), Some(values), Some(present)) = (name, values, present) else {
        return Err("a section of the column is missing".into());
    };
    let encoding =
        ValueEncoding::of_param(values.param).ok_or_else(|| format!("values of type {}", values.param))?;
    let n = header.n_records;
    exactly(&values, n.checked_mul(encoding.width() as u64))?;
    exactly(&present, Some(n.div_ceil(8)))?;
    if dict.is_some() != (encoding.kind() == FeatureKind::Bytes) {
        return Err("the dictionary does not fit the type of the values".into());
    }
    if dict.is_some_and(|dict| dict.len < 8) {
        return Err("the dictionary is cut off".into());
    }
    if let Some(Section { param, len, .. }) = classes
        && (encoding == ValueEncoding::Float || !matches!(param, 4 | 8) || len < 8)
    {
        return Err("classes that no column has".into());
    }
    Ok((header, SectionTable { encoding, name, values, present, dict, classes }))
}

fn exactly(section: &Section, want: Option<u64>) -> Result<(), Refusal> {
    match want == Some(section.len) {
        true => Ok(()),
        false => Err(format!("section {} has {} bytes", name_of(section.kind), section.len)),
    }
}

/// The bytes of the sections of a column file that is to be written.
pub(super) struct ColumnSections<'a> {
    pub(super) encoding: ValueEncoding,
    pub(super) name: &'a str,
    pub(super) values: &'a [u8],
    pub(super) present: &'a [u8],
    pub(super) dict: Option<&'a [u8]>,
    /// With the width of a record number.
    pub(super) classes: Option<(u16, &'a [u8])>,
}

impl ColumnSections<'_> {
    /// The file.
    pub(super) fn encode(&self, header: &Header) -> Vec<u8> {
        let mut all = vec![
            (NAME, true, 0, self.name.as_bytes()),
            (VALUES, true, self.encoding.param(), self.values),
            (PRESENT, true, 0, self.present),
        ];
        all.extend(self.dict.map(|dict| (DICT, true, 0, dict)));
        all.extend(self.classes.map(|(param, classes)| (CLASSES, false, param, classes)));
        let section = |&(kind, mandatory, param, bytes): &(u32, bool, u16, &[u8])| {
            let len = bytes.len() as u64;
            Section { kind, mandatory, param, offset: 0, len, crc: crc32c(bytes) }
        };
        let (mut file, placed) = layout::encode_file(&TFRC, header, all.iter().map(section).collect());
        for ((.., bytes), section) in all.iter().zip(placed) {
            // In memory already, so it fits into a usize.
            file.resize(section.offset as usize, 0);
            file.extend(*bytes);
        }
        file
    }
}
