//! `tfseek.Dataset`: shards as one sequence of records.

use crate::failure::{Failure, Result};
use crate::hooks;
use crate::ids::{Ids, Kept};
use crate::iter::DatasetIterator;
use crate::payload;
use crate::shared::Shared;
use crate::wait::{self, Progress, Turn, Unit};
use crate::warning::Warning;
use crate::words::Name;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice};
use std::sync::Arc;
use tfseek::column::ColumnOptions;
use tfseek::example::MessageKind;

/// Shards as one sequence of records: :func:`tfseek.open` makes it.
///
/// ``ds[i]`` is record ``i``: an :class:`Example`, a :class:`SequenceExample` or ``bytes``, as ``kind`` of :func:`tfseek.open`
/// says. ``ds[10:20]``, ``ds[[4, 2, 10]]`` and ``ds[mask]`` are Datasets of those records, which copy nothing. Safe to use from
/// several threads, after a fork, and pickled: a copy opens the files again, and refuses other content.
#[pyclass(frozen, module = "tfseek", sequence)]
pub(crate) struct Dataset {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ids: Ids,
}

/// The fingerprint of a dataset. Of a pack that takes a while, since all shards are opened for it: a signal is heard meanwhile.
pub(crate) fn fingerprint(py: Python<'_>, dataset: &tfseek::Dataset) -> Result<String> {
    match dataset.known_bytes() {
        Some(_) => Ok(py.detach(|| dataset.fingerprint())?),
        None => {
            let dataset = dataset.clone();
            wait::run(py, None, move |_| Ok(dataset.fingerprint()?))
        }
    }
}

impl Dataset {
    pub(crate) fn all(shared: Shared) -> Dataset {
        Dataset { ids: Ids::all(shared.dataset.len()), shared: Arc::new(shared) }
    }

    /// The records of this view, unless they are all there are.
    pub(crate) fn view_ids(&self) -> Option<Ids> {
        (!self.ids.is_all(self.shared.dataset.len())).then(|| self.ids.clone())
    }

    fn view(&self, ids: Ids) -> Dataset {
        Dataset { shared: Arc::clone(&self.shared), ids }
    }

    fn item<'py>(&self, py: Python<'py>, i: u64) -> Result<Bound<'py, PyAny>> {
        let shared = &*self.shared;
        let kind = match shared.mapped {
            Some(_) => shared.kind(),
            None => py.detach(|| shared.kind()),
        };
        if let (MessageKind::Other, Some(mapped)) = (kind, &shared.mapped) {
            return Ok(payload::bytes(py, mapped.get(i)?.payload())?.into_any());
        }
        let payload = match shared.mapped {
            Some(_) => shared.payload(i)?,
            None => py.detach(|| shared.payload(i))?,
        };
        Ok(shared.item(py, i, payload)?)
    }

    /// Numbers as `tfseek._ids.positions` gives them, as records of this view.
    fn numbers(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<Vec<u64>> {
        let bytes: PyBackedBytes = hooks::positions(py)?.call1((key, self.ids.len()))?.extract()?;
        let (positions, _) = bytes.as_chunks::<8>();
        positions.iter().map(|position| self.ids.at_signed(i64::from_le_bytes(*position))).collect()
    }
}

#[pymethods]
impl Dataset {
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
            Err(_) => self.numbers(py, key)?.into(),
        };
        Ok(Bound::new(py, self.view(ids))?.into_any())
    }

    /// Records by number, as a list in that order: faster than one by one, since it looks ahead.
    ///
    /// ``progress`` is shown in records, as :func:`tfseek.open` says.
    #[pyo3(signature = (ids, *, progress=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let ids = self.numbers(py, ids)?;
        let shared = &self.shared;
        let progress = Progress::new(py, progress, "reading", Unit::Records)?;
        let mut found = Vec::with_capacity(ids.len());
        wait::shown(progress, |progress| {
            wait::in_turns(py, progress, 0, ids.len() as u64, |turn| {
                shared.kind();
                let left = ids.get(found.len()..).unwrap_or_default();
                shared.payloads(left, turn, &mut found)?;
                Ok(found.len() as u64)
            })
        })?;
        let (mut turn, mut items) = (Turn::new(), Vec::with_capacity(ids.len()));
        for (&i, payload) in ids.iter().zip(found) {
            // A payload may have to be copied.
            turn.pause(py, Turn::VALUE + payload.len() as u64)?;
            items.push(shared.item(py, i, payload)?);
        }
        Ok(PyList::new(py, items)?)
    }

    /// As :meth:`get_many`: what PyTorch's ``DataLoader`` calls for a batch.
    fn __getitems__<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>> {
        self.get_many(py, ids, None)
    }

    fn __iter__(&self) -> DatasetIterator {
        DatasetIterator::new(Arc::clone(&self.shared), self.ids.clone())
    }

    /// The records of this dataset whose features meet a condition such as ``"label in 3, 5..9 and present(name)"``, as a
    /// Dataset in the same order. Builds a column of each feature in it when it is first used.
    ///
    /// ``progress`` shows how far that is in bytes, as :func:`tfseek.open` says.
    #[pyo3(signature = (condition, *, progress=None))]
    fn filter(
        &self,
        py: Python<'_>,
        condition: &str,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Dataset> {
        let filter = condition.parse::<tfseek::Filter>()?;
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        let (dataset, columns, ids) =
            (self.shared.dataset.clone(), Arc::clone(&self.shared.columns), self.ids.clone());
        let ids = wait::run(py, progress, move |meter| {
            let held = |feature: &&str| columns.iter().any(|column| column.feature() == *feature);
            let selection = match filter.features().iter().all(held) {
                true => dataset.select_from(&filter, &columns)?,
                false => {
                    meter.expect(dataset.known_bytes());
                    dataset.select(&filter, &ColumnOptions::new().progress(meter.callback()))?
                }
            };
            Ok(ids.iter().filter(|&i| selection.contains(i)).collect::<Vec<u64>>())
        })?;
        Ok(self.view(ids.into()))
    }

    /// One feature's value for each record, as :class:`tfseek.Column`: read from its column files, and built where there are
    /// none, without a look at the records from then on. A feature has one value a record, or none; of a SequenceExample it is
    /// one of the context.
    ///
    /// ``progress`` shows how far that is in bytes, as :func:`tfseek.open` says.
    ///
    /// Raises :class:`tfseek.DataError` at a record with two values, or with one of another kind.
    #[pyo3(signature = (feature, *, progress=None))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        feature: Name,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let progress = Progress::new(py, progress, "columns", Unit::Bytes)?;
        crate::column::arrays(py, &self.shared, &self.ids, &feature, progress)
    }

    /// What ``ds[i]`` is: ``"example"``, ``"sequence_example"`` or ``"bytes"``.
    #[getter]
    fn kind(&self, py: Python<'_>) -> &'static str {
        match py.detach(|| self.shared.kind()) {
            MessageKind::Example => "example",
            MessageKind::SequenceExample => "sequence_example",
            MessageKind::Other => "bytes",
        }
    }

    /// The files, in the order of their records.
    #[getter]
    fn shards(&self) -> Vec<std::ffi::OsString> {
        self.shared.dataset.shards().map(|shard| shard.path.as_os_str().to_owned()).collect()
    }

    /// Numbers of this view's records in the whole dataset: a read-only array of int64.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let ids = crate::column::collect(py, &self.ids, |i| i as i64)?;
        Ok(crate::memory::Held::Int64(ids.into()).flat(py)?)
    }

    /// What identifies the records, independent of paths and times: 32 hex digits, the same for a copy of the files.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> Result<String> {
        fingerprint(py, &self.shared.dataset)
    }

    /// Warnings from opening the dataset: an index file that was refused, say.
    #[getter]
    fn warnings(&self) -> Vec<Warning> {
        self.shared.dataset.warnings().iter().map(Warning::of).collect()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let reopen = hooks::reopen(py)?.clone();
        let ids = match &self.ids {
            Ids::Stride { start, step, len } => (*start, *step, *len).into_pyobject(py)?.into_any(),
            Ids::List(ids) => {
                let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
                PyBytes::new(py, &bytes).into_any()
            }
        };
        let how: Bound<'py, PyDict> = self.shared.how.to_dict(py)?;
        let args = (how, self.fingerprint(py)?, ids).into_pyobject(py)?.into_any();
        Ok((reopen, args))
    }

    /// What `tfseek._open.reopen` calls: the view that was pickled, if the records are still the same.
    fn _restore(&self, py: Python<'_>, fingerprint: &str, ids: Kept) -> Result<Dataset> {
        let found = self.fingerprint(py)?;
        if found != fingerprint {
            let message = format!(
                "the dataset has changed since it was pickled: its fingerprint was {fingerprint}, and is {found}"
            );
            return Err(Failure::error(py, message));
        }
        let ids = ids.ids();
        if ids.iter().any(|i| i >= self.shared.dataset.len()) {
            return Err(Failure::type_error("a pickle of records that there are not"));
        }
        Ok(self.view(ids))
    }

    fn __repr__(&self) -> String {
        let all = self.shared.dataset.len();
        let view = match &self.ids {
            ids if ids.is_all(all) => String::new(),
            Ids::Stride { start, step, len } => format!(", view={len} from {start} by {step}"),
            Ids::List(ids) => {
                let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
                format!(", view={} of crc32c {:08x}", ids.len(), tfseek::crc::crc32c(&bytes))
            }
        };
        format!("tfseek.Dataset({}, records={all}{view})", self.shared.how.names())
    }
}
