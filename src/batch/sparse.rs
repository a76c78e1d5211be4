//! Assembly of sparse columns, whose values and indices are separate features.

#![expect(
    clippy::indexing_slicing,
    reason = "rows and entries are counted, and each entry has `rank` indices"
)]

use super::column::Column;
use super::compile::SparsePlan;
use super::slots::{ColumnPools, DecodedSlots, RowError};
use crate::error::{ErrorKind, FeatureError};

/// Assembles a sparse column.
///
/// The entries of each row are sorted by index, unless the spec states that they are sorted already. The sort
/// is stable: entries with equal indices keep the order of the record.
pub(super) fn column(
    slots: DecodedSlots<'_>,
    plan: &SparsePlan,
    pools: &mut ColumnPools,
    order: &mut Vec<u32>,
    column: &mut Column,
) -> Result<(), RowError> {
    // The lowest refused row and its error.
    let mut refused = other_count(slots, plan);
    let rows = refused.map_or(slots.rows, |(row, _)| row);
    let counts = &slots.counts(plan.values)[..rows];
    let total = counts.iter().map(|&count| count as usize).sum::<usize>();
    let rank = plan.indices.len() + usize::from(!slots.single);
    let mut buf = pools.int64.take();
    buf.grow(total * rank, total * rank, 0)?;
    for (dim, (&key, &size)) in plan.indices.iter().zip(&plan.size).enumerate() {
        let dim = dim + usize::from(!slots.single);
        let mut from = slots.int64(key).iter();
        let mut to = buf.values.chunks_exact_mut(rank);
        'rows: for (row, &count) in counts.iter().enumerate() {
            for (&index, to) in from.by_ref().take(count as usize).zip(to.by_ref()) {
                if u64::try_from(index).map_or(true, |index| index >= size) {
                    if refused.is_none_or(|(lowest, _)| row < lowest) {
                        refused = Some((row, FeatureError::SparseIndex { size, found: index }));
                    }
                    break 'rows;
                }
                to[dim] = index;
                if !slots.single {
                    to[0] = row as i64;
                }
            }
        }
    }
    if let Some((row, e)) = refused {
        return Err(RowError { row, error: e.into() });
    }
    let mut values = slots.values(plan.values);
    let indices = &mut buf.values[..total * rank];
    let sorted = indices.chunks_exact(rank).is_sorted();
    let indices = if plan.already_sorted || sorted {
        pools.int64.freeze(buf, total * rank)
    } else {
        order.clear();
        let entries = number_of_entries(counts)?;
        order.try_reserve(entries as usize)?;
        order.extend(0..entries);
        let index = |k: u32| &indices[k as usize * rank..][..rank];
        // The first component of an index is the row, except for a single record. Comparing entry numbers
        // last makes the unstable sort, which needs no extra memory, give a stable order.
        order.sort_unstable_by(|&a, &b| index(a).cmp(index(b)).then(a.cmp(&b)));
        let mut sorted = pools.int64.take();
        sorted.grow(total * rank, total * rank, 0)?;
        for (to, &k) in sorted.values.chunks_exact_mut(rank).zip(order.iter()) {
            to.copy_from_slice(index(k));
        }
        values = pools.values.permute(&values, order)?;
        pools.int64.freeze(buf, 0);
        pools.int64.freeze(sorted, total * rank)
    };
    let rows = (!slots.single).then_some(rows as u64);
    column.set_sparse(indices, values, rows.into_iter().chain(plan.size.iter().copied()));
    Ok(())
}

/// Returns the lowest row whose numbers of values and of indices differ, with its error.
fn other_count(slots: DecodedSlots<'_>, plan: &SparsePlan) -> Option<(usize, FeatureError)> {
    let counts = slots.counts(plan.values);
    let differs = |&key: &usize| Some((counts.iter().zip(slots.counts(key)).position(|(a, b)| a != b)?, key));
    let (row, key) = plan.indices.iter().filter_map(differs).min_by_key(|(row, _)| *row)?;
    let values = counts[row] as usize;
    let indices = slots.counts(key)[row] as usize;
    Some((row, FeatureError::SparseCount { values, indices }))
}

/// Returns the number of entries of all rows. The sort numbers entries by `u32`; more than that is an error
/// of the row that exceeds it.
fn number_of_entries(counts: &[u32]) -> Result<u32, RowError> {
    let mut total = 0u64;
    for (row, &count) in counts.iter().enumerate() {
        total += u64::from(count);
        if total > u64::from(u32::MAX) {
            let error = ErrorKind::TooMany {
                what: "entries of a sparse column",
                found: total.into(),
                limit: u32::MAX.into(),
            };
            return Err(RowError { row, error: error.into() });
        }
    }
    Ok(total as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_beyond_the_sort_are_an_error() {
        let count = |counts: &[u32]| number_of_entries(counts).map_err(|e| e.row);
        assert_eq!(count(&[]), Ok(0));
        assert_eq!(count(&[u32::MAX, 0]), Ok(u32::MAX));
        assert_eq!(count(&[u32::MAX, 0, 1, 7]), Err(2));
    }
}
