//! Work on several threads, with results in order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::{io, thread};

/// Calls `work` for each item on this number of [`threads`](tfseek::threads), and `done` with the results on
/// the calling thread, in the order of the items. Items are taken from the iterator in order by whichever
/// thread is free. At most `ahead` of them are begun before the result of the first is returned; `usize::MAX`
/// is no limit, for small results.
///
/// ```
/// let mut squares = Vec::new();
/// tfseek_tools::in_order(
///     4,
///     16,
///     0..100u64,
///     |k| Ok::<_, tfseek::Error>(k * k),
///     |square| {
///         squares.push(square);
///         Ok(())
///     },
/// )?;
/// assert_eq!(squares[99], 99 * 99);
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// The first error in the order of the items, of `work` or of `done`; the error of a thread that cannot be
/// started. Items that were not begun are left out then, and the others end before the error is returned.
pub fn in_order<I, T: Send, E: Send + From<tfseek::Error>>(
    threads: impl Into<Option<usize>>,
    ahead: usize,
    items: impl IntoIterator<Item = I, IntoIter: Send>,
    work: impl Fn(I) -> Result<T, E> + Sync,
    mut done: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let mut items = items.into_iter();
    let threads = tfseek::threads(threads.into())?.min(items.size_hint().1.unwrap_or(usize::MAX));
    if threads <= 1 {
        return items.try_for_each(|item| done(work(item)?));
    }
    let items = Mutex::new(items.enumerate());
    let window = Window { state: Mutex::default(), changed: Condvar::new(), width: ahead.max(1) };
    let run = |send: mpsc::Sender<(usize, Result<T, E>)>| {
        // Without a further item the others need not wait for one either.
        let _stop = StopWork(&window);
        while window.begin() {
            let taken = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((k, item)) = taken else { break };
            let result = work(item);
            if result.is_err() {
                window.stop();
            }
            if send.send((k, result)).is_err() {
                break;
            }
        }
    };
    thread::scope(|scope| {
        let _stop = StopWork(&window);
        let (send, receive) = mpsc::channel();
        for k in 0..threads {
            let send = send.clone();
            let run = &run;
            let started =
                thread::Builder::new().name(format!("tfseek-{k}")).spawn_scoped(scope, move || run(send));
            if let Err(e) = started {
                let e = io::Error::new(e.kind(), format!("cannot start thread {k} of {threads}: {e}"));
                return Err(E::from(tfseek::Error::from(e)));
            }
        }
        drop(send);
        let mut early = BTreeMap::new();
        let mut next = 0;
        for (k, result) in receive {
            early.insert(k, result);
            while let Some(result) = early.remove(&next) {
                done(result?)?;
                next += 1;
                window.returned();
            }
        }
        Ok(())
    })
}

/// A limit on the items between the first whose result was not returned and the last that was begun.
struct Window {
    state: Mutex<WindowState>,
    changed: Condvar,
    width: usize,
}

#[derive(Default)]
struct WindowState {
    begun: usize,
    returned: usize,
    stopped: bool,
}

impl Window {
    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an item may begin. Returns false if the work is stopped.
    fn begin(&self) -> bool {
        let mut state = self.lock();
        while !state.stopped && state.begun - state.returned >= self.width {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.begun += 1;
        !state.stopped
    }

    fn returned(&self) {
        self.lock().returned += 1;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }
}

/// Stops the work when it is dropped, also by a panic, so that no thread waits for another that is gone.
struct StopWork<'a>(&'a Window);

impl Drop for StopWork<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
    use tfseek::{Error, ErrorKind};

    fn too_large(k: u64) -> Error {
        ErrorKind::TooLarge { len: k.into(), limit: 0 }.into()
    }

    #[test]
    fn results_are_in_order_and_the_first_error_is_returned() {
        for threads in [0, 1, 4] {
            for ahead in [0, 1, 3, usize::MAX] {
                let mut squares = Vec::new();
                let push = |square| {
                    squares.push(square);
                    Ok::<_, Error>(())
                };
                in_order(threads, ahead, 0..50, |k: u64| Ok(k * k), push).unwrap();
                assert_eq!(squares, (0..50).map(|k| k * k).collect::<Vec<_>>());
                let mut count = 0;
                let fails = |k| if k < 20 { Ok(()) } else { Err(too_large(k)) };
                let counted = |()| {
                    count += 1;
                    Ok(())
                };
                let e = in_order(threads, ahead, 0..50, fails, counted).unwrap_err();
                assert!(e.to_string().contains("found 20"), "{e}");
                assert_eq!(count, 20);
            }
        }
    }

    #[test]
    fn an_error_of_the_caller_ends_the_work() {
        for threads in [1, 4] {
            let begun = AtomicU64::new(0);
            let work = |k: u64| {
                begun.fetch_add(1, SeqCst);
                Ok(k)
            };
            let done = |k| if k < 5 { Ok(()) } else { Err(too_large(k)) };
            let e = in_order(threads, 3, 0..1000, work, done).unwrap_err();
            assert!(e.to_string().contains("found 5"), "{e}");
            assert!((6..=9).contains(&begun.into_inner()));
        }
    }

    #[test]
    fn no_more_items_are_begun_than_allowed() {
        let begun = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let work = |k: usize| {
            most.fetch_max(begun.fetch_add(1, SeqCst) + 1, SeqCst);
            if k.is_multiple_of(5) {
                thread::sleep(std::time::Duration::from_millis(2));
            }
            Ok::<_, Error>(())
        };
        let done = |()| {
            begun.fetch_sub(1, SeqCst);
            Ok(())
        };
        in_order(4, 6, 0..100, work, done).unwrap();
        // A result leaves the window after it was returned.
        assert!((2..=6).contains(&most.into_inner()));
    }

    #[test]
    fn a_panic_ends_the_work() {
        for in_work in [true, false] {
            let ended = std::panic::catch_unwind(|| {
                let work = |k: u64| {
                    assert!(!in_work || k < 10, "the work fails");
                    Ok::<_, Error>(k)
                };
                let done = |k| {
                    assert!(in_work || k < 10, "the caller fails");
                    Ok(())
                };
                in_order(3, 2, 0..1000, work, done)
            });
            assert!(ended.is_err());
        }
    }
}
