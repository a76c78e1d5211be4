//! Parts of payloads that are borrowed or read, and verified.

use crate::keys::{EpisodeKeys, wrong};
use crate::table::{CheckedBytes, EpisodeTable, ListForm};
use std::ops::Range;
use tfseek::crc::crc32c;
use tfseek::dataset::StoredRecord;
use tfseek::error::{Error, Result};
use tfseek::policy::Verify;

/// Bytes between two parts of a payload that are read together from a file.
const FILE_GAP: u32 = 512;
/// Most bytes between two parts of a payload that are read together from a store. All such bytes are at most
/// a fifth of those that are needed, so that small windows do not fetch what is around them. In one window
/// they may be [`HEADERS`], as the headers of a request take as much.
const OBJECT_GAP: u32 = 64 << 10;
const HEADERS: u64 = 1 << 10;

/// The bytes of a payload that are needed, and those that were read.
#[derive(Debug, Default)]
pub(crate) struct PayloadParts {
    checked: Vec<CheckedBytes>,
    /// The whole payload is needed, because a list is not one slice.
    whole: bool,
    /// The parts that were read, ascending: their start, and their bytes in `bytes`.
    read: Vec<(u32, Range<usize>)>,
    bytes: Vec<u8>,
}

/// The bytes of a payload: all, or parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PayloadView<'a> {
    Whole(&'a [u8]),
    Parts(&'a PayloadParts),
}

impl<'a> PayloadView<'a> {
    /// Returns a part of the payload. `None` if it was not read.
    pub(crate) fn get(self, part: Range<u32>) -> Option<&'a [u8]> {
        match self {
            PayloadView::Whole(payload) => payload.get(part.start as usize..part.end as usize),
            PayloadView::Parts(parts) => part_of(&parts.read, &parts.bytes, part),
        }
    }

    /// Returns the whole payload, if it was read.
    pub(crate) fn whole(self) -> Option<&'a [u8]> {
        match self {
            PayloadView::Whole(payload) => Some(payload),
            PayloadView::Parts(_) => None,
        }
    }
}

impl PayloadParts {
    /// Forgets the parts of an earlier payload.
    pub(crate) fn clear(&mut self) {
        let PayloadParts { checked, whole, read, bytes } = self;
        checked.clear();
        read.clear();
        bytes.clear();
        *whole = false;
    }

    /// Adds the bytes of a row, or of the whole list if its rows are found by reading it.
    pub(crate) fn need_row(&mut self, table: &EpisodeTable, key: usize, step: u32) {
        self.whole |= table.place(key).form == ListForm::Irregular;
        self.checked.extend(table.checked_row(key, step));
    }

    /// Adds the bytes of a list.
    pub(crate) fn need_list(&mut self, table: &EpisodeTable, key: usize) {
        self.whole |= table.place(key).form == ListForm::Irregular;
        table.checked_list(key, |bytes| self.checked.push(bytes));
    }

    /// Returns the parts to read, ascending, with the bytes between near ones. `None`: the whole payload.
    pub(crate) fn ranges(&mut self, has_objects: bool) -> Option<Vec<Range<u32>>> {
        if self.whole {
            return None;
        }
        self.checked.sort_unstable();
        self.checked.dedup();
        if has_objects {
            let parts = self.checked.iter().map(|bytes| bytes.start..bytes.end);
            return Some(joined(parts.collect(), HEADERS));
        }
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for bytes in &self.checked {
            match ranges.last_mut() {
                Some(last) if bytes.start <= last.end.saturating_add(FILE_GAP) => {
                    last.end = last.end.max(bytes.end)
                }
                _ => ranges.push(bytes.start..bytes.end),
            }
        }
        Some(ranges)
    }

    /// Borrows or reads the bytes that are needed, and verifies them. A record that is read as a whole is
    /// verified by its own checksum.
    ///
    /// # Errors
    /// Errors of reading; [`ErrorKind::Value`](tfseek::ErrorKind::Value) for bytes with another checksum.
    pub(crate) fn load<'a>(
        &'a mut self,
        of: &StoredRecord<'a>,
        keys: &EpisodeKeys,
        has_objects: bool,
        verify: Verify,
        record: &'a mut Vec<u8>,
    ) -> Result<PayloadView<'a>> {
        if self.whole {
            return Ok(PayloadView::Whole(of.read(Verify::Payload, record)?.payload()));
        }
        let borrowed = of.payload()?;
        if borrowed.is_none() {
            let parts = self.ranges(has_objects).unwrap_or_default();
            let PayloadParts { checked, read, bytes, .. } = self;
            read.clear();
            bytes.clear();
            let mut end = 0;
            for part in &parts {
                let start = end;
                end += part.len();
                read.push((part.start, start..end));
            }
            let wrong = |bytes: &[u8]| {
                let is_wrong = |part: &&CheckedBytes| {
                    let found = part_of(read, bytes, part.start..part.end);
                    found.is_some_and(|found| crc32c(found) != part.crc)
                };
                let verified = if verify == Verify::Payload { &**checked } else { &[] };
                verified.iter().find(is_wrong).map(|part| part.start..part.end)
            };
            of.read_parts(&parts, verify, wrong, bytes)?;
        } else if verify == Verify::Payload {
            self.checked.sort_unstable();
            self.checked.dedup();
        }
        let view = match borrowed {
            Some(payload) => PayloadView::Whole(payload),
            None => PayloadView::Parts(self),
        };
        if verify == Verify::Payload {
            for bytes in &self.checked {
                let found = view.get(bytes.start..bytes.end).map(crc32c);
                if found != Some(bytes.crc) {
                    return Err(corrupt(bytes, found, keys).at(of.at));
                }
            }
        }
        Ok(view)
    }
}

/// Returns a part of a payload from the parts that were read: their starts, and their places in `bytes`.
fn part_of<'a>(read: &[(u32, Range<usize>)], bytes: &'a [u8], part: Range<u32>) -> Option<&'a [u8]> {
    let k = read.partition_point(|(start, _)| *start <= part.start).checked_sub(1)?;
    let (start, place) = read.get(k)?;
    let from = part.start.checked_sub(*start)? as usize;
    let to = part.end.checked_sub(*start)? as usize;
    bytes.get(place.clone())?.get(from..to)
}

/// Joins ranges of an object for requests: those that touch, and others over the smallest gaps, of `least`
/// bytes together or more. Returns them ascending.
pub(crate) fn joined(mut ranges: Vec<Range<u32>>, least: u64) -> Vec<Range<u32>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut united: Vec<Range<u32>> = Vec::new();
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    let own: u64 = united.iter().map(|range| range.len() as u64).sum();
    let after = united.iter().skip(1).zip(&united);
    let gaps = after.map(|(next, range)| next.start - range.end);
    let mut smallest: Vec<(u32, usize)> = gaps.zip(1..).filter(|(gap, _)| *gap <= OBJECT_GAP).collect();
    smallest.sort_unstable();
    let mut left = least.max(own / 5);
    smallest.retain(|(gap, _)| {
        let fits = u64::from(*gap) <= left;
        left = if fits { left - u64::from(*gap) } else { 0 };
        fits
    });
    let mut over: Vec<usize> = smallest.into_iter().map(|(_, k)| k).collect();
    over.sort_unstable();
    let mut all: Vec<Range<u32>> = Vec::new();
    for (k, range) in united.into_iter().enumerate() {
        match all.last_mut() {
            Some(last) if over.binary_search(&k).is_ok() => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

#[cold]
fn corrupt(bytes: &CheckedBytes, found: Option<u32>, keys: &EpisodeKeys) -> Error {
    let CheckedBytes { start, crc, key, steps: (first, last), .. } = *bytes;
    let steps = if first == last { format!("step {first}") } else { format!("steps {first} to {last}") };
    let name = keys.all().get(usize::from(key)).map_or("", |key| &*key.name);
    let reason = match found {
        Some(found) => {
            format!("{steps} at payload byte {start}: crc32c: expected {crc:#010x}, found {found:#010x}")
        }
        None => format!("{steps}: expected bytes at payload byte {start}, found the end of the payload"),
    };
    wrong(reason).feature(name.as_bytes())
}
