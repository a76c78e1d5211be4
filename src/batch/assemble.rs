//! Assembly of columns from decoded slots.

#![expect(
    clippy::indexing_slicing,
    reason = "slots, columns and pools have the numbers of the plan, and each slot has counts of all rows"
)]

use super::bytes::{SpanBytes, ValueMemory, ValuePools};
use super::column::{Column, RegionSpan, Values};
use super::compile::{ColumnForm, DefaultValues, Need};
use super::decode::SlotValues;
use super::pool::{Buf, BufMut, NoMemory};
use super::row::Row;
use super::slots::{AssemblyScratch, ColumnPools, DecodedSlots, RowError};
use super::value_type::ValueType;
use super::{ragged, sparse};
use crate::error::{ErrorKind, Result};

/// The decoded slots of one map field, and the buffers to assemble their columns.
pub(super) struct Assembly<'a, R> {
    pub(super) bytes: SpanBytes<'a, R>,
    pub(super) slots: &'a mut [SlotValues],
    pub(super) slot_pools: &'a mut [ValuePools],
    pub(super) column_pools: &'a mut [ColumnPools],
    /// Shared values of the slots; empty until `share_values`.
    pub(super) values: &'a mut Vec<Values>,
    pub(super) scratch: &'a mut AssemblyScratch,
    /// Number of decoded rows.
    pub(super) rows: usize,
    /// True if the columns omit the row dimension.
    pub(super) single: bool,
    /// True if the slots are feature lists. Counts are then per step.
    pub(super) lists: bool,
    /// Maximum bytes of a padded column or of the row splits of a partition.
    pub(super) limit: u64,
}

impl<R: Row> Assembly<'_, R> {
    /// Assembles the columns. The error is the lowest refused row's.
    pub(super) fn columns(&mut self, columns: &mut Vec<Column>) -> Result<(), RowError> {
        let part = self.bytes.part;
        columns.resize_with(part.columns.len(), Column::empty);
        for planned in &part.columns {
            if let ColumnForm::Padded { slot, block_len, fill, .. } = &planned.form {
                let padded = self.pad(*slot, *block_len, fill);
                padded.map_err(|error| RowError { row: 0, error: error.feature(planned.name.as_bytes()) })?;
            }
        }
        self.share_values()?;
        let mut lowest = None;
        for (index, column) in columns.iter_mut().enumerate() {
            RowError::keep_lowest(&mut lowest, self.column(index, column));
        }
        lowest.map_or(Ok(()), Err)
    }

    /// Validates columns made of several features, without keeping them. The error is the lowest refused
    /// row's.
    pub(super) fn check(&mut self) -> Result<(), RowError> {
        self.share_values()?;
        let mut lowest = None;
        for (index, planned) in self.bytes.part.columns.iter().enumerate() {
            let composite = match &planned.form {
                ColumnForm::Ragged { partitions, .. } => !partitions.is_empty(),
                ColumnForm::Sparse { .. } => true,
                _ => false,
            };
            if composite {
                RowError::keep_lowest(&mut lowest, self.column(index, &mut Column::empty()));
            }
        }
        lowest.map_or(Ok(()), Err)
    }

    /// Shares the values of all slots.
    fn share_values(&mut self) -> Result<(), RowError> {
        self.values.clear();
        for (index, slot) in self.bytes.part.slots.iter().enumerate() {
            let filled = &mut self.slots[index];
            let len = match slot.need {
                Need::Fixed { count, .. } => self.rows.saturating_mul(count).min(filled.used),
                _ => filled.used,
            };
            let values = filled.freeze(&mut self.slot_pools[index], len, &self.bytes);
            self.values.push(values.map_err(|e| RowError::without_memory(0, &slot.key, e))?);
        }
        Ok(())
    }

    fn column(&mut self, index: usize, column: &mut Column) -> Result<(), RowError> {
        let slots = DecodedSlots {
            slots: self.slots,
            values: self.values,
            rows: self.rows,
            single: self.single,
            lists: self.lists,
            limit: self.limit,
        };
        let planned = &self.bytes.part.columns[index];
        let pools = &mut self.column_pools[index];
        let assembled = match &planned.form {
            ColumnForm::Dense { slot, shape } => {
                dense(slots, *slot, None, shape, column);
                Ok(())
            }
            ColumnForm::Optional { slot } => optional(slots, *slot, pools, column),
            ColumnForm::Padded { slot, shape, block_len, .. } => {
                dense(slots, *slot, Some(*block_len), shape, column);
                Ok(())
            }
            ColumnForm::VarLen { slot } => var_len(slots, *slot, pools, column),
            ColumnForm::Ragged { slot, partitions, splits } => {
                let form = ragged::RaggedForm { slot: *slot, partitions, splits: *splits };
                ragged::column(slots, form, pools, &mut self.scratch.items, column)
            }
            ColumnForm::Sparse { values, indices, size, already_sorted } => {
                let form =
                    sparse::SparseForm { values: *values, indices, size, already_sorted: *already_sorted };
                sparse::column(slots, form, pools, &mut self.scratch.order, column)
            }
        };
        assembled.map_err(|RowError { row, error }| RowError {
            row,
            error: error.feature(planned.name.as_bytes()),
        })
    }

    /// Pads all rows to the length of the longest.
    fn pad(&mut self, slot: usize, block_len: usize, fill: &DefaultValues) -> Result<()> {
        let longest = longest_row(&self.slots[slot], self.lists, block_len, self.rows);
        let rows = self.rows;
        let used = self.slots[slot].used;
        let total = rows.saturating_mul(longest);
        if total == used {
            return Ok(());
        }
        let memory = std::mem::take(&mut self.slots[slot].memory);
        let filled = &self.slots[slot];
        let mut lens = (0..rows).rev().map(|row| row_len(filled, self.lists, block_len, row));
        let region = self.bytes.rows.len() + slot;
        let padded = match memory {
            ValueMemory::Int64(mut buf) => {
                let fill = padding(fill, region);
                spread(&mut buf, &mut lens, used, longest, total, self.limit, fill)
                    .map(|()| ValueMemory::Int64(buf))
            }
            ValueMemory::Float32(mut buf) => {
                let fill = padding(fill, region);
                spread(&mut buf, &mut lens, used, longest, total, self.limit, fill)
                    .map(|()| ValueMemory::Float32(buf))
            }
            ValueMemory::Bytes(mut buf) => {
                // An empty string may have any span.
                let has_fill = self.bytes.part.slots[slot].fallback.is_some();
                let fill = if has_fill { padding(fill, region) } else { RegionSpan::BLANK };
                spread(&mut buf, &mut lens, used, longest, total, self.limit, fill)
                    .map(|()| ValueMemory::Bytes(buf))
            }
        };
        self.slots[slot].memory = padded?;
        self.slots[slot].used = total;
        Ok(())
    }

    /// Collects the presence of the values of all columns.
    pub(super) fn presences(&mut self, to: &mut Vec<Buf<u8>>) -> Result<(), RowError> {
        to.clear();
        for column in 0..self.bytes.part.columns.len() {
            to.push(self.presence(column)?);
        }
        Ok(())
    }

    /// Collects the numbers of steps of all columns.
    pub(super) fn all_lengths(&mut self, to: &mut Vec<Option<Buf<i64>>>) -> Result<(), RowError> {
        to.clear();
        for column in 0..self.bytes.part.columns.len() {
            to.push(self.lengths(column)?);
        }
        Ok(())
    }

    /// Returns the presence of the values of a column in each row.
    fn presence(&mut self, index: usize) -> Result<Buf<u8>, NoMemory> {
        let slot = self.bytes.part.columns[index].form.values();
        let presence = &self.slots[slot].presence[..self.rows];
        let pool = &mut self.column_pools[index].presence;
        let mut buf = pool.take();
        buf.grow(self.rows, self.rows, 0)?;
        buf.values[..self.rows].copy_from_slice(presence);
        Ok(pool.freeze(buf, self.rows))
    }

    /// Returns the number of steps in each row of a dense feature list; `None` for other columns.
    fn lengths(&mut self, index: usize) -> Result<Option<Buf<i64>>, NoMemory> {
        let ColumnForm::Padded { slot, .. } = &self.bytes.part.columns[index].form else { return Ok(None) };
        let pool = &mut self.column_pools[index].lengths;
        let mut buf = pool.take();
        buf.grow(self.rows, self.rows, 0)?;
        for (to, &steps) in buf.values.iter_mut().zip(&self.slots[*slot].steps[..self.rows]) {
            *to = steps.into();
        }
        Ok(Some(pool.freeze(buf, self.rows)))
    }
}

/// Returns the number of values of a row.
fn row_len(filled: &SlotValues, lists: bool, block_len: usize, row: usize) -> usize {
    if lists { filled.steps[row] as usize * block_len } else { filled.counts[row] as usize }
}

fn longest_row(filled: &SlotValues, lists: bool, block_len: usize, rows: usize) -> usize {
    (0..rows).map(|row| row_len(filled, lists, block_len, row)).max().unwrap_or(0)
}

/// Assembles a dense column. `block_len` is given if the rows were padded.
fn dense(
    slots: DecodedSlots<'_>,
    slot: usize,
    block_len: Option<usize>,
    shape: &[usize],
    column: &mut Column,
) {
    // All rows have the length of the longest.
    let longest = |block_len| longest_row(&slots.slots[slot], slots.lists, block_len, slots.rows);
    let blocks = block_len.map(|block_len| longest(block_len) / block_len);
    let shape = slots.rows_dimension().into_iter().chain(blocks).chain(shape.iter().copied());
    column.set_dense(slots.values(slot), shape);
}

/// Assembles an optional column. The number of values that a row has is its presence.
fn optional(
    slots: DecodedSlots<'_>,
    slot: usize,
    pools: &mut ColumnPools,
    column: &mut Column,
) -> Result<(), RowError> {
    let counts = slots.counts(slot);
    let mut present = pools.present.take();
    present.grow(counts.len(), counts.len(), 0)?;
    for (to, &count) in present.values.iter_mut().zip(counts) {
        *to = u8::from(count > 0);
    }
    let present = pools.present.freeze(present, counts.len());
    column.set_optional(slots.values(slot), present, slots.rows_dimension());
    Ok(())
}

/// Assembles a sparse column of all values of a slot.
fn var_len(
    slots: DecodedSlots<'_>,
    slot: usize,
    pools: &mut ColumnPools,
    column: &mut Column,
) -> Result<(), RowError> {
    let values = slots.values(slot);
    let pool = &mut pools.int64;
    let mut buf = pool.take();
    let used = values.len();
    let counts = slots.counts(slot);
    let longest = |counts: &[u32]| u64::from(counts.iter().max().copied().unwrap_or(0));
    let rows = slots.rows_dimension().map(|rows| rows as u64);
    let rank = 1 + usize::from(slots.lists) + usize::from(!slots.single);
    buf.grow(used * rank, used * rank, 0)?;
    if !slots.lists {
        if slots.single {
            for (k, to) in buf.values.iter_mut().take(used).enumerate() {
                *to = k as i64;
            }
        } else {
            let mut to = buf.values.chunks_exact_mut(2);
            for (row, &count) in counts.iter().enumerate() {
                for (k, to) in to.by_ref().take(count as usize).enumerate() {
                    to.copy_from_slice(&[row as i64, k as i64]);
                }
            }
        }
        let indices = pool.freeze(buf, used * rank);
        column.set_sparse(indices, values, rows.into_iter().chain([longest(counts)]));
        return Ok(());
    }
    let steps = slots.steps(slot);
    let mut to = buf.values.chunks_exact_mut(rank);
    let mut cells = counts.iter();
    for (row, &steps) in steps.iter().enumerate() {
        for (step, &count) in cells.by_ref().take(steps as usize).enumerate() {
            for (k, to) in to.by_ref().take(count as usize).enumerate() {
                let index = [row as i64, step as i64, k as i64];
                to.copy_from_slice(&index[3 - rank..]);
            }
        }
    }
    let indices = pool.freeze(buf, used * rank);
    column.set_sparse(indices, values, rows.into_iter().chain([longest(steps), longest(counts)]));
    Ok(())
}

/// Returns the value that pads a column, which is the first of the default. A string is in region `region`.
fn padding<T: ValueType>(fill: &DefaultValues, region: usize) -> T {
    let mut value = [T::BLANK];
    T::write_default(fill, region, &mut value);
    value[0]
}

/// Moves contiguous rows apart, so that each has `longest` values, and fills the gaps with `fill`.
///
/// `lens` are the lengths of the rows, from the last to the first.
fn spread<T: Copy>(
    buf: &mut BufMut<T>,
    lens: &mut dyn Iterator<Item = usize>,
    used: usize,
    longest: usize,
    total: usize,
    limit: u64,
    fill: T,
) -> Result<()> {
    let bytes = total as u128 * size_of::<T>() as u128;
    if bytes > u128::from(limit) {
        return Err(ErrorKind::TooLarge { len: bytes, limit }.into());
    }
    buf.grow(total, total, fill)?;
    let mut from = used;
    let mut to = total;
    for len in lens {
        // The last row moves first, because the new offset of a row is never below its old offset.
        from -= len;
        to -= longest;
        buf.values.copy_within(from..from + len, to);
        buf.values[to + len..to + longest].fill(fill);
    }
    Ok(())
}
