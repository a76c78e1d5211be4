//! `tfseek.SequenceExample`: a context, and lists of steps.

use crate::example::Example;
use crate::failure::Result;
use crate::feature;
use crate::hooks;
use crate::memory::Held;
use crate::payload::{self, Origin};
use crate::words::Name;
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};
use tfseek::io::Region;
use tfseek::{Error, FeatureBuf, SequenceExampleBuf};

/// A ``tf.train.SequenceExample``: ``.context`` is a mapping as an :class:`Example` is, ``.feature_lists`` one of names to
/// lists, an array for each step.
///
/// ``SequenceExample(context={...}, feature_lists={"tokens": [[1, 2], [3]]})`` makes one, values as :class:`Example` takes them.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct SequenceExample {
    payload: Region,
    origin: Option<Origin>,
}

impl SequenceExample {
    pub(crate) fn of(payload: Region, origin: Option<Origin>) -> SequenceExample {
        SequenceExample { payload, origin }
    }

    pub(crate) fn payload(&self) -> &Region {
        &self.payload
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }
}

#[pymethods]
impl SequenceExample {
    #[new]
    #[pyo3(signature = (context=None, feature_lists=None))]
    fn new(
        py: Python<'_>,
        context: Option<&Bound<'_, PyAny>>,
        feature_lists: Option<&Bound<'_, PyAny>>,
    ) -> Result<SequenceExample> {
        let mut message = SequenceExampleBuf::default();
        if let Some(context) = context {
            message.context = feature::entries(py, context)?.into_iter().collect();
        }
        if let Some(lists) = feature_lists {
            let parts = hooks::feature_lists(py)?.call1((lists,))?;
            for part in parts.try_iter()? {
                let (name, steps): (String, Vec<Bound<'_, PyAny>>) = part?.extract()?;
                let steps = steps.iter().map(feature::from_parts).collect::<Result<Vec<FeatureBuf>>>()?;
                message.feature_lists.insert(name, steps);
            }
        }
        Ok(SequenceExample::of(message.encode(tfseek::KeyOrder::Python)?.into(), None))
    }

    /// The SequenceExample that these bytes are.
    #[staticmethod]
    fn from_bytes(payload: PyBackedBytes) -> SequenceExample {
        SequenceExample::of(Region::new(payload), None)
    }

    /// The features of the whole record. A mapping as an :class:`Example` is; its bytes are those of the whole record.
    #[getter]
    fn context(&self) -> Example {
        // Both messages have their first map in field 1: the context of the one is the features of the other.
        Example::of(self.payload.clone(), self.origin.clone())
    }

    /// The feature lists: a mapping of names to lists of arrays, one for each step.
    #[getter]
    fn feature_lists(&self) -> FeatureLists {
        FeatureLists { payload: self.payload.clone(), origin: self.origin.clone() }
    }

    /// The payload as a read-only array of uint8, without a copy.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(Held::Region(self.payload.clone()).flat(py)?)
    }

    /// The payload, as it is in the file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        payload::bytes(py, &self.payload)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<SequenceExample>().is_ok_and(|other| *other.get().payload == *self.payload)
    }

    fn __hash__(&self) -> u64 {
        tfseek::crc::crc32c(&self.payload).into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<SequenceExample>().getattr(intern!(py, "from_bytes"))?;
        Ok((from_bytes, (self.to_bytes(py)?,)))
    }

    fn __repr__(&self) -> String {
        let names =
            self.feature_lists().names().map_or_else(|_| "malformed".to_owned(), |names| names.join(", "));
        format!("tfseek.SequenceExample({} bytes, feature lists: {names})", self.payload.len())
    }
}

/// The feature lists of a :class:`SequenceExample`: a mapping of names to lists of arrays.
#[pyclass(frozen, module = "tfseek", mapping)]
pub(crate) struct FeatureLists {
    payload: Region,
    origin: Option<Origin>,
}

impl FeatureLists {
    fn view(&self) -> tfseek::SequenceExample<'_> {
        tfseek::SequenceExample::new(&self.payload)
    }

    fn placed(&self, e: Error) -> Error {
        match &self.origin {
            Some(origin) => origin.place(e),
            None => e,
        }
    }

    /// Sorted, each once.
    fn names(&self) -> Result<Vec<String>> {
        let entries = self.view().feature_lists().map(|entry| entry.map(|(name, _)| name.to_owned()));
        let mut names = entries.collect::<tfseek::Result<Vec<_>>>().map_err(|e| self.placed(e))?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn find<'py>(&self, py: Python<'py>, key: &str) -> Result<Option<Bound<'py, PyList>>> {
        let Some(list) = self.view().feature_list(key).map_err(|e| self.placed(e))? else { return Ok(None) };
        let steps = list.iter().map(|step| feature::array(py, step, &self.payload));
        Ok(Some(PyList::new(py, steps.collect::<PyResult<Vec<_>>>()?)?))
    }
}

#[pymethods]
impl FeatureLists {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Name) -> Result<Bound<'py, PyList>> {
        self.find(py, &key)?.ok_or_else(|| PyKeyError::new_err(key.to_string()).into())
    }

    /// The steps of a list, or ``default`` if it is absent.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Name,
        default: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let found = self.find(py, &key)?.map(Bound::into_any);
        Ok(found.or(default).unwrap_or_else(|| py.None().into_bound(py)))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        match key.extract::<Name>() {
            Ok(key) => Ok(self.view().feature_list(&key).map_err(|e| self.placed(e))?.is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.names()?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.names()?)?.try_iter()?.into_any())
    }

    /// The names of the lists, sorted.
    fn keys(&self) -> Result<Vec<String>> {
        self.names()
    }

    /// The lists, in the order of the names.
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py)?.call_method0(intern!(py, "values"))?)
    }

    /// Names and lists, in the order of the names.
    fn items<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py)?.call_method0(intern!(py, "items"))?)
    }

    /// All lists, decoded: a dict sorted by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.names()? {
            let list = self.find(py, &name)?;
            dict.set_item(name, list)?;
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let names = self.names().map_or_else(|_| "malformed".to_owned(), |names| names.join(", "));
        format!("tfseek.FeatureLists({names})")
    }
}
