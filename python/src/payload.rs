//! Payloads of records, and the location of a record for errors.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use tfseek::io::Region;
use tfseek::{At, Error};

/// The payload of a record, and its source if it is known.
#[derive(Clone)]
pub(crate) struct RecordPayload {
    pub(crate) bytes: Region,
    pub(crate) record: Option<RecordRef>,
}

impl RecordPayload {
    /// Adds the record's location to an error.
    #[cold]
    pub(crate) fn locate(&self, e: Error) -> Error {
        match &self.record {
            Some(record) => e.at(record.at()),
            None => e,
        }
    }

    /// Returns the path of the record's shard.
    pub(crate) fn path(&self) -> Option<OsString> {
        Some(self.record.as_ref()?.at().path?.as_os_str().to_owned())
    }

    /// Returns the number of the record in its shard.
    pub(crate) fn number(&self) -> Option<u64> {
        self.record.as_ref()?.at().record
    }
}

/// The source of a record, from which errors get their location.
#[derive(Clone)]
pub(crate) enum RecordRef {
    /// A dataset and a record number. The record's location is looked up only for errors.
    Dataset { dataset: tfseek::Dataset, i: u64 },
    /// A file that was read in order, the ordinal of the record in it, and its offset.
    Stream { path: Arc<Path>, record: u64, offset: u64 },
}

impl RecordRef {
    /// Returns the record's path, its ordinal in the shard, and its offset, as far as they are known.
    pub(crate) fn at(&self) -> At<'_> {
        let (dataset, i) = match self {
            RecordRef::Dataset { dataset, i } => (dataset, *i),
            RecordRef::Stream { path, record, offset } => return At::new(path, *record, *offset),
        };
        let Ok((s, record)) = dataset.shard_of(i) else { return At::NOWHERE };
        let Some(path) = dataset.shards().nth(s).map(|shard| shard.path) else { return At::NOWHERE };
        match dataset.index(s).and_then(|index| index.locate(record)) {
            Ok(span) => At::new(path, record, span.offset),
            Err(_) => {
                let mut at = At::NOWHERE;
                (at.path, at.record) = (Some(path), Some(record));
                at
            }
        }
    }
}

/// Returns a copy of a payload.
///
/// # Errors
/// An I/O error of the kind `OutOfMemory`.
pub(crate) fn copied(payload: &[u8]) -> tfseek::Result<Region> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(payload.len())?;
    copy.extend_from_slice(payload);
    Ok(Region::from(copy))
}
