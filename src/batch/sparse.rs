//! Sparse columns of values and indices that are features of their own.

use super::column::Column;
use super::slots::{ColumnPools, DecodedSlots, RowError};
use crate::error::FeatureError;

/// The slots of a sparse column.
pub(super) struct SparseForm<'a> {
    pub(super) values: usize,
    /// One slot for each dimension, and their sizes.
    pub(super) indices: &'a [usize],
    pub(super) size: &'a [u64],
    /// The entries of each row are sorted by index.
    pub(super) sorted: bool,
}

/// Assembles a sparse column. Entries are sorted by index in each row, equal ones in the order of the record, unless the spec
/// says that they are.
pub(super) fn column(
    slots: DecodedSlots<'_>,
    form: SparseForm<'_>,
    pools: &mut ColumnPools,
    order: &mut Vec<u32>,
    column: &mut Column,
) -> Result<(), RowError> {
    // The lowest row that is refused, for any reason.
    let mut bad: Option<(usize, FeatureError)> = None;
    let counts = slots.counts(form.values);
    for &key in form.indices {
        let unlike = counts.iter().zip(slots.counts(key)).position(|(a, b)| a != b);
        if let Some(row) = unlike
            && bad.is_none_or(|(lowest, _)| row < lowest)
        {
            let (values, indices) = (counts[row] as usize, slots.counts(key)[row] as usize);
            bad = Some((row, FeatureError::SparseCount { values, indices }));
        }
    }
    let rows = bad.map_or(slots.rows, |(row, _)| row);
    let counts = &counts[..rows];
    let total = counts.iter().map(|&count| count as usize).sum::<usize>();
    let rank = form.indices.len() + usize::from(!slots.single);
    let mut buf = pools.int64.take();
    buf.grow(total * rank, total * rank, 0);
    for (d, (&key, &size)) in form.indices.iter().zip(form.size).enumerate() {
        let d = d + usize::from(!slots.single);
        let mut from = slots.int64(key).iter();
        let mut to = buf.values.chunks_exact_mut(rank);
        'rows: for (row, &count) in counts.iter().enumerate() {
            for (&index, to) in from.by_ref().take(count as usize).zip(to.by_ref()) {
                if !slots.lenient && u64::try_from(index).map_or(true, |index| index >= size) {
                    if bad.is_none_or(|(lowest, _)| row < lowest) {
                        bad = Some((row, FeatureError::SparseIndex { size, found: index }));
                    }
                    break 'rows;
                }
                to[d] = index;
                if !slots.single {
                    to[0] = row as i64;
                }
            }
        }
    }
    if let Some((row, e)) = bad {
        return Err(RowError { row, error: e.into() });
    }
    let mut values = slots.values(form.values);
    let indices = &mut buf.values[..total * rank];
    let sorted = indices.chunks_exact(rank).is_sorted();
    let indices = if form.sorted || sorted {
        pools.int64.lend(buf, total * rank)
    } else {
        order.clear();
        order.extend(0..total as u32);
        let index = |k: u32| &indices[k as usize * rank..][..rank];
        // The row comes first in an index, or there is but one. The number makes it stable, without memory.
        order.sort_unstable_by(|&a, &b| index(a).cmp(index(b)).then(a.cmp(&b)));
        let mut sorted = pools.int64.take();
        sorted.grow(total * rank, total * rank, 0);
        for (to, &k) in sorted.values.chunks_exact_mut(rank).zip(order.iter()) {
            to.copy_from_slice(index(k));
        }
        values = pools.values.permute(&values, order);
        pools.int64.lend(buf, 0);
        pools.int64.lend(sorted, total * rank)
    };
    let rows = (!slots.single).then_some(rows as u64);
    column.set_sparse(indices, values, rows.into_iter().chain(form.size.iter().copied()));
    Ok(())
}
