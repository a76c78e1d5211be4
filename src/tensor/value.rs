//! A parsed tensor: dtype, shape and values.

use super::{Element, TensorDType, build};
use crate::error::{Result, TensorError};
use crate::memory::room;
use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

/// Bytes that each string of a tensor counts in addition to its length, for the limit: the size of its slice.
pub(super) const STRING_COST: u128 = 16;

/// A tensor: a dtype, a shape, and the values in row-major order. It borrows the bytes that it was parsed
/// from, unless its values had to be decoded or filled.
///
/// Two tensors are equal if their dtypes, their shapes and the bits of their values are equal. A NaN
/// therefore equals itself.
#[derive(Clone)]
pub struct Tensor<'a> {
    pub(super) dtype: TensorDType,
    pub(super) shape: Vec<u64>,
    pub(super) len: usize,
    pub(super) data: TensorData<'a>,
}

#[derive(Clone)]
pub(super) enum TensorData<'a> {
    /// The bytes of all elements, little-endian.
    Numbers(Cow<'a, [u8]>),
    /// The strings, not more than there are elements. Missing strings are equal to the last one, or "" if
    /// there is none.
    Strings(Vec<Cow<'a, [u8]>>),
}

impl<'a> Tensor<'a> {
    /// Returns the type of the elements.
    pub fn dtype(&self) -> TensorDType {
        self.dtype
    }

    /// Returns the dimensions, outermost first. A scalar has none.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the bytes of the elements: little-endian, row-major, at any alignment. `None` for strings.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.data {
            TensorData::Numbers(bytes) => Some(bytes),
            TensorData::Strings(_) => None,
        }
    }

    /// Returns the elements as a slice, if they are aligned and the machine is little-endian.
    ///
    /// The elements of a tensor that borrows its input may or may not be aligned. The elements of an empty
    /// tensor always are. [`to_vec`](Tensor::to_vec) works at any alignment.
    ///
    /// # Errors
    /// [`TensorError::DType`] if the tensor has another dtype.
    pub fn as_slice<T: Element>(&self) -> Result<Option<&[T]>> {
        self.numbers::<T>().map(T::cast)
    }

    /// Copies the elements into a vector, at any alignment.
    ///
    /// # Errors
    /// [`TensorError::DType`] if the tensor has another dtype. [`ErrorKind::Io`](crate::ErrorKind::Io) if
    /// there is not enough memory.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let bytes = self.numbers::<T>()?;
        let size = size_of::<T>();
        debug_assert_eq!(Some(size), T::DTYPE.size());
        let mut values = room(bytes.len().checked_div(size).unwrap_or_default())?;
        match T::cast(bytes) {
            Some(slice) => values.extend_from_slice(slice),
            None => values.extend(bytes.chunks_exact(size).map(T::read)),
        }
        Ok(values)
    }

    fn numbers<T: Element>(&self) -> Result<&[u8]> {
        match &self.data {
            TensorData::Numbers(bytes) if self.dtype == T::DTYPE => Ok(bytes),
            _ => Err(TensorError::DType { expected: T::DTYPE.name(), found: self.dtype.name() }.into()),
        }
    }

    /// Returns an iterator over the strings, in row-major order.
    ///
    /// # Errors
    /// [`TensorError::DType`] if the tensor's elements are numbers.
    pub fn strings(
        &self,
    ) -> Result<impl ExactSizeIterator<Item = &[u8]> + FusedIterator + Clone + fmt::Debug> {
        match &self.data {
            TensorData::Strings(given) => Ok(Strings { given, left: 0..self.len }),
            TensorData::Numbers(_) => {
                let expected = TensorDType::String.name();
                Err(TensorError::DType { expected, found: self.dtype.name() }.into())
            }
        }
    }

    /// Copies borrowed values, so that the tensor borrows nothing.
    pub fn into_owned(self) -> Tensor<'static> {
        let into_owned = |bytes: Cow<'a, [u8]>| Cow::Owned(bytes.into_owned());
        let data = match self.data {
            TensorData::Numbers(bytes) => TensorData::Numbers(into_owned(bytes)),
            TensorData::Strings(given) => TensorData::Strings(given.into_iter().map(into_owned).collect()),
        };
        Tensor { dtype: self.dtype, shape: self.shape, len: self.len, data }
    }

    /// Serializes the tensor. The bytes are the same as from `tf.io.serialize_tensor`, independent of the
    /// form that the tensor was parsed from.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        match self.as_bytes() {
            Some(bytes) => build::serialize_tensor(self.dtype, &self.shape, bytes),
            None => build::put_strings(&self.shape, self.strings()?),
        }
    }
}

impl PartialEq for Tensor<'_> {
    fn eq(&self, other: &Tensor<'_>) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && match (self.strings(), other.strings()) {
                (Ok(a), Ok(b)) => a.eq(b),
                _ => self.as_bytes() == other.as_bytes(),
            }
    }
}

impl Eq for Tensor<'_> {}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}{:?})", self.dtype, self.shape)
    }
}

/// An iterator over the strings of a [`Tensor`].
#[derive(Clone)]
struct Strings<'t> {
    given: &'t [Cow<'t, [u8]>],
    /// Numbers of the strings.
    left: Range<usize>,
}

impl<'t> Strings<'t> {
    fn get(&self, k: usize) -> &'t [u8] {
        self.given.get(k).or(self.given.last()).map_or(&[], |value| value)
    }
}

impl<'t> Iterator for Strings<'t> {
    type Item = &'t [u8];

    #[inline]
    fn next(&mut self) -> Option<&'t [u8]> {
        self.left.next().map(|k| self.get(k))
    }

    /// Skips `k` strings in O(1).
    #[inline]
    fn nth(&mut self, k: usize) -> Option<&'t [u8]> {
        self.left.nth(k).map(|k| self.get(k))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for Strings<'_> {}
impl FusedIterator for Strings<'_> {}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings({} left)", self.len())
    }
}
