//! Schemas of TensorFlow Metadata: reading, writing, and those that correspond to schemas of tfseek.

mod convert;
mod schema;
mod text;
mod write;

pub(crate) use schema::SEQUENCE;
pub use schema::{FeatureRule, GroupRule, TfxSchema, ValueDomain};
pub use text::{TextError, TextPlace};
pub use write::write;
