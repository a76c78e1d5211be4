//! Schemas of TensorFlow Metadata (`schema.pbtxt`), as far as records can be checked against them.
//!
//! Source of the fields and their meaning: `tensorflow_metadata/proto/v0/schema.proto`.

use super::text::{self, TextError, TextField, TextMessage, TextPlace, TextValue};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tfseek::example::DType;

/// Rules for the features of a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TfxSchema {
    /// Rules for features by name: those of Examples, or of the context of SequenceExamples.
    pub features: BTreeMap<String, FeatureRule>,
    /// Rules for feature lists by name.
    pub lists: BTreeMap<String, FeatureRule>,
    /// Sparse and weighted features: features that belong together.
    pub groups: Vec<GroupRule>,
    /// Environments of features that name none.
    pub default_environments: Vec<String>,
    /// Minimum and maximum number of records.
    pub records: (u64, Option<u64>),
    /// Number of records relative to a baseline: minimum and maximum, of `num_examples_drift_comparator` or `num_examples_version_comparator`.
    pub drift: Vec<(f64, f64)>,
    /// Constraints that are not checked: the name of the constraint, and of the feature if it has one.
    pub unchecked: BTreeSet<(String, Option<String>)>,
    /// Faults of the schema itself: TFDV's name of the anomaly, the feature, and a description.
    pub faults: Vec<(&'static str, String, String)>,
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
    /// Maximum distance between the distributions of the values and of a baseline: the largest difference of a value's share.
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
    /// Encoded images: the minimum fraction in a format that TensorFlow decodes, and the maximum size of an image in bytes.
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

impl TfxSchema {
    /// Reads a schema in protobuf's text format.
    ///
    /// # Errors
    /// A syntax error, an unknown field, or a value of another type, with its line and column.
    pub fn parse(text: &[u8]) -> Result<TfxSchema, TextError> {
        let message = text::parse(text)?;
        let reader = SchemaReader { text };
        let mut schema = TfxSchema::default();
        let mut domains = HashMap::new();
        // Domains of the schema come first, because features refer to them.
        for field in &message.fields {
            if let "string_domain" | "float_domain" | "int_domain" = &*field.name {
                let (name, domain) = reader.domain(field)?;
                domains.insert(name, domain);
            }
        }
        for field in &message.fields {
            match &*field.name {
                "feature" => reader.feature(field, &domains, None, &mut schema)?,
                "sparse_feature" | "weighted_feature" => {
                    let group = reader.group(field)?;
                    schema.groups.extend(group);
                }
                "string_domain" | "float_domain" | "int_domain" | "annotation" => {}
                "default_environment" => schema.default_environments.push(reader.string(field)?),
                "dataset_constraints" => reader.records(field, &mut schema)?,
                "represent_variable_length_as_ragged" => {
                    reader.bool(field)?;
                }
                // It describes tensors to make, and not the records.
                "tensor_representation_group" => {
                    reader.message(field)?;
                }
                _ => return Err(reader.unknown(field, "Schema")),
            }
        }
        schema.check_names();
        Ok(schema)
    }

    fn check_names(&mut self) {
        for group in &self.groups {
            if self.features.get(&group.name).is_some_and(|rule| !rule.ignored) {
                let kind = match group.weighted {
                    true => "WEIGHTED_FEATURE_NAME_COLLISION",
                    false => "SPARSE_FEATURE_NAME_COLLISION",
                };
                let text = "a feature has the same name".to_owned();
                self.faults.push((kind, group.name.clone(), text));
            }
        }
    }
}

/// The name that TFX gives to the feature lists of a SequenceExample.
pub(crate) const SEQUENCE: &str = "##SEQUENCE##";

/// Reads fields, with errors at their place.
struct SchemaReader<'t> {
    text: &'t [u8],
}

type Domains = HashMap<String, ValueDomain>;

impl SchemaReader<'_> {
    fn error(&self, field: &TextField, message: String) -> TextError {
        TextError { at: TextPlace::of(self.text, field.at), message }
    }

    fn unknown(&self, field: &TextField, message: &str) -> TextError {
        self.error(field, format!("expected a field of {message}, found `{}`", field.name))
    }

    fn expected(&self, field: &TextField, what: &str) -> TextError {
        let found = match &field.value {
            TextValue::Word(word) => format!("`{word}`"),
            TextValue::Str(_) => "a string".to_owned(),
            TextValue::Message(_) => "a message".to_owned(),
        };
        self.error(field, format!("`{}`: expected {what}, found {found}", field.name))
    }

    fn message<'m>(&self, field: &'m TextField) -> Result<&'m TextMessage, TextError> {
        match &field.value {
            TextValue::Message(message) => Ok(message),
            _ => Err(self.expected(field, "a message")),
        }
    }

    fn bytes(&self, field: &TextField) -> Result<Vec<u8>, TextError> {
        match &field.value {
            TextValue::Str(bytes) => Ok(bytes.to_vec()),
            _ => Err(self.expected(field, "a string")),
        }
    }

    fn string(&self, field: &TextField) -> Result<String, TextError> {
        String::from_utf8(self.bytes(field)?).map_err(|_| self.error(field, "expected UTF-8".into()))
    }

    fn word<'m>(&self, field: &'m TextField, what: &str) -> Result<&'m str, TextError> {
        match &field.value {
            TextValue::Word(word) => Ok(word),
            _ => Err(self.expected(field, what)),
        }
    }

    fn int(&self, field: &TextField) -> Result<i64, TextError> {
        let what = "a 64-bit integer";
        let word = self.word(field, what)?;
        let (minus, digits) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => i128::from_str_radix(hex, 16),
            None if digits.len() > 1 && digits.starts_with('0') => i128::from_str_radix(digits, 8),
            None => digits.parse(),
        };
        let value = value.ok().map(|value| if minus { -value } else { value });
        value.and_then(|value| i64::try_from(value).ok()).ok_or_else(|| self.expected(field, what))
    }

    fn count(&self, field: &TextField) -> Result<u64, TextError> {
        u64::try_from(self.int(field)?).map_err(|_| self.expected(field, "a number of 0 or more"))
    }

    fn float(&self, field: &TextField) -> Result<f64, TextError> {
        let word = self.word(field, "a number")?;
        let lower = word.to_ascii_lowercase();
        let number = match lower.strip_suffix('f') {
            Some(rest) if !lower.contains("inf") => rest,
            _ => &lower,
        };
        number.parse().map_err(|_| self.expected(field, "a number"))
    }

    fn bool(&self, field: &TextField) -> Result<bool, TextError> {
        match self.word(field, "true or false")? {
            "true" | "True" | "t" | "1" => Ok(true),
            "false" | "False" | "f" | "0" => Ok(false),
            _ => Err(self.expected(field, "true or false")),
        }
    }

    /// Returns true for stages in which a feature is not checked.
    fn is_ignored(&self, field: &TextField) -> Result<bool, TextError> {
        match self.word(field, "a lifecycle stage")? {
            "PLANNED" | "ALPHA" | "DEPRECATED" | "DEBUG_ONLY" | "DISABLED" | "1" | "2" | "5" | "6" | "7" => {
                Ok(true)
            }
            "UNKNOWN_STAGE" | "BETA" | "PRODUCTION" | "VALIDATION_DERIVED" | "0" | "3" | "4" | "9" => {
                Ok(false)
            }
            _ => Err(self.expected(field, "a lifecycle stage")),
        }
    }

    /// Reads a domain. Returns its name and its values.
    fn domain(&self, field: &TextField) -> Result<(String, ValueDomain), TextError> {
        let (mut name, message) = (String::new(), self.message(field)?);
        let mut strings = BTreeSet::new();
        let (mut ints, mut floats) = ((i64::MIN, i64::MAX), (f32::NEG_INFINITY, f32::INFINITY));
        let (mut no_nan, mut no_inf) = (false, false);
        let kind = &*field.name;
        for field in &message.fields {
            match (kind, &*field.name) {
                (_, "name") => name = self.string(field)?,
                ("string_domain", "value") => {
                    strings.insert(self.bytes(field)?);
                }
                (_, "is_categorical") => {
                    self.word(field, "a word")?;
                }
                ("int_domain", "min") => ints.0 = self.int(field)?,
                ("int_domain", "max") => ints.1 = self.int(field)?,
                ("float_domain", "min") => floats.0 = self.float(field)? as f32,
                ("float_domain", "max") => floats.1 = self.float(field)? as f32,
                ("float_domain", "disallow_nan") => no_nan = self.bool(field)?,
                ("float_domain", "disallow_inf") => no_inf = self.bool(field)?,
                ("float_domain", "is_embedding" | "embedding_dim" | "embedding_type") => {}
                _ => return Err(self.unknown(field, kind)),
            }
        }
        let domain = match kind {
            "string_domain" => ValueDomain::Strings(strings),
            "int_domain" => ValueDomain::Ints(ints.0, ints.1),
            _ => ValueDomain::Floats { min: floats.0, max: floats.1, no_nan, no_inf },
        };
        Ok((name, domain))
    }

    fn bools(&self, field: &TextField) -> Result<ValueDomain, TextError> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for field in &self.message(field)?.fields {
            match &*field.name {
                "name" => {}
                "true_value" => yes = self.bytes(field)?,
                "false_value" => no = self.bytes(field)?,
                _ => return Err(self.unknown(field, "BoolDomain")),
            }
        }
        Ok(ValueDomain::Bools(yes, no))
    }

    fn images(&self, field: &TextField) -> Result<ValueDomain, TextError> {
        let (mut fraction, mut most) = (0.0, None);
        for field in &self.message(field)?.fields {
            match &*field.name {
                "minimum_supported_image_fraction" => fraction = self.float(field)?,
                "max_image_byte_size" => most = Some(self.count(field)?),
                _ => return Err(self.unknown(field, "ImageDomain")),
            }
        }
        Ok(ValueDomain::Images(fraction, most))
    }

    /// Reads `min` and `max` of a message.
    fn range(&self, message: &TextMessage, of: &str) -> Result<(u64, Option<u64>), TextError> {
        let (mut min, mut max) = (0, None);
        for field in &message.fields {
            match &*field.name {
                "min" => min = self.count(field)?,
                // TFDV takes 0 as no limit.
                "max" => max = Some(self.count(field)?).filter(|&max| max > 0),
                _ => return Err(self.unknown(field, of)),
            }
        }
        Ok((min, max))
    }

    fn feature(
        &self,
        field: &TextField,
        domains: &Domains,
        list: Option<&str>,
        schema: &mut TfxSchema,
    ) -> Result<(), TextError> {
        let message = self.message(field)?;
        let mut rule = FeatureRule { min_domain_mass: 1.0, ..FeatureRule::default() };
        let (mut name, mut nested, mut has_type, mut mass) = (None, None, false, false);
        for field in &message.fields {
            if &*field.name == "name" {
                name = Some(self.string(field)?);
            }
        }
        let shown = name.clone().unwrap_or_default();
        let mut unchecked = |what: &str| schema.unchecked.insert((what.to_owned(), Some(shown.clone())));
        let mut faults = Vec::new();
        for field in &message.fields {
            match &*field.name {
                "name" | "annotation" | "sequence_metadata" => {}
                "deprecated" => rule.ignored |= self.bool(field)?,
                "lifecycle_stage" => rule.ignored |= self.is_ignored(field)?,
                "type" => {
                    has_type = true;
                    rule.kind = match self.word(field, "a type")? {
                        "BYTES" | "1" => Some(DType::Bytes),
                        "INT" | "2" => Some(DType::Int64),
                        "FLOAT" | "3" => Some(DType::Float32),
                        "TYPE_UNKNOWN" | "STRUCT" | "0" | "4" => None,
                        _ => return Err(self.expected(field, "BYTES, INT, FLOAT or STRUCT")),
                    };
                }
                "presence" => {
                    for field in &self.message(field)?.fields {
                        match &*field.name {
                            "min_fraction" => rule.min_fraction = self.float(field)?,
                            "min_count" => rule.min_count = self.count(field)?,
                            _ => return Err(self.unknown(field, "FeaturePresence")),
                        }
                    }
                    if !(0.0..=1.0).contains(&rule.min_fraction) {
                        faults.push((
                            "INVALID_SCHEMA_SPECIFICATION",
                            "presence.min_fraction is not from 0 to 1",
                        ));
                    }
                }
                "shape" => rule.fixed = self.shape(field)?,
                "value_count" => rule.counts = Some(self.range(self.message(field)?, "ValueCount")?),
                "value_counts" => {
                    let mut levels = Vec::new();
                    for field in &self.message(field)?.fields {
                        match &*field.name {
                            "value_count" => levels.push(self.range(self.message(field)?, "ValueCount")?),
                            _ => return Err(self.unknown(field, "ValueCountList")),
                        }
                    }
                    match (list, levels.as_slice()) {
                        (_, &[only]) => rule.counts = Some(only),
                        (Some(_), &[steps, values]) => {
                            (rule.counts, rule.step_counts) = (Some(steps), Some(values));
                        }
                        _ => {
                            unchecked("value_counts");
                        }
                    }
                }
                "domain" => match domains.get(&self.string(field)?) {
                    Some(domain) => rule.domain = domain.clone(),
                    None => {
                        faults.push(("INVALID_DOMAIN_SPECIFICATION", "the schema has no domain of this name"))
                    }
                },
                "string_domain" | "float_domain" | "int_domain" => rule.domain = self.domain(field)?.1,
                "bool_domain" => rule.domain = self.bools(field)?,
                "image_domain" => rule.domain = self.images(field)?,
                "struct_domain" => nested = Some(self.message(field)?),
                "distribution_constraints" => {
                    mass = true;
                    for field in &self.message(field)?.fields {
                        match &*field.name {
                            "min_domain_mass" => rule.min_domain_mass = self.float(field)?,
                            _ => return Err(self.unknown(field, "DistributionConstraints")),
                        }
                    }
                }
                "unique_constraints" => {
                    let (min, max) = self.range(self.message(field)?, "UniqueConstraints")?;
                    rule.unique = Some((min, max.unwrap_or(u64::MAX)));
                }
                "skew_comparator" | "drift_comparator" => {
                    for part in &self.message(field)?.fields {
                        match &*part.name {
                            "infinity_norm" => {
                                rule.infinity_norm =
                                    lower(rule.infinity_norm, self.threshold(part, "InfinityNorm")?);
                            }
                            "jensen_shannon_divergence" => {
                                let threshold = self.threshold(part, "JensenShannonDivergence")?;
                                rule.jensen_shannon = lower(rule.jensen_shannon, threshold);
                            }
                            other => {
                                unchecked(&format!("{}.{other}", field.name));
                            }
                        }
                    }
                }
                "in_environment" => rule.in_environments.push(self.string(field)?),
                "not_in_environment" => rule.not_in_environments.push(self.string(field)?),
                "group_presence"
                | "natural_language_domain"
                | "audio_domain"
                | "video_domain"
                | "content_chunk_domain"
                | "mid_domain"
                | "url_domain"
                | "time_domain"
                | "time_of_day_domain"
                | "validation_derived_source" => {
                    self.message(field)?;
                    unchecked(&field.name);
                }
                _ => return Err(self.unknown(field, "Feature")),
            }
        }
        if let Some((min, Some(max))) = rule.counts
            && min > max
        {
            faults.push(("INVALID_SCHEMA_SPECIFICATION", "value_count.min is larger than value_count.max"));
        }
        if mass && !matches!(rule.domain, ValueDomain::Strings(_)) {
            faults.push((
                "INVALID_SCHEMA_SPECIFICATION",
                "distribution_constraints without a domain of strings",
            ));
        }
        if let ValueDomain::Bools(yes, no) = &rule.domain
            && yes == no
            && rule.kind == Some(DType::Bytes)
        {
            faults.push(("INVALID_DOMAIN_SPECIFICATION", "bool_domain has equal values for true and false"));
        }
        if !fits(&rule.domain, rule.kind) {
            faults.push(("DOMAIN_INVALID_FOR_TYPE", "the domain does not fit the type"));
            rule.domain = ValueDomain::Any;
        }
        let Some(name) = name else {
            faults.push(("FEATURE_MISSING_NAME", "the feature has no name"));
            schema
                .faults
                .extend(faults.into_iter().map(|(kind, text)| (kind, String::new(), text.to_owned())));
            return Ok(());
        };
        if !has_type {
            // TFDV reports FEATURE_MISSING_TYPE. Inferred schemas name no type where records differ.
            schema.unchecked.insert(("type".to_owned(), Some(name.clone())));
        }
        schema.faults.extend(faults.into_iter().map(|(kind, text)| (kind, name.clone(), text.to_owned())));
        match nested {
            Some(nested) if name == SEQUENCE && list.is_none() => {
                for field in &nested.fields {
                    match &*field.name {
                        "feature" => self.feature(field, domains, Some(&name), schema)?,
                        "sparse_feature" => {
                            schema.unchecked.insert(("sparse_feature".to_owned(), Some(name.clone())));
                        }
                        _ => return Err(self.unknown(field, "StructDomain")),
                    }
                }
                return Ok(());
            }
            Some(_) => {
                schema.unchecked.insert(("struct_domain".to_owned(), Some(name.clone())));
            }
            None => {}
        }
        let rules = if list.is_some() { &mut schema.lists } else { &mut schema.features };
        if rules.insert(name.clone(), rule).is_some() {
            return Err(self.error(
                field,
                format!("expected one feature named \"{}\", found two", name.escape_default()),
            ));
        }
        Ok(())
    }

    fn threshold(&self, field: &TextField, of: &str) -> Result<Option<f64>, TextError> {
        let mut threshold = None;
        for field in &self.message(field)?.fields {
            match &*field.name {
                "threshold" => threshold = Some(self.float(field)?),
                _ => return Err(self.unknown(field, of)),
            }
        }
        Ok(threshold)
    }

    /// Returns the number of values of a shape, or `None` if a dimension has no size.
    fn shape(&self, field: &TextField) -> Result<Option<u64>, TextError> {
        let mut product = Some(1u64);
        for dim in &self.message(field)?.fields {
            let mut size = None;
            match &*dim.name {
                "dim" => {
                    for field in &self.message(dim)?.fields {
                        match &*field.name {
                            "size" => size = u64::try_from(self.int(field)?).ok(),
                            "name" => {}
                            _ => return Err(self.unknown(field, "Dim")),
                        }
                    }
                }
                _ => return Err(self.unknown(dim, "FixedShape")),
            }
            product = product.zip(size).and_then(|(a, b)| a.checked_mul(b));
        }
        Ok(product)
    }

    /// Reads a sparse or weighted feature. Returns `None` if it is not to be checked.
    fn group(&self, field: &TextField) -> Result<Option<GroupRule>, TextError> {
        let weighted = &*field.name == "weighted_feature";
        let (mut name, mut values, mut others) = (String::new(), String::new(), Vec::new());
        let mut ignored = false;
        for field in &self.message(field)?.fields {
            match &*field.name {
                "name" => name = self.string(field)?,
                "deprecated" => ignored |= self.bool(field)?,
                "lifecycle_stage" => ignored |= self.is_ignored(field)?,
                "index_feature" | "value_feature" if !weighted => {
                    for part in &self.message(field)?.fields {
                        match &*part.name {
                            "name" if &*field.name == "value_feature" => values = self.string(part)?,
                            "name" => others.push(self.string(part)?),
                            _ => return Err(self.unknown(part, "SparseFeature")),
                        }
                    }
                }
                "feature" | "weight_feature" if weighted => {
                    let mut steps = Vec::new();
                    for part in &self.message(field)?.fields {
                        match &*part.name {
                            "step" => steps.push(self.string(part)?),
                            _ => return Err(self.unknown(part, "Path")),
                        }
                    }
                    match &*field.name {
                        "feature" => values = steps.join("."),
                        _ => others.push(steps.join(".")),
                    }
                }
                "presence" | "dense_shape" | "is_sorted" | "type" | "domain" => {}
                _ => return Err(self.unknown(field, "a sparse or weighted feature")),
            }
        }
        Ok((!ignored).then_some(GroupRule { name, values, others, weighted }))
    }

    fn records(&self, field: &TextField, schema: &mut TfxSchema) -> Result<(), TextError> {
        for field in &self.message(field)?.fields {
            match &*field.name {
                "min_examples_count" => schema.records.0 = self.count(field)?,
                "max_examples_count" => schema.records.1 = Some(self.count(field)?),
                "num_examples_drift_comparator" | "num_examples_version_comparator" => {
                    let (mut least, mut most) = (0.0, f64::INFINITY);
                    for field in &self.message(field)?.fields {
                        match &*field.name {
                            "min_fraction_threshold" => least = self.float(field)?,
                            "max_fraction_threshold" => most = self.float(field)?,
                            _ => return Err(self.unknown(field, "NumericValueComparator")),
                        }
                    }
                    schema.drift.push((least, most));
                }
                _ => return Err(self.unknown(field, "DatasetConstraints")),
            }
        }
        Ok(())
    }
}

/// Returns the lower of two thresholds. Both comparators apply, and there is one baseline.
fn lower(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Returns true if values of this kind can be in the domain.
fn fits(domain: &ValueDomain, kind: Option<DType>) -> bool {
    match (domain, kind) {
        (ValueDomain::Any | ValueDomain::Bools(..), _) | (_, None) => true,
        (ValueDomain::Ints(..), Some(kind)) => kind != DType::Float32,
        (ValueDomain::Floats { .. }, Some(kind)) => kind != DType::Int64,
        (ValueDomain::Strings(_) | ValueDomain::Images(..), Some(kind)) => kind == DType::Bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any change of a text gives a schema or an error with a place, and no panic.
    #[test]
    fn mutated_texts() {
        let text = include_bytes!("../../../tests/schema.pbtxt");
        assert!(TfxSchema::parse(text).is_ok(), "{}", TfxSchema::parse(text).unwrap_err());
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut changed = text.to_vec();
            for _ in 0..1 + random(3) {
                let at = random(changed.len());
                match random(4) {
                    0 => changed[at] = random(256) as u8,
                    1 => drop(changed.remove(at)),
                    2 => changed.insert(at, b"{}<>[]:;,\"'\\#-.0aZ"[random(18)]),
                    _ => {
                        let from = random(changed.len());
                        let part = changed[from..(from + random(40)).min(text.len() - 3).max(from)].to_vec();
                        changed.splice(at..at, part);
                    }
                }
            }
            match TfxSchema::parse(&changed) {
                Ok(_) => read += 1,
                Err(e) => {
                    refused += 1;
                    assert!(e.at.line >= 1 && e.message.contains("expected"), "{e}");
                }
            }
        }
        assert!(read > 1000 && refused > 1000, "{read} {refused}");
    }
}
