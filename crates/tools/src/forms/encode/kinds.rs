//! The kinds of features, as a schema states them.

use std::collections::BTreeMap;
use tfseek::schema::Partition;
use tfseek::{DType, FeatureSpec, Schema};

/// The kinds of the features and feature lists of a schema.
#[derive(Clone, Debug, Default)]
pub struct FeatureKinds {
    pub(super) features: BTreeMap<String, DType>,
    pub(super) lists: BTreeMap<String, DType>,
    pub(super) is_sequence: bool,
}

impl FeatureKinds {
    /// Returns the kinds of the features that a schema reads. Index and partition features are int64.
    pub fn of(schema: &Schema) -> FeatureKinds {
        FeatureKinds {
            features: kinds(schema.features()),
            lists: kinds(schema.feature_lists()),
            is_sequence: schema.is_sequence(),
        }
    }
}

fn kinds(specs: &BTreeMap<String, FeatureSpec>) -> BTreeMap<String, DType> {
    let mut kinds = BTreeMap::new();
    for (name, spec) in specs {
        let key = match spec {
            FeatureSpec::Stack { keys, dtype, .. } => {
                kinds.extend(keys.iter().map(|key| (key.clone(), *dtype)));
                continue;
            }
            FeatureSpec::FixedLen { .. }
            | FeatureSpec::Optional { .. }
            | FeatureSpec::VarLen { .. }
            | FeatureSpec::FixedLenSequence { .. }
            | FeatureSpec::Raw { .. }
            | FeatureSpec::Tensor { .. }
            | FeatureSpec::Image(_)
            | FeatureSpec::Label { .. }
            | FeatureSpec::Several(_) => name,
            FeatureSpec::Ragged { value_key, partitions, .. } => {
                let keys = partitions.iter().filter_map(Partition::key);
                kinds.extend(keys.map(|key| (key.to_owned(), DType::Int64)));
                value_key.as_ref().unwrap_or(name)
            }
            FeatureSpec::Sparse { index_keys, value_key, .. } => {
                kinds.extend(index_keys.iter().map(|key| (key.clone(), DType::Int64)));
                value_key
            }
        };
        kinds.insert(key.clone(), spec.dtype());
    }
    kinds
}
