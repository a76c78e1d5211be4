//! `tfseek.build_index`.

use crate::failure::Result;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use tfseek::IndexMode;
use tfseek::index::{self, Index, IndexOptions};

/// What `tfseek.build_index` calls: the number of records. `progress` is called with the bytes scanned since its last call, from
/// any thread.
#[pyfunction]
pub(crate) fn build_index(
    py: Python<'_>,
    paths: Vec<OsString>,
    jobs: usize,
    index_dir: Option<PathBuf>,
    rebuild: bool,
    allow_missing: bool,
    progress: Option<Py<PyAny>>,
) -> Result<u64> {
    // The first exception of `progress`: raised when the work is done, for it cannot pass through.
    let raised = Mutex::new(None);
    let tell = |bytes: u64| {
        let Some(progress) = &progress else { return };
        Python::attach(|py| {
            if let Err(e) = progress.call1(py, (bytes,))
                && let Ok(mut raised) = raised.lock()
            {
                raised.get_or_insert(e);
            }
        });
    };
    let records = py.detach(|| -> tfseek::Result<u64> {
        let paths = tfseek::paths::resolve(paths, allow_missing)?;
        let mut options = IndexOptions::new().jobs(jobs);
        if rebuild {
            options = options.mode(IndexMode::Rebuild);
        }
        if let Some(dir) = index_dir {
            options = options.index_dir(dir);
        }
        // The sound shards are indexed, whatever became of the others.
        let built = index::build_each(&paths, &options, &tell)?;
        built
            .into_iter()
            .try_fold(0, |sum, shard| Ok(sum + shard?.indexes.iter().map(Index::len).sum::<u64>()))
    })?;
    match raised.into_inner() {
        Ok(Some(e)) => Err(e.into()),
        _ => Ok(records),
    }
}
