//! Work in numbered units on several threads, with results in order.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

/// Calls `work` for each unit below `count` on `jobs` threads, and returns the results in order. After an error no further unit starts.
/// Units start in order, so the returned error is that of the lowest unit that fails.
pub(super) fn in_order<T: Send, E: Send + From<tfseek::Error>>(
    jobs: usize,
    count: u64,
    work: impl Fn(u64) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let run = || {
        loop {
            let k = next.fetch_add(1, Relaxed);
            if k >= count {
                return;
            }
            let result = work(k);
            if result.is_err() {
                next.store(count, Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((k, result));
        }
    };
    thread::scope(|scope| {
        for k in 1..u64::try_from(jobs).unwrap_or(1).min(count) {
            let started = thread::Builder::new().name(format!("tfseek-{k}")).spawn_scoped(scope, run);
            if let Err(e) = started {
                next.store(count, Relaxed);
                let e = io::Error::new(e.kind(), format!("cannot start thread {k} of {jobs}: {e}"));
                return Err(E::from(tfseek::Error::from(e)));
            }
        }
        run();
        Ok(())
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(k, _)| *k);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::{Error, ErrorKind};

    #[test]
    fn results_are_in_order_and_the_first_error_is_returned() {
        for jobs in [0, 1, 4] {
            let squares = in_order(jobs, 50, |k| Ok::<_, Error>(k * k)).unwrap();
            assert_eq!(squares, (0..50).map(|k| k * k).collect::<Vec<_>>());
            let fails = |k| match k {
                0..20 => Ok(()),
                _ => Err(Error::from(ErrorKind::TooLarge { len: k.into(), limit: 0 })),
            };
            let e = in_order(jobs, 50, fails).unwrap_err();
            assert!(e.to_string().contains("found 20"), "{e}");
        }
    }
}
