//! The location of an error.

use std::path::Path;
use std::sync::Arc;

/// The location of an error. Each part is `None` unless a layer that handled the error knew it.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Path of the file, as given by the caller.
    pub path: Option<Arc<Path>>,
    /// Ordinal of the record in that file (its *shard*), counted from 0.
    pub record: Option<u64>,
    /// Byte offset of the record's header in the record stream, which is the decompressed content of a
    /// compressed file.
    pub offset: Option<u64>,
    /// Key of the feature or name of the column, escaped where it is not printable.
    pub feature: Option<Box<str>>,
    /// The key of the record that is nearest to `feature`, if the record has no such feature, escaped
    /// likewise.
    pub nearest: Option<Box<str>>,
    /// A remark on a feature that the record does not have: it is elsewhere, has no kind, or other records
    /// have it.
    pub hint: Option<&'static str>,
    /// Row of the batch that was being parsed, counted from 0.
    pub row: Option<usize>,
    /// Step of a feature list, counted from 0.
    pub step: Option<usize>,
}

/// The location of a record, borrowed. [`Record`](crate::Record) and the views made from it contain one.
/// `Copy`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At<'a> {
    /// Path of the file, as given by the caller.
    pub path: Option<&'a Path>,
    /// Ordinal of the record in its shard.
    pub record: Option<u64>,
    /// Byte offset of the record's header in the record stream.
    pub offset: Option<u64>,
}

impl<'a> At<'a> {
    /// An unknown location, e.g. of a payload in a slice.
    pub const NOWHERE: At<'static> = At { path: None, record: None, offset: None };

    /// Returns the location of record `record`, whose header is at byte `offset` of `path`.
    pub fn new(path: &'a Path, record: u64, offset: u64) -> At<'a> {
        At { path: Some(path), record: Some(record), offset: Some(offset) }
    }
}
