//! Records of TFRecord files as Apache Arrow record batches.
//!
//! A [`Scan`] reads the records of a dataset, or of parts of one, as record batches. Below it, a
//! [`Converter`] knows the Arrow schema of a [`tfseek::Schema`], and makes a record batch of each batch of
//! its parser.
//!
//! ```
//! use arrow_array::Array;
//! use arrow_array::cast::AsArray;
//! use arrow_array::types::{Float32Type, Int64Type};
//! use tfseek::{DType, ExampleBuilder, FeatureSpec, Schema};
//! use tfseek_arrow::{Converter, Options};
//!
//! let schema = Schema::example()
//!     .feature("label", FeatureSpec::optional(DType::Int64))
//!     .feature("name", FeatureSpec::fixed_len(&[], DType::Bytes))
//!     .feature("weights", FeatureSpec::var_len(DType::Float32))
//!     .build()?;
//! let converter = Converter::new(&schema, &Options::new().text("name"))?;
//! let parser = converter.parser(); // create one, use it for all batches
//!
//! let rows = [
//!     ExampleBuilder::new().int64("label", [3]).bytes("name", ["ant"]).float("weights", [0.5f32, 1.0]).encode()?,
//!     ExampleBuilder::new().bytes("name", ["bee"]).encode()?,
//! ];
//! let batch = converter.record_batch(&parser.parse(&rows)?)?;
//! let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
//! assert_eq!(names, ["label", "weights", "name"]); // narrow columns first
//!
//! let labels: Vec<_> = batch["label"].as_primitive::<Int64Type>().iter().collect();
//! assert_eq!(labels, [Some(3), None]);
//! let weights = batch["weights"].as_list::<i32>();
//! assert_eq!(weights.value(0).as_primitive::<Float32Type>().values(), &[0.5, 1.0]);
//! assert!(weights.is_null(1));
//! assert_eq!(batch["name"].as_string_view().value(1), "bee");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Types
//!
//! Values are `Int64`, `Float32`, and `BinaryView` or the type of [`ByteStrings`], or the types of arrays.
//! They are never cast.
//!
//! | Spec | Arrow type | Absent feature |
//! | --- | --- | --- |
//! | `FixedLen` of shape `[]` | the value | the default, or an error |
//! | `FixedLen` of another shape | a `FixedSizeList` per dimension, or [`Tensors::Extension`] | the default, or an error |
//! | `Optional` | the value, nullable | null |
//! | `Optional` with a default | the value | the default |
//! | `FixedLenSequence` of shape S | `List` of the type of S, without padding | `[]` |
//! | `VarLen` | `List`, nullable | null |
//! | `Ragged` with k partitions | k + 1 `List`s, or `LargeList`s for 64-bit row splits; a `FixedSizeList` for a uniform partition. The outermost is nullable | null |
//! | `Sparse` with d index features | `Struct` of `indices`, a `List` of `FixedSizeList`s of d `Int64`s, and `values`, a `List` | `[]` in both |
//! | `Raw`, `Tensor` of shape S | the types of `FixedLen`, with values of the dtype; a `LargeList` for an open first dimension. Complex numbers and `bfloat16` are refused | an error |
//! | feature lists | `List` of the type of a step; nullable if the spec is `VarLen` or `Ragged` | null, or `[]` for `FixedLenSequence` |
//!
//! * A feature without a kind is an absent one, also in a context. An empty list with its kind is `[]`.
//! * A ragged column is null if the feature of its values is absent. It is not if the features of its
//!   partitions make rows without values, such as `[[], []]`.
//! * A column without nulls has no null buffer. A batch of a parser that does not record
//!   [presence](tfseek::BatchParser::presence) has `[]` for null lists; [`Converter::parser`] records it.
//! * Columns are ordered by width: scalars, arrays of fixed lengths, lists, byte strings. Columns of equal
//!   width are ordered by name.
//! * Features of a context and feature lists are columns side by side. If both have one name,
//!   [`Options::rename`] or [`Options::rename_list`] is needed.
//!
//! # Data sets of TensorFlow Datasets
//!
//! [`Converter::of_features`] has a column for each feature of the outermost dict, in the order of the
//! features, with decoded values.
//!
//! | Feature | Arrow type |
//! | --- | --- |
//! | a dict; a sequence of dicts, and steps | `Struct`; of lists. A dict without features has no column |
//! | a sequence, and a dimension of any size | `LargeList`; of a stated size, a `FixedSizeList`. k levels are k nested lists |
//! | an array of a fixed shape, also of sequences | a `FixedSizeList` per dimension, or [`Tensors::Extension`] |
//! | bool, integers, floats | their types. Complex numbers and `bfloat16` are refused |
//! | `ClassLabel` with names | `Dictionary` of `Int64` and `Utf8`, nullable, or [`ClassLabels::Numbers`]; without names `Int64` |
//! | `Text` | text, or byte strings without [`Options::text_features`] |
//! | pictures, videos and audio that are not decoded | byte strings: their files. [`DecodeOptions::encoded`](tfseek_tfds::DecodeOptions::encoded) |
//! | optional, with [`DecodeOptions::missing_none`](tfseek_tfds::DecodeOptions::missing_none) | nullable |
//! | of an unknown class | refused |
//!
//! Steps need [`DecodeOptions::batch_steps`](tfseek_tfds::DecodeOptions::batch_steps). The metadata of the
//! field of a leaf has `tfseek.class`, `tfseek.dtype` and `tfseek.shape` (a list in JSON, with `null` for any
//! size) of one item as the data set declares it, and `tfseek.stored` = `file` for files. `tfseek.labels` has
//! the names of labels in JSON, unless they are values of a dictionary.
//!
//! The label -1, which TFDS writes for "no label", is null in a dictionary, and any other number outside the
//! classes is an error. So no label is lost or gets a wrong name.
//!
//! # Memory
//!
//! Arrays of numbers and offsets of lists are the memory of the batch. The parser reuses this memory after
//! the last array over it is dropped, in any thread. These are copied: the indices of sparse columns, and
//! dense feature lists of different lengths.
//!
//! Byte strings of up to 12 bytes lie in their views. If the rows have regions (records of a
//! [`tfseek::Mapped`]), strings from 16 KiB on are shared, each as a buffer of its own, and keep the map
//! open. Shorter ones are copied together. Rows without regions are copied once, by the parser. So are the
//! rows of a [`Scan`] whose records have less than 16 KiB on average.
//!
//! # From record batches to records
//!
//! An [`Encoder`] makes the payload of a `tf.train.Example` of each row of a record batch, from any source.
//!
//! | Arrow type | Feature |
//! | --- | --- |
//! | integers of all widths, `Boolean` | int64; an integer above 2^63 - 1 is an error |
//! | `Float16`, `Float32`, `Float64` | float; a number that `Float32` does not have exactly is an error. NaN is kept |
//! | `Binary`, `Utf8` (also `Large`, and views), `FixedSizeBinary` | bytes |
//! | `List`, `ListView` (also `Large`) | the items as values; a null item is an error |
//! | `FixedSizeList`, also nested and inside a list; `arrow.fixed_shape_tensor` | the values of all dimensions, the last one fastest |
//! | `Dictionary` | the values that its keys refer to |
//! | `Null` | absent. A list of `Null` is a feature without a kind |
//! | a list around one of these, with [`EncoderOptions::feature_list`] | a feature list with a step per item. A null step has no kind |
//! | others, such as times, decimals, structs and lists of lists | an error that names the column |
//!
//! * A null is an absent feature, and an empty list is a feature with its kind and without values.
//! * Columns of a [`Converter`] lead back to equal features, with three exceptions. Columns that are not
//!   nullable have a value for an absent feature: the default, or `[]`. An `Optional` column is null for a
//!   feature without values, which is then absent. Partitions of ragged columns and indices of sparse ones do
//!   not state their features, so these columns are errors.
//! * A batch is encoded column by column, so numbers of other types are cast once per batch, and rows
//!   allocate nothing.

// No batch causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod arrays;
mod c_stream;
mod converter;
mod encode;
mod error;
mod features;
mod memory;
mod options;
mod plan;
mod scan;
mod spec;
mod strings;
mod tensor;

pub use c_stream::c_stream;
pub use converter::{Converter, schema_of};
pub use encode::{Encoder, EncoderOptions};
pub use error::{Error, ErrorKind};
pub use options::{ByteStrings, ClassLabels, Options, Tensors};
pub use scan::{Scan, ScanReader};
pub use spec::spec_of;
