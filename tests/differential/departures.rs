//! The known departures of tfseek from TensorFlow, and their proofs.
//!
//! docs/format.md lists the permitted departures. A departure counts only if the payloads prove it; any other
//! difference is a disagreement.

use crate::worker::Answer;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tfseek::error::{Category, FeatureError};
use tfseek::example::FeatureBuf;
use tfseek::schema::{FeatureSpec, Partition, Schema};
use tfseek::{Error, ErrorKind, Example, ExampleBuf, SequenceExample, SequenceExampleBuf};
use tfseek_testkit::hex::unhex;

pub(crate) type Columns = Map<String, Value>;
type Features = BTreeMap<String, FeatureBuf>;

/// The parsed payloads in protobuf's canonical form.
pub(crate) struct Case<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) single: bool,
    pub(crate) payloads: &'a [&'a [u8]],
}

/// Returns the names of the departures that explain the difference, or an empty list if there is no
/// difference.
///
/// # Errors
/// The difference cannot be explained.
pub(crate) fn explain(
    case: &Case<'_>,
    ours: &Result<Columns, Error>,
    theirs: &Answer,
) -> Result<Vec<&'static str>, String> {
    match (ours, theirs) {
        (Err(_), Err(_)) => Ok(Vec::new()),
        (Ok(ours), Ok(theirs)) => case.columns(ours, theirs),
        (Err(ours), Ok(_)) => case
            .explain_our_error(ours)
            .map(|name| vec![name])
            .ok_or_else(|| format!("only ours fails: {ours}")),
        (Ok(_), Err(theirs)) => case
            .explain_their_error(theirs)
            .map(|name| vec![name])
            .ok_or_else(|| format!("only theirs fails: {theirs}")),
    }
}

impl Case<'_> {
    /// Explains an error of tfseek for payloads that TensorFlow accepts.
    fn explain_our_error(&self, error: &Error) -> Option<&'static str> {
        match (error.category()?, error.kind()) {
            (Category::BadPartition, _) => {
                let mut ragged = self.columns_of(|spec| matches!(spec, FeatureSpec::Ragged { .. }));
                ragged
                    .any(|(name, spec, scopes)| !divides(name, spec, &scopes))
                    .then_some("partition that does not divide")
            }
            (_, ErrorKind::Feature(FeatureError::SparseCount { .. })) => self
                .sparse(|values, index, _| tfseek_testkit::spelled::count(values) != index.len())
                .then_some("indices of another record"),
            (_, ErrorKind::Feature(FeatureError::SparseIndex { .. })) => self
                .sparse(|_, index, size| index.iter().any(|&i| u64::try_from(i).map_or(true, |i| i >= size)))
                .then_some("sparse index out of range"),
            _ => None,
        }
    }

    /// Explains an error of TensorFlow for valid payloads.
    fn explain_their_error(&self, message: &str) -> Option<&'static str> {
        let required = |spec: &FeatureSpec| matches!(spec, FeatureSpec::FixedLen { default: None, .. });
        if self.schema.is_sequence()
            && self.payloads.is_empty()
            && message.contains("Inconsistent max number of elements")
            && self.schema.features().values().any(required)
        {
            return Some("no rows, required feature in the context");
        }
        // Messages without and with `validate`.
        let no_first_split = ["Dimension -1 must be >= 0", "slice index 0 of dimension 0 out of bounds"];
        (no_first_split.iter().any(|words| message.contains(words)) && self.empty_row_splits())
            .then_some("absent row_splits, single")
    }

    fn columns(&self, ours: &Columns, theirs: &Columns) -> Result<Vec<&'static str>, String> {
        let mut departures = Vec::new();
        if !ours.keys().eq(theirs.keys()) {
            return Err(format!("columns {:?}, theirs {:?}", ours.keys(), theirs.keys()));
        }
        for ((key, ours), theirs) in ours.iter().zip(theirs.values()) {
            if ours == theirs {
                continue;
            }
            let spec = key.strip_prefix("features/").and_then(|key| self.schema.features().get(key));
            let name = match spec {
                Some(FeatureSpec::Sparse { already_sorted: false, .. })
                    if equal_except_order(ours, theirs) =>
                {
                    "order of duplicate sparse indices"
                }
                Some(FeatureSpec::Ragged { .. })
                    if self.empty_row_splits() && equal_except_empty_splits(ours, theirs) =>
                {
                    "absent row_splits, single"
                }
                _ => return Err(format!("column {key}:\n  ours   {ours}\n  theirs {theirs}")),
            };
            departures.push(name);
        }
        Ok(departures)
    }

    /// Returns the columns of one type with the features of each record, or of each step, that they are made
    /// from.
    fn columns_of(
        &self,
        wanted: fn(&FeatureSpec) -> bool,
    ) -> impl Iterator<Item = (&str, &FeatureSpec, Vec<Features>)> {
        let features = self.schema.features().iter().map(|(name, spec)| (name, spec, false));
        let lists = self.schema.feature_lists().iter().map(|(name, spec)| (name, spec, true));
        features.chain(lists).filter(move |(_, spec, _)| wanted(spec)).map(|(name, spec, list)| {
            let scopes = self.payloads.iter().flat_map(|payload| self.scopes(name, spec, list, payload));
            (name.as_str(), spec, scopes.collect())
        })
    }

    fn scopes(&self, name: &str, spec: &FeatureSpec, list: bool, payload: &[u8]) -> Vec<Features> {
        if !self.schema.is_sequence() {
            return vec![ExampleBuf::try_from(Example::new(payload)).unwrap().features];
        }
        let message = SequenceExampleBuf::try_from(SequenceExample::new(payload)).unwrap();
        if !list {
            return vec![message.context];
        }
        // The steps of all lists of the column.
        let FeatureSpec::Ragged { value_key, partitions, .. } = spec else { return Vec::new() };
        let keys = partitions.iter().filter_map(tfseek_testkit::twin_parse::partition_key);
        let keys: Vec<&str> = keys.chain([value_key.as_deref().unwrap_or(name)]).collect();
        let steps = |key: &&str| message.feature_lists.get(*key).map_or(0, Vec::len);
        let step = |k: usize| {
            let in_all = keys.iter().all(|key| k < steps(key));
            let feature = |key: &&str| {
                if in_all {
                    message.feature_lists[*key][k].clone()
                } else {
                    // After the end of a shorter list, a float value makes the partition check fail.
                    FeatureBuf::Float(Vec::new())
                }
            };
            keys.iter().map(|key| ((*key).to_owned(), feature(key))).collect()
        };
        (0..keys.iter().map(steps).max().unwrap_or(0)).map(step).collect()
    }

    /// Tests whether `bad(values, index, size)` holds for an index of any record.
    fn sparse(&self, bad: fn(&FeatureBuf, &[i64], u64) -> bool) -> bool {
        self.columns_of(|spec| matches!(spec, FeatureSpec::Sparse { .. })).any(|(_, spec, scopes)| {
            let FeatureSpec::Sparse { index_keys, value_key, size, .. } = spec else { return false };
            scopes.iter().any(|features| {
                let values = features.get(value_key).cloned().unwrap_or_default();
                index_keys
                    .iter()
                    .zip(size)
                    .any(|(key, &size)| bad(&values, int64(features, key).unwrap_or_default(), size))
            })
        })
    }

    /// Tests for a single record with empty row_splits, which TensorFlow parses to row splits without a first
    /// element.
    fn empty_row_splits(&self) -> bool {
        self.single
            && self.columns_of(|spec| matches!(spec, FeatureSpec::Ragged { .. })).any(|(_, spec, scopes)| {
                let FeatureSpec::Ragged { partitions, .. } = spec else { return false };
                partitions.iter().any(|partition| match partition {
                    Partition::RowSplits(key) => {
                        scopes.iter().any(|f| int64(f, key).is_some_and(<[i64]>::is_empty))
                    }
                    _ => false,
                })
            })
    }
}

/// Returns the integers of a feature: empty if it is absent, `None` if it is of another kind.
fn int64<'f>(features: &'f Features, key: &str) -> Option<&'f [i64]> {
    match features.get(key) {
        None | Some(FeatureBuf::None) => Some(&[]),
        Some(FeatureBuf::Int64(values)) => Some(values),
        Some(_) => None,
    }
}

/// Tests whether the partitions of all records or steps divide the values, from the innermost to the
/// outermost.
fn divides(name: &str, spec: &FeatureSpec, scopes: &[Features]) -> bool {
    let FeatureSpec::Ragged { value_key, partitions, .. } = spec else { return true };
    scopes.iter().all(|features| {
        let values =
            features.get(value_key.as_deref().unwrap_or(name)).map_or(0, tfseek_testkit::spelled::count);
        let rows = partitions.iter().rev().try_fold(values as i64, |n, partition| {
            let numbers = match tfseek_testkit::twin_parse::partition_key(partition) {
                Some(key) => int64(features, key)?,
                None => &[],
            };
            rows(partition, numbers, n)
        });
        rows.is_some()
    })
}

/// Returns the number of rows that a partition makes of `n` values. `None` if it does not divide them.
fn rows(partition: &Partition, numbers: &[i64], n: i64) -> Option<i64> {
    let ascending = numbers.is_sorted();
    let (first, last) = (numbers.first().copied(), numbers.last().copied());
    let count = numbers.len() as i64;
    let (holds, rows) = match partition {
        Partition::UniformRowLength(length) => (n % *length as i64 == 0, n / *length as i64),
        Partition::RowSplits(_) => match count {
            0 => (n == 0, 0),
            _ => (first == Some(0) && ascending && last == Some(n), count - 1),
        },
        Partition::RowLengths(_) => {
            let sum = numbers.iter().try_fold(0i64, |sum, &v| sum.checked_add(v));
            (numbers.iter().all(|&v| v >= 0) && sum == Some(n), count)
        }
        Partition::RowStarts(_) => (first.unwrap_or(n) == 0 && ascending && last.unwrap_or(0) <= n, count),
        Partition::RowLimits(_) => (first.unwrap_or(0) >= 0 && ascending && last.unwrap_or(0) == n, count),
        Partition::ValueRowIds(_) => (
            first.unwrap_or(0) >= 0 && ascending && count == n,
            last.map_or(0, |last| last.saturating_add(1)),
        ),
    };
    holds.then_some(rows)
}

/// Tests whether two sparse columns differ only in the order of values with equal indices. TensorFlow's sort
/// is stable only for small numbers of values.
fn equal_except_order(ours: &Value, theirs: &Value) -> bool {
    let entries = |column: &Value| -> Vec<(Vec<u8>, String)> {
        let count = column["values"]["shape"][0].as_u64().unwrap() as usize;
        let indices = unhex(column["indices"]["data"].as_str().unwrap());
        let data = &column["values"]["data"];
        let value = |k: usize| match data {
            Value::String(hex) => hex[k * hex.len() / count..(k + 1) * hex.len() / count].to_owned(),
            list => list[k].to_string(),
        };
        let mut entries: Vec<_> = indices
            .chunks(indices.len().max(1) / count.max(1))
            .map(<[u8]>::to_vec)
            .zip((0..count).map(value))
            .collect();
        entries.sort();
        entries
    };
    ours["indices"] == theirs["indices"]
        && ours["dense_shape"] == theirs["dense_shape"]
        && ours["values"]["shape"] == theirs["values"]["shape"]
        && ours["values"]["shape"][0].as_u64().unwrap() > 16
        && entries(ours) == entries(theirs)
}

/// Tests whether two ragged columns differ only in empty row splits, which are `[]` in TensorFlow and `[0]`
/// in tfseek.
fn equal_except_empty_splits(ours: &Value, theirs: &Value) -> bool {
    let mut mended = theirs.clone();
    for splits in mended["row_splits"].as_array_mut().into_iter().flatten() {
        if splits.as_array().is_some_and(Vec::is_empty) {
            *splits = serde_json::json!([0]);
        }
    }
    mended == *ours
}
