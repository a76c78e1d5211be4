//! Counts of what is wrong, with the first records.

use crate::describe::tfx::AnomalyKind;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Number of records that a [`Tally`] names.
const FIRST: usize = 10;
/// Number of values that a [`Tally`] shows, and bytes of each.
const EXAMPLES: usize = 5;
const EXAMPLE_BYTES: usize = 60;

/// Values and records with one anomaly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) values: u64,
    pub(super) records: u64,
    /// The first records, ascending.
    pub(super) first: Vec<u64>,
    /// The first distinct values.
    pub(super) examples: Vec<String>,
    /// The last record, which counts once.
    last: Option<u64>,
}

impl Tally {
    /// Counts a value of a record. `shown` is called if the value is to be shown.
    pub(super) fn add(&mut self, record: u64, shown: impl FnOnce() -> String) {
        self.values += 1;
        if self.examples.len() < EXAMPLES {
            let text = shown();
            if !text.is_empty() && !self.examples.contains(&text) {
                self.examples.push(text);
            }
        }
        self.record(record);
    }

    /// Counts a record.
    pub(super) fn record(&mut self, record: u64) {
        if self.last == Some(record) {
            return;
        }
        self.last = Some(record);
        self.records += 1;
        if self.first.len() < FIRST {
            self.first.push(record);
        }
    }

    /// Counts the records of a range, which are later than those before.
    pub(super) fn record_all(&mut self, records: std::ops::Range<u64>) {
        if records.is_empty() {
            return;
        }
        self.last = Some(records.end - 1);
        self.records += records.end - records.start;
        let free = FIRST - self.first.len();
        self.first.extend(records.take(free));
    }

    /// Adds the tally of later records, whose numbers are `before` higher.
    pub(super) fn append(&mut self, later: Tally, before: u64) {
        self.values += later.values;
        self.records += later.records;
        let free = FIRST - self.first.len();
        self.first.extend(later.first.iter().take(free).map(|record| record + before));
        for text in later.examples {
            if self.examples.len() < EXAMPLES && !self.examples.contains(&text) {
                self.examples.push(text);
            }
        }
        self.last = None;
    }
}

/// Returns a byte string as it is shown: quoted, escaped and shortened.
pub(super) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..EXAMPLE_BYTES) {
        Some(start) if bytes.len() > EXAMPLE_BYTES => format!("\"{}..\"", start.escape_ascii()),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("\"{}\"", bytes.escape_ascii()),
        },
    }
}

/// Tallies by the kind of the anomaly.
pub(super) type Tallies = BTreeMap<AnomalyKind, Tally>;

/// Distinct values, by 128 bits of their hash. At most [`DISTINCT`] are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct DistinctValues {
    seen: HashSet<u128>,
    pub(super) full: bool,
}

const DISTINCT: usize = 1 << 20;

impl DistinctValues {
    pub(super) fn add(&mut self, value: &[u8]) {
        self.insert(xxhash_rust::xxh3::xxh3_128(value));
    }

    fn insert(&mut self, hash: u128) {
        if self.seen.len() < DISTINCT || self.seen.contains(&hash) {
            self.seen.insert(hash);
        } else {
            self.full = true;
        }
    }

    pub(super) fn append(&mut self, later: DistinctValues) {
        self.full |= later.full;
        later.seen.into_iter().for_each(|hash| self.insert(hash));
    }

    /// Returns the number of distinct values, or the least number of them if there are too many.
    pub(super) fn len(&self) -> u64 {
        self.seen.len() as u64
    }
}

/// Number of times of each value. At most [`DISTINCT`] values are counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    counts: HashMap<u128, (u64, Box<[u8]>)>,
    total: u64,
    pub(super) full: bool,
}

impl Shares {
    pub(super) fn add(&mut self, value: &[u8]) {
        let shown = value.get(..EXAMPLE_BYTES).unwrap_or(value);
        self.insert(xxhash_rust::xxh3::xxh3_128(value), 1, || shown.into());
    }

    fn insert(&mut self, hash: u128, n: u64, value: impl FnOnce() -> Box<[u8]>) {
        self.total += n;
        if let Some((count, _)) = self.counts.get_mut(&hash) {
            *count += n;
        } else if self.counts.len() < DISTINCT {
            self.counts.insert(hash, (n, value()));
        } else {
            self.full = true;
        }
    }

    pub(super) fn append(&mut self, later: Shares) {
        self.full |= later.full;
        for (hash, (n, value)) in later.counts {
            self.insert(hash, n, || value);
        }
    }

    /// Returns the Jensen-Shannon divergence of the shares. `None` if one side has no values.
    pub(super) fn divergence(&self, other: &Shares) -> Option<f64> {
        let count = |shares: &Shares, hash: &u128| shares.counts.get(hash).map_or(0.0, |&(n, _)| n as f64);
        // Sums of floats depend on their order.
        let all: BTreeSet<&u128> = self.counts.keys().chain(other.counts.keys()).collect();
        let parts: Vec<_> = all.into_iter().map(|hash| (count(self, hash), count(other, hash))).collect();
        crate::describe::stats::divergence::divergence(&parts)
    }

    /// Returns the largest difference of a value's share, and that value. `None` if one side has no values.
    pub(super) fn distance<'a>(&'a self, other: &'a Shares) -> Option<(f64, &'a [u8])> {
        if self.total == 0 || other.total == 0 {
            return None;
        }
        let count = |shares: &Shares, hash: &u128| shares.counts.get(hash).map_or(0, |&(n, _)| u128::from(n));
        let all: BTreeSet<&u128> = self.counts.keys().chain(other.counts.keys()).collect();
        let value =
            |hash| self.counts.get(hash).or_else(|| other.counts.get(hash)).map_or(&[][..], |(_, v)| v);
        // The difference of a / n and b / m as an integer, over n * m.
        let n = u128::from(self.total);
        let m = u128::from(other.total);
        let difference = |hash| (count(self, hash) * m).abs_diff(count(other, hash) * n);
        let (far, hash) = all
            .into_iter()
            .map(|hash| (difference(hash), hash))
            .max_by(|a, b| a.0.cmp(&b.0).then_with(|| value(b.1).cmp(value(a.1))))?;
        Some((far as f64 / (n * m) as f64, value(hash)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_of_parts_is_that_of_all() {
        let mut all = Tally::default();
        let mut parts = Tally::default();
        for part in 0..5u64 {
            let mut one = Tally::default();
            for record in 0..4 {
                for k in 0..=record {
                    all.add(part * 4 + record, || format!("{}", k + part));
                    one.add(record, || format!("{}", k + part));
                }
            }
            parts.append(one, part * 4);
        }
        all.last = None;
        assert_eq!(parts, all);
        assert_eq!((all.values, all.records, all.first.len(), all.examples.len()), (50, 20, 10, 5));
    }

    #[test]
    fn distances_of_shares() {
        let of = |text: &str| {
            let mut shares = Shares::default();
            text.bytes().for_each(|c| shares.add(&[c]));
            shares
        };
        assert_eq!(of("aabb").distance(&of("aabb")), Some((0.0, &b"a"[..])));
        assert_eq!(of("aabb").distance(&of("aaab")), Some((0.25, &b"a"[..])));
        assert_eq!(of("aa").distance(&of("b")), Some((1.0, &b"a"[..])));
        assert_eq!(of("aa").distance(&of("")), None);
    }
}
