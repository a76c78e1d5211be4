//! The sections of a file of tables. The normative page is `docs/index.md`.
//!
//! ```text
//! 32 KEYS      the features: u32 count, and for each u8 kind, u8 role, u8 number of lengths, 0 | u32 width | u32 name len | u16 lengths | name
//! 33 EPISODES  blocked table: the number of the first step of record i, and the number of all steps
//! 34 PLACES    blocked table: the offset of the table of record i, and the length of TABLES
//! 35 TABLES    the tables, one after the other. Each has its own crc, the section has none
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::index::layout::{self, CHECKED, IndexHeader, Refusal, Section, TFRS};

pub(super) const KEYS: u32 = 32;
pub(super) const EPISODES: u32 = 33;
pub(super) const PLACES: u32 = 34;
pub(super) const TABLES: u32 = 35;

/// The table entries of a file's sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepSections {
    pub(super) keys: Section,
    pub(super) episodes: Section,
    pub(super) places: Section,
    pub(super) tables: Section,
}

/// Decodes the header and the section table of a file of `file_len` bytes that starts with `prefix`, in O(1).
pub(super) fn decode(prefix: &[u8], file_len: u64) -> Result<(IndexHeader, StepSections), Refusal> {
    let (header, all) = layout::decode_file(prefix, file_len, &TFRS)?;
    if !header.has(CHECKED) {
        return Err("the flag checked is not set".into());
    }
    let [mut keys, mut episodes, mut places, mut tables] = [None; 4];
    for section in all {
        let entry = match section.kind {
            KEYS => &mut keys,
            EPISODES => &mut episodes,
            PLACES => &mut places,
            TABLES => &mut tables,
            _ => {
                layout::unknown(&section)?;
                continue;
            }
        };
        *entry = Some(section);
    }
    let (Some(keys), Some(episodes), Some(places), Some(tables)) = (keys, episodes, places, tables) else {
        return Err("a mandatory section is missing".into());
    };
    Ok((header, StepSections { keys, episodes, places, tables }))
}

/// Returns the section table of a new file, and its first bytes.
pub(super) fn encode(header: &IndexHeader, sections: [(u32, u16, u64, u32); 4]) -> (Vec<u8>, Vec<Section>) {
    let section = |(kind, param, len, crc)| Section { kind, mandatory: true, param, offset: 0, len, crc };
    layout::encode_file(&TFRS, header, sections.map(section).to_vec())
}
