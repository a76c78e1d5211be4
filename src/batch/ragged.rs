//! Assembly of ragged columns: row splits from counts, and from the features that describe partitions.

#![expect(
    clippy::indexing_slicing,
    reason = "slots have the numbers of the plan, and cells and splits are counted before they are written"
)]

use super::column::{Column, Dense, Ragged, RowSplits};
use super::compile::RaggedPlan;
use super::pool::BufMut;
use super::slots::{ColumnPools, DecodedSlots, RowError};
use crate::error::{Error, ErrorKind, FeatureError, Result};
use crate::schema::Partition;
use std::collections::TryReserveError;

/// Assembles a ragged column. The error is the lowest refused row's.
///
/// Each partition is processed for all rows before the next partition. After an error, the rows before the
/// refused one are therefore assembled again, because a partition that was not reached may refuse one of
/// them.
pub(super) fn column(
    slots: DecodedSlots<'_>,
    plan: &RaggedPlan,
    pools: &mut ColumnPools,
    items: &mut Vec<u32>,
    column: &mut Column,
) -> Result<(), RowError> {
    let mut result = RaggedAssembly { slots, plan, pools, items }.column(column);
    while let Err(RowError { row: rows @ 1.., .. }) = result {
        let slots = DecodedSlots { rows, ..slots };
        let Err(earlier) = (RaggedAssembly { slots, plan, pools, items }).column(column) else { break };
        result = Err(earlier);
    }
    result
}

/// One ragged column during assembly.
///
/// Partitions divide the values of each cell separately. The last row splits divide the values of the batch
/// into cells.
struct RaggedAssembly<'a, 'm> {
    slots: DecodedSlots<'a>,
    plan: &'a RaggedPlan,
    pools: &'m mut ColumnPools,
    /// Number of items of each cell: values at first, then rows of the innermost partition, and so on
    /// outwards.
    items: &'m mut Vec<u32>,
}

impl RaggedAssembly<'_, '_> {
    fn column(&mut self, column: &mut Column) -> Result<(), RowError> {
        let plan = self.plan;
        let values = self.slots.values(plan.slot);
        self.set_items(self.slots.counts(plan.slot))?;
        let mut shape = column.take_shape();
        let mut row_splits = match column {
            Column::Ragged(old) => std::mem::take(&mut old.row_splits),
            _ => Vec::new(),
        };
        row_splits.clear();
        let mut cells_are_steps = self.slots.lists;
        if let Some(sizes) = &plan.strings {
            // Each step has one string.
            let strings =
                if cells_are_steps { self.slots.steps(plan.slot) } else { self.slots.counts(plan.slot) };
            self.set_items(strings)?;
            shape.extend(sizes.iter().rev());
            cells_are_steps = false;
        }
        // Innermost first.
        for (partition, key) in plan.partitions.iter().rev() {
            match *partition {
                Partition::UniformRowLength(len) if row_splits.is_empty() => {
                    // No inner dimension is ragged, so the values get another uniform dimension.
                    shape.push(len);
                    self.divide_uniform(len)?;
                }
                Partition::UniformRowLength(len) => {
                    self.divide_uniform(len)?;
                    row_splits.push(self.uniform_splits(len)?);
                }
                _ => row_splits.push(self.divide(partition, key.unwrap_or(plan.slot))?),
            }
        }
        if cells_are_steps {
            row_splits.push(self.cell_splits()?);
            self.set_items(self.slots.steps(plan.slot))?;
        }
        if !self.slots.single {
            row_splits.push(self.cell_splits()?);
        }
        row_splits.reverse();
        // If there are values, the product divides their number. Without values it may exceed 64 bits.
        let inner = shape.iter().fold(1usize, |product, &len| product.saturating_mul(len));
        // The number of items, also of items without values.
        let items = self.items.iter().map(|&items| items as usize).sum();
        shape.push(if plan.strings.is_some() { items } else { values.len() / inner.max(1) });
        shape.reverse();
        *column = if row_splits.is_empty() {
            Column::Dense(Dense { values, shape })
        } else {
            Column::Ragged(Ragged { values, shape, row_splits })
        };
        Ok(())
    }

    fn set_items(&mut self, items: &[u32]) -> Result<(), TryReserveError> {
        self.items.clear();
        self.items.try_reserve(items.len())?;
        self.items.extend_from_slice(items);
        Ok(())
    }

    /// Returns the row splits that divide all items into cells.
    fn cell_splits(&mut self) -> Result<RowSplits, RowError> {
        let mut buf = self.pools.int64.take();
        let len = self.items.len() + 1;
        buf.grow(len, len, 0)?;
        let mut end = 0;
        buf.values[0] = 0;
        for (to, &items) in buf.values[1..].iter_mut().zip(&*self.items) {
            end += i64::from(items);
            *to = end;
        }
        self.freeze(buf, len)
    }

    /// Returns the row splits that divide all items into rows of length `len`.
    fn uniform_splits(&mut self, len: usize) -> Result<RowSplits, RowError> {
        let count = self.items.iter().map(|&rows| rows as usize).sum::<usize>() + 1;
        let mut buf = self.pools.int64.take();
        buf.grow(count, count, 0)?;
        for (k, to) in buf.values.iter_mut().take(count).enumerate() {
            *to = (k * len) as i64;
        }
        self.freeze(buf, count)
    }

    fn freeze(&mut self, buf: BufMut<i64>, len: usize) -> Result<RowSplits, RowError> {
        let splits = self.pools.share_splits(buf, len, self.plan.splits);
        splits.map_err(|error| RowError { row: 0, error })
    }

    /// Groups the items of each cell into rows of length `len`. The rows are the new items.
    fn divide_uniform(&mut self, len: usize) -> Result<(), RowError> {
        for cell in 0..self.items.len() {
            let found = self.items[cell] as usize;
            if !found.is_multiple_of(len) {
                let error =
                    rule("uniform_row_length must divide the number of values", len as i64, found as i64);
                return Err(self.cell_error(cell, error));
            }
            self.items[cell] = (found / len) as u32;
        }
        Ok(())
    }

    /// Groups the items of each cell into rows as the feature of slot `key` describes, and returns the row
    /// splits. The rows are the new items.
    fn divide(&mut self, partition: &Partition, key: usize) -> Result<RowSplits, RowError> {
        if self.slots.lists {
            self.check_steps(key)?;
        }
        let mut buf = self.pools.int64.take();
        let mut splits = SplitsWriter { buf: &mut buf, len: 0, limit: self.slots.limit / 8, base: 0 };
        splits.push(0).map_err(|error| RowError { row: 0, error })?;
        let mut numbers = self.slots.int64(key);
        for cell in 0..self.items.len() {
            let items = i64::from(self.items[cell]);
            let Some(&count) = self.slots.slots[key].counts.get(cell) else { break };
            let (own, rest) = numbers.split_at(count as usize);
            numbers = rest;
            let rows = divide_cell(partition, own, items, &mut splits)
                .map_err(|error| self.cell_error(cell, error))?;
            splits.base += items;
            self.items[cell] = rows;
        }
        let len = splits.len;
        self.freeze(buf, len)
    }

    /// Refuses the first row whose partition and values have different numbers of steps.
    fn check_steps(&self, key: usize) -> Result<(), RowError> {
        let values = self.slots.steps(self.plan.slot);
        let partition = &self.slots.slots[key].steps;
        let Some(row) = values.iter().zip(partition).position(|(a, b)| a != b) else { return Ok(()) };
        let reason = "the partition and the values must have the same number of steps";
        Err(RowError { row, error: rule(reason, values[row].into(), partition[row].into()) })
    }

    /// Adds the row and the step of a cell to its error.
    fn cell_error(&self, cell: usize, error: Error) -> RowError {
        if self.slots.lists {
            let mut first = 0;
            for (row, &steps) in self.slots.slots[self.plan.slot].steps.iter().enumerate() {
                if cell < first + steps as usize {
                    return RowError { row, error: error.step(cell - first) };
                }
                first += steps as usize;
            }
        }
        RowError { row: cell, error }
    }
}

/// A writer of row splits. Their number is limited, because a single `value_rowids` value can require any
/// number of empty rows.
struct SplitsWriter<'a> {
    buf: &'a mut BufMut<i64>,
    len: usize,
    limit: u64,
    /// Number of items of earlier cells.
    base: i64,
}

impl SplitsWriter<'_> {
    /// Adds the end of a row, which is a number of items of the cell.
    #[inline]
    fn push(&mut self, end: i64) -> Result<()> {
        if self.len as u64 >= self.limit {
            let len = (self.len as u128 + 1) * 8;
            let limit = self.limit * 8;
            return Err(ErrorKind::TooLarge { len, limit }.into());
        }
        self.buf.grow(self.len + 1, usize::MAX, 0)?;
        self.buf.values[self.len] = self.base + end;
        self.len += 1;
        Ok(())
    }

    /// Adds rows that end at these items. `rules` are broken by an end that does not ascend to the number of
    /// items, and by a last one below it. Returns the number of rows.
    fn push_ends(
        &mut self,
        ends: impl IntoIterator<Item = i64>,
        items: i64,
        rules: [&'static str; 2],
    ) -> Result<u32> {
        let mut last = 0;
        let mut rows = 0;
        for end in ends {
            if end < last || end > items {
                return Err(rule(rules[0], last, end));
            }
            self.push(end)?;
            last = end;
            rows += 1;
        }
        if last == items { Ok(rows) } else { Err(rule(rules[1], items, last)) }
    }

    /// Adds rows of these lengths. Returns their number.
    fn push_lengths(&mut self, lengths: &[i64], items: i64) -> Result<u32> {
        const SUM: &str = "row_lengths must add up to the number of values";
        let mut end = 0;
        for &len in lengths {
            if len < 0 || len > items - end {
                return Err(rule(SUM, items - end, len));
            }
            end += len;
            self.push(end)?;
        }
        if end == items { Ok(lengths.len() as u32) } else { Err(rule(SUM, items, end)) }
    }

    /// Adds the rows of a cell whose items have these row numbers. Returns the number of rows.
    fn push_row_ids(&mut self, ids: &[i64], items: i64) -> Result<u32> {
        let found = ids.len() as i64;
        if found != items {
            return Err(rule("value_rowids must have one number per value", items, found));
        }
        // Each row up to `id` ends at value `k`, including rows without values.
        let mut row = 0;
        for (k, &id) in ids.iter().enumerate() {
            if id < row {
                return Err(rule("value_rowids must ascend from 0", row, id));
            }
            if id >= i64::from(u32::MAX) {
                // Each row takes a split of 8 bytes.
                let len = (id as u128 + 1) * 8;
                let limit = u64::from(u32::MAX) * 8;
                return Err(ErrorKind::TooLarge { len, limit }.into());
            }
            while row < id {
                self.push(k as i64)?;
                row += 1;
            }
        }
        if items == 0 {
            return Ok(0);
        }
        self.push(items)?;
        Ok(row as u32 + 1)
    }
}

fn rule(rule: &'static str, expected: i64, found: i64) -> Error {
    FeatureError::Partition { rule, expected, found }.into()
}

/// Divides the items of one cell as the numbers of a partition say. Returns the number of rows.
fn divide_cell(
    partition: &Partition,
    numbers: &[i64],
    items: i64,
    splits: &mut SplitsWriter<'_>,
) -> Result<u32> {
    let first = numbers.first().copied();
    let after_first = numbers.get(1..).unwrap_or(&[]).iter().copied();
    match partition {
        Partition::RowSplits(_) => {
            if let Some(first) = first.filter(|&first| first != 0) {
                return Err(rule("row_splits must start at 0", 0, first));
            }
            let rules = [
                "row_splits must ascend to the number of values",
                "row_splits must end at the number of values",
            ];
            splits.push_ends(after_first, items, rules)
        }
        Partition::RowLimits(_) => {
            let rules = [
                "row_limits must ascend to the number of values",
                "row_limits must end at the number of values",
            ];
            splits.push_ends(numbers.iter().copied(), items, rules)
        }
        Partition::RowStarts(_) => match first {
            None if items == 0 => Ok(0),
            None => Err(rule("row_starts without rows must have no values", 0, items)),
            Some(0) => {
                let rules = ["row_starts must ascend to the number of values"; 2];
                splits.push_ends(after_first.chain([items]), items, rules)
            }
            Some(first) => Err(rule("row_starts must start at 0", 0, first)),
        },
        Partition::RowLengths(_) => splits.push_lengths(numbers, items),
        Partition::ValueRowIds(_) => splits.push_row_ids(numbers, items),
        Partition::UniformRowLength(_) => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::{BatchParser, Column};
    use crate::example::ExampleBuilder;
    use crate::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};

    #[test]
    fn the_product_of_uniform_row_lengths_may_exceed_64_bits() {
        const LONG: usize = usize::MAX / 4;
        let spec = FeatureSpec::Ragged {
            dtype: DType::Int64,
            value_key: None,
            partitions: vec![Partition::UniformRowLength(LONG); 3],
            row_splits_dtype: SplitsDType::Int64,
            validate: false,
        };
        let schema = Schema::example().feature("x", spec).build().unwrap();
        let rows = [ExampleBuilder::new().int64("x", [0i64; 0]).encode().unwrap()];
        let batch = BatchParser::new(&schema).parse(&rows).unwrap();
        let Some(Column::Ragged(ragged)) = batch.get("x") else { panic!("{batch:?}") };
        assert_eq!(ragged.shape, [0, LONG, LONG, LONG]);
    }
}
