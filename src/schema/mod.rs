//! Schemas: the features to read from a record, and the shapes and types of their arrays, equivalent to
//! TensorFlow's feature specs.
//!
//! A [`Schema`] has named columns, each with a [`FeatureSpec`]. A [`BatchParser`](crate::batch::BatchParser)
//! parses records into arrays by a schema. Names and semantics are the same as in `tf.io.parse_example` and
//! `tf.io.parse_sequence_example`.
//!
//! A schema is built in code, or read from JSON ([`Schema::from_json`]). It can be written as JSON
//! ([`Schema::to_json`]).
//!
//! ```
//! use tfseek::schema::{DType, FeatureSpec, Schema};
//! let schema = Schema::example()
//!     .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
//!     .feature("tokens", FeatureSpec::var_len(DType::Int64))
//!     .build()?;
//! assert_eq!(schema.features().len(), 2);
//!
//! // The default of an absent feature must have the number of values of its shape.
//! let weight = FeatureSpec::fixed_len(&[2], DType::Float32).with_default([1.0f32]);
//! let refused = Schema::example().feature("weight", weight).build();
//! assert!(refused.unwrap_err().to_string().contains("2 values"));
//! # Ok::<(), tfseek::Error>(())
//! ```

mod build;
mod check;
mod image;
mod json;
mod spec;

pub use crate::example::DType;
pub use build::{Schema, SchemaBuilder};
pub(crate) use check::array_sizes;
pub use image::{Crop, ImageSpec, MOST_PIXELS, Resize};
pub use spec::{FeatureSpec, Partition, SplitsDType};
