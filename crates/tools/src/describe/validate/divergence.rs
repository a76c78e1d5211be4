//! Jensen-Shannon divergence of two distributions, in bits: 0 for equal ones, 1 for those without a common
//! value.

use crate::describe::stats::bounds::{Bounds, joined, widened};
use crate::describe::stats::counters::{self, Cell, KeyCounters};
use crate::describe::stats::divergence::divergence;
use crate::describe::stats::histogram::{Bucket, equal_width};

/// Number of buckets of a standard histogram, as in TFDV.
const BUCKETS: usize = 10;

/// The distribution of the numbers of a feature.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberShares {
    counters: KeyCounters,
    /// The values are floats.
    floats: bool,
    /// Least and most finite value.
    range: Bounds<f64>,
    /// Numbers of NaN, -inf and +inf.
    others: [u64; 3],
}

impl NumberShares {
    pub(super) fn add_int(&mut self, value: i64) {
        self.counters.add(counters::int_key(value), 1);
        self.range = widened(self.range, value as f64);
    }

    pub(super) fn add_float(&mut self, value: f32) {
        self.floats = true;
        let [nan, below, above] = &mut self.others;
        match value {
            _ if value.is_nan() => *nan += 1,
            f32::NEG_INFINITY => *below += 1,
            f32::INFINITY => *above += 1,
            _ => {
                self.counters.add(counters::float_key(value), 1);
                self.range = widened(self.range, value.into());
            }
        }
    }

    pub(super) fn append(&mut self, later: NumberShares) {
        self.counters.merge(&later.counters);
        self.floats |= later.floats;
        self.range = joined(self.range, later.range);
        self.others.iter_mut().zip(later.others).for_each(|(all, n)| *all += n);
    }

    fn histogram(&self) -> Vec<Bucket> {
        let cell: fn((u16, u64)) -> Cell =
            if self.floats { counters::float_cell } else { |counter| counters::int_cell(counter).rounded() };
        let Some((low, high)) = self.range else { return Vec::new() };
        equal_width(&counters::cells(&self.counters, cell), low, high, BUCKETS)
    }

    /// Returns the divergence of two distributions. `None` if one has no values.
    ///
    /// The finite values of each side are a histogram of ten buckets of equal width. Buckets are cut at the
    /// edges of both, and their values spread evenly. NaN and both infinities have a bucket each.
    pub(super) fn divergence(&self, other: &NumberShares) -> Option<f64> {
        let own = self.histogram();
        let others = other.histogram();
        let mut parts = aligned(&own, &others);
        let apart = self.others.iter().zip(other.others);
        parts.extend(apart.map(|(&n, m)| (n as f64, m as f64)));
        divergence(&parts)
    }
}

/// Returns the numbers of values of two histograms in each part of the range, cut at the edges of both.
fn aligned(a: &[Bucket], b: &[Bucket]) -> Vec<(f64, f64)> {
    let is_point = |buckets: &[Bucket]| matches!(buckets, [only] if only.low >= only.high);
    let sum = |buckets: &[Bucket]| buckets.iter().map(|bucket| bucket.count).sum::<f64>();
    let within = |point: &[Bucket], range: &[Bucket]| match (point.first(), range.first(), range.last()) {
        (Some(point), Some(first), Some(last)) => first.low <= point.low && point.low <= last.high,
        _ => false,
    };
    match (is_point(a), is_point(b)) {
        // The same point, or a point in the range of the other side: it is in one of its parts. A part of its
        // own would have nothing in common with nearly constant values.
        (true, true) if within(a, b) => return vec![(sum(a), sum(b))],
        (true, false) if within(a, b) => {}
        (false, true) if within(b, a) => {}
        (false, false) => {}
        // A point outside of the other range has nothing in common with it.
        _ => return vec![(sum(a), 0.0), (0.0, sum(b))],
    }
    let mut edges: Vec<f64> = a.iter().chain(b).flat_map(|bucket| [bucket.low, bucket.high]).collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let last = edges.last().copied();
    let parts = edges.iter().zip(edges.iter().skip(1));
    parts.map(|(&low, &high)| (mass(a, low, high, last), mass(b, low, high, last))).collect()
}

/// Returns the number of values of a histogram between two neighbouring edges. `last` is the last edge, which
/// is in the last part.
fn mass(buckets: &[Bucket], low: f64, high: f64, last: Option<f64>) -> f64 {
    let part = |bucket: &Bucket| {
        if bucket.low >= bucket.high {
            let is_in =
                low <= bucket.low && (bucket.low < high || Some(bucket.low) == last && Some(high) == last);
            return if is_in { bucket.count } else { 0.0 };
        }
        // The edges of the bucket are edges.
        if bucket.low <= low && high <= bucket.high {
            bucket.count * ((high - low) / (bucket.high - bucket.low))
        } else {
            0.0
        }
    };
    buckets.iter().map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32]) -> NumberShares {
        let mut shares = NumberShares::default();
        values.iter().for_each(|&value| shares.add_float(value));
        shares
    }

    fn ints(values: &[i64]) -> NumberShares {
        let mut shares = NumberShares::default();
        values.iter().for_each(|&value| shares.add_int(value));
        shares
    }

    /// The same from the values: both distributions as densities at many points.
    fn naive(a: &[f64], b: &[f64]) -> f64 {
        let standard = |values: &[f64]| {
            let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
            let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
            let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut counts = [0.0; BUCKETS];
            for x in finite {
                counts[(((x - low) / (high - low) * 10.0) as usize).min(9)] += 1.0;
            }
            (low, high, counts.map(|n| n / values.len() as f64))
        };
        let ((a_low, a_high, a_counts), (b_low, b_high, b_counts)) = (standard(a), standard(b));
        let mut edges: Vec<f64> = (0..=10)
            .flat_map(|k| {
                let at = f64::from(k) / 10.0;
                [a_low + (a_high - a_low) * at, b_low + (b_high - b_low) * at]
            })
            .collect();
        edges.sort_by(f64::total_cmp);
        let share = |(low, high, counts): (f64, f64, &[f64; BUCKETS]), (from, to): (f64, f64)| {
            let middle = (from + to) / 2.0;
            if middle < low || middle > high || from == to {
                return 0.0;
            }
            let width = (high - low) / 10.0;
            counts[(((middle - low) / width) as usize).min(9)] * (to - from) / width
        };
        let mut parts: Vec<(f64, f64)> = edges
            .windows(2)
            .map(|e| {
                (
                    share((a_low, a_high, &a_counts), (e[0], e[1])),
                    share((b_low, b_high, &b_counts), (e[0], e[1])),
                )
            })
            .collect();
        for is in [f64::is_nan, |x: f64| x == f64::INFINITY, |x: f64| x == f64::NEG_INFINITY] {
            let part =
                |values: &[f64]| values.iter().filter(|&&x| is(x)).count() as f64 / values.len() as f64;
            parts.push((part(a), part(b)));
        }
        let entropy =
            |parts: Vec<f64>| -> f64 { parts.iter().filter(|&&p| p > 0.0).map(|p| -p * p.log2()).sum() };
        let of = |f: fn(&(f64, f64)) -> f64| entropy(parts.iter().map(f).collect());
        of(|(p, q)| (p + q) / 2.0) - (of(|&(p, _)| p) + of(|&(_, q)| q)) / 2.0
    }

    #[test]
    fn simple_distributions() {
        let nan = f32::NAN;
        let cases: &[(&[f32], &[f32], f64)] = &[
            (&[1.0, 2.0], &[1.0, 2.0], 0.0),
            (&[1.0, 2.0], &[3.0, 4.0], 1.0),
            (&[5.0], &[5.0, 5.0], 0.0),
            (&[5.0], &[6.0], 1.0),
            (&[nan], &[nan, nan], 0.0),
            (&[nan], &[f32::INFINITY], 1.0),
            (&[f32::INFINITY], &[f32::NEG_INFINITY], 1.0),
            (&[5.0], &[6.0, 7.0], 1.0),
            // A point is in the bucket around it, also at both ends.
            (&[5.0], &[4.5, 5.0, 5.0, 5.5], 0.311_278_124_459_132_9),
            (&[0.0], &[0.0, 1.0], 0.311_278_124_459_132_9),
            (&[1.0], &[0.0, 1.0], 0.311_278_124_459_132_9),
            (&[1.0, 1.0, nan, nan], &[1.0], 0.311_278_124_459_132_9),
        ];
        for (a, b, expected) in cases {
            for (a, b) in [(a, b), (b, a)] {
                let found = of(a).divergence(&of(b)).unwrap();
                assert!((found - expected).abs() < 1e-12, "{a:?} {b:?}: {found}");
            }
        }
        assert_eq!(of(&[]).divergence(&of(&[1.0])), None);
        assert_eq!(ints(&[i64::MIN, i64::MAX]).divergence(&ints(&[i64::MIN, i64::MAX])), Some(0.0));
        assert_eq!(of(&[f32::MIN, f32::MAX]).divergence(&of(&[f32::MIN, f32::MAX])), Some(0.0));
    }

    #[test]
    fn a_naive_twin_agrees() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..300 {
            // Integers of this size are counted exactly.
            let mut draw = |from: i64, n: u64| -> Vec<i64> {
                let all = (0..20 + n % 100).map(|_| from + random(n) as i64);
                [vec![from, from + n as i64], all.collect()].concat()
            };
            // No integer is at an edge between two buckets, where rounding decides.
            let width = |k: u64| 10 * (k / 4) + [1, 3, 7, 9][k as usize % 4];
            let a = draw(-20, width(round % 31));
            let b = draw(round as i64 % 50 - 25, width(round % 23));
            let [fa, fb] = [&a, &b].map(|list| list.iter().map(|&x| x as f64).collect::<Vec<_>>());
            let found = ints(&a).divergence(&ints(&b)).unwrap();
            let expected = naive(&fa, &fb);
            assert!((found - expected).abs() < 1e-9, "{a:?} {b:?}: {found} {expected}");

            let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
            let mut floats = |scale: f32| -> Vec<f32> {
                let one = |_| match random(20) {
                    k @ 0..3 => special[k as usize],
                    _ => (random(1 << 24) as f32 / (1 << 24) as f32 - 0.3) * scale,
                };
                (0..2000).map(one).collect()
            };
            let a = floats(1.0 + round as f32);
            let b = floats(40.0);
            let [fa, fb] = [&a, &b].map(|list| list.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
            let found = of(&a).divergence(&of(&b)).unwrap();
            let expected = naive(&fa, &fb);
            // A counter may be in the bucket next to its values' bucket.
            assert!((found - expected).abs() < 0.01, "{found} {expected}");
            let mut parts = of(&a[..700]);
            let rest = of(&a[700..]);
            parts.append(rest);
            assert_eq!(parts.divergence(&of(&b)), Some(found));
        }
    }
}
