//! Payloads passed by Python: `bytes`, `bytearray`, or records of a dataset.

use crate::error::{BindingError, Result};
use crate::example::PyExample;
use crate::options::Seed;
use crate::payload::RecordPayload;
use crate::sequence::PySequenceExample;
use crate::wait::TimeSlice;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};
use tfseek::At;
use tfseek::batch::Row;
use tfseek::io::Region;
use tfseek::order::augmentation_seed;

/// A payload passed by Python.
pub(crate) enum PyPayload {
    /// Bytes owned by Python. They are borrowed, not copied.
    Python(PyBackedBytes),
    /// A record. Its memory is shared.
    Record(RecordPayload),
}

impl PyPayload {
    pub(crate) fn from_python(from: &Bound<'_, PyAny>) -> Result<PyPayload> {
        if let Ok(example) = from.cast::<PyExample>() {
            return Ok(PyPayload::Record(example.get().0.clone()));
        }
        if let Ok(sequence) = from.cast::<PySequenceExample>() {
            return Ok(PyPayload::Record(sequence.get().0.clone()));
        }
        match from.extract::<PyBackedBytes>() {
            Ok(bytes) => Ok(PyPayload::Python(bytes)),
            Err(_) => Err(BindingError::type_error(format!(
                "expected a record (bytes, Example or SequenceExample), found {}",
                type_name(from)
            ))),
        }
    }

    /// Returns the name of the type of a single record, which is not an iterable of records. `None` for other
    /// objects.
    pub(crate) fn single_name(from: &Bound<'_, PyAny>) -> Option<String> {
        let single = from.is_instance_of::<PyExample>()
            || from.is_instance_of::<PySequenceExample>()
            || from.is_instance_of::<PyBytes>()
            || from.is_instance_of::<PyByteArray>();
        single.then(|| type_name(from))
    }

    /// Returns the payloads of a list, a tuple, an array of objects, or any other iterable.
    pub(crate) fn all(from: &Bound<'_, PyAny>) -> Result<Vec<PyPayload>> {
        PyPayload::all_reported(from, |_| Ok(()))
    }

    /// Does the same as [`all`](PyPayload::all), and calls `report` periodically with the number of payloads
    /// so far.
    pub(crate) fn all_reported(
        from: &Bound<'_, PyAny>,
        report: impl Fn(u64) -> PyResult<()>,
    ) -> Result<Vec<PyPayload>> {
        let mut slice = TimeSlice::new();
        let mut all = Vec::new();
        for item in from.try_iter()? {
            all.push(PyPayload::from_python(&item?)?);
            // The caller's iterator may be slow.
            if slice.pause(from.py(), TimeSlice::RECORD)? {
                report(all.len() as u64)?;
            }
        }
        Ok(all)
    }
}

/// Returns the name of the type of an object.
pub(crate) fn type_name(of: &Bound<'_, PyAny>) -> String {
    of.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The seed and the epoch of what is random in pictures.
pub(crate) type PySeeds = (Seed, u64);

/// Returns the number of a single record.
///
/// # Errors
/// If there are several, or none in the list.
pub(crate) fn only_number(numbers: Option<&[u64]>) -> Result<Option<u64>> {
    match numbers {
        None => Ok(None),
        Some(&[number]) => Ok(Some(number)),
        Some(_) => Err(BindingError::value_error("expected one number of a record")),
    }
}

/// A row with its number, by which is drawn what is random in its pictures.
pub(crate) struct SeededRow<R> {
    pub(crate) row: R,
    pub(crate) seeds: PySeeds,
    pub(crate) number: u64,
}

impl SeededRow<PyPayload> {
    /// Returns payloads with their numbers in a dataset, or without them with their places.
    pub(crate) fn all(payloads: Vec<PyPayload>, seeds: PySeeds, numbers: Option<Vec<u64>>) -> Vec<Self> {
        let numbers = numbers.unwrap_or_else(|| (0..payloads.len() as u64).collect());
        let with_number = payloads.into_iter().zip(numbers);
        with_number.map(|(row, number)| SeededRow { row, seeds, number }).collect()
    }
}

impl<R: Row> Row for SeededRow<R> {
    fn payload(&self) -> &[u8] {
        self.row.payload()
    }

    fn at(&self) -> At<'_> {
        self.row.at()
    }

    fn region(&self) -> Option<(&Region, usize)> {
        self.row.region()
    }

    fn verify(&self) -> tfseek::Result<()> {
        self.row.verify()
    }

    fn augmentation_seed(&self) -> Option<u64> {
        let (Seed(seed), epoch) = self.seeds;
        Some(augmentation_seed(seed, epoch, self.number))
    }
}

impl AsRef<[u8]> for PyPayload {
    fn as_ref(&self) -> &[u8] {
        match self {
            PyPayload::Python(bytes) => bytes,
            PyPayload::Record(record) => &record.bytes,
        }
    }
}

impl Row for PyPayload {
    fn payload(&self) -> &[u8] {
        self.as_ref()
    }

    fn at(&self) -> At<'_> {
        match self {
            PyPayload::Record(RecordPayload { record: Some(record), .. }) => record.at(),
            _ => At::NOWHERE,
        }
    }

    fn region(&self) -> Option<(&Region, usize)> {
        match self {
            PyPayload::Python(_) => None,
            PyPayload::Record(record) => Some((&record.bytes, 0)),
        }
    }
}
