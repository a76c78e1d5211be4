//! Calls of a filesystem of fsspec, which threads of Python make: they take a call, make it, and give its
//! answer. Threads of Rust wait for answers on a condition, without the GIL.

use crate::ranges::{CallFailure, FailureCause, PartRequest, RangeTable};
use crate::wait::locked;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyList, PyTuple};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tfseek::io::{Listing, Object, Region, Stamp, is_interrupted};

/// The time that a thread waits before it asks whether its work was given up.
const ATTENTION: Duration = Duration::from_millis(20);

/// A call whose answer one thread waits for.
pub(crate) enum SingleCall {
    List { prefix: String, deep: bool },
    Small { url: String, limit: u64 },
}

/// The answer to a [`SingleCall`].
pub(crate) enum CallAnswer {
    Listed(Listing),
    /// The first bytes of an object, and its stamp.
    Small(Option<(Region, Stamp)>),
    Failed(CallFailure),
}

/// The calls of one process.
pub(crate) struct Calls {
    state: Mutex<CallTable>,
    /// There is something to do for the threads of Python.
    work: Condvar,
    /// There is an answer for a thread that waits.
    answered: Condvar,
    started: AtomicBool,
    /// The most parts of one call.
    parts: usize,
}

/// The state of the calls.
#[derive(Default)]
pub(crate) struct CallTable {
    pub(crate) ranges: RangeTable,
    /// The URLs and stamps of the objects that are open.
    objects: HashMap<u64, Arc<Object>>,
    waiting: VecDeque<(u64, SingleCall)>,
    answers: HashMap<u64, CallAnswer>,
    /// The calls whose answers are not waited for any more.
    left: HashSet<u64>,
    reads: HashMap<u64, Vec<PartRequest>>,
    /// Number of calls so far, and the numbers of those under way.
    calls: u64,
    running: HashSet<u64>,
    /// Set once no call can be made any more.
    ended: Option<CallFailure>,
}

impl Calls {
    pub(crate) fn new(parts: usize) -> Calls {
        Calls {
            state: Mutex::default(),
            work: Condvar::new(),
            answered: Condvar::new(),
            started: AtomicBool::new(false),
            parts,
        }
    }

    /// Returns true the first time.
    pub(crate) fn start(&self) -> bool {
        !self.started.swap(true, AcqRel)
    }

    /// Ends all calls, also those to come, with a failure.
    pub(crate) fn end(&self, failure: CallFailure) {
        locked(&self.state).ended.get_or_insert(failure);
        self.work.notify_all();
        self.answered.notify_all();
    }

    /// Changes the ranges, and wakes the threads that make calls.
    pub(crate) fn change(&self, change: impl FnOnce(&mut RangeTable)) {
        change(&mut locked(&self.state).ranges);
        self.work.notify_all();
    }

    /// Notes an object that is open.
    pub(crate) fn add(&self, id: u64, object: &Arc<Object>) {
        locked(&self.state).objects.entry(id).or_insert_with(|| object.clone());
    }

    /// Drops an object.
    pub(crate) fn remove(&self, id: u64) {
        let mut state = locked(&self.state);
        state.objects.remove(&id);
        state.ranges.remove(id);
    }

    /// Calls `take` until it has an answer, first and after each call that ended. If the thread's work is
    /// given up, calls `leave`.
    pub(crate) fn wait<T>(
        &self,
        mut take: impl FnMut(&mut CallTable) -> Option<T>,
        leave: impl FnOnce(&mut CallTable),
    ) -> Result<T, CallFailure> {
        let mut state = locked(&self.state);
        loop {
            if let Some(answer) = take(&mut state) {
                drop(state);
                // There may be memory for the next ranges.
                self.work.notify_all();
                return Ok(answer);
            }
            if let Some(failure) = &state.ended {
                return Err(failure.clone());
            }
            if is_interrupted() {
                leave(&mut state);
                let text = "the call was given up".into();
                return Err(CallFailure { cause: FailureCause::Cancelled, text });
            }
            let waited = self.answered.wait_timeout(state, ATTENTION);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Makes a call, and waits for its answer.
    pub(crate) fn call(&self, call: SingleCall) -> Result<CallAnswer, CallFailure> {
        let mut state = locked(&self.state);
        let number = state.number();
        state.waiting.push_back((number, call));
        drop(state);
        self.work.notify_all();
        self.wait(|state| state.answers.remove(&number), |state| _ = state.left.insert(number))
    }
}

impl CallTable {
    fn number(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }
}

/// A call, and its number.
enum TakenCall {
    Single(u64, SingleCall),
    Read(u64, Vec<(Arc<Object>, Range<u64>)>),
}

/// The queue that threads of Python take calls from.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct CallQueue(pub(crate) Arc<Calls>);

impl CallQueue {
    /// Waits for the next call. `None` if there will be none.
    fn take(&self, thread: usize) -> Option<TakenCall> {
        let calls = &*self.0;
        let mut state = locked(&calls.state);
        loop {
            if state.ended.is_some() {
                return None;
            }
            // A thread takes a call only if the threads of lower numbers are busy.
            if state.running.len() >= thread {
                if let Some((number, call)) = state.waiting.pop_front() {
                    state.running.insert(number);
                    return Some(TakenCall::Single(number, call));
                }
                let parts = state.ranges.next(calls.parts);
                if !parts.is_empty() {
                    let number = state.number();
                    let ranges = parts
                        .iter()
                        .filter_map(|part| Some((state.objects.get(&part.id)?.clone(), part.range.clone())));
                    let ranges: Vec<_> = ranges.collect();
                    state.reads.insert(number, parts);
                    state.running.insert(number);
                    drop(state);
                    // There may be more for the next thread.
                    calls.work.notify_all();
                    return Some(TakenCall::Read(number, ranges));
                }
            }
            state = calls.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes the answer to a call. A second one is dropped: an exception after the first, as of a trace
    /// function, seems to be the call's.
    fn answer(&self, number: u64, answer: CallAnswer) {
        let mut state = locked(&self.0.state);
        if !state.running.remove(&number) {
            return;
        }
        if !state.left.remove(&number) {
            state.answers.insert(number, answer);
        }
        drop(state);
        self.0.answered.notify_all();
        self.0.work.notify_all();
    }

    /// Notes the results for the parts of a read. Parts without one have failed.
    fn read_done(&self, number: u64, results: Vec<Result<Region, CallFailure>>) {
        let mut state = locked(&self.0.state);
        state.running.remove(&number);
        let parts = state.reads.remove(&number).unwrap_or_default();
        let mut results = results.into_iter();
        for part in &parts {
            let missing = || Err(CallFailure::other("the filesystem returned too few results"));
            let result = results.next().unwrap_or_else(missing);
            let expected = part.range.end - part.range.start;
            let result = match result {
                Ok(bytes) if bytes.len() as u64 != expected => Err(CallFailure::other(format!(
                    "expected {expected} bytes of the filesystem, found {}",
                    bytes.len()
                ))),
                result => result,
            };
            state.ranges.done(part, result);
        }
        drop(state);
        self.0.answered.notify_all();
        self.0.work.notify_all();
    }
}

/// Size, time and version of an object.
type StampFields = (u64, Option<i64>, Option<String>);

fn stamp((size, modified_ns, version): StampFields) -> Stamp {
    let mut stamp = Stamp::new(size);
    (stamp.modified_ns, stamp.version) = (modified_ns, version.map(String::into_boxed_str));
    stamp
}

#[pymethods]
impl CallQueue {
    /// Waits for the next call: its number, its name and its arguments. `None` if there will be none.
    fn next<'py>(&self, py: Python<'py>, thread: usize) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(taken) = py.detach(|| self.take(thread)) else { return Ok(None) };
        let call = match taken {
            TakenCall::Single(number, SingleCall::List { prefix, deep }) => {
                (number, "list", (prefix, deep).into_pyobject(py)?).into_pyobject(py)?
            }
            TakenCall::Single(number, SingleCall::Small { url, limit }) => {
                (number, "small", (url, limit).into_pyobject(py)?).into_pyobject(py)?
            }
            TakenCall::Read(number, ranges) => {
                let ranges = ranges.iter().map(|(object, range)| {
                    let Stamp { size, version, .. } = &object.stamp;
                    (&*object.url, range.start, range.end, *size, version.as_deref())
                });
                (number, "read", (PyList::new(py, ranges)?,)).into_pyobject(py)?
            }
        };
        Ok(Some(call))
    }

    /// Takes the objects and folders of a listing.
    fn listed(&self, number: u64, objects: Vec<(String, StampFields)>, folders: Vec<String>) {
        let objects =
            objects.into_iter().map(|(url, fields)| Object { url: url.into(), stamp: stamp(fields) });
        let mut listing = Listing {
            objects: objects.collect(),
            folders: folders.into_iter().map(String::into_boxed_str).collect(),
        };
        listing.objects.sort_by(|a, b| a.url.cmp(&b.url));
        listing.folders.sort();
        self.answer(number, CallAnswer::Listed(listing));
    }

    /// Takes a small object.
    fn small(&self, number: u64, found: Option<(Bound<'_, PyAny>, StampFields)>) -> PyResult<()> {
        let found =
            found.map(|(bytes, fields)| Ok::<_, PyErr>((copied(&bytes)?, stamp(fields)))).transpose()?;
        self.answer(number, CallAnswer::Small(found));
        Ok(())
    }

    /// Takes the results of a read: for each range its bytes, or the cause and text of a failure.
    fn read(&self, number: u64, results: &Bound<'_, PyList>) {
        let results = results.iter().map(|result| match result.cast::<PyTuple>() {
            Ok(failure) => {
                let (cause, text) = failure.extract().unwrap_or_default();
                Err(failure_of(cause, text))
            }
            Err(_) => copied(&result).map_err(|_| CallFailure::other("expected bytes of the filesystem")),
        });
        self.read_done(number, results.collect());
    }

    /// Takes the cause and text of the failure of a call.
    fn failed(&self, number: u64, cause: String, text: String) {
        let failure = failure_of(cause, text);
        let parts = locked(&self.0.state).reads.get(&number).map(Vec::len);
        match parts {
            Some(parts) => self.read_done(number, vec![Err(failure); parts]),
            None => self.answer(number, CallAnswer::Failed(failure)),
        }
    }

    /// Ends all calls, also those to come.
    fn end(&self, text: String) {
        self.0.end(CallFailure::other(text));
    }
}

/// Copies the bytes of an object that the filesystem returned.
fn copied(bytes: &Bound<'_, PyAny>) -> PyResult<Region> {
    let bytes: pyo3::pybacked::PyBackedBytes = bytes.extract()?;
    let mut copy = crate::headroom::room(bytes.len())?;
    copy.extend_from_slice(&bytes);
    Ok(Region::from(copy))
}

fn failure_of(cause: String, text: String) -> CallFailure {
    let cause = match &*cause {
        "missing" => FailureCause::Missing,
        "denied" => FailureCause::Denied,
        "stale" => FailureCause::Stale,
        "unsupported" => FailureCause::Unsupported,
        _ => FailureCause::Other,
    };
    CallFailure { cause, text: text.into() }
}
