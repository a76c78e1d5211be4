//! The thread that makes all requests of a store.
//!
//! A runtime in the library would have threads that a fork loses. In a Rust program a child that is forked
//! while a thread starts may hang: `std` then holds a lock, for its report of stack overflows. Python has no
//! such report.

#[cfg(test)]
use crate::simulated;
use std::future::Future;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// A value that some threads change, and others wait for.
#[derive(Debug, Default)]
pub(crate) struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    pub(crate) fn new(value: T) -> Monitor<T> {
        Monitor { value: Mutex::new(value), changed: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads that wait.
    pub(crate) fn notify(&self) {
        #[cfg(test)]
        if let Some(here) = simulated::here() {
            here.notify();
        }
        self.changed.notify_all();
    }

    /// Waits for a change, at most for `time`. It may return without one.
    pub(crate) fn wait<'m>(&'m self, value: MutexGuard<'m, T>, time: Duration) -> MutexGuard<'m, T> {
        #[cfg(test)]
        if let Some(here) = simulated::here() {
            drop(value);
            here.pause(time);
            return self.lock();
        }
        match self.changed.wait_timeout(value, time) {
            Ok((value, _)) => value,
            Err(e) => e.into_inner().0,
        }
    }
}

/// The result of a request, which a thread waits for.
type Slot<T> = Monitor<Option<Option<T>>>;

impl<T> Slot<T> {
    fn set(&self, value: Option<T>) {
        let mut result = self.lock();
        if result.is_none() {
            *result = Some(value);
            self.notify();
        }
    }
}

/// Runs work that waits for the disk, beside the requests. `None` if it panics.
pub(crate) async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    #[cfg(test)]
    if let Some(here) = simulated::here() {
        tokio::time::sleep(here.disk_time()).await;
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
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
        #[cfg(test)]
        if let Some((handle, _stop)) = simulated::here().map(|here| here.runtime()) {
            return Ok(IoThread { handle, _stop });
        }
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
        #[cfg(test)]
        if let Some(here) = simulated::here() {
            return self.handle.spawn(here.bind(Box::pin(request))).abort_handle();
        }
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
        let slot = Arc::new(Slot::new(None));
        let promise = Promise(slot.clone());
        let task = self.spawn(async move {
            let result = request.await;
            promise.0.set(Some(result));
        });
        let mut result = slot.lock();
        loop {
            if let Some(result) = result.take() {
                return result.ok_or(NoResult::Ended);
            }
            if is_interrupted() {
                task.abort();
                return Err(NoResult::Cancelled);
            }
            result = slot.wait(result, ATTENTION);
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
        let slot = Arc::new(Slot::new(None));
        let promise = Promise(slot.clone());
        handle.spawn(async move {
            tokio::time::sleep(Duration::from_secs(600)).await;
            promise.0.set(Some(()));
        });
        let mut result = slot.lock();
        while result.is_none() {
            result = slot.wait(result, ATTENTION);
        }
        assert_eq!(*result, Some(None));
    }
}
