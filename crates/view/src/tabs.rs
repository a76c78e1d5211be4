//! The open tabs of the page, so that the command can end when the last one is closed.
//!
//! A tab says when it opens and when it closes, and one tab of each browser holds a connection open. A
//! browser that is killed says nothing, but its connection closes. One that sleeps, or has the page in the
//! background, closes no connection. With messages at intervals the command would end while a laptop sleeps,
//! or while a tab in the background is frozen.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of tabs that are known. More are not counted, and the viewer continues then.
const MAX_TABS: usize = 1000;

/// The tabs that said that they are open, and the connections that they hold.
#[derive(Debug, Default)]
pub(crate) struct Tabs {
    state: Mutex<TabsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TabsState {
    open: BTreeSet<String>,
    /// The last tab was closed, and none was opened since.
    is_over: bool,
    is_full: bool,
    is_stopped: bool,
    /// Number of connections that are held. `None` before the first.
    held: Option<usize>,
    /// Number of changes.
    changes: u64,
}

impl TabsState {
    /// Returns the time after which the viewer ends if nothing changes: from the end of the last tab, or from
    /// the loss of the last connection that was held, while tabs are open.
    fn end(&self, [closed, lost]: [Duration; 2]) -> Option<Duration> {
        if self.is_over {
            return Some(closed);
        }
        (self.held == Some(0)).then_some(lost)
    }

    fn open(&mut self, tab: &str) {
        if self.open.len() < MAX_TABS {
            self.open.insert(tab.to_owned());
        } else {
            self.is_full = true;
        }
        self.is_over = false;
    }
}

/// A connection that a tab holds, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldTab(Arc<Tabs>);

impl Drop for HeldTab {
    fn drop(&mut self) {
        self.0.change(|state| state.held = state.held.map(|held| held - 1));
    }
}

impl Tabs {
    fn state(&self) -> MutexGuard<'_, TabsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut TabsState)) {
        let mut state = self.state();
        change(&mut state);
        state.changes = state.changes.wrapping_add(1);
        self.changed.notify_all();
    }

    pub(crate) fn open(&self, tab: &str) {
        self.change(|state| state.open(tab));
    }

    /// Notes that an open tab holds a connection.
    pub(crate) fn hold(self: &Arc<Self>, tab: &str) -> HeldTab {
        self.change(|state| {
            state.open(tab);
            state.held = Some(state.held.unwrap_or(0) + 1);
        });
        HeldTab(Arc::clone(self))
    }

    pub(crate) fn close(&self, tab: &str) {
        self.change(|state| {
            // Only a tab that was open ends something.
            let was_open = state.open.remove(tab);
            state.is_over = was_open && state.open.is_empty() && !state.is_full;
        });
    }

    /// Ends a wait.
    pub(crate) fn stop(&self) {
        self.change(|state| state.is_stopped = true);
    }

    /// Waits until all tabs were closed or lost for a time. Returns false if [`stop`](Tabs::stop) ended the
    /// wait.
    pub(crate) fn wait_for_end(&self, times: [Duration; 2]) -> bool {
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return false;
            }
            let changes = state.changes;
            let same = |state: &mut TabsState| state.changes == changes;
            state = match state.end(times) {
                None => self.changed.wait_while(state, same).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let waited = self.changed.wait_timeout_while(state, time, same);
                    let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() {
                        return true;
                    }
                    after
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{self, JoinHandle};

    const CLOSED: Duration = Duration::from_secs(5);
    const LOST: Duration = Duration::from_secs(60);
    const NEVER: Duration = Duration::from_secs(100_000);

    /// Returns the time after which the viewer ends if nothing changes.
    fn end(tabs: &Tabs) -> Option<Duration> {
        tabs.state().end([CLOSED, LOST])
    }

    fn waiting(closed: Duration, lost: Duration) -> (Arc<Tabs>, JoinHandle<bool>) {
        let tabs = Arc::new(Tabs::default());
        let waiting = Arc::clone(&tabs);
        (tabs, thread::spawn(move || waiting.wait_for_end([closed, lost])))
    }

    #[test]
    fn the_end_comes_after_the_last_tab() {
        let tabs = Tabs::default();
        // A tab that was never open, and one of two.
        tabs.close("x");
        tabs.open("a");
        tabs.open("b");
        tabs.close("a");
        assert_eq!(end(&tabs), None);
        // A reload.
        tabs.close("b");
        assert_eq!(end(&tabs), Some(CLOSED));
        tabs.open("c");
        assert_eq!(end(&tabs), None);
        tabs.close("c");
        assert_eq!(end(&tabs), Some(CLOSED));
    }

    #[test]
    fn a_goodbye_ends_sooner_than_a_loss() {
        // The goodbye comes before the end of the connection, or after it.
        for goodbye_first in [true, false] {
            let (tabs, ended) = waiting(Duration::from_millis(50), NEVER);
            let mut held = Some(tabs.hold("a"));
            if !goodbye_first {
                held = None;
            }
            tabs.close("a");
            drop(held);
            assert!(ended.join().unwrap(), "{goodbye_first}");
        }
    }

    #[test]
    fn a_lost_tab_may_come_back() {
        let tabs = Arc::new(Tabs::default());
        for _ in 0..2 {
            let held = tabs.hold("a");
            assert_eq!(end(&tabs), None, "a connection that is held ends nothing, however long");
            drop(held);
            assert_eq!(end(&tabs), Some(LOST));
        }
        let (tabs, ended) = waiting(NEVER, Duration::from_millis(50));
        drop(tabs.hold("a"));
        assert!(ended.join().unwrap());
    }

    #[test]
    fn the_connection_of_one_tab_stands_for_those_of_its_browser() {
        let tabs = Arc::new(Tabs::default());
        let first = tabs.hold("a");
        tabs.open("b");
        // The tab that holds the connection is closed, and the other takes over.
        tabs.close("a");
        drop(first);
        assert_eq!(end(&tabs), Some(LOST));
        let second = tabs.hold("b");
        assert_eq!(end(&tabs), None);
        // The browser is killed.
        drop(second);
        assert_eq!(end(&tabs), Some(LOST));
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let (tabs, ended) = waiting(NEVER, NEVER);
        tabs.stop();
        assert!(!ended.join().unwrap());
    }
}
