//! The weights of a loader that draws records with replacement.

use crate::error::Result;
use crate::options::FeatureName;
use ::numpy::PyReadonlyArray1;
use pyo3::Borrowed;
use pyo3::prelude::*;
use tfseek::column::DatasetColumn;
use tfseek::order::{Subset, Weights};

/// The argument `weights`, of which `tfseek/_buckets.py` has checked the number of values.
pub(crate) enum WeightsBy {
    Feature(FeatureName),
    /// A weight for each record of the dataset or the view.
    Values(Vec<f64>),
}

impl WeightsBy {
    /// Returns the name of the feature that the weights need the column of.
    pub(crate) fn feature(&self) -> Option<&str> {
        match self {
            WeightsBy::Feature(feature) => Some(feature),
            WeightsBy::Values(_) => None,
        }
    }

    /// Returns the weights. `column` is the feature's.
    pub(crate) fn weights(self, column: Option<&DatasetColumn>, view: Option<&Subset>) -> Result<Weights> {
        Ok(match (self, column) {
            (WeightsBy::Feature(_), Some(column)) => column.weights(view)?,
            (WeightsBy::Values(values), _) => Weights::try_from(&*values)?,
            (WeightsBy::Feature(_), None) => Weights::try_from(&[][..])?,
        })
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
