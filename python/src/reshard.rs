//! `tfseek.reshard`: writes a dataset again, with the rules of the command `tfseek reshard`.

use crate::dataset::PyDataset;
use crate::error::Result;
use crate::options::{Choice, KindOption, Seed, argument};
use crate::reading::size_of;
use crate::wait::{self, Progress, Unit};
use crate::warning;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::{Compression, Damage, Warning};
use tfseek_tools::reshard::{
    self as tools, OrderOptions, ReshardOptions, ReshardSet, ShardCount, SplitOptions,
};
use tfseek_tools::sizes;

/// A set: the split, its path, its shards, and the numbers of records and bytes.
type Set = (Option<String>, OsString, Vec<OsString>, u64, u64);

/// A number of bytes, as a number or as text.
#[derive(FromPyObject)]
pub(crate) enum SizeOption {
    Bytes(u64),
    Text(String),
}

impl SizeOption {
    fn bytes(self, what: &str) -> PyResult<u64> {
        match self {
            SizeOption::Bytes(bytes) => Ok(bytes),
            SizeOption::Text(text) => {
                sizes::parse(&text).map_err(|e| PyValueError::new_err(format!("{what}: {e}")))
            }
        }
    }
}

/// The number of shards, or their size as text.
pub(crate) struct ShardsOption(pub(crate) ShardCount);

impl<'a, 'py> FromPyObject<'a, 'py> for ShardsOption {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<ShardsOption> {
        Ok(ShardsOption(match from.extract()? {
            SizeOption::Bytes(count) => ShardCount::Count(count),
            size @ SizeOption::Text(_) => ShardCount::Size(size.bytes("shards")?),
        }))
    }
}

/// Returns a size in bytes from the arguments of a function.
pub(crate) fn size_argument(arguments: &Bound<'_, PyDict>, name: &str) -> Result<Option<u64>> {
    let size: Option<SizeOption> = argument(arguments, name)?;
    Ok(size.map(|size| size.bytes(name)).transpose()?)
}

/// Returns true if the files fit into 60 % of the memory, so that they may be mapped. `tfseek.reshard` calls
/// it.
#[pyfunction]
#[pyo3(signature = (paths, allow_missing, memory))]
pub(crate) fn fits_memory(
    paths: Vec<OsString>,
    allow_missing: bool,
    memory: Option<SizeOption>,
) -> Result<bool> {
    let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
    let memory = memory.map(|size| size.bytes("memory")).transpose()?.unwrap_or_else(tools::memory_limit);
    Ok(size_of(&paths, allow_missing)?.is_some_and(|bytes| tools::fits(bytes, memory)))
}

/// Returns the shards of the prepared data set that `out` is a copy of. `None` if it is none.
/// `tfseek.reshard` calls it.
#[pyfunction]
pub(crate) fn prepared_shards(paths: Vec<PathBuf>, out: PathBuf) -> Result<Option<Vec<OsString>>> {
    let found = tools::prepared(&paths, &out)?;
    Ok(found.map(|source| source.shards().into_iter().map(OsString::from).collect()))
}

/// Writes the records of a dataset again. `tfseek.reshard` calls it and has the documentation.
#[pyfunction]
pub(crate) fn reshard(
    py: Python<'_>,
    dataset: PyRef<'_, PyDataset>,
    arguments: Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<(&'static str, Vec<Set>)> {
    let mut options = ReshardOptions::new(argument::<PathBuf>(&arguments, "out")?);
    let shards: Option<ShardsOption> = argument(&arguments, "shards")?;
    options.shards = shards.map(|shards| shards.0);
    let sort_by: Option<String> = argument(&arguments, "sort_by")?;
    options.order = match sort_by {
        Some(feature) => OrderOptions::Sorted { feature, reverse: argument(&arguments, "reverse")? },
        None if argument(&arguments, "shuffle")? => OrderOptions::Shuffled,
        None => OrderOptions::Stored,
    };
    options.seed = argument::<Seed>(&arguments, "seed")?.0;
    let splits: Option<Vec<(String, f64)>> = argument(&arguments, "split")?;
    if let Some(splits) = splits {
        let by = argument(&arguments, "split_by")?;
        let missing = argument(&arguments, "missing")?;
        options.split = Some(SplitOptions { splits, by, missing });
    }
    options.keep = argument(&arguments, "features")?;
    options.drop = argument(&arguments, "drop")?;
    options.kind = argument::<Choice<KindOption>>(&arguments, "kind")?.0;
    let compression: Option<Choice<Compression>> = argument(&arguments, "compression")?;
    options.compression = compression.map(|choice| choice.0);
    options.members = size_argument(&arguments, "members")?;
    options.memory = size_argument(&arguments, "memory")?;
    options.index = argument(&arguments, "index")?;
    options.threads = argument(&arguments, "threads")?;
    options.force = argument(&arguments, "force")?;
    let prepared: Option<PathBuf> = argument(&arguments, "prepared")?;
    if let Some(folder) = prepared {
        options.prepared = tools::prepared(&[folder], &options.out)?.map(Arc::new);
    }
    options.records = dataset.view_ids().map(|ids| ids.subset()).transpose()?;
    let opened = dataset.shared.dataset.clone();
    let progress = Progress::new(py, progress, "resharding", Unit::Bytes)?;
    let (report, warning) = wait::run(py, progress, false, move |call| {
        let mut skipped = (0, None);
        if opened.damage() == Damage::Skip && options.decodes() {
            let among = options.records.take();
            let decodes = tfseek_tools::decodable(&opened, options.kind, true, None, among.as_ref(), |e| {
                skipped = (skipped.0 + 1, skipped.1.take().or(Some(e)));
            });
            options.records = Some(decodes?);
        }
        let warning = skipped.1.map(|first| Warning::payloads_skipped(&first, skipped.0));
        Ok((tools::reshard(&opened, &options, &call.of_writing())?, warning))
    })?;
    warning::raise(py, warning.as_slice())?;
    let set = |set: ReshardSet| {
        let shards = set.shards.into_iter().map(OsString::from).collect();
        (set.split, set.path.into(), shards, set.records, set.bytes)
    };
    Ok((report.way.name(), report.sets.into_iter().map(set).collect()))
}
