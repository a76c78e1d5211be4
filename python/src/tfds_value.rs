//! Values of records of `tfseek.tfds` as Python objects.

use crate::error::{BindingError, Result};
use crate::headroom;
use crate::hooks;
use crate::ids::Ids;
use crate::memory::ArrayData;
use crate::numpy;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};
use tfseek::ErrorKind;
use tfseek::batch::Values;
use tfseek_tfds::{Array, RecordValue, Steps};

/// Returns a value: a scalar of NumPy, a read-only array over the memory of Rust, `bytes`, a dict, or one of
/// the other forms.
pub(crate) fn value(py: Python<'_>, found: RecordValue) -> Result<Bound<'_, PyAny>> {
    Ok(match found {
        RecordValue::Dict(values) => {
            let dict = PyDict::new(py);
            for (name, found) in values {
                dict.set_item(&*name, value(py, found)?)?;
            }
            dict.into_any()
        }
        RecordValue::Array(found) => array(py, &found)?,
        RecordValue::Ragged { values, row_splits } => {
            let splits = row_splits.into_iter().map(|splits| ArrayData::Int64(splits.into()).flat(py));
            let splits = PyTuple::new(py, splits.collect::<PyResult<Vec<_>>>()?)?;
            hooks::ragged(py)?.call1((array(py, &values)?, splits))?
        }
        RecordValue::List(values) => {
            let values = values.into_iter().map(|found| value(py, found)).collect::<Result<Vec<_>>>()?;
            headroom::list(py, values)?.into_any()
        }
        RecordValue::Steps(steps) => {
            let numbers = Ids::all(steps.len() as u64);
            Bound::new(py, PySteps { steps, numbers })?.into_any()
        }
        RecordValue::None => py.None().into_bound(py),
        _ => return Err(BindingError::Text("expected a value of a known form".to_owned())),
    })
}

fn array<'py>(py: Python<'py>, array: &Array) -> Result<Bound<'py, PyAny>> {
    let (values, start) = array.values();
    let data = match values {
        Values::Int64(values) if array.shape().is_empty() => {
            return Ok(numpy::int64(py, values.get(start).copied().unwrap_or_default())?);
        }
        Values::Int64(values) => ArrayData::Int64(values.clone()),
        Values::Float32(values) => ArrayData::Float32(values.clone()),
        Values::Array(values) => ArrayData::Array(values.clone()),
        Values::Bytes(_) => return strings(py, array),
    };
    let found = data.part(py, start..start + array.len(), array.shape())?;
    // An index without dimensions makes a scalar of an array without dimensions.
    Ok(if array.shape().is_empty() { found.get_item(PyTuple::empty(py))? } else { found })
}

fn strings<'py>(py: Python<'py>, array: &Array) -> Result<Bound<'py, PyAny>> {
    let mut strings = array.strings();
    if let ([], Some(string)) = (array.shape(), strings.next()) {
        return Ok(headroom::bytes(py, string)?.into_any());
    }
    let objects = headroom::all_bytes(py, array.len(), array.strings())?;
    Ok(numpy::objects(py, objects, array.shape())?)
}

/// The steps of an episode. A step is decoded when it is indexed.
///
/// ``steps[k]`` is a dict of the values of step ``k``, ``steps[a:b]`` are steps that nothing has decoded yet,
/// and an iteration decodes one after the other. All of them share the memory of the record.
#[pyclass(frozen, module = "tfseek.tfds", name = "Steps", sequence)]
pub(crate) struct PySteps {
    steps: Steps,
    numbers: Ids,
}

fn out_of_range(i: i128, len: u64) -> BindingError {
    ErrorKind::OutOfRange { what: "step", i, len }.into()
}

#[pymethods]
impl PySteps {
    fn __len__(&self) -> usize {
        usize::try_from(self.numbers.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let part = slice.indices(isize::try_from(self.numbers.len()).unwrap_or(isize::MAX))?;
            let numbers = self.numbers.stride(part.start as i64, part.step as i64, part.slicelength as u64);
            return Ok(Bound::new(py, PySteps { steps: self.steps.clone(), numbers })?.into_any());
        }
        let k: i64 = key.extract()?;
        let number = self.numbers.at_signed(k).map_err(|_| out_of_range(k.into(), self.numbers.len()))?;
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        match py.detach(|| self.steps.get(number)) {
            Some(found) => value(py, found?),
            None => Err(out_of_range(number as i128, self.steps.len() as u64)),
        }
    }

    /// Decodes one step after the other.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let builtins = slf.py().import(intern!(slf.py(), "builtins"))?;
        let numbers = builtins.getattr(intern!(slf.py(), "range"))?.call1((slf.get().numbers.len(),))?;
        let item = slf.getattr(intern!(slf.py(), "__getitem__"))?;
        builtins.getattr(intern!(slf.py(), "map"))?.call1((item, numbers))
    }

    fn __repr__(&self) -> String {
        let n = self.numbers.len();
        format!("tfseek.tfds.Steps({n} step{} of {:?})", if n == 1 { "" } else { "s" }, self.steps.path())
    }

    /// Raises an error: the steps of a record in memory cannot be pickled.
    fn __reduce__(&self) -> Result<()> {
        Err(BindingError::type_error("steps cannot be pickled: pickle the data set, or a list of the steps"))
    }
}
