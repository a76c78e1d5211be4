//! Schemas: the features to take from a record and the arrays to make of them, as TensorFlow's feature specs say it.
//!
//! A [`Schema`] names columns and gives each a [`FeatureSpec`]; a [`BatchParser`](crate::batch::BatchParser) makes arrays
//! of it. Names and meaning are those of `tf.io.parse_example` and `tf.io.parse_sequence_example`.
//!
//! A schema is built in code, read from JSON ([`Schema::from_json`]) or inferred from records ([`Inference`]);
//! it prints as JSON ([`Schema::to_json`]). Code that makes a schema, for TensorFlow and for this crate, is in [`code`].
//!
//! ```
//! use tfseek::schema::{DType, FeatureSpec, Schema};
//! let schema = Schema::example()
//!     .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
//!     .feature("tokens", FeatureSpec::var_len(DType::Int64))
//!     .build()?;
//! assert_eq!(schema.features().len(), 2);
//!
//! // A feature that may be absent needs a default of as many values as its shape has.
//! let weight = FeatureSpec::fixed_len(&[2], DType::Float32).with_default([1.0f32]);
//! let refused = Schema::example().feature("weight", weight).build();
//! assert!(refused.unwrap_err().to_string().contains("2 values"));
//! # Ok::<(), tfseek::Error>(())
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod build;
mod check;
pub mod code;
mod infer;
mod json;
mod literal;
mod spec;

pub use build::{Schema, SchemaBuilder};
pub(crate) use check::elements;
pub use infer::{Finding, Inference};
pub use spec::{DType, FeatureSpec, Partition, SplitsDType};
