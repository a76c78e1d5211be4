//! Statistics of one feature, or of one feature list.

use super::bytes::ByteStats;
use super::numbers::{FloatStats, IntStats};
use super::sizes::SizeCounters;
use tfseek::{Feature, FeatureList};

/// Features of one kind with one number of values, in a row: most features have that in all records.
#[derive(Clone, Copy, Default)]
pub(super) struct FeatureRun {
    /// The position in [`FeatureStats::kinds`].
    kind: usize,
    len: usize,
    /// Number of these features, which are not counted otherwise yet.
    n: u64,
}

/// Statistics of one feature. Of a feature list each step counts as a feature, and `steps` has their numbers.
///
/// The fields that each record changes come first, in one cache line, because the statistics of many features
/// do not fit into the caches.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct FeatureStats {
    pub(super) run: FeatureRun,
    pub(crate) bytes: Option<Box<ByteStats>>,
    pub(crate) floats: Option<Box<FloatStats>>,
    pub(crate) ints: Option<Box<IntStats>>,
    /// Features by kind: bytes, float, int64.
    pub(crate) kinds: [u64; 3],
    pub(crate) kindless: u64,
    /// Features with a kind, without values.
    pub(crate) empty: u64,
    /// Values of a feature that has a kind.
    pub(crate) lengths: SizeCounters,
    /// Steps of a feature list.
    pub(crate) steps: Option<SizeCounters>,
    /// Exact counting was ended to save memory.
    pub(crate) limited: bool,
}

impl FeatureStats {
    /// Adds the feature of a record, or of a step.
    #[inline]
    pub(crate) fn add(&mut self, feature: Feature<'_>, scratch: &mut Vec<i64>) {
        let (kind, len) = match feature {
            Feature::None => {
                self.kindless += 1;
                return;
            }
            Feature::Bytes(list) => {
                self.bytes.get_or_insert_default().add_list(list);
                (0, list.len())
            }
            Feature::Float(list) => {
                self.floats.get_or_insert_default().add_list(list);
                (1, list.len())
            }
            Feature::Int64(list) => {
                self.ints.get_or_insert_with(|| Box::new(IntStats::new())).add_list(list, scratch);
                (2, list.len())
            }
        };
        if (self.run.kind, self.run.len) != (kind, len) {
            self.end_run();
            (self.run.kind, self.run.len) = (kind, len);
        }
        self.run.n += 1;
    }

    fn end_run(&mut self) {
        let FeatureRun { kind, len, n } = std::mem::take(&mut self.run);
        if n > 0 {
            if let Some(features) = self.kinds.get_mut(kind) {
                *features += n;
            }
            if len == 0 {
                self.empty += n;
            }
            self.lengths.add_many(len, n);
        }
    }

    /// Adds the feature list of a record.
    pub(crate) fn add_steps(&mut self, list: FeatureList<'_>, scratch: &mut Vec<i64>) {
        self.steps.get_or_insert_default().add(list.len());
        list.iter().for_each(|step| self.add(step, scratch));
    }

    /// Counts what was collected. It precedes reading and merging.
    pub(crate) fn flush(&mut self) {
        self.end_run();
        self.steps.iter_mut().for_each(SizeCounters::flush);
        self.bytes.iter_mut().for_each(|stats| stats.flush());
        self.floats.iter_mut().for_each(|stats| stats.flush());
        self.ints.iter_mut().for_each(|stats| stats.flush());
    }

    /// Ends exact counting, to save memory.
    pub(crate) fn approximate(&mut self) {
        self.limited = true;
        self.bytes.iter_mut().for_each(|stats| stats.approximate());
        self.floats.iter_mut().for_each(|stats| stats.approximate());
        self.ints.iter_mut().for_each(|stats| stats.approximate());
    }

    pub(crate) fn merge(&mut self, other: &FeatureStats) {
        if other.limited && !self.limited {
            self.approximate();
        }
        for (kind, n) in self.kinds.iter_mut().zip(other.kinds) {
            *kind += n;
        }
        self.kindless += other.kindless;
        self.empty += other.empty;
        self.lengths.merge(&other.lengths);
        if let Some(steps) = &other.steps {
            self.steps.get_or_insert_default().merge(steps);
        }
        if let Some(bytes) = &other.bytes {
            self.bytes.get_or_insert_default().merge(bytes);
        }
        if let Some(floats) = &other.floats {
            self.floats.get_or_insert_default().merge(floats);
        }
        if let Some(ints) = &other.ints {
            self.ints.get_or_insert_with(|| Box::new(IntStats::new())).merge(ints);
        }
        if self.limited {
            // A kind that only the other one has.
            self.approximate();
        }
    }

    /// Returns the number of records that have the feature, with or without a kind. For a feature list: that
    /// have it.
    pub(crate) fn records(&self) -> u64 {
        match &self.steps {
            Some(steps) => steps.n,
            None => self.kindless + self.kinds.iter().sum::<u64>(),
        }
    }

    /// Returns the number of bytes in memory that exact counting takes.
    pub(crate) fn exact_bytes(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |stats| stats.exact_bytes())
            + self.floats.as_ref().map_or(0, |stats| stats.exact_bytes())
            + self.ints.as_ref().map_or(0, |stats| stats.exact_bytes())
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        size_of::<FeatureStats>() as u64
            + self.lengths.counters.bytes()
            + self.steps.as_ref().map_or(0, |steps| steps.counters.bytes())
            + self.bytes.as_ref().map_or(0, |stats| stats.bytes())
            + self.floats.as_ref().map_or(0, |stats| stats.bytes())
            + self.ints.as_ref().map_or(0, |stats| stats.bytes())
    }
}
