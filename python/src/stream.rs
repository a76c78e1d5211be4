//! `tfseek.stream`: records in file order, without an index.
//!
//! A [`RecordReader`] reads in the calling thread, without the GIL, in slices of [`TimeSlice`]. A single read may take longer: a pipe
//! blocks, and a record may be large. So signals are checked after reads too ([`Signals::poll`]).

use crate::error::{BindingError, Result};
use crate::headroom;
use crate::options::{Choice, KindOption, Seed, argument};
use crate::part::PyPart;
use crate::payload::{self, RecordRef};
use crate::rows::PyPayload;
use crate::schema::PySchema;
use crate::shared;
use crate::strings::BytesAs;
use crate::wait::{self, SIGNAL_INTERVAL, TimeSlice};
use crate::warning::{self, PyWarning};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::io::Region;
use tfseek::stream::{Stream, StreamOptions};
use tfseek::{Compression, Damage, Error, Part, Record, Tail, Verify};
use tfseek_tools::sample::Reservoir;

/// Maximum number of records that are read together.
const WINDOW: usize = 64;
/// Number of payload bytes after which no further record is added to a window.
const WINDOW_BYTES: usize = 1 << 20;

/// The files of a stream, and the options for reading them.
struct Source {
    paths: Vec<Arc<Path>>,
    /// The parts to read, one per path. `None` for whole files.
    parts: Option<Vec<Part>>,
    options: StreamOptions,
    /// Kind of the records. The first iteration guesses it if it is not given.
    kind: OnceLock<MessageKind>,
    warnings: Mutex<StreamWarnings>,
}

/// What iterations have left out, each once.
#[derive(Default)]
struct StreamWarnings {
    found: Vec<tfseek::Warning>,
    /// Number of them that were raised.
    raised: usize,
}

impl Source {
    fn warnings(&self) -> MutexGuard<'_, StreamWarnings> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the warnings of a file that was read.
    fn add_warnings(&self, of: &Stream) {
        let mut warnings = self.warnings();
        for warning in of.warnings() {
            if !warnings.found.contains(warning) {
                warnings.found.push(warning.clone());
            }
        }
    }

    /// Raises the warnings that were not raised before.
    fn raise_warnings(&self, py: Python<'_>) -> Result<()> {
        let new = {
            let mut warnings = self.warnings();
            let (from, found) = (warnings.raised, warnings.found.len());
            warnings.raised = found;
            warnings.found.get(from..).unwrap_or_default().to_vec()
        };
        // Filters are Python code, which may use the stream.
        warning::raise(py, &new)
    }
}

/// The native part of `tfseek.Stream`.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct StreamCore {
    source: Arc<Source>,
}

#[pymethods]
impl StreamCore {
    /// Resolves the paths. `arguments` contains all arguments of `tfseek.stream`.
    #[new]
    fn new(py: Python<'_>, arguments: &Bound<'_, PyDict>) -> Result<StreamCore> {
        let paths: Vec<OsString> = argument(arguments, "paths")?;
        let parts: Option<Vec<Py<PyPart>>> = argument(arguments, "parts")?;
        let Choice::<Option<Compression>>(compression) = argument(arguments, "compression")?;
        let Choice::<Verify>(verify) = argument(arguments, "verify")?;
        let Choice::<KindOption>(kind) = argument(arguments, "kind")?;
        let Choice::<Tail>(tail) = argument(arguments, "tail")?;
        let Choice::<Damage>(damage) = argument(arguments, "damage")?;
        let max_record: Option<u64> = argument(arguments, "max_record")?;
        let default = StreamOptions::default();
        let max_record = max_record.unwrap_or(default.max_record);
        let options = StreamOptions { compression, verify, tail, damage, max_record, ..default };
        let kind = kind.given().map_or_else(OnceLock::new, OnceLock::from);
        if let Some(parts) = parts {
            let parts: Vec<Part> = parts.iter().map(|part| part.get().part().clone()).collect();
            let paths = parts.iter().map(|part| Arc::from(Path::new(&*part.shard))).collect();
            let source = Source { paths, parts: Some(parts), options, kind, warnings: Mutex::default() };
            return Ok(StreamCore { source: Arc::new(source) });
        }
        let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
        let (paths, found) =
            wait::run(py, None, move |_| Ok(tfseek::paths::resolve_with_warnings(paths, false)?))?;
        // The caller of this constructor raises them.
        let warnings = StreamWarnings { raised: found.len(), found };
        let warnings = Mutex::new(warnings);
        let paths = paths.into_iter().map(Arc::from).collect();
        Ok(StreamCore { source: Arc::new(Source { paths, parts: None, options, kind, warnings }) })
    }

    fn __iter__(&self) -> StreamIterator {
        StreamIterator { state: Exclusive::new(Window::new(&self.source)) }
    }

    fn batches(
        &self,
        schema: Py<PySchema>,
        batch_size: i64,
        drop_last: bool,
        bytes_as: Choice<BytesAs>,
    ) -> Result<StreamBatches> {
        let batch_size = usize::try_from(batch_size).ok().filter(|size| *size > 0).ok_or_else(|| {
            PyValueError::new_err(format!("batch_size: expected at least 1, found {batch_size}"))
        })?;
        let state = BatchState { window: Window::new(&self.source), rows: Vec::new() };
        Ok(StreamBatches {
            schema,
            batch_size,
            drop_last,
            bytes_as: bytes_as.0,
            state: Exclusive::new(state),
        })
    }

    /// Draws `n` records in one pass, without replacement, and returns them in file order.
    fn sample<'py>(&self, py: Python<'py>, n: i64, seed: Seed) -> Result<Bound<'py, PyList>> {
        let n = usize::try_from(n)
            .map_err(|_| PyValueError::new_err(format!("n: expected at least 0, found {n}")))?;
        let mut reader = RecordReader::new(&self.source);
        let (mut guess, mut reservoir) = (KindGuess::default(), Reservoir::<Option<Taken>>::new(n, seed.0));
        let mut more = n > 0;
        while more {
            py.check_signals()?;
            more = py.detach(|| {
                reader.slice(|path, record| {
                    if !guess.is_complete() {
                        guess.add(record.payload());
                    }
                    let kept = reservoir.offer(|slot| {
                        *slot = Some(taken(path, &record)?);
                        Ok(())
                    });
                    kept.unwrap_or(Ok(())).map(|()| true)
                })
            })?;
        }
        self.source.raise_warnings(py)?;
        let (kind, mut slice) = (*self.source.kind.get_or_init(|| guess.kind()), TimeSlice::new());
        let mut items = Vec::new();
        for (payload, record) in reservoir.into_items().flatten() {
            slice.pause(py, TimeSlice::VALUE + payload.len() as u64)?;
            items.push(shared::item(py, kind, payload, || record)?);
        }
        Ok(headroom::list(py, items)?)
    }

    #[getter]
    fn warnings(&self) -> Vec<PyWarning> {
        self.source.warnings().found.iter().map(PyWarning::of).collect()
    }

    #[getter]
    fn paths(&self) -> Vec<OsString> {
        self.source.paths.iter().map(|path| path.as_os_str().to_owned()).collect()
    }
}

/// A record that was read: its payload and its location.
type Taken = (Region, RecordRef);

fn taken(path: &Arc<Path>, record: &Record<'_>) -> tfseek::Result<Taken> {
    let at = record.at();
    let (i, offset) = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
    Ok((payload::copied(record.payload())?, RecordRef::in_stream(Arc::clone(path), i, offset)))
}

/// State that one call uses at a time.
///
/// The state is taken out during a call, as Python does with a running generator. A lock would be a deadlock if a signal handler used
/// the iterator that it interrupts.
struct Exclusive<T> {
    state: Mutex<Option<T>>,
    /// Process that began the iteration. A forked child shares the positions in the open files.
    pid: u32,
}

impl<T> Exclusive<T> {
    fn new(state: T) -> Exclusive<T> {
        Exclusive { state: Mutex::new(Some(state)), pid: std::process::id() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        if self.pid != std::process::id() {
            let message = "the iterator belongs to the process that created it: begin another iteration in a forked child";
            return Err(PyRuntimeError::new_err(message).into());
        }
        let Some(mut state) = self.lock().take() else {
            let message = "the iterator is in use by another call: begin another iteration for each thread";
            return Err(PyRuntimeError::new_err(message).into());
        };
        let outcome = f(&mut state);
        *self.lock() = Some(state);
        outcome
    }
}

/// An iterator over the records of a stream.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct StreamIterator {
    state: Exclusive<Window>,
}

#[pymethods]
impl StreamIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        self.state.with(|window| {
            let Some((payload, record)) = window.next(py)? else { return Ok(None) };
            Ok(Some(shared::item(py, window.kind(), payload, || record)?))
        })
    }

    /// Raises an error: an iterator has a position and cannot be copied.
    fn __reduce__(&self) -> Result<()> {
        Err(PyRuntimeError::new_err("an iterator cannot be pickled: pickle its Stream").into())
    }
}

/// An iterator over the parsed batches of a stream.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct StreamBatches {
    schema: Py<PySchema>,
    batch_size: usize,
    drop_last: bool,
    bytes_as: BytesAs,
    state: Exclusive<BatchState>,
}

struct BatchState {
    window: Window,
    /// Rows of the next batch. They are kept if an exception ends the call.
    rows: Vec<PyPayload>,
}

#[pymethods]
impl StreamBatches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        self.state.with(|state| {
            while state.rows.len() < self.batch_size {
                match state.window.next(py) {
                    Ok(Some((payload, record))) => {
                        state.rows.push(PyPayload::Record(payload, Some(record)));
                    }
                    Ok(None) => break,
                    // The records before the damage are returned first.
                    Err(BindingError::Tfseek(e)) => {
                        state.window.failed = Some(e);
                        break;
                    }
                    Err(raised) => return Err(raised),
                }
            }
            let rows = std::mem::take(&mut state.rows);
            let is_short = rows.len() < self.batch_size;
            if (rows.is_empty() || (self.drop_last && is_short))
                && let Some(e) = state.window.failed.take()
            {
                return Err(e.into());
            }
            if rows.is_empty() || (self.drop_last && is_short) {
                return Ok(None);
            }
            let schema = self.schema.get();
            let parser = schema.parser(self.bytes_as);
            let batch = py.detach(|| parser.parse(&rows))?;
            Ok(Some(schema.batch(py, &batch, false, self.bytes_as)?))
        })
    }

    /// Raises an error: an iterator has a position and cannot be copied.
    fn __reduce__(&self) -> Result<()> {
        Err(PyRuntimeError::new_err("an iterator cannot be pickled: pickle its Stream").into())
    }
}

/// The records of a stream, which are read in windows.
struct Window {
    source: Arc<Source>,
    reader: RecordReader,
    guess: KindGuess,
    ready: VecDeque<Taken>,
    /// Error that follows the records in `ready`.
    failed: Option<Error>,
    ended: bool,
}

impl Window {
    fn new(source: &Arc<Source>) -> Window {
        Window {
            reader: RecordReader::new(source),
            source: Arc::clone(source),
            guess: KindGuess::default(),
            ready: VecDeque::new(),
            failed: None,
            ended: false,
        }
    }

    /// Returns the kind of the records. It is known when a record was returned.
    fn kind(&self) -> MessageKind {
        *self.source.kind.get_or_init(|| self.guess.kind())
    }

    /// Returns the next record. Checks for signals between slices.
    fn next(&mut self, py: Python<'_>) -> Result<Option<Taken>> {
        loop {
            if self.source.kind.get().is_some()
                && let Some(first) = self.ready.pop_front()
            {
                return Ok(Some(first));
            }
            if self.ended {
                return self.failed.take().map_or(Ok(None), |e| Err(e.into()));
            }
            py.check_signals()?;
            py.detach(|| self.fill())?;
            self.source.raise_warnings(py)?;
        }
    }

    /// Reads a window of records. Records are kept until the kind of all records is known.
    fn fill(&mut self) -> Result<()> {
        let Window { source, reader, guess, ready, .. } = self;
        let is_known = source.kind.get().is_some();
        let (mut count, mut bytes) = (0, 0);
        let outcome = reader.slice(|path, record| {
            if !is_known {
                guess.add(record.payload());
            }
            ready.push_back(taken(path, &record)?);
            (count, bytes) = (count + 1, bytes + record.payload().len());
            Ok(count < WINDOW && bytes < WINDOW_BYTES)
        });
        match outcome {
            Ok(more) => self.ended = !more,
            Err(BindingError::Tfseek(e)) => {
                self.ended = true;
                self.failed = Some(e);
            }
            Err(raised @ BindingError::Python(_)) => {
                self.ended = true;
                return Err(raised);
            }
        }
        if !is_known && (self.ended || self.guess.is_complete()) {
            self.kind();
        }
        Ok(())
    }
}

/// Reads the records of all files in order.
struct RecordReader {
    source: Arc<Source>,
    /// Number of files that were opened.
    opened: usize,
    current: Option<(Arc<Path>, Stream)>,
    signals: Arc<Signals>,
}

impl RecordReader {
    fn new(source: &Arc<Source>) -> RecordReader {
        RecordReader { source: Arc::clone(source), opened: 0, current: None, signals: Arc::default() }
    }

    /// Reads records until `each` returns false or the time slice is over. Returns false at the end of the last file.
    fn slice(
        &mut self,
        mut each: impl FnMut(&Arc<Path>, Record<'_>) -> tfseek::Result<bool>,
    ) -> Result<bool> {
        self.signals.checked();
        let mut slice = TimeSlice::new();
        loop {
            let Some((path, stream)) = &mut self.current else {
                if !self.open_next()? {
                    return Ok(false);
                }
                continue;
            };
            match stream.next() {
                Ok(Some(record)) => {
                    let over = slice.is_over(TimeSlice::RECORD + record.payload().len() as u64);
                    if !each(path, record)? || over {
                        return Ok(true);
                    }
                }
                Ok(None) => {
                    self.source.add_warnings(stream);
                    self.current = None;
                }
                Err(e) => return Err(self.signals.error(e)),
            }
        }
    }

    /// Opens the next file. Opening a pipe blocks until it has a writer, so a separate thread does it.
    fn open_next(&mut self) -> Result<bool> {
        let Some(path) = self.source.paths.get(self.opened) else { return Ok(false) };
        if let Some(parts) = &self.source.parts {
            let Some(part) = parts.get(self.opened) else { return Ok(false) };
            self.current = Some((Arc::clone(path), self.source.options.part(part)?));
            self.opened += 1;
            return Ok(true);
        }
        let name = Arc::clone(path);
        let open = move |_: &_| Ok(File::open(&name).map_err(|e| Error::from(e).in_file(&name))?);
        let file = Python::attach(|py| wait::run(py, None, open))?;
        let signals = Arc::clone(&self.signals);
        let stream = self.source.options.read_file(file, &**path, move |bytes| signals.poll(bytes));
        let stream = stream.map_err(|e| self.signals.error(e))?;
        self.current = Some((Arc::clone(path), stream));
        self.opened += 1;
        Ok(true)
    }
}

/// Signals that arrive while a file is read.
struct Signals {
    /// Time of the last check.
    last: Mutex<Instant>,
    /// Exception of a signal handler.
    raised: Mutex<Option<PyErr>>,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals { last: Mutex::new(Instant::now()), raised: Mutex::default() }
    }
}

impl Signals {
    /// Records that signals have just been checked.
    fn checked(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Runs the handlers of pending signals after a read of `bytes` bytes, if a check is due or a signal interrupted the read. An exception
    /// of a handler ends the reading.
    fn poll(&self, bytes: u64) -> ControlFlow<()> {
        if bytes > 0 && !self.is_due() {
            return ControlFlow::Continue(());
        }
        self.checked();
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    fn is_due(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= SIGNAL_INTERVAL
    }

    /// Returns the exception of a signal handler if there is one, otherwise the error.
    fn error(&self, e: Error) -> BindingError {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(BindingError::Tfseek(e), BindingError::Python)
    }
}
