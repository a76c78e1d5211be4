//! Tensors in one byte string: what `tf.io.serialize_tensor` writes and `tf.io.parse_tensor` reads.
//!
//! Pipelines put whole arrays into a bytes feature that way: a serialized `TensorProto`, of which a dtype, a shape and
//! the values are read and written here, for the dtypes that have a plain form in memory ([`TensorDType`]).
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
//! **What it costs.** Values that TensorFlow wrote are lent out of the input: no copy, and one small allocation for the
//! shape. Values in the typed fields, the form for people who build a `TensorProto` by hand, are decoded into memory of
//! their own.
//!
//! **What it is safe from.** A `TensorProto` may give fewer values than its shape has elements; the last one then
//! stands for all that are missing, and zero where there is none. So ten bytes can ask for terabytes. Such a *filled*
//! tensor may take 64 MiB unless told otherwise ([`TensorOptions::limit`]); beyond that it is refused before anything
//! is allocated. All others are bounded by the input. The rules are section 10 of `docs/format.md`.

mod build;
mod dtype;
mod element;
mod options;
mod parse;
mod proto;
mod shape;
mod value;

pub use build::{serialize_strings, serialize_tensor, serialize_values};
pub use dtype::TensorDType;
pub use element::Element;
pub use options::{DEFAULT_LIMIT, TensorOptions, parse_tensor};
pub use value::{Strings, Tensor};
