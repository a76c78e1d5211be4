//! The last bytes of a pipe. They can be read again, although the pipe cannot.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes that are kept.
pub(super) const KEPT: usize = 64 << 20;

/// A reader that is read at offsets: at its end, or among its last bytes.
///
/// Bytes are kept until the caller [forgets](PipeBytes::forget) them, and at most a limit of them. Then the
/// first ones are dropped, or, while the pipe is [held](PipeBytes::hold), no more are read.
pub(super) struct PipeBytes(Mutex<PipeState>);

struct PipeState {
    reader: Box<dyn Read + Send>,
    /// The bytes from offset `start` on that were read.
    kept: VecDeque<u8>,
    start: u64,
    limit: usize,
    held: bool,
    /// The error that ended the reader.
    failed: Option<io::Error>,
    #[cfg(test)]
    most_kept: usize,
}

impl PipeBytes {
    /// Returns a reader that keeps at most `limit` bytes.
    pub(super) fn new(reader: Box<dyn Read + Send>, limit: usize) -> PipeBytes {
        PipeBytes(Mutex::new(PipeState {
            reader,
            kept: VecDeque::new(),
            start: 0,
            limit,
            held: false,
            failed: None,
            #[cfg(test)]
            most_kept: 0,
        }))
    }

    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads bytes at `offset` and returns their number. It is 0 at the end, where the reader failed, where a
    /// held pipe has reached its limit, and for bytes that are not kept.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] and [`io::ErrorKind::OutOfMemory`].
    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.state().read_at(buf, offset)
    }

    /// Drops the bytes before `offset`.
    pub(super) fn forget(&self, offset: u64) {
        self.state().forget(offset);
    }

    /// Reads on only while the limit is not reached, if `yes`, and drops no bytes meanwhile.
    pub(super) fn hold(&self, yes: bool) {
        self.state().held = yes;
    }

    /// Returns the offset of the first byte that is kept.
    pub(super) fn start(&self) -> u64 {
        self.state().start
    }

    /// Returns the number of bytes that were read.
    pub(super) fn len(&self) -> u64 {
        self.state().end()
    }

    #[cfg(test)]
    pub(super) fn most_kept(&self) -> usize {
        self.state().most_kept
    }

    /// Returns the error that ended the reader, once.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.state().failed.take()
    }

    /// Reads to the end, keeps no bytes, and returns the number of all bytes.
    pub(super) fn drain(&self) -> io::Result<u64> {
        let mut state = self.state();
        let mut buf = [0; 4096];
        loop {
            let end = state.end();
            state.forget(end);
            match state.read_at(&mut buf, end) {
                Ok(0) => return Ok(end),
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
    }
}

impl PipeState {
    fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    fn forget(&mut self, offset: u64) {
        let n = offset.saturating_sub(self.start).min(self.kept.len() as u64);
        self.kept.drain(..n as usize);
        self.start += n;
    }

    fn read_at(&mut self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset == self.end() {
            return self.read(buf);
        }
        let Some(skipped) = offset.checked_sub(self.start).and_then(|n| usize::try_from(n).ok()) else {
            return Ok(0);
        };
        let (first, second) = self.kept.as_slices();
        let found = first.get(skipped..).filter(|rest| !rest.is_empty());
        let found = found.or_else(|| second.get(skipped.checked_sub(first.len())?..));
        found.map_or(Ok(0), |mut found| found.read(buf))
    }

    /// Reads bytes that were not read before.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.failed.is_some() || (self.held && self.kept.len() >= self.limit) {
            return Ok(0);
        }
        let n = match self.reader.read(buf) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                self.failed = Some(e);
                return Ok(0);
            }
            Ok(n) => n.min(buf.len()),
        };
        let mut new = buf.split_at(n).0;
        if !self.held {
            let over = (self.kept.len() + n).saturating_sub(self.limit);
            self.forget(self.start + over as u64);
            let dropped = n.saturating_sub(self.limit);
            new = new.split_at(dropped).1;
            self.start += dropped as u64;
        }
        self.kept.try_reserve(new.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.kept.extend(new);
        #[cfg(test)]
        {
            self.most_kept = self.most_kept.max(self.kept.len());
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of the bytes 0, 1, 2, .., in pieces, that fails at its end.
    struct Counting(usize, usize);

    impl Read for Counting {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = buf.len().min(self.1 - self.0).min(7);
            if n == 0 {
                return Err(io::Error::other("gone"));
            }
            buf[..n].iter_mut().for_each(|byte| {
                *byte = self.0 as u8;
                self.0 += 1;
            });
            Ok(n)
        }
    }

    fn read(pipe: &PipeBytes, at: u64, len: usize) -> Vec<u8> {
        let mut found = Vec::new();
        let mut buf = vec![0; len];
        while found.len() < len {
            let left = len - found.len();
            match pipe.read_at(&mut buf[..left], at + found.len() as u64).unwrap() {
                0 => break,
                n => found.extend(&buf[..n]),
            }
        }
        found
    }

    fn numbers(range: std::ops::Range<usize>) -> Vec<u8> {
        range.map(|i| i as u8).collect()
    }

    #[test]
    fn the_last_bytes_can_be_read_again() {
        let pipe = PipeBytes::new(Box::new(Counting(0, 300)), 50);
        assert_eq!(read(&pipe, 0, 40), numbers(0..40));
        assert_eq!(read(&pipe, 3, 20), numbers(3..23));
        pipe.forget(30);
        assert_eq!((pipe.start(), pipe.len()), (30, 40));
        assert_eq!(read(&pipe, 29, 5), [0; 0], "not kept");
        assert_eq!(read(&pipe, 41, 5), [0; 0], "after bytes that were not read");
        assert_eq!(read(&pipe, 35, 65), numbers(35..100));
        assert_eq!((pipe.start(), pipe.len()), (50, 100));
        assert_eq!(read(&pipe, 50, 50), numbers(50..100));
        for (limit, start) in [(0, 100), (3, 97), (1000, 0)] {
            let pipe = PipeBytes::new(Box::new(&[7; 100][..]), limit);
            assert_eq!((read(&pipe, 0, 100), pipe.start(), pipe.len()), (vec![7; 100], start, 100));
        }
        // A held pipe drops nothing.
        pipe.hold(true);
        assert_eq!(read(&pipe, 100, 10), [0; 0]);
        pipe.forget(70);
        assert!(read(&pipe, 70, 90).len() >= 50 && pipe.start() == 70);
        pipe.hold(false);
        let end = pipe.len();
        assert_eq!(read(&pipe, end, 500), numbers(end as usize..300));
    }

    #[test]
    fn an_error_is_the_end_and_kept() {
        let pipe = PipeBytes::new(Box::new(Counting(0, 30)), 50);
        assert_eq!((read(&pipe, 0, 40), read(&pipe, 10, 40)), (numbers(0..30), numbers(10..30)));
        assert_eq!(pipe.drain().unwrap(), 30);
        assert_eq!(pipe.take_error().unwrap().to_string(), "gone");
        assert!(pipe.take_error().is_none());
        let pipe = PipeBytes::new(Box::new(&[7; 10_000][..]), 50);
        assert_eq!((read(&pipe, 0, 3), pipe.drain().unwrap(), pipe.start()), (vec![7; 3], 10_000, 10_000));
    }
}
