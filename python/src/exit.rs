//! The end of the interpreter, while threads use streams of other libraries.
//!
//! The functions of such a stream may need the interpreter, and abort the process if it ends meanwhile. So it
//! ends after the calls that use one: [`finish_streams`] runs at exit, cancels them, and waits for them.
//! These are calls of daemon threads, and cancelled calls that have not cleaned up yet. Python waits for
//! other threads itself.

use pyo3::prelude::*;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Time that calls have at exit. A stream may wait for something that never comes.
const LIMIT: Duration = Duration::from_secs(5);

/// The thread that ends the interpreter. Its calls are not cancelled: other functions that run at exit may
/// write.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// Process (the upper 32 bits) and number of its calls. The threads of a forked process's calls do not exist
/// in it.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A call that uses a stream of another library, until it is dropped.
pub(crate) struct StreamCall {
    begun_at_exit: bool,
}

impl StreamCall {
    /// Begins a call. Does not return in a daemon thread at exit.
    pub(crate) fn begin(py: Python<'_>) -> StreamCall {
        update(|calls| calls + 1);
        let call = StreamCall { begun_at_exit: ENDING.get().is_some() };
        if must_stop() {
            drop(call);
            return stop(py);
        }
        call
    }

    /// Returns true if the call must end because the interpreter does.
    pub(crate) fn is_cancelled(&self) -> bool {
        !self.begun_at_exit && ENDING.get().is_some()
    }
}

impl Drop for StreamCall {
    fn drop(&mut self) {
        update(|calls| calls.saturating_sub(1));
    }
}

fn update(f: impl Fn(u32) -> u32) {
    let own = u64::from(process::id()) << 32;
    let updated = |calls| own | u64::from(f(calls_of(calls, own)));
    // The function always returns a value.
    let _ = CALLS.fetch_update(SeqCst, SeqCst, |calls| Some(updated(calls)));
}

/// Returns the number of calls of a process.
fn calls_of(calls: u64, process: u64) -> u32 {
    let count = calls & u64::from(u32::MAX);
    if calls ^ count == process { count as u32 } else { 0 }
}

fn must_stop() -> bool {
    ENDING.get().is_some_and(|ending| *ending != thread::current().id())
}

/// Stops a daemon thread after a call that was cancelled at exit. Python would print its exception.
pub(crate) fn stop_at_exit(py: Python<'_>) {
    if must_stop() {
        stop(py)
    }
}

fn stop<T: Send>(py: Python<'_>) -> T {
    py.detach(|| {
        loop {
            thread::park();
        }
    })
}

/// Cancels all calls that use streams of other libraries, and waits for them. Runs at exit.
#[pyfunction]
pub(crate) fn finish_streams(py: Python<'_>) {
    let _ = ENDING.set(thread::current().id());
    let own = u64::from(process::id()) << 32;
    let begun = Instant::now();
    while calls_of(CALLS.load(SeqCst), own) > 0 && begun.elapsed() < LIMIT {
        py.detach(|| thread::sleep(Duration::from_millis(2)));
    }
}
