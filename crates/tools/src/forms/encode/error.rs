//! Errors of records in JSON.

use std::fmt;
use std::io;

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonPosition {
    /// Line, from 1.
    pub line: u64,
    /// Byte in the line, from 1.
    pub column: u64,
    /// Byte in the text, from 0.
    pub offset: u64,
}

/// The reason why a record could not be read from JSON.
#[derive(Debug)]
#[non_exhaustive]
pub enum JsonError {
    /// The text could not be read.
    Io(io::Error),
    /// The text is not JSON, or it is no record with the features of the schema.
    Invalid {
        /// Place of the value, of the key, or of the character that is not expected.
        at: JsonPosition,
        /// Name of the feature, if the error concerns one.
        feature: Option<String>,
        /// The expected value and the one that was found.
        reason: String,
    },
}

impl JsonError {
    pub(super) fn new(at: JsonPosition, reason: impl Into<String>) -> JsonError {
        JsonError::Invalid { at, feature: None, reason: reason.into() }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonError::Io(e) => e.fmt(f),
            JsonError::Invalid { at, feature, reason } => {
                write!(f, "line {}, column {} (byte {}): ", at.line, at.column, at.offset)?;
                if let Some(name) = feature {
                    write!(f, "feature \"{}\": ", name.escape_debug())?;
                }
                f.write_str(reason)
            }
        }
    }
}

impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JsonError::Io(e) => Some(e),
            JsonError::Invalid { .. } => None,
        }
    }
}

impl From<io::Error> for JsonError {
    fn from(e: io::Error) -> JsonError {
        JsonError::Io(e)
    }
}
