//! `tfseek.SequenceExample`: a context and feature lists.

use crate::error::Result;
use crate::example::PyExample;
use crate::feature;
use crate::headroom::{self, Headroom};
use crate::hooks;
use crate::memory::ArrayData;
use crate::options::FeatureName;
use crate::payload::RecordPayload;
use crate::text;
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::ffi::OsString;
use tfseek::io::Region;
use tfseek::{FeatureBuf, SequenceExampleBuf};

/// Bytes of an array with one value.
const ARRAY: usize = 256;

/// A ``tf.train.SequenceExample``. ``.context`` is a mapping like an :class:`Example`. ``.feature_lists``
/// maps names to lists with one array per step.
///
/// ``SequenceExample(context={...}, feature_lists={"tokens": [[1, 2], [3]]})`` creates a SequenceExample. It
/// accepts the same values as :class:`Example`.
///
/// ``record["tokens"]`` is the feature list or the context feature with this name. A name of both is a
/// ``KeyError``.
#[pyclass(frozen, module = "tfseek", name = "SequenceExample", mapping)]
pub(crate) struct PySequenceExample(pub(crate) RecordPayload);

#[pymethods]
impl PySequenceExample {
    #[new]
    #[pyo3(signature = (context=None, feature_lists=None))]
    fn new(
        py: Python<'_>,
        context: Option<&Bound<'_, PyAny>>,
        feature_lists: Option<&Bound<'_, PyAny>>,
    ) -> Result<PySequenceExample> {
        let mut message = SequenceExampleBuf::default();
        if let Some(context) = context {
            message.context = feature::entries(py, context)?.into_iter().collect();
        }
        if let Some(lists) = feature_lists {
            let parts = hooks::feature_lists(py)?.call1((lists,))?;
            for part in parts.try_iter()? {
                let (name, found): (String, Bound<'_, PyAny>) = part?.extract()?;
                let found = found.cast::<PyList>().map_err(PyErr::from)?;
                let mut steps: Vec<FeatureBuf> = headroom::room(found.len())?;
                for step in found {
                    steps.push(feature::from_parts(&step)?);
                }
                message.feature_lists.insert(name, steps);
            }
        }
        Ok(PySequenceExample(RecordPayload { bytes: message.encode()?.into(), record: None }))
    }

    /// Returns the SequenceExample with these bytes.
    #[staticmethod]
    fn from_bytes(payload: PyBackedBytes) -> PySequenceExample {
        PySequenceExample(RecordPayload { bytes: Region::new(payload), record: None })
    }

    /// The context features, as an :class:`Example` whose bytes are those of the whole record.
    #[getter]
    fn context(&self) -> PyExample {
        // Field 1 is the first map in both messages: the context here, the features in an Example.
        PyExample(self.0.clone())
    }

    /// The feature lists: a mapping from names to lists with one array per step.
    #[getter]
    fn feature_lists(&self) -> PyFeatureLists {
        PyFeatureLists(self.0.clone())
    }

    /// Returns the context feature, as an array, or the feature list, as a list of arrays, with this name.
    ///
    /// Raises ``KeyError`` for a name of neither, and for a name of both.
    fn __getitem__<'py>(&self, py: Python<'py>, key: FeatureName) -> Result<Bound<'py, PyAny>> {
        let context = self.context();
        let lists = self.feature_lists();
        match (context.has(&key)?, lists.has(&key)?) {
            (true, false) => context.__getitem__(py, key),
            (false, true) => Ok(lists.__getitem__(py, key)?.into_any()),
            (true, true) => Err(PyKeyError::new_err(format!(
                "{:?} is a context feature and a feature list: use .context or .feature_lists",
                &*key
            ))
            .into()),
            (false, false) => {
                let what = "context feature and no feature list";
                Err(PyKeyError::new_err(text::no_such_name(what, &key, self.keys()?)).into())
            }
        }
    }

    /// True for the name of a context feature or of a feature list.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.context().__contains__(key)? || self.feature_lists().__contains__(key)?)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(headroom::list(py, self.keys()?)?.try_iter()?.into_any())
    }

    /// Returns the names of the context features and the feature lists, sorted. A name of both is contained
    /// once.
    pub(crate) fn keys(&self) -> Result<Vec<String>> {
        let mut names = self.context().names()?;
        names.extend(self.feature_lists().names()?);
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Decodes everything to ``{"context": {..}, "feature_lists": {..}}``. With ``copy=True`` the arrays are
    /// writable copies.
    #[pyo3(signature = (*, copy=false))]
    fn to_dict<'py>(&self, py: Python<'py>, copy: bool) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("context", self.context().to_dict(py, copy)?)?;
        dict.set_item("feature_lists", self.feature_lists().decoded(py, copy)?)?;
        Ok(dict)
    }

    /// Completions of ``record["``.
    fn _ipython_key_completions_(&self) -> Result<Vec<String>> {
        self.keys()
    }

    /// Tables of the context and the feature lists for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(hooks::sequence_html(slf.py())?.call1((slf,))?)
    }

    /// The path of the record's shard. ``None`` for a SequenceExample that was made or unpickled.
    #[getter]
    fn path(&self) -> Option<OsString> {
        self.0.path()
    }

    /// The number of the record in its shard, from 0. ``None`` as :attr:`path`.
    #[getter]
    fn record(&self) -> Option<u64> {
        self.0.number()
    }

    /// The payload as a read-only uint8 array that shares its memory.
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

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PySequenceExample>().is_ok_and(|other| *other.get().0.bytes == *self.0.bytes)
    }

    fn __hash__(&self) -> u64 {
        tfseek::crc::crc32c(&self.0.bytes).into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<PySequenceExample>().getattr(intern!(py, "from_bytes"))?;
        Ok((from_bytes, (self.to_bytes(py)?,)))
    }

    fn __repr__(&self) -> String {
        let lists = self.feature_lists();
        let texts = lists
            .view()
            .context()
            .features()
            .and_then(|context| Ok((text::features(&context), text::feature_lists(&lists.entries()?))));
        match texts {
            Ok((context, lists)) => {
                format!("tfseek.SequenceExample(context={context}, feature_lists={lists})")
            }
            Err(e) => format!("tfseek.SequenceExample(<malformed: {e}>)"),
        }
    }
}

/// The feature lists of a :class:`SequenceExample`: a mapping from names to lists of arrays.
#[pyclass(frozen, module = "tfseek", name = "FeatureLists", mapping)]
pub(crate) struct PyFeatureLists(RecordPayload);

impl PyFeatureLists {
    fn view(&self) -> tfseek::SequenceExample<'_> {
        tfseek::SequenceExample::new(&self.0.bytes)
    }

    /// Returns the distinct names, sorted.
    fn sorted(&self) -> tfseek::Result<Vec<&str>> {
        let names = self.view().feature_lists().map(|entry| entry.map(|(name, _)| name));
        let mut names = names.collect::<tfseek::Result<Vec<_>>>()?;
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn names(&self) -> Result<Vec<String>> {
        let names = self.sorted().map_err(|e| self.0.locate(e))?;
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// Returns the distinct names, sorted, with their lists.
    fn entries(&self) -> tfseek::Result<Vec<(&str, tfseek::example::FeatureList<'_>)>> {
        let found = self
            .sorted()?
            .into_iter()
            .map(|name| Ok(self.view().feature_list(name)?.map(|list| (name, list))));
        found.filter_map(Result::transpose).collect()
    }

    fn has(&self, key: &str) -> Result<bool> {
        Ok(self.view().feature_list(key).map_err(|e| self.0.locate(e))?.is_some())
    }

    fn decoded<'py>(&self, py: Python<'py>, copy: bool) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.names()? {
            if let Some(list) = self.find(py, &name, copy)? {
                dict.set_item(name, list)?;
            }
        }
        Ok(dict)
    }

    fn find<'py>(&self, py: Python<'py>, key: &str, copy: bool) -> Result<Option<Bound<'py, PyList>>> {
        let Some(list) = self.view().feature_list(key).map_err(|e| self.0.locate(e))? else {
            return Ok(None);
        };
        let mut steps = headroom::room(list.len())?;
        let mut headroom = Headroom::default();
        for step in list.iter() {
            headroom.take(ARRAY)?;
            steps.push(feature::array(py, step, &self.0.bytes, copy)?);
        }
        Ok(Some(headroom::list(py, steps)?))
    }
}

#[pymethods]
impl PyFeatureLists {
    fn __getitem__<'py>(&self, py: Python<'py>, key: FeatureName) -> Result<Bound<'py, PyList>> {
        match self.find(py, &key, false)? {
            Some(found) => Ok(found),
            None => Err(PyKeyError::new_err(text::no_such_name("feature list", &key, self.names()?)).into()),
        }
    }

    /// Returns the steps of a feature list, or ``default`` if it is absent.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: FeatureName,
        default: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let found = self.find(py, &key, false)?.map(Bound::into_any);
        Ok(found.or(default).unwrap_or_else(|| py.None().into_bound(py)))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        key.extract::<FeatureName>().map_or(Ok(false), |key| self.has(&key))
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.names()?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(headroom::list(py, self.names()?)?.try_iter()?.into_any())
    }

    /// Returns the names of the feature lists, sorted.
    fn keys(&self) -> Result<Vec<String>> {
        self.names()
    }

    /// Returns the feature lists, in the order of the names.
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py)?.call_method0(intern!(py, "values"))?)
    }

    /// Returns names and feature lists, in the order of the names.
    fn items<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py)?.call_method0(intern!(py, "items"))?)
    }

    /// Decodes all feature lists into a dict sorted by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        self.decoded(py, false)
    }

    fn __repr__(&self) -> String {
        match self.entries() {
            Ok(lists) => format!("tfseek.FeatureLists({})", text::feature_lists(&lists)),
            Err(e) => format!("tfseek.FeatureLists(<malformed: {e}>)"),
        }
    }
}
