//! Threads for one call: a pool of our own, since rayon's global one hangs a forked child.

use crate::error::{Error, ErrorKind, Result};
use rayon::prelude::*;

/// Runs `f(0)`, `f(1)`, .. `f(n - 1)` over `jobs` threads (0: one for each processor). Of the calls that fail, the error of
/// the lowest number is returned.
pub(crate) fn first_error(jobs: usize, n: u64, f: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
    if n <= 1 || jobs == 1 {
        return (0..n).try_for_each(f);
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .thread_name(|k| format!("tfseek-{k}"))
        .build()
        .map_err(|e| Error::new(ErrorKind::Io(std::io::Error::other(e))))?;
    let failed = pool.install(|| {
        (0..n).into_par_iter().filter_map(|k| f(k).err().map(|e| (k, e))).min_by_key(|&(k, _)| k)
    });
    match failed {
        Some((_, e)) => Err(e),
        None => Ok(()),
    }
}
