//! Naive twins of the decoders: owned, slow and obviously correct. Their results define the meaning of the
//! bytes.
//!
//! The decoder implements protobuf's rules (W1 to W13 of docs/format.md) directly: a message is first split
//! into all its fields, then decoded. It reports only *that* a payload is refused, not the reason.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// The error for a refused payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

pub type Result<T> = std::result::Result<T, Refused>;

/// A feature. Floats are stored as bits, to compare the payloads of NaNs as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Feature {
    #[default]
    None,
    Bytes(Vec<Vec<u8>>),
    Float(Vec<u32>),
    Int64(Vec<i64>),
}

/// A key as bytes, because a lazy lookup accepts keys that are not UTF-8.
pub type Key = Vec<u8>;

/// A map field: its entries in wire order, and the map that they define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedMap<V> {
    pub entries: Vec<(Key, V)>,
    pub map: BTreeMap<Key, V>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub context: DecodedMap<Feature>,
    pub lists: DecodedMap<Vec<Feature>>,
}

/// Options of the decoder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'k> {
    /// Ignore unknown fields in map entries. Otherwise they are refused (R6).
    pub lenient: bool,
    /// Decode only the values of this key, as a lazy lookup does (R4). All entries must still be framed, and
    /// keys need not be UTF-8.
    pub only: Option<&'k [u8]>,
}

pub fn example(payload: &[u8], rules: Rules<'_>) -> Result<DecodedMap<Feature>> {
    map_field(payload, 1, rules, &|value, into: &mut Feature, depth| feature(value, into, depth))
}

pub fn feature_lists(payload: &[u8], rules: Rules<'_>) -> Result<DecodedMap<Vec<Feature>>> {
    map_field(payload, 2, rules, &|value, into: &mut Vec<Feature>, depth| {
        for (number, step) in fields(value, depth)? {
            if let (1, Value::Len(step)) = (number, step) {
                let mut decoded = Feature::None;
                feature(step, &mut decoded, depth + 1)?;
                into.push(decoded);
            }
        }
        Ok(())
    })
}

pub fn sequence(payload: &[u8], rules: Rules<'_>) -> Result<Sequence> {
    Ok(Sequence { context: example(payload, rules)?, lists: feature_lists(payload, rules)? })
}

/// A function that merges a value's message into the value that its entry has so far. The number is the depth
/// of the message below the payload.
type Merge<'f, V> = &'f dyn Fn(&[u8], &mut V, usize) -> Result<()>;

fn map_field<V: Clone + Default>(
    payload: &[u8],
    field: u32,
    rules: Rules<'_>,
    merge: Merge<'_, V>,
) -> Result<DecodedMap<V>> {
    let mut out = DecodedMap { entries: Vec::new(), map: BTreeMap::new() };
    for (number, message) in fields(payload, 0)? {
        let Value::Len(message) = message else { continue };
        if number != field {
            continue;
        }
        for (number, entry) in fields(message, 1)? {
            let Value::Len(entry) = entry else { continue };
            if number != 1 {
                continue;
            }
            let (mut key, mut values) = (&[][..], Vec::new());
            for field in fields(entry, 2)? {
                match field {
                    (1, Value::Len(bytes)) => {
                        if rules.only.is_none() && std::str::from_utf8(bytes).is_err() {
                            return Err(Refused);
                        }
                        key = bytes;
                    }
                    (2, Value::Len(value)) => values.push(value),
                    _ if rules.lenient => {}
                    _ => return Err(Refused),
                }
            }
            if rules.only.is_some_and(|only| only != key) {
                continue;
            }
            let mut value = V::default();
            for message in values {
                merge(message, &mut value, 3)?;
            }
            out.entries.push((key.to_vec(), value.clone()));
            out.map.insert(key.to_vec(), value);
        }
    }
    Ok(out)
}

fn feature(message: &[u8], into: &mut Feature, depth: usize) -> Result<()> {
    for (number, list) in fields(message, depth)? {
        let Value::Len(list) = list else { continue };
        match (number, &*into) {
            (1, Feature::Bytes(_)) | (2, Feature::Float(_)) | (3, Feature::Int64(_)) => {}
            (1, _) => *into = Feature::Bytes(Vec::new()),
            (2, _) => *into = Feature::Float(Vec::new()),
            (3, _) => *into = Feature::Int64(Vec::new()),
            _ => continue,
        }
        for (number, value) in fields(list, depth + 1)? {
            if number != 1 {
                continue;
            }
            match (&mut *into, value) {
                (Feature::Bytes(values), Value::Len(value)) => values.push(value.to_vec()),
                (Feature::Int64(values), Value::Varint(value)) => values.push(value as i64),
                (Feature::Int64(values), Value::Len(mut chunk)) => {
                    while !chunk.is_empty() {
                        values.push(varint(&mut chunk)? as i64);
                    }
                }
                (Feature::Float(values), Value::Fixed32(value)) => values.push(u32::from_le_bytes(value)),
                (Feature::Float(values), Value::Len(chunk)) => {
                    if chunk.len() % 4 != 0 {
                        return Err(Refused);
                    }
                    for k in (0..chunk.len()).step_by(4) {
                        values.push(u32::from_le_bytes(chunk[k..k + 4].try_into().unwrap()));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

pub enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Len(&'a [u8]),
    Group,
    Fixed32([u8; 4]),
}

/// Returns all fields of a message that is `depth` levels below the payload.
pub fn fields(message: &[u8], depth: usize) -> Result<Vec<(u32, Value<'_>)>> {
    let mut rest = message;
    let mut all = Vec::new();
    while !rest.is_empty() {
        match field(&mut rest, depth)? {
            (_, None) => return Err(Refused),
            (number, Some(value)) => all.push((number, value)),
        }
    }
    Ok(all)
}

/// Reads the next field. The value `None` is the end of a group.
fn field<'a>(rest: &mut &'a [u8], depth: usize) -> Result<(u32, Option<Value<'a>>)> {
    let tag = short(rest, u64::from(u32::MAX))?;
    let number = (tag >> 3) as u32;
    if number == 0 {
        return Err(Refused);
    }
    let value = match tag & 7 {
        0 => Value::Varint(varint(rest)?),
        1 => Value::Fixed64(take(rest, 8)?.try_into().unwrap()),
        2 => {
            let len = short(rest, (1 << 31) - 1)?;
            Value::Len(take(rest, len as usize)?)
        }
        3 => {
            if depth >= 100 {
                return Err(Refused);
            }
            loop {
                match field(rest, depth + 1)? {
                    (end, None) if end == number => break,
                    (_, None) => return Err(Refused),
                    _ => {}
                }
            }
            Value::Group
        }
        4 => return Ok((number, None)),
        5 => Value::Fixed32(take(rest, 4)?.try_into().unwrap()),
        _ => return Err(Refused),
    };
    Ok((number, Some(value)))
}

pub fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    if len > rest.len() {
        return Err(Refused);
    }
    let (bytes, after) = rest.split_at(len);
    *rest = after;
    Ok(bytes)
}

/// Reads a tag or a length: a varint of at most 5 bytes.
fn short(rest: &mut &[u8], max: u64) -> Result<u64> {
    let before = rest.len();
    let value = varint(rest)?;
    if before - rest.len() > 5 || value > max {
        return Err(Refused);
    }
    Ok(value)
}

pub fn varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0u128;
    for k in 0..10 {
        let byte = take(rest, 1)?[0];
        value |= u128::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Ok(value as u64);
        }
    }
    Err(Refused)
}

/// Computes a CRC32C bit by bit.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

pub fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A record of a file, or the damage in its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Record(Vec<u8>),
    Truncated,
    CorruptLength,
    CorruptData,
}

/// Returns every record, and finally the damage, if the records do not end at the end of the file.
pub fn frames(file: &[u8]) -> Vec<Frame> {
    let mut rest = file;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let frame = frame(&mut rest);
        let damaged = !matches!(frame, Frame::Record(_));
        all.push(frame);
        if damaged {
            break;
        }
    }
    all
}

fn frame(rest: &mut &[u8]) -> Frame {
    let Ok(len) = take(rest, 8) else { return Frame::Truncated };
    let Ok(crc) = take(rest, 4) else { return Frame::Truncated };
    if crc != masked(len).to_le_bytes() {
        return Frame::CorruptLength;
    }
    let Ok(len) = usize::try_from(u64::from_le_bytes(len.try_into().unwrap())) else {
        return Frame::Truncated;
    };
    let Ok(payload) = take(rest, len) else { return Frame::Truncated };
    let Ok(crc) = take(rest, 4) else { return Frame::Truncated };
    if crc != masked(payload).to_le_bytes() {
        return Frame::CorruptData;
    }
    Frame::Record(payload.to_vec())
}

/// Writes the 12-byte header of a record with a payload of `len` bytes. The payload itself need not follow.
pub fn put_header(w: &mut impl Write, len: u64) -> io::Result<()> {
    let len = len.to_le_bytes();
    w.write_all(&len)?;
    w.write_all(&masked(&len).to_le_bytes())
}
