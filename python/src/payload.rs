//! A record's payload as Python's bytes, and the place of the record for errors.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io;
use tfseek::io::Region;
use tfseek::{At, Error};

/// The dataset and the number of a record. Its place is looked up for errors only.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) dataset: tfseek::Dataset,
    pub(crate) i: u64,
}

impl Origin {
    /// Adds the record's place to an error.
    #[cold]
    pub(crate) fn place(&self, e: Error) -> Error {
        e.at(self.at())
    }

    /// Returns the record's file, its number there, and its offset, as far as they are known.
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

/// Above this length a payload's memory may not be there.
const LARGE: usize = 1 << 20;

/// Returns a payload as Python's bytes.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn bytes<'py>(py: Python<'py>, payload: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if payload.len() <= LARGE {
        return Ok(PyBytes::new(py, payload));
    }
    // Fills the memory twice, and is the way that does not panic where there is none.
    PyBytes::new_with(py, payload.len(), |bytes| {
        bytes.copy_from_slice(payload);
        Ok(())
    })
}

/// Returns a copy of a payload.
///
/// # Errors
/// Memory that there is not.
pub(crate) fn copied(payload: &[u8]) -> tfseek::Result<Region> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(payload.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    copy.extend_from_slice(payload);
    Ok(Region::from(copy))
}
