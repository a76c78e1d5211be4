//! Thread pools, one per call: rayon's global pool would hang in a forked child.

use crate::error::{OptionsError, Result};
use rayon::prelude::*;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Maximum number of threads that a call, a loader or a command starts. A larger number is most likely a mistake: few machines have
/// that many processors, and the system would refuse the threads after allocating gigabytes of stacks.
pub const MAX_THREADS: usize = 1024;

/// Returns `jobs`, or the number of processors if `jobs` is 0.
///
/// # Errors
/// [`OptionsError::Threads`] above [`MAX_THREADS`].
pub fn threads(jobs: usize) -> Result<usize> {
    match jobs {
        0 => Ok(std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS)),
        1..=MAX_THREADS => Ok(jobs),
        _ => Err(OptionsError::Threads { found: jobs, limit: MAX_THREADS }.into()),
    }
}

/// Calls `f(0)`, `f(1)`, .. `f(n - 1)` on `jobs` threads (0: one per processor), and returns the results in order.
///
/// Returns the error of the lowest number that fails. With `hurry`, numbers above a failed one are skipped.
pub(crate) fn each<T: Send>(
    jobs: usize,
    n: usize,
    hurry: bool,
    f: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let jobs = threads(jobs)?.min(n);
    if jobs <= 1 {
        let all = (0..n).map(f);
        if hurry {
            return all.collect();
        }
        let all: Vec<Result<T>> = all.collect();
        return all.into_iter().collect();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .thread_name(|k| format!("tfseek-{k}"))
        .build()
        .map_err(|e| io::Error::other(format!("cannot start {jobs} threads: {e}")))?;
    let failed = AtomicUsize::new(usize::MAX);
    let run = |k: usize| {
        if hurry && failed.load(Relaxed) < k {
            return None;
        }
        let done = f(k);
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
        for jobs in [MAX_THREADS + 1, 1_000_000_000, usize::MAX] {
            let e = each(jobs, 1, true, Ok).unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
        assert_eq!(threads(MAX_THREADS).unwrap(), MAX_THREADS);
        assert!(threads(0).unwrap() >= 1);
    }

    #[test]
    fn results_are_in_order_and_the_lowest_error_is_returned() {
        for jobs in [1, 2, 5] {
            assert_eq!(
                each(jobs, 100, true, |k| Ok(k * 2)).unwrap(),
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
                let e = each(jobs, 100, hurry, fails).unwrap_err();
                assert!(matches!(e.kind(), ErrorKind::OutOfRange { i: 29, .. }));
            }
            assert!(each(jobs, 0, true, fails).unwrap().is_empty());
        }
    }
}
