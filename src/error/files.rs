//! What is wrong with files: their compression, their indexes, their names.

use std::fmt;
use std::path::{Path, PathBuf};

/// The fault of a compressed record stream.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompressionError {
    /// The compressed bytes are not a stream of this format (or its checksum does not hold).
    Corrupt {
        /// `gzip` or `zlib`.
        format: &'static str,
        /// The decoder's words.
        reason: Box<str>,
    },
    /// The compressed file ends inside the stream.
    Cut {
        /// `gzip` or `zlib`.
        format: &'static str,
    },
    /// Bytes follow the end of the stream.
    TrailingData {
        /// `gzip` or `zlib`.
        format: &'static str,
        /// Where in the compressed file they begin.
        at: u64,
    },
    /// The caller named a format, the bytes look like another.
    Mismatch {
        /// What the caller said.
        expected: &'static str,
        /// What the bytes look like.
        found: &'static str,
    },
}

/// The index or column files that are missing, and would have to be built.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// The paths of up to three shards, or one pattern that all match; of more shards without a pattern the first path.
    pub paths: Vec<String>,
    /// Shards that `paths` does not name.
    pub more: usize,
    /// The features whose columns are missing; empty if indexes are.
    pub features: Vec<String>,
}

/// The reason why an index or a column file cannot be used.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexError {
    /// There is none, and none may be built.
    Missing,
    /// Not a regular file: its records can only be read in order.
    NotRegular {
        /// What it is: `a FIFO`.
        found: Box<str>,
    },
    /// There is one, of an earlier state of the shard.
    Stale {
        /// What differs: expected and found.
        reason: Box<str>,
    },
    /// A shard changed after the pack that holds its index was written.
    StalePack {
        /// The pack.
        pack: Box<Path>,
        /// What differs: expected and found.
        reason: Box<str>,
    },
    /// The file is damaged, of a later version, or not an index.
    Refused {
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A block's crc or an entry's bounds do not hold.
    CorruptBlock {
        /// The index file.
        file: Box<Path>,
        /// The block, counted from 0.
        block: u64,
        /// What does not hold.
        reason: &'static str,
    },
    /// A section of a column file does not hold.
    CorruptSection {
        /// The column file.
        file: Box<Path>,
        /// The section's name on the format page.
        section: &'static str,
        /// What does not hold.
        reason: &'static str,
    },
    /// There is no column file of a feature, and none may be built.
    NoColumn {
        /// Why the one that there is was not taken.
        found: Option<&'static str>,
        /// The indexes or columns that would have to be built.
        build: Box<Build>,
    },
    /// The record's header has another length than the index: the shard was changed in place.
    LengthMismatch {
        /// The payload length by the index.
        indexed: u64,
        /// The payload length by the header.
        stored: u64,
    },
    /// More bytes would have to be scanned than is allowed without an explicit request.
    BuildLimit {
        /// Shards without a usable index.
        shards: usize,
        /// Bytes to scan.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// The indexes or columns that would have to be built.
        build: Box<Build>,
    },
    /// An index in text form: a line that is wrong.
    Text {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// Bytes are left after the last whole record of a compressed shard: its index does not say how many.
    TornTail,
    /// Two shards would have the same index file.
    NameClash {
        /// The other shard.
        other: Box<Path>,
    },
}

/// The reason why paths do not name a dataset.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathsError {
    /// Nothing matches.
    NoMatch {
        /// The pattern, as given.
        pattern: Box<str>,
    },
    /// Not a pattern that can be understood.
    BadPattern {
        /// The pattern, as given.
        pattern: Box<str>,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// Shards of a set `-NNNNN-of-NNNNN` are missing.
    MissingShards {
        /// The set, as `stem-?-of-NNNNN`.
        set: Box<str>,
        /// How many the set has.
        total: u64,
        /// The missing ones, in order (the first thousand of them).
        missing: Vec<PathBuf>,
        /// How many are missing in all.
        missing_count: u64,
    },
    /// The address of a store or a server, and no path: only local files are read.
    NotLocal {
        /// The address, as given.
        address: Box<str>,
        /// Its scheme: `gs`, `s3`.
        scheme: Box<str>,
    },
    /// More shards than a process may map.
    TooManyMaps {
        /// Shards in the dataset.
        shards: usize,
        /// Maps this process may hold.
        budget: usize,
    },
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionError::Corrupt { format, reason } => write!(f, "damaged {format} stream: {reason}"),
            CompressionError::Cut { format } => write!(f, "the file ends inside its {format} stream"),
            CompressionError::TrailingData { format, at } => {
                write!(f, "the {format} stream ends at byte {at} of the file, but more bytes follow")
            }
            CompressionError::Mismatch { expected, found } => {
                write!(f, "expected {expected}, the bytes look like {found}")
            }
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::Missing => f.write_str("no usable index, and none may be built"),
            IndexError::Stale { reason } => write!(f, "stale index: {reason}"),
            IndexError::StalePack { pack, reason } => {
                write!(f, "stale index: {reason}; the pack {} is older", pack.display())
            }
            IndexError::NotRegular { found } => {
                write!(f, "{found}: records that can only be read in order cannot be indexed")
            }
            IndexError::Refused { reason } => write!(f, "index refused: {reason}"),
            IndexError::CorruptBlock { file, block, reason } => {
                write!(f, "index {}, block {block}: {reason}", file.display())
            }
            IndexError::CorruptSection { file, section, reason } => {
                write!(f, "column {}, section {section}: {reason}", file.display())
            }
            IndexError::NoColumn { found, .. } => {
                f.write_str("no usable column file, and none may be built")?;
                found.map_or(Ok(()), |why| write!(f, " ({why})"))
            }
            IndexError::LengthMismatch { indexed, stored } => write!(
                f,
                "the index says {indexed} bytes of payload, the header {stored}: the shard was changed \
                 after it was indexed"
            ),
            IndexError::BuildLimit { shards, bytes, limit, .. } => write!(
                f,
                "{bytes} bytes of {shards} shards would be scanned, more than the {limit} that are scanned unasked"
            ),
            IndexError::Text { line, reason } => write!(f, "index line {line}: {reason}"),
            IndexError::TornTail => {
                f.write_str("truncated: the stream ends inside this record, by its index")
            }
            IndexError::NameClash { other } => {
                write!(f, "{} would have the same index file", other.display())
            }
        }
    }
}

impl fmt::Display for PathsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathsError::NoMatch { pattern } => write!(f, "no file matches {pattern}"),
            PathsError::BadPattern { pattern, reason } => write!(f, "{pattern}: {reason}"),
            PathsError::NotLocal { address, scheme } if scheme.eq_ignore_ascii_case("file") => {
                write!(f, "{address}: tfseek takes paths: give it without the {scheme}://")
            }
            PathsError::NotLocal { address, scheme } => write!(
                f,
                "{address}: tfseek reads local files only, no {scheme}:// addresses: \
                 copy the files to a disk, or mount the store"
            ),
            PathsError::MissingShards { set, total, missing, missing_count } => {
                write!(f, "{set}: {missing_count} of {total} shards are missing:")?;
                for path in missing.iter().take(8) {
                    write!(f, " {}", path.display())?;
                }
                if *missing_count > missing.len().min(8) as u64 {
                    write!(f, " ..")?;
                }
                Ok(())
            }
            PathsError::TooManyMaps { shards, budget } => {
                write!(f, "{shards} shards, but this process may map {budget} files")
            }
        }
    }
}
