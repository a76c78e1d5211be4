//! Long calls: they release the GIL, check for signals every 50 ms, and report progress.
//!
//! Work that cannot pause ([`run`]) gets a thread, and the calling thread waits for it. Work on single
//! records ([`in_slices`]) pauses in the calling thread, because starting a thread takes 30 us, more than a
//! few records. In both cases the calling thread checks for signals and calls the progress callable. The
//! working thread touches no Python object. It does not exist in a forked child, where each call starts its
//! own thread. Only the calling thread can run signal handlers, and displays of progress are not made for
//! other threads.

use crate::error::Result;
use crate::hooks;
use pyo3::prelude::*;
use std::io;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tfseek_tools::WriteProgress;

/// Interval between checks for signals.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);
/// Time for cancelled work to clean up before its call returns. A slow disk takes that long to sync a file.
/// The thread continues to clean up afterwards, but the process may end before it is done.
const CLEANUP_LIMIT: Duration = Duration::from_secs(1);
/// The same for work that waits for requests, which has nothing to clean up. A request may take minutes.
const REQUEST_LIMIT: Duration = Duration::from_millis(20);

/// Progress display selected by the argument `progress`. `tfseek._progress` creates its two callables.
pub(crate) struct Progress<'py> {
    /// Called with the amount done and the total.
    report: Bound<'py, PyAny>,
    close: Bound<'py, PyAny>,
}

/// Unit of a count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Records,
}

impl<'py> Progress<'py> {
    /// Creates the display. `what` is a one-word label of the work.
    pub(crate) fn new(
        py: Python<'py>,
        progress: Option<&Bound<'py, PyAny>>,
        what: &str,
        unit: Unit,
    ) -> Result<Option<Progress<'py>>> {
        let disabled = pyo3::types::PyBool::new(py, false);
        let Some(progress) = progress.filter(|progress| !progress.is(&*disabled)) else {
            return Ok(None);
        };
        let (report, close) =
            hooks::progress_of(py)?.call1((progress, what, unit == Unit::Bytes))?.extract()?;
        Ok(Some(Progress { report, close }))
    }

    /// Shows the amount done and the total, if there is a display.
    pub(crate) fn report(shown: Option<&Progress<'_>>, done: u64, total: Option<u64>) -> PyResult<()> {
        shown.map_or(Ok(()), |progress| progress.report.call1((done, total)).map(drop))
    }
}

/// Locks a mutex. A value that a panic left is whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work`, then closes the display even after an error.
pub(crate) fn shown<'py, T>(
    progress: Option<Progress<'py>>,
    work: impl FnOnce(Option<&Progress<'py>>) -> Result<T>,
) -> Result<T> {
    let outcome = work(progress.as_ref());
    let closed = progress.map_or(Ok(()), |progress| progress.close.call0().map(drop));
    // The first error is returned.
    let outcome = outcome?;
    closed?;
    Ok(outcome)
}

/// State shared by a working thread and the thread that waits for it.
pub(crate) struct CallState {
    done: AtomicU64,
    /// `u64::MAX` if unknown.
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl CallState {
    /// Returns the progress callback for the library.
    pub(crate) fn callback(
        self: &Arc<Self>,
    ) -> impl Fn(u64) -> ControlFlow<()> + Clone + Send + Sync + 'static {
        let call = Arc::clone(self);
        move |bytes| {
            call.done.fetch_add(bytes, Relaxed);
            if call.cancelled.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    /// Returns the progress callbacks for files that are written.
    pub(crate) fn of_writing(self: &Arc<Self>) -> WriteProgress {
        let expecting = Arc::clone(self);
        WriteProgress {
            expect: Arc::new(move |bytes| expecting.expect(Some(bytes))),
            advance: Arc::new(self.callback()),
        }
    }

    /// Sets the remaining amount of work, or `None` if it is unknown.
    pub(crate) fn expect(&self, left: Option<u64>) {
        let total = left.map_or(u64::MAX, |left| self.done.load(Relaxed).saturating_add(left));
        self.total.store(total, Relaxed);
    }

    fn report(&self, progress: Option<&Progress<'_>>) -> PyResult<()> {
        let total = Some(self.total.load(Relaxed)).filter(|total| *total != u64::MAX);
        Progress::report(progress, self.done.load(Relaxed), total)
    }
}

/// Calls `work` in a new thread. An exception of a signal handler or of the progress callable cancels it.
/// `requests` is true if it may wait for requests.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Progress<'_>>,
    requests: bool,
    work: impl FnOnce(&Arc<CallState>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let call = Arc::new(CallState {
        done: AtomicU64::new(0),
        total: AtomicU64::new(u64::MAX),
        cancelled: AtomicBool::new(false),
    });
    shown(progress, |progress| wait(py, progress, requests, &call, work))
}

fn wait<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Progress<'_>>,
    requests: bool,
    call: &Arc<CallState>,
    work: impl FnOnce(&Arc<CallState>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let check = || py.check_signals().and_then(|()| call.report(progress));
    if progress.is_some() {
        check()?;
    }
    let (done, outcome) = sync_channel(1);
    let outcome = Mutex::new(outcome);
    let wait_for = |limit| locked(&outcome).recv_timeout(limit);
    let thread = thread::Builder::new().name("tfseek-call".into()).spawn({
        let call = Arc::clone(call);
        move || drop(done.send(work(&call)))
    });
    let named = |e: io::Error| io::Error::new(e.kind(), format!("cannot start a thread: {e}"));
    let thread = thread.map_err(|e| tfseek::Error::from(named(e)))?;
    loop {
        match py.detach(|| wait_for(SIGNAL_INTERVAL)) {
            Ok(outcome) => {
                let outcome = outcome?;
                call.report(progress)?;
                return Ok(outcome);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(e) = check() {
                    call.cancelled.store(true, Relaxed);
                    let limit = if requests { REQUEST_LIMIT } else { CLEANUP_LIMIT };
                    drop(py.detach(|| wait_for(limit)));
                    return Err(e.into());
                }
            }
            Err(RecvTimeoutError::Disconnected) => match py.detach(|| thread.join()) {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(tfseek::ErrorKind::Cancelled.into()),
            },
        }
    }
}

/// Calls `work` without the GIL. If it may wait for requests, it gets a thread, so that signals end the call.
pub(crate) fn detached<T: Send + 'static>(
    py: Python<'_>,
    requests: bool,
    work: impl FnOnce() -> tfseek::Result<T> + Send + 'static,
) -> Result<T> {
    if !requests {
        return Ok(py.detach(work)?);
    }
    run(py, None, true, move |_| Ok(work()?))
}

/// A period of work in the calling thread, between two checks for signals.
pub(crate) struct TimeSlice {
    start: Instant,
    cost: u64,
}

impl TimeSlice {
    /// Cost of a record in addition to its bytes: an access to a disk takes milliseconds.
    pub(crate) const RECORD: u64 = 128 << 10;
    /// Cost of creating or reading a value in memory.
    pub(crate) const VALUE: u64 = 256;

    pub(crate) fn new() -> TimeSlice {
        TimeSlice { start: Instant::now(), cost: 0 }
    }

    /// Adds `cost` bytes, and returns true if the slice is over. Reads the clock once per MiB.
    #[inline]
    pub(crate) fn is_over(&mut self, cost: u64) -> bool {
        self.cost += cost;
        if self.cost < 1 << 20 {
            return false;
        }
        self.cost = 0;
        self.start.elapsed() >= SIGNAL_INTERVAL
    }

    /// Adds `cost` bytes. If the slice is over, checks for signals, begins another slice and returns true.
    /// For work that needs the GIL.
    #[inline]
    pub(crate) fn pause(&mut self, py: Python<'_>, cost: u64) -> PyResult<bool> {
        let over = self.is_over(cost);
        if over {
            *self = TimeSlice::new();
            py.check_signals()?;
        }
        Ok(over)
    }
}

/// Calls `work` without the GIL until `done` is `total`, and checks for signals between the calls. `work`
/// runs until its [`TimeSlice`] is over, and returns the number done so far.
pub(crate) fn in_slices(
    py: Python<'_>,
    progress: Option<&Progress<'_>>,
    mut done: u64,
    total: u64,
    mut work: impl FnMut(&mut TimeSlice) -> Result<u64> + Send,
) -> Result<()> {
    while done < total {
        Progress::report(progress, done, Some(total))?;
        done = py.detach(|| work(&mut TimeSlice::new()))?;
        if done < total {
            py.check_signals()?;
        }
    }
    Ok(Progress::report(progress, done, Some(total))?)
}
