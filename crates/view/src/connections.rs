//! The open connections of a server: their number, the one to close when there are too many, and the end of
//! all.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The open connections. At most `most` are open, because each has a thread. Browsers keep six. A slow client
/// occupies its own thread only, and gives it up when others need it.
pub(crate) struct Connections {
    most: usize,
    state: Mutex<State>,
    /// The state is stopped, or no longer accepting.
    changed: Condvar,
}

struct State {
    open: BTreeMap<u64, Open>,
    next: u64,
    stopped: bool,
    accepting: bool,
}

struct Open {
    stream: Arc<TcpStream>,
    phase: Phase,
    since: Instant,
}

/// The phase of a connection. Connections in the first phase are closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Between two requests.
    Idle,
    /// A head has begun, or the first one of the connection is expected.
    Head,
    /// A response is made and written.
    Answer,
    /// A response without an end keeps the connection open.
    Held,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Connections {
        let state = State { open: BTreeMap::new(), next: 0, stopped: false, accepting: false };
        Connections { most, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, and closes another one if there are too many. Returns `None` after a stop.
    pub(crate) fn add(self: &Arc<Self>, stream: TcpStream) -> Option<Connection> {
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        while state.open.len() >= self.most.max(1) && state.close_one(Phase::Held) {}
        let stream = Arc::new(stream);
        let id = state.next;
        state.next += 1;
        let open = Open { stream: Arc::clone(&stream), phase: Phase::Head, since: Instant::now() };
        state.open.insert(id, open);
        Some(Connection { connections: Arc::clone(self), id, stream })
    }

    /// Closes the connection that has been idle for longest, to free its descriptor.
    pub(crate) fn close_an_idle_one(&self) {
        self.state().close_one(Phase::Idle);
    }

    /// Closes all connections and refuses later ones.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        for open in state.open.values() {
            open.close();
        }
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Waits for a stop, for a limited time.
    pub(crate) fn wait_for_stop(&self, time: Duration) {
        let waited = self.changed.wait_timeout_while(self.state(), time, |state| !state.stopped);
        drop(waited);
    }

    /// Notes whether a thread waits for connections. Returns false if it must not begin.
    pub(crate) fn set_accepting(&self, accepting: bool) -> bool {
        let mut state = self.state();
        state.accepting = accepting && !state.stopped;
        self.changed.notify_all();
        state.accepting
    }

    /// Waits until no thread accepts connections, for a limited time. Returns whether this is so.
    pub(crate) fn wait_for_end(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), time, |state| state.accepting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.accepting
    }
}

impl State {
    /// Closes the connection that has been in its phase for longest, up to a phase. Earlier phases go first.
    fn close_one(&mut self, up_to: Phase) -> bool {
        let candidates = self.open.iter().filter(|(_, open)| open.phase <= up_to);
        let Some(id) = candidates.min_by_key(|(_, open)| (open.phase, open.since)).map(|(id, _)| *id) else {
            return false;
        };
        if let Some(open) = self.open.remove(&id) {
            open.close();
        }
        true
    }
}

impl Open {
    /// Ends reads and writes of the connection's thread.
    fn close(&self) {
        // A connection that the client has closed cannot be shut down, and needs no closing.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A connection and its entry among the open ones, which ends with it.
pub(crate) struct Connection {
    connections: Arc<Connections>,
    id: u64,
    stream: Arc<TcpStream>,
}

impl Connection {
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Begins a phase.
    pub(crate) fn begin(&self, phase: Phase) {
        let now = Instant::now();
        let mut state = self.connections.state();
        if let Some(open) = state.open.get_mut(&self.id) {
            open.phase = phase;
            open.since = now;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.state().open.remove(&self.id);
    }
}

/// Returns whether an error only says that the time is over.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
