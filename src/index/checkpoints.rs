//! The checkpoints of a compressed shard: section 3 of a sidecar, which section 5 of `docs/index.md` defines.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::file::{SidecarFile, read_section};
use super::layout::Section;
use super::table::BadBlock;
use crate::crc::{crc32c, crc32c_append};
use crate::error::{Error, Result};
use crate::io::inflate::{Checkpoint, Checkpoints, WINDOW};
use crate::io::{Region, in_steps, read_exact_at};
use crate::memory::{grow, room};
use std::io::Write;
use std::ops::Range;

/// Bytes before the entries: their number, and the spacing.
const HEAD: usize = 16;
/// Bytes of an entry.
const ENTRY: usize = 32;
/// Offsets in an entry: of the offset in the record stream, of the bit position, of the offset and the length
/// of the window, of the CRC.
const OUT_AT: usize = 0;
const BIT_AT: usize = 8;
const WINDOW_AT: usize = 16;
const LEN_AT: usize = 24;
const CRC_AT: usize = 28;

/// Bytes that are copied together.
const COPIED: u64 = 256 << 10;
/// Compressed bytes that [`CheckpointTable::likely_part`] adds.
const MARGIN: u64 = 16 << 10;

/// A section of checkpoints. An entry is verified at each use.
///
/// Entries take 32 bytes and windows up to 32 KiB. Of a file that is not mapped only the entries are in
/// memory, and a window is read when it is needed. Windows are not packed, which would save about 2 %. When
/// all were in memory, 40 touched shards took 636 MiB.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointTable {
    /// The section, or its part before the windows.
    bytes: Region,
    count: usize,
    windows: Option<WindowFile>,
}

/// The windows of a section that are not in memory.
#[derive(Clone, Debug)]
struct WindowFile {
    from: SidecarFile,
    /// Offset of the section in the sidecar.
    offset: u64,
    /// Bytes of the section.
    len: u64,
}

impl WindowFile {
    /// Reads a part of the section.
    #[expect(clippy::arithmetic_side_effects, reason = "the part is inside of the section")]
    fn read(&self, part: Range<u64>, buf: &mut Vec<u8>) -> Result<()> {
        let len = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
        buf.clear();
        grow(buf, len)?;
        self.from.read(|file, at| Ok(read_exact_at(file, buf, at + self.offset + part.start)?))
    }
}

/// The reason why a checkpoint cannot be used.
#[derive(Debug)]
pub(crate) enum CheckpointError {
    /// It is corrupt.
    Bad(BadBlock),
    /// The index file cannot be read.
    Read(Error),
}

impl From<BadBlock> for CheckpointError {
    fn from(bad: BadBlock) -> CheckpointError {
        CheckpointError::Bad(bad)
    }
}

impl CheckpointTable {
    /// Smallest length of the section.
    pub(super) const MIN_LEN: u64 = HEAD as u64;

    /// Returns the least number of checkpoints in a section of `len` bytes, at least 1. All but the first
    /// usually have a whole window.
    pub(super) fn least_count(len: u64) -> u64 {
        len.saturating_sub(CheckpointTable::MIN_LEN).div_ceil((ENTRY + WINDOW) as u64).max(1)
    }

    /// Opens a section. Returns `None` if it is too short for its entries.
    pub(super) fn open(bytes: Region) -> Option<CheckpointTable> {
        let count = usize::try_from(u64_at(&bytes, 0)?).ok()?;
        let end = count.checked_mul(ENTRY)?.checked_add(HEAD)?;
        (end <= bytes.len()).then_some(CheckpointTable { bytes, count, windows: None })
    }

    /// Reads the entries of section `s` of a sidecar that begins at byte `at` of `file`. The windows are read
    /// later, again from `from`. `None` if the section is too short for its entries.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn read(
        file: &dyn crate::io::Source,
        at: u64,
        s: &Section,
        from: &SidecarFile,
    ) -> Result<Option<CheckpointTable>> {
        let part = |len: u64| read_section(file, at, &Section { len, ..*s });
        let Some(count) = u64_at(&part(CheckpointTable::MIN_LEN)?, 0) else { return Ok(None) };
        let end = count.checked_mul(ENTRY as u64).and_then(|end| end.checked_add(HEAD as u64));
        let Some(end) = end.filter(|end| *end <= s.len) else { return Ok(None) };
        let windows = Some(WindowFile { from: from.clone(), offset: s.offset, len: s.len });
        Ok(CheckpointTable::open(part(end)?).map(|table| CheckpointTable { windows, ..table }))
    }

    /// Encodes the checkpoints of a scan.
    ///
    /// # Errors
    /// There is not enough memory.
    #[expect(clippy::arithmetic_side_effects, reason = "the windows are in memory")]
    pub(super) fn build(points: Checkpoints, spacing: u64) -> Result<CheckpointTable> {
        let count = points.len();
        let mut window_at = HEAD + ENTRY * count;
        let all = || (0..count).filter_map(|k| points.get(k));
        let mut bytes = room(window_at + all().map(|point| point.window.len()).sum::<usize>())?;
        bytes.extend_from_slice(&(count as u64).to_le_bytes());
        bytes.extend_from_slice(&spacing.to_le_bytes());
        for Checkpoint { out, bit, window } in all() {
            let mut entry = Vec::with_capacity(ENTRY);
            for field in [out, bit, window_at as u64] {
                entry.extend_from_slice(&field.to_le_bytes());
            }
            entry.extend_from_slice(&(window.len() as u32).to_le_bytes());
            let crc = crc32c_append(crc32c(&entry), window);
            bytes.extend_from_slice(&entry);
            bytes.extend_from_slice(&crc.to_le_bytes());
            window_at += window.len();
        }
        // Each window is freed when it is copied.
        points.into_windows().for_each(|window| bytes.extend_from_slice(&window));
        Ok(CheckpointTable { bytes: Region::from(bytes), count, windows: None })
    }

    /// Returns the bytes of the section that are in memory or mapped.
    pub(super) fn bytes(&self) -> &Region {
        &self.bytes
    }

    /// Returns the number of bytes of the section.
    pub(super) fn section_len(&self) -> u64 {
        self.windows.as_ref().map_or(self.bytes.len() as u64, |windows| windows.len)
    }

    /// Writes the section.
    ///
    /// # Errors
    /// Errors of `w`, and of reading the windows.
    pub(super) fn write_to(&self, w: &mut impl Write) -> Result<()> {
        w.write_all(&self.bytes)?;
        let Some(windows) = &self.windows else { return Ok(()) };
        let mut buf = Vec::new();
        for part in in_steps(self.bytes.len() as u64..windows.len, COPIED) {
            windows.read(part, &mut buf)?;
            w.write_all(&buf)?;
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the offset in the record stream of entry `k`, which is not verified.
    fn out(&self, k: usize) -> Option<u64> {
        u64_at(self.entry(k)?, OUT_AT)
    }

    /// Returns entry `k`, which is not verified. `None` if there is no such entry.
    fn entry(&self, k: usize) -> Option<&[u8]> {
        let start = k.checked_mul(ENTRY)?.checked_add(HEAD)?;
        self.bytes.get(start..start.checked_add(ENTRY)?).filter(|_| k < self.count)
    }

    /// Returns the part of the section that an entry names as its window.
    fn window(entry: &[u8]) -> Option<Range<usize>> {
        let start = usize::try_from(u64_at(entry, WINDOW_AT)?).ok()?;
        Some(start..start.checked_add(usize::try_from(u32_at(entry, LEN_AT)?).ok()?)?)
    }

    /// Returns the part of a stream of `end` bytes between checkpoint `k` and the next one, from entries that
    /// are not verified. `None` if they do not ascend.
    pub(crate) fn segment(&self, k: usize, end: u64) -> Option<Range<u64>> {
        let next = k.checked_add(1)?;
        let segment = self.out(k)?..if next < self.count { self.out(next)? } else { end };
        (segment.start <= segment.end).then_some(segment)
    }

    /// Returns the longest distance of two checkpoints of a stream of `end` bytes, from entries that are not
    /// verified.
    pub(super) fn longest_segment(&self, end: u64) -> Option<u64> {
        let segments = (0..self.count).filter_map(|k| self.segment(k, end));
        segments.filter_map(|segment| segment.end.checked_sub(segment.start)).max()
    }

    /// Returns the last checkpoint at or before `offset`. It is found by entries that are not verified, so
    /// the caller compares it.
    pub(crate) fn find(&self, offset: u64) -> Option<usize> {
        let mut low = 0;
        let mut high = self.count;
        while low < high {
            let middle = low.midpoint(high);
            if self.out(middle)? <= offset {
                low = middle.checked_add(1)?;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// Advises the system to start reading all entries, without the windows, if they are in a mapped file.
    #[expect(clippy::arithmetic_side_effects, reason = "the section has the entries")]
    pub(crate) fn will_need_entries(&self) {
        self.bytes.will_need(0..HEAD + self.count * ENTRY);
    }

    /// Advises the system to start reading the window of checkpoint `k`, if it is in a mapped file.
    pub(crate) fn will_need(&self, k: usize) {
        if self.windows.is_none()
            && let Some(window) = self.entry(k).and_then(CheckpointTable::window)
        {
            self.bytes.will_need(window);
        }
    }

    /// Returns the part of the compressed file that probably holds the stream from checkpoint `k` to the
    /// offset `until`, which is inside the segment of `k`. It is computed from entries that are not verified.
    /// `None` for the last segment.
    pub(crate) fn likely_part(&self, k: usize, until: u64) -> Option<Range<u64>> {
        let bit = |k: usize| u64_at(self.entry(k)?, BIT_AT);
        let next = k.checked_add(1).filter(|&next| next < self.count)?;
        let segment = self.segment(k, u64::MAX)?;
        let start = bit(k)? / 8;
        let end = bit(next)?.div_ceil(8);
        let all = segment.end.checked_sub(segment.start)?;
        let part = until.min(segment.end).checked_sub(segment.start)?;
        let len = u128::from(end.checked_sub(start)?).checked_mul(part.into())?.checked_div(all.into())?;
        // Parts of a segment differ in the ratio of compression, so an eighth is added, and some blocks.
        let len = u64::try_from(len).ok()?;
        let len = len.checked_add(len / 8)?.checked_add(MARGIN)?;
        Some(start..start.checked_add(len)?.min(end))
    }

    /// Returns checkpoint `k`, after verifying its entry and its window. A window that is not in memory is
    /// read into `buf`.
    pub(crate) fn get<'a>(
        &'a self,
        k: usize,
        buf: &'a mut Vec<u8>,
    ) -> Result<Checkpoint<'a>, CheckpointError> {
        let bad = |reason| BadBlock { block: k as u64, reason };
        let entry = self.entry(k).ok_or(bad("there is no such checkpoint"))?;
        let field = |at: usize| u64_at(entry, at).ok_or(bad("a checkpoint is truncated"));
        let out = field(OUT_AT)?;
        let bit = field(BIT_AT)?;
        let crc = u32_at(entry, CRC_AT).ok_or(bad("a checkpoint is truncated"))?;
        let outside = bad("the window of a checkpoint is outside its section");
        let part = CheckpointTable::window(entry).filter(|part| part.len() <= WINDOW).ok_or(outside)?;
        let window = match &self.windows {
            None => self.bytes.get(part).ok_or(outside)?,
            Some(file) => {
                let part = part.start as u64..part.end as u64;
                if part.end > file.len {
                    return Err(outside.into());
                }
                file.read(part, buf).map_err(CheckpointError::Read)?;
                &*buf
            }
        };
        let found = crc32c_append(crc32c(entry.split_at(CRC_AT).0), window);
        if found != crc {
            return Err(bad("the checksum of a checkpoint does not match").into());
        }
        Ok(Checkpoint { out, bit, window })
    }

    /// Returns the number of bytes that follow a checkpoint at least, if another one follows.
    pub(super) fn spacing(&self) -> Option<u64> {
        u64_at(&self.bytes, 8)
    }

    /// Verifies all entries, and that they ascend.
    pub(super) fn verify_all(&self) -> Result<(), CheckpointError> {
        self.each(|_| Ok(()))
    }

    /// Returns all checkpoints, after verifying them.
    pub(super) fn decode(&self) -> Result<Checkpoints, CheckpointError> {
        let mut all = Checkpoints::default();
        self.each(|point| all.add(point).map_err(|e| CheckpointError::Read(e.into())))?;
        Ok(all)
    }

    fn each(
        &self,
        mut f: impl FnMut(Checkpoint<'_>) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        let mut last = None;
        let mut buf = Vec::new();
        for k in 0..self.count {
            let point = self.get(k, &mut buf)?;
            if last.is_some_and(|last| point.out < last) {
                let reason = "checkpoints do not ascend";
                return Err(BadBlock { block: k as u64, reason }.into());
            }
            last = Some(point.out);
            f(point)?;
        }
        Ok(())
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likely_part_ends_at_the_next_checkpoint() {
        let mut points = Checkpoints::default();
        for (out, bit) in [(0, 80), (1 << 20, 8 << 19), (2 << 20, (8 << 20) + 3)] {
            points.add(Checkpoint { out, bit, window: &[] }).unwrap();
        }
        let table = CheckpointTable::build(points, 1 << 20).unwrap();
        let part = |k, until| table.likely_part(k, until);
        assert_eq!(part(0, 0), Some(10..10 + MARGIN));
        assert_eq!(part(0, u64::MAX), Some(10..1 << 19));
        let half = 1 << 18;
        assert_eq!(part(1, 3 << 19), Some(1 << 19..(1 << 19) + half + half / 8 + MARGIN));
        assert_eq!(part(1, 2 << 20), Some(1 << 19..(1 << 20) + 1));
        // The last segment has no end here, and these numbers are no checkpoints.
        assert!([2, 3, usize::MAX].iter().all(|&k| part(k, 9).is_none()));
        [0, 2, 3, usize::MAX].iter().for_each(|&k| table.will_need(k));
    }
}
