//! The native half of the Python package `tfseek`: what the Rust crate offers, as Python objects. It adds no meaning of its own.
//!
//! Arrays are NumPy's, over memory that Rust owns ([`memory`]); errors are the classes of `tfseek/_errors.py` ([`failure`]).
//! Nothing in Rust waits for anything while it holds the interpreter's lock, no thread of ours touches a Python object, and signals
//! are heard ([`wait`]).

// Nothing that a user gives ends in a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod column;
mod columns;
mod command;
mod dataset;
mod example;
mod failure;
mod feature;
mod hooks;
mod ids;
mod index;
mod iter;
mod loader;
mod memory;
mod numpy;
mod open;
mod order;
mod payload;
mod recipe;
mod rows;
mod schema;
mod sequence;
mod shared;
mod tensor;
mod wait;
mod warning;
mod words;
mod writer;

use pyo3::prelude::*;

/// A panic, for the test that one is an exception in Python and never the end of the process.
#[pyfunction]
#[allow(clippy::panic, reason = "it is what the test asks for")]
fn _panic(py: Python<'_>, message: &str) {
    py.detach(|| panic!("{message}"))
}

/// The native half of the package `tfseek`.
#[pymodule(gil_used = false)]
fn _tfseek(m: &Bound<'_, PyModule>) -> PyResult<()> {
    memory::prepare(m.py())?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<memory::Memory>()?;
    m.add_class::<schema::Schema>()?;
    m.add_class::<example::Example>()?;
    m.add_class::<sequence::SequenceExample>()?;
    m.add_class::<sequence::FeatureLists>()?;
    m.add_class::<dataset::Dataset>()?;
    m.add_class::<iter::DatasetIterator>()?;
    m.add_class::<loader::Loader>()?;
    m.add_class::<order::SamplerCore>()?;
    m.add_class::<order::SamplerIterator>()?;
    m.add_class::<loader::Delivered>()?;
    m.add_class::<writer::Writer>()?;
    m.add_class::<warning::Warning>()?;
    m.add_function(wrap_pyfunction!(open::open, m)?)?;
    m.add_function(wrap_pyfunction!(schema::infer_schema, m)?)?;
    m.add_function(wrap_pyfunction!(index::build_index, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::parse_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::serialize_numbers, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::serialize_strings, m)?)?;
    m.add_function(wrap_pyfunction!(command::run, m)?)?;
    m.add_function(wrap_pyfunction!(_panic, m)?)?;
    Ok(())
}
