//! `tfseek.stream`: records in file order, without an index.
//!
//! A [`RecordReader`] reads in the calling thread, without the GIL, in slices of [`TimeSlice`]. A single read
//! may take longer: a pipe blocks, and a record may be large. So signals are checked after reads too
//! ([`Signals::poll`]).

use crate::error::{BindingError, Result};
use crate::headroom;
use crate::options::{Choice, KindOption, Seed, argument};
use crate::part::{self, PyPart};
use crate::payload::{self, RecordPayload, RecordRef};
use crate::reading;
use crate::remote::{StorageOptions, shown};
use crate::rows::{PyPayload, SeededRow};
use crate::schema::PySchema;
use crate::shared;
use crate::strings::BytesAs;
use crate::wait::{self, SIGNAL_INTERVAL, TimeSlice, locked};
use crate::warning::{self, PyWarning};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::stream::{Stream, StreamOptions};
use tfseek::{BatchParser, Compression, Damage, Error, Part, Record, Tail, Verify};
use tfseek_tools::sample::Reservoir;

/// Maximum number of records that are read together.
const WINDOW: usize = 64;
/// The same for a store, after the first windows.
const REMOTE_WINDOW: usize = 1024;
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
    /// Returns true if records may have to be requested from a store.
    fn is_remote(&self) -> bool {
        self.options.store.is_some()
    }

    /// Adds the warnings of a file that was read.
    fn add_warnings(&self, of: &Stream) {
        let mut warnings = locked(&self.warnings);
        for warning in of.warnings() {
            if !warnings.found.contains(warning) {
                warnings.found.push(warning.clone());
            }
        }
    }

    /// Raises the warnings that were not raised before.
    fn raise_warnings(&self, py: Python<'_>) -> Result<()> {
        let new = {
            let mut warnings = locked(&self.warnings);
            let from = warnings.raised;
            let found = warnings.found.len();
            warnings.raised = found;
            warnings.found.iter().skip(from).cloned().collect::<Vec<_>>()
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
        let storage = StorageOptions::take(arguments)?;
        let options = StreamOptions { compression, verify, tail, damage, max_record, ..default };
        let mut warnings = StreamWarnings::default();
        let (paths, parts, store) = if let Some(parts) = parts {
            let (parts, store) = part::with_store(&parts, storage)?;
            let paths = parts.iter().map(|part| PathBuf::from(shown(Path::new(&*part.shard))));
            (paths.collect(), Some(parts), store)
        } else {
            let ((paths, store), found) = reading::resolve_with_warnings(py, paths, false, storage)?;
            // The caller of this constructor raises them.
            warnings = StreamWarnings { raised: found.len(), found };
            (paths, None, store)
        };
        let source = Source {
            paths: paths.into_iter().map(Arc::from).collect(),
            parts,
            options: StreamOptions { store, ..options },
            kind: kind.map_or_else(OnceLock::new, OnceLock::from),
            warnings: Mutex::new(warnings),
        };
        Ok(StreamCore { source: Arc::new(source) })
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
        let window = Window::new(&self.source);
        let state = BatchState { window, rows: Vec::new(), count: 0, is_checked: false, left_out: None };
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
        let mut drawing = Drawing {
            reader: RecordReader::new(&self.source),
            guess: KindGuess::default(),
            reservoir: Reservoir::new(n, seed.0),
        };
        let mut more = n > 0;
        if self.source.is_remote() {
            drawing = wait::run(py, None, true, move |call| {
                let report = call.callback();
                while more && report(0).is_continue() {
                    more = drawing.slice()?;
                }
                Ok(drawing)
            })?;
        }
        while more && !self.source.is_remote() {
            py.check_signals()?;
            more = py.detach(|| drawing.slice())?;
        }
        self.source.raise_warnings(py)?;
        let kind = *self.source.kind.get_or_init(|| drawing.guess.kind());
        let mut slice = TimeSlice::new();
        let mut items = Vec::new();
        for found in drawing.reservoir.into_items().flatten() {
            slice.pause(py, TimeSlice::VALUE + found.bytes.len() as u64)?;
            items.push(shared::item(py, kind, found)?);
        }
        Ok(headroom::list(py, items)?)
    }

    #[getter]
    fn warnings(&self) -> Vec<PyWarning> {
        locked(&self.source.warnings).found.iter().map(PyWarning::of).collect()
    }

    #[getter]
    fn paths(&self) -> Vec<OsString> {
        self.source.paths.iter().map(|path| path.as_os_str().to_owned()).collect()
    }
}

/// A sample that is being drawn.
struct Drawing {
    reader: RecordReader,
    guess: KindGuess,
    reservoir: Reservoir<Option<RecordPayload>>,
}

impl Drawing {
    /// Offers the records of a time slice. Returns false at the end of the last file.
    fn slice(&mut self) -> Result<bool> {
        let Drawing { reader, guess, reservoir } = self;
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
    }
}

/// Copies a record that was read.
fn taken(path: &Arc<Path>, record: &Record<'_>) -> tfseek::Result<RecordPayload> {
    let at = record.at();
    let source = RecordRef::Stream {
        path: Arc::clone(path),
        record: at.record.unwrap_or(0),
        offset: at.offset.unwrap_or(0),
    };
    Ok(RecordPayload { bytes: payload::copied(record.payload())?, record: Some(source) })
}

/// State that one call uses at a time.
///
/// The state is taken out during a call, as Python does with a running generator. A lock would be a deadlock
/// if a signal handler used the iterator that it interrupts.
struct Exclusive<T> {
    state: Mutex<Option<T>>,
    /// Process that began the iteration. A forked child shares the positions in the open files.
    pid: u32,
}

impl<T> Exclusive<T> {
    fn new(state: T) -> Exclusive<T> {
        Exclusive { state: Mutex::new(Some(state)), pid: std::process::id() }
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        if self.pid != std::process::id() {
            let message = "the iterator belongs to the process that created it: begin another iteration in a forked child";
            return Err(PyRuntimeError::new_err(message).into());
        }
        let Some(mut state) = locked(&self.state).take() else {
            let message = "the iterator is in use by another call: begin another iteration for each thread";
            return Err(PyRuntimeError::new_err(message).into());
        };
        let outcome = f(&mut state);
        *locked(&self.state) = Some(state);
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
            let Some(found) = window.next(py)? else { return Ok(None) };
            Ok(Some(shared::item(py, window.kind(), found)?))
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
    rows: Vec<SeededRow<PyPayload>>,
    /// Number of records so far.
    count: u64,
    /// The kind of the records and the names were compared with the schema.
    is_checked: bool,
    /// The error of the first record that did not decode, and the number of them.
    left_out: Option<(Error, u64)>,
}

impl BatchState {
    /// Reads records until there are `batch_size` rows, or no more.
    fn fill(&mut self, py: Python<'_>, batch_size: usize) -> Result<()> {
        while self.rows.len() < batch_size {
            match self.window.next(py) {
                Ok(Some(found)) => {
                    let row = PyPayload::Record(found);
                    self.rows.push(SeededRow { row, seeds: (Seed(0), 0), number: self.count });
                    self.count += 1;
                }
                Ok(None) => break,
                // The records before the damage are returned first.
                Err(BindingError::Tfseek(e)) => {
                    self.window.failed = Some(e);
                    break;
                }
                Err(raised) => return Err(raised),
            }
        }
        Ok(())
    }

    /// Leaves out the rows that do not decode. Returns the error of a batch again if each row decodes alone.
    fn leave_out(
        &mut self,
        parser: &BatchParser,
        rows: Vec<SeededRow<PyPayload>>,
        of_batch: Error,
    ) -> Result<()> {
        let all = rows.len();
        for row in rows {
            match parser.parse_single(&row) {
                Ok(_) => self.rows.push(row),
                Err(e) if e.is_data() => self.left_out.get_or_insert((e, 0)).1 += 1,
                Err(e) => return Err(e.into()),
            }
        }
        if self.rows.len() == all { Err(of_batch.into()) } else { Ok(()) }
    }

    /// Raises a warning about the records that were left out.
    fn end(&mut self, py: Python<'_>) -> Result<()> {
        let Some((first, skipped)) = self.left_out.take() else { return Ok(()) };
        let source = &self.window.source;
        locked(&source.warnings).found.push(tfseek::Warning::payloads_skipped(&first, skipped));
        source.raise_warnings(py)
    }
}

#[pymethods]
impl StreamBatches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        self.state.with(|state| {
            let schema = self.schema.get();
            let parser = schema.parser(self.bytes_as);
            loop {
                state.fill(py, self.batch_size)?;
                let rows = std::mem::take(&mut state.rows);
                let is_short = rows.len() < self.batch_size;
                if rows.is_empty() || (self.drop_last && is_short) {
                    state.end(py)?;
                    return state.window.failed.take().map_or(Ok(None), |e| Err(e.into()));
                }
                let mut warnings = Vec::new();
                if !state.is_checked {
                    // A clone compares the names anew.
                    warnings = py.detach(|| parser.clone().unknown_names(&rows))?;
                }
                match py.detach(|| parser.parse(&rows)) {
                    Ok(batch) => {
                        state.is_checked = true;
                        if let Err(raised) = warning::raise(py, &warnings) {
                            // A filter made an error of the warning.
                            state.rows = rows;
                            return Err(raised);
                        }
                        return Ok(Some(schema.batch(py, &batch, false, self.bytes_as)?));
                    }
                    Err(e) if state.window.source.options.damage == Damage::Skip && e.is_data() => {
                        py.detach(|| state.leave_out(parser, rows, e))?;
                    }
                    Err(e) => return Err(e.into()),
                }
            }
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
    /// `None` after a call that a signal ended while it waited for a request.
    filling: Option<Filling>,
    ready: VecDeque<RecordPayload>,
    /// Error that follows the records in `ready`.
    failed: Option<Error>,
    ended: bool,
}

/// The reader of a window's records, and the guess of their kind.
struct Filling {
    reader: RecordReader,
    guess: KindGuess,
    /// Maximum number of records that are read together.
    window: usize,
}

impl Window {
    fn new(source: &Arc<Source>) -> Window {
        let reader = RecordReader::new(source);
        Window {
            source: Arc::clone(source),
            filling: Some(Filling { reader, guess: KindGuess::default(), window: WINDOW }),
            ready: VecDeque::new(),
            failed: None,
            ended: false,
        }
    }

    /// Returns the kind of the records. It is known when a record was returned.
    fn kind(&self) -> MessageKind {
        let guessed = || self.filling.as_ref().map_or(MessageKind::Other, |filling| filling.guess.kind());
        *self.source.kind.get_or_init(guessed)
    }

    /// Returns the next record. Checks for signals between slices.
    fn next(&mut self, py: Python<'_>) -> Result<Option<RecordPayload>> {
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
            self.fill(py)?;
            self.source.raise_warnings(py)?;
        }
    }

    /// Reads a window of records. Records are kept until the kind of all records is known.
    fn fill(&mut self, py: Python<'_>) -> Result<()> {
        // It ends with a call that a signal ends.
        let Some(mut filling) = self.filling.take() else { return Ok(()) };
        let is_known = self.source.kind.get().is_some();
        let filled = if self.source.is_remote() {
            let filled = wait::run(py, None, true, move |_| {
                let filled = filling.fill(is_known);
                filling.window = (filling.window * 2).min(REMOTE_WINDOW);
                Ok((filling, filled))
            });
            self.ended = filled.is_err();
            filled?
        } else {
            py.detach(|| {
                let filled = filling.fill(is_known);
                (filling, filled)
            })
        };
        let (filling, (found, outcome)) = filled;
        let is_complete = filling.guess.is_complete();
        self.filling = Some(filling);
        self.ready.extend(found);
        self.ended = !matches!(outcome, Ok(true));
        match outcome {
            Ok(_) => {}
            Err(BindingError::Tfseek(e)) => self.failed = Some(e),
            Err(raised) => return Err(raised),
        }
        if !is_known && (self.ended || is_complete) {
            self.kind();
        }
        Ok(())
    }
}

impl Filling {
    /// Reads a window of records. Returns those before an error, and false after the last one.
    fn fill(&mut self, is_known: bool) -> (Vec<RecordPayload>, Result<bool>) {
        let Filling { reader, guess, window } = self;
        let mut found = Vec::new();
        let mut bytes = 0;
        let outcome = reader.slice(|path, record| {
            if !is_known {
                guess.add(record.payload());
            }
            found.push(taken(path, &record)?);
            bytes += record.payload().len();
            Ok(found.len() < *window && bytes < WINDOW_BYTES)
        });
        (found, outcome)
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
        let signals = Signals { last: Mutex::new(Instant::now()), raised: Mutex::default() };
        RecordReader { source: Arc::clone(source), opened: 0, current: None, signals: Arc::new(signals) }
    }

    /// Reads records until `each` returns false or the time slice is over. Returns false at the end of the
    /// last file.
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
        let options = &self.source.options;
        let stream = if let Some(parts) = &self.source.parts {
            let Some(part) = parts.get(self.opened) else { return Ok(false) };
            options.part(part)?
        } else if self.source.is_remote() {
            // The calling thread does not wait for it.
            options.open(path)?
        } else {
            let name = Arc::clone(path);
            let open = move |_: &_| Ok(File::open(&name).map_err(|e| Error::from(e).in_file(&name))?);
            let file = Python::attach(|py| wait::run(py, None, false, open))?;
            let signals = Arc::clone(&self.signals);
            let stream = options.read_file(file, &**path, move |bytes| signals.poll(bytes));
            stream.map_err(|e| self.signals.error(e))?
        };
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

impl Signals {
    /// Records that signals have just been checked.
    fn checked(&self) {
        *locked(&self.last) = Instant::now();
    }

    /// Runs the handlers of pending signals after a read of `bytes` bytes, if a check is due or a signal
    /// interrupted the read. An exception of a handler ends the reading.
    fn poll(&self, bytes: u64) -> ControlFlow<()> {
        if bytes > 0 && locked(&self.last).elapsed() < SIGNAL_INTERVAL {
            return ControlFlow::Continue(());
        }
        self.checked();
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                *locked(&self.raised) = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the exception of a signal handler if there is one, otherwise the error.
    fn error(&self, e: Error) -> BindingError {
        let raised = locked(&self.raised).take();
        raised.map_or(BindingError::Tfseek(e), BindingError::Python)
    }
}
