//! `ds.column(feature)`: one value per record, without reading the records.

use crate::error::Result;
use crate::headroom::{self, Headroom};
use crate::hooks;
use crate::ids::Ids;
use crate::memory::ArrayData;
use crate::numpy;
use crate::repeated::StringCache;
use crate::shared::SharedDataset;
use crate::wait::{self, Progress, TimeSlice};
use crate::warning;
use pyo3::prelude::*;
use std::sync::Arc;
use tfseek::column::{ColumnOptions, DatasetColumn, Value};
use tfseek::example::DType;

/// Returns the values of these records, and which records have one. A missing value is 0, or `None` in a
/// column of byte strings.
pub(crate) fn arrays<'py>(
    py: Python<'py>,
    shared: &SharedDataset,
    ids: &Ids,
    feature: &str,
    progress: Option<Progress<'py>>,
) -> Result<Bound<'py, PyAny>> {
    let built;
    let column = match shared.columns.iter().find(|column| *column.feature == *feature) {
        Some(column) => column,
        None => {
            built = build(py, shared, feature, progress)?;
            warning::raise(py, &built.warnings)?;
            &built
        }
    };
    let present = collect(py, ids, |i| u8::from(column.get(i).is_some()))?;
    let values = match column.kind {
        Some(DType::Bytes) => {
            let mut slice = TimeSlice::new();
            let mut objects = headroom::room(present.len())?;
            let mut cache = StringCache::default();
            let mut headroom = Headroom::default();
            for i in ids.iter() {
                slice.pause(py, TimeSlice::VALUE)?;
                objects.push(match column.get(i) {
                    Some(Value::Bytes(value)) => {
                        headroom.take(value.len())?;
                        cache.bytes(py, value)?
                    }
                    _ => py.None(),
                });
            }
            numpy::objects(py, objects, &[present.len()])?
        }
        Some(DType::Float32) => {
            let float = |i| if let Some(Value::Float(value)) = column.get(i) { value } else { 0.0 };
            ArrayData::Float32(collect(py, ids, float)?.into()).flat(py)?
        }
        Some(DType::Int64) | None => {
            let int = |i| if let Some(Value::Int(value)) = column.get(i) { value } else { 0 };
            ArrayData::Int64(collect(py, ids, int)?.into()).flat(py)?
        }
    };
    Ok(hooks::feature_column(py)?.call1((values, ArrayData::Bool(present.into()).flat(py)?))?)
}

fn build(
    py: Python<'_>,
    shared: &SharedDataset,
    feature: &str,
    progress: Option<Progress<'_>>,
) -> Result<DatasetColumn> {
    let dataset = shared.dataset.clone();
    let feature = feature.to_owned();
    wait::run(py, progress, shared.is_remote, move |call| {
        call.expect(dataset.known_bytes());
        let options = ColumnOptions { progress: Some(Arc::new(call.callback())), ..ColumnOptions::default() };
        Ok(dataset.column(&feature, &options)?)
    })
}

/// Computes a value for each record of a view, and checks for signals periodically.
pub(crate) fn collect<T: Send>(
    py: Python<'_>,
    ids: &Ids,
    value: impl Fn(u64) -> T + Send + Sync,
) -> Result<Vec<T>> {
    let len = ids.len();
    let mut values = headroom::room(usize::try_from(len).unwrap_or(usize::MAX))?;
    wait::in_slices(py, None, 0, len, |slice| {
        let from = values.len() as u64;
        let left = (from..len).map(|k| ids.at(k));
        for id in left {
            values.push(value(id));
            if slice.is_over(TimeSlice::VALUE) {
                break;
            }
        }
        Ok(values.len() as u64)
    })?;
    Ok(values)
}
