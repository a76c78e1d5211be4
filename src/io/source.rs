//! Byte sources that support prefetching.

use super::Region;
use crate::error::Result;
use crate::frame;
use std::fmt;
use std::ops::Range;

/// A source of bytes at offsets, whose storage may be slow: a map, memory, or a file.
///
/// Readers announce ranges with [`want`](Source::want) as soon as they know them, and call [`fetch`](Source::fetch) when they need
/// the bytes. Announcements are prefetch hints: a range may be fetched without an announcement, or announced and never fetched.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Announces ranges that will be needed, in this order. Returns immediately.
    fn want(&self, ranges: &[Range<u64>]);

    /// Waits until the bytes of `range` are available. Depending on the source, they are returned as shared memory or appended to
    /// `buf`.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated) if the source ends before the range does; I/O errors. `buf` is then
    /// unchanged.
    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched>;

    /// Like [`fetch`](Source::fetch), for a range whose neighbours may never be needed.
    ///
    /// # Errors
    /// Errors of [`fetch`](Source::fetch).
    fn fetch_alone(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.fetch(range, buf)
    }

    /// Cancels announcements: these ranges will not be fetched, because the epoch was abandoned.
    ///
    /// By default does nothing, which is correct for sources whose announcements take no memory.
    fn forget(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }
}

/// The bytes that [`Source::fetch`] returned.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// A part of the source's own memory.
    Shared(Region),
    /// The bytes were appended to the buffer.
    Appended,
}

/// Maximum number of bytes per call of `madvise` or `posix_fadvise`. One call reads no more than the device accepts at once.
const ADVICE: u64 = 128 << 10;

/// Calls `advise` with the parts of `ranges` inside the first `size` bytes, in pieces of at most [`ADVICE`] bytes.
pub(super) fn for_each_piece(ranges: &[Range<u64>], size: u64, mut advise: impl FnMut(Range<u64>)) {
    for range in ranges {
        let (mut start, end) = (range.start, range.end.min(size));
        while start < end {
            let piece = start..end.min(start.saturating_add(ADVICE));
            start = piece.end;
            advise(piece);
        }
    }
}

/// Maps are prefetched by the system. Bytes in memory are always available.
impl Source for Region {
    fn want(&self, ranges: &[Range<u64>]) {
        for_each_piece(ranges, self.len() as u64, |piece| {
            let [start, end] = [piece.start, piece.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            self.will_need(start..end);
        });
    }

    /// Makes the whole range resident, which turns a failing disk into an error instead of a signal.
    fn fetch(&self, range: Range<u64>, _: &mut Vec<u8>) -> Result<Fetched> {
        let at = |at: u64| usize::try_from(at).ok();
        let part = at(range.start).zip(at(range.end)).and_then(|(start, end)| self.slice(start..end));
        let len = self.len() as u64;
        let part = part.ok_or_else(|| {
            frame::truncated(range.end.saturating_sub(range.start), len.saturating_sub(range.start))
        })?;
        part.populate(0..part.len())?;
        Ok(Fetched::Shared(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::io::{Budget, Map, PositionalFile, Promise};
    use std::fs::File;

    #[test]
    fn pieces_cover_the_ranges_up_to_the_size() {
        let pieces = |ranges: &[Range<u64>], size| {
            let mut all = Vec::new();
            for_each_piece(ranges, size, |piece| all.push(piece));
            all
        };
        assert_eq!(pieces(&[5..7, 0..1, 3..3], 100), [5..7, 0..1]);
        assert_eq!(pieces(&[98..200, 100..200, 7..u64::MAX, u64::MAX..u64::MAX], 100), [98..100, 7..100]);
        let long = 10..10 + 2 * ADVICE + 1;
        let cut = [10 + ADVICE, 10 + 2 * ADVICE];
        assert_eq!(
            pieces(std::slice::from_ref(&long), u64::MAX),
            [long.start..cut[0], cut[0]..cut[1], cut[1]..long.end]
        );
        assert_eq!(pieces(&[0..1, 2..3], 0), []);
    }

    #[test]
    #[allow(unsafe_code)]
    fn all_sources_return_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i / 3) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let open = || File::open(&path).unwrap();
        // SAFETY: a file of this test, which no other code writes to.
        let map = Map::open(&open(), unsafe { Promise::new() }).unwrap();
        let (some, none) = (Budget::new(), Budget::new());
        let kept: Vec<_> = std::iter::from_fn(|| none.keep_shard(open()).ok()).collect();
        let file = |budget| PositionalFile::new(&path, open(), budget, |_| Ok(())).unwrap();
        let (read, reopened) = (file(&some), file(&none));
        let (map, memory) = (Region::from(map), Region::from(bytes.clone()));
        drop(kept);
        let sources: [&dyn Source; 4] = [&map, &memory, &read, &reopened];
        for source in sources {
            let len = bytes.len() as u64;
            source.want(&[0..1, 5..len, 7..u64::MAX, u64::MAX..u64::MAX, 0..0]);
            source.forget(&[0..1, 5..len]);
            for range in [0..1, 5..len, 0..0, len..len] {
                let mut buf = b"before".to_vec();
                let fetched = source.fetch(range.clone(), &mut buf).unwrap();
                let want = &bytes[range.start as usize..range.end as usize];
                match fetched {
                    Fetched::Shared(part) => assert_eq!((&*part, &*buf), (want, &b"before"[..])),
                    Fetched::Appended => assert_eq!(buf, [b"before", want].concat()),
                }
            }
            for range in [0..len + 1, len..len + 1, 7..u64::MAX, u64::MAX - 1..u64::MAX] {
                let mut buf = b"before".to_vec();
                let e = source.fetch(range, &mut buf).unwrap_err();
                assert!(matches!(e.kind(), ErrorKind::Truncated { .. }), "{e}");
                assert_eq!(buf, b"before");
            }
        }
    }
}
