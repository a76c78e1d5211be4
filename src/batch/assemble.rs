//! Assembly of columns from decoded slots.

#![expect(
    clippy::indexing_slicing,
    reason = "slots, columns and pools have the numbers of the plan, and each slot has counts of all rows"
)]

use super::bytes::{SpanBytes, ValueMemory, ValuePools};
use super::column::{Column, Dense, Optional, Values};
use super::compile::{ColumnForm, Need};
use super::decode::SlotValues;
use super::pool::{Buf, BufMut};
use super::row::Row;
use super::slots::{ColumnPools, DecodedSlots, RowError};
use super::value_type::ValueType;
use super::{ragged, sparse};
use crate::error::{ErrorKind, Result};
use crate::example::FeatureBuf;

/// The decoded slots of one map field, and the buffers to assemble their columns.
pub(super) struct Assembly<'a, R> {
    pub(super) bytes: SpanBytes<'a, R>,
    pub(super) slots: &'a mut [SlotValues],
    pub(super) slot_pools: &'a mut [ValuePools],
    pub(super) column_pools: &'a mut [ColumnPools],
    /// Shared values of the slots; empty until `share_values`.
    pub(super) values: &'a mut Vec<Values>,
    /// Memory for the items of ragged columns and the order of sparse ones.
    pub(super) scratch: &'a mut Vec<u32>,
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
                ColumnForm::Ragged(plan) => !plan.partitions.is_empty(),
                ColumnForm::Sparse(_) => true,
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
            ColumnForm::Geometry { .. } => {
                *column = Column::empty();
                Ok(())
            }
            ColumnForm::Stack { slots: stacked } => stack(slots, stacked, pools, column),
            ColumnForm::Ragged(plan) => ragged::column(slots, plan, pools, self.scratch, column),
            ColumnForm::Sparse(plan) => sparse::column(slots, plan, pools, self.scratch, column),
        };
        assembled.map_err(|RowError { row, error }| RowError {
            row,
            error: error.feature(planned.name.as_bytes()),
        })
    }

    /// Pads all rows to the length of the longest.
    fn pad(&mut self, slot: usize, block_len: usize, fill: &FeatureBuf) -> Result<()> {
        let filled = &mut self.slots[slot];
        let used = filled.used;
        let longest = longest_row(filled, self.lists, block_len, self.rows);
        let total = self.rows.saturating_mul(longest);
        if total == used {
            return Ok(());
        }
        let mut memory = std::mem::take(&mut filled.memory);
        let lens = (0..self.rows).rev().map(|row| row_len(filled, self.lists, block_len, row));
        let region = self.bytes.rows.len() + slot;
        let limit = self.limit;
        match &mut memory {
            ValueMemory::Int64(buf) => spread(buf, lens, used, longest, total, limit, padding(fill, region)),
            ValueMemory::Float32(buf) => {
                spread(buf, lens, used, longest, total, limit, padding(fill, region))
            }
            ValueMemory::Bytes(buf) => spread(buf, lens, used, longest, total, limit, padding(fill, region)),
        }?;
        filled.memory = memory;
        filled.used = total;
        Ok(())
    }

    /// Adds the presence of the values of each column, by row.
    pub(super) fn presences(&mut self, to: &mut Vec<Buf<u8>>) -> Result<(), RowError> {
        for (planned, pools) in self.bytes.part.columns.iter().zip(self.column_pools.iter_mut()) {
            let mut buf = pools.presence.take();
            buf.grow(self.rows, self.rows, 0)?;
            let presence = &self.slots[planned.form.values()].presence[..self.rows];
            buf.values[..self.rows].copy_from_slice(presence);
            to.push(pools.presence.freeze(buf, self.rows));
        }
        Ok(())
    }

    /// Adds the number of steps in each row of each dense feature list; `None` for other columns.
    pub(super) fn lengths(&mut self, to: &mut Vec<Option<Buf<i64>>>) -> Result<(), RowError> {
        for (planned, pools) in self.bytes.part.columns.iter().zip(self.column_pools.iter_mut()) {
            let ColumnForm::Padded { slot, .. } = planned.form else {
                to.push(None);
                continue;
            };
            let mut buf = pools.lengths.take();
            buf.grow(self.rows, self.rows, 0)?;
            for (to, &steps) in buf.values.iter_mut().zip(&self.slots[slot].steps[..self.rows]) {
                *to = steps.into();
            }
            to.push(Some(pools.lengths.freeze(buf, self.rows)));
        }
        Ok(())
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
    let mut sizes = column.take_shape();
    sizes.extend(slots.rows_dimension().into_iter().chain(blocks).chain(shape.iter().copied()));
    *column = Column::Dense(Dense { values: slots.values(slot), shape: sizes });
}

/// Assembles the numbers of several slots, of which each has one a row.
fn stack(
    slots: DecodedSlots<'_>,
    stacked: &[usize],
    pools: &mut ColumnPools,
    column: &mut Column,
) -> Result<(), RowError> {
    let all = stacked.iter().map(|&slot| &slots.values[slot]);
    let values = pools.values.stack(all, slots.rows)?;
    let mut shape = column.take_shape();
    shape.extend(slots.rows_dimension().into_iter().chain([stacked.len()]));
    *column = Column::Dense(Dense { values, shape });
    Ok(())
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
    let mut shape = column.take_shape();
    shape.extend(slots.rows_dimension());
    *column = Column::Optional(Optional { values: slots.values(slot), present, shape });
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
    let steps = slots.lists.then(|| slots.steps(slot));
    if let Some(steps) = steps {
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
    } else if slots.single {
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
    let dense_shape = rows.into_iter().chain(steps.map(longest)).chain([longest(counts)]);
    column.set_sparse(indices, values, dense_shape);
    Ok(())
}

/// Returns the value that pads a column, which is the first of the default. A string is in region `region`.
fn padding<T: ValueType>(fill: &FeatureBuf, region: usize) -> T {
    let mut value = [T::default()];
    T::write_default(fill, region, &mut value);
    value[0]
}

/// Moves contiguous rows apart, so that each has `longest` values, and fills the gaps with `fill`.
///
/// `lens` are the lengths of the rows, from the last to the first.
fn spread<T: Copy>(
    buf: &mut BufMut<T>,
    lens: impl Iterator<Item = usize>,
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
