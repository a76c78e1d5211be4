//! Files that report the bytes that are read.

use super::pread::ReadAt;
use crate::error::{Error, ErrorKind};
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A file that calls a function after each read, with the number of bytes that were not read before. If a signal interrupted the read, the
/// number is 0. The function may cancel the work.
pub(crate) struct WatchedFile<F> {
    file: File,
    progress: F,
    /// Offset behind the bytes that were read.
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

impl<F: Fn(u64) -> ControlFlow<()> + Sync> ReadAt for WatchedFile<F> {
    fn size(&self) -> io::Result<u64> {
        ReadAt::size(&self.file)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.report(self.file.read_at(buf, offset), offset)
    }

    fn will_need(&self, range: std::ops::Range<u64>) {
        self.file.will_need(range);
    }
}
