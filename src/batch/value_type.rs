//! The types of values: how lists of each are found, counted and decoded.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::column::RegionSpan;
use super::pool::BufMut;
use super::span::{ListContent, ValueSpan};
use crate::error::FeatureError;
use crate::example::{DType, Feature, FeatureBuf, List, ValueMessage, packed, string};
use tfseek_wire::{count_floats, varint};

/// A value type: finds, counts and decodes lists of its values. New memory has default values.
///
/// Functions with the suffix `_fast` accept the common encoding only, and return `None` for any other.
pub(super) trait ValueType: Copy + Default + 'static {
    const KIND: DType;
    /// The value in a list.
    type Item<'a>: Copy;

    fn list<'a>(feature: Feature<'a>) -> Result<List<'a, Self::Item<'a>>, FeatureError>;
    /// Copies all values of a list to `to`, which has the same length.
    fn copy_all<'a>(list: List<'a, Self::Item<'a>>, row: &RowBytes<'_>, to: &mut [Self]);

    /// Returns the content of a list in the common encoding.
    #[inline(always)]
    fn content(message: &[u8]) -> Option<&[u8]> {
        packed(message, Self::KIND)
    }

    /// Returns the value of a row if it was located already.
    fn located(span: ValueSpan, row: usize) -> Option<Self>;

    /// Fills `to` with the values of rows that were all located already. Returns false if one was not.
    fn all_located(spans: &[ValueSpan], first_row: usize, to: &mut [Self]) -> bool;

    /// Returns the value of a list of one value.
    fn scalar_fast(row: &RowBytes<'_>, content: ListContent) -> Option<Self>;

    /// Fills `to` with the values of a list of the same length.
    fn fixed_fast(row: &RowBytes<'_>, content: ListContent, to: &mut [Self]) -> Option<()>;

    /// Writes the values of a list after the first `used` values. Returns their number.
    fn append_fast(
        row: &RowBytes<'_>,
        content: ListContent,
        memory: &mut BufMut<Self>,
        used: usize,
    ) -> Option<usize>;

    /// Returns true if a message of `bytes` bytes can contain `count` values. Memory is allocated only then.
    fn fits(count: usize, bytes: usize) -> bool;

    /// Writes the values for a record without the feature. Strings are one after the other in region
    /// `region`.
    fn write_default(default: &FeatureBuf, region: usize, to: &mut [Self]);
}

/// A row and its number.
pub(super) struct RowBytes<'a> {
    pub(super) number: usize,
    pub(super) payload: &'a [u8],
}

impl RowBytes<'_> {
    /// Returns the bytes of a list.
    #[inline(always)]
    fn get(&self, content: ListContent) -> Option<&[u8]> {
        self.payload.get(content.start..)?.get(..content.len)
    }

    /// Returns the span of a string of `len` bytes that starts at `start` in the payload.
    #[inline]
    fn span(&self, len: usize, start: usize) -> RegionSpan {
        RegionSpan { start, len: len as u32, region: self.number as u32 }
    }
}

/// Returns the content of the list of a feature in the common encoding.
#[inline(always)]
pub(super) fn message_content<T: ValueType>(value: ValueMessage<'_>) -> Option<ListContent> {
    let content = T::content(value.as_one()?)?;
    Some(ListContent { start: value.start_of_tail(content), len: content.len() })
}

/// Returns the content of a located list in the common encoding.
#[inline(always)]
pub(super) fn content<T: ValueType>(span: ValueSpan, payload: &[u8]) -> Option<ListContent> {
    span.as_content().or_else(|| message_content::<T>(span.message(payload)?))
}

/// Fills `to` with the values of rows whose values are all located as numbers. Returns false if one is not.
#[inline(always)]
fn all_numbers<T>(spans: &[ValueSpan], to: &mut [T], value: impl Fn(u64) -> T) -> bool {
    if !ValueSpan::are_numbers(spans) {
        return false;
    }
    for (to, span) in to.iter_mut().zip(spans) {
        *to = value(span.number_bytes());
    }
    true
}

/// Copies values to `to`, as many as it has.
fn copy_values<T: Copy>(values: &[T], to: &mut [T]) {
    to.iter_mut().zip(values).for_each(|(to, value)| *to = *value);
}

/// Maximum length of a list that is decoded value by value.
const SHORT_LIST: usize = 16;

impl ValueType for i64 {
    const KIND: DType = DType::Int64;
    type Item<'a> = i64;

    fn list<'a>(feature: Feature<'a>) -> Result<List<'a, i64>, FeatureError> {
        feature.int64()
    }

    fn copy_all(list: List<'_, i64>, _: &RowBytes<'_>, to: &mut [i64]) {
        // The lengths are equal. If the bytes have changed since the values were counted, the list ends
        // early.
        let _ = list.decode_into(to);
    }

    #[inline(always)]
    fn located(span: ValueSpan, _: usize) -> Option<i64> {
        span.as_number().map(|bytes| varint::join_sevens(bytes) as i64)
    }

    #[inline(always)]
    fn all_located(spans: &[ValueSpan], _: usize, to: &mut [i64]) -> bool {
        all_numbers(spans, to, |bytes| varint::join_sevens(bytes) as i64)
    }

    #[inline]
    fn scalar_fast(row: &RowBytes<'_>, content: ListContent) -> Option<i64> {
        varint::decode_one(row.payload, content.start, content.len).map(|value| value as i64)
    }

    #[inline]
    fn fixed_fast(row: &RowBytes<'_>, content: ListContent, to: &mut [i64]) -> Option<()> {
        if to.len() > SHORT_LIST {
            let chunk = row.get(content)?;
            let count = varint::count(chunk).ok()?;
            return (count == to.len() && varint::decode(chunk, to) == count).then_some(());
        }
        varint::decode_few(row.payload, content.start, content.len, to)
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`used` values and a chunk of at least `count` bytes are in memory"
    )]
    fn append_fast(
        row: &RowBytes<'_>,
        content: ListContent,
        memory: &mut BufMut<i64>,
        used: usize,
    ) -> Option<usize> {
        let chunk = row.get(content)?;
        let count = varint::count(chunk).ok()?;
        memory.grow(used + count, usize::MAX, 0).ok()?;
        let to = memory.values.get_mut(used..used + count)?;
        (varint::decode(chunk, to) == count).then_some(count)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes
    }

    fn write_default(default: &FeatureBuf, _: usize, to: &mut [i64]) {
        if let FeatureBuf::Int64(values) = default {
            copy_values(values, to);
        }
    }
}

impl ValueType for f32 {
    const KIND: DType = DType::Float32;
    type Item<'a> = f32;

    fn list<'a>(feature: Feature<'a>) -> Result<List<'a, f32>, FeatureError> {
        feature.float()
    }

    fn copy_all(list: List<'_, f32>, _: &RowBytes<'_>, to: &mut [f32]) {
        let _ = list.copy_to(to);
    }

    #[inline(always)]
    fn located(span: ValueSpan, _: usize) -> Option<f32> {
        span.as_number().map(|bytes| f32::from_bits(bytes as u32))
    }

    #[inline(always)]
    fn all_located(spans: &[ValueSpan], _: usize, to: &mut [f32]) -> bool {
        all_numbers(spans, to, |bytes| f32::from_bits(bytes as u32))
    }

    #[inline]
    fn scalar_fast(row: &RowBytes<'_>, content: ListContent) -> Option<f32> {
        Some(f32::from_le_bytes(row.get(content)?.try_into().ok()?))
    }

    #[inline]
    fn fixed_fast(row: &RowBytes<'_>, content: ListContent, to: &mut [f32]) -> Option<()> {
        copy_floats(row.get(content)?, to)
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`used` values and a chunk of `4 * count` bytes are in memory"
    )]
    fn append_fast(
        row: &RowBytes<'_>,
        content: ListContent,
        memory: &mut BufMut<f32>,
        used: usize,
    ) -> Option<usize> {
        let chunk = row.get(content)?;
        let count = count_floats(chunk).ok()?;
        memory.grow(used + count, usize::MAX, 0.0).ok()?;
        copy_floats(chunk, memory.values.get_mut(used..used + count)?)?;
        Some(count)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes / 4
    }

    fn write_default(default: &FeatureBuf, _: usize, to: &mut [f32]) {
        if let FeatureBuf::Float(values) = default {
            copy_values(values, to);
        }
    }
}

/// Copies a chunk of floats to `to`. Returns `None` if their numbers differ.
#[inline]
fn copy_floats(chunk: &[u8], to: &mut [f32]) -> Option<()> {
    if cfg!(target_endian = "little") {
        let to: &mut [u8] = bytemuck::cast_slice_mut(to);
        if to.len() != chunk.len() {
            return None;
        }
        to.copy_from_slice(chunk);
        return Some(());
    }
    let (values, rest) = chunk.as_chunks();
    if values.len() != to.len() || !rest.is_empty() {
        return None;
    }
    for (to, value) in to.iter_mut().zip(values) {
        *to = f32::from_le_bytes(*value);
    }
    Some(())
}

impl ValueType for RegionSpan {
    const KIND: DType = DType::Bytes;
    type Item<'a> = &'a [u8];

    fn list<'a>(feature: Feature<'a>) -> Result<List<'a, &'a [u8]>, FeatureError> {
        feature.bytes()
    }

    fn copy_all<'a>(list: List<'a, &'a [u8]>, row: &RowBytes<'_>, to: &mut [RegionSpan]) {
        let mut strings = list.iter();
        for to in to {
            let Some((value, start)) = strings.next_with_start() else { break };
            *to = row.span(value.len(), start);
        }
    }

    #[inline(always)]
    fn content(message: &[u8]) -> Option<&[u8]> {
        string(message)
    }

    #[inline(always)]
    fn located(span: ValueSpan, row: usize) -> Option<RegionSpan> {
        let ListContent { start, len } = span.as_content()?;
        Some(RegionSpan { start, len: len as u32, region: row as u32 })
    }

    #[inline(always)]
    fn all_located(spans: &[ValueSpan], first_row: usize, to: &mut [RegionSpan]) -> bool {
        for (row, (to, span)) in (first_row..).zip(to.iter_mut().zip(spans)) {
            let Some(value) = RegionSpan::located(*span, row) else { return false };
            *to = value;
        }
        true
    }

    #[inline]
    fn scalar_fast(row: &RowBytes<'_>, content: ListContent) -> Option<RegionSpan> {
        Some(row.span(content.len, content.start))
    }

    #[inline]
    fn fixed_fast(_: &RowBytes<'_>, _: ListContent, _: &mut [RegionSpan]) -> Option<()> {
        None
    }

    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`used` spans of 16 bytes are in memory")]
    fn append_fast(
        row: &RowBytes<'_>,
        content: ListContent,
        memory: &mut BufMut<RegionSpan>,
        used: usize,
    ) -> Option<usize> {
        memory.grow(used + 1, usize::MAX, RegionSpan::default()).ok()?;
        *memory.values.get_mut(used)? = row.span(content.len, content.start);
        Some(1)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes / 2
    }

    #[expect(clippy::arithmetic_side_effects, reason = "the strings are in memory")]
    fn write_default(default: &FeatureBuf, region: usize, to: &mut [RegionSpan]) {
        let FeatureBuf::Bytes(values) = default else { return };
        let mut start = 0;
        for (to, value) in to.iter_mut().zip(values) {
            *to = RegionSpan { start, len: value.len() as u32, region: region as u32 };
            start += value.len();
        }
    }
}
