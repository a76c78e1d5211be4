//! Payloads that Python hands in: `bytes`, `bytearray`, or the records of a dataset.

use crate::example::{Example, Origin};
use crate::failure::Result;
use crate::sequence::SequenceExample;
use crate::wait::Turn;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::io;
use tfseek::At;
use tfseek::batch::Row;
use tfseek::io::Region;

/// One of them.
pub(crate) enum Payload {
    /// Python's own bytes, which are kept and not copied.
    Python(PyBackedBytes),
    /// A record: its memory can be held on to, and where it came from may be known.
    Record(Region, Option<Origin>),
}

impl Payload {
    pub(crate) fn from_python(from: &Bound<'_, PyAny>) -> Result<Payload> {
        if let Ok(example) = from.cast::<Example>() {
            let example = example.get();
            return Ok(Payload::Record(example.payload().clone(), example.origin().cloned()));
        }
        if let Ok(sequence) = from.cast::<SequenceExample>() {
            let sequence = sequence.get();
            return Ok(Payload::Record(sequence.payload().clone(), sequence.origin().cloned()));
        }
        Ok(Payload::Python(from.extract::<PyBackedBytes>()?))
    }

    /// Those of a list, a tuple, an array of objects, or anything else that gives them one by one.
    pub(crate) fn all(from: &Bound<'_, PyAny>) -> Result<Vec<Payload>> {
        Payload::all_told(from, |_| Ok(()))
    }

    /// The same; `tell` is called from time to time with their number so far.
    pub(crate) fn all_told(
        from: &Bound<'_, PyAny>,
        tell: impl Fn(u64) -> PyResult<()>,
    ) -> Result<Vec<Payload>> {
        let (mut turn, mut all) = (Turn::new(), Vec::new());
        for item in from.try_iter()? {
            all.push(Payload::from_python(&item?)?);
            // What makes the items may be slow.
            if turn.pause(from.py(), Turn::RECORD)? {
                tell(all.len() as u64)?;
            }
        }
        Ok(all)
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

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        match self {
            Payload::Python(bytes) => bytes,
            Payload::Record(bytes, _) => bytes,
        }
    }
}

impl Row for Payload {
    fn payload(&self) -> &[u8] {
        self.as_ref()
    }

    fn at(&self) -> At<'_> {
        match self {
            Payload::Record(_, Some(origin)) => origin.at(),
            _ => At::NOWHERE,
        }
    }

    fn region(&self) -> Option<(&Region, usize)> {
        match self {
            Payload::Python(_) => None,
            Payload::Record(region, _) => Some((region, 0)),
        }
    }
}
