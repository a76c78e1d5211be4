//! Long calls: the interpreter is let go, signals are looked for every 50 ms, and progress is told.
//!
//! Work that knows no pauses ([`run`]) has a thread of its own, and the calling thread waits for it; work on records one by one
//! ([`in_turns`]) pauses by itself, since a thread costs more than a few records. Both look for signals and call the progress
//! callable in the calling thread: the thread that works touches no Python object. After a fork nothing is left of the parent's
//! thread, and a child's call makes its own.

use crate::failure::Result;
use crate::hooks;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long signals may wait.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);
/// How long work that was ended may take to clean up behind itself before its call returns. It goes on to do so.
const GRACE: Duration = Duration::from_millis(100);

/// The callable that the argument `progress` asks for: of the package `tfseek._progress`, called with the amount done and the total.
pub(crate) struct Progress<'py> {
    tell: Bound<'py, PyAny>,
    close: Bound<'py, PyAny>,
}

/// Unit of a count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Records,
}

impl<'py> Progress<'py> {
    /// `what` is done, in one word for people.
    pub(crate) fn new(
        py: Python<'py>,
        asked: Option<&Bound<'py, PyAny>>,
        what: &str,
        unit: Unit,
    ) -> Result<Option<Progress<'py>>> {
        let Some(asked) = asked.filter(|asked| !asked.is(&*pyo3::types::PyBool::new(py, false))) else {
            return Ok(None);
        };
        let (tell, close) = hooks::progress_of(py)?.call1((asked, what, unit == Unit::Bytes))?.extract()?;
        Ok(Some(Progress { tell, close }))
    }

    pub(crate) fn tell(&self, done: u64, total: Option<u64>) -> PyResult<()> {
        self.tell.call1((done, total)).map(drop)
    }
}

/// Calls `work`, and ends the display whatever comes of it.
pub(crate) fn shown<'py, T>(
    progress: Option<Progress<'py>>,
    work: impl FnOnce(Option<&Progress<'py>>) -> Result<T>,
) -> Result<T> {
    let outcome = work(progress.as_ref());
    let closed = progress.map_or(Ok(()), |progress| progress.close.call0().map(drop));
    // The first failure counts.
    let outcome = outcome?;
    closed?;
    Ok(outcome)
}

/// State shared by a thread that works and the thread that waits for it.
pub(crate) struct Meter {
    done: AtomicU64,
    /// `u64::MAX` where it is not known.
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Meter {
    /// The callback for the library.
    pub(crate) fn callback(self: &Arc<Self>) -> impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static {
        let meter = Arc::clone(self);
        move |bytes| {
            meter.done.fetch_add(bytes, Relaxed);
            match meter.cancelled.load(Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }

    /// So much is left to do, if that is known.
    pub(crate) fn expect(&self, left: Option<u64>) {
        let total = left.map_or(u64::MAX, |left| self.done.load(Relaxed).saturating_add(left));
        self.total.store(total, Relaxed);
    }

    fn tell(&self, progress: Option<&Progress<'_>>) -> PyResult<()> {
        let total = Some(self.total.load(Relaxed)).filter(|total| *total != u64::MAX);
        progress.map_or(Ok(()), |progress| progress.tell(self.done.load(Relaxed), total))
    }
}

/// Calls `work` in a thread of its own. A signal handler or a progress callable that raises ends it.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Progress<'_>>,
    work: impl FnOnce(&Arc<Meter>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let meter = Arc::new(Meter {
        done: AtomicU64::new(0),
        total: AtomicU64::new(u64::MAX),
        cancelled: AtomicBool::new(false),
    });
    shown(progress, |progress| wait(py, progress, &meter, work))
}

fn wait<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Progress<'_>>,
    meter: &Arc<Meter>,
    work: impl FnOnce(&Arc<Meter>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let look = || py.check_signals().and_then(|()| meter.tell(progress));
    if progress.is_some() {
        look()?;
    }
    let (done, outcome) = sync_channel(1);
    let outcome = Mutex::new(outcome);
    let within = |patience| outcome.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(patience);
    let thread = thread::Builder::new().name("tfseek-call".into()).spawn({
        let meter = Arc::clone(meter);
        move || drop(done.send(work(&meter)))
    });
    let thread = thread.map_err(tfseek::Error::from)?;
    loop {
        match py.detach(|| within(PATIENCE)) {
            Ok(outcome) => {
                let outcome = outcome?;
                meter.tell(progress)?;
                return Ok(outcome);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(e) = look() {
                    meter.cancelled.store(true, Relaxed);
                    drop(py.detach(|| within(GRACE)));
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

/// When work in the calling thread pauses.
pub(crate) struct Turn {
    start: Instant,
    cost: u64,
}

impl Turn {
    /// Cost of a record beside its bytes: on a disk it takes milliseconds.
    pub(crate) const RECORD: u64 = 128 << 10;
    /// Cost of making or reading a value that is in memory.
    pub(crate) const VALUE: u64 = 256;

    pub(crate) fn new() -> Turn {
        Turn { start: Instant::now(), cost: 0 }
    }

    /// Returns true when it is over, after work that cost `cost` bytes. Reads the clock after each MiB.
    #[inline]
    pub(crate) fn is_over(&mut self, cost: u64) -> bool {
        self.cost = self.cost.saturating_add(cost);
        if self.cost < 1 << 20 {
            return false;
        }
        self.cost = 0;
        self.start.elapsed() >= PATIENCE
    }

    /// Looks for signals where it is over, which it says, and begins another: for work that needs the interpreter.
    #[inline]
    pub(crate) fn pause(&mut self, py: Python<'_>, cost: u64) -> PyResult<bool> {
        let over = self.is_over(cost);
        if over {
            *self = Turn::new();
            py.check_signals()?;
        }
        Ok(over)
    }
}

/// Calls `work` without the interpreter's lock until `done` is `total`, and looks for signals in between. It works until its
/// [`Turn`] is over, and says how many are done by then.
pub(crate) fn in_turns(
    py: Python<'_>,
    progress: Option<&Progress<'_>>,
    mut done: u64,
    total: u64,
    mut work: impl FnMut(&mut Turn) -> Result<u64> + Send,
) -> Result<()> {
    while done < total {
        progress.map_or(Ok(()), |progress| progress.tell(done, Some(total)))?;
        done = py.detach(|| work(&mut Turn::new()))?;
        if done < total {
            py.check_signals()?;
        }
    }
    progress.map_or(Ok(()), |progress| progress.tell(done, Some(total)))?;
    Ok(())
}
