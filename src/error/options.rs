//! Options that cannot be met.

use std::fmt;

/// The reason why options cannot be met: one is missing, or they contradict each other or what they are applied to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionsError {
    /// A loader without a batch size.
    NoBatchSize,
    /// A set or a pack of no shards.
    NoShards,
    /// The shards of a pack have no folder in common.
    NoCommonFolder,
    /// A name that cannot be used.
    Name {
        /// The thing that is named: `pack`, `shard of a pack`, `compression`.
        what: &'static str,
        /// The name, as given.
        name: Box<str>,
        /// The reason why it cannot be used, or the names that can.
        reason: &'static str,
    },
    /// More threads than are started.
    Threads {
        /// The number that was asked for.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// Classes were asked for of a feature of floats.
    FloatClasses,
    /// A filter was applied to given columns, and the column of this feature is not among them.
    ColumnNotGiven,
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionsError::NoBatchSize => f.write_str("a loader needs a batch size"),
            OptionsError::NoShards => f.write_str("expected one shard or more, found none"),
            OptionsError::NoCommonFolder => f.write_str("the shards have no folder in common"),
            OptionsError::Name { what, name, reason } => {
                write!(f, "\"{}\" is no name of a {what}: {reason}", name.escape_debug())
            }
            OptionsError::Threads { found, limit } => {
                write!(f, "{found} threads, at most {limit} are started")
            }
            OptionsError::FloatClasses => f.write_str("floats make no classes, int64 and bytes do"),
            OptionsError::ColumnNotGiven => {
                f.write_str("the filter asks for this feature, and its column is not among those given")
            }
        }
    }
}
