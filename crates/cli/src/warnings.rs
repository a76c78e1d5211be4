//! Warnings as messages and as JSON.

use crate::bytes::Key;
use crate::console::Console;
use crate::exit::{DATA, Failure};
use crate::kept::{OF_STREAMS, WarningList};
use crate::text::count;
use serde_json::{Value, json};
use tfseek::column::DatasetColumn;
use tfseek::schema::Inference;
use tfseek::{Gap, Warning};

/// Largest number of features without a kind that a message names.
const MAX_NAMED: usize = 20;

/// The warnings that were printed in this run.
static PRINTED: WarningList = WarningList::new();

/// Prints the warnings of streams, at the end of a run.
pub(crate) fn print_kept(console: &mut Console) {
    print(&OF_STREAMS.take(), console);
    PRINTED.take();
}

/// Prints warnings as messages, each once in a run. The exit status is 1 if damage was left out; that message
/// is printed by a quiet run too.
pub(crate) fn print(warnings: &[Warning], console: &mut Console) {
    for warning in warnings.iter().filter(|warning| PRINTED.add(warning)) {
        match warning {
            Warning::DamageSkipped { .. } | Warning::PayloadsSkipped { .. } => {
                console.report(&Failure::Message(DATA, warning.to_string()));
            }
            _ => console.note(format_args!("tfseek: {warning}")),
        }
    }
}

/// Prints the warnings of columns that were requested together, which share them.
pub(crate) fn print_of_columns(columns: &[DatasetColumn], console: &mut Console) {
    print(columns.first().map_or(&[], |column| &*column.warnings), console);
}

/// Returns the warnings that were printed in this run as JSON objects, for `--json`.
pub(crate) fn printed_json() -> Value {
    as_json(&PRINTED.all())
}

/// Returns warnings as JSON objects, for `--json`.
pub(crate) fn as_json<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Value {
    warnings.into_iter().map(object).collect()
}

/// Returns a warning as a JSON object: `kind`, `path`, `message`, and the fields of its kind.
pub fn warning_json(warning: &Warning) -> String {
    object(warning).to_string()
}

/// Returns the features that no record has with a kind, which a schema leaves out, as a JSON object like the
/// one from [`warning_json`]. `None` without such features.
pub fn kindless_json(seen: &Inference) -> Option<String> {
    let (message, names) = kindless(seen)?;
    Some(json!({ "kind": "features_left_out", "message": message, "found": names }).to_string())
}

/// Returns the message about these features, and their names.
pub(crate) fn kindless(seen: &Inference) -> Option<(String, Vec<&str>)> {
    let names: Vec<_> =
        seen.findings().filter(|found| found.kinds.is_empty()).map(|found| found.name).collect();
    if names.is_empty() {
        return None;
    }
    let features = count(names.len() as u64, "feature");
    let records = count(seen.records(), "record");
    let more = if names.len() > MAX_NAMED { ", .." } else { "" };
    let named = names.iter().take(MAX_NAMED).map(|name| Key(name).to_string()).collect::<Vec<_>>().join(", ");
    Some((format!("left out: {features} without a kind in {records}: {named}{more}"), names))
}

fn object(warning: &Warning) -> Value {
    let mut fields = json!({
        "kind": warning.kind(),
        "path": warning.path().map(|path| path.to_string_lossy()),
        "message": warning.to_string(),
    });
    let own = match warning {
        Warning::DamageSkipped { gaps, bytes, records, .. } => json!({
            "gaps": gaps.iter().map(gap).collect::<Value>(),
            "bytes": bytes,
            "records": records,
        }),
        Warning::PayloadsSkipped { skipped, first, .. } => json!({ "skipped": skipped, "first": first }),
        Warning::TornTail { records, offset, bytes, inflated_bytes, .. } => json!({
            "records": records,
            "offset": offset,
            "bytes": bytes,
            "inflated_bytes": inflated_bytes,
        }),
        Warning::FileRefused { reason, .. } => json!({ "reason": reason }),
        Warning::NotSaved { shards, reason, .. } => json!({ "shards": shards, "reason": reason }),
        Warning::OtherNames { found, .. } => {
            json!({ "found": found.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>() })
        }
        Warning::LongBlocks { shards, bytes, .. } => json!({ "shards": shards, "bytes": bytes }),
        Warning::ScatteredReads { record_bytes, dataset_bytes, memory_bytes } => json!({
            "record_bytes": record_bytes,
            "dataset_bytes": dataset_bytes,
            "memory_bytes": memory_bytes,
        }),
        Warning::ScatteredRequests { record_bytes, records } => {
            json!({ "record_bytes": record_bytes, "records": records })
        }
        Warning::BlockStarts { block_bytes, start_bytes, enough_bytes } => json!({
            "block_bytes": block_bytes,
            "start_bytes": start_bytes,
            "enough_bytes": enough_bytes,
        }),
        Warning::ScatteredInflation { inflated_bytes } => json!({ "inflated_bytes": inflated_bytes }),
        Warning::UnknownFeature { feature, nearest } => json!({ "feature": feature, "nearest": nearest }),
        Warning::AbsentFeature { feature, .. } => json!({ "feature": feature }),
        _ => json!({}),
    };
    if let (Value::Object(fields), Value::Object(mut own)) = (&mut fields, own) {
        fields.append(&mut own);
    }
    fields
}

/// Returns a gap as a JSON object.
pub(crate) fn gap(gap: &Gap) -> Value {
    json!({ "start": gap.start, "end": gap.end, "records": gap.records, "compressed": gap.compressed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_has_fields() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tfrecord");
        std::fs::write(&path, b"").unwrap();
        std::fs::create_dir(dir.path().join(".tfseek")).unwrap();
        std::fs::write(dir.path().join(".tfseek/a.tfrecord.tfri"), b"no index").unwrap();
        let options = tfseek::DatasetOptions::new()
            .index(tfseek::index::IndexOptions::new().index_dir(dir.path().join("i")));
        let dataset = options.open(&path).unwrap();
        let Value::Array(warnings) = as_json(dataset.warnings()) else { panic!() };
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!(warning["kind"], "file_refused");
        assert!(warning["path"].as_str().unwrap().ends_with("a.tfrecord.tfri"), "{warning}");
        assert!(warning["message"].as_str().unwrap().contains("file is not used"), "{warning}");
    }
}
