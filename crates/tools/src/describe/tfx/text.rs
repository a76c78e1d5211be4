//! Protobuf's text format, read as a tree of fields, without a descriptor.
//!
//! Source: <https://protobuf.dev/reference/protobuf/textformat-spec/>.

use crate::error::{TextPosition, ToolsError};

/// A field with one value. A list of n values becomes n fields.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextField {
    pub(super) name: Box<str>,
    pub(super) value: TextValue,
    /// Byte offset of the name.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextValue {
    /// A number or an identifier such as `true`, `inf` or the name of an enum value, with its sign.
    Word(Box<str>),
    Str(Box<[u8]>),
    /// The fields of a message in the order of the text.
    Message(Vec<TextField>),
}

/// Maximum nesting of messages. Each level is a recursive call.
const MAX_DEPTH: usize = 64;

/// Parses a text.
pub(super) fn parse(text: &[u8]) -> Result<Vec<TextField>, ToolsError> {
    TextParser { text, at: 0, depth: 0 }.fields(None)
}

/// Returns the error at a byte of a text.
pub(super) fn error(text: &[u8], at: usize, reason: String) -> ToolsError {
    ToolsError::Schema { at: TextPosition::START.after(text.get(..at).unwrap_or(text)), reason }
}

struct TextParser<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

impl TextParser<'_> {
    /// Parses fields up to the byte `end`, or the end of the text.
    fn fields(&mut self, end: Option<u8>) -> Result<Vec<TextField>, ToolsError> {
        let mut fields = Vec::new();
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(fields),
                Some(c) if Some(c) == end => {
                    self.at += 1;
                    return Ok(fields);
                }
                _ => self.field(&mut fields)?,
            }
        }
    }

    fn field(&mut self, fields: &mut Vec<TextField>) -> Result<(), ToolsError> {
        let found = self.peek();
        let at = self.at;
        let name = match found {
            Some(b'[') => self.bracketed()?,
            Some(c) if is_word(c) && !c.is_ascii_digit() => self.word(),
            _ => return Err(self.expected("a field name")),
        };
        let colon = self.take(b':');
        let mut add = |value| fields.push(TextField { name: name.clone(), value, at });
        match self.peek() {
            Some(b'{' | b'<') => add(TextValue::Message(self.message()?)),
            Some(b'[') => {
                self.at += 1;
                if !self.take(b']') {
                    loop {
                        add(self.value(colon)?);
                        if self.take(b']') {
                            break;
                        }
                        if !self.take(b',') {
                            return Err(self.expected("`,` or `]`"));
                        }
                    }
                }
            }
            _ => add(self.value(colon)?),
        }
        if !self.take(b',') {
            self.take(b';');
        }
        Ok(())
    }

    /// Parses the name of an extension or the type of an `Any`: `[type.googleapis.com/x.Y]`.
    fn bracketed(&mut self) -> Result<Box<str>, ToolsError> {
        let start = self.at;
        while let Some(&c) = self.text.get(self.at) {
            self.at += 1;
            match c {
                b']' => return Ok(self.text_from(start)),
                c if c.is_ascii_graphic() || c == b' ' => {}
                _ => break,
            }
        }
        self.at = start;
        Err(self.expected("a type in brackets"))
    }

    /// Parses a value. Only messages may follow a name without a colon.
    fn value(&mut self, colon: bool) -> Result<TextValue, ToolsError> {
        match self.peek() {
            Some(b'{' | b'<') => self.message().map(TextValue::Message),
            _ if !colon => Err(self.expected("`:` or `{`")),
            Some(b'"' | b'\'') => {
                let mut bytes = Vec::new();
                // Strings that follow each other are one.
                while let Some(quote @ (b'"' | b'\'')) = self.peek() {
                    self.string(quote, &mut bytes)?;
                }
                Ok(TextValue::Str(bytes.into()))
            }
            Some(b'-') => {
                self.at += 1;
                match self.peek() {
                    Some(c) if is_word(c) => Ok(TextValue::Word(format!("-{}", self.word()).into())),
                    _ => Err(self.expected("a number")),
                }
            }
            Some(c) if is_word(c) || c == b'.' => Ok(TextValue::Word(self.word())),
            _ => Err(self.expected("a value")),
        }
    }

    fn message(&mut self) -> Result<Vec<TextField>, ToolsError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(format!("expected at most {MAX_DEPTH} nested messages, found more")));
        }
        let end = if self.take(b'<') {
            b'>'
        } else {
            self.take(b'{');
            b'}'
        };
        self.depth += 1;
        let fields = self.fields(Some(end))?;
        self.depth -= 1;
        Ok(fields)
    }

    /// Takes letters, digits and the characters of numbers.
    fn word(&mut self) -> Box<str> {
        let start = self.at;
        while let Some(&c) = self.text.get(self.at) {
            let word = self.text.get(start..self.at).unwrap_or_default();
            let is_hex = matches!(word, [b'0', b'x' | b'X', ..]);
            let is_number = matches!(word, [b'0'..=b'9' | b'.', ..]) && !is_hex;
            let exponent = matches!(c, b'+' | b'-') && is_number && matches!(word, [.., b'e' | b'E']);
            if !(is_word(c) || c == b'.' || exponent) {
                break;
            }
            self.at += 1;
        }
        self.text_from(start)
    }

    fn text_from(&self, start: usize) -> Box<str> {
        String::from_utf8_lossy(self.text.get(start..self.at).unwrap_or_default()).into()
    }

    /// Parses a string in quotes and appends its bytes.
    fn string(&mut self, quote: u8, bytes: &mut Vec<u8>) -> Result<(), ToolsError> {
        let start = self.at;
        self.at += 1;
        while let Some(&c) = self.text.get(self.at) {
            self.at += 1;
            match c {
                c if c == quote => return Ok(()),
                b'\n' => break,
                b'\\' => self.escape(bytes)?,
                c => bytes.push(c),
            }
        }
        self.at = start;
        Err(self.error("expected the end of a string on its line, found none".into()))
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), ToolsError> {
        let Some(&c) = self.text.get(self.at) else { return Err(self.expected("an escape sequence")) };
        self.at += 1;
        let byte = match c {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'\\' | b'"' | b'\'' | b'?' => c,
            b'0'..=b'7' => {
                self.at -= 1;
                let byte = u8::try_from(self.digits(8, 3));
                byte.map_err(|_| self.error("expected an octal escape up to \\377, found more".into()))?
            }
            b'x' | b'X' => {
                let start = self.at;
                let value = self.digits(16, 2);
                if self.at == start {
                    return Err(self.expected("a hex digit"));
                }
                value as u8
            }
            b'u' | b'U' => {
                let most = if c == b'u' { 4 } else { 8 };
                let start = self.at;
                let value = self.digits(16, most);
                let Some(found) = char::from_u32(value).filter(|_| self.at - start == most) else {
                    self.at = start;
                    return Err(self.expected("the number of a character"));
                };
                bytes.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                self.at -= 1;
                return Err(self.expected("an escape sequence"));
            }
        };
        bytes.push(byte);
        Ok(())
    }

    /// Takes at most `most` digits.
    fn digits(&mut self, base: u32, most: usize) -> u32 {
        let mut value = 0u32;
        for _ in 0..most {
            let digit = self.text.get(self.at).and_then(|&c| char::from(c).to_digit(base));
            let Some(digit) = digit else { break };
            value = value.wrapping_mul(base).wrapping_add(digit);
            self.at += 1;
        }
        value
    }

    /// Skips spaces and comments, and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at)? {
                b'#' => {
                    self.at += self.text.iter().skip(self.at).take_while(|&&c| c != b'\n').count();
                }
                c if c.is_ascii_whitespace() || *c == 11 => self.at += 1,
                &c => return Some(c),
            }
        }
    }

    /// Takes the byte if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn error(&self, reason: String) -> ToolsError {
        error(self.text, self.at, reason)
    }

    fn expected(&mut self, what: &str) -> ToolsError {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(c) => format!("`{}`", c.escape_ascii()),
        };
        self.error(format!("expected {what}, found {found}"))
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(fields: &[TextField]) -> String {
        let fields = fields.iter().map(|field| match &field.value {
            TextValue::Word(word) => format!("{}={word}", field.name),
            TextValue::Str(bytes) => format!("{}='{}'", field.name, bytes.escape_ascii()),
            TextValue::Message(message) => format!("{}({})", field.name, show(message)),
        });
        fields.collect::<Vec<_>>().join(" ")
    }

    fn failure(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn fields() {
        let text = r#"
            # a comment
            a: 1, b: -2.5e+3; c: [1, 2,3] d { e < f: "x" 'y'  # joined
              "\101\x42\n\u00e9" > } g: [] h: [{ i: 0x1F }, <>]
            [type.googleapis.com/a.B] { j: TYPE } k:.5 l: -inf m: 'it"s'
        "#;
        let want = "a=1 b=-2.5e+3 c=1 c=2 c=3 d(e(f='xyAB\\n\\xc3\\xa9')) h(i=0x1F) h() \
            [type.googleapis.com/a.B](j=TYPE) k=.5 l=-inf m='it\\\"s'";
        assert_eq!(show(&parse(text.as_bytes()).unwrap()), want);
        let at = parse(b"a: 1\n  b: 2").unwrap()[1].at;
        let place = TextPosition::START.after(&b"a: 1\n  b: 2"[..at]);
        assert_eq!((place.line, place.column, place.offset), (2, 3, at as u64));
    }

    #[test]
    fn errors_have_a_place() {
        assert_eq!(failure("a: 1\n}"), "line 2, column 1: expected a field name, found `}`");
        assert_eq!(failure("a {"), "line 1, column 4: expected a field name, found the end of the text");
        assert_eq!(failure("a 1"), "line 1, column 3: expected `:` or `{`, found `1`");
        assert_eq!(failure("a: [1 2]"), "line 1, column 7: expected `,` or `]`, found `2`");
        assert!(failure("a: 'x\n'").contains("expected the end of a string"));
        assert!(failure(r"a: '\q'").contains("expected an escape sequence, found `q`"));
        assert!(failure(r"a: '\777'").contains("\\377"));
        assert!(failure(r"a: '\ud800'").contains("expected the number of a character"));
        assert!(failure(&"a{".repeat(100)).contains("at most 64 nested messages"));
    }

    #[test]
    fn no_text_panics() {
        let text = br#"a: 1 b { c: "\101\x4" } [d.e/f] <g: -1e-5> # x"#;
        for k in 0..text.len() {
            let _ = parse(&text[..k]);
            for c in [0u8, b'"', b'\\', b'{', b'<', b'[', b']', b'-', 255] {
                let mut other = text.to_vec();
                other[k] = c;
                let _ = parse(&other);
            }
        }
    }
}
