//! The thread that makes all requests of a store.
//!
//! A runtime in the library would have threads that a fork loses. In a Rust program a child that is forked
//! while a thread starts may hang: `std` then holds a lock, for its report of stack overflows. Python has no
//! such report.

use std::future::Future;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tfseek::io::is_interrupted;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Largest number of threads that read and write the cache on disk.
const DISK_THREADS: usize = 8;

/// A thread `tfseek-io` with the runtime of the requests. It ends when this value is dropped, and its
/// requests with it.
#[derive(Debug)]
pub(crate) struct IoThread {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

/// The time that a thread waits before it asks whether its work was given up.
pub(crate) const ATTENTION: Duration = Duration::from_millis(20);

/// Why there is no result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoResult {
    /// The thread that makes requests has ended.
    Ended,
    /// The thread that waits gave its work up.
    Cancelled,
}

/// The result of a request, which a thread waits for.
struct Slot<T> {
    result: Mutex<Option<Option<T>>>,
    changed: Condvar,
}

impl<T> Slot<T> {
    fn set(&self, value: Option<T>) {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        if result.is_none() {
            *result = Some(value);
            self.changed.notify_all();
        }
    }
}

/// Wakes the waiting thread also if the request is dropped.
struct Promise<T>(Arc<Slot<T>>);

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl IoThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// There are too many threads or descriptors.
    pub(crate) fn start() -> io::Result<IoThread> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(DISK_THREADS)
            .thread_name("tfseek-disk")
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("tfseek-io".into()).spawn(move || {
            // An error means that the sender was dropped.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(IoThread { handle, _stop: stop })
    }

    /// Runs a request on the thread, and does not wait for it. The handle ends it.
    pub(crate) fn spawn(&self, request: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.handle.spawn(request).abort_handle()
    }

    /// Runs a request on the thread, and waits for its result.
    ///
    /// # Errors
    /// The request is then ended.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoResult> {
        let slot = Arc::new(Slot { result: Mutex::new(None), changed: Condvar::new() });
        let promise = Promise(slot.clone());
        let task = self.spawn(async move {
            let result = request.await;
            promise.0.set(Some(result));
        });
        let mut result = slot.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = result.take() {
                return result.ok_or(NoResult::Ended);
            }
            if is_interrupted() {
                task.abort();
                return Err(NoResult::Cancelled);
            }
            result = match slot.changed.wait_timeout(result, ATTENTION) {
                Ok((result, _)) => result,
                Err(e) => e.into_inner().0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_arrive_and_ended_threads_are_noticed() {
        let io = IoThread::start().unwrap();
        assert_eq!(io.wait(async { 7 }), Ok(7));
        let slow = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            thread::current().name().map(str::to_owned)
        };
        assert_eq!(io.wait(slow), Ok(Some("tfseek-io".into())));
        assert_eq!(io.wait(async { panic!("a request that fails") }), Err::<(), _>(NoResult::Ended));
        let handle = io.handle.clone();
        drop(io);
        // The runtime ends soon, and drops its requests.
        let slot = Arc::new(Slot { result: Mutex::new(None), changed: Condvar::new() });
        let promise = Promise(slot.clone());
        handle.spawn(async move {
            tokio::time::sleep(Duration::from_secs(600)).await;
            promise.0.set(Some(()));
        });
        let mut result = slot.result.lock().unwrap();
        while result.is_none() {
            result = slot.changed.wait(result).unwrap();
        }
        assert_eq!(*result, Some(None));
    }
}
