//! The fields of warnings, of which the command makes JSON and the Python package its `Warning`.

use crate::infer::Inference;
use crate::value::ReportValue;
use crate::words::{Key, count};
use tfseek::{Gap, Warning};

/// Largest number of features without a kind that a message names.
const MAX_NAMED: usize = 20;

/// Returns the fields of a warning's kind with their names. `kind`, `path` and the message are not among them.
pub fn fields<'w>(warning: &'w Warning) -> Vec<(&'static str, ReportValue<'w>)> {
    let number = |n: &u64| ReportValue::from(*n);
    let text = |text: &'w str| ReportValue::from(text);
    match warning {
        Warning::DamageSkipped { gaps, bytes, records, .. } => {
            vec![
                ("gaps", gaps.iter().map(gap).collect()),
                ("bytes", number(bytes)),
                ("records", number(records)),
            ]
        }
        Warning::PayloadsSkipped { skipped, first, .. } => {
            vec![("skipped", number(skipped)), ("first", text(first))]
        }
        Warning::TornTail { records, offset, bytes, inflated_bytes, .. } => vec![
            ("records", number(records)),
            ("offset", number(offset)),
            ("bytes", number(bytes)),
            ("inflated_bytes", number(inflated_bytes)),
        ],
        Warning::FileRefused { reason, .. } => vec![("reason", text(reason))],
        Warning::NotSaved { shards, reason, .. } => {
            vec![("shards", (*shards as u64).into()), ("reason", text(reason))]
        }
        Warning::OtherNames { found, .. } => {
            let found = found.iter().map(|path| path.to_string_lossy().into_owned());
            vec![("found", found.collect())]
        }
        Warning::LongBlocks { shards, bytes, .. } => {
            vec![("shards", (*shards as u64).into()), ("bytes", number(bytes))]
        }
        Warning::ScatteredReads { record_bytes, dataset_bytes, memory_bytes } => vec![
            ("record_bytes", number(record_bytes)),
            ("dataset_bytes", number(dataset_bytes)),
            ("memory_bytes", number(memory_bytes)),
        ],
        Warning::ScatteredRequests { record_bytes, records } => {
            vec![("record_bytes", number(record_bytes)), ("records", number(records))]
        }
        Warning::BlockStarts { block_bytes, start_bytes, enough_bytes } => vec![
            ("block_bytes", number(block_bytes)),
            ("start_bytes", number(start_bytes)),
            ("enough_bytes", number(enough_bytes)),
        ],
        Warning::ScatteredInflation { inflated_bytes } => vec![("inflated_bytes", number(inflated_bytes))],
        Warning::UnknownFeature { feature, nearest } => {
            vec![("feature", text(feature)), ("nearest", text(nearest))]
        }
        Warning::AbsentFeature { feature, .. } => vec![("feature", text(feature))],
        _ => Vec::new(),
    }
}

fn gap(gap: &Gap) -> ReportValue<'static> {
    ReportValue::Fields(vec![
        ("start", gap.start.into()),
        ("end", gap.end.into()),
        ("records", gap.records.into()),
        ("compressed", gap.compressed.into()),
    ])
}

/// Returns the message about the features that no record has with a kind, which a schema leaves out, and
/// their names. `None` without such features.
pub fn kindless(seen: &Inference) -> Option<(String, Vec<&str>)> {
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
