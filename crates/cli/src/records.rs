//! The records of one file in order, and what kind they are.

use crate::args::{KindArg, Limit};
use crate::exit::{Failure, Outcome};
use crate::output::Item;
use std::path::{Path, PathBuf};
use tfseek::IndexMode;
use tfseek::example::MessageKind;
use tfseek::index::{self, IndexOptions};
use tfseek::stream::Stream;
use tfseek_tools::KindedStream;

/// Standard input, as a path.
pub(crate) const STDIN: &str = "-";

/// What standard input is called in messages.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// The records of a stream, which know their numbers over all files.
pub(crate) struct Records {
    stream: KindedStream,
    /// Records in the files before this one, if that is known.
    before: Option<u64>,
    pub(crate) kind: MessageKind,
    pub(crate) strict: bool,
}

impl Records {
    /// Opens a file, or standard input, and reads its first records if the kind is to be guessed.
    pub(crate) fn open(path: &Path, payloads: KindArg) -> tfseek::Result<Records> {
        let strict = payloads.kind.named().is_some();
        let stream = kinded(path, payloads)?;
        Ok(Records { before: None, kind: stream.kind(), strict, stream })
    }

    /// Sets the number of records in the files before this one.
    pub(crate) fn numbered(self, before: Option<u64>) -> Records {
        Records { before, ..self }
    }

    /// `none`, `gzip` or `zlib`.
    pub(crate) fn compression(&self) -> &'static str {
        self.stream.stream().compression().name()
    }

    /// Bytes of the record stream that were read.
    pub(crate) fn position(&self) -> u64 {
        self.stream.stream().offset()
    }

    /// Returns the number of records, if the file was read to its end (by `next` or to guess the kind).
    pub(crate) fn total(&self) -> Option<u64> {
        self.stream.total()
    }

    /// Returns the next record; damage in its turn, after the records before it.
    pub(crate) fn next(&mut self) -> tfseek::Result<Option<Item<'_>>> {
        let (kind, strict, before) = (self.kind, self.strict, self.before);
        let Some(record) = self.stream.next()? else { return Ok(None) };
        let index = record.at().record.and_then(|i| before.and_then(|before| before.checked_add(i)));
        Ok(Some(Item { record, index, kind, strict }))
    }
}

/// Opens a file, or standard input, as a stream whose kind is the one that the user named, or guessed.
pub(crate) fn kinded(path: &Path, payloads: KindArg) -> tfseek::Result<KindedStream> {
    let stream = stream(path, payloads.limit)?;
    Ok(match payloads.kind.named() {
        Some(kind) => KindedStream::new(stream, kind),
        None => KindedStream::guess(stream),
    })
}

/// Counts the records of the files before the current one, for verbs that read file after file. The count is known after files that
/// were read to their end or have a fresh index; nothing is scanned for it. It is unknown for standard input, which `get` does not take.
#[derive(Debug)]
pub(crate) struct Numbers {
    before: Option<u64>,
    /// The last file that was begun, until its records are counted.
    uncounted: Option<PathBuf>,
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers { before: Some(0), uncounted: None }
    }

    /// Begins a file; returns the number of records in the files before it.
    pub(crate) fn begin(&mut self, path: &Path) -> Option<u64> {
        if let (Some(before), Some(last)) = (self.before, self.uncounted.take()) {
            self.before = indexed(&last).and_then(|n| before.checked_add(n));
        }
        if path == Path::new(STDIN) {
            self.before = None;
        }
        self.uncounted = Some(path.into());
        self.before
    }

    /// Ends the file that was begun; `total` is the number of its records, if they were counted.
    pub(crate) fn end(&mut self, total: Option<u64>) {
        if let Some(n) = total {
            self.before = self.before.and_then(|before| before.checked_add(n));
            self.uncounted = None;
        }
    }
}

/// Returns the number of records by a fresh index, if there is one.
fn indexed(path: &Path) -> Option<u64> {
    let options = IndexOptions::new().mode(IndexMode::Require).jobs(1);
    let opened = index::open_shards(&[path.into()], &options).ok()?;
    opened.indexes.first().map(index::Index::len)
}

/// Returns true for a regular file, which can be opened again and read by number; false for a pipe or a device.
pub(crate) fn is_regular(path: &Path) -> bool {
    path != Path::new(STDIN) && std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Opens a file, or standard input.
pub(crate) fn stream(path: &Path, limit: Limit) -> tfseek::Result<Stream> {
    match path == Path::new(STDIN) {
        true => limit.stream().read(std::io::stdin(), STDIN_NAME),
        false => limit.stream().open(path),
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

/// Resolves paths for a verb that reports on each: if they do not resolve together, each is resolved by itself, to files or an error.
pub(crate) fn resolve_each(paths: &crate::args::Paths) -> Outcome<Vec<Result<PathBuf, (PathBuf, Failure)>>> {
    let failure = match resolve(paths) {
        Ok(all) => return Ok(all.into_iter().map(Ok).collect()),
        Err(failure @ Failure::Error(_)) => failure,
        Err(failure) => return Err(failure),
    };
    let mut each = Vec::new();
    for path in &paths.paths {
        match tfseek::paths::resolve(path, paths.allow_missing) {
            Ok(found) => each.extend(found.into_iter().map(Ok)),
            Err(e) => each.push(Err((path.clone(), e.into()))),
        }
    }
    // A set that lacks shards only when all are taken together.
    if each.iter().all(Result::is_ok) { Err(failure) } else { Ok(each) }
}
