//! Specs of columns.

use super::image::ImageSpec;
use crate::example::{DType, FeatureBuf};
use crate::tensor::TensorDType;
use std::sync::Arc;

/// The type of the row splits of a ragged column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SplitsDType {
    /// 32 bits, TensorFlow's default. A batch with more than 2^31 - 1 values is refused.
    #[default]
    Int32,
    /// 64 bits.
    Int64,
}

impl SplitsDType {
    /// Returns `int32` or `int64`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            SplitsDType::Int32 => "int32",
            SplitsDType::Int64 => "int64",
        }
    }
}

/// Returns the name of a byte order in JSON.
pub(super) const fn byte_order_name(little_endian: bool) -> &'static str {
    if little_endian { "little" } else { "big" }
}

/// One dimension of a ragged column, described by another feature of the same record.
///
/// Each key is the key of an int64 feature. The examples divide three values into rows of two values and of
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Partition {
    /// Start of each row, followed by the number of values: `[0, 2, 3]`.
    RowSplits(String),
    /// Length of each row: `[2, 1]`.
    RowLengths(String),
    /// Start of each row: `[0, 2]`.
    RowStarts(String),
    /// End of each row: `[2, 3]`.
    RowLimits(String),
    /// Row of each value: `[0, 0, 1]`.
    ValueRowIds(String),
    /// Length of all rows. No feature is needed.
    UniformRowLength(usize),
}

impl Partition {
    /// Returns TensorFlow's name, which is also the name in the JSON form, for example `row_splits`.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Partition::RowSplits(_) => "row_splits",
            Partition::RowLengths(_) => "row_lengths",
            Partition::RowStarts(_) => "row_starts",
            Partition::RowLimits(_) => "row_limits",
            Partition::ValueRowIds(_) => "value_rowids",
            Partition::UniformRowLength(_) => "uniform_row_length",
        }
    }

    /// Returns the key of the feature that describes the partition. `None` for a uniform length, which no
    /// feature describes.
    pub fn key(&self) -> Option<&str> {
        match self {
            Partition::RowSplits(key)
            | Partition::RowLengths(key)
            | Partition::RowStarts(key)
            | Partition::RowLimits(key)
            | Partition::ValueRowIds(key) => Some(key),
            Partition::UniformRowLength(_) => None,
        }
    }
}

/// The spec of one column. The variants and their fields have TensorFlow's names;
/// [`Optional`](FeatureSpec::Optional) is ours.
///
/// A feature is *absent* if the record has no entry with its key, or an entry without a kind. An empty list
/// is not absent: it has a kind and a count of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureSpec {
    /// A fixed number of values per record. The column is dense, of shape `[n] + shape`.
    FixedLen {
        /// Shape of the values of one record, row-major. `[]`: a scalar.
        shape: Vec<usize>,
        /// Type of the values.
        dtype: DType,
        /// Values of an absent feature, as many as `shape` has. `None`: an absent feature is an error.
        default: Option<FeatureBuf>,
    },
    /// At most one value per record. An absent feature and an empty list are missing values, and several
    /// values are an error. TensorFlow has no such spec. Tables that TFX writes have empty cells, and no
    /// number or string could stand for one.
    Optional {
        /// Type of the values.
        dtype: DType,
        /// Single value for records without one. The column is then dense, of shape `[n]`. `None`: the column
        /// is [optional](crate::batch::Optional), with values and presence.
        default: Option<FeatureBuf>,
    },
    /// Any number of values per record. The column is sparse, with indices (row, position) and shape
    /// `[n, longest]`.
    VarLen {
        /// Type of the values.
        dtype: DType,
    },
    /// Any number of blocks per record. The column is dense, of shape `[n, longest] + shape`; shorter records
    /// are padded.
    FixedLenSequence {
        /// Shape of one block, row-major; each dimension is at least 1. `[]`: a scalar.
        shape: Vec<usize>,
        /// Type of the values.
        dtype: DType,
        /// If true, an absent feature has no blocks. Must be true, except in feature lists.
        allow_missing: bool,
        /// Single value to pad with. `None`: 0, 0.0 or `""`. Feature lists cannot have one.
        default: Option<FeatureBuf>,
    },
    /// Any number of values per record. The column is ragged, with one more dimension per partition.
    Ragged {
        /// Type of the values.
        dtype: DType,
        /// Key of the feature with the values. `None`: the name of the column.
        value_key: Option<String>,
        /// Partitions of the values of one record, outermost first.
        partitions: Vec<Partition>,
        /// Type of the row splits.
        row_splits_dtype: SplitsDType,
        /// Kept for the JSON form and without effect, because partitions are always validated.
        validate: bool,
    },
    /// Values and indices from separate features. The column is sparse, of shape `[n] + size`.
    Sparse {
        /// Keys of the int64 features with the indices, one per dimension.
        index_keys: Vec<String>,
        /// Key of the feature with the values.
        value_key: String,
        /// Type of the values.
        dtype: DType,
        /// Size of each dimension. Indices are below it.
        size: Vec<u64>,
        /// If true, the entries of each record are assumed to be sorted.
        already_sorted: bool,
    },
    /// An array per record, as the bytes of one byte string, which `tf.io.decode_raw` reads. The column has
    /// the [values of an array](crate::batch::Values::Array). It is dense, of shape `[n] + shape`, or ragged
    /// if the first dimension is `None`. A byte of a bool that is not 0 becomes 1.
    Raw {
        /// Type of the elements. Not strings.
        dtype: TensorDType,
        /// Shape of the array of one record, row-major. Only the first dimension can be `None`, which is any
        /// size.
        shape: Vec<Option<usize>>,
        /// If true, the elements have their lowest byte first in the records, otherwise last. The column has
        /// the machine's order.
        little_endian: bool,
        /// If true, longer byte strings are cut and shorter ones get bytes of 0 at their end, as with
        /// `fixed_length` of `tf.io.decode_raw`. Otherwise both are errors.
        fixed_length: bool,
    },
    /// A picture per record, as the bytes of a file, such as a JPEG. A parser decodes it with its
    /// [decoder](crate::BatchParser::decoder), and refuses it without one. The column is dense, of shape `[n, height, width, channels]` or with the channels first, and has the
    /// [values of an array](crate::batch::Values::Array).
    Image(ImageSpec),
    /// An array per record, as one byte string that `tf.io.serialize_tensor` wrote: a `TensorProto`. The
    /// column is the same as for [`Raw`](FeatureSpec::Raw).
    Tensor {
        /// Type of the elements. Not strings. Each tensor must have it.
        dtype: TensorDType,
        /// Shape of the array of one record. Each tensor must have it. Only the first dimension can be
        /// `None`, which is any size.
        shape: Vec<Option<usize>>,
    },
    /// The number of a byte string: its position in a vocabulary. The column is dense, of shape `[n]` and of
    /// int64.
    Label {
        /// The strings, each once.
        vocabulary: Arc<[Box<[u8]>]>,
        /// The number of all other strings. `None`: they are errors.
        unknown: Option<i64>,
    },
    /// One number of each of several features, side by side. The column is dense, of shape
    /// `[n, keys.len()]`.
    Stack {
        /// Keys of the features, in the order of the columns. No other column has them.
        keys: Vec<String>,
        /// Type of the values. Not strings.
        dtype: DType,
        /// Single value of each absent feature. `None`: an absent feature is an error.
        default: Option<FeatureBuf>,
    },
    /// Any number of byte strings per record, each an array without an open dimension, a picture of a given
    /// size, or a label. An absent feature has none. The column is ragged with 64-bit row splits: a row has
    /// the array of each of its byte strings.
    ///
    /// In a feature list, whose steps have one byte string each, such a spec stands by itself and makes the
    /// same column.
    Several(Box<FeatureSpec>),
}

impl FeatureSpec {
    /// Returns a spec of a fixed number of values, without a default: see
    /// [`FixedLen`](FeatureSpec::FixedLen).
    pub fn fixed_len(shape: &[usize], dtype: DType) -> FeatureSpec {
        FeatureSpec::FixedLen { shape: shape.to_vec(), dtype, default: None }
    }

    /// Returns a spec of at most one value, without a default: see [`Optional`](FeatureSpec::Optional).
    pub fn optional(dtype: DType) -> FeatureSpec {
        FeatureSpec::Optional { dtype, default: None }
    }

    /// Returns a spec of any number of values, sparse: see [`VarLen`](FeatureSpec::VarLen).
    pub fn var_len(dtype: DType) -> FeatureSpec {
        FeatureSpec::VarLen { dtype }
    }

    /// Returns a spec of any number of padded blocks, with `allow_missing`: see
    /// [`FixedLenSequence`](FeatureSpec::FixedLenSequence).
    pub fn fixed_len_sequence(shape: &[usize], dtype: DType) -> FeatureSpec {
        FeatureSpec::FixedLenSequence { shape: shape.to_vec(), dtype, allow_missing: true, default: None }
    }

    /// Returns a spec of any number of values, ragged, with 32-bit row splits: see
    /// [`Ragged`](FeatureSpec::Ragged).
    pub fn ragged(dtype: DType) -> FeatureSpec {
        FeatureSpec::Ragged {
            dtype,
            value_key: None,
            partitions: Vec::new(),
            row_splits_dtype: SplitsDType::Int32,
            validate: false,
        }
    }

    /// Returns a spec of values at the indices in other features, one feature per dimension: see
    /// [`Sparse`](FeatureSpec::Sparse).
    pub fn sparse(index_keys: &[&str], value_key: &str, dtype: DType, size: &[u64]) -> FeatureSpec {
        FeatureSpec::Sparse {
            index_keys: index_keys.iter().map(|&key| key.to_owned()).collect(),
            value_key: value_key.to_owned(),
            dtype,
            size: size.to_vec(),
            already_sorted: false,
        }
    }

    /// Returns a spec of arrays as little-endian bytes, one byte string per record: see
    /// [`Raw`](FeatureSpec::Raw).
    ///
    /// ```
    /// use tfseek::batch::{BatchParser, Values};
    /// use tfseek::{ExampleBuilder, FeatureSpec, Schema, TensorDType};
    /// let pixels = FeatureSpec::raw(&[Some(2), Some(2)], TensorDType::UInt16);
    /// let schema = Schema::example().feature("pixels", pixels).build()?;
    /// let row = ExampleBuilder::new().bytes("pixels", [&[1, 0, 2, 0, 3, 0, 0, 1]]).encode()?;
    /// let batch = BatchParser::new(&schema).parse(&[row])?;
    /// let Some(Values::Array(pixels)) = batch.get("pixels").map(|column| column.values()) else { panic!() };
    /// assert_eq!(pixels.as_slice::<u16>()?, [1, 2, 3, 256]);
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    pub fn raw(shape: &[Option<usize>], dtype: TensorDType) -> FeatureSpec {
        FeatureSpec::Raw { dtype, shape: shape.to_vec(), little_endian: true, fixed_length: false }
    }

    /// Returns the spec of each byte string of a record, if it has [`Several`](FeatureSpec::Several). Others
    /// return themselves.
    pub fn of_string(&self) -> &FeatureSpec {
        match self {
            FeatureSpec::Several(of) => of,
            one => one,
        }
    }

    /// Sets the default: the values of an absent `FixedLen` feature, the value of a missing `Optional` one or
    /// of each absent one of a `Stack`, or the padding of a `FixedLenSequence`. Other specs have no default and do not change.
    #[must_use]
    pub fn with_default(mut self, values: impl Into<FeatureBuf>) -> FeatureSpec {
        if let FeatureSpec::FixedLen { default, .. }
        | FeatureSpec::Optional { default, .. }
        | FeatureSpec::FixedLenSequence { default, .. }
        | FeatureSpec::Stack { default, .. } = &mut self
        {
            *default = Some(values.into());
        }
        self
    }

    /// Returns true for the spec of one byte string, of which there can be several.
    pub(crate) const fn is_of_string(&self) -> bool {
        use FeatureSpec::{Image, Label, Raw, Tensor};
        matches!(self, Raw { .. } | Tensor { .. } | Image(_) | Label { .. })
    }

    /// Returns the type of the values in the records, which for arrays is the type of byte strings.
    pub fn dtype(&self) -> DType {
        match self {
            FeatureSpec::Raw { .. }
            | FeatureSpec::Tensor { .. }
            | FeatureSpec::Image(_)
            | FeatureSpec::Label { .. }
            | FeatureSpec::Several(_) => DType::Bytes,
            FeatureSpec::FixedLen { dtype, .. }
            | FeatureSpec::Optional { dtype, .. }
            | FeatureSpec::VarLen { dtype }
            | FeatureSpec::FixedLenSequence { dtype, .. }
            | FeatureSpec::Ragged { dtype, .. }
            | FeatureSpec::Stack { dtype, .. }
            | FeatureSpec::Sparse { dtype, .. } => *dtype,
        }
    }

    /// Returns the name of the variant in the JSON form: `fixed`, `optional`, `varlen`, `fixed_sequence`,
    /// `ragged`, `sparse`, `raw`, `tensor`, `image`, `label`, `stack` or `several`.
    pub const fn name(&self) -> &'static str {
        match self {
            FeatureSpec::FixedLen { .. } => "fixed",
            FeatureSpec::Optional { .. } => "optional",
            FeatureSpec::VarLen { .. } => "varlen",
            FeatureSpec::FixedLenSequence { .. } => "fixed_sequence",
            FeatureSpec::Ragged { .. } => "ragged",
            FeatureSpec::Sparse { .. } => "sparse",
            FeatureSpec::Raw { .. } => "raw",
            FeatureSpec::Tensor { .. } => "tensor",
            FeatureSpec::Image(_) => "image",
            FeatureSpec::Label { .. } => "label",
            FeatureSpec::Stack { .. } => "stack",
            FeatureSpec::Several(_) => "several",
        }
    }
}
