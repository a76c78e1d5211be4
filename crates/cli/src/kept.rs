//! Warnings that are kept until they are printed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tfseek::Warning;

/// The warnings of the streams of this run, which are printed at its end.
pub(crate) static OF_STREAMS: WarningList = WarningList::new();

/// A list of different warnings, shared by threads.
pub(crate) struct WarningList(Mutex<Vec<Warning>>);

impl WarningList {
    pub(crate) const fn new() -> WarningList {
        WarningList(Mutex::new(Vec::new()))
    }

    /// Adds a warning. Returns false if the list has it already.
    pub(crate) fn add(&self, warning: &Warning) -> bool {
        let mut list = self.lock();
        let is_new = !list.contains(warning);
        if is_new {
            list.push(warning.clone());
        }
        is_new
    }

    /// Returns the warnings.
    pub(crate) fn all(&self) -> Vec<Warning> {
        self.lock().clone()
    }

    /// Returns the warnings and empties the list.
    pub(crate) fn take(&self) -> Vec<Warning> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Warning>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a warning of a stream until the end of the run.
pub(crate) fn of_stream(warning: &Warning) {
    OF_STREAMS.add(warning);
}
