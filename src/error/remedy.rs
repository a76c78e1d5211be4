//! Remedies of errors, for front ends that spell them in the words of their users.

use super::files::Build;
use std::path::Path;

/// A remedy of an error: a hint for programs, which have it from [`ErrorKind::remedy`](super::ErrorKind::remedy).
///
/// Messages of [`Error`](super::Error) name no option, no function and no command, since a command, a Python package and a crate
/// have different ones for the same thing. Each of them adds its own words for this.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// Go on without the shards that are missing: [`DatasetOptions::allow_missing`](crate::DatasetOptions::allow_missing).
    AllowMissing,
    /// Build the index of the file: [`build_beside`](crate::index::build_beside).
    BuildIndex,
    /// Build the indexes, or the columns, of these shards: [`build_beside`](crate::index::build_beside),
    /// [`ColumnOptions::beside`](crate::column::ColumnOptions::beside).
    Build(&'a Build),
    /// Scan the file anew: [`IndexMode::Rebuild`](crate::IndexMode::Rebuild).
    Rebuild,
    /// Write this pack again, from its shards: [`write_pack`](crate::index::write_pack).
    WritePack(&'a Path),
    /// Delete this file, which is a cache: it is built again.
    Delete(&'a Path),
    /// Read without maps: [`Dataset::open`](crate::Dataset::open).
    ReadWithoutMaps,
    /// Decompress the shard, so that its records can be read by number.
    Unpack,
    /// Allow records of so many bytes: [`DatasetOptions::max_record`](crate::DatasetOptions::max_record).
    MaxRecord(u64),
    /// Infer the schema from fewer records, or write it by hand.
    FewerRecords,
    /// Convert the file, or read it with a tool for its format.
    Convert,
    /// Extract the file: it is an archive, or compressed in a way that is not read.
    Extract,
    /// Extract the archive, or read it with this library.
    ExtractOr(&'static str),
    /// Fetch the file again: the download or the copy went wrong.
    FetchAgain,
    /// Fetch the file for which git-LFS left a pointer.
    FetchLfs,
    /// Read the file with this library.
    ReadWith(&'static str),
    /// Open the shard that this index or column file belongs to.
    OpenShard,
    /// Open the pack under a name that ends in `.tfrp`.
    OpenPack,
    /// Name no compression, or the one that the file has.
    Compression,
}
