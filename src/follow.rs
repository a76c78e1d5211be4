//! Reading the records of a file that is still being written.

use crate::error::{At, Error, ErrorKind, Result};
use crate::frame::{Event, OVERHEAD, Parser};
use crate::io::sniff;
use crate::io::{FileId, ReadBuffer, check_local, open_regular};
use crate::policy::Verify;
use crate::record::{MAX_RECORD, Record};
use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum number of records before the start. A file has fewer than 2^63 bytes, so ordinals stay below 2^64.
const MAX_BEFORE: u64 = i64::MAX as u64;

/// Options of a [`Follow`].
#[derive(Clone, Copy, Debug)]
pub struct FollowOptions {
    /// The checksums to verify. Default: [`Verify::Payload`].
    pub verify: Verify,
    /// Maximum payload length in bytes. Default: 2^31 - 1, the longest message that protobuf parses. A longer
    /// record is the error [`ErrorKind::RecordTooLarge`], returned before memory is allocated for it.
    pub max_record: u64,
    /// The ordinal of the first record to read, and the offset of its header, as [`Follow::records_read`] and
    /// [`Follow::offset`] returned them earlier. Default: 0 and 0.
    pub start: (u64, u64),
}

impl Default for FollowOptions {
    fn default() -> FollowOptions {
        FollowOptions { verify: Verify::default(), max_record: MAX_RECORD, start: (0, 0) }
    }
}

/// A reader of the records of a file that another process appends to.
///
/// [`next`](Follow::next) returns `None` where no whole record follows *now*. A later call returns the
/// records that were written in the meantime. The caller decides how long it waits between the calls.
///
/// A record that is written in part is not damage: it is returned when its last byte is there. Damage is a
/// header or a payload that is there completely and does not match its checksum. It ends the reading.
///
/// The file must be uncompressed, because the end of a compressed file cannot be read while it is written.
/// Its writer may only append. A file that becomes shorter, is replaced or is removed is the error
/// [`ErrorKind::Changed`], after the records of the old file. A file that becomes shorter and longer again
/// between two calls is detected by its checksums only.
///
/// Memory is bounded as in a [`Stream`](crate::Stream): one buffer, about as large as the largest record.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.tfrecord");
/// use tfseek::{follow::Follow, writer::WriterOptions};
/// let mut writer = WriterOptions { atomic: false, ..WriterOptions::default() }.create(&path)?;
/// let mut follow = Follow::open(&path, &Default::default())?;
/// assert!(follow.next()?.is_none());
/// writer.write(b"one")?;
/// writer.flush()?;
/// assert_eq!(follow.next()?.unwrap().payload(), b"one");
/// assert!(follow.next()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Follow {
    file: File,
    name: PathBuf,
    /// Identity of the open file. `None` on systems where `std` has no inode numbers.
    id: Option<FileId>,
    buffer: ReadBuffer,
    /// Parser of the record stream, positioned at the first byte of the buffer.
    parser: Parser,
    /// True after an error.
    ended: bool,
}

impl Follow {
    /// Opens a regular file.
    ///
    /// # Errors
    /// I/O errors, also for a file that is not regular;
    /// [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for the address of a store;
    /// [`ErrorKind::Changed`] if the file ends before the start; [`ErrorKind::TooMany`] for more than
    /// 2^63 - 1 records before it.
    pub fn open(path: impl AsRef<Path>, options: &FollowOptions) -> Result<Follow> {
        let path = path.as_ref();
        check_local(path)?;
        Follow::open_file(path, options).map_err(|e| e.in_file(path))
    }

    fn open_file(path: &Path, options: &FollowOptions) -> Result<Follow> {
        let file = open_regular(path)?;
        let id = FileId::of_file(&file)?;
        let FollowOptions { verify, max_record, start: (record, offset) } = *options;
        if record > MAX_BEFORE {
            let what = "records before the start";
            return Err(ErrorKind::TooMany { what, found: record.into(), limit: MAX_BEFORE }.into());
        }
        let mut follow = Follow {
            buffer: ReadBuffer::default(),
            parser: Parser::whole_from(verify, max_record, record, offset),
            name: path.into(),
            id,
            ended: false,
            file,
        };
        follow.check_size()?;
        follow.file.seek(SeekFrom::Start(offset))?;
        Ok(follow)
    }

    /// Returns the next record, which is valid until the next call. `None` if the file has no further whole
    /// record now, and after an error.
    ///
    /// # Errors
    /// Damage, with path, record and the offset of its header; [`ErrorKind::Changed`];
    /// [`ErrorKind::Compressed`]; [`ErrorKind::NotTfRecord`] if the first bytes belong to another format; I/O
    /// errors.
    #[allow(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if self.ended {
            return Ok(None);
        }
        let i = self.parser.records();
        let offset = self.parser.offset();
        match self.step() {
            Ok(Some(len)) => {
                let payload = self.buffer.consume_record(len);
                Ok(Some(Record::new(payload, At::new(&self.name, i, offset))))
            }
            Ok(None) => Ok(None),
            Err(e) => {
                self.ended = true;
                if matches!(e.kind(), ErrorKind::Changed { .. }) {
                    return Err(e.in_file(&self.name));
                }
                let e = e.at(At::new(&self.name, i, offset));
                Err(if offset == 0 { self.explain(e) } else { e })
            }
        }
    }

    /// Reads a complete record into the buffer, verifies it, and returns its payload length. `None` if it is
    /// not complete.
    fn step(&mut self) -> Result<Option<usize>> {
        loop {
            match self.parser.step(self.buffer.bytes(), true)? {
                Event::Record(taken) => return Ok(Some(taken - OVERHEAD)),
                Event::Need(need) => {
                    if self.buffer.fill(&mut self.file, need)? {
                        continue;
                    }
                    // The state of the path is examined before the last read, so that no byte of a replaced
                    // file is lost.
                    let changed = self.check_size().and_then(|()| self.check_path());
                    if !self.buffer.fill(&mut self.file, need)? {
                        return changed.map(|()| None);
                    }
                }
                // A parser of whole records does not return these while more bytes may follow.
                Event::Torn(_) | Event::End | Event::Consumed(_) | Event::Skip(_) => return Ok(None),
            }
        }
    }

    /// Checks that the file has all bytes that were read.
    fn check_size(&self) -> Result<()> {
        let read = self.parser.offset() + self.buffer.bytes().len() as u64;
        let len = self.file.metadata()?.len();
        if len < read {
            return Err(changed(format!("expected a file of at least {read} bytes, found {len}")));
        }
        Ok(())
    }

    /// Checks that the path still leads to the open file.
    fn check_path(&self) -> Result<()> {
        match FileId::of(&self.name) {
            Ok(found) if found == self.id => Ok(()),
            Ok(_) => Err(changed("expected the file that was opened, found another one at its path".into())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(changed("expected the file that was opened, found none at its path".into()))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Replaces an error of the first record by one that names the format of the file, if it is known.
    #[cold]
    fn explain(&mut self, e: Error) -> Error {
        let read = self.file.rewind().and_then(|()| sniff::first_bytes(&self.file));
        let Ok(first) = read else { return e };
        match sniff::compression(&first).format() {
            None => sniff::explain(e, &first),
            Some(format) => Error::from(ErrorKind::Compressed { format: format.name() }).in_file(&self.name),
        }
    }

    /// Returns the number of records before the next one, those before the start included.
    pub fn records_read(&self) -> u64 {
        self.parser.records()
    }

    /// Returns the offset of the next record, or of the damaged one.
    pub fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// Returns the number of bytes after the last whole record, as of the last call of [`next`](Follow::next)
    /// that returned `None`.
    pub fn partial_bytes(&self) -> u64 {
        self.buffer.bytes().len() as u64
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.name
    }
}

#[cold]
fn changed(reason: String) -> Error {
    ErrorKind::Changed { reason: reason.into() }.into()
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.records_read();
        let offset = self.offset();
        write!(f, "Follow({}, record {record} at byte {offset})", self.name.display())
    }
}
