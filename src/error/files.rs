//! Errors about files: compression, indexes, paths.

use super::text::{Count, FileNames, printable};
use std::fmt;
use std::path::{Path, PathBuf};

/// An error in a compressed record stream.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompressionError {
    /// The compressed bytes are not a valid stream of this format, or the stream's checksum does not match.
    Corrupt {
        /// `gzip` or `zlib`.
        format: &'static str,
        /// Message of the decoder.
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
        /// Offset in the compressed file at which they begin.
        at: u64,
    },
    /// The content of the stream is compressed again.
    Twice {
        /// `gzip` or `zlib`.
        format: &'static str,
        /// Format of the content.
        inner: &'static str,
    },
    /// The caller specified a format, and the first bytes belong to another.
    Mismatch {
        /// Format that the caller specified.
        expected: &'static str,
        /// Format that the first bytes indicate.
        found: &'static str,
    },
}

/// The index or column files that are missing and would have to be built.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Paths of up to three shards. For more shards: one pattern that matches all of them, or the first path
    /// if there is no such pattern.
    pub paths: Vec<String>,
    /// Number of further shards, which `paths` does not name.
    pub more: usize,
    /// Features whose columns are missing. Empty if indexes are missing.
    pub features: Vec<String>,
    /// What the scans cost if shards are objects of a store.
    pub(crate) cost: Option<ScanCost>,
}

/// Estimated cost of scans of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanCost {
    pub(crate) requests: u64,
    pub(crate) seconds: u64,
    /// The largest number of requests without an explicit request, if that is exceeded.
    pub(crate) limit: Option<u64>,
}

/// The reason why an index or a column file cannot be used.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexError {
    /// There is no usable index, and the options do not allow building one.
    Missing,
    /// Not a regular file, so its records can only be read in order.
    NotRegular {
        /// Type of the file, e.g. `a FIFO`.
        found: Box<str>,
    },
    /// The index describes an earlier state of the shard.
    Stale {
        /// Difference, with the expected and the found value.
        reason: Box<str>,
    },
    /// A shard changed after the pack that holds its index was written.
    StalePack {
        /// The pack.
        pack: Box<Path>,
        /// Difference, with the expected and the found value.
        reason: Box<str>,
    },
    /// The file is damaged, has a later version, or is not an index.
    Refused {
        /// Reason for the refusal.
        reason: Box<str>,
    },
    /// A block's crc does not match, or an entry of the block is out of bounds.
    CorruptBlock {
        /// The index file.
        file: Box<Path>,
        /// Number of the block, counted from 0.
        block: u64,
        /// Check that failed.
        reason: &'static str,
    },
    /// A section of a column file, or of a file of tables, failed a check.
    CorruptSection {
        /// The file, which is not the shard.
        file: Box<Path>,
        /// Name of the section on the format page.
        section: &'static str,
        /// Check that failed.
        reason: &'static str,
    },
    /// There is no usable column file of a feature, and the options do not allow building one.
    NoColumn {
        /// Reason why the existing file is not used. `None` if there is no file.
        found: Option<&'static str>,
        /// The indexes or columns that would have to be built.
        build: Box<Build>,
    },
    /// The lengths in the record's header and in the index differ: the shard was changed in place.
    LengthMismatch {
        /// Payload length according to the index.
        indexed: u64,
        /// Payload length according to the header.
        stored: u64,
    },
    /// More bytes would have to be scanned than the limit for scans that were not requested explicitly; of
    /// objects of a store, or more than 20,000 requests made.
    BuildLimit {
        /// Number of shards without a usable index.
        shards: usize,
        /// Number of bytes to scan.
        bytes: u64,
        /// Limit in bytes.
        limit: u64,
        /// The indexes or columns that would have to be built.
        build: Box<Build>,
    },
    /// Bytes follow the last whole record of a compressed shard, or the end of its compressed stream is
    /// missing. The index does not contain their number.
    TornTail,
    /// Two shards would have the same index file.
    NameClash {
        /// The other shard.
        other: Box<Path>,
    },
}

/// The reason why paths do not specify a dataset.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathsError {
    /// No file matches.
    NoMatch {
        /// The pattern, as given.
        pattern: Box<str>,
    },
    /// No shards of a set `stem@N`, and other sets of its name in the folder; or none in a folder, and some
    /// in the folders below it.
    OtherSets {
        /// The set, as given, or the pattern of the folder's shards.
        pattern: Box<str>,
        /// The other sets, as `stem@N`, at most the first 8; or `folder/**`.
        found: Vec<PathBuf>,
    },
    /// A pattern or a folder has a data set twice: in two compressions, or as sets with two numbers of
    /// shards.
    Twice {
        /// The two sets, as `stem@N`, or the two files.
        found: [PathBuf; 2],
    },
    /// The pattern is invalid.
    BadPattern {
        /// The pattern, as given.
        pattern: Box<str>,
        /// Reason why it is invalid.
        reason: Box<str>,
    },
    /// Shards of a set `-NNNNN-of-NNNNN` are missing.
    MissingShards {
        /// The set, as `stem-?-of-NNNNN`.
        set: Box<str>,
        /// Number of shards in the set.
        total: u64,
        /// Missing shards in ascending order, at most the first 1000.
        missing: Vec<PathBuf>,
        /// Number of all missing shards.
        missing_count: u64,
    },
    /// A run that replaces a set of files was interrupted, or is still at work: the last file of the set does
    /// not exist.
    Interrupted {
        /// The set, as `stem@N`, or the file.
        set: Box<Path>,
        /// The folder with old files. Moved back to their folder, they restore the old set.
        folder: Box<Path>,
        /// Number of old files in it.
        files: usize,
    },
    /// The address of an object store or a server instead of a path. Only local files are read.
    NotLocal {
        /// The address, as given.
        address: Box<str>,
        /// Scheme of the address, e.g. `gs` or `s3`.
        scheme: Box<str>,
    },
    /// The dataset has more shards than the process may map.
    TooManyMaps {
        /// Number of shards in the dataset.
        shards: usize,
        /// Number of maps that the process may hold.
        budget: usize,
    },
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionError::Corrupt { format, reason } => write!(f, "corrupt {format} stream: {reason}"),
            CompressionError::Twice { format, inner } => {
                write!(f, "compressed twice: expected records in the {format} stream, found a {inner} stream")
            }
            CompressionError::Cut { format } => {
                write!(f, "truncated: the file ends inside its {format} stream")
            }
            CompressionError::TrailingData { format, at } => {
                write!(
                    f,
                    "expected the end of the file after the {format} stream at byte {at}, found more bytes"
                )
            }
            CompressionError::Mismatch { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::Missing => f.write_str("no usable index, and building one is not allowed"),
            IndexError::Stale { reason } => write!(f, "stale index: {reason}"),
            IndexError::StalePack { pack, reason } => {
                write!(f, "stale index in the pack {}: {reason}", printable(&**pack))
            }
            IndexError::NotRegular { found } => {
                write!(f, "expected a regular file, found {found}: its records can only be read in order")
            }
            IndexError::Refused { reason } => write!(f, "invalid index: {reason}"),
            IndexError::CorruptBlock { file, block, reason } => {
                write!(f, "corrupt index {}: block {block}: {reason}", printable(&**file))
            }
            IndexError::CorruptSection { file, section, reason } => {
                write!(f, "corrupt file {}: section {section}: {reason}", printable(&**file))
            }
            IndexError::NoColumn { found, .. } => {
                f.write_str("no usable column file, and building one is not allowed")?;
                found.map_or(Ok(()), |why| write!(f, ": {why}"))
            }
            IndexError::LengthMismatch { indexed, stored } => write!(
                f,
                "expected a payload of {indexed} bytes by the index, found {stored} by the header: the shard changed after \
                 it was indexed"
            ),
            IndexError::BuildLimit { shards, bytes, limit, build } => {
                write_build_limit(f, *shards, *bytes, *limit, build.cost)
            }
            IndexError::TornTail => f.write_str(
                "truncated: the shard does not end after the last whole record, according to the index",
            ),
            IndexError::NameClash { other } => {
                write!(f, "the index file would be the same as that of {}", printable(&**other))
            }
        }
    }
}

/// Writes the error that a scan would exceed a limit: in bytes, or in requests if `cost` has a limit of them.
fn write_build_limit(
    f: &mut fmt::Formatter<'_>,
    shards: usize,
    bytes: u64,
    limit: u64,
    cost: Option<ScanCost>,
) -> fmt::Result {
    let shards = Count(shards as u64, "shard");
    let text = "to scan without an explicit request, found";
    match cost.and_then(|cost| cost.limit) {
        Some(most) => write!(f, "expected at most {most} requests {text} {bytes} bytes in {shards}")?,
        None => write!(f, "expected at most {limit} bytes {text} {bytes} in {shards}")?,
    }
    cost.map_or(Ok(()), |ScanCost { requests, seconds, .. }| {
        write!(f, ": about {} and {}", Count(requests, "request"), Count(seconds, "second"))
    })
}

impl fmt::Display for PathsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathsError::NoMatch { pattern } => write!(f, "no file matches {}", printable(&**pattern)),
            PathsError::OtherSets { pattern, found } => {
                write!(f, "no file matches {}, but there is ", printable(&**pattern))?;
                match found.as_slice() {
                    [below] if below.ends_with("**") => write!(f, "{}", printable(below)),
                    sets => write!(f, "{}", FileNames(sets)),
                }
            }
            PathsError::Twice { found: [a, b] } => write!(
                f,
                "expected each data set once, found {} and {}, whose records would come twice: name one of them, or both",
                printable(a),
                printable(b)
            ),
            PathsError::BadPattern { pattern, reason } => {
                write!(f, "{}: invalid pattern: {reason}", printable(&**pattern))
            }
            PathsError::NotLocal { address, scheme } if scheme.eq_ignore_ascii_case("file") => {
                write!(
                    f,
                    "{}: expected a path, found a {scheme}:// address: remove the {scheme}://",
                    printable(&**address)
                )
            }
            PathsError::NotLocal { address, scheme } => write!(
                f,
                "{}: expected a local path, found a {scheme}:// address: copy the files to a disk, or mount the store",
                printable(&**address)
            ),
            PathsError::MissingShards { set, total, missing, missing_count } => {
                let verb = if *missing_count == 1 { "is" } else { "are" };
                let set = printable(&**set);
                let shards = Count(*total, "shard");
                write!(f, "{set}: {missing_count} of {shards} {verb} missing:")?;
                for path in missing.iter().take(8) {
                    write!(f, " {}", printable(path))?;
                }
                if *missing_count > missing.len().min(8) as u64 { f.write_str(" ..") } else { Ok(()) }
            }
            PathsError::Interrupted { set, folder, files } => {
                let verb = if *files == 1 { "is" } else { "are" };
                let set = printable(&**set);
                let files = Count(*files as u64, "old file");
                let folder = printable(&**folder);
                write!(
                    f,
                    "{set}: a run that replaces it was interrupted, or is still at work; {files} {verb} in {folder}"
                )
            }
            PathsError::TooManyMaps { shards, budget } => {
                write!(
                    f,
                    "expected at most {budget} shards, the number of maps of this process, found {shards}"
                )
            }
        }
    }
}
