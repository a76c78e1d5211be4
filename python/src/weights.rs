//! The weights of a loader that draws records with replacement.

use crate::error::{BindingError, Result};
use crate::ids::Ids;
use crate::options::FeatureName;
use crate::wait::CallState;
use ::numpy::PyReadonlyArray1;
use pyo3::Borrowed;
use pyo3::prelude::*;
use std::sync::Arc;
use tfseek::column::ColumnOptions;
use tfseek::order::Weights;
use tfseek::{Dataset, Warning};

/// The argument `weights`, of which `tfseek/_buckets.py` has checked the number of values.
pub(crate) enum WeightsBy {
    Feature(FeatureName),
    /// A weight for each record of the dataset or the view.
    Values(Vec<f64>),
}

impl WeightsBy {
    /// Returns the weights, and the warnings of their column.
    pub(crate) fn weights(
        self,
        source: Option<&(Dataset, Option<Ids>)>,
        call: &Arc<CallState>,
    ) -> Result<(Weights, Vec<Warning>)> {
        let mix = || BindingError::value_error("weights: expected a dataset, found a mix");
        let (dataset, view) = source.ok_or_else(mix)?;
        match self {
            WeightsBy::Values(values) => Ok((Weights::try_from(&*values)?, Vec::new())),
            WeightsBy::Feature(feature) => {
                call.expect(dataset.known_bytes());
                let progress = Some(Arc::new(call.callback()) as _);
                let column =
                    dataset.column(&feature, &ColumnOptions { progress, ..ColumnOptions::default() })?;
                let view = view.as_ref().map(Ids::subset).transpose()?;
                Ok((column.weights(view.as_ref())?, column.warnings))
            }
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for WeightsBy {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<WeightsBy> {
        match from.extract::<PyReadonlyArray1<'py, f64>>() {
            Ok(values) => Ok(WeightsBy::Values(values.as_array().to_vec())),
            Err(_) => from.extract().map(WeightsBy::Feature),
        }
    }
}
