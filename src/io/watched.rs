//! Files and objects that report the bytes that are read.

use super::file_state::Stamp;
use super::source::{Fetched, Source};
use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A file or object that calls a function after each read, with the number of bytes that were not read
/// before. If a signal interrupted the read, the number is 0. The function may cancel the work.
pub(crate) struct Watched<S, F> {
    file: S,
    progress: F,
    /// Offset of the next byte of [`Read`].
    at: u64,
    /// Offset after the bytes that were read, also by others of the same file.
    end: Arc<AtomicU64>,
}

impl<S, F: Fn(u64) -> ControlFlow<()>> Watched<S, F> {
    pub(crate) fn new(file: S, progress: F) -> Watched<S, F> {
        Watched::from(file, 0, progress, Arc::default())
    }

    /// Watches the reads of a file from `at` on, which was read to `end`.
    pub(crate) fn from(file: S, at: u64, progress: F, end: Arc<AtomicU64>) -> Watched<S, F> {
        Watched { file, progress, at, end }
    }

    /// Reports a read at `offset`, and returns its result.
    fn report(&self, read: io::Result<usize>, offset: u64) -> io::Result<usize> {
        let new = match &read {
            Ok(n) => {
                let end = offset + *n as u64;
                // Bytes before the end of an earlier read are not new.
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

impl<S: Read, F: Fn(u64) -> ControlFlow<()>> Read for Watched<S, F> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buf);
        let read = self.report(read, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<S: Source, F: Fn(u64) -> ControlFlow<()> + Send + Sync> Source for Watched<S, F> {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn stamp(&self) -> Result<Stamp> {
        self.file.stamp()
    }

    fn want(&self, ranges: &[Range<u64>]) {
        self.file.want(ranges);
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let start = range.start;
        let len = range.end.saturating_sub(range.start);
        let fetched = self.file.fetch(range, buf)?;
        self.report(Ok(usize::try_from(len).unwrap_or(usize::MAX)), start)?;
        Ok(fetched)
    }

    fn distrust(&self, range: &Range<u64>) -> bool {
        self.file.distrust(range)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.report(self.file.read_at(buf, offset), offset)
    }
}

impl<S: fmt::Debug, F> fmt::Debug for Watched<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.file).finish()
    }
}
