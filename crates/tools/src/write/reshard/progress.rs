//! The progress of resharding, and its cancellation.

use std::ops::ControlFlow;
use std::sync::Arc;
use tfseek::frame::OVERHEAD;
use tfseek::{ErrorKind, Result};

/// The progress of all threads.
pub(super) struct Report {
    pub(super) advance: Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>,
}

/// The progress of one thread.
pub(super) struct Tally<'a> {
    report: &'a Report,
    bytes: u64,
}

impl Report {
    pub(super) fn tally(&self) -> Tally<'_> {
        Tally { report: self, bytes: 0 }
    }

    fn advance(&self, bytes: u64) -> Result<()> {
        match (self.advance)(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ErrorKind::Cancelled.into()),
        }
    }
}

impl Tally<'_> {
    /// Counts a record, and reports about each MiB.
    pub(super) fn record(&mut self, payload: usize) -> Result<()> {
        self.bytes += (payload + OVERHEAD) as u64;
        if self.bytes < 1 << 20 {
            return Ok(());
        }
        self.end()
    }

    /// Reports the rest.
    pub(super) fn end(&mut self) -> Result<()> {
        self.report.advance(std::mem::take(&mut self.bytes))
    }
}
