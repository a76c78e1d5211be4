//! The pieces of an object that are open on disk. Records are read from them without the lock of the store's
//! pieces. That lock, and the question for the process id, took a quarter of the time of a record of 1 KB.

use crate::disk::DiskPiece;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

/// The pieces of an object that are open on disk, each with its first byte, by which they are sorted.
///
/// A reader does not wait for the lock, because a forked child may have a copy that is held for ever. Without
/// it, it asks the store.
#[derive(Debug, Default)]
pub(crate) struct ReadyPieces(RwLock<Vec<(u64, DiskPiece)>>);

impl ReadyPieces {
    /// Appends a range of the object to `buf`, if one piece has all of it. Returns the number of wanted bytes
    /// of the piece that are left. `None`, and `buf` is unchanged, if there is no such piece, or if the disk
    /// failed.
    pub(crate) fn append(&self, range: &Range<u64>, buf: &mut Vec<u8>) -> Option<u64> {
        let piece = self.find(range)?;
        let before = buf.len();
        let len = range.end.checked_sub(range.start)?;
        buf.try_reserve(usize::try_from(len).ok()?).ok()?;
        if piece.append(range, buf).is_err() {
            buf.truncate(before);
            return None;
        }
        Some(piece.wanted().take(len))
    }

    /// Returns the piece that has all of a range.
    fn find(&self, range: &Range<u64>) -> Option<DiskPiece> {
        let pieces = self.0.try_read().ok()?;
        let after = pieces.partition_point(|(start, _)| *start <= range.start);
        let (_, piece) = pieces.get(after.checked_sub(1)?)?;
        (range.end <= piece.range().end).then(|| piece.clone())
    }

    pub(crate) fn add(&self, piece: DiskPiece) {
        let mut pieces = self.write();
        let start = piece.range().start;
        let at = pieces.partition_point(|(other, _)| *other < start);
        match pieces.get_mut(at).filter(|(other, _)| *other == start) {
            Some((_, same)) => *same = piece,
            None => pieces.insert(at, (start, piece)),
        }
    }

    /// Removes the piece that begins at a byte, if there is one.
    pub(crate) fn remove(&self, start: u64) {
        let mut pieces = self.write();
        if let Ok(at) = pieces.binary_search_by_key(&start, |(start, _)| *start) {
            pieces.remove(at);
        }
    }

    /// Removes the pieces that have bytes of a range, in a forked child: a copy of a lock that is held is not
    /// waited for.
    pub(crate) fn remove_in_child(&self, range: &Range<u64>) {
        if let Ok(mut pieces) = self.0.try_write() {
            pieces.retain(|(_, piece)| piece.range().end <= range.start || range.end <= piece.range().start);
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<(u64, DiskPiece)>> {
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
        let ready = ReadyPieces::default();
        let ranges = [100..200, 10..20, 200..250];
        for range in &ranges {
            ready.add(piece(dir.path(), range));
        }
        for start in 0..260 {
            for end in start + 1..260 {
                let expected = ranges.iter().find(|range| range.start <= start && end <= range.end);
                let found = ready.find(&(start..end));
                assert_eq!(found.as_ref().map(DiskPiece::range), expected, "{start}..{end}");
            }
        }
        let found = ready.find(&(110..115)).unwrap();
        let mut buf = vec![1];
        found.wanted().add(8);
        assert_eq!(ready.append(&(110..115), &mut buf), Some(3));
        assert_eq!((ready.append(&(115..120), &mut buf), found.wanted().get()), (Some(0), 0));
        assert_eq!(buf, [&[1][..], &(110..120).collect::<Vec<u8>>()].concat());
        ready.remove(100);
        assert!(ready.append(&(110..115), &mut buf).is_none() && ready.find(&(10..20)).is_some());
        // A piece that cannot be read leaves the buffer as it is, and what is wanted.
        let found = ready.find(&(12..20)).unwrap();
        found.wanted().add(8);
        std::fs::write(dir.path().join("objects/a/10-20"), b"x").unwrap();
        assert_eq!(ready.append(&(12..20), &mut buf), None);
        assert_eq!((buf.len(), found.wanted().get()), (11, 8));
        // A lock that is held, as in a forked child, is not waited for.
        let held = ready.0.write().unwrap();
        assert!(ready.find(&(10..20)).is_none());
        drop(held);
    }
}
