//! Warnings as messages and as JSON.

use crate::console::Console;
use serde_json::{Value, json};
use tfseek::Warning;
use tfseek::column::DatasetColumn;

/// Prints warnings as messages.
pub(crate) fn print(warnings: &[Warning], console: &mut Console) {
    for warning in warnings {
        console.note(format_args!("tfseek: {warning}"));
    }
}

/// Prints the warnings of columns that were requested together, which share them.
pub(crate) fn print_of_columns(columns: &[DatasetColumn], console: &mut Console) {
    print(columns.first().map(DatasetColumn::warnings).unwrap_or_default(), console);
}

/// Returns warnings as JSON objects, for `--json`.
pub(crate) fn as_json<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Value {
    let object = |warning: &Warning| {
        json!({
            "kind": warning.kind(),
            "path": warning.path().map(|path| path.to_string_lossy()),
            "message": warning.to_string(),
        })
    };
    warnings.into_iter().map(object).collect()
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
