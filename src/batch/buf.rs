//! Memory that is used again: a buffer that its last holder gives back.

use crate::io::Region;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// Values that a batch owns: `'static`, `Send`, and cloned for the price of a counter. A slice.
///
/// The memory belongs to the parser's pool as well. When the last clone is dropped, wherever that is, the pool finds it
/// free and fills it again; when the pool is gone, the last clone frees it.
pub struct Buf<T> {
    /// `None` is an empty buffer that costs nothing.
    data: Option<Arc<Vec<T>>>,
    len: usize,
}

impl<T> From<Vec<T>> for Buf<T> {
    fn from(values: Vec<T>) -> Buf<T> {
        Buf { len: values.len(), data: Some(Arc::new(values)) }
    }
}

impl<T> Deref for Buf<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.data.as_ref().and_then(|data| data.get(..self.len)).unwrap_or_default()
    }
}

impl<T> AsRef<[T]> for Buf<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Clone for Buf<T> {
    fn clone(&self) -> Buf<T> {
        Buf { data: self.data.clone(), len: self.len }
    }
}

impl<T> Default for Buf<T> {
    fn default() -> Buf<T> {
        Buf { data: None, len: 0 }
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

/// Buffers of one purpose that were handed out: those whose other holders are gone are filled again.
///
/// Not more than [`Ring::MOST`] are remembered. A buffer beyond that belongs to its holders alone.
pub(super) struct Ring<T> {
    lent: Vec<Buf<T>>,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { lent: Vec::new() }
    }
}

/// Memory to be filled, with the counter that it is going to be lent under.
///
/// The vector keeps the length that it had: what is written over need not be cleared first.
pub(super) struct Draft<T> {
    pub(super) memory: Vec<T>,
    counter: Option<Arc<Vec<T>>>,
}

impl<T> Default for Draft<T> {
    fn default() -> Draft<T> {
        Draft { memory: Vec::new(), counter: None }
    }
}

impl<T> Ring<T> {
    const MOST: usize = 64;

    /// Memory that nobody holds any more, or new memory.
    pub(super) fn draft(&mut self) -> Draft<T> {
        for k in 0..self.lent.len() {
            if let Some(memory) = self.lent[k].data.as_mut().and_then(Arc::get_mut) {
                let memory = std::mem::take(memory);
                return Draft { memory, counter: self.lent.swap_remove(k).data };
            }
        }
        Draft { memory: Vec::new(), counter: None }
    }

    /// Lends the first `len` values.
    pub(super) fn lend(&mut self, draft: Draft<T>, len: usize) -> Buf<T> {
        let Draft { memory, counter } = draft;
        let len = len.min(memory.len());
        let data = match counter {
            Some(mut counter) => match Arc::get_mut(&mut counter) {
                Some(place) => {
                    *place = memory;
                    counter
                }
                None => Arc::new(memory),
            },
            None => Arc::new(memory),
        };
        let buf = Buf { data: Some(data), len };
        if self.lent.len() == Ring::<T>::MOST {
            self.lent.swap_remove(0);
        }
        self.lent.push(buf.clone());
        buf
    }
}

/// Buffers that records are read into, and that come back when nothing refers to them any more.
#[derive(Default)]
pub(crate) struct BytePool(Mutex<Ring<u8>>);

impl BytePool {
    /// An empty vector, with the memory of a buffer that came back.
    pub(crate) fn draft(&self) -> Vec<u8> {
        let mut memory = self.0.lock().map(|mut ring| ring.draft().memory).unwrap_or_default();
        memory.clear();
        memory
    }

    /// Lends what was read.
    pub(crate) fn lend(&self, bytes: Vec<u8>) -> Region {
        let len = bytes.len();
        let draft = Draft { memory: bytes, counter: None };
        match self.0.lock() {
            Ok(mut ring) => Region::new(ring.lend(draft, len)),
            Err(_) => Region::from(draft.memory),
        }
    }
}

impl<T> Ring<T> {
    /// Empties the memory that nobody holds, and forgets the rest: its last holder frees it, and what its values hold.
    pub(super) fn settle(&mut self) {
        self.lent.retain_mut(|buf| match buf.data.as_mut().and_then(Arc::get_mut) {
            Some(memory) => {
                memory.clear();
                true
            }
            None => false,
        });
    }
}

impl<T: Clone> Draft<T> {
    /// Makes the memory at least `len` long. It grows by doubling, from a MiB on by eighths (all of it is filled, so all of it
    /// is paid for), yet not beyond `most`, which is at least `len`.
    #[inline]
    pub(super) fn grow(&mut self, len: usize, most: usize, fill: T) {
        if self.memory.len() < len {
            self.grow_slowly(len, most, fill);
        }
    }

    #[cold]
    fn grow_slowly(&mut self, len: usize, most: usize, fill: T) {
        const GENTLE: usize = 1 << 20;
        let now = self.memory.len();
        let more = if now.saturating_mul(size_of::<T>()) < GENTLE { now } else { now / 8 };
        let to = now.saturating_add(more).max(64).min(most).max(len);
        self.memory.reserve_exact(to - self.memory.len());
        self.memory.resize(to, fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_grows_by_less_than_it_has() {
        let mut draft = Draft::default();
        for len in 1..=16 << 10 {
            draft.grow(len << 10, usize::MAX, 0u8);
            assert!(draft.memory.len() <= (len << 10) + (1 << 20).max(len << 7), "{len} KiB");
        }
    }
}
