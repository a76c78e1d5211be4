//! Presence of features in records, by their views.

use tfseek::schema::{FeatureSpec, Schema};
use tfseek::{Example, SequenceExample};

/// Returns true if a record has the feature of the values of a column, with a kind.
pub fn has_feature(schema: &Schema, name: &str, payload: &[u8]) -> bool {
    let example =
        if schema.is_sequence() { SequenceExample::new(payload).context() } else { Example::new(payload) };
    let feature = example.get(value_key(name, &schema.features()[name])).unwrap();
    feature.is_some_and(|feature| feature.kind().is_some())
}

/// Returns true if a record has the feature list of the values of a column.
pub fn has_list(schema: &Schema, name: &str, payload: &[u8]) -> bool {
    let key = value_key(name, &schema.feature_lists()[name]);
    SequenceExample::new(payload).feature_list(key).unwrap().is_some()
}

fn value_key<'a>(name: &'a str, spec: &'a FeatureSpec) -> &'a str {
    match spec {
        FeatureSpec::Ragged { value_key, .. } => value_key.as_deref().unwrap_or(name),
        FeatureSpec::Sparse { value_key, .. } => value_key,
        _ => name,
    }
}
