//! The open tabs of the page, so that the command can end when the last one is closed.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time from the end of the last tab to that of the viewer. A reload closes a tab and opens another one.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// Number of tabs that are known. More are not counted, and the viewer continues then.
const MAX_TABS: usize = 1000;

/// The tabs that said that they are open. One whose browser crashed, or whose connection broke, stays open.
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
}

impl Tabs {
    fn state(&self) -> MutexGuard<'_, TabsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, tab: &str) {
        let mut state = self.state();
        if state.open.len() < MAX_TABS {
            state.open.insert(tab.to_owned());
        } else {
            state.is_full = true;
        }
        state.is_over = false;
        self.changed.notify_all();
    }

    pub(crate) fn close(&self, tab: &str) {
        let mut state = self.state();
        // Only a tab that was open ends something.
        let was_open = state.open.remove(tab);
        state.is_over = was_open && state.open.is_empty() && !state.is_full;
        self.changed.notify_all();
    }

    /// Ends a wait.
    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until all tabs were closed for a time. Returns false if [`stop`](Tabs::stop) ended the wait.
    pub(crate) fn wait_for_end(&self, grace: Duration) -> bool {
        let mut state = self.state();
        loop {
            let waited = self.changed.wait_while(state, |state| !state.is_over && !state.is_stopped);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_stopped {
                return false;
            }
            let waited =
                self.changed.wait_timeout_while(state, grace, |state| state.is_over && !state.is_stopped);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                return true;
            }
            state = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn the_end_comes_after_the_last_tab() {
        let tabs = Arc::new(Tabs::default());
        let waiting = Arc::clone(&tabs);
        let end = thread::spawn(move || waiting.wait_for_end(SHORT));
        // A tab that was never open, and one of two.
        tabs.close("x");
        tabs.open("a");
        tabs.open("b");
        tabs.close("a");
        thread::sleep(4 * SHORT);
        assert!(!end.is_finished());
        // A reload.
        tabs.close("b");
        tabs.open("c");
        thread::sleep(4 * SHORT);
        assert!(!end.is_finished());
        tabs.close("c");
        assert!(end.join().unwrap());
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let tabs = Arc::new(Tabs::default());
        let waiting = Arc::clone(&tabs);
        let end = thread::spawn(move || waiting.wait_for_end(SHORT));
        tabs.stop();
        assert!(!end.join().unwrap());
    }
}
