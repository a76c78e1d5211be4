//! The process that owns a file or a lock, and values that each process has for itself.

use crate::error::{EncodeError, Error};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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
/// value a lock may be held for ever, by a thread that the child does not have. So the child does not drop it
/// either.
#[derive(Debug, Default)]
pub struct PerProcess<T> {
    /// The process that used it first. 0: it was not used.
    process: AtomicU32,
    value: OnceLock<T>,
    /// The value of a forked child. The parent never accesses it.
    child: OnceLock<Box<PerProcess<T>>>,
}

impl<T> PerProcess<T> {
    /// Creates a value that is made at its first use.
    pub const fn new() -> PerProcess<T> {
        PerProcess { process: AtomicU32::new(0), value: OnceLock::new(), child: OnceLock::new() }
    }
}

impl<T: Default> PerProcess<T> {
    /// Returns the value of the calling process. Makes a system call.
    pub fn own(&self) -> &T {
        let this = std::process::id();
        let mut own = self;
        loop {
            let mut owner = own.process.load(Relaxed);
            if owner == 0 {
                let first = own.process.compare_exchange(0, this, Relaxed, Relaxed);
                owner = first.map_or_else(|owner| owner, |_| this);
            }
            if owner == this {
                return own.value.get_or_init(T::default);
            }
            own = own.child.get_or_init(Box::default);
        }
    }

    /// Returns the value as a forked child finds it, in which another thread of the parent may use it.
    #[cfg(test)]
    pub(crate) fn forked(self) -> PerProcess<T> {
        self.process.store(Process::other().0, Relaxed);
        self
    }

    /// Ends what [`forked`](PerProcess::forked) began, so that the value is dropped and no memory is leaked.
    #[cfg(test)]
    pub(crate) fn joined(&self) {
        self.process.store(Process::this().0, Relaxed);
    }

    /// Returns the value of the process that made it.
    #[cfg(test)]
    pub(crate) fn first(&self) -> &T {
        self.value.get_or_init(T::default)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if *self.process.get_mut() != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_forked_child_finds_no_lock_that_its_parent_holds() {
        let value = PerProcess::<Mutex<u32>>::default().forked();
        let held = value.first().lock().unwrap();
        *value.own().try_lock().unwrap() = 7;
        assert_eq!((*held, *value.own().try_lock().unwrap()), (0, 7));
    }
}
