//! A buffer of bytes that were read and not consumed yet.

use crate::frame::{HEADER_LEN, OVERHEAD};
use crate::memory::grow_exact;
use std::io::{self, Read};

/// Minimum size of the buffer in bytes.
const MIN_LEN: usize = 256 << 10;

/// A buffer for the records of a reader, about as large as the largest record so far. It grows only as bytes
/// arrive: a corrupt length does not allocate memory.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    /// `buf[start..end]` contains bytes that were read and not consumed yet.
    buf: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// Returns the bytes that were read and not consumed yet.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Consumes the first `len` bytes and returns them.
    #[inline]
    pub(crate) fn consume(&mut self, len: usize) -> &[u8] {
        let start = self.start;
        self.start += len.min(self.end - start);
        self.buf.get(start..self.start).unwrap_or_default()
    }

    /// Returns the `len` bytes that were consumed last. Nothing may have been read since.
    #[inline]
    pub(crate) fn consumed(&self, len: usize) -> &[u8] {
        self.buf.get(self.start - len..self.start).unwrap_or_default()
    }

    /// Consumes a record with a payload of `len` bytes, which begins the buffer, and returns the payload.
    #[inline]
    pub(crate) fn consume_record(&mut self, len: usize) -> &[u8] {
        self.consume(len + OVERHEAD).get(HEADER_LEN..HEADER_LEN + len).unwrap_or_default()
    }

    /// Reads until there are `need` bytes. Returns false if the reader ends before that.
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::OutOfMemory`].
    pub(crate) fn fill(&mut self, reader: &mut impl Read, need: u64) -> io::Result<bool> {
        // More than `usize::MAX` bytes exceed any buffer: the reader ends, or there is no memory.
        let need = usize::try_from(need).unwrap_or(usize::MAX);
        while self.end - self.start < need {
            if self.end == self.buf.len() {
                self.make_room(need)?;
            }
            match reader.read(self.buf.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => return Ok(false),
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// Moves the remaining bytes to the front, and grows the buffer to up to twice their number. The growth
    /// depends on the bytes that have arrived, not only on `need`, which may be corrupt.
    fn make_room(&mut self, need: usize) -> io::Result<()> {
        let have = self.end - self.start;
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        let len = (2 * have).clamp(MIN_LEN, need.max(MIN_LEN));
        if len > self.buf.len() {
            grow_exact(&mut self.buf, len)?;
        }
        Ok(())
    }
}
