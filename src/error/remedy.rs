//! Remedies of errors, for front ends that spell them in the words of their users.

use super::{Build, ErrorKind, IndexError, PathsError};

/// A remedy of an error. Messages of [`Error`](super::Error) name no option and no function, since a command, a Python
/// package and a crate have different ones for the same thing; each of them adds its own words for this.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// Going on without the shards that are missing: [`DatasetOptions::allow_missing`](crate::DatasetOptions::allow_missing).
    AllowMissing,
    /// Building the index of the file: [`build_beside`](crate::index::build_beside).
    BuildIndex,
    /// Building the indexes, or the columns, of these shards: [`build_beside`](crate::index::build_beside),
    /// [`Dataset::write_columns`](crate::Dataset::write_columns).
    Build(&'a Build),
    /// Scanning the file anew: [`IndexMode::Rebuild`](crate::IndexMode::Rebuild).
    Rebuild,
    /// Reading without maps: [`Dataset::open`](crate::Dataset::open).
    ReadWithoutMaps,
    /// Unpacking the file: the command `tfseek unpack`.
    Unpack,
    /// Reading records of so many bytes: [`DatasetOptions::max_record`](crate::DatasetOptions::max_record).
    MaxRecord(u64),
}

impl ErrorKind {
    /// Returns the remedy, if there is one that helps for sure.
    pub fn remedy(&self) -> Option<Remedy<'_>> {
        Some(match self {
            ErrorKind::Paths(PathsError::MissingShards { .. }) => Remedy::AllowMissing,
            ErrorKind::Paths(PathsError::TooManyMaps { .. }) => Remedy::ReadWithoutMaps,
            ErrorKind::Index(IndexError::Missing) => Remedy::BuildIndex,
            ErrorKind::Index(IndexError::NoColumn { build, .. } | IndexError::BuildLimit { build, .. }) => {
                Remedy::Build(build)
            }
            ErrorKind::Index(IndexError::LengthMismatch { .. }) => Remedy::Rebuild,
            ErrorKind::Compressed { .. } => Remedy::Unpack,
            ErrorKind::RecordTooLarge { len, .. } => Remedy::MaxRecord(*len),
            _ => return None,
        })
    }
}
