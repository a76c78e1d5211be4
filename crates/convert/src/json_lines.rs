//! JSON lines: one object per record and line.

use crate::error::ConvertError;
use crate::input::{Import, ImportInput};
use crate::options::{ExportOptions, ImportOptions};
use crate::out::{self, Written};
use crate::records::SelectedRecords;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tfseek::Error;
use tfseek_tools::damage::MAX_RECORD;
use tfseek_tools::encode::{FeatureKinds, JsonForm, JsonRecords, ObservedKinds};
use tfseek_tools::proto_json::ProtoJson;
use tfseek_tools::record_json::RecordJson;
use tfseek_tools::{Content, FeatureSelection};

/// Writes records as JSON lines.
pub(crate) fn export(
    records: SelectedRecords<'_>,
    out: &Path,
    options: &ExportOptions,
    progress: &dyn Fn(u64),
) -> Result<Written, ConvertError> {
    let mut file = out::buffered(out, options.force)?;
    let has_many_files = records.ds.shards().len() > 1;
    let mut selection = FeatureSelection::new(&options.features);
    let mut written = 0;
    records.for_each(|i, record, kind| {
        let payload = record.payload();
        let at = record.at();
        let mut content = Content::of_record(record, kind, records.kind.is_some())?;
        if !options.features.is_empty() {
            selection.select(&mut content);
        }
        let line = if options.proto_json {
            serde_json::to_writer(&mut file, &ProtoJson { payload, content: &content })
        } else {
            let file_name = at.path.filter(|_| has_many_files);
            let line = RecordJson {
                file: file_name,
                index: Some(i),
                record: at.record,
                step: None,
                payload,
                content: &content,
            };
            serde_json::to_writer(&mut file, &line)
        };
        let line = line.map_err(std::io::Error::from).and_then(|()| file.write_all(b"\n"));
        line.map_err(|e| Error::from(e).in_file(out))?;
        written += 1;
        progress(1);
        Ok(())
    })?;
    if let Some((pattern, near)) = selection.unmatched().next() {
        return Err(ConvertError::no_feature(pattern, near));
    }
    out::commit_buffered(out, file, written)
}

/// Writes the records of JSON lines.
pub(crate) fn import(inputs: Vec<ImportInput>, import: &mut Import<'_>) -> Result<(), ConvertError> {
    let options = import.options;
    let kinds = kinds(&inputs, options)?;
    let max_record = options.max_record.unwrap_or(MAX_RECORD);
    let mut payload = Vec::new();
    for input in inputs {
        let path = input.path().to_path_buf();
        let mut reader = JsonRecords::new(input.open()?, kinds.clone(), options.form, max_record);
        let mut reported = 0;
        while reader.next(&mut payload).map_err(|e| ConvertError::json(&path, e))? {
            import.target.write(&payload)?;
            (import.progress)(reader.offset() - reported);
            reported = reader.offset();
        }
    }
    Ok(())
}

/// Returns the kinds of the features: the schema's kinds, or the kinds that the values of files show, which
/// are read for it. `None` if only records in protobuf's JSON mapping can be read. Kinds guessed from the
/// first thousand lines could be wrong for a later one.
fn kinds(inputs: &[ImportInput], options: &ImportOptions) -> Result<Option<FeatureKinds>, ConvertError> {
    if let Some(schema) = &options.schema {
        return Ok(Some(FeatureKinds::of(schema)));
    }
    let form = options.form;
    let max_record = options.max_record.unwrap_or(MAX_RECORD);
    if form == JsonForm::ProtoJson {
        return Ok(None);
    }
    if let Some(once) = inputs.iter().find(|input| !input.can_be_read_again()) {
        if form == JsonForm::Auto {
            return Ok(None);
        }
        let reason = "expected a schema, or a file, which is read twice, found neither";
        return Err(ConvertError::refused(once.path(), reason));
    }
    let mut seen = ObservedKinds::default();
    let mut last = Path::new("");
    for input in inputs {
        last = input.path();
        let file = File::open(last).map_err(|e| ConvertError::io(last, e))?;
        let mut reader = JsonRecords::new(file, None, form, max_record);
        while reader.observe(&mut seen).map_err(|e| ConvertError::json(last, e))? {}
    }
    Ok(Some(seen.kinds().map_err(|e| ConvertError::json(last, e))?))
}
