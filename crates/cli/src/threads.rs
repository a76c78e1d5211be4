//! Parallel work on many files, with results in order.

use crate::exit::{Failure, IO, Outcome};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Calls `work` for each item on `jobs` threads (0: one per processor), and `done(item, result)` on the calling thread, in the order
/// of the items. After an error of `done` no further work starts.
///
/// # Errors
/// The error of `done`, or of a thread that cannot be started.
pub(crate) fn in_order<I: Copy + Sync, T: Send>(
    items: impl IntoIterator<Item = I>,
    jobs: usize,
    work: impl Fn(I) -> T + Sync,
    mut done: impl FnMut(I, T) -> Outcome,
) -> Outcome {
    let items: Vec<I> = items.into_iter().collect();
    let jobs = tfseek::threads(jobs)?.min(items.len());
    if jobs <= 1 {
        return items.iter().try_for_each(|&item| done(item, work(item)));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for k in 0..jobs {
            let (send, next, items, work) = (send.clone(), &next, &items, &work);
            let run = move || {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&item) = items.get(k) else { return };
                    if send.send((k, work(item))).is_err() {
                        return;
                    }
                }
            };
            let started = std::thread::Builder::new().name(format!("tfseek-{k}")).spawn_scoped(scope, run);
            if let Err(e) = started {
                next.store(items.len(), Ordering::Relaxed);
                return Err(Failure::Message(IO, format!("cannot start thread {k} of {jobs}: {e}")));
            }
        }
        drop(send);
        // Results that arrived before the result of `next_done`.
        let mut early = BTreeMap::new();
        let mut next_done = 0;
        for (k, result) in receive {
            early.insert(k, result);
            while let (Some(&item), Some(result)) = (items.get(next_done), early.remove(&next_done)) {
                if let Err(e) = done(item, result) {
                    next.store(items.len(), Ordering::Relaxed);
                    return Err(e);
                }
                next_done += 1;
            }
        }
        Ok(())
    })
}
