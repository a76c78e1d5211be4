//! `tfseek.open`: the doors to the bytes.

use crate::dataset::Dataset;
use crate::failure::Result;
use crate::shared::{How, Shared};
use crate::wait::{self, Progress, Unit};
use crate::words::{Door, KindChoice, Word, asked};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use tfseek::column::ColumnOptions;
use tfseek::error::PathsError;
use tfseek::index::IndexOptions;
use tfseek::{DatasetOptions, ErrorKind, IndexMode, Tail, Verify, paths};

/// What `tfseek.open` calls, which has the documentation: with the dict of its arguments, all of them there but `progress`, which a
/// copy does not have.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub(crate) fn open(
    py: Python<'_>,
    arguments: Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Dataset> {
    let paths: Vec<OsString> = asked(&arguments, "paths")?;
    let Word::<IndexMode>(index) = asked(&arguments, "index")?;
    let index_dir: Option<PathBuf> = asked(&arguments, "index_dir")?;
    let Word::<Verify>(verify) = asked(&arguments, "verify")?;
    let Word::<Door>(io) = asked(&arguments, "io")?;
    let Word::<KindChoice>(kind) = asked(&arguments, "kind")?;
    let Word::<Tail>(tail) = asked(&arguments, "tail")?;
    let allow_missing = asked(&arguments, "allow_missing")?;
    let jobs = asked(&arguments, "jobs")?;
    let max_record: Option<u64> = asked(&arguments, "max_record")?;
    let features: Vec<String> = asked(&arguments, "columns")?;
    let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
    let mut index = IndexOptions::new().mode(index).tail(tail).jobs(jobs);
    if let Some(dir) = index_dir {
        index = index.index_dir(dir);
    }
    let mut options = DatasetOptions::new().index(index).verify(verify).allow_missing(allow_missing);
    if let Some(bytes) = max_record {
        options = options.max_record(bytes);
    }
    let progress = Progress::new(py, progress, "opening", Unit::Bytes)?;
    let (told, named) = (progress.is_some(), paths.clone());
    let (dataset, columns) = wait::run(py, progress, move |meter| {
        if told {
            let shards = tfseek::paths::resolve(&named, allow_missing)?;
            meter.expect(bytes_of(&shards).filter(|_| !shards.iter().any(|path| paths::is_pack(path))));
        }
        let dataset = through(&options.progress(meter.callback()), io, &named)?;
        let features: Vec<&str> = features.iter().map(String::as_str).collect();
        let columns = match features.is_empty() {
            true => Vec::new(),
            false => {
                meter.expect(dataset.known_bytes());
                dataset.columns(&features, &ColumnOptions::new())?
            }
        };
        Ok((dataset, columns))
    })?;
    Ok(Dataset::all(Shared::new(dataset, columns, How::new(paths, arguments.unbind(), kind))))
}

/// Bytes of all shards: what a scan of them reads. `None` if one cannot be asked.
pub(crate) fn bytes_of(shards: &[PathBuf]) -> Option<u64> {
    shards.iter().try_fold(0u64, |sum, path| Some(sum.saturating_add(std::fs::metadata(path).ok()?.len())))
}

#[allow(unsafe_code)]
fn through(options: &DatasetOptions, door: Door, paths: &[PathBuf]) -> tfseek::Result<tfseek::Dataset> {
    if door == Door::Pread {
        return options.open(paths);
    }
    // SAFETY: whoever calls `tfseek.open` promises that nobody writes to or truncates the files while the dataset or an array
    // made from it lives; its docstring says so, and `io="pread"` is the way without the promise.
    match unsafe { options.open_mapped(paths) } {
        Ok(mapped) => Ok(mapped.dataset().clone()),
        Err(e) if door == Door::Auto && too_many(&e) => options.open(paths),
        Err(e) => Err(e),
    }
}

/// Whether the process may not have so many maps.
fn too_many(e: &tfseek::Error) -> bool {
    matches!(e.kind(), ErrorKind::Paths(PathsError::TooManyMaps { .. }))
}
