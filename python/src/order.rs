//! The native part of `tfseek.torch.Sampler`: the order of a loader, without a loader.

use crate::config::LoaderArguments;
use crate::dataset::{self, PyDataset};
use crate::error::{BindingError, Result};
use crate::wait::{self, locked};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use tfseek::order::{Cursor, Order, RankShare, Run, Spec, State};

/// Returns integer weights with the sum 4096 for proportions.
#[pyfunction]
pub(crate) fn mixture_weights(proportions: Vec<f64>) -> Result<Vec<u64>> {
    Ok(tfseek::order::mixture_weights(&proportions)?)
}

/// Record numbers computed per call.
const CHUNK: u64 = 1024;

/// The record numbers of one rank, epoch by epoch, in the order of a `tfseek.Loader` with the same arguments.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct SamplerCore {
    dataset: tfseek::Dataset,
    /// Samples per batch of one rank.
    batch: u64,
    state: Mutex<SamplerState>,
    fingerprint: OnceLock<String>,
}

struct SamplerState {
    cursor: Cursor,
    /// True if `set_epoch` or `reset` chose the cursor's position.
    chosen: bool,
    /// Newest iteration that has begun.
    current: Option<Arc<Mutex<EpochIteration>>>,
}

/// The record numbers of one iteration over an epoch.
struct EpochIteration {
    order: Order,
    /// Rank's share, from the position where the iteration began.
    share: RankShare,
    start: u64,
    returned: u64,
    len: u64,
    /// Next step. `runs`: the remaining runs of the previous step.
    step: u64,
    runs: VecDeque<Run>,
    /// Computed record numbers.
    numbers: std::vec::IntoIter<u64>,
}

impl EpochIteration {
    fn new(cursor: &Cursor) -> Result<EpochIteration> {
        let order = cursor.order().at_epoch(cursor.epoch())?;
        let share = cursor.share()?;
        Ok(EpochIteration {
            start: cursor.position(),
            returned: 0,
            len: share.samples(),
            step: 0,
            runs: VecDeque::new(),
            numbers: Vec::new().into_iter(),
            order,
            share,
        })
    }

    fn is_over(&self) -> bool {
        self.returned >= self.len
    }

    fn next(&mut self) -> Result<Option<u64>> {
        if self.numbers.as_slice().is_empty() {
            self.numbers = self.compute()?.into_iter();
        }
        let number = self.numbers.next();
        self.returned += u64::from(number.is_some());
        Ok(number)
    }

    /// Computes the next record numbers, at most [`CHUNK`]. They are relative to the view if the order has
    /// one.
    fn compute(&mut self) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        while (numbers.len() as u64) < CHUNK {
            let Some(run) = self.runs.pop_front() else {
                let Some(runs) = self.share.step(self.step) else { break };
                (self.step, self.runs) = (self.step + 1, runs.collect());
                continue;
            };
            let from = numbers.len();
            let here = run.len.min(CHUNK - from as u64);
            numbers.resize(from + here as usize, 0);
            let (_, to) = numbers.split_at_mut(from);
            self.order.fill(run.start, to)?;
            if here < run.len {
                self.runs.push_front(Run { start: run.start + here, len: run.len - here, ..run });
            }
        }
        if let Spec::Filtered { subset, .. } = self.order.spec() {
            // The subset contains every number of its order.
            numbers = numbers.iter().filter_map(|id| subset.rank(*id)).collect();
        }
        Ok(numbers)
    }

    /// Returns the position that all ranks have reached, in batches of `batch` samples per rank.
    fn position(&self, batch: u64) -> Result<u64> {
        let steps = if self.is_over() { self.share.steps() } else { self.returned / batch };
        let within = self.returned % batch;
        if within != 0 && !self.is_over() {
            return Err(BindingError::value_error(format!(
                "the sampler is in the middle of a batch, after {within} of {batch} samples: its batch_size must divide that \
                 of the DataLoader"
            )));
        }
        let after = steps.checked_sub(1).and_then(|last| self.share.after(last));
        Ok(after.map_or(self.start, |(_, position)| position))
    }
}

impl SamplerState {
    /// Returns the cursor, moved to the end of the epoch if the newest iteration is complete.
    fn settled(&self) -> Result<Cursor> {
        let mut cursor = self.cursor.clone();
        if self.current.as_ref().is_some_and(|iteration| locked(iteration).is_over()) {
            cursor.advance(cursor.steps_left()?)?;
        }
        Ok(cursor)
    }

    /// Returns the cursor at which the next iteration begins. After the last epoch it is that epoch's end.
    fn upcoming(&self) -> Result<Cursor> {
        let settled = self.settled()?;
        let mut cursor = settled.clone();
        match cursor.begin() {
            Ok(()) => Ok(cursor),
            Err(_) => Ok(settled),
        }
    }

    /// Begins an iteration.
    fn begin(&mut self) -> Result<Arc<Mutex<EpochIteration>>> {
        let mut cursor = self.settled()?;
        cursor.begin()?;
        self.enter(cursor)
    }

    fn enter(&mut self, mut cursor: Cursor) -> Result<Arc<Mutex<EpochIteration>>> {
        let iteration = Arc::new(Mutex::new(EpochIteration::new(&cursor)?));
        cursor.enter()?;
        (self.cursor, self.chosen, self.current) = (cursor, false, Some(Arc::clone(&iteration)));
        Ok(iteration)
    }

    fn choose(&mut self, to: impl FnOnce(&mut Cursor) -> tfseek::Result<()>) -> Result<()> {
        let mut cursor = self.settled()?;
        to(&mut cursor)?;
        (self.cursor, self.chosen, self.current) = (cursor, true, None);
        Ok(())
    }
}

impl SamplerCore {
    fn fingerprint(&self, py: Python<'_>) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = dataset::fingerprint(py, &self.dataset)?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    fn state_of(&self, py: Python<'_>, iteration: &Mutex<EpochIteration>) -> Result<String> {
        let (order, position) = {
            let iteration = locked(iteration);
            (iteration.order.clone(), iteration.position(self.batch)?)
        };
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(State::new(&order, position, fingerprint)?.to_json()))
    }
}

#[pymethods]
impl SamplerCore {
    #[new]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, PyDataset>,
        arguments: &Bound<'_, PyDict>,
        batch_size: u64,
    ) -> Result<SamplerCore> {
        let ids = dataset.get().view_ids();
        let dataset = dataset.get().shared.dataset.clone();
        let mut arguments = LoaderArguments::new(arguments)?;
        let mut options = arguments.apply(dataset.record_loader(), false)?;
        arguments.finish()?;
        let cursor = wait::run(py, None, false, move |_| {
            if let Some(ids) = ids {
                options = options.select(ids.subset()?);
            }
            Ok(options.to_cursor()?.skip_ends(true))
        })?;
        let state = Mutex::new(SamplerState { cursor, chosen: false, current: None });
        Ok(SamplerCore { dataset, batch: batch_size, state, fingerprint: OnceLock::new() })
    }

    /// Samples per epoch of this rank.
    fn __len__(&self) -> Result<usize> {
        let samples = locked(&self.state).cursor.share()?.starting_at(0)?.samples();
        Ok(usize::try_from(samples).unwrap_or(usize::MAX))
    }

    #[getter]
    fn epoch(&self) -> u64 {
        locked(&self.state).cursor.epoch()
    }

    /// True if `set_epoch` or `reset` chose the position where the next iteration begins.
    #[getter]
    fn chosen(&self) -> bool {
        locked(&self.state).chosen
    }

    fn set_epoch(&self, epoch: u64) -> Result<()> {
        locked(&self.state).choose(|cursor| cursor.set_epoch(epoch))
    }

    fn reset(&self) -> Result<()> {
        locked(&self.state).choose(Cursor::reset)
    }

    /// Returns the state of the newest iteration. If there is none, the state at which the next one begins.
    fn state(&self, py: Python<'_>) -> Result<String> {
        let (current, cursor) = {
            let state = locked(&self.state);
            (state.current.clone(), state.cursor.clone())
        };
        if let Some(iteration) = current {
            return self.state_of(py, &iteration);
        }
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// Returns the state at which the next iteration begins.
    fn upcoming(&self, py: Python<'_>) -> Result<String> {
        let cursor = locked(&self.state).upcoming()?;
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    fn load(&self, py: Python<'_>, state: &str) -> Result<()> {
        let state = State::from_json(state)?;
        let fingerprint = self.fingerprint(py)?;
        let mut cursor = locked(&self.state).cursor.clone();
        py.detach(|| cursor.seek(&state, fingerprint))?;
        let mut current = locked(&self.state);
        (current.cursor, current.chosen, current.current) = (cursor, false, None);
        Ok(())
    }
}

/// One iteration over a sampler. It begins with its first record number, because a `DataLoader` creates more
/// iterators than it uses.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct SamplerIterator {
    sampler: Py<SamplerCore>,
    iteration: Mutex<Option<Arc<Mutex<EpochIteration>>>>,
}

#[pymethods]
impl SamplerIterator {
    #[new]
    fn new(sampler: Py<SamplerCore>) -> SamplerIterator {
        SamplerIterator { sampler, iteration: Mutex::new(None) }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> Result<Option<u64>> {
        let iteration = {
            let mut iteration = locked(&self.iteration);
            match &*iteration {
                Some(iteration) => Arc::clone(iteration),
                None => Arc::clone(iteration.insert(locked(&self.sampler.get().state).begin()?)),
            }
        };
        let mut iteration = locked(&iteration);
        iteration.next()
    }

    fn state(&self, py: Python<'_>) -> Result<String> {
        let iteration = locked(&self.iteration).clone();
        match iteration {
            Some(iteration) => self.sampler.get().state_of(py, &iteration),
            None => self.sampler.get().state(py),
        }
    }

    /// Moves this iteration and the sampler to a saved state.
    fn load(&self, py: Python<'_>, state: &str) -> Result<()> {
        let sampler = self.sampler.get();
        sampler.load(py, state)?;
        // The two locks are not held together: `__next__` locks `state` while it holds `iteration`.
        let iteration = {
            let mut state = locked(&sampler.state);
            let cursor = state.cursor.clone();
            state.enter(cursor)?
        };
        *locked(&self.iteration) = Some(iteration);
        Ok(())
    }
}
