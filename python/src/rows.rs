//! Payloads that Python passes in: `bytes`, `bytearray`, or the records of a dataset.

use crate::example::Example;
use crate::failure::Result;
use crate::payload::Origin;
use crate::sequence::SequenceExample;
use crate::wait::Turn;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tfseek::At;
use tfseek::batch::Row;
use tfseek::io::Region;

/// A payload from Python.
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

    /// Returns the payloads of a list, a tuple, an array of objects, or any other iterable.
    pub(crate) fn all(from: &Bound<'_, PyAny>) -> Result<Vec<Payload>> {
        Payload::all_told(from, |_| Ok(()))
    }

    /// As [`all`](Payload::all); calls `tell` from time to time with the number of payloads so far.
    pub(crate) fn all_told(
        from: &Bound<'_, PyAny>,
        tell: impl Fn(u64) -> PyResult<()>,
    ) -> Result<Vec<Payload>> {
        let (mut turn, mut all) = (Turn::new(), Vec::new());
        for item in from.try_iter()? {
            all.push(Payload::from_python(&item?)?);
            // The iterator of the items may be slow.
            if turn.pause(from.py(), Turn::RECORD)? {
                tell(all.len() as u64)?;
            }
        }
        Ok(all)
    }
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
