//! A histogram of durations in constant memory.

use std::time::Duration;

/// Number of buckets per doubling. A duration is then known to within 1.6 %.
const PER_DOUBLING: u64 = 64;
/// Number of buckets: one per nanosecond below `PER_DOUBLING`, and `PER_DOUBLING` for each of the 58
/// doublings above.
const BUCKETS: usize = 59 * PER_DOUBLING as usize;

/// A histogram of durations.
#[derive(Debug)]
pub(crate) struct TimeHistogram {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Default for TimeHistogram {
    fn default() -> TimeHistogram {
        TimeHistogram { counts: vec![0; BUCKETS].into(), count: 0, max: 0 }
    }
}

impl TimeHistogram {
    pub(crate) fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.counts.get_mut(bucket(nanos)) {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    /// Returns the duration that this share of all durations do not exceed, or `None` if the histogram is
    /// empty.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_nanos(end(bucket as u64).min(self.max)))
    }

    /// Returns the longest duration, or `None` if the histogram is empty.
    pub(crate) fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.max))
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = nanos.checked_ilog2().unwrap_or(0).saturating_sub(PER_DOUBLING.ilog2());
    (u64::from(shift) * PER_DOUBLING + (nanos >> shift)) as usize
}

/// Returns the last nanosecond of a bucket.
fn end(bucket: u64) -> u64 {
    let shift = (bucket / PER_DOUBLING).saturating_sub(1);
    let next = u128::from(bucket - shift * PER_DOUBLING + 1) << shift;
    (next - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_no_gaps() {
        for b in 0..BUCKETS as u64 {
            let last = end(b);
            assert_eq!(bucket(last), b as usize);
            assert_eq!(bucket(last.saturating_add(1)), (b as usize + 1).min(BUCKETS - 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_agree_with_a_sorted_list() {
        let mut times = TimeHistogram::default();
        assert_eq!((times.quantile(0.5), times.max()), (None, None));
        let mut all: Vec<u64> = (0..1000u64).map(|k| k * k * 997 % 1_000_003).collect();
        all.iter().for_each(|&nanos| times.add(Duration::from_nanos(nanos)));
        all.sort_unstable();
        for (share, rank) in [(0.0, 0), (0.001, 0), (0.5, 499), (0.99, 989), (1.0, 999)] {
            let found = times.quantile(share).unwrap().as_nanos() as f64;
            let want = all[rank] as f64;
            assert!(want <= found && found <= want * 1.016 + 1.0, "{share}: expected {want}, found {found}");
        }
        assert_eq!(times.max(), Some(Duration::from_nanos(all[999])));
    }
}
