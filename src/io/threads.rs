//! Thread pools, one per call: rayon's global pool would hang in a forked child.

use super::Interrupt;
use crate::error::{OptionsError, Result};
use rayon::prelude::*;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Maximum number of threads that a call, a loader or a command starts. A larger number is most likely a
/// mistake: few machines have that many processors, and the system would refuse the threads after allocating
/// gigabytes of stacks.
pub const MAX_THREADS: usize = 1024;

/// Returns the number of threads that share a piece of work, at least 1. `threads` is the value of an option
/// of that name.
///
/// All options named `threads` have this meaning: by default, `None`, there is one thread per processor, at
/// most [`MAX_THREADS`]. 0 is the calling thread alone. 1 is the calling thread alone as well, except in a
/// [`Loader`](crate::Loader), where one thread makes batches while the caller uses others. By default it
/// chooses their number ([`LoaderOptions::threads`](crate::LoaderOptions::threads)).
///
/// # Errors
/// [`OptionsError::Threads`] above [`MAX_THREADS`].
pub fn threads(threads: Option<usize>) -> Result<usize> {
    match threads {
        None => Ok(std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS)),
        Some(n @ 0..=MAX_THREADS) => Ok(n.max(1)),
        Some(found) => Err(OptionsError::Threads { found, limit: MAX_THREADS }.into()),
    }
}

/// Calls `f(0)`, `f(1)`, .. `f(n - 1)` on this number of [`threads`], and returns the results in order.
///
/// Returns the error of the lowest number that fails. With `hurry`, numbers above a failed one are skipped.
pub(crate) fn each<T: Send>(
    threads: Option<usize>,
    n: usize,
    hurry: bool,
    f: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let threads = self::threads(threads)?.min(n);
    if threads <= 1 {
        let all = (0..n).map(f);
        if hurry {
            return all.collect();
        }
        let all: Vec<Result<T>> = all.collect();
        return all.into_iter().collect();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|k| format!("tfseek-{k}"))
        .build()
        .map_err(|e| io::Error::other(format!("cannot start {threads} threads: {e}")))?;
    let failed = AtomicUsize::new(usize::MAX);
    let interrupt = Interrupt::of_thread();
    let run = |k: usize| {
        if hurry && failed.load(Relaxed) < k {
            return None;
        }
        let done = interrupt.during(|| f(k));
        if done.is_err() {
            failed.fetch_min(k, Relaxed);
        }
        Some(done)
    };
    let all: Vec<Option<Result<T>>> = pool.install(|| (0..n).into_par_iter().map(run).collect());
    // Skipped numbers are above the lowest error, so `collect` returns before it would reach them.
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn too_many_threads_are_an_error() {
        for n in [MAX_THREADS + 1, 1_000_000_000, usize::MAX] {
            let e = each(Some(n), 1, true, Ok).unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
        assert_eq!(threads(Some(MAX_THREADS)).unwrap(), MAX_THREADS);
        assert_eq!(threads(Some(0)).unwrap(), 1);
        assert!((1..=MAX_THREADS).contains(&threads(None).unwrap()));
    }

    #[test]
    fn results_are_in_order_and_the_lowest_error_is_returned() {
        for threads in [None, Some(0), Some(1), Some(2), Some(5)] {
            assert_eq!(
                each(threads, 100, true, |k| Ok(k * 2)).unwrap(),
                (0..100).map(|k| k * 2).collect::<Vec<_>>()
            );
            let fails = |k: usize| {
                if k % 30 == 29 {
                    Err(ErrorKind::OutOfRange { what: "call", i: k as i128, len: 0 }.into())
                } else {
                    Ok(())
                }
            };
            for hurry in [true, false] {
                let e = each(threads, 100, hurry, fails).unwrap_err();
                assert!(matches!(e.kind(), ErrorKind::OutOfRange { i: 29, .. }));
            }
            assert!(each(threads, 0, true, fails).unwrap().is_empty());
        }
    }
}
