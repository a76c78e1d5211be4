//! `tfseek.build_index`.

use crate::failure::Result;
use crate::open::bytes_of;
use crate::wait::{self, Progress, Unit};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use tfseek::IndexMode;
use tfseek::index::{self, Index, IndexOptions};

/// What `tfseek.build_index` calls: the number of records.
#[pyfunction]
pub(crate) fn build_index(
    py: Python<'_>,
    paths: Vec<OsString>,
    jobs: usize,
    index_dir: Option<PathBuf>,
    rebuild: bool,
    allow_missing: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<u64> {
    let progress = Progress::new(py, progress, "indexing", Unit::Bytes)?;
    let told = progress.is_some();
    wait::run(py, progress, move |meter| {
        let paths = tfseek::paths::resolve(paths, allow_missing)?;
        let mut options = IndexOptions::new().jobs(jobs).progress(meter.callback());
        if rebuild {
            options = options.mode(IndexMode::Rebuild);
        }
        if let Some(dir) = index_dir {
            options = options.index_dir(dir);
        }
        if told {
            meter.expect(bytes_of(&paths));
        }
        // The sound shards are indexed, whatever became of the others.
        let built = index::build_beside(&paths, &options)?;
        let records = |shard: tfseek::Result<index::Indexes>| -> tfseek::Result<u64> {
            Ok(shard?.indexes.iter().map(Index::len).sum())
        };
        Ok(built.into_iter().map(records).sum::<tfseek::Result<u64>>()?)
    })
}
