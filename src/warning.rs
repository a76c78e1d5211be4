//! Warnings: facts that a user should know and that are no errors.

use std::fmt;
use std::path::{Path, PathBuf};

/// A fact that a user should know and that is no error. [`Display`](fmt::Display) is the message for people; [`kind`](Warning::kind),
/// [`path`](Warning::path) and the fields are for programs.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// An index or column file is damaged or of a later version; it counts as missing.
    FileRefused {
        /// The index or column file.
        path: PathBuf,
        /// The reason for which it is refused.
        reason: Box<str>,
    },
    /// Indexes or columns could not be saved anywhere, and will be built again next time. Given once for all shards.
    NotSaved {
        /// The first shard.
        path: PathBuf,
        /// Number of shards.
        shards: usize,
        /// The error of the last folder that was tried.
        reason: Box<str>,
    },
    /// A shard changed while it was scanned, so its index or column was not saved.
    ShardChanged {
        /// The shard.
        path: PathBuf,
    },
    /// A global order over small records, in a dataset larger than memory: each record is a read of its own.
    ScatteredReads {
        /// Mean bytes of a record.
        record_bytes: u64,
        /// Bytes of the dataset.
        dataset_bytes: u64,
        /// Bytes of memory.
        memory_bytes: u64,
    },
}

impl Warning {
    /// The kind's name, the same in Python and in JSON: `file_refused`, `not_saved`, `shard_changed` or `scattered_reads`.
    pub fn kind(&self) -> &'static str {
        match self {
            Warning::FileRefused { .. } => "file_refused",
            Warning::NotSaved { .. } => "not_saved",
            Warning::ShardChanged { .. } => "shard_changed",
            Warning::ScatteredReads { .. } => "scattered_reads",
        }
    }

    /// The file that the warning is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Warning::FileRefused { path, .. }
            | Warning::NotSaved { path, .. }
            | Warning::ShardChanged { path } => Some(path),
            Warning::ScatteredReads { .. } => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", path.display())?;
        }
        match self {
            Warning::FileRefused { reason, .. } => write!(f, "index file is not used: {reason}"),
            Warning::NotSaved { shards, reason, .. } => write!(
                f,
                "what was built of {shards} shards stays in memory and is built again next time: {reason}"
            ),
            Warning::ShardChanged { .. } => {
                f.write_str("changed while it was scanned, what was found is not saved")
            }
            Warning::ScatteredReads { record_bytes, dataset_bytes, memory_bytes } => write!(
                f,
                "a global order over records of {record_bytes} bytes, in a set of {dataset_bytes} bytes with {memory_bytes} bytes \
                 of memory: each record is a read of its own, again in every epoch; a block order reads neighbours together"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_file_and_the_fields_are_there_for_programs() {
        let path = PathBuf::from("a/x.tfri");
        let refused = Warning::FileRefused { path: path.clone(), reason: "shorter than a header".into() };
        assert_eq!(refused.to_string(), "a/x.tfri: index file is not used: shorter than a header");
        assert_eq!((refused.kind(), refused.path()), ("file_refused", Some(&*path)));
        let changed = Warning::ShardChanged { path };
        assert_eq!(
            changed.to_string(),
            "a/x.tfri: changed while it was scanned, what was found is not saved"
        );
        let scattered = Warning::ScatteredReads { record_bytes: 90, dataset_bytes: 900, memory_bytes: 800 };
        assert!(
            scattered
                .to_string()
                .starts_with("a global order over records of 90 bytes, in a set of 900 bytes")
        );
        assert_eq!((scattered.kind(), scattered.path()), ("scattered_reads", None));
    }
}
