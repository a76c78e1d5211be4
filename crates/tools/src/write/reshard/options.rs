//! Options of resharding, and its result.

use std::path::PathBuf;
use std::sync::Arc;
use tfseek::Compression;
use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek_tfds::CopySource;

/// Options of [`reshard`](super::reshard()).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReshardOptions {
    /// Path of the output: a file (`small.tfrecord`), or a set of shards (`out/train@8.tfrecord`). `{split}`
    /// is the name of a split.
    pub out: PathBuf,
    /// Number or size of the shards, for a path without a number. Such a path is `train@*.tfrecord` or
    /// `train.tfrecord`.
    pub shards: Option<ShardCount>,
    /// The prepared data set that the dataset has all shards of ([`prepared`](super::prepared())). The output
    /// is then the folder of a data set, `out` or `out@8` with the number of shards of each split; by default
    /// the numbers are kept. Default: none.
    pub prepared: Option<Arc<CopySource>>,
    /// The records to write, for example from [`Dataset::select`](tfseek::Dataset::select). Default: all.
    pub records: Option<Subset>,
    /// Order of the records. Default: as in the dataset.
    pub order: OrderOptions,
    /// Seed of a shuffle and of a split. Default: 0.
    pub seed: u64,
    /// Splits of the records. Default: none.
    pub split: Option<SplitOptions>,
    /// Patterns of the features to keep (`*` and `?` are wildcards). Default: all. With patterns payloads are
    /// encoded again.
    pub keep: Vec<String>,
    /// Patterns of the features to drop.
    pub drop: Vec<String>,
    /// Message type of the payloads. Default: guessed from the first records.
    pub kind: Option<MessageKind>,
    /// Compression of the files. Default: by the suffix of the path (`.gz`, `.zz` and others).
    pub compression: Option<Compression>,
    /// Size of the members of gzip files
    /// ([`WriterOptions::members`](tfseek::writer::WriterOptions::members)). Default: one member.
    pub members: Option<u64>,
    /// Write an index of each file. Default: false.
    pub index: bool,
    /// Memory in bytes. Default: [`memory_limit`](super::memory_limit).
    pub memory: Option<u64>,
    /// Number of [`threads`](tfseek::threads). Default: one per processor. 0: the calling thread.
    pub threads: Option<usize>,
    /// Replace existing files. Default: false.
    pub force: bool,
}

impl ReshardOptions {
    /// Returns the default options for an output.
    pub fn new(out: impl Into<PathBuf>) -> ReshardOptions {
        ReshardOptions { out: out.into(), ..ReshardOptions::default() }
    }

    /// Returns true if payloads are decoded, because an option needs their features.
    pub fn decodes(&self) -> bool {
        let by = self.split.as_ref().is_some_and(|split| split.by.is_some());
        by || matches!(self.order, OrderOptions::Sorted { .. })
            || !self.keep.is_empty()
            || !self.drop.is_empty()
    }
}

/// Number or size of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardCount {
    /// Number of shards.
    Count(u64),
    /// Size of a shard in bytes, before compression. A shard is at most one record larger, and shards have
    /// about the same size.
    Size(u64),
}

/// Order of the records of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OrderOptions {
    /// As in the dataset.
    #[default]
    Stored,
    /// The global order of epoch 0 of the seed.
    Shuffled,
    /// Ascending by a feature with at most one value per record. Records with equal values keep their order,
    /// and records without a value come last.
    Sorted {
        /// Name of the feature.
        feature: String,
        /// Descending. Records with equal values still keep their order.
        reverse: bool,
    },
}

/// Splits of a dataset by a hash ([`tfseek::order::Split`]).
#[derive(Clone, Debug, PartialEq)]
pub struct SplitOptions {
    /// Names and fractions of the splits. The fractions sum to 1.
    pub splits: Vec<(String, f64)>,
    /// The feature whose values are hashed: records with equal values are in one split. `None`: the payload
    /// is hashed.
    pub by: Option<String>,
    /// The split of the records without a value of the feature. `None`: such a record is an error.
    pub missing: Option<String>,
}

/// The way in which records were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReshardWay {
    /// In one pass, each record read where it is.
    Direct,
    /// In two passes, through memory.
    Memory,
    /// In two passes, through temporary files.
    Files,
}

impl ReshardWay {
    /// Returns `direct`, `memory` or `files`.
    pub const fn name(self) -> &'static str {
        match self {
            ReshardWay::Direct => "direct",
            ReshardWay::Memory => "memory",
            ReshardWay::Files => "files",
        }
    }
}

/// The result of [`reshard`](super::reshard()).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReshardReport {
    /// The files, one set per split.
    pub sets: Vec<ReshardSet>,
    /// Number of records of the dataset that were not to be written.
    pub left_out: u64,
    /// The way in which the records were written.
    pub way: ReshardWay,
}

/// A set of shards that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReshardSet {
    /// Name of the split.
    pub split: Option<String>,
    /// Path of the set, as the library opens it: `train@8.tfrecord`, or the path of the file. In a copy of a
    /// prepared data set it is the folder of that if the names of the shards have another form, or there are
    /// none.
    pub path: PathBuf,
    /// Paths of the shards.
    pub shards: Vec<PathBuf>,
    /// Number of records.
    pub records: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// Number of records of each shard.
    pub(crate) lengths: Vec<u64>,
}
