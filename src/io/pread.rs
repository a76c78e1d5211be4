//! Positional reads, which use no cursor and can be shared between threads.

use super::file_state::FileState;
use super::open::{Budget, KeptFile, open_regular};
use super::source::{Fetched, Source, for_each_piece};
use crate::error::{ErrorKind, Result};
use crate::frame;
use crate::memory::grow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A source of bytes that can be read at any offset.
pub(crate) trait ReadAt: Sync {
    /// Returns the current size in bytes.
    ///
    /// # Errors
    /// I/O errors.
    fn size(&self) -> io::Result<u64>;

    /// Reads bytes at `offset` and returns their number, which is 0 at the end.
    ///
    /// # Errors
    /// I/O errors.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Advises the system to start reading these bytes, and returns immediately. A refusal is not an error.
    fn will_need(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Fills `buf` with the bytes at `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the source ends before `buf` is full; I/O errors.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
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
}

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(target_os = "linux")]
    fn will_need(&self, range: Range<u64>) {
        let len = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
        let _ =
            len.map(|len| rustix::fs::fadvise(self, range.start, Some(len), rustix::fs::Advice::WillNeed));
    }

    #[cfg(unix)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // It also moves the cursor, which is not used.
        std::os::windows::fs::FileExt::seek_read(self, buf, offset)
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|o| self.get(o..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        Ok(n)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }

    fn will_need(&self, range: Range<u64>) {
        (**self).will_need(range);
    }
}

/// A reader of a range of bytes, by positional reads.
pub(crate) struct ReadRange<'a, R: ?Sized> {
    pub(crate) file: &'a R,
    /// Offset of the next byte.
    pub(crate) at: u64,
    pub(crate) end: u64,
}

impl<R: ReadAt + ?Sized> Read for ReadRange<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let want = buf.len().min(left);
        let n = self.file.read_at(buf.get_mut(..want).unwrap_or_default(), self.at)?.min(want);
        self.at = self.at.saturating_add(n as u64);
        Ok(n)
    }
}

/// A regular file that is read with positional reads.
#[derive(Debug)]
pub(crate) struct PositionalFile {
    handle: FileHandle,
    /// The size when it was last read. A range inside it is read without asking for the size again.
    known_size: AtomicU64,
}

/// A file that keeps its descriptor open. If the budget of descriptors is used up, it is reopened for each read and must be unchanged.
enum FileHandle {
    Kept(KeptFile),
    Reopened {
        path: PathBuf,
        /// The state at the last read.
        state: Mutex<FileState>,
        same: SameContent,
    },
}

/// Checks that the bytes of a file that are in use are the same as before, although its state has changed.
pub(crate) type SameContent = Box<dyn Fn(&File) -> Result<()> + Send + Sync>;

impl PositionalFile {
    /// Wraps `file`, which was opened at `path`. If it is reopened and has changed, `same` decides whether it may be read.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn new(
        path: &Path,
        file: File,
        budget: &Budget,
        same: impl Fn(&File) -> Result<()> + Send + Sync + 'static,
    ) -> io::Result<PositionalFile> {
        let handle = match budget.keep_shard(file) {
            Ok(kept) => FileHandle::Kept(kept),
            Err(file) => {
                let state = Mutex::new(FileState::of(&file)?);
                FileHandle::Reopened { path: path.into(), state, same: Box::new(same) }
            }
        };
        Ok(PositionalFile { handle, known_size: AtomicU64::new(0) })
    }

    /// Calls `f` with the open file.
    ///
    /// # Errors
    /// Errors of `f`, and of opening the file again.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        match &self.handle {
            FileHandle::Kept(file) => f(file),
            FileHandle::Reopened { path, state, same } => f(&reopen(path, state, same)?),
        }
    }

    /// Returns a size that the file has or had, which is at least `end` unless the file is shorter now.
    fn size(&self, file: &impl ReadAt, end: u64) -> io::Result<u64> {
        let known = self.known_size.load(Relaxed);
        if end <= known {
            return Ok(known);
        }
        let size = file.size()?;
        self.known_size.store(size, Relaxed);
        Ok(size)
    }
}

#[cold]
fn reopen(path: &Path, state: &Mutex<FileState>, same: &SameContent) -> Result<File> {
    let file = open_regular(path)?;
    let (now, lock) = (FileState::of(&file)?, || state.lock().unwrap_or_else(|e| e.into_inner()));
    // The lock is not held during the check: a child forked at that moment would wait for it forever.
    let then = *lock();
    if now != then {
        same(&file)?;
        *lock() = now;
    }
    Ok(file)
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileHandle::Kept(file) => f.debug_tuple("Kept").field(file).finish(),
            FileHandle::Reopened { path, .. } => f.debug_tuple("Reopened").field(path).finish(),
        }
    }
}

impl Source for PositionalFile {
    /// Advises the system to read the ranges into the page cache. Does nothing if the file cannot be opened again: that is an error of
    /// [`fetch`](Source::fetch).
    fn want(&self, ranges: &[Range<u64>]) {
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let _ = self.with(|file| {
            let size = self.size(file, end)?;
            for_each_piece(ranges, size, |piece| file.will_need(piece));
            Ok(())
        });
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.with(|file| {
            let len = range.end.saturating_sub(range.start);
            let truncated = |size: u64| frame::truncated(len, size.saturating_sub(range.start));
            // The range may come from a damaged index, so it is checked against the file size before the buffer grows.
            let size = self.size(file, range.end)?;
            if range.end > size {
                return Err(truncated(size));
            }
            let start = buf.len();
            let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
            let too_large =
                ErrorKind::TooLarge { len: start as u128 + u128::from(len), limit: usize::MAX as u64 };
            grow(buf, end.ok_or(too_large)?)?;
            let rest = buf.get_mut(start..).unwrap_or_default();
            if let Err(e) = file.read_exact_at(rest, range.start) {
                buf.truncate(start);
                // The file may have become shorter than the known size.
                return Err(match file.size()? {
                    size if size < range.end => truncated(size),
                    _ => e.into(),
                });
            }
            Ok(Fetched::Appended)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_and_a_slice_return_the_same_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        for source in [&file as &dyn ReadAt, &bytes.as_slice() as &dyn ReadAt] {
            assert_eq!(source.size().unwrap(), 256);
            let mut buf = [0; 16];
            source.read_exact_at(&mut buf, 240).unwrap();
            assert_eq!(buf, bytes[240..]);
            assert_eq!(source.read_exact_at(&mut buf, 241).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert_eq!(source.read_at(&mut buf, 256).unwrap(), 0);
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_or_longer_is_read_up_to_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [7; 1000]).unwrap();
        let file =
            PositionalFile::new(&path, File::open(&path).unwrap(), &Budget::new(), |_| Ok(())).unwrap();
        let fetch = |range| {
            let mut buf = b"before".to_vec();
            let done = file.fetch(range, &mut buf);
            (done.map_err(|e| e.to_string()).map(drop), buf.len() - 6)
        };
        let cut = |have| Err(frame::truncated(900, have).to_string());
        let resize = |len| File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        assert_eq!(fetch(100..1000), (Ok(()), 900));
        resize(500);
        assert_eq!(fetch(100..1000), (cut(400), 0));
        assert_eq!(fetch(100..500), (Ok(()), 400));
        resize(2000);
        assert_eq!(fetch(1100..2000), (Ok(()), 900));
        resize(50);
        file.want(&[0..2000, 3..u64::MAX]);
        assert_eq!(fetch(100..1000), (cut(0), 0));
    }
}
