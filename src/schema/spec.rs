//! The specs of columns.

use crate::example::{FeatureBuf, FeatureKind};
use std::fmt;

/// The type of a column's values. There are no casts: a float list gives `float32`, and nothing else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 32-bit floats, from float lists.
    Float32,
    /// 64-bit signed integers, from int64 lists.
    Int64,
    /// Byte strings, from bytes lists; TensorFlow's `string`.
    Bytes,
}

impl DType {
    /// Returns TensorFlow's name: `float32`, `int64` or `string`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            DType::Float32 => "float32",
            DType::Int64 => "int64",
            DType::Bytes => "string",
        }
    }
}

impl From<FeatureKind> for DType {
    fn from(kind: FeatureKind) -> DType {
        match kind {
            FeatureKind::Float => DType::Float32,
            FeatureKind::Int64 => DType::Int64,
            FeatureKind::Bytes => DType::Bytes,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The type of the row splits of a ragged column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SplitsDType {
    /// 32 bits, TensorFlow's default. More than 2^31 - 1 values in a batch are an error.
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

/// One dimension of a ragged column, as another feature of the same record describes it. The keys are those of int64
/// features.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Partition {
    /// Where each row starts, and behind them the number of values: `[0, 2, 3]`.
    RowSplits(String),
    /// How long each row is: `[2, 1]`.
    RowLengths(String),
    /// Where each row starts: `[0, 2]`.
    RowStarts(String),
    /// Where each row ends: `[2, 3]`.
    RowLimits(String),
    /// The row of each value: `[0, 0, 1]`.
    ValueRowIds(String),
    /// Rows that are all of this length; no feature is needed.
    UniformRowLength(usize),
}

impl Partition {
    /// Returns TensorFlow's name, as in the JSON form: `row_splits`, ..
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

    /// Returns the feature that holds it.
    pub(crate) fn key(&self) -> Option<&str> {
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

/// The spec of one column. The variants and their fields have TensorFlow's names.
///
/// A feature is *absent* if the record has no entry of its key, or one without a kind. A list without values is not
/// absent: it has a kind and a count of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureSpec {
    /// A fixed number of values in each record: a dense column of shape `[n] + shape`.
    FixedLen {
        /// Shape of one record's values, row-major; `[]` is a scalar.
        shape: Vec<usize>,
        /// Type of the values.
        dtype: DType,
        /// What an absent feature gives: exactly as many values as `shape` has. Without it, absent is an error.
        default: Option<FeatureBuf>,
    },
    /// Any number of values: a sparse column (row, position) of shape `[n, longest]`.
    VarLen {
        /// Type of the values.
        dtype: DType,
    },
    /// Any number of blocks: a dense column of shape `[n, longest] + shape`, shorter records padded.
    FixedLenSequence {
        /// Shape of one block, row-major; `[]` is a scalar. Each dimension is at least 1.
        shape: Vec<usize>,
        /// Type of the values.
        dtype: DType,
        /// Whether an absent feature is one of no blocks. Must be set, except in feature lists.
        allow_missing: bool,
        /// The one value to pad with instead of 0, 0.0 or `""`. Not in feature lists.
        default: Option<FeatureBuf>,
    },
    /// Any number of values: a ragged column, of one more dimension for each partition.
    Ragged {
        /// Type of the values.
        dtype: DType,
        /// The feature that holds the values; the column's own name if there is none.
        value_key: Option<String>,
        /// How the values of one record are divided, outermost first.
        partitions: Vec<Partition>,
        /// Type of the row splits.
        row_splits_dtype: SplitsDType,
        /// Kept for the JSON form: partitions are always validated here.
        validate: bool,
    },
    /// Values and their indices from features of their own: a sparse column of shape `[n] + size`.
    Sparse {
        /// The int64 features that hold the indices, one for each dimension.
        index_keys: Vec<String>,
        /// The feature that holds the values.
        value_key: String,
        /// Type of the values.
        dtype: DType,
        /// Size of each dimension: an index is below it.
        size: Vec<u64>,
        /// Whether the entries of a record are taken to be sorted already.
        already_sorted: bool,
    },
}

impl FeatureSpec {
    /// A fixed number of values, required: see [`FixedLen`](FeatureSpec::FixedLen).
    pub fn fixed_len(shape: &[usize], dtype: DType) -> FeatureSpec {
        FeatureSpec::FixedLen { shape: shape.to_vec(), dtype, default: None }
    }

    /// Any number of values, sparse: see [`VarLen`](FeatureSpec::VarLen).
    pub fn var_len(dtype: DType) -> FeatureSpec {
        FeatureSpec::VarLen { dtype }
    }

    /// Any number of blocks, padded, none if absent: see [`FixedLenSequence`](FeatureSpec::FixedLenSequence).
    pub fn fixed_len_sequence(shape: &[usize], dtype: DType) -> FeatureSpec {
        FeatureSpec::FixedLenSequence { shape: shape.to_vec(), dtype, allow_missing: true, default: None }
    }

    /// Any number of values, ragged, with 32-bit row splits: see [`Ragged`](FeatureSpec::Ragged).
    pub fn ragged(dtype: DType) -> FeatureSpec {
        FeatureSpec::Ragged {
            dtype,
            value_key: None,
            partitions: Vec::new(),
            row_splits_dtype: SplitsDType::Int32,
            validate: false,
        }
    }

    /// Values at the indices of other features, one dimension each: see [`Sparse`](FeatureSpec::Sparse).
    pub fn sparse(index_keys: &[&str], value_key: &str, dtype: DType, size: &[u64]) -> FeatureSpec {
        FeatureSpec::Sparse {
            index_keys: index_keys.iter().map(|&key| key.to_owned()).collect(),
            value_key: value_key.to_owned(),
            dtype,
            size: size.to_vec(),
            already_sorted: false,
        }
    }

    /// Sets the default: the values of an absent `FixedLen`, or the padding of a `FixedLenSequence`. Other specs have none,
    /// and stay as they are.
    #[must_use]
    pub fn with_default(mut self, values: impl Into<FeatureBuf>) -> FeatureSpec {
        if let FeatureSpec::FixedLen { default, .. } | FeatureSpec::FixedLenSequence { default, .. } =
            &mut self
        {
            *default = Some(values.into());
        }
        self
    }

    /// Returns the type of the values.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            FeatureSpec::FixedLen { dtype, .. }
            | FeatureSpec::VarLen { dtype }
            | FeatureSpec::FixedLenSequence { dtype, .. }
            | FeatureSpec::Ragged { dtype, .. }
            | FeatureSpec::Sparse { dtype, .. } => *dtype,
        }
    }

    /// Returns the name of the variant in the JSON form: `fixed`, `varlen`, `fixed_sequence`, `ragged` or `sparse`.
    pub const fn name(&self) -> &'static str {
        match self {
            FeatureSpec::FixedLen { .. } => "fixed",
            FeatureSpec::VarLen { .. } => "varlen",
            FeatureSpec::FixedLenSequence { .. } => "fixed_sequence",
            FeatureSpec::Ragged { .. } => "ragged",
            FeatureSpec::Sparse { .. } => "sparse",
        }
    }
}
