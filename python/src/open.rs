//! `tfseek.open`: opens a dataset through maps or positional reads.

use crate::dataset::PyDataset;
use crate::error::Result;
use crate::options::{Choice, KindOption, ReadMode, argument};
use crate::reading::opened;
use crate::remote::StorageOptions;
use crate::shared::{OpenArguments, SharedDataset};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use tfseek::error::PathsError;
use tfseek::index::IndexOptions;
use tfseek::{Damage, DatasetOptions, ErrorKind, IndexMode, Tail, Verify};

/// Opens a dataset. `tfseek.open` calls it and has the documentation.
///
/// `arguments` contains all arguments of `tfseek.open` except `progress`, which a pickled dataset does not
/// keep. `storage_options` is taken out of it, and of `filesystem` it keeps the protocol.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub(crate) fn open(
    py: Python<'_>,
    arguments: Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<PyDataset> {
    let paths: Vec<OsString> = argument(&arguments, "paths")?;
    let Choice::<ReadMode>(io) = argument(&arguments, "io")?;
    let Choice::<KindOption>(kind) = argument(&arguments, "kind")?;
    let storage = StorageOptions::take(&arguments)?;
    let options = options_of(&arguments)?;
    let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
    let names = storage.names();
    let store = storage.store(&paths)?;
    let is_remote = store.is_some();
    let options = match store {
        Some(store) => options.store(store),
        None => options,
    };
    let given = paths.clone();
    let (dataset, columns) = opened(py, &arguments, given, is_remote, progress, move |paths, call| {
        open_with(&options.progress(call.callback()), io, paths)
    })?;
    let arguments = OpenArguments::new(paths, arguments.unbind(), names, kind);
    Ok(PyDataset::whole(SharedDataset::new(dataset, columns, arguments)))
}

/// Returns the options for the shards.
pub(crate) fn options_of(arguments: &Bound<'_, PyDict>) -> Result<DatasetOptions> {
    let Choice::<IndexMode>(index) = argument(arguments, "index")?;
    let index_dir: Option<PathBuf> = argument(arguments, "index_dir")?;
    let Choice::<Verify>(verify) = argument(arguments, "verify")?;
    let Choice::<Tail>(tail) = argument(arguments, "tail")?;
    let Choice::<Damage>(damage) = argument(arguments, "damage")?;
    let rest: Option<PathBuf> = argument(arguments, "rest")?;
    let allow_missing = argument(arguments, "allow_missing")?;
    let threads: Option<usize> = argument(arguments, "threads")?;
    let max_record: Option<u64> = argument(arguments, "max_record")?;
    let mut index = IndexOptions::new().mode(index).tail(tail).damage(damage).threads(threads);
    if let Some(dir) = index_dir {
        index = index.index_dir(dir);
    }
    if let Some(dir) = rest {
        index = index.rest(dir);
    }
    let options = DatasetOptions::new().index(index).verify(verify).allow_missing(allow_missing);
    Ok(match max_record {
        Some(bytes) => options.max_record(bytes),
        None => options,
    })
}

#[allow(unsafe_code)]
pub(crate) fn open_with(
    options: &DatasetOptions,
    io: ReadMode,
    paths: &[PathBuf],
) -> tfseek::Result<tfseek::Dataset> {
    if io == ReadMode::Pread {
        return options.open(paths);
    }
    // SAFETY: the caller of `tfseek.open` or `tfseek.tfds.open` guarantees that no process overwrites or
    // truncates the files while the dataset, one that `refresh` makes of it, or an array made from them,
    // exists. Their docstrings state this contract. `io="pread"` needs no guarantee.
    match unsafe { options.open_with_maps(paths) } {
        Ok(dataset) => Ok(dataset),
        // The dataset may have more shards than the process may map.
        Err(e)
            if io == ReadMode::Auto
                && matches!(e.kind(), ErrorKind::Paths(PathsError::TooManyMaps { .. })) =>
        {
            options.open(paths)
        }
        Err(e) => Err(e),
    }
}
