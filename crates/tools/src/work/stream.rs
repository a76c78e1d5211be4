//! Streams of records of one kind.

use crate::memory::copied;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
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
    path: PathBuf,
    ended: bool,
    kind: MessageKind,
}

impl KindedStream {
    /// Creates a stream of records of the given kind. Nothing is read.
    pub fn new(stream: Stream, kind: MessageKind) -> KindedStream {
        let path = stream.name().to_path_buf();
        let ahead = VecDeque::new();
        KindedStream { stream, ahead, error: None, current: None, path, ended: false, kind }
    }

    /// Reads the first records of a stream and guesses the kind of its records from them.
    pub fn guess(stream: Stream) -> KindedStream {
        let mut records = KindedStream::new(stream, MessageKind::Other);
        records.kind = records.read_ahead();
        records
    }

    /// Reads ahead until the kind can be guessed.
    fn read_ahead(&mut self) -> MessageKind {
        let mut guess = KindGuess::default();
        while !guess.is_complete() {
            match self.stream.next() {
                Ok(Some(record)) => {
                    let at = record.at();
                    guess.add(record.payload());
                    let i = at.record.unwrap_or(0);
                    let offset = at.offset.unwrap_or(0);
                    match copied(record.payload()) {
                        Ok(payload) => self.ahead.push_back((payload, i, offset)),
                        Err(e) => {
                            self.error = Some(Error::from(e).at(at));
                            break;
                        }
                    }
                }
                Ok(None) => {
                    self.ended = true;
                    break;
                }
                Err(e) => {
                    self.error = Some(e);
                    break;
                }
            }
        }
        guess.kind()
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
            return Ok(Some(Record::new(payload, At::new(&self.path, *i, *offset))));
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

    /// Returns the name of the stream, which errors have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of records if the stream was read to its end.
    pub fn total(&self) -> Option<u64> {
        self.ended.then_some(self.stream.records_read())
    }
}
