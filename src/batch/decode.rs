//! Decoding of spans to values: slot by slot, each over the rows of a block.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice, clippy::arithmetic_side_effects))]

use super::bytes::{CopiedStrings, SpanBytes, ValueMemory, ValuePools};
use super::column::{RegionSpan, Values};
use super::compile::{DefaultValues, Need, PlanSlot};
use super::locate::{MapField, SpanTable, ValueSpan};
use super::pool::BufMut;
use super::row::Row;
use crate::error::{Error, FeatureError};
use crate::example::{
    Feature, FeatureKind, FeatureList, FloatList, Int64List, VALUE_DEPTH, ValueMessage, packed, string,
};
use crate::schema::DType;
use crate::wire::{Fault, WireValue, count_floats, varint};
use std::slice;

/// The values of one slot, for all rows so far.
#[derive(Default)]
pub(super) struct SlotValues {
    pub(super) memory: ValueMemory,
    /// Number of values in the memory.
    pub(super) used: usize,
    /// Copies of the first strings of the memory.
    strings: Option<CopiedStrings>,
    /// Number of values of each row, or of each step of each row. Empty if the number is fixed. 0 for a missing value.
    pub(super) counts: Vec<u32>,
    /// Number of steps of each row of a feature list.
    pub(super) steps: Vec<u32>,
    /// 1 for each row with the feature and a kind, or with the feature list; otherwise 0. Empty if presence is not recorded.
    pub(super) presence: Vec<u8>,
}

/// The reason for refusing a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowFault {
    Wire(Fault),
    Feature(FeatureError),
}

impl RowFault {
    /// Converts the fault to an error that names the feature `key`.
    #[cold]
    pub(super) fn error(self, key: &str) -> Error {
        match self {
            RowFault::Wire(fault) => Error::from(fault),
            RowFault::Feature(e) => Error::from(e),
        }
        .feature(key.as_bytes())
    }
}

impl From<Fault> for RowFault {
    #[cold]
    fn from(fault: Fault) -> RowFault {
        RowFault::Wire(fault)
    }
}

impl From<FeatureError> for RowFault {
    #[cold]
    fn from(e: FeatureError) -> RowFault {
        RowFault::Feature(e)
    }
}

/// The first refused row of a block.
pub(super) struct BadRow {
    /// Row, counted from the start of the block.
    pub(super) row: usize,
    /// Step of a feature list.
    pub(super) step: Option<usize>,
    pub(super) fault: RowFault,
}

/// A block of rows, which are decoded together.
pub(super) struct RowBlock<'a, R> {
    /// Rows before the first refused one.
    pub(super) rows: &'a [R],
    /// Number of the first row in the batch.
    pub(super) first: usize,
    /// Number of rows in the batch.
    pub(super) total: usize,
    pub(super) spans: &'a SpanTable,
    /// True for a context. There, a feature without a kind is an empty list; elsewhere it is absent.
    pub(super) context: bool,
}

/// A value type: finds, counts and decodes lists of its values.
///
/// Functions with the suffix `_fast` accept the common encoding only, and return `None` for any other.
trait ValueType: Copy {
    const KIND: FeatureKind;
    type List<'a>: Copy;

    fn list<'a>(feature: Feature<'a>) -> Result<Self::List<'a>, FeatureError>;
    fn len(list: Self::List<'_>) -> usize;
    /// Copies all values of a list to `to`, which has the same length.
    fn copy_all(list: Self::List<'_>, row: &RowBytes<'_>, to: &mut [Self]);
    /// Initial value of new memory.
    const BLANK: Self;

    /// Returns the value of a list of one value.
    fn scalar_fast(row: &RowBytes<'_>, message: ContiguousMessage<'_>) -> Option<Self>;

    /// Fills `to` with the values of a list of the same length.
    fn fixed_fast(row: &RowBytes<'_>, message: ContiguousMessage<'_>, to: &mut [Self]) -> Option<()>;

    /// Writes the values of a list after the first `used` values. Returns their number.
    fn append_fast(
        row: &RowBytes<'_>,
        message: ContiguousMessage<'_>,
        memory: &mut BufMut<Self>,
        used: usize,
    ) -> Option<usize>;

    /// Returns true if a message of `bytes` bytes can contain `count` values. Memory is allocated only then.
    fn fits(count: usize, bytes: usize) -> bool;
}

/// A row and its number.
struct RowBytes<'a> {
    number: usize,
    payload: &'a [u8],
}

/// The message of a feature, in one slice.
#[derive(Clone, Copy)]
struct ContiguousMessage<'a> {
    bytes: &'a [u8],
    /// Offset of the end of the message in the payload. The offsets of values at the end of the message are derived from it.
    end: usize,
}

impl<'a> ContiguousMessage<'a> {
    /// Returns the packed chunk of a list of numbers, and its offset in the payload.
    #[inline(always)]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the chunk is part of the message, which ends at `end` in its payload"
    )]
    fn packed(self, kind: FeatureKind) -> Option<(&'a [u8], usize)> {
        let chunk = packed(self.bytes, kind)?;
        Some((chunk, self.end - chunk.len()))
    }

    /// Returns the only string of a list, and its offset in the payload.
    #[inline(always)]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "the string is part of the message, which ends at `end` in its payload"
    )]
    fn string(self) -> Option<(&'a [u8], usize)> {
        let value = string(self.bytes)?;
        Some((value, self.end - value.len()))
    }
}

/// Maximum length of a list that is decoded value by value.
const SHORT_LIST: usize = 16;

impl ValueType for i64 {
    const KIND: FeatureKind = FeatureKind::Int64;
    const BLANK: i64 = 0;
    type List<'a> = Int64List<'a>;

    fn list<'a>(feature: Feature<'a>) -> Result<Int64List<'a>, FeatureError> {
        feature.int64()
    }

    fn len(list: Int64List<'_>) -> usize {
        list.len()
    }

    fn copy_all(list: Int64List<'_>, _: &RowBytes<'_>, to: &mut [i64]) {
        // The lengths are equal. If the bytes have changed since the values were counted, the list ends early.
        let _ = list.decode_into(to);
    }

    #[inline]
    fn scalar_fast(row: &RowBytes<'_>, message: ContiguousMessage<'_>) -> Option<i64> {
        let (chunk, start) = message.packed(FeatureKind::Int64)?;
        varint::decode_one(row.payload, start, chunk.len()).map(|value| value as i64)
    }

    #[inline]
    fn fixed_fast(row: &RowBytes<'_>, message: ContiguousMessage<'_>, to: &mut [i64]) -> Option<()> {
        let (chunk, start) = message.packed(FeatureKind::Int64)?;
        if to.len() > SHORT_LIST {
            let count = varint::count(chunk).ok()?;
            return (count == to.len() && varint::decode(chunk, to) == count).then_some(());
        }
        varint::decode_few(row.payload, start, chunk.len(), to)
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`used` values and a chunk of at least `count` bytes are in memory"
    )]
    fn append_fast(
        _: &RowBytes<'_>,
        message: ContiguousMessage<'_>,
        memory: &mut BufMut<i64>,
        used: usize,
    ) -> Option<usize> {
        let (chunk, _) = message.packed(FeatureKind::Int64)?;
        let count = varint::count(chunk).ok()?;
        memory.grow(used + count, usize::MAX, 0);
        let to = memory.values.get_mut(used..used + count)?;
        (varint::decode(chunk, to) == count).then_some(count)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes
    }
}

impl ValueType for f32 {
    const KIND: FeatureKind = FeatureKind::Float;
    const BLANK: f32 = 0.0;
    type List<'a> = FloatList<'a>;

    fn list<'a>(feature: Feature<'a>) -> Result<FloatList<'a>, FeatureError> {
        feature.float()
    }

    fn len(list: FloatList<'_>) -> usize {
        list.len()
    }

    fn copy_all(list: FloatList<'_>, _: &RowBytes<'_>, to: &mut [f32]) {
        let _ = list.copy_to(to);
    }

    #[inline]
    fn scalar_fast(_: &RowBytes<'_>, message: ContiguousMessage<'_>) -> Option<f32> {
        let (value, _) = message.packed(FeatureKind::Float)?;
        Some(f32::from_le_bytes(value.try_into().ok()?))
    }

    #[inline]
    fn fixed_fast(_: &RowBytes<'_>, message: ContiguousMessage<'_>, to: &mut [f32]) -> Option<()> {
        let (chunk, _) = message.packed(FeatureKind::Float)?;
        copy_floats(chunk, to)
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`used` values and a chunk of `4 * count` bytes are in memory"
    )]
    fn append_fast(
        _: &RowBytes<'_>,
        message: ContiguousMessage<'_>,
        memory: &mut BufMut<f32>,
        used: usize,
    ) -> Option<usize> {
        let (chunk, _) = message.packed(FeatureKind::Float)?;
        let count = count_floats(chunk).ok()?;
        memory.grow(used + count, usize::MAX, 0.0);
        copy_floats(chunk, memory.values.get_mut(used..used + count)?)?;
        Some(count)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes / 4
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

impl RowBytes<'_> {
    /// Returns the span of a string that starts at `start` in the payload.
    #[inline]
    fn span(&self, value: &[u8], start: usize) -> RegionSpan {
        RegionSpan { start, len: value.len() as u32, region: self.number as u32 }
    }
}

impl ValueType for RegionSpan {
    const KIND: FeatureKind = FeatureKind::Bytes;
    const BLANK: RegionSpan = RegionSpan { start: 0, len: 0, region: 0 };
    type List<'a> = crate::example::BytesList<'a>;

    fn list<'a>(feature: Feature<'a>) -> Result<Self::List<'a>, FeatureError> {
        feature.bytes()
    }

    fn len(list: Self::List<'_>) -> usize {
        list.len()
    }

    fn copy_all(list: Self::List<'_>, row: &RowBytes<'_>, to: &mut [RegionSpan]) {
        let mut strings = list.iter();
        for to in to {
            let Some((value, start)) = strings.next_with_start() else { break };
            *to = row.span(value, start);
        }
    }

    #[inline]
    fn scalar_fast(row: &RowBytes<'_>, message: ContiguousMessage<'_>) -> Option<RegionSpan> {
        let (value, start) = message.string()?;
        Some(row.span(value, start))
    }

    #[inline]
    fn fixed_fast(_: &RowBytes<'_>, _: ContiguousMessage<'_>, _: &mut [RegionSpan]) -> Option<()> {
        None
    }

    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`used` spans of 16 bytes are in memory")]
    fn append_fast(
        row: &RowBytes<'_>,
        message: ContiguousMessage<'_>,
        memory: &mut BufMut<RegionSpan>,
        used: usize,
    ) -> Option<usize> {
        let (value, start) = message.string()?;
        memory.grow(used + 1, usize::MAX, RegionSpan::BLANK);
        *memory.values.get_mut(used)? = row.span(value, start);
        Some(1)
    }

    #[inline]
    fn fits(count: usize, bytes: usize) -> bool {
        count <= bytes / 2
    }
}

impl SlotValues {
    /// Starts a batch. No values are in the memory yet.
    pub(super) fn start(&mut self, memory: ValueMemory) {
        self.memory = memory;
        self.used = 0;
        self.strings = None;
        self.counts.clear();
        self.steps.clear();
        self.presence.clear();
    }

    /// Decodes the features of slot `index` in a block. If a row is refused, the rows before it are decoded; later rows may be.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a block ends within the batch, whose rows are in memory, as are the slots"
    )]
    pub(super) fn features<R: Row>(
        &mut self,
        index: usize,
        slot: &PlanSlot,
        block: &RowBlock<'_, R>,
    ) -> Result<(), BadRow> {
        let SlotValues { memory, used, counts, .. } = self;
        macro_rules! by_need {
            ($memory:expr, $default:expr) => {
                match &slot.need {
                    Need::Fixed { count, .. } => {
                        *used = (block.first + block.rows.len()).saturating_mul(*count);
                        fixed($memory, index, *count, slot, $default, block)
                    }
                    Need::Optional { .. } => {
                        *used = block.first + block.rows.len();
                        optional($memory, counts, index, $default, block)
                    }
                    Need::Blocks { block_len, .. } => {
                        variable($memory, used, counts, index, *block_len, block)
                    }
                    Need::Any => variable($memory, used, counts, index, 1, block),
                }
            };
        }
        let default = match &slot.need {
            Need::Fixed { default, .. } => default.as_ref(),
            Need::Optional { default } => Some(default),
            _ => None,
        };
        match memory {
            ValueMemory::Int64(memory) => by_need!(memory, |to: &mut [i64]| {
                if let Some(DefaultValues::Int64(values)) = default {
                    to.copy_from_slice(values);
                }
            }),
            ValueMemory::Float32(memory) => by_need!(memory, |to: &mut [f32]| {
                if let Some(DefaultValues::Float32(values)) = default {
                    to.copy_from_slice(values);
                }
            }),
            ValueMemory::Bytes(memory) => by_need!(memory, |to: &mut [RegionSpan]| {
                if let Some(DefaultValues::Bytes(ends)) = default {
                    default_spans(ends, block.total + index, to);
                }
            }),
        }
    }

    /// Decodes the feature lists of slot `index` in a block, in the same way as [`features`](SlotValues::features).
    pub(super) fn lists<R: Row>(
        &mut self,
        index: usize,
        slot: &PlanSlot,
        block: &RowBlock<'_, R>,
    ) -> Result<(), BadRow> {
        let SlotValues { memory, used, counts, steps, .. } = self;
        match memory {
            ValueMemory::Int64(memory) => lists(memory, used, counts, steps, index, slot, block),
            ValueMemory::Float32(memory) => lists(memory, used, counts, steps, index, slot, block),
            ValueMemory::Bytes(memory) => lists(memory, used, counts, steps, index, slot, block),
        }
    }
}

impl SlotValues {
    /// Records the presence of the feature, or of the feature list, of slot `index` in the rows of a block, which were decoded.
    pub(super) fn record_presence<R: Row>(&mut self, index: usize, map: MapField, block: &RowBlock<'_, R>) {
        let spans = block.rows.iter().enumerate().map(|(k, row)| (block.spans.get(k, index), row.payload()));
        self.presence.extend(spans.map(|(span, payload)| {
            u8::from(match map {
                MapField::Features => span.has_kind(payload),
                MapField::FeatureLists => span.message(payload).is_some(),
            })
        }));
    }

    /// Copies the strings decoded since the last call, while they are still in the CPU cache.
    pub(super) fn copy_strings<R: Row>(&mut self, pools: &mut ValuePools, bytes: &SpanBytes<'_, R>) {
        let ValueMemory::Bytes(spans) = &self.memory else { return };
        let strings = self.strings.get_or_insert_with(|| pools.strings());
        let new = spans.values.get(strings.len()..self.used).unwrap_or_default();
        strings.append(new, |span| bytes.get(span));
    }

    /// Shares the first `len` values.
    pub(super) fn lend<R: Row>(
        &mut self,
        pools: &mut ValuePools,
        len: usize,
        bytes: &SpanBytes<'_, R>,
    ) -> Values {
        let strings = self.strings.take();
        pools.lend(std::mem::take(&mut self.memory), strings, len, bytes)
    }
}

/// Writes the spans of default strings, which end at `ends` in region `region`.
#[expect(clippy::arithmetic_side_effects, reason = "`ends` ascend")]
pub(super) fn default_spans(ends: &[usize], region: usize, to: &mut [RegionSpan]) {
    let mut start = 0;
    for (to, &end) in to.iter_mut().zip(ends) {
        *to = RegionSpan { start, len: (end - start) as u32, region: region as u32 };
        start = end;
    }
}

/// Decodes a fixed number of values per row. The position of each row's values is known in advance.
#[inline]
#[expect(clippy::arithmetic_side_effects, reason = "a block ends within the batch")]
fn fixed<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    index: usize,
    count: usize,
    slot: &PlanSlot,
    default: impl Fn(&mut [T]),
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    let max = block.total.saturating_mul(count);
    if count == 1 {
        memory.grow(block.first + block.rows.len(), max, T::BLANK);
    }
    for (k, row) in block.rows.iter().enumerate() {
        let span = block.spans.get(k, index);
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        if let Some(bytes) = span.contiguous(row.payload) {
            let message = ContiguousMessage { bytes, end: span.start_of_tail(&[]) };
            if count == 1 {
                if let Some(value) = T::scalar_fast(&row, message)
                    && let Some(to) = memory.values.get_mut(row.number)
                {
                    *to = value;
                    continue;
                }
            } else if T::fits(count, bytes.len()) {
                let to = row_values(memory, &row, count, max);
                if T::fixed_fast(&row, message, to).is_some() {
                    continue;
                }
            }
        }
        fixed_slow(memory, span, &row, count, slot, &default, block).map_err(|fault| BadRow {
            row: k,
            step: None,
            fault,
        })?;
    }
    Ok(())
}

/// Returns the memory for the values of one row, after those of all earlier rows.
#[inline]
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "the values of earlier rows are in memory, `count` values exist in the row or the default, and `grow` makes room for all"
)]
fn row_values<'d, T: ValueType>(
    memory: &'d mut BufMut<T>,
    row: &RowBytes<'_>,
    count: usize,
    max: usize,
) -> &'d mut [T] {
    let start = row.number.saturating_mul(count);
    memory.grow(start + count, max, T::BLANK);
    &mut memory.values[start..start + count]
}

/// Decodes one row in any encoding. The feature may be absent.
#[inline(never)]
fn fixed_slow<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    span: ValueSpan,
    row: &RowBytes<'_>,
    count: usize,
    slot: &PlanSlot,
    default: impl Fn(&mut [T]),
    block: &RowBlock<'_, R>,
) -> Result<(), RowFault> {
    let has_default = matches!(slot.need, Need::Fixed { default: Some(_), .. });
    let max = block.total.saturating_mul(count);
    match list_slow::<T>(span, row.payload)? {
        Some(list) if T::len(list) == count => T::copy_all(list, row, row_values(memory, row, count, max)),
        Some(list) => return Err(FeatureError::Count { expected: count, found: T::len(list) }.into()),
        // In a context, a feature that is present without a kind is an empty list.
        None if block.context && span.message(row.payload).is_some() => {
            if count > 0 {
                return Err(FeatureError::Count { expected: count, found: 0 }.into());
            }
        }
        None if has_default => default(row_values(memory, row, count, max)),
        None => return Err(FeatureError::Missing { expected: DType::from(T::KIND).name() }.into()),
    }
    Ok(())
}

/// Decodes one value per row, or none. Appends 1 or 0 to `counts`.
// Not inlined, so that the code of the other needs stays the same.
#[inline(never)]
#[expect(clippy::arithmetic_side_effects, reason = "a block ends within the batch")]
fn optional<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    counts: &mut Vec<u32>,
    index: usize,
    default: impl Fn(&mut [T]),
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    memory.grow(block.first + block.rows.len(), block.total, T::BLANK);
    let rows = block.rows.iter().enumerate();
    for ((k, row), to) in rows.zip(memory.values.iter_mut().skip(block.first)) {
        let span = block.spans.get(k, index);
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        if let Some(bytes) = span.contiguous(row.payload) {
            let message = ContiguousMessage { bytes, end: span.start_of_tail(&[]) };
            if let Some(value) = T::scalar_fast(&row, message) {
                *to = value;
                counts.push(1);
                continue;
            }
        }
        let bad = |fault| BadRow { row: k, step: None, fault };
        let to = slice::from_mut(to);
        counts.push(match list_slow::<T>(span, row.payload).map_err(bad)? {
            Some(list) if T::len(list) == 1 => {
                T::copy_all(list, &row, to);
                1
            }
            Some(list) if T::len(list) > 1 => {
                return Err(bad(FeatureError::Several { found: T::len(list) }.into()));
            }
            _ => {
                default(to);
                0
            }
        });
    }
    Ok(())
}

/// Returns a list in any encoding; `None` if the feature is absent or has no kind.
#[inline(never)]
fn list_slow<T: ValueType>(span: ValueSpan, payload: &[u8]) -> Result<Option<T::List<'_>>, RowFault> {
    let Some(value) = span.message(payload) else { return Ok(None) };
    match Feature::check(value, VALUE_DEPTH)? {
        Feature::None => Ok(None),
        feature => Ok(Some(T::list(feature)?)),
    }
}

/// Appends the values of one message and returns their number, which is 0 without a kind.
#[inline]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "`append_fast` has put `count` values into memory after `used` ones"
)]
fn append<T: ValueType>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    value: ValueMessage<'_>,
    depth: u8,
    row: &RowBytes<'_>,
) -> Result<usize, RowFault> {
    if let Some(bytes) = value.as_one()
        && let message = (ContiguousMessage { bytes, end: value.start_of_tail(&[]) })
        && let Some(count) = T::append_fast(row, message, memory, *used)
    {
        *used += count;
        return Ok(count);
    }
    append_slow(memory, used, value, depth, row)
}

#[inline(never)]
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "`used` values and a row of at least `count` bytes are in memory, and `grow` makes room for `used + count` values"
)]
fn append_slow<T: ValueType>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    value: ValueMessage<'_>,
    depth: u8,
    row: &RowBytes<'_>,
) -> Result<usize, RowFault> {
    let list = match Feature::check(value, depth)? {
        Feature::None => return Ok(0),
        feature => T::list(feature)?,
    };
    let count = T::len(list);
    memory.grow(*used + count, usize::MAX, T::BLANK);
    T::copy_all(list, row, &mut memory.values[*used..*used + count]);
    *used += count;
    Ok(count)
}

/// Decodes any number of values per row. The number must be a multiple of `block_len`.
#[inline]
#[expect(clippy::arithmetic_side_effects, reason = "a block ends within the batch")]
fn variable<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    index: usize,
    block_len: usize,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    for (k, row) in block.rows.iter().enumerate() {
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        let bad = |fault| BadRow { row: k, step: None, fault };
        let count = match block.spans.get(k, index).message(row.payload) {
            None => 0,
            Some(value) => append(memory, used, value, VALUE_DEPTH, &row).map_err(bad)?,
        };
        if block_len > 1 && !count.is_multiple_of(block_len) {
            return Err(bad(FeatureError::Blocks { of: block_len, found: count }.into()));
        }
        counts.push(count as u32);
    }
    Ok(())
}

/// Decodes the steps of each row of a feature list.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a block ends within the batch, and each step takes at least two bytes of a payload"
)]
fn lists<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    steps: &mut Vec<u32>,
    index: usize,
    slot: &PlanSlot,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    for (k, row) in block.rows.iter().enumerate() {
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        let (step_len, required) = match slot.need {
            Need::Blocks { block_len, required } => (Some(block_len), required),
            _ => (None, false),
        };
        let Some(value) = block.spans.get(k, index).message(row.payload) else {
            if required {
                let fault = FeatureError::Missing { expected: slot.dtype.name() }.into();
                return Err(BadRow { row: k, step: None, fault });
            }
            steps.push(0);
            continue;
        };
        let mut step = 0;
        for mut list in value.messages(VALUE_DEPTH) {
            while let Some(field) = list.next().map_err(|e| BadRow { row: k, step: None, fault: e.into() })? {
                let (1, WireValue::Len(message)) = field else { continue };
                let step_value = ValueMessage::one(message, list.start_of(message));
                let bad = |fault| BadRow { row: k, step: Some(step), fault };
                let count = append(memory, used, step_value, FeatureList::STEP_DEPTH, &row).map_err(bad)?;
                if let Some(expected) = step_len.filter(|&expected| expected != count) {
                    return Err(bad(FeatureError::Count { expected, found: count }.into()));
                }
                counts.push(count as u32);
                step += 1;
            }
        }
        steps.push(step as u32);
    }
    Ok(())
}
