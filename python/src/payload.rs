//! Payloads as Python `bytes`, and the location of a record for errors.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io;
use tfseek::io::Region;
use tfseek::{At, Error};

/// A dataset and a record number. The record's location is looked up only for errors.
#[derive(Clone)]
pub(crate) struct RecordRef {
    pub(crate) dataset: tfseek::Dataset,
    pub(crate) i: u64,
}

impl RecordRef {
    /// Adds the record's location to an error.
    #[cold]
    pub(crate) fn locate(&self, e: Error) -> Error {
        e.at(self.at())
    }

    /// Returns the record's path, its ordinal in the shard, and its offset, as far as they are known.
    pub(crate) fn at(&self) -> At<'_> {
        let Ok((s, record)) = self.dataset.shard_of(self.i) else { return At::NOWHERE };
        let Some(path) = self.dataset.shards().nth(s).map(|shard| shard.path) else { return At::NOWHERE };
        match self.dataset.index(s).and_then(|index| index.locate(record)) {
            Ok(span) => At::new(path, record, span.offset),
            Err(_) => {
                let mut at = At::NOWHERE;
                (at.path, at.record) = (Some(path), Some(record));
                at
            }
        }
    }
}

/// Length in bytes above which allocation is allowed to fail with an exception.
const LARGE: usize = 1 << 20;

/// Returns a payload as Python's bytes.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn bytes<'py>(py: Python<'py>, payload: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if payload.len() <= LARGE {
        return Ok(PyBytes::new(py, payload));
    }
    // `PyBytes::new` panics if there is no memory. This constructor returns the error, but fills the memory twice.
    PyBytes::new_with(py, payload.len(), |bytes| {
        bytes.copy_from_slice(payload);
        Ok(())
    })
}

/// Returns a copy of a payload.
///
/// # Errors
/// An I/O error of the kind `OutOfMemory`.
pub(crate) fn copied(payload: &[u8]) -> tfseek::Result<Region> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(payload.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    copy.extend_from_slice(payload);
    Ok(Region::from(copy))
}
