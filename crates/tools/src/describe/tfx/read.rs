//! Schemas in protobuf's text format: the message `Schema`, without its features.

use super::anomaly::AnomalyKind;
use super::reader::FieldReader;
use super::schema::{GroupRule, TfxSchema};
use super::text::{self, TextField};
use crate::error::ToolsError;
use std::collections::HashMap;

impl TfxSchema {
    /// Reads a schema in protobuf's text format.
    ///
    /// # Errors
    /// A syntax error, an unknown field, or a value of another type, with its line and column.
    pub fn parse(text: &[u8]) -> Result<TfxSchema, ToolsError> {
        let message = text::parse(text)?;
        let reader = FieldReader { text };
        let mut schema = TfxSchema::default();
        let mut domains = HashMap::new();
        // Domains of the schema come first, because features refer to them.
        for field in &message {
            if let "string_domain" | "float_domain" | "int_domain" = &*field.name {
                let (name, domain) = reader.domain(field)?;
                domains.insert(name, domain);
            }
        }
        for field in &message {
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
                let kind = if group.weighted {
                    AnomalyKind::WeightedFeatureNameCollision
                } else {
                    AnomalyKind::SparseFeatureNameCollision
                };
                self.faults.push(((kind, "a feature has the same name"), group.name.clone()));
            }
        }
    }
}

impl FieldReader<'_> {
    /// Returns the steps of a path.
    pub(super) fn path(&self, field: &TextField) -> Result<Vec<String>, ToolsError> {
        let steps = self.message(field)?.iter().map(|part| match &*part.name {
            "step" => self.string(part),
            _ => Err(self.unknown(part, "Path")),
        });
        steps.collect()
    }

    /// Reads a sparse or weighted feature. Returns `None` if it is not to be checked.
    pub(super) fn group(&self, field: &TextField) -> Result<Option<GroupRule>, ToolsError> {
        let weighted = &*field.name == "weighted_feature";
        let mut name = String::new();
        let mut values = String::new();
        let mut others = Vec::new();
        let mut ignored = false;
        for field in self.message(field)? {
            match &*field.name {
                "name" => name = self.string(field)?,
                "deprecated" => ignored |= self.bool(field)?,
                "lifecycle_stage" => ignored |= self.is_ignored(field)?,
                "index_feature" | "value_feature" if !weighted => {
                    for part in self.message(field)? {
                        match &*part.name {
                            "name" if &*field.name == "value_feature" => values = self.string(part)?,
                            "name" => others.push(self.string(part)?),
                            _ => return Err(self.unknown(part, "SparseFeature")),
                        }
                    }
                }
                "feature" | "weight_feature" if weighted => {
                    let name = self.path(field)?.join(".");
                    match &*field.name {
                        "feature" => values = name,
                        _ => others.push(name),
                    }
                }
                "presence" | "dense_shape" | "is_sorted" | "type" | "domain" => {}
                _ => return Err(self.unknown(field, "a sparse or weighted feature")),
            }
        }
        Ok((!ignored).then_some(GroupRule { name, values, others, weighted }))
    }

    fn records(&self, field: &TextField, schema: &mut TfxSchema) -> Result<(), ToolsError> {
        for field in self.message(field)? {
            match &*field.name {
                "min_examples_count" => schema.records.0 = self.count(field)?,
                "max_examples_count" => schema.records.1 = Some(self.count(field)?),
                "num_examples_drift_comparator" | "num_examples_version_comparator" => {
                    let mut least = 0.0;
                    let mut most = f64::INFINITY;
                    for field in self.message(field)? {
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
        let mut read = 0;
        let mut refused = 0;
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
                    let ToolsError::Schema { at, reason } = &e else { panic!("{e}") };
                    assert!(at.line >= 1 && reason.contains("expected"), "{e}");
                }
            }
        }
        assert!(read > 1000 && refused > 1000, "{read} {refused}");
    }
}
