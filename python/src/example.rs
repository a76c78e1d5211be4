//! `tfseek.Example`: a mapping over one record that decodes features on access.

use crate::error::Result;
use crate::headroom;
use crate::memory::ArrayData;
use crate::options::FeatureName;
use crate::payload::RecordPayload;
use crate::{feature, hooks, text};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use std::ffi::OsString;
use tfseek::ExampleBuf;
use tfseek::io::Region;

/// A ``tf.train.Example``: a mapping from names to arrays that decodes a feature on access.
///
/// ``ex["label"]`` is a read-only array of one dimension: int64, float32, or an object array of ``bytes``.
/// Floats that are aligned in a mapped file are not copied, and the array keeps the map alive. A feature
/// without a kind is ``None``.
///
/// ``Example({"label": 3, "name": "x"})`` creates an Example. Ints and bools become int64 values, floats
/// become float32 values, and ``str`` (as UTF-8) and ``bytes`` become byte strings. Lists and arrays become
/// lists of values. ``None`` becomes a feature without a kind. The message has the same bytes as Python
/// protobuf's ``SerializeToString(deterministic=True)``.
///
/// Access to a malformed feature raises :class:`tfseek.DataError`.
#[pyclass(frozen, module = "tfseek", name = "Example", mapping)]
pub(crate) struct PyExample(pub(crate) RecordPayload);

impl PyExample {
    fn view(&self) -> tfseek::Example<'_> {
        tfseek::Example::new(&self.0.bytes)
    }

    fn find<'py>(&self, py: Python<'py>, key: &str, copy: bool) -> Result<Option<Bound<'py, PyAny>>> {
        let Some(found) = self.view().get(key).map_err(|e| self.0.locate(e))? else { return Ok(None) };
        Ok(Some(feature::array(py, found, &self.0.bytes, copy)?))
    }

    pub(crate) fn has(&self, key: &str) -> Result<bool> {
        Ok(self.view().get(key).map_err(|e| self.0.locate(e))?.is_some())
    }

    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let features = self.view().features().map_err(|e| self.0.locate(e))?;
        Ok(features.iter().map(|&(name, _)| name.to_owned()).collect())
    }
}

#[pymethods]
impl PyExample {
    #[new]
    #[pyo3(signature = (features=None))]
    fn new(py: Python<'_>, features: Option<&Bound<'_, PyAny>>) -> Result<PyExample> {
        let payload = match features {
            Some(features) => feature::encoded(py, features)?,
            None => ExampleBuf::default().encode()?,
        };
        Ok(PyExample(RecordPayload { bytes: payload.into(), record: None }))
    }

    /// Returns the Example with these bytes. They are decoded on access to a feature.
    #[staticmethod]
    fn from_bytes(payload: PyBackedBytes) -> PyExample {
        PyExample(RecordPayload { bytes: Region::new(payload), record: None })
    }

    pub(crate) fn __getitem__<'py>(&self, py: Python<'py>, key: FeatureName) -> Result<Bound<'py, PyAny>> {
        match self.find(py, &key, false)? {
            Some(found) => Ok(found),
            None => Err(PyKeyError::new_err(text::no_such_name("feature", &key, self.names()?)).into()),
        }
    }

    /// Returns the feature's values, or ``default`` if it is absent. With ``copy=True`` the array is a
    /// writable copy.
    #[pyo3(signature = (key, default=None, *, copy=false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: FeatureName,
        default: Option<Bound<'py, PyAny>>,
        copy: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let found = self.find(py, &key, copy)?;
        Ok(found.or(default).unwrap_or_else(|| py.None().into_bound(py)))
    }

    /// ``"int64"``, ``"float"`` or ``"bytes"``; ``None`` if the feature is absent or has no kind.
    fn kind(&self, key: FeatureName) -> Result<Option<String>> {
        Ok(feature::kind(self.view().get(&key).map_err(|e| self.0.locate(e))?))
    }

    pub(crate) fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        key.extract::<FeatureName>().map_or(Ok(false), |key| self.has(&key))
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.view().features().map_err(|e| self.0.locate(e))?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(headroom::list(py, self.names()?)?.try_iter()?.into_any())
    }

    /// Returns the names of the features, sorted.
    fn keys(&self) -> Result<Vec<String>> {
        self.names()
    }

    /// Returns the arrays, in the order of the names.
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py, false)?.call_method0(intern!(py, "values"))?)
    }

    /// Returns names and arrays, in the order of the names.
    fn items<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py, false)?.call_method0(intern!(py, "items"))?)
    }

    /// Decodes all features into a dict sorted by name.
    #[pyo3(signature = (*, copy=false))]
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>, copy: bool) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for &(name, found) in self.view().features().map_err(|e| self.0.locate(e))?.iter() {
            dict.set_item(name, feature::array(py, found, &self.0.bytes, copy)?)?;
        }
        Ok(dict)
    }

    /// The path of the record's shard. ``None`` for an Example that was made or unpickled.
    #[getter]
    fn path(&self) -> Option<OsString> {
        self.0.path()
    }

    /// The number of the record in its shard, from 0. ``None`` as :attr:`path`.
    #[getter]
    fn record(&self) -> Option<u64> {
        self.0.number()
    }

    /// The payload as a read-only uint8 array that shares its memory. ``memoryview(ex.raw)`` is a view of the
    /// bytes.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(ArrayData::Region(self.0.bytes.clone()).flat(py)?)
    }

    /// Returns the payload: the bytes as they are in the file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        headroom::bytes(py, &self.0.bytes)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py)
    }

    /// Examples are equal if their bytes are equal.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyExample>().is_ok_and(|other| *other.get().0.bytes == *self.0.bytes)
    }

    fn __hash__(&self) -> u64 {
        tfseek::crc::crc32c(&self.0.bytes).into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<PyExample>().getattr(intern!(py, "from_bytes"))?;
        Ok((from_bytes, (self.to_bytes(py)?,)))
    }

    /// Completions of ``ex["``.
    fn _ipython_key_completions_(&self) -> Result<Vec<String>> {
        self.names()
    }

    /// A table of the features for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(hooks::example_html(slf.py())?.call1((slf,))?)
    }

    fn __repr__(&self) -> String {
        match self.view().features() {
            Ok(features) => format!("tfseek.Example({})", text::features(&features)),
            Err(e) => format!("tfseek.Example(<malformed: {e}>)"),
        }
    }
}
