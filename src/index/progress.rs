//! How far a call is, and its end by the caller.

use crate::error::{ErrorKind, Result};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Called with the number of bytes scanned since the last call, from any thread: after each MiB at most, and with 0 before each
/// shard.
///
/// [`ControlFlow::Break`] ends the work on all threads with [`ErrorKind::Cancelled`]. Files that were complete by then stay, no
/// file is left in part, and the callback is not called again but for threads that are in it already.
pub type Progress<'a> = &'a (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// A [`Progress`] that counts nothing and ends nothing.
pub fn no_progress(_bytes: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Bytes between two calls of a [`Progress`].
pub(crate) const REPORT: usize = 1 << 20;

/// One call under a [`Progress`], on all its threads: once the callback has ended it, every report is an error.
pub(crate) struct Work<'a> {
    progress: Progress<'a>,
    cancelled: AtomicBool,
}

impl<'a> Work<'a> {
    pub(crate) fn new(progress: Progress<'a>) -> Work<'a> {
        Work { progress, cancelled: AtomicBool::new(false) }
    }

    /// Reports bytes that were scanned.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`].
    pub(crate) fn report(&self, bytes: u64) -> Result<()> {
        if self.cancelled.load(Relaxed) {
            return Err(ErrorKind::Cancelled.into());
        }
        match (self.progress)(bytes) {
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
