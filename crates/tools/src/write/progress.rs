//! The progress of files that are written, and its cancellation.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The callbacks for the progress of [`reshard`](super::reshard::reshard()) and [`fetch`](super::fetch).
#[derive(Clone)]
pub struct WriteProgress {
    /// Called once with the number of bytes of all passes, or of all files that are not complete.
    pub expect: Arc<dyn Fn(u64) + Send + Sync>,
    /// Called with the number of bytes since the last call, which is 0 while a fetch waits. `Break` cancels
    /// the work with [`ErrorKind::Cancelled`](tfseek::ErrorKind::Cancelled).
    pub advance: Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>,
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
