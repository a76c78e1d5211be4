//! The progress of a call, and its end by the caller.

use crate::error::{ErrorKind, Result};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A callback that is told of bytes that were scanned, and may end the work.
#[derive(Clone)]
pub(crate) struct ProgressCallback(Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>);

impl ProgressCallback {
    pub(crate) fn new(f: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> ProgressCallback {
        ProgressCallback(Arc::new(f))
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// Bytes between two calls of a [`ProgressCallback`].
pub(crate) const REPORT: usize = 1 << 20;

/// One call under a [`ProgressCallback`], on all its threads: once the callback has ended it, every report is an error.
pub(crate) struct Work {
    progress: Option<ProgressCallback>,
    cancelled: AtomicBool,
}

impl Work {
    pub(crate) fn new(progress: Option<&ProgressCallback>) -> Work {
        Work { progress: progress.cloned(), cancelled: AtomicBool::new(false) }
    }

    /// Reports bytes that were scanned.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`].
    pub(crate) fn report(&self, bytes: u64) -> Result<()> {
        let Some(ProgressCallback(progress)) = &self.progress else { return Ok(()) };
        if self.cancelled.load(Relaxed) {
            return Err(ErrorKind::Cancelled.into());
        }
        match progress(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                self.cancelled.store(true, Relaxed);
                Err(ErrorKind::Cancelled.into())
            }
        }
    }

    /// The outcome of the call. Where the caller ended it, the error says only that, whichever thread noticed first and at
    /// whatever record.
    pub(crate) fn end<T>(&self, outcome: Result<T>) -> Result<T> {
        match self.cancelled.load(Relaxed) {
            true => Err(ErrorKind::Cancelled.into()),
            false => outcome,
        }
    }
}
