//! Streams of records of one kind.

use crate::memory::copied;
use std::collections::VecDeque;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::stream::Stream;
use tfseek::{At, Error, Record, Result};

/// A stream of records of one kind, which is given or guessed.
///
/// To guess the kind ([`KindGuess`]), the first records are read and kept until they are returned. An error
/// among them is returned after the records that precede it.
pub struct KindedStream {
    stream: Stream,
    /// Payloads that were read for the guess, each with its record number and offset.
    ahead: VecDeque<(Vec<u8>, u64, u64)>,
    /// The error that ended the guess, until it is returned.
    error: Option<Error>,
    current: Option<(Vec<u8>, u64, u64)>,
    ended: bool,
    kind: MessageKind,
}

impl KindedStream {
    /// Creates a stream of records of the given kind, and reads nothing. Without a kind the first records are
    /// read, and the kind is guessed from them.
    pub fn new(stream: Stream, kind: Option<MessageKind>) -> KindedStream {
        let ahead = VecDeque::new();
        let known = kind.unwrap_or(MessageKind::Other);
        let mut records =
            KindedStream { stream, ahead, error: None, current: None, ended: false, kind: known };
        if kind.is_none() {
            let mut guess = KindGuess::default();
            records.error = records.read_ahead(&mut guess).err();
            records.kind = guess.kind();
        }
        records
    }

    /// Reads ahead until the kind can be guessed.
    fn read_ahead(&mut self, guess: &mut KindGuess) -> Result<()> {
        while !guess.is_complete() {
            let Some(record) = self.stream.next()? else {
                self.ended = true;
                break;
            };
            let at = record.at();
            guess.add(record.payload());
            let payload = copied(record.payload()).map_err(|e| Error::from(e).at(at))?;
            self.ahead.push_back((payload, at.record.unwrap_or(0), at.offset.unwrap_or(0)));
        }
        Ok(())
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// # Errors
    /// The stream is damaged. The records before the damage are returned first.
    #[allow(
        clippy::should_implement_trait,
        reason = "the record borrows from the stream, as in `Stream::next`"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if let Some(first) = self.ahead.pop_front() {
            let (payload, i, offset) = self.current.insert(first);
            return Ok(Some(Record::new(payload, At::new(self.stream.name(), *i, *offset))));
        }
        if let Some(e) = self.error.take() {
            return Err(e);
        }
        let record = self.stream.next()?;
        self.ended |= record.is_none();
        Ok(record)
    }

    /// Returns the kind of the records.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns the underlying stream. It may be ahead of this stream by the records that were read for the
    /// guess.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the number of records if the stream was read to its end.
    pub fn total(&self) -> Option<u64> {
        self.ended.then_some(self.stream.records_read())
    }
}
