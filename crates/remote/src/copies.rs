//! Copies of pieces on disk in memory, for small records: one read of the file instead of one for each
//! record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// The most bytes of a record for which a piece is copied. Longer ones are read from the file.
pub(crate) const SMALL: u64 = 8 << 10;
/// The most bytes of memory for all copies of a cache. Records of other pieces are read from the file.
const MOST: usize = 256 << 20;
/// Memory of a copy is a multiple of this, so that the memory of one piece often fits another.
const STEP: usize = 256 << 10;

/// Memory for copies of the open pieces of a cache. What a piece gives back is used again, because new memory
/// costs more time than the read.
#[derive(Debug, Default)]
pub(crate) struct CopyMemory {
    free: Mutex<Vec<Vec<u8>>>,
    /// Bytes of all memory, free or not.
    bytes: AtomicUsize,
}

impl CopyMemory {
    /// Returns memory of `len` bytes. `None` if there would be too much.
    fn take(&self, len: usize) -> Option<Vec<u8>> {
        // A forked child may have a copy of the lock that is held for ever.
        let free = self.free.try_lock().ok()?.pop();
        let mut memory = free.unwrap_or_default();
        if memory.capacity() < len {
            self.bytes.fetch_sub(memory.capacity(), Relaxed);
            memory = Vec::new();
            let capacity = len.checked_next_multiple_of(STEP)?;
            let before = self.bytes.fetch_add(capacity, Relaxed);
            if before + capacity > MOST || memory.try_reserve_exact(capacity).is_err() {
                self.bytes.fetch_sub(capacity, Relaxed);
                return None;
            }
        }
        memory.resize(len, 0);
        Some(memory)
    }

    fn give_back(&self, memory: Vec<u8>) {
        match self.free.try_lock() {
            Ok(mut free) => free.push(memory),
            Err(_) => _ = self.bytes.fetch_sub(memory.capacity(), Relaxed),
        }
    }
}

/// The copy of a piece, if there is one.
#[derive(Debug)]
pub(crate) struct PieceCopy {
    bytes: OnceLock<Vec<u8>>,
    /// A thread makes it, or has failed.
    begun: AtomicBool,
    memory: Arc<CopyMemory>,
}

impl PieceCopy {
    pub(crate) fn new(memory: Arc<CopyMemory>) -> PieceCopy {
        PieceCopy { bytes: OnceLock::new(), begun: AtomicBool::new(false), memory }
    }

    /// Returns the copy, of `len` bytes. If there is none, makes it by `read` if `is_worth_it`. `None` while
    /// another thread makes it, and if this has failed.
    pub(crate) fn get(
        &self,
        is_worth_it: impl FnOnce() -> bool,
        len: u64,
        read: impl FnOnce(&mut [u8]) -> std::io::Result<()>,
    ) -> Option<&[u8]> {
        if let Some(bytes) = self.bytes.get() {
            return Some(bytes);
        }
        if !is_worth_it() || self.begun.swap(true, Relaxed) {
            return None;
        }
        let mut bytes = self.memory.take(usize::try_from(len).ok()?)?;
        match read(&mut bytes) {
            Ok(()) => Some(self.bytes.get_or_init(|| bytes)),
            Err(_) => {
                self.memory.give_back(bytes);
                None
            }
        }
    }
}

impl Drop for PieceCopy {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.memory.give_back(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn filled(copy: &PieceCopy, len: u64, byte: u8) -> Option<Vec<u8>> {
        let fill = |bytes: &mut [u8]| {
            bytes.fill(byte);
            Ok(())
        };
        copy.get(|| true, len, fill).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_copy_is_made_once_and_its_memory_is_used_again() {
        let memory = Arc::new(CopyMemory::default());
        let copy = PieceCopy::new(memory.clone());
        assert_eq!(filled(&copy, 5, 1), Some(vec![1; 5]));
        assert_eq!(filled(&copy, 5, 2), Some(vec![1; 5]));
        let at = copy.bytes.get().unwrap().as_ptr();
        drop(copy);
        for (len, byte) in [(3, 3), (9, 4), (STEP as u64, 5)] {
            let copy = PieceCopy::new(memory.clone());
            assert_eq!(filled(&copy, len, byte), Some(vec![byte; len as usize]));
            assert_eq!((copy.bytes.get().unwrap().as_ptr(), memory.bytes.load(Relaxed)), (at, STEP));
        }
        // A longer one has other memory instead.
        let copy = PieceCopy::new(memory.clone());
        assert_eq!(filled(&copy, STEP as u64 + 1, 6), Some(vec![6; STEP + 1]));
        assert_eq!(memory.bytes.load(Relaxed), 2 * STEP);
    }

    #[test]
    fn failed_reads_are_not_tried_again_and_keep_no_memory() {
        let memory = Arc::new(CopyMemory::default());
        let copy = PieceCopy::new(memory.clone());
        assert_eq!(copy.get(|| false, 5, |_| Ok(())), None);
        assert_eq!(copy.get(|| true, 5, |_| Err(io::ErrorKind::UnexpectedEof.into())), None);
        assert_eq!(filled(&copy, 5, 1), None);
        assert_eq!((memory.free.lock().unwrap().len(), memory.bytes.load(Relaxed)), (1, STEP));
        assert_eq!(filled(&PieceCopy::new(memory.clone()), u64::MAX, 1), None);
        // A lock that is held, as in a forked child, is not waited for.
        let copy = PieceCopy::new(memory.clone());
        let held = memory.free.lock().unwrap();
        assert_eq!(filled(&copy, 5, 1), None);
        drop(held);
    }

    #[test]
    fn memory_is_bounded() {
        let memory = Arc::new(CopyMemory::default());
        let copies: Vec<_> = (0..MOST / STEP + 3).map(|_| PieceCopy::new(memory.clone())).collect();
        let one = |copy: &PieceCopy| copy.get(|| true, 1, |_| Ok(())).is_some();
        assert_eq!(copies.iter().filter(|copy| one(copy)).count(), MOST / STEP);
        assert_eq!(memory.bytes.load(Relaxed), MOST);
        drop(copies);
        assert_eq!((memory.free.lock().unwrap().len(), memory.bytes.load(Relaxed)), (MOST / STEP, MOST));
        // Memory of another size, in place of one that is free, would be too much.
        assert!(filled(&PieceCopy::new(memory.clone()), STEP as u64 * 2, 1).is_none());
    }
}
