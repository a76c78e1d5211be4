//! Memory that is used again: a buffer that its last holder gives back.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Values that a batch owns: `'static`, `Send`, and cloned for the price of a counter. A slice.
///
/// The memory belongs to the parser's pool as well. When the last clone is dropped, wherever that is, the pool finds it
/// free and fills it again; when the pool is gone, the last clone frees it.
pub struct Buf<T> {
    data: Arc<Vec<T>>,
    len: usize,
}

impl<T> Buf<T> {
    /// Of no values. The one allocation is that of the counter.
    pub(super) fn new() -> Buf<T> {
        Buf { data: Arc::new(Vec::new()), len: 0 }
    }

    /// The memory to fill, if nobody else holds it. It keeps what was in it, length included, so that what is written over
    /// need not be cleared first.
    pub(super) fn memory(&mut self) -> Option<&mut Vec<T>> {
        Arc::get_mut(&mut self.data)
    }

    /// The first `len` values of the memory are the values of this buffer.
    pub(super) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.data.len());
    }
}

impl<T> From<Vec<T>> for Buf<T> {
    fn from(values: Vec<T>) -> Buf<T> {
        Buf { len: values.len(), data: Arc::new(values) }
    }
}

impl<T> Deref for Buf<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.data.get(..self.len).unwrap_or_default()
    }
}

impl<T> AsRef<[T]> for Buf<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Clone for Buf<T> {
    fn clone(&self) -> Buf<T> {
        Buf { data: Arc::clone(&self.data), len: self.len }
    }
}

impl<T> Default for Buf<T> {
    fn default() -> Buf<T> {
        Buf::new()
    }
}

impl<T: PartialEq> PartialEq for Buf<T> {
    fn eq(&self, other: &Buf<T>) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for Buf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
