//! `Schema` and its builder.

use super::check;
use super::spec::FeatureSpec;
use crate::error::Result;
use std::collections::BTreeMap;

/// A validated set of named columns, for Examples or for SequenceExamples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    sequence: bool,
    features: BTreeMap<String, FeatureSpec>,
    feature_lists: BTreeMap<String, FeatureSpec>,
}

impl Schema {
    /// Starts a schema of Examples.
    pub fn example() -> SchemaBuilder {
        SchemaBuilder::new(false)
    }

    /// Starts a schema of SequenceExamples. Its features are the features of the context.
    pub fn sequence_example() -> SchemaBuilder {
        SchemaBuilder::new(true)
    }

    /// Returns true if the schema describes SequenceExamples.
    pub fn is_sequence(&self) -> bool {
        self.sequence
    }

    /// Returns the columns of an Example or of a context, sorted by name.
    pub fn features(&self) -> &BTreeMap<String, FeatureSpec> {
        &self.features
    }

    /// Returns the columns of feature lists, sorted by name. A schema of Examples has none.
    pub fn feature_lists(&self) -> &BTreeMap<String, FeatureSpec> {
        &self.feature_lists
    }
}

/// A builder of a [`Schema`].
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    sequence: bool,
    features: Vec<(String, FeatureSpec)>,
    feature_lists: Vec<(String, FeatureSpec)>,
}

impl SchemaBuilder {
    fn new(sequence: bool) -> SchemaBuilder {
        SchemaBuilder { sequence, features: Vec::new(), feature_lists: Vec::new() }
    }

    /// Adds a column of the features of an Example or of a context.
    #[must_use]
    pub fn feature(mut self, name: impl Into<String>, spec: FeatureSpec) -> SchemaBuilder {
        self.features.push((name.into(), spec));
        self
    }

    /// Adds a column of the feature lists of a SequenceExample.
    #[must_use]
    pub fn feature_list(mut self, name: impl Into<String>, spec: FeatureSpec) -> SchemaBuilder {
        self.feature_lists.push((name.into(), spec));
        self
    }

    /// Validates the specs and builds the schema.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec), with the column and the reason: a name given twice, a
    /// default of the wrong kind or count, a block without values, a spec that is not allowed for the kind of
    /// message, or a key in two roles.
    pub fn build(self) -> Result<Schema> {
        check::specs(self.sequence, &self.features, &self.feature_lists)?;
        Ok(Schema {
            sequence: self.sequence,
            features: self.features.into_iter().collect(),
            feature_lists: self.feature_lists.into_iter().collect(),
        })
    }
}
