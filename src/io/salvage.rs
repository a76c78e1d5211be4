//! The sound records of a file, damaged or not.

use super::compression::{CompressedFormat, Compression};
use super::inflate::{Checkpoints, DamagedInflate, FileBytes, NotInflated, SalvageFile, WINDOW};
use super::pipe::{KEPT, PipeBytes};
use super::read_buffer::ReadBuffer;
use super::sniff;
use super::source::{ReadRange, Source};
use crate::error::{Error, Result};
use crate::frame::{Salvage, SalvageStep};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

/// An item of a record stream: a record or damage that a [`SalvageReader`] returns. The items are adjacent.
#[non_exhaustive]
#[derive(Debug)]
pub enum SalvageItem<'a> {
    /// A sound record.
    Record {
        /// Offset in the record stream.
        offset: u64,
        /// Ordinal of the record. `None` if an unknown number of records was damaged before it.
        record: Option<u64>,
        /// The record with its header and footer.
        bytes: &'a [u8],
    },
    /// Bytes without a sound record. Consecutive items of damage are one gap.
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
    /// Bytes of a compressed file that cannot be inflated. The records after them come from the next place at
    /// which inflation can begin.
    NotInflated {
        /// Offset in the record stream.
        offset: u64,
        /// Ordinal of the record at this offset, if it is known.
        record: Option<u64>,
        /// The bytes of the file. The first is where inflation ended.
        file: Range<u64>,
        /// The error that ended inflation.
        error: Error,
    },
}

/// A reader of the sound records of a file, and of the bytes between them.
///
/// After damage the reader continues in one of three ways:
///
/// * A record with a sound header and a damaged payload is skipped if a sound header, or the end of the
///   stream, follows it. TFRecords inside such a payload are not taken for records. To ask for a sound record
///   there, payload included, would fail for two damaged neighbours.
/// * If neither follows, bytes of the record may be missing. A chain of sound records inside the stated
///   length counts if it passes over the stated end or ends with the stream, and so do two or more sound
///   records before another torn one. A writer that was cut off and went on leaves such a chain, and nested
///   TFRecords cannot. A writer that died twice would otherwise lose all between.
/// * Otherwise the reader searches the next offset with a sound record: the checksums of its header and its
///   payload are correct. In random bytes an offset passes with probability 2^-64. The search finds TFRecords
///   inside a payload whose record has a damaged length.
///
/// Memory holds the damaged record and the one after it; the buffer grows only as bytes arrive. Inflated
/// bytes, which cannot be read twice, so take the same path as others.
///
/// The record stream of a damaged gzip or zlib file is the bytes that can be inflated. After damage,
/// inflation begins again at the next gzip member, or after the next flush (an empty stored block), if a
/// sound record is found after it. Places without one are examined until they have taken 64 MiB of compressed
/// and inflated bytes, plus sixteen times the size of the file. So the time is linear for any file.
///
/// Damaged deflate data can repeat earlier bytes of the stream, and so whole records. After damage inside the
/// stream, a record that occurs in the 32 KiB before it counts as damage, up to the first record that does
/// not.
///
/// ```
/// use tfseek::io::{SalvageItem, SalvageReader};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("damaged.tfrecord");
/// # let mut bytes = Vec::new();
/// # for payload in [b"one", b"two", b"ten"] { tfseek::frame::put_record(&mut bytes, payload)?; }
/// # bytes[19 + 12] ^= 1;
/// # std::fs::write(&path, bytes)?;
/// let file = std::fs::File::open(&path)?;
/// let mut reader = SalvageReader::new(&file, 1 << 30)?;
/// let mut sound = Vec::new();
/// while let Some(item) = reader.next()? {
///     if let SalvageItem::Record { record, .. } = item {
///         sound.push(record);
///     }
/// }
/// assert_eq!(sound, [Some(0), Some(2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SalvageReader<'a> {
    input: SalvageInput<'a>,
    parser: Salvage,
    buffer: ReadBuffer,
    /// True until the end of the input.
    more: bool,
    /// Bytes of the record stream before the position, since inflation began.
    history: History,
    /// Inflated bytes were damaged, and since then no record was found that is no copy.
    unsure: bool,
    /// The bytes before this offset are as they are in their store. All of a compressed object are, once it
    /// begins again.
    settled: u64,
    /// The records before this offset were returned, before a compressed object began again.
    returned: u64,
}

impl<'a> SalvageReader<'a> {
    /// Returns a reader of a file, or of other bytes. The first bytes tell the compression. Payloads longer
    /// than `max_payload` bytes count as damage.
    ///
    /// # Errors
    /// I/O errors.
    pub fn new(file: &'a dyn Source, max_payload: u64) -> Result<SalvageReader<'a>> {
        let size = file.stamp()?.size;
        let first = sniff::first_bytes(ReadRange { file, at: 0, end: size })?;
        let format = sniff::compression(&first).format();
        Ok(SalvageReader::of(SalvageFile::Borrowed(file), size, format, u64::MAX, max_payload))
    }

    /// Returns a reader of the first `size` bytes of a plain file. `parser` is at the position where it
    /// begins.
    pub(crate) fn plain(file: &'a dyn Source, size: u64, parser: Salvage) -> SalvageReader<'a> {
        let file = SalvageFile::Borrowed(file);
        let input = SalvageInput::Plain(FileBytes { file, at: parser.offset(), end: size });
        SalvageReader::with(input, parser)
    }

    /// Returns a reader of the first `size` bytes of a compressed file.
    pub(crate) fn inflated(
        file: &'a dyn Source,
        size: u64,
        format: CompressedFormat,
        spacing: u64,
        max_payload: u64,
    ) -> SalvageReader<'a> {
        SalvageReader::of(SalvageFile::Borrowed(file), size, Some(format), spacing, max_payload)
    }

    /// Returns a reader of the first `size` bytes of a file with this compression, which it keeps open.
    pub(crate) fn kept(
        file: impl Source + 'static,
        size: u64,
        compression: Compression,
        max_payload: u64,
    ) -> SalvageReader<'static> {
        let file = SalvageFile::Shared(Arc::new(file));
        SalvageReader::of(file, size, compression.format(), u64::MAX, max_payload)
    }

    /// Returns a reader of a pipe with this compression. An I/O error is returned after the records before
    /// it.
    pub(crate) fn piped(
        pipe: Box<dyn Read + Send>,
        compression: Compression,
        max_payload: u64,
    ) -> SalvageReader<'static> {
        // Plain bytes are never read again.
        let kept = if compression == Compression::None { 0 } else { KEPT };
        let file = SalvageFile::Pipe(Arc::new(PipeBytes::new(pipe, kept)));
        SalvageReader::of(file, u64::MAX, compression.format(), u64::MAX, max_payload)
    }

    fn of(
        file: SalvageFile<'a>,
        size: u64,
        format: Option<CompressedFormat>,
        spacing: u64,
        max_payload: u64,
    ) -> SalvageReader<'a> {
        let input = match format {
            None => SalvageInput::Plain(FileBytes { file, at: 0, end: size }),
            Some(format) => {
                let inflate = DamagedInflate::new(file, size, format, spacing, max_payload);
                SalvageInput::Inflated(Box::new(inflate))
            }
        };
        SalvageReader::with(input, Salvage::new(max_payload))
    }

    fn with(input: SalvageInput<'a>, parser: Salvage) -> SalvageReader<'a> {
        let buffer = ReadBuffer::default();
        let history = History(Vec::new());
        SalvageReader { input, parser, buffer, more: true, history, unsure: false, settled: 0, returned: 0 }
    }

    /// Returns the checkpoints of a compressed file that was read to its end.
    pub(crate) fn into_checkpoints(self) -> Option<Checkpoints> {
        match self.input {
            SalvageInput::Plain(_) => None,
            SalvageInput::Inflated(inflate) => Some(inflate.into_checkpoints()),
        }
    }

    /// Returns the next item. `None` at the end.
    ///
    /// # Errors
    /// I/O errors.
    #[allow(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<SalvageItem<'_>>> {
        loop {
            let offset = self.parser.offset();
            let record = self.parser.record();
            let before = self.parser.clone();
            match self.parser.step(self.buffer.bytes(), self.more) {
                SalvageStep::Record(len) if offset < self.returned => {
                    let bytes = self.buffer.consume(len);
                    if let SalvageInput::Inflated(inflate) = &mut self.input {
                        inflate.found_record(self.parser.offset());
                        self.history.push(bytes);
                    }
                }
                SalvageStep::Record(len) => {
                    let bytes = self.buffer.consume(len);
                    if let SalvageInput::Inflated(inflate) = &mut self.input {
                        if self.unsure && self.history.contains(bytes) {
                            self.history.push(bytes);
                            self.parser.restart();
                            return Ok(Some(SalvageItem::Damage { offset, record, bytes, error: None }));
                        }
                        inflate.found_record(self.parser.offset());
                        self.history.push(bytes);
                    }
                    self.unsure = false;
                    return Ok(Some(SalvageItem::Record { offset, record, bytes }));
                }
                SalvageStep::Damage { .. } if self.asks_again(&before) => {}
                SalvageStep::Damage { len, error } => {
                    let bytes = self.buffer.consume(len);
                    if let SalvageInput::Inflated(_) = self.input {
                        self.history.push(bytes);
                        self.unsure = true;
                    }
                    return Ok(Some(SalvageItem::Damage { offset, record, bytes, error }));
                }
                SalvageStep::End if self.is_cut() && self.asks_again(&before) => {}
                SalvageStep::End => {
                    let inflate = match &mut self.input {
                        SalvageInput::Inflated(inflate) => inflate,
                        SalvageInput::Plain(input) => return input.file.check_end().map(|()| None),
                    };
                    let Some(NotInflated { file, error, goes_on }) = inflate.next_place()? else {
                        return Ok(None);
                    };
                    if goes_on {
                        self.parser.restart();
                        (self.more, self.unsure) = (true, false);
                        self.history.0.clear();
                    }
                    return Ok(Some(SalvageItem::NotInflated { offset, record, file, error }));
                }
                SalvageStep::Need(need) => {
                    // The parser begins anew at its position, so the number of bytes grows by a factor each
                    // time.
                    let have = self.buffer.bytes().len() as u64;
                    self.more = self.buffer.fill(&mut self.input, need.max(have + have / 2))?;
                }
            }
        }
    }

    /// Returns true if the input ends before all of it was inflated.
    fn is_cut(&self) -> bool {
        matches!(&self.input, SalvageInput::Inflated(inflate) if inflate.has_failed())
    }

    /// Goes back to the damaged bytes of an object, where `parser` was, which its store is asked for once
    /// more: of a compressed one for all bytes, whose records up to here are then read again. Returns false
    /// if this is of no use.
    #[cold]
    fn asks_again(&mut self, parser: &Salvage) -> bool {
        let offset = parser.offset();
        match &mut self.input {
            SalvageInput::Plain(input) => {
                let range = offset..offset + self.buffer.bytes().len() as u64;
                if offset < self.settled || !input.file.distrust(&range) {
                    return false;
                }
                input.at = offset;
                self.settled = range.end;
                self.parser = parser.clone();
            }
            SalvageInput::Inflated(inflate) => {
                if self.settled > 0 {
                    return false;
                }
                let Some(parser) = inflate.asks_again() else { return false };
                self.settled = u64::MAX;
                self.returned = offset;
                self.parser = parser;
                self.history.0.clear();
                self.unsure = false;
            }
        }
        self.buffer = ReadBuffer::default();
        self.more = true;
        true
    }

    /// Returns the bytes of the last item, which has `len` bytes.
    pub(crate) fn last(&self, len: usize) -> &[u8] {
        self.buffer.consumed(len)
    }

    /// Returns the offset in the file up to which it was read.
    pub fn file_offset(&self) -> u64 {
        match &self.input {
            SalvageInput::Plain(input) => input.at,
            SalvageInput::Inflated(inflate) => inflate.consumed(),
        }
    }
}

impl fmt::Debug for SalvageReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SalvageReader").field("parser", &self.parser).finish_non_exhaustive()
    }
}

/// The last bytes of an inflated stream. Damaged deflate data repeat such bytes, and with them whole records.
struct History(Vec<u8>);

impl History {
    fn push(&mut self, bytes: &[u8]) {
        let last = bytes.split_at(bytes.len().saturating_sub(WINDOW)).1;
        if self.0.len() + last.len() > 4 * WINDOW {
            self.0.drain(..self.0.len() - WINDOW);
        }
        self.0.extend_from_slice(last);
    }

    /// Returns true if these bytes are among the last ones.
    fn contains(&self, bytes: &[u8]) -> bool {
        let last = self.0.split_at(self.0.len().saturating_sub(WINDOW)).1;
        !bytes.is_empty() && last.windows(bytes.len()).any(|window| window == bytes)
    }
}

/// The record stream of a file.
enum SalvageInput<'a> {
    Plain(FileBytes<'a>),
    Inflated(Box<DamagedInflate<'a>>),
}

impl Read for SalvageInput<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            SalvageInput::Plain(input) => input.read(buf),
            SalvageInput::Inflated(inflate) => inflate.read(buf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::flipped::Flipped;
    use flate2::write::GzEncoder;

    #[test]
    fn a_bit_that_was_flipped_on_its_way_is_no_damage() {
        let mut stream = Vec::new();
        for k in 0..20u32 {
            crate::frame::put_record(&mut stream, &k.wrapping_mul(2_654_435_761).to_le_bytes()).unwrap();
        }
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        io::Write::write_all(&mut gzip, &stream).unwrap();
        for (bytes, compression) in [(stream, Compression::None), (gzip.finish().unwrap(), Compression::Gzip)]
        {
            for wrong in 0..bytes.len() {
                let file = Flipped::new(bytes.clone(), wrong);
                let size = file.len();
                let mut reader = SalvageReader::kept(file, size, compression, 1 << 20);
                let mut records = Vec::new();
                while let Some(item) = reader.next().unwrap() {
                    match item {
                        SalvageItem::Record { record, .. } => records.extend(record),
                        other => panic!("{compression:?}, byte {wrong}: {other:?}"),
                    }
                }
                assert_eq!(records, (0..20).collect::<Vec<_>>(), "{compression:?}, byte {wrong}");
            }
        }
    }
}
