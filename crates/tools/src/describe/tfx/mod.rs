//! Schemas of TensorFlow Metadata: reading, writing, and those that correspond to schemas of tfseek.

mod anomaly;
mod columns;
mod convert;
mod domain;
mod feature;
mod read;
mod reader;
mod representation;
mod schema;
mod text;
mod write;

pub use anomaly::AnomalyKind;
pub use columns::read_columns;
pub(crate) use schema::SEQUENCE;
pub use schema::{FeatureRule, GroupRule, TfxSchema, ValueDomain};
pub use write::write;
