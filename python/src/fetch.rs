//! `tfseek.fetch`: copies shards from a store, with the rules of the command `tfseek fetch`.

use crate::error::{BindingError, Result};
use crate::options::argument;
use crate::remote::StorageOptions;
use crate::reshard;
use crate::wait::{self, Progress, Unit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tfseek::Filter;
use tfseek_tools::ToolsError;
use tfseek_tools::fetch::{FetchOptions, FetchPlan, FetchReport};

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
        return Err(BindingError::Python(PyValueError::new_err(message)));
    };
    let mut options = FetchOptions::new(store, url, argument::<PathBuf>(arguments, "folder")?);
    options.split = argument(arguments, "split")?;
    let condition: Option<String> = argument(arguments, "where")?;
    options.filter = condition.map(|condition| condition.parse::<Filter>()).transpose()?;
    options.keep_damaged = argument(arguments, "keep_damaged")?;
    let progress = Progress::new(py, progress, "fetching", Unit::Bytes)?;
    let report = wait::run(py, progress, move |call| {
        Ok(FetchPlan::new(&options).and_then(|plan| plan.run(&call.of_writing())))
    })?;
    let FetchReport {
        files,
        records,
        bytes,
        fetched,
        requests,
        found,
        damaged,
        kept,
        begun_again,
        left,
        unseen,
        ..
    } = report.map_err(|e| reshard::failure(py, e))?;
    let result = PyDict::new(py);
    for (name, count) in [
        ("files", files),
        ("records", records),
        ("bytes", bytes),
        ("fetched_bytes", fetched),
        ("requests", requests),
        ("found_bytes", found),
    ] {
        result.set_item(name, count)?;
    }
    let texts = |all: &[ToolsError]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    result.set_item("damaged", texts(&damaged))?;
    result.set_item("kept", texts(&kept))?;
    result.set_item("begun_again", begun_again)?;
    result.set_item("left", left)?;
    result.set_item("unseen", unseen)?;
    Ok(result)
}
