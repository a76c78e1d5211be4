//! `ds.column(feature)`: one value a record, without a look at the records.

use crate::dataset::Shared;
use crate::failure::Result;
use crate::ids::Ids;
use crate::memory::Held;
use crate::numpy;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tfseek::example::Kind;
use tfseek::index::Value;

/// The values of these records, and which of them have one: 0, or `None` among byte strings, stands for those that have not.
pub(crate) fn arrays<'py>(
    py: Python<'py>,
    shared: &Shared,
    ids: &Ids,
    feature: &str,
) -> Result<Bound<'py, PyAny>> {
    let built;
    let column = match shared.columns.iter().find(|column| column.feature() == feature) {
        Some(column) => column,
        None => {
            built = py.detach(|| shared.dataset.column(feature))?;
            &built
        }
    };
    let present = py.detach(|| ids.iter().map(|i| u8::from(column.get(i).is_some())).collect::<Vec<_>>());
    let values = match column.kind() {
        Some(Kind::Bytes) => {
            let objects = ids.iter().map(|i| match column.get(i) {
                Some(Value::Bytes(value)) => PyBytes::new(py, value).into_any().unbind(),
                _ => py.None(),
            });
            numpy::objects(py, objects.collect(), &[present.len()])?
        }
        Some(Kind::Float) => {
            let float = |i| if let Some(Value::Float(value)) = column.get(i) { value } else { 0.0 };
            Held::Float32(py.detach(|| ids.iter().map(float).collect::<Vec<_>>()).into()).flat(py)?
        }
        Some(Kind::Int64) | None => {
            let int = |i| if let Some(Value::Int(value)) = column.get(i) { value } else { 0 };
            Held::Int64(py.detach(|| ids.iter().map(int).collect::<Vec<_>>()).into()).flat(py)?
        }
    };
    Ok(numpy::feature_column(py)?.call1((values, Held::Bool(present.into()).flat(py)?))?)
}
