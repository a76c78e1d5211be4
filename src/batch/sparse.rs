//! Sparse columns of values and indices that are features of their own.

use super::assemble::{Ends, Misfit, put_sparse};
use super::column::{Column, Values};
use super::compile::Make;
use super::row::Row;
use crate::error::FeatureError;

impl<R: Row> Ends<'_, R> {
    /// Entries are sorted by index in each row, equal ones in the order of the record, unless the spec says that they are.
    pub(super) fn sparse(&mut self, at: usize, column: &mut Column) -> Result<(), Misfit> {
        let Make::Sparse { values: slot, indices: keys, size, already_sorted } =
            &self.owners.part.columns[at].make
        else {
            return Ok(());
        };
        // The lowest row that does not fit, whatever is wrong with it.
        let mut bad: Option<(usize, FeatureError)> = None;
        let counts = &self.filled[*slot].counts[..self.rows];
        for &key in keys {
            let unlike = counts.iter().zip(&self.filled[key].counts).position(|(a, b)| a != b);
            if let Some(row) = unlike
                && bad.is_none_or(|(lowest, _)| row < lowest)
            {
                let (values, indices) = (counts[row] as usize, self.filled[key].counts[row] as usize);
                bad = Some((row, FeatureError::SparseCount { values, indices }));
            }
        }
        let rows = bad.map_or(self.rows, |(row, _)| row);
        let counts = &counts[..rows];
        let total = counts.iter().map(|&count| count as usize).sum::<usize>();
        let rank = keys.len() + usize::from(!self.single);
        let extra = &mut self.extras[at];
        let mut draft = extra.int64.draft();
        draft.grow(total * rank, total * rank, 0);
        for (d, (&key, &size)) in keys.iter().zip(size).enumerate() {
            let Some(Some(Values::Int64(from))) = self.sealed.get(key) else { continue };
            let d = d + usize::from(!self.single);
            let mut from = from.iter();
            let mut to = draft.memory.chunks_exact_mut(rank);
            'rows: for (row, &count) in counts.iter().enumerate() {
                for (&index, to) in from.by_ref().take(count as usize).zip(to.by_ref()) {
                    if !self.lenient && u64::try_from(index).map_or(true, |index| index >= size) {
                        if bad.is_none_or(|(lowest, _)| row < lowest) {
                            bad = Some((row, FeatureError::SparseIndex { size, found: index }));
                        }
                        break 'rows;
                    }
                    to[d] = index;
                    if !self.single {
                        to[0] = row as i64;
                    }
                }
            }
        }
        if let Some((row, e)) = bad {
            return Err(Misfit { row, step: None, column: at, error: e.into() });
        }
        let mut values =
            self.sealed.get(*slot).and_then(Option::clone).unwrap_or(Values::Int64(super::Buf::default()));
        let indices = &mut draft.memory[..total * rank];
        let sorted = indices.chunks_exact(rank).is_sorted();
        let indices = if *already_sorted || sorted {
            extra.int64.lend(draft, total * rank)
        } else {
            let order = &mut self.scraps.order;
            order.clear();
            order.extend(0..total as u32);
            let index = |k: u32| &indices[k as usize * rank..][..rank];
            // The row comes first in an index, or there is but one. The number makes it stable, without memory.
            order.sort_unstable_by(|&a, &b| index(a).cmp(index(b)).then(a.cmp(&b)));
            let mut sorted = extra.int64.draft();
            sorted.grow(total * rank, total * rank, 0);
            for (to, &k) in sorted.memory.chunks_exact_mut(rank).zip(order.iter()) {
                to.copy_from_slice(index(k));
            }
            values = extra.values.permute(&values, order);
            extra.int64.lend(draft, 0);
            extra.int64.lend(sorted, total * rank)
        };
        let rows = (!self.single).then_some(rows as u64);
        put_sparse(column, indices, values, rows.into_iter().chain(size.iter().copied()));
        Ok(())
    }
}
