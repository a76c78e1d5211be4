//! Iteration over records, which are fetched in windows.

use crate::error::Result;
use crate::ids::Ids;
use crate::shared::SharedDataset;
use crate::wait::{self, TimeSlice, locked};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tfseek::io::Region;

/// Number of records fetched together.
const WINDOW: u64 = 64;
/// The same for a store. The first windows are smaller.
const REMOTE_WINDOW: u64 = 4096;

/// An iterator over the records of a :class:`Dataset`, in order.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct DatasetIterator {
    shared: Arc<SharedDataset>,
    ids: Ids,
    state: Arc<Mutex<Windows<(u64, Region)>>>,
}

/// The records of an iterator that were fetched ahead, as items `T`.
pub(crate) struct Windows<T> {
    /// Position after the fetched records.
    next: u64,
    ready: VecDeque<T>,
    /// Error that follows the records in `ready`.
    failed: Option<tfseek::Error>,
    ended: bool,
}

impl<T> Default for Windows<T> {
    fn default() -> Windows<T> {
        Windows { next: 0, ready: VecDeque::new(), failed: None, ended: false }
    }
}

impl<T> Windows<T> {
    /// Returns the next item. `fetch` appends the items of the first of some records, at least one unless it
    /// fails: if access is slow, fewer than requested, so that signals are checked in time.
    pub(crate) fn step(
        &mut self,
        records: &Ids,
        window: u64,
        fetch: impl FnOnce(&[u64], &mut Vec<T>) -> tfseek::Result<()>,
    ) -> tfseek::Result<Option<T>> {
        if self.ready.is_empty() && self.failed.is_none() && !self.ended && self.next < records.len() {
            let end = (self.next + window).min(records.len());
            let ids: Vec<u64> = (self.next..end).map(|k| records.at(k)).collect();
            let mut found = Vec::with_capacity(ids.len());
            self.failed = fetch(&ids, &mut found).err();
            self.next += found.len() as u64;
            self.ready.extend(found);
        }
        if let Some(item) = self.ready.pop_front() {
            return Ok(Some(item));
        }
        let Some(e) = self.failed.take() else { return Ok(None) };
        self.ended = true;
        Err(e)
    }
}

impl DatasetIterator {
    pub(crate) fn new(shared: Arc<SharedDataset>, ids: Ids) -> DatasetIterator {
        DatasetIterator { shared, ids, state: Arc::default() }
    }
}

/// Returns the next record and its number. Fetches a window of them if there is none.
fn step(
    shared: &SharedDataset,
    ids: &Ids,
    state: &Mutex<Windows<(u64, Region)>>,
) -> tfseek::Result<Option<(u64, Region)>> {
    shared.kind();
    let mut state = locked(state);
    let window = if shared.is_remote { state.next.clamp(WINDOW, REMOTE_WINDOW) } else { WINDOW };
    state.step(ids, window, |ids, items| {
        let mut found = Vec::with_capacity(ids.len());
        let fetched = shared.payloads(ids, &mut TimeSlice::new(), &mut found);
        items.extend(ids.iter().copied().zip(found));
        fetched
    })
}

#[pymethods]
impl DatasetIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        let next = if self.shared.is_remote {
            match self.state.try_lock().ok().and_then(|mut state| state.ready.pop_front()) {
                Some(fetched) => Some(fetched),
                None => {
                    let shared = Arc::clone(&self.shared);
                    let ids = self.ids.clone();
                    let state = Arc::clone(&self.state);
                    wait::detached(py, true, move || step(&shared, &ids, &state))?
                }
            }
        } else {
            py.detach(|| step(&self.shared, &self.ids, &self.state))?
        };
        Ok(next.map(|(i, payload)| self.shared.item(py, i, payload)).transpose()?)
    }

    /// Raises an error: an iterator has a position and cannot be copied.
    fn __reduce__(&self) -> Result<()> {
        Err(PyRuntimeError::new_err("an iterator cannot be pickled: pickle its Dataset").into())
    }
}
