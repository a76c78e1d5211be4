//! The error of statistics.

use std::fmt;
use tfseek::Error;

/// The reason why statistics are not available.
#[derive(Debug)]
#[non_exhaustive]
pub enum StatsError {
    /// A record, or a file, with its location.
    Data(Error),
    /// The values of the feature that selects slices.
    Slice(String),
    /// The options or the text of saved statistics.
    Saved(String),
}

impl StatsError {
    pub(super) fn too_many_slices(by: &str, limit: usize) -> StatsError {
        StatsError::Slice(format!("{by}: expected at most {limit} values to slice by, found more"))
    }
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatsError::Data(e) => e.fmt(f),
            StatsError::Slice(message) | StatsError::Saved(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for StatsError {}

impl From<Error> for StatsError {
    fn from(e: Error) -> StatsError {
        StatsError::Data(e)
    }
}
