//! Ragged columns: row splits out of counts, and out of the features that describe partitions.

use super::assemble::{Ends, Misfit, put_dense};
use super::column::{Column, Ragged, RowSplits};
use super::compile::{Division, Make};
use super::pool::Draft;
use super::row::Row;
use crate::error::{Error, ErrorKind, FeatureError, Result};
use crate::schema::SplitsDType;

impl<R: Row> Ends<'_, R> {
    /// A *cell* is a row, or a step of a feature list: what one list of values was read from. Partitions divide the values
    /// of each cell by themselves; the last division is the one into cells.
    pub(super) fn ragged(&mut self, at: usize, column: &mut Column) -> Result<(), Misfit> {
        let Make::Ragged { slot, partitions, splits } = &self.owners.part.columns[at].make else {
            return Ok(());
        };
        let values = self.values(*slot);
        let cells = self.cells(*slot);
        let mut items = std::mem::take(&mut self.scraps.items);
        items.clear();
        items.extend_from_slice(&self.filled[*slot].counts[..cells]);
        // The vectors are used again.
        let (mut shape, mut row_splits) = match column {
            Column::Ragged(old) => (std::mem::take(&mut old.shape), std::mem::take(&mut old.row_splits)),
            Column::Dense(old) => (std::mem::take(&mut old.shape), Vec::new()),
            Column::Sparse(_) => (Vec::new(), Vec::new()),
        };
        shape.clear();
        row_splits.clear();
        // Innermost first.
        let mut made = Ok(());
        for division in partitions.iter().rev() {
            made = made.and_then(|()| match *division {
                Division::Uniform(len) if row_splits.is_empty() => {
                    // Nothing ragged inside: the values get another dimension.
                    shape.push(len);
                    self.uniform(at, *slot, &mut items, len)
                }
                Division::Uniform(len) => {
                    self.uniform(at, *slot, &mut items, len)?;
                    row_splits.push(self.steady(at, &items, len, *splits)?);
                    Ok(())
                }
                _ => {
                    row_splits.push(self.divided(at, *slot, division, &mut items, *splits)?);
                    Ok(())
                }
            });
        }
        let made = made.and_then(|()| {
            if self.lists {
                row_splits.push(self.outer(at, &items, *splits)?);
                items.clear();
                items.extend_from_slice(&self.filled[*slot].steps[..self.rows]);
            }
            if !self.single {
                row_splits.push(self.outer(at, &items, *splits)?);
            }
            Ok(())
        });
        self.scraps.items = items;
        made?;
        row_splits.reverse();
        shape.push(values.len() / shape.iter().product::<usize>().max(1));
        shape.reverse();
        if row_splits.is_empty() {
            put_dense(column, values, shape);
        } else {
            *column = Column::Ragged(Ragged { values, shape, row_splits });
        }
        Ok(())
    }

    /// The splits of cells into items.
    fn outer(&mut self, at: usize, items: &[u32], splits: SplitsDType) -> Result<RowSplits, Misfit> {
        let mut draft = self.extras[at].int64.draft();
        let len = items.len() + 1;
        draft.grow(len, len, 0);
        let mut end = 0;
        draft.memory[0] = 0;
        for (to, &items) in draft.memory[1..].iter_mut().zip(items) {
            end += i64::from(items);
            *to = end;
        }
        self.lend(at, draft, len, splits)
    }

    /// The splits of as many rows as there are, all of one length.
    fn steady(
        &mut self,
        at: usize,
        rows: &[u32],
        len: usize,
        splits: SplitsDType,
    ) -> Result<RowSplits, Misfit> {
        let count = rows.iter().map(|&rows| rows as usize).sum::<usize>() + 1;
        let mut draft = self.extras[at].int64.draft();
        draft.grow(count, count, 0);
        for (k, to) in draft.memory.iter_mut().take(count).enumerate() {
            *to = (k * len) as i64;
        }
        self.lend(at, draft, count, splits)
    }

    fn lend(
        &mut self,
        at: usize,
        draft: Draft<i64>,
        len: usize,
        splits: SplitsDType,
    ) -> Result<RowSplits, Misfit> {
        let lent = self.extras[at].splits(draft, len, splits);
        lent.map_err(|error| Misfit { row: 0, step: None, column: at, error })
    }

    /// Rows of one length: items become rows.
    fn uniform(&self, at: usize, slot: usize, items: &mut [u32], len: usize) -> Result<(), Misfit> {
        for (cell, items) in items.iter_mut().enumerate() {
            let found = *items as usize;
            if !found.is_multiple_of(len) {
                let error =
                    rule("uniform_row_length must divide the number of values", len as i64, found as i64);
                return Err(self.misfit_of(at, slot, cell, error));
            }
            *items = (found / len) as u32;
        }
        Ok(())
    }

    /// The splits that another feature describes: items become rows.
    fn divided(
        &mut self,
        at: usize,
        slot: usize,
        division: &Division,
        items: &mut [u32],
        splits: SplitsDType,
    ) -> Result<RowSplits, Misfit> {
        let key = division.key().unwrap_or(slot);
        if self.lists {
            self.aligned(at, slot, key)?;
        }
        let mut draft = self.extras[at].int64.draft();
        let mut made = Limits { draft: &mut draft, len: 0, limit: self.limit / 8 };
        let first = made.push(0).map_err(|error| Misfit { row: 0, step: None, column: at, error });
        first?;
        let numbers = self.values(key);
        let mut numbers = numbers.int64().unwrap_or_default();
        let mut base = 0;
        for (cell, (&count, items)) in self.filled[key].counts.iter().zip(items).enumerate() {
            let (own, rest) = numbers.split_at(count as usize);
            numbers = rest;
            let rows = divide(division, own, i64::from(*items), base, &mut made)
                .map_err(|error| self.misfit_of(at, slot, cell, error))?;
            base += i64::from(*items);
            *items = rows;
        }
        let len = made.len;
        self.lend(at, draft, len, splits)
    }

    /// Step by step, values and partition must go together.
    fn aligned(&self, at: usize, slot: usize, key: usize) -> Result<(), Misfit> {
        let (values, partition) = (&self.filled[slot].steps, &self.filled[key].steps);
        let rows = values.iter().zip(partition).take(self.rows).enumerate();
        for (row, (&expected, &found)) in rows {
            if expected != found {
                let rule = "the partition must have as many steps as the values";
                let (expected, found) = (expected.into(), found.into());
                let error = FeatureError::Partition { rule, expected, found }.into();
                return Err(Misfit { row, step: None, column: at, error });
            }
        }
        Ok(())
    }

    /// A cell by its row and its step.
    fn misfit_of(&self, at: usize, slot: usize, cell: usize, error: Error) -> Misfit {
        let mut misfit = Misfit { row: cell, step: None, column: at, error };
        if self.lists {
            let mut first = 0;
            for (row, &steps) in self.filled[slot].steps.iter().enumerate() {
                if cell < first + steps as usize {
                    (misfit.row, misfit.step) = (row, Some(cell - first));
                    break;
                }
                first += steps as usize;
            }
        }
        misfit
    }
}

/// Row splits as they are made. Ids of rows can ask for more than any input pays for, so their number is limited.
struct Limits<'a> {
    draft: &'a mut Draft<i64>,
    len: usize,
    limit: u64,
}

impl Limits<'_> {
    #[inline]
    fn push(&mut self, split: i64) -> Result<()> {
        if self.len as u64 >= self.limit {
            let (len, limit) = ((self.len as u128 + 1) * 8, self.limit.saturating_mul(8));
            return Err(ErrorKind::TooLarge { len, limit }.into());
        }
        self.draft.grow(self.len + 1, usize::MAX, 0);
        self.draft.memory[self.len] = split;
        self.len += 1;
        Ok(())
    }
}

fn rule(rule: &'static str, expected: i64, found: i64) -> Error {
    FeatureError::Partition { rule, expected, found }.into()
}

/// Divides the `items` of one cell, which begin at `base`, and says how many rows that makes.
fn divide(division: &Division, numbers: &[i64], items: i64, base: i64, made: &mut Limits<'_>) -> Result<u32> {
    /// Limits that must ascend up to the number of items.
    fn limits(
        numbers: impl IntoIterator<Item = i64>,
        items: i64,
        base: i64,
        made: &mut Limits<'_>,
        [ascend, end]: [&'static str; 2],
    ) -> Result<u32> {
        let (mut last, mut rows) = (0, 0);
        for limit in numbers {
            if limit < last || limit > items {
                return Err(rule(ascend, last, limit));
            }
            made.push(base + limit)?;
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
        Division::RowSplits(_) => {
            let mut numbers = numbers;
            match numbers.next() {
                None | Some(0) => {}
                Some(first) => return Err(rule("row_splits must start at 0", 0, first)),
            }
            let rules = [
                "row_splits must ascend to the number of values",
                "row_splits must end at the number of values",
            ];
            limits(numbers, items, base, made, rules)
        }
        Division::RowLimits(_) => {
            let rules = [
                "row_limits must ascend to the number of values",
                "row_limits must end at the number of values",
            ];
            limits(numbers, items, base, made, rules)
        }
        Division::RowStarts(_) => {
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
            limits(numbers.chain([items]), items, base, made, rules)
        }
        Division::RowLengths(_) => {
            let (mut end, mut rows) = (0, 0);
            for len in numbers {
                if len < 0 || len > items - end {
                    return Err(rule("row_lengths must add up to the number of values", items - end, len));
                }
                end += len;
                rows += 1;
                made.push(base + end)?;
            }
            match end == items {
                true => Ok(rows),
                false => Err(rule("row_lengths must add up to the number of values", items, end)),
            }
        }
        Division::ValueRowIds(_) => {
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
                    made.push(base + k as i64)?;
                    row += 1;
                }
            }
            if items == 0 {
                return Ok(0);
            }
            made.push(base + items)?;
            Ok(row as u32 + 1)
        }
        Division::Uniform(_) => Ok(0),
    }
}
