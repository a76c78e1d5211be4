//! From a payload to the table of its episode.

use crate::keys::{EpisodeKeys, ResolvedKey, ResolvedValues, wrong};
use crate::table::{
    ABSENT, CONSTANT, EpisodeTable, HEAD, IRREGULAR, PLACE, TABLE, UNIFORM, WHOLE, unit_rows,
};
use tfseek::crc::crc32c;
use tfseek::error::{ErrorKind, Result, WireError};
use tfseek::example::{DType, Example};
use tfseek::io::Region;
use tfseek_wire::{MAX_LEN, WireReader, WireValue, count_floats, varint};

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
        let mut found = vec![FoundList::Absent; keys.len()];
        for_each_entry(payload, |name, value| {
            let Some(k) = keys.find(name) else { return Ok(()) };
            let (Some(key), Some(slot)) = (keys.all().get(k), found.get_mut(k)) else { return Ok(()) };
            let list = match value.and_then(|(value, start)| list_of(value, start, key.kind)) {
                Some(list) => list,
                None => unusual(payload, &key.name)?,
            };
            // The last entry counts. A table of an earlier one would be wrong.
            *slot = match (&slot, list.values()) {
                (FoundList::Absent, _) | (_, None) => list,
                (_, Some(values)) => FoundList::Scattered { values },
            };
            Ok(())
        })?;
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
        let read = EpisodeTable::read(Region::from(out), keys, payload.len() as u64);
        read.map_err(wrong)
    }
}

/// Calls `f` with the key of each entry of an Example, in wire order, and with its value and the offset of the
/// value in the payload. `None` for values that are merged.
fn for_each_entry<'a>(
    payload: &'a [u8],
    mut f: impl FnMut(&'a [u8], Option<(&'a [u8], usize)>) -> Result<()>,
) -> Result<()> {
    let mut reader = WireReader::new(payload);
    while let Some(field) = reader.next()? {
        let (1, WireValue::Len(features)) = field else { continue };
        let mut features = reader.nested(features);
        while let Some(field) = features.next()? {
            let (1, WireValue::Len(bytes)) = field else { continue };
            let start = features.start_of(bytes);
            let mut entry = features.nested(bytes);
            let (mut key, mut value, mut values) = (&[][..], (&[][..], start), 0usize);
            while let Some(field) = entry.next()? {
                match field {
                    (1, WireValue::Len(bytes)) => key = bytes,
                    (2, WireValue::Len(bytes)) => {
                        value = (bytes, entry.start_of(bytes));
                        values += 1;
                    }
                    _ => {
                        let reason = WireError::MapEntryUnknownField;
                        return Err(ErrorKind::Wire { reason, offset: start }.into());
                    }
                }
            }
            f(key, (values <= 1).then_some(value))?;
        }
    }
    Ok(())
}

/// Returns the list of a feature that is encoded as usual. `None` if it is not, or is not valid.
fn list_of(message: &[u8], start: usize, kind: DType) -> Option<FoundList<'_>> {
    if message.is_empty() {
        return Some(FoundList::Absent);
    }
    let tag = match kind {
        DType::Bytes => 0x0a,
        DType::Float32 => 0x12,
        DType::Int64 => 0x1a,
    };
    let mut feature = WireReader::new(message);
    let mut list = WireReader::new(feature.take_field(tag).filter(|_| feature.is_empty())?);
    let bytes = match kind {
        DType::Bytes => list.rest(),
        _ if list.is_empty() => &[],
        _ => list.take_field(0x0a).filter(|_| list.is_empty())?,
    };
    let values = match kind {
        DType::Bytes => {
            let count = std::iter::from_fn(|| list.take_field(0x0a)).count();
            list.is_empty().then_some(count)?
        }
        DType::Float32 => count_floats(bytes).ok()?,
        DType::Int64 => varint::count(bytes).ok()?,
    };
    // The bytes are the end of the message.
    let start = if bytes.is_empty() { start } else { start + message.len() - bytes.len() };
    Some(FoundList::Slice { bytes, start, values })
}

/// Returns the list of a feature that is not encoded as usual: the last one of this name counts.
#[cold]
fn unusual(payload: &[u8], name: &str) -> Result<FoundList<'static>> {
    let feature = Example::new(payload).get(name)?.unwrap_or_default();
    Ok(match feature.kind() {
        None => FoundList::Absent,
        Some(_) => FoundList::Scattered { values: feature.len() },
    })
}

/// Returns the number of steps, which all features with a known number of values agree about.
fn count_steps(keys: &EpisodeKeys, found: &[FoundList<'_>]) -> Result<u32> {
    let mut known: Option<(&ResolvedKey, u32)> = None;
    for (key, list) in keys.all().iter().zip(found) {
        let (Some(width), Some(values)) = (key.counts(), list.values()) else { continue };
        let width = width as usize;
        let steps = u32::try_from(values / width).ok().filter(|_| values % width == 0);
        let reason = match (steps, known) {
            (None, _) => format!("expected {width} values for each step, found {values} values"),
            (Some(steps), Some((other, expected))) if expected != steps => format!(
                "expected features of one number of steps, found {expected} of {:?} and {steps} of {:?}",
                other.name, key.name
            ),
            (Some(steps), _) => {
                known.get_or_insert((key, steps));
                continue;
            }
        };
        return Err(wrong(reason).feature(key.name.as_bytes()));
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
