//! The scan: from header to header, each length's crc checked, each start fed to the table.
//!
//! Three ways in, one meaning: over a slice (a map), at positions of a file, and along an inflated stream. All deliver
//! the records before the damage to nobody: an index is of a whole shard, so damage is an error with its place. Bytes
//! after the last whole record (less than a header, or a good header without its whole body) are a *torn tail*, which
//! is reported; twelve bytes that are no header are damage.

use super::progress::{REPORT, Work};
use super::table::TableBuilder;
use crate::crc::{self, LenCrc, WithLenCrc, crc32c_append, with_len_crc};
use crate::error::{At, Error, ErrorKind, Result};
use crate::frame::{FOOTER_LEN, HEADER_LEN, OVERHEAD, split};
use crate::io::ReadAt;
use std::io::Read;

/// Buffer of the scans without a map.
const BUFFER: usize = 256 << 10;
/// From this mean record length on the scan reads the twelve bytes of each header instead of everything: here both cost
/// the same, about 580 ns a record.
const SPARSE: u64 = 4 << 10;

/// What a scan has found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The offsets of the records; the end of the stream is not among them yet.
    pub(crate) offsets: TableBuilder,
    /// The end of the last whole record.
    pub(crate) end: u64,
    /// What is left after it.
    pub(crate) torn: Option<Torn>,
}

/// A record of which only the start is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Bytes the record needs, as far as it says; at least a header.
    pub(crate) need: u64,
    /// Bytes there are.
    pub(crate) have: u64,
}

/// Where a scan starts: at the beginning, or after the records that are known.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) offsets: TableBuilder,
    pub(crate) at: u64,
}

impl Default for Start {
    fn default() -> Start {
        Start { offsets: TableBuilder::offsets(), at: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Where the loop was asked to stop.
    Boundary,
    /// Less is left than the record needs.
    Short,
    BadLength,
    BadPayload,
    /// A payload to check of more than [`REPORT`] bytes.
    Large,
}

/// The hop over a slice. Nothing in here allocates but the table.
struct Hop<'a, const PAYLOADS: bool> {
    bytes: &'a [u8],
    pos: usize,
    until: usize,
    offsets: &'a mut TableBuilder,
}

impl<const PAYLOADS: bool> WithLenCrc for Hop<'_, PAYLOADS> {
    type Out = (usize, Stop);

    #[inline(always)]
    fn run(self, crc: impl LenCrc) -> (usize, Stop) {
        let mut pos = self.pos;
        while pos < self.until {
            let rest = self.bytes.get(pos..).unwrap_or_default();
            let Some((header, body)) = rest.split_first_chunk::<HEADER_LEN>() else {
                return (pos, Stop::Short);
            };
            let (len, stored) = split(header);
            if crc::mask(crc.crc(len)) != stored {
                return (pos, Stop::BadLength);
            }
            if body.len() < FOOTER_LEN || len > (body.len() - FOOTER_LEN) as u64 {
                return (pos, Stop::Short);
            }
            // It fits into the slice, so it fits into a usize.
            let len = len as usize;
            if PAYLOADS {
                if len > REPORT {
                    return (pos, Stop::Large);
                }
                let (payload, rest) = body.split_at(len);
                if rest.first_chunk().is_none_or(|f| u32::from_le_bytes(*f) != crc::masked(payload)) {
                    return (pos, Stop::BadPayload);
                }
            }
            self.offsets.push(pos as u64);
            pos += OVERHEAD + len;
        }
        (pos, Stop::Boundary)
    }
}

/// Scans a shard that is a slice.
pub(crate) fn scan_slice(bytes: &[u8], start: Start, payloads: bool, work: &Work<'_>) -> Result<Scan> {
    let Start { mut offsets, at } = start;
    let mut pos = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    loop {
        let until = pos.saturating_add(REPORT).min(bytes.len());
        let (end, stop) = if payloads {
            with_len_crc(Hop::<true> { bytes, pos, until, offsets: &mut offsets })
        } else {
            with_len_crc(Hop::<false> { bytes, pos, until, offsets: &mut offsets })
        };
        work.report((end - pos) as u64)?;
        pos = end;
        let stop = match stop {
            Stop::Large => match large(bytes.get(pos..).unwrap_or_default(), work)? {
                Some(len) => {
                    offsets.push(pos as u64);
                    pos += len;
                    Stop::Boundary
                }
                None => Stop::BadPayload,
            },
            stop => stop,
        };
        match stop {
            Stop::Boundary if pos >= bytes.len() => return Ok(Scan { offsets, end: pos as u64, torn: None }),
            Stop::Boundary => {}
            _ => {
                let torn = tail(bytes.get(pos..).unwrap_or_default(), offsets.len(), pos as u64)?;
                return Ok(Scan { offsets, end: pos as u64, torn });
            }
        }
    }
}

/// Checks the payload of the record at the start of `rest`, whose header is sound and which is there as a whole, in pieces; the
/// bytes of the record, or `None` if the crc is another.
fn large(rest: &[u8], work: &Work<'_>) -> Result<Option<usize>> {
    let Some((header, body)) = rest.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let len = usize::try_from(split(header).0).ok().filter(|len| *len <= body.len());
    let Some((payload, footer)) = len.map(|len| body.split_at(len)) else { return Ok(None) };
    let mut sum = 0;
    for piece in payload.chunks(REPORT) {
        sum = crc32c_append(sum, piece);
        work.report(piece.len() as u64)?;
    }
    work.report(OVERHEAD as u64)?;
    let sound = footer.first_chunk().is_some_and(|f| u32::from_le_bytes(*f) == crc::mask(sum));
    Ok(sound.then_some(payload.len() + OVERHEAD))
}

/// The record at which a scan has stopped: torn, or damage.
fn tail(rest: &[u8], i: u64, at: u64) -> Result<Option<Torn>> {
    match crate::frame::record_at(rest).map_err(|e| e.at(place(i, at))) {
        // Only a file that changed while it was scanned gets here: its end is not known then.
        Ok(_) => Ok(Some(Torn { need: rest.len() as u64, have: rest.len() as u64 })),
        Err(e) => match *e.kind() {
            ErrorKind::Truncated { need, have } => Ok(Some(Torn { need, have })),
            _ => Err(e),
        },
    }
}

fn place(i: u64, at: u64) -> At<'static> {
    At { path: None, record: Some(i), offset: Some(at) }
}

/// Checks a header; the length it gives.
fn header(bytes: &[u8; HEADER_LEN], i: u64, at: u64) -> Result<u64> {
    crate::frame::Header::parse(bytes).map(|h| h.payload_len).map_err(|e| e.at(place(i, at)))
}

/// Scans the first `size` bytes of a file by reads at positions.
///
/// While records are small it reads everything, a buffer at a time; where they are large, the twelve bytes of each
/// header. With payloads to check it reads everything in any case.
pub(crate) fn scan_file(
    file: &(impl ReadAt + ?Sized),
    size: u64,
    start: Start,
    payloads: bool,
    work: &Work<'_>,
) -> Result<Scan> {
    if payloads {
        let reader = FileReader { file, pos: start.at, end: size };
        return scan_stream(reader, start, true, work);
    }
    let Start { mut offsets, at: mut pos } = start;
    let mut buf = vec![0; BUFFER];
    // The window `buf[..have]` holds the bytes from `window` on.
    let (mut window, mut have) = (pos, 0);
    let (mut mean, mut reported) = (0, pos);
    loop {
        if pos - reported >= REPORT as u64 || pos >= size {
            work.report(pos - reported)?;
            reported = pos;
        }
        let left = size.saturating_sub(pos);
        if left == 0 {
            return Ok(Scan { offsets, end: pos, torn: None });
        }
        if left < HEADER_LEN as u64 {
            let torn = Some(Torn { need: HEADER_LEN as u64, have: left });
            return Ok(Scan { offsets, end: pos, torn });
        }
        let in_window = |window: u64, have: usize| {
            let from = usize::try_from(pos.checked_sub(window)?).ok()?;
            Some(from..from.checked_add(HEADER_LEN)?).filter(|r| r.end <= have)
        };
        let range = match in_window(window, have) {
            Some(range) => range,
            None => {
                let want = if mean >= SPARSE { HEADER_LEN } else { BUFFER.min(left as usize) };
                file.read_exact_at(&mut buf[..want], pos)?;
                (window, have) = (pos, want);
                0..HEADER_LEN
            }
        };
        let Some(bytes) = buf.get(range).and_then(|b| b.first_chunk()) else {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        };
        let len = header(bytes, offsets.len(), pos)?;
        match len.checked_add(OVERHEAD as u64) {
            Some(need) if need <= left => {
                offsets.push(pos);
                pos += need;
                // A mean that follows the last dozen records, so that a file may change its habits.
                mean = if mean == 0 { need } else { mean - mean / 8 + need / 8 };
            }
            need => {
                let torn = Some(Torn { need: need.unwrap_or(u64::MAX), have: left });
                return Ok(Scan { offsets, end: pos, torn });
            }
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
pub(crate) fn scan_stream(stream: impl Read, start: Start, payloads: bool, work: &Work<'_>) -> Result<Scan> {
    let Start { mut offsets, at: mut pos } = start;
    let mut stream = Buffered { inner: stream, buf: vec![0; BUFFER], start: 0, end: 0, work, unreported: 0 };
    loop {
        let i = offsets.len();
        let head = stream.at_least(HEADER_LEN).map_err(|e| Error::from(e).at(place(i, pos)))?;
        let Some(bytes) = head.first_chunk::<HEADER_LEN>() else {
            let have = head.len() as u64;
            work.report(stream.unreported as u64)?;
            let torn = (have > 0).then_some(Torn { need: HEADER_LEN as u64, have });
            return Ok(Scan { offsets, end: pos, torn });
        };
        let len = header(bytes, i, pos)?;
        stream.consume(HEADER_LEN);
        let (skipped, computed) = stream.skip(len, payloads).map_err(|e| Error::from(e).at(place(i, pos)))?;
        let foot = stream.at_least(FOOTER_LEN).map_err(|e| Error::from(e).at(place(i, pos)))?;
        let need = len.saturating_add(OVERHEAD as u64);
        let Some(&footer) = foot.first_chunk::<FOOTER_LEN>().filter(|_| skipped == len) else {
            let have = HEADER_LEN as u64 + skipped + foot.len() as u64;
            work.report(stream.unreported as u64)?;
            return Ok(Scan { offsets, end: pos, torn: Some(Torn { need, have }) });
        };
        stream.consume(FOOTER_LEN);
        let (computed, stored) = (crc::mask(computed), u32::from_le_bytes(footer));
        if payloads && computed != stored {
            return Err(Error::new(ErrorKind::CorruptData { computed, stored }).at(place(i, pos)));
        }
        offsets.push(pos);
        // Bytes that were read, so a u64 holds their number.
        pos += need;
    }
}

struct Buffered<'a, R> {
    inner: R,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    work: &'a Work<'a>,
    /// Bytes read since the last report.
    unreported: usize,
}

impl<R: Read> Buffered<'_, R> {
    /// At least `n` bytes of what comes next, or all there are.
    fn at_least(&mut self, n: usize) -> std::io::Result<&[u8]> {
        if self.end - self.start < n {
            self.buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            while self.end < n && self.fill()? > 0 {}
        }
        Ok(&self.buf[self.start..self.end])
    }

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

    fn consume(&mut self, n: usize) {
        self.start = self.end.min(self.start + n);
    }

    /// Goes over `len` bytes, or as many as there are; their number and, if asked for, their crc.
    fn skip(&mut self, len: u64, crc: bool) -> std::io::Result<(u64, u32)> {
        let (mut left, mut sum) = (len, 0);
        while left > 0 {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
                if self.fill()? == 0 {
                    break;
                }
            }
            let here = self.end - self.start;
            let n = usize::try_from(left).map_or(here, |left| left.min(here));
            if crc {
                sum = crc32c_append(sum, &self.buf[self.start..self.start + n]);
            }
            self.consume(n);
            left -= n as u64;
        }
        Ok((len - left, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::put_record;
    use crate::index::no_progress;
    use std::ops::ControlFlow;

    fn shard(lens: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let mut file = Vec::new();
        for (i, len) in lens.into_iter().enumerate() {
            put_record(&mut file, &vec![i as u8; len]).unwrap();
        }
        file
    }

    /// Offsets, end and torn tail; or the record and the offset of the damage.
    type Told = Result<(Vec<u64>, u64, Option<Torn>), (Option<u64>, Option<u64>)>;

    /// The three ways must tell the same.
    fn all_ways(bytes: &[u8], payloads: bool) -> Told {
        let values = |scan: Result<Scan>| match scan {
            Ok(scan) => {
                let n = scan.offsets.len();
                let table = scan.offsets.finish();
                Ok(((0..n).map(|i| table.get(i).unwrap()).collect(), scan.end, scan.torn))
            }
            Err(e) => Err((e.place().record, e.place().offset)),
        };
        let nothing = &Work::new(&no_progress);
        let slice = values(scan_slice(bytes, Start::default(), payloads, nothing));
        let file = values(scan_file(bytes, bytes.len() as u64, Start::default(), payloads, nothing));
        let stream = values(scan_stream(OneByOne(bytes), Start::default(), payloads, nothing));
        assert_eq!(slice, file);
        assert_eq!(slice, stream);
        slice
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
        let seen = std::sync::atomic::AtomicU64::new(0);
        let count = |n| {
            seen.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
            assert!(n <= (REPORT + 20_000) as u64);
            ControlFlow::Continue(())
        };
        let count = Work::new(&count);
        scan_slice(&file, Start::default(), true, &count).unwrap();
        scan_file(file.as_slice(), end, Start::default(), false, &count).unwrap();
        scan_stream(file.as_slice(), Start::default(), false, &count).unwrap();
        assert_eq!(seen.into_inner(), 3 * end);
    }

    #[test]
    fn from_a_start() {
        let file = shard([3, 5, 9]);
        let mut offsets = TableBuilder::offsets();
        offsets.push(0);
        let scan = scan_slice(&file, Start { offsets, at: 19 }, false, &Work::new(&no_progress)).unwrap();
        assert_eq!((scan.offsets.len(), scan.end), (3, file.len() as u64));
    }
}
