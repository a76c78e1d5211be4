//! Slots that were filled become columns.

use super::bytes::{Owners, Rings};
use super::column::{Column, Dense, RowSplits, Span, Sparse, Values};
use super::compile::{Default, Make, Need, Part};
use super::decode::{Filled, Memory, default_spans};
use super::pool::{Draft, Ring};
use super::row::Row;
use crate::error::{Error, ErrorKind, FeatureError, Result};
use crate::schema::SplitsDType;

/// Memory of one column, beside that of its slots.
#[derive(Default)]
pub(super) struct Extra {
    /// Indices, or row splits.
    pub(super) int64: Ring<i64>,
    pub(super) int32: Ring<i32>,
    pub(super) values: Rings,
    pub(super) lengths: Ring<i64>,
}

/// Vectors that are used again and again.
#[derive(Default)]
pub(super) struct Scraps {
    pub(super) items: Vec<u32>,
    pub(super) order: Vec<u32>,
}

/// All that a column is made from.
pub(super) struct Ends<'a, R> {
    pub(super) owners: Owners<'a, R>,
    pub(super) filled: &'a mut [Filled],
    pub(super) rings: &'a mut [Rings],
    pub(super) sealed: &'a mut Vec<Option<Values>>,
    pub(super) extras: &'a mut [Extra],
    pub(super) scraps: &'a mut Scraps,
    /// Rows that are good.
    pub(super) rows: usize,
    /// Without the dimension of the rows.
    pub(super) single: bool,
    /// Feature lists: the counts are those of steps.
    pub(super) lists: bool,
    /// Most bytes of a column that its values do not pay for.
    pub(super) limit: u64,
    /// Whether sparse indices may lie outside of their dimension.
    pub(super) lenient: bool,
}

/// A row that does not go into its column.
pub(super) struct Misfit {
    pub(super) row: usize,
    pub(super) step: Option<usize>,
    pub(super) column: usize,
    pub(super) error: Error,
}

/// Puts an array into a column, whose memory it uses again.
pub(super) fn put_dense(column: &mut Column, values: Values, shape: impl IntoIterator<Item = usize>) {
    match column {
        Column::Dense(dense) => {
            dense.values = values;
            dense.shape.clear();
            dense.shape.extend(shape);
        }
        _ => *column = Column::Dense(Dense { values, shape: shape.into_iter().collect() }),
    }
}

/// Puts a sparse tensor into a column.
pub(super) fn put_sparse(
    column: &mut Column,
    indices: super::Buf<i64>,
    values: Values,
    dense_shape: impl IntoIterator<Item = u64>,
) {
    match column {
        Column::Sparse(sparse) => {
            (sparse.indices, sparse.values) = (indices, values);
            sparse.dense_shape.clear();
            sparse.dense_shape.extend(dense_shape);
        }
        _ => {
            let dense_shape = dense_shape.into_iter().collect();
            *column = Column::Sparse(Sparse { indices, values, dense_shape });
        }
    }
}

impl Extra {
    /// Lends row splits: `len` of them, as 64 bits, in the type that is asked for.
    pub(super) fn splits(&mut self, draft: Draft<i64>, len: usize, dtype: SplitsDType) -> Result<RowSplits> {
        if dtype == SplitsDType::Int64 {
            return Ok(RowSplits::Int64(self.int64.lend(draft, len)));
        }
        let from = draft.memory.get(..len).unwrap_or_default();
        // They ascend.
        let last = from.last().copied().unwrap_or_default();
        if i32::try_from(last).is_err() {
            return Err(FeatureError::SplitsRange { found: last as usize }.into());
        }
        let mut narrow = self.int32.draft();
        narrow.grow(len, len, 0);
        for (to, &split) in narrow.memory.iter_mut().zip(from) {
            *to = split as i32;
        }
        self.int64.lend(draft, 0);
        Ok(RowSplits::Int32(self.int32.lend(narrow, len)))
    }
}

impl<R: Row> Ends<'_, R> {
    fn part(&self) -> &Part {
        self.owners.part
    }

    /// Steps of all rows, or the rows themselves.
    pub(super) fn cells(&self, at: usize) -> usize {
        match self.lists {
            true => self.filled[at].steps[..self.rows].iter().map(|&steps| steps as usize).sum(),
            false => self.rows,
        }
    }

    /// The columns; the error is that of the lowest row that does not fit.
    pub(super) fn columns(&mut self, columns: &mut Vec<Column>) -> Result<(), Misfit> {
        let part = self.owners.part;
        columns.resize_with(part.columns.len(), || {
            let values = Values::Int64(super::Buf::default());
            Column::Dense(Dense { values, shape: Vec::new() })
        });
        for (at, planned) in part.columns.iter().enumerate() {
            if let Make::Padded { slot, of, fill, .. } = &planned.make {
                let padded = self.pad(*slot, *of, fill);
                padded.map_err(|error| Misfit { row: 0, step: None, column: at, error })?;
            }
        }
        self.seal();
        let mut worst: Option<Misfit> = None;
        for (at, column) in columns.iter_mut().enumerate() {
            if let Err(misfit) = self.column(at, column)
                && worst.as_ref().is_none_or(|worst| misfit.row < worst.row)
            {
                worst = Some(misfit);
            }
        }
        worst.map_or(Ok(()), Err)
    }

    /// Only what can still go wrong: columns of several features.
    pub(super) fn misfit(&mut self) -> Result<(), Misfit> {
        let part = self.owners.part;
        self.seal();
        let mut worst: Option<Misfit> = None;
        for (at, planned) in part.columns.iter().enumerate() {
            let composite = match &planned.make {
                Make::Ragged { partitions, .. } => !partitions.is_empty(),
                Make::Sparse { .. } => true,
                _ => false,
            };
            let values = Values::Int64(super::Buf::default());
            let mut column = Column::Dense(Dense { values, shape: Vec::new() });
            if composite
                && let Err(misfit) = self.column(at, &mut column)
                && worst.as_ref().is_none_or(|worst| misfit.row < worst.row)
            {
                worst = Some(misfit);
            }
        }
        worst.map_or(Ok(()), Err)
    }

    /// Lends the values of all slots.
    fn seal(&mut self) {
        self.sealed.clear();
        for (at, slot) in self.owners.part.slots.iter().enumerate() {
            let filled = &mut self.filled[at];
            let len = match slot.need {
                Need::Fixed { count, .. } => self.rows.saturating_mul(count).min(filled.used),
                _ => filled.used,
            };
            let values = filled.seal(&mut self.rings[at], len, &self.owners);
            self.sealed.push(Some(values));
        }
    }

    /// The values of a slot.
    pub(super) fn values(&self, at: usize) -> Values {
        self.sealed.get(at).and_then(Option::clone).unwrap_or(Values::Int64(super::Buf::default()))
    }

    fn column(&mut self, at: usize, column: &mut Column) -> Result<(), Misfit> {
        match &self.part().columns[at].make {
            Make::Dense { slot, .. } | Make::Padded { slot, .. } => {
                self.dense(at, *slot, column);
                Ok(())
            }
            Make::VarLen { slot } => {
                self.var_len(at, *slot, column);
                Ok(())
            }
            Make::Ragged { .. } => self.lowest(at, column),
            Make::Sparse { .. } => self.sparse(at, column),
        }
    }

    /// A ragged column; the error is that of the lowest row. Partitions are taken one after the other over all rows, so
    /// a row before the one that did not fit may not fit a partition that was not reached.
    fn lowest(&mut self, at: usize, column: &mut Column) -> Result<(), Misfit> {
        let mut made = self.ragged(at, column);
        let rows = self.rows;
        while let Err(Misfit { row: before @ 1.., .. }) = made {
            self.rows = before;
            let Err(earlier) = self.ragged(at, column) else { break };
            made = Err(earlier);
        }
        self.rows = rows;
        made
    }

    fn dense(&mut self, at: usize, slot: usize, column: &mut Column) {
        let values = self.values(slot);
        let (block, of) = match &self.owners.part.columns[at].make {
            Make::Padded { shape, of, .. } => (shape, Some(*of)),
            Make::Dense { shape, .. } => (shape, None),
            _ => return,
        };
        // Padded to the longest, so that one row tells the number of blocks in each.
        let blocks = of.map(|of| self.longest(slot, of) / of);
        let rows = (!self.single).then_some(self.rows);
        put_dense(column, values, rows.into_iter().chain(blocks).chain(block.iter().copied()));
    }

    /// Values of row `row`.
    fn row_len(&self, slot: usize, of: usize, row: usize) -> usize {
        let filled = &self.filled[slot];
        match self.lists {
            true => filled.steps[row] as usize * of,
            false => filled.counts[row] as usize,
        }
    }

    fn longest(&self, slot: usize, of: usize) -> usize {
        (0..self.rows).map(|row| self.row_len(slot, of, row)).max().unwrap_or(0)
    }

    /// Makes all rows as long as the longest.
    fn pad(&mut self, slot: usize, of: usize, fill: &Default) -> Result<()> {
        let longest = self.longest(slot, of);
        let rows = self.rows;
        let used = self.filled[slot].used;
        let total = rows.saturating_mul(longest);
        if total == used {
            return Ok(());
        }
        let filled = std::mem::take(&mut self.filled[slot].memory);
        let mut lens = (0..rows).rev().map(|row| self.row_len(slot, of, row));
        let padded = match filled {
            Memory::Int64(mut draft) => {
                let fill = if let Default::Int64(fill) = fill { fill.first().copied() } else { None };
                spread(&mut draft, &mut lens, used, longest, total, self.limit, fill.unwrap_or_default())
                    .map(|()| Memory::Int64(draft))
            }
            Memory::Float32(mut draft) => {
                let fill = if let Default::Float32(fill) = fill { fill.first().copied() } else { None };
                spread(&mut draft, &mut lens, used, longest, total, self.limit, fill.unwrap_or_default())
                    .map(|()| Memory::Float32(draft))
            }
            Memory::Bytes(mut draft) => {
                let mut span = [Span::default()];
                // Without bytes of its own it lies anywhere.
                if let Default::Bytes(ends) = fill
                    && self.part().slots[slot].fallback.is_some()
                {
                    default_spans(ends, self.owners.rows.len() + slot, &mut span);
                }
                spread(&mut draft, &mut lens, used, longest, total, self.limit, span[0])
                    .map(|()| Memory::Bytes(draft))
            }
        };
        self.filled[slot].memory = padded?;
        self.filled[slot].used = total;
        Ok(())
    }

    fn var_len(&mut self, at: usize, slot: usize, column: &mut Column) {
        let values = self.values(slot);
        let filled = &self.filled[slot];
        let ring = &mut self.extras[at].int64;
        let mut draft = ring.draft();
        let longest = |counts: &[u32]| counts.iter().max().copied().unwrap_or(0).into();
        if !self.lists {
            let counts = &filled.counts[..self.rows];
            let rank = if self.single { 1 } else { 2 };
            draft.grow(filled.used * rank, filled.used * rank, 0);
            match self.single {
                true => {
                    for (k, to) in draft.memory.iter_mut().take(filled.used).enumerate() {
                        *to = k as i64;
                    }
                }
                false => {
                    let mut to = draft.memory.chunks_exact_mut(2);
                    for (row, &count) in counts.iter().enumerate() {
                        for (k, to) in to.by_ref().take(count as usize).enumerate() {
                            to.copy_from_slice(&[row as i64, k as i64]);
                        }
                    }
                }
            }
            let indices = ring.lend(draft, filled.used * rank);
            let rows = (!self.single).then_some(self.rows as u64);
            return put_sparse(column, indices, values, rows.into_iter().chain([longest(counts)]));
        }
        let rank = if self.single { 2 } else { 3 };
        draft.grow(filled.used * rank, filled.used * rank, 0);
        let mut to = draft.memory.chunks_exact_mut(rank);
        let mut counts = filled.counts.iter();
        for (row, &steps) in filled.steps[..self.rows].iter().enumerate() {
            for (step, &count) in counts.by_ref().take(steps as usize).enumerate() {
                for (k, to) in to.by_ref().take(count as usize).enumerate() {
                    let index = [row as i64, step as i64, k as i64];
                    to.copy_from_slice(&index[3 - rank..]);
                }
            }
        }
        let indices = ring.lend(draft, filled.used * rank);
        let rows = (!self.single).then_some(self.rows as u64);
        let shape = [longest(&filled.steps[..self.rows]), longest(&filled.counts)];
        put_sparse(column, indices, values, rows.into_iter().chain(shape));
    }

    /// The number of steps in each row of a dense feature list.
    pub(super) fn lengths(&mut self, at: usize) -> Option<super::Buf<i64>> {
        let Make::Padded { slot, .. } = &self.owners.part.columns[at].make else { return None };
        let ring = &mut self.extras[at].lengths;
        let mut draft = ring.draft();
        draft.grow(self.rows, self.rows, 0);
        for (to, &steps) in draft.memory.iter_mut().zip(&self.filled[*slot].steps[..self.rows]) {
            *to = steps.into();
        }
        Some(ring.lend(draft, self.rows))
    }
}

/// Spreads rows that lie one behind the other to places of `longest` values each; `lens` are theirs, from the last to the
/// first.
fn spread<T: Copy>(
    draft: &mut Draft<T>,
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
    draft.grow(total, total, fill);
    let (mut from, mut to) = (used, total);
    for len in lens {
        // From the end on, for a row's new place is never before its old one.
        from -= len;
        to -= longest;
        draft.memory.copy_within(from..from + len, to);
        draft.memory[to + len..to + longest].fill(fill);
    }
    Ok(())
}
