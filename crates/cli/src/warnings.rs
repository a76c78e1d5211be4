//! Warnings as messages and as JSON.

use crate::console::Console;
use crate::exit::{DATA, Failure};
use crate::kept::{OF_STREAMS, WarningList};
use serde_json::{Value, json};
use tfseek::column::DatasetColumn;
use tfseek::{Gap, Warning};
use tfseek_tools::warnings::fields;

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
fn object(warning: &Warning) -> Value {
    let path = warning.path().map(|path| path.to_string_lossy());
    let common =
        [("kind", json!(warning.kind())), ("path", json!(path)), ("message", json!(warning.to_string()))];
    let own = fields(warning).into_iter().map(|(name, value)| (name, json!(value)));
    common.into_iter().chain(own).collect()
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
