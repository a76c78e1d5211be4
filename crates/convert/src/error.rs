//! `ConvertError`: the reason why files were not converted.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tfseek_tools::encode::JsonError;
use tfseek_tools::outputs::OutputConflict;

/// The reason why files were not converted. No output has its name then.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertError {
    /// Records could not be read, or written as TFRecords.
    Error(tfseek::Error),
    /// The request cannot be carried out.
    Options(String),
    /// An output must not be written.
    Conflict(OutputConflict),
    /// A record could not be read from JSON.
    Json {
        /// Path of the file.
        path: PathBuf,
        /// The place, and the reason.
        error: JsonError,
    },
}

impl ConvertError {
    pub(crate) fn io(path: &Path, e: io::Error) -> ConvertError {
        ConvertError::Error(tfseek::Error::from(e).in_file(path))
    }

    pub(crate) fn json(path: &Path, error: JsonError) -> ConvertError {
        match error {
            JsonError::Io(e) => ConvertError::io(path, e),
            error => ConvertError::Json { path: path.into(), error },
        }
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Error(e) => e.fmt(f),
            ConvertError::Options(reason) => f.write_str(reason),
            ConvertError::Conflict(conflict) => conflict.fmt(f),
            ConvertError::Json { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ConvertError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConvertError::Error(e) => Some(e),
            ConvertError::Conflict(conflict) => Some(conflict),
            ConvertError::Json { error, .. } => Some(error),
            ConvertError::Options(_) => None,
        }
    }
}

impl From<tfseek::Error> for ConvertError {
    fn from(e: tfseek::Error) -> ConvertError {
        ConvertError::Error(e)
    }
}

impl From<OutputConflict> for ConvertError {
    fn from(conflict: OutputConflict) -> ConvertError {
        ConvertError::Conflict(conflict)
    }
}
