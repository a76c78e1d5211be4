//! The process that owns a file or a lock.

use crate::error::{EncodeError, Error};
use std::io;

/// A process id. A file that is being written belongs to the process that opened it. A forked child has a copy of the buffers and
/// the same descriptors, so it would write the same bytes a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

/// The calling process.
impl Default for Process {
    fn default() -> Process {
        Process::this()
    }
}

impl Process {
    /// Returns the calling process.
    pub(crate) fn this() -> Process {
        Process(std::process::id())
    }

    /// Returns true if this is the calling process. Makes a system call.
    pub(crate) fn is_this(self) -> bool {
        self == Process::this()
    }

    /// Checks that this is the calling process.
    ///
    /// # Errors
    /// [`EncodeError::Forked`].
    pub(crate) fn check(self) -> io::Result<()> {
        if self.is_this() { Ok(()) } else { Err(Error::from(EncodeError::Forked).into()) }
    }

    /// Returns a process id other than the calling process's.
    #[cfg(test)]
    pub(crate) fn other() -> Process {
        Process(std::process::id().wrapping_add(1))
    }
}
