//! The inflated bytes of a damaged gzip or zlib file, with the places at which inflation can begin again.
//!
//! Inflation continues at a gzip member, or after a flush: a stored block without content, which ends with
//! the bytes 00 00 ff ff at a whole byte. After a full flush no byte refers to those before it. After a sync
//! flush some do, and inflation then soon ends again.
//!
//! A place counts only if a sound record is found after it, because payloads may contain the same bytes. The
//! search begins after the last sound record, so no record is found twice. A decoder that fails late may have
//! passed the start of the next member.
//!
//! Of a pipe the bytes from there on are kept, at most [`KEPT`](crate::io::pipe::KEPT). A search that would
//! need more continues at the next place.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::header::begins_member;
use super::input::INPUT;
use super::scan::{CheckpointScan, Checkpoints};
use crate::error::{Error, Result};
use crate::frame::{Salvage, SalvageStep};
use crate::io::compression::CompressedFormat;
use crate::io::pipe::PipeBytes;
use crate::io::read_buffer::ReadBuffer;
use crate::io::source::{ReadRange, Source};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

/// The length of a stored block without content, and its complement.
const FLUSH: [u8; 4] = [0, 0, 0xff, 0xff];
/// Work that a search may spend on places that are not accepted: this constant, and this multiple of the size
/// of the file.
const WORK: u64 = 64 << 20;
const WORK_FACTOR: u64 = 16;
/// Maximum number of marks after the last sound record. Only blocks of a few bytes have more.
const MAX_MARKS: usize = 1 << 16;
/// Minimum work of one place.
const PLACE: u64 = 256;

/// A file that is borrowed or shared by its readers, or a pipe.
#[derive(Clone)]
pub(in crate::io) enum SalvageFile<'a> {
    Borrowed(&'a dyn Source),
    Shared(Arc<dyn Source>),
    Pipe(Arc<PipeBytes>),
}

impl SalvageFile<'_> {
    fn pipe(&self) -> Option<&PipeBytes> {
        match self {
            SalvageFile::Pipe(pipe) => Some(pipe),
            _ => None,
        }
    }

    /// Asks the store of an object once more for bytes that failed a checksum. Returns false if this is of no
    /// use.
    pub(in crate::io) fn distrust(&self, range: &Range<u64>) -> bool {
        match self {
            SalvageFile::Borrowed(file) => file.distrust(range),
            SalvageFile::Shared(file) => file.distrust(range),
            SalvageFile::Pipe(_) => false,
        }
    }

    /// Returns the I/O error that ended a pipe.
    pub(in crate::io) fn check_end(&self) -> Result<()> {
        self.pipe().and_then(PipeBytes::take_error).map_or(Ok(()), |e| Err(e.into()))
    }
}

/// A reader of a range of the bytes of a file.
#[derive(Clone)]
pub(in crate::io) struct FileBytes<'a> {
    pub(in crate::io) file: SalvageFile<'a>,
    /// Offset of the next byte.
    pub(in crate::io) at: u64,
    /// Offset after the last byte, `u64::MAX` for a pipe.
    pub(in crate::io) end: u64,
}

impl Read for FileBytes<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let file: &dyn Source = match &self.file {
            SalvageFile::Borrowed(file) => *file,
            SalvageFile::Shared(file) => &**file,
            SalvageFile::Pipe(pipe) => {
                let read = pipe.read_at(buf, self.at)?;
                self.at = self.at.saturating_add(read as u64);
                return Ok(read);
            }
        };
        let mut range = ReadRange { file, at: self.at, end: self.end };
        let read = range.read(buf);
        self.at = range.at;
        read
    }
}

/// A reader of the inflated bytes. It ends at damage as at the end of the file.
pub(in crate::io) struct DamagedInflate<'a> {
    file: SalvageFile<'a>,
    /// Number of bytes of the file, `u64::MAX` for a pipe.
    size: u64,
    scan: CheckpointScan<FileBytes<'a>>,
    /// Examines places. Made at the first damage.
    trial: Option<Box<CheckpointScan<FileBytes<'a>>>>,
    /// The inflated bytes of a place.
    buffer: ReadBuffer,
    format: CompressedFormat,
    /// Bytes between checkpoints.
    spacing: u64,
    max_payload: u64,
    /// Offsets in the record stream, and lower bounds of their offsets in the file. The first one is at or
    /// before the last sound record.
    marks: VecDeque<(u64, u64)>,
    /// Offset of the file at which inflation began, or began again.
    begin: u64,
    /// End of the last sound record in the record stream.
    sound: u64,
    /// Work that was spent on places.
    spent: u64,
    /// The last damage was returned, and no place follows it.
    ended: bool,
}

/// A place at which inflation may begin again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: u64,
    /// A gzip member begins there, not a block.
    member: bool,
}

/// Damage that ended the inflation.
pub(in crate::io) struct NotInflated {
    /// The bytes of the file between the damage and the place where inflation begins again.
    pub(in crate::io) file: Range<u64>,
    pub(in crate::io) error: Error,
    /// Inflation begins again.
    pub(in crate::io) goes_on: bool,
}

impl<'a> DamagedInflate<'a> {
    /// Returns a reader of the first `size` bytes of a file of this format, or of a pipe, whose `size` is
    /// `u64::MAX`.
    pub(in crate::io) fn new(
        file: SalvageFile<'a>,
        size: u64,
        format: CompressedFormat,
        spacing: u64,
        max_payload: u64,
    ) -> DamagedInflate<'a> {
        let bytes = FileBytes { file: file.clone(), at: 0, end: size };
        DamagedInflate {
            file,
            size,
            scan: CheckpointScan::new(bytes, format, spacing),
            trial: None,
            buffer: ReadBuffer::default(),
            format,
            spacing,
            max_payload,
            marks: VecDeque::new(),
            begin: 0,
            sound: 0,
            spent: 0,
            ended: false,
        }
    }

    pub(in crate::io) fn into_checkpoints(self) -> Checkpoints {
        self.scan.into_checkpoints()
    }

    /// Returns true if damage ended the inflation.
    pub(in crate::io) fn has_failed(&self) -> bool {
        self.scan.failed().is_some()
    }

    /// Begins again, with bytes that the store of an object is asked for once more. Returns a parser for
    /// their records. `None` if this is of no use.
    pub(in crate::io) fn asks_again(&mut self) -> Option<Salvage> {
        if !self.file.distrust(&(0..self.size)) {
            return None;
        }
        *self =
            DamagedInflate::new(self.file.clone(), self.size, self.format, self.spacing, self.max_payload);
        Some(Salvage::new(self.max_payload))
    }

    /// Returns the number of bytes of the file that were inflated.
    pub(in crate::io) fn consumed(&self) -> u64 {
        self.scan.consumed()
    }

    /// States that a sound record ends at offset `end` of the record stream.
    pub(in crate::io) fn found_record(&mut self, end: u64) {
        self.sound = end;
        while self.marks.get(1).is_some_and(|&(out, _)| out <= end) {
            self.marks.pop_front();
        }
    }

    /// Returns the work that is left for places.
    fn work(&self) -> u64 {
        let size = self.file.pipe().map_or(self.size, PipeBytes::len);
        size.saturating_mul(WORK_FACTOR).saturating_add(WORK).saturating_sub(self.spent)
    }

    /// Returns the damage that ended the inflation, and moves to the next place where it can begin again.
    /// `None` at the end of the file.
    ///
    /// # Errors
    /// I/O errors. A pipe's error is returned at its end.
    pub(in crate::io) fn next_place(&mut self) -> Result<Option<NotInflated>> {
        let Some(error) = self.scan.failed().cloned().filter(|_| !self.ended) else {
            return self.file.check_end().map(|()| None);
        };
        let at = self.scan.consumed();
        let out = self.scan.returned();
        // Without a mark nothing was inflated since the last place, or since the start of the file.
        let from = self.marks.front().map_or(self.begin, |&(_, from)| from);
        let wasted = at.saturating_sub(from).saturating_add(out.saturating_sub(self.sound));
        self.spent = self.spent.saturating_add(wasted);
        let place = self.search(from)?;
        self.ended = place.is_none();
        let end = match (place, self.file.pipe()) {
            (Some(place), _) => place.at,
            (None, None) => self.size,
            (None, Some(pipe)) => {
                let end = pipe.drain()?;
                self.file.check_end()?;
                end
            }
        };
        if let Some(place) = place {
            self.scan.inner().at = place.at;
            self.scan.go_on(place.at, place.member, true)?;
            self.marks.clear();
            self.begin = place.at;
            self.sound = out;
        }
        let file = at.min(end)..end;
        Ok(Some(NotInflated { file, error: error.into(), goes_on: place.is_some() }))
    }

    /// Returns the first place after byte `from` of the file after which a sound record is found.
    fn search(&mut self, from: u64) -> Result<Option<Place>> {
        let hold = |file: &SalvageFile<'_>, yes| file.pipe().map_or((), |pipe| pipe.hold(yes));
        hold(&self.file, true);
        let place = self.search_kept(from);
        hold(&self.file, false);
        place
    }

    #[expect(clippy::arithmetic_side_effects, reason = "lengths of parts of `buf`, and offsets in the file")]
    fn search_kept(&mut self, from: u64) -> Result<Option<Place>> {
        let file = self.file.clone();
        // A flush that ends after `from` may begin before it.
        let begin = from.saturating_sub(FLUSH.len() as u64);
        let begin = file.pipe().map_or(begin, |pipe| begin.max(pipe.start()));
        let mut input = FileBytes { file: file.clone(), at: begin, end: self.size };
        let mut buf = vec![0; INPUT];
        // The last bytes of a piece are searched again with the next one.
        let mut have = 0_usize;
        let mut at = begin;
        while self.work() > 0 {
            if let Some(pipe) = file.pipe() {
                pipe.forget(at);
            }
            let read = match input.read(buf.split_at_mut(have).1) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                break;
            }
            have += read;
            let bytes = buf.split_at(have).0;
            for (i, start) in bytes.windows(FLUSH.len()).enumerate() {
                let found = place(start, at + i as u64, self.format);
                let Some(place) = found.filter(|place| place.at > from) else { continue };
                if self.holds_record(place)? {
                    return Ok(Some(place));
                }
                if self.work() == 0 {
                    return Ok(None);
                }
            }
            let done = have - have.min(FLUSH.len() - 1);
            buf.copy_within(done..have, 0);
            have -= done;
            at += done as u64;
        }
        Ok(None)
    }

    /// Returns true if a sound record is found in the bytes that are inflated after a place.
    #[expect(clippy::arithmetic_side_effects, reason = "counts of bytes, which only grow from the place on")]
    fn holds_record(&mut self, place: Place) -> Result<bool> {
        let work = self.work();
        let format = self.format;
        let bytes = FileBytes { file: self.file.clone(), at: place.at, end: self.size };
        let trial = self.trial.get_or_insert_with(|| Box::new(CheckpointScan::new(bytes, format, u64::MAX)));
        trial.inner().at = place.at;
        trial.go_on(place.at, place.member, false)?;
        let start = trial.returned();
        let mut salvage = Salvage::searching(self.max_payload, 0);
        let buffer = &mut self.buffer;
        let mut more = true;
        buffer.consume(usize::MAX);
        let found = loop {
            let spent = (trial.returned() - start + trial.consumed() - place.at).max(PLACE);
            match salvage.step(buffer.bytes(), more) {
                SalvageStep::Record(_) => break (true, spent),
                SalvageStep::End => break (false, spent),
                SalvageStep::Damage { len, .. } => _ = buffer.consume(len),
                SalvageStep::Need(_) if spent >= work => break (false, spent),
                SalvageStep::Need(need) => {
                    let have = buffer.bytes().len() as u64;
                    // No more bytes than the work that is left. They may be too few for a record, which the
                    // next round finds out.
                    let need = need.max(have + have / 2).min(have.saturating_add(work - spent));
                    more = match buffer.fill(trial.as_mut(), need) {
                        Ok(more) => more,
                        Err(_) if trial.failed().is_some() => false,
                        Err(e) => return Err(e.into()),
                    };
                }
            }
        };
        // An accepted place costs nothing: it is inflated again as part of the stream.
        let (accepted, spent) = found;
        if !accepted {
            self.spent = self.spent.saturating_add(spent);
        }
        Ok(accepted)
    }
}

/// Returns the place that these bytes at offset `at` of the file indicate.
fn place(bytes: &[u8], at: u64, format: CompressedFormat) -> Option<Place> {
    let bytes: [u8; FLUSH.len()] = bytes.try_into().ok()?;
    if bytes == FLUSH {
        return Some(Place { at: at.checked_add(FLUSH.len() as u64)?, member: false });
    }
    let member = match format {
        CompressedFormat::Gzip => begins_member(bytes),
        CompressedFormat::Zlib => false,
    };
    member.then_some(Place { at, member })
}

impl Read for DamagedInflate<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(pipe) = self.file.pipe() {
            // A search begins here, or where inflation began.
            let from = self.marks.front().map_or(self.begin, |&(_, from)| from);
            pipe.forget(from.saturating_sub(FLUSH.len() as u64));
        }
        let read = self.scan.read(buf);
        let mark = self.scan.mark();
        if mark.1 >= self.begin && self.marks.back().is_none_or(|last| last.0 < mark.0) {
            self.marks.push_back(mark);
            if self.marks.len() >= MAX_MARKS {
                // The first one stays. Later ones are only nearer lower bounds.
                let mut keep = false;
                self.marks.retain(|_| {
                    keep = !keep;
                    keep
                });
            }
        }
        match read {
            Err(_) if self.has_failed() => Ok(0),
            read => read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Fetched, Stamp};
    use flate2::{Compress, Compression as Level, FlushCompress};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// A file that counts the bytes that are read.
    #[derive(Debug)]
    struct Counted {
        bytes: Vec<u8>,
        read: AtomicU64,
    }

    impl Source for Counted {
        fn name(&self) -> &str {
            "counted"
        }

        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn stamp(&self) -> Result<Stamp> {
            Ok(Stamp::new(self.len()))
        }

        fn want(&self, _: &[Range<u64>]) {}

        fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
            self.bytes.as_slice().fetch(range, buf)
        }

        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let n = self.bytes.as_slice().read_at(buf, offset)?;
            self.read.fetch_add(n as u64, Relaxed);
            Ok(n)
        }
    }

    /// Each place could inflate the rest of the file, which has no record: time that grows with the square of
    /// the file.
    #[test]
    fn the_work_of_a_search_is_limited() {
        let mut deflate = Compress::new(Level::new(6), false);
        let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        const PARTS: u64 = 60;
        const PART: usize = 256 << 10;
        for _ in 0..PARTS {
            let mut out = Vec::with_capacity(PART);
            deflate.compress_vec(&vec![0; PART], &mut out, FlushCompress::Full).unwrap();
            bytes.extend(out);
        }
        // The first block is damaged.
        bytes[10] = 0xff;
        let size = bytes.len() as u64;
        let limit = WORK + WORK_FACTOR * size;
        let file = Counted { bytes, read: AtomicU64::new(0) };
        let mut inflate =
            DamagedInflate::new(SalvageFile::Borrowed(&file), size, CompressedFormat::Gzip, u64::MAX, 100);
        while inflate.read(&mut [0; 1000]).unwrap() > 0 {}
        let place = inflate.next_place().unwrap().unwrap();
        assert!(!place.goes_on && inflate.next_place().unwrap().is_none());
        let inflated = inflate.trial.as_ref().unwrap().returned();
        let all = PARTS * (PARTS - 1) / 2 * PART as u64;
        assert!(all > 4 * limit && inflated > limit / 2, "{inflated} of {all} bytes");
        // The file is read a few times: from the start, in the search, and ahead by the decoder at each
        // place.
        let ahead = PARTS * INPUT as u64;
        let spent = inflated + file.read.load(Relaxed).saturating_sub(2 * size + ahead);
        assert!(spent <= limit, "{spent} bytes, the limit is {limit}");
    }

    /// Each place inflates the rest of the file, of which a pipe keeps a part.
    #[test]
    fn a_search_in_a_pipe_has_bounded_memory() {
        const PARTS: usize = 20;
        const LIMIT: usize = 1 << 20;
        let mut deflate = Compress::new(Level::none(), false);
        let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        let mut starts = Vec::new();
        for k in 0..PARTS {
            let mut part: Vec<u8> = (0..300_000u32)
                .map(|i| (i.wrapping_mul(2654435761).wrapping_add(k as u32) >> 24) as u8)
                .collect();
            if k + 1 == PARTS {
                crate::frame::put_record(&mut part, b"the only record").unwrap();
            }
            starts.push(bytes.len() as u64);
            let mut out = Vec::with_capacity(2 * part.len());
            deflate.compress_vec(&part, &mut out, FlushCompress::Full).unwrap();
            bytes.extend(out);
        }
        bytes[10] = 0xff;
        let size = bytes.len() as u64;
        let found = |file: SalvageFile<'_>, size: u64| {
            let mut inflate = DamagedInflate::new(file, size, CompressedFormat::Gzip, u64::MAX, 100);
            while inflate.read(&mut [0; 1000]).unwrap() > 0 {}
            let place = inflate.next_place().unwrap().unwrap();
            let mut inflated = Vec::new();
            inflate.read_to_end(&mut inflated).unwrap();
            assert!(place.goes_on && inflated.windows(15).any(|window| window == b"the only record"));
            place.file.end
        };
        let slice = bytes.as_slice();
        assert_eq!(found(SalvageFile::Borrowed(&slice), size), starts[1]);
        let pipe = Arc::new(PipeBytes::new(Box::new(io::Cursor::new(bytes.clone())), LIMIT));
        let at = found(SalvageFile::Pipe(Arc::clone(&pipe)), u64::MAX);
        // The record is within the limit.
        let last = starts.iter().rfind(|start| size - **start > LIMIT as u64).unwrap();
        assert!(at > *last && starts.contains(&at), "{at} of {starts:?}");
        assert!(pipe.len() == size && pipe.most_kept() <= LIMIT + INPUT, "{}", pipe.most_kept());
    }

    #[test]
    fn blocks_are_marked() {
        let mut deflate = Compress::new(Level::new(6), false);
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        let mut starts = Vec::new();
        let mut total = 0u64;
        for k in 0..20u8 {
            let part: Vec<u8> = (0..3000u32).map(|i| (i.wrapping_mul(2654435761) >> 27) as u8 ^ k).collect();
            starts.push((total, file.len() as u64));
            total += 3000;
            let mut out = Vec::with_capacity(10_000);
            deflate.compress_vec(&part, &mut out, FlushCompress::Full).unwrap();
            file.extend(out);
        }
        let file = file.as_slice();
        let mut inflate = DamagedInflate::new(
            SalvageFile::Borrowed(&file),
            file.len() as u64,
            CompressedFormat::Gzip,
            u64::MAX,
            100,
        );
        let mut buf = vec![0; 1000];
        let mut n = 1;
        while n > 0 {
            n = inflate.read(&mut buf).unwrap();
        }
        let marks: Vec<_> = inflate.marks.iter().copied().collect();
        for (out, at) in starts {
            assert!(marks.contains(&(out, at)));
        }
    }

    /// Blocks of one byte, and no record: their marks would take 16 bytes for each byte.
    #[test]
    fn marks_are_bounded() {
        let n = 3 * MAX_MARKS;
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        (0..n).for_each(|k| file.extend([0, 1, 0, 0xfe, 0xff, k as u8]));
        let file = file.as_slice();
        let size = file.len() as u64;
        let file = SalvageFile::Borrowed(&file);
        let mut inflate = DamagedInflate::new(file, size, CompressedFormat::Gzip, u64::MAX, 100);
        let mut buf = [0; 100];
        let mut total = 0;
        let mut most = 0;
        while let read @ 1.. = inflate.read(&mut buf).unwrap() {
            total += read;
            most = most.max(inflate.marks.len());
        }
        assert_eq!(total, n);
        assert!(most < MAX_MARKS && inflate.marks.len() > MAX_MARKS / 4, "{most}");
        // A block has 6 bytes of the file, after the header of 10.
        let exact = |&(out, at): &(u64, u64)| at == 10 + 6 * out;
        assert!(inflate.marks.iter().all(exact) && inflate.marks.front() == Some(&(0, 10)));
    }
}
