//! The forms of records: decoded, as JSON, as fields of unknown messages, as bytes without framing, and their
//! digests. Schemas as code.

pub mod bare;
pub(crate) mod content;
pub mod digest;
pub mod encode;
pub mod fields;
pub mod proto_json;
pub mod record_json;
pub mod schema_code;
mod selection;

pub use content::Content;
pub use selection::FeatureSelection;
pub(crate) use selection::SeenNames;
