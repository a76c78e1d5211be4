//! Options of conversions, and their reports.

use crate::format::FileFormat;
use crate::out::Written;
use std::path::{Path, PathBuf};
#[cfg(feature = "tables")]
use std::sync::Arc;
use tfseek::Warning;
use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek::schema::Schema;
#[cfg(feature = "tables")]
use tfseek_tfds::Features;
use tfseek_tools::encode::JsonForm;
use tfseek_tools::reshard::ShardCount;
use tfseek_tools::wildcards::matches;

/// Options of a conversion of TFRecords to another format.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The records to convert. Default: all.
    pub records: Option<Subset>,
    /// The kind of the payloads. Default: guessed from the first records of each shard.
    pub kind: Option<MessageKind>,
    /// Names of the features to convert, with the wildcards `*` and `?`. Default: all.
    pub features: Vec<String>,
    /// Replace an existing file. Default: false.
    pub force: bool,
    /// JSON lines in protobuf's JSON mapping.
    pub proto_json: bool,
    /// The schema of a table. Default: one with which the rows are equal records again; all records are read
    /// for it.
    pub schema: Option<Schema>,
    /// The features of a data set of TensorFlow Datasets, as the columns of a table: nested, with decoded
    /// values. Names of features are then their paths. A schema replaces them. Default: none.
    #[cfg(feature = "tables")]
    pub data_set: Option<Arc<Features>>,
    /// Names of the features of a table that are text in UTF-8, with wildcards. Default: none, so byte
    /// strings are binary.
    pub text: Vec<String>,
    /// Encoded bytes after which a row group of a Parquet file ends; it is in memory until then. Default: 64
    /// MiB.
    pub row_group_bytes: Option<usize>,
    /// Number of [`threads`](tfseek::threads) that make the rows of a table. Default: one per processor. 0:
    /// the calling thread.
    pub threads: Option<usize>,
}

impl ExportOptions {
    /// Returns true if a feature of this name is converted.
    pub(crate) fn has_feature(&self, name: &str) -> bool {
        self.features.is_empty() || self.features.iter().any(|pattern| matches(pattern, name))
    }
}

/// Options of a conversion of files of another format to TFRecords.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Replace existing files. Default: false.
    pub force: bool,
    /// Number or size of the shards, for a path without a number of shards. Default: one file.
    pub shards: Option<ShardCount>,
    /// The kinds of the features in JSON. Default: those that the values show, for which the files are read
    /// twice. A stream needs a schema, unless its records are in protobuf's JSON mapping.
    pub schema: Option<Schema>,
    /// Format of the inputs. Default: by the suffixes of files; streams are JSON lines.
    pub format: Option<FileFormat>,
    /// Form of the records in JSON lines. Default: known from the first key of each record.
    pub form: JsonForm,
    /// Names of the columns of a table that are feature lists, with wildcards. The records are then
    /// SequenceExamples. Default: those that the metadata of the table name.
    pub feature_lists: Vec<String>,
    /// Store the nearest float32 of each number of a column of float64. One that would become infinite stays
    /// an error. Default: false, so a number that would change is an error. JSON has no types, so its numbers
    /// are always rounded.
    pub round_float64: bool,
    /// Maximum length in bytes of the JSON text of a record, or of a payload that follows its length.
    /// Default: 2^31 - 1.
    pub max_record: Option<u64>,
    /// The features that the columns of a table are, for [`import_data_set`](crate::import_data_set).
    #[cfg(feature = "tables")]
    pub(crate) data_set: Option<Arc<Features>>,
}

/// A file or a set of shards that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertReport {
    /// Path of the file, or of the set: `train@8.tfrecord`.
    pub path: PathBuf,
    /// Paths of the files.
    pub shards: Vec<PathBuf>,
    /// Their format.
    pub format: FileFormat,
    /// Number of records.
    pub records: u64,
    /// Size of the files in bytes, which is 0 for a device or a FIFO.
    pub bytes: u64,
    /// Number of features, and of steps of feature lists, that have no kind. A table without a schema has
    /// nulls in their places, or empty lists, so the records that are made of it lack them. 0 with a schema,
    /// and in other formats, which keep them.
    pub kindless: u64,
    /// Their names, each once.
    pub kindless_names: Vec<String>,
    /// Warnings of [`BatchParser::unknown_names`](tfseek::BatchParser::unknown_names), for a table with a
    /// schema.
    pub warnings: Vec<Warning>,
}

/// Features that a table lacks, and warnings about its schema, as a [`ConvertReport`] has them.
#[derive(Default)]
pub(crate) struct TableNotes {
    pub(crate) kindless: u64,
    pub(crate) kindless_names: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
}

impl ConvertReport {
    /// Returns the report of a file without its shards.
    pub(crate) fn of(path: &Path, format: FileFormat, written: Written, notes: TableNotes) -> ConvertReport {
        let Written { records, bytes } = written;
        let TableNotes { kindless, kindless_names, warnings } = notes;
        let path = path.into();
        let shards = Vec::new();
        ConvertReport { path, shards, format, records, bytes, kindless, kindless_names, warnings }
    }
}
