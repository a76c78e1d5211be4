//! Decompression of gzip and zlib files.

use crate::error::{CompressionError, Error, OptionsError};
use flate2::{Decompress, FlushDecompress, Status};
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// The compression of a file. It applies to the whole record stream, not to single records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// gzip (RFC 1952), one or more members.
    Gzip,
    /// zlib (RFC 1950), one stream.
    Zlib,
}

impl Compression {
    /// Returns `none`, `gzip` or `zlib`.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zlib => "zlib",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses TensorFlow's names (`""`, `GZIP`, `ZLIB`) and tfseek's, in upper or lower case. An unknown name is an error. TensorFlow
/// treats it as uncompressed.
impl FromStr for Compression {
    type Err = Error;

    fn from_str(name: &str) -> Result<Compression, Error> {
        match name.to_ascii_lowercase().as_str() {
            "" | "none" => Ok(Compression::None),
            "gzip" => Ok(Compression::Gzip),
            "zlib" => Ok(Compression::Zlib),
            _ => {
                let reason = "expected none, gzip or zlib";
                Err(OptionsError::Name { what: "compression", name: name.into(), reason }.into())
            }
        }
    }
}

/// Number of bytes per read from the file.
const INPUT: usize = 64 << 10;

/// A reader of a record stream. Decompresses the file if it is compressed.
///
/// It is stricter than TensorFlow where TensorFlow loses data silently. A file that ends inside its stream (even in the trailer), a
/// checksum mismatch, and bytes after a zlib stream are errors. They are returned after all bytes that could be decompressed. The
/// members of a gzip file form one stream. An empty file is an empty stream.
pub(crate) struct Inflate<R> {
    inner: R,
    state: Option<InflateState>,
}

struct InflateState {
    format: &'static str,
    stream: Decompress,
    input: Box<[u8]>,
    /// `input[start..end]` contains bytes that were read and not decompressed yet.
    start: usize,
    end: usize,
    /// File offset of `input[start]`.
    consumed: u64,
    /// File offset of the current stream or member.
    began: u64,
    ended: bool,
    failed: Option<CompressionError>,
}

impl<R: Read> Inflate<R> {
    /// Returns a reader of the record stream of `inner`, a file with this compression.
    pub(crate) fn new(inner: R, compression: Compression) -> Inflate<R> {
        let state = match compression {
            Compression::None => None,
            _ => Some(InflateState {
                format: compression.name(),
                stream: decoder(compression),
                input: vec![0; INPUT].into_boxed_slice(),
                start: 0,
                end: 0,
                consumed: 0,
                began: 0,
                ended: false,
                failed: None,
            }),
        };
        Inflate { inner, state }
    }
}

fn decoder(compression: Compression) -> Decompress {
    // A decoder with the largest window, 15 bits, also reads streams with smaller windows.
    match compression {
        Compression::Gzip => Decompress::new_gzip(15),
        _ => Decompress::new_with_window_bits(true, 15),
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.state {
            None => self.inner.read(buf),
            Some(state) => state.read(&mut self.inner, buf),
        }
    }
}

impl InflateState {
    fn read(&mut self, inner: &mut impl Read, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(e) = &self.failed {
                return Err(Error::from(e.clone()).into());
            }
            if self.start == self.end {
                self.end = loop {
                    match inner.read(&mut self.input) {
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        read => break read?,
                    }
                };
                self.start = 0;
                if self.end == 0 {
                    // Between members or before the first byte, this is the end. Otherwise the file ends inside the stream.
                    if self.ended || self.consumed == self.began {
                        return Ok(0);
                    }
                    self.failed = Some(CompressionError::Cut { format: self.format });
                    continue;
                }
            }
            if self.ended {
                if self.format == Compression::Zlib.name() {
                    let at = self.consumed;
                    self.failed = Some(CompressionError::TrailingData { format: self.format, at });
                    continue;
                }
                self.stream = decoder(Compression::Gzip);
                self.began = self.consumed;
                self.ended = false;
            }
            let produced = self.inflate(buf);
            if produced > 0 {
                return Ok(produced);
            }
        }
    }

    /// Calls the decoder once and returns the number of bytes written to `buf`. Bytes before an error are returned first.
    fn inflate(&mut self, buf: &mut [u8]) -> usize {
        let (before_in, before_out) = (self.stream.total_in(), self.stream.total_out());
        let input = self.input.get(self.start..self.end).unwrap_or_default();
        let done = self.stream.decompress(input, buf, FlushDecompress::None);
        let taken = (self.stream.total_in() - before_in) as usize;
        let produced = (self.stream.total_out() - before_out) as usize;
        self.start = (self.start + taken).min(self.end);
        self.consumed += taken as u64;
        match done {
            Ok(Status::StreamEnd) => self.ended = true,
            Ok(_) if taken == 0 && produced == 0 => self.fail("the decoder makes no progress"),
            Ok(_) => {}
            Err(e) => self.fail(e.message().unwrap_or("invalid data")),
        }
        produced
    }

    fn fail(&mut self, reason: &str) {
        self.failed = Some(CompressionError::Corrupt { format: self.format, reason: reason.into() });
    }
}

impl<R> fmt::Debug for Inflate<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inflate({})", self.state.as_ref().map_or("none", |s| s.format))
    }
}

/// Returns true if these first bytes of a file are a zlib stream that decompresses to a valid record header or to an empty stream.
pub(crate) fn is_zlib_of_records(first: &[u8]) -> bool {
    let mut header = [0; crate::frame::HEADER_LEN];
    let mut stream = decoder(Compression::Zlib);
    match stream.decompress(first, &mut header, FlushDecompress::None) {
        Ok(Status::StreamEnd) if stream.total_out() == 0 => true,
        Ok(_) if stream.total_out() == header.len() as u64 => {
            crate::frame::RecordHeader::parse(&header).is_ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_in_any_case() {
        for (name, expected) in
            [("", Compression::None), ("GZIP", Compression::Gzip), ("zlib", Compression::Zlib)]
        {
            assert_eq!(name.parse::<Compression>().unwrap(), expected);
        }
        assert!("SNAPPY".parse::<Compression>().is_err());
    }
}
