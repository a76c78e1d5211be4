//! Statistics of a set of records.

use super::group::{Selection, UnitStats};
use crate::error::{SavedReason, ToolsError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tfseek::Warning;
use tfseek::filter::nearest;

/// Statistics of a set of records.
#[derive(Clone)]
#[non_exhaustive]
pub struct Statistics {
    pub(super) unit: UnitStats,
    pub(super) selection: Selection,
    /// Limit on the memory of the sketches in bytes.
    pub(super) memory: u64,
    /// Number of shards.
    pub(super) shards: u64,
    /// Number of records in the shards, if the statistics are of a sample.
    pub(super) sampled_from: Option<u64>,
    /// The number of damaged or malformed records that were skipped.
    pub skipped: u64,
    /// The error of the first record that was skipped.
    pub first_skipped: Option<String>,
    /// Numbers of damaged ranges that were left out, and of the bytes in them.
    pub(super) left_out: (u64, u64),
    /// The warnings about the files that were read, in their order. Saved statistics have none.
    pub warnings: Vec<Warning>,
    /// The features of the condition that no record had, if records were read.
    pub unseen: Vec<String>,
    /// Names of the values 0, 1, .. of int64 features, which the JSON and the table have beside the most
    /// frequent values. They are not saved.
    pub value_names: BTreeMap<String, Arc<[Box<str>]>>,
    /// The sum of all counts that were read from files.
    pub(super) saved: u64,
}

/// Returns the sum of the counts of saved statistics, unless it is so large that sums with others could
/// overflow.
pub(super) fn saved_total(sum: u64) -> Option<u64> {
    (sum <= 1 << 62).then_some(sum)
}

impl Statistics {
    /// Returns the names of the values of a feature.
    pub(super) fn names(&self, feature: &str) -> Option<&[Box<str>]> {
        self.value_names.get(feature).map(|names| &**names)
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.unit.all.kinds.iter().sum()
    }

    /// Returns the names of the features, and the numbers of the fields (`field 5`), that are not counted
    /// exactly, because the memory was not enough.
    pub fn limited(&self) -> Vec<Cow<'_, str>> {
        let features = self.unit.feature_names().iter().zip(&self.unit.all.features);
        let lists = self.unit.list_names().iter().zip(&self.unit.all.lists);
        let limited = features.chain(lists).filter(|(_, stats)| stats.as_ref().is_some_and(|s| s.limited));
        let mut names: Vec<_> = limited.map(|(name, _)| Cow::from(name)).collect();
        names.sort_unstable();
        let fields = self.unit.all.fields.fields.iter().filter(|(_, stats)| stats.limited);
        names.extend(fields.map(|(number, _)| Cow::from(format!("field {number}"))));
        names
    }

    /// Returns the number of entries of records that are not counted, because there are too many names of
    /// features.
    pub fn not_counted(&self) -> u64 {
        self.unit.not_counted
    }

    /// Checks that a feature or feature list of this name was found, or a field of this number, if there are
    /// records.
    ///
    /// # Errors
    /// The nearest name of a feature of the records, if one is similar to it.
    pub fn check_feature(&self, name: &str) -> Result<(), Option<&str>> {
        let features = self.unit.feature_names();
        let lists = self.unit.list_names();
        let is_field =
            || name.parse().is_ok_and(|number: u32| self.unit.all.fields.fields.contains_key(&number));
        if self.records() == 0 || features.get(name).is_some() || lists.get(name).is_some() || is_field() {
            return Ok(());
        }
        Err(nearest(name, features.iter().chain(lists.iter())))
    }

    /// Adds the records of `other`, as if they followed in the same run. Both must have the same options.
    ///
    /// Counters, bounds and presence are as in one run. The mean and the standard deviation are equal up to
    /// rounding. Numbers that are not exact keep their bounds.
    ///
    /// # Errors
    /// The options differ, there are too many slices, or counts of files that no records can have.
    pub fn merge(&mut self, other: &Statistics) -> Result<(), ToolsError> {
        if self.selection.by != other.selection.by {
            let expected = self.selection.by.clone();
            let found = other.selection.by.clone();
            return Err(ToolsError::Saved(SavedReason::OtherSlices { expected, found }));
        }
        if self.selection.patterns != other.selection.patterns {
            return Err(ToolsError::Saved(SavedReason::OtherPatterns));
        }
        if self.selection.condition != other.selection.condition {
            let expected = self.selection.condition.clone();
            let found = other.selection.condition.clone();
            return Err(ToolsError::Saved(SavedReason::OtherCondition { expected, found }));
        }
        self.saved = saved_total(self.saved + other.saved).ok_or(ToolsError::Saved(SavedReason::State))?;
        if self.sampled_from.is_some() || other.sampled_from.is_some() {
            let own = self.sampled_from.unwrap_or_else(|| self.records());
            self.sampled_from = Some(own + other.sampled_from.unwrap_or_else(|| other.records()));
        }
        self.unit.merge(&other.unit, &self.selection, self.memory)?;
        self.shards += other.shards;
        self.skipped += other.skipped;
        self.left_out.0 += other.left_out.0;
        self.left_out.1 += other.left_out.1;
        self.warnings.extend_from_slice(&other.warnings);
        if self.first_skipped.is_none() {
            self.first_skipped.clone_from(&other.first_skipped);
        }
        self.unseen.retain(|feature| other.unseen.contains(feature));
        Ok(())
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Statistics({} records, {} shards)", self.records(), self.shards)
    }
}
