//! From a payload to the table of its episode.

use super::keys::{EpisodeKeys, ResolvedKey, ResolvedValues};
use super::table::{
    ABSENT, CONSTANT, EpisodeTable, HEAD, IRREGULAR, PLACE, TABLE, UNIFORM, WHOLE, unit_rows,
};
use crate::crc::crc32c;
use crate::error::{Error, ErrorKind, Result};
use crate::example::{DType, Feature, MapEntries, VALUE_DEPTH, ValueMessage, packed};
use crate::io::Region;
use crate::memory::room;
use tfseek_wire::{MAX_LEN, WireReader};

/// The list of a key that was found.
#[derive(Clone, Copy, Default)]
enum FoundList<'a> {
    #[default]
    Absent,
    /// The values in one slice, its offset in the payload, and the number of values.
    Slice { bytes: &'a [u8], start: usize, values: usize },
    /// The number of values.
    Scattered { values: usize },
}

impl FoundList<'_> {
    fn values(&self) -> Option<usize> {
        match *self {
            FoundList::Absent => None,
            FoundList::Slice { values, .. } | FoundList::Scattered { values } => Some(values),
        }
    }
}

impl EpisodeTable {
    /// Makes the table of a payload. The lists of all keys are validated, other features are not. Features
    /// with other numbers of steps are an error: to cut the longer list, or to guess which one is right,
    /// would pair actions with other pictures.
    ///
    /// # Errors
    /// [`ErrorKind::Wire`] for a payload that is no message, and [`ErrorKind::Value`] for features with other
    /// numbers of steps.
    pub fn of(payload: &[u8], keys: &EpisodeKeys) -> Result<EpisodeTable> {
        if payload.len() as u64 > MAX_LEN {
            return Err(ErrorKind::TooLarge { len: payload.len() as u128, limit: MAX_LEN }.into());
        }
        let mut found = Vec::new();
        found.try_reserve_exact(keys.len())?;
        found.resize(keys.len(), FoundList::Absent);
        let mut entries = MapEntries::new(payload, 1, false);
        while let Some(entry) = entries.next()? {
            let Some(k) = keys.find(entry.key) else { continue };
            let (Some(key), Some(slot)) = (keys.all().get(k), found.get_mut(k)) else { continue };
            let list = list_of(entry.value, key.kind).map_err(|e| e.feature(key.name.as_bytes()))?;
            // The last entry counts. A table of an earlier one would be wrong.
            *slot = match (&slot, list) {
                (FoundList::Absent, list) | (_, list @ FoundList::Absent) => list,
                (_, FoundList::Slice { values, .. } | FoundList::Scattered { values }) => {
                    FoundList::Scattered { values }
                }
            };
        }
        let steps = count_steps(keys, &found)?;
        let mut out = Vec::new();
        out.try_reserve(HEAD + keys.len() * PLACE)?;
        out.extend([0; 4]);
        out.extend(steps.to_le_bytes());
        let mut parts = Vec::new();
        for (key, list) in keys.all().iter().zip(&found) {
            let (form, start, len) = part_of(key, *list, steps, &mut parts)?;
            out.extend([form, 0, 0, 0]);
            out.extend((start as u32).to_le_bytes());
            out.extend((len as u32).to_le_bytes());
        }
        out.try_reserve_exact(parts.len())?;
        out.extend(parts);
        if let Some((to, rest)) = out.split_first_chunk_mut() {
            *to = crc32c(rest).to_le_bytes();
        }
        let places = room(keys.len())?;
        let read = EpisodeTable::read(Region::from(out), keys, payload.len() as u64, places);
        read.map_err(|reason| ErrorKind::Value { reason: reason.into() }.into())
    }
}

/// Returns the list of a feature, which is validated.
fn list_of(value: ValueMessage<'_>, kind: DType) -> Result<FoundList<'_>> {
    let feature = Feature::check(value, VALUE_DEPTH)?;
    let scattered = FoundList::Scattered { values: feature.len() };
    let (Some(message), Some(found)) = (value.as_one(), feature.kind()) else {
        return Ok(if feature.kind().is_none() { FoundList::Absent } else { scattered });
    };
    if found != kind {
        return Ok(scattered);
    }
    let slice = match kind {
        DType::Bytes => strings(message),
        _ => packed(message, kind),
    };
    Ok(match slice {
        Some([]) => FoundList::Slice { bytes: &[], start: value.start(), values: feature.len() },
        Some(bytes) => FoundList::Slice { bytes, start: value.start_of_tail(bytes), values: feature.len() },
        None => scattered,
    })
}

/// Returns the encoded byte strings of a feature that is one list, if all fields of the list are byte
/// strings.
fn strings(message: &[u8]) -> Option<&[u8]> {
    let mut feature = WireReader::new(message);
    let list = feature.take_field(0x0a)?;
    let mut values = WireReader::new(list);
    while !values.is_empty() {
        values.take_field(0x0a)?;
    }
    feature.is_empty().then_some(list)
}

/// Returns the number of steps, which all features with a known number of values agree about.
fn count_steps(keys: &EpisodeKeys, found: &[FoundList<'_>]) -> Result<u32> {
    let mut known: Option<(&ResolvedKey, u32)> = None;
    for (key, list) in keys.all().iter().zip(found) {
        let (Some(width), Some(values)) = (key.counts(), list.values()) else { continue };
        let width = width as usize;
        let fits = values.checked_rem(width) == Some(0);
        let steps = values.checked_div(width).and_then(|steps| u32::try_from(steps).ok()).filter(|_| fits);
        let Some(steps) = steps else {
            let reason = format!("expected {width} values for each step, found {values} values");
            return Err(Error::from(ErrorKind::Value { reason: reason.into() }).feature(key.name.as_bytes()));
        };
        match known {
            None => known = Some((key, steps)),
            Some((other, expected)) if expected != steps => {
                let reason = format!(
                    "expected features of one number of steps, found {expected} of {:?} and {steps} of {:?}",
                    other.name, key.name
                );
                return Err(
                    Error::from(ErrorKind::Value { reason: reason.into() }).feature(key.name.as_bytes())
                );
            }
            Some(_) => {}
        }
    }
    Ok(known.map_or(0, |(_, steps)| steps))
}

/// Appends the part of a key, and returns the form and the place of its list.
fn part_of(
    key: &ResolvedKey,
    list: FoundList<'_>,
    steps: u32,
    parts: &mut Vec<u8>,
) -> Result<(u8, usize, usize)> {
    let (bytes, start, values) = match list {
        FoundList::Absent => return Ok((ABSENT, 0, 0)),
        FoundList::Scattered { .. } => return Ok((IRREGULAR, 0, 0)),
        FoundList::Slice { bytes, start, values } => (bytes, start, values),
    };
    let stride = match (&key.values, key.kind) {
        (ResolvedValues::Steps { width }, DType::Float32) => width.checked_mul(4),
        // Each value is one byte.
        (ResolvedValues::Steps { width }, DType::Int64) if values == bytes.len() => Some(*width),
        (ResolvedValues::Steps { width }, DType::Bytes) if *width > 0 => {
            return string_rows(bytes, start, *width, steps, parts);
        }
        _ => None,
    };
    match stride {
        Some(stride) if stride > 0 => {
            uniform(bytes, stride, parts)?;
            Ok((UNIFORM, start, bytes.len()))
        }
        _ => {
            parts.extend(crc32c(bytes).to_le_bytes());
            Ok((WHOLE, start, bytes.len()))
        }
    }
}

/// Appends the stride, and the checksum of each unit.
fn uniform(bytes: &[u8], stride: u32, parts: &mut Vec<u8>) -> Result<()> {
    let unit = unit_rows(stride) as usize * stride as usize;
    parts.try_reserve(4 + bytes.len().div_ceil(unit) * 4)?;
    parts.extend(stride.to_le_bytes());
    parts.extend(bytes.chunks(unit).flat_map(|unit| crc32c(unit).to_le_bytes()));
    Ok(())
}

/// Appends the part of byte strings, `width` for each step.
fn string_rows(
    bytes: &[u8],
    start: usize,
    width: u32,
    steps: u32,
    parts: &mut Vec<u8>,
) -> Result<(u8, usize, usize)> {
    let place = |form| Ok((form, start, bytes.len()));
    // The rows are read twice: to see their form, and for their checksums.
    let rows = || StringRows { rest: WireReader::new(bytes), width };
    let first = rows().next().unwrap_or(&[]);
    let stride = u32::try_from(first.len()).ok().filter(|stride| *stride > 0);
    if rows().all(|row| row == first) {
        parts.extend((first.len() as u32).to_le_bytes());
        parts.extend(crc32c(first).to_le_bytes());
        return place(CONSTANT);
    }
    match stride {
        Some(stride) if rows().all(|row| row.len() == first.len()) => {
            uniform(bytes, stride, parts)?;
            place(UNIFORM)
        }
        _ => {
            parts.try_reserve((steps as usize).saturating_mul(8))?;
            let mut end = 0u32;
            for row in rows() {
                end += row.len() as u32;
                parts.extend(end.to_le_bytes());
                parts.extend(crc32c(row).to_le_bytes());
            }
            place(TABLE)
        }
    }
}

/// The rows of encoded byte strings.
struct StringRows<'a> {
    rest: WireReader<'a>,
    width: u32,
}

impl<'a> Iterator for StringRows<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let before = self.rest.rest();
        if before.is_empty() {
            return None;
        }
        for _ in 0..self.width {
            self.rest.take_field(0x0a)?;
        }
        before.get(..before.len() - self.rest.rest().len())
    }
}
