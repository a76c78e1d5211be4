//! The progress of files that are written, and its cancellation.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use tfseek::frame::OVERHEAD;
use tfseek::{ErrorKind, Result};

/// The callbacks for the progress of [`reshard`](super::reshard::reshard()) and [`fetch`](super::fetch).
#[derive(Clone)]
pub struct WriteProgress {
    /// Called once with the number of bytes of all passes, or of all files that are not complete.
    pub expect: Arc<dyn Fn(u64) + Send + Sync>,
    /// Called with the number of bytes since the last call, which is 0 while a fetch waits. `Break` cancels
    /// the work with [`ErrorKind::Cancelled`](tfseek::ErrorKind::Cancelled).
    pub advance: Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>,
}

impl WriteProgress {
    /// Begins to count the records of one thread.
    pub(crate) fn tally(&self) -> Tally<'_> {
        Tally::new(&*self.advance)
    }
}

/// Callbacks that do nothing.
impl Default for WriteProgress {
    fn default() -> WriteProgress {
        WriteProgress { expect: Arc::new(|_| ()), advance: Arc::new(|_| ControlFlow::Continue(())) }
    }
}

impl fmt::Debug for WriteProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteProgress").finish_non_exhaustive()
    }
}

/// The records that one thread has written since it last reported its progress.
pub(crate) struct Tally<'a> {
    advance: &'a dyn Fn(u64) -> ControlFlow<()>,
    bytes: u64,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(advance: &'a dyn Fn(u64) -> ControlFlow<()>) -> Tally<'a> {
        Tally { advance, bytes: 0 }
    }

    /// Counts a record, and reports about each MiB.
    pub(crate) fn record(&mut self, payload: usize) -> Result<()> {
        self.bytes += (payload + OVERHEAD) as u64;
        if self.bytes < 1 << 20 { Ok(()) } else { self.end() }
    }

    /// Reports the rest.
    pub(crate) fn end(&mut self) -> Result<()> {
        match (self.advance)(std::mem::take(&mut self.bytes)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ErrorKind::Cancelled.into()),
        }
    }
}
