//! An owned feature.

use super::feature::Feature;
use super::feature_slice::FeatureSlice;
use super::kind::DType;
use super::values::{IntoBytes, ToNumber};
use crate::error::{EncodeError, Error, Result};

/// An owned feature: a list of one of three kinds, or no list.
///
/// Values are compared by their bits: a NaN equals the same NaN, and 0.0 does not equal -0.0. Two features
/// are therefore equal if and only if they are encoded as the same bytes.
#[derive(Clone, Debug, Default)]
pub enum FeatureBuf {
    /// No kind. TensorFlow's parsers treat it as an absent feature.
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
    /// Creates a bytes list.
    pub(crate) fn bytes(values: impl IntoIterator<Item: IntoBytes>) -> FeatureBuf {
        FeatureBuf::Bytes(values.into_iter().map(IntoBytes::into_bytes).collect())
    }

    /// Creates a float list. Values are rounded as described for [`ToNumber`].
    ///
    /// # Errors
    /// [`EncodeError::FloatRange`] for a finite number that would become infinite.
    pub(crate) fn float(values: impl IntoIterator<Item: ToNumber<f32>>) -> Result<FeatureBuf, EncodeError> {
        values.into_iter().map(ToNumber::to_number).collect::<Result<_, _>>().map(FeatureBuf::Float)
    }

    /// Creates an int64 list.
    ///
    /// # Errors
    /// [`EncodeError::Int64Range`] for an integer above 2^63 - 1.
    pub(crate) fn int64(values: impl IntoIterator<Item: ToNumber<i64>>) -> Result<FeatureBuf, EncodeError> {
        values.into_iter().map(ToNumber::to_number).collect::<Result<_, _>>().map(FeatureBuf::Int64)
    }

    /// Returns the values as slices.
    pub(super) fn slices(&self) -> FeatureSlice<'_, Vec<u8>> {
        match self {
            FeatureBuf::None => FeatureSlice::None,
            FeatureBuf::Bytes(v) => FeatureSlice::Bytes(v),
            FeatureBuf::Float(v) => FeatureSlice::Float(v),
            FeatureBuf::Int64(v) => FeatureSlice::Int64(v),
        }
    }

    /// Returns the kind, if there is one.
    pub(crate) fn kind(&self) -> Option<DType> {
        match self {
            FeatureBuf::None => None,
            FeatureBuf::Bytes(_) => Some(DType::Bytes),
            FeatureBuf::Float(_) => Some(DType::Float32),
            FeatureBuf::Int64(_) => Some(DType::Int64),
        }
    }

    /// Returns the number of values, 0 without a kind.
    pub(crate) fn len(&self) -> usize {
        match self {
            FeatureBuf::None => 0,
            FeatureBuf::Bytes(v) => v.len(),
            FeatureBuf::Float(v) => v.len(),
            FeatureBuf::Int64(v) => v.len(),
        }
    }
}

impl TryFrom<Feature<'_>> for FeatureBuf {
    type Error = Error;

    /// Copies the values.
    ///
    /// # Errors
    /// There is not enough memory.
    fn try_from(feature: Feature<'_>) -> Result<FeatureBuf> {
        Ok(match feature {
            Feature::None => FeatureBuf::None,
            Feature::Bytes(list) => FeatureBuf::Bytes(list.try_to_vec()?),
            Feature::Float(list) => FeatureBuf::Float(list.try_to_vec()?),
            Feature::Int64(list) => FeatureBuf::Int64(list.try_to_vec()?),
        })
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
