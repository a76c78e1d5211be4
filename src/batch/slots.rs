//! The decoded values of all slots, and the memory that columns are assembled in.

use super::bytes::ValuePools;
use super::column::{RowSplits, Values};
use super::decode::SlotValues;
use super::pool::{BufMut, BufPool};
use crate::error::{Error, FeatureError, Result};
use crate::schema::SplitsDType;

/// The values of all slots of one part of a plan, once their memory is lent. Columns are assembled from it.
///
/// A *cell* is a row, or a step of a feature list: one list of values was read from it.
#[derive(Clone, Copy)]
pub(super) struct DecodedSlots<'a> {
    /// The counts of values and steps, by slot.
    pub(super) slots: &'a [SlotValues],
    /// The values, by slot.
    pub(super) values: &'a [Values],
    /// Rows that were decoded.
    pub(super) rows: usize,
    /// Without the dimension of the rows.
    pub(super) single: bool,
    /// Slots of feature lists: the counts are those of steps.
    pub(super) lists: bool,
    /// Most bytes of a column that its values do not pay for.
    pub(super) limit: u64,
    /// Sparse indices may lie outside of their dimension.
    pub(super) lenient: bool,
}

impl<'a> DecodedSlots<'a> {
    /// The values of a slot.
    pub(super) fn values(&self, slot: usize) -> Values {
        self.values.get(slot).cloned().unwrap_or(Values::Int64(super::Buf::default()))
    }

    /// The values of a slot of integers.
    pub(super) fn int64(&self, slot: usize) -> &'a [i64] {
        self.values.get(slot).and_then(Values::int64).unwrap_or_default()
    }

    /// The number of steps of each row.
    pub(super) fn steps(&self, slot: usize) -> &'a [u32] {
        &self.slots[slot].steps[..self.rows]
    }

    /// The number of values of each cell.
    pub(super) fn counts(&self, slot: usize) -> &'a [u32] {
        let cells = match self.lists {
            true => self.steps(slot).iter().map(|&steps| steps as usize).sum(),
            false => self.rows,
        };
        &self.slots[slot].counts[..cells]
    }

    /// The dimension of the rows, if the batch has one.
    pub(super) fn rows_dimension(&self) -> Option<usize> {
        (!self.single).then_some(self.rows)
    }
}

/// A row that is refused, and why.
pub(super) struct RowError {
    pub(super) row: usize,
    pub(super) error: Error,
}

impl RowError {
    /// Keeps the error of the lowest row, and of several in one row the first.
    pub(super) fn keep_lowest(lowest: &mut Option<RowError>, found: Result<(), RowError>) {
        if let Err(found) = found
            && lowest.as_ref().is_none_or(|lowest| found.row < lowest.row)
        {
            *lowest = Some(found);
        }
    }
}

/// The pools of one column, beside those of its slots.
#[derive(Default)]
pub(super) struct ColumnPools {
    /// Indices, or row splits.
    pub(super) int64: BufPool<i64>,
    pub(super) int32: BufPool<i32>,
    pub(super) values: ValuePools,
    pub(super) lengths: BufPool<i64>,
}

impl ColumnPools {
    /// Lends row splits: the first `len` of them, which are 64 bits wide, in the type that is asked for.
    pub(super) fn lend_splits(
        &mut self,
        buf: BufMut<i64>,
        len: usize,
        dtype: SplitsDType,
    ) -> Result<RowSplits> {
        if dtype == SplitsDType::Int64 {
            return Ok(RowSplits::Int64(self.int64.lend(buf, len)));
        }
        let from = buf.values.get(..len).unwrap_or_default();
        // They ascend.
        let last = from.last().copied().unwrap_or_default();
        if i32::try_from(last).is_err() {
            return Err(FeatureError::SplitsRange { found: last as usize }.into());
        }
        let mut narrow = self.int32.take();
        narrow.grow(len, len, 0);
        for (to, &split) in narrow.values.iter_mut().zip(from) {
            *to = split as i32;
        }
        self.int64.lend(buf, 0);
        Ok(RowSplits::Int32(self.int32.lend(narrow, len)))
    }
}

/// Vectors that are used again and again while columns are assembled.
#[derive(Default)]
pub(super) struct AssemblyScratch {
    pub(super) items: Vec<u32>,
    pub(super) order: Vec<u32>,
}
