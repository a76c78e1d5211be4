//! The native part of `tfseek.Loader`: epochs in batches, produced by Rust threads.

use crate::config::{LoaderArguments, LoaderConfig};
use crate::error::{BindingError, Result, message};
use crate::headroom::{self, Headroom};
use crate::memory::ArrayData;
use crate::mix::{LoaderSources, SourceSpec};
use crate::options::Choice;
use crate::strings::BytesAs;
use crate::wait::{Progress, SIGNAL_INTERVAL, Unit, locked};
use crate::warning::{self, PyWarning};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use tfseek::ErrorKind;
use tfseek::io::Traffic;
use tfseek::loader::{LoaderTimes, NextStep, RowLengths, Step};
use tfseek::order::{Cursor, State};

/// The fields of a report on requests.
type TrafficFields = (u64, u64, u64, u64, u64, u64, u64, f64, f64, f64, f64);

/// The native part of `tfseek.Loader`, which has the documentation.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct LoaderCore {
    config: LoaderConfig,
    /// Steps per epoch. A loaded state may have other batch sizes.
    steps: AtomicU64,
    /// Process of the loader's threads. A forked child has no threads, so it rebuilds the loader.
    pid: AtomicU32,
    /// Number of the newest iteration. Earlier iterations have ended. Changed under the lock.
    iteration: AtomicU64,
    /// Number of the last iteration that reached its end. 0: none.
    exhausted: AtomicU64,
    running: Mutex<Option<tfseek::Loader>>,
    /// Locked after `running`.
    ahead: Mutex<TakenAhead>,
    /// The times and the number of threads of a closed loader.
    closed: OnceLock<(LoaderTimes, usize)>,
    /// Number of skipped records of each file, in all steps that were returned.
    skipped: Mutex<BTreeMap<PathBuf, u64>>,
    /// Number of the loader's warnings that were raised.
    raised: AtomicUsize,
}

/// Steps that threads of Python have taken from the loader and not yet delivered.
#[derive(Default)]
struct TakenAhead {
    /// The position after the last delivered step. `None`: the loader's position.
    delivered: Option<Cursor>,
    /// Steps of earlier generations cannot be delivered.
    generation: u64,
}

impl TakenAhead {
    /// Drops all steps that were not delivered, and returns the loader to the position after the last
    /// delivered one.
    fn rewind(&mut self, loader: &mut tfseek::Loader) -> tfseek::Result<()> {
        self.generation += 1;
        self.delivered.take().map_or(Ok(()), |delivered| loader.go_to(&delivered))
    }
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
                // Its threads do not exist in the child, and may hold its locks. It is leaked, because they
                // cannot be joined.
                let old = ManuallyDrop::new(old);
                loader.go_to(old.cursor())?;
                self.ahead()?.rewind(&mut loader)?;
                *running = Some(loader);
            }
            match &mut *running {
                Some(loader) => Ok(f(loader)),
                None => Err(BindingError::Python(PyRuntimeError::new_err("the loader is closed"))),
            }
        })
    }

    /// Calls `f`, which moves the loader to another position. Ends the iterations begun before, and returns
    /// the number of the one that may follow. Concurrent calls get different numbers.
    fn reposition(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut tfseek::Loader) -> tfseek::Result<()> + Send,
    ) -> Result<u64> {
        self.with(py, |loader| {
            self.ahead()?.rewind(loader)?;
            f(loader)?;
            Ok(self.iteration.fetch_add(1, Ordering::Relaxed) + 1)
        })?
    }

    /// Locks the loader. A thread that waits for a batch releases the lock at every check for signals.
    fn lock(&self) -> Result<MutexGuard<'_, Option<tfseek::Loader>>> {
        self.lock_unforked(&self.running)
    }

    fn ahead(&self) -> Result<MutexGuard<'_, TakenAhead>> {
        self.lock_unforked(&self.ahead)
    }

    /// Locks a mutex. A thread that held it when the process was forked does not exist in the child and
    /// cannot release it, which is an error.
    fn lock_unforked<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
        let forked = || self.pid.load(Ordering::Relaxed) != std::process::id();
        match mutex.try_lock() {
            Ok(locked) => Ok(locked),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if forked() => Err(BindingError::Python(PyRuntimeError::new_err(
                "the process was forked while another thread used this loader: create a new one from its state_dict()",
            ))),
            Err(TryLockError::WouldBlock) => Ok(locked(mutex)),
        }
    }

    /// Returns the cursor after the last delivered step.
    fn cursor(&self, py: Python<'_>) -> Result<Cursor> {
        if let Some(delivered) = py.detach(|| Ok::<_, BindingError>(self.ahead()?.delivered.clone()))? {
            return Ok(delivered);
        }
        self.with(py, |loader| loader.cursor().clone())
    }

    /// Waits for the next step. Calls `check` before each wait, and `then` with the outcome of the last one
    /// and the loader after it. Both are called under the loader's lock.
    fn next_step<T: Send>(
        &self,
        py: Python<'_>,
        check: impl Fn() -> Result<()> + Send + Sync,
        then: impl Fn(Option<tfseek::Result<Step>>, &tfseek::Loader) -> T + Send + Sync,
    ) -> Result<T> {
        loop {
            let (next, new, before, after) = self.with(py, |loader| {
                check()?;
                let before = loader.cursor().clone();
                let next = match loader.next_within(SIGNAL_INTERVAL) {
                    NextStep::Ready(step) => Some(then(Some(step), loader)),
                    NextStep::EpochEnd(skipped) => {
                        self.count_skipped(&skipped);
                        Some(then(None, loader))
                    }
                    NextStep::Timeout => None,
                };
                let raised = self.raised.fetch_max(loader.warnings().len(), Ordering::Relaxed);
                let new: Vec<_> = loader.warnings().iter().skip(raised).cloned().collect();
                Ok::<_, BindingError>((next, new, before, position(loader.cursor())))
            })??;
            if let Err(e) = warning::raise(py, &new) {
                // A filter made an error of the warning. The next call returns the step, unless another
                // thread has moved the loader.
                drop(next);
                self.with(py, |loader| {
                    if position(loader.cursor()) == after { loader.go_to(&before) } else { Ok(()) }
                })??;
                return Err(e);
            }
            match next {
                Some(next) => return Ok(next),
                None => py.check_signals()?,
            }
        }
    }

    /// Checks that an iteration is the newest one. If an older one ended instead, its loop would silently
    /// lose the rest.
    fn check_iteration(&self, iteration: Option<u64>) -> Result<()> {
        match iteration {
            Some(number) if number != self.iteration.load(Ordering::Relaxed) => Err(ended()),
            _ => Ok(()),
        }
    }

    /// Ends the newest iteration at its end.
    fn end_iteration(&self) {
        self.exhausted.store(self.iteration.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    fn count_skipped(&self, skipped: &[(u64, tfseek::Error)]) {
        if skipped.is_empty() {
            return;
        }
        let mut counts = locked(&self.skipped);
        for (_, e) in skipped {
            let path = e.location().path.as_deref().unwrap_or(Path::new(""));
            *counts.entry(path.to_owned()).or_default() += 1;
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
        dataset: &Bound<'_, PyAny>,
        schema: Option<SourceSpec>,
        bytes_as: Choice<BytesAs>,
        arguments: &Bound<'_, PyDict>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<LoaderCore> {
        let arguments = LoaderArguments::new(arguments)?;
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        let sources = LoaderSources::new(dataset, schema)?;
        let config = LoaderConfig::new(py, sources, bytes_as.0, arguments, progress)?;
        let loader = config.build(py)?;
        let steps = loader.cursor().steps_left()?;
        // The caller raises those.
        let raised = loader.warnings().len();
        Ok(LoaderCore {
            config,
            steps: AtomicU64::new(steps),
            pid: AtomicU32::new(std::process::id()),
            iteration: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
            running: Mutex::new(Some(loader)),
            ahead: Mutex::default(),
            closed: OnceLock::new(),
            skipped: Mutex::default(),
            raised: AtomicUsize::new(raised),
        })
    }

    /// Begins an iteration, and returns its number.
    fn begin(&self, py: Python<'_>) -> Result<u64> {
        self.reposition(py, tfseek::Loader::begin)
    }

    /// Returns the next step of an iteration, by default of the newest one, as `(batch, StepInfo)`. `None` at
    /// the end of an epoch.
    #[pyo3(signature = (iteration=None))]
    fn step<'py>(&self, py: Python<'py>, iteration: Option<u64>) -> Result<Option<Bound<'py, PyAny>>> {
        let check = || self.check_iteration(iteration);
        let next = self.next_step(py, check, |step, _| {
            if step.is_none() {
                self.end_iteration();
            }
            step
        });
        let next = match next {
            // Another thread has reached the end.
            Err(_) if self.is_exhausted(iteration) => return Ok(None),
            next => next?,
        };
        let Some(step) = next.transpose()? else { return Ok(None) };
        self.count_skipped(&step.skipped);
        let batch = self.batch(py, &step)?;
        // The memory of the batch is released without the GIL.
        let info = py.detach(|| StepInfo::of(step, &self.config.starts));
        Ok(Some((batch, info).into_pyobject(py)?.into_any()))
    }

    /// Begins a generation of steps that are taken ahead for an iteration, by default the newest one. Returns
    /// its number. Steps of earlier generations cannot be delivered any more.
    #[pyo3(signature = (iteration=None))]
    fn begin_ahead(&self, py: Python<'_>, iteration: Option<u64>) -> Result<u64> {
        self.with(py, |loader| {
            self.check_iteration(iteration)?;
            let mut ahead = self.ahead()?;
            ahead.rewind(loader)?;
            ahead.delivered = Some(loader.cursor().clone());
            Ok(ahead.generation)
        })?
    }

    /// Takes the next step of a generation. Returns the step, its batch, and the error in place of the batch.
    /// The step is not delivered: no other method sees that the loader is ahead.
    fn take(&self, py: Python<'_>, generation: u64) -> Result<TakenParts> {
        let check = || {
            if self.ahead()?.generation == generation { Ok(()) } else { Err(ended()) }
        };
        let (next, cursor) = self.next_step(py, check, |step, loader| (step, loader.cursor().clone()))?;
        let mut taken = TakenStep { generation, cursor, is_end: next.is_none(), info: None };
        let Some(step) = next else { return Ok((taken, None, None)) };
        let step = step.map_err(BindingError::from).and_then(|step| Ok((self.batch(py, &step)?, step)));
        match step {
            Ok((batch, step)) => {
                let info = py.detach(|| StepInfo::of(step, &self.config.starts));
                taken.info = Some(Py::new(py, info)?);
                Ok((taken, Some(batch.unbind()), None))
            }
            Err(e) => Ok((taken, None, Some(PyErr::from(e).into_value(py).into_any()))),
        }
    }

    /// Delivers a step that was taken for an iteration, by default the newest one: the position of the loader
    /// is then after it. Returns false if steps of its generation cannot be delivered any more.
    #[pyo3(signature = (step, iteration=None))]
    fn deliver(&self, py: Python<'_>, step: &Bound<'_, TakenStep>, iteration: Option<u64>) -> Result<bool> {
        let step = step.get();
        py.detach(|| {
            let mut ahead = self.ahead()?;
            self.check_iteration(iteration)?;
            if ahead.generation != step.generation {
                return Ok(false);
            }
            ahead.delivered = Some(step.cursor.clone());
            if step.is_end {
                self.end_iteration();
            }
            if let Some(info) = &step.info {
                self.count_skipped(&info.get().0.skipped);
            }
            Ok(true)
        })
    }

    /// Returns true if this iteration has reached its end, in any thread.
    fn is_exhausted(&self, iteration: Option<u64>) -> bool {
        iteration.is_some_and(|number| number > 0 && number == self.exhausted.load(Ordering::Relaxed))
    }

    /// Returns true if steps of this generation can be delivered.
    fn is_current(&self, py: Python<'_>, generation: u64) -> Result<bool> {
        py.detach(|| Ok(self.ahead()?.generation == generation))
    }

    /// Seconds that the loader's threads have spent reading, parsing and decoding, and their number.
    fn times(&self, py: Python<'_>) -> Result<(f64, f64, f64, usize)> {
        let (times, threads) = match self.closed.get() {
            Some(&closed) => closed,
            None => self.with(py, |loader| (loader.times(), loader.threads()))?,
        };
        let [read, parse, decode] = [times.read, times.parse, times.decode].map(|time| time.as_secs_f64());
        Ok((read, parse, decode, threads))
    }

    /// The requests of the store since the loader was made: ``(requests, bytes, repeated, cached, cached
    /// bytes, held, waits, seconds of them, p50, p90, p99)``. ``None`` for files, and of a closed loader.
    fn traffic(&self, py: Python<'_>) -> Result<Option<TrafficFields>> {
        if self.closed.get().is_some() {
            return Ok(None);
        }
        let traffic = self.with(py, |loader| loader.traffic())?;
        Ok(traffic.map(|traffic| {
            let Traffic { requests, bytes, repeated, cached, cached_bytes, held, waits, .. } = traffic;
            let [p50, p90, p99] = traffic.latency.map(|time| time.as_secs_f64());
            let waited = traffic.waited.as_secs_f64();
            (requests, bytes, repeated, cached, cached_bytes, held, waits, waited, p50, p90, p99)
        }))
    }

    /// Steps per epoch. Of a mix: steps to the next end of an epoch, because batches may continue with the
    /// next one.
    #[getter]
    fn steps(&self, py: Python<'_>) -> Result<u64> {
        if self.config.is_mix { self.steps_left(py) } else { Ok(self.steps.load(Ordering::Relaxed)) }
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
        let counts = locked(&self.skipped);
        counts.iter().map(|(path, count)| (path.into(), *count)).collect()
    }

    fn describe(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |loader| loader.describe())
    }

    /// Number of samples per epoch of all ranks together, and the position in the epoch. `None` after
    /// `close`.
    fn progress(&self, py: Python<'_>) -> Result<Option<(u64, u64)>> {
        if py.detach(|| Ok::<_, BindingError>(self.lock()?.is_none()))? {
            return Ok(None);
        }
        let cursor = self.cursor(py)?;
        Ok(Some((cursor.order().len(), cursor.position())))
    }

    fn state(&self, py: Python<'_>) -> Result<String> {
        let cursor = self.cursor(py)?;
        let fingerprint = self.config.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// Returns the same state, except after the last batch of an epoch: it is that epoch's end until the
    /// iteration has ended.
    fn state_in_epoch(&self, py: Python<'_>) -> Result<String> {
        let cursor = self.cursor(py)?;
        let fingerprint = self.config.fingerprint(py)?;
        py.detach(|| Ok(cursor.state_in_epoch(fingerprint)?.to_json()))
    }

    /// Returns the state at which the next iteration begins.
    fn upcoming(&self, py: Python<'_>) -> Result<String> {
        let mut cursor = self.cursor(py)?;
        cursor.begin()?;
        let fingerprint = self.config.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// Returns the steps, ranks and rows of a record in an epoch, by default the current one. Weighted draws
    /// cost a scan of the epoch.
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
            loader.go_to(&cursor)?;
            self.steps.store(cursor.share()?.starting_at(0)?.steps(), Ordering::Relaxed);
            Ok(())
        })?;
        Ok(())
    }

    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> Result<()> {
        self.reposition(py, |loader| loader.set_epoch(epoch)).map(drop)
    }

    fn reset(&self, py: Python<'_>) -> Result<()> {
        self.reposition(py, |loader| {
            let mut cursor = loader.cursor().clone();
            cursor.reset()?;
            loader.go_to(&cursor)
        })?;
        Ok(())
    }

    /// Ends the threads. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> Result<()> {
        py.detach(|| {
            let running = self.lock()?.take();
            if let Some(loader) = &running {
                self.closed.get_or_init(|| (loader.times(), loader.threads()));
            }
            self.stop(running);
            Ok(())
        })
    }

    fn __reduce__(&self) -> Result<()> {
        Err(PyTypeError::new_err(
            "a loader cannot be pickled or copied: pickle its dataset and its state_dict()",
        )
        .into())
    }
}

/// Returns the epoch of a cursor and its position there.
fn position(cursor: &Cursor) -> (u64, u64) {
    (cursor.epoch(), cursor.position())
}

/// Returns the error for use of an iterator after its iteration ended.
#[cold]
fn ended() -> BindingError {
    BindingError::Python(PyRuntimeError::new_err(
        "this iterator has ended: the loader began another iteration after it (iter, set_epoch, reset, load_state_dict)",
    ))
}

/// A step that was taken ahead, its batch, and the error in place of the batch.
type TakenParts = (TakenStep, Option<Py<PyAny>>, Option<Py<PyAny>>);

/// A step that was taken ahead, without its batch.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct TakenStep {
    generation: u64,
    /// The cursor after the step.
    cursor: Cursor,
    /// The epoch has ended, and there is no step.
    #[pyo3(get)]
    is_end: bool,
    /// `None` for a step that failed, and at the end.
    #[pyo3(get)]
    info: Option<Py<StepInfo>>,
}

/// The facts of a step besides its batch. Arrays are created on access.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct StepInfo(Step, Arc<[u64]>);

impl StepInfo {
    /// Releases the memory of the batch. `starts` are the first records of the sources of a mix.
    fn of(mut step: Step, starts: &Arc<[u64]>) -> StepInfo {
        step.release();
        StepInfo(step, Arc::clone(starts))
    }
}

#[pymethods]
impl StepInfo {
    /// The epoch in which the batch begins.
    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// The number of the step in its epoch, the same on all ranks.
    #[getter]
    fn step(&self) -> u64 {
        self.0.step
    }

    /// The record numbers.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ids: Vec<i64> = self.0.ids.iter().map(|&id| id.cast_signed()).collect();
        ArrayData::Int64(ids.into()).flat(py)
    }

    /// The number of each row's source in a mix, as int64.
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let source = |id: &u64| self.1.partition_point(|start| start <= id) as i64 - 1;
        let sources: Vec<i64> = self.0.ids.iter().map(source).collect();
        ArrayData::Int64(sources.into()).flat(py)
    }

    /// A bool for each row, which is false for padding.
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mask: Vec<u8> = self.0.samples().map(|sample| u8::from(!sample.padding)).collect();
        ArrayData::Bool(mask.into()).flat(py)
    }

    /// The augmentation seed of each row, as uint64.
    #[getter]
    fn augmentation_seeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bits: Vec<i64> = self.0.augmentation_seeds().map(u64::cast_signed).collect();
        ArrayData::Int64(bits.into()).flat(py)?.call_method1(intern!(py, "view"), (intern!(py, "u8"),))
    }

    /// The length of the longest row of the global batch. `None` without buckets.
    #[getter]
    fn longest(&self) -> Option<u64> {
        self.0.lengths.map(|lengths| lengths.longest)
    }

    /// The number of cells of the batch if it is padded to the longest row, and the number of those with
    /// values. `None` without buckets.
    #[getter]
    fn cells(&self) -> Option<(u64, u64)> {
        self.0.lengths.map(|RowLengths { longest, rows, sum }| (rows.saturating_mul(longest), sum))
    }

    /// Record numbers and errors of the records that were skipped.
    #[getter]
    fn skipped(&self) -> Vec<(u64, String)> {
        self.0.skipped.iter().map(|(record, error)| (*record, message(error))).collect()
    }

    /// Payload bytes of the batch.
    #[getter]
    fn payload_bytes(&self) -> u64 {
        self.0.payload_bytes
    }

    fn __len__(&self) -> usize {
        self.0.ids.len()
    }

    fn __repr__(&self) -> String {
        let StepInfo(Step { epoch, step, ids, .. }, _) = self;
        format!("tfseek.StepInfo(epoch={epoch}, step={step}, {} records)", ids.len())
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
        let mut running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if running.is_some() {
            // A worker stops after its current batch. The GIL is released during the wait, so other Python
            // threads continue. No worker needs the interpreter, so the wait also ends during interpreter
            // shutdown.
            Python::try_attach(|py| py.detach(|| self.stop(running.take())));
            self.stop(running);
        }
    }
}
