//! Remedies of errors, for front ends that turn them into hints.

use super::files::Build;
use std::path::Path;

/// A remedy of an error, returned by [`ErrorKind::remedy`](super::ErrorKind::remedy).
///
/// Messages of [`Error`](super::Error) name no option, function or command, because the command, the Python
/// package and the crate have different names for them. Each front end adds its own hint for a remedy.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// Continue without the missing shards:
    /// [`DatasetOptions::allow_missing`](crate::DatasetOptions::allow_missing).
    AllowMissing,
    /// Build the index of the file: [`build_beside`](crate::index::build_beside).
    BuildIndex,
    /// Build the indexes or the columns of these shards: [`build_beside`](crate::index::build_beside),
    /// [`ColumnOptions::beside`](crate::column::ColumnOptions::beside).
    Build(&'a Build),
    /// Scan the file again: [`IndexMode::Rebuild`](crate::IndexMode::Rebuild).
    Rebuild,
    /// Write this pack again from its shards: [`write_pack`](crate::index::write_pack).
    WritePack(&'a Path),
    /// Delete this file. It is a cache and will be built again.
    Delete(&'a Path),
    /// Read without maps: [`Dataset::open`](crate::Dataset::open).
    ReadWithoutMaps,
    /// Decompress the shard, which makes random access possible.
    Unpack,
    /// Decompress the file, whose outer stream has this format, once.
    UnpackOnce(&'static str),
    /// Allow records of this number of bytes:
    /// [`DatasetOptions::max_record`](crate::DatasetOptions::max_record).
    MaxRecord(u64),
    /// Infer the schema from fewer records, or write it by hand.
    FewerRecords,
    /// Convert the file, or read it with a tool for its format.
    Convert,
    /// Extract the file. It is an archive, or has a compression that tfseek does not read.
    Extract,
    /// Extract the archive, or read it with this library.
    ExtractOr(&'static str),
    /// Fetch the file again. The download or the copy failed.
    FetchAgain,
    /// Fetch the file that the git-LFS pointer stands for.
    FetchLfs,
    /// Read the file with this library.
    ReadWith(&'static str),
    /// Open the shard that this index or column file belongs to.
    OpenShard,
    /// Open the pack under a name that ends in `.tfrp`.
    OpenPack,
    /// Repeat the run that was interrupted, or move the files of this folder back to the folder that it is
    /// in.
    PutBack(&'a Path),
    /// Read the records as SequenceExamples:
    /// [`MessageKind::SequenceExample`](crate::example::MessageKind::SequenceExample).
    SequenceExamples,
    /// Read the records without verification, because their writer computed the checksums in another way:
    /// [`Verify::None`](crate::Verify::None).
    Unverified,
    /// Leave out what is between the records: [`Damage::Skip`](crate::Damage::Skip).
    LeaveOut,
    /// Write each of the messages, which follow their lengths, as a record.
    Delimited,
    /// Write the message as a record.
    WriteRecords,
    /// Find out how the file was written and copied. No record of it can be read.
    NoRecords,
    /// Specify no compression, or the compression of the file.
    Compression,
}
