//! Warnings: conditions that do not stop a call and that a user should know of.

use crate::error::{Count, FileNames};
use std::fmt;
use std::path::{Path, PathBuf};

/// A warning: a condition that does not stop a call and that a user should know of.
///
/// [`Display`](fmt::Display) is the message for users. [`kind`](Warning::kind), [`path`](Warning::path) and the fields are for programs.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// An index or column file is damaged or has a later version. It is treated as missing.
    FileRefused {
        /// Path of the index or column file.
        path: PathBuf,
        /// Reason for the refusal.
        reason: Box<str>,
    },
    /// Indexes or columns could not be saved in any folder and will be built again next time. Reported once for all shards.
    NotSaved {
        /// Path of the first shard.
        path: PathBuf,
        /// Number of shards.
        shards: usize,
        /// Error of the last folder that was tried.
        reason: Box<str>,
    },
    /// A shard changed while it was scanned, so its index or column was not saved.
    ShardChanged {
        /// Path of the shard.
        path: PathBuf,
    },
    /// Damaged records of a shard are left out of the dataset, as [`Damage::Skip`](crate::policy::Damage::Skip) allows.
    DamageSkipped {
        /// Path of the shard.
        path: PathBuf,
        /// Number of damaged ranges. 0 if the only one is at the end of a compressed shard that another process scanned.
        gaps: u64,
        /// Bytes in these ranges, in the record stream.
        bytes: u64,
        /// Offset of the first range in the record stream.
        offset: u64,
        /// Number of sound records before it.
        records: u64,
    },
    /// A folder contains TFRecord files that are not part of the dataset, because a folder yields only files with a TFRecord extension.
    OtherNames {
        /// Path of the folder.
        path: PathBuf,
        /// Paths of the files, in natural order.
        found: Vec<PathBuf>,
    },
    /// A global order is used with small records and a dataset larger than memory, so each record takes a separate read.
    ScatteredReads {
        /// Mean size of a record in bytes.
        record_bytes: u64,
        /// Size of the dataset in bytes.
        dataset_bytes: u64,
        /// Memory limit of the process in bytes.
        memory_bytes: u64,
    },
    /// A global order is used with compressed shards, so access to a record decompresses the bytes from the checkpoint before it.
    ScatteredInflation {
        /// Number of decompressed bytes of the compressed shards.
        inflated_bytes: u64,
    },
}

impl Warning {
    /// Returns the name of the kind, the same in Python and in JSON: `file_refused`, `not_saved`, `shard_changed`,
    /// `damage_skipped`, `other_names`, `scattered_reads` or `scattered_inflation`.
    pub fn kind(&self) -> &'static str {
        match self {
            Warning::FileRefused { .. } => "file_refused",
            Warning::NotSaved { .. } => "not_saved",
            Warning::ShardChanged { .. } => "shard_changed",
            Warning::DamageSkipped { .. } => "damage_skipped",
            Warning::OtherNames { .. } => "other_names",
            Warning::ScatteredReads { .. } => "scattered_reads",
            Warning::ScatteredInflation { .. } => "scattered_inflation",
        }
    }

    /// Returns the path of the file or folder that the warning is about. `None` if it is about neither.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Warning::FileRefused { path, .. }
            | Warning::NotSaved { path, .. }
            | Warning::ShardChanged { path }
            | Warning::DamageSkipped { path, .. }
            | Warning::OtherNames { path, .. } => Some(path),
            Warning::ScatteredReads { .. } | Warning::ScatteredInflation { .. } => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", path.display())?;
        }
        match self {
            Warning::FileRefused { reason, .. } => write!(f, "file is not used: {reason}"),
            Warning::NotSaved { shards, reason, .. } => write!(
                f,
                "the indexes or columns of {} could not be saved and will be built again next time: {reason}",
                Count(*shards as u64, "shard")
            ),
            Warning::ShardChanged { .. } => {
                f.write_str("the shard changed while it was scanned, so its index or column is not saved")
            }
            Warning::DamageSkipped { gaps, bytes, offset, records, .. } => {
                let (ranges, bytes) = (Count(*gaps, "damaged range"), Count(*bytes, "byte"));
                match gaps {
                    0 => f.write_str("damaged bytes at the end are left out")?,
                    1 => write!(f, "{ranges} is left out, {bytes}; it begins")?,
                    _ => write!(f, "{ranges} are left out, {bytes}; the first one begins")?,
                }
                match gaps {
                    0 => Ok(()),
                    _ => write!(f, " at byte {offset}, after {}", Count(*records, "record")),
                }
            }
            Warning::OtherNames { found, .. } => {
                let (files, pronoun) = match found.len() {
                    1 => {
                        ("1 file has another name but is a TFRecord file and was not opened".to_owned(), "it")
                    }
                    n => (
                        format!("{n} files have other names but are TFRecord files and were not opened"),
                        "them",
                    ),
                };
                write!(f, "{files}: {}; name {pronoun}, or use a pattern", FileNames(found))
            }
            Warning::ScatteredReads { record_bytes, dataset_bytes, memory_bytes } => write!(
                f,
                "a global order over records of {record_bytes} bytes, in a dataset of {dataset_bytes} bytes with {memory_bytes} \
                 bytes of memory: each record takes a separate read in every epoch; a block order reads adjacent records together"
            ),
            Warning::ScatteredInflation { inflated_bytes } => write!(
                f,
                "a global order over compressed shards of {inflated_bytes} decompressed bytes: each record decompresses the bytes from \
                 the checkpoint before it; a block order decompresses them once per window, and unpacked shards need no decompression"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_fields() {
        let path = PathBuf::from("a/x.tfri");
        let refused = Warning::FileRefused { path: path.clone(), reason: "shorter than a header".into() };
        assert_eq!(refused.to_string(), "a/x.tfri: file is not used: shorter than a header");
        assert_eq!((refused.kind(), refused.path()), ("file_refused", Some(&*path)));
        let changed = Warning::ShardChanged { path };
        assert_eq!(
            changed.to_string(),
            "a/x.tfri: the shard changed while it was scanned, so its index or column is not saved"
        );
        let skipped =
            |gaps| Warning::DamageSkipped { path: "a".into(), gaps, bytes: 9, offset: 19, records: 1 };
        let message = "a: 1 damaged range is left out, 9 bytes; it begins at byte 19, after 1 record";
        assert_eq!((skipped(1).kind(), skipped(1).to_string()), ("damage_skipped", message.into()));
        let message =
            "a: 2 damaged ranges are left out, 9 bytes; the first one begins at byte 19, after 1 record";
        assert_eq!(skipped(2).to_string(), message);
        assert_eq!(skipped(0).to_string(), "a: damaged bytes at the end are left out");
        let scattered = Warning::ScatteredReads { record_bytes: 90, dataset_bytes: 900, memory_bytes: 800 };
        assert!(
            scattered
                .to_string()
                .starts_with("a global order over records of 90 bytes, in a dataset of 900 bytes")
        );
        assert_eq!((scattered.kind(), scattered.path()), ("scattered_reads", None));
    }
}
