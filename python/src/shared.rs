//! An open dataset, below its views: payloads, the kind of the records, and the arguments that opened it.

use crate::example::Example;
use crate::payload::{self, Origin};
use crate::sequence::SequenceExample;
use crate::wait::Turn;
use crate::words::KindChoice;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tfseek::column::DatasetColumn;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::io::Region;
use tfseek::{ErrorKind, Mapped, Record};

/// The arguments of `open`, kept for `pickle` and `repr`.
pub(crate) struct How {
    paths: Vec<PathBuf>,
    kept: Py<PyDict>,
    kind: KindChoice,
}

impl How {
    pub(crate) fn new(paths: Vec<PathBuf>, kept: Py<PyDict>, kind: KindChoice) -> How {
        How { paths, kept, kind }
    }

    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.kept.bind(py).copy()
    }

    /// Returns the paths as they were given.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> =
            self.paths.iter().map(|path| format!("{:?}", path.display().to_string())).collect();
        match names.as_slice() {
            [name] => name.clone(),
            names => format!("[{}]", names.join(", ")),
        }
    }
}

/// The dataset that all views share.
pub(crate) struct Shared {
    pub(crate) dataset: tfseek::Dataset,
    /// Columns that were asked for when the dataset was opened.
    pub(crate) columns: Arc<[DatasetColumn]>,
    pub(crate) mapped: Option<Mapped>,
    pub(crate) how: How,
    kind: OnceLock<MessageKind>,
}

impl Shared {
    pub(crate) fn new(dataset: tfseek::Dataset, columns: Vec<DatasetColumn>, how: How) -> Shared {
        let kind = match how.kind {
            KindChoice::Auto => OnceLock::new(),
            KindChoice::Example => OnceLock::from(MessageKind::Example),
            KindChoice::SequenceExample => OnceLock::from(MessageKind::SequenceExample),
            KindChoice::Bytes => OnceLock::from(MessageKind::Other),
        };
        Shared { mapped: Mapped::from_dataset(&dataset), dataset, columns: columns.into(), how, kind }
    }

    /// Returns the kind of the records, guessed from the first of them. Damage there is not an error.
    pub(crate) fn kind(&self) -> MessageKind {
        *self.kind.get_or_init(|| {
            let mut guess = KindGuess::default();
            for i in 0..self.dataset.len() {
                let Ok(payload) = self.payload(i) else { break };
                guess.add(&payload);
                if guess.is_complete() {
                    break;
                }
            }
            guess.kind()
        })
    }

    /// Returns the payload of record `i`: part of the map, or read into memory of its own.
    pub(crate) fn payload(&self, i: u64) -> tfseek::Result<Region> {
        match &self.mapped {
            Some(mapped) => lent(mapped.get(i)?),
            None => {
                let mut buf = Vec::new();
                let payload = self.dataset.read(i, &mut buf)?.payload();
                let (start, len) = (payload.as_ptr().addr(), payload.len());
                let start = start.saturating_sub(buf.as_ptr().addr());
                let region = Region::from(buf);
                Ok(region.slice(start..start + len).unwrap_or_else(|| Region::from(Vec::new())))
            }
        }
    }

    /// Adds the payloads of these records to `found`, with look-ahead: as many as there is time for in this turn, at least one.
    ///
    /// # Errors
    /// The error that ended the call; the records before it are in `found`.
    pub(crate) fn payloads(
        &self,
        ids: &[u64],
        turn: &mut Turn,
        found: &mut Vec<Region>,
    ) -> tfseek::Result<()> {
        let mut take = |payload: Region| {
            let over = turn.is_over(Turn::RECORD + payload.len() as u64);
            found.push(payload);
            // Not an error: it ends the call.
            if over { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
        };
        let done = match &self.mapped {
            Some(mapped) => mapped.get_many(ids).try_for_each(|record| take(lent(record?)?)),
            None => self.dataset.read_many(ids, |record| take(payload::copied(record.payload())?)),
        };
        match done {
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled) => Ok(()),
            done => done,
        }
    }

    /// Returns a record as an object of Python.
    pub(crate) fn item<'py>(&self, py: Python<'py>, i: u64, payload: Region) -> PyResult<Bound<'py, PyAny>> {
        let origin = || Some(Origin { dataset: self.dataset.clone(), i });
        Ok(match self.kind() {
            MessageKind::Example => Bound::new(py, Example::of(payload, origin()))?.into_any(),
            MessageKind::SequenceExample => {
                Bound::new(py, SequenceExample::of(payload, origin()))?.into_any()
            }
            MessageKind::Other => payload::bytes(py, &payload)?.into_any(),
        })
    }
}

/// Returns the payload of a borrowed record as a part of the region that holds it.
fn lent(record: Record<'_>) -> tfseek::Result<Region> {
    let payload = record.payload();
    let part =
        record.region().and_then(|(region, start)| region.slice(start..start.checked_add(payload.len())?));
    part.map_or_else(|| payload::copied(payload), Ok)
}
