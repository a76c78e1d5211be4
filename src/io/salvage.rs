//! The sound records of a file, damaged or not.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::pread::ReadAt;
use super::read_buffer::ReadBuffer;
use crate::error::{Error, Result};
use crate::frame::{Salvage, SalvageStep};
use std::fmt;
use std::io::{self, Read};

/// A part of a record stream that a [`SalvageReader`] returns. The parts are adjacent.
#[non_exhaustive]
#[derive(Debug)]
pub enum SalvagePart<'a> {
    /// A sound record.
    Record {
        /// Offset in the record stream.
        offset: u64,
        /// Ordinal of the record. `None` if an unknown number of records was damaged before it.
        record: Option<u64>,
        /// The record with its header and footer.
        bytes: &'a [u8],
    },
    /// Bytes without a sound record. Consecutive parts of damage are one gap.
    Damage {
        /// Offset in the record stream.
        offset: u64,
        /// Ordinal of the damaged record, if it is known.
        record: Option<u64>,
        /// The damaged bytes.
        bytes: &'a [u8],
        /// The error at the start of a gap, with record and offset. `None` if the gap began before.
        error: Option<Error>,
    },
}

/// A reader of the sound records of a file, and of the bytes between them.
///
/// [`Salvage`] defines which records are sound. Memory holds the damaged record and the one after it; the buffer grows only as bytes arrive.
pub struct SalvageReader<'a> {
    input: PlainInput<'a>,
    parser: Salvage,
    buffer: ReadBuffer,
    /// True until the end of the input.
    more: bool,
}

impl<'a> SalvageReader<'a> {
    /// Returns a reader of the first `size` bytes of a plain file. `parser` is at the position where it begins.
    pub(crate) fn plain(file: &'a dyn ReadAt, size: u64, parser: Salvage) -> SalvageReader<'a> {
        let input = PlainInput { file, at: parser.offset(), size };
        SalvageReader { input, parser, buffer: ReadBuffer::default(), more: true }
    }

    /// Returns the next part. `None` at the end.
    ///
    /// # Errors
    /// I/O errors.
    #[allow(clippy::should_implement_trait, reason = "the part borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<SalvagePart<'_>>> {
        loop {
            let (offset, record) = (self.parser.offset(), self.parser.record());
            match self.parser.step(self.buffer.bytes(), self.more) {
                SalvageStep::Record(len) => {
                    let bytes = self.buffer.consume(len);
                    return Ok(Some(SalvagePart::Record { offset, record, bytes }));
                }
                SalvageStep::Damage { len, error } => {
                    let bytes = self.buffer.consume(len);
                    return Ok(Some(SalvagePart::Damage { offset, record, bytes, error }));
                }
                SalvageStep::End => return Ok(None),
                SalvageStep::Need(need) => {
                    // The parser begins anew at its position, so the number of bytes grows by a factor each time.
                    let have = self.buffer.bytes().len();
                    let need = usize::try_from(need).unwrap_or(usize::MAX);
                    self.more = self.buffer.fill(&mut self.input, need.max(have.saturating_add(have / 2)))?;
                }
            }
        }
    }

    /// Returns the offset in the file up to which it was read.
    pub fn file_offset(&self) -> u64 {
        self.input.at
    }
}

impl fmt::Debug for SalvageReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SalvageReader").field("parser", &self.parser).finish_non_exhaustive()
    }
}

/// The bytes of a plain file.
struct PlainInput<'a> {
    file: &'a dyn ReadAt,
    /// Offset of the next byte.
    at: u64,
    size: u64,
}

impl Read for PlainInput<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let want = buf.len().min(left);
        let n = self.file.read_at(buf.get_mut(..want).unwrap_or_default(), self.at)?.min(want);
        self.at = self.at.saturating_add(n as u64);
        Ok(n)
    }
}
