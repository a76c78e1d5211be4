//! A tensor that was read: dtype, shape and values.

use super::{Element, TensorDType, build};
use crate::error::{Result, TensorError};
use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;

/// What a string counts besides its length, where a tensor is held against a limit: the slice that stands for it.
pub(super) const STRING_COST: u128 = 16;

/// A dtype, a shape, and the values in row-major order. Borrows the bytes it was parsed from, unless its values had to
/// be decoded or filled.
///
/// Two tensors are equal if their dtypes and shapes are and their values are bit for bit, so that NaN equals itself.
#[derive(Clone)]
pub struct Tensor<'a> {
    pub(super) dtype: TensorDType,
    pub(super) shape: Vec<u64>,
    pub(super) len: usize,
    pub(super) data: Data<'a>,
}

#[derive(Clone)]
pub(super) enum Data<'a> {
    /// Little-endian, as many bytes as all elements take.
    Numbers(Cow<'a, [u8]>),
    /// At most as many strings as elements. The last stands for all that are missing, "" where there is none.
    Strings(Vec<Cow<'a, [u8]>>),
}

impl<'a> Tensor<'a> {
    /// What the elements are.
    pub fn dtype(&self) -> TensorDType {
        self.dtype
    }

    /// The dimensions, outermost first; none for a scalar.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements as they lie in memory: little-endian, row-major, at any alignment. `None` for strings.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Numbers(bytes) => Some(bytes),
            Data::Strings(_) => None,
        }
    }

    /// The elements as a slice, if they happen to be aligned (and the machine is little-endian). Alignment is luck
    /// where the tensor borrows; an empty one always has it. For those without luck there is
    /// [`to_vec`](Tensor::to_vec).
    ///
    /// # Errors
    /// [`TensorError::DType`] if these are not the tensor's elements.
    pub fn as_slice<T: Element>(&self) -> Result<Option<&[T]>> {
        self.numbers::<T>().map(T::cast)
    }

    /// The elements, copied, at any alignment.
    ///
    /// # Errors
    /// [`TensorError::DType`] if these are not the tensor's elements.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let bytes = self.numbers::<T>()?;
        if let Some(slice) = T::cast(bytes) {
            return Ok(slice.to_vec());
        }
        let size = size_of::<T>();
        debug_assert_eq!(Some(size), T::DTYPE.size());
        Ok(bytes.chunks_exact(size).map(T::read).collect())
    }

    fn numbers<T: Element>(&self) -> Result<&[u8]> {
        match &self.data {
            Data::Numbers(bytes) if self.dtype == T::DTYPE => Ok(bytes),
            _ => Err(TensorError::DType { expected: T::DTYPE.name(), found: self.dtype.name() }.into()),
        }
    }

    /// The strings, in row-major order.
    ///
    /// # Errors
    /// [`TensorError::DType`] if the tensor's elements are numbers.
    pub fn strings(&self) -> Result<Strings<'_>> {
        match &self.data {
            Data::Strings(given) => Ok(Strings { given, next: 0, len: self.len }),
            Data::Numbers(_) => {
                let expected = TensorDType::String.name();
                Err(TensorError::DType { expected, found: self.dtype.name() }.into())
            }
        }
    }

    /// The same tensor with memory of its own.
    pub fn into_owned(self) -> Tensor<'static> {
        let own = |bytes: Cow<'a, [u8]>| Cow::Owned(bytes.into_owned());
        let data = match self.data {
            Data::Numbers(bytes) => Data::Numbers(own(bytes)),
            Data::Strings(given) => Data::Strings(given.into_iter().map(own).collect()),
        };
        Tensor { dtype: self.dtype, shape: self.shape, len: self.len, data }
    }

    /// The bytes that `tf.io.serialize_tensor` makes of this tensor, whatever form it was parsed from.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        match &self.data {
            Data::Numbers(bytes) => build::serialize_tensor(self.dtype, &self.shape, bytes),
            Data::Strings(given) => {
                build::put_strings(&self.shape, Strings { given, next: 0, len: self.len })
            }
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

/// The strings of a [`Tensor`].
#[derive(Clone)]
pub struct Strings<'t> {
    given: &'t [Cow<'t, [u8]>],
    next: usize,
    len: usize,
}

impl<'t> Iterator for Strings<'t> {
    type Item = &'t [u8];

    #[inline]
    fn next(&mut self) -> Option<&'t [u8]> {
        let k = self.next;
        if k >= self.len {
            return None;
        }
        self.next += 1;
        Some(self.given.get(k).or(self.given.last()).map_or(&[], |value| value))
    }

    /// Without going through those before it, so that `nth(k)` is a look-up.
    #[inline]
    fn nth(&mut self, k: usize) -> Option<&'t [u8]> {
        self.next = self.next.saturating_add(k).min(self.len);
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Strings<'_> {}
impl FusedIterator for Strings<'_> {}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings({} left)", self.len())
    }
}
