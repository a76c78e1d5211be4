//! Anomalies, from the checks of all records.

use super::feature::FeatureChecks;
use super::tally::Tally;
use super::validator::Validator;
use crate::describe::tfx::{AnomalyKind, FeatureRule, ValueDomain};
use crate::digits::counted;
use std::collections::BTreeSet;
use tfseek::example::DType;

/// A difference between records and a schema.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Anomaly {
    /// What is wrong.
    pub kind: AnomalyKind,
    /// The feature. `None` for the whole data set.
    pub feature: Option<String>,
    /// The feature is a feature list.
    pub list: bool,
    /// Description: expected and found.
    pub text: String,
    /// Number of values, or 0 if the anomaly is not one of values.
    pub values: u64,
    /// Number of records with the anomaly, or 0 if it is not one of records.
    pub records: u64,
    /// Numbers of the first records, at most ten.
    pub first: Vec<u64>,
    /// The first distinct values, at most five, as text.
    pub examples: Vec<String>,
}

/// The result of a validation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ValidationReport {
    /// Number of records.
    pub records: u64,
    /// The anomalies, by feature. Anomalies of the whole data set come first.
    pub anomalies: Vec<Anomaly>,
    /// Constraints of the schema that were not checked, with their features.
    pub unchecked: BTreeSet<(String, Option<String>)>,
}

impl ValidationReport {
    fn add(&mut self, kind: AnomalyKind, feature: Option<&str>, list: bool, text: String, tally: &Tally) {
        self.anomalies.push(Anomaly {
            kind,
            feature: feature.map(str::to_owned),
            list,
            text,
            values: tally.values,
            records: tally.records,
            first: tally.first.clone(),
            examples: tally.examples.clone(),
        });
    }

    fn not_checked(&mut self, what: &str, feature: &str) {
        self.unchecked.insert((what.to_owned(), Some(feature.to_owned())));
    }
}

impl Validator<'_> {
    /// Returns the anomalies. `environment` selects the features that are required, and `baseline` has the
    /// checks of earlier records with the same schema, for comparators.
    pub fn report(&self, environment: Option<&str>, baseline: Option<&Validator<'_>>) -> ValidationReport {
        let unchecked = self.schema.unchecked.clone();
        let mut found = ValidationReport { records: self.records, anomalies: Vec::new(), unchecked };
        self.data_set(baseline, &mut found);
        for &((kind, text), ref feature) in &self.schema.faults {
            found.add(kind, Some(feature), false, text.to_owned(), &Tally::default());
        }
        for ((name, list), tally) in &self.new {
            let text = "the schema has no such feature".to_owned();
            found.add(AnomalyKind::SchemaNewColumn, Some(name), *list, text, tally);
        }
        if self.more_new.records > 0 {
            let text = "the schema has no such features; more than can be listed".to_owned();
            found.add(AnomalyKind::SchemaNewColumn, None, false, text, &self.more_new);
        }
        let rules = self.schema.features.iter().map(|rule| (rule, false));
        let lists = self.schema.lists.iter().map(|rule| (rule, true));
        for (k, (((name, rule), list), checks)) in rules.chain(lists).zip(&self.checks).enumerate() {
            let earlier = baseline.and_then(|b| b.checks.get(k));
            let required = rule.is_required(environment, self.schema);
            FeatureReport { name, list, rule, checks, records: self.records }
                .add(required, earlier, &mut found);
        }
        for (group, [no_value, no_other, lengths]) in self.schema.groups.iter().zip(&self.groups) {
            let [value, other, length] = if group.weighted {
                [
                    AnomalyKind::WeightedFeatureMissingValue,
                    AnomalyKind::WeightedFeatureMissingWeight,
                    AnomalyKind::WeightedFeatureLengthMismatch,
                ]
            } else {
                [
                    AnomalyKind::SparseFeatureMissingValue,
                    AnomalyKind::SparseFeatureMissingIndex,
                    AnomalyKind::SparseFeatureLengthMismatch,
                ]
            };
            let others = group.others.join(", ");
            let texts = [
                (value, no_value, format!("{} is missing and {others} is not", group.values)),
                (other, no_other, format!("{} has values and {others} has none", group.values)),
                (length, lengths, format!("{} and {others} have different numbers of values", group.values)),
            ];
            for (name, tally, text) in texts {
                if tally.records > 0 {
                    found.add(name, Some(&group.name), false, text, tally);
                }
            }
        }
        found.anomalies.sort_by(|a, b| (&a.feature, a.list, a.kind).cmp(&(&b.feature, b.list, b.kind)));
        found
    }

    fn data_set(&self, baseline: Option<&Validator<'_>>, found: &mut ValidationReport) {
        let (least, most) = self.schema.records;
        let n = self.records;
        let mut add = |name, what, limit| {
            let text = format!("expected at {what} {}, found {n}", counted(limit, "record"));
            found.add(name, None, false, text, &Tally::default());
        };
        if n < least {
            add(AnomalyKind::DatasetLowNumExamples, "least", least);
        }
        if let Some(most) = most.filter(|&most| n > most) {
            add(AnomalyKind::DatasetHighNumExamples, "most", most);
        }
        for &(least, most) in &self.schema.drift {
            let Some(base) = baseline.map(|b| b.records).filter(|&base| base > 0) else {
                found.unchecked.insert(("num_examples comparator without baseline".into(), None));
                continue;
            };
            let ratio = n as f64 / base as f64;
            let mut add = |name, what, limit| {
                let text = format!("expected {what} {limit} times the baseline's {base} records, found {n}");
                found.add(name, None, false, text, &Tally::default());
            };
            if ratio < least {
                add(AnomalyKind::ComparatorLowNumExamples, "at least", least);
            }
            if ratio > most {
                add(AnomalyKind::ComparatorHighNumExamples, "at most", most);
            }
        }
    }
}

/// The rule of a feature and its checks.
struct FeatureReport<'a> {
    name: &'a str,
    list: bool,
    rule: &'a FeatureRule,
    checks: &'a FeatureChecks,
    records: u64,
}

impl FeatureReport<'_> {
    fn add(&self, required: bool, earlier: Option<&FeatureChecks>, found: &mut ValidationReport) {
        let FeatureReport { name, list, rule, checks, records } = *self;
        if rule.ignored {
            return;
        }
        let mut add = |anomaly, text, tally: &Tally| found.add(anomaly, Some(name), list, text, tally);
        let mut absent_reported = false;
        if required && records > 0 && checks.present == 0 {
            let (anomaly, text) = match checks.seen {
                0 => (AnomalyKind::SchemaMissingColumn, "no record has the feature"),
                _ => (AnomalyKind::FeatureTypeNotPresent, "no record has the feature with a kind"),
            };
            return add(anomaly, text.to_owned(), &Tally::default());
        }
        if required {
            let present = checks.present;
            let least = rule.min_fraction;
            if (present as f64) < least * records as f64 {
                absent_reported = true;
                let text =
                    format!("expected in at least {least} of the records, found in {present} of {records}");
                add(AnomalyKind::FeatureTypeLowFractionPresent, text, &checks.absent(records));
            }
            if present < rule.min_count {
                let text =
                    format!("expected in at least {}, found in {present}", counted(rule.min_count, "record"));
                add(AnomalyKind::FeatureTypeLowNumberPresent, text, &Tally::default());
            }
        }
        let mut tallies = checks.tallies.clone();
        if rule.fixed.is_some() && checks.present < records && !absent_reported && checks.present > 0 {
            tallies.entry(AnomalyKind::InvalidFeatureShape).or_default().append(checks.absent(records), 0);
        }
        for (&anomaly, tally) in &tallies {
            if let Some(text) = self.text(anomaly, tally) {
                add(anomaly, text, tally);
            }
        }
        self.distinct(found);
        self.compare(earlier, found);
    }

    /// Returns the description of an anomaly of values. `None` if the schema allows this number of them.
    fn text(&self, anomaly: AnomalyKind, tally: &Tally) -> Option<String> {
        let rule = self.rule;
        let compared = self.checks.compared;
        let count = |(min, max): (u64, Option<u64>), thing: &str| match max {
            Some(max) if min == max => counted(min, thing),
            Some(max) => format!("{min} to {}", counted(max, thing)),
            None => format!("at least {}", counted(min, thing)),
        };
        Some(match (anomaly, &rule.domain) {
            (AnomalyKind::UnexpectedDataType, _) => {
                let kind = rule.kind.map_or("", |kind| kind.list_name());
                format!("expected values of {kind}")
            }
            (AnomalyKind::InvalidFeatureShape, _) => {
                format!("expected {}", counted(rule.fixed.unwrap_or(0), "value"))
            }
            (AnomalyKind::FeatureTypeLowNumberValues | AnomalyKind::FeatureTypeHighNumberValues, _) => {
                match (rule.counts, rule.step_counts) {
                    (Some(steps), Some(values)) => {
                        format!("expected {} of {}", count(steps, "step"), count(values, "value"))
                    }
                    (Some(range), None) | (None, Some(range)) => {
                        format!("expected {}", count(range, "value"))
                    }
                    (None, None) => return None,
                }
            }
            (AnomalyKind::EnumTypeUnexpectedStringValues, _) => {
                let outside = tally.values as f64 / compared.max(1) as f64;
                if rule.min_domain_mass < 1.0 && outside <= 1.0 - rule.min_domain_mass {
                    return None;
                }
                format!("{} outside the domain, of {compared}", counted(tally.values, "value"))
            }
            (AnomalyKind::LowSupportedImageFraction, ValueDomain::Images(least, _)) => {
                let supported = compared.saturating_sub(tally.values);
                if supported as f64 >= least * compared as f64 {
                    return None;
                }
                format!(
                    "expected images that TensorFlow decodes in at least {least} of the values, found {supported} of {compared}"
                )
            }
            (AnomalyKind::MaxImageByteSizeExceeded, ValueDomain::Images(_, most)) => {
                format!("expected at most {}", counted(most.unwrap_or(0), "byte"))
            }
            (AnomalyKind::FloatTypeHasNan, _) => "expected no NaN".to_owned(),
            (AnomalyKind::FloatTypeHasInf, _) => "expected no infinity".to_owned(),
            (_, ValueDomain::Ints(min, max)) => format!("expected {min} to {max}"),
            (_, ValueDomain::Floats { min, max, .. }) => format!("expected {min} to {max}"),
            (_, ValueDomain::Bools(yes, no)) if self.rule.kind == Some(DType::Bytes) => {
                format!("expected \"{}\" or \"{}\"", yes.escape_ascii(), no.escape_ascii())
            }
            (_, ValueDomain::Bools(..)) => "expected 0 or 1".to_owned(),
            (_, _) => "expected strings in UTF-8".to_owned(),
        })
    }

    /// Adds an anomaly that concerns no single values or records.
    fn add_whole(&self, kind: AnomalyKind, text: String, found: &mut ValidationReport) {
        found.add(kind, Some(self.name), self.list, text, &Tally::default());
    }

    fn distinct(&self, found: &mut ValidationReport) {
        let (Some((least, most)), distinct) = (self.rule.unique, &self.checks.distinct) else { return };
        let n = distinct.len();
        let mut add = |anomaly, what, limit| {
            let text = format!("expected at {what} {}, found {n}", counted(limit, "distinct value"));
            self.add_whole(anomaly, text, found);
        };
        if !distinct.full && n < least {
            add(AnomalyKind::FeatureTypeLowUnique, "least", least);
        } else if n > most {
            add(AnomalyKind::FeatureTypeHighUnique, "most", most);
        } else if distinct.full {
            found.not_checked("unique_constraints (more than a million distinct values)", self.name);
        }
    }

    /// Compares the values with the baseline's values.
    fn compare(&self, earlier: Option<&FeatureChecks>, found: &mut ValidationReport) {
        if self.rule.infinity_norm.is_none() && self.rule.jensen_shannon.is_none() {
            return;
        }
        let Some(earlier) = earlier else {
            return found.not_checked("comparator without baseline", self.name);
        };
        if earlier.present == 0 && self.checks.present > 0 {
            let text = "the baseline does not have the feature".to_owned();
            return self.add_whole(AnomalyKind::ComparatorControlDataMissing, text, found);
        }
        if let Some(most) = self.rule.infinity_norm {
            self.distance(most, earlier, found);
        }
        if let Some(most) = self.rule.jensen_shannon {
            self.divergence(most, earlier, found);
        }
    }

    fn divergence(&self, most: f64, earlier: &FeatureChecks, found: &mut ValidationReport) {
        let shares = &self.checks.shares;
        let numbers = &self.checks.numbers;
        let divergence = match self.rule.kind {
            Some(DType::Bytes) if shares.full || earlier.shares.full => None,
            Some(DType::Bytes) => Some(shares.divergence(&earlier.shares)),
            Some(_) => Some(numbers.divergence(&earlier.numbers)),
            None => None,
        };
        let Some(divergence) = divergence else {
            return found.not_checked("jensen_shannon_divergence", self.name);
        };
        if let Some(divergence) = divergence.filter(|&divergence| divergence > most) {
            let text = format!(
                "expected a Jensen-Shannon divergence of at most {most} from the baseline, found {divergence:.6}"
            );
            self.add_whole(AnomalyKind::ComparatorJensenShannonDivergenceHigh, text, found);
        }
    }

    fn distance(&self, most: f64, earlier: &FeatureChecks, found: &mut ValidationReport) {
        let shares = &self.checks.shares;
        if self.rule.kind == Some(DType::Float32) || shares.full || earlier.shares.full {
            return found.not_checked("infinity_norm", self.name);
        }
        if let Some((distance, value)) = shares.distance(&earlier.shares)
            && distance > most
        {
            let value = match (self.rule.kind, <[u8; 8]>::try_from(value)) {
                (Some(DType::Int64), Ok(bytes)) => i64::from_le_bytes(bytes).to_string(),
                _ => super::tally::quoted(value),
            };
            let text = format!(
                "expected a distance of at most {most} from the baseline, found {distance:.6} at {value}"
            );
            self.add_whole(AnomalyKind::ComparatorLInftyHigh, text, found);
        }
    }
}
