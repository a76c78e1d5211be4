//! The decoded values of all slots, and the buffers that columns are assembled in.

#![expect(
    clippy::indexing_slicing,
    reason = "slots have the numbers of the plan, and each slot has counts of all rows"
)]

use super::bytes::ValuePools;
use super::column::{RowSplits, Values};
use super::compile::{MapField, MapPlan};
use super::decode::SlotValues;
use super::pool::{BufMut, BufPool};
use super::row::Row;
use crate::error::{Error, ErrorKind, FeatureError, Result, escaped};
use crate::filter::nearest;
use crate::schema::SplitsDType;
use std::collections::TryReserveError;

/// Largest number of rows that are searched for a feature that one of them does not have.
const MAX_ROWS: usize = 1000;

/// The decoded values of all slots of one map field. Columns are assembled from it.
///
/// A *cell* is a row, or one step of a feature list. Each cell contains one list of values.
#[derive(Clone, Copy)]
pub(super) struct DecodedSlots<'a> {
    /// Counts of values and steps, by slot.
    pub(super) slots: &'a [SlotValues],
    /// Values, by slot.
    pub(super) values: &'a [Values],
    /// Number of decoded rows.
    pub(super) rows: usize,
    /// True if the columns omit the row dimension.
    pub(super) single: bool,
    /// True if the slots are feature lists. Cells are then steps.
    pub(super) lists: bool,
    /// Maximum bytes of a padded column or of the row splits of a partition.
    pub(super) limit: u64,
}

impl<'a> DecodedSlots<'a> {
    /// Returns the values of a slot.
    pub(super) fn values(&self, slot: usize) -> Values {
        self.values[slot].clone()
    }

    /// Returns the values of a slot of integers.
    pub(super) fn int64(&self, slot: usize) -> &'a [i64] {
        self.values[slot].int64().unwrap_or(&[])
    }

    /// Returns the number of steps of each row.
    pub(super) fn steps(&self, slot: usize) -> &'a [u32] {
        &self.slots[slot].steps[..self.rows]
    }

    /// Returns the number of values of each cell.
    pub(super) fn counts(&self, slot: usize) -> &'a [u32] {
        let cells =
            if self.lists { self.steps(slot).iter().map(|&steps| steps as usize).sum() } else { self.rows };
        &self.slots[slot].counts[..cells]
    }

    /// Returns the row dimension, if the batch has one.
    pub(super) fn rows_dimension(&self) -> Option<usize> {
        (!self.single).then_some(self.rows)
    }
}

/// A refused row and the reason.
pub(super) struct RowError {
    pub(super) row: usize,
    pub(super) error: Error,
}

impl RowError {
    /// Keeps the error of the lowest row; for equal rows, the first error.
    pub(super) fn keep_lowest(lowest: &mut Option<RowError>, found: Result<(), RowError>) {
        if let Err(found) = found
            && lowest.as_ref().is_none_or(|lowest| found.row < lowest.row)
        {
            *lowest = Some(found);
        }
    }

    /// Returns the error for the values of a slot in `row` and the rows after it.
    #[cold]
    pub(super) fn without_memory(row: usize, key: &str, e: TryReserveError) -> RowError {
        RowError { row, error: Error::from(e).feature(key.as_bytes()) }
    }

    /// Adds to the error of a feature that the record does not have what may be the reason: where the name is
    /// found, or the nearest name. `has_parsed` is true if earlier rows had all required features.
    #[cold]
    pub(super) fn with_hint<R: Row>(
        self,
        part: &MapPlan,
        map: MapField,
        rows: &[R],
        has_parsed: bool,
    ) -> RowError {
        let RowError { row, error } = self;
        let is_missing = matches!(error.kind(), ErrorKind::Feature(FeatureError::Missing { .. }));
        let name = error.location().feature.as_deref().filter(|_| is_missing);
        let slot = part.slots.iter().find(|slot| Some(&*escaped(slot.key.as_bytes())) == name);
        let (Some(slot), Some(record)) = (slot, rows.get(row)) else { return RowError { row, error } };
        let name = &*slot.key;
        let has = |side: MapField, row: &R| side.keys(row.payload()).contains(&name);
        let (other_side, place) = map.other_side();
        let error = if has(map, record) {
            error.hint("it is there without a kind, and so without values")
        } else if has(other_side, record) {
            error.hint(place)
        } else if has_parsed || rows.iter().take(MAX_ROWS).any(|row| has(map, row)) {
            error.hint("other records have it: a default, or an optional feature, lets it be absent")
        } else {
            error.nearest(nearest(name, map.keys(record.payload())))
        };
        RowError { row, error }
    }
}

impl From<TryReserveError> for RowError {
    /// Returns an error about all rows.
    #[cold]
    fn from(e: TryReserveError) -> RowError {
        RowError { row: 0, error: e.into() }
    }
}

/// The buffer pools of one column, in addition to the pools of its slots.
#[derive(Default)]
pub(super) struct ColumnPools {
    /// Pool of sparse indices, or of row splits.
    pub(super) int64: BufPool<i64>,
    pub(super) int32: BufPool<i32>,
    /// Pool of the presence of optional values.
    pub(super) present: BufPool<u8>,
    /// Pool of the presence of features.
    pub(super) presence: BufPool<u8>,
    pub(super) values: ValuePools,
    pub(super) lengths: BufPool<i64>,
}

impl ColumnPools {
    /// Shares the first `len` row splits, converted from 64 bits to the requested type.
    pub(super) fn share_splits(
        &mut self,
        buf: BufMut<i64>,
        len: usize,
        dtype: SplitsDType,
    ) -> Result<RowSplits> {
        if dtype == SplitsDType::Int64 {
            return Ok(RowSplits::Int64(self.int64.freeze(buf, len)));
        }
        let from = &buf.values[..len];
        // Row splits ascend, so the last one is the largest.
        if let Some(&last) = from.last()
            && i32::try_from(last).is_err()
        {
            return Err(FeatureError::SplitsRange { found: last as usize }.into());
        }
        let mut narrow = self.int32.take();
        narrow.grow(len, len, 0)?;
        for (to, &split) in narrow.values.iter_mut().zip(from) {
            *to = split as i32;
        }
        self.int64.freeze(buf, 0);
        Ok(RowSplits::Int32(self.int32.freeze(narrow, len)))
    }
}
