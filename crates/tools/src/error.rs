//! The error of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;
use tfseek::Error;

/// The reason why work of this crate failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolsError {
    /// Damage, a malformed record, or an I/O error, with its location.
    Error(Error),
    /// An I/O error of a reader, without a location.
    Io(io::Error),
    /// Options that are invalid, or that contradict each other or the records.
    Options(String),
    /// The path of an output, or the number or size of its shards.
    Path(String),
    /// The parts of a split.
    Split(String),
    /// The files of the tasks of a job are not those that are stated.
    Tasks(String),
    /// An output must not be written.
    Conflict(OutputConflict),
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
    /// A record has no value of the feature that decides about its part.
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
    },
    /// A value of the feature that selects slices of statistics.
    Slice {
        /// Name of the feature.
        by: String,
        /// The expected values, and those that were found.
        reason: String,
    },
    /// The feature that selects slices of statistics has too many values.
    TooManySlices {
        /// Name of the feature.
        by: String,
        /// Maximum number of values.
        limit: usize,
    },
    /// A text is no statistics that were saved, or statistics with other options.
    Saved(String),
    /// A `dataset_info.json` has another content than expected.
    Info {
        /// The field with the fault, such as `splits[0].name`. Empty for the whole file.
        field: String,
        /// The expected and the found content.
        reason: String,
    },
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

impl ToolsError {
    pub(crate) fn options(reason: impl Into<String>) -> ToolsError {
        ToolsError::Options(reason.into())
    }

    pub(crate) fn json(at: TextPosition, reason: impl Into<String>) -> ToolsError {
        ToolsError::Json { at, feature: None, reason: reason.into() }
    }
}

impl fmt::Display for ToolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ToolsError::*;
        let bare = |(record, offset): &(u64, u64)| format!("record {record} at byte {offset}");
        match self {
            Error(e) => e.fmt(f),
            Io(e) => e.fmt(f),
            Options(reason) | Path(reason) | Split(reason) | Tasks(reason) | Saved(reason) => {
                f.write_str(reason)
            }
            Conflict(conflict) => conflict.fmt(f),
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
                let (path, feature) = (path.display(), feature.escape_debug());
                write!(
                    f,
                    "{path}: record {record}: feature \"{feature}\": expected a value to split by, found none"
                )
            }
            NoFeature { pattern } => write!(f, "no record has a feature \"{}\"", pattern.escape_debug()),
            Slice { by, reason } => write!(f, "{by}: {reason}"),
            TooManySlices { by, limit } => {
                write!(f, "{by}: expected at most {limit} values to slice by, found more")
            }
            Info { field, reason } if field.is_empty() => f.write_str(reason),
            Info { field, reason } => write!(f, "{field}: {reason}"),
            Schema { at, reason } => write!(f, "line {}, column {}: {reason}", at.line, at.column),
            Json { at, feature, reason } => {
                write!(f, "line {}, column {} (byte {}): ", at.line, at.column, at.offset)?;
                if let Some(name) = feature {
                    write!(f, "feature \"{}\": ", name.escape_debug())?;
                }
                f.write_str(reason)
            }
            BareTruncated { at, expected: Some(expected), found } => {
                write!(f, "{}: expected {expected} bytes of payload, found {found}", bare(at))
            }
            BareTruncated { at, expected: None, found } => {
                write!(f, "{}: expected a length that ends, found {found} bytes of a varint", bare(at))
            }
            BareVarint { at } => {
                let expected = "expected a length of at most 10 bytes and 64 bits, found a longer varint";
                write!(f, "{}: {expected}", bare(at))
            }
            BareTooLong { at, len, limit } => {
                write!(
                    f,
                    "{}: expected a payload of at most {limit} bytes, found a length of {len}",
                    bare(at)
                )
            }
        }
    }
}

impl std::error::Error for ToolsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ToolsError::Io(e) => Some(e),
            _ => None,
        }
    }
}

impl From<Error> for ToolsError {
    fn from(e: Error) -> ToolsError {
        ToolsError::Error(e)
    }
}

impl From<io::Error> for ToolsError {
    fn from(e: io::Error) -> ToolsError {
        ToolsError::Io(e)
    }
}

impl From<OutputConflict> for ToolsError {
    fn from(conflict: OutputConflict) -> ToolsError {
        ToolsError::Conflict(conflict)
    }
}

/// The reason why a file must not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputConflict {
    /// The file exists and would be replaced.
    Exists {
        /// Path of the output.
        output: PathBuf,
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
    /// There is another set of shards with the name of the output.
    OtherSet {
        /// A file of that set.
        other: PathBuf,
    },
}

impl fmt::Display for OutputConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputConflict::Exists { output } => write!(f, "{}: already exists", output.display()),
            OutputConflict::IsInput { output, input } if input == output => {
                write!(f, "{}: is an input, so it cannot be an output", output.display())
            }
            OutputConflict::IsInput { output, input } => {
                let (output, input) = (output.display(), input.display());
                write!(f, "{output}: is the same file as the input {input}, so it cannot be an output")
            }
            OutputConflict::Shared { output, inputs: [first, second] } => {
                let (first, second) = (first.display(), second.display());
                write!(f, "{first} and {second} would both be written to {}", output.display())
            }
            OutputConflict::OtherSet { other } => write!(
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
            line: self.line.saturating_add(lines),
            column: column.saturating_add(last_line as u64),
            offset: self.offset.saturating_add(bytes.len() as u64),
        }
    }
}
