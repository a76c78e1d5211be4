//! Prepared data sets of `tfseek.tfds`: a folder, and the records of its splits.

use crate::dataset::PyDataset;
use crate::error::Result;
use crate::ids::Ids;
use crate::open;
use crate::options::{Choice, ReadMode, argument};
use crate::reading::bytes_of;
use crate::remote::StorageOptions;
use crate::shared::{OpenArguments, SharedDataset};
use crate::tfds::TfdsFeatures;
use crate::wait::{self, CallState, Progress, Unit, locked};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tfseek::DatasetOptions;
use tfseek::example::MessageKind;
use tfseek_tfds::{Builder, BuilderOptions, Rounding, SplitSelection, TfdsError};

/// The native part of `tfseek.tfds.Builder`.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct TfdsBuilder {
    builder: Arc<Builder>,
    /// Arguments of `tfseek.open` without paths and `storage_options`.
    arguments: Py<PyDict>,
    /// Names of the storage options.
    storage: Vec<String>,
    /// The protocol of the filesystem that the folder is read through.
    protocol: Option<String>,
    /// True for the folder of a URL.
    is_remote: bool,
    /// The call that opens shards.
    call: Arc<Mutex<Option<Arc<CallState>>>>,
}

#[pymethods]
impl TfdsBuilder {
    #[new]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        config: Option<String>,
        version: Option<String>,
        arguments: Bound<'_, PyDict>,
    ) -> Result<TfdsBuilder> {
        let Choice::<ReadMode>(io) = argument(&arguments, "io")?;
        let storage = StorageOptions::take(&arguments)?;
        let protocol = storage.protocol.clone();
        let names = storage.names();
        let store = storage.store(std::slice::from_ref(&folder))?;
        let is_remote = store.is_some();
        let dataset = open::options_of(&arguments)?;
        let dataset = match store {
            Some(store) => dataset.store(store),
            None => dataset,
        };
        let call: Arc<Mutex<Option<Arc<CallState>>>> = Arc::default();
        let current = Arc::clone(&call);
        let opener = move |options: &DatasetOptions, paths: &[PathBuf]| {
            let call = locked(&current).clone();
            match call {
                Some(call) => {
                    call.expect(bytes_of(paths));
                    open::open_with(&options.clone().progress(call.callback()), io, paths)
                }
                None => open::open_with(options, io, paths),
            }
        };
        let options = BuilderOptions { config, version, dataset, opener: Some(Arc::new(opener)) };
        let builder = wait::run(py, None, is_remote, move |_| Ok(Builder::open_records(folder, &options)?))?;
        let builder = Arc::new(builder);
        Ok(TfdsBuilder { builder, arguments: arguments.unbind(), storage: names, protocol, is_remote, call })
    }

    /// Reads the features of the folder.
    fn features(&self, py: Python<'_>) -> Result<TfdsFeatures> {
        let builder = Arc::clone(&self.builder);
        let (features, warnings) =
            wait::run(py, None, self.is_remote, move |_| Ok(builder.read_features()?))?;
        let mut features = TfdsFeatures::of(self.builder.folder().to_path_buf(), features, warnings);
        features.protocol = self.protocol.clone();
        Ok(features)
    }

    #[getter]
    fn folder(&self) -> std::ffi::OsString {
        self.builder.folder().as_os_str().to_owned()
    }

    #[getter]
    fn name(&self) -> &str {
        self.builder.name()
    }

    #[getter]
    fn version(&self) -> Option<&str> {
        self.builder.version()
    }

    #[getter]
    fn config(&self) -> Option<&str> {
        self.builder.config()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.builder.warnings().to_vec()
    }

    #[getter]
    fn supervised_keys<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.builder.supervised_keys().map(|keys| PyTuple::new(py, keys)).transpose()
    }

    /// Name, number of records, lengths and paths of the shards of each split.
    #[getter]
    #[allow(clippy::type_complexity, reason = "the fields of a tuple")]
    fn splits(&self) -> Vec<(String, Option<u64>, Option<Vec<u64>>, Vec<std::ffi::OsString>)> {
        let splits = self.builder.splits().iter().map(|split| {
            let shards = split.shards.iter().map(|path| path.as_os_str().to_owned()).collect();
            (split.name.clone(), split.records(), split.shard_lengths.clone(), shards)
        });
        splits.collect()
    }

    /// Returns the selected records.
    #[pyo3(signature = (spec, rounding, progress=None))]
    fn select(
        &self,
        py: Python<'_>,
        spec: String,
        rounding: Choice<Rounding>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyDataset> {
        let selection = self.run(py, progress, move |builder| builder.select_rounded(&spec, rounding.0))?;
        self.dataset(py, selection)
    }

    /// Returns the selected records in parts.
    fn even_splits(
        &self,
        py: Python<'_>,
        spec: String,
        parts: u64,
        drop_remainder: bool,
    ) -> Result<Vec<PyDataset>> {
        let parts = self.run(py, None, move |builder| builder.even_splits(&spec, parts, drop_remainder))?;
        parts.into_iter().map(|part| self.dataset(py, part)).collect()
    }
}

impl TfdsBuilder {
    /// Calls `work`, which may scan shards.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        progress: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(&Builder) -> Result<T, TfdsError> + Send + 'static,
    ) -> Result<T> {
        let progress = Progress::new(py, progress, "opening", Unit::Bytes)?;
        let builder = Arc::clone(&self.builder);
        let current = Arc::clone(&self.call);
        wait::run(py, progress, self.is_remote, move |call| {
            *locked(&current) = Some(Arc::clone(call));
            Ok(work(&builder)?)
        })
    }

    fn dataset(&self, py: Python<'_>, selection: SplitSelection) -> Result<PyDataset> {
        let arguments = self.arguments.bind(py).copy()?;
        let paths: Vec<PathBuf> = selection.dataset.shards().map(|shard| shard.path.to_path_buf()).collect();
        arguments.set_item("paths", paths.iter().map(|path| path.as_os_str()).collect::<Vec<_>>())?;
        let storage = self.storage.clone();
        let arguments = OpenArguments::new(paths, arguments.unbind(), storage, Some(MessageKind::Example));
        let len = selection.len();
        let mut ranges = selection.ranges.iter().filter(|range| range.start < range.end).peekable();
        // Ranges that follow each other are one.
        let mut joined = ranges.next().cloned().unwrap_or(0..0);
        while let Some(next) = ranges.next_if(|next| next.start == joined.end) {
            joined.end = next.end;
        }
        let ids = if ranges.peek().is_none() {
            Ids::Stride { start: joined.start, step: 1, len }
        } else {
            let mut ids = crate::headroom::room(usize::try_from(len).unwrap_or(usize::MAX))?;
            ids.extend(selection.ranges.iter().cloned().flatten());
            Ids::List(ids.into())
        };
        let shared = SharedDataset::new(selection.dataset, Vec::new(), arguments);
        Ok(PyDataset::selected(shared, ids))
    }
}
