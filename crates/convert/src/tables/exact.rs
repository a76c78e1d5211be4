//! Schemas with which rows can be converted back to equal records.

use super::observed::{ObservedFeatures, ObservedKey};
use super::progress::PassProgress;
use crate::error::ConvertError;
use crate::options::{ExportOptions, TableNotes};
use crate::records::SelectedRecords;
use std::collections::BTreeMap;
use tfseek::example::MessageKind;
use tfseek::schema::{FeatureSpec, Schema, SchemaBuilder};
use tfseek::{DType, ErrorKind};
use tfseek_tools::in_order;
use tfseek_tools::wildcards::matches;

/// Bytes of the records that a thread reads at a time. Decompression of a compressed shard begins anew for
/// each.
const CHUNK_BYTES: u64 = 16 << 20;

/// Returns the schema of records, and notes the features without a kind, which it loses. All records are
/// read, because a later one may have more features or more values.
///
/// Features that always have one value are scalars, and those that may be missing are optional. All others
/// are lists: an empty list is not a missing one. The schema of `tfseek schema` is stricter, and its
/// `Optional` loses this difference.
pub(super) fn observed(
    records: SelectedRecords<'_>,
    options: &ExportOptions,
    progress: &PassProgress<'_>,
    notes: &mut TableNotes,
) -> Result<Schema, ConvertError> {
    let kind = match records.kind {
        Some(kind) => kind,
        None => guessed(records)?,
    };
    if kind == MessageKind::Other {
        let reason = "the records are neither Examples nor SequenceExamples";
        return Err(tfseek::Error::from(ErrorKind::Spec(reason.into())).into());
    }
    let is_sequence = kind == MessageKind::SequenceExample;
    let mut seen = ObservedFeatures::default();
    in_order(
        options.threads,
        usize::MAX,
        records.chunks(records.records_of(CHUNK_BYTES)),
        |chunk| {
            let mut seen = ObservedFeatures::default();
            SelectedRecords::read(records.ds, &chunk, |record| {
                let payload = record.payload();
                let added = if is_sequence { seen.add_sequence(payload) } else { seen.add_example(payload) };
                added.map_err(|e| match e {
                    ConvertError::Error(e) => e.at(record.at()).into(),
                    e => e,
                })
            })?;
            Ok((seen, chunk.len() as u64))
        },
        |(part, records): (ObservedFeatures, u64)| {
            seen.append(part)?;
            progress.add(records);
            Ok::<(), ConvertError>(())
        },
    )?;
    if seen.records == 0 {
        let reason = "expected at least one record to infer a schema from, found none";
        return Err(ConvertError::Records(reason.into()));
    }
    let builder = if is_sequence { Schema::sequence_example() } else { Schema::example() };
    let total = seen.records;
    let mut specs = Vec::new();
    for (keys, is_steps) in [(&seen.features, false), (&seen.lists, true)] {
        for key in &keys.keys {
            if options.has_feature(&key.name) && key.kindless > 0 {
                notes.kindless += key.kindless;
                notes.kindless_names.push(key.name.to_string());
            }
            specs.extend(spec(key, is_steps, total)?.map(|spec| (&*key.name, is_steps, spec)));
        }
    }
    let add = |builder: SchemaBuilder, (name, is_steps, spec)| {
        if is_steps { builder.feature_list(name, spec) } else { builder.feature(name, spec) }
    };
    notes.kindless_names.dedup();
    Ok(specs.into_iter().fold(builder, add).build()?)
}

/// Returns the spec of a key that `total` records may have. `None` without a kind.
fn spec(key: &ObservedKey, is_steps: bool, total: u64) -> Result<Option<FeatureSpec>, ConvertError> {
    let mut kinds = key.kinds();
    Ok(Some(match (kinds.next(), kinds.next()) {
        (_, Some(_)) => {
            let unit = if is_steps { "steps" } else { "records" };
            let found = key.kinds().map(|(kind, count)| format!("{} in {count} {unit}", kind.list_name()));
            let found = found.collect::<Vec<_>>().join(" and ");
            return Err(ConvertError::Records(format!(
                "feature {:?}: invalid schema: expected one kind, found {found} (a column has values of one kind: leave the \
                 feature out, or give a schema)",
                key.name
            )));
        }
        // A feature list without steps has no kind either.
        (None, _) if is_steps => FeatureSpec::var_len(DType::Bytes),
        (None, _) => return Ok(None),
        (Some((kind, _)), _) if is_steps || key.is_list => FeatureSpec::var_len(kind),
        (Some((kind, _)), _) if key.present == total => FeatureSpec::fixed_len(&[], kind),
        (Some((kind, _)), _) => FeatureSpec::optional(kind),
    }))
}

/// Returns the kind of the records of all shards.
fn guessed(records: SelectedRecords<'_>) -> Result<MessageKind, ConvertError> {
    let mut kind = MessageKind::Example;
    for shard in records.ds.shards().filter(|shard| shard.len > 0) {
        let range = shard.start..shard.start + shard.len;
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
pub(super) fn selected(schema: &Schema, options: &ExportOptions) -> Result<Schema, ConvertError> {
    if options.features.is_empty() {
        return Ok(schema.clone());
    }
    let names = || schema.features().keys().chain(schema.feature_lists().keys());
    if let Some(pattern) = options.features.iter().find(|pattern| !names().any(|name| matches(pattern, name)))
    {
        return Err(ConvertError::no_feature(pattern, names().map(String::as_str)));
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
