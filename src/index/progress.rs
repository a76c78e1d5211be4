//! Progress reports of a call, and its cancellation by the caller.

use crate::error::{ErrorKind, Result};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A callback that receives the number of scanned bytes and may cancel the call.
#[derive(Clone)]
pub(crate) struct ProgressCallback(Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>);

impl ProgressCallback {
    pub(crate) fn new(f: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> ProgressCallback {
        ProgressCallback(Arc::new(f))
    }
}

impl From<Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>> for ProgressCallback {
    fn from(f: Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>) -> ProgressCallback {
        ProgressCallback(f)
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// Approximate number of bytes scanned between two calls of a [`ProgressCallback`].
pub(crate) const REPORT: usize = 1 << 20;

/// The progress of one call, shared by its threads. Once the callback has cancelled the call, every report
/// returns an error.
pub(crate) struct Work {
    progress: Option<ProgressCallback>,
    cancelled: AtomicBool,
}

impl Work {
    pub(crate) fn new(progress: Option<&ProgressCallback>) -> Work {
        Work { progress: progress.cloned(), cancelled: AtomicBool::new(false) }
    }

    /// Reports the number of bytes scanned since the last report.
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

    /// Returns the outcome of the call. If the callback cancelled it, the error is always
    /// [`ErrorKind::Cancelled`] without a location, whichever thread stopped first.
    pub(crate) fn end<T>(&self, outcome: Result<T>) -> Result<T> {
        if self.cancelled.load(Relaxed) { Err(ErrorKind::Cancelled.into()) } else { outcome }
    }
}
