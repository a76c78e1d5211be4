//! `tfseek.build_index`.

use crate::error::Result;
use crate::options::Choice;
use crate::reading::{self, bytes_of};
use crate::remote::StorageOptions;
use crate::wait::{self, Progress, Unit};
use crate::warning;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use tfseek::index::{self, Index, IndexOptions};
use tfseek::{Damage, IndexMode};

/// Builds missing indexes, or a pack, and returns the number of records. `tfseek.build_index` calls it.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn build_index(
    py: Python<'_>,
    paths: Vec<OsString>,
    threads: Option<usize>,
    index_dir: Option<PathBuf>,
    rebuild: bool,
    allow_missing: bool,
    pack: Option<String>,
    damage: Choice<Damage>,
    rest: Option<PathBuf>,
    storage: StorageOptions,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<u64> {
    let progress = Progress::new(py, progress, "indexing", Unit::Bytes)?;
    let shown = progress.is_some();
    let (paths, store) = reading::resolve(py, paths, allow_missing, storage)?;
    let built = wait::run(py, progress, store.is_some(), move |call| {
        let mut options = IndexOptions::new().threads(threads).progress(call.callback());
        if let Some(store) = store {
            options = options.store(store);
        }
        if rebuild {
            options = options.mode(IndexMode::Rebuild);
        }
        if let Some(dir) = index_dir {
            options = options.index_dir(dir);
        }
        options = options.damage(damage.0);
        if let Some(dir) = rest {
            options = options.rest(dir);
        }
        if shown {
            call.expect(bytes_of(&paths));
        }
        if let Some(name) = pack {
            return Ok(index::write_pack(&name, &paths, &options)?.1);
        }
        // Intact shards are indexed even if others are damaged.
        let built = index::build_beside(&paths, &options)?;
        Ok(built.into_iter().collect::<tfseek::Result<index::Indexes>>()?)
    })?;
    warning::raise(py, &built.warnings)?;
    Ok(built.indexes.iter().map(Index::len).sum())
}
