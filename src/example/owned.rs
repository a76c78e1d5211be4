//! Messages that own what they hold: the twins of the views, to be kept, compared, changed and written.

use super::build::{self, KeyOrder};
use super::build::{IntoBytes, ToFloat, ToInt64};
use super::feature::FeatureKind;
use crate::error::{EncodeError, Result};
use std::collections::BTreeMap;

/// A feature's values.
///
/// Equal are values with equal bits: a NaN is the same NaN, and 0.0 is not -0.0. So two features are equal if and
/// only if they are written as the same bytes.
#[derive(Clone, Debug, Default)]
pub enum FeatureBuf {
    /// No kind at all. TensorFlow's parsers take it for an absent feature.
    #[default]
    None,
    /// A bytes list.
    Bytes(Vec<Vec<u8>>),
    /// A float list.
    Float(Vec<f32>),
    /// An int64 list.
    Int64(Vec<i64>),
}

impl FeatureBuf {
    /// A bytes list.
    pub fn bytes(values: impl IntoIterator<Item: IntoBytes>) -> FeatureBuf {
        FeatureBuf::Bytes(values.into_iter().map(IntoBytes::into_bytes).collect())
    }

    /// A float list; values are rounded as [`ToFloat`] says.
    pub fn float(values: impl IntoIterator<Item: ToFloat>) -> FeatureBuf {
        FeatureBuf::Float(values.into_iter().map(ToFloat::to_float).collect())
    }

    /// An int64 list.
    ///
    /// # Errors
    /// [`EncodeError::Int64Range`] for an integer above 2^63 - 1.
    pub fn int64(values: impl IntoIterator<Item: ToInt64>) -> Result<FeatureBuf, EncodeError> {
        values.into_iter().map(ToInt64::to_int64).collect::<Result<_, _>>().map(FeatureBuf::Int64)
    }

    /// The kind, if there is one.
    pub fn kind(&self) -> Option<FeatureKind> {
        match self {
            FeatureBuf::None => None,
            FeatureBuf::Bytes(_) => Some(FeatureKind::Bytes),
            FeatureBuf::Float(_) => Some(FeatureKind::Float),
            FeatureBuf::Int64(_) => Some(FeatureKind::Int64),
        }
    }

    /// How many values there are; none in a feature without a kind.
    pub fn len(&self) -> usize {
        match self {
            FeatureBuf::None => 0,
            FeatureBuf::Bytes(v) => v.len(),
            FeatureBuf::Float(v) => v.len(),
            FeatureBuf::Int64(v) => v.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! from_values {
    ($($value:ty => $variant:ident),*) => {$(
        impl From<Vec<$value>> for FeatureBuf {
            fn from(values: Vec<$value>) -> FeatureBuf {
                FeatureBuf::$variant(values)
            }
        }
        impl<const N: usize> From<[$value; N]> for FeatureBuf {
            fn from(values: [$value; N]) -> FeatureBuf {
                FeatureBuf::$variant(values.into())
            }
        }
    )*};
}
from_values!(Vec<u8> => Bytes, f32 => Float, i64 => Int64);

impl<const N: usize> From<[&str; N]> for FeatureBuf {
    fn from(values: [&str; N]) -> FeatureBuf {
        FeatureBuf::bytes(values)
    }
}

impl PartialEq for FeatureBuf {
    fn eq(&self, other: &FeatureBuf) -> bool {
        use FeatureBuf::*;
        match (self, other) {
            (None, None) => true,
            (Bytes(a), Bytes(b)) => a == b,
            (Float(a), Float(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Int64(a), Int64(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for FeatureBuf {}

/// An Example that owns its features: a map, without an order of its own.
///
/// ```
/// use tfseek::example::{ExampleBuf, FeatureBuf};
/// let mut example = ExampleBuf::default();
/// assert_eq!(example.encode()?, b"");
/// example.features.insert("label".into(), FeatureBuf::Int64(vec![3]));
/// assert_eq!(example.encode()?, b"\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x03");
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExampleBuf {
    /// The features by key.
    pub features: BTreeMap<String, FeatureBuf>,
    /// Whether the field `features` is written though there are none: `0a 00` and no bytes at all are both an
    /// Example without features, and what was read is written again. With features it makes no difference to the
    /// bytes; it does to `==`.
    pub has_features: bool,
}

impl ExampleBuf {
    /// The message's bytes, keys as [`KeyOrder::Python`] has them.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        self.encode_in(KeyOrder::Python)
    }

    /// The message's bytes, keys in this order. A map was given none: [`KeyOrder::Given`] is [`KeyOrder::Bytes`] here.
    ///
    /// # Errors
    /// As [`encode`](ExampleBuf::encode).
    pub fn encode_in(&self, order: KeyOrder) -> Result<Vec<u8>> {
        let features = build::entries(&self.features, order);
        let mut out = Vec::new();
        build::put_example(&features, self.has_features, &mut out)?;
        Ok(out)
    }
}

/// A SequenceExample that owns its context and its feature lists: maps, without an order of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceExampleBuf {
    /// The features of the whole record.
    pub context: BTreeMap<String, FeatureBuf>,
    /// The features of each step, by key. A list without steps is still there.
    pub feature_lists: BTreeMap<String, Vec<FeatureBuf>>,
    /// Whether the field `context` is written though it is empty (`0a 00`).
    pub has_context: bool,
    /// Whether the field `feature_lists` is written though it is empty (`12 00`).
    pub has_feature_lists: bool,
}

impl SequenceExampleBuf {
    /// The message's bytes, keys as [`KeyOrder::Python`] has them.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        self.encode_in(KeyOrder::Python)
    }

    /// The message's bytes, keys in this order. A map was given none: [`KeyOrder::Given`] is [`KeyOrder::Bytes`] here.
    ///
    /// # Errors
    /// As [`encode`](SequenceExampleBuf::encode).
    pub fn encode_in(&self, order: KeyOrder) -> Result<Vec<u8>> {
        let context = build::entries(&self.context, order);
        let lists = build::entries(&self.feature_lists, order);
        let mut out = Vec::new();
        build::put_sequence(&context, self.has_context, &lists, self.has_feature_lists, &mut out)?;
        Ok(out)
    }
}
