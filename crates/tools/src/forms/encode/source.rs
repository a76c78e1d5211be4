//! A reader of the texts of JSON values, one after the other, with their positions.
//!
//! serde_json finds the end of each value and checks its syntax: in the buffer if the value lies there as a
//! whole, otherwise byte by byte as they arrive. The bytes of one value are kept, and counted against a limit
//! before they are.

use super::value::{JsonValue, ValueError};
use crate::error::{TextPosition, ToolsError};
use crate::memory::push;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{self, BufRead, BufReader, Read};

/// Number of bytes that are read at once.
const BUFFER: usize = 64 << 10;

pub(super) struct RecordSource<R> {
    text: RecordBytes<R>,
    /// Position of the first byte of the text.
    start: TextPosition,
}

/// The bytes of one record, which are kept when they are read.
struct RecordBytes<R> {
    input: BufReader<R>,
    kept: Vec<u8>,
    max_record: u64,
    is_too_long: bool,
}

/// The text of a record, which is one JSON value.
#[derive(Clone, Copy)]
pub(super) struct RecordText<'a> {
    text: &'a str,
    start: TextPosition,
}

impl<R: Read> RecordSource<R> {
    pub(super) fn new(input: R, max_record: u64) -> RecordSource<R> {
        let input = BufReader::with_capacity(BUFFER, input);
        let text = RecordBytes { input, kept: Vec::new(), max_record, is_too_long: false };
        RecordSource { text, start: TextPosition::START }
    }

    /// Returns the position of the next byte.
    pub(super) fn position(&self) -> TextPosition {
        self.start.after(&self.text.kept)
    }

    /// Skips the space before a record, which counts for none of them. Returns the first byte of the record,
    /// or `None` at the end.
    pub(super) fn begin_record(&mut self) -> Result<Option<u8>, ToolsError> {
        self.start = self.position();
        self.text.kept.clear();
        loop {
            let bytes = match self.text.input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let space = bytes.iter().take_while(|c| matches!(c, b' ' | b'\t' | b'\r' | b'\n')).count();
            let (before, record) = bytes.split_at(space);
            let first = record.first().copied();
            let is_end = bytes.is_empty();
            self.start = self.start.after(before);
            self.text.input.consume(space);
            if first.is_some() || is_end {
                return Ok(first);
            }
        }
    }

    /// Reads the text of a record that has begun.
    pub(super) fn record(&mut self) -> Result<RecordText<'_>, ToolsError> {
        if !self.text.keep_buffered() {
            let mut json = serde_json::Deserializer::from_reader(&mut self.text);
            if let Err(e) = IgnoredAny::deserialize(&mut json) {
                return Err(self.failed(e));
            }
        }
        let mut kept = &self.text.kept[..];
        if let Some(b'-' | b'0'..=b'9') = kept.first()
            && let Some(last) = kept.iter().rposition(u8::is_ascii_digit)
        {
            // A number ends at the byte after it, which has been read too.
            kept = kept.split_at(last + 1).0;
        }
        match std::str::from_utf8(kept) {
            Ok(text) => Ok(RecordText { text, start: self.start }),
            Err(e) => {
                let (before, after) = kept.split_at(e.valid_up_to());
                let found = found(after.first().copied());
                let reason = format!(
                    "expected a string in UTF-8, found {found} (write other bytes as {{\"base64\": ..}})"
                );
                Err(ToolsError::json(self.start.after(before), reason))
            }
        }
    }

    /// Returns the error of a text that is not JSON, at the last byte that was read.
    fn failed(&self, e: serde_json::Error) -> ToolsError {
        let kept = &self.text.kept;
        if self.text.is_too_long {
            let max = self.text.max_record;
            let reason = format!("expected a record of at most {max} bytes of JSON, found a longer one");
            return ToolsError::json(self.position(), reason);
        }
        if e.is_io() {
            return ToolsError::Io(e.into());
        }
        let (last, before) = match kept.split_last() {
            Some((last, before)) if !e.is_eof() => (Some(*last), before),
            _ => (None, &kept[..]),
        };
        let found = found(last);
        // Its own position counts from the start of the record.
        let place = format!(" at line {} column {}", e.line(), e.column());
        let message = e.to_string();
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let reason = if message.starts_with("expected ") {
            format!("{message}, found {found}")
        } else {
            format!("expected JSON, found {found} ({message})")
        };
        ToolsError::json(self.start.after(before), reason)
    }
}

impl<R: Read> RecordBytes<R> {
    /// Keeps a record that lies in the buffer as a whole, without reading its bytes one by one. Returns false
    /// for others.
    fn keep_buffered(&mut self) -> bool {
        let bytes = self.input.buffer();
        if !matches!(bytes.first(), Some(b'{' | b'"')) {
            // A number has no end of its own: it may continue after the buffer.
            return false;
        }
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
        if !matches!(values.next(), Some(Ok(_))) {
            return false;
        }
        let (record, _) = bytes.split_at(values.byte_offset());
        let len = record.len();
        let is_within = len as u64 <= self.max_record && self.kept.try_reserve(len).is_ok();
        if is_within {
            self.kept.extend_from_slice(record);
            self.input.consume(len);
        }
        is_within
    }
}

impl<R: Read> Read for RecordBytes<R> {
    /// Reads one byte, because serde_json asks for one at a time.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (Some(to), Some(&byte)) = (buf.first_mut(), self.input.fill_buf()?.first()) else { return Ok(0) };
        if self.kept.len() as u64 >= self.max_record {
            self.is_too_long = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        *to = byte;
        push(&mut self.kept, byte)?;
        self.input.consume(1);
        Ok(1)
    }
}

impl<'a> RecordText<'a> {
    pub(super) fn value(self) -> JsonValue<'a> {
        JsonValue::new(self.text)
    }

    /// Adds the position to an error in this text.
    pub(super) fn error(self, e: ValueError<'a>) -> ToolsError {
        let ValueError { at, feature, reason } = e;
        let offset = at.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        ToolsError::Json { at: self.start.after(before), feature, reason }
    }
}

/// Names a byte, or the end of the text.
fn found(byte: Option<u8>) -> String {
    match byte {
        None => "the end of the text".to_owned(),
        Some(c @ b' '..=b'~') => format!("`{}`", char::from(c)),
        Some(b'\n') => "the end of the line".to_owned(),
        Some(c) => format!("byte 0x{c:02x}"),
    }
}
