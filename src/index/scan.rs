//! The scan: from header to header, each length's crc checked, each start pushed into the table.
//!
//! There are three ways in with one result: over a slice (a map), at positions of a file, and along an inflated stream. Damage
//! is an error with its place, and the records before it are dropped: an index is of a whole shard. ScanBytes after the last whole
//! record (less than a header, or a valid header without its whole body) are a *torn tail*, which is reported; twelve bytes that
//! are no header are damage.
//!
//! All three go through [`Parser`]. Over the whole records that are at hand there is a loop of its own, [`Hop`], with the crc
//! instruction inside: by way of the parser alone a scan of 90-byte records takes more than twice the instructions. A test holds
//! it against the parser.

use super::progress::{REPORT, Work};
use super::table::TableBuilder;
use crate::crc::{self, LenCrc, WithLenCrc, with_len_crc};
use crate::error::{Error, Result};
use crate::frame::{Event, FOOTER_LEN, HEADER_LEN, OVERHEAD, Parser, Torn, split_header};
use crate::io::ReadAt;
use std::io::Read;
use std::ops::Range;

/// Buffer of the scans without a map.
const BUFFER: usize = 256 << 10;
/// From this mean record length on the scan reads the twelve bytes of each header instead of everything: here both cost
/// the same, about 580 ns a record.
const SPARSE: u64 = 4 << 10;

/// What a scan has found.
#[derive(Debug)]
pub(crate) struct ScanOutcome {
    /// The offsets of the records; the end of the stream is not among them yet.
    pub(crate) offsets: TableBuilder,
    /// The end of the last whole record.
    pub(crate) end: u64,
    /// What is left after it.
    pub(crate) torn: Option<Torn>,
}

/// Where a scan starts: at the beginning, or after the records that are known.
#[derive(Debug)]
pub(crate) struct ScanStart {
    pub(crate) offsets: TableBuilder,
    pub(crate) at: u64,
}

impl Default for ScanStart {
    fn default() -> ScanStart {
        ScanStart { offsets: TableBuilder::offsets(), at: 0 }
    }
}

/// The hop over the whole records at the start of a slice, which stands at byte `offset` of the stream. Nothing in here allocates but
/// the table.
struct Hop<'a, const PAYLOADS: bool> {
    bytes: &'a [u8],
    offset: u64,
    offsets: &'a mut TableBuilder,
}

impl<const PAYLOADS: bool> WithLenCrc for Hop<'_, PAYLOADS> {
    /// The end of the last record that is whole and, as far as it is checked, undamaged.
    type Out = usize;

    #[inline(always)]
    fn run(self, crc: impl LenCrc) -> usize {
        let mut pos = 0;
        while let Some((header, body)) =
            self.bytes.get(pos..).and_then(|b| b.split_first_chunk::<HEADER_LEN>())
        {
            let (len, stored) = split_header(header);
            if crc::mask(crc.crc(len)) != stored
                || body.len() < FOOTER_LEN
                || len > (body.len() - FOOTER_LEN) as u64
            {
                break;
            }
            // It fits into the slice, so it fits into a usize.
            let len = len as usize;
            if PAYLOADS {
                let (payload, rest) = body.split_at(len);
                if rest.first_chunk().is_none_or(|f| u32::from_le_bytes(*f) != crc::masked(payload)) {
                    break;
                }
            }
            self.offsets.push(self.offset + pos as u64);
            pos += OVERHEAD + len;
        }
        pos
    }
}

/// The bytes of a record stream, some of them at hand.
trait ScanBytes {
    /// Whether errors of reading name the record that was to be read.
    const PLACES_ERRORS: bool;
    /// Those from the position on that are at hand.
    fn at_hand(&self) -> &[u8];
    /// Moves on over whole records of which nothing but the header is read, where that is how records are passed; returns their bytes.
    /// Stops before the first that is cut off or damaged.
    #[inline(always)]
    fn stride(&mut self, _offsets: &mut TableBuilder) -> Result<u64> {
        Ok(0)
    }
    /// Brings `n` bytes, at most a header; false if there are fewer.
    fn bring(&mut self, n: usize) -> Result<bool>;
    /// Moves on by `n` bytes that are at hand, in which `records` records end.
    fn take(&mut self, n: usize, records: u64) -> Result<()>;
    /// Moves on by a record of `n` bytes, or by all bytes there are; returns their number.
    fn skip(&mut self, n: u64) -> Result<u64>;
    /// Reports the bytes that were not reported yet.
    fn end(&mut self) -> Result<()>;
}

/// Scans to the end: hops over the whole records that are at hand, and leaves the next one, which is cut off or damaged, to the parser.
fn scan<B: ScanBytes>(mut bytes: B, start: ScanStart, payloads: bool) -> Result<ScanOutcome> {
    let ScanStart { mut offsets, at } = start;
    let mut parser = Parser::scanning(payloads, offsets.len(), at);
    let mut more = true;
    let placed = |e: Error, parser: &Parser| if B::PLACES_ERRORS { e.at(parser.at()) } else { e };
    loop {
        let (hand, offset) = (bytes.at_hand(), parser.offset());
        if hand.len() >= OVERHEAD && !parser.is_inside() {
            let before = offsets.len();
            let hopped = match payloads {
                true => with_len_crc(Hop::<true> { bytes: hand, offset, offsets: &mut offsets }),
                false => with_len_crc(Hop::<false> { bytes: hand, offset, offsets: &mut offsets }),
            };
            if hopped > 0 {
                let records = offsets.len() - before;
                parser.advance(records, hopped as u64);
                bytes.take(hopped, records)?;
            }
        } else if more && hand.len() < HEADER_LEN && !parser.is_inside() {
            let before = offsets.len();
            let strode = bytes.stride(&mut offsets).map_err(|e| placed(e, &parser))?;
            parser.advance(offsets.len() - before, strode);
            // What the parser would say, which saves half of its steps where records are large.
            more = bytes.bring(HEADER_LEN).map_err(|e| placed(e, &parser))?;
            continue;
        }
        let offset = parser.offset();
        let torn = match parser.step(bytes.at_hand(), more).map_err(|e| e.at(parser.at()))? {
            Event::Need(n) => {
                more =
                    bytes.bring(usize::try_from(n).unwrap_or(HEADER_LEN)).map_err(|e| placed(e, &parser))?;
                continue;
            }
            Event::Skip(need) => {
                let have = bytes.skip(need).map_err(|e| placed(e, &parser))?;
                match parser.skipped(need, have) {
                    Some(torn) => Some(torn),
                    None => {
                        offsets.push(offset);
                        continue;
                    }
                }
            }
            Event::Consumed(taken) => {
                bytes.take(taken, 0)?;
                continue;
            }
            Event::Record(taken) => {
                offsets.push(offset);
                bytes.take(taken, 1)?;
                continue;
            }
            Event::Torn(torn) => Some(torn),
            Event::End => None,
        };
        bytes.end()?;
        return Ok(ScanOutcome { offsets, end: offset, torn });
    }
}

/// Scans a shard that is a slice.
pub(crate) fn scan_slice(bytes: &[u8], start: ScanStart, payloads: bool, work: &Work) -> Result<ScanOutcome> {
    let pos = usize::try_from(start.at).unwrap_or(usize::MAX).min(bytes.len());
    scan(SliceBytes { bytes, pos, end: pos, reported: pos, work }, start, payloads)
}

/// A slice, of which [`REPORT`] bytes are at hand: between two of these windows progress is reported.
struct SliceBytes<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// The end of the window.
    end: usize,
    reported: usize,
    work: &'a Work,
}

impl ScanBytes for SliceBytes<'_> {
    const PLACES_ERRORS: bool = false;

    #[inline]
    fn at_hand(&self) -> &[u8] {
        self.bytes.get(self.pos..self.end).unwrap_or_default()
    }

    fn bring(&mut self, n: usize) -> Result<bool> {
        if self.pos > self.reported {
            self.work.report((self.pos - self.reported) as u64)?;
            self.reported = self.pos;
        }
        self.end = self.pos.saturating_add(REPORT).min(self.bytes.len());
        Ok(self.end - self.pos >= n)
    }

    #[inline]
    fn take(&mut self, n: usize, _: u64) -> Result<()> {
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

    fn end(&mut self) -> Result<()> {
        self.work.report((self.pos - self.reported) as u64)
    }
}

/// Scans the first `size` bytes of a file by reads at positions.
///
/// While records are small it reads everything, a buffer at a time; where they are large, the twelve bytes of each
/// header. With payloads to check it reads everything in any case.
pub(crate) fn scan_file(
    file: &(impl ReadAt + ?Sized),
    size: u64,
    start: ScanStart,
    payloads: bool,
    work: &Work,
) -> Result<ScanOutcome> {
    if payloads {
        let reader = FileReader { file, pos: start.at, end: size };
        return scan_stream(reader, start, true, work);
    }
    let pos = start.at;
    let windows =
        FileWindows { file, size, pos, buf: vec![0; BUFFER], window: 0..0, mean: 0, reported: pos, work };
    scan(windows, start, false)
}

/// The first `size` bytes of a file, a window of which is at hand.
struct FileWindows<'a, R: ?Sized> {
    file: &'a R,
    size: u64,
    pos: u64,
    buf: Vec<u8>,
    /// The bytes of `buf` that stand at `pos`.
    window: Range<usize>,
    /// Mean length of a record, the last ones above all: a file may change its habits.
    mean: u64,
    reported: u64,
    work: &'a Work,
}

impl<R: ReadAt + ?Sized> FileWindows<'_, R> {
    /// Moves on by `records` records of `n` bytes in all.
    #[inline]
    fn passed(&mut self, n: u64, records: u64) -> Result<()> {
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

impl<R: ReadAt + ?Sized> ScanBytes for FileWindows<'_, R> {
    const PLACES_ERRORS: bool = false;

    #[inline]
    fn at_hand(&self) -> &[u8] {
        self.buf.get(self.window.clone()).unwrap_or_default()
    }

    /// The same as `bring` and `skip` by way of the parser, in half of the instructions.
    #[inline]
    fn stride(&mut self, offsets: &mut TableBuilder) -> Result<u64> {
        let from = self.pos;
        self.window = 0..0;
        while self.mean >= SPARSE {
            let left = self.size.saturating_sub(self.pos);
            if left < OVERHEAD as u64 {
                break;
            }
            let mut header = [0; HEADER_LEN];
            self.file.read_exact_at(&mut header, self.pos)?;
            let (len, stored) = split_header(&header);
            if crc::masked_len(len) != stored || len > left - OVERHEAD as u64 {
                break;
            }
            offsets.push(self.pos);
            self.passed(OVERHEAD as u64 + len, 1)?;
        }
        Ok(self.pos - from)
    }

    #[inline]
    fn bring(&mut self, n: usize) -> Result<bool> {
        let left = usize::try_from(self.size.saturating_sub(self.pos)).unwrap_or(usize::MAX);
        let want = if self.mean >= SPARSE { HEADER_LEN } else { BUFFER }.min(left);
        self.window = 0..0;
        self.file.read_exact_at(&mut self.buf[..want], self.pos)?;
        self.window = 0..want;
        Ok(want >= n)
    }

    #[inline]
    fn take(&mut self, n: usize, records: u64) -> Result<()> {
        self.window.start += n;
        self.passed(n as u64, records)
    }

    #[inline]
    fn skip(&mut self, n: u64) -> Result<u64> {
        let left = self.size.saturating_sub(self.pos);
        if n > left {
            return Ok(left);
        }
        // It reaches beyond the window.
        self.window = 0..0;
        self.passed(n, 1)?;
        Ok(n)
    }

    fn end(&mut self) -> Result<()> {
        match self.pos >= self.size {
            true => self.work.report(self.pos - self.reported),
            false => Ok(()),
        }
    }
}

/// A `Read` over positions.
struct FileReader<'a, R: ?Sized> {
    file: &'a R,
    pos: u64,
    end: u64,
}

impl<R: ReadAt + ?Sized> Read for FileReader<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.pos)).unwrap_or(usize::MAX);
        let n = buf.len().min(left);
        let n = self.file.read_at(&mut buf[..n], self.pos)?;
        self.pos += n as u64;
        Ok(n)
    }
}

/// Scans a record stream from where `stream` stands, which is `start.at`, to its end.
pub(crate) fn scan_stream(
    stream: impl Read,
    start: ScanStart,
    payloads: bool,
    work: &Work,
) -> Result<ScanOutcome> {
    let buffered =
        BufferedBytes { inner: stream, buf: vec![0; BUFFER], start: 0, end: 0, work, unreported: 0 };
    scan(buffered, start, payloads)
}

/// A reader, a buffer of which is at hand.
struct BufferedBytes<'a, R> {
    inner: R,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    work: &'a Work,
    /// ScanBytes read since the last report.
    unreported: usize,
}

impl<R: Read> BufferedBytes<'_, R> {
    fn fill(&mut self) -> std::io::Result<usize> {
        loop {
            match self.inner.read(&mut self.buf[self.end..]) {
                Ok(n) => {
                    // A `Read` that claims more than it was given room for is not believed.
                    let n = n.min(self.buf.len() - self.end);
                    self.end += n;
                    self.unreported += n;
                    if self.unreported >= REPORT {
                        self.work.report(std::mem::take(&mut self.unreported) as u64)?;
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
    const PLACES_ERRORS: bool = true;

    #[inline]
    fn at_hand(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    fn bring(&mut self, n: usize) -> Result<bool> {
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < n {
            if self.fill()? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn take(&mut self, n: usize, _: u64) -> Result<()> {
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
            if self.fill()? == 0 {
                return Ok(n - left);
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.work.report(self.unreported as u64)
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

    /// The three ways, and the parser by itself, must agree.
    fn all_ways(bytes: &[u8], payloads: bool) -> Outcome {
        let values = |scan: Result<ScanOutcome>| match scan {
            Ok(scan) => {
                let n = scan.offsets.len();
                let table = scan.offsets.finish();
                Ok(((0..n).map(|i| table.get(i).unwrap()).collect(), scan.end, scan.torn))
            }
            Err(e) => Err((e.location().record, e.location().offset)),
        };
        let nothing = &Work::new(None);
        let slice = values(scan_slice(bytes, ScanStart::default(), payloads, nothing));
        let file = values(scan_file(bytes, bytes.len() as u64, ScanStart::default(), payloads, nothing));
        let stream = values(scan_stream(OneByOne(bytes), ScanStart::default(), payloads, nothing));
        assert_eq!(slice, file);
        assert_eq!(slice, stream);
        assert_eq!(slice, by_parser(bytes, payloads));
        slice
    }

    /// The twin of [`Hop`]: every record by way of the parser.
    fn by_parser(bytes: &[u8], payloads: bool) -> Outcome {
        let mut parser = Parser::whole(payloads, u64::MAX);
        let (mut offsets, mut pos) = (Vec::new(), 0);
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

    struct OneByOne<'a>(&'a [u8]);
    impl Read for OneByOne<'_> {
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
                let (offsets, end, torn) = all_ways(&file[..cut], payloads).unwrap();
                let whole = ends.iter().filter(|&&e| e > 0 && e <= cut as u64).count();
                assert_eq!(offsets, ends[..whole]);
                assert_eq!(end, ends[whole]);
                assert_eq!(torn.map(|t| t.have), (cut as u64 > end).then_some(cut as u64 - end));
                assert!(torn.is_none_or(|t| t.need > t.have));
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_damage_with_its_place() {
        let file = shard([3, 5, 9]);
        for bit in 0..file.len() * 8 {
            let byte = bit / 8;
            let (i, start) =
                [(2u64, 40usize), (1, 19), (0, 0)].into_iter().find(|&(_, s)| s <= byte).unwrap();
            let in_header = byte - start < HEADER_LEN;
            let mut bad = file.clone();
            bad[byte] ^= 1 << (bit % 8);
            let place = Err((Some(i), Some(start as u64)));
            assert_eq!(all_ways(&bad, true).map(|_| ()), place, "bit {bit}");
            let quick = all_ways(&bad, false).map(|_| ());
            assert_eq!(quick, if in_header { place } else { Ok(()) }, "bit {bit}");
        }
    }

    #[test]
    fn a_tail_of_zeros_is_damage_and_huge_lengths_are_torn() {
        let mut file = shard([3]);
        file.extend([0; 12]);
        assert_eq!(all_ways(&file, false), Err((Some(1), Some(19))));
        for len in [1u64 << 40, (1 << 63) - 4, u64::MAX - 15, u64::MAX] {
            let mut file = shard([3]);
            crate::frame::put_header(&mut file, len).unwrap();
            let (_, end, torn) = all_ways(&file, true).unwrap();
            assert_eq!((end, torn), (19, Some(Torn { need: len.saturating_add(16), have: 12 })));
        }
    }

    #[test]
    fn small_and_large_records_in_turn() {
        // Through the buffered and the sparse way of `scan_file` and back, and over a report or two.
        let lens = (0..3000).map(|i| if i / 500 % 2 == 0 { i % 90 } else { 9000 + i });
        let file = shard(lens);
        let (offsets, end, torn) = all_ways(&file, false).unwrap();
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
        scan_file(file.as_slice(), end, ScanStart::default(), false, &count).unwrap();
        scan_stream(file.as_slice(), ScanStart::default(), false, &count).unwrap();
        assert_eq!(seen.load(Relaxed), 3 * end);
    }

    #[test]
    fn from_a_start() {
        let file = shard([3, 5, 9]);
        let mut offsets = TableBuilder::offsets();
        offsets.push(0);
        let scan = scan_slice(&file, ScanStart { offsets, at: 19 }, false, &Work::new(None)).unwrap();
        assert_eq!((scan.offsets.len(), scan.end), (3, file.len() as u64));
    }
}
