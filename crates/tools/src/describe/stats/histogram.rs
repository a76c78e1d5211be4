//! Histograms of cells: buckets of equal width, and of equal numbers.

use super::counters::{Cell, at_rank};

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) count: f64,
}

/// Returns `n` buckets of equal width from `low` to `high`. Each cell is in the bucket that contains its
/// middle. Equal bounds give one bucket.
pub(crate) fn equal_width(cells: &[Cell], low: f64, high: f64, n: usize) -> Vec<Bucket> {
    if cells.is_empty() || low >= high || n == 0 {
        let count = cells.iter().map(|cell| cell.count as f64).sum();
        return if cells.is_empty() { Vec::new() } else { vec![Bucket { low, high, count }] };
    }
    let width = high / n as f64 - low / n as f64;
    let edge = |k: usize| if k == n { high } else { low + width * k as f64 };
    let mut buckets: Vec<_> =
        (0..n).map(|k| Bucket { low: edge(k), high: edge(k + 1), count: 0.0 }).collect();
    for cell in cells {
        let k = ((cell.middle().clamp(low, high) - low) / width) as usize;
        if let Some(bucket) = buckets.get_mut(k.min(n - 1)) {
            bucket.count += cell.count as f64;
        }
    }
    buckets
}

/// Returns the cell of the value at a part of the values: the smallest one such that at least this part is
/// not above it. The first and the last value are the bounds.
fn at_part<T: Copy>(cells: &[Cell<T>], (low, high): (T, T), part: f64) -> Option<Cell<T>> {
    let n: u64 = cells.iter().map(|cell| cell.count).sum();
    let rank = ((part * n as f64).ceil() as u64).clamp(1, n.max(1));
    match rank {
        _ if n == 0 => None,
        1 => Some(Cell::of(low, 1)),
        rank if rank == n => Some(Cell::of(high, 1)),
        rank => at_rank(cells, rank).copied(),
    }
}

/// Returns the value at a part of the values.
pub(crate) fn quantile(cells: &[Cell], (low, high): (f64, f64), part: f64) -> Option<f64> {
    at_part(cells, (low, high), part).map(|cell| cell.middle().clamp(low, high))
}

/// A quantile of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum IntQuantile {
    Value(i64),
    /// The middle of a counter.
    Middle(f64),
}

/// Returns the integer at a part of the values. Integers that are counted exactly are not rounded.
pub(crate) fn int_quantile(cells: &[Cell<i64>], (low, high): (i64, i64), part: f64) -> Option<IntQuantile> {
    at_part(cells, (low, high), part).map(|cell| match cell.rounded().middle() {
        _ if cell.low == cell.high => IntQuantile::Value(cell.low),
        middle if middle <= low as f64 => IntQuantile::Value(low),
        middle if middle >= high as f64 => IntQuantile::Value(high),
        middle => IntQuantile::Middle(middle),
    })
}

/// Returns `n` buckets with equal numbers of values.
pub(crate) fn equal_count(cells: &[Cell], bounds: (f64, f64), n: usize) -> Vec<Bucket> {
    let total: f64 = cells.iter().map(|cell| cell.count as f64).sum();
    let edges: Vec<f64> =
        (0..=n).filter_map(|k| quantile(cells, bounds, k as f64 / n.max(1) as f64)).collect();
    let pairs = edges.iter().zip(edges.iter().skip(1));
    pairs.map(|(low, high)| Bucket { low: *low, high: *high, count: total / n as f64 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(value: f64, count: u64) -> Cell {
        Cell::of(value, count)
    }

    #[test]
    fn buckets_contain_all_values() {
        let cells: Vec<_> = (0..100).map(|k| cell(f64::from(k), 2)).collect();
        let buckets = equal_width(&cells, 0.0, 99.0, 10);
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<f64>(), 200.0);
        assert_eq!((buckets.len(), buckets[0].low, buckets[9].high), (10, 0.0, 99.0));
        assert_eq!(quantile(&cells, (0.0, 99.0), 0.5), Some(49.0));
        assert_eq!(quantile(&cells, (0.0, 99.0), 0.0), Some(0.0));
        assert_eq!(quantile(&cells, (0.0, 99.0), 1.0), Some(99.0));
        assert_eq!(
            equal_count(&cells, (0.0, 99.0), 4).iter().map(|b| b.high).collect::<Vec<_>>(),
            [24.0, 49.0, 74.0, 99.0]
        );
        assert_eq!(equal_width(&[cell(5.0, 3)], 5.0, 5.0, 10), [Bucket { low: 5.0, high: 5.0, count: 3.0 }]);
        assert_eq!(equal_width(&[], 0.0, 1.0, 10), []);
        // The width of the widest range does not overflow.
        let all = equal_width(&[cell(f64::MIN, 1), cell(f64::MAX, 1)], f64::MIN, f64::MAX, 2);
        assert_eq!((all[0].count, all[1].count), (1.0, 1.0));
    }

    /// Quantiles of integers are their values beyond 2^53 too, where floats have no odd numbers.
    #[test]
    fn quantiles_of_integers_are_not_rounded() {
        let values = [(1 << 53) + 1, (1 << 53) + 3, i64::MAX - 2];
        let cells = values.map(|value| Cell::of(value, 1));
        let bounds = (values[0], values[2]);
        let at = |part| int_quantile(&cells, bounds, part);
        assert_eq!([0.01, 0.5, 0.9].map(at), values.map(|value| Some(IntQuantile::Value(value))));
        let wide = [Cell { low: 256, high: 257, count: 9 }];
        assert_eq!(int_quantile(&wide, (256, 257), 0.5), Some(IntQuantile::Middle(256.5)));
        assert_eq!(int_quantile(&wide, (257, 257), 0.5), Some(IntQuantile::Value(257)));
        assert_eq!(int_quantile(&[], (0, 0), 0.5), None);
    }
}
