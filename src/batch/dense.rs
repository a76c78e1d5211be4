//! Conversion of ragged and sparse values to dense arrays.
//!
//! The functions take slices, so that arrays of other libraries can be converted too.

use super::column::{Column, Dense, Optional, RowSplits};
use crate::error::{Error, Result, no_memory};
use crate::memory::room;

/// Row splits in slices.
type Splits<'a> = RowSplits<&'a [i32], &'a [i64]>;

impl Splits<'_> {
    fn len(&self) -> usize {
        match self {
            Splits::Int32(splits) => splits.len(),
            Splits::Int64(splits) => splits.len(),
        }
    }

    pub(super) fn get(&self, k: usize) -> Option<usize> {
        match self {
            Splits::Int32(splits) => usize::try_from(*splits.get(k)?).ok(),
            Splits::Int64(splits) => usize::try_from(*splits.get(k)?).ok(),
        }
    }

    /// Returns the range of row `r`.
    fn row(&self, r: usize) -> (usize, usize) {
        match (self.get(r), r.checked_add(1).and_then(|next| self.get(next))) {
            (Some(start), Some(end)) => (start, end),
            _ => (0, 0),
        }
    }

    fn rows(&self) -> usize {
        self.len().saturating_sub(1)
    }

    /// Returns the row that contains `item`.
    fn find(&self, item: usize) -> Option<usize> {
        // Rows that start at `item` or before it.
        let starts = |split: i64| usize::try_from(split).is_ok_and(|split| split <= item);
        let next = match self {
            Splits::Int32(splits) => splits.partition_point(|&split| starts(split.into())),
            Splits::Int64(splits) => splits.partition_point(|&split| starts(split)),
        };
        (next < self.len()).then_some(next.checked_sub(1)?)
    }
}

impl RowSplits {
    pub(super) fn as_slices(&self) -> Splits<'_> {
        match self {
            RowSplits::Int32(splits) => Splits::Int32(splits),
            RowSplits::Int64(splits) => Splits::Int64(splits),
        }
    }
}

/// Maximum number of ragged dimensions that are padded. NumPy has at most 64 dimensions.
const MAX_DIMS: usize = 64;

/// Pads the rows of a ragged array to equal lengths. Returns the values, row-major; the mask, 1 for an item
/// and 0 for padding; and the shape of the mask: the number of rows, followed by the length of each ragged
/// dimension. The values have `inner` more per item.
///
/// `values` has `inner` values per item. `row_splits` is outermost first. `lengths[d]` is the length of
/// ragged dimension `d`; `None`, also for a dimension that `lengths` does not have, is the length of the
/// longest row. Items beyond a length are left out.
///
/// # Errors
/// [`ErrorKind::Spec`](crate::ErrorKind::Spec) if the row splits do not fit `values`: the first is 0, none
/// decreases, and the last is the number of rows of the next dimension, or of items.
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if there is not enough memory.
pub fn pad_rows<T: Clone>(
    values: &[T],
    inner: usize,
    row_splits: &[Splits<'_>],
    lengths: &[Option<usize>],
    padding: T,
) -> Result<(Vec<T>, Vec<u8>, Vec<usize>)> {
    let Some(outermost) = row_splits.first() else {
        return Err(Error::spec("expected row splits, found none"));
    };
    if row_splits.len() > MAX_DIMS {
        let found = row_splits.len();
        return Err(Error::spec(format!("expected at most {MAX_DIMS} ragged dimensions, found {found}")));
    }
    let items = match values.len().checked_div(inner) {
        Some(items) if values.len().is_multiple_of(inner) => items,
        None if values.is_empty() => {
            row_splits.last().map_or(0, |splits| splits.get(splits.rows()).unwrap_or(0))
        }
        _ => {
            return Err(Error::spec(format!(
                "expected items of {inner} values, found {} values",
                values.len()
            )));
        }
    };
    let mut shape = vec![outermost.rows()];
    for (d, splits) in row_splits.iter().enumerate() {
        let below = row_splits.get(d + 1).map_or(items, Splits::rows);
        let longest = longest_row(splits, below)?;
        shape.push(lengths.get(d).copied().flatten().unwrap_or(longest));
    }
    let cells = product(&shape)?;
    let padded = filled(product(&[cells, inner])?, padding)?;
    let mut rows = PaddedRows { values, inner, row_splits, padded, mask: filled(cells, 0)?, shape };
    for r in 0..outermost.rows() {
        rows.copy(0, r, r);
    }
    Ok((rows.padded, rows.mask, rows.shape))
}

/// Returns the length of the longest row, after validating the splits.
fn longest_row(splits: &Splits<'_>, below: usize) -> Result<usize> {
    let mut longest = 0;
    let mut previous = match splits.get(0) {
        Some(0) => 0,
        _ => return Err(Error::spec("expected row splits that begin with 0")),
    };
    for k in 1..splits.len() {
        match splits.get(k).and_then(|end| Some((end, end.checked_sub(previous)?))) {
            Some((end, len)) => (longest, previous) = (longest.max(len), end),
            None => {
                return Err(Error::spec(format!(
                    "expected row splits that never decrease, found a smaller one at {k}"
                )));
            }
        }
    }
    if previous != below {
        return Err(Error::spec(format!("expected row splits that end with {below}, found {previous}")));
    }
    Ok(longest)
}

/// Rows of different lengths, and the dense array that they are copied into.
struct PaddedRows<'a, T> {
    values: &'a [T],
    inner: usize,
    row_splits: &'a [Splits<'a>],
    padded: Vec<T>,
    mask: Vec<u8>,
    shape: Vec<usize>,
}

impl<T: Clone> PaddedRows<'_, T> {
    /// Copies row `r` of dimension `d` to place `to` of that dimension.
    fn copy(&mut self, d: usize, r: usize, to: usize) {
        let next = d + 1;
        let (Some(splits), Some(&len)) = (self.row_splits.get(d), self.shape.get(next)) else { return };
        let (start, end) = splits.row(r);
        let n = (end - start).min(len);
        // The place is below the number of cells, which was checked.
        let to = to * len;
        if next < self.row_splits.len() {
            for k in 0..n {
                self.copy(next, start + k, to + k);
            }
            return;
        }
        let range = |start: usize, n: usize| start..start + n;
        if let Some(mask) = self.mask.get_mut(range(to, n)) {
            mask.fill(1);
        }
        let scaled = |place: usize| range(place * self.inner, n * self.inner);
        if let (Some(from), Some(to)) = (self.values.get(scaled(start)), self.padded.get_mut(scaled(to))) {
            to.clone_from_slice(from);
        }
    }
}

/// Returns a dense array of `shape` from values at `indices`, of shape `[n, rank]`. Entries beyond `shape`
/// are left out, and the last one of an index counts.
///
/// # Errors
/// [`ErrorKind::Spec`](crate::ErrorKind::Spec) if the number of indices does not match.
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if there is not enough memory.
pub fn dense_from_sparse<T: Clone>(
    indices: &[i64],
    values: &[T],
    shape: &[usize],
    default: T,
) -> Result<Vec<T>> {
    let rank = shape.len();
    if values.len().checked_mul(rank) != Some(indices.len()) {
        let reason =
            format!("expected {} indices of rank {rank}, found {} integers", values.len(), indices.len());
        return Err(Error::spec(reason));
    }
    let mut dense = filled(product(shape)?, default)?;
    for (k, value) in values.iter().enumerate() {
        #[expect(clippy::indexing_slicing, reason = "there are `rank` indices of each value")]
        let index = &indices[k * rank..][..rank];
        let place = index.iter().zip(shape).try_fold(0usize, |place, (&i, &size)| {
            let i = usize::try_from(i).ok().filter(|&i| i < size)?;
            place.checked_mul(size)?.checked_add(i)
        });
        if let Some(cell) = place.and_then(|place| dense.get_mut(place)) {
            cell.clone_from(value);
        }
    }
    Ok(dense)
}

impl Column {
    /// Returns the first index of value `k` of [`Column::values`], which is its row in a batch. `None` beyond
    /// the last value, and for a scalar. Costs a binary search per ragged dimension.
    pub fn row_of(&self, k: usize) -> Option<u64> {
        match self {
            Column::Dense(Dense { values, shape }) | Column::Optional(Optional { values, shape, .. }) => {
                let row_len = values.len().checked_div(*shape.first()?)?;
                (k < values.len()).then_some(k.checked_div(row_len)? as u64)
            }
            Column::Sparse(sparse) => {
                let row = sparse.indices.get(k.checked_mul(sparse.dense_shape.len())?)?;
                u64::try_from(*row).ok()
            }
            Column::Ragged(ragged) => {
                let inner = product(ragged.shape.get(1..).unwrap_or_default()).ok()?;
                let item = k.checked_div(inner)?;
                ragged
                    .row_splits
                    .iter()
                    .rev()
                    .try_fold(item, |item, splits| splits.as_slices().find(item))
                    .map(|row| row as u64)
            }
        }
    }
}

fn product(sizes: &[usize]) -> Result<usize> {
    sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size)).ok_or_else(no_memory)
}

fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut values = room(len)?;
    values.resize(len, value);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::super::column::{Ragged, Sparse, Values};
    use super::*;
    use crate::error::ErrorKind;

    /// Returns the padded rows of one or two ragged dimensions, by indexing.
    fn twin(values: &[i64], splits: &[&[i64]], lengths: &[Option<usize>]) -> (Vec<i64>, Vec<u8>) {
        fn rows(splits: &[i64]) -> Vec<std::ops::Range<usize>> {
            splits.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).collect()
        }
        let longest = |d: usize| rows(splits[d]).iter().map(|row| row.len()).max().unwrap_or(0);
        let len = |d: usize| lengths.get(d).copied().flatten().unwrap_or_else(|| longest(d));
        let mut found = vec![];
        let mut mask = vec![];
        let mut leaf = |row: Option<std::ops::Range<usize>>, len: usize| {
            for k in 0..len {
                let value = row.clone().and_then(|row| row.into_iter().nth(k));
                found.push(value.map_or(-1, |at| values[at]));
                mask.push(u8::from(value.is_some()));
            }
        };
        for row in rows(splits[0]) {
            if splits.len() == 1 {
                leaf(Some(row), len(0));
                continue;
            }
            for k in 0..len(0) {
                leaf(row.clone().nth(k).map(|inner| rows(splits[1])[inner].clone()), len(1));
            }
        }
        (found, mask)
    }

    fn as_splits(lengths: &[u8]) -> Vec<i64> {
        let mut splits = vec![0];
        splits.extend(lengths.iter().scan(0, |sum, &len| {
            *sum += i64::from(len);
            Some(*sum)
        }));
        splits
    }

    proptest::proptest! {
        #[test]
        fn padded_rows_equal_those_of_a_twin(
            inner in proptest::collection::vec(0u8..4, 0..12),
            cuts in proptest::collection::vec(0usize..13, 0..4),
            first in proptest::option::of(0usize..5),
            second in proptest::option::of(0usize..5),
        ) {
            let leaves = as_splits(&inner);
            let values: Vec<i64> = (0..*leaves.last().unwrap()).collect();
            let mut outer: Vec<i64> = cuts.iter().map(|&cut| cut.min(inner.len()) as i64).collect();
            outer.sort_unstable();
            outer.insert(0, 0);
            outer.push(inner.len() as i64);
            let small: Vec<i32> = leaves.iter().map(|&end| end as i32).collect();
            for (dims, lengths) in [(1, vec![second]), (2, vec![first, second])] {
                let (nested, twins) = match dims {
                    1 => (vec![Splits::Int32(&small)], vec![&leaves[..]]),
                    _ => (vec![Splits::Int64(&outer), Splits::Int32(&small)], vec![&outer[..], &leaves[..]]),
                };
                let (padded, found, shape) = pad_rows(&values, 1, &nested, &lengths, -1).unwrap();
                let (expected, mask) = twin(&values, &twins, &lengths);
                proptest::prop_assert_eq!(&padded, &expected);
                proptest::prop_assert_eq!(&found, &mask);
                proptest::prop_assert_eq!(shape.iter().product::<usize>(), mask.len());
            }
        }
    }

    #[test]
    fn items_of_several_values_stay_together() {
        let (values, mask, _) =
            pad_rows(&[1, 2, 3, 4, 5, 6], 2, &[Splits::Int64(&[0, 1, 3])], &[], 0).unwrap();
        assert_eq!((&values[..], &mask[..]), (&[1, 2, 0, 0, 3, 4, 5, 6][..], &[1, 0, 1, 1][..]));
        let (values, _, shape) = pad_rows::<i64>(&[], 0, &[Splits::Int64(&[0, 1, 3])], &[], 0).unwrap();
        assert_eq!((values.len(), &shape[..]), (0, &[2, 2][..]));
    }

    #[test]
    fn invalid_splits_are_refused() {
        let cases: [(&[i64], &str); 7] = [
            (&[], "begin with 0"),
            (&[1, 3], "begin with 0"),
            (&[0, 2, 1, 3], "smaller one at 2"),
            (&[0, -1, 3], "smaller one at 1"),
            (&[0, 2], "end with 3, found 2"),
            (&[0, i32::MAX.into()], "end with 3"),
            (&[0, i64::MAX], "expected row splits"),
        ];
        for (splits, expected) in cases {
            let error = pad_rows(&[1, 2, 3], 1, &[Splits::Int64(splits)], &[], 0).unwrap_err().to_string();
            assert!(error.contains(expected), "{splits:?}: {error}");
        }
        assert!(pad_rows(&[1, 2, 3], 2, &[Splits::Int64(&[0, 1])], &[], 0).is_err());
        assert!(pad_rows(&[1, 2, 3], 1, &[], &[], 0).is_err());
        let deep = vec![Splits::Int64(&[0, 1]); 100_000];
        assert!(pad_rows(&[1], 1, &deep, &[], 0).is_err());
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for length in [usize::MAX, usize::MAX / 4] {
            let error = pad_rows(&[1i64], 1, &[Splits::Int64(&[0, 1])], &[Some(length)], 0).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
        }
        assert!(dense_from_sparse(&[0, 0], &[1i64], &[usize::MAX, 2], 0).is_err());
    }

    #[test]
    fn the_row_of_a_value() {
        let ragged = |splits: Vec<RowSplits>, shape: &[usize]| {
            let values = Values::Int64(vec![0; shape.iter().product()].into());
            Column::Ragged(Ragged { values, shape: shape.to_vec(), row_splits: splits })
        };
        let inner = RowSplits::Int32(vec![0, 2, 2, 3].into());
        let rows = |column: &Column| (0..4).map(|k| column.row_of(k)).collect::<Vec<_>>();
        assert_eq!(rows(&ragged(vec![inner.clone()], &[3])), [Some(0), Some(0), Some(2), None]);
        let outer = RowSplits::Int64(vec![0, 0, 2, 3].into());
        assert_eq!(rows(&ragged(vec![outer, inner], &[3])), [Some(1), Some(1), Some(2), None]);
        let values = Values::Int64(vec![0; 3].into());
        let shape = vec![3, 2];
        let sparse = Sparse {
            indices: vec![0, 0, 2, 0, 2, 1].into(),
            values: values.clone(),
            dense_shape: vec![3, 2],
        };
        assert_eq!(rows(&Column::Sparse(sparse)), [Some(0), Some(2), Some(2), None]);
        let dense = Dense { values: Values::Int64(vec![0; 6].into()), shape };
        assert_eq!(rows(&Column::Dense(dense)), [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(Column::Dense(Dense { values, shape: vec![] }).row_of(0), None);
    }

    #[test]
    fn entries_beyond_the_shape_are_left_out() {
        let dense = dense_from_sparse(&[0, 1, 1, 5, -1, 0, 1, 0], &[1, 2, 3, 4], &[2, 2], 0).unwrap();
        assert_eq!(dense, [0, 1, 4, 0]);
        assert!(dense_from_sparse(&[0, 1, 1], &[1, 2], &[2, 2], 0).is_err());
        assert_eq!(dense_from_sparse(&[], &[7], &[], 0).unwrap(), [7]);
    }
}
