//! Parts of messages: counted things, file names, and text that controls no terminal.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::path::PathBuf;

/// Maximum number of file names in a message.
const MAX_NAMES: usize = 8;

/// A number of things, e.g. `1 record` or `2 records`.
pub(crate) struct Count(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// A name or a text from outside as a part of a message. Made by [`printable`].
#[derive(Clone, Debug)]
struct Printable<'a>(Cow<'a, str>);

/// Returns a path, or a text that files or other programs chose, for messages and for terminals: without
/// characters that control a terminal, end the line, or change the direction of the text after them. They are
/// escaped as in Rust strings. All messages of this crate print paths so; the paths themselves stay exact.
///
/// ```
/// let name = std::path::Path::new("a\x1b[2J\u{202e}é.tfrecord");
/// assert_eq!(tfseek::error::printable(name).to_string(), r"a\u{1b}[2J\u{202e}é.tfrecord");
/// ```
pub fn printable<T: AsRef<OsStr> + ?Sized>(text: &T) -> impl fmt::Display + fmt::Debug + Clone {
    Printable(text.as_ref().to_string_lossy())
}

/// Returns true for controls of terminals, line separators, and controls of the direction of text (UAX #9).
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(is_control) {
            return f.pad(&self.0);
        }
        self.0.chars().try_for_each(|c| {
            if is_control(c) { c.escape_default().try_for_each(|c| f.write_char(c)) } else { f.write_char(c) }
        })
    }
}

/// The names of files of one folder: `a.bin, b.bin`, and ` ..` if there are more than eight.
pub(crate) struct FileNames<'a>(pub(crate) &'a [PathBuf]);

impl fmt::Display for FileNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, path) in self.0.iter().take(MAX_NAMES).enumerate() {
            let name = path.file_name().unwrap_or(path.as_os_str());
            write!(f, "{}{}", if k == 0 { "" } else { ", " }, printable(name))?;
        }
        if self.0.len() > MAX_NAMES { f.write_str(", ..") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_has_no_controls() {
        for (text, expected) in [
            ("plain é 日本 'x'", "plain é 日本 'x'"),
            ("\x1b]0;t\x07", r"\u{1b}]0;t\u{7}"),
            ("a\nb\r\tc\u{9b}\u{7f}", r"a\nb\r\tc\u{9b}\u{7f}"),
            ("\u{202e}gpj\u{2066}\u{200f}\u{2028}", r"\u{202e}gpj\u{2066}\u{200f}\u{2028}"),
        ] {
            assert_eq!(printable(text).to_string(), expected);
        }
        let paths = [PathBuf::from("d/a\x1b")];
        assert_eq!(FileNames(&paths).to_string(), r"a\u{1b}");
    }

    #[test]
    fn counts_and_names() {
        assert_eq!([0, 1, 2].map(|n| Count(n, "record").to_string()), ["0 records", "1 record", "2 records"]);
        let paths: Vec<_> = (0..9).map(|k| PathBuf::from(format!("a/{k}"))).collect();
        assert_eq!(FileNames(&paths[..2]).to_string(), "0, 1");
        assert_eq!(FileNames(&paths).to_string(), "0, 1, 2, 3, 4, 5, 6, 7, ..");
    }
}
