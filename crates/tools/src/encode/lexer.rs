//! A reader of the tokens of JSON texts, one after the other, with their positions.
//!
//! It is strict (RFC 8259). It has no nesting of its own: the callers know which lists and objects they are in. Texts are read in pieces,
//! and the bytes of one record are counted against a limit.

use super::error::{JsonError, JsonPosition};
use std::fmt;
use std::io::{self, Read};

/// Number of bytes that are read at once.
const BUFFER: usize = 64 << 10;

/// A scalar, or the start of a list or an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    /// The digits as written.
    Number(&'a str),
    Text(&'a str),
    List,
    Object,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: usize = 40;
        let cut = |text: &str| match text.char_indices().nth(MAX) {
            Some((end, _)) => (text.get(..end).unwrap_or_default().to_owned(), ".."),
            None => (text.to_owned(), ""),
        };
        match self {
            Token::Null => f.write_str("null"),
            Token::Bool(value) => value.fmt(f),
            Token::Number(digits) => {
                let (digits, more) = cut(digits);
                write!(f, "{digits}{more}")
            }
            Token::Text(text) => {
                let (text, more) = cut(text);
                write!(f, "\"{}\"{more}", text.escape_debug())
            }
            Token::List => f.write_str("a list"),
            Token::Object => f.write_str("an object"),
        }
    }
}

pub(super) struct JsonReader<R> {
    input: R,
    /// Bytes that were read, those from `next` to `end` are not consumed.
    buffer: Box<[u8]>,
    next: usize,
    end: usize,
    offset: u64,
    line: u64,
    /// Offset of the start of the line.
    line_start: u64,
    /// Offset of the start of the record.
    record_start: u64,
    max_record: u64,
    /// Bytes of the last number or string.
    scratch: Vec<u8>,
}

impl<R: Read> JsonReader<R> {
    pub(super) fn new(input: R, max_record: u64) -> JsonReader<R> {
        JsonReader {
            input,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            next: 0,
            end: 0,
            offset: 0,
            line: 1,
            line_start: 0,
            record_start: 0,
            max_record,
            scratch: Vec::new(),
        }
    }

    /// Returns the position of the next byte.
    pub(super) fn position(&self) -> JsonPosition {
        let column = self.offset.saturating_sub(self.line_start).saturating_add(1);
        JsonPosition { line: self.line, column, offset: self.offset }
    }

    /// Skips the space before a record. Returns false at the end of the text.
    pub(super) fn begin_record(&mut self) -> Result<bool, JsonError> {
        loop {
            // Space between records counts for none of them.
            self.record_start = self.offset;
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.bump()?,
                next => return Ok(next.is_some()),
            }
        }
    }

    /// Returns the next byte that is no space, and its position.
    pub(super) fn peek_token(&mut self) -> Result<(Option<u8>, JsonPosition), JsonError> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.bump()?,
                next => return Ok((next, self.position())),
            }
        }
    }

    /// Reads a scalar, or the bracket that begins a list or an object.
    pub(super) fn token(&mut self) -> Result<(Token<'_>, JsonPosition), JsonError> {
        let (next, at) = self.peek_token()?;
        let token = match next {
            Some(b'"') => {
                self.string(at)?;
                // `string` has checked that it is UTF-8.
                Token::Text(std::str::from_utf8(&self.scratch).unwrap_or_default())
            }
            Some(b'[') => {
                self.bump()?;
                Token::List
            }
            Some(b'{') => {
                self.bump()?;
                Token::Object
            }
            Some(b'-' | b'0'..=b'9') => {
                self.word(|c| matches!(c, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))?;
                let digits = std::str::from_utf8(&self.scratch).unwrap_or_default();
                if !is_number(digits.as_bytes()) {
                    return Err(JsonError::new(
                        at,
                        format!("expected a number, found {}", Token::Number(digits)),
                    ));
                }
                Token::Number(digits)
            }
            Some(c) if c.is_ascii_alphabetic() => {
                self.word(|c| c.is_ascii_alphanumeric())?;
                match &self.scratch[..] {
                    b"null" => Token::Null,
                    b"true" => Token::Bool(true),
                    b"false" => Token::Bool(false),
                    word => {
                        let word = Token::Number(std::str::from_utf8(word).unwrap_or_default());
                        return Err(JsonError::new(at, format!("expected a value, found {word}")));
                    }
                }
            }
            other => return Err(unexpected(at, "a value", other)),
        };
        Ok((token, at))
    }

    /// Goes on in a list whose bracket has been read: returns true before a value, and false after the end of the list.
    pub(super) fn in_list(&mut self, is_first: bool) -> Result<bool, JsonError> {
        let (next, at) = self.peek_token()?;
        match next {
            Some(b']') => {
                self.bump()?;
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.bump()?;
                match self.peek_token()? {
                    (Some(b']'), at) => Err(JsonError::new(at, "expected a value, found `]`")),
                    _ => Ok(true),
                }
            }
            Some(_) if is_first => Ok(true),
            other => Err(unexpected(at, "`,` or `]`", other)),
        }
    }

    /// Goes on in an object whose bracket has been read: returns the next key, before its value, or `None` after the end of the object.
    pub(super) fn key(&mut self, is_first: bool) -> Result<Option<(String, JsonPosition)>, JsonError> {
        let (mut next, mut at) = self.peek_token()?;
        match next {
            Some(b'}') => {
                self.bump()?;
                return Ok(None);
            }
            Some(b',') if !is_first => {
                self.bump()?;
                (next, at) = self.peek_token()?;
            }
            _ if is_first => {}
            other => return Err(unexpected(at, "`,` or `}`", other)),
        }
        if next != Some(b'"') {
            return Err(unexpected(at, "a key in quotes", next));
        }
        self.string(at)?;
        let key = std::str::from_utf8(&self.scratch).unwrap_or_default().to_owned();
        match self.peek_token()? {
            (Some(b':'), _) => self.bump()?,
            (other, at) => return Err(unexpected(at, "`:`", other)),
        }
        Ok(Some((key, at)))
    }

    fn peek(&mut self) -> Result<Option<u8>, JsonError> {
        Ok(self.fill()?.first().copied())
    }

    /// Returns the bytes that were read and not consumed. Reads more if there are none; at the end there are none then.
    fn fill(&mut self) -> Result<&[u8], JsonError> {
        while self.next >= self.end {
            match self.input.read(&mut self.buffer) {
                Ok(n) => {
                    (self.next, self.end) = (0, n);
                    break;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(self.buffer.get(self.next..self.end).unwrap_or_default())
    }

    /// Consumes the next byte, which has been seen.
    fn bump(&mut self) -> Result<(), JsonError> {
        let is_line_end = self.peek()? == Some(b'\n');
        self.consume(1)?;
        if is_line_end {
            self.line = self.line.saturating_add(1);
            self.line_start = self.offset;
        }
        Ok(())
    }

    /// Consumes bytes of the buffer without line ends.
    fn consume(&mut self, n: usize) -> Result<(), JsonError> {
        self.next = self.next.saturating_add(n);
        self.offset = self.offset.saturating_add(n as u64);
        if self.offset - self.record_start > self.max_record {
            let reason =
                format!("expected a record of at most {} bytes of JSON, found a longer one", self.max_record);
            return Err(JsonError::new(self.position(), reason));
        }
        Ok(())
    }

    /// Reads the bytes that belong to a word into the scratch memory.
    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> Result<(), JsonError> {
        self.scratch.clear();
        loop {
            let bytes = self.fill()?;
            let n = bytes.iter().position(|&c| !belongs(c)).unwrap_or(bytes.len());
            if n == 0 {
                return Ok(());
            }
            self.take(n)?;
        }
    }

    /// Moves the next bytes of the buffer to the scratch memory.
    fn take(&mut self, n: usize) -> Result<(), JsonError> {
        let end = self.next.saturating_add(n);
        self.scratch.extend_from_slice(self.buffer.get(self.next..end).unwrap_or_default());
        self.consume(n)
    }

    /// Reads a string into the scratch memory.
    fn string(&mut self, start: JsonPosition) -> Result<(), JsonError> {
        self.scratch.clear();
        self.bump()?;
        loop {
            let bytes = self.fill()?;
            let n = bytes.iter().position(|c| matches!(c, b'"' | b'\\' | 0..=0x1f)).unwrap_or(bytes.len());
            let next = bytes.get(n).copied();
            let is_end = bytes.is_empty();
            if n > 0 {
                self.take(n)?;
                if next.is_none() {
                    continue;
                }
            }
            let at = self.position();
            match next {
                Some(b'"') => {
                    self.bump()?;
                    break;
                }
                Some(b'\\') => self.escape(at)?,
                other => {
                    debug_assert!(other.is_some() || is_end);
                    return Err(unexpected(at, "the end of a string (`\"`)", other));
                }
            }
        }
        match std::str::from_utf8(&self.scratch) {
            Ok(_) => Ok(()),
            Err(_) => Err(JsonError::new(
                start,
                "expected a string in UTF-8, found other bytes (write them as {\"base64\": ..})",
            )),
        }
    }

    /// Reads an escape into the scratch memory.
    fn escape(&mut self, at: JsonPosition) -> Result<(), JsonError> {
        self.bump()?;
        let c = self.peek()?;
        let plain = match c {
            Some(c @ (b'"' | b'\\' | b'/')) => c,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.bump()?;
                return self.unicode(at);
            }
            other => return Err(unexpected(at, "an escape", other)),
        };
        self.bump()?;
        self.scratch.push(plain);
        Ok(())
    }

    /// Reads the digits of one or two UTF-16 units into the scratch memory.
    fn unicode(&mut self, at: JsonPosition) -> Result<(), JsonError> {
        let lone = || JsonError::new(at, "expected a character, found half of a surrogate pair");
        let unit = self.unit(at)?;
        let c = match unit {
            0xdc00..=0xdfff => return Err(lone()),
            0xd800..=0xdbff => {
                for expected in [b'\\', b'u'] {
                    if self.peek()? != Some(expected) {
                        return Err(lone());
                    }
                    self.bump()?;
                }
                let low = self.unit(at)?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return Err(lone());
                }
                0x10000 + ((unit & 0x3ff) << 10 | low & 0x3ff)
            }
            unit => unit,
        };
        let c = char::from_u32(c).ok_or_else(lone)?;
        self.scratch.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn unit(&mut self, at: JsonPosition) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let next = self.peek()?;
            let Some(digit) = next.and_then(|c| char::from(c).to_digit(16)) else {
                return Err(unexpected(at, "four hexadecimal digits after `\\u`", next));
            };
            unit = unit << 4 | digit;
            self.bump()?;
        }
        Ok(unit)
    }
}

/// Returns the error of a byte that was not expected.
fn unexpected(at: JsonPosition, expected: &str, found: Option<u8>) -> JsonError {
    let found = match found {
        None => "the end of the text".to_owned(),
        Some(c @ b' '..=b'~') => format!("`{}`", char::from(c)),
        Some(b'\n') => "the end of the line".to_owned(),
        Some(c) => format!("byte 0x{c:02x}"),
    };
    JsonError::new(at, format!("expected {expected}, found {found}"))
}

/// Returns true for a number by the grammar of JSON.
fn is_number(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> (usize, &[u8]) {
        let n = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
        (n, text.get(n..).unwrap_or_default())
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (n, mut rest) = digits(text);
    if n == 0 || n > 1 && text.first() == Some(&b'0') {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let (n, after) = digits(fraction);
        if n == 0 {
            return false;
        }
        rest = after;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
        let (n, after) = digits(exponent);
        return n > 0 && after.is_empty();
    }
    rest.is_empty()
}
