//! Pooled memory: buffers that return to their pool when the last reference is dropped.

use crate::io::Region;
use std::collections::TryReserveError;
use std::fmt;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A reference-counted slice of values in a batch: `'static` and `Send`.
///
/// The memory also belongs to the parser's pool. After the last clone is dropped, on any thread, the pool
/// reuses the memory. If the pool no longer exists, the last clone frees it. A clone costs one reference
/// count.
pub struct Buf<T> {
    /// `None` for an empty buffer without memory.
    data: Option<MemoryLease<T>>,
    len: usize,
}

/// Memory that buffers and the pool share. The pool does not access the values while any buffer references
/// them.
struct PooledMemory<T> {
    memory: Vec<T>,
    /// Address of the first value, exposed from `Vec::as_mut_ptr`: a pointer made from it may write.
    address: usize,
    /// Number of [`MemoryLease`]s; the pool's own reference is not counted.
    leases: AtomicUsize,
}

impl<T> PooledMemory<T> {
    fn new(memory: Vec<T>) -> PooledMemory<T> {
        let mut shared = PooledMemory { memory: Vec::new(), address: 0, leases: AtomicUsize::new(0) };
        shared.set_memory(memory);
        shared
    }

    fn set_memory(&mut self, memory: Vec<T>) {
        self.memory = memory;
        let first = self.memory.as_mut_ptr();
        debug_assert!(first.is_aligned(), "`Buf::as_mut_ptr` guarantees alignment");
        self.address = first.expose_provenance();
    }
}

/// The reference of a buffer to its memory, counted separately from the pool's.
struct MemoryLease<T>(Arc<PooledMemory<T>>);

impl<T> MemoryLease<T> {
    fn new(shared: &Arc<PooledMemory<T>>) -> MemoryLease<T> {
        shared.leases.fetch_add(1, Ordering::Relaxed);
        MemoryLease(Arc::clone(shared))
    }
}

impl<T> Drop for MemoryLease<T> {
    fn drop(&mut self) {
        // Pairs with the `Acquire` load in `Buf::is_unique`: all reads through dropped leases happen before a
        // load that returns 1.
        self.0.leases.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Buf<T> {
    /// Returns true if no other `Buf` references this memory.
    ///
    /// The pool does not count, because it does not read memory that a `Buf` references. Once the result is
    /// true, only cloning this `Buf` can make it false.
    pub fn is_unique(&self) -> bool {
        self.data.as_ref().is_none_or(|lease| lease.0.leases.load(Ordering::Acquire) == 1)
    }

    /// Returns a pointer to the first value.
    ///
    /// The pointer comes from [`Vec::as_mut_ptr`] of the underlying vector, and is dangling if there is no
    /// memory. It is aligned for `T` and valid for [`len`](Buf::len) values while this `Buf` or a clone of it
    /// exists. It is not derived from a shared slice, so writing through it is allowed. Its provenance is
    /// exposed.
    ///
    /// The caller must ensure that no slice of these values exists while it writes: this `Buf`
    /// [is unique](Buf::is_unique), is kept until the last write, and is neither cloned nor read.
    #[inline]
    pub fn as_mut_ptr(&self) -> *mut T {
        self.data
            .as_ref()
            .map_or(ptr::dangling_mut(), |lease| ptr::with_exposed_provenance_mut(lease.0.address))
    }

    /// Returns the number of values, without reading them.
    // Shadows the method of the slice, which would create a slice first.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values, without reading any.
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
    #[expect(clippy::indexing_slicing, reason = "the memory has at least `len` values")]
    fn deref(&self) -> &[T] {
        match &self.data {
            Some(lease) => &lease.0.memory[..self.len],
            None => &[],
        }
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

/// A pool of buffers for one purpose. A buffer is reused once nothing else references it.
///
/// The pool tracks at most [`BufPool::MAX_TRACKED`] buffers. The memory of any other buffer is freed with its
/// last reference.
pub(super) struct BufPool<T> {
    tracked: Vec<Arc<PooledMemory<T>>>,
}

impl<T> Default for BufPool<T> {
    fn default() -> BufPool<T> {
        BufPool { tracked: Vec::new() }
    }
}

/// Memory to fill, and the reference-counted allocation that will hold it.
///
/// The vector keeps its previous length, because values that are overwritten need not be cleared first.
pub(super) struct BufMut<T> {
    pub(super) values: Vec<T>,
    shared: Option<Arc<PooledMemory<T>>>,
}

impl<T> Default for BufMut<T> {
    fn default() -> BufMut<T> {
        BufMut { values: Vec::new(), shared: None }
    }
}

impl<T> BufPool<T> {
    const MAX_TRACKED: usize = 64;

    /// Returns memory that nothing references any more, or new memory.
    #[expect(clippy::indexing_slicing, reason = "`k` is below the length")]
    pub(super) fn take(&mut self) -> BufMut<T> {
        for k in 0..self.tracked.len() {
            if let Some(shared) = Arc::get_mut(&mut self.tracked[k]) {
                let memory = std::mem::take(&mut shared.memory);
                return BufMut { values: memory, shared: Some(self.tracked.swap_remove(k)) };
            }
        }
        BufMut { values: Vec::new(), shared: None }
    }

    /// Shares the first `len` values as a [`Buf`], and tracks their memory for reuse.
    pub(super) fn freeze(&mut self, buf: BufMut<T>, len: usize) -> Buf<T> {
        let BufMut { values: memory, shared } = buf;
        let len = len.min(memory.len());
        let mut shared = shared.unwrap_or_else(|| Arc::new(PooledMemory::new(Vec::new())));
        match Arc::get_mut(&mut shared) {
            Some(unique) => unique.set_memory(memory),
            None => shared = Arc::new(PooledMemory::new(memory)),
        }
        let buf = Buf { data: Some(MemoryLease::new(&shared)), len };
        if self.tracked.len() == BufPool::<T>::MAX_TRACKED {
            self.tracked.swap_remove(0);
        }
        self.tracked.push(shared);
        buf
    }

    /// Clears unreferenced memory, and stops tracking the rest.
    ///
    /// The last reference to untracked memory then frees it, together with everything that its values
    /// reference.
    pub(super) fn release_unused(&mut self) {
        self.tracked.retain_mut(|shared| match Arc::get_mut(shared) {
            Some(shared) => {
                shared.memory.clear();
                true
            }
            None => false,
        });
    }
}

/// A pool of the memory of columns or of records, which several threads use. Memory is reused once nothing
/// references it.
///
/// ```
/// use tfseek::batch::SharedPool;
/// let pool = SharedPool::default();
/// let mut memory = pool.take();
/// memory.extend([1u8, 2, 3]);
/// assert_eq!(*pool.freeze(memory), [1, 2, 3]);
/// assert_eq!(pool.take(), [1, 2, 3]); // the same memory
/// ```
pub struct SharedPool<T>(Mutex<BufPool<T>>);

/// A pool of buffers that records are read into.
pub(crate) type BytePool = SharedPool<u8>;

impl<T> Default for SharedPool<T> {
    fn default() -> SharedPool<T> {
        SharedPool(Mutex::default())
    }
}

impl<T> SharedPool<T> {
    /// Returns the vector of an unused buffer, with its old values, or else an empty one.
    ///
    /// Values that are overwritten need not be cleared first.
    pub fn take(&self) -> Vec<T> {
        self.0.lock().map(|mut pool| pool.take().values).unwrap_or_default()
    }

    /// Shares the values, and tracks their memory for reuse.
    pub fn freeze(&self, values: Vec<T>) -> Buf<T> {
        let len = values.len();
        let buf = BufMut { values, shared: None };
        match self.0.lock() {
            Ok(mut pool) => pool.freeze(buf, len),
            Err(_) => buf.values.into(),
        }
    }
}

impl BytePool {
    /// Shares the bytes as a [`Region`], and tracks their memory for reuse.
    pub(crate) fn region(&self, bytes: Vec<u8>) -> Region {
        Region::new(self.freeze(bytes))
    }
}

impl<T: Clone> BufMut<T> {
    /// Grows the memory to at least `len` values, and never beyond `max`, which is at least `len`.
    ///
    /// The memory doubles below 1 MiB and grows by an eighth from there on, because all of it is written when
    /// it grows.
    ///
    /// # Errors
    /// There is not enough memory.
    #[inline]
    pub(super) fn grow(&mut self, len: usize, max: usize, fill: T) -> Result<(), TryReserveError> {
        if self.values.len() < len { self.grow_slow(len, max, fill) } else { Ok(()) }
    }

    #[cold]
    fn grow_slow(&mut self, len: usize, max: usize, fill: T) -> Result<(), TryReserveError> {
        /// Bytes up to which the memory doubles.
        const DOUBLING_LIMIT: usize = 1 << 20;
        let old_len = self.values.len();
        let doubles = old_len * size_of::<T>() < DOUBLING_LIMIT;
        let increment = if doubles { old_len } else { old_len / 8 };
        let new_len = (old_len + increment).max(64).min(max).max(len);
        self.values.try_reserve_exact(new_len - old_len)?;
        self.values.resize(new_len, fill);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_unique_while_no_clone_exists() {
        let mut pool = BufPool::default();
        let mut buf = pool.take();
        buf.grow(3, 3, 7i64).unwrap();
        // The pool tracks the memory; its reference does not count.
        let one = pool.freeze(buf, 3);
        assert!(one.is_unique());
        let other = one.clone();
        assert!(!one.is_unique() && !other.is_unique());
        assert_eq!(one.as_mut_ptr(), other.as_mut_ptr());
        std::thread::spawn(move || assert_eq!(&*other, [7; 3])).join().unwrap();
        assert!(one.is_unique());
        assert_eq!(one.as_mut_ptr().cast_const(), one.as_ptr());

        // Reused memory has a new lease, and the address that it has after growth.
        drop(one);
        let mut buf = pool.take();
        buf.grow(1000, 1000, 8).unwrap();
        let again = pool.freeze(buf, 1000);
        assert!(again.is_unique());
        assert_eq!(again.as_mut_ptr().cast_const(), again.as_ptr());
        assert_eq!((again.len(), Buf::<i64>::default().len()), (1000, 0));
        assert!(Buf::from(vec![1.5f32]).is_unique() && Buf::<i64>::default().is_unique());
        assert!(again.as_mut_ptr().is_aligned() && Buf::<i64>::default().as_mut_ptr().is_aligned());
    }

    /// Writes through the pointer, as foreign code does, while the unique `Buf` is kept and not read.
    #[test]
    #[allow(unsafe_code)]
    fn a_unique_buffer_can_be_written_through_its_pointer() {
        let mut pool = BufPool::default();
        for round in 0..3 {
            let mut buf = pool.take();
            buf.grow(4, 4, 0i32).unwrap();
            buf.values.fill(round);
            let buf = pool.freeze(buf, 4);
            let clone = buf.clone();
            assert_eq!(clone.iter().sum::<i32>(), 4 * round);
            drop(clone);
            assert!(buf.is_unique());
            let first = buf.as_mut_ptr();
            // SAFETY: the memory has 4 values, so `first.add(3)` is in bounds. `buf` keeps the memory alive
            // and is its only `Buf`, and no slice of it exists. The pointer was derived from
            // `Vec::as_mut_ptr`, so it may write.
            unsafe { first.add(3).write(100) };
            drop(buf);
            assert_eq!(pool.take().values[3], 100);
        }
    }

    #[test]
    fn large_memory_grows_by_an_eighth() {
        let mut buf = BufMut::default();
        for len in 1..=if cfg!(miri) { 1 << 10 } else { 16 << 10 } {
            buf.grow(len << 10, usize::MAX, 0u8).unwrap();
            assert!(buf.values.len() <= (len << 10) + (1 << 20).max(len << 7), "{len} KiB");
        }
    }
}
