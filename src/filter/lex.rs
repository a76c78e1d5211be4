//! The tokenizer of the filter language.

use crate::error::{Error, FilterError, Result};

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Word(&'t str),
    /// A number: digits, or a sign and letters as in `-inf`.
    Number(&'t str),
    /// A string, without its quotes and with its escapes decoded.
    Str(Vec<u8>),
    Op(Op),
    /// A range operator: `..` is [`Op::Lt`], `..=` is [`Op::Le`].
    Range(Op),
    Open,
    Close,
    Comma,
    End,
}

impl Token<'_> {
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(found) if *found == word)
    }
}

/// A cursor over a filter's text.
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// Byte offset of the last token.
    last: usize,
    /// Byte offset of the end of the last token.
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, last: 0, at: 0 }
    }

    /// Returns the byte offset of the last token.
    pub(super) fn last(&self) -> usize {
        self.last
    }

    /// Returns the next token without consuming it.
    pub(super) fn peek(&self) -> Result<Token<'t>> {
        Lexer { ..*self }.next()
    }

    /// Consumes and returns the next token, or [`Token::End`] at the end of the text.
    pub(super) fn next(&mut self) -> Result<Token<'t>> {
        self.skip_space();
        self.last = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        let (token, len) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            '"' | '\'' => return self.string(first),
            '=' if rest.starts_with("==") => (Token::Op(Op::Eq), 2),
            '=' => return Err(self.error("expected `==`, found `=`")),
            '!' if rest.starts_with("!=") => (Token::Op(Op::Ne), 2),
            '<' if rest.starts_with("<=") => (Token::Op(Op::Le), 2),
            '<' => (Token::Op(Op::Lt), 1),
            '>' if rest.starts_with(">=") => (Token::Op(Op::Ge), 2),
            '>' => (Token::Op(Op::Gt), 1),
            '.' if rest.starts_with("..=") => (Token::Range(Op::Le), 3),
            '.' if rest.starts_with("..") => (Token::Range(Op::Lt), 2),
            c if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') && number(rest) > 0 => {
                let len = number(rest);
                (Token::Number(rest.split_at(len).0), len)
            }
            c if c.is_alphabetic() || c == '_' => {
                let len = word(rest);
                (Token::Word(rest.split_at(len).0), len)
            }
            c => return Err(self.error(&format!("unexpected character `{}`", c.escape_debug()))),
        };
        self.at += len;
        Ok(token)
    }

    /// Consumes the `=` between the name and the value of an argument.
    pub(super) fn assign(&mut self) -> Result<()> {
        self.skip_space();
        self.last = self.at;
        match self.rest().strip_prefix('=') {
            Some(rest) if !rest.starts_with('=') => {
                self.at += 1;
                Ok(())
            }
            _ => {
                self.next()?;
                Err(self.expected("`=`"))
            }
        }
    }

    /// Consumes a string in which backslashes are part of the text, and returns it without its quotes. A
    /// quote after a backslash does not end it.
    pub(super) fn raw_string(&mut self) -> Result<&'t str> {
        self.skip_space();
        let rest = self.rest();
        let Some(quote @ ('"' | '\'')) = rest.chars().next() else {
            self.next()?;
            return Err(self.expected("a pattern in quotes"));
        };
        self.last = self.at;
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(rest.get(1..at).unwrap_or_default());
                }
                '\\' => drop(chars.next()),
                _ => {}
            }
        }
        Err(self.error("unterminated string"))
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn string(&mut self, quote: char) -> Result<Token<'t>> {
        let mut bytes = Vec::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(Token::Str(bytes));
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => bytes.push(b'\n'),
                    Some('t') => bytes.push(b'\t'),
                    Some(c @ ('\\' | '"' | '\'')) => bytes.extend(c.to_string().bytes()),
                    Some('x') => {
                        let mut digit = || chars.next().and_then(|(_, c)| c.to_digit(16));
                        let (Some(high), Some(low)) = (digit(), digit()) else {
                            return Err(self.error("expected two hexadecimal digits after `\\x`"));
                        };
                        bytes.push((high * 16 + low) as u8);
                    }
                    _ => return Err(self.error("unknown escape in a string")),
                },
                c => bytes.extend(c.to_string().bytes()),
            }
        }
        Err(self.error("unterminated string"))
    }

    /// Creates an error at the last token: `expected` names what the parser accepts there.
    #[cold]
    pub(super) fn expected(&self, expected: &str) -> Error {
        match self.text.get(self.last..self.at).unwrap_or_default() {
            "" => self.error(&format!("expected {expected}, found the end")),
            found => self.error(&format!("expected {expected}, found `{}`", found.escape_debug())),
        }
    }

    /// Creates an error at the last token.
    #[cold]
    pub(super) fn error(&self, reason: &str) -> Error {
        self.error_at(self.last, reason)
    }

    /// Creates an error at a byte offset.
    #[cold]
    pub(super) fn error_at(&self, offset: usize, reason: &str) -> Error {
        FilterError { text: self.text.into(), offset, reason: reason.into() }.into()
    }
}

/// Returns the length of the number at the start of `text`: a sign, digits, a fraction and an exponent, or a
/// sign and letters. The digits before or after the point may be missing. A `.` that begins `..` is not a
/// fraction.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |from: usize, f: fn(&u8) -> bool| from + bytes.iter().skip(from).take_while(|b| f(b)).count();
    let mut len = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    if bytes.get(len).is_some_and(u8::is_ascii_alphabetic) {
        return run(len, u8::is_ascii_alphabetic);
    }
    let whole = len;
    len = run(len, u8::is_ascii_digit);
    if bytes.get(len) == Some(&b'.')
        && bytes.get(len + 1) != Some(&b'.')
        && (len > whole || bytes.get(len + 1).is_some_and(u8::is_ascii_digit))
    {
        len = run(len + 1, u8::is_ascii_digit);
    }
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        if bytes.get(len + 1 + sign).is_some_and(u8::is_ascii_digit) {
            len = run(len + 1 + sign, u8::is_ascii_digit);
        }
    }
    len
}

/// Returns the length of the unquoted name at the start of `text`.
fn word(text: &str) -> usize {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | ':');
    text.find(|c| !continues(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    fn filter(text: &str) -> crate::error::Result<Filter> {
        text.parse()
    }

    #[test]
    fn syntax_errors_and_their_offsets() {
        for (text, at, message) in [
            ("", 0, "expected a feature, found the end"),
            ("label", 5, "expected one of == != < <= > >= in contains matches is, found the end"),
            ("label = 3", 6, "expected `==`, found `=`"),
            ("label == ", 9, "expected a value, found the end"),
            (
                "label == record",
                9,
                "the word `record` is reserved; a feature of this name is `\"record\"` on the left",
            ),
            ("label == width(", 15, "expected a feature, found the end"),
            ("label == any(x)", 12, "expected a feature, or a function of one value, before it, found `(`"),
            ("label in cat", 9, "a string in quotes, found `cat`"),
            ("label == .", 9, "unexpected character `.`"),
            ("label == ...", 9, "expected a value, found `..`"),
            ("label == 2...", 10, "`and`, `or` or the end of the filter, found `..`"),
            ("record == label", 10, "expected a number, or a string in quotes, found `label`"),
            ("len(x) == format(y)", 17, "len(x) is a number, and format(y) a string"),
            ("label == 3 4", 11, "`and`, `or` or the end of the filter, found `4`"),
            ("label == 3 and", 14, "expected a feature"),
            ("label in 1,", 11, "expected a value"),
            ("label in ..", 11, "the end of the range"),
            ("label in 1..=", 13, "the end of the range"),
            ("(label == 3", 11, "expected `)`"),
            ("present(3)", 8, "expected a feature, found `3`"),
            ("in == 3", 0, "the word `in` is reserved; as the name of a feature it is `\"in\"`"),
            ("not == 3", 0, "as the name of a feature it is `\"not\"`"),
            ("not in 3", 0, "as the name of a feature it is `\"not\"`"),
            ("x == 1 and or < 3", 11, "as the name of a feature it is `\"or\"`"),
            ("len(record) == 3", 4, "as the name of a feature it is `\"record\"`"),
            ("present(not)", 8, "as the name of a feature it is `\"not\"`"),
            ("any(and) == 3", 4, "as the name of a feature it is `\"and\"`"),
            ("record is nan", 7, "as the name of a feature it is `\"record\"`"),
            ("label == -", 9, "expected a number"),
            ("label == +x", 9, "expected a number"),
            ("label == 'a", 9, "unterminated string"),
            (r"label == '\q'", 9, "unknown escape"),
            (r"label == '\x4'", 9, "two hexadecimal digits"),
            (r"'\xff' == 1", 0, "UTF-8"),
            ("label ~ 3", 6, "unexpected character `~`"),
            ("any(x) 3", 7, "expected one of == != < <= > >= in contains matches is, found `3`"),
            ("any(x", 5, "expected `)`, found the end"),
            ("any(len(x)) == 3", 7, "expected `)`, found `(`"),
            ("len(x) == 'a'", 10, "len(x) is a number: expected a 64-bit integer, found \"a\""),
            ("len(x) in 1, 2.5", 13, "expected a 64-bit integer, found 2.5"),
            ("len(x) contains 'a'", 16, "expected a 64-bit integer, found \"a\""),
            ("bytes(x) is nan", 12, "expected a 64-bit integer, found nan"),
            ("format(x) == 3", 13, "format(x) is a string: expected a string in quotes, found 3"),
            ("x contains 3", 11, "expected a string in quotes, found `3`"),
            ("x matches y", 10, "expected a pattern in quotes, found `y`"),
            ("x matches ", 10, "expected a pattern in quotes, found the end"),
            ("x matches '(", 10, "unterminated string"),
            ("x matches '('", 10, "pattern"),
            (r"x matches '\pL'", 10, "pattern"),
            ("x matches '(a{1000}){1000}'", 10, "the pattern is too large"),
            ("x is 3", 5, "expected `nan` or `not nan`, found `3`"),
            ("x is not", 8, "expected `nan`, found the end"),
            ("record contains 'a'", 7, "expected one of == != < <= > >= in"),
            ("record == 1.5", 10, "the record number: expected a 64-bit integer, found 1.5"),
            ("split(2)", 6, "expected a fraction from 0 to 1, found `2`"),
            (
                "split(1e-30)",
                6,
                "expected a fraction with at most 27 decimals, of which 1e-27 is the smallest, found `1e-30`",
            ),
            ("split(x)", 6, "expected a fraction from 0 to 1, found `x`"),
            ("split(0.5, 3)", 11, "expected `seed`, found `3`"),
            ("split(0.5, seed 3)", 16, "expected `=`, found `3`"),
            ("split(0.5, seed==3)", 15, "expected `=`, found `==`"),
            ("split(0.5, seed=-1)", 16, "expected a seed from 0 to 2^64 - 1, found `-1`"),
            ("é == §", 6, "unexpected character `§`"),
        ] {
            let e = filter(text).unwrap_err().to_string();
            assert!(e.contains(message) && e.contains(&format!("at byte {at}:")), "{text:?}: {e}");
        }
        let deep = "(".repeat(100_000);
        assert!(filter(&deep).unwrap_err().to_string().contains("too deeply"));
        let long = vec!["a == 1"; 100_000].join(" or ");
        assert_eq!(filter(&long).unwrap().features(), ["a"]);
    }

    #[test]
    fn equivalent_texts_parse_to_equal_filters() {
        let same = |a: &str, b: &str| assert_eq!(filter(a).unwrap(), filter(b).unwrap(), "{a} {b}");
        same("label==3", " label  ==\t3 ");
        same("a == 1 or b == 2 and not c == 3", "a == 1 or (b == 2 and (not (c == 3)))");
        same("'a' == \"x\"", "a == 'x'");
        same(r"a == 'it\'s'", "a == \"it's\"");
        same("a < width(b) or len(a)!=len(b)", "'a'<width( 'b') or len('a') != len(b)");
        let (short, long) =
            (filter("a in .5..2., -.5...5").unwrap(), filter("a in 0.5..2.0, -0.5..0.5").unwrap());
        let test = |filter: &Filter, x: f32| {
            let payload = crate::ExampleBuilder::new().float("a", [x]).encode().unwrap();
            filter.for_records().accepts(0, &payload, crate::example::MessageKind::Example).unwrap()
        };
        for x in [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0] {
            assert_eq!(test(&short, x), test(&long, x), "{x}");
        }
        same(r"a == '\x41\n'", "a == \"A\\n\"");
        same("a in 1..3,7", "a in 1 .. 3 , 7");
        same("any(a)>1", " any ( a ) > 1");
        same("all(bytes('a')) in 1..3", "all(bytes(a))in 1..3");
        same("a is  not nan", "'a' is not nan");
        same("split(0.50 , seed = 0)", "split(0.5)");
        same(r"a contains 'b'", r#"a contains "\x62""#);
        same(r"a matches '\d+\''", r#"a matches "\d+\'""#);
        let features = |text: &str| filter(text).unwrap().features().join(" ");
        assert_eq!(
            features("image/class.x-y:z == 1 and _ == 2 and 'in' in 3 and present == 4 and img.. == img..x"),
            "_ image/class.x-y:z img.. img..x in present"
        );
        assert_eq!(
            features(
                "len == 1 and any < 2 and is is nan and len(contains) > 1 and 'record' == 3 and record == 3"
            ),
            "any contains is len record"
        );
    }
}
