//! Descriptions of records: statistics, searches, comparisons with schemas, and the metadata of TensorFlow's
//! tools.

pub mod grep;
pub mod stats;
pub mod tfx;
pub mod validate;
