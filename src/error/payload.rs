//! Errors about payloads: features, tensors, encoding.

use super::text::Count;
use std::fmt;

/// The reason why a feature does not match the request.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureError {
    /// The record does not have the feature.
    Missing {
        /// Requested kind.
        expected: &'static str,
    },
    /// The feature exists but has no kind.
    NoKind {
        /// Requested kind.
        expected: &'static str,
    },
    /// The feature has another kind.
    WrongKind {
        /// Requested kind.
        expected: &'static str,
        /// Kind of the feature.
        found: &'static str,
    },
    /// The feature does not have the requested fixed number of values.
    Count {
        /// Requested number of values.
        expected: usize,
        /// Number of values in the feature.
        found: usize,
    },
    /// The feature has several values, where at most one is requested.
    Several {
        /// Number of values in the feature.
        found: usize,
    },
    /// The number of values is not a multiple of the requested block size.
    Blocks {
        /// Number of values per block.
        of: usize,
        /// Number of values in the feature.
        found: usize,
    },
    /// A partition of a ragged feature does not match the values of its record.
    Partition {
        /// TensorFlow's name of the partition, and the rule that it breaks.
        rule: &'static str,
        /// Number required by the rule.
        expected: i64,
        /// Number in the record.
        found: i64,
    },
    /// The numbers of indices and values of a sparse feature differ.
    SparseCount {
        /// Number of values.
        values: usize,
        /// Number of indices.
        indices: usize,
    },
    /// The number of values exceeds the range of int32 row splits.
    SplitsRange {
        /// Number of values.
        found: usize,
    },
    /// A sparse index is outside its dimension.
    SparseIndex {
        /// Size of the dimension.
        size: u64,
        /// Index found in the record.
        found: i64,
    },
    /// A byte string does not have the bytes of an array.
    ArrayLen {
        /// Bytes of the array. Saturates at `u64::MAX`.
        expected: u64,
        /// Bytes of the string.
        found: usize,
    },
    /// A byte string is not a whole number of items of an array.
    ArrayItems {
        /// Bytes of an item. Saturates at `u64::MAX`.
        of: u64,
        /// Bytes of the string.
        found: usize,
    },
}

/// The reason why a message is not a valid tensor, or why values and a shape cannot form one.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The tensor has another dtype.
    DType {
        /// Requested dtype.
        expected: &'static str,
        /// Dtype of the tensor.
        found: &'static str,
    },
    /// The dtype number is undefined, a reference type, or a type without a plain binary form.
    UnsupportedDType {
        /// Number of the dtype. 0 if the message contains none.
        number: i32,
    },
    /// The shape has an unknown rank.
    UnknownRank,
    /// A dimension is below 0 or above 2^63 - 1.
    Dim {
        /// Size of the dimension.
        found: i128,
    },
    /// The shape has more dimensions than a TensorFlow shape can have.
    TooManyDims {
        /// Number of dimensions.
        found: usize,
        /// Limit of the number.
        limit: usize,
    },
    /// The product of the dimensions, multiplied in their order, exceeds 2^63 - 1.
    TooManyElements,
    /// The number of content bytes does not match the shape.
    ContentLen {
        /// Number of bytes of the shape's elements. Saturates at `u64::MAX`.
        expected: u64,
        /// Number of bytes in the message.
        found: u64,
    },
    /// The content bytes are not one length per string followed by the strings.
    StringContent {
        /// Number of strings in the shape.
        elements: u64,
        /// Number of bytes in the message.
        found: u64,
    },
    /// The byte of a bool is neither 0 nor 1.
    Bool {
        /// Index of the element in row-major order.
        element: u64,
        /// Value of the byte.
        found: u8,
    },
    /// On serialization, the number of values does not match the shape.
    Count {
        /// Number of elements of the shape.
        expected: u64,
        /// Number of values.
        found: u64,
    },
    /// The tensor has another number of dimensions.
    Rank {
        /// Requested number of dimensions.
        expected: usize,
        /// Number of dimensions of the tensor.
        found: usize,
    },
    /// A dimension of the tensor has another size.
    DimSize {
        /// Number of the dimension, from 0.
        dim: usize,
        /// Requested size.
        expected: u64,
        /// Size in the tensor.
        found: u64,
    },
}

/// The reason why a message or a file cannot be written.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A key was passed twice.
    DuplicateKey,
    /// An integer above 2^63 - 1 cannot be stored in an int64 list.
    Int64Range {
        /// Value of the integer.
        value: u128,
    },
    /// A finite number beyond the range of `f32` cannot be stored in a float list.
    FloatRange {
        /// The number.
        value: Box<str>,
    },
    /// The writer is closed.
    Closed,
    /// An earlier write failed, so nothing more is written.
    Failed,
    /// The process is a forked child. The file belongs to the parent, and the child has a copy of its
    /// buffers.
    Forked,
}

impl fmt::Display for FeatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeatureError::Missing { expected } => {
                write!(f, "expected {expected}, found no such feature")
            }
            FeatureError::NoKind { expected } => {
                write!(f, "expected {expected}, found a feature without a kind")
            }
            FeatureError::WrongKind { expected, found } => write!(f, "expected {expected}, found {found}"),
            FeatureError::Count { expected, found } => {
                write!(f, "expected {}, found {found}", Count(*expected as u64, "value"))
            }
            FeatureError::Several { found } => write!(f, "expected at most 1 value, found {found}"),
            FeatureError::Blocks { of, found } => {
                write!(f, "expected a multiple of {of} values, found {found}")
            }
            FeatureError::Partition { rule, expected, found } => {
                write!(f, "{rule}: expected {expected}, found {found}")
            }
            FeatureError::SparseCount { values, indices } => {
                write!(f, "expected {values} indices, one per value, found {indices}")
            }
            FeatureError::SplitsRange { found } => {
                write!(
                    f,
                    "expected at most 2^31 - 1 values for int32 row splits, found {found}: use int64 row splits"
                )
            }
            FeatureError::SparseIndex { size, found } => {
                write!(f, "expected an index from 0 to below {size}, found {found}")
            }
            FeatureError::ArrayLen { expected, found } => {
                write!(f, "expected {} of an array, found {found}", Count(*expected, "byte"))
            }
            FeatureError::ArrayItems { of, found } => {
                write!(f, "expected a multiple of {} of an array, found {found}", Count(*of, "byte"))
            }
        }
    }
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::DType { expected, found } => {
                write!(f, "expected a tensor of {expected}, found {found}")
            }
            TensorError::UnsupportedDType { number } => {
                write!(f, "expected the number of a supported dtype, found {number}")
            }
            TensorError::UnknownRank => {
                f.write_str("expected a shape of known rank, found one of unknown rank")
            }
            TensorError::Dim { found } => {
                write!(f, "expected a dimension of 0 to 2^63 - 1, found {found}")
            }
            TensorError::TooManyDims { found, limit } => {
                write!(f, "expected at most {limit} dimensions, found {found}")
            }
            TensorError::TooManyElements => {
                f.write_str("expected a shape of at most 2^63 - 1 elements, found more")
            }
            TensorError::ContentLen { expected, found } => {
                write!(f, "expected {} for the shape's elements, found {found}", Count(*expected, "byte"))
            }
            TensorError::StringContent { elements, found } => {
                write!(
                    f,
                    "expected the lengths and bytes of {}, found {} of another form",
                    Count(*elements, "string"),
                    Count(*found, "byte")
                )
            }
            TensorError::Bool { element, found } => {
                write!(f, "expected 0 or 1 for bool {element}, found {found}")
            }
            TensorError::Count { expected, found } => {
                write!(f, "expected {} for the shape's elements, found {found}", Count(*expected, "value"))
            }
            TensorError::Rank { expected, found } => {
                write!(f, "expected a tensor of {}, found {found}", Count(*expected as u64, "dimension"))
            }
            TensorError::DimSize { dim, expected, found } => {
                write!(f, "expected a tensor of size {expected} in dimension {dim}, found {found}")
            }
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::DuplicateKey => f.write_str("the key is given twice"),
            EncodeError::Int64Range { value } => write!(f, "{value} does not fit into an int64"),
            EncodeError::FloatRange { value } => write!(f, "{value} does not fit into a float32"),
            EncodeError::Closed => f.write_str("the writer is closed"),
            EncodeError::Failed => f.write_str("an earlier write failed, so nothing more is written"),
            EncodeError::Forked => {
                f.write_str("this process is a forked child, and only its parent can write to the file")
            }
        }
    }
}
