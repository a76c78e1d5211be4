//! JSON lines: one object per record and line.

use crate::error::ConvertError;
use crate::options::{ExportOptions, ImportOptions};
use crate::out::{self, Written};
use crate::records::SelectedRecords;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tfseek::Error;
use tfseek_tools::encode::{FeatureKinds, JsonForm, JsonRecords, ObservedKinds};
use tfseek_tools::proto_json::ProtoJson;
use tfseek_tools::record_json::RecordJson;
use tfseek_tools::salvage::MAX_RECORD;
use tfseek_tools::set::SetWriter;
use tfseek_tools::{Content, Map};

/// Writes records as JSON lines.
pub(crate) fn export(
    records: SelectedRecords<'_>,
    out: &Path,
    options: &ExportOptions,
    progress: &dyn Fn(u64),
) -> Result<Written, ConvertError> {
    let mut file = out::buffered(out, options.force)?;
    let has_many_files = records.ds.shards().len() > 1;
    let mut missing: BTreeSet<&str> = options.features.iter().map(String::as_str).collect();
    let mut written = 0;
    records.for_each(|i, record, kind| {
        let (payload, at) = (record.payload(), record.at());
        let mut content = Content::of_record(record, kind, records.kind.is_some())?;
        if !options.features.is_empty() {
            select(&mut content, options, &mut missing);
        }
        let line = if options.proto_json {
            serde_json::to_writer(&mut file, &ProtoJson { payload, content: &content })
        } else {
            let file_name = at.path.filter(|_| has_many_files);
            let line =
                RecordJson { file: file_name, index: Some(i), record: at.record, payload, content: &content };
            serde_json::to_writer(&mut file, &line)
        };
        let line = line.map_err(std::io::Error::from).and_then(|()| file.write_all(b"\n"));
        line.map_err(|e| Error::from(e).in_file(out))?;
        written += 1;
        progress(1);
        Ok(())
    })?;
    if let Some(pattern) = missing.first().filter(|_| written > 0) {
        return Err(ConvertError::Options(format!("expected a feature that matches {pattern}, found none")));
    }
    out::commit_buffered(out, file, written)
}

/// Removes the other features of a record, and from `missing` the patterns that one of its features matches.
fn select<'o>(content: &mut Content<'_>, options: &'o ExportOptions, missing: &mut BTreeSet<&'o str>) {
    fn keep<V>(map: &mut Map<'_, V>, options: &ExportOptions, missing: &mut BTreeSet<&str>) {
        if !missing.is_empty() {
            let is_found =
                |pattern: &str| map.keys().any(|name| tfseek_tools::wildcards::matches(pattern, name));
            missing.retain(|pattern| !is_found(pattern));
        }
        map.retain(|name, _| options.has_feature(name));
    }
    match content {
        Content::Example(features) => keep(features, options, missing),
        Content::Sequence(context, lists) => {
            keep(context, options, missing);
            keep(lists, options, missing);
        }
        Content::Raw => *content = Content::Example(Map::new()),
    }
}

/// Writes the records of JSON files.
pub(crate) fn import(
    inputs: &[PathBuf],
    writer: &mut SetWriter,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<(), ConvertError> {
    let form = if options.proto_json { JsonForm::ProtoJson } else { JsonForm::Auto };
    let max_record = options.max_record.unwrap_or(MAX_RECORD);
    let open = |path: &Path, kinds| {
        let file = File::open(path).map_err(|e| ConvertError::io(path, e))?;
        Ok::<_, ConvertError>(JsonRecords::new(file, kinds, form, max_record))
    };
    let kinds = match &options.schema {
        Some(schema) => Some(FeatureKinds::of(schema)),
        None if options.proto_json => None,
        None => {
            let mut seen = ObservedKinds::default();
            let mut last = Path::new("");
            for path in inputs {
                last = path;
                if !path.is_file() {
                    let reason = "expected a file, which is read twice, or a schema, found no regular file";
                    return Err(ConvertError::Options(format!("{}: {reason}", path.display())));
                }
                let mut reader = open(path, None)?;
                while reader.observe(&mut seen).map_err(|e| ConvertError::json(path, e))? {}
            }
            Some(seen.kinds().map_err(|e| ConvertError::json(last, e))?)
        }
    };
    let mut payload = Vec::new();
    for path in inputs {
        let mut reader = open(path, kinds.clone())?;
        let mut reported = 0;
        while reader.next(&mut payload).map_err(|e| ConvertError::json(path, e))? {
            writer.write(&payload)?;
            progress(reader.offset().saturating_sub(reported));
            reported = reader.offset();
        }
    }
    Ok(())
}
