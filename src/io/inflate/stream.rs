//! Decompression of a file in order.

use super::header::{corrupt, cut};
use super::input::{BufferedInput, INPUT};
use crate::error::{CompressionError, Error};
use crate::io::compression::{CompressedFormat, Compression};
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, Read};

/// A reader of a record stream. Decompresses the file if it is compressed.
///
/// It is stricter than TensorFlow where TensorFlow loses data silently. A file that ends inside its stream
/// (even in the trailer), a checksum mismatch, and bytes after a zlib stream are errors. They are returned
/// after all bytes that could be decompressed. The members of a gzip file form one stream. An empty file is
/// an empty stream.
pub(crate) struct Inflate<R>(InflateInput<R>);

/// The file of an [`Inflate`], with its decoder.
enum InflateInput<R> {
    Plain(R),
    Compressed(Box<InflateState<R>>),
}

struct InflateState<R> {
    format: CompressedFormat,
    stream: Decompress,
    input: BufferedInput<R>,
    /// File offset of the current stream or member.
    began: u64,
    ended: bool,
    failed: Option<CompressionError>,
}

impl<R: Read> Inflate<R> {
    /// Returns a reader of the record stream of `inner`, a file with this compression.
    pub(crate) fn new(inner: R, compression: Compression) -> Inflate<R> {
        let Some(format) = compression.format() else { return Inflate(InflateInput::Plain(inner)) };
        Inflate(InflateInput::Compressed(Box::new(InflateState {
            format,
            stream: decoder(format),
            input: BufferedInput::new(inner, INPUT),
            began: 0,
            ended: false,
            failed: None,
        })))
    }
}

fn decoder(format: CompressedFormat) -> Decompress {
    // A decoder with the largest window, 15 bits, also reads streams with smaller windows.
    match format {
        CompressedFormat::Gzip => Decompress::new_gzip(15),
        CompressedFormat::Zlib => Decompress::new_with_window_bits(true, 15),
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            InflateInput::Plain(inner) => inner.read(buf),
            InflateInput::Compressed(state) => state.read(buf),
        }
    }
}

impl<R: Read> InflateState<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(e) = &self.failed {
                return Err(Error::from(e.clone()).into());
            }
            if !self.input.fill()? {
                // Between members or before the first byte, this is the end. Otherwise the file ends inside
                // the stream.
                if self.ended || self.input.consumed == self.began {
                    return Ok(0);
                }
                self.failed = Some(cut(self.format));
                continue;
            }
            if self.ended {
                if !self.format.has_members() {
                    let format = self.format.name();
                    let at = self.input.consumed;
                    self.failed = Some(CompressionError::TrailingData { format, at });
                    continue;
                }
                self.stream = decoder(self.format);
                self.began = self.input.consumed;
                self.ended = false;
            }
            let produced = self.inflate(buf);
            if produced > 0 {
                return Ok(produced);
            }
        }
    }

    /// Calls the decoder once and returns the number of bytes written to `buf`. Bytes before an error are
    /// returned first.
    fn inflate(&mut self, buf: &mut [u8]) -> usize {
        let before_in = self.stream.total_in();
        let before_out = self.stream.total_out();
        let done = self.stream.decompress(self.input.buffered(), buf, FlushDecompress::None);
        let taken = (self.stream.total_in() - before_in) as usize;
        let produced = (self.stream.total_out() - before_out) as usize;
        self.input.consume(taken);
        match done {
            Ok(Status::StreamEnd) => self.ended = true,
            Ok(_) if taken == 0 && produced == 0 => self.fail("the decoder makes no progress"),
            Ok(_) => {}
            Err(e) => self.fail(e.message().unwrap_or("invalid data")),
        }
        produced
    }

    fn fail(&mut self, reason: &str) {
        self.failed = Some(corrupt(self.format, reason));
    }
}

/// Returns true if these first bytes of a file are a stream of this format that decompresses to a valid
/// record header or to an empty stream.
pub(crate) fn inflates_to_records(first: &[u8], format: CompressedFormat) -> bool {
    first_record(first, format).is_some()
}

/// Returns at most `len` of the first bytes that these first bytes of a file decompress to. There are none if
/// they are no stream of this format.
pub(crate) fn first_inflated(first: &[u8], format: CompressedFormat, len: usize) -> Vec<u8> {
    let mut stream = decoder(format);
    let mut found = vec![0; len];
    let inflated = stream.decompress(first, &mut found, FlushDecompress::None);
    let written = inflated.map_or(0, |_| stream.total_out());
    found.truncate(usize::try_from(written).unwrap_or(0));
    found
}

/// Returns true if these first bytes of a file are a stream of this format that decompresses to a valid
/// record header. `Some(false)` for an empty stream, `None` for anything else.
pub(crate) fn first_record(first: &[u8], format: CompressedFormat) -> Option<bool> {
    let mut header = [0; crate::frame::HEADER_LEN];
    let mut stream = decoder(format);
    match stream.decompress(first, &mut header, FlushDecompress::None) {
        Ok(Status::StreamEnd) if stream.total_out() == 0 => Some(false),
        Ok(_) if stream.total_out() == header.len() as u64 => {
            crate::frame::RecordHeader::parse(&header).ok().map(|_| true)
        }
        _ => None,
    }
}
