//! The scan of a shard: it moves from header to header, verifies the CRC of each length, and pushes each
//! offset into a table.
//!
//! There are three entry points with the same result: for a slice (a map), for positional reads of a file,
//! and for an inflated stream. A corrupt record is an error with its location. The records before it are
//! dropped, because an index covers a whole shard. Bytes after the last whole record are a *torn tail*, which
//! is reported: less than a header, or a valid header without its whole body. Twelve bytes that are not a
//! valid header are corrupt.
//!
//! All three use [`Parser`]. Whole records in the buffer take a faster loop, [`WholeRecords`], with the CRC
//! instruction inlined. With the parser alone, a scan of 90-byte records takes more than twice the
//! instructions. A test compares the two.

use super::progress::{REPORT, Work};
use super::table::TableBuilder;
use crate::crc::{self, LenCrc, WithLenCrc, with_len_crc};
use crate::error::{Error, Result};
use crate::frame::{Event, HEADER_LEN, OVERHEAD, Parser, Torn, payload_is_sound, split_header, whole_len};
use crate::io::{ReadRange, Source, read_exact_at};
use crate::policy::Verify;
use std::io::Read;
use std::ops::Range;

/// Bytes of the buffer of a scan without a map.
const BUFFER: usize = 256 << 10;
/// Mean record length from which the scan reads only the twelve bytes of each header instead of all bytes. At
/// this length both cost the same, about 580 ns per record.
pub(super) const SPARSE: u64 = 4 << 10;
/// The same for an object of a store: a read of a header there takes as long as a read of megabytes.
pub(super) const SPARSE_OBJECT: u64 = 5 << 20;

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct ScanOutcome {
    /// The offsets of the records, without the end of the stream.
    pub(crate) offsets: TableBuilder,
    /// The end of the last whole record.
    pub(crate) end: u64,
    /// The torn tail after it.
    pub(crate) torn: Option<Torn>,
}

/// The start of a scan: the beginning of the shard, or the end of the records that are already indexed.
#[derive(Debug, Default)]
pub(crate) struct ScanStart {
    pub(crate) offsets: TableBuilder,
    pub(crate) at: u64,
}

/// The fast loop over the whole records at the start of a slice, which begins at byte `offset` of the stream.
/// Only the table allocates.
struct WholeRecords<'a, const PAYLOADS: bool> {
    bytes: &'a [u8],
    offset: u64,
    offsets: &'a mut TableBuilder,
}

impl<const PAYLOADS: bool> WithLenCrc for WholeRecords<'_, PAYLOADS> {
    /// Number of bytes up to the end of the last record that is whole and, as far as it is verified,
    /// undamaged.
    type Out = usize;

    #[inline(always)]
    fn run(self, crc: impl LenCrc) -> usize {
        let mut pos = 0;
        while let Some(bytes) = self.bytes.get(pos..)
            && let Some(len) = whole_len(bytes, crc)
            && (!PAYLOADS || payload_is_sound(bytes, len, crc))
        {
            self.offsets.push(self.offset + pos as u64);
            pos += OVERHEAD + len;
        }
        pos
    }
}

/// Runs [`WholeRecords`] with these checksums.
#[inline(always)]
fn whole_records(bytes: &[u8], offset: u64, offsets: &mut TableBuilder, verify: Verify) -> usize {
    if verify == Verify::Payload {
        with_len_crc(WholeRecords::<true> { bytes, offset, offsets })
    } else {
        with_len_crc(WholeRecords::<false> { bytes, offset, offsets })
    }
}

/// The bytes of a record stream, part of them in a buffer.
trait ScanBytes {
    /// True if read errors carry the location of the record that was being read.
    const LOCATES_ERRORS: bool;
    /// Returns the buffered bytes from the current position.
    fn buffered(&self) -> &[u8];
    /// Moves over whole records by reading only their headers, for sources with that mode. Returns the number
    /// of bytes passed. Stops at the first record that is torn or corrupt.
    #[inline(always)]
    fn scan_headers(&mut self, _offsets: &mut TableBuilder) -> Result<u64> {
        Ok(0)
    }
    /// Buffers at least `n` bytes, at most a header. Returns false if the stream has fewer.
    fn fill(&mut self, n: usize) -> Result<bool>;
    /// Moves forward by `n` buffered bytes, in which `records` records end.
    fn consume(&mut self, n: usize, records: u64) -> Result<()>;
    /// Moves forward by a record of `n` bytes, or to the end of the stream. Returns the number of bytes
    /// passed.
    fn skip(&mut self, n: u64) -> Result<u64>;
    /// Reports progress for bytes that are not reported yet.
    fn finish(&mut self) -> Result<()>;
}

/// The place where a scan stopped.
pub(super) enum Reached {
    /// The end of the stream.
    End(ScanOutcome),
    /// A record that another scan starts with.
    Record(ScanStart),
}

/// Returns the checksums that a scan verifies.
pub(super) fn verified(payloads: bool) -> Verify {
    if payloads { Verify::Payload } else { Verify::Header }
}

/// Scans to the end of the stream.
fn scan(bytes: impl ScanBytes, start: ScanStart, verify: Verify) -> Result<ScanOutcome> {
    Ok(match scan_until(bytes, start, verify, u64::MAX)? {
        Reached::End(outcome) => outcome,
        Reached::Record(ScanStart { offsets, at }) => ScanOutcome { offsets, end: at, torn: None },
    })
}

/// Scans to the first record at byte `until` or after it, or to the end of the stream. [`WholeRecords`]
/// handles whole records in the buffer; the parser handles the next one, which is torn, corrupt or not fully
/// buffered.
fn scan_until<B: ScanBytes>(mut bytes: B, start: ScanStart, verify: Verify, until: u64) -> Result<Reached> {
    let ScanStart { mut offsets, at } = start;
    let mut parser = Parser::scanning(verify, offsets.len(), at);
    let mut more = true;
    let located = |e: Error, parser: &Parser| if B::LOCATES_ERRORS { e.at(parser.at()) } else { e };
    loop {
        let buffered = bytes.buffered().len();
        let offset = parser.offset();
        // A record that is not complete began before `until`.
        if offset >= until {
            bytes.finish()?;
            return Ok(Reached::Record(ScanStart { offsets, at: offset }));
        }
        if buffered >= OVERHEAD && !parser.is_inside() {
            let before = offsets.len();
            let scanned = whole_records(bytes.buffered(), offset, &mut offsets, verify);
            if scanned > 0 {
                let records = offsets.len() - before;
                parser.advance(records, scanned as u64);
                bytes.consume(scanned, records)?;
            }
        } else if more && buffered < HEADER_LEN && !parser.is_inside() {
            let before = offsets.len();
            let scanned = bytes.scan_headers(&mut offsets).map_err(|e| located(e, &parser))?;
            parser.advance(offsets.len() - before, scanned);
            // The parser would return `Event::Need(HEADER_LEN)`. Skipping that call saves half of the parser
            // steps for large records.
            more = bytes.fill(HEADER_LEN).map_err(|e| located(e, &parser))?;
            continue;
        }
        let offset = parser.offset();
        let torn = match parser.step(bytes.buffered(), more).map_err(|e| e.at(parser.at()))? {
            Event::Need(n) => {
                more =
                    bytes.fill(usize::try_from(n).unwrap_or(HEADER_LEN)).map_err(|e| located(e, &parser))?;
                continue;
            }
            Event::Skip(need) => {
                let have = bytes.skip(need).map_err(|e| located(e, &parser))?;
                match parser.skipped(need, have) {
                    Some(torn) => Some(torn),
                    None => {
                        offsets.push(offset);
                        continue;
                    }
                }
            }
            Event::Consumed(n) => {
                bytes.consume(n, 0)?;
                continue;
            }
            Event::Record(n) => {
                offsets.push(offset);
                bytes.consume(n, 1)?;
                continue;
            }
            Event::Torn(torn) => Some(torn),
            Event::End => None,
        };
        bytes.finish()?;
        return Ok(Reached::End(ScanOutcome { offsets, end: offset, torn }));
    }
}

/// Scans a shard in memory by one chain of headers.
pub(crate) fn scan_slice(bytes: &[u8], start: ScanStart, payloads: bool, work: &Work) -> Result<ScanOutcome> {
    scan(SliceBytes::new(bytes, start.at, usize::MAX, work), start, verified(payloads))
}

/// Scans a shard in memory like [`scan_slice`], and stops at the first record at byte `until` or after it.
pub(super) fn scan_slice_until(
    bytes: &[u8],
    start: ScanStart,
    payloads: bool,
    until: usize,
    work: &Work,
) -> Result<Reached> {
    scan_until(SliceBytes::new(bytes, start.at, until, work), start, verified(payloads), until as u64)
}

/// A slice with a window of [`REPORT`] bytes. Progress is reported between two windows.
struct SliceBytes<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// A window that begins before this byte ends there, but has a header if there is one.
    until: usize,
    /// End of the window.
    end: usize,
    reported: usize,
    work: &'a Work,
}

impl<'a> SliceBytes<'a> {
    fn new(bytes: &'a [u8], at: u64, until: usize, work: &'a Work) -> SliceBytes<'a> {
        let pos = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        SliceBytes { bytes, pos, until, end: pos, reported: pos, work }
    }
}

impl ScanBytes for SliceBytes<'_> {
    const LOCATES_ERRORS: bool = false;

    #[inline]
    fn buffered(&self) -> &[u8] {
        self.bytes.get(self.pos..self.end).unwrap_or_default()
    }

    fn fill(&mut self, n: usize) -> Result<bool> {
        if self.pos > self.reported {
            self.work.report((self.pos - self.reported) as u64)?;
            self.reported = self.pos;
        }
        let border = if self.pos < self.until { self.until.max(self.pos + HEADER_LEN) } else { usize::MAX };
        self.end = (self.pos + REPORT).min(border).min(self.bytes.len());
        Ok(self.end - self.pos >= n)
    }

    #[inline]
    fn consume(&mut self, n: usize, _: u64) -> Result<()> {
        self.pos += n;
        Ok(())
    }

    fn skip(&mut self, n: u64) -> Result<u64> {
        let left = self.bytes.len() - self.pos;
        match usize::try_from(n).ok().filter(|n| *n <= left) {
            None => Ok(left as u64),
            Some(here) => {
                self.pos += here;
                self.end = self.end.max(self.pos);
                Ok(n)
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.work.report((self.pos - self.reported) as u64)
    }
}

/// Scans the first `size` bytes of a file by positional reads, and verifies these checksums.
///
/// While records are small, the scan reads all bytes, one buffer at a time. While they are large, from a mean
/// length of `sparse` bytes, it reads only the twelve bytes of each header. If payloads are verified, it
/// always reads all bytes.
pub(super) fn scan_file(
    file: &(impl Source + ?Sized),
    size: u64,
    start: ScanStart,
    verify: Verify,
    sparse: u64,
    work: &Work,
) -> Result<ScanOutcome> {
    let pos = start.at;
    if verify == Verify::Payload {
        return scan_stream(ReadRange { file, at: pos, end: size }, start, verify, true, work);
    }
    let windows = FileWindows {
        file,
        size,
        sparse,
        pos,
        buf: vec![0; BUFFER],
        window: 0..0,
        mean: 0,
        reported: pos,
        work,
    };
    scan(windows, start, verify)
}

/// The first `size` bytes of a file, with a buffered window.
struct FileWindows<'a, R: ?Sized> {
    file: &'a R,
    size: u64,
    sparse: u64,
    pos: u64,
    buf: Vec<u8>,
    /// The range of `buf` that holds the bytes from `pos`.
    window: Range<usize>,
    /// Moving average of record lengths. Recent records have most weight, because lengths may change within a
    /// file.
    mean: u64,
    reported: u64,
    work: &'a Work,
}

impl<R: Source + ?Sized> FileWindows<'_, R> {
    /// Moves forward by `records` records with `n` bytes in total.
    #[inline]
    fn advance(&mut self, n: u64, records: u64) -> Result<()> {
        if self.pos + n - self.reported > REPORT as u64 && self.pos > self.reported {
            self.work.report(self.pos - self.reported)?;
            self.reported = self.pos;
        }
        self.pos += n;
        self.mean = match records {
            _ if self.mean == 0 => n / records.max(1),
            0..8 => self.mean - self.mean / 8 * records + n / 8,
            _ => n / records,
        };
        if self.pos - self.reported >= REPORT as u64 {
            self.work.report(self.pos - self.reported)?;
            self.reported = self.pos;
        }
        Ok(())
    }
}

impl<R: Source + ?Sized> ScanBytes for FileWindows<'_, R> {
    const LOCATES_ERRORS: bool = false;

    #[inline]
    fn buffered(&self) -> &[u8] {
        self.buf.get(self.window.clone()).unwrap_or_default()
    }

    /// Has the same effect as `fill`, the parser and `skip`, in half the instructions.
    #[inline]
    fn scan_headers(&mut self, offsets: &mut TableBuilder) -> Result<u64> {
        let from = self.pos;
        self.window = 0..0;
        while self.mean >= self.sparse {
            let left = self.size - self.pos;
            if left < OVERHEAD as u64 {
                break;
            }
            let mut header = [0; HEADER_LEN];
            read_exact_at(self.file, &mut header, self.pos)?;
            let (len, stored) = split_header(&header);
            if crc::masked_len(len) != stored || len > left - OVERHEAD as u64 {
                break;
            }
            offsets.push(self.pos);
            self.advance(OVERHEAD as u64 + len, 1)?;
        }
        Ok(self.pos - from)
    }

    #[expect(clippy::indexing_slicing, reason = "`len` is at most BUFFER, the length of `buf`")]
    #[inline]
    fn fill(&mut self, n: usize) -> Result<bool> {
        let most = if self.mean >= self.sparse { HEADER_LEN } else { BUFFER };
        let len = (self.size - self.pos).min(most as u64) as usize;
        self.window = 0..0;
        read_exact_at(self.file, &mut self.buf[..len], self.pos)?;
        self.window = 0..len;
        Ok(len >= n)
    }

    #[inline]
    fn consume(&mut self, n: usize, records: u64) -> Result<()> {
        self.window.start += n;
        self.advance(n as u64, records)
    }

    #[inline]
    fn skip(&mut self, n: u64) -> Result<u64> {
        let left = self.size - self.pos;
        if n > left {
            return Ok(left);
        }
        // The record ends after the window.
        self.window = 0..0;
        self.advance(n, 1)?;
        Ok(n)
    }

    fn finish(&mut self) -> Result<()> {
        if self.pos < self.size {
            return Ok(());
        }
        self.work.report(self.pos - self.reported)
    }
}

/// A reader of a range of a file that reports progress.
pub(super) struct FileReader<'a, R: ?Sized> {
    bytes: ReadRange<'a, R>,
    work: &'a Work,
    unreported: u64,
}

impl<'a, R: Source + ?Sized> FileReader<'a, R> {
    pub(super) fn new(file: &'a R, range: Range<u64>, work: &'a Work) -> FileReader<'a, R> {
        let bytes = ReadRange { file, at: range.start, end: range.end };
        FileReader { bytes, work, unreported: 0 }
    }
}

impl<R: Source + ?Sized> Read for FileReader<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.bytes.read(buf)?;
        self.unreported += n as u64;
        if self.unreported >= REPORT as u64 || (n == 0 && self.unreported > 0) {
            self.work.report(std::mem::take(&mut self.unreported))?;
        }
        Ok(n)
    }
}

/// Scans a record stream to its end, and verifies these checksums. The current position of `stream` must be
/// `start.at`. Its bytes are not counted if the reader of a compressed file reports progress.
pub(super) fn scan_stream(
    stream: impl Read,
    start: ScanStart,
    verify: Verify,
    counts: bool,
    work: &Work,
) -> Result<ScanOutcome> {
    let buf = vec![0; BUFFER];
    let bytes = BufferedBytes { inner: stream, buf, start: 0, end: 0, work, unreported: 0, counts };
    scan(bytes, start, verify)
}

/// A reader with a buffer.
struct BufferedBytes<'a, R> {
    inner: R,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    work: &'a Work,
    /// Bytes read since the last report.
    unreported: usize,
    /// Reports are the number of bytes; otherwise they are 0 and serve to cancel the scan.
    counts: bool,
}

impl<R: Read> BufferedBytes<'_, R> {
    fn report(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.unreported);
        self.work.report(if self.counts { bytes as u64 } else { 0 })
    }

    /// Reads more bytes into the buffer. Returns 0 at the end of the stream.
    #[expect(clippy::indexing_slicing, reason = "`end` is at most the length of `buf`")]
    fn read_more(&mut self) -> std::io::Result<usize> {
        loop {
            match self.inner.read(&mut self.buf[self.end..]) {
                Ok(n) => {
                    // A faulty `Read` may return more than the length of the buffer.
                    let n = n.min(self.buf.len() - self.end);
                    self.end += n;
                    self.unreported += n;
                    if self.unreported >= REPORT {
                        self.report()?;
                    }
                    return Ok(n);
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl<R: Read> ScanBytes for BufferedBytes<'_, R> {
    const LOCATES_ERRORS: bool = true;

    #[inline]
    fn buffered(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    fn fill(&mut self, n: usize) -> Result<bool> {
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < n {
            if self.read_more()? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn consume(&mut self, n: usize, _: u64) -> Result<()> {
        self.start = self.end.min(self.start + n);
        Ok(())
    }

    fn skip(&mut self, n: u64) -> Result<u64> {
        let mut left = n;
        loop {
            let here = self.end - self.start;
            let taken = usize::try_from(left).map_or(here, |left| left.min(here));
            self.start += taken;
            left -= taken as u64;
            if left == 0 {
                return Ok(n);
            }
            (self.start, self.end) = (0, 0);
            if self.read_more()? == 0 {
                return Ok(n - left);
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::put_record;
    use crate::index::ProgressCallback;
    use std::ops::ControlFlow;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn shard(lens: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let mut file = Vec::new();
        for (i, len) in lens.into_iter().enumerate() {
            put_record(&mut file, &vec![i as u8; len]).unwrap();
        }
        file
    }

    /// Offsets, end and torn tail; or the record and the offset of the damage.
    type Outcome = Result<(Vec<u64>, u64, Option<Torn>), (Option<u64>, Option<u64>)>;

    /// Scans by all three entry points and by the parser alone, and compares the results.
    fn scan_all(bytes: &[u8], payloads: bool) -> Outcome {
        let values = |scan: Result<ScanOutcome>| match scan {
            Ok(scan) => {
                let n = scan.offsets.len();
                let table = scan.offsets.finish().unwrap();
                Ok(((0..n).map(|i| table.get(i).unwrap()).collect(), scan.end, scan.torn))
            }
            Err(e) => Err((e.location().record, e.location().offset)),
        };
        let work = &Work::new(None);
        let slice = values(scan_slice(bytes, ScanStart::default(), payloads, work));
        let verify = verified(payloads);
        let len = bytes.len() as u64;
        let file = values(scan_file(bytes, len, ScanStart::default(), verify, SPARSE, work));
        let stream = values(scan_stream(ShortReads(bytes), ScanStart::default(), verify, true, work));
        assert_eq!(slice, file);
        assert_eq!(slice, stream);
        assert_eq!(slice, by_parser(bytes, payloads));
        slice
    }

    /// Scans by the parser alone, without [`WholeRecords`].
    fn by_parser(bytes: &[u8], payloads: bool) -> Outcome {
        let mut parser = Parser::whole(verified(payloads), u64::MAX);
        let mut offsets = Vec::new();
        let mut pos = 0;
        loop {
            let at = parser.offset();
            let torn = match parser.step(&bytes[pos..], false) {
                Ok(Event::Record(n)) => {
                    offsets.push(at);
                    pos += n;
                    continue;
                }
                Ok(Event::Torn(torn)) => Some(torn),
                Ok(last) => {
                    assert_eq!(last, Event::End);
                    None
                }
                Err(_) => return Err((Some(parser.records()), Some(at))),
            };
            return Ok((offsets, at, torn));
        }
    }

    /// A reader that returns at most seven bytes per call.
    struct ShortReads<'a>(&'a [u8]);
    impl Read for ShortReads<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = buf.len().min(7);
            self.0.read(&mut buf[..n])
        }
    }

    #[test]
    fn every_truncation_is_whole_or_torn() {
        let file = shard([0, 1, 2, 40]);
        let ends = [0u64, 16, 33, 51, 107];
        for cut in 0..=file.len() {
            for payloads in [false, true] {
                let (offsets, end, torn) = scan_all(&file[..cut], payloads).unwrap();
                let whole = ends.iter().filter(|&&e| e > 0 && e <= cut as u64).count();
                assert_eq!(offsets, ends[..whole]);
                assert_eq!(end, ends[whole]);
                assert_eq!(torn.map(|t| t.have), (cut as u64 > end).then_some(cut as u64 - end));
                assert!(torn.is_none_or(|t| t.need > t.have));
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_an_error_with_its_location() {
        let file = shard([3, 5, 9]);
        for bit in 0..file.len() * 8 {
            let byte = bit / 8;
            let (i, start) =
                [(2u64, 40usize), (1, 19), (0, 0)].into_iter().find(|&(_, s)| s <= byte).unwrap();
            let in_header = byte - start < HEADER_LEN;
            let mut bad = file.clone();
            bad[byte] ^= 1 << (bit % 8);
            let damage = Err((Some(i), Some(start as u64)));
            assert_eq!(scan_all(&bad, true).map(|_| ()), damage, "bit {bit}");
            let headers_only = scan_all(&bad, false).map(|_| ());
            assert_eq!(headers_only, if in_header { damage } else { Ok(()) }, "bit {bit}");
        }
    }

    #[test]
    fn a_tail_of_zeros_is_corrupt_and_huge_lengths_are_torn() {
        let mut file = shard([3]);
        file.extend([0; 12]);
        assert_eq!(scan_all(&file, false), Err((Some(1), Some(19))));
        for len in [1u64 << 40, (1 << 63) - 4, u64::MAX - 15, u64::MAX] {
            let mut file = shard([3]);
            crate::frame::put_header(&mut file, len).unwrap();
            let (_, end, torn) = scan_all(&file, true).unwrap();
            assert_eq!((end, torn), (19, Some(Torn { need: len.saturating_add(16), have: 12 })));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn alternating_small_and_large_records() {
        // `scan_file` switches between reading all bytes and reading headers. The file is long enough for
        // several reports.
        let lens = (0..3000).map(|i| if i / 500 % 2 == 0 { i % 90 } else { 9000 + i });
        let file = shard(lens);
        let (offsets, end, torn) = scan_all(&file, false).unwrap();
        assert_eq!((offsets.len(), end, torn), (3000, file.len() as u64, None));
        let seen = Arc::new(AtomicU64::new(0));
        let count = {
            let seen = Arc::clone(&seen);
            ProgressCallback::new(move |n| {
                seen.fetch_add(n, Relaxed);
                assert!(n <= (REPORT + 20_000) as u64);
                ControlFlow::Continue(())
            })
        };
        let count = Work::new(Some(&count));
        scan_slice(&file, ScanStart::default(), true, &count).unwrap();
        scan_file(file.as_slice(), end, ScanStart::default(), Verify::Header, SPARSE, &count).unwrap();
        scan_stream(file.as_slice(), ScanStart::default(), Verify::Header, true, &count).unwrap();
        assert_eq!(seen.load(Relaxed), 3 * end);
    }

    #[test]
    fn a_scan_that_resumes() {
        let file = shard([3, 5, 9]);
        let mut offsets = TableBuilder::offsets();
        offsets.push(0);
        let scan = scan_slice(&file, ScanStart { offsets, at: 19 }, false, &Work::new(None)).unwrap();
        assert_eq!((scan.offsets.len(), scan.end), (3, file.len() as u64));
    }
}
