//! Records of a dataset, read by number.

use super::units::UnitSource;
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
}

impl NumberedRecords {
    /// Returns all records of shard `s`, none if there is no such shard. Without a kind it is guessed, which reads the first records.
    pub(crate) fn shard(dataset: &Dataset, s: usize, kind: Option<MessageKind>) -> NumberedRecords {
        let (range, path) = dataset.shards().nth(s).map_or((0..0, PathBuf::new()), |shard| {
            (shard.start..shard.start.saturating_add(shard.len), shard.path.to_path_buf())
        });
        let kind = kind.unwrap_or_else(|| guess_kind(dataset, range.clone()));
        NumberedRecords { dataset: dataset.clone(), range, only: None, kind, buf: Vec::new(), path }
    }

    /// Leaves out the records that are not in `ids`, which must be in ascending order.
    #[must_use]
    pub(crate) fn only(mut self, ids: &[u64]) -> NumberedRecords {
        let from = ids.partition_point(|i| *i < self.range.start);
        let to = ids.partition_point(|i| *i < self.range.end);
        self.only = Some(ids.get(from..to).unwrap_or_default().to_vec().into_iter());
        self
    }
}

impl UnitSource for NumberedRecords {
    fn next(&mut self) -> Result<Option<(Record<'_>, Option<u64>)>> {
        let NumberedRecords { dataset, range, only, buf, path, .. } = self;
        let next = match only {
            Some(ids) => ids.next(),
            None => range.next(),
        };
        let Some(i) = next else { return Ok(None) };
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

/// Guesses the kind of the records of a shard, whose record numbers are `range`, from its first ones. Damage there ends the guess and is not
/// an error.
pub fn guess_kind(dataset: &Dataset, range: Range<u64>) -> MessageKind {
    let mut guess = KindGuess::default();
    let (mut next, mut many) = (range.start, 1u64);
    // Some together: of an object, each takes as long as all of them.
    while next < range.end && !guess.is_complete() {
        let end = next.saturating_add(many).min(range.end);
        let add = |record: Record<'_>| {
            guess.add(record.payload());
            if guess.is_complete() { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
        };
        if dataset.read_many(&(next..end).collect::<Vec<_>>(), add).is_err() {
            break;
        }
        (next, many) = (end, many.saturating_mul(2));
    }
    guess.kind()
}
