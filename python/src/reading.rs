//! Steps that opening and refreshing a dataset share: the size of its files, its columns.

use crate::error::Result;
use crate::options::argument;
use crate::remote::StorageOptions;
use crate::shared::SharedDataset;
use crate::wait::{self, CallState, Progress, Unit};
use crate::warning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::io::Store;
use tfseek::{Dataset, Warning, paths};

/// Opens a dataset again with the same arguments. `Dataset.refresh` calls it and has the documentation.
pub(crate) fn refresh(
    py: Python<'_>,
    shared: &SharedDataset,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<SharedDataset> {
    let arguments = shared.arguments.to_dict(py)?;
    let paths = shared.arguments.paths.clone();
    let old = shared.dataset.clone();
    let (dataset, columns) = opened(py, &arguments, paths, shared.is_remote, progress, move |_, call| {
        old.refresh_with(call.callback())
    })?;
    Ok(SharedDataset::new(dataset, columns, shared.arguments.clone_ref(py)))
}

/// Opens a dataset by `open`, and loads its columns, whose missing files are built. `arguments` are those of
/// `tfseek.open`.
pub(crate) fn opened(
    py: Python<'_>,
    arguments: &Bound<'_, PyDict>,
    paths: Vec<PathBuf>,
    is_remote: bool,
    progress: Option<&Bound<'_, PyAny>>,
    open: impl FnOnce(&[PathBuf], &Arc<CallState>) -> tfseek::Result<Dataset> + Send + 'static,
) -> Result<(Dataset, Vec<DatasetColumn>)> {
    let allow_missing = argument(arguments, "allow_missing")?;
    let features: Vec<String> = argument(arguments, "columns")?;
    let progress = Progress::new(py, progress, "opening", Unit::Bytes)?;
    let shown = progress.is_some();
    wait::run(py, progress, is_remote, move |call| {
        if shown && !is_remote {
            call.expect(size_of(&paths, allow_missing)?);
        }
        let dataset = open(&paths, call)?;
        if features.is_empty() {
            return Ok((dataset, Vec::new()));
        }
        let features: Vec<&str> = features.iter().map(String::as_str).collect();
        call.expect(dataset.known_bytes());
        let columns = dataset.columns(&features, &ColumnOptions::default())?;
        Ok((dataset, columns))
    })
}

/// Shards, and the store of those that are URLs.
pub(crate) type Resolved = (Vec<PathBuf>, Option<Arc<dyn Store>>);

/// Returns the shards that paths match, with the store of those that are URLs, and raises warnings about
/// folders with other TFRecord files. For functions whose results have no warnings.
pub(crate) fn resolve(
    py: Python<'_>,
    paths: Vec<OsString>,
    allow_missing: bool,
    storage: StorageOptions,
) -> Result<Resolved> {
    let (resolved, warnings) = resolve_with_warnings(py, paths, allow_missing, storage)?;
    warning::raise(py, &warnings)?;
    Ok(resolved)
}

/// Returns the shards that paths match, with the store of those that are URLs, and warnings about folders
/// with other TFRecord files.
pub(crate) fn resolve_with_warnings(
    py: Python<'_>,
    paths: Vec<OsString>,
    allow_missing: bool,
    storage: StorageOptions,
) -> Result<(Resolved, Vec<Warning>)> {
    let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
    let store = storage.store(&paths)?;
    let of_paths = store.clone();
    let (paths, warnings) = wait::run(py, None, store.is_some(), move |_| {
        Ok(paths::resolve_in_store(of_paths, paths, allow_missing)?)
    })?;
    Ok(((paths, store), warnings))
}

/// Returns the size of the shards that paths match, in bytes. `None` for a pack, or if it is unknown.
pub(crate) fn size_of(paths: &[PathBuf], allow_missing: bool) -> Result<Option<u64>> {
    let shards = paths::resolve(paths, allow_missing)?;
    Ok(bytes_of(&shards).filter(|_| !shards.iter().any(|path| paths::is_pack(path))))
}

/// Returns the size of all shards in bytes, which a scan reads. `None` if the size of a shard is unknown.
pub(crate) fn bytes_of(shards: &[PathBuf]) -> Option<u64> {
    shards.iter().try_fold(0u64, |sum, path| Some(sum + std::fs::metadata(path).ok()?.len()))
}
