//! Random access to deflate streams: checkpoints at which decompression can begin.
//!
//! A checkpoint is the border of two deflate blocks: a bit position in the file, and the window, which is the last 32 KiB that were
//! decompressed before it. [`CheckpointScan`] finds checkpoints while it decompresses a file once, and [`InflateFrom`] decompresses the
//! bytes behind one. At the first block of a stream or a gzip member the window is empty.
//!
//! The borders are found with miniz_oxide, which reports them. The bytes behind a checkpoint are decompressed with zlib-rs, which is
//! faster. Only those of a damaged stream are decompressed with miniz_oxide again: two decoders may differ in the bytes before an error.
//! The input of zlib-rs begins with a whole byte, so empty blocks of suitable length are put in front of a block that begins inside a byte.

use super::inflate::Compression;
use super::pread::ReadAt;
use crate::error::{CompressionError, Error, Result};
use flate2::Crc;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use std::fmt;
use std::io::{self, Read};
use zlib_rs::adler32::adler32;
use zlib_rs::{Inflate as RawInflate, InflateFlush, Status};

/// Number of bytes of a window, the largest distance in a deflate stream.
pub(crate) const WINDOW: usize = 32 << 10;
/// Bytes per read of compressed data.
const INPUT: usize = 64 << 10;
/// Bytes of compressed data of the first read at a position. Later reads are longer.
const FIRST_INPUT: usize = 1 << 10;
/// Maximum number of compressed bytes per call of the decoder.
const CALL: usize = 8 << 10;
/// Bytes of the buffer of decompressed data, which begins with the window when it is full.
const OUTPUT: usize = 256 << 10;
/// Bytes of a gzip trailer: CRC32 and length.
const TRAILER: usize = 8;

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
    /// The windows, one after the other.
    windows: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    out: u64,
    bit: u64,
    /// End of the window in `windows`.
    window_end: usize,
}

impl Checkpoints {
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    pub(crate) fn get(&self, k: usize) -> Option<Checkpoint<'_>> {
        let Point { out, bit, window_end } = *self.points.get(k)?;
        let before = k.checked_sub(1).and_then(|before| self.points.get(before));
        let window = self.windows.get(before.map_or(0, |p| p.window_end)..window_end)?;
        Some(Checkpoint { out, bit, window })
    }

    fn last(&self) -> Option<Checkpoint<'_>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Adds a checkpoint behind the others.
    pub(crate) fn add(&mut self, point: Checkpoint<'_>) {
        self.push(point.out, point.bit, point.window);
    }

    /// Adds a checkpoint. It replaces one that has no bytes behind it, since the stream was damaged there.
    fn push(&mut self, out: u64, bit: u64, window: &[u8]) {
        if self.points.last().is_some_and(|last| last.out == out) {
            self.points.pop();
            self.windows.truncate(self.points.last().map_or(0, |last| last.window_end));
        }
        self.windows.extend_from_slice(window);
        self.points.push(Point { out, bit, window_end: self.windows.len() });
    }
}

/// A reader of the decompressed bytes of a file, which collects checkpoints.
///
/// It is as strict as [`Inflate`](super::Inflate), and its errors are the same except for the reason of damage. They are returned after
/// the bytes before the damage. After an error it can go on at another position of the file, which becomes a checkpoint.
pub(crate) struct CheckpointScan<R> {
    input: BufferedInput<R>,
    format: Compression,
    /// Minimum number of decompressed bytes between two checkpoints.
    spacing: u64,
    part: StreamPart,
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
}

/// The part of a file that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamPart {
    /// The header of a gzip member or a zlib stream, or the end of the file.
    Header,
    Blocks,
    Trailer,
}

/// The checksum of the decompressed bytes of a member or stream.
enum Checksum {
    Crc32(Crc),
    Adler32(u32),
}

impl Checksum {
    fn new(format: Compression) -> Checksum {
        match format {
            Compression::Zlib => Checksum::Adler32(1),
            _ => Checksum::Crc32(Crc::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Checksum::Crc32(crc) => crc.update(bytes),
            Checksum::Adler32(sum) => *sum = adler32(*sum, bytes),
        }
    }
}

impl<R: Read> CheckpointScan<R> {
    /// Returns a reader of a file with this compression, gzip or zlib.
    pub(crate) fn new(inner: R, format: Compression, spacing: u64) -> CheckpointScan<R> {
        let buf = vec![0; INPUT].into_boxed_slice();
        CheckpointScan {
            input: BufferedInput { inner, buf, start: 0, end: 0, read_len: FIRST_INPUT, consumed: 0 },
            format,
            spacing,
            part: StreamPart::Header,
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
        }
    }

    /// Returns a reader of the gzip members behind those that were scanned before, with the checkpoints of both. `inner` begins at byte
    /// `at` of the file, and its content at byte `out` of the stream.
    pub(crate) fn behind(inner: R, spacing: u64, known: Checkpoints, at: u64, out: u64) -> CheckpointScan<R> {
        let mut scan = CheckpointScan::new(inner, Compression::Gzip, spacing);
        (scan.input.consumed, scan.out, scan.found) = (at, out, known);
        scan
    }

    /// Returns a reader of the bytes behind a checkpoint. `inner` begins with the block.
    fn from_block(inner: R, format: Compression, from: Checkpoint<'_>) -> CheckpointScan<R> {
        let mut scan = CheckpointScan::new(inner, format, u64::MAX);
        scan.part = StreamPart::Blocks;
        let window = from.window.len().min(OUTPUT);
        if let (Some(to), Some(window)) = (scan.decoded.get_mut(..window), from.window.get(..window)) {
            to.copy_from_slice(window);
        }
        (scan.end, scan.out) = (window, from.out);
        scan
    }

    /// Goes on at byte `at` of the file after an error. The caller has moved `inner` to this byte. `header`: a gzip member begins there,
    /// otherwise a deflate block that does not need the bytes before it. `mark`: the position becomes a checkpoint.
    pub(super) fn go_on(&mut self, at: u64, header: bool, mark: bool) {
        (self.input.start, self.input.end, self.input.consumed) = (0, 0, at);
        self.input.read_len = FIRST_INPUT;
        (self.pending, self.failed, self.must_mark) = (0, None, mark);
        self.part = StreamPart::Header;
        if !header {
            self.begin_blocks();
            self.sum = None;
        }
    }

    /// Returns the reader of the file, to move it before [`go_on`](CheckpointScan::go_on).
    pub(super) fn inner(&mut self) -> &mut R {
        &mut self.input.inner
    }

    /// Returns the number of bytes that were decompressed and returned.
    pub(super) fn returned(&self) -> u64 {
        self.out.saturating_sub(self.pending as u64)
    }

    /// Returns the number of bytes of the file that were consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.input.consumed
    }

    /// Returns an offset in the decompressed stream at or before the next byte, and an offset of the file before which it needs nothing
    /// but the window. The latter is not before the start of its block.
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
            match self.part {
                StreamPart::Header => match self.header() {
                    Ok(true) => self.begin_blocks(),
                    Ok(false) => return Ok(false),
                    Err(HeaderFault::Io(e)) => return Err(e),
                    Err(HeaderFault::Format(e)) => self.failed = Some(e),
                },
                StreamPart::Blocks => self.block()?,
                StreamPart::Trailer => self.trailer()?,
            }
        }
        Ok(true)
    }

    fn header(&mut self) -> Result<bool, HeaderFault> {
        let at = self.input.consumed;
        if !self.input.fill()? {
            return Ok(false);
        }
        match self.format {
            Compression::Zlib if at > 0 => {
                return Err(CompressionError::TrailingData { format: self.format.name(), at }.into());
            }
            Compression::Zlib => zlib_header(|| self.input.byte())?,
            _ => gzip_header(|| self.input.byte())?,
        }
        Ok(true)
    }

    fn begin_blocks(&mut self) {
        self.decoder.init();
        self.sum = Some(Checksum::new(self.format));
        (self.member, self.end, self.block) = (0, 0, self.input.consumed);
        self.part = StreamPart::Blocks;
        let must = std::mem::take(&mut self.must_mark);
        if must || self.found.last().is_none_or(|last| self.is_far_from(last.out)) {
            self.found.push(self.out, self.input.consumed.saturating_mul(8), &[]);
        }
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
            self.decoded.copy_within(OUTPUT.saturating_sub(WINDOW).., 0);
            self.end = WINDOW;
        }
        /// Bytes that the decoder may hold in its bit buffer.
        const LOOK_AHEAD: u64 = 8;
        let at = self.block.max(self.input.consumed.saturating_sub(LOOK_AHEAD));
        let input = self.input.buffered();
        let input = input.get(..CALL).unwrap_or(input);
        let (status, taken, made) = decompress(&mut self.decoder, input, &mut self.decoded, self.end, flags);
        self.input.consume(taken);
        let decoded = self.end..self.end.saturating_add(made);
        self.end = decoded.end;
        if let Some(sum) = &mut self.sum {
            sum.update(self.decoded.get(decoded).unwrap_or_default());
        }
        if made > 0 {
            self.mark = (self.out, at);
        }
        self.pending = made;
        self.out = self.out.saturating_add(made as u64);
        self.member = self.member.saturating_add(made as u64);
        match status {
            TINFLStatus::BlockBoundary => self.border(),
            TINFLStatus::Done => self.part = StreamPart::Trailer,
            TINFLStatus::HasMoreOutput => {}
            TINFLStatus::NeedsMoreInput if more => {}
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                self.failed = Some(CompressionError::Cut { format: self.format.name() });
            }
            _ => self.fail("invalid deflate data"),
        }
        Ok(())
    }

    /// Adds a checkpoint, if the last one is far enough away.
    fn border(&mut self) {
        let Some(state) = self.decoder.block_boundary_state() else { return };
        let bit = self.input.consumed.saturating_mul(8).saturating_sub(state.num_bits.into());
        self.block = bit / 8;
        if self.found.last().is_some_and(|last| !self.is_far_from(last.out)) {
            return;
        }
        let len = usize::try_from(self.member).unwrap_or(usize::MAX).min(WINDOW);
        let window = self.decoded.get(self.end.saturating_sub(len)..self.end).unwrap_or_default();
        self.found.push(self.out, bit, window);
    }

    fn trailer(&mut self) -> io::Result<()> {
        let mut bytes = [0; TRAILER];
        let len = if self.format == Compression::Gzip { TRAILER } else { 4 };
        for byte in bytes.iter_mut().take(len) {
            match self.input.byte()? {
                Some(found) => *byte = found,
                None => {
                    self.failed = Some(CompressionError::Cut { format: self.format.name() });
                    return Ok(());
                }
            }
        }
        self.part = StreamPart::Header;
        let [a, b, c, d, size @ ..] = bytes;
        let sound = match &self.sum {
            Some(Checksum::Crc32(crc)) => {
                crc.sum() == u32::from_le_bytes([a, b, c, d])
                    && self.member as u32 == u32::from_le_bytes(size)
            }
            Some(Checksum::Adler32(sum)) => *sum == u32::from_be_bytes([a, b, c, d]),
            None => true,
        };
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
        if buf.is_empty() || !self.advance()? {
            return Ok(0);
        }
        let start = self.end.saturating_sub(self.pending);
        let n = buf.len().min(self.pending);
        if let (Some(to), Some(from)) = (buf.get_mut(..n), self.decoded.get(start..start.saturating_add(n))) {
            to.copy_from_slice(from);
        }
        self.pending = self.pending.saturating_sub(n);
        Ok(n)
    }
}

impl<R> fmt::Debug for CheckpointScan<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckpointScan({}, {} checkpoints)", self.format, self.found.len())
    }
}

/// Compressed bytes with a buffer.
struct BufferedInput<R> {
    inner: R,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of bytes of the next read.
    read_len: usize,
    /// Number of bytes consumed, which is the offset in the file.
    consumed: u64,
}

impl<R: Read> BufferedInput<R> {
    fn buffered(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads if nothing is buffered. Returns false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        while self.start == self.end {
            let len = self.read_len.min(self.buf.len());
            match self.inner.read(self.buf.get_mut(..len).unwrap_or_default()) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    (self.start, self.end) = (0, n.min(len));
                    self.read_len = self.read_len.saturating_mul(2).min(INPUT);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
        self.consumed = self.consumed.saturating_add(n as u64);
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        if !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffered().first().copied();
        self.consume(1);
        Ok(byte)
    }
}

/// The reason that a header could not be read.
enum HeaderFault {
    Io(io::Error),
    Format(CompressionError),
}

impl From<io::Error> for HeaderFault {
    fn from(e: io::Error) -> HeaderFault {
        HeaderFault::Io(e)
    }
}

impl From<CompressionError> for HeaderFault {
    fn from(e: CompressionError) -> HeaderFault {
        HeaderFault::Format(e)
    }
}

impl From<HeaderFault> for Error {
    fn from(fault: HeaderFault) -> Error {
        match fault {
            HeaderFault::Io(e) => e.into(),
            HeaderFault::Format(e) => e.into(),
        }
    }
}

/// Reads the header of a gzip member (RFC 1952). Its checksum, if there is one, is verified.
fn gzip_header(mut byte: impl FnMut() -> io::Result<Option<u8>>) -> Result<(), HeaderFault> {
    const HCRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;
    let mut crc = Crc::new();
    let mut next = |crc: &mut Crc| -> Result<u8, HeaderFault> {
        let found = byte()?.ok_or(cut(Compression::Gzip))?;
        crc.update(&[found]);
        Ok(found)
    };
    let magic = [next(&mut crc)?, next(&mut crc)?];
    if magic != [0x1f, 0x8b] || next(&mut crc)? != 8 {
        return Err(corrupt(Compression::Gzip, "incorrect header").into());
    }
    let flags = next(&mut crc)?;
    if flags & RESERVED != 0 {
        return Err(corrupt(Compression::Gzip, "unknown flags in the header").into());
    }
    // Time, extra flags, operating system.
    for _ in 0..6 {
        next(&mut crc)?;
    }
    if flags & EXTRA != 0 {
        let len = u16::from_le_bytes([next(&mut crc)?, next(&mut crc)?]);
        for _ in 0..len {
            next(&mut crc)?;
        }
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            while next(&mut crc)? != 0 {}
        }
    }
    if flags & HCRC != 0 {
        let expected = crc.sum() as u16;
        if u16::from_le_bytes([next(&mut crc)?, next(&mut crc)?]) != expected {
            return Err(corrupt(Compression::Gzip, "the checksum of the header does not match").into());
        }
    }
    Ok(())
}

/// Reads the header of a zlib stream (RFC 1950).
fn zlib_header(mut byte: impl FnMut() -> io::Result<Option<u8>>) -> Result<(), HeaderFault> {
    let mut next = || -> Result<u8, HeaderFault> { Ok(byte()?.ok_or(cut(Compression::Zlib))?) };
    let (method, flags) = (next()?, next()?);
    let valid =
        method & 15 == 8 && method >> 4 <= 7 && u16::from_be_bytes([method, flags]).is_multiple_of(31);
    if !valid || flags & 32 != 0 {
        return Err(corrupt(Compression::Zlib, "incorrect header").into());
    }
    Ok(())
}

fn cut(format: Compression) -> CompressionError {
    CompressionError::Cut { format: format.name() }
}

fn corrupt(format: Compression, reason: &str) -> CompressionError {
    CompressionError::Corrupt { format: format.name(), reason: reason.into() }
}

/// A reader of the decompressed bytes of a file behind a checkpoint.
///
/// Memory is constant. The checksums of the stream are not verified, since it is not read from its start.
pub(crate) enum InflateFrom<'a, F: ?Sized> {
    Fast(FastInflate<'a, F>),
    /// The decoder of [`CheckpointScan`]. Before damage it returns the same bytes as the scan.
    AsScanned(Box<CheckpointScan<ResumedBytes<'a, F>>>),
}

impl<F: ReadAt + ?Sized> InflateFrom<'_, F> {
    pub(crate) fn new<'a>(
        file: &'a F,
        format: Compression,
        from: Checkpoint<'_>,
    ) -> Result<InflateFrom<'a, F>> {
        FastInflate::new(file, format, from).map(InflateFrom::Fast)
    }

    pub(crate) fn as_scanned<'a>(
        file: &'a F,
        format: Compression,
        from: Checkpoint<'_>,
    ) -> InflateFrom<'a, F> {
        let bytes = ResumedBytes::new(file, from.bit);
        InflateFrom::AsScanned(Box::new(CheckpointScan::from_block(bytes, format, from)))
    }

    /// Decompresses up to `out.len()` bytes. Returns 0 only at the end of the stream, and if `out` is empty.
    ///
    /// # Errors
    /// I/O errors, and [`CompressionError`] for damage and for a file that ends inside the stream.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            InflateFrom::Fast(decoder) => decoder.read(out),
            InflateFrom::AsScanned(decoder) => Ok(decoder.read(out)?),
        }
    }

    /// Decompresses `len` bytes and drops them. Stops early at the end of the stream.
    ///
    /// # Errors
    /// Errors of [`read`](InflateFrom::read).
    pub(crate) fn skip(&mut self, mut len: u64) -> Result<()> {
        let mut out = vec![0; INPUT];
        while len > 0 {
            let most = usize::try_from(len).unwrap_or(INPUT).min(INPUT);
            match self.read(out.get_mut(..most).unwrap_or_default())? {
                0 => break,
                n => len = len.saturating_sub(n as u64),
            }
        }
        Ok(())
    }

    /// Decompresses bytes until `out` is full. Returns false if the stream ends before.
    ///
    /// # Errors
    /// Errors of [`read`](InflateFrom::read).
    pub(crate) fn fill(&mut self, mut out: &mut [u8]) -> Result<bool> {
        while !out.is_empty() {
            match self.read(out)? {
                0 => return Ok(false),
                n => out = out.get_mut(n..).unwrap_or_default(),
            }
        }
        Ok(true)
    }
}

/// The decoder of zlib-rs behind a checkpoint.
pub(crate) struct FastInflate<'a, F: ?Sized> {
    decoder: RawInflate,
    input: BufferedInput<ResumedBytes<'a, F>>,
    format: Compression,
    next: NextInflate,
}

/// The part of a stream that [`FastInflate`] decompresses next.
#[derive(Clone, Copy)]
enum NextInflate {
    Blocks,
    /// The trailer of a gzip member, and the next member, if there is one.
    Member,
    Damage,
    End,
}

impl<F: ReadAt + ?Sized> FastInflate<'_, F> {
    fn new<'a>(file: &'a F, format: Compression, from: Checkpoint<'_>) -> Result<FastInflate<'a, F>> {
        let input = BufferedInput {
            inner: ResumedBytes::new(file, from.bit),
            buf: vec![0; INPUT].into_boxed_slice(),
            start: 0,
            end: 0,
            read_len: INPUT,
            consumed: 0,
        };
        let decoder = raw_decoder(from.window, format)?;
        Ok(FastInflate { decoder, input, format, next: NextInflate::Blocks })
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        while !out.is_empty() {
            match self.next {
                NextInflate::Blocks => {}
                NextInflate::Member => {
                    for _ in 0..TRAILER {
                        self.input.byte()?.ok_or(cut(self.format))?;
                    }
                    if !self.input.fill()? {
                        self.next = NextInflate::End;
                        continue;
                    }
                    gzip_header(|| self.input.byte())?;
                    self.decoder = raw_decoder(&[], self.format)?;
                    self.next = NextInflate::Blocks;
                }
                NextInflate::Damage => return Err(corrupt(self.format, "invalid deflate data").into()),
                NextInflate::End => return Ok(0),
            }
            self.input.fill()?;
            let (before_in, before_out) = (self.decoder.total_in(), self.decoder.total_out());
            let done = self.decoder.decompress(self.input.buffered(), out, InflateFlush::NoFlush);
            let taken = self.decoder.total_in().saturating_sub(before_in) as usize;
            let made = self.decoder.total_out().saturating_sub(before_out) as usize;
            self.input.consume(taken);
            self.next = match done {
                Ok(Status::StreamEnd) if self.format == Compression::Zlib => NextInflate::End,
                Ok(Status::StreamEnd) => NextInflate::Member,
                Ok(_) if taken == 0 && made == 0 => return Err(cut(self.format).into()),
                Ok(_) => NextInflate::Blocks,
                Err(_) => NextInflate::Damage,
            };
            if made > 0 {
                return Ok(made.min(out.len()));
            }
        }
        Ok(0)
    }
}

fn raw_decoder(window: &[u8], format: Compression) -> Result<RawInflate> {
    let mut decoder = RawInflate::new(false, 15);
    if !window.is_empty() {
        decoder.set_dictionary(window).map_err(|_| corrupt(format, "invalid window"))?;
    }
    Ok(decoder)
}

/// The bytes of a file from a bit position on, as a stream of whole bytes.
///
/// Empty deflate blocks come first. They end at the same bit of a byte as the position, so all later bytes are those of the file, and stored
/// blocks, which begin at whole bytes, stay aligned.
pub(crate) struct ResumedBytes<'a, F: ?Sized> {
    file: &'a F,
    /// Offset of the next byte to read.
    at: u64,
    /// Number of bits of the first byte that belong to earlier blocks, below 8.
    bits: u32,
    /// The empty blocks, with zeros after their last bit. Empty once they were returned.
    blocks: Vec<u8>,
}

impl<F: ReadAt + ?Sized> ResumedBytes<'_, F> {
    fn new(file: &F, bit: u64) -> ResumedBytes<'_, F> {
        let bits = (bit % 8) as u32;
        ResumedBytes { file, at: bit / 8, bits, blocks: empty_blocks(bits) }
    }
}

impl<F: ReadAt + ?Sized> Read for ResumedBytes<'_, F> {
    /// `buf` must hold the empty blocks.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.blocks.is_empty() {
            let n = self.file.read_at(buf, self.at)?.min(buf.len());
            self.at = self.at.saturating_add(n as u64);
            return Ok(n);
        }
        let mut first = [0];
        self.file.read_exact_at(&mut first, self.at)?;
        self.at = self.at.saturating_add(1);
        let mut blocks = std::mem::take(&mut self.blocks);
        if let (Some(last), [first]) = (blocks.last_mut(), first) {
            *last |= first & (0xff << self.bits);
        }
        let to = buf.get_mut(..blocks.len()).ok_or(io::ErrorKind::InvalidInput)?;
        to.copy_from_slice(&blocks);
        Ok(blocks.len())
    }
}

/// Returns deflate blocks without content that end after `bits` bits of a byte. Empty for 0.
///
/// A block with fixed codes has 10 bits, and [`ODD_BLOCK`] has 91, so together they can end at each bit.
fn empty_blocks(bits: u32) -> Vec<u8> {
    /// Not the last block, with fixed codes, and the end of the block: seven zeros.
    const FIXED: &[u8] = b"0100000000";
    if bits == 0 {
        return Vec::new();
    }
    let odd: &[u8] = if bits % 2 == 1 { ODD_BLOCK } else { &[] };
    let fixed = (bits.wrapping_sub(odd.len() as u32) % 8 / 2) as usize;
    let digits: Vec<u8> = odd.iter().copied().chain(FIXED.repeat(fixed)).collect();
    digits.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, digit| byte << 1 | (digit & 1))).collect()
}

/// The bits of an empty block with dynamic codes, in the order of the stream.
///
/// The numbers of codes and of code lengths: 257, 1, and 18. Of these 18, the third is for symbol 18 (11 to 138 zeros) and the last for
/// symbol 1; both have one bit. Then the code lengths: 1, 138 zeros, 117 zeros, 1 (the end of the block) and 1 (a distance). Last the end
/// of the block.
const ODD_BLOCK: &[u8] = b"001\
    00000\
    00000\
    0111\
    000000100000000000000000000000000000000000000000000100\
    0\
    11111111\
    10101011\
    0\
    0\
    1";

#[cfg(test)]
mod tests {
    use super::super::inflate::Inflate;
    use super::*;
    use crate::error::ErrorKind;
    use flate2::Compression as Level;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    /// Returns bytes that are partly repetitive and partly random, as records of text and numbers are.
    fn content(len: usize, seed: u32) -> Vec<u8> {
        let mut x = seed | 1;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x
        };
        let mut bytes = Vec::with_capacity(len + 300);
        while bytes.len() < len {
            match next() % 4 {
                0 => (0..next() % 200).for_each(|_| bytes.push(next() as u8)),
                1 => bytes.extend(std::iter::repeat_n(next() as u8, (next() % 300) as usize)),
                _ => {
                    let n = (next() as usize % 250).min(bytes.len());
                    let from = next() as usize % (bytes.len() - n + 1);
                    bytes.extend_from_within(from..from + n);
                }
            }
        }
        bytes.truncate(len);
        bytes
    }

    fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Level::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns gzip with a flush after each of the parts, which makes empty stored blocks, and blocks of fixed codes where parts are short.
    fn flushed(parts: &[&[u8]]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::new(6));
        for part in parts {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
        }
        encoder.finish().unwrap()
    }

    /// Reads all bytes, and returns the error after them.
    fn read_all(mut reader: impl Read) -> (Vec<u8>, Option<ErrorKind>) {
        let mut bytes = Vec::new();
        match reader.read_to_end(&mut bytes) {
            Ok(_) => (bytes, None),
            Err(e) => (bytes, Some(Error::from(e).into_kind())),
        }
    }

    fn scan(file: &[u8], format: Compression, spacing: u64) -> (Vec<u8>, Option<ErrorKind>, Checkpoints) {
        let mut scan = CheckpointScan::new(file, format, spacing);
        let (bytes, error) = read_all(&mut scan);
        (bytes, error, scan.into_checkpoints())
    }

    /// Checks every checkpoint: its window, and the bytes up to the next one.
    fn check(file: &[u8], format: Compression, content: &[u8], spacing: u64) -> usize {
        let (bytes, error, points) = scan(file, format, spacing);
        assert!(error.is_none(), "spacing {spacing}: {error:?}");
        let same = bytes.iter().zip(content).take_while(|(a, b)| a == b).count();
        assert!(
            bytes == content,
            "spacing {spacing}: {} and {} bytes, {same} of them equal",
            bytes.len(),
            content.len()
        );
        for k in 0..points.len() {
            let point = points.get(k).unwrap();
            let (start, end) =
                (point.out as usize, points.get(k + 1).map_or(content.len(), |p| p.out as usize));
            assert!(k == 0 || start - points.get(k - 1).unwrap().out as usize >= 1);
            assert!(content[..start].ends_with(point.window));
            let what = format!("checkpoint {k} at bit {} with {}", point.bit % 8, point.window.len());
            let mut found = vec![0; end - start];
            let mut from = InflateFrom::new(file, format, point).unwrap();
            assert!(from.fill(&mut found).expect(&what));
            assert!(content[start..end] == found, "checkpoint {k}");
            // The same after some bytes that are dropped, in pieces of any size.
            let skipped = (end - start) / 3;
            let mut from = InflateFrom::new(file, format, point).unwrap();
            from.skip(skipped as u64).expect(&what);
            found.truncate(skipped);
            while found.len() < end - start {
                let mut piece = vec![0; 1 + found.len() % 999];
                let n = from.read(&mut piece).expect(&what);
                assert!(n > 0);
                found.extend_from_slice(&piece[..n]);
            }
            assert!(content[start..].starts_with(&found), "checkpoint {k}");
            found.fill(0);
            assert!(InflateFrom::as_scanned(file, format, point).fill(&mut found).expect(&what));
            assert!(content[start..end] == found, "checkpoint {k}");
        }
        points.len()
    }

    #[test]
    fn bytes_behind_checkpoints() {
        let bytes = content(3 << 20, 1);
        for level in [0, 1, 6, 9] {
            for spacing in [0, 64 << 10, 1 << 20] {
                let points = check(&gzip(&bytes, level), Compression::Gzip, &bytes, spacing);
                assert!(points >= 2 && (spacing == 0 || points <= 1 + bytes.len() / spacing as usize));
                assert_eq!(check(&zlib(&bytes, level), Compression::Zlib, &bytes, spacing), points);
            }
        }
        for len in [0, 1, 15, WINDOW - 1, WINDOW, WINDOW + 1, OUTPUT, OUTPUT + 1] {
            check(&gzip(&bytes[..len], 6), Compression::Gzip, &bytes[..len], 0);
            check(&zlib(&bytes[..len], 6), Compression::Zlib, &bytes[..len], 0);
        }
    }

    #[test]
    fn empty_blocks_end_at_each_bit() {
        for bits in 0..8 {
            let blocks = empty_blocks(bits);
            let mut decoder = RawInflate::new(false, 15);
            let done = decoder.decompress(&blocks, &mut [0; 10], InflateFlush::NoFlush);
            assert!(matches!(done, Ok(Status::Ok | Status::BufError)), "{bits}: {done:?}");
            assert_eq!((decoder.total_in(), decoder.total_out()), (blocks.len() as u64, 0));
            // A stored block with the last bit set: three bits, padding, the length and its complement.
            let mut stream = blocks.clone();
            match stream.last_mut() {
                Some(last) if bits < 6 => *last |= 1 << bits,
                Some(last) => {
                    *last |= 1 << bits;
                    stream.push(0);
                }
                None => stream.push(1),
            }
            stream.extend([1, 0, 0xfe, 0xff, b'x']);
            let (mut decoder, mut out) = (RawInflate::new(false, 15), [0; 10]);
            let done = decoder.decompress(&stream, &mut out, InflateFlush::NoFlush);
            assert!(matches!(done, Ok(Status::StreamEnd)) && out[0] == b'x', "{bits}: {done:?}");
        }
        assert_eq!(ODD_BLOCK.len() % 2, 1);
    }

    #[test]
    fn members_and_flushes() {
        let bytes = content(1 << 20, 2);
        let all = |sizes: &[usize], spacing: u64| {
            let (mut file, mut rest) = (Vec::new(), &bytes[..]);
            for &size in sizes.iter().cycle().take(200) {
                let (part, after) = rest.split_at(size.min(rest.len()));
                file.extend(gzip(part, 6));
                rest = after;
            }
            file.extend(gzip(rest, 6));
            check(&file, Compression::Gzip, &bytes, spacing)
        };
        // Small members as in BGZF: no checkpoint inside a member, so no windows.
        assert!(all(&[4096], 64 << 10) <= 17);
        all(&[1, 0, 70_000, 3], 0);
        // Members that are longer than the spacing, and checkpoints whose bytes extend over several members.
        all(&[300_000, 10, 20], 64 << 10);
        let parts: Vec<&[u8]> = bytes.chunks(7001).collect();
        check(&flushed(&parts), Compression::Gzip, &bytes, 0);
        check(&flushed(&[b"a", b"", b"bc", b"d"]), Compression::Gzip, b"abcd", 0);
    }

    #[test]
    fn headers_with_all_fields() {
        let bytes = content(100_000, 3);
        let mut file = flate2::GzBuilder::new()
            .extra(vec![7; 300])
            .filename("a name")
            .comment("a comment")
            .write(Vec::new(), Level::new(6));
        file.write_all(&bytes).unwrap();
        let mut file = file.finish().unwrap();
        check(&file, Compression::Gzip, &bytes, 0);
        // With a checksum of the header.
        let end = 10 + 2 + 300 + "a name".len() + 1 + "a comment".len() + 1;
        file[3] |= 2;
        let mut crc = Crc::new();
        crc.update(&file[..end]);
        let sum = (crc.sum() as u16).to_le_bytes();
        file.splice(end..end, sum);
        check(&file, Compression::Gzip, &bytes, 0);
        file[end] ^= 1;
        let (found, error, points) = scan(&file, Compression::Gzip, 0);
        assert!(found.is_empty() && points.len() == 0);
        assert!(error.unwrap().to_string().contains("header"));
    }

    /// Compares with `Inflate`: the same bytes up to the damage, and the same kind of error. zlib-rs may return fewer bytes before damage
    /// inside a block.
    #[test]
    fn damage_is_found_as_by_the_other_reader() {
        let bytes = content(20_000, 4);
        for (format, file) in [(Compression::Gzip, gzip(&bytes, 6)), (Compression::Zlib, zlib(&bytes, 6))] {
            let compare = |damaged: &[u8], what: &str| {
                let (found, error, _) = scan(damaged, format, 1000);
                let (want, other) = read_all(Inflate::new(damaged, format));
                assert!(found.starts_with(&want) || want.starts_with(&found), "{what}");
                let kind = |error: &Option<ErrorKind>| match error {
                    None => "none",
                    Some(ErrorKind::Compression(CompressionError::Cut { .. })) => "cut",
                    Some(ErrorKind::Compression(CompressionError::TrailingData { .. })) => "trailing",
                    Some(ErrorKind::Compression(CompressionError::Corrupt { .. })) => "corrupt",
                    Some(other) => panic!("{what}: {other}"),
                };
                assert_eq!(kind(&error), kind(&other), "{what}: {error:?}, {other:?}");
                if error.is_none() || kind(&error) == "trailing" {
                    assert_eq!(found, want, "{what}");
                }
            };
            for len in 0..file.len() {
                compare(&file[..len], &format!("{format}, {len} bytes"));
            }
            for bit in (0..80)
                .chain((80..file.len() * 8 - 80).step_by(97))
                .chain(file.len() * 8 - 80..file.len() * 8)
            {
                let mut damaged = file.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // An unused field of the header, and unknown flags, of which the other reader accepts some.
                if format == Compression::Gzip && (24..80).contains(&bit) {
                    scan(&damaged, format, 1000);
                    continue;
                }
                compare(&damaged, &format!("{format}, bit {bit}"));
            }
            for garbage in [&b"\0"[..], b"garbage", &file[..5]] {
                compare(&[&file[..], garbage].concat(), &format!("{format}, garbage {garbage:?}"));
            }
        }
    }

    #[test]
    fn damage_behind_a_checkpoint_is_an_error() {
        let bytes = content(1 << 20, 5);
        let file = gzip(&bytes, 6);
        let (_, _, points) = scan(&file, Compression::Gzip, 100_000);
        let point = points.get(3).unwrap();
        assert!(point.bit % 8 > 0 || points.get(4).unwrap().bit % 8 > 0, "a checkpoint inside a byte");
        let cut = &file[..point.bit as usize / 8 + 1000];
        let all = |file: &[u8], point| InflateFrom::new(file, Compression::Gzip, point)?.skip(u64::MAX);
        let error = all(cut, point).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Compression(CompressionError::Cut { .. })), "{error}");
        for wrong in
            [Checkpoint { bit: u64::MAX, ..point }, Checkpoint { bit: file.len() as u64 * 8, ..point }]
        {
            assert!(all(&file, wrong).is_err());
        }
        // Any bit position gives an error or other bytes, without a panic.
        for bit in (point.bit..point.bit + 4000).step_by(7) {
            let mut from =
                InflateFrom::new(&file[..], Compression::Gzip, Checkpoint { bit, ..point }).unwrap();
            let _ = from.skip(1 << 20);
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Level::new(6));
        encoder.write_all(&bytes).unwrap();
        let raw = encoder.finish().unwrap();
        assert!(scan(&raw, Compression::Gzip, 0).1.is_some() && scan(&raw, Compression::Zlib, 0).1.is_some());
    }
}
