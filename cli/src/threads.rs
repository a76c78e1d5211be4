//! Work on many files at once, results in order.

use crate::exit::Outcome;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Calls `work(k)` for `k` below `n` on `jobs` threads (0: one for each processor) and `done(k, result)` here, in order. When
/// `done` fails no further work is begun.
pub(crate) fn in_order<T: Send>(
    n: usize,
    jobs: usize,
    work: impl Fn(usize) -> T + Sync,
    mut done: impl FnMut(usize, T) -> Outcome,
) -> Outcome {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let jobs = if jobs == 0 { processors } else { jobs }.min(n);
    if jobs <= 1 {
        return (0..n).try_for_each(|k| done(k, work(k)));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..jobs {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= n || send.send((k, work(k))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        // Results that came before their turn.
        let mut early = BTreeMap::new();
        let mut turn = 0;
        for (k, result) in receive {
            early.insert(k, result);
            while let Some(result) = early.remove(&turn) {
                if let Err(e) = done(turn, result) {
                    next.store(n, Ordering::Relaxed);
                    return Err(e);
                }
                turn += 1;
            }
        }
        Ok(())
    })
}
