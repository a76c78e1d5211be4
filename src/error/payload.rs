//! What is wrong with payloads: the wire, features, tensors, and messages to be encoded.

use std::fmt;

/// Why bytes are not a well-formed message, and where in the payload.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What is wrong.
    pub kind: WireErrorKind,
    /// Byte offset in the payload at which the reader stood.
    pub offset: usize,
}

/// The ways in which a payload can be malformed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireErrorKind {
    /// A varint runs past the end of its message or chunk.
    CutVarint,
    /// A varint of more than ten bytes.
    LongVarint,
    /// A tag of more than five bytes or beyond 32 bits.
    BadTag,
    /// Field number 0.
    FieldZero,
    /// Wire type 6 or 7.
    WireType,
    /// A length of more than five bytes or beyond 2^31 - 1.
    BadLength,
    /// A length that goes beyond the enclosing message.
    LengthBeyondMessage,
    /// A fixed field that is cut off.
    CutFixed,
    /// Packed floats whose length is no multiple of 4.
    PackedFloatLength,
    /// Packed doubles whose length is no multiple of 8.
    PackedDoubleLength,
    /// An end of group without its start, or with another number.
    GroupEnd,
    /// A group that is never closed.
    GroupOpen,
    /// More than 100 levels of messages and groups.
    TooDeep,
    /// A key, or the name of a dimension, that is not UTF-8.
    Utf8,
    /// A map entry that holds an unknown field: decoders disagree on what it means.
    MapEntryUnknownField,
}

/// Why a feature is not what the caller asked for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureError {
    /// The record has no such feature.
    Missing {
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// The feature is there, without a kind.
    NoKind {
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// The feature is of another kind.
    WrongKind {
        /// The kind that was asked for.
        expected: &'static str,
        /// The kind that it has.
        found: &'static str,
    },
    /// A fixed number of values was asked for.
    Count {
        /// The number that was asked for.
        expected: usize,
        /// The number that there is.
        found: usize,
    },
    /// Blocks of a fixed number of values were asked for.
    Blocks {
        /// Values of a block.
        of: usize,
        /// Values that there are.
        found: usize,
    },
    /// A partition does not divide the values of its record.
    Partition {
        /// TensorFlow's name of the partition, and what it has to do.
        rule: &'static str,
        /// The number that the rule gives.
        expected: i64,
        /// The number that is there.
        found: i64,
    },
    /// A record has other numbers of indices and values.
    SparseCount {
        /// Values that there are.
        values: usize,
        /// Indices that there are.
        indices: usize,
    },
    /// More values than row splits of 32 bits can count.
    SplitsRange {
        /// Values that there are.
        found: usize,
    },
    /// An index that lies outside of its dimension.
    SparseIndex {
        /// Size of the dimension.
        size: u64,
        /// The index.
        found: i64,
    },
}

/// Why a message is no tensor, or bytes and a shape make none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The tensor is of another dtype.
    DType {
        /// The dtype that was asked for.
        expected: &'static str,
        /// The dtype that it has.
        found: &'static str,
    },
    /// A dtype number that stands for nothing, for a reference, or for something that has no plain form.
    UnsupportedDType {
        /// The number; 0 where the message has none.
        number: i32,
    },
    /// The shape says that it does not know how many dimensions it has.
    UnknownRank,
    /// A dimension below 0 or above 2^63 - 1.
    Dim {
        /// The dimension.
        found: i128,
    },
    /// More dimensions than TensorFlow's shapes have.
    TooManyDims {
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The product of the dimensions, taken in their order, goes beyond 2^63 - 1.
    TooManyElements,
    /// The bytes of the values are not as many as the elements take.
    ContentLen {
        /// Bytes that the elements take (saturating at `u64::MAX`).
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The bytes are not this many lengths and then strings of these lengths.
    StringContent {
        /// Strings that the shape asks for.
        elements: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A byte that is neither 0 nor 1 where a bool stands.
    Bool {
        /// Which element, in row-major order.
        element: u64,
        /// The byte.
        found: u8,
    },
    /// To write: the values are not as many as the shape has elements.
    Count {
        /// Elements of the shape.
        expected: u64,
        /// Values there are.
        found: u64,
    },
}

/// Why something cannot be written.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A key was given twice.
    DuplicateKey,
    /// An integer above 2^63 - 1 does not fit into an int64 list.
    Int64Range {
        /// The integer.
        value: u128,
    },
    /// The writer was closed.
    Closed,
    /// An earlier write failed, so what follows cannot be trusted.
    Failed,
    /// The process was forked: the file belongs to the parent, and the child has a copy of its buffers.
    Forked,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed message at payload byte {}: {}", self.offset, self.kind)
    }
}

impl fmt::Display for WireErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WireErrorKind::CutVarint => "varint runs past the end of its message",
            WireErrorKind::LongVarint => "varint of more than 10 bytes",
            WireErrorKind::BadTag => "tag of more than 5 bytes or 32 bits",
            WireErrorKind::FieldZero => "field number 0",
            WireErrorKind::WireType => "wire type 6 or 7",
            WireErrorKind::BadLength => "length of more than 5 bytes or 31 bits",
            WireErrorKind::LengthBeyondMessage => "length goes beyond the enclosing message",
            WireErrorKind::CutFixed => "fixed-width value is cut off",
            WireErrorKind::PackedFloatLength => "packed floats whose length is no multiple of 4",
            WireErrorKind::PackedDoubleLength => "packed doubles whose length is no multiple of 8",
            WireErrorKind::GroupEnd => "end of a group that was not started",
            WireErrorKind::GroupOpen => "group is never closed",
            WireErrorKind::TooDeep => "more than 100 levels of messages and groups",
            WireErrorKind::Utf8 => "key or name is not UTF-8",
            WireErrorKind::MapEntryUnknownField => {
                "map entry holds an unknown field, on whose meaning decoders disagree"
            }
        })
    }
}

impl fmt::Display for FeatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeatureError::Missing { expected } => {
                write!(f, "expected {expected}, the record has no such feature")
            }
            FeatureError::NoKind { expected } => {
                write!(f, "expected {expected}, found a feature without a kind")
            }
            FeatureError::WrongKind { expected, found } => write!(f, "expected {expected}, found {found}"),
            FeatureError::Count { expected, found } => write!(f, "expected {expected} values, found {found}"),
            FeatureError::Blocks { of, found } => {
                write!(f, "expected blocks of {of} values, found {found} values")
            }
            FeatureError::Partition { rule, expected, found } => {
                write!(f, "{rule}: expected {expected}, found {found}")
            }
            FeatureError::SparseCount { values, indices } => {
                write!(f, "expected an index for each of {values} values, found {indices}")
            }
            FeatureError::SplitsRange { found } => {
                write!(f, "row splits of 32 bits cannot count {found} values: ask for int64 ones")
            }
            FeatureError::SparseIndex { size, found } => {
                write!(f, "expected indices from 0 to below {size}, found {found}")
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
                write!(f, "dtype number {number} is not that of a dtype that can be read")
            }
            TensorError::UnknownRank => {
                f.write_str("expected a shape, found one that says its rank is unknown")
            }
            TensorError::Dim { found } => {
                write!(f, "expected a dimension of 0 to 2^63 - 1, found {found}")
            }
            TensorError::TooManyDims { found, limit } => {
                write!(f, "expected at most {limit} dimensions, found {found}")
            }
            TensorError::TooManyElements => f.write_str("the shape has more than 2^63 - 1 elements"),
            TensorError::ContentLen { expected, found } => {
                write!(f, "expected {expected} bytes for the shape's elements, found {found}")
            }
            TensorError::StringContent { elements, found } => {
                write!(f, "expected the lengths and bytes of {elements} strings, found {found} other bytes")
            }
            TensorError::Bool { element, found } => {
                write!(f, "expected 0 or 1 for bool {element}, found {found}")
            }
            TensorError::Count { expected, found } => {
                write!(f, "expected {expected} values for the shape's elements, found {found}")
            }
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::DuplicateKey => f.write_str("the key was given twice"),
            EncodeError::Int64Range { value } => write!(f, "{value} does not fit into an int64"),
            EncodeError::Closed => f.write_str("the writer is closed"),
            EncodeError::Failed => f.write_str("an earlier write failed, the file is given up"),
            EncodeError::Forked => f.write_str(
                "this process was forked from the one that writes the file, and cannot write to it",
            ),
        }
    }
}
