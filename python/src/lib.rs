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
mod value;
mod verify;
mod view;
mod wait;
mod warning;
mod weights;
mod writer;

use pyo3::prelude::*;

/// The command alone, for the package `_tfseek_command`, which reads it from the same file: without NumPy.
#[pymodule(gil_used = false)]
fn _command(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(command::run, m)?)
}

/// The native module of the package `tfseek`.
#[pymodule(gil_used = false)]
mod _tfseek {
    #[cfg(feature = "remote")]
    #[pymodule_export]
    use crate::fetch::fetch;
    #[pymodule_export]
    use crate::{
        arrow_write::{write_data_set, write_stream},
        calls::CallQueue,
        command::run,
        dataset::PyDataset,
        dense::{dense_from_sparse, pad_rows},
        example::PyExample,
        image::image_shape,
        index::build_index,
        iter::DatasetIterator,
        loader::{LoaderCore, StepInfo, TakenStep},
        memory::ArrayMemory,
        open::open,
        order::{SamplerCore, SamplerIterator, mixture_weights},
        part::PyPart,
        remote::{check_output, shown_path},
        reshard::{fits_memory, prepared_shards, reshard},
        rlds::{EpisodesCore, StatisticsCore, WindowsCore, array_statistics},
        scan::{ScanCore, arrow_spec, raise_if_error},
        schema::{PySchema, infer_schema},
        sequence::{PyFeatureLists, PySequenceExample},
        stats::{FoundStatistics, stats},
        stream::{StreamBatches, StreamCore, StreamIterator},
        tasks::{TaskWriterCore, abort_tasks, check_job, commit_tasks, file_ending, write_task},
        tensor::{parse_tensor, serialize_numbers, serialize_strings},
        text::no_such_name,
        tfds::{TfdsDecoder, TfdsFeatures},
        tfds_builder::TfdsBuilder,
        tfds_scan::NestedSpec,
        tfds_value::PySteps,
        unpack::unpack,
        verify::verify,
        view::{ViewCore, brief, page_font, shown_image, size_text, view},
        writer::PyWriter,
    };
    use pyo3::prelude::*;

    /// Panics, for the test that a panic raises a Python exception and does not end the process.
    #[pyfunction]
    #[allow(clippy::panic, reason = "the test needs a panic")]
    fn _panic(py: Python<'_>, message: &str) {
        py.detach(|| panic!("{message}"))
    }

    #[pymodule_init]
    fn prepare(m: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::memory::prepare(m.py())?;
        m.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let at_exit = wrap_pyfunction!(crate::exit::finish_streams, m)?;
        m.py().import("atexit")?.call_method1("register", (at_exit,))?;
        Ok(())
    }
}
