//! `tfseek.fetch`: copies shards from a store, with the rules of the command `tfseek fetch`.

use crate::error::{BindingError, Result};
use crate::options::argument;
use crate::remote::StorageOptions;
use crate::wait::{self, Progress, Unit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tfseek::Filter;
use tfseek_tools::ToolsError;
use tfseek_tools::fetch::{FetchOptions, FetchPlan};

/// Copies objects to a folder, and returns the report. `tfseek.fetch` calls it and has the documentation.
#[pyfunction]
pub(crate) fn fetch<'py>(
    py: Python<'py>,
    arguments: &Bound<'py, PyDict>,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyDict>> {
    let url: PathBuf = argument(arguments, "url")?;
    let store = StorageOptions::take(arguments)?.store(std::slice::from_ref(&url))?;
    let (Some(store), Some(url)) = (store, url.to_str()) else {
        let message = "url: expected a URL such as s3://bucket/train-*, found a local path";
        return Err(BindingError::value_error(message));
    };
    let mut options = FetchOptions::new(store, url, argument::<PathBuf>(arguments, "folder")?);
    options.split = argument(arguments, "split")?;
    let condition: Option<String> = argument(arguments, "where")?;
    options.filter = condition.map(|condition| condition.parse::<Filter>()).transpose()?;
    options.keep_damaged = argument(arguments, "keep_damaged")?;
    let progress = Progress::new(py, progress, "fetching", Unit::Bytes)?;
    let report = wait::run(py, progress, false, move |call| {
        let plan = FetchPlan::new(&options)?;
        Ok(plan.run(&call.of_writing())?)
    })?;
    let result = PyDict::new(py);
    result.set_item("files", report.files)?;
    result.set_item("records", report.records)?;
    result.set_item("bytes", report.bytes)?;
    result.set_item("fetched_bytes", report.fetched)?;
    result.set_item("requests", report.requests)?;
    result.set_item("found_bytes", report.found)?;
    let texts = |all: &[ToolsError]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    result.set_item("damaged", texts(&report.damaged))?;
    result.set_item("kept", texts(&report.kept))?;
    result.set_item("begun_again", report.begun_again)?;
    result.set_item("left", report.left)?;
    result.set_item("unseen", report.unseen)?;
    Ok(result)
}
