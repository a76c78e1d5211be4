//! Errors of resharding.

use crate::write::outputs::OutputConflict;
use std::fmt;
use std::path::PathBuf;
use tfseek::Error;

/// The reason why a dataset was not written again. No output file exists then, unless it existed before.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReshardError {
    /// Damage, a malformed record, or an I/O error.
    Error(Error),
    /// Options that are invalid, or that contradict each other or the dataset.
    Options(String),
    /// An output must not be written.
    Conflict(OutputConflict),
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
    /// The disk has too little free space.
    Space {
        /// Folder of an output.
        folder: PathBuf,
        /// Bytes that are needed on its file system.
        expected: u64,
        /// Free bytes.
        found: u64,
    },
}

impl fmt::Display for ReshardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReshardError::Error(e) => e.fmt(f),
            ReshardError::Options(reason) => f.write_str(reason),
            ReshardError::Conflict(conflict) => conflict.fmt(f),
            ReshardError::NoValue { path, record, feature } => {
                let (path, feature) = (path.display(), feature.escape_debug());
                write!(
                    f,
                    "{path}: record {record}: feature \"{feature}\": expected a value to split by, found none"
                )
            }
            ReshardError::NoFeature { pattern } => {
                write!(f, "no record has a feature \"{}\"", pattern.escape_debug())
            }
            ReshardError::Space { folder, expected, found } => {
                write!(
                    f,
                    "{}: No space left: expected {expected} free bytes, found {found}",
                    folder.display()
                )
            }
        }
    }
}

impl std::error::Error for ReshardError {}

impl From<Error> for ReshardError {
    fn from(e: Error) -> ReshardError {
        ReshardError::Error(e)
    }
}

impl From<OutputConflict> for ReshardError {
    fn from(conflict: OutputConflict) -> ReshardError {
        ReshardError::Conflict(conflict)
    }
}

/// Returns the error of invalid options.
pub(super) fn options(reason: impl Into<String>) -> ReshardError {
    ReshardError::Options(reason.into())
}
