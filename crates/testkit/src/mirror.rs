//! A mirror of a TFRecord file that changes: its bytes, and which records were written where.

use super::rng::Rng;
use std::ops::Range;
use std::rc::Rc;
use tfseek::frame::put_record;
use tfseek::{Damage, ExampleBuilder, Tail};

/// Bytes of the padding of a large record, for which there may be no memory.
pub const LARGE: usize = 5 << 18;
const HEADER: usize = 12;
const FOOTER: usize = 4;
/// Damage is in these first bytes only: the fingerprints of an index do not cover the middle of a large file.
const COVERED: usize = 60_000;

/// A record as it was written: the number of its file, the version of that file, and its own number.
#[derive(Clone)]
pub struct Written {
    pub start: usize,
    pub tag: [i64; 3],
    pad: usize,
    pub framed: Rc<[u8]>,
}

impl Written {
    fn new(start: usize, tag: [i64; 3], pad: usize) -> Written {
        let [file, version, n] = tag;
        let filler = vec![(file * 31 + version * 7 + n) as u8; pad];
        let example = ExampleBuilder::new().int64("file", [file]).int64("version", [version]);
        let example = example.int64("n", [n]).bytes("pad", [filler]);
        let mut framed = Vec::new();
        put_record(&mut framed, &example.encode().unwrap()).unwrap();
        Written { start, tag, pad, framed: framed.into() }
    }

    pub fn end(&self) -> usize {
        self.start + self.framed.len()
    }

    pub fn payload(&self) -> &[u8] {
        &self.framed[HEADER..self.framed.len() - FOOTER]
    }

    pub fn is_large(&self) -> bool {
        self.pad == LARGE
    }
}

/// The state of a record at the end of what a reader has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    Sound,
    Damaged,
    /// The file ends inside the record.
    Torn,
    /// The file ends before it.
    Nothing,
}

/// A file, under whatever name.
#[derive(Default)]
pub struct Inode {
    pub bytes: Vec<u8>,
    /// The records that are there, one after the other. Of the last one some bytes may be missing.
    pub written: Vec<Written>,
    /// All records that were ever there.
    all: Vec<Written>,
    number: i64,
    version: i64,
    /// Changes of the bytes other than by appending.
    pub edits: u32,
    /// All changes, also of the time.
    pub changes: u32,
}

impl Inode {
    fn records(&self, from: usize, start: usize, pads: &[usize]) -> Vec<Written> {
        let mut at = start;
        let record = |(k, &pad): (usize, &usize)| {
            let record = Written::new(at, [self.number, self.version, (from + k) as i64], pad);
            at = record.end();
            record
        };
        pads.iter().enumerate().map(record).collect()
    }

    /// Returns the mirror of a new file, with records whose paddings have these lengths.
    pub fn new(number: usize, pads: &[usize]) -> Inode {
        let mut inode = Inode { number: number as i64, ..Inode::default() };
        inode.set(pads);
        inode
    }

    pub fn pads(&self) -> Vec<usize> {
        self.written.iter().map(|record| record.pad).collect()
    }

    fn set(&mut self, pads: &[usize]) {
        self.written = self.records(0, 0, pads);
        self.bytes = self.written.iter().flat_map(|record| record.framed.iter().copied()).collect();
        self.all.extend(self.written.iter().cloned());
    }

    /// Changes the bytes of the file as a writer, a crash or a bad disk does. `pads`: of new records.
    pub fn change(&mut self, rng: &mut Rng, pads: &[usize]) -> String {
        let len = self.bytes.len();
        let choice = rng.below(12);
        if choice < 5 || len == 0 {
            return self.append(rng, pads);
        }
        self.edits += 1;
        let at = rng.below(len.min(COVERED));
        match choice {
            5 | 6 => {
                self.version += 1;
                let same = self.pads();
                self.set(if choice == 5 { pads } else { &same });
                format!("{} records in place", self.written.len())
            }
            7 => {
                self.version += 1;
                self.bytes.truncate(at);
                self.written.retain(|record| record.start < at);
                format!("cut to {at} bytes")
            }
            8 => {
                let end = len.min(at + 1 + rng.below(40));
                self.bytes[at..end].fill(0);
                format!("zeros in bytes {at} to {end}")
            }
            _ => {
                self.bytes[at] ^= 1 << rng.below(8);
                format!("byte {at} damaged")
            }
        }
    }

    /// Appends as a live writer does: the rest of a record, or more records, the last one maybe in part.
    fn append(&mut self, rng: &mut Rng, pads: &[usize]) -> String {
        let have = self.bytes.len();
        let end = |inode: &Inode| inode.written.last().map_or(0, Written::end);
        if have == end(self) {
            let new = self.records(self.written.len(), have, &pads[..pads.len().min(3)]);
            self.all.extend(new.iter().cloned());
            self.written.extend(new);
        }
        let missing = end(self) - have;
        let len = if missing > 0 && rng.chance(96) { 1 + rng.below(missing) } else { missing };
        let all = self.written.iter().flat_map(|record| record.framed.iter().copied());
        let bytes: Vec<u8> = all.skip(have).take(len).collect();
        self.bytes.extend(bytes);
        self.written.retain(|record| record.start < have + len);
        format!("{len} of {missing} bytes appended, {} records", self.written.len())
    }

    /// Returns the state of the record with this ordinal.
    pub fn found(&self, ordinal: usize) -> RecordState {
        let Some(record) = self.written.get(ordinal) else { return RecordState::Nothing };
        let here = &self.bytes[record.start..self.bytes.len().min(record.end())];
        let header = here.get(..HEADER);
        if here == &*record.framed {
            RecordState::Sound
        } else if here.len() == record.framed.len() || header.is_some_and(|h| *h != record.framed[..HEADER]) {
            RecordState::Damaged
        } else {
            RecordState::Torn
        }
    }

    /// Returns the sound record that is now where another one was, with its length.
    pub fn sound_at(&self, was: &Written) -> Option<&Written> {
        let same = |now: &&Written| now.start == was.start && now.framed.len() == was.framed.len();
        let ordinal = self.written.iter().position(|now| same(&now))?;
        (self.found(ordinal) == RecordState::Sound).then(|| &self.written[ordinal])
    }

    /// Returns true if the payload was ever that of a record of this file.
    pub fn has_written(&self, payload: &[u8]) -> bool {
        self.all.iter().any(|record| record.payload() == payload)
    }

    pub fn has_large(&self) -> bool {
        self.written.iter().any(Written::is_large)
    }
}

/// The records that a scan finds in a file.
#[derive(Clone)]
pub struct ScannedFile {
    pub records: Rc<[Written]>,
    /// End of the last one.
    pub end: usize,
    /// There is damage other than a torn tail.
    pub has_gaps: bool,
    is_torn: bool,
    /// The ranges without a record.
    pub left: Vec<Range<u64>>,
}

impl ScannedFile {
    /// Scans a file as an index does, by comparing it with what was written. `None`: an error of damage.
    pub fn of(inode: &Inode, damage: Damage, tail: Tail) -> Option<ScannedFile> {
        let states: Vec<RecordState> = (0..inode.written.len()).map(|k| inode.found(k)).collect();
        let is_whole = |record: &Written| record.end() <= inode.bytes.len();
        let is_kept = |(record, state): &(&Written, &RecordState)| match damage {
            Damage::Skip => **state == RecordState::Sound,
            _ => is_whole(record),
        };
        // Less than a header is a torn tail, whatever it is.
        let header = |record: &Written| {
            inode.bytes[record.start..].get(..HEADER).is_none_or(|header| *header == record.framed[..HEADER])
        };
        let is_torn = states.last() == Some(&RecordState::Torn);
        let has_gaps = states.contains(&RecordState::Damaged);
        let kept = inode.written.iter().zip(&states).filter(is_kept).map(|(record, _)| record.clone());
        let records: Rc<[Written]> = kept.collect();
        let refused = match damage {
            Damage::Skip => records.is_empty() && has_gaps,
            _ => !inode.written.iter().all(header) || (is_torn && tail == Tail::Strict),
        };
        let mut left = Vec::new();
        let mut at = 0;
        for record in records.iter() {
            left.extend((at < record.start).then_some(at as u64..record.start as u64));
            at = record.end();
        }
        left.extend((at < inode.bytes.len()).then_some(at as u64..inode.bytes.len() as u64));
        let has_gaps = has_gaps && damage == Damage::Skip;
        (!refused).then_some(ScannedFile { records, end: at, has_gaps, is_torn, left })
    }

    /// Returns true if a reader says what was left out as damage.
    pub fn warns(&self, damage: Damage, tail: Tail) -> bool {
        damage == Damage::Skip && (self.has_gaps || (self.is_torn && tail == Tail::Strict))
    }
}
