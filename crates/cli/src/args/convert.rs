//! Arguments of `tfseek convert`.

use super::{AccessArgs, PayloadArgs, WhereArgs};
use crate::exit::{Failure, Outcome};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use tfseek_tools::sizes;

/// The formats of `tfseek convert`.
pub(crate) const AFTER_CONVERT: &str = "\
The suffix of a name states its format: .parquet; .arrow and .feather (Arrow IPC file), .arrows (Arrow IPC stream); .jsonl and .ndjson (JSON \
lines). One side is TFRecord: files, folders, patterns and sets \
as IN, or a name such as train.tfrecord or train@8.tfrecord (also with .gz or .zz) as OUT. OUT gets its name when it is complete. `-` as IN is standard \
input, with JSON lines (or --bare); `-` as OUT is standard output, an uncompressed TFRecord stream, where the records before an error remain.";

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// IN.. OUT: TFRecord files, folders, patterns or sets, or files of another format, and last the file to write; `-`: standard input or output
    #[arg(required = true, value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// Schema file, as `tfseek schema --json` prints it: the columns of a table [default: one with which the rows are equal records again],
    /// or the kinds of the features of JSON lines as an input [default: those that the values of a file show]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Form of JSON lines; `auto`: as an input known from the first key of each record, as an output `json`; `plain`: `{"label": 1, "text":
    /// "abc"}`, as an input only; `json` and `proto-json`: as `tfseek cat` prints them, `proto-json` without a need for a schema
    #[arg(short, long, value_name = "FORM", default_value = "auto")]
    pub(crate) format: JsonFormChoice,
    /// IN has payloads that each follow their length as a varint, as `cat --bare` prints them and protobuf writes them
    #[arg(long, conflicts_with_all = ["schema", "format"])]
    pub(crate) bare: bool,
    /// Of TFRecords: only the features of these names: `label,image/*` (`*` and `?` are wildcards; repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    /// Of TFRecords: features that are text in UTF-8, and not binary, in Parquet and Arrow: `name,*_text` (repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) text: Vec<String>,
    /// Of Parquet and Arrow: columns that are feature lists of SequenceExamples [default: those that the metadata of a converted file name]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) feature_lists: Vec<String>,
    /// Of TFRecords as OUT: size of a shard before compression, for example 200MB. A number of shards is in the name: 'train@8.tfrecord'
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

impl ConvertArgs {
    /// Returns the inputs and the output.
    pub(crate) fn paths(&self) -> Outcome<(&[PathBuf], &Path)> {
        match self.paths.split_last() {
            Some((output, inputs)) if !inputs.is_empty() => Ok((inputs, output)),
            _ => Err(Failure::usage("expected two or more paths, IN.. OUT, found one")),
        }
    }
}
