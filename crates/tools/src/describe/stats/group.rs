//! Statistics of the records of a unit, and of their slices.

use super::feature::FeatureStats;
use super::fields::PayloadFields;
use super::names::{FeatureNames, NOT_COUNTED};
use super::payloads::DistinctHashes;
use super::sizes::SizeCounters;
use crate::error::{ToolsError, place};
use crate::{memory, wildcards};
use std::collections::BTreeMap;
use tfseek::example::MessageKind;
use tfseek::{Error, Feature, FeatureList, Record, Result};
use xxhash_rust::xxh3::xxh3_64;

/// The largest number of slices.
pub(crate) const MAX_SLICES: usize = 1_000;
/// The longest byte string that names a slice.
const MAX_SLICE_NAME: usize = 256;
/// Memory is compared with its limit when the payload bytes since the last time reach this part of the limit,
/// within these bounds.
const CHECK_PART: u64 = 32;
const CHECK_BOUNDS: (u64, u64) = (1 << 20, 16 << 20);
/// Each time this many payload bytes were added, there must be memory for the statistics of the next ones.
/// Their own allocations are many, and small or bounded, so this is the place where a lack of memory is an
/// error.
const ENSURED_EVERY: u64 = 1 << 20;
const HEADROOM: usize = 4 << 20;

/// The value of a feature that selects a slice, in the order of the slices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SliceKey {
    /// Records without a value.
    Missing,
    Int(i64),
    /// The bits of a float.
    Float(u32),
    Bytes(Vec<u8>),
}

/// The settings that all units of a run share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Patterns of the names of features. Empty: all features.
    pub(crate) patterns: Vec<String>,
    /// The feature whose values are slices.
    pub(crate) by: Option<String>,
    /// The condition of the records.
    pub(crate) condition: Option<String>,
}

impl Selection {
    fn selects(&self, name: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| wildcards::matches(pattern, name))
    }
}

/// Statistics of a set of records, without the names of their features.
#[derive(Clone, Default)]
pub(crate) struct RecordStats {
    /// Records by kind: Examples, SequenceExamples, others.
    pub(crate) kinds: [u64; 3],
    pub(crate) sizes: SizeCounters,
    pub(crate) payloads: DistinctHashes,
    /// Fields of the other records.
    pub(crate) fields: PayloadFields,
    /// By the place of the name.
    pub(crate) features: Vec<Option<Box<FeatureStats>>>,
    pub(crate) lists: Vec<Option<Box<FeatureStats>>>,
}

impl RecordStats {
    /// Returns the number of distinct payloads, and true if it is exact. An estimate is at most the number of
    /// records.
    pub(crate) fn distinct_payloads(&self) -> (u64, bool) {
        let (count, exact) = self.payloads.count();
        (count.min(self.sizes.n), exact)
    }

    fn add_payload(&mut self, kind: usize, len: usize, hash: u64) {
        if let Some(records) = self.kinds.get_mut(kind) {
            *records += 1;
        }
        self.sizes.add(len);
        self.payloads.add(hash);
    }

    /// Reserves memory for these numbers of features and feature lists.
    #[inline]
    fn reserve(&mut self, features: usize, lists: usize) -> Result<()> {
        self.features.try_reserve(features - self.features.len())?;
        Ok(self.lists.try_reserve(lists - self.lists.len())?)
    }

    #[inline]
    fn feature(all: &mut Vec<Option<Box<FeatureStats>>>, place: usize) -> Option<&mut FeatureStats> {
        if all.len() <= place {
            all.resize_with(place + 1, || None);
        }
        all.get_mut(place).map(|stats| &mut **stats.get_or_insert_default())
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Box<FeatureStats>> {
        self.features.iter_mut().chain(&mut self.lists).flatten()
    }

    fn flush(&mut self) {
        self.sizes.flush();
        self.fields.flush();
        self.all().for_each(|stats| stats.flush());
    }

    /// Adds the statistics of `other`, whose places are mapped to this one's places. Returns the number of
    /// features and fields of records that are not counted.
    fn merge(&mut self, other: &RecordStats, features: &[u32], lists: &[u32], is_full: bool) -> u64 {
        for (records, n) in self.kinds.iter_mut().zip(other.kinds) {
            *records += n;
        }
        self.sizes.merge(&other.sizes);
        self.payloads.merge(&other.payloads);
        let mut not_counted = self.fields.merge(&other.fields, is_full);
        for (all, others, places) in
            [(&mut self.features, &other.features, features), (&mut self.lists, &other.lists, lists)]
        {
            for (stats, &place) in others.iter().zip(places) {
                let Some(stats) = stats else { continue };
                if place == NOT_COUNTED {
                    not_counted += stats.records();
                } else if let Some(own) = RecordStats::feature(all, place as usize) {
                    own.merge(stats);
                }
            }
        }
        not_counted
    }
}

/// Adds what was found in a record to the statistics of the selected places.
#[inline]
fn add_found<V: Copy>(
    all: &mut Vec<Option<Box<FeatureStats>>>,
    found: &[(u32, V)],
    names: &FeatureNames,
    mut add: impl FnMut(&mut FeatureStats, V),
) {
    for (place, value) in found {
        let place = *place as usize;
        if names.is_selected(place)
            && let Some(stats) = RecordStats::feature(all, place)
        {
            add(stats, *value);
        }
    }
}

/// Finds the features of a record.
#[derive(Clone, Default)]
struct FeatureCollector {
    names: FeatureNames,
    /// By the place of the name: the last record with the feature, and its position among the features of
    /// that record.
    last: Vec<(u64, u32)>,
}

impl FeatureCollector {
    /// Collects the features of a record in `found`, each once: the last entry of a key wins. Returns the
    /// number of entries that are not counted.
    #[inline]
    fn collect<'a, V>(
        &mut self,
        entries: impl Iterator<Item = Result<(&'a str, V)>>,
        selection: &Selection,
        record: u64,
        found: &mut Vec<(u32, V)>,
    ) -> Result<u64> {
        let mut not_counted = 0;
        for (k, entry) in entries.enumerate() {
            let (key, value) = entry?;
            let place = self.names.place(k, key, &selection.patterns);
            if place == NOT_COUNTED {
                not_counted += u64::from(selection.selects(key));
                continue;
            }
            if self.last.len() <= place as usize {
                self.last.try_reserve(place as usize + 1 - self.last.len())?;
                self.last.resize(place as usize + 1, (0, 0));
            }
            let Some(last) = self.last.get_mut(place as usize) else { continue };
            if last.0 == record
                && let Some(earlier) = found.get_mut(last.1 as usize)
            {
                earlier.1 = value;
            } else {
                *last = (record, found.len() as u32);
                memory::push(found, (place, value))?;
            }
        }
        self.names.check_memory()?;
        Ok(not_counted)
    }
}

/// Returns an empty vector with the memory of `items`, for items of another lifetime.
fn recycled<T, U>(mut items: Vec<T>) -> Vec<U> {
    items.clear();
    // The standard library collects into the memory of the source if both items have one size.
    items.into_iter().filter_map(|_| None).collect()
}

/// Statistics of the records of a unit.
#[derive(Clone, Default)]
pub(crate) struct UnitStats {
    features: FeatureCollector,
    lists: FeatureCollector,
    pub(crate) all: RecordStats,
    pub(crate) slices: BTreeMap<SliceKey, RecordStats>,
    /// Entries of features that are not counted, because there are too many names.
    pub(crate) not_counted: u64,
    /// Records seen.
    records: u64,
    /// Payload bytes since memory was compared with its limit.
    unchecked: u64,
    /// Payload bytes since memory was [ensured](memory::ensure).
    unensured: u64,
    found: Vec<(u32, Feature<'static>)>,
    found_lists: Vec<(u32, FeatureList<'static>)>,
    scratch: Vec<i64>,
}

impl UnitStats {
    /// Adds a record.
    ///
    /// # Errors
    /// The record is malformed, or cannot be put into a slice. It is not added then.
    pub(crate) fn add(
        &mut self,
        record: Record<'_>,
        kind: MessageKind,
        selection: &Selection,
        limit: u64,
    ) -> std::result::Result<(), ToolsError> {
        self.records += 1;
        let number = self.records;
        let payload = record.payload();
        self.unensured += payload.len() as u64;
        if self.unensured >= ENSURED_EVERY {
            self.unensured = 0;
            memory::ensure(HEADROOM).map_err(|e| Error::from(e).at(record.at()))?;
        }
        let mut found = recycled(std::mem::take(&mut self.found));
        let mut lists = recycled(std::mem::take(&mut self.found_lists));
        kind.check(payload).map_err(|e| e.at(record.at()))?;
        let (kind, not_counted) = match kind {
            MessageKind::Example => {
                (0, self.features.collect(record.example().entries(), selection, number, &mut found)?)
            }
            MessageKind::SequenceExample => {
                let sequence = record.sequence_example();
                let entries = sequence.context().entries();
                let context = self.features.collect(entries, selection, number, &mut found)?;
                let steps = self.lists.collect(sequence.feature_lists(), selection, number, &mut lists)?;
                (1, context + steps)
            }
            MessageKind::Other => (2, 0),
        };
        let slice = selection.by.as_ref().map(|by| self.slice(by, &found, record)).transpose()?;
        self.not_counted += not_counted;
        let hash = xxh3_64(payload);
        let selects = |number: u32| selection.patterns.is_empty() || selection.selects(&number.to_string());
        let slice = slice.map(|key| self.slices.entry(key).or_default());
        for (k, group) in [Some(&mut self.all), slice].into_iter().flatten().enumerate() {
            group.reserve(self.features.names.len(), self.lists.names.len())?;
            group.add_payload(kind, payload.len(), hash);
            if kind == 2 {
                let not_counted = group.fields.add(payload, selects, self.features.names.is_full);
                self.not_counted += if k == 0 { not_counted } else { 0 };
            }
            let scratch = &mut self.scratch;
            add_found(&mut group.features, &found, &self.features.names, |stats, feature| {
                stats.add(feature, scratch);
            });
            add_found(&mut group.lists, &lists, &self.lists.names, |stats, list| {
                stats.add_steps(list, scratch);
            });
        }
        self.found = recycled(found);
        self.found_lists = recycled(lists);
        self.unchecked += payload.len() as u64;
        if self.unchecked >= (limit / CHECK_PART).clamp(CHECK_BOUNDS.0, CHECK_BOUNDS.1) {
            self.unchecked = 0;
            self.limit(limit);
        }
        Ok(())
    }

    /// Returns the slice of a record.
    fn slice(
        &self,
        by: &str,
        found: &[(u32, Feature<'_>)],
        record: Record<'_>,
    ) -> std::result::Result<SliceKey, ToolsError> {
        let by_place = self.features.names.get(by);
        let feature = found.iter().find(|(other, _)| Some(*other) == by_place);
        let feature = feature.map_or(Feature::None, |(_, feature)| *feature);
        let refused = |expected: &str, found: usize| {
            let at = (record.at().record.unwrap_or(0), record.at().offset.unwrap_or(0));
            let reason = format!("expected {expected} to slice by, found {found} in {}", place(&at));
            Err(ToolsError::Slice { by: by.to_owned(), reason: reason.into() })
        };
        if feature.len() > 1 {
            return refused("one value", feature.len());
        }
        let key = match feature {
            Feature::None => None,
            Feature::Int64(list) => list.first().map(SliceKey::Int),
            Feature::Float(list) => list.first().map(|value| SliceKey::Float(value.to_bits())),
            Feature::Bytes(list) => match list.first() {
                Some(value) if value.len() > MAX_SLICE_NAME => {
                    return refused(&format!("at most {MAX_SLICE_NAME} bytes"), value.len());
                }
                value => value.map(|value| SliceKey::Bytes(value.to_vec())),
            },
        };
        let key = key.unwrap_or(SliceKey::Missing);
        self.check_slice(&key, Some(by))?;
        Ok(key)
    }

    /// Refuses a new slice if there are too many.
    fn check_slice(&self, key: &SliceKey, by: Option<&str>) -> std::result::Result<(), ToolsError> {
        if self.slices.len() < MAX_SLICES || self.slices.contains_key(key) {
            return Ok(());
        }
        let reason = format!("expected at most {MAX_SLICES} values to slice by, found more").into();
        Err(ToolsError::Slice { by: by.map_or_else(String::new, str::to_owned), reason })
    }

    /// Counts what was collected. It precedes merging.
    pub(crate) fn flush(&mut self, limit: u64) {
        self.all.flush();
        self.slices.values_mut().for_each(RecordStats::flush);
        self.limit(limit);
    }

    /// Ends exact counting of the features that take most memory, until the rest takes at most `limit` bytes.
    /// If that is not enough, no further feature is counted.
    fn limit(&mut self, limit: u64) {
        let mut groups: Vec<&mut RecordStats> = self.slices.values_mut().collect();
        groups.push(&mut self.all);
        let mut total: u64 =
            groups.iter().map(|group| group.payloads.bytes() + group.sizes.counters.bytes()).sum();
        let fields =
            |groups: &[&mut RecordStats]| groups.iter().map(|group| group.fields.memory()).sum::<u64>();
        let of_features: u64 =
            groups.iter_mut().flat_map(|group| group.all()).map(|stats| stats.memory()).sum();
        if total + of_features + fields(&groups) > limit {
            groups.iter_mut().for_each(|group| group.fields.approximate());
        }
        total += fields(&groups);
        let mut all: Vec<_> = groups.into_iter().flat_map(RecordStats::all).collect();
        total += of_features;
        if total <= limit {
            return;
        }
        all.sort_by_key(|stats| std::cmp::Reverse(stats.exact_bytes()));
        for stats in all {
            if stats.exact_bytes() == 0 || total <= limit {
                break;
            }
            total -= stats.memory();
            stats.approximate();
            total += stats.memory();
        }
        if total > limit {
            self.features.names.is_full = true;
            self.lists.names.is_full = true;
        }
    }

    /// Adds the records of `other`, which precede those that are added later.
    pub(crate) fn merge(
        &mut self,
        other: &UnitStats,
        selection: &Selection,
        limit: u64,
    ) -> std::result::Result<(), ToolsError> {
        self.records += other.records;
        self.not_counted += other.not_counted;
        let features = self.features.names.merge(&other.features.names, &selection.patterns)?;
        let lists = self.lists.names.merge(&other.lists.names, &selection.patterns)?;
        memory::ensure(HEADROOM).map_err(Error::from)?;
        let is_full = self.features.names.is_full;
        self.not_counted += self.all.merge(&other.all, &features, &lists, is_full);
        for (key, theirs) in &other.slices {
            self.check_slice(key, selection.by.as_deref())?;
            self.slices.entry(key.clone()).or_default().merge(theirs, &features, &lists, is_full);
        }
        self.limit(limit);
        Ok(())
    }

    /// Returns statistics without records, with these names in this order. `None` if a name occurs twice.
    pub(crate) fn named(features: &[&str], lists: &[&str], selection: &Selection) -> Option<UnitStats> {
        let mut stats = UnitStats::default();
        for (names, own) in [(features, &mut stats.features), (lists, &mut stats.lists)] {
            for (k, name) in names.iter().enumerate() {
                if own.names.merged(name, &selection.patterns) as usize != k {
                    return None;
                }
            }
        }
        Some(stats)
    }

    /// Sets whether no further feature is counted.
    pub(crate) fn set_full(&mut self, is_full: bool) {
        self.features.names.is_full = is_full;
        self.lists.names.is_full = is_full;
    }

    /// Returns the features and the feature lists that were found in a group, in the order of their names.
    pub(crate) fn sorted<'s>(&'s self, group: &'s RecordStats) -> [Vec<(&'s str, &'s FeatureStats)>; 2] {
        [(&self.features, &group.features), (&self.lists, &group.lists)].map(|(collector, stats)| {
            let found = collector.names.iter().zip(stats);
            let found = found.filter_map(|(name, stats)| Some((name, &**stats.as_ref()?)));
            let mut found: Vec<_> = found.collect();
            found.sort_unstable_by_key(|(name, _)| *name);
            found
        })
    }

    /// Returns the names of the features, by their places.
    pub(crate) fn feature_names(&self) -> &FeatureNames {
        &self.features.names
    }

    /// Returns the names of the feature lists, by their places.
    pub(crate) fn list_names(&self) -> &FeatureNames {
        &self.lists.names
    }
}
