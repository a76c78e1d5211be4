//! Byte sources that support prefetching.

use super::{Region, Stamp};
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::frame;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

/// The bytes of one object, at offsets: a file, a map, memory, or an object of a [`Store`](super::Store). Its
/// bytes do not change: a source whose object was replaced returns an error.
///
/// The storage may be slow. Readers announce ranges with [`want`](Source::want) as soon as they know them,
/// and call [`fetch`](Source::fetch) when they need the bytes. Announcements are prefetch hints: a range may
/// be fetched without an announcement, or announced and never fetched.
#[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
pub trait Source: fmt::Debug + Send + Sync {
    /// Returns the path, or the URL without its query and user, for messages. Empty for bytes without a name.
    fn name(&self) -> &str;

    /// Returns the number of bytes.
    fn len(&self) -> u64;

    /// Returns what is known of the object: of a file the state now, of an object of a store its state when
    /// it was listed.
    ///
    /// # Errors
    /// I/O errors.
    fn stamp(&self) -> Result<Stamp>;

    /// Returns all bytes if they are in memory or mapped. Asked once, when a shard is opened.
    fn whole(&self) -> Option<&Region> {
        None
    }

    /// Announces ranges that will be needed, in this order. Returns immediately.
    fn want(&self, ranges: &[Range<u64>]);

    /// Raises the number of announced bytes, of all objects of the store together, that are kept until they
    /// are read. A block order announces the blocks of two windows.
    ///
    /// By default does nothing, which is correct for sources whose announcements take no memory.
    fn make_room(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Waits until the bytes of `range` are available. Depending on the source, they are returned as shared
    /// memory or appended to `buf`.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated) if the source ends before the range does;
    /// [`IndexError::Stale`](crate::error::IndexError::Stale) if the object was replaced; I/O errors. `buf`
    /// is then unchanged.
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

    /// Drops what is kept of a range, in memory and on disk, because it failed a checksum: a bit may have
    /// changed on its way. Returns true if the next [`fetch`](Source::fetch) asks the store once more, and
    /// false if it has done so before.
    ///
    /// By default returns false, which is correct for sources that keep no copies.
    fn distrust(&self, range: &Range<u64>) -> bool {
        let _ = range;
        false
    }

    /// Reads bytes at `offset` into `buf`, for scans, and returns their number. It is 0 at the end. By
    /// default they are fetched.
    ///
    /// # Errors
    /// Errors of [`fetch`](Source::fetch).
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.len();
        if buf.is_empty() || offset >= len {
            return Ok(0);
        }
        let end = offset + (len - offset).min(buf.len() as u64);
        let mut bytes = Vec::new();
        let shared = match self.fetch(offset..end, &mut bytes)? {
            Fetched::Shared(shared) => Some(shared),
            Fetched::Appended => None,
        };
        let bytes = shared.as_deref().unwrap_or(&bytes);
        check_answer(end - offset, Some(bytes.len()))?;
        Ok(copy_start(buf, bytes))
    }
}

/// Returns true for an error of a checksum, or of what a checksum protects. If the bytes came from a store,
/// they may be right when they come again.
pub(crate) fn is_corrupt(e: &Error) -> bool {
    use ErrorKind::{Compression, CorruptData, CorruptLength, Index, NotTfRecord, Value};
    matches!(
        e.kind(),
        CorruptLength { .. }
            | CorruptData { .. }
            | Compression(_)
            | NotTfRecord { .. }
            | Value { .. }
            | Index(IndexError::LengthMismatch { .. })
    )
}

/// Compares the number of bytes that a source returned with the request: sources may come from other crates.
///
/// # Errors
/// Another number, or `None`.
fn check_answer(expected: u64, found: Option<usize>) -> io::Result<()> {
    if found.map(|found| found as u64) == Some(expected) {
        return Ok(());
    }
    let found = found.unwrap_or(0);
    Err(io::Error::other(format!("expected {expected} bytes of the source, found {found}")))
}

/// Returns the error of a range that is not inside of `size` bytes.
#[cold]
pub(crate) fn truncated_range(range: &Range<u64>, size: u64) -> Error {
    frame::truncated(range.end.saturating_sub(range.start), size.saturating_sub(range.start))
}

/// Copies as many of the first bytes as `to` has room for, and returns their number.
fn copy_start(to: &mut [u8], from: &[u8]) -> usize {
    let n = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// The bytes that [`Source::fetch`] returned.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// A part of the source's own memory.
    Shared(Region),
    /// The bytes were appended to the buffer.
    Appended,
}

impl Fetched {
    /// Returns the bytes of parts of larger regions, in order. A single part is shared if it is at least half
    /// of its region: a small one would keep all of the region in memory. Others are appended to `buf`.
    ///
    /// # Errors
    /// There is no memory.
    pub fn from_parts(parts: &[(Region, Range<usize>)], buf: &mut Vec<u8>) -> Result<Fetched> {
        if let [(region, at)] = parts
            && at.len() >= region.bytes().len() / 2
            && let Some(part) = region.slice(at.clone())
        {
            return Ok(Fetched::Shared(part));
        }
        buf.try_reserve(parts.iter().map(|(_, at)| at.len()).sum())?;
        for (region, at) in parts {
            buf.extend_from_slice(region.get(at.clone()).unwrap_or_default());
        }
        Ok(Fetched::Appended)
    }

    /// Completes a buffer that had `before` bytes with the bytes of a range. Sources may come from other
    /// crates, so their answers are compared with the request.
    ///
    /// # Errors
    /// Another number of bytes: `buf` then has those that it had before. There is no memory.
    pub(crate) fn complete(self, range: &Range<u64>, before: usize, buf: &mut Vec<u8>) -> Result<()> {
        if let Fetched::Shared(bytes) = self {
            buf.try_reserve(bytes.as_ref().len())?;
            buf.extend_from_slice(&bytes);
        }
        let expected = range.end - range.start;
        check_answer(expected, buf.len().checked_sub(before)).inspect_err(|_| buf.truncate(before))?;
        Ok(())
    }
}

/// Fills `buf` with the bytes at `offset`.
///
/// # Errors
/// `UnexpectedEof` if the source ends before `buf` is full; I/O errors.
pub(crate) fn read_exact_at<S: Source + ?Sized>(
    source: &S,
    mut buf: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !buf.is_empty() {
        match source.read_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                let more = || io::Error::other("more bytes were read than the buffer can hold");
                buf = buf.get_mut(n..).ok_or_else(more)?;
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A reader of a range of the bytes of a source.
pub(crate) struct ReadRange<'a, S: ?Sized> {
    pub(crate) file: &'a S,
    /// Offset of the next byte.
    pub(crate) at: u64,
    pub(crate) end: u64,
}

impl<S: Source + ?Sized> Read for ReadRange<'_, S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let want = (self.end - self.at).min(buf.len() as u64) as usize;
        let n = self.file.read_at(buf.split_at_mut(want).0, self.at)?.min(want);
        self.at += n as u64;
        Ok(n)
    }
}

/// Maximum number of bytes per call of `madvise` or `posix_fadvise`. One call reads no more than the device
/// accepts at once.
const ADVICE: u64 = 128 << 10;

/// Calls `advise` with the parts of `ranges` inside the first `size` bytes, in pieces of at most [`ADVICE`]
/// bytes.
pub(super) fn for_each_piece(ranges: &[Range<u64>], size: u64, mut advise: impl FnMut(Range<u64>)) {
    for range in ranges {
        in_steps(range.start..range.end.min(size), ADVICE).for_each(&mut advise);
    }
}

/// Returns the parts of a range, of `step` bytes each but for the last one.
pub(crate) fn in_steps(range: Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> + Clone {
    let end = range.end;
    range.step_by(step as usize).map(move |start| start..start + step.min(end - start))
}

/// Maps are prefetched by the system. Bytes in memory are always available.
impl Source for Region {
    fn name(&self) -> &str {
        ""
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::new(Source::len(self)))
    }

    fn whole(&self) -> Option<&Region> {
        Some(self)
    }

    fn want(&self, ranges: &[Range<u64>]) {
        for_each_piece(ranges, Source::len(self), |piece| {
            self.will_need(piece.start as usize..piece.end as usize);
        });
    }

    /// Makes the whole range resident, which turns a failing disk into an error instead of a signal.
    fn fetch(&self, range: Range<u64>, _: &mut Vec<u8>) -> Result<Fetched> {
        let at = |at: u64| usize::try_from(at).ok();
        let part = at(range.start).zip(at(range.end)).and_then(|(start, end)| self.slice(start..end));
        let part = part.ok_or_else(|| truncated_range(&range, Source::len(self)))?;
        part.populate(0..<[u8]>::len(&part))?;
        Ok(Fetched::Shared(part))
    }
}

impl Source for [u8] {
    fn name(&self) -> &str {
        ""
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::new(Source::len(self)))
    }

    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let part = self.get(at(range.start)..at(range.end));
        let part = part.ok_or_else(|| truncated_range(&range, Source::len(self)))?;
        buf.try_reserve(<[u8]>::len(part))?;
        buf.extend_from_slice(part);
        Ok(Fetched::Appended)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(usize::try_from(offset).ok().and_then(|at| self.get(at..)).map_or(0, |from| copy_start(buf, from)))
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn stamp(&self) -> Result<Stamp> {
        (**self).stamp()
    }

    fn whole(&self) -> Option<&Region> {
        (**self).whole()
    }

    fn want(&self, ranges: &[Range<u64>]) {
        (**self).want(ranges);
    }

    fn make_room(&self, bytes: u64) {
        (**self).make_room(bytes);
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        (**self).fetch(range, buf)
    }

    fn fetch_alone(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        (**self).fetch_alone(range, buf)
    }

    fn forget(&self, ranges: &[Range<u64>]) {
        (**self).forget(ranges);
    }

    fn distrust(&self, range: &Range<u64>) -> bool {
        (**self).distrust(range)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let some = Budget::new();
        let none = Budget::new();
        let kept: Vec<_> = std::iter::from_fn(|| none.keep_shard(open()).ok()).collect();
        let file = |budget| PositionalFile::new(&path, open(), budget, |_| Ok(())).unwrap();
        let read = file(&some);
        let reopened = file(&none);
        let map = Region::from(map);
        let memory = Region::from(bytes.clone());
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
