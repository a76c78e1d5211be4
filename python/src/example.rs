//! `tfseek.Example`: a record as a mapping that decodes what is asked for.

use crate::failure::Result;
use crate::memory::Held;
use crate::payload::{self, Origin};
use crate::words::Name;
use crate::{feature, numpy};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};
use tfseek::io::Region;
use tfseek::{Error, ExampleBuf};

/// A ``tf.train.Example``: a mapping of names to arrays that decodes a feature when it is asked for.
///
/// ``ex["label"]`` is a read-only array of one dimension: int64, float32, or an object array of ``bytes``. Floats that lie
/// aligned in the file are not copied; the array keeps the file's map alive. A feature without a kind is ``None``.
///
/// ``Example({"label": 3, "name": "x"})`` makes one: ints and bools become int64, floats float32, ``str`` (as UTF-8) and ``bytes``
/// byte strings, lists and arrays of them lists of values, ``None`` a feature without a kind. Its bytes are those of
/// Python protobuf's ``SerializeToString(deterministic=True)``.
///
/// Raises :class:`tfseek.DataError` at a feature that is malformed.
#[pyclass(frozen, module = "tfseek", mapping)]
pub(crate) struct Example {
    payload: Region,
    origin: Option<Origin>,
}

impl Example {
    pub(crate) fn of(payload: Region, origin: Option<Origin>) -> Example {
        Example { payload, origin }
    }

    pub(crate) fn payload(&self) -> &Region {
        &self.payload
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    fn view(&self) -> tfseek::Example<'_> {
        tfseek::Example::new(&self.payload)
    }

    fn placed(&self, e: Error) -> Error {
        match &self.origin {
            Some(origin) => origin.place(e),
            None => e,
        }
    }

    fn find<'py>(&self, py: Python<'py>, key: &str, copy: bool) -> Result<Option<Bound<'py, PyAny>>> {
        let Some(found) = self.view().get(key).map_err(|e| self.placed(e))? else { return Ok(None) };
        let array = feature::array(py, found, &self.payload)?;
        Ok(Some(if copy && !array.is_none() { numpy::copied(&array)? } else { array }))
    }

    fn names(&self) -> Result<Vec<String>> {
        let features = self.view().features().map_err(|e| self.placed(e))?;
        Ok(features.iter().map(|&(name, _)| name.to_owned()).collect())
    }
}

#[pymethods]
impl Example {
    #[new]
    #[pyo3(signature = (features=None))]
    fn new(py: Python<'_>, features: Option<&Bound<'_, PyAny>>) -> Result<Example> {
        let mut example = ExampleBuf::default();
        if let Some(features) = features {
            example.features = feature::entries(py, features)?.into_iter().collect();
        }
        Ok(Example::of(example.encode(tfseek::KeyOrder::Python)?.into(), None))
    }

    /// The Example that these bytes are. They are looked at when a feature is asked for.
    #[staticmethod]
    fn from_bytes(payload: PyBackedBytes) -> Example {
        Example::of(Region::new(payload), None)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Name) -> Result<Bound<'py, PyAny>> {
        self.find(py, &key, false)?.ok_or_else(|| PyKeyError::new_err(key.to_string()).into())
    }

    /// The feature's values, or ``default`` if it is absent. With ``copy=True`` an array that may be written to.
    #[pyo3(signature = (key, default=None, *, copy=false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Name,
        default: Option<Bound<'py, PyAny>>,
        copy: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let found = self.find(py, &key, copy)?;
        Ok(found.or(default).unwrap_or_else(|| py.None().into_bound(py)))
    }

    /// ``"int64"``, ``"float"`` or ``"bytes"``; ``None`` if the feature is absent or has no kind.
    fn kind(&self, key: Name) -> Result<Option<String>> {
        Ok(feature::kind(self.view().get(&key).map_err(|e| self.placed(e))?))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        match key.extract::<Name>() {
            Ok(key) => Ok(self.view().get(&key).map_err(|e| self.placed(e))?.is_some()),
            Err(_) => Ok(false),
        }
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.view().features().map_err(|e| self.placed(e))?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.names()?)?.try_iter()?.into_any())
    }

    /// The names of the features, sorted.
    fn keys(&self) -> Result<Vec<String>> {
        self.names()
    }

    /// The arrays, in the order of the names.
    fn values<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py, false)?.call_method0(intern!(py, "values"))?)
    }

    /// Names and arrays, in the order of the names.
    fn items<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(self.to_dict(py, false)?.call_method0(intern!(py, "items"))?)
    }

    /// All features, decoded: a dict sorted by name.
    #[pyo3(signature = (*, copy=false))]
    fn to_dict<'py>(&self, py: Python<'py>, copy: bool) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for &(name, found) in self.view().features().map_err(|e| self.placed(e))?.iter() {
            let array = feature::array(py, found, &self.payload)?;
            dict.set_item(name, if copy && !array.is_none() { numpy::copied(&array)? } else { array })?;
        }
        Ok(dict)
    }

    /// The payload as a read-only array of uint8, without a copy; ``memoryview(ex.raw)`` is one of its bytes.
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

    /// Equal are Examples of equal bytes.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Example>().is_ok_and(|other| *other.get().payload == *self.payload)
    }

    fn __hash__(&self) -> u64 {
        tfseek::crc::crc32c(&self.payload).into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<Example>().getattr(intern!(py, "from_bytes"))?;
        Ok((from_bytes, (self.to_bytes(py)?,)))
    }

    fn __repr__(&self) -> String {
        match self.view().features() {
            Ok(features) => {
                let parts: Vec<_> = features
                    .iter()
                    .map(|(name, f)| match f.kind() {
                        Some(kind) => format!("{name:?}: {} {}", f.len(), kind),
                        None => format!("{name:?}: None"),
                    })
                    .collect();
                format!("tfseek.Example({{{}}})", parts.join(", "))
            }
            Err(e) => format!("tfseek.Example(<malformed: {e}>)"),
        }
    }
}
