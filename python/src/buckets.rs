//! Batches of records of like length: the arguments of a loader for them.

use crate::error::{BindingError, Result};
use crate::options::FeatureName;
use ::numpy::PyReadonlyArray1;
use pyo3::Borrowed;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use tfseek::column::{DatasetColumn, Value};
use tfseek::order::{Buckets, Subset};

/// The arguments of buckets, which `tfseek/_buckets.py` has checked.
pub(crate) struct BucketArguments {
    pub(crate) by: BucketBy,
    pub(crate) boundaries: Vec<u64>,
    pub(crate) sizes: BucketSizes,
    pub(crate) ranks: u64,
}

pub(crate) enum BucketBy {
    /// The length is the number of values of this feature.
    Feature(FeatureName),
    /// A length for each record of the dataset or the view.
    Lengths(Vec<u64>),
}

pub(crate) enum BucketSizes {
    PerRank(Vec<u64>),
    Global(Vec<u64>),
    Tokens(u64),
}

impl BucketArguments {
    /// Returns the name of the feature whose number of values is the length, if there is one.
    pub(crate) fn feature(&self) -> Option<&str> {
        match &self.by {
            BucketBy::Feature(feature) => Some(feature),
            BucketBy::Lengths(_) => None,
        }
    }

    /// Returns the buckets of all records, or of a view's records. `column` has the numbers of values of the
    /// feature.
    pub(crate) fn buckets(self, column: Option<&DatasetColumn>, view: Option<&Subset>) -> Result<Buckets> {
        let buckets = match (self.by, column, view) {
            (BucketBy::Lengths(lengths), ..) => Buckets::new(lengths, self.boundaries),
            (BucketBy::Feature(_), Some(column), Some(view)) => {
                Buckets::new(view.iter().map(|record| length(column.get(record))), self.boundaries)
            }
            (BucketBy::Feature(_), Some(column), None) => {
                Buckets::new(column.iter().map(length), self.boundaries)
            }
            (BucketBy::Feature(_), None, _) => Buckets::new([], self.boundaries),
        }?;
        Ok(match self.sizes {
            BucketSizes::Global(sizes) => buckets.batch_sizes(sizes),
            BucketSizes::Tokens(tokens) => buckets.tokens_per_batch(tokens, self.ranks),
            BucketSizes::PerRank(sizes) => {
                let global = sizes.iter().map(|size| size.checked_mul(self.ranks));
                let global: Option<Vec<u64>> = global.collect();
                let global = global.ok_or_else(|| {
                    let message = "batch_size: expected numbers below 2^64 over all ranks";
                    BindingError::Python(PyOverflowError::new_err(message))
                })?;
                buckets.batch_sizes(global)
            }
        })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for BucketBy {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<BucketBy> {
        match from.extract::<PyReadonlyArray1<'py, u64>>() {
            Ok(lengths) => Ok(BucketBy::Lengths(lengths.as_array().to_vec())),
            Err(_) => from.extract().map(BucketBy::Feature),
        }
    }
}

/// Returns the number of values of a record.
fn length(value: Option<Value<'_>>) -> u64 {
    match value {
        Some(Value::Int(length)) => length.try_into().unwrap_or(0),
        _ => 0,
    }
}
