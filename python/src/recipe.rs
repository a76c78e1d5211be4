//! The options of a loader: enough to make it again, in a forked child.

use crate::columns::BytesAs;
use crate::dataset::{self, Dataset};
use crate::failure::{Failure, Result};
use crate::schema::Schema;
use crate::wait::{self, Meter, Progress};
use crate::words::{Name, Seed, Word};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, OnceLock};
use tfseek::column::ColumnOptions;
use tfseek::{BatchParser, LoaderOptions};

/// Bytes of a record that are copied twice without harm.
const SMALL: u64 = 16 << 10;

/// The options of a loader, and how its batches become objects of Python.
pub(crate) struct Recipe {
    dataset: tfseek::Dataset,
    options: LoaderOptions,
    is_sequence: bool,
    bytes_as: BytesAs,
    /// The dataset's, once it was asked for.
    fingerprint: OnceLock<String>,
}

impl Recipe {
    /// The recipe for these arguments. Takes long where a column has to be built.
    pub(crate) fn new(
        py: Python<'_>,
        dataset: &Dataset,
        schema: Option<&Schema>,
        bytes_as: BytesAs,
        mut arguments: Arguments<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<Recipe> {
        let ids = dataset.view_ids();
        let dataset = dataset.shared.dataset.clone();
        let options = match schema {
            Some(schema) => {
                let schema = schema.schema();
                let contiguous = bytes_as == BytesAs::Offsets || has_small_records(&dataset);
                dataset.loader(schema).parser(BatchParser::new(schema).contiguous_bytes(contiguous))
            }
            None => dataset.record_loader(),
        };
        let mut options = arguments.apply(options)?;
        let balance: Option<Name> = arguments.take("balance")?;
        arguments.finish()?;
        let is_sequence = schema.is_some_and(|schema| schema.schema().is_sequence());
        let of = dataset.clone();
        let options = wait::run(py, progress, move |meter: &Arc<Meter>| {
            if let Some(ids) = ids {
                options = options.select(ids.subset()?);
            }
            if let Some(feature) = balance {
                meter.expect(of.known_bytes());
                let columns = ColumnOptions::new().progress(meter.callback());
                options = options.balance(&of.column(&feature, &columns)?.classes()?);
            }
            Ok(options)
        })?;
        Ok(Recipe { dataset, options, is_sequence, bytes_as, fingerprint: OnceLock::new() })
    }

    pub(crate) fn is_sequence(&self) -> bool {
        self.is_sequence
    }

    pub(crate) fn bytes_as(&self) -> BytesAs {
        self.bytes_as
    }

    /// The dataset's fingerprint. Opens the shards of a pack: without the lock of the loader, and signals are handled meanwhile.
    pub(crate) fn fingerprint(&self, py: Python<'_>) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = dataset::fingerprint(py, &self.dataset)?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Makes the loader.
    pub(crate) fn build(&self, py: Python<'_>) -> Result<tfseek::Loader> {
        let options = self.options.clone();
        wait::run(py, None, move |_| Ok(options.build()?))
    }
}

/// Returns true if byte strings are better copied together by the threads that parse, while records are in the cache, than looked up
/// in the records by the thread that makes objects of them.
fn has_small_records(dataset: &tfseek::Dataset) -> bool {
    dataset.known_bytes().is_some_and(|bytes| bytes / dataset.len().max(1) < SMALL)
}

/// Keyword arguments for a loader's options. `None` stands for the default.
pub(crate) struct Arguments<'py>(Bound<'py, PyDict>);

impl<'py> Arguments<'py> {
    pub(crate) fn new(arguments: &Bound<'py, PyDict>) -> PyResult<Arguments<'py>> {
        Ok(Arguments(arguments.copy()?))
    }

    /// The options with these arguments: the one table of names and setters.
    pub(crate) fn apply(&mut self, options: LoaderOptions) -> Result<LoaderOptions> {
        let sizes = ["batch_size", "global_batch_size"].map(|name| self.is_given(name));
        if sizes == [true; 2] || sizes == [false; 2] {
            return Err(value_error("a loader takes batch_size or global_batch_size, one of them"));
        }
        let (rank, ranks) = (self.take("rank")?.unwrap_or(0), self.take("world_size")?.unwrap_or(1));
        let (worker, workers) = (self.take("worker")?.unwrap_or(0), self.take("workers")?.unwrap_or(1));
        let mut options = options.rank(rank, ranks).worker(worker, workers);
        options = self.set(options, "batch_size", LoaderOptions::batch_size)?;
        options = self.set(options, "global_batch_size", LoaderOptions::global_batch_size)?;
        options = self.set(options, "shuffle", |options, Word(shuffle)| options.order(shuffle))?;
        options = self.set(options, "seed", |options, Seed(seed)| options.seed(seed))?;
        options = self.set(options, "epoch", LoaderOptions::epoch)?;
        options = self.set(options, "tail", |options, Word(last)| options.last_batch(last))?;
        options = self.set(options, "threads", LoaderOptions::threads)?;
        options = self.set(options, "batches_ahead", LoaderOptions::batches_ahead)?;
        options = self.set(options, "memory", LoaderOptions::memory)?;
        options = self.set(options, "look_ahead", LoaderOptions::look_ahead)?;
        options = self.set(options, "verify", |options, Word(verify)| options.verify(verify))?;
        options = self.set(options, "errors", |options, Word(policy)| options.errors(policy))?;
        options = self.set(options, "repeat", LoaderOptions::repeat)?;
        Ok(options)
    }

    /// Sets an option if its argument is given.
    fn set<T>(
        &mut self,
        options: LoaderOptions,
        name: &str,
        set: impl FnOnce(LoaderOptions, T) -> LoaderOptions,
    ) -> Result<LoaderOptions>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        Ok(match self.take(name)? {
            Some(value) => set(options, value),
            None => options,
        })
    }

    fn is_given(&self, name: &str) -> bool {
        self.0.get_item(name).is_ok_and(|value| value.is_some_and(|value| !value.is_none()))
    }

    /// Removes an argument and returns its value.
    fn take<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.0.get_item(name)? else { return Ok(None) };
        self.0.del_item(name)?;
        match value.is_none() {
            true => Ok(None),
            false => Ok(Some(value.extract::<T>().map_err(Into::<PyErr>::into)?)),
        }
    }

    /// Refuses arguments that were not taken.
    pub(crate) fn finish(self) -> Result<()> {
        let Some(name) = self.0.keys().iter().next() else { return Ok(()) };
        let message = format!("a loader has no option {}", name.repr()?);
        Err(Failure::Python(PyTypeError::new_err(message)))
    }
}

pub(crate) fn value_error(message: impl Into<String>) -> Failure {
    Failure::Python(PyValueError::new_err(message.into()))
}
