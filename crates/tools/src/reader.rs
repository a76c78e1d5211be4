//! Records of one file in order, with the option to go on after damage.

use crate::KindedStream;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tfseek::example::MessageKind;
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::stream::{Stream, StreamOptions};
use tfseek::{At, Compression, Error, ErrorKind, Record, Result, Warning};

/// The records of a file in order. After a damaged payload of a plain file, reading can go on with the next record.
pub struct SkippingReader {
    stream: KindedStream,
    /// The name in errors.
    path: PathBuf,
    /// The file to open again after damage. `None` for a pipe.
    file: Option<PathBuf>,
    options: StreamOptions,
    kind: Option<MessageKind>,
    /// Record number and offset in the file of the stream's start. Not 0 after a damaged record was skipped.
    start: (u64, u64),
    /// No record has been returned.
    is_first: bool,
}

impl SkippingReader {
    /// Reads a stream. After damage `options` apply to the rest of `file`, the regular file of the stream, if it is one. Without a kind
    /// the first records are read to guess it.
    pub fn new(
        stream: Stream,
        file: Option<&Path>,
        options: StreamOptions,
        kind: Option<MessageKind>,
    ) -> SkippingReader {
        let path = stream.name().to_path_buf();
        let file = file.map(Path::to_path_buf);
        let stream = match kind {
            Some(kind) => KindedStream::new(stream, kind),
            None => KindedStream::guess(stream),
        };
        SkippingReader { stream, path, file, options, kind, start: (0, 0), is_first: true }
    }

    /// Returns the kind of the records.
    pub fn kind(&self) -> MessageKind {
        self.stream.kind()
    }

    /// Returns the name of the stream, which errors have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next record. Damage is returned as an error after the records that precede it.
    ///
    /// # Errors
    /// Those of a stream.
    #[allow(
        clippy::should_implement_trait,
        reason = "the record borrows from the reader, as in `Stream::next`"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        let (first, offset) = self.start;
        let record = match self.stream.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(e) if offset == 0 => return Err(e),
            Err(e) => {
                let (i, at) = (e.location().record.unwrap_or(0), e.location().offset.unwrap_or(0));
                return Err(Error::from(e.into_kind()).at(At::new(&self.path, first + i, offset + at)));
            }
        };
        self.is_first = false;
        let at = record.at();
        Ok(Some(match (at.record, at.offset) {
            (Some(i), Some(at)) if offset > 0 => {
                Record::new(record.payload(), At::new(&self.path, first + i, offset + at))
            }
            _ => record,
        }))
    }

    /// Returns what was left out at the end of the file.
    pub fn warnings(&self) -> &[Warning] {
        self.stream.stream().warnings()
    }

    /// Returns the compression of the stream.
    pub fn compression(&self) -> Compression {
        self.stream.stream().compression()
    }

    /// Returns the number of records, with those that were skipped, if the file was read to its end.
    pub fn total(&self) -> Option<u64> {
        self.stream.total().map(|n| self.start.0 + n)
    }

    /// Returns true if [`skip_damaged`](SkippingReader::skip_damaged) can find the record after a damaged payload.
    pub fn can_skip(&self) -> bool {
        self.file.is_some() && self.compression() == Compression::None
    }

    /// Continues after the record of an error. Returns false if the start of the next record is not known: the length is damaged, or
    /// the file is compressed or a pipe.
    ///
    /// # Errors
    /// I/O errors.
    pub fn skip_damaged(&mut self, e: &Error) -> Result<bool> {
        let (Some(i), Some(offset)) = (e.location().record, e.location().offset) else { return Ok(false) };
        let Some(path) = self.file.as_deref().filter(|_| self.can_skip()) else { return Ok(false) };
        if !matches!(e.kind(), ErrorKind::CorruptData { .. }) {
            return Ok(false);
        }
        let in_file = |e: io::Error| Error::from(e).in_file(path);
        let mut file = File::open(path).map_err(in_file)?;
        file.seek(SeekFrom::Start(offset)).map_err(in_file)?;
        let mut len = [0; 8];
        file.read_exact(&mut len).map_err(in_file)?;
        let record_len = u64::from_le_bytes(len).checked_add(OVERHEAD as u64);
        let Some(next) = record_len.and_then(|len| offset.checked_add(len)) else { return Ok(false) };
        file.seek(SeekFrom::Start(next)).map_err(in_file)?;
        // The stream starts with an empty record, in place of the damaged one. The compression is detected from its first bytes, and
        // those of a later record may be equal to those of a gzip file.
        let mut empty = Vec::new();
        put_record(&mut empty, b"").map_err(in_file)?;
        let mut stream = self.options.read(io::Cursor::new(empty).chain(file), path)?;
        stream.next()?;
        self.start = (i, next - OVERHEAD as u64);
        self.stream = match self.kind {
            None if self.is_first => KindedStream::guess(stream),
            _ => KindedStream::new(stream, self.stream.kind()),
        };
        Ok(true)
    }
}
