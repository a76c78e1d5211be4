//! The sections of a sidecar: which there are, and how long each must be. The normative page is `docs/index.md`, section 5.

use super::layout::{GAPS, Header, Refusal, Section, TFRI, decode_file, encode_file, unknown};
use super::offsets::{BLOCK, BLOCK_ENTRY};

/// Where the records start; always there.
pub(crate) const OFFSETS: u32 = 1;
/// The payload lengths; there if and only if damage was skipped.
pub(crate) const LENGTHS: u32 = 2;

/// The sections of a sidecar that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
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
pub(crate) fn decode(prefix: &[u8], file_len: u64) -> Result<(Header, Sections), Refusal> {
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
    Ok((header, Sections { offsets, lengths }))
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
        assert_eq!(sections, Sections { offsets: placed[0], lengths: None });
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
