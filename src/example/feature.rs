//! One feature: a list of one of three kinds, or nothing.

use super::list::{BytesList, FloatList, Int64List};
use super::owned::FeatureBuf;
use super::source::{Source, Walk};
use crate::error::{FeatureError, WireErrorKind};
use crate::wire::{Fault, Reader, Value, count_floats, count_varints};
use std::fmt;

/// The kinds of list a feature can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FeatureKind {
    /// Byte strings.
    Bytes,
    /// 32-bit floats.
    Float,
    /// 64-bit signed integers.
    Int64,
}

impl FeatureKind {
    /// `bytes`, `float` or `int64`.
    pub const fn name(self) -> &'static str {
        match self {
            FeatureKind::Bytes => "bytes",
            FeatureKind::Float => "float",
            FeatureKind::Int64 => "int64",
        }
    }

    #[inline]
    fn of_field(number: u32) -> Option<FeatureKind> {
        match number {
            1 => Some(FeatureKind::Bytes),
            2 => Some(FeatureKind::Float),
            3 => Some(FeatureKind::Int64),
            _ => None,
        }
    }
}

impl fmt::Display for FeatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A feature of an example, checked and counted. `Copy`.
///
/// `None` is a feature that is there without a kind, which is not the same as a list without values.
#[derive(Clone, Copy, Default)]
pub enum Feature<'a> {
    /// No kind is set.
    #[default]
    None,
    /// Byte strings.
    Bytes(BytesList<'a>),
    /// 32-bit floats.
    Float(FloatList<'a>),
    /// 64-bit signed integers.
    Int64(Int64List<'a>),
}

impl<'a> Feature<'a> {
    /// The kind, if one is set.
    pub fn kind(self) -> Option<FeatureKind> {
        match self {
            Feature::None => None,
            Feature::Bytes(_) => Some(FeatureKind::Bytes),
            Feature::Float(_) => Some(FeatureKind::Float),
            Feature::Int64(_) => Some(FeatureKind::Int64),
        }
    }

    /// Number of values; 0 without a kind.
    pub fn len(self) -> usize {
        match self {
            Feature::None => 0,
            Feature::Bytes(list) => list.len(),
            Feature::Float(list) => list.len(),
            Feature::Int64(list) => list.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The byte strings.
    ///
    /// # Errors
    /// What the feature is instead.
    #[inline]
    pub fn bytes(self) -> Result<BytesList<'a>, FeatureError> {
        match self {
            Feature::Bytes(list) => Ok(list),
            other => Err(other.unlike(FeatureKind::Bytes)),
        }
    }

    /// The floats.
    ///
    /// # Errors
    /// What the feature is instead.
    #[inline]
    pub fn float(self) -> Result<FloatList<'a>, FeatureError> {
        match self {
            Feature::Float(list) => Ok(list),
            other => Err(other.unlike(FeatureKind::Float)),
        }
    }

    /// The integers.
    ///
    /// # Errors
    /// What the feature is instead.
    #[inline]
    pub fn int64(self) -> Result<Int64List<'a>, FeatureError> {
        match self {
            Feature::Int64(list) => Ok(list),
            other => Err(other.unlike(FeatureKind::Int64)),
        }
    }

    /// The values, owned.
    pub fn to_buf(self) -> FeatureBuf {
        match self {
            Feature::None => FeatureBuf::None,
            Feature::Bytes(list) => FeatureBuf::Bytes(list.to_vec()),
            Feature::Float(list) => FeatureBuf::Float(list.to_vec()),
            Feature::Int64(list) => FeatureBuf::Int64(list.to_vec()),
        }
    }

    #[cold]
    fn unlike(self, expected: FeatureKind) -> FeatureError {
        let expected = expected.name();
        match self.kind() {
            None => FeatureError::NoKind { expected },
            Some(found) => FeatureError::WrongKind { expected, found: found.name() },
        }
    }

    /// Checks and counts a feature whose message lies `depth` levels below the payload.
    #[inline]
    pub(crate) fn check(source: Source<'a>, depth: u8) -> Result<Feature<'a>, Fault> {
        if let Source::One(message) = source {
            if message.is_empty() {
                return Ok(Feature::None);
            }
            if let Some(feature) = Feature::canonical(message)? {
                return Ok(feature);
            }
        }
        Feature::general(source, depth)
    }

    /// A list of numbers in the shape that every encoder writes.
    #[inline]
    fn canonical(message: &'a [u8]) -> Result<Option<Feature<'a>>, Fault> {
        if let Some(chunk) = packed(message, FeatureKind::Int64) {
            return Ok(Some(Feature::Int64(Int64List::chunk(chunk, count_varints(chunk)?))));
        }
        if let Some(chunk) = packed(message, FeatureKind::Float) {
            return Ok(Some(Feature::Float(FloatList::chunk(chunk, count_floats(chunk)?))));
        }
        Ok(None)
    }

    /// Whatever protobuf allows: members that repeat and replace each other, values in any mixture.
    fn general(source: Source<'a>, depth: u8) -> Result<Feature<'a>, Fault> {
        let mut kind = None;
        // Members seen, and those of them before the last change of kind.
        let (mut members, mut skip) = (0, 0);
        let mut found = Found::default();
        for mut feature in source.messages(depth) {
            while let Some((number, value)) = feature.next()? {
                let (Some(member), Value::Len(list)) = (FeatureKind::of_field(number), value) else {
                    continue;
                };
                if kind != Some(member) {
                    (kind, skip, found) = (Some(member), members, Found::default());
                }
                members += 1;
                found.lists += 1;
                found.list = list;
                found.read(member, feature.nested(list))?;
            }
        }
        let walk = Walk::new(source, skip);
        let chunk = found.is_chunk().then_some(found.chunk);
        Ok(match kind {
            None => Feature::None,
            Some(FeatureKind::Bytes) => {
                let one = (found.lists == 1).then_some(found.list);
                Feature::Bytes(BytesList::checked(one, walk, found.count))
            }
            Some(FeatureKind::Float) => Feature::Float(FloatList::checked(chunk, walk, found.count)),
            Some(FeatureKind::Int64) => Feature::Int64(Int64List::checked(chunk, walk, found.count)),
        })
    }
}

/// The values of a feature of numbers in the shape that every encoder writes: one list of this kind, and in it one chunk (or
/// nothing). The chunk is not checked.
#[inline]
pub(crate) fn packed(message: &[u8], kind: FeatureKind) -> Option<&[u8]> {
    let tag = match kind {
        FeatureKind::Bytes => return None,
        FeatureKind::Float => 0x12,
        FeatureKind::Int64 => 0x1a,
    };
    match message {
        [first, ..] if *first == tag => only(message, tag).or_else(|| packed_long(message)),
        _ => None,
    }
}

/// The bytes of a message that is one list, and in it one field 1, of the lengths that need one byte.
#[inline(always)]
fn only(message: &[u8], tag: u8) -> Option<&[u8]> {
    let (head, bytes) = message.split_first_chunk()?;
    // `tag len+2 0a len`, compared at once.
    let len = bytes.len() as u32;
    let want = u32::from_le_bytes([tag, 2, 0x0a, 0]).wrapping_add(len.wrapping_mul(0x0100_0100));
    (len < 0x80 - 2 && u32::from_le_bytes(*head) == want).then_some(bytes)
}

#[inline(never)]
fn packed_long(message: &[u8]) -> Option<&[u8]> {
    let mut feature = Reader::new(message, 0);
    feature.eat(message[0]);
    let mut list = Reader::new(feature.len_delimited().ok()?, 0);
    let chunk = match list.is_empty() {
        true => &[],
        false if list.eat(0x0a) => list.len_delimited().ok()?,
        false => return None,
    };
    (feature.is_empty() && list.is_empty()).then_some(chunk)
}

/// The value of a feature that is one byte string, in the shape that every encoder writes.
#[inline]
pub(crate) fn string(message: &[u8]) -> Option<&[u8]> {
    only(message, 0x0a).or_else(|| string_long(message))
}

#[inline(never)]
fn string_long(message: &[u8]) -> Option<&[u8]> {
    let mut feature = Reader::new(message, 0);
    let mut list = Reader::new(feature.eat_field(0x0a)?, 0);
    let value = list.eat_field(0x0a)?;
    (feature.is_empty() && list.is_empty()).then_some(value)
}

/// What the lists of one kind were found to hold.
#[derive(Default)]
struct Found<'a> {
    count: usize,
    lists: usize,
    list: &'a [u8],
    /// Chunks with something in them, the last of them, and values outside of chunks.
    chunks: usize,
    chunk: &'a [u8],
    unpacked: usize,
}

impl<'a> Found<'a> {
    /// All values lie in one chunk (or there are none).
    fn is_chunk(&self) -> bool {
        self.chunks <= 1 && self.unpacked == 0
    }

    fn read(&mut self, kind: FeatureKind, mut list: Reader<'a>) -> Result<(), Fault> {
        while let Some((number, value)) = list.next()? {
            if number != 1 {
                continue;
            }
            // A field of another wire type is an unknown one, and skipped (W5).
            match (kind, value) {
                (FeatureKind::Bytes, Value::Len(_)) => self.count += 1,
                (FeatureKind::Int64, Value::Len(chunk)) => self.chunk(chunk, count_varints(chunk)?),
                (FeatureKind::Float, Value::Len(chunk)) => self.chunk(chunk, count_floats(chunk)?),
                (FeatureKind::Int64, Value::Varint(_)) | (FeatureKind::Float, Value::Fixed32(_)) => {
                    self.count += 1;
                    self.unpacked += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: &'a [u8], count: usize) {
        if !chunk.is_empty() {
            self.chunk = chunk;
            self.chunks += 1;
            self.count += count;
        }
    }
}

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

/// A key as text.
pub(super) fn utf8(key: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(key).map_err(|_| Fault::new(WireErrorKind::Utf8, key))
}
