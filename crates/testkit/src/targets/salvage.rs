//! Salvage of damaged record streams.

use super::script::Script;
use crate::twin::{self, Frame};
use std::io;
use std::ops::Range;
use tfseek::crc::masked;
use tfseek::frame::{HEADER_LEN, OVERHEAD, put_record};
use tfseek::io::{Fetched, SalvageItem, SalvageReader, Source, Stamp};

/// Tests salvage. After a first byte 0 the rest is the stream. Otherwise the rest describes records, some of
/// which contain records, and edits.
///
/// The pieces cover the stream, all records are sound, the result does not depend on how the bytes arrive,
/// and each sound record is found unless a sound header before it claims its bytes.
pub fn salvage(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode == 0 {
        drop(check(rest, u64::MAX));
        return;
    }
    let mut script = Script(rest);
    let (mut file, mut starts) = (Vec::new(), Vec::new());
    let nested = mode & 8 != 0;
    for _ in 0..1 + mode % 8 {
        let len = usize::from(script.u8());
        let mut payload = script.take(len % 80).to_vec();
        if nested && len % 3 == 0 {
            let inner = std::mem::take(&mut payload);
            inner.chunks(20).for_each(|part| put_record(&mut payload, part).unwrap());
        }
        starts.push(file.len());
        put_record(&mut file, &payload).unwrap();
    }
    let (sound, flips) = (file.clone(), mode & 16 != 0);
    if flips {
        while !script.is_empty() {
            let (at, bit) = (script.u16() % file.len(), script.u8() % 8);
            file[at] ^= 1 << bit;
        }
    } else {
        script.edit(&mut file);
    }
    let max = if mode & 32 != 0 { 50 } else { u64::MAX };
    let found = check(&file, max);
    if flips && !nested && max > 50 {
        check_flipped(&sound, &file, &starts, &found);
    }
}

/// Pieces of a stream: the starts of its sound records with their ordinals, and the gaps.
#[derive(Debug, Default, PartialEq)]
struct Pieces {
    records: Vec<(usize, Option<u64>)>,
    gaps: Vec<(usize, usize)>,
}

/// Checks the pieces of a stream, and returns them.
fn check(file: &[u8], max: u64) -> Pieces {
    let found = pieces(file, max, usize::MAX);
    for chunk in [1, 7, 64] {
        let other = pieces(file, max, chunk);
        let starts = |pieces: &Pieces| pieces.records.iter().map(|record| record.0).collect::<Vec<_>>();
        assert_eq!((starts(&other), &other.gaps), (starts(&found), &found.gaps), "{chunk} bytes at a time");
    }
    let mut claimed = 0;
    for (start, end) in sound_headers(file, max) {
        let record =
            file.get(start..end).is_some_and(|record| matches!(twin::frames(record)[..], [Frame::Record(_)]));
        if record && start >= claimed {
            assert!(found.records.iter().any(|found| found.0 == start), "the record at {start} is not found");
        }
        claimed = claimed.max(end);
    }
    found
}

/// Returns the starts and ends of all records with a sound header.
fn sound_headers(file: &[u8], max: u64) -> Vec<(usize, usize)> {
    let headers = file.windows(HEADER_LEN).enumerate().filter_map(|(start, header)| {
        let len = u64::from_le_bytes(*header.first_chunk()?);
        let sound = len <= max && masked(&len.to_le_bytes()) == u32::from_le_bytes(*header.last_chunk()?);
        sound.then(|| {
            (start, start.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)).saturating_add(OVERHEAD))
        })
    });
    headers.collect()
}

/// A record without a payload.
const EMPTY_RECORD: [u8; OVERHEAD] = [0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2];

/// Bytes of which a read returns at most a chunk.
#[derive(Debug)]
struct Chunks {
    bytes: Vec<u8>,
    chunk: usize,
}

impl Source for Chunks {
    fn name(&self) -> &str {
        ""
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn stamp(&self) -> tfseek::Result<Stamp> {
        Ok(Stamp::new(self.len()))
    }

    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> tfseek::Result<Fetched> {
        self.bytes.as_slice().fetch(range, buf)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = buf.len().min(self.chunk);
        self.bytes.as_slice().read_at(&mut buf[..len], offset)
    }
}

/// Salvages a stream that arrives in chunks. An empty record before it shows that it is not compressed.
fn pieces(file: &[u8], max: u64, chunk: usize) -> Pieces {
    let source = Chunks { bytes: [&EMPTY_RECORD[..], file].concat(), chunk };
    let mut reader = SalvageReader::new(&source, max).unwrap();
    let mut pieces = Pieces::default();
    let mut end = 0;
    while let Some(item) = reader.next().unwrap() {
        let start = end;
        match item {
            SalvageItem::Record { offset, record, bytes } => {
                end += bytes.len();
                assert_eq!((offset as usize, bytes), (start, &source.bytes[start..end]));
                let frames = twin::frames(bytes);
                assert!(matches!(frames[..], [Frame::Record(_)]), "{frames:?}");
                assert!((bytes.len() - OVERHEAD) as u64 <= max);
                pieces.records.push((start, record));
            }
            SalvageItem::Damage { offset, record, bytes, error } => {
                end += bytes.len();
                assert!(start < end);
                assert_eq!((offset as usize, bytes), (start, &source.bytes[start..end]));
                match pieces.gaps.last_mut().filter(|gap| gap.1 == start) {
                    Some(gap) => {
                        assert!(error.is_none());
                        gap.1 = end;
                    }
                    None => {
                        let error = error.expect("the error of a new gap");
                        let place = (error.location().offset, error.location().record);
                        assert_eq!(place, (Some(offset), record), "{error}");
                        pieces.gaps.push((start, end));
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(end, source.bytes.len());
    assert_eq!(pieces.records.remove(0), (0, Some(0)));
    for (start, record) in &mut pieces.records {
        *start -= EMPTY_RECORD.len();
        *record = record.map(|i| i - 1);
    }
    for (start, end) in &mut pieces.gaps {
        *start -= EMPTY_RECORD.len();
        *end -= EMPTY_RECORD.len();
    }
    pieces
}

/// Checks the pieces of a stream with flipped bits and no other damage: all untouched records are found, and
/// ordinals are right.
fn check_flipped(sound: &[u8], file: &[u8], starts: &[usize], found: &Pieces) {
    // Payloads may contain headers by chance.
    if sound_headers(file, u64::MAX).iter().any(|(start, _)| !starts.contains(start)) {
        return;
    }
    let ends = starts.iter().skip(1).copied().chain([sound.len()]);
    for (i, (&start, end)) in starts.iter().zip(ends).enumerate() {
        let record = found.records.iter().find(|record| record.0 == start);
        if sound[start..end] == file[start..end] {
            assert!(record.is_some(), "record {i}");
        }
        if let Some((_, Some(ordinal))) = record {
            assert_eq!(*ordinal, i as u64);
        }
    }
}
