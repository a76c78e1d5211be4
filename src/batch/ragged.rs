//! Ragged columns: row splits out of counts, and out of the features that describe partitions.

use super::column::{Column, Ragged, RowSplits};
use super::compile::PartitionPlan;
use super::pool::BufMut;
use super::slots::{ColumnPools, DecodedSlots, RowError};
use crate::error::{Error, ErrorKind, FeatureError, Result};
use crate::schema::SplitsDType;

/// The slots of a ragged column.
#[derive(Clone, Copy)]
pub(super) struct RaggedForm<'a> {
    pub(super) slot: usize,
    /// Outermost first.
    pub(super) partitions: &'a [PartitionPlan],
    pub(super) splits: SplitsDType,
}

/// Assembles a ragged column; the error is that of the lowest row. Partitions are taken one after the other over all rows, so
/// a row before the refused one may be refused by a partition that was not reached.
pub(super) fn column(
    slots: DecodedSlots<'_>,
    form: RaggedForm<'_>,
    pools: &mut ColumnPools,
    items: &mut Vec<u32>,
    column: &mut Column,
) -> Result<(), RowError> {
    let mut made = RaggedAssembly { slots, form, pools, items }.column(column);
    while let Err(RowError { row: rows @ 1.., .. }) = made {
        let slots = DecodedSlots { rows, ..slots };
        let Err(earlier) = (RaggedAssembly { slots, form, pools, items }).column(column) else { break };
        made = Err(earlier);
    }
    made
}

/// One ragged column while it is assembled. Partitions divide the values of each cell by themselves; the last division is the
/// one into cells.
struct RaggedAssembly<'a, 'm> {
    slots: DecodedSlots<'a>,
    form: RaggedForm<'a>,
    pools: &'m mut ColumnPools,
    /// The number of items of each cell: values, then rows of the innermost partition, and so on outwards.
    items: &'m mut Vec<u32>,
}

impl RaggedAssembly<'_, '_> {
    fn column(&mut self, column: &mut Column) -> Result<(), RowError> {
        let RaggedForm { slot, partitions, .. } = self.form;
        let values = self.slots.values(slot);
        self.items.clear();
        self.items.extend_from_slice(self.slots.counts(slot));
        // The vectors are used again.
        let (mut shape, mut row_splits) = match column {
            Column::Ragged(old) => (std::mem::take(&mut old.shape), std::mem::take(&mut old.row_splits)),
            Column::Dense(old) => (std::mem::take(&mut old.shape), Vec::new()),
            Column::Sparse(_) => (Vec::new(), Vec::new()),
        };
        shape.clear();
        row_splits.clear();
        // Innermost first.
        for division in partitions.iter().rev() {
            match *division {
                PartitionPlan::Uniform(len) if row_splits.is_empty() => {
                    // Nothing ragged inside: the values get another dimension.
                    shape.push(len);
                    self.divide_uniform(len)?;
                }
                PartitionPlan::Uniform(len) => {
                    self.divide_uniform(len)?;
                    row_splits.push(self.uniform_splits(len)?);
                }
                _ => row_splits.push(self.divide(division)?),
            }
        }
        if self.slots.lists {
            row_splits.push(self.cell_splits()?);
            self.items.clear();
            self.items.extend_from_slice(self.slots.steps(slot));
        }
        if !self.slots.single {
            row_splits.push(self.cell_splits()?);
        }
        row_splits.reverse();
        shape.push(values.len() / shape.iter().product::<usize>().max(1));
        shape.reverse();
        if row_splits.is_empty() {
            column.set_dense(values, shape);
        } else {
            *column = Column::Ragged(Ragged { values, shape, row_splits });
        }
        Ok(())
    }

    /// The splits of cells into items.
    fn cell_splits(&mut self) -> Result<RowSplits, RowError> {
        let mut buf = self.pools.int64.take();
        let len = self.items.len() + 1;
        buf.grow(len, len, 0);
        let mut end = 0;
        buf.values[0] = 0;
        for (to, &items) in buf.values[1..].iter_mut().zip(&*self.items) {
            end += i64::from(items);
            *to = end;
        }
        self.lend(buf, len)
    }

    /// The splits of all items into rows of one length.
    fn uniform_splits(&mut self, len: usize) -> Result<RowSplits, RowError> {
        let count = self.items.iter().map(|&rows| rows as usize).sum::<usize>() + 1;
        let mut buf = self.pools.int64.take();
        buf.grow(count, count, 0);
        for (k, to) in buf.values.iter_mut().take(count).enumerate() {
            *to = (k * len) as i64;
        }
        self.lend(buf, count)
    }

    fn lend(&mut self, buf: BufMut<i64>, len: usize) -> Result<RowSplits, RowError> {
        let lent = self.pools.lend_splits(buf, len, self.form.splits);
        lent.map_err(|error| RowError { row: 0, error })
    }

    /// Rows of one length: items become rows.
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

    /// The splits that another feature describes: items become rows.
    fn divide(&mut self, division: &PartitionPlan) -> Result<RowSplits, RowError> {
        let key = division.key().unwrap_or(self.form.slot);
        if self.slots.lists {
            self.check_steps(key)?;
        }
        let mut buf = self.pools.int64.take();
        let mut splits = SplitsWriter { buf: &mut buf, len: 0, limit: self.slots.limit / 8 };
        splits.push(0).map_err(|error| RowError { row: 0, error })?;
        let mut numbers = self.slots.int64(key);
        let mut base = 0;
        for cell in 0..self.items.len() {
            let items = i64::from(self.items[cell]);
            let Some(&count) = self.slots.slots[key].counts.get(cell) else { break };
            let (own, rest) = numbers.split_at(count as usize);
            numbers = rest;
            let rows = divide_cell(division, own, items, base, &mut splits)
                .map_err(|error| self.cell_error(cell, error))?;
            base += items;
            self.items[cell] = rows;
        }
        let len = splits.len;
        self.lend(buf, len)
    }

    /// Refuses the first row whose partition has other steps than its values.
    fn check_steps(&self, key: usize) -> Result<(), RowError> {
        let (values, partition) = (self.slots.steps(self.form.slot), &self.slots.slots[key].steps);
        for (row, (&expected, &found)) in values.iter().zip(partition).enumerate() {
            if expected != found {
                let rule = "the partition must have as many steps as the values";
                let (expected, found) = (expected.into(), found.into());
                return Err(RowError {
                    row,
                    error: FeatureError::Partition { rule, expected, found }.into(),
                });
            }
        }
        Ok(())
    }

    /// The error of a cell, by its row and its step.
    fn cell_error(&self, cell: usize, error: Error) -> RowError {
        if self.slots.lists {
            let mut first = 0;
            for (row, &steps) in self.slots.slots[self.form.slot].steps.iter().enumerate() {
                if cell < first + steps as usize {
                    return RowError { row, error: error.step(cell - first) };
                }
                first += steps as usize;
            }
        }
        RowError { row: cell, error }
    }
}

/// Writes row splits. Ids of rows can ask for more than any input pays for, so their number is limited.
struct SplitsWriter<'a> {
    buf: &'a mut BufMut<i64>,
    len: usize,
    limit: u64,
}

impl SplitsWriter<'_> {
    #[inline]
    fn push(&mut self, split: i64) -> Result<()> {
        if self.len as u64 >= self.limit {
            let (len, limit) = ((self.len as u128 + 1) * 8, self.limit.saturating_mul(8));
            return Err(ErrorKind::TooLarge { len, limit }.into());
        }
        self.buf.grow(self.len + 1, usize::MAX, 0);
        self.buf.values[self.len] = split;
        self.len += 1;
        Ok(())
    }
}

fn rule(rule: &'static str, expected: i64, found: i64) -> Error {
    FeatureError::Partition { rule, expected, found }.into()
}

/// Divides the `items` of one cell, which begin at `base`. Returns the number of rows.
fn divide_cell(
    division: &PartitionPlan,
    numbers: &[i64],
    items: i64,
    base: i64,
    splits: &mut SplitsWriter<'_>,
) -> Result<u32> {
    /// Limits that must ascend up to the number of items.
    fn limits(
        numbers: impl IntoIterator<Item = i64>,
        items: i64,
        base: i64,
        splits: &mut SplitsWriter<'_>,
        [ascend, end]: [&'static str; 2],
    ) -> Result<u32> {
        let (mut last, mut rows) = (0, 0);
        for limit in numbers {
            if limit < last || limit > items {
                return Err(rule(ascend, last, limit));
            }
            splits.push(base + limit)?;
            last = limit;
            rows += 1;
        }
        match last == items {
            true => Ok(rows),
            false => Err(rule(end, items, last)),
        }
    }
    let numbers = numbers.iter().copied();
    match division {
        PartitionPlan::RowSplits(_) => {
            let mut numbers = numbers;
            match numbers.next() {
                None | Some(0) => {}
                Some(first) => return Err(rule("row_splits must start at 0", 0, first)),
            }
            let rules = [
                "row_splits must ascend to the number of values",
                "row_splits must end at the number of values",
            ];
            limits(numbers, items, base, splits, rules)
        }
        PartitionPlan::RowLimits(_) => {
            let rules = [
                "row_limits must ascend to the number of values",
                "row_limits must end at the number of values",
            ];
            limits(numbers, items, base, splits, rules)
        }
        PartitionPlan::RowStarts(_) => {
            let mut numbers = numbers;
            match numbers.next() {
                None => {
                    let none = "row_starts of no rows leave no room for values";
                    return if items == 0 { Ok(0) } else { Err(rule(none, 0, items)) };
                }
                Some(0) => {}
                Some(first) => return Err(rule("row_starts must start at 0", 0, first)),
            }
            let rules = ["row_starts must ascend to the number of values"; 2];
            limits(numbers.chain([items]), items, base, splits, rules)
        }
        PartitionPlan::RowLengths(_) => {
            let (mut end, mut rows) = (0, 0);
            for len in numbers {
                if len < 0 || len > items - end {
                    return Err(rule("row_lengths must add up to the number of values", items - end, len));
                }
                end += len;
                rows += 1;
                splits.push(base + end)?;
            }
            match end == items {
                true => Ok(rows),
                false => Err(rule("row_lengths must add up to the number of values", items, end)),
            }
        }
        PartitionPlan::ValueRowIds(_) => {
            if numbers.len() as i64 != items {
                return Err(rule("value_rowids must be as many as the values", items, numbers.len() as i64));
            }
            // A row ends where a later one begins; rows without values end where they begin.
            let mut row = 0;
            for (k, id) in numbers.enumerate() {
                if id < row {
                    return Err(rule("value_rowids must ascend from 0", row, id));
                }
                if id >= i64::from(u32::MAX) {
                    // Each row takes a split of 8 bytes.
                    let (len, limit) = ((id as u128 + 1) * 8, u64::from(u32::MAX) * 8);
                    return Err(ErrorKind::TooLarge { len, limit }.into());
                }
                while row < id {
                    splits.push(base + k as i64)?;
                    row += 1;
                }
            }
            if items == 0 {
                return Ok(0);
            }
            splits.push(base + items)?;
            Ok(row as u32 + 1)
        }
        PartitionPlan::Uniform(_) => Ok(0),
    }
}
