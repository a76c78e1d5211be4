//! Decoding of spans to values: slot by slot, each over the rows of a block.

use super::array::ArrayMemory;
use super::bytes::{CopiedStrings, SpanBytes, ValueMemory, ValuePools};
use super::column::Values;
use super::compile::{ArrayPlan, MapField, Need, PlanSlot};
use super::pool::BufMut;
use super::row::Row;
use super::span::{ListContent, SpanTable, ValueSpan};
use super::unpack::SlotArrays;
use super::value_type::{RowBytes, ValueType, content, message_content};
use crate::error::{Error, FeatureError, Result};
use crate::example::{Feature, FeatureBuf, FeatureList, List, VALUE_DEPTH, ValueMessage};
use std::collections::TryReserveError;
use std::slice;
use tfseek_wire::WireValue;

/// The values of one slot, for all rows so far.
#[derive(Default)]
pub(super) struct SlotValues {
    pub(super) memory: ValueMemory,
    /// Number of values in the memory.
    pub(super) used: usize,
    /// Copies of the first strings of the memory.
    strings: Option<CopiedStrings>,
    /// Number of values of each row, or of each step of each row. Empty if the number is fixed. 0 for a
    /// missing value.
    pub(super) counts: Vec<u32>,
    /// Number of steps of each row of a feature list.
    pub(super) steps: Vec<u32>,
    /// Values of arrays that are the strings of the memory.
    arrays: SlotArrays,
    /// 1 for each row with the feature and a kind, or with the feature list; otherwise 0. Empty if presence
    /// is not recorded.
    pub(super) presence: Vec<u8>,
}

/// The first refused row of a block, counted from the start of the block, and its error without the feature.
type BadRow = (usize, Error);

/// Returns the error for the memory of all rows of a block.
#[cold]
fn without_memory(e: TryReserveError) -> BadRow {
    (0, e.into())
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

impl<'a, R: Row> RowBlock<'a, R> {
    /// Returns the number of the region of a slot's default strings: the slots' regions follow the rows'
    /// regions.
    fn default_region(&self, slot: usize) -> usize {
        self.total + slot
    }

    /// Returns the rows with their positions in the block and their spans of a slot.
    #[inline(always)]
    fn column(&self, slot: usize) -> impl Iterator<Item = (usize, &'a R, ValueSpan)> {
        let rows = self.rows.iter().enumerate();
        rows.zip(self.spans.slot(slot)).map(|((k, row), span)| (k, row, *span))
    }
}

impl SlotValues {
    /// Starts a batch. No values are in the memory yet.
    pub(super) fn start(&mut self, memory: ValueMemory, arrays: Option<(ArrayMemory, bool)>) {
        self.memory = memory;
        self.arrays.start(arrays);
        self.used = 0;
        self.strings = None;
        self.counts.clear();
        self.steps.clear();
        self.presence.clear();
    }

    /// Decodes the features of slot `index` in a block. If a row is refused, the rows before it are decoded;
    /// later rows may be.
    #[inline]
    pub(super) fn features<R: Row>(
        &mut self,
        index: usize,
        slot: &PlanSlot,
        block: &RowBlock<'_, R>,
    ) -> Result<(), BadRow> {
        let SlotValues { memory, used, counts, .. } = self;
        match memory {
            ValueMemory::Int64(memory) => features(memory, used, counts, index, slot, block),
            ValueMemory::Float32(memory) => features(memory, used, counts, index, slot, block),
            ValueMemory::Bytes(memory) => features(memory, used, counts, index, slot, block),
        }
    }

    /// Decodes the feature lists of slot `index` in a block, in the same way as
    /// [`features`](SlotValues::features).
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

    /// Records the presence of the feature, or of the feature list, of slot `index` in the rows of a block,
    /// which were decoded.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn record_presence<R: Row>(
        &mut self,
        index: usize,
        map: MapField,
        block: &RowBlock<'_, R>,
    ) -> Result<(), TryReserveError> {
        self.presence.try_reserve(block.rows.len())?;
        self.presence.extend(block.column(index).map(|(_, row, span)| {
            u8::from(match map {
                MapField::Features => span.has_kind(row.payload()),
                MapField::FeatureLists => span.is_present(),
            })
        }));
        Ok(())
    }

    /// Copies the strings decoded since the last call, while they are still in the CPU cache.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn copy_strings<R: Row>(
        &mut self,
        pools: &mut ValuePools,
        bytes: &SpanBytes<'_, R>,
    ) -> Result<(), TryReserveError> {
        let ValueMemory::Bytes(spans) = &self.memory else { return Ok(()) };
        let strings = self.strings.get_or_insert_with(|| pools.strings());
        let new = spans.values.get(strings.len..self.used).unwrap_or_default();
        strings.append(new, |span| bytes.get(span))
    }

    /// Reads the arrays of a block, whose strings are in the memory. `rows` is the number of rows before the
    /// first refused one.
    ///
    /// # Errors
    /// The first refused row, counted from the start of the block.
    #[expect(clippy::indexing_slicing, reason = "the strings of all earlier rows are in the memory")]
    pub(super) fn read_arrays<R: Row>(
        &mut self,
        plan: &ArrayPlan,
        map: MapField,
        block: &RowBlock<'_, R>,
        rows: usize,
        limit: u64,
    ) -> Result<(), BadRow> {
        let SlotValues { memory: ValueMemory::Bytes(spans), arrays, counts, steps, .. } = self else {
            return Ok(());
        };
        let rows = block.rows.get(..rows).unwrap_or(block.rows);
        let total = block.total;
        if plan.several {
            let strings = if map == MapField::FeatureLists { steps } else { counts };
            let strings = &strings[block.first..];
            return arrays.append_several(plan, rows, &spans.values, strings, limit);
        }
        arrays.append(plan, rows, &spans.values[block.first..], counts, total, limit)
    }

    /// Shares the first `len` values. Arrays are shared whole.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn freeze<R: Row>(
        &mut self,
        pools: &mut ValuePools,
        len: usize,
        bytes: &SpanBytes<'_, R>,
    ) -> Result<Values, TryReserveError> {
        let strings = self.strings.take();
        if let Some(arrays) = self.arrays.memory.take() {
            pools.reuse(std::mem::take(&mut self.memory));
            let arrays = pools.arrays.freeze(arrays);
            return if self.arrays.labels { pools.integers(&arrays) } else { Ok(Values::Array(arrays)) };
        }
        pools.freeze(std::mem::take(&mut self.memory), strings, len, bytes)
    }
}

/// Decodes the features of slot `index` in a block by what the slot needs.
#[inline]
fn features<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    index: usize,
    slot: &PlanSlot,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    match &slot.need {
        Need::Fixed { count, default } => {
            *used = (block.first + block.rows.len()).saturating_mul(*count);
            match count {
                1 => scalars(memory, index, default.as_ref(), block),
                count => fixed(memory, index, *count, default.as_ref(), block),
            }
        }
        Need::Optional { default } => {
            *used = block.first + block.rows.len();
            optional(memory, counts, index, default, block)
        }
        Need::Blocks { block_len, .. } => variable(memory, used, counts, index, *block_len, block),
        Need::Any => variable(memory, used, counts, index, 1, block),
    }
}

/// Decodes a fixed number of values per row. The position of each row's values is known in advance.
#[inline]
fn fixed<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    index: usize,
    count: usize,
    default: Option<&FeatureBuf>,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    let max = block.total.saturating_mul(count);
    for (k, row, span) in block.column(index) {
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        if let Some(content) = content::<T>(span, row.payload)
            && T::fits(count, content.len)
            && let Ok(to) = row_values(memory, &row, count, max)
            && T::fixed_fast(&row, content, to).is_some()
        {
            continue;
        }
        let memory = &mut *memory;
        let row = &row;
        let slot = (index, default);
        fixed_slow(move || row_values(memory, row, count, max), span, row, count, slot, block)
            .map_err(|error| (k, error))?;
    }
    Ok(())
}

/// Decodes one value per row.
#[inline]
#[expect(clippy::indexing_slicing, reason = "`grow` makes room, and a block has spans of all of its rows")]
fn scalars<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    index: usize,
    default: Option<&FeatureBuf>,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    let grown = memory.grow(block.first + block.rows.len(), block.total, T::default());
    grown.map_err(without_memory)?;
    let values = &mut memory.values[block.first..block.first + block.rows.len()];
    let spans = &block.spans.slot(index)[..values.len()];
    if T::all_located(spans, block.first, values) {
        return Ok(());
    }
    for ((k, row, span), to) in block.column(index).zip(values) {
        let row = match scalar(span, row, block.first + k) {
            Ok(value) => {
                *to = value;
                continue;
            }
            Err(row) => row,
        };
        fixed_slow(move || Ok(slice::from_mut(to)), span, &row, 1, (index, default), block)
            .map_err(|error| (k, error))?;
    }
    Ok(())
}

/// Returns the value of a list of one value in the common encoding, or else the row.
#[inline(always)]
fn scalar<T: ValueType, R: Row>(span: ValueSpan, row: &R, number: usize) -> Result<T, RowBytes<'_>> {
    if let Some(value) = T::located(span, number) {
        return Ok(value);
    }
    let row = RowBytes { number, payload: row.payload() };
    let value = content::<T>(span, row.payload).and_then(|content| T::scalar_fast(&row, content));
    value.ok_or(row)
}

/// Returns the memory for the values of one row, after the values of all earlier rows.
#[inline]
#[expect(clippy::indexing_slicing, reason = "`grow` makes room for the values")]
fn row_values<'d, T: ValueType>(
    memory: &'d mut BufMut<T>,
    row: &RowBytes<'_>,
    count: usize,
    max: usize,
) -> Result<&'d mut [T], TryReserveError> {
    let start = row.number * count;
    memory.grow(start + count, max, T::default())?;
    Ok(&mut memory.values[start..start + count])
}

/// Decodes one row in any encoding into `room`. The feature of slot `index` may be absent.
#[inline(never)]
fn fixed_slow<'d, T: ValueType, R: Row>(
    room: impl FnOnce() -> Result<&'d mut [T], TryReserveError>,
    span: ValueSpan,
    row: &RowBytes<'_>,
    count: usize,
    (index, default): (usize, Option<&FeatureBuf>),
    block: &RowBlock<'_, R>,
) -> Result<()> {
    match list_slow::<T>(span, row.payload)? {
        Some(list) if list.len() == count => T::copy_all(list, row, room()?),
        Some(list) => return Err(FeatureError::Count { expected: count, found: list.len() }.into()),
        // In a context, a feature that is present without a kind is an empty list.
        None if block.context && span.is_present() => {
            if count > 0 {
                return Err(FeatureError::Count { expected: count, found: 0 }.into());
            }
        }
        None => match default {
            Some(default) => T::write_default(default, block.default_region(index), room()?),
            None => return Err(FeatureError::Missing { expected: T::KIND.name() }.into()),
        },
    }
    Ok(())
}

/// Decodes one value per row, or none. Appends 1 or 0 to `counts`.
// Not inlined, so that the code of the other needs stays the same.
#[inline(never)]
fn optional<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    counts: &mut Vec<u32>,
    index: usize,
    default: &FeatureBuf,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    let grown = memory.grow(block.first + block.rows.len(), block.total, T::default());
    grown.map_err(without_memory)?;
    counts.try_reserve(block.rows.len()).map_err(without_memory)?;
    for ((k, row, span), to) in block.column(index).zip(memory.values.iter_mut().skip(block.first)) {
        let row = match scalar(span, row, block.first + k) {
            Ok(value) => {
                *to = value;
                counts.push(1);
                continue;
            }
            Err(row) => row,
        };
        let to = slice::from_mut(to);
        counts.push(match list_slow::<T>(span, row.payload).map_err(|error| (k, error))? {
            Some(list) if list.len() == 1 => {
                T::copy_all(list, &row, to);
                1
            }
            Some(list) if list.len() > 1 => {
                return Err((k, FeatureError::Several { found: list.len() }.into()));
            }
            _ => {
                T::write_default(default, block.default_region(index), to);
                0
            }
        });
    }
    Ok(())
}

/// Returns a list in any encoding; `None` if the feature is absent or has no kind.
#[inline(never)]
fn list_slow<T: ValueType>(span: ValueSpan, payload: &[u8]) -> Result<Option<List<'_, T::Item<'_>>>> {
    let Some(value) = span.message(payload) else { return Ok(None) };
    match Feature::check(value, VALUE_DEPTH)? {
        Feature::None => Ok(None),
        feature => Ok(Some(T::list(feature)?)),
    }
}

/// Appends the values of a list in the common encoding and returns their number.
#[inline]
fn append<T: ValueType>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    content: Option<ListContent>,
    row: &RowBytes<'_>,
) -> Option<usize> {
    let count = T::append_fast(row, content?, memory, *used)?;
    *used += count;
    Some(count)
}

/// Appends the values of one message and returns their number, which is 0 without a kind.
#[inline(never)]
#[expect(clippy::indexing_slicing, reason = "`grow` makes room for `used + count` values")]
fn append_slow<T: ValueType>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    value: ValueMessage<'_>,
    depth: u8,
    row: &RowBytes<'_>,
) -> Result<usize> {
    let list = match Feature::check(value, depth)? {
        Feature::None => return Ok(0),
        feature => T::list(feature)?,
    };
    let count = list.len();
    memory.grow(*used + count, usize::MAX, T::default())?;
    T::copy_all(list, row, &mut memory.values[*used..*used + count]);
    *used += count;
    Ok(count)
}

/// Decodes any number of values per row. The number must be a multiple of `block_len`.
#[inline]
fn variable<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    index: usize,
    block_len: usize,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    counts.try_reserve(block.rows.len()).map_err(without_memory)?;
    for (k, row, span) in block.column(index) {
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        let bad = |error: Error| (k, error);
        let count = match append(memory, used, content::<T>(span, row.payload), &row) {
            Some(count) => count,
            None => match span.message(row.payload) {
                None => 0,
                Some(value) => append_slow(memory, used, value, VALUE_DEPTH, &row).map_err(bad)?,
            },
        };
        if block_len > 1 && !count.is_multiple_of(block_len) {
            return Err(bad(FeatureError::Blocks { of: block_len, found: count }.into()));
        }
        counts.push(count as u32);
    }
    Ok(())
}

/// Decodes the steps of each row of a feature list.
fn lists<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    used: &mut usize,
    counts: &mut Vec<u32>,
    steps: &mut Vec<u32>,
    index: usize,
    slot: &PlanSlot,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    for (k, row, span) in block.column(index) {
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        let (step_len, required) = match slot.need {
            Need::Blocks { block_len, required } => (Some(block_len), required),
            _ => (None, false),
        };
        let Some(value) = span.message(row.payload) else {
            if required {
                return Err((k, FeatureError::Missing { expected: slot.dtype.name() }.into()));
            }
            steps.push(0);
            continue;
        };
        let mut step = 0;
        for mut list in value.messages(VALUE_DEPTH) {
            while let Some(field) = list.next().map_err(|e| (k, Error::from(e)))? {
                let (1, WireValue::Len(message)) = field else { continue };
                let step_value = ValueMessage::one(message, list.start_of(message));
                let bad = |error: Error| (k, error.step(step));
                let count = match append(memory, used, message_content::<T>(step_value), &row) {
                    Some(count) => count,
                    None => {
                        append_slow(memory, used, step_value, FeatureList::STEP_DEPTH, &row).map_err(bad)?
                    }
                };
                if let Some(expected) = step_len.filter(|&expected| expected != count) {
                    return Err(bad(FeatureError::Count { expected, found: count }.into()));
                }
                counts.try_reserve(1).map_err(|e| bad(e.into()))?;
                counts.push(count as u32);
                step += 1;
            }
        }
        steps.push(step as u32);
    }
    Ok(())
}
