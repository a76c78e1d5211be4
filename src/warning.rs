//! Warnings: conditions that do not stop a call and that a user should know of.

use crate::error::{Count, Error, FileNames, printable};
use std::fmt;
use std::path::{Path, PathBuf};

/// A warning: a condition that does not stop a call and that a user should know of.
///
/// [`Display`](fmt::Display) is the message for users. [`kind`](Warning::kind), [`path`](Warning::path) and
/// the fields are for programs.
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
    /// Indexes or columns could not be saved in any folder and will be built again next time. Reported once
    /// for all shards.
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
    /// Damaged records of a shard or stream are left out, as [`Damage::Skip`](crate::policy::Damage::Skip)
    /// allows.
    DamageSkipped {
        /// Path of the shard.
        path: PathBuf,
        /// All ranges without a sound record, in order.
        gaps: Vec<Gap>,
        /// Bytes in these ranges.
        bytes: u64,
        /// Number of sound records, which are kept.
        records: u64,
    },
    /// Records are left out, as [`Damage::Skip`](crate::policy::Damage::Skip) allows, because they do not
    /// decode as the message that is read. Their checksums are correct.
    PayloadsSkipped {
        /// Path of the shard of the first one.
        path: PathBuf,
        /// Number of records that are left out.
        skipped: u64,
        /// Error of the first one, with path, record and offset.
        first: Box<str>,
    },
    /// The end of a shard or stream is left out, as [`Tail::Tolerate`](crate::policy::Tail::Tolerate) allows:
    /// an incomplete record, bytes after a compressed file, or a trailer of a compressed file that is cut or
    /// missing.
    TornTail {
        /// Path of the shard.
        path: PathBuf,
        /// Number of complete records, which are kept. In a part of a shard, the records of the part.
        records: u64,
        /// Offset in the file of the first byte that is left out. In a compressed file it is after the
        /// compressed data that are used.
        offset: u64,
        /// Bytes of the file that are left out from there on. 0 if the trailer of a compressed file is
        /// missing.
        bytes: u64,
        /// Decompressed bytes of an incomplete record that are left out. 0 in a file that is not compressed.
        inflated_bytes: u64,
    },
    /// A folder contains TFRecord files that are not part of the dataset, because a folder yields only files
    /// with a TFRecord extension.
    OtherNames {
        /// Path of the folder.
        path: PathBuf,
        /// Paths of the files, in natural order.
        found: Vec<PathBuf>,
    },
    /// Scattered records are read, which are small, of a dataset larger than memory, so each record takes a
    /// separate read.
    ScatteredReads {
        /// Mean size of a record in bytes.
        record_bytes: u64,
        /// Size of the dataset in bytes.
        dataset_bytes: u64,
        /// Memory limit of the process in bytes.
        memory_bytes: u64,
    },
    /// Compressed shards have deflate blocks of many bytes, or inflate to hundreds of times their size, so
    /// that their checkpoints are far apart. Decompression can only begin at a checkpoint, so access to one
    /// record may decompress all bytes up to it. Reported once for all shards of a dataset.
    LongBlocks {
        /// Path of the first such shard.
        path: PathBuf,
        /// Number of such shards.
        shards: usize,
        /// Decompressed bytes of the longest block, or their mean in a shard whose index was not read yet.
        bytes: u64,
    },
    /// Scattered records of compressed shards are read, so access to a record decompresses the bytes from the
    /// checkpoint before it.
    ScatteredInflation {
        /// Number of decompressed bytes of the compressed shards.
        inflated_bytes: u64,
    },
    /// A block order is used with compressed shards, and decompression up to the start of a block takes more
    /// than a fifth of the block.
    BlockStarts {
        /// Decompressed bytes of a block.
        block_bytes: u64,
        /// Bytes that are decompressed before a block on average.
        start_bytes: u64,
        /// Size of a block that is enough, for [`block_bytes`](crate::LoaderOptions::block_bytes).
        enough_bytes: u64,
    },
    /// Scattered records of objects are read, which are small, so that each takes a request of its own.
    ScatteredRequests {
        /// Mean size of a record in bytes.
        record_bytes: u64,
        /// Number of records.
        records: u64,
    },
    /// Classes are balanced in blocks, and one is in so few blocks that most windows have no sample of it.
    RareClass {
        /// Number of blocks that have a record of it.
        blocks: u64,
        /// Number of windows.
        windows: u64,
    },
    /// A warning of a layer above. It is about that layer's [tables of records](crate::tables), or about
    /// [records made of others](crate::dataset::DerivedRecords).
    Derived {
        /// The [`kind`](Warning::kind).
        kind: &'static str,
        /// Path of the shard that it is about.
        path: PathBuf,
        /// The message.
        message: Box<str>,
    },
    /// None of the first records has a feature of the schema, and one has a feature of a similar name.
    UnknownFeature {
        /// Name in the schema.
        feature: Box<str>,
        /// The nearest name that a record has.
        nearest: Box<str>,
    },
    /// None of the first records has a feature of the schema, so it has its default or no values, and none
    /// has one of a similar name.
    AbsentFeature {
        /// Name in the schema.
        feature: Box<str>,
        /// Set if the name is on another side of the records: the name of a feature list, or of a feature of
        /// the context.
        place: Option<&'static str>,
    },
}

/// A range of bytes without a sound record.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Offset of the first byte: in the record stream, or in the file if the bytes are
    /// [`compressed`](Gap::compressed).
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// Number of sound records before it.
    pub records: u64,
    /// True if these are bytes of a compressed file that cannot be decompressed.
    pub compressed: bool,
}

impl Gap {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

impl Warning {
    /// Returns a warning about these gaps. `records` is the number of sound records.
    pub(crate) fn damage_skipped(path: &Path, gaps: Vec<Gap>, records: u64) -> Warning {
        // An index may declare any number of inflated bytes before its last gap.
        let bytes = gaps.iter().fold(0u64, |sum, gap| sum.saturating_add(gap.bytes()));
        Warning::DamageSkipped { path: path.into(), gaps, bytes, records }
    }

    /// Returns a warning about records that are left out because they do not decode. `first` is the error of
    /// the first one, and `skipped` the number of all.
    pub fn payloads_skipped(first: &Error, skipped: u64) -> Warning {
        let path = first.location().path.as_deref().unwrap_or(Path::new("")).to_path_buf();
        Warning::PayloadsSkipped { path, skipped, first: first.to_string().into() }
    }

    /// Returns the name of the kind, the same in Python and in JSON: `file_refused`, `not_saved`,
    /// `shard_changed`, `damage_skipped`, `payloads_skipped`, `torn_tail`, `other_names`, `long_blocks`,
    /// `scattered_reads`, `scattered_inflation`, `block_starts`, `scattered_requests`, `rare_class` or
    /// `unknown_feature`. The names of [`Derived`](Warning::Derived) come from the layer above.
    pub fn kind(&self) -> &'static str {
        match self {
            Warning::FileRefused { .. } => "file_refused",
            Warning::NotSaved { .. } => "not_saved",
            Warning::ShardChanged { .. } => "shard_changed",
            Warning::DamageSkipped { .. } => "damage_skipped",
            Warning::PayloadsSkipped { .. } => "payloads_skipped",
            Warning::TornTail { .. } => "torn_tail",
            Warning::OtherNames { .. } => "other_names",
            Warning::LongBlocks { .. } => "long_blocks",
            Warning::ScatteredReads { .. } => "scattered_reads",
            Warning::ScatteredInflation { .. } => "scattered_inflation",
            Warning::BlockStarts { .. } => "block_starts",
            Warning::ScatteredRequests { .. } => "scattered_requests",
            Warning::Derived { kind, .. } => kind,
            Warning::RareClass { .. } => "rare_class",
            Warning::UnknownFeature { .. } | Warning::AbsentFeature { .. } => "unknown_feature",
        }
    }

    /// Returns the path of the file or folder that the warning is about. `None` if it is about neither.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Warning::FileRefused { path, .. }
            | Warning::NotSaved { path, .. }
            | Warning::ShardChanged { path }
            | Warning::DamageSkipped { path, .. }
            | Warning::PayloadsSkipped { path, .. }
            | Warning::TornTail { path, .. }
            | Warning::OtherNames { path, .. }
            | Warning::LongBlocks { path, .. }
            | Warning::Derived { path, .. } => Some(path),
            Warning::ScatteredReads { .. }
            | Warning::ScatteredInflation { .. }
            | Warning::BlockStarts { .. }
            | Warning::ScatteredRequests { .. }
            | Warning::RareClass { .. }
            | Warning::UnknownFeature { .. }
            | Warning::AbsentFeature { .. } => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The error of the first left out record has the path.
        match self.path().filter(|_| !matches!(self, Warning::PayloadsSkipped { .. })) {
            Some(path) => write!(f, "{}: {}", printable(path), self.message()),
            None => f.write_str(&self.message()),
        }
    }
}

/// A recommendation of several warnings.
const BLOCK_ORDER: &str = "a block order (shuffle=\"block\", --shuffle block)";

impl Warning {
    /// Returns the message without the path.
    fn message(&self) -> String {
        match self {
            Warning::FileRefused { reason, .. } => format!("file is not used: {reason}"),
            Warning::NotSaved { shards, reason, .. } => format!(
                "the indexes or columns of {} could not be saved and will be built again next time: {reason}",
                Count(*shards as u64, "shard")
            ),
            Warning::ShardChanged { .. } => {
                "the shard changed while it was scanned, so its index or column is not saved".into()
            }
            Warning::DamageSkipped { gaps, bytes, .. } => damage_skipped(gaps, *bytes),
            Warning::PayloadsSkipped { skipped: 1, first, .. } => format!("1 record was left out: {first}"),
            Warning::PayloadsSkipped { skipped, first, .. } => {
                format!("{skipped} records were left out; the first: {first}")
            }
            Warning::TornTail { records, offset, bytes, inflated_bytes, .. } => {
                let end = torn_end(*offset, *bytes, *inflated_bytes);
                format!("the end is torn: {end}, after {}", Count(*records, "record"))
            }
            Warning::OtherNames { found, .. } => other_names(found),
            Warning::ScatteredReads { record_bytes, dataset_bytes, memory_bytes } => format!(
                "an order of scattered records of {record_bytes} bytes, in a dataset of {dataset_bytes} bytes with \
                 {memory_bytes} bytes of memory: each record takes a separate read in every epoch; {BLOCK_ORDER} reads adjacent \
                 records together"
            ),
            Warning::LongBlocks { shards, bytes, .. } => long_blocks(*shards, *bytes),
            Warning::ScatteredInflation { inflated_bytes } => format!(
                "an order of scattered records over compressed shards of {inflated_bytes} decompressed bytes: each record \
                 decompresses the bytes from the checkpoint before it; {BLOCK_ORDER} decompresses them once per window, and \
                 unpacked shards (tfseek.unpack, tfseek unpack) need no decompression"
            ),
            Warning::BlockStarts { block_bytes, start_bytes, enough_bytes } => format!(
                "a block order over compressed shards in blocks of {block_bytes} decompressed bytes: each decompresses \
                 {start_bytes} more bytes before its start, on average; blocks of {enough_bytes} bytes (block_bytes) keep that \
                 below a fifth"
            ),
            Warning::ScatteredRequests { record_bytes, records } => format!(
                "an order of scattered records over {} of {record_bytes} bytes in objects: each takes a request of its own, which \
                 costs as much as 256 KiB; {BLOCK_ORDER} requests about 1 MiB at a time, and a copy (tfseek.fetch, tfseek fetch) \
                 needs none",
                Count(*records, "record")
            ),
            Warning::RareClass { blocks, windows } => rare_class(*blocks, *windows),
            Warning::Derived { message, .. } => String::from(&**message),
            Warning::UnknownFeature { feature, nearest } => {
                no_feature(feature, &format!("; the nearest name is \"{}\"", nearest.escape_debug()))
            }
            Warning::AbsentFeature { feature, place } => match place {
                Some(place) => no_feature(feature, &format!(" there: {place}")),
                None => no_feature(feature, ": its values are the default, or none"),
            },
        }
    }
}

fn damage_skipped(gaps: &[Gap], bytes: u64) -> String {
    let ranges = Count(gaps.len() as u64, "damaged range");
    let bytes = Count(bytes, "byte");
    let Some(first) = gaps.first() else { return format!("{ranges} are left out") };
    let start = match gaps.len() {
        1 => format!("{ranges} is left out, {bytes}; it begins at byte {}", first.start),
        _ => format!("{ranges} are left out, {bytes}; the first one begins at byte {}", first.start),
    };
    let of = if first.compressed { " of the compressed file" } else { "" };
    format!("{start}{of}, after {}", Count(first.records, "record"))
}

/// Returns what a torn file leaves out.
fn torn_end(offset: u64, bytes: u64, inflated_bytes: u64) -> String {
    let stored = Count(bytes, "byte");
    let inflated = Count(inflated_bytes, "decompressed byte");
    match (inflated_bytes, bytes) {
        (0, 0) => "the trailer of the compressed file is missing".into(),
        (0, _) => format!("{stored} from byte {offset} on left out"),
        (_, 0) => format!("{inflated} left out"),
        _ => format!("{inflated} left out, and {stored} from byte {offset} on"),
    }
}

fn other_names(found: &[PathBuf]) -> String {
    let names = FileNames(found);
    match found.len() {
        1 => format!(
            "1 file has another name but is a TFRecord file and was not opened: {names}; name it, or use a pattern"
        ),
        n => format!(
            "{n} files have other names but are TFRecord files and were not opened: {names}; name them, or use a pattern"
        ),
    }
}

fn long_blocks(shards: usize, bytes: u64) -> String {
    let others = match shards {
        0 | 1 => String::new(),
        _ => format!("and {}: ", Count(shards as u64 - 1, "more shard")),
    };
    format!(
        "{others}deflate blocks of {bytes} decompressed bytes: access to a record may decompress all bytes of its block \
         before it; unpacked files need no decompression"
    )
}

fn rare_class(blocks: u64, windows: u64) -> String {
    let blocks = Count(blocks, "block");
    let windows = Count(windows, "window");
    format!(
        "balanced classes in blocks: one class is in {blocks} for {windows}, so that windows without it have equal numbers \
         of the others only; a global order, or larger blocks, balances all"
    )
}

fn no_feature(feature: &str, rest: &str) -> String {
    format!("none of the first records has a feature \"{}\"{rest}", feature.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn gaps_of_a_forged_index_have_a_sum() {
        let gap = |end| Gap { start: 0, end, records: 0, compressed: false };
        let warning = Warning::damage_skipped(Path::new("x"), vec![gap(2), gap(u64::MAX)], 0);
        assert!(matches!(warning, Warning::DamageSkipped { bytes: u64::MAX, .. }), "{warning:?}");
    }

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
        let gap = |start, end| Gap { start, end, records: 1, compressed: start > 50 };
        let skipped = |gaps: &[Gap]| Warning::damage_skipped(Path::new("a"), gaps.to_vec(), 7);
        let message = "a: 1 damaged range is left out, 9 bytes; it begins at byte 19, after 1 record";
        let one = skipped(&[gap(19, 28)]);
        assert_eq!((one.kind(), one.to_string()), ("damage_skipped", message.into()));
        assert!(matches!(one, Warning::DamageSkipped { bytes: 9, records: 7, .. }));
        let message =
            "a: 2 damaged ranges are left out, 9 bytes; the first one begins at byte 19, after 1 record";
        assert_eq!(skipped(&[gap(19, 22), gap(30, 36)]).to_string(), message);
        let message = "a: 1 damaged range is left out, 5 bytes; it begins at byte 60 of the compressed file, after 1 record";
        assert_eq!(skipped(&[gap(60, 65)]).to_string(), message);
        let torn = |bytes, inflated_bytes| Warning::TornTail {
            path: "a".into(),
            records: 99,
            offset: 2400,
            bytes,
            inflated_bytes,
        };
        let messages = [
            (7, 0, "7 bytes from byte 2400 on left out"),
            (0, 1, "1 decompressed byte left out"),
            (3, 9, "9 decompressed bytes left out, and 3 bytes from byte 2400 on"),
            (0, 0, "the trailer of the compressed file is missing"),
        ];
        for (bytes, inflated, message) in messages {
            let message = format!("a: the end is torn: {message}, after 99 records");
            assert_eq!(
                (torn(bytes, inflated).kind(), torn(bytes, inflated).to_string()),
                ("torn_tail", message)
            );
        }
        let skipped =
            |n| Warning::payloads_skipped(&Error::from(ErrorKind::Cancelled).in_file(Path::new("a")), n);
        let message = "1 record was left out: a: cancelled by the caller";
        assert_eq!((skipped(1).kind(), skipped(1).to_string()), ("payloads_skipped", message.into()));
        assert_eq!(skipped(2).to_string(), "2 records were left out; the first: a: cancelled by the caller");
        assert_eq!(skipped(1).path(), Some(Path::new("a")));
        let scattered = Warning::ScatteredReads { record_bytes: 90, dataset_bytes: 900, memory_bytes: 800 };
        assert!(
            scattered
                .to_string()
                .starts_with("an order of scattered records of 90 bytes, in a dataset of 900 bytes")
        );
        assert_eq!((scattered.kind(), scattered.path()), ("scattered_reads", None));
    }
}
