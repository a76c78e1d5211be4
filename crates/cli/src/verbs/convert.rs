//! `tfseek convert`: TFRecords in other formats, and back.

use crate::args::{AccessArgs, PathsArgs, PayloadArgs, WhereArgs};
#[cfg(feature = "tables")]
use crate::args::{IoMode, PrintArgs, ThreadsArgs};
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::{DATA, Failure, Outcome};
#[cfg(feature = "tables")]
use crate::split::{self, SplitPath};
#[cfg(feature = "tables")]
use crate::store;
use crate::text::{self, count};
use crate::{dataset, outputs, progress, records, warnings};
use clap::{Args, ValueEnum};
use serde_json::json;
#[cfg(feature = "tables")]
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
#[cfg(feature = "tables")]
use std::sync::Arc;
use tfseek::error::printable;
use tfseek_convert::{
    ConvertError, ConvertReport, ExportOptions, FileFormat, ImportInput, ImportOptions, export, import,
    import_stream,
};
#[cfg(feature = "tables")]
use tfseek_convert::{import_data_set, stream};
#[cfg(feature = "tables")]
use tfseek_tfds::{Features, SetMetadata, TfdsError};
use tfseek_tools::OutputConflict;
use tfseek_tools::encode::JsonForm;
use tfseek_tools::reshard::ShardCount;
use tfseek_tools::sizes;

/// The formats of `tfseek convert`.
pub(crate) const AFTER_CONVERT: &str = "\
The suffix of a name states its format: .parquet; .arrow and .feather (Arrow IPC file), .arrows (Arrow IPC stream); .jsonl and .ndjson (JSON \
lines). One side is TFRecord: files, folders, patterns and sets \
as IN, or a name such as train.tfrecord or train@8.tfrecord (also with .gz or .zz) as OUT. With --schema DIR, the tables train.parquet and \
test.parquet become the splits of a new folder OUT, or OUT@8. OUT gets its name when it is complete. `-` as IN is standard \
input, with JSON lines (or --bare); `-` as OUT is standard output, an uncompressed TFRecord stream, where the records before an error remain.";

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// IN.. OUT: TFRecord files, folders, patterns or sets, or files of another format, and last the file to
    /// write; `-`: standard input or output
    #[arg(required = true, value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// Schema file, as `tfseek schema --json` prints it: the columns of a table
    /// [default: of a folder with features.json those of TensorFlow Datasets, else one with which the rows are equal records again],
    /// or the kinds of the features of JSON lines as an input
    /// [default: those that the values of a file show]. Of tables as inputs: the folder of a data set of
    /// TensorFlow Datasets. OUT becomes such a folder, with its features
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) schema: Option<PathBuf>,
    /// Form of JSON lines; `auto`: as an input known from the first key of each record, as an output `json`;
    /// `plain`: `{"label": 1, "text": "abc"}`, as an input only; `json` and `proto-json`: as `tfseek cat`
    /// prints them, `proto-json` without a need for a schema
    #[arg(short, long, value_name = "FORM", default_value = "auto")]
    pub(crate) format: JsonFormChoice,
    /// IN has payloads that each follow their length as a varint, as `cat --bare` prints them and protobuf
    /// writes them
    #[arg(long, conflicts_with_all = ["schema", "format"])]
    pub(crate) bare: bool,
    /// Of TFRecords: only the features of these names: `label,image/*` (`*` and `?` are wildcards;
    /// repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    /// Of TFRecords: features that are text in UTF-8, and not binary, in Parquet and Arrow: `name,*_text`
    /// (repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) text: Vec<String>,
    /// Of Parquet and Arrow: columns that are feature lists of SequenceExamples
    /// [default: those that the metadata of a converted file name]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) feature_lists: Vec<String>,
    /// Treatment of float64 columns of Parquet and Arrow, whose numbers are stored as float32; `exact`: one
    /// that would change is an error, `round`: the nearest is stored
    #[arg(long, value_name = "MODE", default_value = "exact")]
    pub(crate) float64: Float64Choice,
    /// Of TFRecords as OUT: size of a shard before compression, for example 200MB. A number of shards is in
    /// the name: 'train@8.tfrecord'
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) shard_size: Option<u64>,
    /// Continue if shards of a set are missing
    #[arg(long)]
    pub(crate) allow_missing: bool,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JsonFormChoice {
    Auto,
    Plain,
    Json,
    ProtoJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Float64Choice {
    Exact,
    Round,
}

impl ConvertArgs {
    fn rounds(&self) -> bool {
        self.float64 == Float64Choice::Round
    }

    /// Returns the inputs and the output.
    pub(crate) fn paths(&self) -> Outcome<(&[PathBuf], &Path)> {
        match self.paths.split_last() {
            Some((output, inputs)) if !inputs.is_empty() => Ok((inputs, output)),
            _ => Err(Failure::usage("expected two or more paths, IN.. OUT, found one")),
        }
    }
}

pub(crate) fn run(args: &ConvertArgs, console: &mut Console) -> Outcome {
    let (inputs, output) = args.paths()?;
    let has_stdin = inputs.iter().any(|path| is_stdio(path));
    if has_stdin && inputs.len() > 1 {
        return Err(Failure::usage("expected one input with `-` (standard input), found several"));
    }
    if let Some(path) = inputs.iter().chain([&output.to_path_buf()]).find(|path| is_csv(path)) {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path}: CSV is no format of convert: a library of data frames reads and writes it, for example `tfseek.write(pandas.read_csv(IN), OUT)` in Python"
        )));
    }
    let is_export = !args.bare && !has_stdin && inputs.iter().all(|path| is_tfrecord(path));
    if is_stdio(output) {
        if is_export {
            return Err(Failure::usage(
                "`-` (standard output): expected another format than TFRecord as the input (`tfseek cat -f json` and `-f arrow` print records)",
            ));
        }
        return from_other(args, has_stdin, console);
    }
    outputs::check_name(output)?;
    #[cfg(feature = "tables")]
    if let Some(folder) = args.schema.as_deref().filter(|path| path.is_dir()) {
        return to_data_set(args, folder, console);
    }
    let format = FileFormat::of_output(output).map_err(failure)?;
    if is_export && matches!(format, FileFormat::TfRecord(_)) {
        let out = output.display();
        return Err(Failure::usage(format!(
            "{out}: expected TFRecords on one side only, found them on both (`tfseek reshard` writes them again)"
        )));
    }
    let has_json = has_stdin || is_json(output) || inputs.iter().any(|path| is_json(path));
    let has_form = args.format != JsonFormChoice::Auto;
    refuse(&[("--format", has_form && !has_json)], "expected JSON lines, found none")?;
    if !is_export {
        return from_other(args, has_stdin, console);
    }
    let mut skipped = SkippedErrors::default();
    let report = to_other(args, &mut skipped, console)?;
    print(&report, args, console)?;
    skipped.report(console)?;
    if args.select.condition.is_some() && report.records == 0 {
        return Err(Failure::Message(DATA, "no record meets the condition; the file has no records".into()));
    }
    Ok(())
}

/// Returns true for `-`, standard input or standard output.
fn is_stdio(path: &Path) -> bool {
    path == Path::new(records::STDIN)
}

/// Returns true for a path that is not named as a file of another format. TFRecords have any names.
fn is_tfrecord(path: &Path) -> bool {
    matches!(FileFormat::of(path), None | Some(FileFormat::TfRecord(_)))
}

fn is_csv(path: &Path) -> bool {
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    suffix.is_some_and(|suffix| ["csv", "tsv"].iter().any(|csv| suffix.eq_ignore_ascii_case(csv)))
}

fn is_json(path: &Path) -> bool {
    FileFormat::of(path) == Some(FileFormat::JsonLines)
}

/// Refuses the first of these options that is given.
fn refuse(options: &[(&str, bool)], reason: &str) -> Outcome {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::usage(format!("{option}: {reason}"))),
        None => Ok(()),
    }
}

/// Converts TFRecords to another format.
fn to_other(
    args: &ConvertArgs,
    skipped: &mut SkippedErrors,
    console: &mut Console,
) -> Outcome<ConvertReport> {
    let (inputs, output) = args.paths()?;
    if is_json(output) {
        let table_options = [("--schema", args.schema.is_some()), ("--text", !args.text.is_empty())];
        refuse(&table_options, "expected Parquet or Arrow as the output")?;
    }
    let is_plain = args.format == JsonFormChoice::Plain;
    refuse(&[("--format plain", is_plain)], "expected JSON lines as an input")?;
    let has_lists = !args.feature_lists.is_empty();
    refuse(&[("--feature-lists", has_lists)], "expected Parquet or Arrow as an input")?;
    refuse(&[("--shard-size", args.shard_size.is_some())], "expected TFRecords as the output")?;
    refuse(&[("--float64", args.rounds())], "expected Parquet or Arrow as an input")?;
    let resolved = dataset::files(inputs, args.allow_missing)?;
    check(args, &resolved)?;
    let paths = PathsArgs { paths: inputs.to_vec(), allow_missing: args.allow_missing };
    let dataset = dataset::open(&paths, &args.access, args.payload.read, console)?;
    let mut options = ExportOptions::default();
    options.kind = args.payload.kind.specified();
    options.features.clone_from(&args.features);
    options.proto_json = args.format == JsonFormChoice::ProtoJson;
    options.force = args.force;
    options.schema = args.schema.as_deref().map(super::parse::schema).transpose()?;
    options.text.clone_from(&args.text);
    options.threads = args.access.threads.threads;
    #[cfg(feature = "tables")]
    if !is_json(output) && options.schema.is_none() {
        options.data_set = data_set(inputs, console)?;
    }
    // In JSON lines, a payload that is not of a guessed kind is a string of bytes.
    let decode = !is_json(output) || options.kind.is_some();
    let which = (args.select.condition.as_ref(), decode);
    options.records = dataset::subset(&dataset, which, args.payload, skipped, console)?;
    let records = options.records.as_ref().map_or(dataset.len(), |selected| selected.len());
    let bar = progress::records(console, "converting", records);
    let report = export(&dataset, output, &options, &|records| bar.inc(records));
    progress::end(&bar, report.is_ok());
    report.map_err(failure)
}

/// Returns the features of the only input, if it is the folder of a data set of TensorFlow Datasets, or a
/// split of one.
#[cfg(feature = "tables")]
fn data_set(inputs: &[PathBuf], console: &mut Console) -> Outcome<Option<Arc<Features>>> {
    let [input] = inputs else { return Ok(None) };
    let version = SplitPath::parse(input).map(SplitPath::version_folder).transpose()?;
    let folder = version.as_deref().unwrap_or(input);
    if store::size(&store::entry(folder, "features.json")).is_none() {
        return Ok(None);
    }
    let reason = "the columns are those of features.json, unless --schema or the files are named";
    let located = |e| Failure::Message(DATA, format!("{e} ({reason})"));
    features(folder, console).map_err(located).map(Some)
}

/// Reads the features of a data set, and prints the warnings about them.
#[cfg(feature = "tables")]
fn features(folder: &Path, console: &mut Console) -> Result<Arc<Features>, TfdsError> {
    let (features, warnings) = Features::read(folder, store::store().as_ref())?;
    warnings.iter().for_each(|warning| console.note(format_args!("tfseek: {warning}")));
    Ok(Arc::new(features))
}

/// Converts tables to a data set of TensorFlow Datasets.
#[cfg(feature = "tables")]
fn to_data_set(args: &ConvertArgs, folder: &Path, console: &mut Console) -> Outcome {
    let (inputs, output) = args.paths()?;
    inputs.iter().try_for_each(|path| text::check_local(path))?;
    let unfit = [
        ("--format", args.format != JsonFormChoice::Auto),
        ("--features", !args.features.is_empty()),
        ("--where", args.select.condition.is_some()),
        ("--text", !args.text.is_empty()),
        ("--feature-lists", !args.feature_lists.is_empty()),
    ];
    refuse(&unfit, "expected --schema FILE, found the folder of a data set")?;
    let mut options = ImportOptions::default();
    options.force = args.force;
    options.shards = args.shard_size.map(ShardCount::Size);
    options.round_float64 = args.rounds();
    let metadata = SetMetadata::find(folder, None).map_err(split::failure)?;
    let features = features(metadata.folder(), console).map_err(split::failure)?;
    let bar = progress::bytes(console, "converting", progress::total_size(inputs));
    let sets = import_data_set(inputs, output, (metadata, &features), &options, &|bytes| bar.inc(bytes));
    progress::end(&bar, sets.is_ok());
    super::reshard::print_sets(&sets.map_err(failure)?, args.json, console)
}

#[cfg(feature = "tables")]
/// Prints the records of `tfseek cat -f arrow` as an Arrow IPC stream.
pub(super) fn cat(
    paths: &PathsArgs,
    (print, select): (&PrintArgs, &WhereArgs),
    skip: u64,
    console: &mut Console,
) -> Outcome {
    let unfit = [
        ("--skip", skip > 0),
        ("`-` (standard input)", paths.paths.iter().any(|path| path == Path::new(records::STDIN))),
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
    let access = AccessArgs { io: IoMode::Map, index_dir: None, threads: ThreadsArgs::default() };
    let payload = print.payload;
    let dataset = dataset::open(paths, &access, payload.read, console)?;
    let mut options = ExportOptions::default();
    options.kind = payload.kind.specified();
    options.features.clone_from(&print.features);
    let mut skipped = SkippedErrors::default();
    let which = (select.condition.as_ref(), true);
    options.records = dataset::subset(&dataset, which, payload, &mut skipped, console)?;
    let report = stream(&dataset, &options, console.out(), &|_| {}).map_err(failure)?;
    note_losses(&report, console);
    skipped.report(console)
}

/// Converts inputs of another format to TFRecords.
fn from_other(args: &ConvertArgs, has_stdin: bool, console: &mut Console) -> Outcome {
    let (inputs, output) = args.paths()?;
    let of_tfrecords = [
        ("--features", !args.features.is_empty()),
        ("--where", args.select.condition.is_some()),
        ("--text", !args.text.is_empty()),
    ];
    refuse(&of_tfrecords, "expected TFRecords as an input")?;
    inputs.iter().try_for_each(|path| text::check_local(path))?;
    let has_json = !args.bare && (has_stdin || inputs.iter().any(|path| is_json(path)));
    let has_schema = args.schema.is_some();
    refuse(&[("--schema", has_schema && !has_json)], "expected JSON lines or TFRecords as an input")?;
    if has_json || args.bare {
        let of_tables = [("--feature-lists", !args.feature_lists.is_empty()), ("--float64", args.rounds())];
        refuse(&of_tables, "expected Parquet or Arrow as an input")?;
    }
    if let Some(path) = inputs.iter().find(|path| !args.bare && !is_stdio(path) && is_tfrecord(path)) {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path}: expected the format of the other inputs, found TFRecord"
        )));
    }
    let mut options = ImportOptions::default();
    options.schema = args.schema.as_deref().map(super::parse::schema).transpose()?;
    options.format = args.bare.then_some(FileFormat::Bare);
    options.form = match args.format {
        JsonFormChoice::Auto => JsonForm::Auto,
        JsonFormChoice::Plain => JsonForm::Plain,
        JsonFormChoice::Json => JsonForm::Json,
        JsonFormChoice::ProtoJson => JsonForm::ProtoJson,
    };
    options.force = args.force;
    options.shards = args.shard_size.map(ShardCount::Size);
    options.feature_lists.clone_from(&args.feature_lists);
    options.round_float64 = args.rounds();
    options.max_record = Some(args.payload.read.limit.max_record());
    if !is_stdio(output) {
        check(args, if has_stdin { &[] } else { inputs })?;
    }
    let (bar, inputs) = if has_stdin {
        let name = records::name(Path::new(records::STDIN));
        let bytes: Box<dyn std::io::Read> = Box::new(std::io::stdin().lock());
        (progress::bytes(console, "converting", None), vec![ImportInput::Stream { name, bytes }])
    } else {
        let bar = progress::bytes(console, "converting", progress::total_size(inputs));
        (bar, inputs.iter().cloned().map(ImportInput::from).collect())
    };
    if is_stdio(output) {
        let done = import_stream(inputs, console.out(), &options, &|bytes| bar.inc(bytes));
        progress::end(&bar, done.is_ok());
        return done.map_err(failure);
    }
    let report = import(inputs, output, &options, &|bytes| bar.inc(bytes));
    progress::end(&bar, report.is_ok());
    print(&report.map_err(failure)?, args, console)
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
        #[cfg(feature = "tables")]
        ConvertError::DataSet(e) => split::failure(e),
        ConvertError::Conflict(e @ OutputConflict::Exists { .. }) => {
            Failure::usage(format!("{e} (--force replaces it)"))
        }
        ConvertError::Records(_) | ConvertError::Data { .. } => Failure::Message(DATA, e.to_string()),
        ConvertError::Inexact { .. } => {
            Failure::Message(DATA, format!("{e} (`--float64 round` stores the nearest float32)"))
        }
        ConvertError::Sink(e) => Failure::Stdout(e),
        ConvertError::Json { .. } => {
            let text = e.to_string();
            let hint = if text.contains("a schema") {
                " (`--schema FILE` states the kinds of features)"
            } else {
                ""
            };
            Failure::Message(DATA, text + hint)
        }
        e => Failure::usage(e.to_string()),
    }
}

fn print(report: &ConvertReport, args: &ConvertArgs, console: &mut Console) -> Outcome {
    if args.json {
        warnings::print(&report.warnings, console);
        let line = json!({
            "path": report.path.to_string_lossy(),
            "format": report.format.to_string(),
            "records": report.records,
            "bytes": report.bytes,
            "kindless": report.kindless,
            "kindless_names": report.kindless_names,
            "shards": report.shards.iter().map(|shard| shard.to_string_lossy()).collect::<Vec<_>>(),
        });
        return console.print(format_args!("{line}\n"));
    }
    let size = console.size(report.bytes);
    let path = printable(&report.path);
    let records = count(report.records, "record");
    let shards = match report.shards.len() {
        1 => String::new(),
        n => format!(" {},", count(n as u64, "shard")),
    };
    console.note(format_args!("{path}: {records},{shards} {size}"));
    note_losses(report, console);
    Ok(())
}

/// Number of features without a kind that are named.
const NAMED: usize = 8;

/// Prints what a table lacks of its records.
fn note_losses(report: &ConvertReport, console: &mut Console) {
    warnings::print(&report.warnings, console);
    if report.kindless > 0 {
        let features = count(report.kindless, "feature");
        let names: Vec<_> =
            report.kindless_names.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
        let more = if report.kindless_names.len() > NAMED { ", .." } else { "" };
        let names = names.join(", ");
        let path = if is_stdio(&report.path) {
            "standard output".into()
        } else {
            printable(&report.path).to_string()
        };
        console.note(format_args!(
            "tfseek: {path}: {features} or steps without a kind ({names}{more}) are null or empty there, and absent on the way back"
        ));
    }
}
