//! `tfseek.stats`: statistics of records and features, with the rules of the command `tfseek stats`.

use crate::dataset::PyDataset;
use crate::error::{BindingError, Result};
use crate::options::{Choice, KindOption, Seed, argument};
use crate::reading::{self, Resolved, bytes_of};
use crate::remote::{StorageOptions, check_output};
use crate::value;
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

/// Source of the records.
#[derive(FromPyObject)]
pub(crate) enum StatsInput<'py> {
    Dataset(PyRef<'py, PyDataset>),
    Paths(Vec<OsString>),
}

/// Statistics that were found. Their sketches are written as text when they are saved or pickled.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct FoundStatistics(Statistics);

#[pymethods]
impl FoundStatistics {
    /// Reads the text of a pickle.
    #[new]
    fn new(py: Python<'_>, saved: &str) -> Result<FoundStatistics> {
        let found = py.detach(|| Statistics::from_saved(saved));
        found.map(FoundStatistics).map_err(|e| BindingError::Text(e.to_string()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, FoundStatistics>) -> (Bound<'py, PyAny>, (String,)) {
        let found = slf.get();
        (slf.get_type().into_any(), (slf.py().detach(|| found.0.save()),))
    }

    /// Returns the statistics. `make` is called with each dict of fields.
    fn fields<'py>(&self, make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let report = make.py().detach(|| self.0.report());
        value::object(make, report)
    }

    /// Writes the statistics to a file as the command does: whole or not at all, with the mode of an existing
    /// file, and to the target of a link.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        check_output(path.clone())?;
        py.detach(|| {
            let saved = self.0.save();
            let mut output = Output::open(&path, Existing::Replace)?;
            output.write_all(saved.as_bytes())?;
            output.commit()
        })
        .map_err(|e| Error::from(e).in_file(&path).into())
    }

    /// Returns the statistics as HTML for a notebook.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| tfseek_view::stats_html(&self.0))
    }
}

/// Returns statistics as a table and with their sketches, and raises warnings about names among `features`
/// that no record has. `arguments` contains the other arguments of `tfseek.stats`.
#[pyfunction]
pub(crate) fn stats(
    py: Python<'_>,
    source: StatsInput<'_>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<(String, FoundStatistics)> {
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
        kind,
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
            wait::run(py, progress, ds.shared.is_remote, move |call| {
                call.expect(Some(sample.map_or(len, |(n, _)| n.min(len))));
                Ok(of_dataset(&options, (&dataset, ids.as_deref()), sample, &call.callback()))
            })
        }
        StatsInput::Paths(paths) => {
            let progress = Progress::new(py, progress, "reading", Unit::Bytes)?;
            let resolved = reading::resolve(py, paths, false, storage)?;
            let requests = resolved.1.is_some();
            wait::run(py, progress, requests, move |call| of_paths(&options, resolved, sample, call))
        }
    }?;
    let refused = |e| match e {
        ToolsError::Error(e) => e.into(),
        e => BindingError::Text(e.to_string()),
    };
    let stats = stats.map_err(refused)?;
    if is_paths {
        warning::raise(py, &stats.warnings)?;
    }
    if let Some(by) = &by
        && let Err(near) = stats.check_feature(by)
    {
        let near = near.map_or_else(String::new, |near| format!("; the nearest name is {near:?}"));
        return Err(BindingError::Text(format!("by: no record has the feature {by:?}{near}")));
    }
    for name in features.iter().filter(|name| !name.contains(['*', '?'])) {
        if let Err(near) = stats.check_feature(name) {
            warning::raise_absent(py, name, near)?;
        }
    }
    Ok((stats.table(&TableStyle::default()), FoundStatistics(stats)))
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
