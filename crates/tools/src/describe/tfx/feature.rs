//! The message `Feature`, and the messages in it.

use super::anomaly::{AnomalyKind, SchemaFault};
use super::domain::{Domains, fits};
use super::reader::FieldReader;
use super::schema::{FeatureRule, SEQUENCE, TfxSchema, ValueDomain};
use super::text::TextField;
use crate::error::ToolsError;
use tfseek::example::DType;

/// A feature while its fields are read.
#[derive(Default)]
struct OpenFeature<'m> {
    rule: FeatureRule,
    /// It is in a feature list.
    in_list: bool,
    has_type: bool,
    has_mass: bool,
    /// The features of a feature of type STRUCT.
    nested: Option<&'m [TextField]>,
    /// Constraints that are not checked.
    unchecked: Vec<String>,
    faults: Vec<SchemaFault>,
}

impl FieldReader<'_> {
    /// Reads a feature, and adds its rule to the schema. `list` is the name of the feature list that it is
    /// in.
    pub(super) fn feature(
        &self,
        field: &TextField,
        domains: &Domains,
        list: Option<&str>,
        schema: &mut TfxSchema,
    ) -> Result<(), ToolsError> {
        let message = self.message(field)?;
        let mut name = None;
        for field in message.iter().filter(|field| &*field.name == "name") {
            name = Some(self.string(field)?);
        }
        let rule = FeatureRule { min_domain_mass: 1.0, ..FeatureRule::default() };
        let mut feature = OpenFeature { rule, in_list: list.is_some(), ..OpenFeature::default() };
        for field in message {
            self.feature_field(field, domains, &mut feature)?;
        }
        feature.check();
        if name.is_none() {
            feature.faults.push((AnomalyKind::FeatureMissingName, "the feature has no name"));
        } else if !feature.has_type {
            // TFDV reports FEATURE_MISSING_TYPE. Inferred schemas name no type where records differ.
            feature.unchecked.push("type".to_owned());
        }
        let OpenFeature { rule, nested, unchecked, faults, .. } = feature;
        let shown = name.clone().unwrap_or_default();
        schema.unchecked.extend(unchecked.into_iter().map(|what| (what, Some(shown.clone()))));
        schema.faults.extend(faults.into_iter().map(|fault| (fault, shown.clone())));
        let Some(name) = name else { return Ok(()) };
        match nested {
            Some(nested) if name == SEQUENCE && list.is_none() => {
                return self.lists(nested, domains, &name, schema);
            }
            Some(_) => {
                schema.unchecked.insert(("struct_domain".to_owned(), Some(name.clone())));
            }
            None => {}
        }
        let rules = if list.is_some() { &mut schema.lists } else { &mut schema.features };
        if rules.insert(name.clone(), rule).is_some() {
            let name = name.escape_default();
            return Err(self.error(field, format!("expected one feature named \"{name}\", found two")));
        }
        Ok(())
    }

    /// Reads the features of the feature lists.
    fn lists(
        &self,
        fields: &[TextField],
        domains: &Domains,
        name: &str,
        schema: &mut TfxSchema,
    ) -> Result<(), ToolsError> {
        for field in fields {
            match &*field.name {
                "feature" => self.feature(field, domains, Some(name), schema)?,
                "sparse_feature" => {
                    schema.unchecked.insert(("sparse_feature".to_owned(), Some(name.to_owned())));
                }
                _ => return Err(self.unknown(field, "StructDomain")),
            }
        }
        Ok(())
    }

    fn feature_field<'m>(
        &self,
        field: &'m TextField,
        domains: &Domains,
        feature: &mut OpenFeature<'m>,
    ) -> Result<(), ToolsError> {
        let rule = &mut feature.rule;
        match &*field.name {
            "name" | "annotation" | "sequence_metadata" => {}
            "deprecated" => rule.ignored |= self.bool(field)?,
            "lifecycle_stage" => rule.ignored |= self.is_ignored(field)?,
            "type" => {
                feature.has_type = true;
                rule.kind = self.kind(field)?;
            }
            "presence" => self.presence(field, feature)?,
            "shape" => rule.fixed = self.shape(field)?,
            "value_count" => rule.counts = Some(self.range(field, "ValueCount")?),
            "value_counts" => self.value_counts(field, feature)?,
            "domain" => match domains.get(&self.string(field)?) {
                Some(domain) => rule.domain = domain.clone(),
                None => {
                    let text = "the schema has no domain of this name";
                    feature.faults.push((AnomalyKind::InvalidDomainSpecification, text));
                }
            },
            "string_domain" | "float_domain" | "int_domain" => rule.domain = self.domain(field)?.1,
            "bool_domain" => rule.domain = self.bools(field)?,
            "image_domain" => rule.domain = self.images(field)?,
            "struct_domain" => feature.nested = Some(self.message(field)?),
            "distribution_constraints" => {
                feature.has_mass = true;
                let mass = self.only_number(field, "min_domain_mass", "DistributionConstraints")?;
                rule.min_domain_mass = mass.unwrap_or(rule.min_domain_mass);
            }
            "unique_constraints" => {
                let (min, max) = self.range(field, "UniqueConstraints")?;
                rule.unique = Some((min, max.unwrap_or(u64::MAX)));
            }
            "skew_comparator" | "drift_comparator" => self.comparator(field, feature)?,
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
                feature.unchecked.push(field.name.to_string());
            }
            _ => return Err(self.unknown(field, "Feature")),
        }
        Ok(())
    }

    pub(super) fn kind(&self, field: &TextField) -> Result<Option<DType>, ToolsError> {
        match self.word(field, "a type")? {
            "BYTES" | "1" => Ok(Some(DType::Bytes)),
            "INT" | "2" => Ok(Some(DType::Int64)),
            "FLOAT" | "3" => Ok(Some(DType::Float32)),
            "TYPE_UNKNOWN" | "STRUCT" | "0" | "4" => Ok(None),
            _ => Err(self.expected(field, "BYTES, INT, FLOAT or STRUCT")),
        }
    }

    fn presence(&self, field: &TextField, feature: &mut OpenFeature<'_>) -> Result<(), ToolsError> {
        let rule = &mut feature.rule;
        for field in self.message(field)? {
            match &*field.name {
                "min_fraction" => rule.min_fraction = self.float(field)?,
                "min_count" => rule.min_count = self.count(field)?,
                _ => return Err(self.unknown(field, "FeaturePresence")),
            }
        }
        if !(0.0..=1.0).contains(&rule.min_fraction) {
            let text = "presence.min_fraction is not from 0 to 1";
            feature.faults.push((AnomalyKind::InvalidSchemaSpecification, text));
        }
        Ok(())
    }

    fn value_counts(&self, field: &TextField, feature: &mut OpenFeature<'_>) -> Result<(), ToolsError> {
        let mut levels = Vec::new();
        for field in self.message(field)? {
            match &*field.name {
                "value_count" => levels.push(self.range(field, "ValueCount")?),
                _ => return Err(self.unknown(field, "ValueCountList")),
            }
        }
        match (feature.in_list, levels.as_slice()) {
            (_, &[only]) => feature.rule.counts = Some(only),
            (true, &[steps, values]) => {
                (feature.rule.counts, feature.rule.step_counts) = (Some(steps), Some(values));
            }
            _ => feature.unchecked.push("value_counts".to_owned()),
        }
        Ok(())
    }

    fn comparator(&self, field: &TextField, feature: &mut OpenFeature<'_>) -> Result<(), ToolsError> {
        let rule = &mut feature.rule;
        for part in self.message(field)? {
            match &*part.name {
                "infinity_norm" => {
                    let threshold = self.only_number(part, "threshold", "InfinityNorm")?;
                    rule.infinity_norm = lower(rule.infinity_norm, threshold);
                }
                "jensen_shannon_divergence" => {
                    let threshold = self.only_number(part, "threshold", "JensenShannonDivergence")?;
                    rule.jensen_shannon = lower(rule.jensen_shannon, threshold);
                }
                other => feature.unchecked.push(format!("{}.{other}", field.name)),
            }
        }
        Ok(())
    }
}

impl OpenFeature<'_> {
    /// Compares the constraints with each other.
    fn check(&mut self) {
        let OpenFeature { rule, faults, .. } = self;
        if let Some((min, Some(max))) = rule.counts
            && min > max
        {
            let text = "value_count.min is larger than value_count.max";
            faults.push((AnomalyKind::InvalidSchemaSpecification, text));
        }
        if self.has_mass && !matches!(rule.domain, ValueDomain::Strings(_)) {
            let text = "distribution_constraints without a domain of strings";
            faults.push((AnomalyKind::InvalidSchemaSpecification, text));
        }
        if let ValueDomain::Bools(yes, no) = &rule.domain
            && yes == no
            && rule.kind == Some(DType::Bytes)
        {
            let text = "bool_domain has equal values for true and false";
            faults.push((AnomalyKind::InvalidDomainSpecification, text));
        }
        if !fits(&rule.domain, rule.kind) {
            faults.push((AnomalyKind::DomainInvalidForType, "the domain does not fit the type"));
            rule.domain = ValueDomain::Any;
        }
    }
}

/// Returns the lower of two thresholds. Both comparators apply, and there is one baseline.
fn lower(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().reduce(f64::min)
}
