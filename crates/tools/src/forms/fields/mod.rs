//! The fields of a protobuf message of unknown type: numbers, wire types, and what length-delimited fields
//! probably contain.
//!
//! Two types get the names of their fields: TensorBoard's `Event` and TensorFlow Ranking's
//! `ExampleListWithContext`. [`decode`] returns the fields of one payload, [`PayloadSummary`] the fields of a
//! file's payloads.

mod decode;
mod known;
mod raw;
mod summary;

pub use decode::{ProtoField, ProtoValue, decode, examples, text};
pub(crate) use raw::{RawFields, RawValue};
pub use summary::{FieldSummary, PayloadSummary, PayloadType, ValueType};
pub(crate) use summary::{MAX_NUMBERS, TypeCounts};
