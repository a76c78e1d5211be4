//! The schema of a set, from a sample of its records.

use super::refusal::Outcome;
use super::sets::kind_name;
use crate::http::Response;
use crate::set::ViewSet;
use serde_json::{Value, json};
use tfseek::example::MessageKind;
use tfseek::{FeatureSpec, Schema};
use tfseek_tools::{Inference, schema_code};

/// Number of records from which a schema is inferred.
const RECORDS: u64 = 1000;

/// Returns the inferred schema.
pub(super) fn schema(set: &ViewSet) -> Outcome {
    Ok(Response::json(&inferred(set)?))
}

/// Returns the schema of some records, and what they have of each feature.
pub(crate) fn inferred(set: &ViewSet) -> tfseek::Result<Value> {
    let shards = set.dataset.shards().len();
    let has_sequences = (0..shards.min(64)).any(|s| set.kind_of(s) == MessageKind::SequenceExample);
    let kind = if has_sequences { MessageKind::SequenceExample } else { MessageKind::Example };
    let mut seen = Inference::new(kind)?;
    let mut left_out = 0u64;
    for i in set.spread(RECORDS) {
        let added = set.with_record(i, |record, kind| match kind {
            MessageKind::Other => Ok(false),
            _ => seen.add(record.payload()).map(|()| true),
        });
        if !matches!(added, Ok(Ok(true))) {
            left_out += 1;
        }
    }
    let features: Vec<_> = seen
        .findings()
        .map(|found| {
            let kinds: Vec<_> = found.kinds.keys().map(|kind| kind.list_name()).collect();
            json!({
                "name": found.name,
                "list": found.list,
                "kinds": kinds,
                "present": found.present,
                "counts": found.counts.map(|(least, most)| [least, most]),
                "steps": found.steps.map(|(least, most)| [least, most]),
                "spec": found.spec().map(|spec| describe(&spec)),
                "conflict": found.conflict().map(|e| e.to_string()),
            })
        })
        .collect();
    // Without a record there is nothing to infer from.
    let schema = (seen.records() > 0).then(|| seen.schema_without_conflicts()).transpose()?;
    Ok(json!({
        "records": seen.records(),
        "left_out": left_out,
        "kind": kind_name(kind),
        "features": features,
        "python": schema.as_ref().map(schema_code::python),
        "json": schema.as_ref().map(Schema::to_json),
    }))
}

fn describe(spec: &FeatureSpec) -> String {
    match spec {
        FeatureSpec::FixedLen { shape, .. } | FeatureSpec::FixedLenSequence { shape, .. } => {
            format!("{} {shape:?}", spec.name())
        }
        _ => spec.name().to_owned(),
    }
}
