//! How long things took: as many as there may be, in memory that does not grow.

use std::time::Duration;

/// Buckets for each doubling, so that a time is known to 1.6 %.
const FINE: u64 = 64;
/// Nanoseconds below `FINE` have a bucket each, and so has each part of the 58 doublings above.
const BUCKETS: usize = 59 * FINE as usize;

/// A histogram of times.
#[derive(Debug)]
pub(crate) struct Times {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Times {
    pub(crate) fn new() -> Times {
        Times { counts: vec![0; BUCKETS].into(), count: 0, max: 0 }
    }

    pub(crate) fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.counts.get_mut(bucket(nanos)) {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    /// The time that this share of all did not exceed; `None` of none.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_nanos(end(bucket as u64).min(self.max)))
    }

    /// The longest; `None` of none.
    pub(crate) fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.max))
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = nanos.checked_ilog2().unwrap_or(0).saturating_sub(FINE.ilog2());
    (u64::from(shift) * FINE + (nanos >> shift)) as usize
}

/// The last nanosecond of a bucket.
fn end(bucket: u64) -> u64 {
    let shift = (bucket / FINE).saturating_sub(1);
    let next = u128::from(bucket - shift * FINE + 1) << shift;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for b in 0..BUCKETS as u64 {
            let last = end(b);
            assert_eq!(bucket(last), b as usize);
            assert_eq!(bucket(last.saturating_add(1)), (b as usize + 1).min(BUCKETS - 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_a_sorted_list() {
        let mut times = Times::new();
        assert_eq!((times.quantile(0.5), times.max()), (None, None));
        let mut all: Vec<u64> = (0..1000u64).map(|k| k * k * 997 % 1_000_003).collect();
        all.iter().for_each(|&nanos| times.add(Duration::from_nanos(nanos)));
        all.sort_unstable();
        for (share, rank) in [(0.0, 0), (0.001, 0), (0.5, 499), (0.99, 989), (1.0, 999)] {
            let found = times.quantile(share).unwrap().as_nanos() as f64;
            let want = all[rank] as f64;
            assert!(want <= found && found <= want * 1.016 + 1.0, "{share}: {found}, and not {want}");
        }
        assert_eq!(times.max(), Some(Duration::from_nanos(all[999])));
    }
}
