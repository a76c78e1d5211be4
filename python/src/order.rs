//! The native half of `tfseek.torch.Sampler`: the order of a loader, without a loader.

use crate::dataset::{self, Dataset};
use crate::failure::Result;
use crate::recipe::{Arguments, value_error};
use crate::wait;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tfseek::order::{Cursor, Order, RankShare, Run, Spec, State};

/// Numbers that are computed at a time.
const AHEAD: u64 = 1024;

/// One rank's numbers, epoch by epoch, in the order of a `tfseek.Loader` with the same arguments.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct SamplerCore {
    dataset: tfseek::Dataset,
    /// Samples of a rank's batch.
    batch: u64,
    place: Mutex<SamplerPlace>,
    fingerprint: OnceLock<String>,
}

struct SamplerPlace {
    cursor: Cursor,
    /// `set_epoch` or `reset` chose the place of the cursor.
    chosen: bool,
    /// The newest iteration that has begun.
    current: Option<Arc<Mutex<EpochWalk>>>,
}

/// The numbers of one iteration.
struct EpochWalk {
    order: Order,
    /// From the place where the iteration begins.
    share: RankShare,
    start: u64,
    given: u64,
    len: u64,
    /// The next step, and runs of the step before that are left.
    step: u64,
    runs: VecDeque<Run>,
    /// Numbers that were computed, and how many of them were given.
    numbers: Vec<u64>,
    used: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values are replaced whole, so a poisoned lock holds a consistent one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EpochWalk {
    fn new(cursor: &Cursor) -> Result<EpochWalk> {
        let order = cursor.order().at_epoch(cursor.epoch())?;
        let share = cursor.share()?;
        Ok(EpochWalk {
            start: cursor.position(),
            given: 0,
            len: share.samples(),
            step: 0,
            runs: VecDeque::new(),
            numbers: Vec::new(),
            used: 0,
            order,
            share,
        })
    }

    fn is_over(&self) -> bool {
        self.given >= self.len
    }

    fn next(&mut self) -> Result<Option<u64>> {
        if self.used == self.numbers.len() {
            self.compute()?;
        }
        let number = self.numbers.get(self.used).copied();
        if number.is_some() {
            (self.used, self.given) = (self.used + 1, self.given + 1);
        }
        Ok(number)
    }

    /// Computes the next numbers, [`AHEAD`] at most: those in the view that the order was made for.
    fn compute(&mut self) -> Result<()> {
        (self.used, self.numbers) = (0, Vec::new());
        while (self.numbers.len() as u64) < AHEAD {
            let Some(run) = self.runs.pop_front() else {
                let Some(runs) = self.share.step(self.step) else { break };
                (self.step, self.runs) = (self.step + 1, runs.collect());
                continue;
            };
            let from = self.numbers.len();
            let here = run.len.min(AHEAD - from as u64);
            self.numbers.resize(from + here as usize, 0);
            self.order.fill(run.start, self.numbers.get_mut(from..).unwrap_or_default())?;
            if here < run.len {
                self.runs.push_front(Run { start: run.start + here, len: run.len - here, ..run });
            }
        }
        if let Spec::Filtered { subset, .. } = self.order.spec() {
            // Every one of them is a survivor.
            self.numbers = self.numbers.iter().filter_map(|id| subset.rank(*id)).collect();
        }
        Ok(())
    }

    /// The position that all ranks have come to, in batches of `batch` samples a rank.
    fn position(&self, batch: u64) -> Result<u64> {
        let steps = if self.is_over() { self.share.steps() } else { self.given / batch };
        let within = self.given % batch;
        if within != 0 && !self.is_over() {
            return Err(value_error(format!(
                "the sampler is in the middle of a batch, {within} of {batch} samples: its batch_size must divide that of the \
                 DataLoader"
            )));
        }
        let after = steps.checked_sub(1).and_then(|last| self.share.after(last));
        Ok(after.map_or(self.start, |(_, position)| position))
    }
}

impl SamplerPlace {
    /// The cursor, behind the newest iteration if that was gone through.
    fn settled(&self) -> Result<Cursor> {
        let mut cursor = self.cursor.clone();
        if self.current.as_ref().is_some_and(|walk| locked(walk).is_over()) {
            cursor.advance(cursor.steps_left()?)?;
        }
        Ok(cursor)
    }

    /// The place where the next iteration begins. After the last epoch it is that epoch's end.
    fn upcoming(&self) -> Result<Cursor> {
        let settled = self.settled()?;
        let mut cursor = settled.clone();
        match cursor.begin() {
            Ok(()) => Ok(cursor),
            Err(_) => Ok(settled),
        }
    }

    /// Begins an iteration.
    fn begin(&mut self) -> Result<Arc<Mutex<EpochWalk>>> {
        let mut cursor = self.settled()?;
        cursor.begin()?;
        self.enter(cursor)
    }

    fn enter(&mut self, mut cursor: Cursor) -> Result<Arc<Mutex<EpochWalk>>> {
        let walk = Arc::new(Mutex::new(EpochWalk::new(&cursor)?));
        cursor.enter()?;
        (self.cursor, self.chosen, self.current) = (cursor, false, Some(Arc::clone(&walk)));
        Ok(walk)
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

    fn state_of(&self, py: Python<'_>, walk: &Mutex<EpochWalk>) -> Result<String> {
        let (order, position) = {
            let walk = locked(walk);
            (walk.order.clone(), walk.position(self.batch)?)
        };
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(State::new(&order, position, fingerprint)?.to_json()))
    }

    fn seek(&self, py: Python<'_>, state: &str) -> Result<()> {
        let (state, fingerprint) = (State::from_json(state)?, self.fingerprint(py)?);
        let mut cursor = locked(&self.place).cursor.clone();
        py.detach(|| cursor.seek(&state, fingerprint))?;
        let mut place = locked(&self.place);
        (place.cursor, place.chosen, place.current) = (cursor, false, None);
        Ok(())
    }
}

#[pymethods]
impl SamplerCore {
    #[new]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, Dataset>,
        arguments: &Bound<'_, PyDict>,
        batch_size: u64,
    ) -> Result<SamplerCore> {
        let ids = dataset.get().view_ids();
        let dataset = dataset.get().shared.dataset.clone();
        let mut arguments = Arguments::new(arguments)?;
        let mut options = arguments.apply(dataset.record_loader())?;
        arguments.finish()?;
        let cursor = wait::run(py, None, move |_| {
            if let Some(ids) = ids {
                options = options.select(ids.subset()?);
            }
            Ok(options.to_cursor()?.skip_ends(true))
        })?;
        let place = Mutex::new(SamplerPlace { cursor, chosen: false, current: None });
        Ok(SamplerCore { dataset, batch: batch_size, place, fingerprint: OnceLock::new() })
    }

    /// Samples of an epoch, for this rank.
    fn __len__(&self) -> Result<usize> {
        let samples = locked(&self.place).cursor.share()?.starting_at(0)?.samples();
        Ok(usize::try_from(samples).unwrap_or(usize::MAX))
    }

    #[getter]
    fn epoch(&self) -> u64 {
        locked(&self.place).cursor.epoch()
    }

    /// True if `set_epoch` or `reset` chose the place where the next iteration begins.
    #[getter]
    fn chosen(&self) -> bool {
        locked(&self.place).chosen
    }

    fn set_epoch(&self, epoch: u64) -> Result<()> {
        locked(&self.place).choose(|cursor| cursor.set_epoch(epoch))
    }

    fn reset(&self) -> Result<()> {
        locked(&self.place).choose(Cursor::reset)
    }

    /// The state of the newest iteration, or of the place where the next one begins.
    fn state(&self, py: Python<'_>) -> Result<String> {
        let (current, cursor) = {
            let place = locked(&self.place);
            (place.current.clone(), place.cursor.clone())
        };
        if let Some(walk) = current {
            return self.state_of(py, &walk);
        }
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// The state at which the next iteration begins.
    fn upcoming(&self, py: Python<'_>) -> Result<String> {
        let cursor = locked(&self.place).upcoming()?;
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    fn load(&self, py: Python<'_>, state: &str) -> Result<()> {
        self.seek(py, state)
    }
}

/// One iteration over a sampler. It begins with its first number: a `DataLoader` makes more iterators than it uses.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct SamplerIterator {
    sampler: Py<SamplerCore>,
    walk: Mutex<Option<Arc<Mutex<EpochWalk>>>>,
}

#[pymethods]
impl SamplerIterator {
    #[new]
    fn new(sampler: Py<SamplerCore>) -> SamplerIterator {
        SamplerIterator { sampler, walk: Mutex::new(None) }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> Result<Option<u64>> {
        let walk = {
            let mut walk = locked(&self.walk);
            match &*walk {
                Some(walk) => Arc::clone(walk),
                None => Arc::clone(walk.insert(locked(&self.sampler.get().place).begin()?)),
            }
        };
        let mut walk = locked(&walk);
        walk.next()
    }

    fn state(&self, py: Python<'_>) -> Result<String> {
        let walk = locked(&self.walk).clone();
        match walk {
            Some(walk) => self.sampler.get().state_of(py, &walk),
            None => self.sampler.get().state(py),
        }
    }

    /// Goes on at a saved state, which the sampler does too.
    fn load(&self, py: Python<'_>, state: &str) -> Result<()> {
        let sampler = self.sampler.get();
        sampler.seek(py, state)?;
        // The locks one after the other: `__next__` holds that of the walk while it takes that of the place.
        let walk = {
            let mut place = locked(&sampler.place);
            let cursor = place.cursor.clone();
            place.enter(cursor)?
        };
        *locked(&self.walk) = Some(walk);
        Ok(())
    }
}
