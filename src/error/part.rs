//! Errors about parts of a dataset.

use super::text::Count;
use std::fmt;

/// The reason why a dataset cannot be divided into parts, or why a part is refused.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartError {
    /// A text is not a part.
    Invalid {
        /// Name of the field, or `json`.
        field: Box<str>,
        /// Expected value.
        expected: Box<str>,
        /// Found value, cut if it is long.
        found: Box<str>,
    },
    /// A number of shares or of bytes is 0.
    Zero {
        /// Name of the number.
        what: &'static str,
    },
    /// The shard consists of bytes in memory, which no other process can open.
    InMemory,
    /// Damage was skipped when the shard was indexed. A part is a range without damage.
    Gaps,
    /// The dataset has some records of a compressed shard, which is read from its beginning.
    Compressed,
    /// The path of the shard is not UTF-8, so it has no form in JSON.
    NotUtf8,
    /// The bytes of the part hold another number of records.
    Records {
        /// Number of records according to the part.
        expected: u64,
        /// Number of records found.
        found: u64,
        /// True if there may be more than were found.
        more: bool,
    },
    /// The file ends before the part does.
    End {
        /// Byte offset of the end of the part.
        expected: u64,
        /// Byte offset that was reached.
        found: u64,
    },
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartError::Invalid { field, expected, found } => {
                write!(f, "invalid part: {field}: expected {expected}, found {found}")
            }
            PartError::Zero { what } => write!(f, "{what}: expected at least 1, found 0"),
            PartError::InMemory => f.write_str("expected a shard in a file, found bytes in memory"),
            PartError::Gaps => f.write_str(
                "expected a shard without damage, found one whose damage was skipped: parts contain whole records only",
            ),
            PartError::Compressed => {
                f.write_str("expected all records of the compressed shard or none, found a dataset with some")
            }
            PartError::NotUtf8 => f.write_str("expected a path in UTF-8: parts are JSON"),
            PartError::Records { expected, found, more } => {
                let expected = Count(*expected, "record");
                let least = if *more { "at least " } else { "" };
                write!(f, "expected {expected} in the part, found {least}{found}")
            }
            PartError::End { expected, found } => {
                write!(f, "expected the end of the part at byte {expected}, found it at byte {found}")
            }
        }
    }
}
