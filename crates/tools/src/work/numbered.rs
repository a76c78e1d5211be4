//! Records of a dataset, read by number.

use super::units::UnitSource;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::{At, Dataset, ErrorKind, Record, Result, Warning};

/// The records of one shard of a dataset, all or some of them, in ascending order.
///
/// Damaged records are errors, and the records after them follow.
#[derive(Debug)]
pub(crate) struct NumberedRecords {
    dataset: Dataset,
    range: Range<u64>,
    /// The records to read, if not all are read.
    only: Option<std::vec::IntoIter<u64>>,
    kind: MessageKind,
    buf: Vec<u8>,
    path: PathBuf,
    /// Set for an object, whose records are requested together.
    ahead: Option<Box<RequestedRecords>>,
}

/// Bytes of payloads, and number of records, that are requested together.
const REQUESTED_BYTES: u64 = 16 << 20;
const REQUESTED: usize = 4096;

/// Records of an object that were read together.
#[derive(Debug, Default)]
struct RequestedRecords {
    shard: usize,
    /// Ordinal in the index of the record with this number.
    first: (u64, u64),
    /// Records that are not read yet.
    pending: VecDeque<u64>,
    ready: VecDeque<ReadRecord>,
    bytes: Vec<u8>,
}

/// A record in the bytes that were read.
#[derive(Debug)]
struct ReadRecord {
    payload: Range<usize>,
    number: u64,
    ordinal: u64,
    offset: u64,
}

impl RequestedRecords {
    /// Adds records to those that are not read yet, as many as are requested together.
    fn add(&mut self, dataset: &Dataset, mut next: impl FnMut() -> Option<u64>) {
        let (number, ordinal) = self.first;
        let len = |i: u64| {
            let at = ordinal + (i - number);
            // A record without a place is an error when it is read. A larger one fills a request alone.
            let span = dataset.index(self.shard).and_then(|index| index.locate(at));
            span.map_or(0, |span| span.payload_len.min(REQUESTED_BYTES))
        };
        let mut bytes: u64 = self.pending.iter().map(|i| len(*i)).sum();
        while bytes < REQUESTED_BYTES && self.pending.len() < REQUESTED {
            let Some(i) = next() else { return };
            bytes += len(i);
            self.pending.push_back(i);
        }
    }

    /// Reads the records up to an error.
    fn read(&mut self, dataset: &Dataset) {
        let RequestedRecords { pending, ready, bytes, .. } = self;
        bytes.clear();
        let ids: Vec<u64> = pending.iter().copied().collect();
        let mut numbers = ids.iter().copied();
        let add = |record: Record<'_>| {
            let Some(number) = numbers.next() else { return Ok(()) };
            let at = record.at();
            let start = bytes.len();
            bytes.try_reserve(record.payload().len())?;
            bytes.extend_from_slice(record.payload());
            let ordinal = at.record.unwrap_or(0);
            let offset = at.offset.unwrap_or(0);
            ready.push_back(ReadRecord { payload: start..bytes.len(), number, ordinal, offset });
            Ok(())
        };
        // The record of the error is read again, alone.
        let _ = dataset.read_many(&ids, add);
        pending.drain(..ready.len().min(pending.len()));
    }
}

impl NumberedRecords {
    /// Returns all records of shard `s`, none if there is no such shard. Without a kind it is guessed, which
    /// reads the first records.
    pub(crate) fn shard(dataset: &Dataset, s: usize, kind: Option<MessageKind>) -> NumberedRecords {
        let entry = dataset.shards().nth(s);
        let (range, path) = entry.map_or((0..0, PathBuf::new()), |shard| {
            (shard.start..shard.start + shard.len, shard.path.to_path_buf())
        });
        let is_object = dataset.store().is_some() && path.to_str().is_some_and(|path| path.contains("://"));
        let ahead = entry.filter(|_| is_object).map(|entry| {
            Box::new(RequestedRecords {
                shard: s,
                first: (entry.start, entry.first),
                ..RequestedRecords::default()
            })
        });
        let kind = kind.unwrap_or_else(|| guess_kind(dataset, range.clone()));
        NumberedRecords { dataset: dataset.clone(), range, only: None, kind, buf: Vec::new(), path, ahead }
    }

    /// Leaves out the records that are not in `ids`, if there are any. They must be in ascending order.
    #[must_use]
    pub(crate) fn only(mut self, ids: Option<&[u64]>) -> NumberedRecords {
        self.only = ids.map(|ids| {
            let (ids, _) = ids.split_at(ids.partition_point(|i| *i < self.range.end));
            let (_, ids) = ids.split_at(ids.partition_point(|i| *i < self.range.start));
            Vec::from(ids).into_iter()
        });
        self
    }
}

impl UnitSource for NumberedRecords {
    fn next(&mut self) -> Result<Option<(Record<'_>, Option<u64>)>> {
        let NumberedRecords { dataset, range, only, buf, path, ahead, .. } = self;
        let mut next = || match only {
            Some(ids) => ids.next(),
            None => range.next(),
        };
        let number = match ahead {
            None => next(),
            Some(ahead) => {
                if ahead.ready.is_empty() {
                    ahead.add(dataset, next);
                    ahead.read(dataset);
                }
                if let Some(found) = ahead.ready.pop_front() {
                    let at = At::new(path, found.ordinal, found.offset);
                    let payload = ahead.bytes.get(found.payload).unwrap_or_default();
                    return Ok(Some((Record::new(payload, at), Some(found.number))));
                }
                ahead.pending.pop_front()
            }
        };
        let Some(i) = number else { return Ok(None) };
        let record = dataset.read(i, buf)?;
        let at = record.at();
        let at = At::new(path, at.record.unwrap_or(0), at.offset.unwrap_or(0));
        Ok(Some((Record::new(record.payload(), at), Some(i))))
    }

    fn kind(&self) -> MessageKind {
        self.kind
    }

    fn name(&self) -> PathBuf {
        self.path.clone()
    }

    fn total(&self) -> Option<u64> {
        None
    }

    fn skip_damaged(&mut self) -> bool {
        true
    }

    fn warnings(&self) -> Vec<Warning> {
        let all = self.dataset.warnings().iter();
        all.filter(|warning| warning.path() == Some(&self.path)).cloned().collect()
    }
}

/// Guesses the kind of the records of a shard, whose record numbers are `range`, from its first ones. Damage
/// there ends the guess and is not an error.
pub fn guess_kind(dataset: &Dataset, range: Range<u64>) -> MessageKind {
    let mut guess = KindGuess::default();
    let mut next = range.start;
    let mut many = 1u64;
    // Some together: of an object, each takes as long as all of them.
    while next < range.end && !guess.is_complete() {
        let end = (next + many).min(range.end);
        let add = |record: Record<'_>| {
            guess.add(record.payload());
            if guess.is_complete() { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
        };
        if dataset.read_many(&(next..end).collect::<Vec<_>>(), add).is_err() {
            break;
        }
        next = end;
        many *= 2;
    }
    guess.kind()
}
