//! Records in file order, without an index: plain, gzip and zlib files, standard input, any reader.

use crate::error::{At, CompressionError, Error, Result};
use crate::frame::{self, Event, HEADER_LEN, OVERHEAD, Parser, Torn};
use crate::io::grow_exact;
use crate::io::sniff::{self, SNIFF_LEN};
use crate::io::{Compression, Inflate};
use crate::paths;
use crate::policy::Tail;
use crate::policy::Verify;
use crate::record::{MAX_RECORD, Record};
use std::fmt;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

/// Options of a [`Stream`].
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    compression: Option<Compression>,
    verify: Verify,
    tail: Tail,
    max_record: u64,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            compression: None,
            verify: Verify::default(),
            tail: Tail::default(),
            max_record: MAX_RECORD,
        }
    }
}

impl StreamOptions {
    /// The defaults: compression by content, payloads verified, a torn tail is an error.
    pub fn new() -> StreamOptions {
        StreamOptions::default()
    }

    /// How the file must be compressed. Without this its first bytes tell; its name is never looked at.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> StreamOptions {
        self.compression = Some(compression);
        self
    }

    /// What is checked of each record.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> StreamOptions {
        self.verify = verify;
        self
    }

    /// What bytes after the last whole record mean.
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> StreamOptions {
        self.tail = tail;
        self
    }

    /// Payload bytes of a record, at most; 2^31 - 1 by default, the longest message that protobuf parses. A longer record is
    /// [`ErrorKind::RecordTooLarge`](crate::ErrorKind::RecordTooLarge), before memory is allocated for it.
    #[must_use]
    pub fn max_record(mut self, bytes: u64) -> StreamOptions {
        self.max_record = bytes;
        self
    }

    /// The records of a file.
    ///
    /// # Errors
    /// Those of the system; [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for the address of a store;
    /// [`CompressionError::Mismatch`] if the bytes are not compressed as was said.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Stream> {
        let path = path.as_ref();
        paths::check_local(path)?;
        let file = File::open(path).map_err(|e| Error::from(e).in_file(path))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Error::from(io::Error::from(io::ErrorKind::IsADirectory)).in_file(path));
        }
        self.read(file, path)
    }

    /// The records of any reader, which errors call `name`.
    ///
    /// # Errors
    /// As [`open`](StreamOptions::open).
    pub fn read(&self, reader: impl Read + Send + 'static, name: impl Into<PathBuf>) -> Result<Stream> {
        let name = name.into();
        let first = first_bytes(Box::new(reader)).map_err(|e| Error::from(e).in_file(&name))?;
        let (first, reader) = first;
        let found = sniff::compression(&first);
        let compression = match self.compression {
            // An empty file is an empty stream, whatever its compression.
            Some(named) if named != found && !first.is_empty() => {
                return Err(mismatch(named, found, &first).in_file(&name));
            }
            Some(named) => named,
            None => found,
        };
        let source = Inflate::new(Cursor::new(first.clone()).chain(reader), compression);
        Ok(Stream {
            source,
            first,
            name,
            options: *self,
            compression,
            buf: Vec::new(),
            start: 0,
            end: 0,
            parser: Parser::whole(self.verify == Verify::Payload, self.max_record),
            more: true,
            ended: false,
            torn: 0,
        })
    }
}

/// The first bytes of a reader, as many as sniffing wants, and the rest of it.
fn first_bytes(mut reader: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut first = Vec::with_capacity(SNIFF_LEN);
    reader.by_ref().take(SNIFF_LEN as u64).read_to_end(&mut first)?;
    Ok((first, reader))
}

#[cold]
fn mismatch(named: Compression, found: Compression, first: &[u8]) -> Error {
    let found = match (found, sniff::looks_like(first)) {
        (Compression::None, Some(looks)) => looks.what,
        (Compression::None, None) => "an uncompressed file",
        (compressed, _) => compressed.name(),
    };
    let expected = match named {
        Compression::None => "an uncompressed file",
        compressed => compressed.name(),
    };
    CompressionError::Mismatch { expected, found }.into()
}

/// The reader, its first bytes put back.
type StreamSource = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// Bytes the buffer begins with, and by which it grows at least.
const BUFFER: usize = 256 << 10;

/// Records in file order. Holds one buffer, as large as the largest record met, and grows it only as bytes arrive: a length that
/// lies costs nothing.
///
/// Records before damage are delivered, then the error, once; after it the stream has ended.
///
/// ```
/// use tfseek::{frame::put_record, stream::StreamOptions};
/// let mut file = Vec::new();
/// put_record(&mut file, b"one")?;
/// put_record(&mut file, b"two")?;
/// let mut stream = StreamOptions::new().read(std::io::Cursor::new(file), "memory")?;
/// let mut payloads = Vec::new();
/// while let Some(record) = stream.next()? {
///     payloads.push(record.payload().to_vec());
/// }
/// assert_eq!(payloads, [b"one", b"two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stream {
    source: Inflate<StreamSource>,
    /// The first bytes of the file, for a hint if its first record is none.
    first: Vec<u8>,
    name: PathBuf,
    options: StreamOptions,
    compression: Compression,
    /// `buf[start..end]` was read and not handed out.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Stands at `buf[start]`.
    parser: Parser,
    /// The reader has not ended yet.
    more: bool,
    ended: bool,
    torn: u64,
}

impl Stream {
    /// The records of a file, compressed or not.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: impl AsRef<Path>) -> Result<Stream> {
        StreamOptions::new().open(path)
    }

    /// The next record, which lives until the next call; `None` at the end, and ever after an error.
    ///
    /// # Errors
    /// Damage, with path, record and the offset of its header in the record stream; [`ErrorKind::NotTfRecord`](crate::ErrorKind::NotTfRecord) where
    /// the first bytes are those of something else; those of the reader.
    #[allow(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if self.ended {
            return Ok(None);
        }
        let (i, offset) = (self.parser.records(), self.parser.offset());
        match self.step() {
            Ok(Some(len)) => {
                let body = self.start + HEADER_LEN;
                self.start += len + OVERHEAD;
                Ok(Some(Record::new(&self.buf[body..body + len], At::new(&self.name, i, offset))))
            }
            Ok(None) => {
                self.ended = true;
                Ok(None)
            }
            Err(e) => {
                self.ended = true;
                let e = e.at(At::new(&self.name, i, offset));
                // Of a compressed file what it holds is looked at.
                let inflated = self.buf.get(self.start..self.end).unwrap_or_default();
                Err(match self.compression {
                    Compression::None => sniff::explain(e, &self.first),
                    _ => sniff::explain(e, inflated.get(..SNIFF_LEN).unwrap_or(inflated)),
                })
            }
        }
    }

    /// Brings a whole record to `buf[start..]` and checks it; its payload's length.
    fn step(&mut self) -> Result<Option<usize>> {
        loop {
            let bytes = self.buf.get(self.start..self.end).unwrap_or_default();
            match self.parser.step(bytes, self.more)? {
                Event::Record(taken) => return Ok(Some(taken - OVERHEAD)),
                // A record that does not fit into memory does not fit into the file either, unless memory is very small.
                Event::Need(need) => self.more = self.fill(usize::try_from(need).unwrap_or(usize::MAX))?,
                Event::Torn(Torn { need, have }) if self.options.tail == Tail::Strict => {
                    return Err(frame::truncated(need, have));
                }
                Event::Torn(Torn { have, .. }) => {
                    self.torn = have;
                    return Ok(None);
                }
                // Only where records are passed.
                Event::End | Event::Consumed(_) | Event::Skip(_) => return Ok(None),
            }
        }
    }

    /// Reads until `need` bytes stand at `start`; false if the stream ends before.
    fn fill(&mut self, need: usize) -> Result<bool> {
        while self.end - self.start < need {
            if self.end == self.buf.len() {
                self.make_room(need)?;
            }
            match self.source.read(&mut self.buf[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(true)
    }

    /// Moves what is left to the front, or doubles the buffer: never by what a length claims, only by what has arrived.
    fn make_room(&mut self, need: usize) -> Result<()> {
        let have = self.end - self.start;
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        let len = (2 * have).clamp(BUFFER, need.max(BUFFER));
        if len > self.buf.len() {
            grow_exact(&mut self.buf, len)?;
        }
        Ok(())
    }

    /// Records handed out so far.
    pub fn records_read(&self) -> u64 {
        self.parser.records()
    }

    /// Where the next record begins in the record stream, or the damaged one.
    pub fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// Returns the path, or the name that the caller gave.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Bytes after the last whole record, once the end was reached with [`Tail::Tolerate`]; else 0.
    pub fn torn_tail_bytes(&self) -> u64 {
        self.torn
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stream { name, compression, parser, .. } = self;
        let (record, offset) = (parser.records(), parser.offset());
        write!(f, "Stream({}, {compression}, record {record} at byte {offset})", name.display())
    }
}
