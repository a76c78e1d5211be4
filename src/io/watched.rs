//! Files that report the bytes that are read.

use super::file_state::Stamp;
use super::source::{Fetched, Source};
use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A file that calls a function after each read, with the number of bytes that were not read before. If a signal interrupted the read, the
/// number is 0. The function may cancel the work.
pub(crate) struct WatchedFile<F> {
    file: File,
    progress: F,
    /// Offset after the bytes that were read.
    end: AtomicU64,
}

impl<F: Fn(u64) -> ControlFlow<()>> WatchedFile<F> {
    pub(crate) fn new(file: File, progress: F) -> WatchedFile<F> {
        WatchedFile { file, progress, end: AtomicU64::new(0) }
    }

    /// Reports a read at `offset`, and returns its result.
    fn report(&self, read: io::Result<usize>, offset: u64) -> io::Result<usize> {
        let new = match &read {
            Ok(n) => {
                let end = offset.saturating_add(*n as u64);
                end.saturating_sub(self.end.fetch_max(end, Relaxed)).min(*n as u64)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
            Err(_) => return read,
        };
        match (self.progress)(new) {
            ControlFlow::Continue(()) => read,
            ControlFlow::Break(()) => Err(Error::from(ErrorKind::Cancelled).into()),
        }
    }
}

impl<F: Fn(u64) -> ControlFlow<()>> Read for WatchedFile<F> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buf);
        self.report(read, self.end.load(Relaxed))
    }
}

impl<F: Fn(u64) -> ControlFlow<()> + Send + Sync> Source for WatchedFile<F> {
    fn name(&self) -> &str {
        ""
    }

    fn len(&self) -> u64 {
        Source::len(&self.file)
    }

    fn stamp(&self) -> Result<Stamp> {
        self.file.stamp()
    }

    fn want(&self, ranges: &[Range<u64>]) {
        self.file.want(ranges);
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let (start, len) = (range.start, range.end.saturating_sub(range.start));
        let fetched = self.file.fetch(range, buf)?;
        self.report(Ok(usize::try_from(len).unwrap_or(usize::MAX)), start)?;
        Ok(fetched)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.report(Source::read_at(&self.file, buf, offset), offset)
    }
}

impl<F> fmt::Debug for WatchedFile<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedFile").field(&self.file).finish()
    }
}
