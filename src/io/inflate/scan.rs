//! Random access to deflate streams: checkpoints at which decompression can begin.
//!
//! A checkpoint is the border of two deflate blocks: a bit position in the file, and the window, which is the
//! last 32 KiB that were decompressed before it. [`CheckpointScan`] finds checkpoints while it decompresses a
//! file once, and [`InflateFrom`](super::InflateFrom) decompresses the bytes after one. At the first block of
//! a stream or a gzip member the window is empty.
//!
//! The borders are found with miniz_oxide, which reports them. The bytes after a checkpoint are decompressed
//! with zlib-rs, which is faster. Only the bytes of a damaged stream are decompressed with miniz_oxide again:
//! two decoders may differ in the bytes before an error.

use super::header::{GZIP_HEADER, MAGIC, TRAILER, begins_member, corrupt, cut, gzip_header, zlib_header};
use super::input::BufferedInput;
use super::stream::inflates_to_records;
use crate::error::{CompressionError, Error, ErrorKind, Result};
use crate::frame::starts_with_record;
use crate::io::compression::CompressedFormat;
use crate::memory::room;
use flate2::Crc;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use std::io::{self, Read};
use zlib_rs::adler32::adler32;

/// Number of bytes after the last member or stream that may begin a zlib stream of records.
const REST: usize = 512;
/// Number of bytes of a window, the largest distance in a deflate stream.
pub(crate) const WINDOW: usize = 32 << 10;
/// Bytes of compressed data of the first read at a position. Later reads are longer.
const FIRST_INPUT: usize = 1 << 10;
/// Maximum number of compressed bytes per call of the decoder.
const CALL: usize = 8 << 10;
/// Bytes of the buffer of decompressed data, which begins with the window when it is full.
pub(super) const OUTPUT: usize = 256 << 10;
/// Spacing of checkpoints from which the limit on windows is counted. The default of
/// [`IndexOptions`](crate::index::IndexOptions).
pub(crate) const SPACING: u64 = 1 << 20;
/// Bytes of windows that every file may have.
const FREE_WINDOWS: u64 = 16 << 20;

/// A position at which decompression can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint<'a> {
    /// Offset in the decompressed stream.
    pub(crate) out: u64,
    /// Position of a deflate block in the file, in bits.
    pub(crate) bit: u64,
    /// The bytes before `out`, at most [`WINDOW`]. Empty at the first block of a stream or member.
    pub(crate) window: &'a [u8],
}

/// The checkpoints of a file, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoints {
    points: Vec<Point>,
    /// Bytes of all windows.
    windows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    out: u64,
    bit: u64,
    window: Box<[u8]>,
}

impl Checkpoints {
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    pub(crate) fn get(&self, k: usize) -> Option<Checkpoint<'_>> {
        let Point { out, bit, window } = self.points.get(k)?;
        Some(Checkpoint { out: *out, bit: *bit, window })
    }

    /// Returns the windows in order.
    pub(crate) fn into_windows(self) -> impl Iterator<Item = Box<[u8]>> {
        self.points.into_iter().map(|point| point.window)
    }

    fn last(&self) -> Option<Checkpoint<'_>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Adds a checkpoint after the others. It replaces one that has no bytes after it, since the stream was
    /// damaged there.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn add(&mut self, point: Checkpoint<'_>) -> io::Result<()> {
        let Checkpoint { out, bit, window } = point;
        if let Some(last) = self.points.pop_if(|last| last.out == out) {
            self.windows -= last.window.len() as u64;
        }
        self.points.try_reserve(1)?;
        let mut copy = room(window.len())?;
        copy.extend_from_slice(window);
        self.windows += window.len() as u64;
        self.points.push(Point { out, bit, window: copy.into_boxed_slice() });
        Ok(())
    }
}

/// A reader of the decompressed bytes of a file, which collects checkpoints.
///
/// It is as strict as [`Inflate`](super::Inflate), and its errors are the same except for the reason of
/// damage. They are returned after the bytes before the damage. After an error it can continue at another
/// position of the file, which becomes a checkpoint.
///
/// A [`tolerant`](CheckpointScan::tolerant) reader accepts a cut trailer at the end of the file, and other
/// bytes after the last one.
pub(crate) struct CheckpointScan<R> {
    input: BufferedInput<R>,
    format: CompressedFormat,
    /// Minimum number of decompressed bytes between two checkpoints.
    spacing: u64,
    next: StreamNext,
    decoder: Box<DecompressorOxide>,
    /// The last decompressed bytes of the member are those before `end`.
    decoded: Box<[u8]>,
    end: usize,
    /// Number of bytes before `end` that were not returned yet.
    pending: usize,
    /// Number of bytes of the stream.
    out: u64,
    /// Number of bytes of the current member, from its start or from the position where the scan went on.
    member: u64,
    /// `None` if the current member was not read from its start.
    sum: Option<Checksum>,
    found: Checkpoints,
    /// Offset in the file of the byte in which the current block begins.
    block: u64,
    /// Offsets in the decompressed stream and in the file before the last bytes that were decompressed.
    mark: (u64, u64),
    /// The next block or member is a checkpoint, whatever its distance.
    must_mark: bool,
    failed: Option<CompressionError>,
    tolerant: bool,
    /// Number of bytes at the end of the file that a tolerant reader left out.
    left_out: Option<u64>,
    /// No byte from this offset of the decompressed stream on is decompressed.
    stop: u64,
}

/// The state of a decoder between two bytes of the decompressed stream, about 43 KiB.
///
/// Decompression can continue from it, as from a checkpoint. It may be inside a deflate block.
pub(crate) struct PausedInflate {
    decoder: Box<DecompressorOxide>,
    /// The bytes before `out` that the decoder may refer to.
    window: Box<[u8]>,
    next: StreamNext,
    out: u64,
    /// Offset of the file at which the decoder continues reading.
    pub(super) at: u64,
}

impl PausedInflate {
    /// Bytes that a paused decoder takes, about.
    pub(crate) const BYTES: u64 = 43 << 10;

    /// Returns the offset of the next byte in the decompressed stream.
    pub(crate) fn out(&self) -> u64 {
        self.out
    }
}

/// What comes next in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamNext {
    /// The header of a gzip member or a zlib stream, or the end of the file.
    Header,
    Blocks,
    Trailer,
    /// Nothing: the end of the file was left out.
    End,
}

/// The checksum of the decompressed bytes of a member or stream.
enum Checksum {
    Crc32(Crc),
    Adler32(u32),
}

impl Checksum {
    fn new(format: CompressedFormat) -> Checksum {
        match format {
            CompressedFormat::Gzip => Checksum::Crc32(Crc::new()),
            CompressedFormat::Zlib => Checksum::Adler32(1),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Checksum::Crc32(crc) => crc.update(bytes),
            Checksum::Adler32(sum) => *sum = adler32(*sum, bytes),
        }
    }

    /// Returns the bytes of the trailer of a member or stream of `len` bytes. A zlib stream has the first
    /// four.
    fn trailer(&self, len: u64) -> [u8; TRAILER] {
        let sum = match self {
            Checksum::Crc32(crc) => crc.sum().to_le_bytes(),
            Checksum::Adler32(sum) => sum.to_be_bytes(),
        };
        let mut bytes = [0; TRAILER];
        let size = (len as u32).to_le_bytes();
        bytes.iter_mut().zip(sum.iter().chain(&size)).for_each(|(to, from)| *to = *from);
        bytes
    }
}

impl<R: Read> CheckpointScan<R> {
    /// Returns a reader of a file of this format.
    pub(crate) fn new(inner: R, format: CompressedFormat, spacing: u64) -> CheckpointScan<R> {
        CheckpointScan {
            input: BufferedInput::new(inner, FIRST_INPUT),
            format,
            spacing,
            next: StreamNext::Header,
            decoder: Box::default(),
            decoded: vec![0; OUTPUT].into_boxed_slice(),
            end: 0,
            pending: 0,
            out: 0,
            member: 0,
            sum: None,
            found: Checkpoints::default(),
            block: 0,
            mark: (0, 0),
            must_mark: false,
            failed: None,
            tolerant: false,
            left_out: None,
            stop: u64::MAX,
        }
    }

    /// Returns the same reader, which accepts two ends of a file if `yes`: inside a trailer or the first
    /// bytes of a header, and after bytes after the last member or stream that seem to contain no records.
    pub(crate) fn tolerant(self, yes: bool) -> CheckpointScan<R> {
        CheckpointScan { tolerant: yes, ..self }
    }

    /// Returns the number of bytes at the end of the file that were left out, after the last deflate block,
    /// or the last member or stream. `None` if the file ended as it should. It is 0 if a trailer is missing.
    pub(crate) fn left_out(&self) -> Option<u64> {
        self.left_out
    }

    /// Returns a reader of the members after those that were scanned before, with the checkpoints of both.
    /// `inner` begins at byte `at` of the file, and its content at byte `out` of the stream.
    pub(crate) fn after(
        inner: R,
        format: CompressedFormat,
        spacing: u64,
        known: Checkpoints,
        at: u64,
        out: u64,
    ) -> CheckpointScan<R> {
        let mut scan = CheckpointScan::new(inner, format, spacing);
        (scan.input.consumed, scan.out, scan.found) = (at, out, known);
        scan
    }

    /// Returns a reader of the bytes after a checkpoint. `inner` begins with the block.
    pub(super) fn from_block(inner: R, format: CompressedFormat, from: Checkpoint<'_>) -> CheckpointScan<R> {
        let mut scan = CheckpointScan::new(inner, format, u64::MAX);
        scan.next = StreamNext::Blocks;
        let window = from.window.len().min(OUTPUT);
        if let (Some(to), Some(window)) = (scan.decoded.get_mut(..window), from.window.get(..window)) {
            to.copy_from_slice(window);
        }
        (scan.end, scan.out) = (window, from.out);
        scan
    }

    /// Ends the stream before the offset `stop`, until the next call.
    pub(super) fn stop_at(&mut self, stop: u64) {
        self.stop = stop;
    }

    /// Returns the state of the decoder after the last byte that was decompressed. All decompressed bytes
    /// must have been returned. The file was read up to its byte `read`.
    pub(super) fn pause(&self, read: u64) -> PausedInflate {
        let start = self.end.saturating_sub(WINDOW);
        let window = self.decoded.get(start..self.end).unwrap_or_default().into();
        let at = read - self.input.buffered().len() as u64;
        PausedInflate { decoder: self.decoder.clone(), window, next: self.next, out: self.out, at }
    }

    /// Returns a reader of the bytes after a paused decoder. `inner` begins with the first byte that was not
    /// decompressed.
    pub(super) fn resume(inner: R, format: CompressedFormat, from: &PausedInflate) -> CheckpointScan<R> {
        let start = Checkpoint { out: from.out, bit: 0, window: &from.window };
        let mut scan = CheckpointScan::from_block(inner, format, start);
        (scan.decoder, scan.next) = (from.decoder.clone(), from.next);
        scan
    }

    /// Goes on at byte `at` of the file after an error. The caller has moved `inner` to this byte. `header`:
    /// a gzip member begins there, otherwise a deflate block that does not need the bytes before it. `mark`:
    /// the position becomes a checkpoint.
    ///
    /// # Errors
    /// There is not enough memory for the checkpoint.
    pub(super) fn go_on(&mut self, at: u64, header: bool, mark: bool) -> io::Result<()> {
        self.input.restart(at, FIRST_INPUT);
        (self.pending, self.failed, self.must_mark) = (0, None, mark);
        self.next = StreamNext::Header;
        if !header {
            self.begin_blocks()?;
            self.sum = None;
        }
        Ok(())
    }

    /// Returns the reader of the file, to move it before [`go_on`](CheckpointScan::go_on).
    pub(super) fn inner(&mut self) -> &mut R {
        &mut self.input.inner
    }

    /// Returns the number of bytes that were decompressed and returned.
    pub(super) fn returned(&self) -> u64 {
        self.out - self.pending as u64
    }

    /// Returns the number of bytes of the file that were consumed.
    pub(crate) fn consumed(&self) -> u64 {
        self.input.consumed
    }

    /// Returns an offset in the decompressed stream at or before the next byte, and an offset of the file
    /// before which it needs nothing but the window. The latter is not before the start of its block.
    pub(super) fn mark(&self) -> (u64, u64) {
        self.mark
    }

    /// Returns the error that ended the stream.
    pub(super) fn failed(&self) -> Option<&CompressionError> {
        self.failed.as_ref()
    }

    /// Returns the checkpoints of the bytes that were decompressed.
    pub(crate) fn into_checkpoints(self) -> Checkpoints {
        self.found
    }

    /// Decompresses until bytes are pending. Returns false at the end of the file.
    fn advance(&mut self) -> io::Result<bool> {
        while self.pending == 0 {
            if let Some(e) = &self.failed {
                return Err(Error::from(e.clone()).into());
            }
            match self.next {
                StreamNext::Header => match self.header() {
                    Ok(true) => self.begin_blocks()?,
                    Ok(false) => return Ok(false),
                    Err(e) => match e.kind() {
                        ErrorKind::Compression(fault) => self.failed = Some(fault.clone()),
                        _ => return Err(e.into()),
                    },
                },
                StreamNext::Blocks => self.block()?,
                StreamNext::Trailer => self.trailer()?,
                StreamNext::End => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reads the header of a member or stream. Returns false at the end of the file.
    fn header(&mut self) -> Result<bool> {
        let at = self.input.consumed;
        if !self.input.fill()? {
            return Ok(false);
        }
        let mut first = [0; MAGIC.len()];
        let mut len = 0_usize;
        let header = match self.format {
            format if at > 0 && !format.has_members() => {
                Err(CompressionError::TrailingData { format: format.name(), at }.into())
            }
            CompressedFormat::Zlib => zlib_header(|| self.input.byte()),
            CompressedFormat::Gzip => gzip_header(|| {
                let byte = self.input.byte()?;
                if let (Some(to), Some(byte)) = (first.get_mut(len), byte) {
                    (*to, len) = (byte, len + 1);
                }
                Ok(byte)
            }),
        };
        let Err(e) = header else { return Ok(true) };
        let is_end = self.tolerant
            && match e.kind() {
                // After the fields of fixed length, damaged flags may be the reason.
                ErrorKind::Compression(CompressionError::Cut { .. }) => {
                    self.input.consumed - at < GZIP_HEADER
                }
                ErrorKind::Compression(_) if at > 0 && first != MAGIC => {
                    !self.rest_holds_records(first.split_at(len).0)?
                }
                _ => false,
            };
        if !is_end {
            return Err(e);
        }
        self.leave_out(at);
        Ok(false)
    }

    /// Ends the stream. The bytes of the file from `at` on are left out.
    fn leave_out(&mut self, at: u64) {
        self.left_out = Some(self.input.consumed - at);
        self.next = StreamNext::End;
    }

    /// Reads the bytes after the last member or stream. Returns true if they may contain records: they begin
    /// with a record or a zlib stream of records, or a gzip member begins anywhere, since a damaged header
    /// may precede it. `first`: the bytes that were read before.
    fn rest_holds_records(&mut self, first: &[u8]) -> io::Result<bool> {
        let mut bytes = first.to_vec();
        while bytes.len() < REST
            && let Some(byte) = self.input.byte()?
        {
            bytes.push(byte);
        }
        if starts_with_record(&bytes) || inflates_to_records(&bytes, CompressedFormat::Zlib) {
            return Ok(true);
        }
        let mut last = [0; 4];
        let mut bytes = bytes.into_iter();
        while let Some(byte) = bytes.next().map_or_else(|| self.input.byte(), |byte| Ok(Some(byte)))? {
            let [_, b, c, d] = last;
            last = [b, c, d, byte];
            if begins_member(last) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn begin_blocks(&mut self) -> io::Result<()> {
        self.decoder.init();
        self.sum = Some(Checksum::new(self.format));
        (self.member, self.end, self.block) = (0, 0, self.input.consumed);
        self.next = StreamNext::Blocks;
        let must = std::mem::take(&mut self.must_mark);
        if must || self.found.last().is_none_or(|last| self.is_far_from(last.out)) {
            let bit = self.input.consumed.saturating_mul(8);
            self.found.add(Checkpoint { out: self.out, bit, window: &[] })?;
        }
        Ok(())
    }

    fn is_far_from(&self, out: u64) -> bool {
        self.out.saturating_sub(out) >= self.spacing.max(1)
    }

    /// Decompresses the rest of a block, or a part of it.
    fn block(&mut self) -> io::Result<()> {
        let more = self.input.fill()?;
        let mut flags = TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        if more {
            flags |= TINFL_FLAG_HAS_MORE_INPUT;
        }
        if self.end == OUTPUT {
            // The decoder refers to the bytes of the window only, relative to `end`.
            self.decoded.copy_within(OUTPUT - WINDOW.., 0);
            self.end = WINDOW;
        }
        /// Bytes that the decoder may hold in its bit buffer.
        const LOOK_AHEAD: u64 = 8;
        let at = self.block.max(self.input.consumed.saturating_sub(LOOK_AHEAD));
        let input = self.input.buffered();
        let input = input.get(..CALL).unwrap_or(input);
        let room = usize::try_from(self.stop - self.out).unwrap_or(OUTPUT);
        let most = self.end + room.min(OUTPUT - self.end);
        let decoded = self.decoded.split_at_mut(most).0;
        let (status, taken, made) = decompress(&mut self.decoder, input, decoded, self.end, flags);
        self.input.consume(taken);
        let decoded = self.end..self.end + made;
        self.end = decoded.end;
        if let (Some(sum), Some(bytes)) = (&mut self.sum, self.decoded.get(decoded)) {
            sum.update(bytes);
        }
        if made > 0 {
            self.mark = (self.out, at);
        }
        self.pending = made;
        self.out += made as u64;
        self.member += made as u64;
        match status {
            TINFLStatus::BlockBoundary => self.border()?,
            TINFLStatus::Done => self.next = StreamNext::Trailer,
            TINFLStatus::HasMoreOutput => {}
            TINFLStatus::NeedsMoreInput if more => {}
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                self.failed = Some(cut(self.format));
            }
            _ => self.fail("invalid deflate data"),
        }
        Ok(())
    }

    /// Adds a checkpoint, if the last one is far enough away and there is room for its window.
    ///
    /// A file that inflates to a multiple of its size has room for fewer windows than blocks at this spacing.
    /// The room grows with the file, so the checkpoints are as far apart as the file is compressed, and their
    /// bytes stay in proportion to the file's.
    fn border(&mut self) -> io::Result<()> {
        let Some(state) = self.decoder.block_boundary_state() else { return Ok(()) };
        // A resumed decoder has bits that were consumed before.
        let bit = self.input.consumed.saturating_mul(8).saturating_sub(state.num_bits.into());
        self.block = bit / 8;
        if self.found.last().is_some_and(|last| !self.is_far_from(last.out)) {
            return Ok(());
        }
        let len = self.member.min(WINDOW as u64) as usize;
        let each = SPACING.checked_div(self.spacing).unwrap_or(SPACING).max(1);
        let room = FREE_WINDOWS.saturating_add(self.block.saturating_mul(each));
        if self.found.windows + len as u64 > room {
            return Ok(());
        }
        let window = self.decoded.get(self.end - len..self.end).unwrap_or_default();
        self.found.add(Checkpoint { out: self.out, bit, window })
    }

    fn trailer(&mut self) -> io::Result<()> {
        let at = self.input.consumed;
        let expected = self.sum.as_ref().map(|sum| sum.trailer(self.member));
        let len = match self.format {
            CompressedFormat::Gzip => TRAILER,
            CompressedFormat::Zlib => 4,
        };
        let mut sound = true;
        for k in 0..len {
            let Some(found) = self.input.byte()? else {
                if self.tolerant && sound {
                    self.leave_out(at);
                } else {
                    self.failed = Some(cut(self.format));
                }
                return Ok(());
            };
            sound &= expected.is_none_or(|trailer| trailer.get(k) == Some(&found));
        }
        self.next = StreamNext::Header;
        if !sound {
            self.fail("the checksum or length in the trailer does not match");
        }
        Ok(())
    }

    fn fail(&mut self, reason: &str) {
        self.failed = Some(corrupt(self.format, reason));
    }
}

impl<R: Read> Read for CheckpointScan<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() || self.pending == 0 && self.out >= self.stop || !self.advance()? {
            return Ok(0);
        }
        let pending = self.decoded.get(self.end - self.pending..self.end);
        let n = pending.map_or(Ok(0), |mut pending| pending.read(buf))?;
        self.pending -= n;
        Ok(n)
    }
}
