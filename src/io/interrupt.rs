//! Work that is given up while its threads wait for requests.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A flag that ends the waits of threads: their loader was dropped. Its clones are one flag.
///
/// It belongs to a thread and not to a call, because waits are deep: a record may need the listing, the index
/// and the bytes of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

thread_local! {
    static OF_THREAD: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// Gives the thread its flag back.
struct Restore(Option<Interrupt>);

impl Drop for Restore {
    fn drop(&mut self) {
        OF_THREAD.set(self.0.take());
    }
}

impl Interrupt {
    pub(crate) fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Calls `f`, whose waits end once this flag is set.
    pub(crate) fn during<T>(&self, f: impl FnOnce() -> T) -> T {
        let _restore = Restore(OF_THREAD.replace(Some(self.clone())));
        f()
    }

    /// Returns the flag of the calling thread, for threads that share its work.
    pub(crate) fn of_thread() -> Interrupt {
        OF_THREAD.with_borrow(|interrupt| interrupt.clone().unwrap_or_else(Interrupt::default))
    }
}

/// Returns true if the calling thread's work was given up: its loader was dropped.
///
/// A [`Store`](super::Store) or [`Source`](super::Source) that waits asks every 20 ms, and then ends the wait
/// with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
pub fn is_interrupted() -> bool {
    OF_THREAD.with_borrow(|interrupt| interrupt.as_ref().is_some_and(|interrupt| interrupt.0.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_that_of_the_call_and_of_the_threads_that_share_it() {
        let [outer, inner] = [(); 2].map(|()| Interrupt::default());
        outer.set();
        assert!(!is_interrupted());
        outer.during(|| {
            assert!(is_interrupted());
            inner.during(|| assert!(!is_interrupted()));
            let shared = crate::io::threads::each(Some(3), 9, true, |_| Ok(is_interrupted())).unwrap();
            assert_eq!(shared, [true; 9]);
            let panicked = std::panic::catch_unwind(|| Interrupt::default().during(|| panic!("in a call")));
            assert!(panicked.is_err() && is_interrupted());
        });
        assert!(!is_interrupted());
    }
}
