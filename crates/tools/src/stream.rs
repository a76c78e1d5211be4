//! Streams of records whose kind is known.

use std::collections::VecDeque;
use std::path::PathBuf;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::stream::Stream;
use tfseek::{At, Error, Record, Result};

/// A stream of records of one kind, given or guessed.
///
/// To guess ([`KindGuess`]), the first records are read and kept until they are asked for. An error among them is returned in
/// its turn, after the records before it.
pub struct KindedStream {
    stream: Stream,
    /// Payloads that were read for the guess, each with its number and offset.
    ahead: VecDeque<(Vec<u8>, u64, u64)>,
    /// The error that ended the guess.
    error: Option<Error>,
    current: Option<(Vec<u8>, u64, u64)>,
    path: PathBuf,
    ended: bool,
    kind: MessageKind,
}

impl KindedStream {
    /// Makes a stream of records of this kind; nothing is read.
    pub fn new(stream: Stream, kind: MessageKind) -> KindedStream {
        let path = stream.name().to_path_buf();
        KindedStream { stream, ahead: VecDeque::new(), error: None, current: None, path, ended: false, kind }
    }

    /// Reads the first records of a stream, and guesses the kind of all from them.
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
                    let place = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
                    self.ahead.push_back((record.payload().to_vec(), place.0, place.1));
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
    /// For damage, after the records before it.
    #[allow(clippy::should_implement_trait, reason = "it lends, as `Stream::next` does")]
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

    /// The kind of the records.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// The stream that is read. It may be some records ahead.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the number of records, if the stream was read to its end without an error.
    pub fn total(&self) -> Option<u64> {
        self.ended.then_some(self.stream.records_read())
    }
}
