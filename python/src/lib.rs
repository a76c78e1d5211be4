//! The native module of the Python package `tfseek`: the types of the Rust crate as Python objects. It adds
//! no semantics.
//!
//! NumPy arrays share memory that Rust owns ([`memory`]). Errors are the classes of `tfseek/_errors.py`
//! ([`error`]). Rust does not wait while it holds the GIL, and no thread of tfseek touches a Python object.
//! Long calls handle signals ([`wait`]). Filesystems of fsspec are called by threads of Python ([`calls`]).

// No input from a user causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod arrow_write;
mod buckets;
mod calls;
mod column;
mod columns;
mod command;
mod config;
mod dataset;
mod dense;
mod error;
mod example;
mod exit;
mod feature;
#[cfg(feature = "remote")]
mod fetch;
mod foreign;
mod forms;
mod fsspec;
mod get_many;
mod headroom;
mod hooks;
mod ids;
mod image;
mod index;
mod iter;
mod loader;
mod memory;
mod mix;
mod numpy;
mod open;
mod options;
mod order;
mod part;
mod payload;
mod ranges;
mod reading;
mod remote;
mod repeated;
mod reshard;
mod rlds;
mod rows;
mod scan;
mod schema;
mod sequence;
mod shared;
mod stats;
mod stream;
mod strings;
mod tasks;
mod tensor;
mod text;
mod tfds;
mod tfds_batch;
mod tfds_builder;
mod tfds_scan;
mod tfds_value;
mod unpack;
mod verify;
mod view;
mod wait;
mod warning;
mod writer;

use pyo3::prelude::*;

/// Panics, for the test that a panic raises a Python exception and does not end the process.
#[pyfunction]
#[allow(clippy::panic, reason = "the test needs a panic")]
fn _panic(py: Python<'_>, message: &str) {
    py.detach(|| panic!("{message}"))
}

/// The command alone, for the package `_tfseek_command`, which reads it from the same file: without NumPy.
#[pymodule(gil_used = false)]
fn _command(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(command::run, m)?)
}

/// The native module of the package `tfseek`.
#[pymodule(gil_used = false)]
fn _tfseek(m: &Bound<'_, PyModule>) -> PyResult<()> {
    memory::prepare(m.py())?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add_records(m)?;
    add_epochs(m)?;
    add_files(m)?;
    add_views(m)?;
    let at_exit = wrap_pyfunction!(exit::finish_streams, m)?;
    m.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

/// Adds records, data sets, and their values.
fn add_records(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<memory::ArrayMemory>()?;
    m.add_class::<schema::PySchema>()?;
    m.add_class::<example::PyExample>()?;
    m.add_class::<sequence::PySequenceExample>()?;
    m.add_class::<sequence::PyFeatureLists>()?;
    m.add_class::<dataset::PyDataset>()?;
    m.add_class::<iter::DatasetIterator>()?;
    m.add_class::<part::PyPart>()?;
    m.add_function(wrap_pyfunction!(text::no_such_name, m)?)?;
    m.add_function(wrap_pyfunction!(open::open, m)?)?;
    m.add_function(wrap_pyfunction!(schema::infer_schema, m)?)?;
    m.add_function(wrap_pyfunction!(index::build_index, m)?)?;
    m.add_function(wrap_pyfunction!(remote::shown_path, m)?)?;
    m.add_function(wrap_pyfunction!(remote::check_output, m)?)?;
    m.add_function(wrap_pyfunction!(dense::pad_rows, m)?)?;
    m.add_function(wrap_pyfunction!(dense::dense_from_sparse, m)?)?;
    m.add_function(wrap_pyfunction!(image::image_shape, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::parse_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::serialize_numbers, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::serialize_strings, m)?)
}

/// Adds loaders and samplers, and data sets of TensorFlow Datasets.
fn add_epochs(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<tfds::TfdsFeatures>()?;
    m.add_class::<tfds::TfdsDecoder>()?;
    m.add_class::<tfds_builder::TfdsBuilder>()?;
    m.add_class::<tfds_value::PySteps>()?;
    m.add_class::<rlds::EpisodesCore>()?;
    m.add_class::<rlds::WindowsCore>()?;
    m.add_class::<rlds::StatisticsCore>()?;
    m.add_function(wrap_pyfunction!(rlds::array_statistics, m)?)?;
    m.add_class::<loader::LoaderCore>()?;
    m.add_class::<order::SamplerCore>()?;
    m.add_function(wrap_pyfunction!(order::mixture_weights, m)?)?;
    m.add_class::<order::SamplerIterator>()?;
    m.add_class::<loader::StepInfo>()?;
    m.add_class::<loader::TakenStep>()
}

/// Adds what reads, checks and writes whole files.
fn add_files(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<scan::ScanCore>()?;
    m.add_class::<tfds_scan::NestedSpec>()?;
    m.add_function(wrap_pyfunction!(scan::arrow_spec, m)?)?;
    m.add_function(wrap_pyfunction!(scan::raise_if_error, m)?)?;
    m.add_class::<stream::StreamCore>()?;
    m.add_class::<stream::StreamIterator>()?;
    m.add_class::<stream::StreamBatches>()?;
    m.add_class::<writer::PyWriter>()?;
    m.add_function(wrap_pyfunction!(unpack::unpack, m)?)?;
    m.add_class::<stats::FoundStatistics>()?;
    m.add_function(wrap_pyfunction!(stats::stats, m)?)?;
    m.add_function(wrap_pyfunction!(stats::save_stats, m)?)?;
    m.add_function(wrap_pyfunction!(verify::verify, m)?)?;
    m.add_class::<calls::CallQueue>()?;
    #[cfg(feature = "remote")]
    m.add_function(wrap_pyfunction!(fetch::fetch, m)?)?;
    m.add_function(wrap_pyfunction!(reshard::fits_memory, m)?)?;
    m.add_function(wrap_pyfunction!(reshard::prepared_shards, m)?)?;
    m.add_function(wrap_pyfunction!(reshard::reshard, m)?)?;
    m.add_function(wrap_pyfunction!(arrow_write::write_stream, m)?)?;
    m.add_function(wrap_pyfunction!(arrow_write::write_data_set, m)?)?;
    m.add_class::<tasks::TaskWriterCore>()?;
    m.add_function(wrap_pyfunction!(tasks::check_job, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::file_ending, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::write_task, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::commit_tasks, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::abort_tasks, m)?)
}

/// Adds the viewer and the command.
fn add_views(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<view::ViewCore>()?;
    m.add_function(wrap_pyfunction!(view::view, m)?)?;
    m.add_function(wrap_pyfunction!(view::stats_html, m)?)?;
    m.add_function(wrap_pyfunction!(view::page_font, m)?)?;
    m.add_function(wrap_pyfunction!(view::size_text, m)?)?;
    m.add_function(wrap_pyfunction!(view::brief, m)?)?;
    m.add_function(wrap_pyfunction!(view::shown_image, m)?)?;
    m.add_function(wrap_pyfunction!(command::run, m)?)?;
    m.add_function(wrap_pyfunction!(_panic, m)?)
}
