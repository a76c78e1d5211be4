//! Serialized tensors, as `tf.io.serialize_tensor` writes and `tf.io.parse_tensor` reads them.
//!
//! Pipelines use them to store an array as one value of a bytes feature. This module reads and writes the
//! dtype, the shape and the values of a serialized `TensorProto`, for dtypes with a plain form in memory
//! ([`TensorDType`]).
//!
//! ```
//! use tfseek::tensor::{TensorDType, parse_tensor, serialize_values};
//!
//! let bytes = serialize_values(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
//! let tensor = parse_tensor(&bytes, TensorDType::Float32)?;
//! assert_eq!(tensor.shape(), [2, 2]);
//! assert_eq!(tensor.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), tfseek::Error>(())
//! ```
//!
//! **Cost.** Values that TensorFlow wrote are borrowed from the input. Nothing is copied, and only the shape
//! is allocated. Values in the typed fields, which a `TensorProto` built by hand may have, are decoded into a
//! buffer.
//!
//! **Memory limit.** A `TensorProto` may have fewer values than its shape has elements. The missing values
//! are then equal to the last one, or zero if there is none, so ten bytes can describe terabytes. A *filled*
//! tensor of this kind may take at most 64 MiB by default ([`parse_tensor_within`]). A larger one is rejected
//! before anything is allocated. The size of any other tensor is bounded by the input. The rules are in
//! section 10 of `docs/format.md`.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod build;
mod dtype;
mod element;
mod parse;
mod proto;
mod shape;
mod value;

pub use build::{serialize_strings, serialize_tensor, serialize_values};
pub use dtype::TensorDType;
pub use element::Element;
pub(crate) use parse::TensorHeader;
pub use parse::{DEFAULT_LIMIT, parse_tensor, parse_tensor_within};
pub use value::Tensor;
