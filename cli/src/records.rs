//! The records of one file in order, and what kind they are.

use crate::args::KindChoice;
use crate::exit::{Failure, Outcome};
use crate::kind;
use crate::output::Item;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use tfseek::example::MessageKind;
use tfseek::stream::Stream;
use tfseek::{At, Error, Record};

/// Standard input, as a path.
pub(crate) const STDIN: &str = "-";

/// What standard input is called in messages.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// The records of a stream. The first few are kept, for the guess, until they are asked for.
pub(crate) struct Records {
    stream: Stream,
    ahead: VecDeque<(Vec<u8>, u64, u64)>,
    /// What ended the look ahead; its turn comes after the records before it.
    error: Option<Error>,
    current: Option<(Vec<u8>, u64, u64)>,
    path: PathBuf,
    pub(crate) kind: MessageKind,
    pub(crate) strict: bool,
}

impl Records {
    /// Opens a file, or standard input, and looks at its first records if the kind is to be guessed.
    pub(crate) fn open(path: &Path, choice: KindChoice) -> tfseek::Result<Records> {
        let stream = match path == Path::new(STDIN) {
            true => Stream::new(std::io::stdin(), STDIN_NAME)?,
            false => Stream::open(path)?,
        };
        let named = choice.named();
        let mut records = Records {
            stream,
            ahead: VecDeque::new(),
            error: None,
            current: None,
            path: name(path),
            kind: named.unwrap_or(MessageKind::Other),
            strict: named.is_some(),
        };
        if named.is_none() {
            records.look();
            records.kind =
                MessageKind::guess_all(records.ahead.iter().map(|(payload, ..)| payload.as_slice()));
        }
        Ok(records)
    }

    fn look(&mut self) {
        let (most, most_bytes) = kind::LOOK;
        let mut bytes = 0;
        while self.ahead.len() < most && bytes < most_bytes {
            match self.stream.next() {
                Ok(Some(record)) => {
                    let at = record.at();
                    bytes += record.payload().len();
                    let place = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
                    self.ahead.push_back((record.payload().to_vec(), place.0, place.1));
                }
                Ok(None) => return,
                Err(e) => {
                    self.error = Some(e);
                    return;
                }
            }
        }
    }

    /// `none`, `gzip` or `zlib`.
    pub(crate) fn compression(&self) -> &'static str {
        self.stream.compression().name()
    }

    /// Bytes of the record stream that were read.
    pub(crate) fn position(&self) -> u64 {
        self.stream.offset()
    }

    /// The next record; damage at its place, after the records before it.
    pub(crate) fn next(&mut self) -> tfseek::Result<Option<Item<'_>>> {
        let (kind, strict) = (self.kind, self.strict);
        let item = |record: Record<'_>| record.at().record.unwrap_or(0);
        if let Some(first) = self.ahead.pop_front() {
            let (payload, i, offset) = self.current.insert(first);
            let record = Record::new(payload, At::new(&self.path, *i, *offset));
            return Ok(Some(Item { record, index: *i, kind, strict, counted_over_many: false }));
        }
        if let Some(e) = self.error.take() {
            return Err(e);
        }
        let record = self.stream.next()?;
        Ok(record.map(|record| Item { record, index: item(record), kind, strict, counted_over_many: false }))
    }
}

/// A path as messages name it.
pub(crate) fn name(path: &Path) -> PathBuf {
    if path == Path::new(STDIN) { STDIN_NAME.into() } else { path.into() }
}

/// The files of a verb that reads in order; `-` alone is standard input.
pub(crate) fn resolve(paths: &crate::args::Paths) -> Outcome<Vec<PathBuf>> {
    let is_stdin = |p: &&PathBuf| p.as_path() == Path::new(STDIN);
    match paths.paths.iter().filter(is_stdin).count() {
        0 => Ok(tfseek::paths::resolve(&paths.paths, paths.allow_missing)?),
        1 if paths.paths.len() == 1 => Ok(paths.paths.clone()),
        _ => Err(Failure::usage("`-` stands alone")),
    }
}
