//! The process that owns a file or a lock, and values that each process has for itself.

use crate::error::{EncodeError, Error};
use std::io;
use std::sync::OnceLock;

/// A process id. A file that is being written belongs to the process that opened it. A forked child has a
/// copy of the buffers and the same descriptors, so it would write the same bytes a second time.
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

/// A value that each process has for itself: a forked child begins with a new one. In a copy of its parent's
/// value a lock may be held for ever, by a thread that the child does not have.
#[derive(Debug, Default)]
pub struct PerProcess<T> {
    process: Process,
    value: T,
    /// The value of a forked child. The parent never accesses it.
    child: OnceLock<Box<PerProcess<T>>>,
}

impl<T: Default> PerProcess<T> {
    /// Returns the value of the calling process. Makes a system call.
    pub fn own(&self) -> &T {
        let this = Process::this();
        let mut own = self;
        while own.process != this {
            own = own.child.get_or_init(Box::default);
        }
        &own.value
    }

    /// Returns the value as a forked child finds it, in which another thread of the parent may use it.
    #[cfg(test)]
    pub(crate) fn forked(self) -> PerProcess<T> {
        PerProcess { process: Process::other(), ..self }
    }

    /// Returns the value of the process that made it.
    #[cfg(test)]
    pub(crate) fn first(&self) -> &T {
        &self.value
    }
}
