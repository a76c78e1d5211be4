//! The naive twin of the parse by a schema: for each row and column what the column takes of the row, or a fault; then, if
//! there is no fault in any row, all of it side by side. What it says is what a schema means.

mod put;
mod take;

use super::arrays::Arrays;
use super::twin::{self, Feature, Key, Rules};
use put::{put_features, put_lists};
use std::collections::BTreeMap;
use take::{Taken, take_feature, take_list};
use tfseek::error::Category;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema};

/// Returns the feature that describes a dimension, if one does.
pub fn partition_key(partition: &Partition) -> Option<&str> {
    match partition {
        Partition::RowSplits(key)
        | Partition::RowLengths(key)
        | Partition::RowStarts(key)
        | Partition::RowLimits(key)
        | Partition::ValueRowIds(key) => Some(key),
        _ => None,
    }
}

/// Returns the type of a column's values.
pub fn dtype(spec: &FeatureSpec) -> DType {
    match spec {
        FeatureSpec::FixedLen { dtype, .. }
        | FeatureSpec::VarLen { dtype }
        | FeatureSpec::FixedLenSequence { dtype, .. }
        | FeatureSpec::Ragged { dtype, .. }
        | FeatureSpec::Sparse { dtype, .. } => *dtype,
    }
}

/// A decoded row: an Example's features (or a context), and feature lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub features: BTreeMap<Key, Feature>,
    pub lists: BTreeMap<Key, Vec<Feature>>,
}

/// What the bytes of a row mean to a parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Whole(Message),
    /// Malformed, but not where the schema has to look: a parser may refuse it or not (R4).
    Elsewhere(Message),
    Malformed,
}

/// The rows of a batch, each a message or known to be malformed; then one that is malformed is an error in any case.
pub fn decode(schema: &Schema, payload: &[u8]) -> Row {
    if let Ok(message) = message(schema, payload, Rules::default()) {
        return Row::Whole(message);
    }
    let mut all = Message::default();
    let (features, lists) = keys(schema);
    // A key that no schema names: entries have to be framed whether any is wanted or not.
    let nothing = [b"\xff".to_vec()];
    for key in features.iter().chain(&nothing) {
        match twin::example(payload, Rules { only: Some(key), ..Rules::default() }) {
            Ok(map) => all.features.extend(map.map),
            Err(_) => return Row::Malformed,
        }
    }
    if schema.is_sequence() {
        for key in lists.iter().chain(&nothing) {
            match twin::feature_lists(payload, Rules { only: Some(key), ..Rules::default() }) {
                Ok(map) => all.lists.extend(map.map),
                Err(_) => return Row::Malformed,
            }
        }
    }
    Row::Elsewhere(all)
}

fn message(schema: &Schema, payload: &[u8], rules: Rules<'_>) -> twin::Result<Message> {
    let lists = match schema.is_sequence() {
        true => twin::feature_lists(payload, rules)?.map,
        false => BTreeMap::new(),
    };
    Ok(Message { features: twin::example(payload, rules)?.map, lists })
}

/// The keys that a schema looks at: those of features, those of feature lists.
pub fn keys(schema: &Schema) -> (Vec<Key>, Vec<Key>) {
    fn of(specs: &BTreeMap<String, FeatureSpec>) -> Vec<Key> {
        let keys = specs.iter().flat_map(|(name, spec)| match spec {
            FeatureSpec::Sparse { index_keys, value_key, .. } => {
                index_keys.iter().chain([value_key]).map(String::as_str).collect()
            }
            FeatureSpec::Ragged { value_key, partitions, .. } => {
                let value_key = value_key.as_ref().unwrap_or(name);
                partitions.iter().filter_map(partition_key).chain([value_key.as_str()]).collect()
            }
            _ => vec![name.as_str()],
        });
        let mut keys: Vec<Key> = keys.map(|key| key.as_bytes().to_vec()).collect();
        keys.sort();
        keys.dedup();
        keys
    }
    (of(schema.features()), of(schema.feature_lists()))
}

/// What one column takes of one row. It may be faulty in one of several ways, where the rules leave it open which.
type Cell<T> = Result<T, Vec<Category>>;

/// The lowest faulty row, and all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub row: usize,
    pub any_of: Vec<Category>,
}

/// More rows than that in one record are a result that nobody wants in a test.
pub const MOST_ROWS: i64 = 1 << 16;

/// How the rows are to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// One row, without a dimension for the batch.
    pub single: bool,
    /// Sparse indices may lie anywhere.
    pub lenient_sparse_index: bool,
}

pub fn parse(schema: &Schema, rows: &[Message], form: Form) -> Result<Arrays, Fault> {
    assert!(!form.single || rows.len() == 1);
    // First what is wrong.
    for (row, message) in rows.iter().enumerate() {
        let mut any_of = Vec::new();
        for (name, spec) in schema.features() {
            if let Err(faults) = take_feature(schema, name, spec, &message.features, form) {
                any_of.extend(faults);
            }
        }
        for (name, spec) in schema.feature_lists() {
            if let Err(faults) = take_list(name, spec, &message.lists) {
                any_of.extend(faults);
            }
        }
        if !any_of.is_empty() {
            return Err(Fault { row, any_of });
        }
    }
    // Nothing is.
    let mut arrays = Arrays::default();
    for (name, spec) in schema.features() {
        let cells: Vec<Taken> = rows
            .iter()
            .map(|message| take_feature(schema, name, spec, &message.features, form).unwrap())
            .collect();
        arrays.features.insert(name.clone(), put_features(spec, &cells, form));
    }
    for (name, spec) in schema.feature_lists() {
        let cells: Vec<Vec<Taken>> =
            rows.iter().map(|message| take_list(name, spec, &message.lists).unwrap()).collect();
        if matches!(spec, FeatureSpec::FixedLenSequence { .. }) && !form.single {
            arrays.lengths.insert(name.clone(), cells.iter().map(|steps| steps.len() as i64).collect());
        }
        arrays.feature_lists.insert(name.clone(), put_lists(spec, &cells, form));
    }
    Ok(arrays)
}
