//! `tfseek.stats`: statistics of records and features, with the rules of the command `tfseek stats`.

use crate::dataset::PyDataset;
use crate::error::{BindingError, Result};
use crate::options::{Choice, KindOption, Seed, argument};
use crate::reading::{self, Resolved, bytes_of};
use crate::remote::{StorageOptions, check_output};
use crate::shared::is_remote;
use crate::wait::{self, CallState, Progress, Unit};
use crate::warning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::index::IndexOptions;
use tfseek::io::{Existing, Output};
use tfseek::stream::StreamOptions;
use tfseek::{Damage, Dataset, DatasetOptions, Error};
use tfseek_tools::ToolsError;
use tfseek_tools::stats::{Statistics, StatsOptions, TableStyle};

/// Writes saved statistics to a file as the command does: whole or not at all, with the mode of an existing
/// file, and to the target of a link.
#[pyfunction]
pub(crate) fn save_stats(py: Python<'_>, path: PathBuf, saved: &str) -> Result<()> {
    check_output(py, path.clone())?;
    py.detach(|| {
        let mut output = Output::open(&path, Existing::Replace)?;
        output.write_all(saved.as_bytes())?;
        output.commit()
    })
    .map_err(|e| Error::from(e).in_file(&path).into())
}

/// Source of the records.
#[derive(FromPyObject)]
pub(crate) enum StatsInput<'py> {
    Dataset(PyRef<'py, PyDataset>),
    Paths(Vec<OsString>),
}

/// A name of a feature that no record has, and the nearest one that a record has.
type Absent = (String, Option<String>);

/// Statistics that were found. Their sketches are written as text when they are saved.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct FoundStatistics(Statistics);

#[pymethods]
impl FoundStatistics {
    /// Returns the text to save.
    fn saved(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.save())
    }

    /// Returns the statistics as HTML for a notebook.
    fn html(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| tfseek_view::stats_html(&self.0.json()))
    }
}

/// Returns statistics as JSON, as a table, and with their sketches, and the names among `features` that no
/// record has. `arguments` contains the other arguments of `tfseek.stats`.
#[pyfunction]
pub(crate) fn stats(
    py: Python<'_>,
    source: StatsInput<'_>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<(String, String, FoundStatistics, Vec<Absent>)> {
    let features: Vec<String> = argument(arguments, "features")?;
    let by: Option<String> = argument(arguments, "by")?;
    let Choice::<KindOption>(kind) = argument(arguments, "kind")?;
    let Choice::<Damage>(damage) = argument(arguments, "damage")?;
    let Seed(seed) = argument(arguments, "seed")?;
    let sample = argument::<Option<u64>>(arguments, "sample")?.map(|n| (n, seed));
    let storage = StorageOptions::take(arguments)?;
    let defaults = StatsOptions::default();
    let options = StatsOptions {
        features: features.clone(),
        by: by.clone(),
        kind: kind.given(),
        damage,
        memory: argument::<Option<u64>>(arguments, "memory")?.unwrap_or(defaults.memory),
        threads: argument(arguments, "threads")?,
        ..defaults
    };
    // The warnings of a dataset were raised when it was opened.
    let is_paths = matches!(source, StatsInput::Paths(_));
    let stats = match source {
        StatsInput::Dataset(ds) => {
            let dataset = ds.shared.dataset.clone();
            let ids = (!ds.ids.is_all(dataset.len())).then(|| ds.ids.iter().collect::<Vec<u64>>());
            let len = ds.ids.len();
            let progress = Progress::new(py, progress, "reading", Unit::Records)?;
            wait::run(py, progress, move |call| {
                call.may_request(is_remote(&dataset));
                call.expect(Some(sample.map_or(len, |(n, _)| n.min(len))));
                Ok(of_dataset(&options, (&dataset, ids.as_deref()), sample, &call.callback()))
            })
        }
        StatsInput::Paths(paths) => {
            let progress = Progress::new(py, progress, "reading", Unit::Bytes)?;
            let resolved = reading::resolve(py, paths, false, storage)?;
            wait::run(py, progress, move |call| of_paths(&options, resolved, sample, call))
        }
    }?;
    let refused = |e| match e {
        ToolsError::Error(e) => e.into(),
        e => BindingError::error(py, e.to_string()),
    };
    let stats = stats.map_err(refused)?;
    if is_paths {
        warning::raise(py, &stats.warnings)?;
    }
    if let Some(by) = &by
        && let Err(near) = stats.check_feature(by)
    {
        let near = near.map_or_else(String::new, |near| format!("; the nearest name is {near:?}"));
        return Err(BindingError::error(py, format!("by: no record has the feature {by:?}{near}")));
    }
    let names = features.into_iter().filter(|name| !name.contains(['*', '?']));
    let absent = names.filter_map(|name| {
        let near = stats.check_feature(&name).err()?.map(str::to_owned);
        Some((name, near))
    });
    let absent = absent.collect();
    Ok((stats.json(), stats.table(&TableStyle::default()), FoundStatistics(stats), absent))
}

fn of_dataset(
    options: &StatsOptions,
    (dataset, ids): (&Dataset, Option<&[u64]>),
    sample: Option<(u64, u64)>,
    report: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<Statistics, ToolsError> {
    options.run_dataset(dataset, ids, sample, &|records| match report(records) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::from(std::io::Error::other("cancelled"))),
    })
}

fn of_paths(
    options: &StatsOptions,
    (paths, store): Resolved,
    sample: Option<(u64, u64)>,
    call: &Arc<CallState>,
) -> Result<Result<Statistics, ToolsError>> {
    call.may_request(store.is_some());
    call.expect(bytes_of(&paths));
    let report = call.callback();
    if sample.is_some() {
        let opened = DatasetOptions::new().index(IndexOptions::new().damage(options.damage));
        let opened = match store {
            Some(store) => opened.store(store),
            None => opened,
        };
        let dataset = opened.open(&paths)?;
        return Ok(of_dataset(options, (&dataset, None), sample, &|_| report(0)));
    }
    let streams = StreamOptions { damage: options.damage, store, ..StreamOptions::default() };
    let open = |path: &PathBuf| streams.open_with(path, report.clone());
    Ok(options.run(&paths, &open))
}
