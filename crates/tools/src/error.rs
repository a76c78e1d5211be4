//! The error of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;
use tfseek::{Compression, Error};
use tfseek_tfds::TfdsError;

/// The reason why work of this crate failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolsError {
    /// Damage, a malformed record, or an I/O error, with its location.
    Error(Error),
    /// An I/O error of a reader, without a location.
    Io(io::Error),
    /// A prepared data set of TensorFlow Datasets.
    Tfds(TfdsError),
    /// Options that are invalid, or that contradict each other or the records.
    Options(OptionsReason),
    /// The path of an output, or the number or size of its shards.
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: PathReason,
    },
    /// The splits of a dataset.
    Split(SplitReason),
    /// A file of a task is of another job, of a task that has another file, missing, or of another size.
    Task(Box<str>),
    /// An output must not be written.
    Conflict(OutputConflict),
    /// A copy from a store is refused.
    Fetch(FetchReason),
    /// The process may not open that many files, which get their names together.
    OpenFiles {
        /// Maximum number of output files.
        limit: u64,
        /// Number of files that the process may open.
        open: u64,
        /// Number of output files.
        found: u64,
    },
    /// The disk has too little free space.
    Space {
        /// Folder of an output.
        folder: PathBuf,
        /// Bytes that are needed on its file system.
        expected: u64,
        /// Free bytes.
        found: u64,
    },
    /// Another number of records was written than was stated.
    Records {
        /// The stated number.
        expected: u64,
        /// The number that was written.
        found: u64,
    },
    /// A record has no value of the feature that decides about its split.
    NoValue {
        /// Path of the shard.
        path: PathBuf,
        /// Ordinal of the record in the shard.
        record: u64,
        /// Name of the feature.
        feature: String,
    },
    /// A pattern of features to keep or to drop matches no feature of any record.
    NoFeature {
        /// The pattern.
        pattern: String,
        /// The nearest name of a feature of the records, if one is similar to it.
        near: Option<String>,
    },
    /// The feature that selects slices of statistics has too many values, in one record or in all, or a value
    /// that is too long.
    Slice {
        /// Name of the feature.
        by: String,
        /// Expected and found.
        reason: Box<str>,
    },
    /// A text is no statistics that were saved, or statistics with other options.
    Saved(SavedReason),
    /// A text is no schema of TensorFlow Metadata.
    Schema {
        /// Position of the token that is wrong.
        at: TextPosition,
        /// Expected and found.
        reason: String,
    },
    /// A text is not JSON, or it is no record with the features of the schema.
    Json {
        /// Position of the value, of the key, or of the character that is not expected.
        at: TextPosition,
        /// Name of the feature, if the error concerns one.
        feature: Option<String>,
        /// The expected value and the one that was found.
        reason: String,
    },
    /// A stream of payloads that follow their lengths ends inside a length, or inside a payload.
    BareTruncated {
        /// Ordinal of the record, and offset of its length.
        at: (u64, u64),
        /// Length of the payload. `None` if its length is cut off.
        expected: Option<u64>,
        /// Number of bytes up to the end of the stream.
        found: u64,
    },
    /// The varint of such a length has more than ten bytes, or more than 64 bits.
    BareVarint {
        /// Ordinal of the record, and offset of its length.
        at: (u64, u64),
    },
    /// Such a payload is longer than the limit.
    BareTooLong {
        /// Ordinal of the record, and offset of its length.
        at: (u64, u64),
        /// Length of the payload.
        len: u64,
        /// Maximum length.
        limit: u64,
    },
}

/// The reason why options are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsReason {
    /// Features are selected, and the records are neither Examples nor SequenceExamples.
    NoFeatures,
    /// The dataset has too many records to sort.
    SortedRecords {
        /// Maximum number of records.
        limit: u64,
        /// Number of records.
        found: u64,
    },
    /// The memory is too small for the temporary files.
    Memory {
        /// Number of temporary files.
        files: u64,
        /// Bytes that are needed.
        expected: u64,
        /// Bytes that are allowed.
        found: u64,
    },
    /// Members have a size, and this compression has no members.
    Members(Compression),
    /// The name of a job, a task or an attempt has other characters than letters, digits, `_` and `.`.
    AttemptName {
        /// `job`, `task` or `attempt`.
        what: &'static str,
        /// The name.
        found: String,
    },
    /// A copy of a prepared data set cannot have this option.
    Prepared {
        /// What the option requests.
        what: &'static str,
        /// Why it is refused.
        reason: &'static str,
    },
    /// A split has several shards, and its names have no number of a shard.
    PreparedShards {
        /// Name of the split.
        split: String,
        /// Number of shards.
        found: u64,
    },
}

/// The reason why the path of an output is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathReason {
    /// It is not in UTF-8.
    NotUtf8,
    /// It is a folder's path.
    Folder,
    /// The dataset is split, and the path has no `{split}`.
    NoSplit,
    /// The path has `{split}`, and the dataset is not split.
    Split,
    /// The number of shards is none from 1 to 2^64 - 1.
    ShardCount,
    /// The path has this number of shards, and another one or a size was given.
    OtherShardCount(u64),
    /// The path has `@*`, and neither a number of shards nor a size was given.
    NoShardCount,
    /// The number or size of the shards is 0.
    NoShards,
}

/// The reason why splits are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitReason {
    /// There are none, or too many.
    Count {
        /// Maximum number of splits.
        limit: usize,
        /// Number of splits.
        found: usize,
    },
    /// This name has other characters than letters, digits, `_`, `-` and `.`.
    Name(String),
    /// Two splits have this name.
    Twice(String),
    /// The fraction of this split is 0.
    Zero(String),
    /// A fraction is no number from 0 to 1, or the sum of all is larger than 1: expected and found.
    Fractions(Box<str>),
    /// The sum of all fractions is less than 1, so that a record may be in no split.
    Incomplete,
    /// A feature decides, and the records are neither Examples nor SequenceExamples.
    NoFeatures,
    /// There is a split for records without a value, and no feature decides.
    MissingWithoutFeature,
    /// The split of this name, for records without a value, is none of the splits.
    Missing(String),
}

/// The reason why saved statistics are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavedReason {
    /// The text is not JSON.
    NotJson {
        /// The error of the JSON parser.
        reason: String,
    },
    /// The JSON is of another kind.
    NotStatistics,
    /// The version is another one.
    Version {
        /// The version that is read.
        expected: u64,
        /// The version. `None` if it is no number.
        found: Option<u64>,
    },
    /// The state is missing.
    NoState,
    /// A member of the state is missing or out of bounds.
    State,
    /// The statistics to merge are sliced by another feature.
    OtherSlices {
        /// The feature, if there is one.
        expected: Option<String>,
        /// The feature of the others, if there is one.
        found: Option<String>,
    },
    /// The statistics to merge are of other patterns of features.
    OtherPatterns,
    /// The statistics to merge are of records that meet another condition.
    OtherCondition {
        /// The condition, if there is one.
        expected: Option<String>,
        /// The condition of the others, if there is one.
        found: Option<String>,
    },
}

impl fmt::Display for OptionsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use OptionsReason::*;
        match self {
            NoFeatures => f.write_str(
                "features to keep or to drop: expected Examples or SequenceExamples, found other payloads",
            ),
            SortedRecords { limit, found } => {
                write!(f, "sort: expected at most {limit} records, found {found}")
            }
            Memory { files, expected, found } => {
                write!(
                    f,
                    "memory: expected at least {expected} bytes for {files} temporary files, found {found}"
                )
            }
            Members(found) => write!(f, "members: expected compression gzip, found {}", found.name()),
            AttemptName { what, found } => {
                write!(f, "{what}: expected letters, digits, `_` or `.`, found {found:?}")
            }
            Prepared { what, reason } => {
                write!(f, "{what}: not for the folder of a data set of TensorFlow Datasets, {reason}")
            }
            PreparedShards { split, found } => {
                let split = split.escape_debug();
                write!(f, "shards: expected 1 for split {split}, whose names have no number, found {found}")
            }
        }
    }
}

impl fmt::Display for PathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use PathReason::*;
        match self {
            NotUtf8 => f.write_str("expected a path in UTF-8"),
            Folder => f.write_str("expected a file name or a set of shards, found a folder"),
            NoSplit => f.write_str("expected {split} in the path of a split, found none"),
            Split => f.write_str("{split} requires a split"),
            ShardCount => f.write_str("expected a number of shards from 1 to 2^64 - 1"),
            OtherShardCount(found) => {
                write!(
                    f,
                    "the path has a number of shards, {found}; with another one or a size expected `@*`"
                )
            }
            NoShardCount => f.write_str("expected a number of shards or their size for `@*`"),
            NoShards => f.write_str("expected at least one shard of at least one byte, found 0"),
        }
    }
}

impl fmt::Display for SplitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SplitReason::*;
        match self {
            Count { limit, found } => write!(f, "split: expected 1 to {limit} splits, found {found}"),
            Name(found) => write!(
                f,
                "split: expected a name of letters, digits, `_`, `-` and `.`, found \"{}\"",
                found.escape_debug()
            ),
            Twice(name) => write!(f, "split: the split {name} occurs twice"),
            Zero(name) => write!(f, "split: expected a fraction above 0 for the split {name}, found 0"),
            Fractions(reason) => write!(f, "split: {reason}"),
            Incomplete => f.write_str("split: expected fractions with a sum of 1, found less"),
            NoFeatures => {
                f.write_str("split by a feature: expected Examples or SequenceExamples, found other payloads")
            }
            MissingWithoutFeature => f.write_str("a split for missing values requires a feature to split by"),
            Missing(found) => {
                write!(f, "the split for missing values: expected one of the splits, found {found}")
            }
        }
    }
}

impl fmt::Display for SavedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SavedReason::*;
        let or_none = |text: &Option<String>| text.as_deref().unwrap_or("none").to_owned();
        match self {
            NotJson { reason } => {
                write!(f, "expected saved statistics, found text that is not JSON: {reason}")
            }
            NotStatistics => f.write_str(
                "expected saved statistics, found JSON without the member tfseek_stats, which `--save` writes",
            ),
            Version { expected, found: Some(found) } => {
                write!(f, "expected saved statistics of version {expected}, found {found}")
            }
            Version { expected, found: None } => {
                write!(f, "expected saved statistics of version {expected}, found no number")
            }
            NoState => f.write_str("expected saved statistics, found JSON without the member state"),
            State => f.write_str(
                "expected saved statistics, found a state with a member that is missing, or out of bounds",
            ),
            OtherSlices { expected, found } => {
                let expected = or_none(expected);
                let found = or_none(found);
                write!(f, "expected statistics sliced by the same feature, found {expected} and {found}")
            }
            OtherPatterns => {
                f.write_str("expected statistics of the same patterns of features, found different ones")
            }
            OtherCondition { expected, found } => {
                let expected = or_none(expected);
                let found = or_none(found);
                write!(
                    f,
                    "expected statistics of records that meet the same condition, found {expected} and {found}"
                )
            }
        }
    }
}

impl ToolsError {
    pub(crate) fn json(at: TextPosition, reason: impl Into<String>) -> ToolsError {
        ToolsError::Json { at, feature: None, reason: reason.into() }
    }
}

/// Returns the text of a record's ordinal and offset.
pub(crate) fn place((record, offset): &(u64, u64)) -> String {
    format!("record {record} at byte {offset}")
}

fn quoted(feature: &str) -> String {
    format!("feature \"{}\"", feature.escape_debug())
}

impl fmt::Display for ToolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ToolsError::*;
        match self {
            Error(e) => e.fmt(f),
            Io(e) => e.fmt(f),
            Tfds(e) => e.fmt(f),
            Options(reason) => reason.fmt(f),
            Path { path, reason } => write!(f, "{}: {reason}", path.display()),
            Split(reason) => reason.fmt(f),
            Task(reason) => f.write_str(reason),
            Saved(reason) => reason.fmt(f),
            Conflict(conflict) => conflict.fmt(f),
            Fetch(reason) => reason.fmt(f),
            OpenFiles { limit, open, found } => write!(
                f,
                "Too many open files: expected at most {limit} output files, because the process may open {open} (`ulimit -n`), found {found}"
            ),
            Space { folder, expected, found } => {
                let folder = folder.display();
                write!(f, "{folder}: No space left: expected {expected} free bytes, found {found}")
            }
            Records { expected, found } => {
                write!(f, "records: expected {expected} records, as stated, found {found}")
            }
            NoValue { path, record, feature } => {
                let text = "expected a value to split by, found none";
                write!(f, "{}: record {record}: {}: {text}", path.display(), quoted(feature))
            }
            NoFeature { pattern, near } => {
                write!(f, "no record has a {}", quoted(pattern))?;
                match near {
                    Some(near) => write!(f, "; the nearest name is \"{}\"", near.escape_debug()),
                    None => Ok(()),
                }
            }
            Slice { by, reason } => write!(f, "{by}: {reason}"),
            Schema { at, reason } => write!(f, "line {}, column {}: {reason}", at.line, at.column),
            Json { at, feature, reason } => {
                write!(f, "line {}, column {} (byte {}): ", at.line, at.column, at.offset)?;
                if let Some(name) = feature {
                    write!(f, "{}: ", quoted(name))?;
                }
                f.write_str(reason)
            }
            BareTruncated { at, expected: Some(expected), found } => {
                write!(f, "{}: expected {expected} bytes of payload, found {found}", place(at))
            }
            BareTruncated { at, expected: None, found } => {
                write!(f, "{}: expected a length that ends, found {found} bytes of a varint", place(at))
            }
            BareVarint { at } => {
                let expected = "expected a length of at most 10 bytes and 64 bits, found a longer varint";
                write!(f, "{}: {expected}", place(at))
            }
            BareTooLong { at, len, limit } => {
                let at = place(at);
                write!(f, "{at}: expected a payload of at most {limit} bytes, found a length of {len}")
            }
        }
    }
}

impl std::error::Error for ToolsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ToolsError::Io(e) => Some(e),
            ToolsError::Tfds(e) => Some(e),
            _ => None,
        }
    }
}

impl From<Error> for ToolsError {
    fn from(e: Error) -> ToolsError {
        ToolsError::Error(e)
    }
}

impl From<TfdsError> for ToolsError {
    fn from(e: TfdsError) -> ToolsError {
        ToolsError::Tfds(e)
    }
}

impl From<io::Error> for ToolsError {
    fn from(e: io::Error) -> ToolsError {
        ToolsError::Io(e)
    }
}

impl From<FetchReason> for ToolsError {
    fn from(reason: FetchReason) -> ToolsError {
        ToolsError::Fetch(reason)
    }
}

impl From<OutputConflict> for ToolsError {
    fn from(conflict: OutputConflict) -> ToolsError {
        ToolsError::Conflict(conflict)
    }
}

/// The reason why a fetch is refused, or why a file of it stays incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchReason {
    /// The name of the object at this URL is no path below a folder.
    Name(String),
    /// The condition tests record numbers.
    NumbersInCondition,
    /// The list or the journal of the folder names a file that is not below it.
    State {
        /// The list or the journal.
        path: PathBuf,
        /// The name.
        found: String,
    },
    /// The folder has this file, which no earlier run wrote.
    Foreign(PathBuf),
    /// The folder belongs to another fetch.
    OtherFetch {
        /// The folder.
        folder: PathBuf,
        /// The URL, split and condition of that fetch.
        found: String,
    },
    /// Another process fetches into this folder.
    Busy(PathBuf),
    /// A shard has another number of records than `dataset_info.json` states.
    Count {
        /// The URL.
        url: String,
        /// The stated number.
        expected: u64,
        /// The number of records.
        found: u64,
    },
}

impl fmt::Display for FetchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchReason::Name(url) => {
                write!(f, "{}: expected a name that is a path below a folder", url.escape_debug())
            }
            FetchReason::NumbersInCondition => f.write_str(
                "the condition tests record numbers, which are not known before all shards are fetched",
            ),
            FetchReason::State { path, found } => write!(
                f,
                "{}: expected names of files in the folder, found \"{}\", which no fetch writes: remove this file, or fetch into a \
                 new folder",
                path.display(),
                found.escape_debug()
            ),
            FetchReason::Foreign(path) => write!(
                f,
                "{}: expected a new or an empty folder, or that of the same fetch, found a file of something else",
                path.display()
            ),
            FetchReason::OtherFetch { folder, found } => {
                write!(
                    f,
                    "{}: expected the folder of the same fetch, found that of {found}",
                    folder.display()
                )
            }
            FetchReason::Busy(folder) => {
                write!(f, "{}: another process is fetching into this folder", folder.display())
            }
            FetchReason::Count { url, expected, found } => {
                write!(f, "{url}: expected {expected} records, by dataset_info.json, found {found}")
            }
        }
    }
}

/// The reason why a file must not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputConflict {
    /// This file exists and would be replaced.
    Exists(PathBuf),
    /// The output is this folder, and exists. Unlike files it is never replaced.
    Folder(PathBuf),
    /// The output is in the folder of the input.
    Inside {
        /// Path of the output.
        output: PathBuf,
        /// The folder.
        input: PathBuf,
    },
    /// The output is the same file as an input.
    IsInput {
        /// Path of the output.
        output: PathBuf,
        /// Path of the input.
        input: PathBuf,
    },
    /// Two outputs are the same file.
    Shared {
        /// Path of the second output.
        output: PathBuf,
        /// The inputs that both outputs are made from.
        inputs: [PathBuf; 2],
    },
    /// The output is this URL, which is without secrets.
    Url(String),
    /// There is another set of shards with the name of the output. This is a file of that set.
    OtherSet(PathBuf),
}

impl fmt::Display for OutputConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputConflict::Exists(output) => write!(f, "{}: already exists", output.display()),
            OutputConflict::Folder(output) => {
                write!(f, "{}: expected a new or an empty folder, found another one", output.display())
            }
            OutputConflict::Inside { output, input } => {
                let output = output.display();
                let input = input.display();
                write!(f, "{output}: expected a folder outside of the input {input}")
            }
            OutputConflict::IsInput { output, input } if input == output => {
                write!(f, "{}: is an input, so it cannot be an output", output.display())
            }
            OutputConflict::IsInput { output, input } => {
                let output = output.display();
                let input = input.display();
                write!(f, "{output}: is the same file as the input {input}, so it cannot be an output")
            }
            OutputConflict::Shared { output, inputs: [first, second] } => {
                let first = first.display();
                let second = second.display();
                write!(f, "{first} and {second} would both be written to {}", output.display())
            }
            OutputConflict::Url(output) => {
                write!(f, "{output}: expected a local path for the output, found a URL")
            }
            OutputConflict::OtherSet(other) => write!(
                f,
                "{}: belongs to another set of shards with the name of the output; remove that set first",
                other.display()
            ),
        }
    }
}

impl std::error::Error for OutputConflict {}

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: u64,
    /// Byte in the line, from 1.
    pub column: u64,
    /// Byte in the text, from 0.
    pub offset: u64,
}

impl TextPosition {
    /// The start of a text.
    pub(crate) const START: TextPosition = TextPosition { line: 1, column: 1, offset: 0 };

    /// Returns the position after `bytes` that begin at this one.
    pub(crate) fn after(self, bytes: &[u8]) -> TextPosition {
        let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let last_line = memchr::memrchr(b'\n', bytes).map_or(bytes.len(), |end| bytes.len() - end - 1);
        let column = if lines == 0 { self.column } else { 1 };
        TextPosition {
            line: self.line + lines,
            column: column + last_line as u64,
            offset: self.offset + bytes.len() as u64,
        }
    }
}
