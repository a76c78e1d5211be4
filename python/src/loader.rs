//! The native half of `tfseek.Loader`: epochs in batches, made by threads of Rust.

use crate::columns::{self, BytesAs};
use crate::dataset::Dataset;
use crate::failure::{Failure, Result, message};
use crate::memory::Held;
use crate::payload;
use crate::recipe::{Arguments, Recipe};
use crate::schema::Schema;
use crate::wait::{PATIENCE, Progress, Unit};
use crate::warning::Warning;
use crate::words::Word;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use tfseek::batch::Buf;
use tfseek::loader::Step;
use tfseek::order::{Cursor, State};

/// The native half of `tfseek.Loader`, which has the documentation.
#[pyclass(frozen, module = "tfseek._tfseek", name = "LoaderCore")]
pub(crate) struct Loader {
    recipe: Recipe,
    steps: u64,
    /// Threads do not come along into a forked child: there the loader is made again.
    pid: AtomicU32,
    /// Number of the newest iteration: those before it have ended. Changed under the lock.
    turn: AtomicU64,
    running: Mutex<Option<tfseek::Loader>>,
}

impl Loader {
    /// Calls `f` with the loader, made again if this is a child that the process forked.
    fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut tfseek::Loader) -> T + Send) -> Result<T> {
        let pid = std::process::id();
        let forked = self.pid.load(Ordering::Relaxed) != pid;
        let again = match forked && py.detach(|| Ok::<_, Failure>(self.lock()?.is_some()))? {
            true => Some(self.recipe.build(py)?),
            false => None,
        };
        py.detach(|| {
            let mut running = self.lock()?;
            // Another thread of this child may have been first.
            if self.pid.swap(pid, Ordering::Relaxed) != pid
                && let (Some(mut loader), Some(old)) = (again, running.take())
            {
                // Its threads are not here, and its locks may be held by them: it is left as it is, and never joined.
                let old = ManuallyDrop::new(old);
                loader.go_to(old.cursor())?;
                *running = Some(loader);
            }
            match &mut *running {
                Some(loader) => Ok(f(loader)),
                None => Err(Failure::Python(PyRuntimeError::new_err("the loader is closed"))),
            }
        })
    }

    /// As [`with`](Loader::with), for what moves the loader to another place: iterations that were begun before have ended.
    fn moved<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut tfseek::Loader) -> tfseek::Result<T> + Send,
    ) -> Result<T> {
        self.turned(py, f).map(|(moved, _)| moved)
    }

    /// The same, with the number of the iteration that may follow: of two threads each gets its own.
    fn turned<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut tfseek::Loader) -> tfseek::Result<T> + Send,
    ) -> Result<(T, u64)> {
        Ok(self.with(py, |loader| {
            let moved = f(loader)?;
            Ok::<_, tfseek::Error>((moved, self.turn.fetch_add(1, Ordering::Relaxed) + 1))
        })??)
    }

    /// Another thread that waits for a batch holds this for a moment only, as it looks up now and then; but one that held it when
    /// the process was forked is not in the child to let go of it.
    fn lock(&self) -> Result<MutexGuard<'_, Option<tfseek::Loader>>> {
        let forked = self.pid.load(Ordering::Relaxed) != std::process::id();
        match self.running.try_lock() {
            Ok(running) => Ok(running),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if forked => Err(Failure::Python(PyRuntimeError::new_err(
                "the process was forked while another thread used this loader: make a new one from its state_dict()",
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

    fn batch<'py>(&self, py: Python<'py>, step: &Step) -> Result<Bound<'py, PyAny>> {
        if let Some(batch) = step.batch() {
            return Ok(columns::batch(py, batch, self.recipe.is_sequence(), false, self.recipe.bytes_as())?);
        }
        let payloads = step.records().into_iter().flatten();
        let payloads: Result<Vec<_>> =
            payloads.map(|record| Ok(payload::bytes(py, record?.payload())?)).collect();
        Ok(PyList::new(py, payloads?)?.into_any())
    }
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (dataset, schema, bytes_as, arguments, progress=None))]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, Dataset>,
        schema: Option<&Bound<'_, Schema>>,
        bytes_as: Word<BytesAs>,
        arguments: &Bound<'_, PyDict>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Loader> {
        let arguments = Arguments::new(arguments)?;
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        let schema = schema.map(|schema| schema.get());
        let recipe = Recipe::new(py, dataset.get(), schema, bytes_as.0, arguments, progress)?;
        let loader = recipe.build(py)?;
        let steps = loader.cursor().steps_left()?;
        Ok(Loader {
            recipe,
            steps,
            pid: AtomicU32::new(std::process::id()),
            turn: AtomicU64::new(0),
            running: Mutex::new(Some(loader)),
        })
    }

    /// Begins an iteration, and returns its number.
    fn begin(&self, py: Python<'_>) -> Result<u64> {
        self.turned(py, |loader| loader.begin()).map(|(_, turn)| turn)
    }

    /// The next step of iteration `turn`, the newest one by default: `(batch, what else there is to say of it)`, or `None` at the end
    /// of an epoch.
    #[pyo3(signature = (turn=None))]
    fn step<'py>(&self, py: Python<'py>, turn: Option<u64>) -> Result<Option<Bound<'py, PyAny>>> {
        let made = loop {
            let made = self.with(py, |loader| {
                if turn.is_some_and(|turn| turn != self.turn.load(Ordering::Relaxed)) {
                    return Err(over());
                }
                let made = loader.next_within(PATIENCE);
                if let Some(None) = made {
                    self.turn.fetch_add(1, Ordering::Relaxed);
                }
                Ok(made)
            });
            if let Some(made) = made?? {
                break made;
            }
            py.check_signals()?;
        };
        let Some(step) = made.transpose()? else { return Ok(None) };
        let batch = self.batch(py, &step)?;
        // The rest of the step lets go of its memory without the interpreter's lock.
        let delivered = py.detach(|| Delivered::of(step));
        Ok(Some((batch, delivered).into_pyobject(py)?.into_any()))
    }

    /// Steps of an epoch, from its start.
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
    fn warnings(&self, py: Python<'_>) -> Result<Vec<Warning>> {
        self.with(py, |loader| loader.warnings().iter().map(Warning::of).collect())
    }

    fn describe(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |loader| loader.describe())
    }

    fn state(&self, py: Python<'_>) -> Result<String> {
        let (cursor, fingerprint) = (self.cursor(py)?, self.recipe.fingerprint(py)?);
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// The same state, but an epoch that was handed out whole is at its end, until the iteration has ended.
    fn state_in_epoch(&self, py: Python<'_>) -> Result<String> {
        let (cursor, fingerprint) = (self.cursor(py)?, self.recipe.fingerprint(py)?);
        py.detach(|| Ok(cursor.state_in_epoch(fingerprint)?.to_json()))
    }

    /// The state at which the next iteration begins.
    fn upcoming(&self, py: Python<'_>) -> Result<String> {
        let mut cursor = self.cursor(py)?;
        cursor.begin()?;
        let fingerprint = self.recipe.fingerprint(py)?;
        py.detach(|| Ok(cursor.state(fingerprint)?.to_json()))
    }

    /// True at a place where an iteration begins and none of its batches was asked for.
    #[getter]
    fn fresh(&self, py: Python<'_>) -> Result<bool> {
        Ok(self.cursor(py)?.is_fresh())
    }

    fn seek(&self, py: Python<'_>, state: &str) -> Result<()> {
        let state = State::from_json(state)?;
        let fingerprint = self.recipe.fingerprint(py)?;
        self.moved(py, |loader| {
            let mut cursor = loader.cursor().clone();
            cursor.seek(&state, fingerprint)?;
            loader.go_to(&cursor)
        })
    }

    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> Result<()> {
        self.moved(py, |loader| loader.set_epoch(epoch))
    }

    fn reset(&self, py: Python<'_>) -> Result<()> {
        self.moved(py, |loader| {
            let mut cursor = loader.cursor().clone();
            cursor.reset()?;
            loader.go_to(&cursor)
        })
    }

    /// Ends the threads. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> Result<()> {
        py.detach(|| {
            self.end(self.lock()?.take());
            Ok(())
        })
    }

    fn __reduce__(&self) -> Result<()> {
        Err(PyTypeError::new_err("a loader cannot be pickled: pickle its dataset and its state_dict()")
            .into())
    }
}

/// For an iterator that was asked again after its iteration ended.
#[cold]
fn over() -> Failure {
    Failure::Python(PyRuntimeError::new_err(
        "this iterator has ended: since it was made the loader began another iteration (iter, set_epoch, reset, load_state_dict) or \
         next(loader) gave the end of the epoch",
    ))
}

/// The record numbers, the mask and the skipped records of a step. Arrays are made on request.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct Delivered {
    ids: Buf<i64>,
    mask: Buf<u8>,
    skipped: Vec<(u64, String)>,
}

impl Delivered {
    fn of(step: Step) -> Delivered {
        let skipped = step.skipped().iter().map(|skipped| (skipped.record, message(&skipped.error)));
        Delivered {
            ids: step.ids().iter().map(|&id| id as i64).collect::<Vec<_>>().into(),
            mask: step.samples().map(|sample| u8::from(!sample.padding)).collect::<Vec<_>>().into(),
            skipped: skipped.collect(),
        }
    }
}

#[pymethods]
impl Delivered {
    /// Of no batch.
    #[new]
    fn nothing() -> Delivered {
        Delivered { ids: Vec::new().into(), mask: Vec::new().into(), skipped: Vec::new() }
    }

    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Held::Int64(self.ids.clone()).flat(py)
    }

    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Held::Bool(self.mask.clone()).flat(py)
    }

    #[getter]
    fn skipped(&self) -> Vec<(u64, String)> {
        self.skipped.clone()
    }
}

impl Loader {
    /// Joins the threads, in the process that has them.
    fn end(&self, running: Option<tfseek::Loader>) {
        match self.pid.load(Ordering::Relaxed) == std::process::id() {
            true => drop(running),
            false => std::mem::forget(running),
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        let mut running = self.running.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if running.is_some() {
            // A worker ends with the batch that it is at; others may go on meanwhile. None of them needs the interpreter, so
            // that this cannot hang while it ends either.
            Python::try_attach(|py| py.detach(|| self.end(running.take())));
            self.end(running);
        }
    }
}
