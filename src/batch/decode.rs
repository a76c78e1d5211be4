//! Decoding of spans to values: slot by slot, each over the rows of a block.

use super::array::ArrayMemory;
use super::bytes::{CopiedStrings, SpanBytes, ValueMemory, ValuePools};
use super::column::Values;
use super::compile::{ArrayPlan, DefaultValues, MapField, Need, PlanSlot};
use super::pool::{BufMut, NoMemory};
use super::row::Row;
use super::span::{ListContent, SpanTable, ValueSpan};
use super::unpack::{ArrayLimits, SlotArrays};
use super::value_type::{RowBytes, ValueType, content, message_content};
use crate::error::{Error, FeatureError};
use crate::example::{Feature, FeatureList, VALUE_DEPTH, ValueMessage};
use std::slice;
use tfseek_wire::{Fault, WireValue};

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

/// The reason for refusing a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowFault {
    Wire(Fault),
    Feature(FeatureError),
    /// There is not enough memory for the values.
    Memory(NoMemory),
}

impl RowFault {
    /// Converts the fault to an error that names the feature `key`.
    #[cold]
    pub(super) fn error(self, key: &str) -> Error {
        match self {
            RowFault::Wire(fault) => Error::from(fault),
            RowFault::Feature(e) => Error::from(e),
            RowFault::Memory(e) => Error::from(e),
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

impl From<NoMemory> for RowFault {
    #[cold]
    fn from(e: NoMemory) -> RowFault {
        RowFault::Memory(e)
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

impl BadRow {
    /// Returns the error for the memory of all rows of a block.
    #[cold]
    fn without_memory(e: impl Into<NoMemory>) -> BadRow {
        BadRow { row: 0, step: None, fault: RowFault::Memory(e.into()) }
    }
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
    pub(super) fn start(&mut self, memory: ValueMemory, arrays: Option<ArrayMemory>) {
        self.memory = memory;
        self.arrays.memory = arrays;
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
}

impl SlotValues {
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
    ) -> Result<(), NoMemory> {
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
    ) -> Result<(), NoMemory> {
        let ValueMemory::Bytes(spans) = &self.memory else { return Ok(()) };
        let strings = self.strings.get_or_insert_with(|| pools.strings());
        let new = spans.values.get(strings.len()..self.used).unwrap_or_default();
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
        block: &RowBlock<'_, R>,
        rows: usize,
        limit: u64,
    ) -> Result<(), (usize, Error)> {
        let SlotValues { memory: ValueMemory::Bytes(spans), arrays, counts, .. } = self else {
            return Ok(());
        };
        let spans = &spans.values[block.first..];
        let rows = block.rows.get(..rows).unwrap_or(block.rows);
        arrays.append(plan, rows, spans, counts, ArrayLimits { rows: block.total, filled: limit })
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
    ) -> Result<Values, NoMemory> {
        let strings = self.strings.take();
        if let Some(arrays) = self.arrays.memory.take() {
            pools.reuse(std::mem::take(&mut self.memory));
            return Ok(Values::Array(pools.arrays.freeze(arrays)));
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
    default: Option<&DefaultValues>,
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
            .map_err(|fault| BadRow { row: k, step: None, fault })?;
    }
    Ok(())
}

/// Decodes one value per row.
#[inline]
#[expect(clippy::indexing_slicing, reason = "`grow` makes room, and a block has spans of all of its rows")]
fn scalars<T: ValueType, R: Row>(
    memory: &mut BufMut<T>,
    index: usize,
    default: Option<&DefaultValues>,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    let grown = memory.grow(block.first + block.rows.len(), block.total, T::BLANK);
    grown.map_err(BadRow::without_memory)?;
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
            .map_err(|fault| BadRow { row: k, step: None, fault })?;
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
) -> Result<&'d mut [T], NoMemory> {
    let start = row.number * count;
    memory.grow(start + count, max, T::BLANK)?;
    Ok(&mut memory.values[start..start + count])
}

/// Decodes one row in any encoding into `room`. The feature of slot `index` may be absent.
#[inline(never)]
fn fixed_slow<'d, T: ValueType, R: Row>(
    room: impl FnOnce() -> Result<&'d mut [T], NoMemory>,
    span: ValueSpan,
    row: &RowBytes<'_>,
    count: usize,
    (index, default): (usize, Option<&DefaultValues>),
    block: &RowBlock<'_, R>,
) -> Result<(), RowFault> {
    match list_slow::<T>(span, row.payload)? {
        Some(list) if T::len(list) == count => T::copy_all(list, row, room()?),
        Some(list) => return Err(FeatureError::Count { expected: count, found: T::len(list) }.into()),
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
    default: &DefaultValues,
    block: &RowBlock<'_, R>,
) -> Result<(), BadRow> {
    let grown = memory.grow(block.first + block.rows.len(), block.total, T::BLANK);
    grown.map_err(BadRow::without_memory)?;
    counts.try_reserve(block.rows.len()).map_err(BadRow::without_memory)?;
    for ((k, row, span), to) in block.column(index).zip(memory.values.iter_mut().skip(block.first)) {
        let row = match scalar(span, row, block.first + k) {
            Ok(value) => {
                *to = value;
                counts.push(1);
                continue;
            }
            Err(row) => row,
        };
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
                T::write_default(default, block.default_region(index), to);
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
) -> Result<usize, RowFault> {
    let list = match Feature::check(value, depth)? {
        Feature::None => return Ok(0),
        feature => T::list(feature)?,
    };
    let count = T::len(list);
    memory.grow(*used + count, usize::MAX, T::BLANK)?;
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
    counts.try_reserve(block.rows.len()).map_err(BadRow::without_memory)?;
    for (k, row, span) in block.column(index) {
        let row = RowBytes { number: block.first + k, payload: row.payload() };
        let bad = |fault| BadRow { row: k, step: None, fault };
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
                let count = match append(memory, used, message_content::<T>(step_value), &row) {
                    Some(count) => count,
                    None => {
                        append_slow(memory, used, step_value, FeatureList::STEP_DEPTH, &row).map_err(bad)?
                    }
                };
                if let Some(expected) = step_len.filter(|&expected| expected != count) {
                    return Err(bad(FeatureError::Count { expected, found: count }.into()));
                }
                counts.try_reserve(1).map_err(|e| bad(NoMemory::from(e).into()))?;
                counts.push(count as u32);
                step += 1;
            }
        }
        steps.push(step as u32);
    }
    Ok(())
}
