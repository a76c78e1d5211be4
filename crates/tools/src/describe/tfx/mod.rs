//! Schemas of TensorFlow Metadata: reading, writing, and those that correspond to schemas of tfseek.

mod anomaly;
mod convert;
mod domain;
mod feature;
mod read;
mod reader;
mod schema;
mod text;
mod write;

pub use anomaly::AnomalyKind;
pub(crate) use schema::SEQUENCE;
pub use schema::{FeatureRule, GroupRule, TfxSchema, ValueDomain};
pub use write::write;
