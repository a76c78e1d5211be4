//! Records one after the other, fetched some ahead.

use crate::failure::Result;
use crate::ids::Ids;
use crate::shared::Shared;
use crate::wait::Turn;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tfseek::io::Region;

/// Records that are fetched at once.
const WINDOW: u64 = 64;

/// The records of a :class:`Dataset`, in order.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct DatasetIterator {
    shared: Arc<Shared>,
    ids: Ids,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Position behind the records that were fetched.
    next: u64,
    ready: VecDeque<(u64, Region)>,
    /// Comes behind those that are ready.
    failed: Option<tfseek::Error>,
    over: bool,
}

impl DatasetIterator {
    pub(crate) fn new(shared: Arc<Shared>, ids: Ids) -> DatasetIterator {
        DatasetIterator { shared, ids, state: Mutex::default() }
    }

    fn step(&self) -> tfseek::Result<Option<(u64, Region)>> {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(item) = state.ready.pop_front() {
            return Ok(Some(item));
        }
        if let Some(e) = state.failed.take() {
            state.over = true;
            return Err(e);
        }
        if state.over || state.next >= self.ids.len() {
            return Ok(None);
        }
        let end = (state.next + WINDOW).min(self.ids.len());
        let ids: Vec<u64> = (state.next..end).map(|k| self.ids.at(k)).collect();
        let mut found = Vec::with_capacity(ids.len());
        state.failed = self.shared.payloads(&ids, &mut Turn::new(), &mut found).err();
        // Where records are slow there are fewer: signals are looked for before the next ones.
        state.next += found.len() as u64;
        state.ready.extend(ids.into_iter().zip(found));
        match (state.ready.pop_front(), state.failed.take()) {
            (Some(item), failed) => {
                state.failed = failed;
                Ok(Some(item))
            }
            (None, Some(e)) => {
                state.over = true;
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

    /// An iterator has a position, so it is not copied: pickle the dataset.
    fn __reduce__(&self) -> Result<()> {
        Err(PyRuntimeError::new_err("an iterator cannot be pickled: pickle its Dataset").into())
    }
}
