//! Schemas with which rows can be converted back to equal records.

use crate::error::ConvertError;
use crate::options::ExportOptions;
use crate::records::SelectedRecords;
use std::collections::BTreeMap;
use tfseek::DType;
use tfseek::example::MessageKind;
use tfseek::schema::{FeatureSpec, Finding, Inference, Schema};
use tfseek_tools::wildcards::matches;

/// Returns the schema of records. All of them are read, because a later one may have more features or more values.
///
/// Features that always have one value are scalars, and those that may be missing are optional. All others are lists: an empty list is not
/// a missing one.
pub(crate) fn observed(records: SelectedRecords<'_>) -> Result<Schema, ConvertError> {
    let kind = match records.kind {
        Some(kind) => kind,
        None => guessed(records)?,
    };
    let mut seen = Inference::new(kind)?;
    SelectedRecords { kind: Some(kind), ..records }
        .for_each(|_, record, _| seen.add(record.payload()).map_err(|e| e.at(record.at())))?;
    if let Some(conflict) = seen.findings().find_map(|found| found.conflict()) {
        let reason = "a column has values of one kind: leave the feature out, or give a schema";
        return Err(ConvertError::Records(format!("{conflict} ({reason})")));
    }
    if seen.records() == 0 {
        let reason = "expected at least one record to infer a schema from, found none";
        return Err(ConvertError::Records(reason.into()));
    }
    let builder = if seen.is_sequence() { Schema::sequence_example() } else { Schema::example() };
    let builder = seen.findings().fold(builder, |builder, found| match spec(&found) {
        Some(spec) if found.list => builder.feature_list(found.name, spec),
        Some(spec) => builder.feature(found.name, spec),
        None => builder,
    });
    Ok(builder.build()?)
}

fn spec(found: &Finding<'_>) -> Option<FeatureSpec> {
    let kind = found.kinds.keys().next();
    Some(match (kind, found.counts) {
        // A feature list without steps has no kind either.
        (None, _) if found.list => FeatureSpec::var_len(DType::Bytes),
        (None, _) => return None,
        (Some(&kind), Some((1, 1))) if !found.list => one_value(kind, found.present == found.records),
        (Some(&kind), _) => FeatureSpec::var_len(kind),
    })
}

fn one_value(kind: DType, always: bool) -> FeatureSpec {
    match always {
        true => FeatureSpec::fixed_len(&[], kind),
        false => FeatureSpec::optional(kind),
    }
}

/// Returns the kind of the records of all shards.
fn guessed(records: SelectedRecords<'_>) -> Result<MessageKind, ConvertError> {
    let mut kind = MessageKind::Example;
    for shard in records.ds.shards().filter(|shard| shard.len > 0) {
        let range = shard.start..shard.start.saturating_add(shard.len);
        match tfseek_tools::guess_kind(records.ds, range) {
            MessageKind::Example => {}
            MessageKind::SequenceExample => kind = MessageKind::SequenceExample,
            MessageKind::Other => {
                let path = shard.path.display();
                return Err(ConvertError::Records(format!(
                    "{path}: expected Examples or SequenceExamples, found other payloads"
                )));
            }
        }
    }
    Ok(kind)
}

/// Returns the schema with the features that the options name.
pub(crate) fn selected(schema: &Schema, options: &ExportOptions) -> Result<Schema, ConvertError> {
    if options.features.is_empty() {
        return Ok(schema.clone());
    }
    let names = || schema.features().keys().chain(schema.feature_lists().keys());
    if let Some(pattern) = options.features.iter().find(|pattern| !names().any(|name| matches(pattern, name)))
    {
        return Err(ConvertError::Options(format!("expected a feature that matches {pattern}, found none")));
    }
    let kept = |specs: &BTreeMap<String, FeatureSpec>| -> Vec<(String, FeatureSpec)> {
        let kept = specs.iter().filter(|(name, _)| options.has_feature(name));
        kept.map(|(name, spec)| (name.clone(), spec.clone())).collect()
    };
    let builder = if schema.is_sequence() { Schema::sequence_example() } else { Schema::example() };
    let builder = kept(schema.features()).into_iter().fold(builder, |b, (name, spec)| b.feature(name, spec));
    let lists = kept(schema.feature_lists()).into_iter();
    Ok(lists.fold(builder, |b, (name, spec)| b.feature_list(name, spec)).build()?)
}
