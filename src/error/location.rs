//! The location of an error.

use std::path::Path;
use std::sync::Arc;

/// The location of an error. Each part is known only if the layer that met the error knew it.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The file, as the caller named it.
    pub path: Option<Arc<Path>>,
    /// The record's ordinal in that file (its *shard*), counted from 0.
    pub record: Option<u64>,
    /// The byte offset of the record's header, in the record stream (inflated, if the file is compressed).
    pub offset: Option<u64>,
    /// The feature's key (or the column's name), escaped where it is not printable.
    pub feature: Option<Box<str>>,
    /// The row of a batch that was being parsed, counted from 0.
    pub row: Option<usize>,
    /// The step of a feature list, counted from 0.
    pub step: Option<usize>,
}

/// The location of a record, borrowed. A [`Record`](crate::Record) and the views made from it carry it along. `Copy`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At<'a> {
    /// The file, as the caller named it.
    pub path: Option<&'a Path>,
    /// The record's ordinal in its shard.
    pub record: Option<u64>,
    /// The byte offset of the record's header in the record stream.
    pub offset: Option<u64>,
}

impl<'a> At<'a> {
    /// An unknown location: that of a payload which came from a slice.
    pub const NOWHERE: At<'static> = At { path: None, record: None, offset: None };

    /// Returns the location of record `record`, whose header is at byte `offset` of `path`.
    pub fn new(path: &'a Path, record: u64, offset: u64) -> At<'a> {
        At { path: Some(path), record: Some(record), offset: Some(offset) }
    }
}
