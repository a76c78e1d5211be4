//! A naive twin of the batch parser.
//!
//! For each row and column, the twin extracts the column's values from the row, or finds a fault. If no row
//! has a fault, it assembles the values of all rows to arrays. Its results define the meaning of a schema.

mod assemble;
mod extract;

use super::arrays::Arrays;
use super::twin::{self, Feature, Key, Rules};
use assemble::{assemble_features, assemble_lists};
use extract::{CellValues, extract_feature, extract_list};
use std::collections::BTreeMap;
use tfseek::error::Category;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema};

/// Returns the key of the feature that contains the partition, or `None` for a uniform row length.
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
        | FeatureSpec::Optional { dtype, .. }
        | FeatureSpec::VarLen { dtype }
        | FeatureSpec::FixedLenSequence { dtype, .. }
        | FeatureSpec::Ragged { dtype, .. }
        | FeatureSpec::Stack { dtype, .. }
        | FeatureSpec::Sparse { dtype, .. } => *dtype,
        FeatureSpec::Raw { .. }
        | FeatureSpec::Tensor { .. }
        | FeatureSpec::Image(_)
        | FeatureSpec::Label { .. }
        | FeatureSpec::Several(_) => DType::Bytes,
    }
}

/// A decoded row: features (of an Example or a context) and feature lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub features: BTreeMap<Key, Feature>,
    pub lists: BTreeMap<Key, Vec<Feature>>,
}

/// The decoded payload of a row, as far as the schema uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedRow {
    Whole(Message),
    /// A payload that is malformed only in parts that the schema does not use. A parser may refuse it (R4).
    Elsewhere(Message),
    /// A payload that is malformed in a part that the schema uses. A parser must refuse it.
    Malformed,
}

/// Decodes the payload of a row.
pub fn decode(schema: &Schema, payload: &[u8]) -> DecodedRow {
    if let Ok(message) = message(schema, payload, Rules::default()) {
        return DecodedRow::Whole(message);
    }
    let mut all = Message::default();
    let (features, lists) = keys(schema);
    // A key that no schema contains is looked up as well, because entries must be framed even if no feature
    // is used.
    let unused = [b"\xff".to_vec()];
    for key in features.iter().chain(&unused) {
        match twin::example(payload, Rules { only: Some(key), ..Rules::default() }) {
            Ok(field) => all.features.extend(field.map),
            Err(_) => return DecodedRow::Malformed,
        }
    }
    if schema.is_sequence() {
        for key in lists.iter().chain(&unused) {
            match twin::feature_lists(payload, Rules { only: Some(key), ..Rules::default() }) {
                Ok(field) => all.lists.extend(field.map),
                Err(_) => return DecodedRow::Malformed,
            }
        }
    }
    DecodedRow::Elsewhere(all)
}

fn message(schema: &Schema, payload: &[u8], rules: Rules<'_>) -> twin::Result<Message> {
    let lists = if schema.is_sequence() { twin::feature_lists(payload, rules)?.map } else { BTreeMap::new() };
    Ok(Message { features: twin::example(payload, rules)?.map, lists })
}

/// Returns the keys that a schema uses: the keys of features and the keys of feature lists.
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
            FeatureSpec::Stack { keys, .. } => keys.iter().map(String::as_str).collect(),
            _ => vec![name.as_str()],
        });
        let mut keys: Vec<Key> = keys.map(|key| key.as_bytes().to_vec()).collect();
        keys.sort();
        keys.dedup();
        keys
    }
    (of(schema.features()), of(schema.feature_lists()))
}

/// The values of one column in one row, or its faults. If there are several, a parser may report any of them.
type CellResult<T> = Result<T, Vec<Category>>;

/// The lowest faulty row, and all its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultyRow {
    pub row: usize,
    pub any_of: Vec<Category>,
}

/// Maximum number of ragged rows in one record, which keeps the results of tests small.
pub const MOST_ROWS: i64 = 1 << 16;

/// Options of the parse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Parse one row, without the batch dimension.
    pub single: bool,
}

pub fn parse(schema: &Schema, rows: &[Message], form: Form) -> Result<Arrays, FaultyRow> {
    assert!(!form.single || rows.len() == 1);
    // First pass: find faults.
    for (row, message) in rows.iter().enumerate() {
        let mut any_of = Vec::new();
        for (name, spec) in schema.features() {
            if let Err(faults) = extract_feature(schema, name, spec, &message.features) {
                any_of.extend(faults);
            }
        }
        for (name, spec) in schema.feature_lists() {
            if let Err(faults) = extract_list(name, spec, &message.lists) {
                any_of.extend(faults);
            }
        }
        if !any_of.is_empty() {
            return Err(FaultyRow { row, any_of });
        }
    }
    // Second pass: there are no faults, so the arrays can be assembled.
    let mut arrays = Arrays::default();
    for (name, spec) in schema.features() {
        let cells: Vec<CellValues> = rows
            .iter()
            .map(|message| extract_feature(schema, name, spec, &message.features).unwrap())
            .collect();
        arrays.features.insert(name.clone(), assemble_features(spec, &cells, form));
    }
    for (name, spec) in schema.feature_lists() {
        let cells: Vec<Vec<CellValues>> =
            rows.iter().map(|message| extract_list(name, spec, &message.lists).unwrap()).collect();
        if matches!(spec, FeatureSpec::FixedLenSequence { .. }) && !form.single {
            arrays.lengths.insert(name.clone(), cells.iter().map(|steps| steps.len() as i64).collect());
        }
        arrays.feature_lists.insert(name.clone(), assemble_lists(spec, &cells, form));
    }
    Ok(arrays)
}
