//! Memory that is used again: a buffer that its last holder gives back.

use crate::io::Region;
use std::fmt;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Values that a batch owns: `'static`, `Send`, and cloned for the price of a counter. A slice.
///
/// The memory belongs to the parser's pool as well. When the last clone is dropped, wherever that is, the pool finds it
/// free and fills it again; when the pool is gone, the last clone frees it.
pub struct Buf<T> {
    /// `None` is an empty buffer that costs nothing.
    data: Option<Lease<T>>,
    len: usize,
}

/// Memory that buffers and the pool share. The pool reads nothing of it before it is the last holder.
struct Shared<T> {
    memory: Vec<T>,
    /// Address of the first value, exposed from `Vec::as_mut_ptr`: a pointer made from it may write.
    address: usize,
    /// The [`Lease`]s there are. The pool's own reference is not one of them.
    leases: AtomicUsize,
}

impl<T> Shared<T> {
    fn new(memory: Vec<T>) -> Shared<T> {
        let mut shared = Shared { memory: Vec::new(), address: 0, leases: AtomicUsize::new(0) };
        shared.fill(memory);
        shared
    }

    fn fill(&mut self, memory: Vec<T>) {
        self.memory = memory;
        self.address = self.memory.as_mut_ptr().expose_provenance();
    }
}

/// A buffer's reference to its memory, counted apart from the pool's.
struct Lease<T>(Arc<Shared<T>>);

impl<T> Lease<T> {
    fn new(shared: &Arc<Shared<T>>) -> Lease<T> {
        shared.leases.fetch_add(1, Ordering::Relaxed);
        Lease(Arc::clone(shared))
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        // With the load in `Buf::is_unique`: who finds itself alone finds all reads of the others behind it.
        self.0.leases.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Buf<T> {
    /// Returns true if no other `Buf` holds this memory. The pool, which does not read lent memory, does not count.
    ///
    /// Once this is true nothing but this `Buf` can make it false, by being cloned.
    pub fn is_unique(&self) -> bool {
        self.data.as_ref().is_none_or(|lease| lease.0.leases.load(Ordering::Acquire) == 1)
    }

    /// The address of the first value, whose provenance is exposed: a pointer that
    /// [`with_exposed_provenance_mut`](std::ptr::with_exposed_provenance_mut) makes of it is one to memory that may be written, and
    /// not one of a shared slice.
    ///
    /// A writer makes sure that no slice of these values exists meanwhile: that this `Buf` [is the only
    /// one](Buf::is_unique), that it is kept until the last write, and that it is neither cloned nor read.
    pub fn exposed_addr(&self) -> usize {
        match &self.data {
            Some(lease) => lease.0.address,
            None => ptr::dangling_mut::<T>().expose_provenance(),
        }
    }

    /// Number of values; reads none of them.
    // A slice has one as well, for which there would have to be a slice.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values; reads none of them.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> From<Vec<T>> for Buf<T> {
    fn from(values: Vec<T>) -> Buf<T> {
        Buf { len: values.len(), data: Some(Lease::new(&Arc::new(Shared::new(values)))) }
    }
}

impl<T> Deref for Buf<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.data.as_ref().and_then(|lease| lease.0.memory.get(..self.len)).unwrap_or_default()
    }
}

impl<T> AsRef<[T]> for Buf<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Clone for Buf<T> {
    fn clone(&self) -> Buf<T> {
        Buf { data: self.data.as_ref().map(|lease| Lease::new(&lease.0)), len: self.len }
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
    lent: Vec<Arc<Shared<T>>>,
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
    counter: Option<Arc<Shared<T>>>,
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
            if let Some(shared) = Arc::get_mut(&mut self.lent[k]) {
                let memory = std::mem::take(&mut shared.memory);
                return Draft { memory, counter: Some(self.lent.swap_remove(k)) };
            }
        }
        Draft { memory: Vec::new(), counter: None }
    }

    /// Lends the first `len` values.
    pub(super) fn lend(&mut self, draft: Draft<T>, len: usize) -> Buf<T> {
        let Draft { memory, counter } = draft;
        let len = len.min(memory.len());
        let shared = match counter {
            Some(mut counter) => match Arc::get_mut(&mut counter) {
                Some(place) => {
                    place.fill(memory);
                    counter
                }
                None => Arc::new(Shared::new(memory)),
            },
            None => Arc::new(Shared::new(memory)),
        };
        let buf = Buf { data: Some(Lease::new(&shared)), len };
        if self.lent.len() == Ring::<T>::MOST {
            self.lent.swap_remove(0);
        }
        self.lent.push(shared);
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
        self.lent.retain_mut(|shared| match Arc::get_mut(shared) {
            Some(shared) => {
                shared.memory.clear();
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
    fn a_buffer_is_unique_while_no_other_holds_its_memory() {
        let mut ring = Ring::default();
        let mut draft = ring.draft();
        draft.grow(3, 3, 7i64);
        // The pool remembers it, and does not count.
        let one = ring.lend(draft, 3);
        assert!(one.is_unique());
        let other = one.clone();
        assert!(!one.is_unique() && !other.is_unique());
        assert_eq!(one.exposed_addr(), other.exposed_addr());
        std::thread::spawn(move || assert_eq!(&*other, [7; 3])).join().unwrap();
        assert!(one.is_unique());
        assert_eq!(one.exposed_addr(), one.as_ptr().addr());

        // Memory that is filled again is another lease, at the address that it then has.
        drop(one);
        let mut draft = ring.draft();
        draft.grow(1000, 1000, 8);
        let again = ring.lend(draft, 1000);
        assert!(again.is_unique());
        assert_eq!(again.exposed_addr(), again.as_ptr().addr());
        assert_eq!((again.len(), Buf::<i64>::default().len()), (1000, 0));
        assert!(Buf::from(vec![1.5f32]).is_unique() && Buf::<i64>::default().is_unique());
        assert_eq!(Buf::<i64>::default().exposed_addr() % align_of::<i64>(), 0);
    }

    /// What a foreign writer does: writes by the exposed address while the only `Buf` is kept and not looked at.
    #[test]
    #[allow(unsafe_code)]
    fn who_holds_the_only_buffer_may_write_by_its_address() {
        let mut ring = Ring::default();
        for round in 0..3 {
            let mut draft = ring.draft();
            draft.grow(4, 4, 0i32);
            draft.memory.fill(round);
            let buf = ring.lend(draft, 4);
            let clone = buf.clone();
            assert_eq!(clone.iter().sum::<i32>(), 4 * round);
            drop(clone);
            assert!(buf.is_unique());
            let first = ptr::with_exposed_provenance_mut::<i32>(buf.exposed_addr());
            // SAFETY: the memory has 4 values, `buf` keeps it and is the only one; no slice of it is alive. The pointer was
            // derived from `Vec::as_mut_ptr`.
            unsafe { first.add(3).write(100) };
            drop(buf);
            assert_eq!(ring.draft().memory[3], 100);
        }
    }

    #[test]
    fn large_memory_grows_by_less_than_it_has() {
        let mut draft = Draft::default();
        for len in 1..=16 << 10 {
            draft.grow(len << 10, usize::MAX, 0u8);
            assert!(draft.memory.len() <= (len << 10) + (1 << 20).max(len << 7), "{len} KiB");
        }
    }
}
