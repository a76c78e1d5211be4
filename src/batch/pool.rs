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
    data: Option<MemoryLease<T>>,
    len: usize,
}

/// Memory that buffers and the pool share. The pool reads nothing of it before it is the last holder.
struct PooledMemory<T> {
    memory: Vec<T>,
    /// Address of the first value, exposed from `Vec::as_mut_ptr`: a pointer made from it may write.
    address: usize,
    /// The [`MemoryLease`]s there are. The pool's own reference is not one of them.
    leases: AtomicUsize,
}

impl<T> PooledMemory<T> {
    fn new(memory: Vec<T>) -> PooledMemory<T> {
        let mut shared = PooledMemory { memory: Vec::new(), address: 0, leases: AtomicUsize::new(0) };
        shared.fill(memory);
        shared
    }

    fn fill(&mut self, memory: Vec<T>) {
        self.memory = memory;
        let first = self.memory.as_mut_ptr();
        debug_assert!(first.is_aligned(), "what `Buf::as_mut_ptr` promises");
        self.address = first.expose_provenance();
    }
}

/// A buffer's reference to its memory, counted apart from the pool's.
struct MemoryLease<T>(Arc<PooledMemory<T>>);

impl<T> MemoryLease<T> {
    fn new(shared: &Arc<PooledMemory<T>>) -> MemoryLease<T> {
        shared.leases.fetch_add(1, Ordering::Relaxed);
        MemoryLease(Arc::clone(shared))
    }
}

impl<T> Drop for MemoryLease<T> {
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

    /// Returns a pointer to the first value.
    ///
    /// It is that of the vector that was lent ([`Vec::as_mut_ptr`], or a dangling one where there is no memory): aligned for `T`, valid
    /// for [`len`](Buf::len) values as long as this `Buf` or a clone of it is kept, and not derived from a shared slice, so that writing
    /// by it is allowed. Its provenance is exposed.
    ///
    /// A writer makes sure that no slice of these values exists meanwhile: that this `Buf` [is the only
    /// one](Buf::is_unique), that it is kept until the last write, and that it is neither cloned nor read.
    #[inline]
    pub fn as_mut_ptr(&self) -> *mut T {
        self.data
            .as_ref()
            .map_or(ptr::dangling_mut(), |lease| ptr::with_exposed_provenance_mut(lease.0.address))
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
        Buf { len: values.len(), data: Some(MemoryLease::new(&Arc::new(PooledMemory::new(values)))) }
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
        Buf { data: self.data.as_ref().map(|lease| MemoryLease::new(&lease.0)), len: self.len }
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
/// Not more than [`BufPool::MOST`] are remembered. A buffer beyond that belongs to its holders alone.
pub(super) struct BufPool<T> {
    lent: Vec<Arc<PooledMemory<T>>>,
}

impl<T> Default for BufPool<T> {
    fn default() -> BufPool<T> {
        BufPool { lent: Vec::new() }
    }
}

/// Memory to be filled, with the counter that it is going to be lent under.
///
/// The vector keeps the length that it had: what is written over need not be cleared first.
pub(super) struct BufMut<T> {
    pub(super) values: Vec<T>,
    counter: Option<Arc<PooledMemory<T>>>,
}

impl<T> Default for BufMut<T> {
    fn default() -> BufMut<T> {
        BufMut { values: Vec::new(), counter: None }
    }
}

impl<T> BufPool<T> {
    const MOST: usize = 64;

    /// Memory that nobody holds any more, or new memory.
    pub(super) fn take(&mut self) -> BufMut<T> {
        for k in 0..self.lent.len() {
            if let Some(shared) = Arc::get_mut(&mut self.lent[k]) {
                let memory = std::mem::take(&mut shared.memory);
                return BufMut { values: memory, counter: Some(self.lent.swap_remove(k)) };
            }
        }
        BufMut { values: Vec::new(), counter: None }
    }

    /// Lends the first `len` values.
    pub(super) fn lend(&mut self, buf: BufMut<T>, len: usize) -> Buf<T> {
        let BufMut { values: memory, counter } = buf;
        let len = len.min(memory.len());
        let shared = match counter {
            Some(mut counter) => match Arc::get_mut(&mut counter) {
                Some(place) => {
                    place.fill(memory);
                    counter
                }
                None => Arc::new(PooledMemory::new(memory)),
            },
            None => Arc::new(PooledMemory::new(memory)),
        };
        let buf = Buf { data: Some(MemoryLease::new(&shared)), len };
        if self.lent.len() == BufPool::<T>::MOST {
            self.lent.swap_remove(0);
        }
        self.lent.push(shared);
        buf
    }
}

/// Buffers that records are read into, and that come back when nothing refers to them any more.
#[derive(Default)]
pub(crate) struct BytePool(Mutex<BufPool<u8>>);

impl BytePool {
    /// An empty vector, with the memory of a buffer that came back.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut memory = self.0.lock().map(|mut pool| pool.take().values).unwrap_or_default();
        memory.clear();
        memory
    }

    /// Lends what was read.
    pub(crate) fn lend(&self, bytes: Vec<u8>) -> Region {
        let len = bytes.len();
        let buf = BufMut { values: bytes, counter: None };
        match self.0.lock() {
            Ok(mut pool) => Region::new(pool.lend(buf, len)),
            Err(_) => Region::from(buf.values),
        }
    }
}

impl<T> BufPool<T> {
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

impl<T: Clone> BufMut<T> {
    /// Makes the memory at least `len` long. It grows by doubling, from a MiB on by eighths (all of it is filled, so all of it
    /// is paid for), yet not beyond `most`, which is at least `len`.
    #[inline]
    pub(super) fn grow(&mut self, len: usize, most: usize, fill: T) {
        if self.values.len() < len {
            self.grow_slow(len, most, fill);
        }
    }

    #[cold]
    fn grow_slow(&mut self, len: usize, most: usize, fill: T) {
        const GENTLE: usize = 1 << 20;
        let now = self.values.len();
        let more = if now.saturating_mul(size_of::<T>()) < GENTLE { now } else { now / 8 };
        let to = now.saturating_add(more).max(64).min(most).max(len);
        self.values.reserve_exact(to - self.values.len());
        self.values.resize(to, fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_unique_while_no_other_holds_its_memory() {
        let mut pool = BufPool::default();
        let mut buf = pool.take();
        buf.grow(3, 3, 7i64);
        // The pool remembers it, and does not count.
        let one = pool.lend(buf, 3);
        assert!(one.is_unique());
        let other = one.clone();
        assert!(!one.is_unique() && !other.is_unique());
        assert_eq!(one.as_mut_ptr(), other.as_mut_ptr());
        std::thread::spawn(move || assert_eq!(&*other, [7; 3])).join().unwrap();
        assert!(one.is_unique());
        assert_eq!(one.as_mut_ptr().cast_const(), one.as_ptr());

        // Memory that is filled again is another lease, at the address that it then has.
        drop(one);
        let mut buf = pool.take();
        buf.grow(1000, 1000, 8);
        let again = pool.lend(buf, 1000);
        assert!(again.is_unique());
        assert_eq!(again.as_mut_ptr().cast_const(), again.as_ptr());
        assert_eq!((again.len(), Buf::<i64>::default().len()), (1000, 0));
        assert!(Buf::from(vec![1.5f32]).is_unique() && Buf::<i64>::default().is_unique());
        assert!(again.as_mut_ptr().is_aligned() && Buf::<i64>::default().as_mut_ptr().is_aligned());
    }

    /// Writes through the pointer, as a foreign writer does, while the only `Buf` is kept and not read.
    #[test]
    #[allow(unsafe_code)]
    fn who_holds_the_only_buffer_may_write_by_its_pointer() {
        let mut pool = BufPool::default();
        for round in 0..3 {
            let mut buf = pool.take();
            buf.grow(4, 4, 0i32);
            buf.values.fill(round);
            let buf = pool.lend(buf, 4);
            let clone = buf.clone();
            assert_eq!(clone.iter().sum::<i32>(), 4 * round);
            drop(clone);
            assert!(buf.is_unique());
            let first = buf.as_mut_ptr();
            // SAFETY: the memory has 4 values, `buf` keeps it and is the only one; no slice of it is alive. The pointer was
            // derived from `Vec::as_mut_ptr`.
            unsafe { first.add(3).write(100) };
            drop(buf);
            assert_eq!(pool.take().values[3], 100);
        }
    }

    #[test]
    fn large_memory_grows_by_less_than_it_has() {
        let mut buf = BufMut::default();
        for len in 1..=16 << 10 {
            buf.grow(len << 10, usize::MAX, 0u8);
            assert!(buf.values.len() <= (len << 10) + (1 << 20).max(len << 7), "{len} KiB");
        }
    }
}
