//! A feature: a list of one of three kinds, or no list.

use super::kind::DType;
use super::list::{List, ListBody};
use super::source::{ListSlice, ScatteredList, ValueMessage};
use crate::error::FeatureError;
use std::fmt;
use tfseek_wire::{Fault, WireReader, WireValue, count_floats, varint};

/// A feature of an example, validated and counted. It is `Copy`.
///
/// `None` is a feature without a kind, which is not the same as a list without values.
#[derive(Clone, Copy, Default)]
pub enum Feature<'a> {
    /// No kind is set.
    #[default]
    None,
    /// Byte strings.
    Bytes(List<'a, &'a [u8]>),
    /// 32-bit floats.
    Float(List<'a, f32>),
    /// 64-bit signed integers.
    Int64(List<'a, i64>),
}

impl<'a> Feature<'a> {
    /// Returns the kind, if one is set.
    pub fn kind(self) -> Option<DType> {
        match self {
            Feature::None => None,
            Feature::Bytes(_) => Some(DType::Bytes),
            Feature::Float(_) => Some(DType::Float32),
            Feature::Int64(_) => Some(DType::Int64),
        }
    }

    /// Returns the number of values, 0 without a kind.
    pub fn len(self) -> usize {
        match self {
            Feature::None => 0,
            Feature::Bytes(list) => list.len(),
            Feature::Float(list) => list.len(),
            Feature::Int64(list) => list.len(),
        }
    }

    /// Returns true if there is no value.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the byte strings.
    ///
    /// # Errors
    /// [`FeatureError::NoKind`] or [`FeatureError::WrongKind`].
    #[inline]
    pub(crate) fn bytes(self) -> Result<List<'a, &'a [u8]>, FeatureError> {
        match self {
            Feature::Bytes(list) => Ok(list),
            other => Err(other.kind_mismatch(DType::Bytes)),
        }
    }

    /// Returns the floats.
    ///
    /// # Errors
    /// [`FeatureError::NoKind`] or [`FeatureError::WrongKind`].
    #[inline]
    pub(crate) fn float(self) -> Result<List<'a, f32>, FeatureError> {
        match self {
            Feature::Float(list) => Ok(list),
            other => Err(other.kind_mismatch(DType::Float32)),
        }
    }

    /// Returns the integers.
    ///
    /// # Errors
    /// [`FeatureError::NoKind`] or [`FeatureError::WrongKind`].
    #[inline]
    pub(crate) fn int64(self) -> Result<List<'a, i64>, FeatureError> {
        match self {
            Feature::Int64(list) => Ok(list),
            other => Err(other.kind_mismatch(DType::Int64)),
        }
    }

    #[cold]
    fn kind_mismatch(self, expected: DType) -> FeatureError {
        let expected = expected.list_name();
        match self.kind() {
            None => FeatureError::NoKind { expected },
            Some(found) => FeatureError::WrongKind { expected, found: found.list_name() },
        }
    }

    /// Returns a feature in the form that every encoder writes, if it is valid: a packed list of numbers, or
    /// one short byte string. For any other one, [`check`](Feature::check) decides. It is inlined, so that
    /// its result does not go through memory, which takes ten cycles or more.
    #[inline(always)]
    pub(super) fn usual(value: ValueMessage<'a>) -> Option<Feature<'a>> {
        let message = value.as_one()?;
        let one = |list, len| ListBody::one(ListSlice::new(list, value.start_of_tail(list)), len);
        if let Some(chunk) = packed(message, DType::Int64) {
            let count = varint::count(chunk).ok()?;
            Some(Feature::Int64(List::new(one(chunk, count))))
        } else if let Some(chunk) = packed(message, DType::Float32) {
            let count = count_floats(chunk).ok()?;
            Some(Feature::Float(List::new(one(chunk, count))))
        } else if let (Some(_), [_, _, list @ ..]) = (one_value(message, 0x0a), message) {
            Some(Feature::Bytes(List::new(one(list, 1))))
        } else {
            None
        }
    }

    /// Validates and counts a feature whose message is `depth` levels below the payload.
    #[inline]
    pub(crate) fn check(value: ValueMessage<'a>, depth: u8) -> Result<Feature<'a>, Fault> {
        match Feature::usual(value) {
            Some(feature) => Ok(feature),
            None => Feature::check_slow(value, depth),
        }
    }

    /// Validates every form that protobuf allows: members that repeat and replace each other, packed and
    /// unpacked values mixed.
    #[inline(never)]
    pub(super) fn check_slow(value: ValueMessage<'a>, depth: u8) -> Result<Feature<'a>, Fault> {
        let mut kind = None;
        // Number of members so far, and number of members before the last change of kind.
        let mut members = 0u32;
        let mut skip = 0;
        let mut counts = ListCounts::default();
        for mut feature in value.messages(depth) {
            while let Some((number, value)) = feature.next()? {
                let (Some(member), WireValue::Len(list)) = (DType::of_field(number), value) else {
                    continue;
                };
                if kind != Some(member) {
                    (kind, skip, counts) = (Some(member), members, ListCounts::default());
                }
                members = members.saturating_add(1);
                counts.add_list(member, feature.nested(list))?;
            }
        }
        let scattered = ScatteredList::new(value, skip);
        let body = |slice| ListBody::checked(slice, scattered, counts.values);
        Ok(match kind {
            None => Feature::None,
            Some(DType::Bytes) => Feature::Bytes(List::new(body(counts.only_list()))),
            Some(DType::Float32) => Feature::Float(List::new(body(counts.only_chunk()))),
            Some(DType::Int64) => Feature::Int64(List::new(body(counts.only_chunk()))),
        })
    }
}

/// Returns the packed chunk of a feature in the form that every encoder writes: one list of this kind with
/// one chunk, or with none. The chunk ends at the end of the message, and is not validated.
#[inline]
pub(crate) fn packed(message: &[u8], kind: DType) -> Option<&[u8]> {
    let tag = match kind {
        DType::Bytes => return None,
        DType::Float32 => 0x12,
        DType::Int64 => 0x1a,
    };
    match message {
        [first, ..] if *first == tag => one_value(message, tag).or_else(|| packed_slow(message)),
        _ => None,
    }
}

/// Returns field 1 of a list, if the message is only this list, the list is only this field, and both lengths
/// are one byte.
#[inline(always)]
fn one_value(message: &[u8], tag: u8) -> Option<&[u8]> {
    let (head, bytes) = message.split_first_chunk()?;
    // `tag len+2 0a len`, compared as one word.
    let len = bytes.len() as u32;
    let want = u32::from_le_bytes([tag, 2, 0x0a, 0]).wrapping_add(len.wrapping_mul(0x0100_0100));
    (len < 0x80 - 2 && u32::from_le_bytes(*head) == want).then_some(bytes)
}

#[inline(never)]
fn packed_slow(message: &[u8]) -> Option<&[u8]> {
    let mut feature = WireReader::new(message);
    feature.take_tag(*message.first()?);
    let mut list = WireReader::new(feature.len_delimited().ok()?);
    let chunk = if list.is_empty() {
        &[]
    } else if list.take_tag(0x0a) {
        list.len_delimited().ok()?
    } else {
        return None;
    };
    (feature.is_empty() && list.is_empty()).then_some(chunk)
}

/// Returns the value of a feature of one byte string in the form that every encoder writes. It ends at the
/// end of the message.
#[inline]
pub(crate) fn string(message: &[u8]) -> Option<&[u8]> {
    one_value(message, 0x0a).or_else(|| string_slow(message))
}

#[inline(never)]
fn string_slow(message: &[u8]) -> Option<&[u8]> {
    let mut feature = WireReader::new(message);
    let mut list = WireReader::new(feature.take_field(0x0a)?);
    let value = list.take_field(0x0a)?;
    (feature.is_empty() && list.is_empty()).then_some(value)
}

/// Counts of the lists of one kind in a feature. No count exceeds the number of bytes of the payload.
#[derive(Default)]
struct ListCounts<'a> {
    values: usize,
    lists: usize,
    last_list: Option<ListSlice<'a>>,
    /// Number of chunks that are not empty.
    chunks: usize,
    last_chunk: Option<ListSlice<'a>>,
    /// Number of values outside of chunks.
    unpacked: usize,
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "each list, chunk and value takes at least one byte of the payload"
)]
impl<'a> ListCounts<'a> {
    /// Returns the chunk that contains all values. It is empty if there are no values.
    fn only_chunk(&self) -> Option<ListSlice<'a>> {
        (self.chunks <= 1 && self.unpacked == 0).then(|| self.last_chunk.unwrap_or(ListSlice::new(&[], 0)))
    }

    fn only_list(&self) -> Option<ListSlice<'a>> {
        self.last_list.filter(|_| self.lists == 1)
    }

    fn add_list(&mut self, kind: DType, mut list: WireReader<'a>) -> Result<(), Fault> {
        self.lists += 1;
        self.last_list = Some(ListSlice::new(list.rest(), list.position()));
        while let Some((number, value)) = list.next()? {
            if number != 1 {
                continue;
            }
            // A field of another wire type is an unknown field, and skipped (W5).
            match (kind, value) {
                (DType::Bytes, WireValue::Len(_)) => self.values += 1,
                (DType::Int64, WireValue::Len(chunk)) => {
                    self.add_chunk(chunk, list.start_of(chunk), varint::count)?;
                }
                (DType::Float32, WireValue::Len(chunk)) => {
                    self.add_chunk(chunk, list.start_of(chunk), count_floats)?;
                }
                (DType::Int64, WireValue::Varint(_)) | (DType::Float32, WireValue::Fixed32(_)) => {
                    self.values += 1;
                    self.unpacked += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_chunk(
        &mut self,
        chunk: &'a [u8],
        start: usize,
        count: impl Fn(&[u8]) -> Result<usize, Fault>,
    ) -> Result<(), Fault> {
        let values = count(chunk).map_err(|fault| fault.offset_by(start))?;
        if !chunk.is_empty() {
            self.last_chunk = Some(ListSlice::new(chunk, start));
            self.chunks += 1;
            self.values += values;
        }
        Ok(())
    }
}

// Features are returned by value, so their size affects speed.
const _: () = assert!(size_of::<Feature<'static>>() <= 6 * size_of::<u64>());
const _: () = assert!(size_of::<List<'static, i64>>() <= 5 * size_of::<u64>());

impl fmt::Debug for Feature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Feature::None => f.write_str("None"),
            Feature::Bytes(list) => list.fmt(f),
            Feature::Float(list) => list.fmt(f),
            Feature::Int64(list) => list.fmt(f),
        }
    }
}
