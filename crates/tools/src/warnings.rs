//! The fields of warnings, of which the command makes JSON and the Python package its `Warning`.

use crate::infer::Inference;
use crate::words::{Key, count};
use tfseek::{Gap, Warning};

/// Largest number of features without a kind that a message names.
const MAX_NAMED: usize = 20;

/// The value of a field of a warning.
pub enum Field<'w> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'w str),
    /// A list of texts.
    Texts(Vec<String>),
    /// Ranges without a sound record.
    Gaps(&'w [Gap]),
}

/// Returns the fields of a warning's kind with their names. `kind`, `path` and the message are not among them.
pub fn fields(warning: &Warning) -> Vec<(&'static str, Field<'_>)> {
    use Field::{Gaps, Number, Text, Texts};
    match warning {
        Warning::DamageSkipped { gaps, bytes, records, .. } => {
            vec![("gaps", Gaps(gaps)), ("bytes", Number(*bytes)), ("records", Number(*records))]
        }
        Warning::PayloadsSkipped { skipped, first, .. } => {
            vec![("skipped", Number(*skipped)), ("first", Text(first))]
        }
        Warning::TornTail { records, offset, bytes, inflated_bytes, .. } => vec![
            ("records", Number(*records)),
            ("offset", Number(*offset)),
            ("bytes", Number(*bytes)),
            ("inflated_bytes", Number(*inflated_bytes)),
        ],
        Warning::FileRefused { reason, .. } => vec![("reason", Text(reason))],
        Warning::NotSaved { shards, reason, .. } => {
            vec![("shards", Number(*shards as u64)), ("reason", Text(reason))]
        }
        Warning::OtherNames { found, .. } => {
            let found = found.iter().map(|path| path.to_string_lossy().into_owned());
            vec![("found", Texts(found.collect()))]
        }
        Warning::LongBlocks { shards, bytes, .. } => {
            vec![("shards", Number(*shards as u64)), ("bytes", Number(*bytes))]
        }
        Warning::ScatteredReads { record_bytes, dataset_bytes, memory_bytes } => vec![
            ("record_bytes", Number(*record_bytes)),
            ("dataset_bytes", Number(*dataset_bytes)),
            ("memory_bytes", Number(*memory_bytes)),
        ],
        Warning::ScatteredRequests { record_bytes, records } => {
            vec![("record_bytes", Number(*record_bytes)), ("records", Number(*records))]
        }
        Warning::BlockStarts { block_bytes, start_bytes, enough_bytes } => vec![
            ("block_bytes", Number(*block_bytes)),
            ("start_bytes", Number(*start_bytes)),
            ("enough_bytes", Number(*enough_bytes)),
        ],
        Warning::ScatteredInflation { inflated_bytes } => vec![("inflated_bytes", Number(*inflated_bytes))],
        Warning::UnknownFeature { feature, nearest } => {
            vec![("feature", Text(feature)), ("nearest", Text(nearest))]
        }
        Warning::AbsentFeature { feature, .. } => vec![("feature", Text(feature))],
        _ => Vec::new(),
    }
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
