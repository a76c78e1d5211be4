//! Names and numbers of things in messages.

use crate::digits::thousands;
use std::fmt::{self, Display, Write};

/// A text in quotes, printed on one line, with control characters escaped.
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        // The pieces between quotes are escaped separately, because `escape_debug` escapes both kinds of
        // quotes. It escapes a combining mark only at the start of a text.
        for (k, piece) in self.0.split('\'').enumerate() {
            if k > 0 {
                f.write_char('\'')?;
            }
            for (k, piece) in piece.split('"').enumerate() {
                if k > 0 {
                    f.write_str("\\\"")?;
                }
                piece.escape_debug().fmt(f)?;
            }
        }
        f.write_char('"')
    }
}

/// A key, printed without quotes unless a character in it requires them.
pub struct Key<'a>(pub &'a str);

impl Key<'_> {
    fn plain(&self) -> bool {
        !self.0.is_empty() && self.0.chars().all(|c| c.is_alphanumeric() || c.is_ascii_graphic() && c != '"')
    }

    /// Returns the number of printed characters.
    pub fn width(&self) -> usize {
        if self.plain() { self.0.chars().count() } else { Quoted(self.0).to_string().chars().count() }
    }
}

impl Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plain() { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// Returns a number of things: `1 record`, `2,000 records`.
pub fn count(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", thousands(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        assert_eq!(Key("image/encoded").to_string(), "image/encoded");
        assert_eq!(Key("größe").to_string(), "größe");
        assert_eq!(Key("").to_string(), "\"\"");
        assert_eq!(Key("a b").to_string(), "\"a b\"");
        assert_eq!(Key("a\nb").width(), 6);
    }
}
