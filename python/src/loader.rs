//! The native part of `tfseek.Loader`: epochs in batches, produced by Rust threads.

use crate::config::{LoaderArguments, LoaderConfig};
use crate::dataset::PyDataset;
use crate::error::{BindingError, Result, message};
use crate::headroom::{self, Headroom};
use crate::memory::ArrayData;
use crate::options::Choice;
use crate::schema::PySchema;
use crate::strings::BytesAs;
use crate::wait::{Progress, SIGNAL_INTERVAL, Unit};
use crate::warning::PyWarning;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use tfseek::ErrorKind;
use tfseek::batch::Buf;
use tfseek::loader::{NextStep, Step};
use tfseek::order::{Cursor, State};

/// The native part of `tfseek.Loader`, which has the documentation.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct LoaderCore {
    config: LoaderConfig,
    steps: u64,
    /// Process of the loader's threads. A forked child has no threads, so it rebuilds the loader.
    pid: AtomicU32,
    /// Number of the newest iteration. Earlier iterations have ended. Changed under the lock.
    iteration: AtomicU64,
    running: Mutex<Option<tfseek::Loader>>,
    /// Number of skipped records of each file, in all steps that were returned.
    skipped: Mutex<BTreeMap<PathBuf, u64>>,
}

impl LoaderCore {
    /// Calls `f` with the loader. A forked child rebuilds it first.
    fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut tfseek::Loader) -> T + Send) -> Result<T> {
        let pid = std::process::id();
        let forked = self.pid.load(Ordering::Relaxed) != pid;
        let rebuilt = if forked && py.detach(|| Ok::<_, BindingError>(self.lock()?.is_some()))? {
            Some(self.config.build(py)?)
        } else {
            None
        };
        py.detach(|| {
            let mut running = self.lock()?;
            // Another thread of this child may have replaced it already.
            if self.pid.swap(pid, Ordering::Relaxed) != pid
                && let (Some(mut loader), Some(old)) = (rebuilt, running.take())
            {
                // Its threads do not exist in the child, and may hold its locks. It is leaked, because they cannot be joined.
                let old = ManuallyDrop::new(old);
                loader.go_to(old.cursor())?;
                *running = Some(loader);
            }
            match &mut *running {
                Some(loader) => Ok(f(loader)),
                None => Err(BindingError::Python(PyRuntimeError::new_err("the loader is closed"))),
            }
        })
    }

    /// Calls `f`, which moves the loader to another position. Ends the iterations begun before.
    fn reposition<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut tfseek::Loader) -> tfseek::Result<T> + Send,
    ) -> Result<T> {
        self.start_iteration(py, f).map(|(value, _)| value)
    }

    /// Does the same, and returns the number of the iteration that may follow. Concurrent calls get different numbers.
    fn start_iteration<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut tfseek::Loader) -> tfseek::Result<T> + Send,
    ) -> Result<(T, u64)> {
        Ok(self.with(py, |loader| {
            let value = f(loader)?;
            Ok::<_, tfseek::Error>((value, self.iteration.fetch_add(1, Ordering::Relaxed) + 1))
        })??)
    }

    /// Locks the loader. A thread that waits for a batch releases the lock at every check for signals. A thread that held it when
    /// the process was forked does not exist in the child and cannot release it, which is an error.
    fn lock(&self) -> Result<MutexGuard<'_, Option<tfseek::Loader>>> {
        let forked = self.pid.load(Ordering::Relaxed) != std::process::id();
        match self.running.try_lock() {
            Ok(running) => Ok(running),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if forked => Err(BindingError::Python(PyRuntimeError::new_err(
                "the process was forked while another thread used this loader: create a new one from its state_dict()",
            ))),
            Err(TryLockError::WouldBlock) => {
                Ok(self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
            }
        }
    }

    /// A clone of the loader's cursor.
    fn cursor(&self, py: Python<'_>) -> Result<Cursor> {
        self.with(py, |loader| loader.cursor().clone())
    }

    fn count_skipped(&self, step: &Step) {
        if step.skipped.is_empty() {
            return;
        }
        let mut counts = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, e) in &step.skipped {
            let path = e.location().path.as_deref().unwrap_or(Path::new(""));
            let count = counts.entry(path.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
    }

    fn batch<'py>(&self, py: Python<'py>, step: &Step) -> Result<Bound<'py, PyAny>> {
        if let Some(batch) = step.batch() {
            return Ok(self.config.batch(py, batch)?);
        }
        let payloads = step.records().into_iter().flatten();
        let mut headroom = Headroom::default();
        let payloads: Result<Vec<_>> = payloads
            .map(|record| {
                let record = record?;
                headroom.take(record.payload().len())?;
                Ok(headroom::bytes(py, record.payload())?)
            })
            .collect();
        Ok(headroom::list(py, payloads?)?.into_any())
    }
}

#[pymethods]
impl LoaderCore {
    #[new]
    #[pyo3(signature = (dataset, schema, bytes_as, arguments, progress=None))]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, PyDataset>,
        schema: Option<&Bound<'_, PySchema>>,
        bytes_as: Choice<BytesAs>,
        arguments: &Bound<'_, PyDict>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<LoaderCore> {
        let arguments = LoaderArguments::new(arguments)?;
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        let schema = schema.map(|schema| schema.get());
        let config = LoaderConfig::new(py, dataset.get(), schema, bytes_as.0, arguments, progress)?;
        let loader = config.build(py)?;
        let steps = loader.cursor().steps_left()?;
        Ok(LoaderCore {
            config,
            steps,
            pid: AtomicU32::new(std::process::id()),
            iteration: AtomicU64::new(0),
            running: Mutex::new(Some(loader)),
            skipped: Mutex::default(),
        })
    }

    /// Begins an iteration, and returns its number.
    fn begin(&self, py: Python<'_>) -> Result<u64> {
        self.start_iteration(py, |loader| loader.begin()).map(|(_, iteration)| iteration)
    }

    /// Returns the next step of an iteration, by default of the newest one, as `(batch, StepInfo)`. `None` at the end of an epoch.
    #[pyo3(signature = (iteration=None))]
    fn step<'py>(&self, py: Python<'py>, iteration: Option<u64>) -> Result<Option<Bound<'py, PyAny>>> {
        let step = loop {
            let next = self.with(py, |loader| {
                if iteration.is_some_and(|number| number != self.iteration.load(Ordering::Relaxed)) {
                    return Err(ended());
                }
                let next = loader.next_within(SIGNAL_INTERVAL);
                if let NextStep::EpochEnd = next {
                    self.iteration.fetch_add(1, Ordering::Relaxed);
                }
                Ok(next)
            });
            match next?? {
                NextStep::Ready(step) => break step?,
                NextStep::EpochEnd => return Ok(None),
                NextStep::Timeout => py.check_signals()?,
            }
        };
        self.count_skipped(&step);
        let batch = self.batch(py, &step)?;
        // The step is dropped, and its memory released, without the GIL.
        let info = py.detach(|| StepInfo::of(step));
        Ok(Some((batch, info).into_pyobject(py)?.into_any()))
    }

    /// Steps per epoch.
    #[getter]
    fn steps(&self) -> u64 {
        self.steps
    }

    #[getter]
    fn steps_left(&self, py: Python<'_>) -> Result<u64> {
        Ok(self.cursor(py)?.steps_left()?)
    }

    #[getter]
    fn epoch(&self, py: Python<'_>) -> Result<u64> {
        Ok(self.cursor(py)?.epoch())
    }

    #[getter]
    fn warnings(&self, py: Python<'_>) -> Result<Vec<PyWarning>> {
        self.with(py, |loader| {
            self.config.warnings.iter().chain(loader.warnings()).map(PyWarning::of).collect()
        })
    }

    /// Number of skipped records of each file since the loader was created.
    #[getter]
    fn skipped_by_file(&self) -> BTreeMap<OsString, u64> {
        let counts = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(path, count)| (path.into(), *count)).collect()
    }

    fn describe(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |loader| loader.describe())
    }

    /// Number of samples per epoch of all ranks together, and the position in the epoch. `None` after `close`.
    fn progress(&self, py: Python<'_>) -> Result<Option<(u64, u64)>> {
        if py.detach(|| Ok::<_, BindingError>(self.lock()?.is_none()))? {
            return Ok(None);
        }
        let cursor = self.cursor(py)?;
        Ok(Some((cursor.order().len(), cursor.position())))
    }

    fn state(&self, py: Python<'_>) -> Result<String> {
        let (cursor, fingerprint) = (self.cursor(py)?, self.config.fingerprint(py)?);
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// Returns the same state, except after the last batch of an epoch: it is that epoch's end until the iteration has ended.
    fn state_in_epoch(&self, py: Python<'_>) -> Result<String> {
        let (cursor, fingerprint) = (self.cursor(py)?, self.config.fingerprint(py)?);
        py.detach(|| Ok(cursor.state_in_epoch(fingerprint)?.to_json()))
    }

    /// Returns the state at which the next iteration begins.
    fn upcoming(&self, py: Python<'_>) -> Result<String> {
        let mut cursor = self.cursor(py)?;
        cursor.begin()?;
        let fingerprint = self.config.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// Returns the steps, ranks and rows of a record in an epoch, by default the current one. Weighted draws cost a scan of the epoch.
    #[pyo3(signature = (record, epoch=None))]
    fn rows_of(&self, py: Python<'_>, record: i64, epoch: Option<u64>) -> Result<Vec<(u64, u64, u64)>> {
        let mut cursor = self.cursor(py)?;
        let records = cursor.order().records();
        let out = || ErrorKind::OutOfRange { what: "record", i: record.into(), len: records };
        let record = u64::try_from(record).map_err(|_| out())?;
        let rows = py.detach(|| {
            cursor.set_epoch(epoch.unwrap_or(cursor.epoch()))?;
            cursor.order().rows_of(record, &cursor.share()?)
        })?;
        Ok(rows.into_iter().map(|at| (at.step, at.rank, at.row)).collect())
    }

    /// True if an iteration is about to begin and none of its batches was requested.
    #[getter]
    fn fresh(&self, py: Python<'_>) -> Result<bool> {
        Ok(self.cursor(py)?.is_fresh())
    }

    fn seek(&self, py: Python<'_>, state: &str) -> Result<()> {
        let state = State::from_json(state)?;
        let fingerprint = self.config.fingerprint(py)?;
        self.reposition(py, |loader| {
            let mut cursor = loader.cursor().clone();
            cursor.seek(&state, fingerprint)?;
            loader.go_to(&cursor)
        })
    }

    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> Result<()> {
        self.reposition(py, |loader| loader.set_epoch(epoch))
    }

    fn reset(&self, py: Python<'_>) -> Result<()> {
        self.reposition(py, |loader| {
            let mut cursor = loader.cursor().clone();
            cursor.reset()?;
            loader.go_to(&cursor)
        })
    }

    /// Ends the threads. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> Result<()> {
        py.detach(|| {
            self.stop(self.lock()?.take());
            Ok(())
        })
    }

    fn __reduce__(&self) -> Result<()> {
        Err(PyTypeError::new_err("a loader cannot be pickled: pickle its dataset and its state_dict()")
            .into())
    }
}

/// Returns the error for use of an iterator after its iteration ended.
#[cold]
fn ended() -> BindingError {
    BindingError::Python(PyRuntimeError::new_err(
        "this iterator has ended: the loader began another iteration after it (iter, set_epoch, reset, load_state_dict), or \
         next(loader) reached the end of the epoch",
    ))
}

/// The record numbers, the mask and the skipped records of a step. Arrays are created on access.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct StepInfo {
    ids: Buf<i64>,
    mask: Buf<u8>,
    skipped: Vec<(u64, String)>,
    /// Epoch and position of the first sample.
    first: Option<(u64, u64)>,
}

impl StepInfo {
    fn of(step: Step) -> StepInfo {
        let skipped = step.skipped.iter().map(|(record, error)| (*record, message(error)));
        StepInfo {
            ids: step.ids.iter().map(|&id| id as i64).collect::<Vec<_>>().into(),
            mask: step.samples().map(|sample| u8::from(!sample.padding)).collect::<Vec<_>>().into(),
            skipped: skipped.collect(),
            first: step.samples().next().map(|sample| (sample.epoch, sample.position)),
        }
    }
}

#[pymethods]
impl StepInfo {
    /// Creates the info of an empty batch.
    #[new]
    fn empty() -> StepInfo {
        StepInfo { ids: Vec::new().into(), mask: Vec::new().into(), skipped: Vec::new(), first: None }
    }

    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ArrayData::Int64(self.ids.clone()).flat(py)
    }

    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ArrayData::Bool(self.mask.clone()).flat(py)
    }

    #[getter]
    fn first(&self) -> Option<(u64, u64)> {
        self.first
    }

    #[getter]
    fn skipped(&self) -> Vec<(u64, String)> {
        self.skipped.clone()
    }
}

impl LoaderCore {
    /// Joins the threads if this process owns them. Otherwise leaks the loader.
    fn stop(&self, running: Option<tfseek::Loader>) {
        if self.pid.load(Ordering::Relaxed) == std::process::id() {
            drop(running);
        } else {
            std::mem::forget(running);
        }
    }
}

impl Drop for LoaderCore {
    fn drop(&mut self) {
        let mut running = self.running.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if running.is_some() {
            // A worker stops after its current batch. The GIL is released during the wait, so other Python threads continue. No
            // worker needs the interpreter, so the wait also ends during interpreter shutdown.
            Python::try_attach(|py| py.detach(|| self.stop(running.take())));
            self.stop(running);
        }
    }
}
