//! The pieces of an object that are open on disk. Records are read from them without the lock of the store's pieces.

use crate::disk::DiskPiece;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

/// A number of wanted bytes that were not read yet. It is saturating.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedBytes(Arc<AtomicU64>);

impl WantedBytes {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.update(|wanted| wanted.saturating_add(bytes));
    }

    /// Returns the number that is left.
    pub(crate) fn take(&self, bytes: u64) -> u64 {
        self.update(|wanted| wanted.saturating_sub(bytes))
    }

    pub(crate) fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    fn update(&self, f: impl Fn(u64) -> u64) -> u64 {
        // It cannot fail, because `f` always returns a value.
        f(self.0.fetch_update(Relaxed, Relaxed, |wanted| Some(f(wanted))).unwrap_or_default())
    }
}

/// A piece of an object that is open on disk.
#[derive(Debug)]
pub(crate) struct ReadyPiece {
    range: Range<u64>,
    piece: DiskPiece,
    wanted: WantedBytes,
}

impl ReadyPiece {
    /// Appends a range of the object to `buf`. Returns the number of wanted bytes of the piece that are left. `None`, and `buf` is unchanged, if the disk
    /// failed.
    pub(crate) fn append(&self, range: &Range<u64>, buf: &mut Vec<u8>) -> Option<u64> {
        let before = buf.len();
        let at = |at: u64| usize::try_from(at.checked_sub(self.range.start)?).ok();
        let part = at(range.start)?..at(range.end)?;
        buf.try_reserve(part.len()).ok()?;
        if self.piece.append(part, buf).is_err() {
            buf.truncate(before);
            return None;
        }
        Some(self.wanted.take(range.end.saturating_sub(range.start)))
    }
}

/// The pieces of an object that are open on disk, each with its first byte, by which they are sorted.
///
/// A reader does not wait for the lock, because a forked child may have a copy that is held for ever. Without it, it asks the store.
#[derive(Debug, Default)]
pub(crate) struct ReadyPieces(RwLock<Vec<(u64, Arc<ReadyPiece>)>>);

impl ReadyPieces {
    /// Returns the piece that has all of a range.
    pub(crate) fn find(&self, range: &Range<u64>) -> Option<Arc<ReadyPiece>> {
        let pieces = self.0.try_read().ok()?;
        let after = pieces.partition_point(|(start, _)| *start <= range.start);
        let (_, piece) = pieces.get(after.checked_sub(1)?)?;
        (range.end <= piece.range.end).then(|| Arc::clone(piece))
    }

    pub(crate) fn add(&self, range: Range<u64>, piece: DiskPiece, wanted: WantedBytes) {
        let (mut pieces, start) = (self.write(), range.start);
        let added = (start, Arc::new(ReadyPiece { range, piece, wanted }));
        let at = pieces.partition_point(|(other, _)| *other < start);
        match pieces.get_mut(at).filter(|(other, _)| *other == start) {
            Some(same) => *same = added,
            None => pieces.insert(at, added),
        }
    }

    /// Removes the piece that begins at a byte, if there is one.
    pub(crate) fn remove(&self, start: u64) {
        let mut pieces = self.write();
        if let Ok(at) = pieces.binary_search_by_key(&start, |(start, _)| *start) {
            pieces.remove(at);
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<(u64, Arc<ReadyPiece>)>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An object that has pieces.
pub(crate) trait HasPieces {
    /// The pieces that are read without the store. `None` in a forked child.
    fn ready(&self) -> Option<&ReadyPieces>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{CachedPiece, DiskCache};
    use std::path::Path;

    fn piece(dir: &Path, range: &Range<u64>) -> DiskPiece {
        let cache = DiskCache::new(dir.into(), 1 << 20);
        cache.write("a", range, &(range.start..range.end).map(|at| at as u8).collect::<Vec<_>>());
        match cache.find("a", range) {
            Some(CachedPiece::Open(piece)) => piece,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ranges_of_one_piece_are_found_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (ready, wanted) = (ReadyPieces::default(), WantedBytes::default());
        let ranges = [100..200, 10..20, 200..250];
        for range in &ranges {
            ready.add(range.clone(), piece(dir.path(), range), wanted.clone());
        }
        for start in 0..260 {
            for end in start + 1..260 {
                let expected = ranges.iter().find(|range| range.start <= start && end <= range.end);
                let found = ready.find(&(start..end)).map(|piece| piece.range.clone());
                assert_eq!(found.as_ref(), expected, "{start}..{end}");
            }
        }
        wanted.add(8);
        let (found, mut buf) = (ready.find(&(110..115)).unwrap(), vec![1]);
        assert_eq!(found.append(&(110..115), &mut buf), Some(3));
        assert_eq!((found.append(&(115..120), &mut buf), wanted.get()), (Some(0), 0));
        assert_eq!(buf, [&[1][..], &(110..120).collect::<Vec<u8>>()].concat());
        ready.remove(100);
        assert!(ready.find(&(110..115)).is_none() && ready.find(&(10..20)).is_some());
        // A piece that cannot be read leaves the buffer as it is, and what is wanted.
        wanted.add(8);
        std::fs::write(dir.path().join("blocks/a/10-20"), b"x").unwrap();
        assert_eq!(ready.find(&(12..20)).unwrap().append(&(12..20), &mut buf), None);
        assert_eq!((buf.len(), wanted.get()), (11, 8));
        // A lock that is held, as in a forked child, is not waited for.
        let held = ready.0.write().unwrap();
        assert!(ready.find(&(10..20)).is_none());
        drop(held);
    }
}
