//! The configuration of a loader, from which a forked child rebuilds it.

use crate::buckets::{BucketArguments, BucketSizes};
use crate::columns;
use crate::error::{BindingError, Result};
use crate::forms::SharedForms;
use crate::ids::Ids;
use crate::mix::LoaderSources;
use crate::options::{Choice, FeatureName, LoaderVerify, Seed, extracted};
use crate::strings::BytesAs;
use crate::tfds_batch::Nesting;
use crate::wait::{self, CallState, Progress};
use crate::weights::WeightsBy;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use tfseek::batch::Batch;
use tfseek::column::ColumnOptions;
use tfseek::loader::Shuffle;
use tfseek::order::Spec;
use tfseek::{Dataset, LoaderOptions, Warning};

/// The options of a loader, and the form of its batches in Python.
pub(crate) struct LoaderConfig {
    options: LoaderOptions,
    /// The warnings of the column of ``balance``, ``bucket_by`` or ``weights``.
    pub(crate) warnings: Vec<Warning>,
    is_sequence: bool,
    /// The loader is of a mix.
    pub(crate) is_mix: bool,
    is_remote: bool,
    /// Number of the first record of each source.
    pub(crate) starts: Arc<[u64]>,
    bytes_as: BytesAs,
    /// Columns of pictures without a common size.
    pictures: BTreeSet<String>,
    /// Dicts around columns.
    nesting: Option<Nesting>,
    forms: SharedForms,
    /// Fingerprint of all records, after its first use.
    fingerprint: OnceLock<String>,
}

impl LoaderConfig {
    /// Creates the configuration from these arguments. Takes long if a column must be built.
    pub(crate) fn new(
        py: Python<'_>,
        sources: LoaderSources,
        bytes_as: BytesAs,
        mut arguments: LoaderArguments<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<LoaderConfig> {
        let contiguous = match bytes_as {
            BytesAs::Views => false,
            bytes_as => bytes_as.is_contiguous() || sources.has_small_records(),
        };
        let is_sequence = sources.is_sequence();
        let source = sources.single();
        let starts = sources.starts().collect();
        let pictures = sources.pictures_of_any_size();
        let nesting = sources.nesting(py)?;
        let is_remote = sources.is_remote();
        let options = wait::run(py, None, is_remote, move |_| sources.options(contiguous))?;
        let buckets = arguments.take_buckets()?;
        let options = arguments.apply(options, buckets.is_some())?;
        let balance: Option<FeatureName> = arguments.take("balance")?;
        let weights: Option<WeightsBy> = arguments.take("weights")?;
        arguments.finish()?;
        let is_mix = source.is_none();
        let (options, warnings) = wait::run(py, progress, is_remote, move |call: &Arc<CallState>| {
            with_columns(options, &source, (buckets, balance, weights), call)
        })?;
        Ok(LoaderConfig {
            options,
            warnings,
            is_sequence,
            is_mix,
            is_remote,
            starts,
            bytes_as,
            pictures,
            nesting,
            forms: SharedForms::default(),
            fingerprint: OnceLock::new(),
        })
    }

    /// Converts a batch of the loader.
    pub(crate) fn batch<'py>(&self, py: Python<'py>, batch: &Batch) -> PyResult<Bound<'py, PyAny>> {
        let found = columns::batch(py, batch, self.is_sequence, false, self.bytes_as, Some(&self.forms))?;
        columns::list_pictures(&found, self.is_sequence, &self.pictures)?;
        match &self.nesting {
            Some(nesting) => Ok(nesting.nested(py, found.cast()?)?.into_any()),
            None => Ok(found),
        }
    }

    /// Returns the fingerprint of saved states. The first call opens the shards of a pack. It handles
    /// signals, and does not hold the loader's lock.
    pub(crate) fn fingerprint(&self, py: Python<'_>) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let options = self.options.clone();
        let fingerprint = wait::run(py, None, self.is_remote, move |_| Ok(options.fingerprint()?))?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Builds the loader.
    pub(crate) fn build(&self, py: Python<'_>) -> Result<tfseek::Loader> {
        let options = self.options.clone();
        wait::run(py, None, self.is_remote, move |_| Ok(options.build()?))
    }
}

/// Returns the options with the columns of `bucket_by`, `balance` and `weights`, and the columns' warnings.
fn with_columns(
    mut options: LoaderOptions,
    source: &Option<(Dataset, Option<Ids>)>,
    (buckets, balance, weights): (Option<BucketArguments>, Option<FeatureName>, Option<WeightsBy>),
    call: &Arc<CallState>,
) -> Result<(LoaderOptions, Vec<Warning>)> {
    let columns = ColumnOptions { progress: Some(Arc::new(call.callback())), ..ColumnOptions::default() };
    let source_of = |option: &str| {
        let mix = || BindingError::value_error(format!("{option}: expected a dataset, found a mix"));
        source.as_ref().ok_or_else(mix)
    };
    let mut warnings = Vec::new();
    if let Some(buckets) = buckets {
        let (source, view) = source_of("bucket_by")?;
        let counts = |feature| {
            call.expect(source.known_bytes());
            source.value_counts(feature, &columns)
        };
        let column = buckets.feature().map(counts).transpose()?;
        warnings = column.iter().flat_map(|column| column.warnings.clone()).collect();
        let view = view.as_ref().map(Ids::subset).transpose()?;
        options = options.buckets(buckets.buckets(column.as_ref(), view.as_ref())?);
    }
    if let Some(feature) = balance {
        let (source, _) = source_of("balance")?;
        call.expect(source.known_bytes());
        let column = source.column(&feature, &columns)?;
        options = options.balance(&column)?;
        warnings = column.warnings.clone();
    }
    if let Some(weights) = weights {
        let (source, view) = source_of("weights")?;
        let column = |feature| {
            call.expect(source.known_bytes());
            source.column(feature, &columns)
        };
        let column = weights.feature().map(column).transpose()?;
        warnings.extend(column.iter().flat_map(|column| column.warnings.clone()));
        let view = view.as_ref().map(Ids::subset).transpose()?;
        let weights = weights.weights(column.as_ref(), view.as_ref())?;
        options = options.shuffle(Shuffle::Order(Spec::Weighted(weights)));
    }
    Ok((options, warnings))
}

/// Keyword arguments for the options of a loader. `None`: the default.
pub(crate) struct LoaderArguments<'py>(Bound<'py, PyDict>);

impl<'py> LoaderArguments<'py> {
    pub(crate) fn new(arguments: &Bound<'py, PyDict>) -> PyResult<LoaderArguments<'py>> {
        Ok(LoaderArguments(arguments.copy()?))
    }

    /// Applies these arguments to `options`. The only table of names and setters. Buckets have batch sizes of
    /// their own.
    pub(crate) fn apply(&mut self, options: LoaderOptions, buckets: bool) -> Result<LoaderOptions> {
        let sizes = ["batch_size", "global_batch_size"].map(|name| self.is_given(name));
        if !buckets && (sizes == [true; 2] || sizes == [false; 2]) {
            let message = "a loader requires exactly one of batch_size and global_batch_size";
            return Err(BindingError::value_error(message));
        }
        let rank = self.take("rank")?.unwrap_or(0);
        let ranks = self.take("world_size")?.unwrap_or(1);
        let worker = self.take("worker")?.unwrap_or(0);
        let workers = self.take("workers")?.unwrap_or(1);
        let mut options = options.rank(rank, ranks).worker(worker, workers);
        options = self.set(options, "batch_size", LoaderOptions::batch_size)?;
        options = self.set(options, "global_batch_size", LoaderOptions::global_batch_size)?;
        options = self.set(options, "shuffle", |options, Choice(shuffle)| options.shuffle(shuffle))?;
        options = self.set(options, "block_bytes", LoaderOptions::block_bytes)?;
        options = self.set(options, "seed", |options, Seed(seed)| options.seed(seed))?;
        options = self.set(options, "epoch", LoaderOptions::epoch)?;
        options = self.set(options, "last_batch", |options, Choice(last)| options.last_batch(last))?;
        options = options.threads(self.take::<usize>("threads")?);
        options = self.set(options, "batches_ahead", LoaderOptions::batches_ahead)?;
        options = self.set(options, "memory", LoaderOptions::memory)?;
        options = self.set(options, "look_ahead", LoaderOptions::look_ahead)?;
        options = self.set(options, "verify", |options, Choice(LoaderVerify(first_epoch, later))| {
            options.verify(first_epoch, later)
        })?;
        options = self.set(options, "damage", |options, Choice(damage)| options.damage(damage))?;
        options = self.set(options, "repeat", LoaderOptions::repeat)?;
        Ok(options)
    }

    /// Takes the arguments of buckets, if there are any.
    fn take_buckets(&mut self) -> Result<Option<BucketArguments>> {
        let Some(by) = self.take("bucket_by")? else { return Ok(None) };
        let boundaries = self.take("boundaries")?.unwrap_or_default();
        let sizes = [
            self.take("batch_size")?.map(BucketSizes::PerRank),
            self.take("global_batch_size")?.map(BucketSizes::Global),
            self.take("tokens_per_batch")?.map(BucketSizes::Tokens),
        ];
        let mut sizes = sizes.into_iter().flatten();
        let (Some(sizes), None) = (sizes.next(), sizes.next()) else {
            let message =
                "bucket_by requires exactly one of batch_size, global_batch_size and tokens_per_batch";
            return Err(BindingError::value_error(message));
        };
        let ranks = self.get("world_size")?.unwrap_or(1);
        Ok(Some(BucketArguments { by, boundaries, sizes, ranks }))
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

    /// Returns the value of an argument.
    fn get<T>(&self, name: &str) -> Result<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.0.get_item(name)? else { return Ok(None) };
        if value.is_none() {
            return Ok(None);
        }
        Ok(Some(extracted(&value, name)?))
    }

    /// Removes an argument and returns its value.
    fn take<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let value = self.get(name)?;
        if self.0.contains(name)? {
            self.0.del_item(name)?;
        }
        Ok(value)
    }

    /// Returns an error for an unknown argument.
    pub(crate) fn finish(self) -> Result<()> {
        let Some(name) = self.0.keys().iter().next() else { return Ok(()) };
        Err(BindingError::type_error(format!("a loader has no option {}", name.repr()?)))
    }
}
