//! `tfseek convert`: TFRecords in other formats, and back.

use crate::args::{AccessArgs, CatArgs, ConvertArgs, GlobalArgs, IoMode, JobsArgs, PathsArgs, RestArgs};
use crate::bytes::Size;
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, Outcome};
use crate::text::count;
use crate::{dataset, outputs, progress, records};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use tfseek::error::printable;
use tfseek_convert::stream;
use tfseek_convert::{ConvertError, ConvertReport, ExportOptions, FileFormat, ImportOptions, export, import};
use tfseek_tools::outputs::OutputConflict;
use tfseek_tools::reshard::ShardCount;

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
    let mut skipped = SkippedErrors::default();
    let report =
        if is_export { to_other(args, &mut skipped, global, console)? } else { from_other(args, global)? };
    print(&report, args, global, console)?;
    skipped.report(console)?;
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
fn to_other(
    args: &ConvertArgs,
    skipped: &mut SkippedErrors,
    global: &GlobalArgs,
    console: &mut Console,
) -> Outcome<ConvertReport> {
    let (inputs, output) = args.paths()?;
    if is_json(output) {
        let table_options = [("--schema", args.schema.is_some()), ("--text", !args.text.is_empty())];
        if let Some((option, _)) = table_options.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format!("{option}: expected Parquet or Arrow as the output")));
        }
    }
    if !args.feature_lists.is_empty() {
        return Err(Failure::usage("--feature-lists: expected Parquet or Arrow as an input"));
    }
    if args.shard_size.is_some() {
        return Err(Failure::usage("--shard-size: expected TFRecords as the output"));
    }
    let resolved = tfseek::paths::resolve(inputs, args.allow_missing)?;
    check(args, &resolved)?;
    let paths = PathsArgs { paths: inputs.to_vec(), allow_missing: args.allow_missing };
    let dataset = dataset::open(&paths, &args.access, args.payload.read, global, console)?;
    let mut options = ExportOptions::new();
    options.kind = args.payload.kind.specified();
    options.features.clone_from(&args.features);
    options.proto_json = args.proto_json;
    options.force = args.force;
    options.schema = args.schema.as_deref().map(super::parse::schema).transpose()?;
    options.text.clone_from(&args.text);
    options.threads = threads(args.access.jobs)?;
    let mut records = dataset.len();
    // In JSON lines, a payload that is not of a guessed kind is a string of bytes.
    let decode = !is_json(output) || options.kind.is_some();
    let which = (args.select.condition.as_ref(), decode);
    options.records = dataset::subset(&dataset, which, args.payload, skipped, global, console)?;
    if let Some(selected) = &options.records {
        records = selected.len();
    }
    let bar = progress::records(global, "converting", records);
    let report = export(&dataset, output, &options, &|records| bar.inc(records));
    bar.finish_and_clear();
    report.map_err(failure)
}

/// Returns the number of threads that make rows, if it is given.
fn threads(jobs: JobsArgs) -> Outcome<Option<usize>> {
    Ok(if jobs.jobs == 0 { None } else { Some(tfseek::threads(jobs.jobs)?) })
}

/// Prints the records of `tfseek cat -f arrow` as an Arrow IPC stream.
pub(super) fn cat(args: &CatArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let unfit = [
        ("--skip", args.skip > 0),
        ("`-` (standard input)", args.paths.paths.iter().any(|path| path == Path::new(records::STDIN))),
    ];
    if let Some((found, _)) = unfit.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "-f arrow: expected files that are read by number, found {found}"
        )));
    }
    if std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "-f arrow: expected a file or a pipe as standard output, found a terminal",
        ));
    }
    let access = AccessArgs {
        io: IoMode::Map,
        index_dir: None,
        rest: RestArgs::default(),
        jobs: JobsArgs { jobs: 0 },
    };
    let payload = args.print.payload;
    let dataset = dataset::open(&args.paths, &access, payload.read, global, console)?;
    let mut options = ExportOptions::new();
    options.kind = payload.kind.specified();
    options.features.clone_from(&args.print.features);
    let mut skipped = SkippedErrors::default();
    let which = (args.select.condition.as_ref(), true);
    options.records = dataset::subset(&dataset, which, payload, &mut skipped, global, console)?;
    stream(&dataset, &options, console.out(), &|_| {}).map_err(failure)?;
    skipped.report(console)
}

/// Converts files of another format to TFRecords.
fn from_other(args: &ConvertArgs, global: &GlobalArgs) -> Outcome<ConvertReport> {
    let (inputs, output) = args.paths()?;
    let of_tfrecords = [
        ("--features", !args.features.is_empty()),
        ("--where", args.select.condition.is_some()),
        ("--text", !args.text.is_empty()),
    ];
    if let Some((option, _)) = of_tfrecords.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!("{option}: expected TFRecords as an input")));
    }
    let has_json = inputs.iter().any(|path| is_json(path));
    if args.schema.is_some() && !has_json {
        return Err(Failure::usage("--schema: expected JSON lines or TFRecords as an input"));
    }
    if !args.feature_lists.is_empty() && has_json {
        return Err(Failure::usage("--feature-lists: expected Parquet or Arrow as an input"));
    }
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
    options.force = args.force;
    options.shards = args.shard_size.map(ShardCount::Size);
    options.feature_lists.clone_from(&args.feature_lists);
    options.max_record = Some(args.payload.read.limit.max_record());
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
        ConvertError::Records(_) | ConvertError::Data { .. } => Failure::Message(DATA, e.to_string()),
        ConvertError::Sink(e) => Failure::Stdout(e),
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
            "shards": report.shards.iter().map(|shard| shard.to_string_lossy()).collect::<Vec<_>>(),
        });
        return console.print(format_args!("{line}\n"));
    }
    let size = Size { bytes: report.bytes, exact: global.bytes };
    let (path, records) = (printable(&report.path), count(report.records, "record"));
    let shards = match report.shards.len() {
        1 => String::new(),
        n => format!(" {},", count(n as u64, "shard")),
    };
    console.note(format_args!("{path}: {records},{shards} {size}"));
    Ok(())
}
