//! A builder of columns: from records to the sections of a file.

#![expect(
    clippy::indexing_slicing,
    reason = "codes are numbers of known strings, and there is a bit for each record"
)]

use super::layout::{ColumnSections, ValueEncoding};
use crate::error::{ErrorKind, FeatureError, Result};
use crate::example::{DType, Feature};
use crate::memory::{room, zeroed};
use std::collections::HashMap;

/// Limit of the bytes of distinct strings in one shard's dictionary. Columns are for labels and keys, and a
/// feature of images that is named by mistake must not fill the memory.
const MAX_DICT: u64 = 1 << 30;

/// A builder of one feature's column. It takes the records in order.
#[derive(Debug, Default)]
pub(super) struct ColumnBuilder {
    n: u64,
    present: Vec<u8>,
    raw: RawValues,
}

/// The values in record order, one per record once there is a first value. A record without a value has 0.
#[derive(Debug, Default)]
enum RawValues {
    #[default]
    None,
    Int(Vec<i64>),
    Float(Vec<u32>),
    /// Codes, numbered by the first occurrence of each string.
    Code {
        codes: Vec<u32>,
        known: HashMap<Box<[u8]>, u32>,
        bytes: u64,
    },
    /// The number of values of each record.
    Count(Vec<u32>),
}

impl RawValues {
    fn kind(&self) -> Option<DType> {
        match self {
            RawValues::None => None,
            RawValues::Int(_) | RawValues::Count(_) => Some(DType::Int64),
            RawValues::Float(_) => Some(DType::Float32),
            RawValues::Code { .. } => Some(DType::Bytes),
        }
    }
}

/// The sections of a column. Codes are sorted and narrowed as the format requires.
pub(super) struct BuiltColumn {
    encoding: ValueEncoding,
    values: Vec<u8>,
    present: Vec<u8>,
    dict: Option<Vec<u8>>,
}

impl BuiltColumn {
    pub(super) fn sections<'a>(&'a self, name: &'a str) -> ColumnSections<'a> {
        let BuiltColumn { encoding, values, present, dict } = self;
        ColumnSections { encoding: *encoding, name, values, present, dict: dict.as_deref(), classes: None }
    }
}

impl ColumnBuilder {
    /// Creates a builder of the numbers of values. It takes features with any number of values, of any kind.
    pub(super) fn of_counts() -> ColumnBuilder {
        ColumnBuilder { raw: RawValues::Count(Vec::new()), ..ColumnBuilder::default() }
    }

    /// Adds the feature of the next record. A feature that is absent, has no kind or has no values counts as
    /// none.
    pub(super) fn push(&mut self, feature: Option<Feature<'_>>) -> Result<()> {
        let feature = feature.filter(|f| !f.is_empty());
        if self.n.is_multiple_of(8) {
            self.present.try_reserve(1)?;
            self.present.push(0);
        }
        match &mut self.raw {
            RawValues::None => {}
            RawValues::Int(values) => values.try_reserve(1)?,
            RawValues::Float(values) => values.try_reserve(1)?,
            RawValues::Code { codes, .. } => codes.try_reserve(1)?,
            RawValues::Count(counts) => counts.try_reserve(1)?,
        }
        match feature {
            Some(feature) => {
                self.push_value(feature)?;
                if let Some(last) = self.present.last_mut() {
                    *last |= 1 << (self.n % 8);
                }
            }
            None => match &mut self.raw {
                RawValues::None => {}
                RawValues::Int(values) => values.push(0),
                RawValues::Float(values) => values.push(0),
                RawValues::Code { codes, .. } => codes.push(0),
                RawValues::Count(counts) => counts.push(0),
            },
        }
        self.n += 1;
        Ok(())
    }

    fn push_value(&mut self, feature: Feature<'_>) -> Result<()> {
        if let RawValues::Count(counts) = &mut self.raw {
            let len = feature.len() as u64;
            let limit = u64::from(u32::MAX);
            counts.push(u32::try_from(len).map_err(|_| ErrorKind::TooLarge { len: len.into(), limit })?);
            return Ok(());
        }
        if feature.len() != 1 {
            return Err(FeatureError::Count { expected: 1, found: feature.len() }.into());
        }
        if let (RawValues::None, Some(kind)) = (&self.raw, feature.kind()) {
            // A shard has at most one record per 16 bytes, so this takes at most half of the shard's size.
            let n = self.n;
            self.raw = match kind {
                DType::Int64 => RawValues::Int(zeroed(n)?),
                DType::Float32 => RawValues::Float(zeroed(n)?),
                DType::Bytes => RawValues::Code { codes: zeroed(n)?, known: HashMap::new(), bytes: 0 },
            };
        }
        match (&mut self.raw, feature) {
            (RawValues::Int(values), Feature::Int64(list)) => values.push(list.first().unwrap_or_default()),
            (RawValues::Float(values), Feature::Float(list)) => {
                values.push(list.first().unwrap_or_default().to_bits())
            }
            (RawValues::Code { codes, known, bytes }, Feature::Bytes(list)) => {
                codes.push(code(known, bytes, list.first().unwrap_or_default())?);
            }
            (raw, feature) => {
                let name = |kind: Option<DType>| kind.map_or("no kind", DType::list_name);
                let expected = name(raw.kind());
                let found = name(feature.kind());
                return Err(FeatureError::WrongKind { expected, found }.into());
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<BuiltColumn> {
        let present = self.present;
        let (encoding, values, dict) = match self.raw {
            // A shard without any value has the encoding int64.
            RawValues::None => (ValueEncoding::Int64, zeroed(self.n * 8)?, None),
            RawValues::Int(values) => (ValueEncoding::Int64, bytes_of(values, i64::to_le_bytes)?, None),
            RawValues::Float(values) => (ValueEncoding::Float, bytes_of(values, u32::to_le_bytes)?, None),
            RawValues::Count(counts) => (ValueEncoding::Count, bytes_of(counts, u32::to_le_bytes)?, None),
            RawValues::Code { codes, known, bytes } => {
                let (dict, renumbered) = dictionary(known, bytes)?;
                let encoding = ValueEncoding::for_codes(renumbered.len());
                let mut values = room(codes.len() * encoding.width())?;
                for (i, code) in codes.into_iter().enumerate() {
                    let has = present[i / 8] >> (i % 8) & 1 == 1;
                    let code = if has { renumbered[code as usize] } else { 0 };
                    values.extend(&code.to_le_bytes()[..encoding.width()]);
                }
                (encoding, values, Some(dict))
            }
        };
        Ok(BuiltColumn { encoding, values, present, dict })
    }
}

/// Returns numbers as little-endian bytes.
fn bytes_of<T, const N: usize>(values: Vec<T>, le_bytes: impl Fn(T) -> [u8; N]) -> Result<Vec<u8>> {
    let mut bytes = room(values.len() * N)?;
    bytes.extend(values.into_iter().flat_map(le_bytes));
    Ok(bytes)
}

fn code(known: &mut HashMap<Box<[u8]>, u32>, bytes: &mut u64, string: &[u8]) -> Result<u32> {
    if let Some(&code) = known.get(string) {
        return Ok(code);
    }
    let len = *bytes + string.len() as u64;
    let next = u32::try_from(known.len()).ok().filter(|_| len <= MAX_DICT);
    let next = next.ok_or(ErrorKind::TooLarge { len: len.into(), limit: MAX_DICT })?;
    *bytes = len;
    let mut copy = room(string.len())?;
    copy.extend_from_slice(string);
    known.try_reserve(1)?;
    known.insert(copy.into(), next);
    Ok(next)
}

/// Returns DICT, and a map from the codes in order of first occurrence to the codes in order of the strings,
/// which have `bytes` bytes.
fn dictionary(known: HashMap<Box<[u8]>, u32>, bytes: u64) -> Result<(Vec<u8>, Vec<u32>)> {
    let mut strings: Vec<(Box<[u8]>, u32)> = room(known.len())?;
    strings.extend(known);
    strings.sort_unstable();
    let mut renumbered = zeroed(strings.len() as u64)?;
    let mut dict = room(8 + 8 * strings.len() + bytes as usize)?;
    dict.extend((strings.len() as u64).to_le_bytes());
    let mut end = 0u64;
    for (k, (string, code)) in strings.iter().enumerate() {
        renumbered[*code as usize] = k as u32;
        end += string.len() as u64;
        dict.extend(end.to_le_bytes());
    }
    strings.iter().for_each(|(string, _)| dict.extend(string));
    Ok((dict, renumbered))
}
