//! The threads, time and servers of a simulated world, in place of real ones. Only tests have one (`tests/world/`).

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A request of a store.
pub(crate) type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The answer to an HTTP request.
pub(crate) type Answered = Pin<Box<dyn Future<Output = reqwest::Result<reqwest::Response>> + Send>>;

/// A process in a simulated world.
pub(crate) trait Simulated: Send + Sync {
    /// Lets others run. Returns after `time`, or before.
    fn pause(&self, time: Duration);

    /// Wakes the threads of the process.
    fn notify(&self);

    /// Returns the time that an operation of the disk takes.
    fn disk_time(&self) -> Duration;

    /// Returns the runtime, and what ends the requests of a store when it is dropped.
    fn runtime(&self) -> (Handle, oneshot::Sender<()>);

    /// Binds a request to the process.
    fn bind(&self, request: Request) -> Request;

    /// Returns a client, which reaches no server.
    fn client(&self) -> reqwest::Client;

    fn answer(&self, client: reqwest::Client, request: reqwest::Request) -> Answered;
}

thread_local! {
    static HERE: RefCell<Option<Arc<dyn Simulated>>> = const { RefCell::new(None) };
}

/// Returns the process that the thread is in. `None` in the world outside.
pub(crate) fn here() -> Option<Arc<dyn Simulated>> {
    HERE.with_borrow(Clone::clone)
}

/// Puts the thread into a process, and returns where it was.
pub(crate) fn enter(process: Option<Arc<dyn Simulated>>) -> Option<Arc<dyn Simulated>> {
    HERE.replace(process)
}
