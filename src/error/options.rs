//! Errors about options.

use std::fmt;

/// The reason why options are invalid: one is missing, or they contradict each other or the object they are
/// applied to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionsError {
    /// The batch size of a loader is missing.
    NoBatchSize,
    /// A set or a pack has no shards.
    NoShards,
    /// The shards of a pack have no common folder.
    NoCommonFolder,
    /// A name is invalid.
    Name {
        /// Name of the thing, e.g. `pack`, `shard of a pack` or `compression`.
        what: &'static str,
        /// Invalid name, as given.
        name: Box<str>,
        /// Reason why it is invalid, or the valid names.
        reason: &'static str,
    },
    /// The number of threads exceeds the limit.
    Threads {
        /// Requested number.
        found: usize,
        /// Limit of the number.
        limit: usize,
    },
    /// Gzip members were requested for a file without gzip compression.
    Members {
        /// Compression of the file: `none` or `zlib`.
        found: &'static str,
    },
    /// Records were to be appended to a file that is not plain.
    Append {
        /// The compression, or `members`.
        found: &'static str,
    },
    /// Classes of a float feature were requested. Classes are defined for int64 and bytes features.
    FloatClasses,
    /// Nothing is verified, and what was asked for besides needs checksums.
    Unverified {
        /// The request.
        asked: &'static str,
    },
    /// A filter was applied to given columns, and the column of this feature is not one of them.
    ColumnNotGiven,
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionsError::NoBatchSize => f.write_str("the batch size is missing"),
            OptionsError::NoShards => f.write_str("expected at least one shard, found none"),
            OptionsError::NoCommonFolder => f.write_str("the shards have no common folder"),
            OptionsError::Name { what, name, reason } => {
                write!(f, "invalid name \"{}\" of a {what}: {reason}", name.escape_debug())
            }
            OptionsError::Threads { found, limit } => {
                write!(f, "expected at most {limit} threads, found {found}")
            }
            OptionsError::Members { found } => {
                write!(f, "members: expected compression gzip, found {found}")
            }
            OptionsError::Append { found } => {
                write!(f, "append: expected an uncompressed file and no compression, found {found}")
            }
            OptionsError::FloatClasses => {
                f.write_str("expected int64 or bytes values for classes, found float")
            }
            OptionsError::Unverified { asked } => {
                write!(
                    f,
                    "expected only what needs no checksums with `verify` none, found a request for {asked}"
                )
            }
            OptionsError::ColumnNotGiven => {
                f.write_str("the filter uses this feature, but its column was not given")
            }
        }
    }
}
