//! `EpisodeTable`: the places of each step's values in the payload of an episode, with their checksums.
//!
//! ```text
//! u32 crc32c of the rest | u32 number of steps | one place for each key | parts, key after key
//! place    u8 form, 3 zero bytes | u32 start | u32 len            of the list's values in the payload
//! part     1 uniform   u32 stride | u32 crc32c of each unit of max(1, ceil(256 / stride)) rows
//!          2 table     { u32 end, u32 crc32c } of each row; the end is relative to the start of the list
//!          3 constant  u32 bytes of a row | u32 crc32c of the first row
//!          4 whole     u32 crc32c of the list
//!          0 absent, 5 irregular   nothing
//! ```
//!
//! All integers are little-endian. A *row* is what a list has for one step: packed numbers, or encoded byte
//! strings with their tags and lengths. The normative page is `docs/index.md`.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::keys::{EpisodeKeys, ResolvedKey, ResolvedValues};
use std::ops::Range;
use tfseek::crc::crc32c;
use tfseek::example::DType;
use tfseek::io::Region;

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListForm {
    /// The record does not have the feature, or it has no values.
    Absent,
    /// All rows have this number of bytes.
    Uniform { stride: u32, unit: u32 },
    /// Rows end at any byte.
    Table,
    /// All rows are the same bytes.
    Constant { row: u32 },
    /// Rows are found by reading the list.
    Whole,
    /// The list is not one slice of the payload.
    Irregular,
}

pub(crate) const ABSENT: u8 = 0;
pub(crate) const UNIFORM: u8 = 1;
pub(crate) const TABLE: u8 = 2;
pub(crate) const CONSTANT: u8 = 3;
pub(crate) const WHOLE: u8 = 4;
pub(crate) const IRREGULAR: u8 = 5;

/// Why a table that ends too early is refused.
const CUT: &str = "the table of an episode is too short";

/// Bytes before the places, and bytes of a place.
pub(crate) const HEAD: usize = 8;
pub(crate) const PLACE: usize = 12;

/// Bytes of rows that a checksum covers, at least.
const UNIT_BYTES: u32 = 256;

/// Returns the number of rows that a checksum covers.
pub(crate) fn unit_rows(stride: u32) -> u32 {
    UNIT_BYTES.div_ceil(stride.max(1)).max(1)
}

/// The place of a key's list in the payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListPlace {
    pub(crate) form: ListForm,
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// Offset of the checksums in the table.
    part: u32,
}

/// The places of each step's values in the payload of an episode, with their checksums.
///
/// It is made of one payload by [`EpisodeTable::of`], and stored in files of `docs/index.md`. It takes 8
/// bytes for each picture of a step, and 4 for each 256 bytes of numbers. With the checksum of the record
/// alone, a random step would read a hundred times its bytes.
#[derive(Debug)]
pub struct EpisodeTable {
    bytes: Region,
    steps: u32,
    places: Box<[ListPlace]>,
}

/// Bytes of the payload whose checksum a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckedBytes {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) crc: u32,
    /// The number of the key, and the first and the last step of the bytes, for errors.
    pub(crate) key: u16,
    pub(crate) steps: (u32, u32),
}

/// Returns true if a list of `len` bytes can have a form, and has bytes for the values of all steps.
fn fits(key: &ResolvedKey, form: ListForm, steps: u32, len: u32) -> bool {
    let width = match key.values {
        ResolvedValues::Steps { width } => width,
        // Rows of other lists are found by reading them.
        _ => return matches!(form, ListForm::Absent | ListForm::Whole | ListForm::Irregular),
    };
    // Bytes of a value: exactly, or at least.
    let (exact, least) = match key.kind {
        DType::Float32 => (true, 4),
        DType::Int64 => (false, 1),
        DType::Bytes => (false, 2),
    };
    let row = u64::from(width).saturating_mul(least);
    let all = row.saturating_mul(steps.into());
    let len = u64::from(len);
    match form {
        ListForm::Absent | ListForm::Irregular => true,
        ListForm::Whole if exact => all == len,
        ListForm::Whole => all <= len,
        ListForm::Uniform { stride, .. } if key.kind == DType::Bytes => width > 0 && u64::from(stride) >= row,
        ListForm::Uniform { stride, .. } => u64::from(stride) == row,
        ListForm::Table | ListForm::Constant { .. } => key.kind == DType::Bytes && width > 0 && all <= len,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

impl EpisodeTable {
    /// Reads a table of the keys of a payload with `payload_len` bytes. The error is the reason why the table
    /// is refused.
    pub(crate) fn read(
        bytes: Region,
        keys: &EpisodeKeys,
        payload_len: u64,
    ) -> Result<EpisodeTable, &'static str> {
        let (stored, rest) = bytes.split_first_chunk().ok_or(CUT)?;
        if crc32c(rest) != u32::from_le_bytes(*stored) {
            return Err("the table of an episode: crc32c mismatch");
        }
        let steps = u32_at(&bytes, 4).ok_or(CUT)?;
        let mut part = keys.len().checked_mul(PLACE).and_then(|all| all.checked_add(HEAD)).ok_or(CUT)?;
        // Each counted value has at least a byte. The number of steps is the size of memory.
        if u64::from(steps) > payload_len {
            return Err("there are more steps than bytes of the payload");
        }
        let mut places = Vec::new();
        places.try_reserve_exact(keys.len()).map_err(|_| "there is not enough memory")?;
        let (stored_places, _) = bytes.get(HEAD..).ok_or(CUT)?.as_chunks::<PLACE>();
        for (k, key) in keys.all().iter().enumerate() {
            let stored_place = stored_places.get(k).ok_or(CUT)?;
            let ([[form, ..], start, len], _) = stored_place.as_chunks::<4>() else { return Err(CUT) };
            let start = u32::from_le_bytes(*start);
            let len = u32::from_le_bytes(*len);
            // The ends of rows are u32, so the end of a list is one too.
            if start.checked_add(len).is_none_or(|end| u64::from(end) > payload_len) {
                return Err("a list ends after its payload, or after 4 GiB of it");
            }
            let (form, size) = EpisodeTable::form(&bytes, *form, steps, len, part)?;
            if !fits(key, form, steps, len) {
                return Err("a list has a form that its feature cannot have");
            }
            let place = ListPlace { form, start, len, part: u32::try_from(part).map_err(|_| CUT)? };
            part = part.checked_add(size).filter(|end| *end <= bytes.len()).ok_or(CUT)?;
            places.push(place);
        }
        if part != bytes.len() {
            return Err("the table of an episode is too long");
        }
        Ok(EpisodeTable { bytes, steps, places: places.into() })
    }

    /// Returns the form of a list whose part begins at `part`, and the bytes of the part.
    fn form(
        bytes: &[u8],
        form: u8,
        steps: u32,
        len: u32,
        part: usize,
    ) -> Result<(ListForm, usize), &'static str> {
        const BAD: &str = "the rows of a list are not its bytes";
        let first = || u32_at(bytes, part).ok_or(CUT);
        let rows_fill = |row: u32| u64::from(row).checked_mul(steps.into()) == Some(len.into());
        Ok(match form {
            ABSENT => (ListForm::Absent, 0),
            UNIFORM => {
                let stride = first()?;
                let unit = unit_rows(stride);
                if stride == 0 || !rows_fill(stride) {
                    return Err(BAD);
                }
                let units = steps.div_ceil(unit) as usize;
                (ListForm::Uniform { stride, unit }, units.saturating_add(1).saturating_mul(4))
            }
            TABLE => {
                let size = (steps as usize).saturating_mul(8);
                let rows = bytes.get(part..).and_then(|rest| rest.get(..size)).ok_or(CUT)?;
                // The ends of the rows ascend to the end of the list.
                let mut ends = rows.as_chunks::<4>().0.iter().step_by(2).map(|end| u32::from_le_bytes(*end));
                if ends.try_fold(0, |last, end| (last <= end).then_some(end)) != Some(len) {
                    return Err(BAD);
                }
                (ListForm::Table, size)
            }
            CONSTANT => {
                let row = first()?;
                if !rows_fill(row) {
                    return Err(BAD);
                }
                (ListForm::Constant { row }, 8)
            }
            WHOLE => (ListForm::Whole, 4),
            IRREGULAR => (ListForm::Irregular, 0),
            _ => return Err("a list of an unknown form"),
        })
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the place of a key's list.
    pub(crate) fn place(&self, key: usize) -> ListPlace {
        const NOWHERE: ListPlace = ListPlace { form: ListForm::Irregular, start: 0, len: 0, part: 0 };
        self.places.get(key).copied().unwrap_or(NOWHERE)
    }

    /// Returns the bytes of the row of a step, without the bytes of the list before it. `None` for a list
    /// whose rows are found by reading it.
    #[inline]
    pub(crate) fn row(&self, key: usize, step: u32) -> Option<Range<u32>> {
        let place = self.place(key);
        let (from, to) = match place.form {
            ListForm::Uniform { stride, .. } => {
                let from = stride.checked_mul(step)?;
                (from, from.checked_add(stride)?)
            }
            ListForm::Constant { row } => (0, row),
            ListForm::Table => {
                let from = match step.checked_sub(1) {
                    Some(before) => self.entry(place, before, 0)?,
                    None => 0,
                };
                (from, self.entry(place, step, 0)?)
            }
            _ => return None,
        };
        if from > to || to > place.len {
            return None;
        }
        Some(place.start.checked_add(from)?..place.start.checked_add(to)?)
    }

    /// Returns word `word` of the entry of a row.
    #[inline]
    fn entry(&self, place: ListPlace, row: u32, word: usize) -> Option<u32> {
        let at = (place.part as usize).checked_add((row as usize).checked_mul(8)?)?;
        u32_at(&self.bytes, at.checked_add(word.checked_mul(4)?)?)
    }

    /// Returns the bytes to verify before the row of a step is used. `None` if there are none, or if the
    /// whole record has to be verified.
    #[inline]
    pub(crate) fn checked_row(&self, key: usize, step: u32) -> Option<CheckedBytes> {
        let place = self.place(key);
        let part = place.part as usize;
        let all = (0, self.steps.saturating_sub(1));
        let (range, crc, steps) = match place.form {
            ListForm::Uniform { stride, unit } => {
                let number = step.checked_div(unit)?;
                let first = number.checked_mul(unit)?;
                let rows = unit.min(self.steps.checked_sub(first)?);
                let from = place.start.checked_add(first.checked_mul(stride)?)?;
                let to = from.checked_add(rows.checked_mul(stride)?)?;
                let crc = u32_at(
                    &self.bytes,
                    part.checked_add(4)?.checked_add((number as usize).checked_mul(4)?)?,
                )?;
                (from..to, crc, (first, first.saturating_add(rows.saturating_sub(1))))
            }
            ListForm::Table => (self.row(key, step)?, self.entry(place, step, 1)?, (step, step)),
            ListForm::Constant { .. } => (self.row(key, 0)?, u32_at(&self.bytes, part.checked_add(4)?)?, all),
            ListForm::Whole => {
                (place.start..place.start.checked_add(place.len)?, u32_at(&self.bytes, part)?, all)
            }
            ListForm::Absent | ListForm::Irregular => return None,
        };
        Some(CheckedBytes { start: range.start, end: range.end, crc, key: key as u16, steps })
    }

    /// Calls `f` with the bytes to verify before any row of a key is used.
    pub(crate) fn checked_list(&self, key: usize, mut f: impl FnMut(CheckedBytes)) {
        let step = match self.place(key).form {
            ListForm::Uniform { unit, .. } => unit.max(1),
            ListForm::Table => 1,
            _ => return self.checked_row(key, 0).into_iter().for_each(f),
        };
        for at in (0..self.steps).step_by(step as usize) {
            self.checked_row(key, at).into_iter().for_each(&mut f);
        }
    }
}

impl AsRef<[u8]> for EpisodeTable {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
