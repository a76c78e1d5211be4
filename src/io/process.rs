//! The process that a file belongs to.

use crate::error::{EncodeError, Error};
use std::io;

/// A process, by its id. What is written belongs to the one that opened it: a child that was forked has a copy of the buffers and
/// the same descriptors, and would write everything a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// Returns the calling process.
    pub(crate) fn this() -> Process {
        Process(std::process::id())
    }

    /// Returns true if the calling process is the same. A system call.
    pub(crate) fn is_this(self) -> bool {
        self == Process::this()
    }

    /// Returns an error in any other process.
    pub(crate) fn check(self) -> io::Result<()> {
        match self.is_this() {
            true => Ok(()),
            false => Err(Error::from(EncodeError::Forked).into()),
        }
    }

    /// Returns a process that is not the calling one.
    #[cfg(test)]
    pub(crate) fn other() -> Process {
        Process(std::process::id().wrapping_add(1))
    }
}
