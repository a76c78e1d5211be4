//! Positional reads, which use no cursor and can be shared between threads.

use super::file_state::Stamp;
use super::open::{Budget, KeptFile, open_regular};
use super::source::{Fetched, Source, for_each_piece, read_exact_at, truncated_range};
use super::system;
use crate::error::{ErrorKind, Result};
use crate::memory::grow;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An open file. Ranges of it are read with positional reads, and never kept.
impl Source for File {
    fn name(&self) -> &str {
        ""
    }

    fn len(&self) -> u64 {
        size(self).unwrap_or(0)
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::of(&self.metadata()?)?)
    }

    /// Advises the system to start reading these bytes. A refusal is not an error.
    fn want(&self, ranges: &[Range<u64>]) {
        ranges.iter().for_each(|range| system::will_need(self, range.clone()));
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        append(self, size(self)?, range, buf)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        system::read_at(self, buf, offset)
    }
}

/// Returns the size of an open file.
fn size(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Appends a range of a file, which has or had `size` bytes, to `buf`.
fn append(file: &File, size: u64, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
    // The range may come from a damaged index, so it is checked against the file size before the buffer
    // grows.
    let len = range.end.checked_sub(range.start).filter(|_| range.end <= size);
    let len = len.ok_or_else(|| truncated_range(&range, size))?;
    let start = buf.len();
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    let too_large = ErrorKind::TooLarge { len: start as u128 + u128::from(len), limit: usize::MAX as u64 };
    grow(buf, end.ok_or(too_large)?)?;
    let rest = buf.split_at_mut(start).1;
    if let Err(e) = read_exact_at(file, rest, range.start) {
        buf.truncate(start);
        // The file may have become shorter than the known size.
        return Err(match self::size(file)? {
            size if size < range.end => truncated_range(&range, size),
            _ => e.into(),
        });
    }
    Ok(Fetched::Appended)
}

/// A regular file that is read with positional reads.
#[derive(Debug)]
pub(crate) struct PositionalFile {
    path: PathBuf,
    handle: FileHandle,
    /// The size when it was last read. A range inside it is read without asking for the size again.
    known_size: AtomicU64,
}

/// A file that keeps its descriptor open. If the budget of descriptors is used up, it is reopened for each
/// read and must be unchanged.
enum FileHandle {
    Kept(KeptFile),
    Reopened {
        /// The state at the last read.
        state: Mutex<Stamp>,
        same: SameContent,
    },
}

/// Checks that the bytes of a file that are in use are the same as before, although its state has changed.
pub(crate) type SameContent = Box<dyn Fn(&File) -> Result<()> + Send + Sync>;

impl PositionalFile {
    /// Wraps `file`, which was opened at `path`. If it is reopened and has changed, `same` decides whether it
    /// may be read.
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
                let state = Mutex::new(Stamp::of(&file.metadata()?)?);
                FileHandle::Reopened { state, same: Box::new(same) }
            }
        };
        Ok(PositionalFile { path: path.into(), handle, known_size: AtomicU64::new(0) })
    }

    /// Calls `f` with the open file.
    ///
    /// # Errors
    /// Errors of `f`, and of opening the file again.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        match &self.handle {
            FileHandle::Kept(file) => f(file),
            FileHandle::Reopened { state, same } => f(&reopen(&self.path, state, same)?),
        }
    }

    /// Returns a size that the file has or had, which is at least `end` unless the file is shorter now.
    fn size(&self, file: &File, end: u64) -> io::Result<u64> {
        let known = self.known_size.load(Relaxed);
        if end <= known {
            return Ok(known);
        }
        let size = size(file)?;
        self.known_size.store(size, Relaxed);
        Ok(size)
    }
}

#[cold]
fn reopen(path: &Path, state: &Mutex<Stamp>, same: &SameContent) -> Result<File> {
    let file = open_regular(path)?;
    let (now, lock) = (Stamp::of(&file.metadata()?)?, || state.lock().unwrap_or_else(|e| e.into_inner()));
    // The lock is not held during the check: a child forked at that moment would wait for it forever.
    let then = lock().clone();
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
            FileHandle::Reopened { .. } => f.write_str("Reopened"),
        }
    }
}

impl Source for PositionalFile {
    fn name(&self) -> &str {
        self.path.to_str().unwrap_or("")
    }

    fn len(&self) -> u64 {
        self.with(|file| Ok(size(file)?)).unwrap_or(0)
    }

    fn stamp(&self) -> Result<Stamp> {
        self.with(|file| file.stamp())
    }

    /// Advises the system to read the ranges into the page cache. Does nothing if the file cannot be opened
    /// again: that is an error of [`fetch`](Source::fetch).
    fn want(&self, ranges: &[Range<u64>]) {
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let _ = self.with(|file| {
            let size = self.size(file, end)?;
            for_each_piece(ranges, size, |piece| system::will_need(file, piece));
            Ok(())
        });
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.with(|file| append(file, self.size(file, range.end)?, range, buf))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.with(|file| Ok(Source::read_at(file, buf, offset)?))?)
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
        for source in [&file as &dyn Source, &bytes.as_slice() as &dyn Source] {
            assert_eq!((source.len(), source.stamp().unwrap().size), (256, 256));
            let mut buf = [0; 16];
            read_exact_at(source, &mut buf, 240).unwrap();
            assert_eq!(buf, bytes[240..]);
            let e = read_exact_at(source, &mut buf, 241).unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
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
        let cut = |have| Err(crate::frame::truncated(900, have).to_string());
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
