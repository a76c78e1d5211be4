//! Iteration over records, which are fetched in windows.

use crate::error::Result;
use crate::ids::Ids;
use crate::shared::SharedDataset;
use crate::wait::TimeSlice;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tfseek::io::Region;

/// Number of records fetched together.
const WINDOW: u64 = 64;

/// An iterator over the records of a :class:`Dataset`, in order.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct DatasetIterator {
    shared: Arc<SharedDataset>,
    ids: Ids,
    state: Mutex<IteratorState>,
}

#[derive(Default)]
struct IteratorState {
    /// Position after the fetched records.
    next: u64,
    ready: VecDeque<(u64, Region)>,
    /// Error that follows the records in `ready`.
    failed: Option<tfseek::Error>,
    ended: bool,
}

impl DatasetIterator {
    pub(crate) fn new(shared: Arc<SharedDataset>, ids: Ids) -> DatasetIterator {
        DatasetIterator { shared, ids, state: Mutex::default() }
    }

    fn step(&self) -> tfseek::Result<Option<(u64, Region)>> {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(item) = state.ready.pop_front() {
            return Ok(Some(item));
        }
        if let Some(e) = state.failed.take() {
            state.ended = true;
            return Err(e);
        }
        if state.ended || state.next >= self.ids.len() {
            return Ok(None);
        }
        let end = (state.next + WINDOW).min(self.ids.len());
        let ids: Vec<u64> = (state.next..end).map(|k| self.ids.at(k)).collect();
        let mut found = Vec::with_capacity(ids.len());
        state.failed = self.shared.payloads(&ids, &mut TimeSlice::new(), &mut found).err();
        // If access is slow, fewer records than requested are returned, so that signals are checked in time.
        state.next += found.len() as u64;
        state.ready.extend(ids.into_iter().zip(found));
        match (state.ready.pop_front(), state.failed.take()) {
            (Some(item), failed) => {
                state.failed = failed;
                Ok(Some(item))
            }
            (None, Some(e)) => {
                state.ended = true;
                Err(e)
            }
            (None, None) => Ok(None),
        }
    }
}

#[pymethods]
impl DatasetIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        let next = py.detach(|| {
            self.shared.kind();
            self.step()
        })?;
        match next {
            Some((i, payload)) => Ok(Some(self.shared.item(py, i, payload)?)),
            None => Ok(None),
        }
    }

    /// Raises an error: an iterator has a position and cannot be copied.
    fn __reduce__(&self) -> Result<()> {
        Err(PyRuntimeError::new_err("an iterator cannot be pickled: pickle its Dataset").into())
    }
}
