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
    /// A window of a block order has more bytes of compressed shards than the dataset keeps decompressed, so its blocks are decompressed
    /// several times.
    LargeWindows {
        /// Number of decompressed bytes in a window.
        window_bytes: u64,
        /// Number of bytes that the dataset keeps.
        cache_bytes: u64,
        /// Largest window that fits, in blocks. 0 if not even one block fits.
        largest_window: u64,
    },
}

impl Warning {
    /// Returns the name of the kind, the same in Python and in JSON: `file_refused`, `not_saved`, `shard_changed`,
    /// `other_names`, `scattered_reads`, `scattered_inflation` or `large_windows`.
    pub fn kind(&self) -> &'static str {
        match self {
            Warning::FileRefused { .. } => "file_refused",
            Warning::NotSaved { .. } => "not_saved",
            Warning::ShardChanged { .. } => "shard_changed",
            Warning::OtherNames { .. } => "other_names",
            Warning::ScatteredReads { .. } => "scattered_reads",
            Warning::ScatteredInflation { .. } => "scattered_inflation",
            Warning::LargeWindows { .. } => "large_windows",
        }
    }

    /// Returns the path of the file or folder that the warning is about. `None` if it is about neither.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Warning::FileRefused { path, .. }
            | Warning::NotSaved { path, .. }
            | Warning::ShardChanged { path }
            | Warning::OtherNames { path, .. } => Some(path),
            Warning::ScatteredReads { .. }
            | Warning::ScatteredInflation { .. }
            | Warning::LargeWindows { .. } => None,
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
            Warning::LargeWindows { window_bytes, cache_bytes, largest_window } => {
                write!(
                    f,
                    "a block order with windows of {window_bytes} decompressed bytes, of which {cache_bytes} are kept: its blocks are \
                     decompressed several times; "
                )?;
                match largest_window {
                    0 => f.write_str("smaller blocks fit"),
                    blocks => write!(f, "windows of {} fit", Count(*blocks, "block")),
                }
            }
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
        let scattered = Warning::ScatteredReads { record_bytes: 90, dataset_bytes: 900, memory_bytes: 800 };
        assert!(
            scattered
                .to_string()
                .starts_with("a global order over records of 90 bytes, in a dataset of 900 bytes")
        );
        assert_eq!((scattered.kind(), scattered.path()), ("scattered_reads", None));
    }
}
