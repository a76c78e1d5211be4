//! Schemas of TensorFlow Metadata (`schema.pbtxt`), as far as records can be checked against them.
//!
//! Source of the fields and their meaning: `tensorflow_metadata/proto/v0/schema.proto`.

use super::anomaly::SchemaFault;
use std::collections::{BTreeMap, BTreeSet};
use tfseek::example::DType;

/// Rules for the features of a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TfxSchema {
    /// Rules for features by name: features of Examples, or of the context of SequenceExamples.
    pub features: BTreeMap<String, FeatureRule>,
    /// Rules for feature lists by name.
    pub lists: BTreeMap<String, FeatureRule>,
    /// Sparse and weighted features: features that belong together.
    pub groups: Vec<GroupRule>,
    /// Environments of features that name none.
    pub default_environments: Vec<String>,
    /// Minimum and maximum number of records.
    pub records: (u64, Option<u64>),
    /// Number of records relative to a baseline: minimum and maximum, of `num_examples_drift_comparator` or
    /// `num_examples_version_comparator`.
    pub drift: Vec<(f64, f64)>,
    /// Constraints that are not checked: the name of the constraint, and of the feature if it has one.
    pub unchecked: BTreeSet<(String, Option<String>)>,
    /// Faults of the schema itself, with the feature.
    pub(crate) faults: Vec<(SchemaFault, String)>,
}

/// A rule for one feature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureRule {
    /// Kind of the values. `None` allows all kinds.
    pub kind: Option<DType>,
    /// Minimum fraction of the records that have the feature, from 0 to 1.
    pub min_fraction: f64,
    /// Minimum number of records that have the feature.
    pub min_count: u64,
    /// Minimum and maximum number of values. For a feature list: of steps.
    pub counts: Option<(u64, Option<u64>)>,
    /// Minimum and maximum number of values per step of a feature list.
    pub step_counts: Option<(u64, Option<u64>)>,
    /// Number of values of a fixed shape.
    pub fixed: Option<u64>,
    /// Allowed values.
    pub domain: ValueDomain,
    /// Minimum fraction of the values that are in a domain of strings, from 0 to 1.
    pub min_domain_mass: f64,
    /// Minimum and maximum number of distinct values.
    pub unique: Option<(u64, u64)>,
    /// Maximum distance between the distributions of the values and of a baseline: the largest difference of
    /// a value's share.
    pub infinity_norm: Option<f64>,
    /// Maximum Jensen-Shannon divergence, in bits, between the distributions of the values and of a baseline.
    pub jensen_shannon: Option<f64>,
    /// The feature is expected only in these environments.
    pub in_environments: Vec<String>,
    /// The feature is not expected in these environments.
    pub not_in_environments: Vec<String>,
    /// The feature is not checked: it is deprecated, or in a stage of its life such as `PLANNED`.
    pub ignored: bool,
}

/// Allowed values of a feature.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ValueDomain {
    /// All values.
    #[default]
    Any,
    /// Integers from the first to the second, or strings of such integers.
    Ints(i64, i64),
    /// Floats from `min` to `max`, or strings of such floats.
    Floats {
        /// Minimum.
        min: f32,
        /// Maximum.
        max: f32,
        /// NaN is not allowed.
        no_nan: bool,
        /// Infinities are not allowed.
        no_inf: bool,
    },
    /// These strings.
    Strings(BTreeSet<Vec<u8>>),
    /// 0 and 1, or these two strings.
    Bools(Vec<u8>, Vec<u8>),
    /// Encoded images: the minimum fraction in a format that TensorFlow decodes, and the maximum size of an
    /// image in bytes.
    Images(f64, Option<u64>),
}

/// Features that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRule {
    /// Name of the sparse or weighted feature.
    pub name: String,
    /// Feature of the values.
    pub values: String,
    /// Features of the indices, or of the weights.
    pub others: Vec<String>,
    /// A weighted feature, not a sparse one.
    pub weighted: bool,
}

impl FeatureRule {
    /// Returns true if records must have the feature in this environment.
    pub(crate) fn is_required(&self, environment: Option<&str>, schema: &TfxSchema) -> bool {
        if self.ignored || (self.min_count == 0 && self.min_fraction <= 0.0) {
            return false;
        }
        let has = |list: &[String], name: &str| list.iter().any(|other| other == name);
        environment.is_none_or(|name| {
            !has(&self.not_in_environments, name)
                && (has(&self.in_environments, name) || has(&schema.default_environments, name))
        })
    }
}

/// The name that TFX gives to the feature lists of a SequenceExample.
pub(crate) const SEQUENCE: &str = "##SEQUENCE##";
