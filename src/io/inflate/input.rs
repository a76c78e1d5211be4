//! A buffer of compressed bytes.

use std::io::{self, Read};

/// Bytes per read of compressed data.
pub(super) const INPUT: usize = 64 << 10;

/// Compressed bytes with a buffer.
pub(super) struct BufferedInput<R> {
    pub(super) inner: R,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of bytes of the next read.
    read_len: usize,
    /// Number of bytes consumed, which is the offset in the file.
    pub(super) consumed: u64,
}

impl<R: Read> BufferedInput<R> {
    /// `read_len` is the number of bytes of the first read, at most [`INPUT`]. Later ones are longer.
    pub(super) fn new(inner: R, read_len: usize) -> BufferedInput<R> {
        let buf = vec![0; INPUT].into_boxed_slice();
        BufferedInput { inner, buf, start: 0, end: 0, read_len, consumed: 0 }
    }

    /// Drops what is buffered, because `inner` is at byte `at` of the file now. `read_len` as for
    /// [`new`](BufferedInput::new).
    pub(super) fn restart(&mut self, at: u64, read_len: usize) {
        (self.start, self.end) = (0, 0);
        self.read_len = read_len;
        self.consumed = at;
    }

    pub(super) fn buffered(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads if nothing is buffered. Returns false at the end of the file.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        while self.start == self.end {
            let len = self.read_len.min(self.buf.len());
            match self.inner.read(self.buf.split_at_mut(len).0) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    (self.start, self.end) = (0, n.min(len));
                    self.read_len = (2 * self.read_len).min(self.buf.len());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        self.consumed += n as u64;
    }

    pub(super) fn byte(&mut self) -> io::Result<Option<u8>> {
        if !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffered().first().copied();
        self.consume(1);
        Ok(byte)
    }
}
