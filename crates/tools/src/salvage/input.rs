//! A compressed file whose inflation goes on at a member after damage.

use flate2::{Decompress, FlushDecompress, Status};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use tfseek::error::CompressionError;
use tfseek::{Compression, Error};

/// Number of bytes per read from the file.
const INPUT: usize = 64 << 10;

/// The start of a gzip member: magic and method. Its fourth byte has flags, of which five are defined.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
const UNDEFINED_FLAGS: u8 = 0xe0;

/// A reader that knows how many bytes of the file it has read.
pub(super) trait CountedRead: Read {
    /// Returns the number of bytes of the file that were read for `n` bytes of this reader, since the last call.
    fn taken(&mut self, n: u64) -> u64;
}

impl CountedRead for File {
    fn taken(&mut self, n: u64) -> u64 {
        n
    }
}

/// A reader of the inflated bytes. It ends at damage as at the end of the file; `failed` then has the error.
pub(super) struct Input {
    file: File,
    size: u64,
    compression: Compression,
    stream: Decompress,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// Offset in the file of `buf[start]`.
    at: u64,
    /// Offset of the current member.
    member: u64,
    /// The current member has ended.
    ended: bool,
    pub(super) failed: Option<Damaged>,
    /// Offset up to which progress was reported.
    reported: u64,
}

/// The end of inflation.
pub(super) struct Damaged {
    /// Offset in the file.
    pub(super) at: u64,
    pub(super) error: Error,
}

impl Input {
    pub(super) fn new(mut file: File, compression: Compression, at: u64) -> io::Result<Input> {
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(at))?;
        Ok(Input {
            file,
            size,
            compression,
            stream: decoder(compression),
            buf: vec![0; INPUT].into_boxed_slice(),
            start: 0,
            end: 0,
            at,
            member: at,
            ended: false,
            failed: None,
            reported: 0,
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Moves to the next member after damage that `accept` accepts. Returns its offset; `None` if there is none.
    ///
    /// The bytes before the error may have been inflated wrongly, so the search begins inside the damaged member.
    pub(super) fn next_member(
        &mut self,
        accept: impl Fn(&mut Input) -> tfseek::Result<bool>,
    ) -> io::Result<Option<u64>> {
        if self.compression != Compression::Gzip {
            return Ok(None);
        }
        let mut from = self.member + 1;
        while let Some(at) = self.find_magic(from)? {
            self.go_to(at)?;
            if accept(self)? {
                self.go_to(at)?;
                return Ok(Some(at));
            }
            from = at + 1;
        }
        Ok(None)
    }

    /// Returns the offset of the next bytes that look like the start of a member.
    fn find_magic(&mut self, from: u64) -> io::Result<Option<u64>> {
        self.file.seek(SeekFrom::Start(from))?;
        // The last bytes of a piece are searched again with the next one.
        let (mut have, mut at) = (0, from);
        loop {
            let free = self.buf.get_mut(have..).unwrap_or_default();
            let read = match self.file.read(free) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                return Ok(None);
            }
            have += read;
            let bytes = self.buf.get(..have).unwrap_or_default();
            let found = bytes.windows(MAGIC.len() + 1).position(
                |w| matches!(w, [a, b, c, flags] if [*a, *b, *c] == MAGIC && flags & UNDEFINED_FLAGS == 0),
            );
            if let Some(i) = found {
                return Ok(Some(at + i as u64));
            }
            let kept = have.min(MAGIC.len());
            self.buf.copy_within(have - kept..have, 0);
            at += (have - kept) as u64;
            have = kept;
        }
    }

    fn go_to(&mut self, at: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.stream = decoder(self.compression);
        (self.start, self.end, self.at, self.member) = (0, 0, at, at);
        (self.ended, self.failed) = (false, None);
        Ok(())
    }

    fn fail(&mut self, error: CompressionError) -> usize {
        self.failed = Some(Damaged { at: self.at, error: error.into() });
        0
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let format = self.compression.name();
        while self.failed.is_none() && !out.is_empty() {
            if self.start == self.end {
                (self.start, self.end) = (0, self.file.read(&mut self.buf)?);
            }
            if self.end == 0 {
                // After a member, or in an empty file, this is the end.
                return Ok(match self.ended || self.at == self.member {
                    true => 0,
                    false => self.fail(CompressionError::Cut { format }),
                });
            }
            if self.ended {
                if self.compression == Compression::Zlib {
                    let at = self.at;
                    return Ok(self.fail(CompressionError::TrailingData { format, at }));
                }
                self.stream = decoder(self.compression);
                (self.member, self.ended) = (self.at, false);
            }
            let (before_in, before_out) = (self.stream.total_in(), self.stream.total_out());
            let input = self.buf.get(self.start..self.end).unwrap_or_default();
            let done = self.stream.decompress(input, out, FlushDecompress::None);
            let taken = self.stream.total_in() - before_in;
            let produced = (self.stream.total_out() - before_out) as usize;
            self.start = (self.start + taken as usize).min(self.end);
            self.at += taken;
            let corrupt = |reason: &str| CompressionError::Corrupt { format, reason: reason.into() };
            match done {
                Ok(Status::StreamEnd) => self.ended = true,
                Ok(_) if taken == 0 && produced == 0 => {
                    _ = self.fail(corrupt("the decoder makes no progress"))
                }
                Ok(_) => {}
                Err(e) => _ = self.fail(corrupt(e.message().unwrap_or("invalid data"))),
            }
            if produced > 0 {
                return Ok(produced);
            }
        }
        Ok(0)
    }
}

impl CountedRead for Input {
    fn taken(&mut self, _: u64) -> u64 {
        let more = self.at.saturating_sub(self.reported);
        self.reported = self.reported.max(self.at);
        more
    }
}

fn decoder(compression: Compression) -> Decompress {
    match compression {
        Compression::Gzip => Decompress::new_gzip(15),
        _ => Decompress::new_with_window_bits(true, 15),
    }
}
