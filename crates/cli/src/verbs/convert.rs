//! `tfseek convert`: TFRecords in other formats, and back.

use crate::args::{ConvertArgs, GlobalArgs, PathsArgs};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::text::count;
use crate::{dataset, outputs, progress, records};
use serde_json::json;
use std::path::{Path, PathBuf};
use tfseek_convert::{ConvertError, ConvertReport, ExportOptions, FileFormat, ImportOptions, export, import};
use tfseek_tools::outputs::OutputConflict;

pub(crate) fn run(args: &ConvertArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let (inputs, output) = args.paths()?;
    if inputs.iter().any(|path| path == Path::new(records::STDIN)) {
        return Err(Failure::usage("expected files, found `-` (standard input)"));
    }
    outputs::check_name(output)?;
    let format = FileFormat::of_output(output).map_err(failure)?;
    let is_export = inputs.iter().all(|path| is_tfrecord(path));
    if is_export && matches!(format, FileFormat::TfRecord(_)) {
        let out = output.display();
        return Err(Failure::usage(format!(
            "{out}: expected TFRecords on one side only, found them on both (`tfseek reshard` writes them again)"
        )));
    }
    if args.proto_json && !is_json(output) && !inputs.iter().any(|path| is_json(path)) {
        return Err(Failure::usage("--proto-json: expected JSON lines, found none"));
    }
    let report = if is_export { to_other(args, global, console) } else { from_other(args, global) }?;
    print(&report, args, global, console)?;
    if args.select.condition.is_some() && report.records == 0 {
        return Err(Failure::Message(DATA, "no record meets the condition; the file has no records".into()));
    }
    Ok(())
}

/// Returns true for a path that is not named as a file of another format. TFRecords have any names.
fn is_tfrecord(path: &Path) -> bool {
    matches!(FileFormat::of(path), None | Some(FileFormat::TfRecord(_)))
}

fn is_json(path: &Path) -> bool {
    FileFormat::of(path) == Some(FileFormat::JsonLines)
}

/// Converts TFRecords to another format.
fn to_other(args: &ConvertArgs, global: &GlobalArgs, console: &mut Console) -> Outcome<ConvertReport> {
    let (inputs, output) = args.paths()?;
    if args.schema.is_some() && is_json(output) {
        return Err(Failure::usage("--schema: expected JSON lines as an input, found TFRecords"));
    }
    let resolved = tfseek::paths::resolve(inputs, args.allow_missing)?;
    check(args, &resolved)?;
    let paths = PathsArgs { paths: inputs.to_vec(), allow_missing: args.allow_missing };
    let dataset = dataset::open(&paths, &args.access, args.payload.limit, global, console)?;
    let mut options = ExportOptions::new();
    options.kind = args.payload.kind.specified();
    options.features.clone_from(&args.features);
    options.proto_json = args.proto_json;
    let mut records = dataset.len();
    if let Some(filter) = &args.select.condition {
        let selected = dataset::select(&dataset, filter, global, console)?;
        records = selected.count();
        options.records = Some((&selected).into());
    }
    let bar = progress::records(global, "converting", records);
    let report = export(&dataset, output, &options, &|records| bar.inc(records));
    bar.finish_and_clear();
    report.map_err(failure)
}

/// Converts files of another format to TFRecords.
fn from_other(args: &ConvertArgs, global: &GlobalArgs) -> Outcome<ConvertReport> {
    if !args.features.is_empty() || args.select.condition.is_some() {
        let option = if args.features.is_empty() { "--where" } else { "--features" };
        return Err(Failure::usage(format!("{option}: expected TFRecords as an input")));
    }
    let (inputs, output) = args.paths()?;
    if let Some(path) = inputs.iter().find(|path| is_tfrecord(path)) {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path}: expected the format of the other inputs, found TFRecord"
        )));
    }
    check(args, inputs)?;
    let mut options = ImportOptions::new();
    options.schema = args.schema.as_deref().map(super::parse::schema).transpose()?;
    options.proto_json = args.proto_json;
    options.max_record = Some(args.payload.limit.max_record());
    let bar = progress::bytes(global, "converting", progress::total_size(inputs));
    let report = import(inputs, output, &options, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    report.map_err(failure)
}

/// Checks the path of the output.
fn check(args: &ConvertArgs, inputs: &[PathBuf]) -> Outcome {
    let (_, out) = args.paths()?;
    let inputs = inputs.iter().chain(&args.schema).map(PathBuf::as_path);
    outputs::check_distinct([(out, out)], inputs)?;
    outputs::check_replace(out, args.force)
}

fn failure(e: ConvertError) -> Failure {
    match e {
        ConvertError::Error(e) => e.into(),
        ConvertError::Conflict(e @ OutputConflict::Exists { .. }) => {
            Failure::usage(format!("{e} (--force replaces it)"))
        }
        ConvertError::Json { .. } => {
            Failure::Message(DATA, format!("{e} (`--schema FILE` states the kinds of features)"))
        }
        e => Failure::usage(e.to_string()),
    }
}

fn print(report: &ConvertReport, args: &ConvertArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    if args.json {
        let line = json!({
            "path": report.path.to_string_lossy(),
            "format": report.format.to_string(),
            "records": report.records,
            "bytes": report.bytes,
        });
        return console.print(format_args!("{line}\n"));
    }
    let size = Size { bytes: report.bytes, exact: global.bytes };
    let (path, records) = (report.path.display(), count(report.records, "record"));
    console.note(format_args!("{path}: {records}, {size}"));
    Ok(())
}
