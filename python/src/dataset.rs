//! `tfseek.Dataset`: a sequence of the records of all shards.

use crate::error::{BindingError, Result};
use crate::example::PyExample;
use crate::get_many;
use crate::headroom;
use crate::hooks;
use crate::ids::{self, Ids, PickledIds};
use crate::iter::DatasetIterator;
use crate::options::{Choice, ConditionText, FeatureName};
use crate::part::PyPart;
use crate::remote;
use crate::rows::{PyPayload, PySeeds};
use crate::schema::{PySchema, infer_columns, infer_schema};
use crate::sequence::PySequenceExample;
use crate::shared::{self, SharedDataset, is_remote};
use crate::strings::BytesAs;
use crate::wait::{self, Progress, Unit};
use crate::warning::{self, PyWarning};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PySlice, PyTuple};
use std::sync::Arc;
use tfseek::Warning;
use tfseek::column::ColumnOptions;
use tfseek::example::MessageKind;
use tfseek::order::Subset;

/// A sequence of the records of all shards, opened by :func:`tfseek.open`.
///
/// ``ds[i]`` is record ``i``: an :class:`Example`, a :class:`SequenceExample` or ``bytes``, depending on
/// ``kind`` of :func:`tfseek.open`. ``ds[10:20]``, ``ds[[4, 2, 10]]`` and ``ds[mask]`` are Datasets of those
/// records. They copy nothing.
///
/// A Dataset can be used by several threads and after a fork, and it can be pickled. An unpickled copy opens
/// the files again, and raises an error if their content has changed. A pickle has no ``storage_options``:
/// the process that reads it needs its own login.
#[pyclass(frozen, generic, module = "tfseek", name = "Dataset", sequence)]
pub(crate) struct PyDataset {
    pub(crate) shared: Arc<SharedDataset>,
    pub(crate) ids: Ids,
    /// Schema of the first records, after its first use.
    schema: PyOnceLock<Py<PySchema>>,
}

/// Number of records from which `ds.schema` is inferred.
const SCHEMA_RECORDS: u64 = 1000;

/// Returns the fingerprint of a dataset. For a pack it opens all shards, which takes time, so it checks for
/// signals.
pub(crate) fn fingerprint(py: Python<'_>, dataset: &tfseek::Dataset) -> Result<String> {
    if dataset.known_bytes().is_some() {
        return Ok(py.detach(|| dataset.fingerprint())?);
    }
    let requests = is_remote(dataset);
    let dataset = dataset.clone();
    wait::run(py, None, requests, move |_| Ok(dataset.fingerprint()?))
}

impl PyDataset {
    /// Returns the records that satisfy a condition.
    pub(crate) fn filtered(
        &self,
        py: Python<'_>,
        filter: tfseek::Filter,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyDataset> {
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        let dataset = self.shared.dataset.clone();
        let columns = Arc::clone(&self.shared.columns);
        let ids = self.ids.clone();
        let (ids, warnings) = wait::run(py, progress, self.shared.is_remote, move |call| {
            let is_loaded = |feature: &&str| columns.iter().any(|column| *column.feature == **feature);
            let loaded = filter.column_features().iter().all(is_loaded);
            call.expect(dataset.known_bytes());
            let mut options =
                ColumnOptions { progress: Some(Arc::new(call.callback())), ..ColumnOptions::default() };
            if !ids.is_all(dataset.len()) {
                let mut tested: Vec<u64> = ids.iter().collect();
                tested.sort_unstable();
                tested.dedup();
                options.among = Some(Subset::from_ids(tested)?);
            }
            let (selection, warnings) = if loaded {
                dataset.select_from(&filter, &columns, &options)?
            } else {
                dataset.select(&filter, &options)?
            };
            let selected: Vec<u64> = ids.iter().filter(|&i| selection.rank(i).is_some()).collect();
            Ok((selected, warnings))
        })?;
        // Warnings of loaded columns were raised when the dataset was opened.
        let known = self.shared.warnings();
        let is_new =
            |found: &Warning| matches!(found, Warning::PayloadsSkipped { .. }) || !known.contains(found);
        warning::raise(py, &warnings.into_iter().filter(is_new).collect::<Vec<_>>())?;
        Ok(self.view(ids.into()))
    }

    pub(crate) fn whole(shared: SharedDataset) -> PyDataset {
        PyDataset { ids: Ids::all(shared.dataset.len()), shared: Arc::new(shared), schema: PyOnceLock::new() }
    }

    /// Returns records of a dataset.
    pub(crate) fn selected(shared: SharedDataset, ids: Ids) -> PyDataset {
        PyDataset { ids, ..PyDataset::whole(shared) }
    }

    /// Divides the records into shares by `divide`, which receives `number`. This is the value of the argument
    /// `name`.
    fn divided(
        &self,
        py: Python<'_>,
        name: &str,
        number: i64,
        divide: impl Fn(&tfseek::Dataset, u64) -> tfseek::Result<Vec<Vec<tfseek::Part>>> + Sync,
    ) -> Result<Vec<Vec<PyPart>>> {
        let Some(number) = u64::try_from(number).ok().filter(|number| *number > 0) else {
            return Err(BindingError::value_error(format!("{name}: expected at least 1, found {number}")));
        };
        let dataset = &self.shared.dataset;
        if !self.ids.is_all(dataset.len()) {
            let message =
                "expected a whole dataset, found some of its records: parts are ranges of all records";
            return Err(BindingError::value_error(message));
        }
        if let Some(protocol) = self.shared.arguments.protocol(py)? {
            return Err(BindingError::value_error(format!(
                "expected files or URLs that another process opens by their names, found a dataset of filesystem= ({protocol}://): parts have no \
                 filesystem, and a pickle of the dataset has its protocol"
            )));
        }
        let shares = py.detach(|| divide(dataset, number))?;
        Ok(shares.into_iter().map(|share| share.into_iter().map(PyPart).collect()).collect())
    }

    /// Returns the record numbers of this view, or `None` if it contains all records in order.
    pub(crate) fn view_ids(&self) -> Option<Ids> {
        (!self.ids.is_all(self.shared.dataset.len())).then(|| self.ids.clone())
    }

    fn view(&self, ids: Ids) -> PyDataset {
        PyDataset { shared: Arc::clone(&self.shared), ids, schema: PyOnceLock::new() }
    }

    fn item<'py>(&self, py: Python<'py>, i: u64) -> Result<Bound<'py, PyAny>> {
        let shared = &self.shared;
        let Some(mapped) = &shared.mapped else {
            shared.detached_kind(py)?;
            let own = Arc::clone(shared);
            let payload = wait::detached(py, shared.is_remote, move || own.payload(i))?;
            return Ok(shared.item(py, i, payload)?);
        };
        if shared.kind() == MessageKind::Other {
            return Ok(headroom::bytes(py, mapped.get(i)?.payload())?.into_any());
        }
        Ok(shared.item(py, i, shared.payload(i)?)?)
    }

    /// Returns record `i` of the whole dataset for a parser. Of a map it needs no Python object.
    pub(crate) fn payload(&self, py: Python<'_>, i: u64) -> Result<PyPayload> {
        let shared = &self.shared;
        if shared.mapped.is_none() || shared.kind() == MessageKind::Other {
            return PyPayload::from_python(&self.item(py, i)?);
        }
        let found = shared.located(i, shared.payload(i)?);
        shared::check(py, shared.kind(), &found)?;
        Ok(PyPayload::Record(found))
    }
}

#[pymethods]
impl PyDataset {
    fn __len__(&self) -> usize {
        usize::try_from(self.ids.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        if let Ok(k) = key.extract::<i64>() {
            return self.item(py, self.ids.at_signed(k)?);
        }
        let ids = match key.cast::<PySlice>() {
            Ok(slice) => {
                let len = isize::try_from(self.ids.len()).unwrap_or(isize::MAX);
                let part = slice.indices(len)?;
                self.ids.stride(part.start as i64, part.step as i64, part.slicelength as u64)
            }
            Err(_) => ids::numbers(py, &self.ids, key)?.into(),
        };
        Ok(Bound::new(py, self.view(ids))?.into_any())
    }

    /// Returns the records with these numbers as a list, in the given order. Records are prefetched, so this
    /// is faster than single accesses.
    ///
    /// With ``out``, a writable buffer of bytes such as a uint8 array or a ``bytearray``, the payloads are
    /// copied into it one after the other. The result are their offsets, an int64 array: payload ``k`` is
    /// ``out[offsets[k]:offsets[k + 1]]``. A buffer that is too small raises ``ValueError``. An error may
    /// leave the first payloads in the buffer.
    ///
    /// ``progress`` counts records; :func:`tfseek.open` describes it.
    #[pyo3(signature = (ids, *, out=None, progress=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        match out {
            Some(out) => get_many::into(py, &self.shared, &self.ids, ids, out, progress),
            None => get_many::list(py, &self.shared, &self.ids, ids, progress),
        }
    }

    /// Reads the record at a Python index and parses it. What is random is drawn by its number in the whole
    /// data set.
    fn _record<'py>(
        &self,
        py: Python<'py>,
        k: i64,
        schema: &Bound<'py, PySchema>,
        bytes_as: Choice<BytesAs>,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        let i = self.ids.at_signed(k)?;
        schema.get().single(py, self.payload(py, i)?, bytes_as.0, Some(i), seeds)
    }

    /// Returns the numbers that these records have in the whole data set.
    fn _numbers(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> Result<Vec<u64>> {
        ids::numbers(py, &self.ids, ids)
    }

    /// Does the same as :meth:`get_many`. PyTorch's ``DataLoader`` calls it for a batch.
    fn __getitems__<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        get_many::list(py, &self.shared, &self.ids, ids, None)
    }

    fn __iter__(&self) -> DatasetIterator {
        DatasetIterator::new(Arc::clone(&self.shared), self.ids.clone())
    }

    /// Returns the records that satisfy a condition such as ``"label in 3, 5..9 and present(name)"``, as a
    /// Dataset in the same order. The first comparison of a feature's value builds its column. Tests of
    /// lists, of parts of strings, of images and of payloads, such as ``"any(scores) > 0.5"`` or ``'caption
    /// contains "dog"'``, read the records that columns leave undecided. ``docs/filters.md`` has the grammar.
    /// Records keep the numbers that they have in the dataset that was opened.
    ///
    /// With ``damage="skip"`` of :func:`tfseek.open` records that do not decode are left out, with a warning
    /// of kind ``"payloads_skipped"``.
    ///
    /// ``progress`` counts the bytes scanned; :func:`tfseek.open` describes it.
    #[pyo3(signature = (condition, *, progress=None))]
    fn filter(
        &self,
        py: Python<'_>,
        condition: ConditionText,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyDataset> {
        self.filtered(py, condition.0.parse()?, progress)
    }

    /// Checks the names in a condition that workers will evaluate, and returns those that none of the first
    /// records has.
    fn _check_names(&self, py: Python<'_>, condition: &str) -> Result<Vec<String>> {
        let filter = condition.parse::<tfseek::Filter>()?;
        let dataset = self.shared.dataset.clone();
        wait::run(py, None, self.shared.is_remote, move |_| {
            Ok(dataset.check_names(&filter)?.into_iter().map(str::to_owned).collect())
        })
    }

    /// Returns one feature's value for each record, as :class:`tfseek.Column`. The values are read from
    /// column files. Missing column files are built first, in one scan of the records. A record must have one
    /// value or none. For SequenceExamples the feature is a context feature.
    ///
    /// ``progress`` counts the bytes scanned; :func:`tfseek.open` describes it.
    ///
    /// Raises :class:`tfseek.DataError` for a record with several values, or with a value of another kind.
    /// With ``damage="skip"`` of :func:`tfseek.open` a record that does not decode has no value, with a
    /// warning of kind ``"payloads_skipped"``.
    #[pyo3(signature = (feature, *, progress=None))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        feature: FeatureName,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        crate::column::arrays(py, &self.shared, &self.ids, &feature, progress)
    }

    /// Names of the first record's features, sorted. For a SequenceExample they include the feature lists.
    ///
    /// Other records may have other features; :attr:`schema` has those of more records. Raises ``TypeError``
    /// for records of ``bytes``.
    #[getter]
    fn features(&self, py: Python<'_>) -> Result<Vec<String>> {
        if self.ids.len() == 0 {
            return Ok(Vec::new());
        }
        let first = self.item(py, self.ids.at_signed(0)?)?;
        if let Ok(example) = first.cast::<PyExample>() {
            return example.get().names();
        }
        match first.cast::<PySequenceExample>() {
            Ok(sequence) => sequence.get().keys(),
            Err(_) => Err(BindingError::type_error(
                "features: expected records of Examples or SequenceExamples, found bytes (see kind= of tfseek.open)",
            )),
        }
    }

    /// The :class:`Schema` that :func:`infer_schema` infers from the first 1000 records of this view, at its
    /// first use.
    ///
    /// Later records may have other features. Raises :class:`tfseek.SpecError` as :func:`infer_schema` does.
    #[getter]
    fn schema(&self, py: Python<'_>) -> Result<Py<PySchema>> {
        if let Some(known) = self.schema.get(py) {
            return Ok(known.clone_ref(py));
        }
        let first = self.view(self.ids.stride(0, 1, self.ids.len().min(SCHEMA_RECORDS)));
        let inferred = infer_schema(py, Bound::new(py, first)?.as_any(), None)?;
        let inferred = Py::new(py, inferred)?;
        Ok(self.schema.get_or_init(py, || inferred).clone_ref(py))
    }

    /// Returns the same schema, of which only these columns are used: others may have several kinds.
    fn _schema_of(&self, py: Python<'_>, columns: Vec<String>) -> Result<PySchema> {
        let first = self.view(self.ids.stride(0, 1, self.ids.len().min(SCHEMA_RECORDS)));
        infer_columns(py, Bound::new(py, first)?.as_any(), &columns)
    }

    /// Returns a dict: ``records`` (of this view), ``shards`` (their number), ``bytes`` (size of all shards;
    /// ``None`` for a pack whose shards are not open yet), ``kind``, and ``warnings`` (their number).
    fn info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let dataset = &self.shared.dataset;
        dict.set_item("records", self.ids.len())?;
        dict.set_item("shards", dataset.shards().len())?;
        dict.set_item("bytes", dataset.known_bytes())?;
        dict.set_item("kind", self.kind(py)?)?;
        dict.set_item("warnings", self.shared.warnings().len())?;
        Ok(dict)
    }

    /// Opens the dataset again with the same arguments, and returns a Dataset with the records that were
    /// added since.
    ///
    /// The paths are resolved again, so a pattern or a folder also yields new shards. Only the new parts of
    /// shards are scanned. A pack is read again. Records keep their numbers: the last shard may have grown,
    /// and new shards may follow. Every other change raises an error that names a shard. This Dataset does
    /// not change, and neither do its loaders, iterators and views.
    ///
    /// A file that is being written usually ends inside a record, so open it with ``tail="tolerate"``. Of a
    /// view, such as ``ds[10:20]`` or ``ds.filter(..)``, the result is the same records; a condition is not
    /// evaluated again.
    ///
    /// ``progress`` counts the bytes scanned; :func:`tfseek.open` describes it.
    #[pyo3(signature = (*, progress=None))]
    fn refresh(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> Result<PyDataset> {
        let new = PyDataset::whole(crate::reading::refresh(py, &self.shared, progress)?);
        let known = self.shared.warnings();
        let found: Vec<_> =
            new.shared.warnings().into_iter().filter(|found| !known.contains(found)).collect();
        warning::raise(py, &found)?;
        Ok(match self.view_ids() {
            Some(ids) => new.view(ids),
            None => new,
        })
    }

    /// Divides the records into at most ``n`` shares of nearly equal size in bytes, each a list of
    /// :class:`tfseek.Part`.
    ///
    /// ``tfseek.stream(part=share)`` reads a share in another process or on another machine, without an
    /// index. Shares are in the order of the records, and each record is in exactly one. A compressed shard
    /// is one part. Views, damaged shards that are read with ``damage="skip"``, datasets of ``filesystem=``,
    /// and paths that are not UTF-8 have no parts.
    fn shares(&self, py: Python<'_>, n: i64) -> Result<Vec<Vec<PyPart>>> {
        self.divided(py, "n", n, tfseek::Dataset::shares)
    }

    /// Divides the records into shares of about ``bytes`` bytes each, like :meth:`shares`.
    fn shares_of(&self, py: Python<'_>, bytes: i64) -> Result<Vec<Vec<PyPart>>> {
        self.divided(py, "bytes", bytes, tfseek::Dataset::shares_of)
    }

    /// Returns the records as a stream of Arrow record batches, a :class:`tfseek.Scan`. Nothing is read yet.
    ///
    /// PyArrow, Polars, DuckDB, pandas, DataFusion and nanoarrow accept it: ``pa.table(scan)``,
    /// ``pl.DataFrame(scan)``, ``duckdb.sql("select count(*) from scan")``. :func:`tfseek.scan` describes the
    /// arguments. Without ``spec`` :attr:`schema` has the columns.
    #[pyo3(
        signature = (*args, **options),
        text_signature = "($self, columns=None, spec=None, *, where=None, text=(), record=None, rename=None, bytes='auto', tensors='lists', batch_rows=None, threads=None, verify=None)"
    )]
    fn scan<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = slf.py();
        let arguments: Vec<_> = std::iter::once(slf.clone().into_any()).chain(args.iter()).collect();
        Ok(hooks::scan_dataset(py)?.call(PyTuple::new(py, arguments)?, options)?)
    }

    /// Returns a ``pyarrow.Table`` of all records. Arguments as for :meth:`scan`.
    #[pyo3(signature = (*args, **options), text_signature = "($self, columns=None, spec=None, **options)")]
    fn to_arrow<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(Self::scan(slf, args, options)?.call_method0(intern!(slf.py(), "to_arrow"))?)
    }

    /// Returns a ``pandas.DataFrame`` of all records, as :meth:`tfseek.Scan.to_pandas`. Arguments as for
    /// :meth:`scan`.
    #[pyo3(signature = (*args, **options), text_signature = "($self, columns=None, spec=None, **options)")]
    fn to_pandas<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(Self::scan(slf, args, options)?.call_method0(intern!(slf.py(), "to_pandas"))?)
    }

    /// Returns a ``polars.DataFrame`` of all records. Arguments as for :meth:`scan`.
    #[pyo3(signature = (*args, **options), text_signature = "($self, columns=None, spec=None, **options)")]
    fn to_polars<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(Self::scan(slf, args, options)?.call_method0(intern!(slf.py(), "to_polars"))?)
    }

    /// Does nothing. Files are closed when the last reference to the dataset, its views and their arrays is
    /// gone.
    fn close(&self) {}

    /// Returns the dataset. The end of the ``with`` block closes nothing; see :meth:`close`.
    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (_kind=None, _value=None, _traceback=None))]
    fn __exit__(
        &self,
        _kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) {
        self.close();
    }

    /// A table for notebooks: the dataset, and the features of its first record.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(hooks::dataset_html(slf.py())?.call1((slf,))?)
    }

    /// Kind of the records ``ds[i]``: ``"example"``, ``"sequence_example"`` or ``"bytes"``.
    #[getter]
    fn kind(&self, py: Python<'_>) -> Result<&'static str> {
        Ok(match self.shared.detached_kind(py)? {
            MessageKind::Example => "example",
            MessageKind::SequenceExample => "sequence_example",
            MessageKind::Other => "bytes",
        })
    }

    /// Paths of the shards, in the order of their records.
    #[getter]
    fn shards(&self) -> Vec<std::ffi::OsString> {
        self.shared.dataset.shards().map(|shard| shard.path.as_os_str().to_owned()).collect()
    }

    /// Record numbers of this view in the whole dataset: a read-only int64 array.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let ids = crate::column::collect(py, &self.ids, |i| i as i64)?;
        Ok(crate::memory::ArrayData::Int64(ids.into()).flat(py)?)
    }

    /// Fingerprint of the records: 32 hex digits, independent of paths and times. Copies of the files have
    /// the same one.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> Result<String> {
        fingerprint(py, &self.shared.dataset)
    }

    /// Warnings from opening the dataset and loading its ``columns``, for example about an index file that is
    /// not used.
    #[getter]
    fn warnings(&self) -> Vec<PyWarning> {
        self.shared.warnings().iter().map(PyWarning::of).collect()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        if let Some(url) = remote::with_secret(&self.shared.arguments.paths) {
            return Err(BindingError::type_error(format!(
                "{url}: a Dataset of a URL with a query or a user cannot be pickled, because they may be secret: open it in each process"
            )));
        }
        let reopen = hooks::reopen(py)?.clone();
        let ids = match &self.ids {
            Ids::Stride { start, step, len } => (*start, *step, *len).into_pyobject(py)?.into_any(),
            Ids::List(ids) => {
                let mut bytes = headroom::room(ids.len() * 8)?;
                bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
                headroom::bytes(py, &bytes)?.into_any()
            }
        };
        let arguments = match &self.shared.arguments.recipe {
            Some(recipe) => recipe.bind(py).clone(),
            None => self.shared.arguments.to_dict(py)?.into_any(),
        };
        let names = &self.shared.arguments.storage;
        let args = (arguments, self.fingerprint(py)?, ids, names).into_pyobject(py)?.into_any();
        Ok((reopen, args))
    }

    /// Restores the pickled view of a dataset whose records have not changed. `tfseek._open.reopen` calls it.
    fn _restore(&self, py: Python<'_>, fingerprint: &str, ids: PickledIds) -> Result<PyDataset> {
        let found = self.fingerprint(py)?;
        if found != fingerprint {
            let message = format!(
                "the dataset has changed since it was pickled: expected fingerprint {fingerprint}, found {found}"
            );
            return Err(BindingError::Text(message));
        }
        let ids = ids.ids();
        if ids.iter().any(|i| i >= self.shared.dataset.len()) {
            return Err(BindingError::type_error(
                "the pickle contains record numbers beyond the end of the dataset",
            ));
        }
        Ok(self.view(ids))
    }

    fn __repr__(&self) -> String {
        let all = self.shared.dataset.len();
        let view = match &self.ids {
            ids if ids.is_all(all) => format!("records={all}"),
            Ids::Stride { start, step, len } => format!("{len} of {all} records, from {start} by {step}"),
            Ids::List(ids) => {
                let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
                format!("{} of {all} records, crc32c {:08x}", ids.len(), tfseek::crc::crc32c(&bytes))
            }
        };
        // The features of a prepared data set are not its records' features.
        let prepared = self
            .shared
            .dataset
            .shards()
            .next()
            .is_some_and(|shard| shard.path.with_file_name("features.json").is_file());
        let hint = if prepared { "; tfseek.tfds.open decodes its features" } else { "" };
        format!("tfseek.Dataset({}, {view}{hint})", self.shared.arguments.names())
    }
}
