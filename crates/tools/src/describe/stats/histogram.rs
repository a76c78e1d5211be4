//! Histograms of cells: buckets of equal width, and of equal numbers.

use super::counters::{Cell, at_rank};

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) count: f64,
}

/// Returns `n` buckets of equal width from `low` to `high`. Each cell is in the bucket that contains its middle. Equal bounds give one bucket.
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

/// Returns the value at a part of the values: the smallest one such that at least this part is not above it.
pub(crate) fn quantile(cells: &[Cell], (low, high): (f64, f64), part: f64) -> Option<f64> {
    let n = cells.iter().fold(0u64, |sum, cell| sum.saturating_add(cell.count));
    let rank = ((part * n as f64).ceil() as u64).clamp(1, n.max(1));
    match rank {
        _ if n == 0 => None,
        1 => Some(low),
        rank if rank == n => Some(high),
        rank => at_rank(cells, rank).map(|value| value.clamp(low, high)),
    }
}

/// Returns `n` buckets with equal numbers of values.
pub(crate) fn equal_count(cells: &[Cell], bounds: (f64, f64), n: usize) -> Vec<Bucket> {
    let total: f64 = cells.iter().map(|cell| cell.count as f64).sum();
    let edges: Vec<f64> =
        (0..=n).filter_map(|k| quantile(cells, bounds, k as f64 / n.max(1) as f64)).collect();
    let pairs = edges.iter().zip(edges.iter().skip(1));
    pairs.map(|(low, high)| Bucket { low: *low, high: *high, count: total / n as f64 }).collect()
}

/// Returns a bar for each bucket, of eight heights, as high as its part of the fullest one. Empty buckets have the lowest bar.
pub(crate) fn bars(buckets: &[Bucket]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = buckets.iter().map(|bucket| bucket.count).fold(0.0, f64::max);
    let height = |bucket: &Bucket| if most > 0.0 { (bucket.count / most * 7.0).round() as usize } else { 0 };
    buckets.iter().filter_map(|bucket| BARS.get(height(bucket).min(7))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(value: f64, count: u64) -> Cell {
        Cell { low: value, high: value, count }
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

    #[test]
    fn bars_are_as_high_as_buckets() {
        let buckets = [0.0, 1.0, 7.0].map(|count| Bucket { low: 0.0, high: 1.0, count });
        assert_eq!(bars(&buckets), "▁▂█");
    }
}
