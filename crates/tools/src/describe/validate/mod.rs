//! Validation of records against a schema: the anomalies that TensorFlow Data Validation (TFDV) names, and
//! the records that have them.
//!
//! TFDV compares statistics with a schema, so it cannot name records. Here each record is compared. Source of
//! the names and conditions: <https://www.tensorflow.org/tfx/data_validation/anomalies>.

mod divergence;
mod feature;
mod report;
mod tally;
#[cfg(test)]
mod tests;
mod validator;

pub use report::{Anomaly, ValidationReport};
pub use validator::Validator;
